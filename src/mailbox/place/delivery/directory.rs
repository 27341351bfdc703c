//! Writes a directory: a single mailbox, or a mailbox for each label.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::appear::{NamedResult, appear_as_folder};
use super::writer::{FilledDirectory, MailboxFiles, MailboxWriter, NewResult, NumberedMessage};
use crate::error::Error;
use crate::mailbox::failure::cannot_write;
use crate::mailbox::flag_losses::FlagLosses;
use crate::mailbox::forms::names::FolderNames;
use crate::mailbox::place::journal::JournalRecord;
use crate::mailbox::place::replace::{exists, may_be_result, sync_folder};
use crate::mailbox::temporary::folder_of;
use crate::platform;

/// Creates a temporary directory for the result.
pub(super) fn start(
    new: &NewResult<'_>,
    files: Box<dyn MailboxFiles>,
) -> Result<Box<dyn MailboxWriter>, Error> {
    let writer = DirectoryWriter::new(new, files).map_err(cannot_write(new.target))?;
    Ok(Box::new(writer))
}

struct DirectoryWriter {
    directory: FilledDirectory,
    names: FolderNames,
}

impl DirectoryWriter {
    fn new(new: &NewResult<'_>, files: Box<dyn MailboxFiles>) -> io::Result<Self> {
        let target = new.target;
        if let Some(found) = platform::absent(fs::symlink_metadata(target))?
            && (!found.is_dir() || fs::read_dir(target)?.next().is_some())
            && !may_be_result(target, &found, new.journal)
        {
            return Err(exists(new.target, new.journal));
        }
        let mut directory = FilledDirectory::start(new, files)?;
        let FilledDirectory {
            made, mailboxes, ..
        } = &mut directory;
        if !new.is_by_label {
            mailboxes.files().fill(made.path(), new.owner)?;
            mailboxes.add(made.path().to_owned());
        }
        Ok(Self {
            directory,
            names: FolderNames::default(),
        })
    }

    fn mailbox_of_label(&mut self, label: &str) -> io::Result<PathBuf> {
        let FilledDirectory {
            made,
            owner,
            mailboxes,
            ..
        } = &self.directory;
        let (directory, files, owner) = (made.path(), mailboxes.files(), *owner);
        // Only creating the mailbox shows whether its name is taken, because some file systems treat different names as
        // the same.
        let name = self.names.give(label, files.suffix(), |name| {
            let path = directory.join(name);
            match files.make(&path, owner) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
                made => made?,
            }
            files.fill(&path, owner).map(|()| true)
        });
        Ok(directory.join(name?))
    }
}

impl MailboxWriter for DirectoryWriter {
    fn add_label(&mut self, label: &str) -> Result<(), Error> {
        let mailbox = self.mailbox_of_label(label);
        let path = mailbox.map_err(cannot_write(&self.directory.target))?;
        self.directory.mailboxes.add(path);
        Ok(())
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
        self: Box<Self>,
        record: Option<&JournalRecord<'_>>,
        note: &mut dyn FnMut(&[NamedResult]),
    ) -> Result<(), Error> {
        let mut directory = self.directory;
        let completed = directory.complete();
        let (made, target) = (directory.made.path(), directory.target.as_path());
        let synced = completed.and_then(|()| {
            platform::sync_tree(made)?;
            note(&[NamedResult::new(made, target)]);
            appear_as_folder(made, target, record)
        });
        let has_moved = synced.map_err(cannot_write(target))?;
        if has_moved {
            // The directory was renamed, so its temporary name must not be removed at the end.
            let _ = directory.made.keep();
        }
        sync_folder(folder_of(&directory.target))
    }
}
