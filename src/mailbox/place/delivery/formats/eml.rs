//! Messages in `.eml` files.

use super::super::form::MessageForm;
use super::super::writer::{MailboxFiles, NumberedMessage};
use super::super::written_format::WrittenFormat;
use crate::mailbox::flag_losses::FlagLosses;
use crate::mailbox::forms::flags::MessageFlags;

pub(super) struct EmlFormat;

impl WrittenFormat for EmlFormat {
    fn form(&self) -> &'static dyn MessageForm {
        &EmlFormat
    }

    fn files(&self) -> Box<dyn MailboxFiles> {
        Box::new(NewEmlFiles)
    }
}

impl MessageForm for EmlFormat {
    fn lost(&self, flags: &MessageFlags, content: &[u8]) -> Vec<String> {
        let lost = flags.missing_in(&MessageFlags::of_fields(content));
        lost.into_iter()
            .map(|name| format!("{name}, because .eml files have no flags"))
            .collect()
    }
}

struct NewEmlFiles;

impl MailboxFiles for NewEmlFiles {
    fn name(
        &mut self,
        message: &NumberedMessage<'_>,
        _mailbox: usize,
        _losses: &mut FlagLosses,
    ) -> String {
        // The number has leading zeros, so that the file names sort in the order of the messages.
        format!("{:08}.eml", message.number)
    }
}
