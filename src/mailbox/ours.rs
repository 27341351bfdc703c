//! Folders of ours that may lie among mail: stores (docs/store.md) and caches (docs/cache.md). What is in them may look
//! like mail, and changed it would not be what its name says any more.
//!
//! A store is known by its layout: the file `.lock`, the folder `.tmp`, and beside them only folders `ab`, with
//! only folders `cd` in them. Its objects are known by their names also where other things lie beside those folders.

use std::ffi::OsStr;
use std::fs::{self, DirEntry, File};
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::not_mail::NotMail;

/// What a folder is called that no walk goes into.
const STORE: NotMail = NotMail::Beside("a store of detached attachments");
const CACHE: NotMail = NotMail::Beside("a cache of embody");
const OBJECT: NotMail = NotMail::Beside("an object of a store of detached attachments");

/// How the line in a cache's tag starts that says whose it is.
const CACHE_WORDS: &str = "# This folder is a cache of embody ";

/// What a folder is, if it is one of ours.
pub(super) fn folder(path: &Path) -> Option<NotMail> {
    if is_store(path) {
        return Some(STORE);
    }
    is_cache(path).then_some(CACHE)
}

/// What a file is, if it is one of a store, whatever lies beside it. `path` is whole.
pub(super) fn file(path: &Path) -> Option<NotMail> {
    let name = path.file_name()?.as_bytes();
    let inner = path.parent()?;
    let outer = inner.parent()?;
    let is_key = name.len() == 64 && is_hex(name);
    let is_in = |folder: &Path, digits: Range<usize>| {
        folder.file_name().map(OsStr::as_bytes) == name.get(digits)
    };
    let is_object = is_key && is_in(outer, 0..2) && is_in(inner, 2..4);
    // One that is being written.
    let is_temporary = || {
        let serials = name.strip_prefix(b"embody-").unwrap_or_default();
        let is_serial = |&octet: &u8| octet.is_ascii_digit() || octet == b'-';
        inner.file_name() == Some(OsStr::new(".tmp"))
            && !serials.is_empty()
            && serials.iter().all(is_serial)
            && is_plain_file(&outer.join(".lock"))
    };
    (is_object || is_temporary()).then_some(OBJECT)
}

fn is_store(folder: &Path) -> bool {
    if !is_plain_file(&folder.join(".lock")) || !is_plain_folder(&folder.join(".tmp")) {
        return false;
    }
    all(folder, |entry| {
        let name = entry.file_name();
        name == ".lock" || name == ".tmp" || is_digits(entry) && all(&entry.path(), is_digits)
    })
}

/// Whether what holds for each entry holds for all.
fn all(folder: &Path, holds: impl Fn(&DirEntry) -> bool) -> bool {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    entries.is_ok_and(|entries| entries.iter().all(holds))
}

/// Whether it is a folder with two digits for a name.
fn is_digits(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    name.len() == 2 && is_hex(name.as_bytes()) && entry.file_type().is_ok_and(|it| it.is_dir())
}

fn is_hex(digits: &[u8]) -> bool {
    let is_digit = |octet: &u8| matches!(octet, b'0'..=b'9' | b'a'..=b'f');
    digits.iter().all(is_digit)
}

fn is_cache(folder: &Path) -> bool {
    let tag = folder.join("CACHEDIR.TAG");
    if !is_plain_file(&tag) {
        return false;
    }
    let mut text = String::new();
    let read = File::open(tag).and_then(|tag| tag.take(1 << 10).read_to_string(&mut text));
    read.is_ok() && text.lines().any(|line| line.starts_with(CACHE_WORDS))
}

fn is_plain_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

fn is_plain_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}
