//! The lock on an mbox: dotlock *and* fcntl, as the deliverers of such files use both.
//! * **Dotlock**: `FILE.lock`, made by linking a finished file to that name, so that it is never seen half written. Its first
//!   line is `pid:host` as Dovecot's is, its second tells that process's system: the machine's boot, the pid namespace, when
//!   the process started. Its time is renewed while it is held: others take a lock that nobody touched for minutes for a dead
//!   one. If the path is a symbolic link, the name beside the link is locked too: deliverers may know either.
//! * **fcntl**: the whole file, exclusively, through the handle it is read with. Such a lock belongs to the process and
//!   goes when *any* handle of the file is closed, so the rest of this module opens no other (no Linux OFD lock:
//!   nothing safe offers it).
//!
//! A dotlock is stale if its process is gone and the second line names this very system: several machines or containers
//! may have one name and share a folder. Every other dotlock is stale once it is older than procmail's 1024 seconds. A
//! stale one is renamed and looked at again, so that of two who judged it stale none removes the other's new one. Our
//! own is removed only as long as it is the file that we made.

use std::cell::Cell;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use crate::error::Error;
use crate::mailbox::failure::{cannot_write, changed, unreadable};
use crate::mailbox::place::replace::{is_same, with_suffix};
use crate::mailbox::place::temporary::{folder_of, started, system, temporary_in};
use crate::mailbox::{Observer, Stop};
use crate::platform::{self, OsStrExt as _, host, is_gone};

/// For a dotlock that names no process of this system.
const STALE_AFTER: Duration = Duration::from_secs(1024);
/// Dovecot takes a dotlock for dead after 120 seconds.
const RENEW_EVERY: Duration = Duration::from_secs(15);
const RETRY_EVERY: Duration = Duration::from_millis(20);
/// The fcntl lock is free for so long, for those who wait for it.
const MOMENT: Duration = Duration::from_millis(4);
const NAMED_AFTER: Duration = Duration::from_secs(2);

type Tell<'a> = dyn Fn(&Path, &Path) + 'a;

pub(crate) struct Patience<'a> {
    began: Instant,
    timeout: Duration,
    told: Cell<bool>,
    stop: &'a Stop,
    tell: Box<Tell<'a>>,
}

impl<'a> Patience<'a> {
    pub(crate) fn new<S>(timeout: Duration, stop: &'a Stop, observer: &'a dyn Observer<S>) -> Self {
        Self {
            began: Instant::now(),
            timeout,
            told: Cell::new(false),
            stop,
            tell: Box::new(|path, lock| observer.waiting(path, lock)),
        }
    }

    fn pause(&self, path: &Path, lock: &Path) -> Result<(), Error> {
        self.stop.check()?;
        if self.began.elapsed() >= self.timeout {
            return Err(Error::Locked {
                path: path.into(),
                lock: lock.into(),
            });
        }
        if self.began.elapsed() >= NAMED_AFTER && !self.told.replace(true) {
            (self.tell)(path, lock);
        }
        std::thread::sleep(RETRY_EVERY);
        Ok(())
    }
}

/// Dropping it unlocks.
#[derive(Debug)]
pub(crate) struct Lock {
    pub(crate) file: Arc<File>,
    dotlocks: Vec<Dotlock>,
}

impl Lock {
    /// `given` is the name the user knows `target` by.
    pub(crate) fn acquire(
        target: &Path,
        given: &Path,
        patience: &Patience<'_>,
    ) -> Result<Self, Error> {
        let dotlocks = dotlocks(target, given, patience)?;
        loop {
            let file = open(target)?;
            wait_for_file(&file, target, patience)?;
            // Whoever held the lock before may have put another file in this one's place.
            if is_named(&file, target)? {
                return Ok(Self {
                    file: Arc::new(file),
                    dotlocks,
                });
            }
        }
    }

    pub(crate) fn let_go(self, target: &Path) -> Result<Arc<File>, Error> {
        platform::unlock(&self.file).map_err(cannot_write(target))?;
        Ok(self.file)
    }

    /// [`Error::Changed`] if the name shows another file than the one that [`let_go`](Self::let_go) gave.
    pub(crate) fn again(
        file: Arc<File>,
        target: &Path,
        given: &Path,
        patience: &Patience<'_>,
    ) -> Result<Self, Error> {
        let dotlocks = dotlocks(target, given, patience)?;
        wait_for_file(&file, target, patience)?;
        match is_named(&file, target)? {
            true => Ok(Self { file, dotlocks }),
            false => Err(changed(target)),
        }
    }

