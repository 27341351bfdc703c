//! The sizes in the names of a Maildir's messages: `,S=` the octets, `,W=` the octets with CRLF line ends.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// `path` with the sizes in its name corrected to those of `content`.
pub(crate) fn resized(path: &Path, content: &[u8]) -> PathBuf {
    let Some(name) = path.file_name() else {
        return path.into();
    };
    path.with_file_name(resized_name(name, content))
}

fn resized_name(name: &OsStr, content: &[u8]) -> OsString {
    let bytes = name.as_bytes();
    let base = bytes.iter().position(|&b| b == b':').unwrap_or(bytes.len());
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
                out.extend_from_slice(format!("W={}", wire_length(content)).as_bytes());
            }
            _ => out.extend_from_slice(field),
        }
    }
    out.extend_from_slice(flags);
    OsString::from_vec(out)
}

/// The length with every line end as CRLF.
fn wire_length(content: &[u8]) -> usize {
    let bare = memchr::memchr_iter(b'\n', content)
        .filter(|&at| at == 0 || content.get(at - 1) != Some(&b'\r'))
        .count();
    content.len() + bare
}

/// What stays of a message's name whatever becomes of its sizes and flags.
pub(crate) fn base_of(name: &[u8]) -> &[u8] {
    let end = name.iter().position(|b| b",:".contains(b));
    name.get(..end.unwrap_or(name.len())).unwrap_or(name)
}

/// `path`, a message, with the flags of both copies of it; but that it is to be deleted only if both say so. What has
/// flags stands in `cur`.
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
    let folder = match one_part == Some(OsStr::new("cur")) {
        true => folders[0],
        false => folders[1],
    };
    let name = [name, b":2,", flags.as_slice()].concat();
    folder.join(OsString::from_vec(name))
}

/// A message's name without its flags, and these; none if what stands behind the colon is something else.
pub(crate) fn flags_of(path: &Path) -> Option<(&[u8], &[u8])> {
    let name = path.file_name()?.as_bytes();
    match memchr::memmem::find(name, b":2,") {
        Some(at) => Some((name.get(..at)?, name.get(at + 3..)?)),
        None => (!name.contains(&b':')).then_some((name, b"")),
    }
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
        ] {
            let got = resized_name(OsStr::new(before), b"a\nb\r\n\n");
            assert_eq!(got, OsStr::new(after));
        }
    }
}
