//! Converts Maildirs and MH folders, in place or to a new folder. A Maildir contains one file per message in `cur` and
//! `new`. An MH folder has no `tmp` and no sizes in file names, so a changed message is written next to the old one,
//! under a name that is not the name of a message.
//!
//! In a Maildir, a changed message is written to `tmp`, synced, and replaces the old one. The name (and so the flags),
//! owner, mode and time are kept. If the name contains the size (`,S=` in bytes, `,W=` in bytes with CR LF line
//! endings; Dovecot, Courier), it is corrected. A compressed message (Dovecot's zlib plugin) is decompressed for
//! reading, and a changed one is compressed in the same way. The sizes in its name are those of the decompressed
//! message.
//!
//! A lock (`embody.lock`) prevents two runs of embody at the same time. Other programs move and rename messages at any
//! time. For this reason, there are two ways to replace a message, both in `supersede`:
//! * **Same name**: the two files are *exchanged*, which fails if the old name no longer exists. If the file that was
//!   exchanged is not the one that was read, the two are exchanged back.
//! * **New name**: the new file is linked to its name, the directory is synced, and the old name is removed. If the old
//!   name no longer exists by then, the new file is removed again, even if a mail client has moved it. If the run is
//!   killed in between, both files exist. The next run creates the same message again, finds that it exists under any
//!   flags, and removes the old file.
//!
//! For Dovecot, the sizes are part of the identity of a message: a message whose name changes gets a new UID, and
//! clients download it again. A message without sizes in its name keeps its UID.
//!
//! If the source is `cur`, `new` or one message in them, the same rules apply to this part.
//!
//! A copy of a Maildir contains the keywords of Dovecot and Courier (`keyword_files`). If the user wants a Maildir
//! (`--output-format maildir`), messages whose names contain no flags that other programs read get such a name:
//! messages of Thunderbird, and names in which a program replaced the colon.
//!
//! A message that was renamed during the run is found under its new name (`listing`) and replaced there. A message that
//! is not found is reported. A message that is moved before each attempt to replace it is left unchanged and counted.
//! The quota sums in `maildirsize` are not updated, because servers compute them again if they doubt them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::detail::{Detail, Setting};
use crate::error::{Error, unpoisoned};
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::compressed::{LEFT_AS_UTF16, Method};
use crate::mailbox::each::{limits_for_files, weight_of_file};
use crate::mailbox::event::MailboxEvent;
use crate::mailbox::failure::{cannot_read, cannot_write};
use crate::mailbox::flag_losses::FlagLosses;
use crate::mailbox::forms::carriage::{ends_lines_with_cr, in_line_feeds};
use crate::mailbox::forms::flags::MessageFlags;
use crate::mailbox::forms::keywords::DOVECOT;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::rewrite;
use crate::mailbox::forms::state_files::{FILES_BY_NUMBER, unused_beside};
use crate::mailbox::identity::FileIdentity;
use crate::mailbox::obstacle::obstacle;
use crate::mailbox::place::delivery::NO_LETTER;
use crate::mailbox::place::folder::{
    MessageFolder, base_of, distinct_bases, length_of_listed, noted_in_name, resized, with_base,
    with_common_name, with_separator,
};
use crate::mailbox::place::journal::{JournalRecord, ResultPart};
use crate::mailbox::place::keyword_files::{COURIER, FolderKeywords, replace_file};
use crate::mailbox::place::listing::{ListedMessages, MISSED};
use crate::mailbox::place::lock::Dotlock;
use crate::mailbox::place::replace::{AtomicWriter, sync_folder};
use crate::mailbox::place::supersede::OldFile;
use crate::mailbox::read::folder_message::{FolderMessage, open_folder_message};
use crate::mailbox::read::messages::TransformResult;
use crate::mailbox::temporary;
use crate::mailbox::{Format, Summary};
use crate::platform::{self, NewFile, OsStrExt as _, absent};
use crate::pool;
use crate::prologue::Prologue;

const UNCHANGED: &str = "; the message was not changed";

/// Maximum number of attempts to replace a message, because a mail client may rename it before each attempt.
const ATTEMPTS: usize = 4;