    /// [`Error::Changed`] if somebody took our dotlock for a stale one, as after a long sleep: what we know may be old.
    pub(crate) fn check(&self, target: &Path) -> Result<(), Error> {
        match self.dotlocks.iter().all(Dotlock::is_held) {
            true => Ok(()),
            false => Err(changed(target)),
        }
    }

    /// Lets those in who wait for the fcntl lock.
    pub(crate) fn let_in(&self, target: &Path, patience: &Patience<'_>) -> Result<(), Error> {
        platform::unlock(&self.file).map_err(cannot_write(target))?;
        std::thread::sleep(MOMENT);
        wait_for_file(&self.file, target, patience)
    }
}

fn dotlocks(target: &Path, given: &Path, patience: &Patience<'_>) -> Result<Vec<Dotlock>, Error> {
    let mut dotlocks = vec![Dotlock::acquire(target, target, patience)?];
    if fs::symlink_metadata(given).is_ok_and(|found| found.is_symlink()) {
        dotlocks.push(Dotlock::acquire(given, given, patience)?);
    }
    Ok(dotlocks)
}

fn open(target: &Path) -> Result<File, Error> {
    let opened = OpenOptions::new().read(true).write(true).open(target);
    opened.map_err(|error| match File::open(target) {
        // It can be read: what fails is the writing.
        Ok(_) => cannot_write(target)(error),
        Err(_) => unreadable(target)(error),
    })
}

fn is_named(file: &File, target: &Path) -> Result<bool, Error> {
    let opened = file.metadata().map_err(unreadable(target))?;
    let named = fs::metadata(target).map_err(unreadable(target))?;
    Ok(is_same(&opened, &named))
}

pub(crate) fn wait_for_file(
    file: &File,
    path: &Path,
    patience: &Patience<'_>,
) -> Result<(), Error> {
    // A file system without such locks leaves the dotlock.
    while !platform::try_lock(file).map_err(cannot_write(path))? {
        patience.pause(path, path)?;
    }
    Ok(())
}

#[derive(Debug)]
pub(crate) struct Dotlock {
    path: PathBuf,
    /// Somebody else's lock may stand under that name by now.
    made: Metadata,
    renewing: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Dotlock {
    pub(crate) fn acquire(
        locked: &Path,
        mailbox: &Path,
        patience: &Patience<'_>,
    ) -> Result<Self, Error> {
        let path = with_suffix(locked, ".lock".as_ref());
        loop {
            if let Some(lock) = make(&path).map_err(cannot_write(&path))? {
                let made = lock.metadata().map_err(cannot_write(&path))?;
                return Ok(Self::renewed(path, made, lock));
            }
            let is_removed = is_stale(&path) && remove_stale(&path);
            if is_removed && patience.began.elapsed() < patience.timeout {
                continue;
            }
            patience.pause(mailbox, &path)?;
        }
    }

    fn renewed(path: PathBuf, made: Metadata, lock: File) -> Self {
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("dotlock".into())
            .spawn(move || {
                while receiver.recv_timeout(RENEW_EVERY) == Err(RecvTimeoutError::Timeout) {
                    // Best effort: a lock that looks old is still a lock.
                    let _ = lock.set_modified(SystemTime::now());
                }
            });
        Self {
            path,
            made,
            renewing: thread.ok().map(|thread| (sender, thread)),
        }
    }

    fn is_held(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|found| is_same(&found, &self.made))
    }
}

impl Drop for Dotlock {
    fn drop(&mut self) {
        // An error has no reader, and the next run sees that this process is gone. The file is open until the thread
        // ends, so that its number belongs to no other.
        if self.is_held() {
            let _ = fs::remove_file(&self.path);
        }
        if let Some((sender, thread)) = self.renewing.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

fn make(path: &Path) -> io::Result<Option<File>> {
    let mut contents = format!("{}:", std::process::id()).into_bytes();
    contents.extend_from_slice(host().as_bytes());
    if let (Some(system), Some(start)) = (system(), started(std::process::id())) {
        contents.extend_from_slice(format!("\n{system} {start}\n").as_bytes());
    }
    let finished = temporary_in(folder_of(path))?;
    finished.as_file().write_all(&contents)?;
    let made = match fs::hard_link(finished.path(), path) {
        // No hard links on this file system: the name itself has to be the lock.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            let new = OpenOptions::new().write(true).create_new(true).open(path);
            new.and_then(|mut lock| lock.write_all(&contents).map(|()| lock))
        }
        linked => linked.map(|()| finished.into_file()),
    };
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        made => made.map(Some),
    }
}

