//! Writes messages to a tree of Thunderbird folders.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

use super::super::appear::{NamedResult, appear_as_tree};
use super::super::form::MessageForm;
use super::super::prepared::PreparedMail;
use super::super::writer::{
    FilledDirectory, MailboxFiles, MailboxWriter, NewResult, NumberedMessage,
};
use super::super::written_format::WrittenFormat;
use super::mbox::{MboxFiles, separated, spelled_for_mbox};
use crate::error::Error;
use crate::mailbox::MboxVariant;
use crate::mailbox::failure::cannot_write;
use crate::mailbox::flag_losses::FlagLosses;
use crate::mailbox::forms::flags::MessageFlags;
use crate::mailbox::forms::keywords::unwritable;
use crate::mailbox::place::journal::JournalRecord;
use crate::mailbox::place::replace::{exists, sync_folder};
use crate::mailbox::place::tree::{FolderTree, levels_of_label, subfolders_of};
use crate::mailbox::temporary::folder_of;
use crate::platform;

pub(super) struct ThunderbirdFormat;

impl WrittenFormat for ThunderbirdFormat {
    fn form(&self) -> &'static dyn MessageForm {
        &ThunderbirdFormat
    }

    fn files(&self) -> Box<dyn MailboxFiles> {
        Box::new(MboxFiles::default())
    }

    /// Creates a temporary directory for the result, with its top folder.
    fn start(&self, new: &NewResult<'_>) -> Result<Box<dyn MailboxWriter>, Error> {
        let tree = ThunderbirdTree::new(new).map_err(cannot_write(new.target))?;
        Ok(Box::new(tree))
    }
}

impl MessageForm for ThunderbirdFormat {
    fn bytes<'m>(
        &self,
        letter: &PreparedMail<'m>,
        flags: &MessageFlags,
        variant: MboxVariant,
    ) -> Cow<'m, [u8]> {
        let content = flags.put_for_thunderbird(&spelled_for_mbox(letter));
        separated(&content, letter, variant).into()
    }

    fn lost(&self, flags: &MessageFlags, _content: &[u8]) -> Vec<String> {
        flags.unwritable().map(unwritable).collect()
    }

    fn has_separators(&self) -> bool {
        true
    }

    fn has_folders(&self) -> bool {
        true
    }
}

struct ThunderbirdTree {
    directory: FilledDirectory,
    tree: FolderTree,
    /// Mailbox number of each folder that [`enter`](MailboxWriter::enter) has returned so far.
    entered: HashMap<Vec<String>, usize>,
}

impl ThunderbirdTree {
    fn new(new: &NewResult<'_>) -> io::Result<Self> {
        let target = new.target;
        for path in [target, &subfolders_of(target)] {
            let is_taken = platform::absent(fs::symlink_metadata(path))?.is_some();
            if is_taken && !new.journal.is_some_and(|journal| journal.may_exist(path)) {
                return Err(exists(new.target, new.journal));
            }
        }
        let mut directory = FilledDirectory::start(new, Box::new(MboxFiles::default()))?;
        let FilledDirectory {
            made, mailboxes, ..
        } = &mut directory;
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut tree = FolderTree::start(made.path(), name, new.owner)?;
        let mut entered = HashMap::new();
        if !new.is_by_label {
            entered.insert(Vec::new(), mailboxes.add(tree.folder(&[])?));
        }
        Ok(Self {
            directory,
            tree,
            entered,
        })
    }

    fn add(&mut self, levels: &[String]) -> Result<usize, Error> {
        let mbox = self.tree.folder(levels);
        let path = mbox.map_err(cannot_write(&self.directory.target))?;
        Ok(self.directory.mailboxes.add(path))
    }
}

impl MailboxWriter for ThunderbirdTree {
    fn add_label(&mut self, label: &str) -> Result<(), Error> {
        self.add(&levels_of_label(label)).map(drop)
    }

    fn enter(&mut self, levels: &[String]) -> Result<usize, Error> {
        if let Some(known) = self.entered.get(levels) {
            return Ok(*known);
        }
        let number = self.add(levels)?;
        self.entered.insert(levels.to_vec(), number);
        Ok(number)
    }

    fn write(
        &mut self,
        message: &NumberedMessage<'_>,
        mailboxes: &[usize],
        losses: &mut FlagLosses,
    ) -> Result<(), Error> {
        self.directory.write(message, mailboxes, losses)
    }

    fn rename(&mut self, target: &Path) {
        target.clone_into(&mut self.directory.target);
    }

    fn finish(
        mut self: Box<Self>,
        record: Option<&JournalRecord<'_>>,
        note: &mut dyn FnMut(&[NamedResult]),
    ) -> Result<(), Error> {
        let completed = self.directory.complete();
        let FilledDirectory { made, target, .. } = &self.directory;
        let appeared = completed.and_then(|()| appear_as_tree(made.path(), target, record, note));
        appeared.map_err(cannot_write(target))?;
        sync_folder(folder_of(target))
    }
}