impl<S: Send> MailboxJob<'_, S> {
    /// Converts a Maildir or MH folder, without the Maildirs inside it. Messages that were changed before an error stay
    /// changed.
    pub(crate) fn folder(
        &self,
        kind: StartKind,
        destination: Option<&Path>,
    ) -> Result<Summary, Error> {
        let (options, observer) = (self.options, self.observer);
        let place = MessageFolder::of(self.path, kind, options.read.format);
        let folder = place.folder.as_path();
        let writes = options.writes;
        let destination = destination.filter(|_| writes);
        let mut lock = None;
        let mut before_flags = ':';
        let mut keywords = FolderKeywords::default();
        match destination {
            None if writes => {
                let locked = folder.join("embody");
                lock = Some(Dotlock::acquire(&locked, folder, &self.patience())?);
                if !place.is_mh {
                    check_writing_in(&place.writing_in(folder))?;
                    keywords = FolderKeywords::of(folder);
                }
            }
            None => {}
            Some(to) => {
                make_folder(to)?;
                // If only `cur` or `new` is converted, the result is a plain directory without `cur` and `new`.
                let is_maildir = place.part.is_none() && !place.is_mh;
                if is_maildir {
                    for name in ["cur", "new", "tmp"] {
                        make_folder(&to.join(name))?;
                    }
                    // The empty file `maildirfolder` marks a subfolder of a Maildir++ mailbox. The result gets this
                    // file too.
                    let mark = to.join("maildirfolder");
                    if folder.join("maildirfolder").exists() && !mark.exists() {
                        File::create(&mark).map_err(cannot_write(&mark))?;
                    }
                }
                let within = if is_maildir {
                    place.writing_in(to)
                } else {
                    to.to_owned()
                };
                temporary::sweep(&within);
                if !place.is_mh {
                    let found = platform::before_flags(&within);
                    before_flags = found.map_err(cannot_write(to))?;
                    self.copy_file(&folder.join(DOVECOT), &to.join(DOVECOT))?;
                    keywords = FolderKeywords::of_copy(folder, to);
                }
            }
        }
        let (messages, others) = place.messages();
        for (path, why) in &others {
            observer.event(MailboxEvent::damaged(path, why.clone()));
        }
        let names_flags =
            destination.is_some() && !place.is_mh && options.output_format == Format::Maildir;
        let files = MaildirFiles {
            job: self,
            place: &place,
            twins: twins(messages.names()),
            messages: &messages,
            destination,
            before_flags,
            names_flags,
            bases: if names_flags {
                distinct_bases(messages.names())
            } else {
                HashMap::new()
            },
            keywords: Mutex::new(keywords),
            losses: Mutex::default(),
            large: Mutex::new(()),
        };
        let mut before = Summary::of(|sum| (sum.mailboxes, sum.damaged) = (1, others.len() as u64));
        before.files.not_read = before.damaged;
        // The counts of all messages that are written so far, and for each message number the result that was not
        // reported yet. Results are reported in the order of the messages.
        let done = Mutex::new((before, BTreeMap::new()));
        let mut numbered = (1..).zip(messages.names());
        let outcome = pool::run(
            limits_for_files(options.read.pool_limits()),
            self.stop,
            || {
                Ok(numbered.next().map(|(number, name)| {
                    let length = length_of_listed(folder, name);
                    ((number, name), weight_of_file(length, false))
                }))
            },
            |_| vec![0],
            |(number, name), _| {
                let (mut summary, damage, transformed) = files.convert(*number, name)?;
                summary.files.count_read(damage.is_none());
                let mut done = unpoisoned(done.lock());
                done.0.add(&summary);
                // If other programs kept moving the message, its change was not written, so the result of its transform
                // is not reported.
                if let Some(transformed) = transformed.filter(|_| summary.moved == 0) {
                    done.1.insert(*number, transformed);
                }
                Ok((summary, damage))
            },
            // The message is already written, so only the memory of its report still counts.
            |(number, name), _| {
                let done = unpoisoned(done.lock());
                let report = done.1.get(number).map_or(0, |it| it.weight(self.transform));
                Some(size_of::<PathBuf>() + name.as_os_str().len() + report)
            },
            |(number, name), converted| {
                if let Some(done) = unpoisoned(done.lock()).1.remove(&number) {
                    done.tell(observer);
                }
                for (_, (summary, damage)) in converted {
                    observer.event(MailboxEvent::Advance(summary.bytes_in, summary.messages));
                    if let Some(why) = damage {
                        observer.event(MailboxEvent::damaged(folder.join(name), why));
                    }
                }
                Ok(())
            },
        );
        // After an error or a stop, the results of the messages that were already written are still unreported. They
        // are reported here.
        let (mut summary, said) = unpoisoned(done.into_inner());
        said.into_values().for_each(|done| done.tell(observer));
        // In an MH folder, every file that was not opened during the run counts as missed. A run that changes messages
        // in place creates new files, which would all count, so it cannot check this.
        if outcome.is_ok() && (destination.is_some() || !writes) {
            let missed = self.name_missed(&messages)?;
            summary.damaged += missed;
            summary.files.not_read += missed;
        }
        let MaildirFiles {
            keywords, losses, ..
        } = files;
        if let Some(to) = destination.filter(|_| outcome.is_ok()) {
            let keywords = unpoisoned(keywords.into_inner());
            let path = to.join(COURIER);
            let written = keywords.write_courier(to, before_flags);
            if let Err(error) = written.map_err(cannot_write(&path)) {
                let why = obstacle(&error, &path, "").ok_or(error)?;
                observer.event(MailboxEvent::damaged(&path, why));
                summary.damaged += 1;
            }
        }
        let mut losses = unpoisoned(losses.into_inner());
        if destination.is_some() {
            let exists =
                |path: &Path| path.exists() && !(place.is_mh && is_kept_with_numbers(path));
            for what in unused_beside(folder, &exists) {
                losses.count_all(what, summary.messages);
            }
        }
        losses.report(observer);
        observer.event(MailboxEvent::done(&summary));
        if writes && summary.changed > 0 {
            for part in place.synced_in(destination.unwrap_or(folder)) {
                if part.is_dir() {
                    sync_folder(&part)?;
                }
            }
        }
        drop(lock);
        if place.is_mh
            && outcome.is_ok()
            && let Some(to) = destination
        {
            for name in FILES_BY_NUMBER {
                self.copy_file(&self.path.join(name), &to.join(name))?;
            }
        }
        outcome.map(|()| summary)
    }

    /// Reports the messages of an MH folder that may have been missed because the folder changed. Returns their number.
    pub(crate) fn name_missed(&self, messages: &ListedMessages) -> Result<u64, Error> {
        let missed = messages.missed().map_err(cannot_read(self.path))?;
        for name in &missed {
            self.observer
                .event(MailboxEvent::damaged(self.path.join(name), MISSED));
        }
        Ok(missed.len() as u64)
    }

    /// Copies a file in which a program stores flags, if it exists. The numbers or letters in the file mean the same in the
    /// result, so the copy is valid.
    pub(crate) fn copy_file(&self, path: &Path, to: &Path) -> Result<(), Error> {
        let Some(file) = absent(File::open(path)).map_err(cannot_read(path))? else {
            return Ok(());
        };
        if self.is_made(path) {
            return Ok(());
        }
        let read = FileIdentity::of(&file.metadata().map_err(cannot_read(path))?);
        let copy = AtomicWriter::copy(&file, read.length, path, temporary::folder_of(to), to)?;
        let record = self.record(path, Some(&read), ResultPart::Whole);
        copy.appear_as(record.as_ref(), false)
    }
}

