//! What a path holds: found by looking, never by a name alone.
//!
//! * A folder with `cur` and `new` in it is a Maildir; the Maildirs within it (Maildir++'s
//!   `.Folder`, or plain nested ones) are found as well.
//! * A file that starts with `From `, perhaps behind empty lines, is an mbox; so is an empty file.
//! * A file that starts with header fields, one of which every mail has some of, is a message.
//! * In a folder, other files are skipped and counted; given by name, they are an error that says
//!   what they are instead. Symbolic links are followed when given by name only.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use memchr::memchr;

use super::{cannot_read, replace};
use crate::error::Error;

/// Bytes looked at to tell what a file is.
const LOOKED_AT: u64 = 64 << 10;

/// What the sources are said to be: `--format`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Format {
    /// Look.
    #[default]
    Auto,
    /// mbox files.
    Mbox,
    /// Maildirs.
    Maildir,
    /// Single messages.
    Eml,
}

/// What something is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// An mbox file.
    Mbox,
    /// A folder with `cur` and `new`.
    Maildir,
    /// A message in a file of its own.
    Eml,
}

/// A mailbox or message found.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Found {
    /// Where it is.
    pub path: PathBuf,
    /// The same, seen from the source; empty for the source itself.
    pub relative: PathBuf,
    /// What it is.
    pub kind: Kind,
}

/// Everything found in a source.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Finds {
    /// Sorted by path.
    pub mailboxes: Vec<Found>,
    /// Files that hold no mail.
    pub skipped_files: u64,
}

/// Looks at `source`.
///
/// # Errors
/// [`Error::Read`] if something cannot be looked at; [`Error::NotAMailbox`] if there is no mail.
pub fn find(source: &Path, format: Format) -> Result<Finds, Error> {
    let metadata = fs::metadata(source).map_err(cannot_read(source))?;
    if metadata.is_dir() {
        return in_folder(source, format);
    }
    if !metadata.is_file() {
        return Err(not_a_mailbox(source, "neither a file nor a folder"));
    }
    let kind = kind_of_file(source, format)?.map_err(|why| not_a_mailbox(source, why))?;
    Ok(Finds {
        mailboxes: vec![Found {
            path: source.into(),
            relative: PathBuf::new(),
            kind,
        }],
        skipped_files: 0,
    })
}

fn not_a_mailbox(path: &Path, why: &str) -> Error {
    Error::NotAMailbox {
        path: path.into(),
        why: why.into(),
    }
}

fn in_folder(source: &Path, format: Format) -> Result<Finds, Error> {
    let mut finds = Finds::default();
    let mut folders = BTreeSet::from([PathBuf::new()]);
    while let Some(relative) = folders.pop_first() {
        let path = source.join(&relative);
        let is_maildir = is_maildir(&path);
        if is_maildir && matches!(format, Format::Auto | Format::Maildir) {
            finds.mailboxes.push(Found {
                path: path.clone(),
                relative: relative.clone(),
                kind: Kind::Maildir,
            });
        }
        for entry in fs::read_dir(&path).map_err(cannot_read(&path))? {
            let entry = entry.map_err(cannot_read(&path))?;
            let name = entry.file_name();
            let kind = entry.file_type().map_err(cannot_read(&path))?;
            let relative = relative.join(&name);
            let own = name == "cur" || name == "new" || name == "tmp";
            if kind.is_dir() {
                if !(is_maildir && own) {
                    folders.insert(relative);
                }
                continue;
            }
            if !kind.is_file() || replace::is_temporary(&name) {
                continue;
            }
            let path = entry.path();
            // Beside cur and new there are only indexes, whatever they look like.
            let kind = if is_maildir || format == Format::Maildir {
                Err("an index")
            } else {
                kind_of_file(&path, format)?
            };
            match kind {
                Ok(kind) => finds.mailboxes.push(Found {
                    path,
                    relative,
                    kind,
                }),
                Err(_) => finds.skipped_files += 1,
            }
        }
    }
    if finds.mailboxes.is_empty() {
        let why = match format {
            Format::Maildir => "not a Maildir: no cur and new in it, nor in a folder of it",
            Format::Mbox => "a folder without an mbox file in it",
            Format::Eml => "a folder without a message in it",
            Format::Auto => "a folder without mail: no Maildir, mbox file or message in it",
        };
        return Err(not_a_mailbox(source, why));
    }
    finds.mailboxes.sort();
    Ok(finds)
}

