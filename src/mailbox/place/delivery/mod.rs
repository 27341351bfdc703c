//! Creates new mailboxes for a conversion to another format (`--output-format`), or one mailbox for each label
//! (`--by-label`). `prepared` converts the messages, and this file writes them.
//!
//! A directory is filled under a temporary name that mail programs ignore, synced, and then renamed. So mail programs
//! see only a complete mailbox, and a run that ends earlier leaves no part of it. For this reason, the messages of a
//! new Maildir are written directly to `cur` and `new` without its `tmp`.
//!
//! New files are private (modes 0600 and 0700), because the source may have access lists that a new directory cannot
//! get. If root runs the program, the files belong to the owner of the source.
//!
//! Names contain neither the current time nor random numbers, so that the same source always gives the same result. A
//! message in a Maildir is named by its date, which is also the time of its file, by its number in the run, and by its
//! size, as in Dovecot.

mod appear;
mod prepared;

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, FileTimes, Metadata};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

use crate::error::Error;
use crate::mailbox::compressed::Method;
use crate::mailbox::failure::cannot_write;
use crate::mailbox::flag_losses::FlagLosses;
use crate::mailbox::forms::flags::MessageFlags;
use crate::mailbox::forms::keywords::KeywordLetters;
use crate::mailbox::forms::mh::{NewSequences, SEQUENCES};
use crate::mailbox::forms::names::FolderNames;
use crate::mailbox::place::journal::{JournalRecord, ResultJournal};
use crate::mailbox::place::keyword_files::{DOVECOT, letters_of};
use crate::mailbox::place::output_stream::OutputStream;
use crate::mailbox::place::replace::{AtomicWriter, device, exists, may_be_result, sync_folder};
use crate::mailbox::place::tree::{FolderTree, levels_of_label, new_file, subfolders_of};
use crate::mailbox::temporary::{folder_of, temporary_folder_in};
use crate::mailbox::{ByLabel, Format, MboxVariant, Options, Summary};
use crate::platform;
pub(crate) use appear::NamedResult;
use appear::{appear_as_folder, appear_as_tree};
#[cfg(feature = "cli")]
pub(crate) use prepared::PreparedMessages;
pub(crate) use prepared::{MessageForm, PreparedMail, PreparedMessage, StoredState};
use prepared::{identity, seconds};

/// Maximum number of labels for which one mail is delivered. Labels are untrusted input, and each of them needs a copy
/// of the mail. Gmail users have a handful of labels.
const MOST_LABELS: usize = 100;
/// Maximum number of labels that get a mailbox. Labels are untrusted input, so without a limit a mailbox could create
/// any number of directories. Gmail allows this number of labels in an account.
const MOST_FOLDERS: usize = 10_000;
/// Maximum length of a label in bytes. A longer label gets no mailbox. Gmail's labels have at most 225 characters.
const LONGEST_LABEL: usize = 1000;
const MOST_OPEN: usize = 32;

const UNLABELLED: &str = "No label";

/// Reason why a Maildir does not store a keyword.
pub(crate) const NO_LETTER: &str =
    "because a Maildir can store only 26 keywords, in the characters that IMAP allows";

#[derive(Default)]
pub(crate) struct Delivery {
    form: Format,
    target: PathBuf,
    place: NewMailbox,
    by_label: Option<ByLabel>,
    variant: MboxVariant,
    skips_deleted: bool,
    /// The mailbox of each label. The key `None` is for mail without a label.
    labels: HashMap<Option<String>, usize>,
    names: FolderNames,
    /// The folder tree, if the result is for Thunderbird.
    tree: Option<FolderTree>,
    /// Index of the mailbox for mail that is not sorted by its labels.
    current: usize,
    /// For each folder that [`enter`](Self::enter) has selected so far, the index of its mailbox.
    entered: HashMap<Vec<String>, usize>,
    mailboxes: Vec<PathBuf>,
    /// Open mboxes, each with the index of its mailbox, least recently used first. If [`MOST_OPEN`] are open, the first
    /// one is closed before another one is opened.
    open: Vec<(usize, BufWriter<File>)>,
    /// Digests of the delivered mails, 16 bytes each, to find repeated mails: an archive can contain a mail once for
    /// each of its labels.
    known: HashSet<[u8; 16]>,
    /// Whether the caller guarantees that no mail occurs twice, as `merge` does. `known` is then not used. The labels
    /// of a mail are the folders of the sources that contained it, so [`MOST_LABELS`] and [`LONGEST_LABEL`] do not
    /// apply.
    is_distinct: bool,
    delivered: u64,
    before_flags: char,
    /// For the index of each Maildir, the letters of its keywords.
    letters: HashMap<usize, KeywordLetters>,
    /// For the index of each MH folder, the sequences of its messages.
    sequences: HashMap<usize, NewSequences>,
    losses: FlagLosses,
    owner: Option<platform::Owner>,
}