fn make_folder(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(cannot_write(folder))
}

/// Checks that new messages can be written to `tmp` of a Maildir, before the messages are read. A missing `tmp` is created
/// later.
fn check_writing_in(tmp: &Path) -> Result<(), Error> {
    if tmp.is_dir() {
        temporary::temporary_in(tmp).map_err(cannot_write(tmp))?;
    }
    Ok(())
}

/// Returns the pairs of names with the same unique part, in both directions. A killed run may have left such a pair: an
/// old message and its new version.
fn twins(names: &[PathBuf]) -> HashMap<PathBuf, PathBuf> {
    let base = |name: &&PathBuf| {
        let name = name.file_name().unwrap_or_default().as_bytes();
        base_of(name).to_owned()
    };
    let mut names: Vec<&PathBuf> = names.iter().collect();
    names.sort_by_cached_key(base);
    names
        .chunk_by(|one, other| base(one) == base(other))
        .filter_map(|group| match group {
            [one, other] => Some([(one, other), (other, one)]),
            _ => None,
        })
        .flatten()
        .map(|(&one, &other)| (one.clone(), other.clone()))
        .collect()
}

/// The counts of a message, the reason why the message is damaged
/// (`None` if it is intact), and the result of its transform (`None` if it was not transformed).
type Converted<S> = (Summary, Option<Detail>, Option<TransformResult<S>>);

struct MaildirFiles<'a, S> {
    job: &'a MailboxJob<'a, S>,
    place: &'a MessageFolder,
    messages: &'a ListedMessages,
    twins: HashMap<PathBuf, PathBuf>,
    destination: Option<&'a Path>,
    before_flags: char,
    /// Whether each message gets a file name whose flags other programs read.
    names_flags: bool,
    /// New base names (file names without flags) for the messages that would otherwise get the base name of another message.
    bases: HashMap<PathBuf, Vec<u8>>,
    keywords: Mutex<FolderKeywords>,
    losses: Mutex<FlagLosses>,
    /// Lock that a thread holds while it converts a large compressed message. Only one such message is in memory at a
    /// time.
    large: Mutex<()>,
}

