//! A result for runs that write nothing. It still counts the flags that the format could not store.

use super::appear::NamedResult;
use super::writer::{MailboxFiles, MailboxWriter, NumberedMessage};
use crate::error::Error;
use crate::mailbox::flag_losses::FlagLosses;
use crate::mailbox::place::journal::JournalRecord;

pub(super) struct NowhereWriter(pub(super) Box<dyn MailboxFiles>);

impl MailboxWriter for NowhereWriter {
    fn write(
        &mut self,
        message: &NumberedMessage<'_>,
        mailboxes: &[usize],
        losses: &mut FlagLosses,
    ) -> Result<(), Error> {
        for &number in mailboxes {
            self.0.name(message, number, losses);
        }
        Ok(())
    }

    fn finish(
        self: Box<Self>,
        _record: Option<&JournalRecord<'_>>,
        _note: &mut dyn FnMut(&[NamedResult]),
    ) -> Result<(), Error> {
        Ok(())
    }
}
