//! Mailboxes of Eudora on Windows (`In.mbx`, CR LF) and on the Mac (`In`, bare CR), and the files next to them. The
//! format is not documented, so these rules follow the files that Eudora writes.
//! * A line `From ???@??? ` with the date of asctime(3) starts each message, whatever line precedes it. All other lines
//!   that start with `From ` are text. No lines are quoted, and Content-Length has no meaning.
//! * On the Mac, a bare CR ends a line. It is read as an LF, so that offsets are the same as in the file.
//! * `In.toc` is the index of `In.mbx`: 104 bytes, then 218 bytes for each message in any order. Numbers are
//!   little-endian. The index is used only if each of its messages starts and ends where a message does in the mailbox.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use memchr::memchr2;
use memchr::memmem::Finder;

use crate::mailbox::forms::flags::{FlagIndex, Flags};
use crate::mailbox::forms::separator::is_plausible;
use crate::platform::{FileExt as _, OsStrExt as _};
use crate::span::front;

const OPENING: &[u8] = b"From ???@??? ";
static SEPARATOR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(OPENING));

pub(crate) const LOOK_AHEAD: usize = 64;

pub(crate) fn starts(bytes: &[u8]) -> bool {
    let line = front(bytes, LOOK_AHEAD);
    let end = memchr2(b'\r', b'\n', line).unwrap_or(line.len());
    line.starts_with(OPENING) && is_plausible(&line[..end])
}

pub(crate) fn ends_lines_with_cr(start: &[u8]) -> bool {
    let end = memchr2(b'\r', b'\n', start).and_then(|end| start.get(end..));
    end.is_some_and(|end| end.starts_with(b"\r") && !end.starts_with(b"\r\n"))
}

/// Replaces each bare CR by an LF. `next` is the byte after `bytes`, if it is known: a CR before an LF is not bare.
pub(crate) fn with_line_feeds(bytes: &mut [u8], next: Option<u8>) {
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\r', &bytes[at..]) {
        at += found;
        if bytes.get(at + 1).copied().or(next) != Some(b'\n') {
            bytes[at] = b'\n';
        }
        at += 1;
    }
}

/// Returns the start of the next message. The line ending before it (an LF or CR) is at `from` or later. A message that
/// starts in the last bytes is found only if no more bytes follow (`whole`), because its first line may be incomplete.
pub(crate) fn next_message(bytes: &[u8], from: usize, whole: bool) -> Option<usize> {
    let searched = &bytes[from..];
    let hits = SEPARATOR.find_iter(searched).filter(|&hit| hit > 0);
    let mut places = hits.map(|hit| from + hit);
    let is_next = |&start: &usize| {
        let (before, rest) = bytes.split_at(start);
        matches!(before.last(), Some(b'\n' | b'\r'))
            && (whole || rest.len() >= LOOK_AHEAD)
            && starts(rest)
    };
    places.find(is_next)
}

/// Maximum size of an index, in bytes. This is enough for a million messages.
const LONGEST: u64 = 256 << 20;
const HEAD: usize = 104;
const ENTRY: usize = 218;

/// Reads the index file next to a mailbox, which contains the flags. Returns `None` if no index exists or the index cannot
/// be read. If the index does not match the mailbox, returns the path of the index as an error.
pub(crate) fn index_beside(mailbox: &Path, file: &File) -> Result<Option<FlagIndex>, PathBuf> {
    let names = ["toc", "TOC", "Toc"].map(|suffix| mailbox.with_extension(suffix));
    let is_index = |path: &PathBuf| {
        // A link or a pipe is not read, because it could lead to a file outside the source or never end.
        let metadata = fs::symlink_metadata(path);
        metadata.is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LONGEST)
    };
    let path = names.into_iter().find(is_index);
    let Some((octets, path)) = path.and_then(|path| Some((fs::read(&path).ok()?, path))) else {
        return Ok(None);
    };
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    index(&octets, file, length).ok_or(path).map(Some)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eudora_message_starts_only_at_a_eudora_separator_line() {
        let opening = "From ???@??? Tue May 14 12:00:00 2024";
        for (behind, is_next) in [
            ("\r\nA: b\r\n\r\nx\r\n", true),
            ("\nx\n>From ???@??? Tue May 14 12:00:00 2024\n", true),
            ("\nx\nFrom a@b Tue May 14 12:00:00 2024\n", false),
            ("\nx\nFrom ???@??? here on\n", false),
        ] {
            let text = format!("{opening}{behind}");
            let next = if is_next { opening } else { "" };
            let found = next_message(format!("{text}{next}").as_bytes(), 0, true);
            assert_eq!(found, is_next.then_some(text.len()), "{text}");
            assert!(starts(text.as_bytes()));
        }
        assert!(!starts(b"From ???@???"));
        assert!(starts(b"From ???@??? Tue May 14 12:00:00 2024\rA: b\r"));
    }

    #[test]
    fn a_bare_cr_is_a_line_end_wherever_a_window_ends() {
        let text = b"a\rb\r\r\nc\r\r";
        for cut in 0..=text.len() {
            let mut read = text.to_vec();
            let (front, back) = read.split_at_mut(cut);
            with_line_feeds(front, back.first().copied());
            with_line_feeds(back, None);
            assert_eq!(read, b"a\nb\n\r\nc\n\n", "{cut}");
        }
        assert!(ends_lines_with_cr(b"a\rb\n") && !ends_lines_with_cr(b"a\r\nb\r"));
    }
}
