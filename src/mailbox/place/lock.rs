//! Locks an mbox with a dotlock *and* an fcntl lock, because delivery programs use either.
//! * **Dotlock**: a file `FILE.lock`. A complete file is linked to this name, so that it is never seen half written.
//!   Its first line is `pid:host`, as Dovecot writes it. Its second line identifies the system and the process: the
//!   boot id, the pid namespace, and the start time of the process. Its modification time is renewed while it is held,
//!   because other programs treat a lock that is minutes old as stale. If the path is a symbolic link, a dotlock is
//!   also created next to the link, because delivery programs may know either name.
//! * **fcntl**: an exclusive lock on the whole file, through the handle that reads the file. Such a lock belongs to the
//!   process, and is released when *any* handle of the file is closed. For this reason, this module opens no other
//!   handle. (Linux OFD locks would avoid this, but no safe interface offers them.)
//!
//! A dotlock is stale if its second line names this system and its process no longer exists. The host name alone is not
//! enough, because several machines or containers may have the same name and share a directory. Any other dotlock is
//! stale when it is older than 1024 seconds, as in procmail. A stale dotlock is renamed and checked again before it is
//! removed. Otherwise, of two runs that see the same stale lock, one could remove the new lock of the other. A dotlock
//! of this run is removed only if it is still the file that the run created.

use std::cell::Cell;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use crate::error::Error;
use crate::mailbox::event::{MailboxEvent, MailboxFact};
use crate::mailbox::failure::{cannot_write, changed, unreadable};
use crate::mailbox::place::replace::{is_same, with_suffix};
use crate::mailbox::temporary::{folder_of, started, system, temporary_in};
use crate::mailbox::{Observer, Stop};
use crate::platform::{self, OsStrExt as _, host, is_gone};

/// Age after which a dotlock is treated as stale if it does not name a process of this system. procmail uses
/// the same limit.
const STALE_AFTER: Duration = Duration::from_secs(1024);
/// Interval at which the dotlock is renewed. Dovecot treats a dotlock as stale after 120 seconds.
const RENEW_EVERY: Duration = Duration::from_secs(15);
const RETRY_EVERY: Duration = Duration::from_millis(20);
/// Time for which the fcntl lock is released so that waiting programs can take it.
const MOMENT: Duration = Duration::from_millis(4);
const NAMED_AFTER: Duration = Duration::from_secs(2);

/// Time for which a run waits for each lock after it has waited for its whole timeout. A delivery program holds a lock for a
/// shorter time.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(200);

type Tell<'a> = dyn Fn(&Path, &Path) + 'a;

/// Time that a run has waited for locks, in milliseconds. All mailboxes of the run share it: a run over many locked mailboxes
/// waits for one timeout, and not for one timeout per mailbox.
#[derive(Clone, Default, Debug)]
pub(crate) struct LockWaits(Arc<AtomicU64>);

impl LockWaits {
    /// Returns the part of `timeout` that is left.
    fn rest(&self, timeout: Duration) -> Duration {
        let waited = Duration::from_millis(self.0.load(Ordering::Relaxed));
        let rest = timeout.saturating_sub(waited);
        rest.max(SHORTEST_TIMEOUT.min(timeout))
    }

    fn add(&self, waited: Duration) {
        let waited = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        self.0.fetch_add(waited, Ordering::Relaxed);
    }
}

pub(crate) struct LockPatience<'a> {
    began: Instant,
    timeout: Duration,
    waits: Option<LockWaits>,
    told: Cell<bool>,
    stop: &'a Stop,
    tell: Box<Tell<'a>>,
}

impl<'a> LockPatience<'a> {
    pub(crate) fn new<S>(timeout: Duration, stop: &'a Stop, observer: &'a dyn Observer<S>) -> Self {
        Self {
            began: Instant::now(),
            timeout,
            waits: None,
            told: Cell::new(false),
            stop,
            tell: Box::new(|path, lock| {
                observer.event(MailboxEvent::Fact(MailboxFact::Waiting(
                    path.to_owned(),
                    lock.to_owned(),
                )))
            }),
        }
    }

    /// Counts the time of waiting as time of the run `waits`, and limits it to the time that is left.
    pub(crate) fn within(self, waits: &LockWaits) -> Self {
        Self {
            timeout: waits.rest(self.timeout),
            waits: Some(waits.clone()),
            ..self
        }
    }

