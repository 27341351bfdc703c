//! The lock on an mbox: dotlock *and* fcntl, as the deliverers of such files use both.
//!
//! * **Dotlock**: `FILE.lock`, made by linking a finished file to that name, so that it is never
//!   seen half written; it holds `pid:host` as Dovecot's do. Its time is renewed while it is
//!   held: others take a lock that nobody touched for minutes for a dead one. If the path given is
//!   a symbolic link, the name beside the link is locked too: deliverers may know either.
//! * **fcntl**: the whole file, exclusively, through the handle it is read with. Such a lock
//!   belongs to the process and goes when *any* handle of the file is closed, so the rest of this
//!   room reads through that one and opens no other (no Linux OFD lock: nothing safe offers it).
//!
//! A dotlock is stale if its process is gone (and it was made on this host), or if it names none
//! and is older than procmail's 1024 seconds. It is taken away by a rename and looked at again,
//! so that of two who judged it stale none removes the other's new one.
//!
//! What remains: a deliverer with fcntl locks only, that waits for ours while the file is
//! replaced, gets its lock on the old file. [`Lock::latecomers`] is for those.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::FlockOperation;

use super::{Stop, cannot_read, cannot_write};
use crate::error::Error;

/// A dotlock that names no process of this host is stale when untouched for so long.
const STALE_AFTER: Duration = Duration::from_secs(1024);
/// How often a held dotlock's time is renewed; Dovecot waits 120 seconds.
const RENEW_EVERY: Duration = Duration::from_secs(15);
/// For ever, as far as anybody waits for a lock; any instant can be that much later.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
/// Between two tries.
const RETRY_EVERY: Duration = Duration::from_millis(20);

/// An mbox, open and locked. Dropping it unlocks.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    _dotlocks: Vec<Dotlock>,
}

impl Lock {
    /// Waits for both locks of the file at `target`; `given` is the name the user knows it by.
    ///
    /// # Errors
    /// [`Error::Locked`] after `timeout`, [`Error::Interrupted`], and what opening the file and
    /// writing beside it may say.
    pub(super) fn acquire(
        target: &Path,
        given: &Path,
        timeout: Duration,
        stop: &Stop,
    ) -> Result<Self, Error> {
        let until = Instant::now() + timeout.min(LONGEST_WAIT);
        let mut dotlocks = vec![Dotlock::acquire(target, until, stop)?];
        if fs::symlink_metadata(given).is_ok_and(|found| found.is_symlink()) {
            dotlocks.push(Dotlock::acquire(given, until, stop)?);
        }
        loop {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .open(target)
                .map_err(cannot_read(target))?;
            wait_for_file(&file, target, until, stop)?;
            // Whoever held the lock before may have put another file in this one's place.
            let opened = file.metadata().map_err(cannot_read(target))?;
            let named = fs::metadata(target).map_err(cannot_read(target))?;
            if (opened.dev(), opened.ino()) == (named.dev(), named.ino()) {
                return Ok(Self {
                    file,
                    _dotlocks: dotlocks,
                });
            }
        }
    }

    /// The locked file, open for reading and writing.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// After the file was replaced: lets those in who wait for the old file's fcntl lock, and
    /// says how long the old file is once they are through.
    ///
    /// # Errors
    /// What the system says about the old file.
    pub(super) fn latecomers(&self, target: &Path, stop: &Stop) -> Result<u64, Error> {
        let unlock = rustix::fs::fcntl_lock(&self.file, FlockOperation::Unlock);
        unlock.map_err(|error| cannot_write(target)(error.into()))?;
        std::thread::yield_now();
        let until = Instant::now() + Duration::from_secs(10);
        wait_for_file(&self.file, target, until, stop)?;
        let metadata = self.file.metadata().map_err(cannot_read(target))?;
        Ok(metadata.len())
    }
}

fn wait_for_file(file: &File, path: &Path, until: Instant, stop: &Stop) -> Result<(), Error> {
    loop {
        match rustix::fs::fcntl_lock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => {}
            // A file system without such locks leaves the dotlock.
            Err(rustix::io::Errno::NOLCK | rustix::io::Errno::OPNOTSUPP) => return Ok(()),
            Err(error) => return Err(cannot_write(path)(error.into())),
        }
        pause(path, until, stop)?;
    }
}

fn pause(path: &Path, until: Instant, stop: &Stop) -> Result<(), Error> {
    stop.check()?;
    if Instant::now() >= until {
        return Err(Error::Locked { path: path.into() });
    }
    std::thread::sleep(RETRY_EVERY);
    Ok(())
}

