//! Paths in a Maildir or an MH folder: those of its messages, of the directory for new messages, and of the directories
//! that are synced. This module also parses the file names of messages in a Maildir, which contain flags and sizes
//! (`,S=` in bytes, `,W=` in bytes with CR LF line endings).

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use crate::mailbox::find;
use crate::mailbox::forms::Format;
use crate::mailbox::forms::flags::{Flags, MessageFlags};
use crate::mailbox::forms::kind::StartKind;
use crate::platform::{BEFORE_FLAGS, OsStrExt as _, OsStringExt as _};
use crate::span::split_while;

#[derive(Clone)]
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
    pub(crate) fn of(path: &Path, kind: StartKind, format: Format) -> Self {
        let is_mh = kind == StartKind::Mh;
        let part = (!is_mh).then(|| Self::within(path, format)).flatten();
        part.unwrap_or_else(|| Self {
            folder: path.to_owned(),
            is_mh,
            part: None,
            name: None,
        })
    }

    /// Returns the Maildir at `folder`.
    pub(crate) fn maildir(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            is_mh: false,
            part: None,
            name: None,
        }
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

/// Returns the flags in the name of a message in a Maildir. Returns `None` if the name cannot contain flags, so that the
/// header must be read. Thunderbird and SeaMonkey store flags only in the header: their file names have no letters.
pub(crate) fn noted_in_name(name: &Path, content: &[u8]) -> Option<Flags> {
    let bytes = name.file_name().unwrap_or_default().as_bytes();
    let is_in_cur = name.starts_with("cur");
    let parts = FileName::of_path(name);
    let is_of_thunderbird = || {
        bytes.to_ascii_lowercase().ends_with(b".eml")
            || is_in_cur && MessageFlags::has_fields_of_thunderbird(content)
    };
    if parts.info.is_none() && is_of_thunderbird() {
        return None;
    }
    Some(Flags::of_letters(parts.letters(), is_in_cur))
}

/// The parts of the file name of a message in a Maildir: `BASE:2,FLAGS`.
///
/// File systems of Windows, and programs that copy files for them, do not allow the colon. Programs replace it by any
/// other character, such as `;`, `!`, `_`, the private character U+F03A (Samba, Cygwin) or the full-width colon (rclone),
/// by `%3A`, or by nothing. Some programs also add `.eml`.
#[derive(Clone, Copy)]
pub(super) struct FileName<'n> {
    pub(super) base: &'n [u8],
    /// The colon, or the characters that replace it.
    pub(super) separator: &'n [u8],
    /// Text after the separator. `None` if the name has no separator.
    info: Option<&'n [u8]>,
}

impl<'n> FileName<'n> {
    /// Returns the parts of the name of a message, by its path in the Maildir. A new message has no flags, so a name such as
    /// `1.M2P3.host2,S` is read as one from which the colon was removed only in `cur`.
    pub(super) fn of_path(path: &'n Path) -> Self {
        let name = path.file_name().unwrap_or_default().as_bytes();
        match Self::of(name) {
            parts if parts.separator.is_empty() && !path.starts_with("cur") => Self {
                base: name,
                separator: b"",
                info: None,
            },
            parts => parts,
        }
    }

    pub(super) fn of(name: &'n [u8]) -> Self {
        let colon = memchr::memmem::find(name, b":2,").or_else(|| memchr::memchr(b':', name));
        if let Some(at) = colon {
            return Self::divided(name, at, at + 1);
        }
        let replaced = || {
            let bare = without_suffix(name);
            let comma = memchr::memrchr(b',', bare)?;
            let info = comma.checked_sub(1)?;
            let (before, letters) = (bare.get(..info)?, bare.get(comma + 1..)?);
            if bare.get(info) != Some(&b'2') || !letters.iter().all(u8::is_ascii_alphabetic) {
                return None;
            }
            let last = *before.last()?;
            if last.is_ascii_alphanumeric() && !ends_with_encoded_colon(before) {
                // The colon was removed. Other names can end like this too, so the letters must be flags in their order.
                let is_flag =
                    |letter: &u8| b"DFPRST".contains(letter) || letter.is_ascii_lowercase();
                let are_flags = letters.iter().all(is_flag) && !letters.is_empty();
                let is_sorted = letters.is_sorted_by(|one, other| one < other);
                return (are_flags && is_sorted).then_some((info, info));
            }
            Some((info - last_character(before), info))
        };
        match replaced().filter(|(start, _)| *start > 0) {
            Some((start, info)) => Self::divided(name, start, info),
            None => Self {
                base: name,
                separator: b"",
                info: None,
            },
        }
    }