    fn pause(&self, path: &Path, lock: &Path) -> Result<(), Error> {
        self.stop.check()?;
        if self.began.elapsed() >= self.timeout {
            if let Some(waits) = &self.waits {
                waits.add(self.began.elapsed());
            }
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

/// A held lock on an mbox. Dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct MboxLock {
    pub(crate) file: Arc<File>,
    dotlocks: Vec<Dotlock>,
}

impl MboxLock {
    /// Locks the mbox `target`. `given` is the path that the user named, which may be a symbolic link to `target`.
    pub(crate) fn acquire(
        target: &Path,
        given: &Path,
        patience: &LockPatience<'_>,
    ) -> Result<Self, Error> {
        let dotlocks = dotlocks(target, given, patience)?;
        loop {
            let file = open(target)?;
            wait_for_file(&file, target, patience)?;
            // The previous holder of the lock may have replaced the mbox by a new file. The lock is then on the old
            // file, so the new file is opened and locked.
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

    /// Locks a file again after [`let_go`](Self::let_go) released its lock. Returns [`Error::Changed`] if another
    /// program has replaced the file at the path.
    pub(crate) fn again(
        file: Arc<File>,
        target: &Path,
        given: &Path,
        patience: &LockPatience<'_>,
    ) -> Result<Self, Error> {
        let dotlocks = dotlocks(target, given, patience)?;
        wait_for_file(&file, target, patience)?;
        if is_named(&file, target)? {
            Ok(Self { file, dotlocks })
        } else {
            Err(changed(target))
        }
    }

    /// Checks that the dotlocks of this run still exist. Returns [`Error::Changed`] if another program removed one of
    /// them as stale, for example after the computer slept. That program may have changed the mailbox.
    pub(crate) fn check(&self, target: &Path) -> Result<(), Error> {
        if self.dotlocks.iter().all(Dotlock::is_held) {
            Ok(())
        } else {
            Err(changed(target))
        }
    }

    /// Releases the fcntl lock for a moment, so that waiting programs can append mail, and takes it again.
    pub(crate) fn let_in(&self, target: &Path, patience: &LockPatience<'_>) -> Result<(), Error> {
        platform::unlock(&self.file).map_err(cannot_write(target))?;
        std::thread::sleep(MOMENT);
        wait_for_file(&self.file, target, patience)
    }
}

fn dotlocks(
    target: &Path,
    given: &Path,
    patience: &LockPatience<'_>,
) -> Result<Vec<Dotlock>, Error> {
    let mut dotlocks = vec![Dotlock::acquire(target, target, patience)?];
    if fs::symlink_metadata(given).is_ok_and(|found| found.is_symlink()) {
        dotlocks.push(Dotlock::acquire(given, given, patience)?);
    }
    Ok(dotlocks)
}

fn open(target: &Path) -> Result<File, Error> {
    let opened = OpenOptions::new().read(true).write(true).open(target);
    opened.map_err(|error| match File::open(target) {
        // The file can be read but not written, so the error names the missing permission to write.
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
    patience: &LockPatience<'_>,
) -> Result<(), Error> {
    // On a file system without fcntl locks, `try_lock` always succeeds, and only the dotlock protects the mbox.
    while !platform::try_lock(file).map_err(cannot_write(path))? {
        patience.pause(path, path)?;
    }
    Ok(())
}

#[derive(Debug)]
pub(crate) struct Dotlock {
    path: PathBuf,
    /// Metadata of the lock file when it was created. If the file at the path has another inode, another program has
    /// replaced the lock.
    made: Metadata,
    renewing: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Dotlock {
    pub(crate) fn acquire(
        locked: &Path,
        mailbox: &Path,
        patience: &LockPatience<'_>,
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
                    // Best effort: if the renewal fails, the lock is still valid, but other programs may treat it as
                    // stale.
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
        // Only a lock file that this run created is removed. Its inode number cannot belong to a new file yet, because
        // the renewal thread, which is ended below, keeps the file open. An error is ignored: the next run sees that
        // this process has ended, and removes the lock as stale.
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
        // The file system has no hard links, so the lock file is created under its name before its content is written.
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

/// Returns whether the process that created the lock has ended. Returns `None` if the lock does not name a process of
/// this system.
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

/// Removes a stale lock. Returns false if the lock cannot be removed, for example because it belongs to another user in
/// a directory with the sticky bit.
fn remove_stale(path: &Path) -> bool {
    // The stale lock is first renamed to this temporary name. If the run is killed before the lock is removed, the next
    // run removes the temporary file.
    let Ok(aside) = temporary_in(folder_of(path)) else {
        return false;
    };
    if fs::rename(path, aside.path()).is_err() {
        return false;
    }
    if !is_stale(aside.path()) {
        // The renamed file is not stale: another program replaced the stale lock by its own in the meantime. The new
        // lock gets its name back.
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

    fn acquire(path: &Path) -> Result<MboxLock, Error> {
        let stop = Stop::default();
        let patience = LockPatience::new::<()>(Duration::from_millis(60), &stop, &());
        MboxLock::acquire(path, path, &patience)
    }

    #[test]
    fn mailbox_lock_is_held_once_and_its_file_is_removed_after_release() {
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
        // The second lock contains an existing process id, but a different start time. The process that wrote it has
        // therefore ended, so the lock is stale.
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
    fn waiting_for_an_unremovable_stale_lock_can_be_interrupted() {
        let (_folder, path) = mailbox();
        let lock = path.with_extension("lock");
        fs::create_dir(&lock).unwrap();
        let old = SystemTime::now() - STALE_AFTER - Duration::from_secs(9);
        File::open(&lock).unwrap().set_modified(old).unwrap();
        let stop = Stop::default();
        stop.request();
        let began = Instant::now();
        let patience = LockPatience::new::<()>(Duration::from_secs(20), &stop, &());
        let acquired = MboxLock::acquire(&path, &path, &patience);
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
