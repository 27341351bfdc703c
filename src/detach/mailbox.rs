//! A detacher as what is done to each message of a mailbox.

use super::Detacher;
use crate::edit::Edits;
use crate::error::Error;
use crate::expand::envelope;
use crate::lengths::Lengths;
use crate::mailbox::{Envelope, Message, Transform};
use crate::report::Report;

/// The report goes to the [`Observer`](crate::mailbox::Observer) of the run, and calls the message by its number.
impl Transform<Report> for Detacher {
    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        self.first_touch(bytes)
    }

    fn transform(&self, message: &Message<'_>) -> Result<(Edits, Report), Error> {
        let detachment = self.detach(message.content, &message.number.to_string())?;
        Ok((detachment.edits, detachment.report))
    }

    fn envelope(&self, separator: &[u8], content: &[u8]) -> Envelope {
        envelope::of(separator, content)
    }

    // Detaching and restoring keep true lengths true and false ones false: so one undoes the other.
    fn lengths(&self) -> Lengths {
        Lengths::Reversible
    }
}
