//! How long one retrieval may still take: the sooner of `--timeout` and the message's deadline.

use std::time::{Duration, Instant};

use super::waiting::late;
use crate::report::{Detail, Reason, Refusal, Setting};

/// A point in time, and the reason that is reported when it has passed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    until: Instant,
    reason: Reason,
}

impl Allowance {
    pub(crate) fn starting_now(timeout: Duration, deadline: Instant) -> Self {
        match Instant::now().checked_add(timeout) {
            Some(until) if until < deadline => Self {
                until,
                reason: Reason::Timeout,
            },
            _ => Self {
                until: deadline,
                reason: Reason::Deadline,
            },
        }
    }

    /// This long from now; the caller knows which limit that is.
    #[cfg(feature = "http")]
    pub(crate) fn of(duration: Duration) -> Self {
        let far = Duration::from_secs(24 * 60 * 60);
        Self {
            until: Instant::now() + duration.min(far),
            reason: Reason::Timeout,
        }
    }

    pub(crate) fn at_most(self, timeout: Duration) -> Self {
        let sooner = Self::starting_now(timeout, self.until);
        match sooner.reason {
            Reason::Timeout => sooner,
            _ => self,
        }
    }

    pub(crate) fn until(deadline: Instant) -> Self {
        Self {
            until: deadline,
            reason: Reason::Deadline,
        }
    }

    /// What is left of it, never zero: a zero time-out means "none" to sockets.
    pub(crate) fn remaining(self) -> Result<Duration, Refusal> {
        let remaining = self.until.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return Err(self.overrun());
        }
        Ok(remaining)
    }

    #[cfg(any(feature = "http", feature = "ftp"))]
    pub(crate) fn is_over(self) -> bool {
        Instant::now() >= self.until
    }

    /// The refusal once it is over: time-outs are temporary.
    pub(crate) fn overrun(self) -> Refusal {
        match self.reason {
            Reason::Timeout => {
                let detail = Detail::from("not whole within ").naming(Setting::Timeout);
                Refusal::temporary(Reason::Timeout, detail)
            }
            _ => late(),
        }
    }
}
