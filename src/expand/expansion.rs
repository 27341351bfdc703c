//! The result of the work on one message.

use crate::edit::{Edits, Spliced};
use crate::report::Report;

/// What became of one message.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Expansion<'m> {
    message: &'m [u8],
    /// What changes in the message.
    pub edits: Edits,
    /// What was done and what was not.
    pub report: Report,
    /// Octets that were looked at, as [`Limits::work`](crate::policy::Limits::work) counts them: 0 if there was nothing to
    /// do.
    pub work: u64,
}

impl<'m> Expansion<'m> {
    pub(super) fn new(message: &'m [u8], edits: Edits, report: Report, work: u64) -> Self {
        Self {
            message,
            edits,
            report,
            work,
        }
    }
    /// The message with the edits made; borrowed from the input wherever nothing changed.
    pub fn output(&self) -> Spliced<'_> {
        self.edits.splice(self.message)
    }
}
