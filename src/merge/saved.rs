//! The index of a run that was stopped, in a hidden directory next to the result. The same command continues with it.
//!
//! ```text
//! .embody-merge-DIGEST/   mode 0700; the digest is that of the name of the result
//!   lock                  locked while a run uses the directory
//!   spool                 the messages
//!   records               their records, in sorted runs
//!   state                 which sources and mailboxes were read, and the lengths of the two files at that time
//! ```
//!
//! Bytes after the lengths in `state` belong to a mailbox that was not read completely, and are removed. The state is used
//! only for the same command and unchanged sources, and only until the next start of the system: files that were not
//! written to the disk before a crash would be incomplete.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::index::{MergeIndex, Position};
use super::record;
use super::stamp::stamps;
use crate::error::Error;
use crate::mailbox::{FileCounts, boot, folder_of};
use crate::platform::{self, OsStrExt as _};

const PREFIX: &str = ".embody-merge-";

/// Number of bytes after which the state is written again. A continued run reads the bytes since the last state again,
/// which takes less than a second for this number.
const WORTH_SAVING: u64 = 16 << 20;

/// Maximum length of a state, in bytes.
const LONGEST_STATE: u64 = 64 << 20;

/// Maximum number of lines about one source. A source with more lines is read again.
const MOST_LINES: usize = 1000;

/// A source that was read completely or in part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ReadSource {
    /// Number of mailboxes read so far, for an incomplete source. `None` for a complete one. Sources are read one after
    /// the other, so only the last one can be incomplete.
    pub(crate) mailboxes: Option<usize>,
    /// Whether all of the messages could be read.
    pub(crate) is_whole: bool,
    /// Lines that were printed about the source, such as the names of files that contain no mail.
    pub(crate) lines: Vec<String>,
    /// Files of the source, by verdict. `None` if they are not known, because a stopped run has read a part of the source.
    #[serde(default)]
    pub(crate) files: Option<FileCounts>,
    /// Whether the source is an archive without mail.
    #[serde(default)]
    pub(crate) lacks_mail: bool,
    /// Names of the files and messages that were not read completely, with the reasons.
    #[serde(default)]
    pub(crate) not_read: Vec<(String, String)>,
}

impl ReadSource {
    /// The state before anything was read.
    pub(crate) const NONE: Self = Self {
        mailboxes: None,
        is_whole: true,
        lines: Vec::new(),
        files: None,
        lacks_mail: false,
        not_read: Vec::new(),
    };
}

#[derive(Default, Serialize, Deserialize)]
struct MergeState {
    boot: String,
    command: String,
    /// Stamps of the sources, in the same order.
    stamps: Vec<String>,
    sources: Vec<ReadSource>,
    folders: Vec<String>,
    position: Position,
}

/// The directory of an index that outlasts a stopped run. Only one process at a time uses it.
pub(crate) struct SavedIndex {
    directory: PathBuf,
    _lock: File,
    state: MergeState,
    /// Stamps of all sources of this run, taken before reading.
    all_stamps: Vec<String>,
    /// Stamps of the sources that may be recorded as read.
    stamps: Vec<String>,
    /// Whether the state on disk lists its last source as read in part.
    is_partial: bool,
}

