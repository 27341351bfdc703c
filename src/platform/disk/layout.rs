//! File names in an attachment store and in a cache, and how such a directory is recognised.
//!
//! ```text
//! store                                      cache
//! ab/cd/SHA256   object                      bodies/ab/cd/SHA256   content
//! .lock          empty, locked               keys/ab/SHA256        response to a URL
//! .tmp/          files being written         hosts/ab/SHA256       pauses of a host
//! .users/SHA256  mailbox that uses it        size                  total size, locked
//!                                            tmp/                  files being written
//!                                            CACHEDIR.TAG          marks the directory as a cache
//!                                            made                  cache of one run: files of its output
//! ```
//!
//! A search for mail skips stores and caches, so a directory that is mistaken for one would lose mail. A directory
//! therefore counts as a store or a cache only if every file in it has a name of that layout. Other programs also name
//! files by hashes, so the first object of a store is hashed and compared with its name.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::fs::{self, DirEntry, File};
use std::io::{self, Read as _};
#[cfg(unix)]
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

#[cfg(unix)]
use super::files::{open_file, open_root};
use crate::key::Key;
use crate::platform::OsStrExt as _;

pub(crate) const STORE_LOCK: &str = ".lock";
pub(crate) const STORE_TEMPORARIES: &str = ".tmp";
pub(crate) const STORE_PREFIX: &str = "embody-";
pub(crate) const STORE_USERS: &str = ".users";

/// The file that marks a directory as a cache, so that backup programs skip it (<https://bford.info/cachedir/>).
pub(crate) const CACHE_TAG: &str = "CACHEDIR.TAG";
/// Prefix of a temporary file. The content of [`CACHE_TAG`] is first written to it, and then it is renamed.
pub(crate) const CACHE_TAGGING: &str = ".tag-";
pub(crate) const CACHE_WORDS: &str = "# This folder is a cache of embody (--cache).";
pub(crate) const RUN_WORDS: &str =
    "# This folder keeps the answers of a run of embody that is not finished.";
pub(crate) const RUN_MADE: &str = "made";
/// Directory of temporary files. Their names have no prefix.
pub(crate) const CACHE_TEMPORARIES: &str = "tmp";
pub(crate) const CACHE_SIZE: &str = "size";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Area {
    Keys,
    Hosts,
    Bodies,
}

impl Area {
    pub(crate) const ALL: [Self; 3] = [Self::Keys, Self::Hosts, Self::Bodies];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Keys => "keys",
            Self::Hosts => "hosts",
            Self::Bodies => "bodies",
        }
    }

    pub(crate) fn depth(self) -> usize {
        match self {
            Self::Keys | Self::Hosts => 1,
            Self::Bodies => 2,
        }
    }

    /// Returns the names of the nested directories that contain the file of a key, from the outermost to the innermost.
    /// In the cache of a single run, all files of an area are in one directory, because creating a directory takes
    /// longer than creating a file.
    pub(crate) fn folders(
        self,
        key: &Key,
        is_of_run: bool,
    ) -> impl Iterator<Item = String> + use<> {
        let depth = if is_of_run { 0 } else { self.depth() };
        let beneath = key.folders().into_iter().take(depth);
        std::iter::once(self.name().to_owned()).chain(beneath)
    }
}

pub(crate) fn is_of_keys(name: &[u8]) -> bool {
    let is_digit = |octet: &u8| matches!(octet, b'0'..=b'9' | b'a'..=b'f');
    name.len() == 2 && name.iter().all(is_digit)
}

/// Returns whether a name is that of a temporary file: a prefix, the process id, and a number.
pub(crate) fn is_temporary(name: &[u8], prefix: &str) -> bool {
    let serial = name.strip_prefix(prefix.as_bytes()).unwrap_or_default();
    let mut numbers = serial.split(|&octet| octet == b'-');
    let mut is_number = || {
        let digits = numbers.next().unwrap_or_default();
        !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
    };
    is_number() && is_number() && numbers.next().is_none()
}

pub(crate) fn is_store(folder: &Path) -> bool {
    if !is_empty_file(&folder.join(STORE_LOCK)) || !is_folder(&folder.join(STORE_TEMPORARIES)) {
        return false;
    }
    let first = OnceCell::new();
    let is_of_store = |entry: &DirEntry| match entry.file_name() {
        name if name == STORE_LOCK => true,
        name if name == STORE_TEMPORARIES => {
            all_files(&entry.path(), |name| is_temporary(name, STORE_PREFIX))
        }
        name if name == STORE_USERS => all_files(&entry.path(), is_key),
        _ => are_keys(entry, b"", 2, &first),
    };
    all(folder, is_of_store)
        && first
            .get()
            .is_some_and(|path| matches!(is_its_name(path), Ok(true)))
}

