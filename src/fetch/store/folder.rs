//! A store in a directory (docs/store.md).
//!
//! * An object is written to `.tmp/`, synced, read back and hashed, and only then renamed to its final name. The directory is
//!   synced, too.
//! * A file is never overwritten. A file whose content does not match its name causes an error and is left unchanged.
//! * Several processes can share the lock. A garbage collection ([`Folder::open_alone`]) holds it exclusively.
//! * A run that is killed leaves only complete objects and temporary files, which a later run removes.

use std::collections::HashMap;
use std::fs::{DirBuilder, File};
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::batch::{ObjectFile, commit, reuse};
use super::places::StorePlaces;
use super::users::list;
use super::{Store, StoreError, User, the_store};
use crate::error::unpoisoned;
use crate::fetch::file_url;
use crate::key::Key;
use crate::platform::disk::layout::{STORE_LOCK, STORE_PREFIX, STORE_TEMPORARIES, is_tagged};
use crate::platform::disk::{open_to_write, sweep};

const PATIENCE: Duration = Duration::from_secs(60);

/// Maximum number of objects that are made durable together. Each of them is an open file.
const MOST_PENDING: usize = 64;
const MOST_PENDING_OCTETS: usize = 64 << 20;

/// A store in a directory. The lock is held until the value is dropped.
#[derive(Debug)]
pub struct Folder {
    pub(super) places: StorePlaces,
    temporaries: Option<Arc<OwnedFd>>,
    lock: Option<File>,
    waiting: Mutex<WaitingLock>,
    committing: Mutex<()>,
    unlisted: Mutex<Option<User>>,
}

#[derive(Default, Debug)]
struct WaitingLock {
    pending: HashMap<Key, ObjectFile>,
    octets: usize,
    failed: HashMap<Key, StoreError>,
}

impl Folder {
    /// Opens a store for reading and writing, and creates it if it does not exist. Other processes can use it at the same time.
    ///
    /// # Errors
    /// The directory cannot be created or written, or a garbage collection holds the lock for more than a minute.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if path.exists() && !path.is_dir() {
            let what = format!("{}: the path does not lead to a directory", the_store(path));
            return Err(StoreError::lasting(what));
        }
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o750).create(path);
        made.map_err(|why| StoreError::io(the_store(path), why))?;
        let places = opened(path)?;
        let lock = locked(&places, FlockOperation::NonBlockingLockShared)?;
        let made = places.make_folder(&places.root, STORE_TEMPORARIES);
        let temporaries = places.at(STORE_TEMPORARIES, made)?;
        // A temporary file is locked while its process runs, even on another machine. So a file whose lock is free is abandoned
        // and is removed.
        sweep(&temporaries, STORE_PREFIX, |file| {
            rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
        });
        Ok(Self::with(places, Some(Arc::new(temporaries)), Some(lock)))
    }

    /// Opens an existing store for reading. Nothing is created, locked or written.
    ///
    /// # Errors
    /// The directory cannot be opened.
    pub fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        Ok(Self::with(opened(path)?, None, None))
    }

    /// Opens an existing store exclusively: until the value is dropped, no other process can add objects.
    ///
    /// # Errors
    /// The directory cannot be opened or written, or other processes use it for more than a minute.
    pub fn open_alone(path: &Path) -> Result<Self, StoreError> {
        let places = opened(path)?;
        let lock = locked(&places, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self::with(places, None, Some(lock)))
    }

    fn with(places: StorePlaces, temporaries: Option<Arc<OwnedFd>>, lock: Option<File>) -> Self {
        Self {
            places,
            temporaries,
            lock,
            waiting: Mutex::default(),
            committing: Mutex::default(),
            unlisted: Mutex::default(),
        }
    }

    /// Returns the directory as an absolute path without symbolic links.
    pub fn path(&self) -> &Path {
        &self.places.path
    }

    pub(super) fn is_alone(&self) -> bool {
        self.temporaries.is_none() && self.lock.is_some()
    }

    fn commit(&self) {
        // Another thread may be committing a batch with objects of this thread. The lock waits until they are durable.
        let _alone = unpoisoned(self.committing.lock());
        let batch = {
            let mut waiting = unpoisoned(self.waiting.lock());
            waiting.octets = 0;
            std::mem::take(&mut waiting.pending)
        };
        if batch.is_empty() {
            return;
        }
        let keys: Vec<Key> = batch.keys().copied().collect();
        let mut failed = commit(&self.places, batch);
        let mut waiting = unpoisoned(self.waiting.lock());
        // An object that failed in an earlier batch may be stored now, so this result replaces the earlier one.
        for key in keys {
            match failed.remove(&key) {
                Some(why) => waiting.failed.insert(key, why),
                None => waiting.failed.remove(&key),
            };
        }
    }
}

