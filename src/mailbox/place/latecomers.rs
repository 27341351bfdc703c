//! Saves mail that another program appends to the old mbox after it was replaced. This happens if a delivery program
//! that uses only fcntl locks opened the mbox before: it then locks the old file and appends its message to it.
//!
//! For this reason, the lock on the old file is kept and released only for moments, in which waiting programs can
//! append. Appended mail is copied to the new file. This continues until no process has the old file open for writing
//! (according to /proc) and no mail was appended for a while, because /proc does not show the files of all users.
//! Without /proc (macOS), it continues for longer. The dotlock is held during this time.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use crate::error::Error;
use crate::mailbox::failure::{cannot_read, cannot_write};
use crate::mailbox::place::lock::{LockPatience, MboxLock, wait_for_file};
use crate::mailbox::place::replace;
use crate::platform::{self, FileExt as _, OsStrExt as _};

const QUIET: Duration = Duration::from_millis(100);
/// Time without new mail after which the old file is no longer watched, even if a program may still have it open. A
/// delivery program that waited for the lock would have written its message by then.
const LONGEST: Duration = Duration::from_secs(2);
const PROCESSES: &str = "/proc";
const ACCESS_MODE: u32 = 3;
const READ_ONLY: u32 = 0;

/// Copies mail that is appended to the old file to the new file. The new file already contains the first
/// `known` bytes of the old file. After an error, some of the appended mail may exist only in the old file.
pub(crate) fn carry_over(
    lock: &MboxLock,
    target: &Path,
    mut known: u64,
    patience: &LockPatience<'_>,
) -> Result<(), Error> {
    let mut quiet = Instant::now();
    loop {
        lock.let_in(target, patience)?;
        let length = lock.file.metadata().map_err(cannot_read(target))?.len();
        if length > known {
            append(target, &lock.file, known, length, patience)?;
            known = length;
            quiet = Instant::now();
        }
        let quiet = quiet.elapsed();
        if quiet >= LONGEST || quiet >= QUIET && !is_being_written(&lock.file, Path::new(PROCESSES))
        {
            return Ok(());
        }
    }
}

/// Returns whether another process may have the file open for writing. Returns true if `processes` is not the /proc of
/// Linux, because this is then unknown. Without root rights, /proc hides the files of other users' processes, so such a
/// process is not found.
fn is_being_written(file: &File, processes: &Path) -> bool {
    let tells = processes.join("self/fdinfo").exists();
    let (true, Ok(wanted), Ok(processes)) = (tells, file.metadata(), fs::read_dir(processes))
    else {
        return true;
    };
    let myself = std::process::id().to_string();
    processes
        .flatten()
        .filter(|process| {
            let name = process.file_name();
            name.as_bytes().iter().all(u8::is_ascii_digit) && name != *myself
        })
        .any(|process| {
            let descriptors = fs::read_dir(process.path().join("fd"));
            let writes = |descriptor: fs::DirEntry| {
                let found = fs::metadata(descriptor.path());
                found.is_ok_and(|found| replace::is_same(&found, &wanted))
                    && is_writable(&process.path().join("fdinfo").join(descriptor.file_name()))
            };
            descriptors.is_ok_and(|descriptors| descriptors.flatten().any(writes))
        })
}

/// Returns whether an open file may be writable, according to its entry in /proc. Returns true if the entry
/// cannot be read.
fn is_writable(information: &Path) -> bool {
    let text = fs::read_to_string(information).unwrap_or_default();
    let digits = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = digits.and_then(|digits| u32::from_str_radix(digits.trim(), 8).ok());
    flags.is_none_or(|flags| flags & ACCESS_MODE != READ_ONLY)
}

/// Appends the bytes to the new file, either all of them or nothing. Holds the fcntl lock of the new file while it writes.
fn append(
    target: &Path,
    old: &File,
    from: u64,
    to: u64,
    patience: &LockPatience<'_>,
) -> Result<(), Error> {
    let mut late = Vec::new();
    let length = usize::try_from(to - from).unwrap_or(usize::MAX);
    late.try_reserve_exact(length)
        .map_err(|error| cannot_read(target)(error.into()))?;
    late.resize(length, 0);
    old.read_exact_at(&mut late, from)
        .map_err(cannot_read(target))?;
    let mut new = File::options()
        .append(true)
        .open(target)
        .map_err(cannot_write(target))?;
    wait_for_file(&new, target, patience)?;
    let before = new.metadata().map_err(cannot_read(target))?.len();
    let written = new.write_all(&late);
    let synced = written.and_then(|()| platform::sync(&new));
    synced.map_err(|error| {
        // A part of a message would be joined to the next message, so it is removed. If this fails too, nothing more
        // can be done.
        let _ = new.set_len(before);
        cannot_write(target)(error)
    })
}

/// Keeps the old file after an error, because mail that was appended to it late may exist only there. The returned
/// error contains the path of the file.
pub(crate) fn keep(old: Option<NamedTempFile>, target: &Path, error: Error) -> Error {
    let Some(old) = old else { return error };
    let kept = replace::keep_before(old, target);
    let cause =
        std::error::Error::source(&error).map_or_else(String::new, |cause| format!(": {cause}"));
    let what = format!(
        "{error}{cause}; the mailbox was converted, but mail that arrived during the run may exist only in {}; keep this file, and add the missing mail to the mailbox",
        kept.display()
    );
    cannot_write(target)(io::Error::other(what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn open_file_of_a_writer_is_detected_and_that_of_a_reader_is_not() {
        if !Path::new("/proc/self/fdinfo").exists() {
            return;
        }
        let file = NamedTempFile::new().unwrap();
        let is_being_written = |folder| super::is_being_written(file.as_file(), Path::new(folder));
        assert!(!is_being_written(PROCESSES));
        assert!(is_being_written("/nonexistent") && is_being_written("/dev"));
        for (writes, redirection) in [(false, "<"), (true, ">>")] {
            let script = format!("exec 3{redirection}\"$0\"; echo; cat");
            let mut shell = Command::new("sh")
                .args(["-c", &script])
                .arg(file.path())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            // The shell writes a line after it has opened the file.
            io::Read::read(shell.stdout.as_mut().unwrap(), &mut [0]).unwrap();
            assert_eq!(is_being_written(PROCESSES), writes, "{redirection}");
            drop(shell.stdin.take());
            shell.wait().unwrap();
        }
    }
}
