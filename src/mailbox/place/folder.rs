//! Paths in a Maildir or an MH folder: those of its messages, of the directory for new messages, and of the directories
//! that are synced. This module also parses the file names of messages in a Maildir, which contain flags and sizes
//! (`,S=` in bytes, `,W=` in bytes with CR LF line endings).

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::mailbox::find::{self, Kind};
use crate::mailbox::forms::Format;
use crate::mailbox::forms::flags::Flags;
use crate::platform::{BEFORE_FLAGS, OsStrExt as _, OsStringExt as _};

pub(crate) struct MessageFolder {
    pub(crate) folder: PathBuf,
    pub(crate) is_mh: bool,
    pub(crate) part: Option<OsString>,
    pub(super) name: Option<OsString>,
}

impl MessageFolder {
    /// Returns the Maildir around `path`, if `path` is its `cur` or `new` or a message in one of them.
    pub(crate) fn within(path: &Path, format: Format) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        let (part, name) = if path.is_dir() {
            (path.as_path(), None)
        } else {
            (path.parent()?, path.file_name())
        };
        let (folder, part) = (part.parent()?, part.file_name()?);
        let is_part = (part == "cur" || part == "new") && find::is_maildir(folder, format);
        is_part.then(|| Self {
            folder: folder.to_owned(),
            is_mh: false,
            part: Some(part.to_owned()),
            name: name.map(OsStr::to_owned),
        })
    }

    /// Returns the folder of this `kind` at `path`. If `path` is the `cur` or `new` of a Maildir or a message in it,
    /// this is the Maildir, restricted to that part.
    pub(crate) fn of(path: &Path, kind: Kind, format: Format) -> Self {
        let is_mh = kind == Kind::Mh;
        let part = (!is_mh).then(|| Self::within(path, format)).flatten();
        part.unwrap_or_else(|| Self {
            folder: path.to_owned(),
            is_mh,
            part: None,
            name: None,
        })
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.name.is_none()
    }

    /// Returns the directory in which messages are written before they are moved to `folder`.
    pub(crate) fn writing_in(&self, folder: &Path) -> PathBuf {
        if self.is_mh {
            folder.to_owned()
        } else {
            folder.join("tmp")
        }
    }

    /// Returns the path of a converted message and the directory in which it is written. A Maildir is converted to a
    /// Maildir; `cur` or `new` alone becomes a directory of messages.
    pub(crate) fn target(&self, to: &Path, name: &Path) -> (PathBuf, PathBuf) {
        match (&self.part, name.file_name()) {
            (Some(_), Some(name)) => (to.join(name), to.to_owned()),
            _ => (to.join(name), self.writing_in(to)),
        }
    }

    pub(crate) fn synced_in(&self, folder: &Path) -> Vec<PathBuf> {
        if self.is_mh {
            vec![folder.to_owned()]
        } else {
            ["cur", "new"].map(|part| folder.join(part)).into()
        }
    }
}

/// Returns the flags in the name of a message in a Maildir. Returns `None` if the name cannot contain flags, so that
/// the header must be read. Thunderbird stores flags only in the header: its file names have no letters.
pub(crate) fn noted_in_name(name: &Path) -> Option<Flags> {
    let bytes = name.file_name().unwrap_or_default().as_bytes();
    if flags_at(bytes).is_none() && bytes.to_ascii_lowercase().ends_with(b".eml") {
        return None;
    }
    let letters = flags_of(name).map_or(&b""[..], |(_, letters)| letters);
    Some(Flags::of_letters(letters, name.starts_with("cur")))
}

pub(crate) fn resized(path: &Path, content: &[u8]) -> PathBuf {
    let bytes = path.file_name().unwrap_or_default().as_bytes();
    let base = flags_at(bytes).unwrap_or(bytes.len());
    let (base, flags) = bytes.split_at(base);
    let mut out = Vec::with_capacity(bytes.len() + 4);
    for (index, field) in base.split(|&b| b == b',').enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let number = |value: &[u8]| !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        match field.split_at_checked(2) {
            Some((b"S=", value)) if index > 0 && number(value) => {
                out.extend_from_slice(format!("S={}", content.len()).as_bytes());
            }
            Some((b"W=", value)) if index > 0 && number(value) => {
                let bare = memchr::memchr_iter(b'\n', content)
                    .filter(|&at| at == 0 || content.get(at - 1) != Some(&b'\r'))
                    .count();
                out.extend_from_slice(format!("W={}", content.len() + bare).as_bytes());
            }
            _ => out.extend_from_slice(field),
        }
    }
    out.extend_from_slice(flags);
    path.with_file_name(OsString::from_vec(out))
}

pub(crate) fn base_of(name: &[u8]) -> &[u8] {
    let (name, _) = name.split_at(flags_at(name).unwrap_or(name.len()));
    name.split(|&b| b == b',').next().unwrap_or(name)
}

/// Returns the position of the character before the flags: a colon, or the character that programs use on file systems
/// that do not allow colons. That character may also occur in a name without flags, so the text after it must look like
/// flags.
fn flags_at(name: &[u8]) -> Option<usize> {
    memchr::memchr(b':', name).or_else(|| {
        let at = name.iter().rposition(|b| BEFORE_FLAGS.contains(b))?;
        let letters = name.get(at + 1..)?.strip_prefix(b"2,")?;
        letters.iter().all(u8::is_ascii_alphabetic).then_some(at)
    })
}