    fn divided(name: &'n [u8], start: usize, info: usize) -> Self {
        let (before, info) = name.split_at(info);
        let (base, separator) = before.split_at(start);
        Self {
            base,
            separator,
            info: Some(info),
        }
    }

    /// Returns whether the name has a separator and other information than flags, such as `:1,`.
    fn is_experimental(self) -> bool {
        self.info.is_some_and(|info| !info.starts_with(b"2,"))
    }

    /// Returns the letters of flags and keywords. A program may have added other text after them.
    pub(super) fn letters(self) -> &'n [u8] {
        let letters = self.info.and_then(|info| info.strip_prefix(b"2,"));
        split_while(letters.unwrap_or_default(), u8::is_ascii_alphabetic).0
    }

    /// Returns whether other programs read the flags in this name.
    fn is_common(self) -> bool {
        let Some(info) = self.info else {
            return true;
        };
        let is_known = matches!(self.separator, [byte] if BEFORE_FLAGS.contains(byte));
        is_known && without_suffix(info).len() == info.len()
    }
}

/// Returns a file name without `.eml` at its end.
fn without_suffix(name: &[u8]) -> &[u8] {
    match name.split_last_chunk::<4>() {
        Some((bare, suffix)) if suffix.eq_ignore_ascii_case(b".eml") && !bare.is_empty() => bare,
        _ => name,
    }
}

fn ends_with_encoded_colon(before: &[u8]) -> bool {
    before.to_ascii_lowercase().ends_with(b"%3a")
}

/// Returns the length of the last character, in bytes.
fn last_character(before: &[u8]) -> usize {
    if ends_with_encoded_colon(before) {
        return 3;
    }
    let is_character = |length: &usize| {
        let start = before.len().checked_sub(*length);
        let bytes = start.and_then(|start| before.get(start..));
        let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
        text.is_some_and(|text| text.chars().count() == 1)
    };
    (1..=4).find(is_character).unwrap_or(1)
}

/// Returns the path of a message of a Maildir with a name whose flags all programs read. Returns `None` if the name is
/// already such a name. `noted` contains the flags of the header and the letters of their keywords, if the name cannot
/// contain flags.
pub(crate) fn with_common_name(path: &Path, noted: Option<(Flags, &str)>) -> Option<PathBuf> {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let parts = FileName::of(name);
    let Some((flags, keywords)) = noted else {
        let info = without_suffix(parts.info.unwrap_or_default());
        let common = [parts.base, b":", info].concat();
        return (!parts.is_common()).then(|| path.with_file_name(OsString::from_vec(common)));
    };
    let base = without_suffix(name);
    if !flags.is_in_cur() && keywords.is_empty() {
        return Some(Path::new("new").join(OsStr::from_bytes(base)));
    }
    let info = format!(":2,{}{keywords}", flags.letters());
    let name = OsString::from_vec([base, info.as_bytes()].concat());
    Some(Path::new("cur").join(name))
}

/// Returns the part before the flags of the file name that [`with_common_name`] gives a message.
fn common_base(path: &Path) -> &[u8] {
    let parts = FileName::of_path(path);
    if parts.info.is_some() {
        parts.base
    } else {
        without_suffix(parts.base)
    }
}

/// Returns new bases for those messages that would get the base of another message from [`with_common_name`], such as
/// `1.host` for `1.host_2,S` next to `1.host:2,`. Mail programs know a message by its base, so two messages must not have the
/// same one. A message whose name does not change keeps its base.
pub(crate) fn distinct_bases(names: &[PathBuf]) -> HashMap<PathBuf, Vec<u8>> {
    let changes = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default().as_bytes();
        !FileName::of_path(path).is_common() || without_suffix(name).len() < name.len()
    };
    let (changed, kept): (Vec<&PathBuf>, Vec<&PathBuf>) = names.iter().partition(changes);
    let mut taken: HashSet<Vec<u8>> = HashSet::new();
    if !changed.is_empty() {
        taken.extend(kept.into_iter().map(|path| common_base(path).to_owned()));
    }
    // The next number of each base is remembered, so the time stays linear if thousands of messages have the same base.
    let mut next: HashMap<&[u8], u64> = HashMap::new();
    let mut bases = HashMap::new();
    for path in changed {
        let base = common_base(path);
        let mut wanted = base.to_owned();
        let mut is_numbered = false;
        while !taken.insert(wanted.clone()) {
            let number = next.entry(base).or_insert(1);
            *number += 1;
            // Sizes such as `,S=10` stay at the end of the base.
            let end = memchr::memchr(b',', base).unwrap_or(base.len());
            let (unique, sizes) = base.split_at(end);
            wanted = [unique, format!(".n{number}").as_bytes(), sizes].concat();
            is_numbered = true;
        }
        if is_numbered {
            bases.insert(path.clone(), wanted);
        }
    }
    bases
}

