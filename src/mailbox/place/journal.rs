//! The journal of a run records which results are complete. After an interruption, the same command continues with the
//! other results and does not mistake its own results for files of the user.
//!
//! A line is written before the result is renamed to its final name, so a result of a killed run always has a line. A
//! line is valid only as long as the command, the source and the result are unchanged. All other files are protected.
//!
//! **After a power failure** the lines prove nothing: most results are not synced to the disk, so a file that has a
//! line can be truncated, and the last lines can be missing. Therefore each line contains the id of the boot, unless
//! the result was synced before it got its name. If the journal is from an earlier boot, all results are made again and
//! compared with the existing files ([`existing`](super::existing)): a file with the same content is kept, and an
//! incomplete copy is replaced.
//!
//! ```text
//! lost HASH                                         at the start of a run that found no journal of an earlier run
//! run BOOT HASH                                     at the start of each run
//! KIND COMMAND KEY IDENTITY PATH-IN-HEX HASH        for each result
//! ```
//!
//! HASH is the hash of the line. In a line that was not written completely, it does not match, and the line is ignored.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, Metadata};
use std::hash::{DefaultHasher, Hasher as _};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::unpoisoned;
use crate::mailbox::finds::SourceFind;
use crate::mailbox::place::origin::{
    Fingerprint, ResultOrigin, identity, identity_of, identity_of_tree,
};
use crate::mailbox::temporary;
use crate::platform::{OsStrExt as _, OsStringExt as _};

/// Maximum length of a line in bytes. A path of 4096 bytes takes 8192 hexadecimal digits, so the rest is enough for the
/// other values.
const LONGEST: u64 = 16 << 10;

/// Key of a result in the journal: the fingerprint of the command, the source and the part.
type ResultKey = u128;

fn hash_of_line(line: &str) -> u64 {
    let mut hasher = DefaultHasher::default();
    hasher.write(line.as_bytes());
    hasher.finish()
}

/// Returns the path of the directory next to `output` that contains the journal. Returns `None` if the output is a device,
/// or if there is no directory for it.
pub(crate) fn place_beside(output: &Path) -> Option<PathBuf> {
    let is_device = |found: Metadata| !found.is_file() && !found.is_dir();
    if fs::metadata(output).is_ok_and(is_device) {
        return None;
    }
    let whole = match output.file_name() {
        Some(_) => output.to_owned(),
        // The directory is named after the output, with a suffix. An output such as `.` or `..` has no file name, so the
        // name is taken from its canonical path.
        None => output.canonicalize().ok()?,
    };
    let mut name = whole.file_name()?.to_owned();
    name.push(temporary::OF_RUN);
    let place = whole.with_file_name(name);
    let folder = place.parent()?;
    (folder.as_os_str().is_empty() || folder.is_dir()).then_some(place)
}

/// Returns the path of the journal directory inside an existing output directory. It is used if the parent directory is
/// not writable. Searches for mail skip it, like all temporary files of embody.
pub(crate) fn place_inside(output: &Path) -> Option<PathBuf> {
    output.is_dir().then(|| output.join(temporary::OF_RUN))
}

/// Returns whether there is a journal of an earlier run with this output.
pub(crate) fn is_beside(output: &Path) -> bool {
    let places = [place_beside(output), place_inside(output)];
    places.iter().flatten().any(|place| place.is_dir())
}

/// Part of a source's result that a line records. A source can have several results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ResultPart {
    Whole,
    /// In an archive that also contains Outlook mailboxes: the mailbox for the messages of its mboxes.
    Nested,
    /// The directory of the subfolders of a Thunderbird folder.
    Subfolders,
}

/// The files of a journal.
#[derive(Debug, Default)]
pub(crate) struct JournalFiles {
    /// Journal of an earlier run.
    pub(crate) before: Option<File>,
    /// File to which lines are appended. `None` if the journal cannot be written.
    pub(crate) to_append: Option<File>,
    /// Whether the journal directory of an earlier run exists.
    pub(crate) has_earlier_run: bool,
}