/// Returns whether a directory may be an attachment store. This check accepts more directories than [`is_store`]:
/// * an empty directory;
/// * a store that also contains other files;
/// * a store without its lock file and its directory of temporary files, because a copy of a store can lack these.
///
/// The check reads the names of files, not their contents. It enters only directories whose names occur in a store.
pub(crate) fn may_be_store(folder: &Path) -> io::Result<bool> {
    if is_empty_file(&folder.join(STORE_LOCK)) && is_folder(&folder.join(STORE_TEMPORARIES)) {
        return Ok(true);
    }
    if !fs::metadata(folder)?.is_dir() {
        return Ok(false);
    }
    let (mut folders, mut has_others) = (Vec::new(), false);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if is_of_keys(name.as_bytes()) && entry.file_type()?.is_dir() {
            folders.push(entry.path());
        } else {
            has_others |= !is_name_of_store(name.as_bytes());
        }
    }
    for outer in folders {
        for inner in fs::read_dir(&outer)? {
            let inner = inner?;
            if !is_of_keys(inner.file_name().as_bytes()) || !inner.file_type()?.is_dir() {
                has_others = true;
                continue;
            }
            let folder = inner.path();
            for object in fs::read_dir(&folder)? {
                let path = object?.path();
                if Key::parse(&path.file_name().unwrap_or_default().to_string_lossy())
                    .is_some_and(|key| path.ends_with(key.path()))
                {
                    return Ok(true);
                }
                has_others = true;
            }
        }
    }
    Ok(!has_others)
}

/// Returns whether a name at the top of a directory is part of the layout of a store.
pub(crate) fn is_name_of_store(name: &[u8]) -> bool {
    let names = [STORE_LOCK, STORE_TEMPORARIES, STORE_USERS];
    is_of_keys(name) || names.iter().any(|known| name == known.as_bytes())
}

pub(crate) fn is_cache(folder: &Path) -> bool {
    let Ok(opened) = open_root(folder) else {
        return false;
    };
    let is_of_run = has_tag(&opened, RUN_WORDS);
    if !is_of_run && !has_tag(&opened, CACHE_WORDS) {
        return false;
    }
    all(folder, |entry| {
        let (name, path) = (entry.file_name(), entry.path());
        match Area::ALL.into_iter().find(|area| name == area.name()) {
            Some(_) if is_of_run => all_files(&path, is_key),
            Some(area) => {
                let first = OnceCell::new();
                all(&path, |entry| are_keys(entry, b"", area.depth(), &first))
            }
            None if name == CACHE_TEMPORARIES => all_files(&path, |name| is_temporary(name, "")),
            None => {
                let is_known =
                    [CACHE_SIZE, CACHE_TAG, RUN_MADE].contains(&&*name.to_string_lossy());
                is_file(entry) && (is_known || is_temporary(name.as_bytes(), CACHE_TAGGING))
            }
        }
    })
}

#[cfg(not(unix))]
fn open_root(folder: &Path) -> io::Result<&Path> {
    Ok(folder)
}

/// Returns whether a directory is marked as a cache. Such a directory must not become a store, because backup programs
/// skip it.
#[cfg(unix)]
pub(crate) fn is_tagged(folder: impl AsFd) -> bool {
    has_tag(&folder, CACHE_WORDS) || has_tag(&folder, RUN_WORDS)
}

#[cfg(unix)]
pub(crate) fn has_tag(folder: impl AsFd, words: &str) -> bool {
    open_file(folder, CACHE_TAG).is_ok_and(|tag| says(&tag, words))
}

#[cfg(not(unix))]
pub fn has_tag(folder: &Path, words: &str) -> bool {
    File::open(folder.join(CACHE_TAG)).is_ok_and(|tag| says(&tag, words))
}

pub(crate) fn says(tag: &File, words: &str) -> bool {
    let mut text = String::new();
    let read = tag.take(1 << 10).read_to_string(&mut text);
    read.is_ok() && text.lines().any(|line| line == words)
}

pub(crate) fn is_of_store(path: &Path) -> bool {
    let (Some(name), Some(folder)) = (path.file_name(), path.parent()) else {
        return false;
    };
    let is_in = |beside: &str| {
        folder.file_name() == Some(OsStr::new(beside))
            && is_empty_file(&folder.with_file_name(STORE_LOCK))
    };
    let octets = name.as_bytes();
    let is_lock = || is_empty_file(path) && is_folder(&folder.join(STORE_TEMPORARIES));
    name == STORE_LOCK && is_lock()
        || is_temporary(octets, STORE_PREFIX) && is_in(STORE_TEMPORARIES)
        || is_key(octets) && is_in(STORE_USERS)
}

pub(crate) fn is_object(path: &Path) -> io::Result<bool> {
    let mut names = path.iter().rev().map(OsStr::as_bytes);
    let (Some(name), Some(inner), Some(outer)) = (names.next(), names.next(), names.next()) else {
        return Ok(false);
    };
    let lies_right = Some(outer) == name.get(..2) && Some(inner) == name.get(2..4);
    Ok(is_key(name) && lies_right && is_its_name(path)?)
}

fn are_keys(entry: &DirEntry, before: &[u8], levels: usize, first: &OnceCell<PathBuf>) -> bool {
    let name = entry.file_name();
    let digits = [before, name.as_bytes()].concat();
    if !entry.file_type().is_ok_and(|it| it.is_dir()) || !is_of_keys(name.as_bytes()) {
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

fn all(folder: &Path, holds: impl Fn(&DirEntry) -> bool) -> bool {
    fs::read_dir(folder)
        .is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(|entry| holds(&entry))))
}

fn all_files(folder: &Path, is_name: impl Fn(&[u8]) -> bool) -> bool {
    all(folder, |entry| {
        is_file(entry) && is_name(entry.file_name().as_bytes())
    })
}

fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|it| it.is_file())
}

fn is_empty_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() == 0)
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

fn is_key(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(|name| Key::parse(name).is_some())
}

fn is_its_name(path: &Path) -> io::Result<bool> {
    let key = Key::of_file(&File::open(path)?)?.to_string();
    Ok(path.file_name() == Some(OsStr::new(&key)))
}
