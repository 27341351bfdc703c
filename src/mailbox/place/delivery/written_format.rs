//! Interface of a mailbox format that embody can write.

use super::directory;
use super::form::MessageForm;
use super::writer::{MailboxFiles, MailboxWriter, NewResult};
use crate::error::Error;

/// A mailbox format that embody can write.
pub(super) trait WrittenFormat: Sync {
    /// Returns the form of the messages.
    fn form(&self) -> &'static dyn MessageForm;

    /// Returns the files of mailboxes in a directory.
    fn files(&self) -> Box<dyn MailboxFiles>;

    /// Starts a result: a mailbox, or a directory with a mailbox for each label.
    ///
    /// # Errors
    /// Returns [`Error::Write`].
    fn start(&self, new: &NewResult<'_>) -> Result<Box<dyn MailboxWriter>, Error> {
        directory::start(new, self.files())
    }
}
