//! Decides whether a failed operation is repeated, how often, and after which pauses. All connections to a server, for
//! reading and for changes, repeat their operations by these rules.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::account::Account;
use super::failure::ImapFailure;
use super::session::ImapSession;
use crate::error::Error;
use crate::mailbox::Stop;

/// Pauses before the next attempts to connect, in seconds: 53 seconds in total.
const PAUSES: [u64; 6] = [0, 1, 2, 5, 15, 30];

/// Pauses before the next attempts, in seconds, after a folder was skipped because the server ends the connection there.
/// Other folders may have the same fault, and longer pauses would add up.
const SHORT_PAUSES: [u64; 3] = [0, 1, 2];

/// Pauses after connections that ended while messages were requested. The first ones are for an overloaded server. The
/// later ones are short, because a message is then searched at which the server ends the connection each time.
const BREAK_PAUSES: [Duration; 2] = [Duration::ZERO, Duration::from_secs(1)];
const BREAK_PAUSE: Duration = Duration::from_millis(100);

/// Maximum number of connections that end without a new message. After that, the server itself is assumed to have a problem.
/// A connection with a server that sends nothing counts as [`SILENT_BREAKS`], because it takes much longer.
const MOST_BREAKS: u32 = 80;
const SILENT_BREAKS: u32 = 4;

/// Total time for which the server may send nothing to the attempts of one operation, in seconds.
const MOST_SILENT: u64 = 15 * 60;

/// Interval at which a pause checks whether the run was interrupted.
const TICK: Duration = Duration::from_millis(50);

/// Opens the connections of a run to one server, and decides whether a failed operation is repeated.
pub(crate) struct ConnectionPool<'r> {
    pub(super) account: &'r Account,
    pub(super) stop: &'r Stop,
    /// Whether a session was ever opened. If not, a failure to connect is final.
    was_open: AtomicBool,
    /// Whether a message that the server refuses temporarily is given up at once. This is set after waiting did not
    /// help, so that all other messages are processed.
    is_resigned: AtomicBool,
    /// Number of connections that ended while messages were requested, since the last message that arrived.
    breaks: AtomicU32,
    /// Whether the run skipped a folder because the server ends the connection there.
    has_skipped: AtomicBool,
    /// Longest time after which the server sent data, in milliseconds.
    slowest: AtomicU64,
}

/// How long a command waits for a server that sends nothing.
///
/// The time limit of the account is long, because a search can take minutes. A request for messages is made again if the server
/// sends nothing, and a server that sends nothing for one message would otherwise cost the time limit for each of these
/// requests. So they wait for a part of the time limit, but at least ten times as long as this server ever needed, and one
/// second more for each MiB of the largest message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RetryPatience {
    /// Any other command: the time limit of the account.
    Command,
    /// The first request for a group of messages, and the last request for a message before it is given up. The number is the
    /// size of the largest message in bytes.
    Messages(u64),
    /// The requests that find the message at which the server sends nothing.
    Search(u64),
}

impl RetryPatience {
    fn of(self, silence: Duration, slowest: Duration) -> Duration {
        const LEAST: Duration = Duration::from_secs(5);
        let (share, size) = match self {
            Self::Command => return silence,
            Self::Messages(size) => (silence / 5, size),
            Self::Search(size) => (silence / 30, size),
        };
        let least = share.max(LEAST).max(slowest.saturating_mul(10));
        silence.min(least.saturating_add(Duration::from_secs(size >> 20)))
    }
}

impl<'r> ConnectionPool<'r> {
    pub(super) fn new(account: &'r Account, stop: &'r Stop) -> Self {
        Self {
            account,
            stop,
            was_open: AtomicBool::new(false),
            is_resigned: AtomicBool::new(false),
            breaks: AtomicU32::new(0),
            has_skipped: AtomicBool::new(false),
            slowest: AtomicU64::new(0),
        }
    }