impl SavedIndex {
    /// Opens the directory for a result, or creates it. `command` contains everything that determines the content of the
    /// index, apart from the files of the `sources`. Returns `None` if nothing can be kept: a source cannot be read
    /// twice, another process uses the directory, it belongs to another user, or the system is not Linux.
    pub(crate) fn open(target: &Path, command: &str, sources: &[PathBuf]) -> Option<Self> {
        let boot = boot()?;
        let stamps = stamps(sources, target)?;
        let directory = directory_of(target)?;
        sweep(folder_of(target), directory.file_name()?, &boot);
        let lock = locked(&directory)?;
        // The result itself does not exist, so its record is left over from an older run.
        platform::absent(fs::remove_file(record_beside(&directory))).ok()?;
        let mut saved = Self {
            directory,
            _lock: lock,
            state: MergeState::default(),
            all_stamps: stamps.clone(),
            stamps,
            is_partial: false,
        };
        let state = read_state(&saved.directory).filter(|state| {
            state.boot == boot
                && state.command == command
                && state.sources.len() == state.stamps.len()
                && saved.stamps.starts_with(&state.stamps)
                && saved.has_files(&state.position)
        });
        match state {
            Some(state) => {
                let last = state.sources.last();
                saved.is_partial = last.is_some_and(|source| source.mailboxes.is_some());
                saved.state = state;
            }
            None => {
                // The files are overwritten from now on, so the old state must not be used again.
                platform::absent(fs::remove_file(saved.directory.join("state"))).ok()?;
                saved.state.boot = boot;
                saved.state.command = command.to_owned();
            }
        }
        Some(saved)
    }

    /// Returns whether the files are at least as long as they were when the state was written.
    fn has_files(&self, position: &Position) -> bool {
        let length = |name: &str| {
            let found = fs::symlink_metadata(self.directory.join(name)).ok();
            found.filter(|it| it.is_file()).map(|it| it.len())
        };
        length("spool").is_some_and(|length| length >= position.spool)
            && length("records").is_some_and(|length| length >= end(&position.runs))
    }

    /// Returns the sources that a stopped run has read, in order. The last one may have been read in part.
    pub(crate) fn sources(&self) -> &[ReadSource] {
        &self.state.sources
    }

    /// Returns the folder names of the sources that were read.
    pub(crate) fn folders(&self) -> &[String] {
        &self.state.folders
    }

    /// Opens the index with the messages of the sources that were read, and removes all other messages from its files.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn index(&self) -> Result<MergeIndex, Error> {
        let position = &self.state.position;
        let open = |name: &str, length: u64| {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            let file = platform::private(&mut options).open(self.directory.join(name))?;
            file.set_len(length)?;
            io::Result::Ok(file)
        };
        let files = || {
            let spool = open("spool", position.spool)?;
            Ok((spool, open("records", end(&position.runs))?))
        };
        let files = files().map_err(Error::cannot_write(self.directory.display()))?;
        MergeIndex::continued(folder_of(&self.directory), files, position)
    }

    /// Records that the source with this number, or a part of it, was read. The state is only written to its file if at
    /// least [`WORTH_SAVING`] bytes were read since the last time, or if the file declares this source to be read in part
    /// and the source is now complete.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn note(
        &mut self,
        number: usize,
        read: ReadSource,
        index: &mut MergeIndex,
        folders: &[String],
    ) -> Result<(), Error> {
        if read.lines.len() > MOST_LINES {
            // The source printed too many lines to be recorded. The state lists sources without gaps, so no later
            // source can be recorded either: truncating the stamps makes further calls return early.
            self.stamps.truncate(number);
        }
        if number >= self.stamps.len() {
            return Ok(());
        }
        let is_partial = read.mailboxes.is_some();
        self.state.sources.truncate(number);
        self.state.sources.push(read);
        self.state.stamps = self.stamps.get(..=number).unwrap_or_default().to_vec();
        let is_completed = self.is_partial && !is_partial;
        if index.bytes() - self.state.position.bytes < WORTH_SAVING && !is_completed {
            return Ok(());
        }
        self.is_partial = is_partial;
        self.state.position = index.save()?;
        self.state.folders = folders.to_vec();
        let write = || {
            let new = self.directory.join("state.new");
            let mut options = File::options();
            options.write(true).create(true).truncate(true);
            let mut file = platform::private(&mut options).open(&new)?;
            file.write_all(&serde_json::to_vec(&self.state)?)?;
            fs::rename(new, self.directory.join("state"))
        };
        write().map_err(Error::cannot_write(self.directory.display()))
    }

    /// Returns the stamps of all sources, from before they were read.
    pub(super) fn stamps_of_sources(&self) -> &[String] {
        &self.all_stamps
    }

    /// Returns the path of the record of the finished result.
    pub(super) fn record_path(&self) -> PathBuf {
        record_beside(&self.directory)
    }

    /// Ends the run. If `is_stopped` is true and a state was written, the directory is kept, and this returns its path.
    /// Otherwise the directory is removed.
    pub(crate) fn end(self, is_stopped: bool) -> Option<PathBuf> {
        if is_stopped && self.directory.join("state").exists() {
            return Some(self.directory);
        }
        // Errors are ignored: a remaining directory is harmless, and the next run for this result uses it. The record
        // of the result remains, so that a run killed here leaves it.
        let _ = fs::remove_dir_all(&self.directory);
        None
    }
}

