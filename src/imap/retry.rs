//! Decides whether a failed operation is repeated, how often, and after which pauses. All connections to a server, for
//! reading and for changes, repeat their operations by these rules.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::account::Account;
use super::failure::ImapFailure;
use super::session::ImapSession;
use crate::error::Error;
use crate::mailbox::Stop;

/// Pauses before the next attempts to connect, in seconds: 53 seconds in total.
const PAUSES: [u64; 6] = [0, 1, 2, 5, 15, 30];

/// Interval at which a pause checks whether the run was interrupted.
const TICK: Duration = Duration::from_millis(50);

/// The connections of a run to one server: how they are opened, and when an operation that failed is repeated.
pub(crate) struct Connecting<'r> {
    pub(super) account: &'r Account,
    pub(super) stop: &'r Stop,
    /// Whether a session was ever opened. If not, a failure to connect is final.
    was_open: AtomicBool,
    /// Whether a message that the server refuses temporarily is given up at once. This is set after waiting did not
    /// help, so that all other messages are processed.
    is_resigned: AtomicBool,
}

impl<'r> Connecting<'r> {
    pub(super) fn new(account: &'r Account, stop: &'r Stop) -> Self {
        Self {
            account,
            stop,
            was_open: AtomicBool::new(false),
            is_resigned: AtomicBool::new(false),
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
        match tries.pause(&why, was_open) {
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

/// Failed attempts of one operation.
#[derive(Default)]
pub(super) struct Tries {
    failed: usize,
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
    /// * An unreadable response may have been garbled by accident: one more attempt. A server that keeps sending unrelated data
    ///   gets no further attempt.
    fn pause(&mut self, why: &ImapFailure, was_open: bool) -> Option<u64> {
        let most = match why {
            ImapFailure::Connect { .. } if !was_open => 0,
            ImapFailure::TurnedAway(_) if !was_open => 2,
            ImapFailure::Protocol(_) | ImapFailure::Unreadable(_) => 1,
            why if why.is_passing() => PAUSES.len(),
            _ => 0,
        };
        let pause = PAUSES.get(self.failed).filter(|_| self.failed < most)?;
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
            std::iter::from_fn(|| tries.pause(&why, was_open)).collect::<Vec<_>>()
        };
        let connect = || ImapFailure::Connect {
            host: "x".to_owned(),
            source: std::io::ErrorKind::ConnectionRefused.into(),
        };
        assert_eq!(pauses(ImapFailure::Silent(1), false), PAUSES);
        assert_eq!(pauses(connect(), true), PAUSES);
        assert!(pauses(connect(), false).is_empty());
        assert_eq!(pauses(ImapFailure::TurnedAway("x".into()), false), [0, 1]);
        assert_eq!(pauses(ImapFailure::TurnedAway("x".into()), true), PAUSES);
        assert_eq!(pauses(ImapFailure::Unreadable("x"), true), [0]);
        assert!(pauses(ImapFailure::Endless("x".into()), true).is_empty());
    }
}