pub(crate) struct ResultJournal {
    /// Hash of the command, as 32 hexadecimal digits.
    command: String,
    /// Id of the current boot. Empty if the system has none; all lines then count as written in an earlier boot.
    boot: String,
    /// Working directory, to which relative paths refer.
    current: PathBuf,
    before: HashMap<ResultKey, (PathBuf, String)>,
    /// Results of an earlier run with this command that must be made again and compared with the existing files.
    to_compare: HashSet<PathBuf>,
    /// All results of an earlier run with this command.
    targets: HashSet<PathBuf>,
    /// All parent directories of these results.
    directories: HashSet<PathBuf>,
    /// Whether an earlier run was in another boot, so that all results are made again.
    is_of_other_boot: bool,
    /// Whether there was a journal directory without a journal. An earlier run was killed either at its start, or at its
    /// end after it had removed the journal. In the second case its results exist. The run after it may be killed too, so it
    /// records this.
    has_lost_journal: bool,
    file: Mutex<Option<File>>,
    has_new: AtomicBool,
}

impl ResultJournal {
    /// Reads the journal of an earlier run. `command` contains everything that determines the results, except the
    /// content of the sources.
    pub(crate) fn new(command: &str, files: JournalFiles) -> Self {
        Self::in_boot(command, temporary::boot().unwrap_or_default(), files)
    }

    fn in_boot(command: &str, boot: String, files: JournalFiles) -> Self {
        let mut journal = Self {
            command: format!("{:032x}", Fingerprint::of(&[command.as_bytes()])),
            current: std::env::current_dir().unwrap_or_default(),
            before: HashMap::new(),
            to_compare: HashSet::new(),
            targets: HashSet::new(),
            directories: HashSet::new(),
            is_of_other_boot: false,
            has_lost_journal: files.has_earlier_run && files.before.is_none(),
            file: Mutex::new(files.to_append),
            has_new: AtomicBool::new(false),
            boot,
        };
        if let Some(before) = files.before {
            journal.read(before);
        }
        if journal.has_lost_journal {
            journal.append("lost");
        }
        journal.append(&format!("run {}", journal.shown_boot()));
        journal
    }

    fn shown_boot(&self) -> &str {
        match self.boot.as_str() {
            "" => "-",
            boot => boot,
        }
    }

    fn read(&mut self, file: File) {
        let mut lines = BufReader::new(file);
        let mut line = Vec::new();
        let mut is_of_this_boot = false;
        loop {
            line.clear();
            let read = (&mut lines).take(LONGEST).read_until(b'\n', &mut line);
            if !read.is_ok_and(|read| read > 0) {
                break;
            }
            let Some(text) = std::str::from_utf8(&line).ok().and_then(checked) else {
                continue;
            };
            if text == "lost" {
                self.has_lost_journal = true;
            } else if let Some(boot) = text.strip_prefix("run ") {
                is_of_this_boot = boot == self.boot;
                self.is_of_other_boot |= !is_of_this_boot;
            } else if let Some(line) = ResultLine::parse(text)
                && line.command == self.command
            {
                if line.is_whole {
                    self.before
                        .insert(line.key, (line.target.clone(), line.identity));
                } else {
                    self.to_compare.insert(line.target.clone());
                }
                let around = line.target.ancestors().skip(1);
                for directory in around {
                    if !self.directories.insert(directory.to_owned()) {
                        break;
                    }
                }
                self.targets.insert(line.target);
            }
        }
        // The run line is written first. If it is missing, the disk lost it in a crash, so the journal is from an
        // earlier boot.
        self.is_of_other_boot |= !is_of_this_boot;
    }

    /// Returns the number of results that an earlier run recorded.
    pub(crate) fn before(&self) -> usize {
        self.targets.len()
    }

    /// Returns whether the journal contains results of this run or of an earlier one, or whether results of an earlier run may
    /// exist.
    pub(crate) fn is_any(&self) -> bool {
        self.before() > 0 || self.has_lost_journal || self.has_new.load(Ordering::Relaxed)
    }

