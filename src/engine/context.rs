//! Facts about a message that are not in its bytes. The driver collects them before the first round, so that no round reads
//! a clock or a directory.

#[cfg(all(feature = "file", feature = "mailbox"))]
use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use crate::engine::ledger::IsOver;
#[cfg(all(feature = "file", feature = "mailbox"))]
use crate::external_body::EudoraNote;
use crate::external_body::Follow;
#[cfg(all(feature = "file", feature = "mailbox"))]
use crate::policy::Policy;
#[cfg(all(feature = "file", feature = "mailbox"))]
use crate::report::Refusal;

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
    /// For a mailbox of Eudora, the number of the message in it, and the files.
    #[cfg(all(feature = "file", feature = "mailbox"))]
    pub(crate) eudora: Option<(u64, Arc<dyn EudoraListing>)>,
}

/// A file of Eudora: number of the directory, and name.
#[cfg(all(feature = "file", feature = "mailbox"))]
pub(crate) type EudoraName = (usize, OsString);

/// The files that Eudora keeps for a mailbox, as they were listed at the start of the run.
#[cfg(all(feature = "file", feature = "mailbox"))]
pub(crate) trait EudoraListing: Send + Sync + fmt::Debug {
    /// Returns the file that a note names. A file belongs to the first note that names it: `by` is the number of the message
    /// and the number of the note in it.
    ///
    /// # Errors
    /// There is no such file, there are several, or another note named it before.
    fn claim(&self, note: &EudoraNote, by: (u64, usize)) -> Result<EudoraName, Refusal>;

    /// Length of a file in bytes.
    ///
    /// # Errors
    /// The file is no regular file, or is larger than the policy allows.
    fn length(&self, name: &EudoraName, policy: &Policy) -> Result<u64, Refusal>;
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