fn is_stale(path: &Path) -> bool {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return false;
    };
    let contents = fs::read(path).unwrap_or_default();
    is_dead(&contents).unwrap_or_else(|| {
        let age = metadata.modified().ok().and_then(|at| at.elapsed().ok());
        age.is_some_and(|age| age > STALE_AFTER)
    })
}

/// None: the process was not one of this system.
fn is_dead(contents: &[u8]) -> Option<bool> {
    let (holder, mark) = std::str::from_utf8(contents).ok()?.split_once('\n')?;
    let (pid, _) = holder.split_once(':')?;
    let (holders_system, start) = mark.trim_end().rsplit_once(' ')?;
    if holders_system != system()? {
        return None;
    }
    let number = pid.parse().ok()?;
    Some(is_gone(pid.as_bytes()) || started(number).is_some_and(|found| found != start))
}

/// False: it may not be taken away, as another user's in a folder with the sticky bit.
fn remove_stale(path: &Path) -> bool {
    // A kill leaves it under a name that is swept.
    let Ok(aside) = temporary_in(folder_of(path)) else {
        return false;
    };
    if fs::rename(path, aside.path()).is_err() {
        return false;
    }
    if !is_stale(aside.path()) {
        // Somebody else was faster and this is the new lock: back with it.
        let _ = fs::hard_link(aside.path(), path);
    }
    true
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
        let stop = Stop::default();
        let patience = Patience::new::<()>(Duration::from_millis(60), &stop, &());
        Lock::acquire(path, path, &patience)
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

    fn lock_of(pid: u32, system: &str, start: &str) -> String {
        format!("{pid}:{}\n{system} {start}\n", host().to_str().unwrap())
    }

    fn dead() -> u32 {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    #[test]
    fn the_lock_of_a_dead_process_is_taken_over() {
        let (_folder, path) = mailbox();
        let (Some(system), myself) = (system(), std::process::id()) else {
            return;
        };
        // A number that was given to another process since is no sign of life.
        for lock in [lock_of(dead(), &system, "1"), lock_of(myself, &system, "1")] {
            fs::write(path.with_extension("lock"), lock).unwrap();
            acquire(&path).unwrap();
        }
        let lock = lock_of(myself, &system, &started(myself).unwrap());
        fs::write(path.with_extension("lock"), lock).unwrap();
        assert!(matches!(acquire(&path), Err(Error::Locked { .. })));
    }

    #[test]
    fn a_number_that_is_no_process_here_may_be_one_on_another_machine_of_this_name() {
        let (_folder, path) = mailbox();
        let elsewhere = "00000000-0000-4000-8000-000000000000 pid:[4026531836]";
        let name = host().into_string().unwrap();
        for lock in [
            lock_of(dead(), elsewhere, "1"),
            format!("{}:{name}", dead()),
        ] {
            fs::write(path.with_extension("lock"), lock).unwrap();
            assert!(matches!(acquire(&path), Err(Error::Locked { .. })));
        }
    }

    #[test]
    fn a_lock_that_was_taken_from_us_is_not_removed_and_is_noticed() {
        let (_folder, path) = mailbox();
        let lock = acquire(&path).unwrap();
        lock.check(&path).unwrap();
        let others = path.with_extension("lock");
        fs::remove_file(&others).unwrap();
        fs::write(&others, "0").unwrap();
        assert!(matches!(lock.check(&path), Err(Error::Changed { .. })));
        drop(lock);
        assert_eq!(fs::read(&others).unwrap(), b"0");
    }

    #[test]
    fn who_waits_for_a_stale_lock_that_cannot_be_taken_away_rests_and_heeds_a_stop() {
        let (_folder, path) = mailbox();
        let lock = path.with_extension("lock");
        fs::create_dir(&lock).unwrap();
        let old = SystemTime::now() - STALE_AFTER - Duration::from_secs(9);
        File::open(&lock).unwrap().set_modified(old).unwrap();
        let stop = Stop::default();
        stop.request();
        let began = Instant::now();
        let patience = Patience::new::<()>(Duration::from_secs(20), &stop, &());
        let acquired = Lock::acquire(&path, &path, &patience);
        assert!(matches!(acquired, Err(Error::Interrupted)), "{acquired:?}");
        assert!(began.elapsed() < Duration::from_secs(10));
        assert!(lock.is_dir());
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
