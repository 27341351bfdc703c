//! What the first octets of a file say that it is.

use memchr::memchr;

use super::archive;
use super::forms::{self, FolderForm};
use super::not_mail::NotMail;

/// What something is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A file of messages: an mbox, or what a form divides. Whoever walks it sees which.
    Mbox,
    /// A folder with `cur` and `new`.
    Maildir,
    /// Another folder with a message a file.
    Folder(&'static FolderForm),
    /// An archive, whose mboxes are read as one.
    Archive,
    /// A message in a file of its own.
    Eml,
}

impl Kind {
    /// Whether each of its messages is a file.
    pub(crate) fn is_folder(self) -> bool {
        matches!(self, Self::Maildir | Self::Folder(_))
    }
}

/// What a file is that starts so, whatever it is said to be.
///
/// # Errors
/// What it is instead of mail.
pub(super) fn kind_of_start(start: &[u8]) -> Result<Kind, NotMail> {
    if start.is_empty() {
        return Ok(Kind::Mbox);
    }
    for (magic, other) in forms::OTHERS {
        if start.starts_with(magic) {
            return Err(*other);
        }
    }
    let blanks = start
        .iter()
        .take_while(|&&b| b == b'\n' || b == b'\r')
        .count();
    let text = start.get(blanks..).unwrap_or_default();
    if text.starts_with(b"From ") || forms::division_of(start).is_some() {
        return Ok(Kind::Mbox);
    }
    if archive::is_archive(start) {
        return Ok(Kind::Archive);
    }
    let header = forms::behind_front(start).unwrap_or(start);
    if blanks == 0 && starts_with_mail_header(header) {
        return Ok(Kind::Eml);
    }
    Err(if is_binary(start) {
        NotMail::Binary
    } else {
        NotMail::Text
    })
}

/// Whether no header field and no separator is in the first lines, and there are NULs or more than
/// three control characters in ten octets.
fn is_binary(start: &[u8]) -> bool {
    const LINES: usize = 32;
    let is_field = |line: &[u8]| {
        let name = line
            .iter()
            .take_while(|&&b| b.is_ascii_graphic() && b != b':')
            .count();
        name > 0 && line.get(name) == Some(&b':')
    };
    let mut lines = start.split(|&byte| byte == b'\n').take(LINES);
    if lines.any(|line| line.starts_with(b"From ") || is_field(line)) {
        return false;
    }
    // Line ends, tabs, form feeds, and the escapes of ISO-2022 stand in text.
    let is_control = |&&byte: &&u8| {
        byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r' | b'\x0c' | b'\x1b')
    };
    start.contains(&0) || start.iter().filter(is_control).count() * 10 > start.len() * 3
}

/// Fields of which every mail has at least one, and files that are no mail seldom any.
const MAIL_FIELDS: [&[u8]; 13] = [
    b"received",
    b"return-path",
    b"delivered-to",
    b"date",
    b"from",
    b"sender",
    b"to",
    b"subject",
    b"message-id",
    b"mime-version",
    b"content-type",
    b"x-mozilla-status",
    b"x-envelope-from",
];

fn starts_with_mail_header(start: &[u8]) -> bool {
    let mut known = false;
    let mut rest = start;
    let mut first = true;
    loop {
        let end = memchr(b'\n', rest);
        let line = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return known;
        }
        let folded = line.starts_with(b" ") || line.starts_with(b"\t");
        if !folded {
            let name = line
                .iter()
                .take_while(|&&b| b.is_ascii_graphic() && b != b':')
                .count();
            let (name, value) = line.split_at(name);
            if name.is_empty() || !value.trim_ascii_start().starts_with(b":") {
                return known && end.is_none();
            }
            known |= MAIL_FIELDS
                .iter()
                .any(|field| name.eq_ignore_ascii_case(field));
        } else if first {
            return false;
        }
        first = false;
        match end {
            Some(end) => rest = rest.get(end + 1..).unwrap_or_default(),
            None => return known,
        }
    }
}
