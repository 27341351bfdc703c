//! Reasons to *stop*. That one part was odd is never an [`Error`]: it is a
//! [`Reason`](crate::report::Reason) in the report, and the mail goes on.

use std::io;
use std::path::{Path, PathBuf};

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
    Usage(String),
    /// A retrieval failed for a while only, and `--on-failure defer` asks to try the mail later.
    #[error("temporary failure: {0}")]
    Deferred(String),
    /// A source is not a mailbox of a kind embody knows.
    #[error("{path}: {why}", path = path.display())]
    NotAMailbox {
        /// The source.
        path: PathBuf,
        /// What was found instead.
        why: String,
    },
    /// The source changed while it was being converted; it was left as it is.
    #[error("{path}: changed while it was read; nothing was written", path = path.display())]
    Changed {
        /// The source.
        path: PathBuf,
    },
    /// The source is not what its piece was cut from.
    #[error("{path}: not the file that --expect describes; it changed since it was split", path = path.display())]
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

/// What to do about a lock that is a file.
fn holder(path: &Path, lock: &Path) -> String {
    if path == lock {
        return String::new();
    }
    format!("; if no program works on it, remove {}", lock.display())
}