#[derive(Default)]
enum NewMailbox {
    #[default]
    Nowhere,
    File(AtomicWriter),
    Directly(OutputStream),
    Folder(TempDir),
    /// Messages are passed to a [`Handler`] instead of being written to files.
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    Handler(Arc<dyn Handler>),
}

/// Place of a new mailbox.
pub(crate) enum ResultPlace<'p> {
    /// The run writes nothing.
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    Nowhere,
    Path(&'p Path),
    /// An open file, which gets an mbox.
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    Open(File),
}

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

impl Delivery {
    /// Creates a delivery that passes each message to `handler` and writes no files. `form` is the format that the
    /// program writes, which affects the flags and the separators of messages.
    #[cfg(feature = "cli")]
    pub(crate) fn to_handler(form: Format, handler: Arc<dyn Handler>) -> Self {
        Self {
            form,
            place: NewMailbox::Handler(handler),
            ..Self::default()
        }
    }

    /// Starts a delivery to a new mailbox. If root runs the program, the mailbox belongs to the owner of `like`. With a
    /// `journal`, the place may exist if an interrupted run can have created it.
    pub(crate) fn start(
        form: Format,
        options: &Options,
        place: ResultPlace<'_>,
        like: Option<&Metadata>,
        journal: Option<&ResultJournal>,
    ) -> Result<Self, Error> {
        let mut delivery = Self {
            form,
            by_label: options.by_label,
            variant: options.mbox_variant.unwrap_or_default(),
            skips_deleted: options.skip_deleted,
            before_flags: ':',
            owner: platform::owner_of_results(like),
            ..Self::default()
        };
        let is_file = form == Format::Mbox && options.by_label.is_none();
        let target = match place {
            ResultPlace::Path(target) if options.mode.writes() => target,
            ResultPlace::Open(file) if options.mode.writes() => {
                delivery.place = NewMailbox::Directly(OutputStream::of_open(file));
                return Ok(delivery);
            }
            _ => return Ok(delivery),
        };
        target.clone_into(&mut delivery.target);
        delivery.place = match form {
            Format::Thunderbird => {
                let made = delivery.folder_tree(target, journal);
                NewMailbox::Folder(made.map_err(cannot_write(target))?)
            }
            _ if !is_file => {
                let made = delivery.folder(target, journal);
                NewMailbox::Folder(made.map_err(cannot_write(target))?)
            }
            _ => match device(target, journal)? {
                Some(device) => NewMailbox::Directly(OutputStream::of_device(target, device)),
                None => {
                    let method = Method::of_result(target, None);
                    NewMailbox::File(AtomicWriter::start(folder_of(target), target, method)?)
                }
            },
        };
        Ok(delivery)
    }

    fn folder(&mut self, target: &Path, journal: Option<&ResultJournal>) -> io::Result<TempDir> {
        if let Some(found) = platform::absent(fs::symlink_metadata(target))?
            && (!found.is_dir() || fs::read_dir(target)?.next().is_some())
            && !may_be_result(target, &found, journal)
        {
            return Err(exists(journal));
        }
        let made = temporary_folder_in(folder_of(target))?;
        // Only the user of this process may open the directory until it is complete. If root writes it for another
        // user, that user could put links into it while it is filled.
        platform::make_private(made.path())?;
        if self.form == Format::Maildir {
            self.before_flags = platform::before_flags(made.path())?;
        }
        if self.by_label.is_none() {
            if self.form == Format::Maildir {
                self.maildir(made.path())?;
            }
            self.mailboxes.push(made.path().to_owned());
        }
        Ok(made)
    }