/// `FILE.lock`, held.
#[derive(Debug)]
pub(super) struct Dotlock {
    path: PathBuf,
    /// Ends the renewing when dropped.
    renewing: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Dotlock {
    /// Waits for the dotlock of `locked`.
    pub(super) fn acquire(locked: &Path, until: Instant, stop: &Stop) -> Result<Self, Error> {
        let mut name = locked.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        loop {
            if make(&path).map_err(cannot_write(&path))? {
                return Ok(Self::renewed(path));
            }
            if is_stale(&path) {
                remove_stale(&path);
                if Instant::now() < until {
                    continue;
                }
            }
            pause(locked, until, stop)?;
        }
    }

    fn renewed(path: PathBuf) -> Self {
        let (sender, receiver) = mpsc::channel();
        let renewed = path.clone();
        let thread = std::thread::Builder::new()
            .name("dotlock".into())
            .spawn(move || {
                while receiver.recv_timeout(RENEW_EVERY) == Err(RecvTimeoutError::Timeout) {
                    if let Ok(lock) = OpenOptions::new().write(true).open(&renewed) {
                        // Best effort: a lock that looks old is still a lock.
                        let _ = lock.set_modified(SystemTime::now());
                    }
                }
            });
        Self {
            path,
            renewing: thread.ok().map(|thread| (sender, thread)),
        }
    }
}

impl Drop for Dotlock {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.renewing.take() {
            drop(sender);
            let _ = thread.join();
        }
        // Nobody to tell, and the next run finds out that this process is gone.
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether the lock is ours now.
fn make(path: &Path) -> io::Result<bool> {
    let mut finished = super::replace::temporary_in(super::replace::folder_of(path))?;
    write!(finished, "{}:", std::process::id())?;
    finished.write_all(host().as_bytes())?;
    match fs::hard_link(finished.path(), path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        // No hard links on this file system: the name itself has to be the lock.
        Err(_) => match OpenOptions::new().write(true).create_new(true).open(path) {
            Ok(mut lock) => {
                write!(lock, "{}:", std::process::id())?;
                lock.write_all(host().as_bytes())?;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        },
    }
}

/// This machine's name.
pub(super) fn host() -> std::ffi::OsString {
    std::ffi::OsStr::from_bytes(rustix::system::uname().nodename().to_bytes()).to_owned()
}

fn is_stale(path: &Path) -> bool {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return false;
    };
    let contents = fs::read(path).unwrap_or_default();
    let text = contents.trim_ascii();
    if let Some(colon) = text.iter().position(|&b| b == b':')
        && text[colon + 1..] == *host().as_bytes()
        && process(&text[..colon]).is_some()
    {
        return is_gone(&text[..colon]);
    }
    let age = metadata.modified().ok().and_then(|at| at.elapsed().ok());
    age.is_some_and(|age| age > STALE_AFTER)
}

/// Whether no process of this host has the number that `digits` say.
pub(super) fn is_gone(digits: &[u8]) -> bool {
    process(digits)
        .is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

fn process(digits: &[u8]) -> Option<rustix::process::Pid> {
    let number: i32 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    rustix::process::Pid::from_raw(number)
}

fn remove_stale(path: &Path) {
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!(".{}", std::process::id()));
    let aside = PathBuf::from(aside);
    if fs::rename(path, &aside).is_err() {
        return;
    }
    if !is_stale(&aside) {
        // Somebody else was faster and this is the new lock: back with it.
        let _ = fs::hard_link(&aside, path);
    }
    let _ = fs::remove_file(&aside);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mailbox() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("box");
        fs::write(&path, "From a 10:00\n\n").unwrap();
        (folder, path)
    }

    fn acquire(path: &Path) -> Result<Lock, Error> {
        Lock::acquire(path, path, Duration::from_millis(60), &Stop::default())
    }

    #[test]
    fn a_lock_is_held_once_and_leaves_nothing() {
        let (folder, path) = mailbox();
        let lock = acquire(&path).unwrap();
        assert!(matches!(acquire(&path), Err(Error::Locked { .. })));
        drop(lock);
        drop(acquire(&path).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_lock_of_a_dead_process_is_taken_over() {
        let (_folder, path) = mailbox();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let name = host().into_string().unwrap();
        fs::write(
            path.with_extension("lock"),
            format!("{}:{name}", child.id()),
        )
        .unwrap();
        acquire(&path).unwrap();
    }

    #[test]
    fn a_young_lock_that_names_nobody_is_respected_and_an_old_one_is_not() {
        let (_folder, path) = mailbox();
        let lock = path.with_extension("lock");
        fs::write(&lock, "0").unwrap();
        assert!(matches!(acquire(&path), Err(Error::Locked { .. })));
        let old = SystemTime::now() - STALE_AFTER - Duration::from_secs(9);
        File::options()
            .write(true)
            .open(&lock)
            .unwrap()
            .set_modified(old)
            .unwrap();
        acquire(&path).unwrap();
    }
}