    /// Opens a session.
    ///
    /// # Errors
    /// The failures of [`ImapSession::open`].
    pub(super) fn open(&self) -> Result<ImapSession, ImapFailure> {
        let mut session = ImapSession::open(self.account, self.stop)?;
        self.was_open.store(true, Ordering::Relaxed);
        if self.is_resigned.load(Ordering::Relaxed) {
            session.resign();
        }
        Ok(session)
    }

    /// Waits before the next attempt of an operation that failed with `why`. If the server keeps refusing some messages
    /// temporarily, one last attempt is made over a new session, which skips such messages and processes the others.
    ///
    /// # Errors
    /// `why` if no attempt is left, or [`Error::Interrupted`].
    pub(super) fn pause(&self, tries: &mut Tries, why: ImapFailure) -> Result<(), ImapFailure> {
        let was_open = self.was_open.load(Ordering::Relaxed);
        let is_short = self.has_skipped.load(Ordering::Relaxed) && why.is_break();
        let pauses = if is_short { &SHORT_PAUSES[..] } else { &PAUSES };
        match tries.pause(&why, was_open, pauses) {
            Some(seconds) => Ok(self.rest(Duration::from_secs(seconds))?),
            // All connections share `is_resigned`, so another connection may have set this flag during the failed attempt.
            // The flag then does not show whether this operation had its last attempt, and `tries` counts it instead.
            None if why.is_refusal_for_now() && !tries.had_last_attempt => {
                tries.had_last_attempt = true;
                self.is_resigned.store(true, Ordering::Relaxed);
                Ok(self.stop.check()?)
            }
            None => Err(why),
        }
    }

    /// Waits before messages are requested again, after the connection ended while they were requested. The caller requests
    /// smaller groups, until it finds the message at which the server ends the connection
    /// ([`BreakSearch`](super::narrowing::BreakSearch)).
    ///
    /// # Errors
    /// `why` if too many connections ended and no message arrived, or [`Error::Interrupted`].
    pub(super) fn broke(&self, tries: &mut Tries, why: ImapFailure) -> Result<(), ImapFailure> {
        let weight = match why {
            ImapFailure::Silent(_) => SILENT_BREAKS,
            _ => 1,
        };
        let before = self.breaks.fetch_add(weight, Ordering::Relaxed);
        if before.saturating_add(weight) > MOST_BREAKS {
            return self.pause(tries, why);
        }
        let at = usize::try_from(before).unwrap_or(usize::MAX);
        Ok(self.rest(BREAK_PAUSES.get(at).copied().unwrap_or(BREAK_PAUSE))?)
    }

    /// Resets the count of broken connections, because messages arrived.
    pub(super) fn progressed(&self) {
        self.breaks.store(0, Ordering::Relaxed);
    }

    /// Converts a failure that ended all attempts for a folder. If the server ends the connection only when this folder
    /// is read, and still accepts new connections, the result affects only this folder.
    pub(super) fn of_folder(&self, why: ImapFailure) -> ImapFailure {
        let is_only_here = !why.costs_one_folder()
            && why.is_break()
            && self.open().map(ImapSession::logout).is_ok();
        if !is_only_here {
            return why;
        }
        self.has_skipped.store(true, Ordering::Relaxed);
        ImapFailure::OnlyHere(why.to_string())
    }

    /// Sets how long the next commands of a session may wait for the server.
    pub(super) fn set_patience(&self, session: &mut ImapSession, patience: RetryPatience) {
        let slowest = u64::try_from(session.slowest().as_millis()).unwrap_or(u64::MAX);
        let slowest = self
            .slowest
            .fetch_max(slowest, Ordering::Relaxed)
            .max(slowest);
        session.set_silence(patience.of(self.account.silence, Duration::from_millis(slowest)));
    }

    /// Waits for this time.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(super) fn rest(&self, time: Duration) -> Result<(), Error> {
        let begun = Instant::now();
        while begun.elapsed() < time {
            self.stop.check()?;
            std::thread::sleep(TICK);
        }
        self.stop.check()
    }
}

