//! Differences of operating systems: every `cfg` of a system that is not about a whole command stands here.
//!
//! For a capability that a system or a file system lacks, there is a way around it, or an error that says so;
//! docs/platforms.md has the list. Nothing here needs /proc.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use self::unix::*;
#[cfg(windows)]
pub use self::windows::*;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::Path;

pub fn absent<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Programs put one of these before the flags in the names of a Maildir's messages: the colon, or, where a file system
/// takes it for something else, the semicolon (isync, mutt) or the exclamation mark (Evolution, Python).
pub const BEFORE_FLAGS: [u8; 3] = *b":;!";

/// FAT refuses the colon, and NTFS on Windows takes it for the name of a stream within the file.
pub fn before_flags(folder: &Path) -> io::Result<char> {
    if cfg!(windows) {
        return Ok(';');
    }
    let probe = |separator| {
        let path = folder.join(format!("embody{separator}2,"));
        File::options().write(true).create_new(true).open(&path)?;
        fs::remove_file(path)
    };
    match probe(':') {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => probe(';').map(|()| ';'),
        _ => Ok(':'),
    }
}

/// Some file systems do not tell cases apart (APFS, NTFS, FAT). They also take accented letters for one however they
/// are put together, which this does not.
pub fn folded(name: &OsStr) -> String {
    name.to_string_lossy().to_lowercase()
}

/// Whether a name is that of a device of Windows, whatever its suffix is.
pub fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end();
    let stem = stem.to_lowercase();
    let port = stem.strip_prefix("com").or(stem.strip_prefix("lpt"));
    let mut number = port.unwrap_or_default().chars();
    let is_digit = |symbol| matches!(symbol, '0'..='9' | '\u{b9}' | '\u{b2}' | '\u{b3}');
    let is_port = number.next().is_some_and(is_digit) && number.next().is_none();
    is_port || ["con", "prn", "aux", "nul", "conin$", "conout$"].contains(&&*stem)
}

pub fn folds_case(folder: &Path) -> io::Result<bool> {
    let name = format!(".embody-case-{}", std::process::id());
    let path = folder.join(&name);
    let there = folder.join(name.to_uppercase());
    if there.exists() {
        return Ok(false);
    }
    File::options().write(true).create_new(true).open(&path)?;
    let folds = there.exists();
    fs::remove_file(path)?;
    Ok(folds)
}

pub fn taken_for(path: &Path) -> Option<OsString> {
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
        match entry.file_type()?.is_dir() {
            true => sync_each(&entry.path())?,
            false => sync(&File::options().write(true).open(entry.path())?)?,
        }
    }
    sync_folder(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_another_file_has_in_another_case_is_told_from_one_that_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("Mail.mbox"), "").unwrap();
        assert_eq!(taken_for(&at("mail.mbox")), Some("Mail.mbox".into()));
        assert_eq!(taken_for(&at("Mail.mbox")), None);
        assert_eq!(taken_for(&at("other.mbox")), None);
        let folds = folds_case(folder.path()).unwrap();
        assert_eq!(folds, at("mail.MBOX").exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
