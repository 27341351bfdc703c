//! The traits of the writers of new mailboxes.

use std::collections::{HashMap, HashSet};
use std::fs::FileTimes;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use tempfile::TempDir;

use super::appear::NamedResult;
use super::prepared::PreparedMessage;
use crate::error::Error;
use crate::mailbox::failure::cannot_write;
use crate::mailbox::flag_losses::FlagLosses;
use crate::mailbox::place::journal::{JournalRecord, ResultJournal};
use crate::mailbox::place::tree::new_file;
use crate::mailbox::temporary::{folder_of, temporary_folder_in};
use crate::platform::{self, Owner};

/// A message, and its number in the result, from 1. A message that is written to several mailboxes has one number.
pub(super) struct NumberedMessage<'m> {
    pub(super) message: &'m PreparedMessage<'m>,
    pub(super) number: u64,
}

/// Writes prepared messages to the mailboxes of a result. The methods are called by one thread at a time.
pub(super) trait MailboxWriter: Send {
    /// Creates the mailbox of a label. The mailboxes of a result are numbered from 0. Results that cannot have several
    /// mailboxes ignore labels.
    ///
    /// # Errors
    /// Returns [`Error::Write`].
    fn add_label(&mut self, _label: &str) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the mailbox number of the folder with the names `levels`. If the result has folders, the folder is
    /// created if necessary. Otherwise all folders have the same mailbox.
    ///
    /// # Errors
    /// Returns [`Error::Write`].
    fn enter(&mut self, _levels: &[String]) -> Result<usize, Error> {
        Ok(0)
    }

    /// Writes a message to the mailboxes with the numbers `mailboxes`. Counts the flags that the mailboxes cannot store.
    ///
    /// # Errors
    /// Returns [`Error::Write`].
    fn write(
        &mut self,
        message: &NumberedMessage<'_>,
        mailboxes: &[usize],
        losses: &mut FlagLosses,
    ) -> Result<(), Error>;

    /// Changes the path at which the complete result appears. The new path is on the same file system, in a directory that
    /// exists. Results without a path ignore it.
    fn rename(&mut self, _target: &Path) {}

    /// Completes the result, records it in the journal and gives it its final name. Calls `note` immediately before.
    ///
    /// # Errors
    /// Returns [`Error::Write`].
    fn finish(
        self: Box<Self>,
        record: Option<&JournalRecord<'_>>,
        note: &mut dyn FnMut(&[NamedResult]),
    ) -> Result<(), Error>;
}

/// A result that is created.
#[derive(Clone, Copy)]
pub(super) struct NewResult<'n> {
    pub(super) target: &'n Path,
    /// Whether the result has a mailbox for each label.
    pub(super) is_by_label: bool,
    /// Owner of the result. `None` for the user of the process.
    pub(super) owner: Option<Owner>,
    /// Journal of an interrupted run, which can have created the result.
    pub(super) journal: Option<&'n ResultJournal>,
}

/// The files of mailboxes of one format in a directory. The directory has a temporary name that mail programs ignore until
/// all mailboxes are complete, so the files can be written in any order and under their final names.
pub(super) trait MailboxFiles: Send {
    /// Suffix of the name of a mailbox.
    fn suffix(&self) -> &'static str {
        ""
    }

    /// Adapts the names of files to the file system of the directory that will contain the mailboxes.
    ///
    /// # Errors
    /// Returns the errors of the system.
    fn begin(&mut self, _directory: &Path) -> io::Result<()> {
        Ok(())
    }

    /// Creates the file or the directory of a mailbox.
    ///
    /// # Errors
    /// Returns [`io::ErrorKind::AlreadyExists`] if the name is taken, and other errors of the system.
    fn make(&self, path: &Path, owner: Option<Owner>) -> io::Result<()> {
        new_folder(path, owner)
    }

    /// Creates the directories inside a new mailbox.
    ///
    /// # Errors
    /// Returns the errors of the system.
    fn fill(&self, _path: &Path, _owner: Option<Owner>) -> io::Result<()> {
        Ok(())
    }

    /// Returns the path of a message's file in the mailbox with this number, and counts the flags that the mailbox
    /// cannot store. The path is empty if all messages of a mailbox are in one file. This is the only method that a dry
    /// run calls.
    fn name(
        &mut self,
        message: &NumberedMessage<'_>,
        mailbox: usize,
        losses: &mut FlagLosses,
    ) -> String;

    /// Writes a message to the file with the path that [`name`](Self::name) returned. The time of the file is the date of the
    /// message.
    ///
    /// # Errors
    /// Returns the errors of the system.
    fn put(
        &mut self,
        message: &PreparedMessage<'_>,
        name: &str,
        mailbox: ResultMailbox<'_>,
    ) -> io::Result<()> {
        let mut file = new_file(&mailbox.path.join(name))?;
        file.write_all(&message.bytes)?;
        let date = message.date.unwrap_or(UNIX_EPOCH);
        file.set_times(FileTimes::new().set_modified(date).set_accessed(date))?;
        platform::own(&file, mailbox.owner)
    }

    /// Writes the files next to the messages of the mailboxes, when all messages are written.
    ///
    /// # Errors
    /// Returns the errors of the system.
    fn finish(&mut self, _mailboxes: &[PathBuf], _owner: Option<Owner>) -> io::Result<()> {
        Ok(())
    }
}

