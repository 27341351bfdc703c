//! Facts about a message that its bytes do not contain, such as its name and the time of the run. They are collected
//! before the engine is called, so that the engine never reads a clock or a directory.

#[cfg(all(feature = "file", feature = "mailbox"))]
use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use crate::engine::ledger::IsOver;
use crate::engine::policy::Follow;
#[cfg(all(feature = "file", feature = "mailbox"))]
use crate::engine::report::Refusal;

/// Facts about one message that its bytes do not contain. They are the same in each call of
/// [`Engine::run`](super::Engine::run) for the message.
#[derive(Clone)]
pub struct Context {
    pub(super) name: String,
    pub(super) now: SystemTime,
    pub(super) is_over: IsOver,
    pub(super) beside: Option<NeighbourDirectories>,
}

/// Directories next to the mailbox of a message, in which a mail program stored attachments as files.
#[derive(Clone, Debug)]
pub(crate) struct NeighbourDirectories {
    /// Kind of the references whose files are in these directories.
    pub(crate) form: Follow,
    /// For mailboxes that name files without URLs, such as those of Eudora: the file for each note (a line that names
    /// an attached file), in the order of the notes. A refusal means that the file does not exist, that several files
    /// have this name, or that an earlier note of the mailbox already has the file.
    #[cfg(all(feature = "file", feature = "mailbox"))]
    pub(crate) named_files: Option<Vec<Result<NamedFile, Refusal>>>,
}

/// A file in a directory of the mailbox, as it was listed at the start of the run.
#[cfg(all(feature = "file", feature = "mailbox"))]
#[derive(Clone, Debug)]
pub(crate) struct NamedFile {
    /// Index of the directory that contains the file, in the list of searched attachment directories (from 0).
    pub(crate) folder: usize,
    pub(crate) name: OsString,
    /// Length in bytes, or a refusal if this is not a regular file.
    pub(crate) length: Result<u64, Refusal>,
}

impl Context {
    /// Creates the context of a message that has no files next to it and no deadline.
    ///
    /// `name` is the name of the message in reports. `now` is the time of the run. It decides whether a date in the message
    /// has passed, which affects the report but never the message.
    pub fn new(name: impl Into<String>, now: SystemTime) -> Self {
        Self {
            name: name.into(),
            now,
            is_over: Arc::new(|| false),
            beside: None,
        }
    }

    /// Stops the work on the message when `is_over` returns true. References that were not processed yet stay unchanged.
    #[must_use]
    pub fn until(mut self, is_over: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.is_over = Arc::new(is_over);
        self
    }

    /// Adds the directories next to the mailbox.
    #[must_use]
    pub(crate) fn beside(mut self, beside: Option<NeighbourDirectories>) -> Self {
        self.beside = beside;
        self
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn now(&self) -> SystemTime {
        self.now
    }

    /// Returns the kind of references that only messages in this kind of mailbox can contain, such as those of Apple Mail.
    /// Returns `None` for all other mailboxes.
    pub(super) fn form_beside(&self) -> Option<Follow> {
        self.beside.as_ref().map(|beside| beside.form)
    }

    /// Returns true if a time, in seconds since 1970, has passed.
    pub(super) fn is_past(&self, seconds: i64) -> bool {
        let since_1970 = self.now.duration_since(SystemTime::UNIX_EPOCH);
        let now = since_1970.unwrap_or_default().as_secs();
        i64::try_from(now).is_ok_and(|now| seconds < now)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Context")
            .field("name", &self.name)
            .field("now", &self.now)
            .field("beside", &self.beside)
            .finish_non_exhaustive()
    }
}
