//! An expander as what is done to each message of a mailbox.

use super::expander::Expander;
use crate::edit::Edits;
use crate::error::Error;
use crate::mailbox::{Message, Transform};

/// Fills every message. What was done and what was not goes unsaid: for reports, implement [`Transform`] and call
/// [`Expander::expand`]. Build the expander with [`Lengths::Kept`](crate::Lengths::Kept): the mailbox corrects
/// Content-Length itself.
impl Transform for Expander {
    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        self.first_touch(bytes)
    }

    fn transform(&self, message: &Message<'_>) -> Result<Edits, Error> {
        let expansion = self.expand(message.content, &message.number.to_string())?;
        Ok(expansion.edits)
    }
}
