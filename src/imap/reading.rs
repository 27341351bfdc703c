//! Reading with several connections, which are made again when they break.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::account::Account;
use super::failure::ImapFailure;
use super::names::shown;
use super::retry::Tries;
use super::session::{BodyPiece, ImapSession, Selected};
use crate::error::{Error, unpoisoned};
use crate::mailbox::Stop;

/// Messages, and octets, that a connection takes on at a time.
const SHARE_MESSAGES: usize = 500;
const SHARE_OCTETS: u64 = 8 << 20;
/// Messages that wait to be worked on.
const WAITING: usize = 16;
/// How often a stop is looked for.
const TICK: Duration = Duration::from_millis(100);

/// An account's connections.
pub(crate) struct Sessions<'s> {
    pub(crate) account: &'s Account,
    pub(crate) stop: &'s Stop,
    idle: Mutex<Vec<ImapSession>>,
    /// Whether there was ever a session.
    was_open: AtomicBool,
    /// Whether messages that the server does not give for the moment are given up: waiting did not help.
    is_resigned: AtomicBool,
}

/// What comes of a message.
pub(crate) enum Fetched {
    Whole {
        uid: u32,
        content: Vec<u8>,
    },
    /// It is gone, or the server does not give it.
    Gone(u32),
    /// It has more bytes than are taken.
    TooLarge(u32),
}

/// Messages that are to be read, and what became of the connections.
struct ReadingState {
    rest: VecDeque<(u32, u64)>,
    failure: Option<ImapFailure>,
}

impl<'s> Sessions<'s> {
    pub(crate) fn new(account: &'s Account, stop: &'s Stop) -> Self {
        Self {
            account,
            stop,
            idle: Mutex::default(),
            was_open: AtomicBool::new(false),
            is_resigned: AtomicBool::new(false),
        }
    }

    /// Does something in one session, and again in a new one if that breaks: so it must be something that only reads.
    ///
    /// # Errors
    /// What `work` gives, and whatever stays wrong with the connection.
    pub(crate) fn again<T>(
        &self,
        mut work: impl FnMut(&mut ImapSession) -> Result<T, ImapFailure>,
    ) -> Result<T, ImapFailure> {
        let mut tries = Tries::default();
        loop {
            let mut session = None;
            let done = self.taken().and_then(|taken| work(session.insert(taken)));
            let why = match done {
                Ok(done) => {
                    self.give_back(session);
                    return Ok(done);
                }
                Err(why) => why,
            };
            if why.leaves_session() && !why.is_passing() {
                self.give_back(session);
            }
            self.pause(&mut tries, why)?;
        }
    }

    fn taken(&self) -> Result<ImapSession, ImapFailure> {
        let idle = unpoisoned(self.idle.lock()).pop();
        match idle {
            Some(session) => Ok(session),
            None => {
                let mut session = ImapSession::open(self.account, self.stop)?;
                self.was_open.store(true, Ordering::Relaxed);
                if self.is_resigned.load(Ordering::Relaxed) {
                    session.resign();
                }
                Ok(session)
            }
        }
    }

    /// Makes a connection more; false if the server does not take it.
    pub(crate) fn is_another(&self) -> bool {
        let opened = ImapSession::open(self.account, self.stop);
        let is_open = opened.is_ok();
        self.give_back(opened.ok());
        is_open
    }

    fn give_back(&self, session: Option<ImapSession>) {
        let mut idle = unpoisoned(self.idle.lock());
        idle.extend(session);
    }

    /// Waits before the next try; without one, the failure is what ends it. A server that refuses a few messages again and again
    /// is asked for the others at last, once in a run.
    fn pause(&self, tries: &mut Tries, why: ImapFailure) -> Result<(), ImapFailure> {
        let was_open = self.was_open.load(Ordering::Relaxed);
        let seconds = match tries.pause(&why, was_open) {
            Some(seconds) => seconds,
            None if why.is_refusal_for_now() && !self.is_resigned.swap(true, Ordering::Relaxed) => {
                0
            }
            None => return Err(why),
        };
        let until = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < until {
            self.stop.check()?;
            std::thread::sleep(TICK);
        }
        Ok(self.stop.check()?)
    }

