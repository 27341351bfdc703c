use std::time::Duration;

use crate::report::{Reason, Refusal, Retry};

#[derive(Clone, Debug)]
pub(crate) struct Failed {
    pub(crate) refusal: Refusal,
    /// There is no answer at all, so other URLs of the host get none, either.
    pub(crate) nobody: Option<Nobody>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Nobody {
    Host,
    Port,
}

/// A connection that a message's own deadline cut short does not say that nobody is there.
pub(crate) fn is_long(elapsed: Duration, timeout: Duration) -> bool {
    elapsed >= Duration::from_secs(10).min(timeout / 4 * 3)
}

impl Failed {
    pub(crate) fn into_refusal(self) -> Refusal {
        let is_gone = match self.nobody {
            Some(Nobody::Host) => true,
            Some(Nobody::Port) => self.refusal.reason == Reason::ConnectionFailed,
            None => self.refusal.is_gone,
        };
        Refusal {
            is_gone,
            ..self.refusal
        }
    }
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        let nobody = match (refusal.reason, refusal.retry) {
            // A name server that cannot answer now says nothing of the host.
            (Reason::NameNotFound, Retry::Never) => Some(Nobody::Host),
            _ => None,
        };
        Self { refusal, nobody }
    }
}
