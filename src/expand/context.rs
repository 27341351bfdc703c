//! What a round knows about its message besides the bytes. Its driver has looked all of it up before, so that no round reads
//! a clock or a directory.

#[cfg(all(feature = "file", feature = "mailbox"))]
use std::sync::Arc;
use std::time::SystemTime;

use crate::external_body::Follow;
#[cfg(all(feature = "file", feature = "mailbox"))]
use crate::fetch::EudoraFiles;
use crate::ledger::IsOver;

/// The circumstances of one message. They are the same in each round over it.
pub(super) struct Context<'c> {
    /// The name of the message in reports.
    pub(super) name: &'c str,
    /// The time of the run. Dates that are past change what is told, never what is done.
    pub(super) now: SystemTime,
    /// Whether the time for the message is over.
    pub(super) is_over: IsOver,
    /// The mailbox, if its program keeps attachments in files next to it.
    pub(super) beside: Option<Beside>,
}

/// What lies next to the mailbox of a message.
pub(super) struct Beside {
    /// The form of the references to these files.
    pub(super) form: Follow,
    /// The files of a mailbox of Eudora, and the number of the message in it: a file belongs to the first message that names it.
    #[cfg(all(feature = "file", feature = "mailbox"))]
    pub(super) eudora: Option<(u64, Arc<EudoraFiles>)>,
}

impl Context<'_> {
    /// The form of references that only messages of such a mailbox can have.
    pub(super) fn form_beside(&self) -> Option<Follow> {
        self.beside.as_ref().map(|beside| beside.form)
    }

    /// Whether a time, in seconds since 1970, is past.
    pub(super) fn is_past(&self, seconds: i64) -> bool {
        let now = self.now.duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs();
        i64::try_from(now).is_ok_and(|now| seconds < now)
    }
}