    /// Reads messages, given by UID and RFC822.SIZE, and hands them to `work` through a channel, in no order. Those of more
    /// than `most` octets are not taken.
    ///
    /// # Errors
    /// What `work` gives, which is told first; else what ended a connection for good.
    pub(crate) fn read<T>(
        &self,
        folder: &Selected,
        messages: Vec<(u32, u64)>,
        most: usize,
        work: impl FnOnce(Arrivals<'_>) -> Result<T, Error>,
    ) -> Result<T, ImapFailure> {
        let octets: u64 = messages.iter().map(|(_, size)| *size).sum();
        // Logging in takes as long as some messages do.
        let is_short = messages.len() < 50 && octets < SHARE_OCTETS;
        let count = if is_short {
            1
        } else {
            self.account.connections.max(1)
        };
        let shared = Mutex::new(ReadingState {
            rest: messages.into(),
            failure: None,
        });
        let (sender, receiver) = sync_channel(WAITING);
        let done = std::thread::scope(|scope| {
            for _ in 0..count {
                let sender = sender.clone();
                let shared = &shared;
                scope.spawn(move || self.serve(folder, most, shared, &sender));
            }
            drop(sender);
            let arrivals = Arrivals {
                receiver,
                stop: self.stop,
            };
            work(arrivals)
        });
        let shared = unpoisoned(shared.into_inner());
        match (done, shared.failure) {
            (Err(why), _) => Err(why.into()),
            (Ok(_), Some(why)) => Err(why),
            (Ok(done), None) => Ok(done),
        }
    }

    /// One connection, until there is nothing left to read, or nobody who wants it.
    fn serve(
        &self,
        folder: &Selected,
        most: usize,
        shared: &Mutex<ReadingState>,
        sender: &SyncSender<Fetched>,
    ) {
        let lock = || unpoisoned(shared.lock());
        let mut tries = Tries::default();
        let mut session = None;
        let mut share: HashMap<u32, u64> = HashMap::new();
        loop {
            if share.is_empty() {
                let mut shared = lock();
                let mut octets = 0;
                while share.len() < SHARE_MESSAGES
                    && octets < SHARE_OCTETS
                    && shared.failure.is_none()
                    && let Some((uid, size)) = shared.rest.pop_front()
                {
                    octets += size;
                    share.insert(uid, size);
                }
                if share.is_empty() {
                    break;
                }
            }
            let before = share.len();
            match self.serve_share(&mut session, folder, most, &mut share, sender) {
                Ok(true) => {}
                Ok(false) => return,
                Err(why) => {
                    session = None;
                    if share.len() < before {
                        tries = Tries::default();
                    }
                    if let Err(why) = self.pause(&mut tries, why) {
                        lock().failure.get_or_insert(why);
                        return;
                    }
                }
            }
        }
        self.give_back(session);
    }

    /// False: nobody wants more. What was handed on leaves `share`.
    fn serve_share(
        &self,
        session: &mut Option<ImapSession>,
        folder: &Selected,
        most: usize,
        share: &mut HashMap<u32, u64>,
        sender: &SyncSender<Fetched>,
    ) -> Result<bool, ImapFailure> {
        let session = match session {
            Some(session) => session,
            none => {
                let mut new = self.taken()?;
                let now = new.examine(&folder.folder)?.uidvalidity;
                if now != folder.uidvalidity {
                    return Err(ImapFailure::Renumbered {
                        folder: shown(&folder.folder),
                        before: folder.uidvalidity,
                        now,
                    });
                }
                none.insert(new)
            }
        };
        let mut wanted: Vec<(u32, u64)> = share.iter().map(|(uid, size)| (*uid, *size)).collect();
        wanted.sort_unstable();
        let mut is_wanted = true;
        for (uid, _) in wanted.extract_if(.., |(_, size)| *size > most as u64) {
            share.remove(&uid);
            is_wanted &= sender.send(Fetched::TooLarge(uid)).is_ok();
        }
        let mut content = Vec::new();
        let mut is_too_large = false;
        let done = session.fetch_bodies(&wanted, &mut |uid, piece| {
            let fetched = match piece {
                BodyPiece::Octets(octets) => {
                    // A size that was a lie: the rest comes, and is let go.
                    is_too_large |= content.len() + octets.len() > most;
                    match is_too_large {
                        true => content = Vec::new(),
                        false => content.extend_from_slice(octets),
                    }
                    return Ok(());
                }
                BodyPiece::Whole if is_too_large => Fetched::TooLarge(uid),
                BodyPiece::Whole => Fetched::Whole {
                    uid,
                    content: std::mem::take(&mut content),
                },
                BodyPiece::Gone => Fetched::Gone(uid),
            };
            content.clear();
            is_too_large = false;
            share.remove(&uid);
            // Who does not want more has its own reason.
            sender.send(fetched).map_err(|_| Error::Interrupted.into())
        });
        match done {
            Err(ImapFailure::Run(Error::Interrupted)) if !self.stop.is_requested() => Ok(false),
            Err(why) => Err(why),
            Ok(()) => {
                share.clear();
                Ok(is_wanted)
            }
        }
    }

    /// Logs out.
    pub(crate) fn end(self) {
        let idle = unpoisoned(self.idle.into_inner());
        for session in idle {
            session.logout();
        }
    }
}

/// Messages as they come.
pub(crate) struct Arrivals<'a> {
    receiver: Receiver<Fetched>,
    stop: &'a Stop,
}

impl Arrivals<'_> {
    /// The next one; none if there are no more.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(crate) fn next(&self) -> Result<Option<Fetched>, Error> {
        loop {
            match self.receiver.recv_timeout(TICK) {
                Ok(fetched) => return Ok(Some(fetched)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => self.stop.check()?,
            }
        }
    }
}