/// Removes the directory of a killed run whose result is finished, unless another process uses it.
pub(super) fn discard(target: &Path) {
    if let Some(directory) = directory_of(target)
        && let Some(_lock) = locked_if_there(&directory)
    {
        // An error is ignored: a remaining directory is harmless.
        let _ = fs::remove_dir_all(directory);
    }
}

/// Returns the path of the record of the finished result `target`.
pub(super) fn record_of(target: &Path) -> Option<PathBuf> {
    Some(record_beside(&directory_of(target)?))
}

fn record_beside(directory: &Path) -> PathBuf {
    directory.with_extension("result")
}

fn directory_of(target: &Path) -> Option<PathBuf> {
    Some(folder_of(target).join(name(target.file_name()?)))
}

fn read_state(directory: &Path) -> Option<MergeState> {
    let path = directory.join("state");
    if fs::metadata(&path).ok()?.len() > LONGEST_STATE {
        return None;
    }
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Removes useless directories of stopped runs with other results (`own` is the directory of this result). A directory
/// is useless if it contains no state, because its run was killed before it wrote a state, or if the system was
/// restarted after the state was written.
fn sweep(folder: &Path, own: &OsStr, boot: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_other = name.as_bytes().starts_with(PREFIX.as_bytes()) && name != own;
        if is_other
            && let Some(_lock) = locked_if_there(&entry.path())
            && read_state(&entry.path()).is_none_or(|state| state.boot != boot)
        {
            // An error is ignored: a remaining directory is harmless.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns the length of a file with these runs, in bytes.
fn end(runs: &[(u64, u64)]) -> u64 {
    runs.last().map_or(0, |(at, count)| {
        at.saturating_add(count.saturating_mul(record::LENGTH as u64))
    })
}

fn name(target: &OsStr) -> String {
    let digest = Sha256::digest(target.as_bytes());
    let digits: String = digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{PREFIX}{digits}")
}

/// Creates the directory if it is missing, and locks it. Returns `None` if it belongs to another user or can be read by
/// one, because its content becomes mail of the result, or if another process uses it.
fn locked(directory: &Path) -> Option<File> {
    if let Err(why) = platform::private_folder(directory)
        && why.kind() != io::ErrorKind::AlreadyExists
    {
        return None;
    }
    locked_if_there(directory)
}

fn locked_if_there(directory: &Path) -> Option<File> {
    let found = fs::symlink_metadata(directory).ok()?;
    if !found.is_dir() || !platform::is_ours(&found) || !platform::is_private(&found) {
        return None;
    }
    let path = directory.join("lock");
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    let lock = platform::private(&mut options).open(&path).ok()?;
    match platform::try_lock_handle(&lock) {
        Ok(true) => {}
        Ok(false) => return None,
        Err(_) => {
            // The file system has no locks, so no other process can be using the directory. Errors are ignored, because
            // an empty directory is harmless.
            let _ = fs::remove_file(&path).and_then(|()| fs::remove_dir(directory));
            return None;
        }
    }
    // Another process may have removed the directory just before the file was locked.
    fs::symlink_metadata(&path).ok()?;
    Some(lock)
}
