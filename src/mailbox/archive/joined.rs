//! Reads the mail of an archive one member after the other, as one mbox. Archives and compressed files inside the archive are
//! read in place, and a single message becomes an entry of the mbox.
//!
//! If a member is damaged, reading stops with a [`CompressionDamage`] error at this position. The message before the damage is
//! incomplete, and the next member must not be appended to it. The next read returns the members after the damaged one.

use std::fmt;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use super::ahead::{LookAhead, joined_name};
use super::entries::{EntryMaker, MOST_KEYWORDS};
use super::members::Members;
#[cfg(feature = "archives")]
use super::nested::NestedArchive;
use super::skipped::SkippedMember;
use super::spooled::SpooledFile;
use crate::detail::excerpt;
use crate::error::unpoisoned;
use crate::mailbox::compressed::CompressionDamage;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::not_mail::NotMail;
#[cfg(feature = "archives")]
use crate::mailbox::not_mail::starts_like_document;
use crate::mailbox::{FileCounts, Stop};

const LOOKED_AT: usize = 64 << 10;
/// Maximum length of a member's path in a message to the user, in characters.
const SHOWN: usize = 200;
/// Maximum number of unread members that are reported by name, because they are mail or may be mail. Further members
/// are only counted.
const MOST_LEFT: usize = 100;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MemberVerdict {
    Taken,
    /// An Outlook mailbox. It cannot be read as a stream, so it is copied to a temporary file and read later.
    Spooled,
    /// A single message, which becomes an entry of the mbox.
    Message(StartKind),
    /// An archive or a compressed file. Its members are read in its place.
    Nested,
    /// A member that is mail or may be mail, but that embody cannot read inside an archive. The text is the reason for
    /// the report.
    Left(&'static str),
    /// A member in a format that embody recognises but does not read: the name of the format, and advice.
    Refused(&'static str, &'static str),
    /// A member without mail. The text describes it.
    Skipped(&'static str),
    /// A member that a mail program keeps next to mail, such as an index. It contains no mail. The text describes it.
    Part(&'static str),
}

/// How the members of an archive are read.
#[derive(Clone, Copy)]
pub(crate) struct MemberRules {
    /// Recognises a member by its path and its first bytes.
    pub(crate) judge: fn(&[u8], &[u8]) -> MemberVerdict,
    /// Creates the converter of single messages.
    pub(crate) entries: fn() -> Box<dyn EntryMaker>,
}

/// The limits for archives and messages inside an archive.
#[derive(Clone, Debug)]
pub(crate) struct ArchiveLimits {
    /// Maximum size of the decompressed data of one archive, in bytes.
    pub(crate) expanded: u64,
    /// Request to end the run early, which also ends the reading of archives inside the archive.
    pub(crate) stop: Stop,
}

/// Maximum nesting depth: members inside three archives are still read.
const LEVELS: usize = 3;

/// Reason why an archive at a deeper level is not read.
#[cfg(feature = "archives")]
const TOO_DEEP: &str = "an archive in too many other archives; unpack the outer one first";

/// Maximum size of a single message in an archive, in bytes. It is the default of
/// [`ReadOptions::max_message`](crate::mailbox::ReadOptions::max_message).
const LONGEST_MESSAGE: u64 = 512 << 20;

pub(crate) struct ArchiveReader<M> {
    members: M,
    /// The nested archives and compressed files that are being read, from the outermost to the innermost.
    #[cfg(feature = "archives")]
    nested: Vec<NestedArchive>,
    ahead: LookAhead,
    limits: ArchiveLimits,
    rules: MemberRules,
    entries: Box<dyn EntryMaker>,
    skipped: Arc<Mutex<SkippedMember>>,
    ready: io::Cursor<Vec<u8>>,
    within: Option<String>,
    /// Error that ended the current member early. The bytes in `ready` were read before the error, so they are returned
    /// first.
    failed: Option<io::Error>,
    has_taken: bool,
    /// Number of unread members that are mail or may be mail, and the names of the first of them with the reasons, for
    /// the report.
    left: (u64, Vec<String>),
    /// Formats for which advice was already given. It is given only once for each format.
    advised: Vec<&'static str>,
    last: [u8; 3],
    end: Option<Result<(), CompressionDamage>>,
}

impl<M: Members> ArchiveReader<M> {
    pub(super) fn new(
        members: M,
        rules: MemberRules,
        skipped: &Arc<Mutex<SkippedMember>>,
        (limits, ahead): (ArchiveLimits, LookAhead),
    ) -> Self {
        Self {
            members,
            #[cfg(feature = "archives")]
            nested: Vec::new(),
            ahead,
            limits,
            entries: (rules.entries)(),
            rules,
            skipped: Arc::clone(skipped),
            ready: io::Cursor::default(),
            within: None,
            failed: None,
            has_taken: false,
            left: (0, Vec::new()),
            advised: Vec::new(),
            last: *b"\n\n\n",
            end: None,
        }
    }

    /// Returns the innermost archive that is being read.
    fn current(&mut self) -> &mut dyn Members {
        #[cfg(feature = "archives")]
        if let Some(nested) = self.nested.last_mut() {
            return &mut *nested.members;
        }
        &mut self.members
    }

    /// Stops reading the innermost nested archive. Returns its path, or `None` if no nested archive is being read.
    fn leave_nested(&mut self) -> Option<String> {
        #[cfg(feature = "archives")]
        return self.nested.pop().map(|nested| nested.name);
        #[cfg(not(feature = "archives"))]
        None
    }

    /// Returns the path of a member, with the paths of the archives around it in front.
    fn full_name(&self, name: &[u8]) -> String {
        // The path is only used to recognise the format and the flags of a message, and in texts for the user. It is
        // never used as a path on the disk.
        #[cfg(feature = "archives")]
        if let Some(nested) = self.nested.last() {
            return joined_name(&nested.name, name);
        }
        joined_name("", name)
    }

    /// Reads the keyword files of the innermost archive, so that the keywords are known before its first message.
    fn look_ahead(&mut self) -> io::Result<()> {
        let mut skipped = unpoisoned(self.skipped.lock());
        let lost = &mut skipped.lost;
        #[cfg(feature = "archives")]
        if let Some(nested) = self.nested.iter_mut().rev().find(|it| it.is_archive) {
            return nested.ahead.run(&nested.name, &mut *self.entries, lost);
        }
        self.ahead.run("", &mut *self.entries, lost)
    }

    fn is_stream(&self) -> bool {
        #[cfg(feature = "archives")]
        if self.nested.iter().any(|nested| nested.is_archive) {
            return false;
        }
        matches!(self.ahead, LookAhead::Stream)
    }

    fn between(&self) -> &'static [u8] {
        match self.last {
            [_, b'\n', b'\n'] | [b'\n', b'\r', b'\n'] => b"",
            [.., b'\n'] => b"\n",
            _ => b"\n\n",
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        let member = match self.current().next() {
            Ok(member) => member,
            Err(error) => return self.nested_failed(error),
        };
        let Some(member) = member else {
            if self.leave_nested().is_none() {
                self.end = Some(match self.all_left() {
                    Some(why) => Err(CompressionDamage::of_archive(why, true)),
                    None if self.has_taken => Ok(()),
                    None => Err(CompressionDamage::of_archive_without_mail()),
                });
            }
            return Ok(());
        };
        let name = self.full_name(&member.name);
        if let Some(why) = member.closed {
            self.leave(&name, why);
            return Ok(());
        }
        if let Some(what) = member.without_mail {
            self.skip(&name, what);
            return Ok(());
        }
        let mut ready = self.between().to_vec();
        let between = ready.len();
        // A read error does not matter yet: the bytes before it suffice to recognise the format of the member.
        let mut failed = start_of(self.current(), &mut ready).err();
        // An empty member counts as a file without mail, unless its name alone gives a verdict. A member whose first
        // bytes are damaged also has an empty `start`, but it is not empty, so its verdict by name is not used.
        let start = &ready[between..];
        let is_used = |judged: &MemberVerdict| {
            let is_by_name = matches!(
                judged,
                MemberVerdict::Left(_) | MemberVerdict::Refused(..) | MemberVerdict::Part(_)
            );
            !start.is_empty() || is_by_name && failed.is_none()
        };
        let judged = Some((self.rules.judge)(name.as_bytes(), start)).filter(is_used);
        match judged {
            Some(MemberVerdict::Taken) => {
                self.name_unused(&name, start);
                self.note_place(&name, between, false);
                self.ready = io::Cursor::new(ready);
                self.within = Some(name);
                self.failed = failed;
                self.has_taken = true;
                self.counts(|files| files.read += 1);
                return Ok(());
            }
            Some(MemberVerdict::Message(kind)) if failed.is_none() => {
                return self.begin_message(name, ready, kind);
            }
            Some(MemberVerdict::Message(_)) => {}
            Some(MemberVerdict::Nested) => {
                failed = self.begin_nested(&name, &ready[between..], failed)?
            }
            Some(MemberVerdict::Left(what)) => self.leave(&name, what),
            Some(MemberVerdict::Refused(what, advice)) => self.refuse(&name, what, advice),
            Some(MemberVerdict::Skipped(what)) => self.skip(&name, what),
            Some(MemberVerdict::Part(what)) => {
                self.counts(|files| files.parts += 1);
                self.name_skipped(&name, what);
                self.name_unused(&name, start);
                if failed.is_none() && self.is_stream() && self.entries.is_keyword_file(&name) {
                    failed = self.keep_keywords(&name, &ready[between..])?;
                }
            }
            Some(MemberVerdict::Spooled) => {
                let start = &ready[between..];
                let rest: &mut dyn Read = match failed {
                    None => self.current(),
                    Some(_) => &mut io::empty(),
                };
                let (spooled, error) = SpooledFile::copy(name.clone(), start, rest)?;
                failed = failed.or(error);
                // The file gets its verdict when the copy is opened.
                unpoisoned(self.skipped.lock()).spooled.push(spooled);
                self.has_taken = true;
            }
            // An empty file is an mbox without messages.
            None if failed.is_none() => self.counts(|files| files.read += 1),
            None => {}
        }
        match failed
            .map(io::Error::downcast::<CompressionDamage>)
            .transpose()?
        {
            Some(damage) if !damage.goes_on => return self.nested_failed(damage.into()),
            Some(damage) => match judged {
                Some(MemberVerdict::Spooled) => self.name_left(&name, damage),
                None | Some(MemberVerdict::Message(_) | MemberVerdict::Nested) => {
                    self.leave(&name, damage)
                }
                _ => {}
            },
            None => {}
        }
        Ok(())
    }

    /// Reads a whole message, and continues with its mbox entry. `ready` contains the empty line before the message and
    /// its first bytes.
    fn begin_message(
        &mut self,
        name: String,
        mut ready: Vec<u8>,
        kind: StartKind,
    ) -> io::Result<()> {
        let start = self.between().len();
        let mut content = ready.split_off(start);
        let rest = (LONGEST_MESSAGE + 1).saturating_sub(content.len() as u64);
        if let Err(error) = self.current().take(rest).read_to_end(&mut content) {
            let damage: CompressionDamage = error.downcast()?;
            if !damage.goes_on {
                return self.nested_failed(damage.into());
            }
            self.leave(&name, damage);
            return Ok(());
        }
        if content.len() as u64 > LONGEST_MESSAGE {
            self.leave(&name, "a message of more than 512 MiB");
            return Ok(());
        }
        if self.entries.uses_keyword_files(&name) {
            self.look_ahead()?;
        }
        match self.entries.entry(&name, &content, kind) {
            Ok(entry) => {
                let mut skipped = unpoisoned(self.skipped.lock());
                entry.lost.into_iter().for_each(|it| skipped.lost.count(it));
                skipped.prologues += u64::from(entry.had_prologue);
                drop(skipped);
                self.note_place(&name, ready.len(), true);
                ready.extend_from_slice(&entry.bytes);
                self.ready = io::Cursor::new(ready);
                self.has_taken = true;
                self.counts(|files| files.read += 1);
                for what in entry.missing {
                    self.name_left(&name, what);
                }
                self.within = Some(name);
            }
            Err(why) => self.leave(&name, why),
        }
        Ok(())
    }

    /// Copies a nested archive to a temporary file, and continues with its members. Returns the error that ended the
    /// copying.
    #[cfg(feature = "archives")]
    fn begin_nested(
        &mut self,
        name: &str,
        start: &[u8],
        failed: Option<io::Error>,
    ) -> io::Result<Option<io::Error>> {
        if failed.is_some() {
            return Ok(failed);
        }
        let is_too_deep = self.nested.len() + 1 >= LEVELS;
        // A document is no archive of mail, so it is looked into at every level.
        if is_too_deep && !starts_like_document(start) {
            self.leave(name, TOO_DEEP);
            return Ok(None);
        }
        let most = self.limits.expanded;
        let mut rest = self
            .current()
            .take(most.saturating_sub(start.len() as u64) + 1);
        let (spooled, error) = SpooledFile::copy(name.to_owned(), start, &mut rest)?;
        if error.is_some() {
            return Ok(error);
        }
        if spooled.file.metadata()?.len() > most {
            let why = format!("an archive that is larger than {most} bytes after decompression");
            self.leave(name, why);
            return Ok(None);
        }
        let opened = NestedArchive::open(name.to_owned(), spooled.file, most, &self.limits.stop);
        match opened {
            Ok(Some(_)) if is_too_deep => self.leave(name, TOO_DEEP),
            Ok(Some(nested)) => {
                // A compressed file that is not an archive is counted when its content is read.
                self.counts(|files| files.read += u64::from(nested.is_archive));
                self.nested.push(nested);
            }
            Ok(None) => {
                self.skip(name, NotMail::DOCUMENT.name());
            }
            Err(error) => self.leave(name, error.downcast::<CompressionDamage>()?),
        }
        Ok(None)
    }

    /// A build without the feature `archives` reads no archives, and therefore none inside them.
    #[cfg(not(feature = "archives"))]
    fn begin_nested(
        &mut self,
        name: &str,
        _: &[u8],
        failed: Option<io::Error>,
    ) -> io::Result<Option<io::Error>> {
        let _ = (LEVELS, self.limits.expanded, &self.limits.stop);
        self.leave(name, NotMail::DOCUMENT.name());
        Ok(failed)
    }

    /// Handles an error between two members. If a nested archive failed, only this archive is given up, and its outer
    /// archive is read on.
    fn nested_failed(&mut self, error: io::Error) -> io::Result<()> {
        let damage: CompressionDamage = error.downcast()?;
        match self.leave_nested() {
            Some(name) => {
                self.was_not_read(&name, damage);
                Ok(())
            }
            None => Err(damage.into()),
        }
    }

    /// Records the folder of a member that begins `between` bytes after the current position.
    fn note_place(&self, name: &str, between: usize, is_message: bool) {
        let places = &mut unpoisoned(self.skipped.lock()).places;
        let at = places.read + between as u64;
        places.begin(at, name, is_message);
    }

    fn counts(&self, count: impl FnOnce(&mut FileCounts)) {
        count(&mut unpoisoned(self.skipped.lock()).files);
    }

    /// Counts a member without mail.
    fn skip(&self, name: &str, what: &'static str) {
        self.counts(|files| files.not_mail += 1);
        self.name_skipped(name, what);
    }

    fn name_skipped(&self, name: &str, what: &'static str) {
        unpoisoned(self.skipped.lock()).add(shown(name), what);
    }

    /// Reports the flags in a member that are not used.
    fn name_unused(&self, name: &str, start: &[u8]) {
        if let Some(lost) = self.entries.unused_flags(name, start) {
            unpoisoned(self.skipped.lock()).lost.count(lost.to_owned());
        }
    }

    /// Keeps a keyword file of a stream for the messages after it. Returns the error that ended the keyword file early.
    fn keep_keywords(&mut self, name: &str, start: &[u8]) -> io::Result<Option<io::Error>> {
        let mut content = start.to_vec();
        let rest = (MOST_KEYWORDS + 1).saturating_sub(content.len() as u64);
        if let Err(error) = self.current().take(rest).read_to_end(&mut content) {
            return Ok(Some(error));
        }
        let mut skipped = unpoisoned(self.skipped.lock());
        self.entries
            .add_keyword_file(name, &content, &mut skipped.lost);
        drop(skipped);
        Ok(None)
    }

    /// Reports a member that was not read, and counts it.
    fn leave(&mut self, name: &str, why: impl fmt::Display) {
        self.counts(|files| files.not_read += 1);
        self.name_left(name, why);
    }

    /// Reports a member in an unsupported format. The advice is given once for each format, because an archive can
    /// contain thousands of such members.
    fn refuse(&mut self, name: &str, what: &'static str, advice: &str) {
        if self.advised.contains(&what) {
            self.leave(name, what);
        } else {
            self.advised.push(what);
            self.leave(name, format_args!("{what}; {advice}"));
        }
    }

    /// Reports a member as not read although it was already counted as read: its damage was found only while it was
    /// read.
    fn was_not_read(&mut self, name: &str, why: impl fmt::Display) {
        self.counts(FileCounts::was_not_read);
        self.name_left(name, why);
    }

    fn name_left(&mut self, name: &str, why: impl fmt::Display) {
        let (count, names) = &mut self.left;
        *count += 1;
        if names.len() < MOST_LEFT {
            names.push(format!("{} ({why})", shown(name)));
        }
    }

    fn all_left(&mut self) -> Option<String> {
        let (count, names) = std::mem::take(&mut self.left);
        let named = names.join(", ");
        match count {
            0 => None,
            1 => Some(format!("a file in the archive was not read: {named}")),
            _ if count > names.len() as u64 => Some(format!(
                "{count} files in the archive were not read; the first {} of them are {named}",
                names.len()
            )),
            _ => Some(format!(
                "{count} files in the archive were not read: {named}"
            )),
        }
    }

    fn failure(&mut self, error: io::Error) -> io::Error {
        let within = self.within.take();
        let mut damage = match error.downcast::<CompressionDamage>() {
            Ok(damage) => damage,
            Err(error) => return error,
        };
        let mut name = within;
        if !damage.goes_on
            && let Some(nested) = self.leave_nested()
        {
            // Only the nested archive cannot be read any further; the archive around it can. The nested archive counts
            // as not read, and so does the damaged member in it.
            if name.is_some() {
                self.counts(FileCounts::was_not_read);
            }
            damage = CompressionDamage::of_member(damage.to_string());
            name = name.or(Some(nested));
        }
        if !damage.goes_on {
            if let Some(left) = self.all_left() {
                damage = damage.and(&left);
            }
            self.end = Some(Err(damage.clone()));
        } else if let Some(name) = name {
            let why = format!("{damage}; the complete messages before the damage were read");
            damage = CompressionDamage::of_member(format!("{} ({damage})", shown(&name)));
            self.was_not_read(&name, why);
            // The damage cut off a message in the middle. Setting `last` to an empty line makes the next member start a
            // new message without inserting line endings before it.
            self.last = *b"\n\n\n";
        }
        damage.into()
    }

    fn some(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut read = self.ready.read(into)?;
        if read == 0 {
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            if self.within.is_some() {
                read = self.current().read(into)?;
            }
        }
        for &octet in &into[read.saturating_sub(3)..read] {
            self.last.rotate_left(1);
            self.last[2] = octet;
        }
        Ok(read)
    }
}

/// Returns the path of a member for messages. Only the start of a very long path is shown.
fn shown(name: &str) -> String {
    excerpt(name, SHOWN).into_owned()
}

/// Reads the start of a member, up to `LOOKED_AT` bytes. If a read fails because of damage, the bytes of this read are
/// lost, so a small damaged member may yield no bytes at all.
fn start_of(members: &mut dyn Members, ready: &mut Vec<u8>) -> io::Result<()> {
    let mut filled = ready.len();
    ready.resize(filled + LOOKED_AT, 0);
    let done = loop {
        match members.read(ready.get_mut(filled..).unwrap_or_default()) {
            Ok(0) => break Ok(()),
            Ok(read) => filled += read,
            Err(error) => break Err(error),
        }
    };
    ready.truncate(filled);
    done
}

impl<M: Members> Read for ArchiveReader<M> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while !into.is_empty() {
            let read = self.some(into).map_err(|error| self.failure(error))?;
            if read > 0 {
                unpoisoned(self.skipped.lock()).places.read += read as u64;
                return Ok(read);
            }
            self.within = None;
            match &self.end {
                None => self.begin().map_err(|error| self.failure(error))?,
                Some(Ok(())) => break,
                // The archive cannot be read any further. Each further read returns the same error.
                Some(Err(damage)) => return Err(damage.clone().into()),
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests;
