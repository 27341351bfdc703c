//! What a format of new mailboxes consists of.

use super::directory;
use super::form::MessageForm;
use super::writer::{MailboxFiles, MailboxWriter, NewResult};
use crate::error::Error;

/// A format in which new mailboxes are written.
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