/// State of the retries of one operation.
#[derive(Default)]
pub(super) struct Tries {
    failed: usize,
    /// Time for which the server sent nothing, in seconds.
    silent: u64,
    /// Whether the attempt that skips refused messages was made.
    had_last_attempt: bool,
}

impl Tries {
    /// Returns the number of seconds until the next attempt, or `None` if the failure is final. `was_open` is true if the run
    /// had a session before.
    ///
    /// * An interrupted connection may work again soon: the operation is repeated after each of the pauses.
    /// * If the first connection cannot be opened, the name of the server is probably wrong: no further attempt. If the first
    ///   greeting is BYE, the server probably rejects this client: two more attempts.
    /// * A server that sends nothing gets no further attempt after a quarter of an hour.
    /// * An unreadable response may have been garbled by accident: one more attempt. A server that keeps sending unrelated data
    ///   gets no further attempt.
    fn pause(&mut self, why: &ImapFailure, was_open: bool, pauses: &[u64]) -> Option<u64> {
        let most = match why {
            ImapFailure::Connect { .. } if !was_open => 0,
            ImapFailure::TurnedAway(_) if !was_open => 2,
            ImapFailure::Protocol(_) | ImapFailure::Unreadable(_) => 1,
            why if why.is_passing() => pauses.len(),
            _ => 0,
        };
        if let ImapFailure::Silent(seconds) = why {
            self.silent = self.silent.saturating_add(*seconds);
        }
        let pause = pauses
            .get(self.failed)
            .filter(|_| self.failed < most && self.silent < MOST_SILENT)?;
        self.failed += 1;
        Some(*pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_end_sooner_where_another_one_is_of_no_use() {
        let pauses = |why: ImapFailure, was_open| {
            let mut tries = Tries::default();
            std::iter::from_fn(|| tries.pause(&why, was_open, &PAUSES)).collect::<Vec<_>>()
        };
        let connect = || ImapFailure::Connect {
            host: "x".to_owned(),
            source: std::io::ErrorKind::ConnectionRefused.into(),
        };
        assert_eq!(pauses(ImapFailure::Silent(1), false), PAUSES);
        assert_eq!(pauses(ImapFailure::Silent(300), true), [0, 1]);
        assert_eq!(pauses(connect(), true), PAUSES);
        assert!(pauses(connect(), false).is_empty());
        assert_eq!(pauses(ImapFailure::TurnedAway("x".into()), false), [0, 1]);
        assert_eq!(pauses(ImapFailure::TurnedAway("x".into()), true), PAUSES);
        assert_eq!(pauses(ImapFailure::Unreadable("x"), true), [0]);
        assert!(pauses(ImapFailure::Endless("x".into()), true).is_empty());
    }

    #[test]
    fn requests_for_messages_wait_for_a_part_of_the_time_limit_unless_the_server_is_slow() {
        let seconds = Duration::from_secs;
        for (patience, silence, slowest, expected) in [
            (RetryPatience::Command, 300, 1, 300),
            (RetryPatience::Messages(0), 300, 1, 60),
            (RetryPatience::Messages(100 << 20), 300, 1, 160),
            (RetryPatience::Messages(u64::MAX), 300, 1, 300),
            (RetryPatience::Messages(0), 300, 20, 200),
            (RetryPatience::Messages(0), 300, 40, 300),
            (RetryPatience::Search(0), 300, 0, 10),
            (RetryPatience::Search(0), 300, 2, 20),
            (RetryPatience::Search(30 << 20), 300, 0, 40),
            (RetryPatience::Search(0), 3600, 0, 120),
            (RetryPatience::Messages(0), 20, 0, 5),
            (RetryPatience::Search(0), 2, 0, 2),
        ] {
            let found = patience.of(seconds(silence), seconds(slowest));
            assert_eq!(found, seconds(expected), "{patience:?} {silence} {slowest}");
        }
    }
}
