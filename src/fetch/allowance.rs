//! How long one retrieval may still take: the sooner of `--timeout` and the message's deadline.

use std::time::{Duration, Instant};

use crate::report::{Detail, Reason, Refusal, Setting};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    until: Instant,
    reason: Reason,
}

impl Allowance {
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

    /// It is never zero: a zero time-out means "none" to sockets.
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
                let detail = Detail::from("not whole within ").naming(Setting::Timeout);
                Refusal::temporary(Reason::Timeout, detail)
            }
            _ => late(),
        }
    }
}

pub(super) fn late() -> Refusal {
    let detail = Detail::from("not whole within ").naming(Setting::Deadline);
    let detail = detail.then(", which holds for the whole message");
    Refusal::temporary(Reason::Deadline, detail)
}