    /// Creates a temporary directory for the result, with its top folder.
    fn folder_tree(
        &mut self,
        target: &Path,
        journal: Option<&ResultJournal>,
    ) -> io::Result<TempDir> {
        for path in [target, &subfolders_of(target)] {
            let is_taken = platform::absent(fs::symlink_metadata(path))?.is_some();
            if is_taken && !journal.is_some_and(|journal| journal.may_exist(path)) {
                return Err(exists(journal));
            }
        }
        let made = temporary_folder_in(folder_of(target))?;
        platform::make_private(made.path())?;
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut tree = FolderTree::start(made.path(), name, self.owner)?;
        if self.by_label.is_none() {
            self.mailboxes.push(tree.folder(&[])?);
            self.entered.insert(Vec::new(), 0);
        }
        self.tree = Some(tree);
        Ok(made)
    }

    /// Changes the path at which the finished mailbox appears. The new path must be on the same file system, in a
    /// directory that exists.
    pub(crate) fn rename(&mut self, target: &Path) {
        target.clone_into(&mut self.target);
    }

    /// Prepares the delivery for `merge`, which delivers no mail twice, so no memory for `known` is needed. The labels
    /// of a mail are the folders that contained it, so the mail is delivered to all of them.
    #[cfg(feature = "cli")]
    pub(crate) fn of_distinct_mails(self) -> Self {
        Self {
            is_distinct: true,
            ..self
        }
    }

    /// Selects the Thunderbird folder for the mail that follows, unless its labels determine the folder.
    pub(crate) fn enter(&mut self, levels: &[String]) -> Result<(), Error> {
        let Some(tree) = self.tree.as_mut().filter(|_| self.by_label.is_none()) else {
            return Ok(());
        };
        let mbox = tree.folder(levels).map_err(cannot_write(&self.target))?;
        let next = self.mailboxes.len();
        self.current = *self.entered.entry(levels.to_vec()).or_insert(next);
        if self.current == next {
            self.mailboxes.push(mbox);
        }
        Ok(())
    }

    /// Counts a folder of a message as lost, unless the result keeps folders apart: a handler does, and a mailbox for each
    /// label.
    pub(crate) fn lose_folder(&mut self, folder: &str) {
        if self.by_label.is_none() && self.handler().is_none() {
            let what = format!("folder {folder}, because the result is one mailbox");
            self.losses.count(what);
        }
    }

    /// Returns whether labels become keywords, because the result has no mailbox for each label.
    pub(crate) fn has_label_keywords(&self) -> bool {
        self.by_label.is_none()
    }

    /// Returns whether the messages are written to an mbox.
    pub(crate) fn is_mbox(&self) -> bool {
        self.form.has_separators()
    }

    /// Writes a message to the mailboxes of its labels, or to the current mailbox if mail is not sorted by labels. Adds
    /// the written bytes to `summary` once for each of these mailboxes.
    pub(crate) fn deliver(
        &mut self,
        letter: PreparedMail<'_>,
        summary: &mut Summary,
    ) -> Result<(), Error> {
        if let Some(handler) = self.handler() {
            let mut batch = handler.batch(letter.content.len());
            batch.add(&letter, self.message_form().flags(&letter));
            return batch.finish();
        }
        if self.skips_deleted && self.message_form().flags(&letter).system.is_deleted() {
            summary.deleted += 1;
            return Ok(());
        }
        let may_repeat = self.by_label.is_some() && !self.is_distinct;
        let seconds = seconds(letter.envelope.date);
        if may_repeat && !self.known.insert(identity(&letter, seconds)) {
            summary.repeated += 1;
            return Ok(());
        }
        self.write(&self.message_form().prepared(letter), summary)
    }

    /// Returns the form of the messages in the mailbox.
    pub(crate) fn message_form(&self) -> MessageForm {
        MessageForm {
            form: self.form,
            by_label: self.by_label,
            variant: self.variant,
        }
    }

