//! Messages in MH folders.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use super::super::form::MessageForm;
use super::super::writer::{MailboxFiles, NumberedMessage, put_file};
use super::super::written_format::WrittenFormat;
use crate::mailbox::flag_losses::FlagLosses;
use crate::mailbox::forms::mh::{NewSequences, SEQUENCES};
use crate::platform::Owner;

pub(super) struct MhFormat;

impl WrittenFormat for MhFormat {
    fn form(&self) -> &'static dyn MessageForm {
        &MhFormat
    }

    fn files(&self) -> Box<dyn MailboxFiles> {
        Box::new(NewMhFolders::default())
    }
}

impl MessageForm for MhFormat {}

#[derive(Default)]
struct NewMhFolders {
    /// Sequences of each MH folder, by its number.
    sequences: HashMap<usize, NewSequences>,
}

impl MailboxFiles for NewMhFolders {
    fn name(
        &mut self,
        NumberedMessage { message, .. }: &NumberedMessage<'_>,
        mailbox: usize,
        losses: &mut FlagLosses,
    ) -> String {
        let sequences = self.sequences.entry(mailbox).or_default();
        let (name, lost) = sequences.add(message.system, &message.keywords);
        for keyword in lost {
            let what = format!("keyword {keyword}, because no sequence of MH can have this name");
            losses.count(what);
        }
        name.to_string()
    }

    /// Writes the sequences file of each folder, even of an empty one, because this file marks a directory as an MH
    /// folder.
    fn finish(&mut self, mailboxes: &[PathBuf], owner: Option<Owner>) -> io::Result<()> {
        for (number, mailbox) in mailboxes.iter().enumerate() {
            let sequences = self.sequences.get(&number).map(NewSequences::file);
            let content = sequences.unwrap_or_default();
            put_file(&mailbox.join(SEQUENCES), content.as_bytes(), owner)?;
        }
        Ok(())
    }
}
