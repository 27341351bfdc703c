//! Compares a new result with the file or directory that already has its name.
//!
//! After a system crash, the results of the interrupted run can be truncated, or contain zeros for bytes that were
//! never written to the disk. Such a file contains nothing that the new result lacks, so replacing it loses nothing. A
//! file with any other content is never replaced.

use std::ffi::OsStr;
use std::fs::{self, File, FileType};
use std::io;
use std::path::Path;

use crate::mailbox::file::filled_by;
use crate::mailbox::identity::FileIdentity;
use crate::mailbox::temporary;
use crate::platform::FileExt as _;

const PIECE: usize = 128 << 10;

pub(crate) enum ExistingResult {
    /// The existing file has the same content as the new result.
    Same(File),
    /// The existing file is an incomplete copy of the new result: some of its bytes, or zeros in their place. It can be
    /// replaced.
    Part(FileIdentity),
    Other,
}

/// Compares the file at `path` with the content of `new`.
pub(crate) fn compared(path: &Path, new: &File) -> io::Result<ExistingResult> {
    let named = fs::symlink_metadata(path)?;
    if !named.is_file() {
        return Ok(ExistingResult::Other);
    }
    let old = File::open(path)?;
    let found = old.metadata()?;
    let (identity, length) = (FileIdentity::of(&found), new.metadata()?.len());
    if identity != FileIdentity::of(&named) || identity.length > length {
        return Ok(ExistingResult::Other);
    }
    let (mut one, mut other) = (vec![0; PIECE], vec![0; PIECE]);
    let (mut at, mut is_same) = (0, identity.length == length);
    loop {
        let read = filled_by(&mut one, |rest, before| old.read_at(rest, at + before))?;
        if read == 0 {
            break;
        }
        let wanted = &mut other[..read];
        let given = filled_by(wanted, |rest, before| new.read_at(rest, at + before))?;
        let pairs = one[..read].iter().zip(&wanted[..given]);
        if given < read || pairs.clone().any(|(old, new)| old != new && *old != 0) {
            return Ok(ExistingResult::Other);
        }
        is_same &= one[..read] == other[..read];
        at += read as u64;
    }
    Ok(if is_same && at == length {
        ExistingResult::Same(old)
    } else {
        ExistingResult::Part(identity)
    })
}

/// Returns whether the directory of an existing result contains the same files as the new one, with the same contents. The
/// existing directory can also contain the mailboxes of subfolders, which are results of their own, and temporary files of
/// embody.
pub(crate) fn is_same_result(new: &Path, existing: &Path) -> io::Result<bool> {
    let is_in_new = |name: &OsStr| fs::symlink_metadata(new.join(name)).is_ok();
    let is_counted = |name: &OsStr, kind: FileType| {
        is_in_new(name) || !kind.is_dir() && !temporary::is_temporary(name)
    };
    is_same(new, existing, &is_counted)
}

/// Returns whether two directories contain the same files with the same contents. In `other`, only the entries count for
/// which `is_counted` returns true.
fn is_same(
    one: &Path,
    other: &Path,
    is_counted: &dyn Fn(&OsStr, FileType) -> bool,
) -> io::Result<bool> {
    let names = |folder: &Path| -> io::Result<Vec<_>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            names.push((entry.file_name(), entry.file_type()?));
        }
        names.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(names)
    };
    if !fs::symlink_metadata(other)?.is_dir() {
        return Ok(false);
    }
    let (listed, mut others) = (names(one)?, names(other)?);
    others.retain(|(name, kind)| is_counted(name, *kind));
    if listed != others {
        return Ok(false);
    }
    for (name, kind) in listed {
        let (one, other) = (one.join(&name), other.join(&name));
        let is_same = if kind.is_dir() {
            is_same(&one, &other, &|_, _| true)?
        } else {
            let new = File::open(&one)?;
            kind.is_file() && matches!(compared(&other, &new)?, ExistingResult::Same(_))
        };
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn existing_file_is_replaced_only_if_it_is_a_part_of_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut new = tempfile::tempfile_in(folder.path()).unwrap();
        let long = vec![b'x'; PIECE + 5];
        new.write_all(&long).unwrap();
        let mut with_zeros = long.clone();
        with_zeros[7..9000].fill(0);
        let mut changed = long.clone();
        changed[PIECE + 1] = b'y';
        let truncated = &long[..PIECE - 3];
        let cases: [(&[u8], &str); 7] = [
            (&long, "same"),
            (truncated, "part"),
            (b"", "part"),
            (&with_zeros, "part"),
            (&changed, "other"),
            (b"somebody's", "other"),
            (&[long.as_slice(), b"x"].concat(), "other"),
        ];
        for (old, expected) in cases {
            let path = folder.path().join("old");
            fs::write(&path, old).unwrap();
            let found = match compared(&path, &new).unwrap() {
                ExistingResult::Same(_) => "same",
                ExistingResult::Part(_) => "part",
                ExistingResult::Other => "other",
            };
            assert_eq!(found, expected, "{} bytes", old.len());
        }
        assert!(matches!(
            compared(folder.path(), &new).unwrap(),
            ExistingResult::Other
        ));
    }
}
