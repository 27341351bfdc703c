//! Reasons to *stop*. That one part was odd is never an [`Error`]: it is a
//! [`Reason`](crate::report::Reason) in the report, and the mail goes on.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
#[cfg(any(unix, windows))]
use std::sync::{LockResult, PoisonError};

use crate::detail::{Detail, Setting};

/// What ends a run without output.
///
/// Messages are lower case without a full stop; the cause is kept as `source`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The message could not be read.
    #[error("cannot read {what}")]
    Read {
        /// A file name, or "standard input".
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// A mailbox could not be read to its end; it was left as it is, and there is no result.
    #[error("cannot read {path}", path = path.display())]
    Unreadable {
        /// The mailbox.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The result could not be written whole.
    #[error("cannot write {what}")]
    Write {
        /// A file name, or "standard output".
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// An option or a configuration value makes no sense.
    #[error("{0}")]
    Usage(Detail),
    /// A retrieval failed for a while only, and the policy asks to try the mail later.
    #[error("temporary failure: {0}")]
    Deferred(Detail),
    /// A source is not a mailbox of a kind embody knows.
    #[error("{path}: {why}", path = path.display())]
    NotAMailbox {
        /// The source.
        path: PathBuf,
        /// What was found instead.
        why: Detail,
    },
    /// The source changed while it was being converted; it was left as it is.
    #[error("{path}: another program changed it while it was read, so nothing was written; run the same command again", path = path.display())]
    Changed {
        /// The source.
        path: PathBuf,
    },
    /// The source is not what its piece was cut from.
    #[error("{}", not_as_expected(path))]
    NotAsExpected {
        /// The source.
        path: PathBuf,
    },
    /// Another program holds the lock.
    #[error("{path}: locked by another program{}", holder(path, lock), path = path.display())]
    Locked {
        /// The source.
        path: PathBuf,
        /// What stands for the lock: a file beside the source, or the source itself.
        lock: PathBuf,
    },
    /// The run was asked to stop; no temporary file is left.
    #[error("stopped")]
    Interrupted,
}

impl Error {
    /// [`Error::Read`] for a file, or whatever bears that name.
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

/// Every state behind a lock is whole between steps, so another thread's panic does no harm.
#[cfg(any(unix, windows))]
pub(crate) fn unpoisoned<T>(locked: LockResult<T>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}

fn not_as_expected(path: &Path) -> Detail {
    let detail = Detail::from(format!("{}: not the file that ", path.display()));
    let detail = detail.naming(Setting::Expect);
    detail.then(" describes, because it was changed after embody split it; run embody split again")
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
    fn the_detail_of_an_error_is_what_it_says() {
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
