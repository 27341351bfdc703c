//! An expander as what is done to each message of a mailbox.

use super::expander::Expander;
use crate::edit::Edits;
use crate::error::Error;
use crate::mailbox::{Change, Message, Replacement, Transform};

/// Fills every message. What was done and what was not goes unsaid: for reports, implement [`Transform`] and call
/// [`Expander::expand`]. Build the expander with [`Lengths::Kept`](crate::Lengths::Kept): the mailbox corrects
/// Content-Length itself.
impl Transform for Expander {
    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        self.first_touch(bytes)
    }

    fn transform(&self, message: &Message<'_>) -> Result<Change, Error> {
        let expansion = self.expand(message.content, &message.number.to_string())?;
        Ok(expansion.edits.into())
    }
}

impl From<Edits> for Change {
    fn from(edits: Edits) -> Self {
        if edits.is_empty() {
            return Self::AsItCame;
        }
        let replacements = edits.into_iter().map(|edit| Replacement {
            span: edit.span,
            bytes: edit.replacement,
        });
        Self::Edited(replacements.collect())
    }
}