/// Returns `path` with another base in the name of the message.
pub(crate) fn with_base(path: &Path, base: &[u8]) -> PathBuf {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let rest = name.get(FileName::of_path(path).base.len()..);
    let name = [base, rest.unwrap_or_default()].concat();
    path.with_file_name(OsString::from_vec(name))
}

pub(crate) fn resized(path: &Path, content: &[u8]) -> PathBuf {
    let bytes = path.file_name().unwrap_or_default().as_bytes();
    let (base, flags) = bytes.split_at(FileName::of(bytes).base.len());
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

/// Returns the length of a listed message, to limit the memory of a run. The file name can contain it (`,S=1234`), which saves a
/// system call for each message. Returns 0 for a message that was renamed since.
pub(crate) fn length_of_listed(folder: &Path, name: &Path) -> u64 {
    size_in_name(name).unwrap_or_else(|| {
        let found = fs::metadata(folder.join(name));
        found.map_or(0, |found| found.len())
    })
}

fn size_in_name(path: &Path) -> Option<u64> {
    let base = FileName::of_path(path).base;
    let fields = base.split(|&b| b == b',').skip(1);
    let mut sizes = fields.filter_map(|field| field.strip_prefix(b"S="));
    let digits = sizes.find(|it| it.iter().all(u8::is_ascii_digit))?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

pub(crate) fn base_of(name: &[u8]) -> &[u8] {
    let name = FileName::of(name).base;
    name.split(|&b| b == b',').next().unwrap_or(name)
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
        let name = FileName::of(path.file_name()?.as_bytes());
        name.info.map(|_| name.separator)
    });
    let name = [name, separator.unwrap_or(b":"), b"2,", flags.as_slice()].concat();
    folder.join(OsString::from_vec(name))
}

pub(crate) fn flags_of(path: &Path) -> Option<(&[u8], &[u8])> {
    let name = FileName::of(path.file_name()?.as_bytes());
    (!name.is_experimental()).then(|| (name.base, name.letters()))
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
    fn size_in_a_name_is_the_first_field_with_a_number() {
        for (name, size) in [
            ("cur/1.M2P3.host,S=10,W=11:2,FS", Some(10)),
            ("cur/1.M2P3.host:2,S", None),
            ("cur/1.S=5.host,S=x,S=7:2,S=1", Some(7)),
            ("1.host,S=10;2,FS", Some(10)),
            ("1.host,S=", None),
            ("1.host,S=99999999999999999999", None),
            ("S=1", None),
        ] {
            assert_eq!(size_in_name(Path::new(name)), size, "{name}");
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
            ("1.host_2,FRS", "1.host", Some("FRS")),
            ("1.host,S=4=2,Sab", "1.host", Some("Sab")),
            ("1.host%3A2,S", "1.host", Some("S")),
            ("1.host%3a2,", "1.host", Some("")),
            ("1.host\u{f03a}2,FS", "1.host", Some("FS")),
            ("1.host\u{ff1a}2,FS", "1.host", Some("FS")),
            ("1.host,2,S", "1.host", Some("S")),
            ("1.host2,FS", "1.host", Some("FS")),
            ("1.host,S=1262,Sa", "1.host", Some("Sa")),
            ("page2,final", "page2", Some("")),
            ("1.host_2,S.eml", "1.host", Some("S")),
            ("1.host2,FS.EML", "1.host", Some("FS")),
            ("1.host:2,S.eml", "1.host", Some("S")),
            ("1.host:2,S,x", "1.host", Some("S")),
            ("_2,S", "_2", Some("")),
            ("1.host_1,S", "1.host_1", Some("")),
            ("1.host", "1.host", Some("")),
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