/// Replaces the colon in a file name by `separator`, for file systems that do not allow colons.
pub(crate) fn with_separator(path: &Path, separator: char) -> PathBuf {
    let name = path.file_name().unwrap_or_default().as_bytes();
    match memchr::memchr(b':', name) {
        Some(at) if separator != ':' => {
            let mut name = name.to_vec();
            let mut units = [0; 4];
            name.splice(at..=at, separator.encode_utf8(&mut units).bytes());
            path.with_file_name(OsString::from_vec(name))
        }
        _ => path.into(),
    }
}

/// Returns `path` with the flags of two copies of a message, of which only one is kept. The result is marked as deleted
/// only if both copies are. If one copy is in `cur`, the result is in `cur` too, because only file names in `cur`
/// contain flags.
pub(crate) fn with_flags_of(path: &Path, other: &Path) -> PathBuf {
    let (Some((name, one)), Some((_, two))) = (flags_of(path), flags_of(other)) else {
        return path.into();
    };
    let is_trashed = one.contains(&b'T') && two.contains(&b'T');
    let mut flags = [one, two].concat();
    flags.retain(|&flag| flag != b'T' || is_trashed);
    flags.sort_unstable();
    flags.dedup();
    let folders = [path, other].map(|path| path.parent().unwrap_or(Path::new("")));
    let [one_part, two_part] = folders.map(Path::file_name);
    if one_part == two_part && flags == one {
        return path.into();
    }
    let folder = if one_part == Some(OsStr::new("cur")) {
        folders[0]
    } else {
        folders[1]
    };
    let separator = [path, other].into_iter().find_map(|path| {
        let name = path.file_name()?.as_bytes();
        name.get(flags_at(name)?..)?.first().copied()
    });
    let name = [name, &[separator.unwrap_or(b':')], b"2,", flags.as_slice()].concat();
    folder.join(OsString::from_vec(name))
}

pub(crate) fn flags_of(path: &Path) -> Option<(&[u8], &[u8])> {
    let name = path.file_name()?.as_bytes();
    match memchr::memmem::find(name, b":2,") {
        Some(at) => Some((name.get(..at)?, name.get(at + 3..)?)),
        None if name.contains(&b':') => None,
        None => match flags_at(name) {
            Some(at) => Some((name.get(..at)?, name.get(at + 3..)?)),
            None => Some((name, b"")),
        },
    }
}

/// Returns the flags of a message, from its file name or its header fields. Returns `None` if its mailbox cannot store
/// flags: the file is not in `cur` or `new`, is not an mbox, and the header has no field for flags. `is_mbox` is needed
/// because the directory of an mbox may also be named `cur`.
#[cfg(feature = "cli")]
pub(crate) fn flags_of_message(file: &Path, content: &[u8], is_mbox: bool) -> Option<Flags> {
    let of_fields = || Flags::of_fields(content);
    let part = file
        .parent()
        .and_then(Path::file_name)
        .filter(|part| !is_mbox && (*part == "cur" || *part == "new"));
    if let (Some(part), Some(name)) = (part, file.file_name()) {
        let noted = noted_in_name(&Path::new(part).join(name));
        return Some(noted.unwrap_or_else(of_fields));
    }
    (is_mbox || Flags::has_fields(content)).then(of_fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_a_name_are_corrected_and_nothing_else_is() {
        for (before, after) in [
            ("1.M2P3.host,S=10,W=11:2,FS", "1.M2P3.host,S=6,W=8:2,FS"),
            ("1.M2P3.host:2,S", "1.M2P3.host:2,S"),
            ("1.S=5.host,S=x,W=:2,S=1", "1.S=5.host,S=x,W=:2,S=1"),
            ("S=1,W=2", "S=1,W=8"),
            ("1.host,S=10;2,FS", "1.host,S=6;2,FS"),
            ("1.host;2,S=1,S=10", "1.host;2,S=6,S=6"),
        ] {
            let got = resized(Path::new(before), b"a\nb\r\n\n");
            assert_eq!(got, Path::new(after));
        }
    }

    #[test]
    fn flags_are_read_behind_what_stands_for_a_colon_where_there_can_be_none() {
        for (name, base, flags) in [
            ("1.host:2,FS", "1.host", Some("FS")),
            ("1.host;2,FS", "1.host", Some("FS")),
            ("1.host!2,", "1.host", Some("")),
            ("1.host,S=4;2,S", "1.host", Some("S")),
            ("1!2;2,S", "1!2", Some("S")),
            ("1!2,3.host", "1!2", Some("")),
            ("1;3,S", "1;3", Some("")),
            ("1.host:1,x", "1.host", None),
            ("1!2,S:1,x", "1!2", None),
        ] {
            assert_eq!(base_of(name.as_bytes()), base.as_bytes(), "{name}");
            let found = flags_of(Path::new(name)).map(|(_, flags)| flags);
            assert_eq!(found, flags.map(str::as_bytes), "{name}");
        }
        let united = with_flags_of(Path::new("cur/1;2,S"), Path::new("new/1"));
        assert_eq!(united, Path::new("cur/1;2,S"));
        let united = with_flags_of(Path::new("new/1"), Path::new("cur/1!2,S"));
        assert_eq!(united, Path::new("cur/1!2,S"));
        for (separator, name) in [(':', "cur/1:2,S"), (';', "cur/1;2,S")] {
            assert_eq!(
                with_separator(Path::new("cur/1:2,S"), separator),
                Path::new(name)
            );
        }
    }
}
