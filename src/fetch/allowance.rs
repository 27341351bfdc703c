//! Time limits of a retrieval (`--timeout`, and the deadline of the message), and the classification of failed connections.

use std::time::{Duration, Instant};

use crate::engine::report::{Detail, Reason, Refusal, Retry, Setting};

#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestAllowance {
    until: Instant,
    reason: Reason,
}

impl RequestAllowance {
    pub(crate) fn until(deadline: Instant) -> Self {
        Self {
            until: deadline,
            reason: Reason::Deadline,
        }
    }

    pub(crate) fn starting_now(timeout: Duration, deadline: Instant) -> Self {
        Self::until(deadline).at_most(timeout)
    }

    pub(crate) fn at_most(self, timeout: Duration) -> Self {
        match Instant::now().checked_add(timeout) {
            Some(until) if until < self.until => Self {
                until,
                reason: Reason::Timeout,
            },
            _ => self,
        }
    }

    pub(crate) fn of(duration: Duration) -> Self {
        let far = Duration::from_secs(24 * 60 * 60);
        Self::starting_now(duration, Instant::now() + far)
    }

    /// Returns the time that is left. The result is never zero, because sockets treat a time-out of zero as no time-out.
    pub(crate) fn remaining(self) -> Result<Duration, Refusal> {
        let remaining = self.until.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return Err(self.overrun());
        }
        Ok(remaining)
    }

    pub(crate) fn is_over(self) -> bool {
        Instant::now() >= self.until
    }

    pub(crate) fn overrun(self) -> Refusal {
        match self.reason {
            Reason::Timeout => {
                let detail =
                    Detail::from("the retrieval was not complete within ").naming(Setting::Timeout);
                Refusal::temporary(Reason::Timeout, detail)
            }
            _ => late(),
        }
    }
}

pub(super) fn late() -> Refusal {
    let detail = Detail::from("the retrieval was not complete within ")
        .naming(Setting::Deadline)
        .then(", the time limit for the whole message");
    Refusal::temporary(Reason::Deadline, detail)
}

#[derive(Clone, Debug)]
pub(crate) struct FetchFailure {
    pub(crate) refusal: Refusal,
    /// The part of the server that did not respond: `Host` if the host did not respond at all, `Port` if only this port did
    /// not. Requests for other URLs there would fail, too. `None` if the failure does not show anything about other URLs.
    pub(crate) unresponsive: Option<UnresponsiveScope>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UnresponsiveScope {
    Host,
    Port,
}

/// Returns whether a failed connection took long enough to show that the host does not respond. A connection attempt that the
/// deadline of the message ended after a short time does not show this.
pub(crate) fn is_long(elapsed: Duration, timeout: Duration) -> bool {
    elapsed >= Duration::from_secs(10).min(timeout / 4 * 3)
}

impl FetchFailure {
    pub(crate) fn into_refusal(self) -> Refusal {
        let is_gone = match self.unresponsive {
            Some(UnresponsiveScope::Host) => true,
            Some(UnresponsiveScope::Port) => self.refusal.reason == Reason::ConnectionFailed,
            None => self.refusal.is_gone,
        };
        Refusal {
            is_gone,
            ..self.refusal
        }
    }
}

impl From<Refusal> for FetchFailure {
    fn from(refusal: Refusal) -> Self {
        let unresponsive = match (refusal.reason, refusal.retry) {
            // If the name does not exist, requests for other URLs of this host would fail, too. After a temporary failure
            // (a `Names` of another program can return one), it is not known whether the host exists.
            (Reason::NameNotFound, Retry::Never) => Some(UnresponsiveScope::Host),
            _ => None,
        };
        Self {
            refusal,
            unresponsive,
        }
    }
}