impl<S> MaildirFiles<'_, S> {
    /// Returns the name of a message of Thunderbird in a Maildir for all programs. The header contains its flags.
    fn common_name(&self, name: &Path, message: &[u8], to: &Path) -> Result<PathBuf, Error> {
        let flags = MessageFlags::of_fields(message);
        let mut keywords = unpoisoned(self.keywords.lock());
        let before = keywords.dovecot_file();
        let (letters, lost) = keywords.letters_of(&flags.keywords);
        let file = keywords.dovecot_file();
        if file != before {
            // dovecot-keywords is written before the first file name with a new letter, so that each letter in a file name
            // has a meaning.
            let path = to.join(DOVECOT);
            replace_file(&path, file.as_bytes()).map_err(cannot_write(&path))?;
        }
        let mut losses = unpoisoned(self.losses.lock());
        for name in lost {
            losses.count(format!("keyword {name}, {NO_LETTER}"));
        }
        let common = with_common_name(name, Some((flags.system, &letters)));
        Ok(common.unwrap_or_else(|| name.to_owned()))
    }

    fn convert(&self, number: u64, listed: &Path) -> Result<Converted<S>, Error> {
        let writes = self.job.options.writes;
        let base = self.bases.get(listed);
        let distinct = |wanted: PathBuf| match base {
            Some(base) => with_base(&wanted, base),
            None => wanted,
        };
        let target = |name: &Path| {
            let common = self.names_flags.then(|| with_common_name(name, None));
            let wanted = distinct(common.flatten().unwrap_or_else(|| name.to_owned()));
            let named = with_separator(&wanted, self.before_flags);
            self.destination.map(|to| self.place.target(to, &named))
        };
        let is_made = |name: &Path| {
            let path = self.place.folder.join(name);
            self.destination.is_some() && self.job.is_made(&path)
        };
        let made = || Ok((Summary::of(|sum| sum.made = 1), None, None));
        let damaged = |why: Detail| Ok((Summary::of(|sum| sum.damaged = 1), Some(why), None));
        if is_made(listed) {
            return made();
        }
        let opened = match open_folder_message(self.messages, listed) {
            Ok((name, _)) if name != listed && is_made(&name) => return made(),
            opened => opened,
        };
        let read =
            opened.and_then(|opened| FolderMessage::read(opened, self.job.options, &self.large));
        let FolderMessage {
            name,
            file,
            before,
            method,
            content: whole,
            appended,
            _alone,
            ..
        } = match read {
            Ok(read) => read,
            Err(why) => return damaged(why),
        };
        let (mut target, path) = (target(&name), self.place.folder.join(&name));
        let mut summary = Summary {
            messages: 1,
            bytes_in: before.length,
            bytes_out: before.length,
            ..Summary::default()
        };
        let content = match whole {
            Ok(content) => content,
            Err(why) => {
                let why = why.map(|why| why.then(UNCHANGED));
                match &why {
                    // The content of the file is unknown, or is not a message.
                    Some(_) => (summary.messages, summary.damaged) = (0, 1),
                    None => summary.oversized = 1,
                }
                if let Some((target, folder)) = &target {
                    let copy = AtomicWriter::copy(&file, before.length, &path, folder, target)?;
                    let mut record = self.job.record(&path, Some(&before), ResultPart::Whole);
                    if let Some(record) = &mut record {
                        record.is_damaged = why.is_some();
                    }
                    copy.appear_as(record.as_ref(), false)?;
                }
                return Ok((summary, why, None));
            }
        };
        summary.bytes_in = content.len() as u64;
        summary.bytes_out = summary.bytes_in;
        summary.damaged = u64::from(appended.is_some());
        let job = self.job;
        let mut transformed = job.single((number, &path), &content, None, rewrite::spliced)?;
        let mut new = transformed.as_mut().and_then(|done| done.new.take());
        let mut why = appended;
        if new.is_some() && method.is_some_and(Method::is_utf16) {
            (new, transformed) = (None, None);
            summary.damaged = 1;
            why = Some(Detail::from(LEFT_AS_UTF16).naming(Setting::OutputFormat));
        }
        summary.changed = u64::from(new.is_some());
        let message = new.as_deref().unwrap_or(&content);
        let header = header_of(message);
        if self.names_flags
            && let Some(to) = self.destination
            && noted_in_name(&name, &header).is_none()
        {
            let common = distinct(self.common_name(&name, &header, to)?);
            target = Some(
                self.place
                    .target(to, &with_separator(&common, self.before_flags)),
            );
            // Thunderbird writes the separator of an mbox before each message. Other programs find no header after it. A
            // message in UTF-16 is copied as it is.
            let prologue = Prologue::of(&header).filter(|it| it.separators > 0);
            let is_written = !method.is_some_and(Method::is_utf16);
            if let Some(prologue) = prologue.filter(|_| is_written) {
                new = message.get(prologue.length..).map(<[u8]>::to_owned);
            }
        }
        if let Some(new) = &new {
            summary.bytes_out = new.len() as u64;
        }
        match (target, new) {
            (None, Some(new)) if writes => {
                let named = self.place.folder.join(&name);
                match self.replace(listed, (path, &*file, &before), &new, method) {
                    Ok(true) => {}
                    Ok(false) => {
                        summary.changed = 0;
                        summary.bytes_out = summary.bytes_in;
                        summary.moved = 1;
                    }
                    Err(error) => match obstacle(&error, &named, UNCHANGED) {
                        Some(obstacle) => {
                            (summary.changed, summary.damaged) = (0, 1);
                            summary.bytes_out = summary.bytes_in;
                            (why, transformed) = (Some(obstacle), None);
                        }
                        None => return Err(error),
                    },
                }
            }
            (None, _) => {}
            (Some((target, folder)), new) => {
                let finished = match (&new, method) {
                    // An unchanged compressed message is copied byte by byte, because compressing it again could change
                    // it.
                    (None, Some(_)) => {
                        AtomicWriter::copy(&file, before.length, &path, &folder, &target)?
                    }
                    (None, None) => AtomicWriter::of(&content, &folder, &target, None)?
                        .finished(&file, NewFile::Copy)?,
                    (Some(new), _) => {
                        let target = resized(&target, new);
                        AtomicWriter::of(new, &folder, &target, method)?
                            .finished(&file, NewFile::Copy)?
                    }
                };
                let complete = self.job.record(&path, Some(&before), ResultPart::Whole);
                let record = complete.map(|record| JournalRecord {
                    is_damaged: why.is_some(),
                    ..record
                });
                finished.appear_as(record.as_ref(), false)?;
            }
        }
        Ok((summary, why, transformed))
    }

    /// Replaces a message in place. Returns false, with nothing changed, if other programs moved the message before each
    /// attempt.
    fn replace(
        &self,
        listed: &Path,
        (mut path, file, before): (PathBuf, &File, &FileIdentity),
        new: &[u8],
        method: Option<Method>,
    ) -> Result<bool, Error> {
        let folder = &self.place.folder;
        let courier = folder.join(COURIER);
        let writing_in = self.place.writing_in(folder);
        // The Maildir may have lost its `tmp`, which is then created.
        make_folder(&writing_in)?;
        let twin = self.twins.get(listed).map(|twin| folder.join(twin));
        for _ in 0..ATTEMPTS {
            let beside = AtomicWriter::of(new, &writing_in, &path, method)?;
            let old = OldFile {
                path: &path,
                file,
                before,
                twin: twin.as_deref(),
                folders: &self.place.synced_in(folder),
            };
            // The keywords are stored first: if that fails, the message keeps its name and Courier finds its keywords.
            let names = (path.as_path(), resized(&path, new));
            let stored = unpoisoned(self.keywords.lock()).follow(folder, (names.0, &names.1));
            let followed = stored.map_err(cannot_write(&courier))?;
            let finished = beside.finished(file, NewFile::Replacement);
            let replaced = finished.and_then(|finished| old.give_way(finished, new));
            if let Some(file) = followed.filter(|_| !matches!(replaced, Ok(true))) {
                let _ = fs::remove_file(file);
            }
            if replaced? {
                return Ok(true);
            }
            // The message was moved. If another search finds the same unchanged file, the next attempt replaces it under
            // its new name.
            let found = self.messages.find(listed, true);
            match found
                .map_err(cannot_read(folder))?
                .map(|name| folder.join(name))
            {
                Some(found) if before.check(&found).is_ok() => path = found,
                _ => break,
            }
        }
        Ok(false)
    }
}

/// Returns the message for a search in its header: with an LF in place of each CR if its lines end with CR alone.
fn header_of(message: &[u8]) -> Cow<'_, [u8]> {
    if ends_lines_with_cr(message) {
        Cow::Owned(in_line_feeds(message))
    } else {
        Cow::Borrowed(message)
    }
}

/// Returns whether a file contains flags by the numbers of messages. A copy of an MH folder contains it, too.
fn is_kept_with_numbers(path: &Path) -> bool {
    let name = path.file_name();
    name.is_some_and(|name| FILES_BY_NUMBER.iter().any(|file| name == *file))
}
