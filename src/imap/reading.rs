//! Reads messages with several connections in parallel, and opens a new connection when one is interrupted. A message at
//! which the server ends each connection is found ([`narrowing`](super::narrowing)), skipped and returned with the reason.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use super::account::Account;
use super::bodies;
use super::failure::ImapFailure;
use super::names::shown;
use super::narrowing::{AT_A_TIME, BreakSearch};
use super::retry::{ConnectionPool, RetryPatience, Tries};
use super::session::{BodyPiece, ImapSession, SelectResponse};
use crate::error::{Error, unpoisoned};
use crate::mailbox::Stop;

/// Maximum number of messages that a connection takes from the queue at a time.
const SHARE_MESSAGES: usize = 500;
/// Total size in bytes at which a connection takes no further messages from the queue.
const SHARE_OCTETS: u64 = 8 << 20;
/// Maximum number of downloaded messages that are kept in memory until they are processed.
const WAITING: usize = 16;
/// Interval at which a wait checks whether the run was interrupted.
const TICK: Duration = Duration::from_millis(100);

/// Pool of connections to an account.
pub(crate) struct Sessions<'s> {
    pub(crate) connecting: ConnectionPool<'s>,
    idle: Mutex<Vec<ImapSession>>,
}

/// Result of reading one message of a folder.
pub(crate) enum ReadResult {
    Whole {
        uid: u32,
        content: Vec<u8>,
    },
    /// The message no longer exists, or the server does not return it.
    Gone(u32),
    /// The message is larger than the limit.
    TooLarge(u32),
    /// The server ends the connection whenever the message is requested.
    Broken(BrokenMessage),
}

/// A message at which the server ends the connection each time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BrokenMessage {
    pub(crate) uid: u32,
    /// The failure of the last request.
    pub(crate) why: String,
}

impl BrokenMessage {
    pub(super) fn of(uid: u32, why: &ImapFailure) -> Self {
        let why = why.to_string();
        Self { uid, why }
    }

    /// Returns the report for the message. `then` is the consequence, such as that the message is not saved.
    pub(crate) fn report(&self, then: &str) -> String {
        format!(
            "the connection ends whenever this message is requested ({}); {then}, and the next run requests the message again",
            self.why
        )
    }
}

/// Queue of the messages to read, and the first final failure of a connection.
struct ReadingState {
    rest: VecDeque<(u32, u64)>,
    failure: Option<ImapFailure>,
}

impl<'s> Sessions<'s> {
    pub(crate) fn new(account: &'s Account, stop: &'s Stop) -> Self {
        Self {
            connecting: ConnectionPool::new(account, stop),
            idle: Mutex::default(),
        }
    }