    /// Returns the handler that receives the messages, or `None` if they are written to a mailbox.
    pub(crate) fn handler(&self) -> Option<&dyn Handler> {
        match &self.place {
            NewMailbox::Handler(handler) => Some(&**handler),
            _ => None,
        }
    }

    /// Writes a message of the [`message_form`](Self::message_form) of this delivery as [`deliver`](Self::deliver) does,
    /// but does not find repeated mails.
    pub(crate) fn write(
        &mut self,
        message: &PreparedMessage<'_>,
        summary: &mut Summary,
    ) -> Result<(), Error> {
        self.delivered += 1;
        let bytes = &*message.bytes;
        let numbers = self
            .numbers(&message.labels, summary)
            .map_err(cannot_write(&self.target))?;
        if self.form.has_separators() {
            match &mut self.place {
                NewMailbox::Nowhere | NewMailbox::Handler(_) => {}
                NewMailbox::File(beside) => beside.write(bytes)?,
                NewMailbox::Directly(stream) => stream.write(bytes)?,
                NewMailbox::Folder(_) => {
                    let mut numbers = numbers.iter();
                    let written = numbers.try_for_each(|&number| self.append(number, bytes));
                    written.map_err(cannot_write(&self.target))?;
                }
            }
        } else {
            for &number in &numbers {
                let name = match self.form {
                    Format::Mh => self.mh_number(number, message),
                    _ => {
                        let letters = self.letters(number, message);
                        self.name(message, &letters)
                    }
                };
                let written = self.put(number, &name, bytes, message.date);
                written.map_err(cannot_write(&self.target))?;
            }
        }
        message
            .lost
            .iter()
            .for_each(|lost| self.losses.count(lost.clone()));
        summary.bytes_out += bytes.len() as u64 * numbers.len() as u64;
        Ok(())
    }

    /// Returns the flags and keywords that the mailbox cannot store.
    pub(crate) fn take_losses(&mut self) -> FlagLosses {
        std::mem::take(&mut self.losses)
    }

    /// Completes the mailbox, records it in the journal and gives it its final name. If the source was damaged and no
    /// message was read, no mailbox is created.
    pub(crate) fn finish_unless_damaged(
        self,
        summary: &Summary,
        record: Option<JournalRecord<'_>>,
    ) -> Result<(), Error> {
        self.finish(summary, record, &mut |_| {})
    }

    /// Does the same as [`finish_unless_damaged`](Self::finish_unless_damaged), without a journal. Calls `note` when the mailbox
    /// is complete, immediately before it gets its final name.
    pub(crate) fn finish_noting(
        self,
        summary: &Summary,
        note: &mut dyn FnMut(&[NamedResult]),
    ) -> Result<(), Error> {
        self.finish(summary, None, note)
    }

    fn finish(
        self,
        summary: &Summary,
        record: Option<JournalRecord<'_>>,
        note: &mut dyn FnMut(&[NamedResult]),
    ) -> Result<(), Error> {
        if summary.messages == 0 && summary.damaged > 0 {
            return Ok(());
        }
        self.write_letters().map_err(cannot_write(&self.target))?;
        let is_damaged = summary.damaged > 0;
        let record = &record.map(|record| JournalRecord {
            is_damaged,
            ..record
        });
        let (target, owner) = (self.target, self.owner);
        match self.place {
            NewMailbox::Nowhere | NewMailbox::Handler(_) => Ok(()),
            NewMailbox::Directly(stream) => stream.finish(),
            NewMailbox::File(beside) => {
                let finished = beside.finished_privately()?;
                let owned = platform::own(finished.temporary.as_file(), owner);
                owned.map_err(cannot_write(&target))?;
                finished.sync()?;
                note(&[NamedResult::new(finished.temporary.path(), &target)]);
                finished.appear_as(record.as_ref(), true)?;
                sync_folder(folder_of(&target))
            }
            NewMailbox::Folder(made) => {
                let mut open = self.open.into_iter();
                let flushed = open.try_for_each(|(_, mut mbox)| mbox.flush());
                let owned = flushed.and_then(|()| platform::own_folder(made.path(), owner));
                if self.tree.is_some() {
                    let appeared = |()| appear_as_tree(made.path(), &target, record.as_ref(), note);
                    owned.and_then(appeared).map_err(cannot_write(&target))?;
                    return sync_folder(folder_of(&target));
                }
                let synced = owned.and_then(|()| {
                    platform::sync_tree(made.path())?;
                    note(&[NamedResult::new(made.path(), &target)]);
                    appear_as_folder(made.path(), &target, record.as_ref())
                });
                let has_moved = synced.map_err(cannot_write(&target))?;
                if has_moved {
                    // The directory no longer exists under its temporary name, so it must not be removed at the end.
                    let _ = made.keep();
                }
                sync_folder(folder_of(&target))
            }
        }
    }

