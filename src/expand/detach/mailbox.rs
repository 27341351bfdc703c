//! Applies a [`Detacher`] to each message of a mailbox.

use super::Detacher;
use crate::edit::Edits;
use crate::engine::lengths::Lengths;
use crate::engine::report::Report;
use crate::error::Error;
use crate::expand::envelope;
use crate::mailbox::{Envelope, Message, Transform};

/// The report is passed to the [`Observer`](crate::mailbox::Observer) of the run. The report names each message by its
/// number in the mailbox.
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

    // Detaching and restoring leave a wrong length field wrong, because the restored message must be identical to the
    // original.
    fn lengths(&self) -> Lengths {
        Lengths::Reversible
    }
}
