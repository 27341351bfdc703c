//! The reason why one reference could not be processed, with a sentence for the user.

use super::reason::Reason;
use crate::detail::Detail;

/// The reason why one reference could not be processed. It is reported as a [`Row`](super::Row) with the outcome `left`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("{detail}")]
pub struct Refusal {
    /// Reason as a stable word.
    pub reason: Reason,
    /// Explanation for the user, without a full stop. It can quote the mail. It also contains the settings that caused the
    /// refusal, so that the program can name their options.
    pub detail: Detail,
    /// Whether a later retry may succeed (timeouts, refused connections, HTTP 408, 429 and 5xx).
    pub retry: Retry,
    /// HTTP status code or FTP reply code with which the server refused.
    pub status: Option<u16>,
    /// Whether the source is gone, so that a web archive may be used: HTTP 404 or 410, an unknown host, or a host
    /// where no connection is possible.
    pub(crate) is_gone: bool,
    /// Whether a server or a web archive responded. A refusal with a status or with a reason such as
    /// [`Reason::BadResponse`] is a response in any case.
    pub(crate) contact: ServerContact,
}

/// Whether a request of this run reached a server. An answer from a cache or from files shows nothing about servers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) enum ServerContact {
    /// The reason and the status of the refusal show it, or no request was sent.
    #[default]
    AsReason,
    /// A server responded, although the reason of the refusal does not show it.
    Responded,
    /// No server responded, for this reason. The reason of the refusal is another one, for example that files of captures do
    /// not contain the URL.
    Unreachable(Reason),
}

/// Whether a retry may succeed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Retry {
    /// A retry would have the same result.
    Never,
    /// A later retry may succeed. With [`OnFailure::Defer`](crate::engine::policy::OnFailure::Defer), the mail is processed
    /// again later.
    Later,
}

impl Refusal {
    /// Returns a refusal that a retry would not change.
    pub fn lasting(reason: Reason, detail: impl Into<Detail>) -> Self {
        Self {
            reason,
            detail: detail.into(),
            retry: Retry::Never,
            status: None,
            is_gone: false,
            contact: ServerContact::AsReason,
        }
    }

    /// Returns a refusal that may not occur in a later retry.
    pub fn temporary(reason: Reason, detail: impl Into<Detail>) -> Self {
        Self {
            retry: Retry::Later,
            ..Self::lasting(reason, detail)
        }
    }

    /// Adds the fact that a server responded before the refusal, such as with a redirect to a host that does not exist.
    pub(crate) fn after_response(self, has_response: bool) -> Self {
        let contact = if has_response {
            ServerContact::Responded
        } else {
            self.contact
        };
        Self { contact, ..self }
    }

    #[cfg(feature = "http")]
    pub(crate) fn of_status(self, status: u16) -> Self {
        Self {
            status: Some(status),
            ..self
        }
    }
}