impl Store for Folder {
    fn put(&self, octets: &[u8]) -> Result<Key, StoreError> {
        let Some(temporaries) = &self.temporaries else {
            let what = format!(
                "{} cannot store the attachment, because this command opened it only for reading",
                the_store(self.path())
            );
            return Err(StoreError::lasting(what));
        };
        {
            // The lock is held until the user is listed. Other threads with objects of the same user wait, because no
            // object may be stored before its user is listed.
            let mut unlisted = unpoisoned(self.unlisted.lock());
            if let Some(user) = unlisted.as_ref() {
                list(&self.places, temporaries, user)?;
                *unlisted = None;
            }
        }
        let key = Key::of(octets);
        if unpoisoned(self.waiting.lock()).pending.contains_key(&key) {
            return Ok(key);
        }
        let pending = match reuse(&self.places, &key)? {
            Some(file) => ObjectFile::Reused(file),
            None => ObjectFile::Written(self.places.write(temporaries, octets)?),
        };
        let is_full = {
            let mut waiting = unpoisoned(self.waiting.lock());
            waiting.octets += octets.len();
            // If two threads store the same content, this drops, and so removes, the temporary file of the first.
            waiting.pending.insert(key, pending);
            waiting.pending.len() >= MOST_PENDING || waiting.octets >= MOST_PENDING_OCTETS
        };
        if is_full {
            self.commit();
        }
        Ok(key)
    }

    fn puts_from(&self, user: User) {
        *unpoisoned(self.unlisted.lock()) = Some(user);
    }

    fn flush(&self, keys: &[Key]) -> Result<(), StoreError> {
        self.commit();
        let waiting = unpoisoned(self.waiting.lock());
        match keys.iter().find_map(|key| waiting.failed.get(key)) {
            Some(why) => Err(why.again()),
            None => Ok(()),
        }
    }

    fn get(&self, key: &Key, at_most: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(file) = self.places.object(key)? else {
            // An unmounted directory only looks as if the object were missing, so this is an error.
            self.places.check()?;
            return Ok(None);
        };
        let size = self.places.at(&key.path(), file.metadata())?.len();
        if size > at_most {
            return Err(StoreError::lasting(format!(
                "{}: the object has {size} bytes, and at most {at_most} are allowed",
                self.path().join(key.path()).display()
            )));
        }
        let mut octets = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        // Reads one byte more than the size of the file. If the file grows while it is read, the extra byte changes the
        // hash, so the error is noticed.
        let read = file.take(size + 1).read_to_end(&mut octets);
        self.places.at(&key.path(), read)?;
        if Key::of(&octets) != *key {
            return Err(self.places.not_its_name(&key.path()));
        }
        Ok(Some(octets))
    }

    fn file(&self, key: &Key) -> Result<Option<File>, StoreError> {
        self.places.object(key)
    }

    fn base_url(&self) -> String {
        // Cannot fail: the path is absolute, and any byte can be percent-encoded.
        file_url::of_directory(self.path()).unwrap_or_default()
    }
}

fn opened(path: &Path) -> Result<StorePlaces, StoreError> {
    let absolute = path
        .canonicalize()
        .map_err(|why| StoreError::io(the_store(path), why))?;
    let places = StorePlaces::open(absolute)?;
    if is_tagged(&places.root) {
        return Err(StoreError::lasting(format!(
            "{} is a cache of embody, whose entries are evicted; name another directory for the store",
            path.display()
        )));
    }
    Ok(places)
}

fn locked(places: &StorePlaces, operation: FlockOperation) -> Result<File, StoreError> {
    let mode = Mode::from_raw_mode(0o640);
    let opened = open_to_write(&places.root, STORE_LOCK, OFlags::CREATE, mode);
    let lock = places.at(STORE_LOCK, opened)?;
    let begun = Instant::now();
    loop {
        match rustix::fs::flock(&lock, operation) {
            Ok(()) => return Ok(lock),
            Err(Errno::WOULDBLOCK | Errno::INTR) if begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(Errno::WOULDBLOCK) => {
                return Err(StoreError::temporary(format!(
                    "{}: another program has locked the store for {} seconds; wait until that program has finished, and run the same command again",
                    the_store(&places.path),
                    PATIENCE.as_secs()
                )));
            }
            Err(why) => return places.at(STORE_LOCK, Err(why)),
        }
    }
}