    /// Runs `work` with a session. If the session fails, `work` starts again from its beginning with a new session. So
    /// `work` must only read, because it would make a change twice.
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
                if let Some(session) = &mut session {
                    session.forget_folder();
                }
                self.give_back(session);
            }
            self.connecting.pause(&mut tries, why)?;
        }
    }

    /// Requests messages of a folder with `work`, and requests those again that did not arrive because the connection ended.
    /// `work` receives the UIDs to request and stores what arrives in `state`, in which `has` finds it. Returns the messages at
    /// which the server ends the connection each time.
    pub(crate) fn narrowed<S>(
        &self,
        folder: &SelectResponse,
        uids: &[u32],
        state: &mut S,
        mut work: impl FnMut(&mut ImapSession, &[u32], &mut S) -> Result<(), ImapFailure>,
        has: impl Fn(&S, u32) -> bool,
    ) -> Result<Vec<BrokenMessage>, ImapFailure> {
        let mut broken = Vec::new();
        for uids in uids.chunks(AT_A_TIME) {
            let mut narrowing = BreakSearch::of(uids.to_vec());
            let mut tries = Tries::default();
            while let Some(group) = narrowing.next().map(<[u32]>::to_vec) {
                let mut session = None;
                let patience = narrowing.patience();
                let opened = self.session_in(&mut session, folder);
                let is_open = opened.is_ok();
                let done = opened.and_then(|session| {
                    self.connecting.set_patience(session, patience);
                    work(session, &group, state)?;
                    self.connecting
                        .set_patience(session, RetryPatience::Command);
                    Ok(())
                });
                match done {
                    Ok(()) => {
                        self.give_back(session);
                        self.connecting.progressed();
                        tries = Tries::default();
                        narrowing.done();
                    }
                    Err(why) if is_open && why.is_break() => {
                        let mut rest = group;
                        let count = rest.len();
                        rest.retain(|uid| !has(state, *uid));
                        if rest.len() < count {
                            self.connecting.progressed();
                        }
                        if let Some(uid) = narrowing.failed(rest) {
                            broken.push(BrokenMessage::of(uid, &why));
                        }
                        self.connecting.broke(&mut tries, why)?;
                    }
                    Err(why) => self.connecting.pause(&mut tries, why)?,
                }
            }
        }
        Ok(broken)
    }

    fn taken(&self) -> Result<ImapSession, ImapFailure> {
        let idle = unpoisoned(self.idle.lock()).pop();
        match idle {
            Some(session) => Ok(session),
            None => self.open(),
        }
    }

    /// Opens a session that changes nothing on the server.
    fn open(&self) -> Result<ImapSession, ImapFailure> {
        let mut session = self.connecting.open()?;
        session.accept_no_uid();
        Ok(session)
    }

    /// Opens one more connection for later use. Returns whether this was possible.
    pub(crate) fn try_open(&self) -> bool {
        let opened = self.open();
        let is_open = opened.is_ok();
        self.give_back(opened.ok());
        is_open
    }

    fn give_back(&self, session: Option<ImapSession>) {
        let mut idle = unpoisoned(self.idle.lock());
        idle.extend(session);
    }

    /// Reads messages, given as a UID and an RFC822.SIZE, and passes them to `work` through a channel, in any order. Messages
    /// of more than `most` bytes are not read.
    ///
    /// # Errors
    /// The error of `work`, if any. Otherwise the failure that finally ended a connection.
    pub(crate) fn read<T>(
        &self,
        folder: &SelectResponse,
        messages: Vec<(u32, u64)>,
        most: usize,
        work: impl FnOnce(MessageReceiver<'_>) -> Result<T, Error>,
    ) -> Result<T, ImapFailure> {
        let octets: u64 = messages.iter().map(|(_, size)| *size).sum();
        // A few small messages are read over one connection, because a second login would take longer than reading
        // them.
        let is_short = messages.len() < 50 && octets < SHARE_OCTETS;
        let count = if is_short {
            1
        } else {
            self.connecting.account.connections.max(1)
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
            let arrivals = MessageReceiver {
                receiver,
                stop: self.connecting.stop,
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

    /// Reads messages over one connection until the queue is empty or the receiver is gone.
    fn serve(
        &self,
        folder: &SelectResponse,
        most: usize,
        shared: &Mutex<ReadingState>,
        sender: &SyncSender<ReadResult>,
    ) {
        let lock = || unpoisoned(shared.lock());
        let mut tries = Tries::default();
        let mut session = None;
        let mut narrowing: BreakSearch<(u32, u64)> = BreakSearch::of(Vec::new());
        loop {
            let Some(group) = narrowing.next().map(<[_]>::to_vec) else {
                let share = taken_share(&mut lock());
                if share.is_empty() {
                    break;
                }
                narrowing = BreakSearch::of(share);
                continue;
            };
            let mut share: HashMap<u32, u64> = group.iter().copied().collect();
            let patience = narrowing.patience();
            let paused = match self.session_in(&mut session, folder) {
                Err(why) => {
                    session = None;
                    self.connecting.pause(&mut tries, why)
                }
                Ok(session_in) => {
                    self.connecting.set_patience(session_in, patience);
                    match self.serve_share(session_in, most, &group, &mut share, sender) {
                        Ok(true) => {
                            narrowing.done();
                            tries = Tries::default();
                            self.connecting.progressed();
                            Ok(())
                        }
                        Ok(false) => return,
                        Err(why) => {
                            session = None;
                            if share.len() < group.len() {
                                tries = Tries::default();
                                self.connecting.progressed();
                            }
                            let mut rest = group;
                            rest.retain(|(uid, _)| share.contains_key(uid));
                            self.failed(&mut narrowing, rest, &mut tries, why, sender)
                        }
                    }
                }
            };
            if let Err(why) = paused {
                lock().failure.get_or_insert(why);
                return;
            }
        }
        if let Some(session) = &mut session {
            self.connecting
                .set_patience(session, RetryPatience::Command);
        }
        self.give_back(session);
    }

    /// Continues after a failure, over a new connection: with smaller groups if the connection ended. `rest` contains the
    /// messages of the group that did not arrive. Passes a message that is given up to the channel.
    fn failed(
        &self,
        narrowing: &mut BreakSearch<(u32, u64)>,
        rest: Vec<(u32, u64)>,
        tries: &mut Tries,
        why: ImapFailure,
        sender: &SyncSender<ReadResult>,
    ) -> Result<(), ImapFailure> {
        if !why.is_break() {
            narrowing.keep(rest);
            return self.connecting.pause(tries, why);
        }
        if let Some((uid, _)) = narrowing.failed(rest) {
            // If the receiver is gone, the next message that is sent will end the reading.
            let _ = sender.send(ReadResult::Broken(BrokenMessage::of(uid, &why)));
        }
        self.connecting.broke(tries, why)
    }

    /// Returns the session. Opens one and the folder if there is none.
    fn session_in<'o>(
        &self,
        session: &'o mut Option<ImapSession>,
        folder: &SelectResponse,
    ) -> Result<&'o mut ImapSession, ImapFailure> {
        match session {
            Some(session) => Ok(session),
            none => {
                let mut new = self.taken()?;
                open_same(&mut new, folder)?;
                Ok(none.insert(new))
            }
        }
    }

    /// Reads the messages of a group, and removes each from `share` after it was passed to the channel. Returns false
    /// if the receiver no longer exists.
    fn serve_share(
        &self,
        session: &mut ImapSession,
        most: usize,
        group: &[(u32, u64)],
        share: &mut HashMap<u32, u64>,
        sender: &SyncSender<ReadResult>,
    ) -> Result<bool, ImapFailure> {
        let mut wanted = group.to_vec();
        let mut is_wanted = true;
        for (uid, _) in wanted.extract_if(.., |(_, size)| *size > most as u64) {
            share.remove(&uid);
            is_wanted &= sender.send(ReadResult::TooLarge(uid)).is_ok();
        }
        let mut content = Vec::new();
        let mut is_too_large = false;
        let done = session.fetch_bodies(&wanted, &mut |uid, piece| {
            let fetched = match piece {
                BodyPiece::Octets(octets) => {
                    // The message exceeds the limit, although the server announced a smaller size. The rest of it is
                    // received and discarded, so that the connection can be used for the next message.
                    is_too_large |= content.len() + octets.len() > most;
                    if is_too_large {
                        content = Vec::new()
                    } else {
                        content.extend_from_slice(octets)
                    }
                    return Ok(());
                }
                BodyPiece::Whole if is_too_large => ReadResult::TooLarge(uid),
                BodyPiece::Whole => ReadResult::Whole {
                    uid,
                    content: std::mem::take(&mut content),
                },
                BodyPiece::Gone => ReadResult::Gone(uid),
            };
            content.clear();
            is_too_large = false;
            share.remove(&uid);
            // Sending fails only if `work` has ended and dropped the receiver. `work` has its own result, so this error
            // only ends the reading.
            sender.send(fetched).map_err(|_| Error::Interrupted.into())
        });
        match done {
            Err(ImapFailure::Run(Error::Interrupted)) if !self.connecting.stop.is_requested() => {
                Ok(false)
            }
            Err(why) => Err(why),
            Ok(()) => {
                share.clear();
                Ok(is_wanted)
            }
        }
    }

    /// Logs out of all sessions.
    pub(crate) fn end(self) {
        let idle = unpoisoned(self.idle.into_inner());
        for session in idle {
            session.logout();
        }
    }
}

/// Takes messages from the queue for one connection, in the order in which they are requested: the small ones first, by UID.
fn taken_share(queue: &mut ReadingState) -> Vec<(u32, u64)> {
    let (mut share, mut octets) = (Vec::new(), 0);
    while share.len() < SHARE_MESSAGES
        && octets < SHARE_OCTETS
        && queue.failure.is_none()
        && let Some((uid, size)) = queue.rest.pop_front()
    {
        octets += size;
        share.push((uid, size));
    }
    share.sort_unstable_by_key(|(uid, size)| (bodies::is_large(*size), *uid));
    share
}

/// Opens a folder unless it is already open in the same state, and checks that it is still the same one.
pub(super) fn open_same(
    session: &mut ImapSession,
    folder: &SelectResponse,
) -> Result<(), ImapFailure> {
    if session.has_open(folder) {
        return Ok(());
    }
    let now = session.examine(&folder.folder)?.uidvalidity;
    if now == folder.uidvalidity {
        return Ok(());
    }
    Err(ImapFailure::Renumbered {
        folder: shown(&folder.folder),
        before: folder.uidvalidity,
        now,
    })
}

/// Receiver for the messages that the connections read, in the order of their arrival.
pub(crate) struct MessageReceiver<'a> {
    receiver: Receiver<ReadResult>,
    stop: &'a Stop,
}

impl MessageReceiver<'_> {
    /// Returns the next message, or `None` after the last one.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(crate) fn next(&self) -> Result<Option<ReadResult>, Error> {
        loop {
            match self.receiver.recv_timeout(TICK) {
                Ok(fetched) => return Ok(Some(fetched)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => self.stop.check()?,
            }
        }
    }
}