    /// Returns whether an earlier run completed this result and the result is unchanged since.
    pub(crate) fn is_made(&self, origin: &ResultOrigin, part: ResultPart) -> bool {
        let is_there = |boot: &str| {
            let (target, identity) = self.before.get(&self.key(origin, part, boot))?;
            Some(identity_of(target, &|path| self.is_of_other(path)).ok()? == *identity)
        };
        if self.before.is_empty() {
            return false;
        }
        let is_of_this_boot = !self.boot.is_empty() && is_there(&self.boot) == Some(true);
        is_of_this_boot || is_there("") == Some(true)
    }

    fn has_whole(&self, origin: &ResultOrigin, part: ResultPart) -> bool {
        self.before.contains_key(&self.key(origin, part, ""))
    }

    /// Returns whether an existing file with the name of a result may be from an earlier run. Such a file is compared
    /// with the new result; any other existing file is an error.
    pub(crate) fn may_exist(&self, target: &Path) -> bool {
        let is_compared = || self.to_compare.contains(&self.absolute(target));
        self.is_of_other_boot || self.has_lost_journal || is_compared()
    }

    /// Returns whether an earlier run may have created this directory for its results.
    pub(crate) fn has_results_in(&self, folder: &Path) -> bool {
        let folder = self.absolute(folder);
        let has_some = self.directories.contains(&folder);
        self.is_of_other_boot || self.has_lost_journal || has_some
    }

    /// Returns whether a directory inside a result is itself another result, or contains one.
    fn is_of_other(&self, directory: &Path) -> bool {
        self.targets.contains(directory) || self.directories.contains(directory)
    }

    /// Removes the results of an earlier run from the mailboxes of the source. A search finds them if the output
    /// directory is inside the source.
    pub(crate) fn remove_results(&self, mailboxes: &mut Vec<SourceFind>) {
        mailboxes.retain(|found| !self.is_result(found));
    }

    /// Returns whether the search has found results of an earlier run among the mailboxes.
    pub(crate) fn has_results_among(&self, mailboxes: &[SourceFind]) -> bool {
        mailboxes.iter().any(|found| self.is_result(found))
    }

    fn is_result(&self, found: &SourceFind) -> bool {
        !self.targets.is_empty() && {
            let path = self.absolute(&found.path);
            path.ancestors().any(|above| self.targets.contains(above))
        }
    }

    /// Returns whether an existing file that is an incomplete copy of a result is replaced.
    pub(crate) fn may_complete(&self) -> bool {
        self.is_of_other_boot
    }

    fn absolute(&self, target: &Path) -> PathBuf {
        self.current.join(target)
    }

    fn key(&self, origin: &ResultOrigin, part: ResultPart, boot: &str) -> ResultKey {
        let part: &[u8] = match part {
            ResultPart::Whole => b" whole ",
            ResultPart::Nested => b" nested ",
            ResultPart::Subfolders => b" subfolders ",
        };
        Fingerprint::of(&[self.command.as_bytes(), boot.as_bytes(), part, &origin.0])
    }

    fn append(&self, line: &str) {
        let mut to = unpoisoned(self.file.lock());
        let hash = hash_of_line(line);
        // The text starts with a line feed, because a killed run may have left an incomplete line, which the new line
        // would otherwise continue.
        let text = format!("\n{line} {hash:016x}\n");
        if let Some(file) = &mut *to
            && file.write_all(text.as_bytes()).is_err()
        {
            // A full disk ends only the journal, not the run. Without a line, the next run treats the following results
            // as files of the user and does not overwrite them.
            *to = None;
        }
    }
}

/// Journal record of a result that is about to be made.
#[derive(Clone, Debug)]
pub(crate) struct JournalRecord<'j> {
    pub(crate) journal: &'j ResultJournal,
    pub(crate) origin: ResultOrigin,
    pub(crate) part: ResultPart,
    /// Whether the source is damaged. The next run must report the damage again, so it reads the source again and
    /// compares the result.
    pub(crate) is_damaged: bool,
}

