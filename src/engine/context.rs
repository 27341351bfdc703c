//! Facts about a message that are not in its bytes. The driver collects them before the first round, so that no round reads
//! a clock or a directory.

#[cfg(all(feature = "file", feature = "mailbox"))]
use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use crate::engine::external_body::Follow;
use crate::engine::ledger::IsOver;
#[cfg(all(feature = "file", feature = "mailbox"))]
use crate::engine::report::Refusal;

/// The circumstances of one message. They are the same in each call of [`Engine::run`](super::Engine::run) for it.
#[derive(Clone)]
pub struct Context {
    pub(super) name: String,
    pub(super) now: SystemTime,
    pub(super) is_over: IsOver,
    pub(super) beside: Option<Beside>,
}

/// The directories next to the mailbox of a message.
#[derive(Clone, Debug)]
pub(crate) struct Beside {
    /// The form of the references to files in these directories.
    pub(crate) form: Follow,
    /// For a message of a mailbox of Eudora: the file that each of its notes names, in the order of the notes. A refusal says
    /// that there is no such file, that there are several, or that an earlier note of the mailbox names the same file.
    #[cfg(all(feature = "file", feature = "mailbox"))]
    pub(crate) eudora: Option<Vec<Result<EudoraFile, Refusal>>>,
}

/// A file in a directory of Eudora, as it was listed at the start of the run.
#[cfg(all(feature = "file", feature = "mailbox"))]
#[derive(Clone, Debug)]
pub(crate) struct EudoraFile {
    /// Number of the directory.
    pub(crate) folder: usize,
    pub(crate) name: OsString,
    /// Length in bytes. The refusal of what is not a regular file.
    pub(crate) length: Result<u64, Refusal>,
}

impl Context {
    /// The context of a message without files next to it and without a deadline.
    ///
    /// `name` is the name of the message in reports. `now` is the time of the run; it decides whether a date in the message
    /// has passed, which changes the report and never the message.
    pub fn new(name: impl Into<String>, now: SystemTime) -> Self {
        Self {
            name: name.into(),
            now,
            is_over: Arc::new(|| false),
            beside: None,
        }
    }

    /// Stops work on the message when `is_over` returns true. References that were not processed stay unchanged.
    #[must_use]
    pub fn until(mut self, is_over: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.is_over = Arc::new(is_over);
        self
    }

    /// Adds the directories next to the mailbox.
    #[must_use]
    pub(crate) fn beside(mut self, beside: Option<Beside>) -> Self {
        self.beside = beside;
        self
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn now(&self) -> SystemTime {
        self.now
    }

    /// The form of references that only messages of such a mailbox can have.
    pub(super) fn form_beside(&self) -> Option<Follow> {
        self.beside.as_ref().map(|beside| beside.form)
    }

    /// Whether a time, in seconds since 1970, has passed.
    pub(super) fn is_past(&self, seconds: i64) -> bool {
        let now = self.now.duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs();
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
