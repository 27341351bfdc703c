//! Classifies a row of the report by the response of its source, such as available, lost or refused. The probe before a
//! run and the page about a run count these classes.

use super::tally::{Answers, Probe};
use crate::engine::report::{Outcome, Reason, Row};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ProbeAnswer {
    /// The source has the content, or sent it.
    Alive,
    /// The content is lost: status 404 or 410, or other content has taken its place.
    Gone,
    /// The host name cannot be resolved. The content is gone, unless no server responded in the whole run.
    Unresolved,
    /// The source sent no usable response in this run: a timeout, a 5xx status, or a broken connection.
    Silent,
    /// The server requires a login or a permission.
    Denied,
    /// The policy does not allow the request, or does not accept the response.
    Refused,
    /// A limit for the message or the run was reached before this request. Another run may make it.
    Limited,
    /// No request was made, for a reason other than the policy or a limit.
    Unasked,
}

impl ProbeAnswer {
    pub(super) fn of(row: &Row) -> Self {
        use Reason as R;
        let Some(reason) = row.reason else {
            return match row.outcome {
                Outcome::Left => Self::Unasked,
                _ => Self::Alive,
            };
        };
        match reason {
            R::HttpStatus => match row.status {
                Some(401 | 403 | 407 | 451) => Self::Denied,
                Some(408 | 425 | 429 | 500..=599) => Self::Silent,
                _ => Self::Gone,
            },
            R::FtpStatus => match row.status {
                Some(400..=499) => Self::Silent,
                Some(530 | 532) => Self::Denied,
                _ => Self::Gone,
            },
            R::Timeout
            | R::HostUnresponsive
            | R::ConnectionFailed
            | R::NameServerFailed
            | R::TlsFailed
            | R::IncompleteBody
            | R::BadResponse
            | R::ArchiveBusy => Self::Silent,
            R::SignIn | R::ScanPage => Self::Denied,
            R::NameNotFound => Self::Unresolved,
            R::FileNotReadable
            | R::NotARegularFile
            | R::TooManyRedirects
            | R::NotAnImage
            | R::TypeMismatch
            | R::SizeMismatch
            | R::DigestMismatch
            | R::WebPage
            | R::Expired
            | R::InArchive
            | R::NotArchived
            | R::SecretUrl => Self::Gone,
            R::SchemeNotAllowed
            | R::UnsupportedScheme
            | R::HostNotAllowed
            | R::PrivateAddress
            | R::PortNotAllowed
            | R::UserinfoNotAllowed
            | R::OutsideFileRoot
            | R::RedirectRefused
            | R::TypeNotAllowed
            | R::TooLarge
            | R::BadUrl
            // Another run with the same options would reach this limit again.
            | R::MessageLimit => Self::Refused,
            reason if reason.is_bound() => Self::Limited,
            _ => Self::Unasked,
        }
    }

    pub(super) fn counted(self) -> Answers {
        let mut counts = Answers::default();
        let count = match self {
            Self::Alive => &mut counts.alive,
            Self::Gone => &mut counts.gone,
            Self::Unresolved => &mut counts.unresolved,
            Self::Silent => &mut counts.silent,
            Self::Denied => &mut counts.denied,
            Self::Refused => &mut counts.refused,
            Self::Limited | Self::Unasked => &mut counts.unasked,
        };
        *count = 1;
        counts
    }

    /// Returns the counts of this one response, which are added to the counts of the whole probe. `dead` counts the
    /// sources that got a request and gave no content.
    pub(super) fn probe(self, row: &Row) -> Probe {
        let mut probe = Probe::default();
        let count = match self {
            Self::Alive => &mut probe.alive,
            Self::Gone | Self::Unresolved | Self::Silent | Self::Denied => &mut probe.dead,
            Self::Refused => &mut probe.refused,
            Self::Limited | Self::Unasked => &mut probe.unasked,
        };
        *count = 1;
        match row.reason {
            Some(Reason::InArchive) => probe.archived = 1,
            Some(Reason::NotArchived) => probe.lost = 1,
            _ => {}
        }
        probe
    }
}