impl std::fmt::Debug for ResultJournal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Journal")
            .field("targets", &self.targets)
            .finish_non_exhaustive()
    }
}

impl JournalRecord<'_> {
    /// Returns whether an earlier run completed this result.
    pub(crate) fn is_made(&self) -> bool {
        let has_part = |part| self.journal.is_made(&self.origin, part);
        let subfolders = ResultPart::Subfolders;
        has_part(self.part)
            && (!self.journal.has_whole(&self.origin, subfolders) || has_part(subfolders))
    }

    /// Records that `file` is complete and about to be renamed to `target`. `is_synced` is true if the file was already
    /// synced to the disk.
    pub(crate) fn file(&self, target: &Path, file: &File, is_synced: bool) {
        if let Ok(found) = file.metadata() {
            self.line(self.part, target, &identity(&found), is_synced);
        }
    }

    /// Records that the directory `made` is complete, synced to the disk, and about to be renamed to `target`.
    pub(crate) fn tree(&self, part: ResultPart, target: &Path, made: &Path) {
        let journal = self.journal;
        let is_other = |path: &Path| journal.is_of_other(&journal.absolute(path));
        if let Ok(identity) = identity_of_tree(made, &is_other) {
            self.line(part, target, &identity, true);
        }
    }

    /// Records that the next run must compare `target` with its new result if this run is interrupted.
    pub(crate) fn compare(&self, target: &Path) {
        self.append("compare", self.part, target, ("-", true));
    }

    fn line(&self, part: ResultPart, target: &Path, identity: &str, is_synced: bool) {
        let kind = if self.is_damaged { "compare" } else { "whole" };
        if part == ResultPart::Nested {
            // The next run learns only by reading the archive again that this result exists. It must then compare its
            // new result with the existing file, and not refuse to overwrite it.
            self.append("compare", part, target, ("-", true));
        }
        self.append(kind, part, target, (identity, is_synced));
    }

    fn append(
        &self,
        kind: &str,
        part: ResultPart,
        target: &Path,
        (identity, is_synced): (&str, bool),
    ) {
        let journal = self.journal;
        let boot = if is_synced { "" } else { &journal.boot };
        let key = journal.key(&self.origin, part, boot);
        let command = &journal.command;
        let target = journal.absolute(target);
        let path = in_hex(target.as_os_str().as_bytes());
        journal.append(&format!("{kind} {command} {key:032x} {identity} {path}"));
        journal.has_new.store(true, Ordering::Relaxed);
    }
}

fn in_hex(octets: &[u8]) -> String {
    let digits = octets.iter().flat_map(|octet| [octet >> 4, octet & 15]);
    let digit = |digit: u8| {
        char::from(if digit < 10 {
            b'0' + digit
        } else {
            b'a' + digit - 10
        })
    };
    digits.map(digit).collect()
}

/// Returns a line without its hash, or `None` if the hash does not match.
fn checked(line: &str) -> Option<&str> {
    let (line, hash) = line.trim_end_matches('\n').rsplit_once(' ')?;
    let hash = u64::from_str_radix(hash, 16).ok()?;
    (hash == hash_of_line(line)).then_some(line)
}

struct ResultLine<'l> {
    is_whole: bool,
    command: &'l str,
    key: ResultKey,
    identity: String,
    target: PathBuf,
}

impl<'l> ResultLine<'l> {
    fn parse(line: &'l str) -> Option<Self> {
        let mut fields = line.split(' ');
        let is_whole = fields.next()? == "whole";
        let command = fields.next()?;
        let key = ResultKey::from_str_radix(fields.next()?, 16).ok()?;
        let identity = fields.next()?.to_owned();
        let digits = fields.next()?;
        let octet = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        let octets = (0..digits.len())
            .step_by(2)
            .map(octet)
            .collect::<Option<Vec<u8>>>()?;
        let target = PathBuf::from(std::ffi::OsString::from_vec(octets));
        Some(Self {
            is_whole,
            command,
            key,
            identity,
            target,
        })
    }
}

#[cfg(test)]
#[cfg(feature = "cli")]
mod tests;
