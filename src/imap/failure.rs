//! Errors of IMAP, and whether a new connection can help.

use std::io;

use crate::error::Error;

/// Reason why a command or a session failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImapFailure {
    /// The connection could not be opened.
    #[error("cannot connect to {host}: {source}")]
    Connect { host: String, source: io::Error },
    /// The certificate is not trusted, or the TLS handshake failed.
    #[error("{host}: cannot establish a secure connection: {why}")]
    Tls { host: String, why: String },
    /// The server refused STARTTLS. Nothing else is sent, because it would cross the network unencrypted.
    #[error("{host}: the server refused to encrypt the connection (STARTTLS): {text}")]
    NoStartTls { host: String, text: String },
    /// The server rejected the user name or the password, or offers no login mechanism that embody supports.
    #[error("{host}: cannot log in: {why}")]
    Login { host: String, why: String },
    /// The server answered a command with NO or BAD.
    #[error("the server refused {command}: {text}")]
    Refused {
        command: &'static str,
        /// Response code in upper case, such as `OVERQUOTA`.
        code: Option<String>,
        text: String,
        /// Whether the answer was BAD, which means that the server does not understand the command.
        is_bad: bool,
    },
    /// The greeting of the server was BYE.
    #[error("the server refused the connection: {0}")]
    TurnedAway(String),
    /// The server ended the session with BYE.
    #[error("the server ended the session: {0}")]
    Bye(String),
    /// The connection was interrupted.
    #[error("the connection to the server was interrupted: {0}")]
    Cut(io::Error),
    /// The server sent nothing during the time limit. The number is the time limit in seconds.
    #[error("the server did not answer for {0} seconds")]
    Silent(u64),
    /// The server kept sending lines, but none of them completed the command.
    #[error(
        "the server keeps sending data that does not complete the command; embody stopped reading after {0}"
    )]
    Endless(String),
    /// The response to a command cannot be parsed, but the end of the response is known. Only the result of this command is
    /// lost; the session continues.
    #[error("cannot read a response of the server: {0}")]
    Unreadable(&'static str),
    /// A response violates RFC 3501 or exceeds a limit of embody. The start of the next response is unknown, so the session
    /// ends.
    #[error("the server violated the IMAP protocol: {0}")]
    Protocol(&'static str),
    /// UIDVALIDITY of the folder changed. All UIDs recorded for the folder are invalid.
    #[error(
        "the folder {folder} was deleted and created again during the run (UIDVALIDITY {before}, now {now}); run the same command again"
    )]
    Renumbered {
        folder: String,
        before: u32,
        now: u32,
    },
    /// The folder has another UIDVALIDITY than the URL, so the UID in the URL may denote another message now.
    #[error(
        "the URL contains ;UIDVALIDITY={wanted}, but the folder {folder} now has the UIDVALIDITY {now}: the folder was deleted and created again, so the UIDs of the URL are no longer valid; remove ;UIDVALIDITY={wanted} from the URL, and a ;UID= with it"
    )]
    OutdatedUrl {
        folder: String,
        wanted: u32,
        now: u32,
    },
    /// The connection ends whenever a folder is read, and can then be opened again.
    #[error("{0}; the same error occurs whenever the folder is read")]
    OnlyHere(String),
    /// The message is too large to be kept in memory. The number is the limit in bytes.
    #[error("the message has more than {0} bytes")]
    TooLarge(usize),
    /// The connection failed before the server confirmed a step of a replacement. The journal records the unfinished
    /// replacement.
    #[error(
        "{0}; the journal lists the unfinished changes: run the same command again later to complete them"
    )]
    Unknown(String),
    /// An error that ends the whole run, such as an interrupt or a full disk.
    #[error(transparent)]
    Run(#[from] Error),
}

impl ImapFailure {
    /// Returns whether a new session may succeed.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Cut(_)
            | Self::Silent(_)
            | Self::Bye(_)
            | Self::TurnedAway(_)
            | Self::Unknown(_) => true,
            Self::Connect { source, .. } => source.kind() != io::ErrorKind::InvalidInput,
            Self::Refused { code, .. } => matches!(
                code.as_deref(),
                Some("UNAVAILABLE" | "INUSE" | "THROTTLED" | "LIMIT")
            ),
            _ => false,
        }
    }

    /// Returns whether the connection ended, or can no longer be used, during a command. If this happens again and again, a
    /// message may be the cause.
    pub(super) fn is_break(&self) -> bool {
        matches!(
            self,
            Self::Cut(_) | Self::Silent(_) | Self::Bye(_) | Self::Protocol(_)
        )
    }

    /// Returns whether the server refused the command only temporarily.
    pub(super) fn is_refusal_for_now(&self) -> bool {
        matches!(self, Self::Refused { .. }) && self.is_passing()
    }

    /// Returns whether the session can continue with another command.
    pub(crate) fn leaves_session(&self) -> bool {
        matches!(
            self,
            Self::Refused { .. } | Self::TooLarge(_) | Self::Unreadable(_)
        )
    }

    /// Returns whether only one folder is affected: the other folders of the account can still be read, over a new connection
    /// if necessary.
    pub(crate) fn costs_one_folder(&self) -> bool {
        matches!(
            self,
            Self::Refused { .. }
                | Self::Renumbered { .. }
                | Self::OutdatedUrl { .. }
                | Self::OnlyHere(_)
                | Self::TooLarge(_)
                | Self::Unreadable(_)
                | Self::Protocol(_)
                | Self::Endless(_)
        )
    }

    /// Converts the failure into the error that ends the run. `what` is the URL without a password, and `remedy` tells the user
    /// what to do.
    pub(crate) fn into_error(self, what: &str, remedy: &str) -> Error {
        match self {
            Self::Run(error) => error,
            other => Error::cannot_read(what)(io::Error::other(format!("{other}{remedy}"))),
        }
    }
}
