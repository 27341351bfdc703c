//! What goes wrong with a server, and whether a new connection may do better.

use std::io;

use crate::error::Error;

/// Why a command, or a session, came to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImapFailure {
    /// There is no connection to be had.
    #[error("cannot connect to {host}: {source}")]
    Connect { host: String, source: io::Error },
    /// The certificate is not one that is trusted, or TLS is not to be had.
    #[error("{host}: cannot establish a secure connection: {why}")]
    Tls { host: String, why: String },
    /// The server does not go over to TLS, and without it nothing is said.
    #[error("{host}: the server refused to encrypt the connection (STARTTLS): {text}")]
    NoStartTls { host: String, text: String },
    /// The server takes neither the user nor the password, or nothing that embody can say.
    #[error("{host}: cannot log in: {why}")]
    Login { host: String, why: String },
    /// NO or BAD to a command.
    #[error("the server refused {command}: {text}")]
    Refused {
        command: &'static str,
        /// The word of the response code in upper case: `OVERQUOTA`.
        code: Option<String>,
        text: String,
        /// BAD: the server does not understand the command.
        is_bad: bool,
    },
    /// BYE in place of a greeting.
    #[error("the server refused the connection: {0}")]
    TurnedAway(String),
    /// The server said BYE.
    #[error("the server ended the session: {0}")]
    Bye(String),
    /// The connection broke.
    #[error("the connection to the server was interrupted: {0}")]
    Cut(io::Error),
    /// Nothing came for long.
    #[error("the server did not answer for {0} seconds")]
    Silent(u64),
    /// Lines came, and none of them was what a command waits for.
    #[error(
        "the server keeps sending data that does not complete the command; embody stopped reading after {0}"
    )]
    Endless(String),
    /// An answer to a command cannot be read, and what follows it can. It costs what was asked for, and not the session.
    #[error("cannot read a response of the server: {0}")]
    Unreadable(&'static str),
    /// What the server sent is not what RFC 3501 allows, or more than embody takes. Where the next response begins is not known.
    #[error("the server violated the IMAP protocol: {0}")]
    Protocol(&'static str),
    /// UIDs are others than before: nothing that was noted of the folder holds any more.
    #[error(
        "the folder {folder} was deleted and created again during the run (UIDVALIDITY {before}, now {now}); run the same command again"
    )]
    Renumbered {
        folder: String,
        before: u32,
        now: u32,
    },
    /// A message has more bytes than are taken into memory.
    #[error("the message has more than {0} bytes")]
    TooLarge(usize),
    /// The server did not say what became of a message that is being replaced. The journal keeps how far that came.
    #[error(
        "{0}; the journal lists the unfinished changes: run the same command again later to complete them"
    )]
    Unknown(String),
    /// Whatever ends the run: a stop, a full disk.
    #[error(transparent)]
    Run(#[from] Error),
}

impl ImapFailure {
    /// Whether a new session may do better.
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

    /// Whether the server refused something for the moment only.
    pub(super) fn is_refusal_for_now(&self) -> bool {
        matches!(self, Self::Refused { .. }) && self.is_passing()
    }

    /// Whether the session can go on with another command.
    pub(crate) fn leaves_session(&self) -> bool {
        matches!(
            self,
            Self::Refused { .. } | Self::TooLarge(_) | Self::Unreadable(_)
        )
    }

    /// Whether other folders of the account may be read nevertheless, if need be over a new connection.
    pub(crate) fn costs_one_folder(&self) -> bool {
        matches!(
            self,
            Self::Refused { .. }
                | Self::Renumbered { .. }
                | Self::TooLarge(_)
                | Self::Unreadable(_)
                | Self::Protocol(_)
                | Self::Endless(_)
        )
    }

    /// As what ends the run; `what` is the URL, without a password, and `remedy` what the user may do.
    pub(crate) fn into_error(self, what: &str, remedy: &str) -> Error {
        match self {
            Self::Run(error) => error,
            other => Error::cannot_read(what)(io::Error::other(format!("{other}{remedy}"))),
        }
    }
}
