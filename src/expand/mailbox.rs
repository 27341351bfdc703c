//! An expander as what is done to each message of a mailbox.

use super::envelope;
use super::expander::Expander;
use crate::edit::Edits;
use crate::error::Error;
use crate::fetch::Sidecars;
use crate::mailbox::{Envelope, Message, Program, Transform, one_by_one};
use crate::report::Report;

/// Fills every message, and gives the [`Observer`](crate::mailbox::Observer) of the run its report, which calls the
/// message by its number.
impl Transform<Report> for Expander {
    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        self.first_touch(bytes)
    }

    fn touched(&self, bytes: &[u8], ends: &[usize]) -> Vec<usize> {
        self.touched_messages(bytes, ends)
    }

    fn transform(&self, message: &Message<'_>) -> Result<(Edits, Report), Error> {
        let beside = beside(message);
        let name = message.number.to_string();
        let expansion = self.expand_beside(message.content, &name, beside.as_ref())?;
        Ok((expansion.edits, expansion.report))
    }

    fn envelope(&self, separator: &[u8], content: &[u8]) -> Envelope {
        envelope::of(separator, content)
    }
}

/// What lies beside the mailbox of a message.
pub(crate) fn beside(message: &Message<'_>) -> Option<Sidecars> {
    match message.beside? {
        Program::AppleMail => Sidecars::of_apple_mail(message.source),
        Program::Eudora => None,
    }
}

impl Expander {
    /// Which of the messages in `bytes`, which end at `ends`, [`Expander::expand`] might change, or have something
    /// to say about.
    pub(crate) fn touched_messages(&self, bytes: &[u8], ends: &[usize]) -> Vec<usize> {
        if self.marks() {
            // A mark of others goes from a message that has nothing but a document, too.
            return one_by_one(|bytes| self.first_touch(bytes), bytes, ends);
        }
        self.prefilter().messages(bytes, ends)
    }
}
