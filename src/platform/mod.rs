//! The differences between operating systems. A `cfg` of an operating system is in this module, unless it concerns a
//! whole command.
//!
//! If a system or a file system lacks a function, this module has a substitute or returns an error with the reason.
//! docs/platforms.md contains the list. No function here needs /proc.

// Operations on attachment stores and caches. On Windows, only the code that recognises such directories is used.
#[cfg(any(unix, windows))]
pub(crate) mod disk;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::unix::*;
#[cfg(windows)]
pub use self::windows::*;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::Path;

pub(crate) fn absent<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Returns the entries of a directory. Returns `None` if it does not exist, or if it is not a directory.
pub(crate) fn entries_of(folder: &Path) -> io::Result<Option<fs::ReadDir>> {
    match fs::read_dir(folder) {
        Err(why) if why.kind() == io::ErrorKind::NotADirectory => Ok(None),
        found => absent(found),
    }
}

/// Characters that programs put before the flags in the file names of a Maildir. The usual one is the colon. On file
/// systems that do not allow colons, isync and mutt use the semicolon, and Evolution and Python use the exclamation
/// mark.
pub(crate) const BEFORE_FLAGS: [u8; 3] = *b":;!";

/// Returns the character that is written before the flags in file names of a Maildir: the colon, or a semicolon if the
/// file system of `folder` does not allow colons. FAT rejects a colon in a name, and NTFS on Windows reads it as the
/// start of the name of a stream.
#[cfg(any(unix, windows))]
pub(crate) fn before_flags(folder: &Path) -> io::Result<char> {
    if cfg!(windows) {
        return Ok(';');
    }
    let probe = |separator| with_probe(&folder.join(format!("embody{separator}2,")), || ());
    match probe(':') {
        Err(_) => probe(';').map(|()| ';'),
        Ok(()) => Ok(':'),
    }
}

/// Creates an empty file with this path, calls `ask`, and removes the file.
#[cfg(any(unix, windows))]
fn with_probe<T>(path: &Path, ask: impl FnOnce() -> T) -> io::Result<T> {
    match File::options().write(true).create_new(true).open(path) {
        // The file was left by a killed run, or another run is doing the same at this moment.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let found = fs::symlink_metadata(path);
            let is_probe = |it: fs::Metadata| it.is_file() && it.len() == 0 && is_ours(&it);
            if !found.is_ok_and(is_probe) {
                return Ok(ask());
            }
        }
        opened => drop(opened?),
    }
    let answer = ask();
    absent(fs::remove_file(path))?;
    Ok(answer)
}

/// Returns a name in lower case, to find names that APFS, NTFS or FAT treat as equal. These file systems also treat the
/// composed and the decomposed form of accented letters as equal, which this function does not.
fn folded(name: &OsStr) -> String {
    name.to_string_lossy().to_lowercase()
}

/// Returns whether Windows reserves this name for a device (`con`, `nul.txt`, `com1`), with any suffix.
pub(crate) fn is_device(name: &str) -> bool {
    let stem = name
        .split('.')
        .next()
        .unwrap_or_default()
        .trim_end()
        .to_lowercase();
    let port = stem.strip_prefix("com").or(stem.strip_prefix("lpt"));
    let mut number = port.unwrap_or_default().chars();
    let is_digit = |symbol| matches!(symbol, '0'..='9' | '\u{b9}' | '\u{b2}' | '\u{b3}');
    let is_port = number.next().is_some_and(is_digit) && number.next().is_none();
    is_port || ["con", "prn", "aux", "nul", "conin$", "conout$"].contains(&&*stem)
}

/// Returns whether the file system of `folder` treats names as equal that differ only in case, or only in composed and
/// decomposed characters.
#[cfg(any(unix, windows))]
pub(crate) fn folds_names(folder: &Path) -> io::Result<bool> {
    let ends = std::process::id();
    let is_same = |name: &str, other: &str| {
        let [path, there] = [name, other].map(|name| folder.join(name));
        if there.exists() && !path.exists() {
            return Ok(false);
        }
        with_probe(&path, || there.exists())
    };
    let name = format!(".embody-case-{ends}");
    if is_same(&name, &name.to_uppercase())? {
        return Ok(true);
    }
    // A file system that rejects this letter cannot have two names that differ in it.
    let [composed, decomposed] = ["\u{e9}", "e\u{301}"].map(|letter| format!("{name}-{letter}"));
    Ok(is_same(&composed, &decomposed).unwrap_or(false))
}

pub(crate) fn taken_for(path: &Path) -> Option<OsString> {
    let wanted = path.file_name()?;
    let mut other = None;
    for entry in fs::read_dir(path.parent()?).ok()?.flatten() {
        let name = entry.file_name();
        if name == wanted {
            return None;
        }
        if folded(&name) == folded(wanted) {
            other = Some(name);
        }
    }
    other
}

#[cfg(any(unix, windows))]
#[cfg_attr(any(target_os = "linux", target_os = "android"), allow(dead_code))]
fn sync_each(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_each(&entry.path())?
        } else {
            sync(&File::options().write(true).open(entry.path())?)?
        }
    }
    sync_folder(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_file_name_is_returned_only_if_it_differs_by_case() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("Mail.mbox"), "").unwrap();
        assert_eq!(taken_for(&at("mail.mbox")), Some("Mail.mbox".into()));
        assert_eq!(taken_for(&at("Mail.mbox")), None);
        assert_eq!(taken_for(&at("other.mbox")), None);
        let folds = folds_names(folder.path()).unwrap();
        assert!(folds || !at("mail.MBOX").exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
