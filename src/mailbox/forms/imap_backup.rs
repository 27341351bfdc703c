//! The index of imap-backup, a program that saves IMAP accounts: `FOLDER.imap` next to `FOLDER.mbox`. It is a JSON object
//! with the flags of each message, and its offset and length in the mbox.
//!
//! imap-backup uses an index only if the messages follow each other without gaps up to the end of the mbox, and if each
//! starts with a `From ` line. The same is required here: otherwise, the flags could belong to other messages.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::mailbox::forms::flags::{FlagIndex, MessageFlags};
use crate::platform::FileExt as _;

/// Maximum size of an index, in bytes. This is enough for a million messages.
const LONGEST: u64 = 256 << 20;

#[derive(Deserialize)]
struct BackupIndex {
    version: f64,
    #[serde(rename = "uid_validity")]
    _uid_validity: u64,
    messages: Vec<IndexedMessage>,
}

#[derive(Deserialize)]
struct IndexedMessage {
    offset: u64,
    length: u64,
    #[serde(default)]
    flags: Vec<String>,
}

/// Returns the path of the index next to an mbox, if there is one.
fn path_beside(mailbox: &Path) -> Option<PathBuf> {
    let path = mailbox.with_extension("imap");
    // A link or a pipe is not read, because it could lead to a file outside the source or never end.
    let metadata = fs::symlink_metadata(&path).ok()?;
    let is_index = metadata.is_file() && metadata.len() <= LONGEST;
    let is_mbox = mailbox.extension().is_some_and(|suffix| suffix == "mbox");
    (is_index && is_mbox).then_some(path)
}

/// Reads the index file next to an mbox. Returns `None` if no index exists or the index cannot be read. If the index does
/// not match the mbox, returns the path of the index as an error.
pub(crate) fn index_beside(mailbox: &Path, file: &File) -> Result<Option<FlagIndex>, PathBuf> {
    let found = path_beside(mailbox).and_then(|path| Some((fs::read(&path).ok()?, path)));
    let Some((octets, path)) = found else {
        return Ok(None);
    };
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    index(&octets, file, length).ok_or(path).map(Some)
}

/// Returns whether an index next to an mbox belongs to it.
pub(crate) fn has_index(mailbox: &Path) -> bool {
    let found = path_beside(mailbox).and_then(|_| File::open(mailbox).ok());
    found.is_some_and(|file| matches!(index_beside(mailbox, &file), Ok(Some(_))))
}

/// A message of an mbox whose length has changed.
pub(crate) struct LengthChange {
    /// Offset of the message before the change.
    pub(crate) offset: u64,
    pub(crate) before: u64,
    pub(crate) after: u64,
}

/// Creates the index for a copy of an mbox at `target`. Returns the path of the original index, and the path and the
/// content of the new index. `changes` are the messages whose lengths changed, in the order of the messages. Returns
/// `None` if the original has no index, or if imap-backup would not find the index of the copy.
pub(crate) fn index_of_copy(
    mailbox: &Path,
    target: &Path,
    changes: &[LengthChange],
) -> Option<(PathBuf, PathBuf, Vec<u8>)> {
    let path = path_beside(mailbox)?;
    let mut index: Value = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
    let mut changes = changes.iter().peekable();
    let mut added = 0_i64;
    for message in index.get_mut("messages")?.as_array_mut()? {
        let offset = message.get("offset")?.as_u64()?;
        *message.get_mut("offset")? = offset.checked_add_signed(added)?.into();
        if let Some(change) = changes.next_if(|change| change.offset == offset) {
            let more = change.after.cast_signed() - change.before.cast_signed();
            let length = message.get("length")?.as_u64()?;
            *message.get_mut("length")? = length.checked_add_signed(more)?.into();
            added += more;
        }
    }
    let is_mbox = target.extension().is_some_and(|suffix| suffix == "mbox");
    let is_complete = is_mbox && changes.next().is_none();
    let copy = target.with_extension("imap");
    is_complete.then_some((path, copy, serde_json::to_vec(&index).ok()?))
}

fn index(octets: &[u8], file: &File, length: u64) -> Option<FlagIndex> {
    let index: BackupIndex = serde_json::from_slice(octets).ok()?;
    // Version 2 has no flags. A later version may have another meaning.
    if !(3.0..4.0).contains(&index.version) {
        return None;
    }
    let (mut flags, mut end) = (FlagIndex::new(), 0);
    for message in index.messages {
        let mut start = [0; 5];
        let read = file.read_at(&mut start, message.offset).ok()?;
        if message.offset != end || start.get(..read) != Some(b"From ") {
            return None;
        }
        end = message.offset.checked_add(message.length)?;
        let names = message.flags.iter().map(String::as_str);
        flags.insert(message.offset, MessageFlags::of_imap(names));
    }
    (end == length).then_some(flags)
}
