//! The files of Eudora next to its mailboxes. Their formats are not documented, so these rules follow the files that Eudora
//! writes.
//!
//! `In.toc` is the index of `In.mbx`: 104 bytes, then 218 bytes for each message in any order. Numbers are little-endian. The
//! index is used only if each of its messages starts and ends where a message does in the mailbox.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::mailbox::forms::eudora::{LOOK_AHEAD, starts};
use crate::mailbox::forms::flags::{FlagIndex, Flags};
use crate::platform::{FileExt as _, OsStrExt as _};

/// Maximum size of an index, in bytes. This is enough for a million messages.
const LONGEST: u64 = 256 << 20;
const HEAD: usize = 104;
const ENTRY: usize = 218;

/// Reads the index file next to a mailbox, which contains the flags. Returns `None` if no index exists or the index cannot
/// be read. If the index does not match the mailbox, returns the path of the index as an error.
pub(crate) fn index_beside(mailbox: &Path, file: &File) -> Result<Option<FlagIndex>, PathBuf> {
    let Some((octets, path)) = read_index(mailbox) else {
        return Ok(None);
    };
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    index(&octets, file, length).ok_or(path).map(Some)
}

/// Reads the index file next to a mailbox. Returns its content and its path.
fn read_index(mailbox: &Path) -> Option<(Vec<u8>, PathBuf)> {
    let names = ["toc", "TOC", "Toc"].map(|suffix| mailbox.with_extension(suffix));
    let is_index = |path: &PathBuf| {
        // A link or a pipe is not read, because it could lead to a file outside the source or never end.
        let metadata = fs::symlink_metadata(path);
        metadata.is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LONGEST)
    };
    let path = names.into_iter().find(is_index)?;
    Some((fs::read(&path).ok()?, path))
}

/// Returns whether the index file next to a mailbox lists messages. An index of an empty mailbox has only its first 104 bytes.
pub(crate) fn lists_messages(mailbox: &Path) -> bool {
    let index = read_index(mailbox);
    let entries = index.as_ref().and_then(|(octets, _)| octets.get(HEAD..));
    entries.is_some_and(|entries| {
        let has_length = |entry: &[u8]| entry.get(4..8).is_some_and(|it| it != [0; 4]);
        !entries.is_empty()
            && entries.len() % ENTRY == 0
            && entries.chunks_exact(ENTRY).all(has_length)
    })
}

fn index(octets: &[u8], file: &File, length: u64) -> Option<FlagIndex> {
    let entries = octets.get(HEAD..)?;
    if entries.len() % ENTRY != 0 {
        return None;
    }
    let entries = entries.chunks_exact(ENTRY).map(|entry| {
        let number = |at: usize| Some(u32::from_le_bytes(*entry.get(at..)?.first_chunk()?));
        let start = u64::from(number(0)?);
        let end = start + u64::from(number(4)?);
        let is_message = |at: u64| {
            let mut opening = [0; LOOK_AHEAD];
            let read = file.read_at(&mut opening, at);
            read.is_ok_and(|read| starts(&opening[..read]))
        };
        if end <= start || !is_message(start) || !(end == length || is_message(end)) {
            return None;
        }
        let (state, priority) = (*entry.get(12)?, *entry.get(16)?);
        Some((start, Flags::of_eudora(state, priority).into()))
    });
    entries.collect()
}

/// Names of directories of Eudora that contain no mailboxes. Attachments in them may look like mailboxes, so these
/// directories are skipped.
const FOLDERS: [&str; 16] = [
    "attach",
    "attachments folder",
    "embedded",
    "eudora items",
    "eudpriv",
    "nickname",
    "nicknames folder",
    "parts folder",
    "plugins",
    "search",
    "signature folder",
    "sigs",
    "spool",
    "spool folder",
    "stationery",
    "stationery folder",
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EudoraFolder {
    has_suffix: bool,
    has_mail_folder: bool,
}

impl EudoraFolder {
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let names: Vec<_> = fs::read_dir(path).ok()?.flatten().collect();
        let has = |is: &dyn Fn(&[u8]) -> bool| {
            let mut names = names.iter().map(fs::DirEntry::file_name);
            names.any(|name| is(&name.as_bytes().to_ascii_lowercase()))
        };
        let has_suffix = has(&|name| name.ends_with(b".mbx"));
        let has_mail_folder = has(&|name| name == b"mail folder");
        let is_windows = has_suffix
            && has(&|name| {
                let known: [&[u8]; 3] = [b"eudora.ini", b"attach", b"embedded"];
                known.contains(&name) || name.ends_with(b".toc")
            });
        let is_mac = has(&|name| name.starts_with(b"eudora ") || name == b"attachments folder")
            && (has_mail_folder || has(&|name| name == b"in"));
        let is_eudora = is_windows || is_mac;
        is_eudora.then_some(Self {
            has_suffix: is_windows,
            has_mail_folder,
        })
    }

    /// Returns a description if Eudora keeps this file or directory next to its mailboxes and it contains no mail. The
    /// run skips it and reports the description. Returns `None` for all others.
    pub(crate) fn aside(
        self,
        name: &OsStr,
        is_folder: bool,
        is_empty: bool,
    ) -> Option<&'static str> {
        let lower = name.as_bytes().to_ascii_lowercase();
        if is_folder {
            let is_known = FOLDERS.iter().any(|known| known.as_bytes() == lower);
            return is_known
                .then_some("a folder that Eudora keeps next to its mailboxes, without mail");
        }
        if lower.ends_with(b".toc") {
            return Some("an index of Eudora");
        }
        let is_mailbox = if self.has_suffix {
            lower.ends_with(b".mbx")
        } else {
            !self.has_mail_folder
        };
        (is_empty && !is_mailbox).then_some("an empty file that Eudora keeps next to its mailboxes")
    }
}
