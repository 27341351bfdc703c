//! Record of a finished result. It is written just before the result gets its final name, and removed at the end of the
//! run. If the run is killed in between, the next run of the same command finds the result and its record, and has
//! nothing to do.
//!
//! The record is the file `.embody-merge-DIGEST.result` (mode 0600) next to the result. It contains the command, the
//! stamps of the sources, and the identity of the result's files (inode, size, time). A file that another program wrote
//! has another identity, so it is not mistaken for the result.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::saved::{SavedIndex, discard, record_of};
use super::stamp::stamps;
use crate::mailbox::{NamedResult, boot, folder_of, sweep_temporary};
use crate::platform::{self, MetadataExt as _, OsStrExt as _};

/// Maximum length of a record in bytes.
const LONGEST_RECORD: u64 = 16 << 20;

/// Texts that a run prints at its end.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub(crate) struct FinishedReport {
    /// Lines that were printed about the sources, such as the names of damaged files.
    pub(crate) lines: Vec<String>,
    pub(crate) text: String,
    pub(crate) json: String,
    pub(crate) is_damaged: bool,
    /// Indices of the sources that are archives without mail.
    #[serde(default)]
    pub(crate) without_mail: Vec<usize>,
}

#[derive(Serialize, Deserialize)]
struct ResultRecord {
    boot: String,
    command: String,
    stamps: Vec<String>,
    files: Vec<FileOfResult>,
    report: FinishedReport,
}

/// A file or directory of the result. Paths are bytes, because they need not be UTF-8.
#[derive(Serialize, Deserialize)]
struct FileOfResult {
    temporary: Vec<u8>,
    target: Vec<u8>,
    identity: (u64, u64, u64, i64, i64),
}

impl FileOfResult {
    fn of(named: &NamedResult) -> io::Result<Self> {
        let bytes =
            |path: &Path| std::path::absolute(path).map(|it| it.as_os_str().as_bytes().to_vec());
        Ok(Self {
            temporary: bytes(&named.temporary)?,
            target: bytes(&named.target)?,
            identity: identity(&fs::symlink_metadata(&named.temporary)?),
        })
    }

    fn is_at(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|found| identity(&found) == self.identity)
    }

    /// Returns whether the file has its final name. If only its temporary name is left, it gets the final name now.
    fn is_in_place(&self) -> bool {
        let [temporary, target] = [&self.temporary, &self.target].map(|bytes| path_of(bytes));
        if self.is_at(&target) {
            return true;
        }
        let is_free = platform::absent(fs::symlink_metadata(&target)).is_ok_and(|it| it.is_none());
        is_free
            && self.is_at(&temporary)
            && if temporary.is_dir() {
                platform::rename_folder(&temporary, &target).is_ok()
            } else {
                platform::rename_to_new(&temporary, &target).is_ok()
            }
    }
}

fn path_of(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}

/// Returns an identity of a file that survives renaming, but not replacing or changing the file.
fn identity(found: &Metadata) -> (u64, u64, u64, i64, i64) {
    let length = if found.is_dir() { 0 } else { found.len() };
    let time = (found.mtime(), found.mtime_nsec());
    (found.dev(), found.ino(), length, time.0, time.1)
}

/// Writes the record of a result that is complete and still has its temporary name. `command` contains everything that
/// determines the result, apart from the files of the sources.
pub(crate) fn record(
    saved: &SavedIndex,
    command: &str,
    named: &[NamedResult],
    report: &FinishedReport,
) -> io::Result<()> {
    let lines = saved.sources().iter().flat_map(|it| it.lines.clone());
    let record = ResultRecord {
        boot: boot().unwrap_or_default(),
        command: command.to_owned(),
        stamps: saved.stamps_of_sources().to_vec(),
        files: named
            .iter()
            .map(FileOfResult::of)
            .collect::<io::Result<_>>()?,
        report: FinishedReport {
            lines: lines.collect(),
            ..report.clone()
        },
    };
    let path = saved.record_path();
    // An incomplete record is not valid JSON and is ignored, so writing need not be atomic.
    platform::absent(fs::remove_file(&path))?;
    let mut options = File::options();
    options.write(true).create_new(true);
    let mut file = platform::private(&mut options).open(&path)?;
    file.write_all(&serde_json::to_vec(&record)?)
}

/// Returns the report of an earlier run of the same command that was killed after it had finished the result. Its
/// files are removed, except for the record. Returns `None` if there is no such run, if the sources have changed since, or if the files at
/// `target` are not its result.
pub(crate) fn finished(
    target: &Path,
    command: &str,
    sources: &[PathBuf],
) -> Option<FinishedReport> {
    let path = record_of(target)?;
    let found = fs::symlink_metadata(&path).ok()?;
    let is_own = found.is_file() && platform::is_ours(&found) && platform::is_private(&found);
    if !is_own || found.len() > LONGEST_RECORD {
        return None;
    }
    let record: ResultRecord = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
    let is_same = boot().is_some_and(|boot| boot == record.boot)
        && record.command == command
        && stamps(sources, target).is_some_and(|stamps| stamps == record.stamps)
        && !record.files.is_empty();
    if !is_same || !record.files.iter().all(FileOfResult::is_in_place) {
        return None;
    }
    sweep_temporary(folder_of(target));
    discard(target);
    Some(record.report)
}

/// Removes the record of the result at `target`. This is the last action of a run: without the record, the same command does not
/// recognise the result as its own.
pub(crate) fn remove_record(target: &Path) {
    if let Some(path) = record_of(target) {
        // An error is ignored: a remaining record is harmless, because it describes only this result.
        let _ = fs::remove_file(path);
    }
}
