//! Interface for messages that are not written to files, but passed to another part of the program.

use super::prepared::PreparedMail;
use crate::error::Error;
use crate::mailbox::forms::flags::MessageFlags;

/// Receives the messages of mailboxes in batches of consecutive messages. Several threads fill batches at the same time,
/// so work that depends on a single message only belongs to [`Batch::add`].
pub(crate) trait Handler: Send + Sync {
    /// Returns an empty batch. `length` is the approximate total size, in bytes, of the messages that will be added.
    fn batch(&self, length: usize) -> Box<dyn Batch>;
}

/// Consecutive messages of a mailbox, for the [`Handler`] that has created the batch.
pub(crate) trait Batch: Send {
    /// Adds the next message of the mailbox, with its flags.
    fn add(&mut self, letter: &PreparedMail<'_>, flags: MessageFlags);

    /// Passes the messages on to the handler. The batches are finished one at a time, in the order of the mailbox.
    ///
    /// # Errors
    /// An error ends the run.
    fn finish(self: Box<Self>) -> Result<(), Error>;
}