    /// Returns the indexes of the mailboxes for these labels. If no label can be used, this is the mailbox for mail
    /// without labels. If labels exceed a limit, they are left out, and the mail is counted in `summary`.
    fn numbers(&mut self, labels: &[String], summary: &mut Summary) -> io::Result<Vec<usize>> {
        let most = match self.by_label {
            None => return Ok(vec![self.current]),
            Some(ByLabel::First) => 1,
            Some(ByLabel::All) if self.is_distinct => usize::MAX,
            Some(ByLabel::All) => MOST_LABELS,
        };
        let is_usable = |label: &&String| self.is_distinct || label.len() <= LONGEST_LABEL;
        let usable: Vec<&String> = labels.iter().filter(is_usable).take(most).collect();
        let is_cut = usable.len() < most.min(labels.len()) || labels.len() > most.max(MOST_LABELS);
        let given = usable
            .iter()
            .filter_map(|&label| self.number(Some(label.clone())).transpose());
        let mut numbers = given.collect::<io::Result<Vec<usize>>>()?;
        summary.overlabelled += u64::from(is_cut) + u64::from(numbers.len() < usable.len());
        if numbers.is_empty() {
            numbers.extend(self.number(None)?);
        }
        Ok(numbers)
    }

    fn number(&mut self, label: Option<String>) -> io::Result<Option<usize>> {
        if let Some(number) = self.labels.get(&label) {
            return Ok(Some(*number));
        }
        if label.is_some() && self.labels.len() >= MOST_FOLDERS {
            return Ok(None);
        }
        if let NewMailbox::Folder(folder) = &self.place {
            let folder = folder.path().to_owned();
            let suffix = match self.form {
                Format::Mbox => ".mbox",
                _ => "",
            };
            let wanted = label.as_deref().unwrap_or(UNLABELLED);
            if let Some(tree) = &mut self.tree {
                self.mailboxes.push(tree.folder(&levels_of_label(wanted))?);
                let number = self.labels.len();
                self.labels.insert(label, number);
                return Ok(Some(number));
            }
            let mut names = std::mem::take(&mut self.names);
            let name = names.give(wanted, suffix, |name| self.mailbox(&folder.join(name)));
            self.names = names;
            self.mailboxes.push(folder.join(name?));
        }
        let number = self.labels.len();
        self.labels.insert(label, number);
        Ok(Some(number))
    }