/// Mailboxes of one format in a directory.
pub(super) struct MailboxList {
    files: Box<dyn MailboxFiles>,
    /// Path of each mailbox, by its number.
    paths: Vec<PathBuf>,
    /// Number of the first mailbox with the same path, for each mailbox. Two labels can have one mailbox: Inbox and INBOX.
    firsts: Vec<usize>,
    numbers: HashMap<PathBuf, usize>,
    owner: Option<Owner>,
}

/// A mailbox of a result.
#[derive(Clone, Copy)]
pub(super) struct ResultMailbox<'p> {
    pub(super) number: usize,
    pub(super) path: &'p Path,
    pub(super) owner: Option<Owner>,
}

impl MailboxList {
    pub(super) fn new(files: Box<dyn MailboxFiles>, owner: Option<Owner>) -> Self {
        Self {
            files,
            paths: Vec::new(),
            firsts: Vec::new(),
            numbers: HashMap::new(),
            owner,
        }
    }

    pub(super) fn files(&self) -> &dyn MailboxFiles {
        &*self.files
    }

    /// Adds a mailbox that exists. Returns its number.
    pub(super) fn add(&mut self, path: PathBuf) -> usize {
        let number = self.paths.len();
        let first = *self.numbers.entry(path.clone()).or_insert(number);
        self.firsts.push(first);
        self.paths.push(path);
        number
    }

    /// Writes a message to the mailboxes with the numbers `mailboxes`, but only once to mailboxes with one path.
    pub(super) fn write(
        &mut self,
        numbered: &NumberedMessage<'_>,
        mailboxes: &[usize],
        losses: &mut FlagLosses,
    ) -> io::Result<()> {
        let mut written = HashSet::new();
        for &given in mailboxes {
            let number = *self.firsts.get(given).ok_or(io::ErrorKind::NotFound)?;
            if !written.insert(number) {
                continue;
            }
            let mailbox = ResultMailbox {
                number,
                path: self.paths.get(number).ok_or(io::ErrorKind::NotFound)?,
                owner: self.owner,
            };
            let name = self.files.name(numbered, number, losses);
            self.files.put(numbered.message, &name, mailbox)?;
        }
        Ok(())
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.files.finish(&self.paths, self.owner)
    }
}

/// A result in a temporary directory, until it gets its final name.
pub(super) struct FilledDirectory {
    pub(super) made: TempDir,
    pub(super) target: PathBuf,
    pub(super) owner: Option<Owner>,
    pub(super) mailboxes: MailboxList,
}

impl FilledDirectory {
    pub(super) fn start(new: &NewResult<'_>, mut files: Box<dyn MailboxFiles>) -> io::Result<Self> {
        let made = temporary_folder_in(folder_of(new.target))?;
        // Until the directory is complete, only the user of this process may open it. If root writes it for another
        // user, that user could otherwise put symbolic links into it while it is filled.
        platform::make_private(made.path())?;
        files.begin(made.path())?;
        Ok(Self {
            made,
            target: new.target.to_owned(),
            owner: new.owner,
            mailboxes: MailboxList::new(files, new.owner),
        })
    }

    pub(super) fn write(
        &mut self,
        message: &NumberedMessage<'_>,
        mailboxes: &[usize],
        losses: &mut FlagLosses,
    ) -> Result<(), Error> {
        let written = self.mailboxes.write(message, mailboxes, losses);
        written.map_err(cannot_write(&self.target))
    }

    /// Completes the mailboxes, and gives the directory to its owner.
    pub(super) fn complete(&mut self) -> io::Result<()> {
        self.mailboxes.finish()?;
        platform::own_folder(self.made.path(), self.owner)
    }
}

/// Creates a directory that only its owner can open.
pub(super) fn new_folder(path: &Path, owner: Option<Owner>) -> io::Result<()> {
    platform::private_folder(path)?;
    platform::own_folder(path, owner)
}

/// Creates a file with this content that only its owner can read.
pub(super) fn put_file(path: &Path, content: &[u8], owner: Option<Owner>) -> io::Result<()> {
    let mut file = new_file(path)?;
    file.write_all(content)?;
    platform::own(&file, owner)
}
