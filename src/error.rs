//! Errors that end a run. A problem with one part of a message is not an [`Error`]: it is reported as a
//! [`Reason`](crate::engine::report::Reason), and the message is still processed.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
#[cfg(any(unix, windows, feature = "outlook"))]
use std::sync::{LockResult, PoisonError};

use crate::detail::{Detail, Setting};

/// An error that ends a run without output.
///
/// Error messages are in lower case and have no full stop. The underlying error is available as `source`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The message could not be read.
    #[error("cannot read {what}")]
    Read {
        /// File name, or "standard input".
        what: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A mailbox could not be read to its end. The mailbox is unchanged, and there is no output.
    #[error("cannot read {path}", path = path.display())]
    Unreadable {
        /// Path of the mailbox.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The output could not be written completely.
    #[error("cannot write {what}")]
    Write {
        /// File name, or "standard output".
        what: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// An option or a configuration value is invalid.
    #[error("{0}")]
    Usage(Detail),
    /// A retrieval failed temporarily, and [`OnFailure::Defer`](crate::engine::policy::OnFailure::Defer) is set, so the mail
    /// must be processed again later.
    #[error("temporary failure: {0}")]
    Deferred(Detail),
    /// A source is not a mailbox in a format that embody supports.
    #[error("{path}: {why}", path = path.display())]
    NotAMailbox {
        /// Path of the source.
        path: PathBuf,
        /// Description of what the source contains instead of a mailbox.
        why: Detail,
    },
    /// Another program changed the source during the conversion. embody did not change the source.
    #[error("{path}: another program changed the file while embody read it, so nothing was written; run the same command again", path = path.display())]
    Changed {
        /// Path of the source.
        path: PathBuf,
    },
    /// The source is not the file that `embody split` divided, so the byte range may be wrong.
    #[error("{}", not_as_expected(path))]
    NotAsExpected {
        /// Path of the source.
        path: PathBuf,
    },
    /// Another program has locked the mailbox.
    #[error("{path}: locked by another program{}", holder(path, lock), path = path.display())]
    Locked {
        /// Path of the mailbox.
        path: PathBuf,
        /// Path of the lock file next to the mailbox, or the path of the mailbox if the file itself is locked.
        lock: PathBuf,
    },
    /// The run was interrupted, for example by a signal. Temporary files were removed.
    #[error("stopped")]
    Interrupted,
}

impl Error {
    /// Returns a function that wraps an I/O error as [`Error::Read`]. `what` is the name of the file or of another source.
    #[cfg_attr(
        not(any(feature = "file", feature = "http", feature = "mailbox")),
        allow(dead_code)
    )]
    pub(crate) fn cannot_read(what: impl Display) -> impl Fn(io::Error) -> Self {
        move |source| Self::Read {
            what: what.to_string(),
            source,
        }
    }

    #[cfg(any(feature = "cache", feature = "mailbox"))]
    pub(crate) fn cannot_write(what: impl Display) -> impl Fn(io::Error) -> Self {
        move |source| Self::Write {
            what: what.to_string(),
            source,
        }
    }

    #[cfg(feature = "cli")]
    pub(crate) fn detail(&self) -> Detail {
        match self {
            Self::Usage(what) => what.clone(),
            Self::Deferred(why) => Detail::from("temporary failure: ").then(why.clone()),
            Self::NotAMailbox { path, why } => {
                Detail::from(format!("{}: ", path.display())).then(why.clone())
            }
            Self::NotAsExpected { path } => not_as_expected(path),
            other => other.to_string().into(),
        }
    }
}

/// Locks a mutex (or another lock) even if a thread panicked while it held the lock. This is safe because the data
/// behind every lock is consistent between any two steps that could panic.
#[cfg(any(unix, windows, feature = "outlook"))]
pub(crate) fn unpoisoned<T>(locked: LockResult<T>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}

fn not_as_expected(path: &Path) -> Detail {
    Detail::from(format!("{}: this is not the file that ", path.display()))
        .naming(Setting::Expect)
        .then(" describes, because it was changed after embody split it; run embody split again")
}

fn holder(path: &Path, lock: &Path) -> String {
    if path == lock {
        return "; wait until that program ends, or end it (the command fuser shows its process id), and try again".to_owned();
    }
    format!(
        "; if no program is using the mailbox, remove {}",
        lock.display()
    )
}

#[cfg(all(test, feature = "cli"))]
mod tests {
    use super::*;

    #[test]
    fn who_finds_a_mailbox_locked_is_told_what_to_do() {
        for (lock, way_out) in [("x.lock", "remove x.lock"), ("x", "try again")] {
            let error = Error::Locked {
                path: "x".into(),
                lock: lock.into(),
            };
            assert!(error.to_string().ends_with(way_out), "{error}");
        }
    }

    #[test]
    fn detail_of_an_error_equals_its_message() {
        let path = || PathBuf::from("x");
        let named = || Detail::from("why ").naming(Setting::Range);
        for error in [
            Error::Usage(named()),
            Error::Deferred(named()),
            Error::NotAMailbox {
                path: path(),
                why: named(),
            },
            Error::NotAsExpected { path: path() },
            Error::Changed { path: path() },
            Error::Interrupted,
        ] {
            assert_eq!(error.detail(), *error.to_string());
        }
    }
}
