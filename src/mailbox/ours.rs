//! Folders of ours that may lie among mail: stores (docs/store.md) and caches (docs/cache.md). What is in them may look
//! like mail, and changed it would not be what its name says any more.
//!
//! People have folders of all kinds, and mail must not be passed over for where it lies. So a folder is a store or a cache only
//! if nothing is in it but what those write, each under the name that they give it; the first object of a store is
//! hashed besides, since others name files by hashes of other things. Anything else is walked through, and in it each file
//! that is mail and bears the name of an object is hashed: if the name is right, it is one.

use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::not_mail::NotMail;

/// What a folder is called that no walk goes into.
const STORE: NotMail = NotMail::Ours("a store of detached attachments");
const CACHE: NotMail = NotMail::Ours("a cache of embody");
const BESIDE_OBJECTS: NotMail =
    NotMail::Beside("the lock of a store, its list of users, or what is being written there");

const LOCK: &str = ".lock";
const STORE_TEMPORARIES: &str = ".tmp";
const STORE_PREFIX: &[u8] = b"embody-";
const STORE_USERS: &str = ".users";

const CACHE_TAG: &str = "CACHEDIR.TAG";
const CACHE_TAG_PREFIX: &[u8] = b".tag-";

/// How the line in a cache's tag starts that says whose it is.
const CACHE_WORDS: &str = "# This folder is a cache of embody ";

/// What a folder is, if it is one of ours.
pub(super) fn folder(path: &Path) -> Option<NotMail> {
    if is_store(path) {
        return Some(STORE);
    }
    is_cache(path).then_some(CACHE)
}

/// What a file is, if it is of a store in which other things lie as well, and no object.
pub(super) fn file(path: &Path) -> Option<NotMail> {
    let name = path.file_name()?;
    let folder = path.parent()?;
    let is_lock =
        || name == LOCK && is_empty_file(path) && is_plain_folder(&folder.join(STORE_TEMPORARIES));
    let is_temporary = || {
        folder.file_name() == Some(OsStr::new(STORE_TEMPORARIES))
            && is_serial(name, STORE_PREFIX)
            && is_empty_file(&folder.with_file_name(LOCK))
    };
    let is_user = || {
        folder.file_name() == Some(OsStr::new(STORE_USERS))
            && is_key(name.as_bytes())
            && is_empty_file(&folder.with_file_name(LOCK))
    };
    (is_lock() || is_temporary() || is_user()).then_some(BESIDE_OBJECTS)
}

/// Whether a file is an object of a store, whatever lies beside it. `path` is whole.
///
/// # Errors
/// The file bears the name of one and cannot be read.
pub(super) fn is_object(path: &Path) -> io::Result<bool> {
    let mut names = path.iter().rev().map(OsStr::as_bytes);
    let (Some(name), Some(inner), Some(outer)) = (names.next(), names.next(), names.next()) else {
        return Ok(false);
    };
    let lies_right = Some(outer) == name.get(..2) && Some(inner) == name.get(2..4);
    Ok(is_key(name) && lies_right && is_its_name(path)?)
}

fn is_store(folder: &Path) -> bool {
    if !is_empty_file(&folder.join(LOCK)) || !is_plain_folder(&folder.join(STORE_TEMPORARIES)) {
        return false;
    }
    let first = OnceCell::new();
    let is_of_store = |entry: &DirEntry| match entry.file_name() {
        name if name == LOCK => true,
        name if name == STORE_TEMPORARIES => {
            all_files(&entry.path(), |name| is_serial(name, STORE_PREFIX))
        }
        name if name == STORE_USERS => all_files(&entry.path(), |name| is_key(name.as_bytes())),
        _ => are_keys(entry, b"", 2, &first),
    };
    all(folder, is_of_store)
        && first
            .get()
            .is_some_and(|path| is_its_name(path).is_ok_and(|it| it))
}

fn is_cache(folder: &Path) -> bool {
    if !is_tag(&folder.join(CACHE_TAG)) {
        return false;
    }
    all(folder, |entry| {
        let (name, path) = (entry.file_name(), entry.path());
        let areas = |levels| {
            all(&path, |entry| {
                are_keys(entry, b"", levels, &OnceCell::new())
            })
        };
        match name.as_bytes() {
            b"keys" | b"hosts" => areas(1),
            b"bodies" => areas(2),
            b"tmp" => all_files(&path, |name| is_serial(name, b"")),
            b"size" => is_file(entry),
            _ => is_file(entry) && (name == CACHE_TAG || is_serial(&name, CACHE_TAG_PREFIX)),
        }
    })
}

/// Whether an entry is a folder `ab` in which there are only files that bear a key that begins so; or, with more
/// levels, folders of that kind. The first file is remembered.
fn are_keys(entry: &DirEntry, before: &[u8], levels: usize, first: &OnceCell<PathBuf>) -> bool {
    let name = entry.file_name();
    let digits = [before, name.as_bytes()].concat();
    let is_folder = entry.file_type().is_ok_and(|it| it.is_dir());
    if !is_folder || name.len() != 2 || !is_hex(name.as_bytes()) {
        return false;
    }
    all(&entry.path(), |entry| {
        if levels > 1 {
            return are_keys(entry, &digits, levels - 1, first);
        }
        let name = entry.file_name();
        let is_right =
            is_file(entry) && is_key(name.as_bytes()) && name.as_bytes().starts_with(&digits);
        if is_right {
            first.get_or_init(|| entry.path());
        }
        is_right
    })
}

/// Whether what holds for each entry holds for all.
fn all(folder: &Path, holds: impl Fn(&DirEntry) -> bool) -> bool {
    fs::read_dir(folder)
        .is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(|entry| holds(&entry))))
}

/// Whether there are only files of such names.
fn all_files(folder: &Path, is_name: impl Fn(&OsString) -> bool) -> bool {
    all(folder, |entry| {
        is_file(entry) && is_name(&entry.file_name())
    })
}

fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|it| it.is_file())
}

/// Whether a file is called by a process and a number, behind the prefix.
fn is_serial(name: &OsStr, prefix: &[u8]) -> bool {
    let serial = name.as_bytes().strip_prefix(prefix).unwrap_or_default();
    let mut numbers = serial.split(|&octet| octet == b'-');
    let mut is_number = || {
        let digits = numbers.next().unwrap_or_default();
        !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
    };
    is_number() && is_number() && numbers.next().is_none()
}

/// Whether these are the 64 digits of a key.
fn is_key(name: &[u8]) -> bool {
    name.len() == 64 && is_hex(name)
}

fn is_hex(digits: &[u8]) -> bool {
    let is_digit = |octet: &u8| matches!(octet, b'0'..=b'9' | b'a'..=b'f');
    digits.iter().all(is_digit)
}

/// Whether a file bears the hash of its octets for a name.
fn is_its_name(path: &Path) -> io::Result<bool> {
    let mut hash = Sha256::new();
    io::copy(&mut File::open(path)?, &mut hash)?;
    let digits: String = hash
        .finalize()
        .iter()
        .map(|octet| format!("{octet:02x}"))
        .collect();
    Ok(path.file_name() == Some(OsStr::new(&digits)))
}

fn is_tag(path: &Path) -> bool {
    if !fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        return false;
    }
    let mut text = String::new();
    let read = File::open(path).and_then(|tag| tag.take(1 << 10).read_to_string(&mut text));
    read.is_ok() && text.lines().any(|line| line.starts_with(CACHE_WORDS))
}

/// Whether it is as stores make their lock.
fn is_empty_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() == 0)
}

fn is_plain_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}