/// Whether `folder` has what makes a Maildir.
pub(super) fn is_maildir(folder: &Path) -> bool {
    folder.join("cur").is_dir() && folder.join("new").is_dir()
}

fn kind_of_file(path: &Path, format: Format) -> Result<Result<Kind, &'static str>, Error> {
    let mut start = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LOOKED_AT).read_to_end(&mut start))
        .map_err(cannot_read(path))?;
    Ok(match format {
        Format::Eml => Ok(Kind::Eml),
        Format::Maildir => Err("not a Maildir: a file, and a Maildir is a folder"),
        Format::Auto | Format::Mbox => match kind_of(&start) {
            Ok(Kind::Eml) if format == Format::Mbox => {
                Err("not an mbox: it starts with a message, not with a \"From \" line")
            }
            kind => kind,
        },
    })
}

/// What a file that starts with `start` is, or is instead.
fn kind_of(start: &[u8]) -> Result<Kind, &'static str> {
    const OTHERS: [(&[u8], &str); 12] = [
        (
            b"\x01\x01\x01\x01\n",
            "an MMDF mailbox (^A^A^A^A lines), which embody does not convert",
        ),
        (
            b"\x01\x01\x01\x01\r\n",
            "an MMDF mailbox (^A^A^A^A lines), which embody does not convert",
        ),
        (
            b"BABYL OPTIONS",
            "a Babyl mailbox, which embody does not convert",
        ),
        (b"*mbx*", "an MBX mailbox, which embody does not convert"),
        (
            b"!BDN",
            "an Outlook PST file, which embody does not convert",
        ),
        (
            b"\xcf\xad\x12\xfe",
            "an Outlook Express file, which embody does not convert",
        ),
        (b"\x1f\x8b", "compressed (gzip); decompress it first"),
        (
            b"\x28\xb5\x2f\xfd",
            "compressed (zstd); decompress it first",
        ),
        (b"BZh", "compressed (bzip2); decompress it first"),
        (b"\xfd7zXZ\0", "compressed (xz); decompress it first"),
        (b"PK\x03\x04", "a zip archive; unpack it first"),
        (b"SQLite format 3\0", "a database, not a mailbox"),
    ];
    if start.is_empty() {
        return Ok(Kind::Mbox);
    }
    for (magic, what) in OTHERS {
        if start.starts_with(magic) {
            return Err(what);
        }
    }
    let blanks = start
        .iter()
        .take_while(|&&b| b == b'\n' || b == b'\r')
        .count();
    let text = start.get(blanks..).unwrap_or_default();
    if text.starts_with(b"From ") {
        return Ok(Kind::Mbox);
    }
    if blanks == 0 && starts_with_mail_header(start) {
        return Ok(Kind::Eml);
    }
    Err("not a mailbox: it starts neither with a \"From \" line nor with a mail header")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_is_shows_in_its_start() {
        assert_eq!(kind_of(b""), Ok(Kind::Mbox));
        assert_eq!(kind_of(b"From a\nSubject: x\n\n"), Ok(Kind::Mbox));
        assert_eq!(kind_of(b"\r\n\nFrom a\n"), Ok(Kind::Mbox));
        assert_eq!(kind_of(b"From: a@b\nSubject: x\n\n"), Ok(Kind::Eml));
        assert_eq!(kind_of(b"Received: a\r\n\tb\r\n\r\nFrom "), Ok(Kind::Eml));
        assert_eq!(kind_of(b"Subject: no end"), Ok(Kind::Eml));
        for other in [
            b"\x01\x01\x01\x01\nFrom: a\n".as_slice(),
            b"Dear all,\nSubject: x\n",
            b"title: x\nlayout: post\n\n",
            b" From a\n",
            b"\n\n",
            b"\x1f\x8b\x08",
            b"\0\0",
        ] {
            assert!(kind_of(other).is_err(), "{}", other.escape_ascii());
        }
    }
}