    /// Creates a mailbox. Returns false if the name is taken. A comparison with earlier names cannot show this, because
    /// some file systems treat different names as the same name.
    fn mailbox(&self, path: &Path) -> io::Result<bool> {
        let made = match self.form {
            Format::Mbox => new_file(path).and_then(|file| platform::own(&file, self.owner)),
            _ => self.new_folder(path),
        };
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            made => made?,
        }
        if self.form == Format::Maildir {
            self.maildir(path)?;
        }
        Ok(true)
    }

    fn maildir(&self, folder: &Path) -> io::Result<()> {
        let mut parts = ["cur", "new", "tmp"].into_iter();
        parts.try_for_each(|part| self.new_folder(&folder.join(part)))
    }

    fn new_folder(&self, path: &Path) -> io::Result<()> {
        platform::private_folder(path)?;
        platform::own_folder(path, self.owner)
    }

    /// Returns the letters of the keywords of a message in the Maildir with the index `number`. Each Maildir has its own
    /// letters, because Dovecot explains them in each folder.
    fn letters(&mut self, number: usize, message: &PreparedMessage<'_>) -> String {
        if self.form != Format::Maildir || message.keywords.is_empty() {
            return String::new();
        }
        let known = self.letters.entry(number).or_default();
        let (letters, lost) = letters_of(known, &message.keywords);
        for name in lost {
            self.losses.count(format!("keyword {name}, {NO_LETTER}"));
        }
        letters
    }

    /// Returns the number of a message in the MH folder with the index `number`, and adds its flags to the sequences.
    fn mh_number(&mut self, number: usize, message: &PreparedMessage<'_>) -> String {
        let sequences = self.sequences.entry(number).or_default();
        let (name, lost) = sequences.add(message.system, &message.keywords);
        for keyword in lost {
            let what = format!("keyword {keyword}, because no sequence of MH can have this name");
            self.losses.count(what);
        }
        name.to_string()
    }

    fn name(&self, message: &PreparedMessage<'_>, keywords: &str) -> String {
        let number = self.delivered;
        if self.form == Format::Eml {
            // The number has leading zeros, so that the file names sort in the order of the messages.
            return format!("{number:08}.eml");
        }
        let (seconds, octets) = (seconds(message.date), message.bytes.len());
        let name = format!("{seconds:010}.{number:08}.embody,S={octets}");
        let (before, flags) = (self.before_flags, message.system);
        // Only names in `cur` contain letters.
        if flags.is_in_cur() || !keywords.is_empty() {
            format!("cur/{name}{before}2,{}{keywords}", flags.letters())
        } else {
            format!("new/{name}")
        }
    }

    /// Writes the sequences of each MH folder, and the file `dovecot-keywords` of each Maildir whose messages have keywords. Dovecot reads this file. Other
    /// programs ignore it, and the letters in the file names.
    fn write_letters(&self) -> io::Result<()> {
        // An MH folder is recognised by the file of its sequences, so even an empty folder gets one.
        let folders = (0..)
            .zip(&self.mailboxes)
            .filter(|_| self.form == Format::Mh);
        for (number, mailbox) in folders {
            let sequences = self.sequences.get(&number).map(NewSequences::file);
            let mut file = new_file(&mailbox.join(SEQUENCES))?;
            file.write_all(sequences.unwrap_or_default().as_bytes())?;
            platform::own(&file, self.owner)?;
        }
        for (number, letters) in &self.letters {
            // A dry run creates no mailboxes, so there is nothing to write to.
            let Some(mailbox) = self.mailboxes.get(*number).filter(|_| !letters.is_empty()) else {
                continue;
            };
            let mut file = new_file(&mailbox.join(DOVECOT))?;
            file.write_all(letters.file().as_bytes())?;
            platform::own(&file, self.owner)?;
        }
        Ok(())
    }

    fn put(
        &mut self,
        number: usize,
        name: &str,
        content: &[u8],
        date: Option<SystemTime>,
    ) -> io::Result<()> {
        match self.mailboxes.get(number) {
            Some(mailbox) => self.file(&mailbox.join(name), content, date),
            // A dry run creates no mailboxes, so there is nothing to write to.
            None => Ok(()),
        }
    }

    fn file(&self, path: &Path, content: &[u8], date: Option<SystemTime>) -> io::Result<()> {
        let mut file = new_file(path)?;
        file.write_all(content)?;
        let date = date.unwrap_or(UNIX_EPOCH);
        file.set_times(FileTimes::new().set_modified(date).set_accessed(date))?;
        platform::own(&file, self.owner)
    }

    fn append(&mut self, number: usize, bytes: &[u8]) -> io::Result<()> {
        let open = self.open.iter().position(|(open, _)| *open == number);
        let mut mbox = match open {
            Some(at) => self.open.remove(at),
            None => {
                if self.open.len() >= MOST_OPEN {
                    self.open.remove(0).1.flush()?;
                }
                let path = self.mailboxes.get(number).ok_or(io::ErrorKind::NotFound)?;
                let file = File::options().append(true).open(path)?;
                (number, BufWriter::with_capacity(64 << 10, file))
            }
        };
        let written = mbox.1.write_all(bytes);
        self.open.push(mbox);
        written
    }
}
