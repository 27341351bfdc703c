//! The directories of a store, each opened relative to its parent.
//!
//! Symbolic links inside the store are not followed. The path of the store itself may be one; it is opened once, so a later
//! change of the link has no effect.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rustix::fs::{FlockOperation, Mode, RawMode};
use rustix::io::Errno;

use super::{StoreError, the_store};
use crate::error::unpoisoned;
use crate::key::Key;
use crate::platform::disk::layout::{STORE_PREFIX, STORE_TEMPORARIES};
use crate::platform::disk::{Temporary, absent, open_file, open_folder, open_root};

#[derive(Debug)]
pub(super) struct StorePlaces {
    pub(super) path: PathBuf,
    pub(super) root: OwnedFd,
    identity: (u64, u64),
    mode: Mode,
    durable: Mutex<HashSet<String>>,
}

impl StorePlaces {
    pub(super) fn open(path: PathBuf) -> Result<Self, StoreError> {
        let trouble = |why| StoreError::io(the_store(&path), why);
        let root = open_root(&path).map_err(trouble)?;
        let found = rustix::fs::fstat(&root).map_err(|why| trouble(why.into()))?;
        Ok(Self {
            root,
            identity: (found.st_dev as u64, found.st_ino as u64),
            mode: Mode::from_raw_mode((found.st_mode as RawMode & 0o777) | 0o700),
            path,
            durable: Mutex::default(),
        })
    }

    pub(super) fn trouble(&self, beneath: &str, why: io::Error) -> StoreError {
        let path = self.path.join(beneath);
        match Errno::from_io_error(&why) {
            Some(Errno::LOOP) => StoreError::lasting(format!(
                "{}: embody does not follow symbolic links inside a store",
                path.display()
            )),
            Some(Errno::NOTDIR) => StoreError::lasting(format!(
                "{}: this path, or a directory above it, is not a directory",
                path.display()
            )),
            _ => StoreError::io(path.display().to_string(), why),
        }
    }

    pub(super) fn at<T>(
        &self,
        beneath: &str,
        done: Result<T, impl Into<io::Error>>,
    ) -> Result<T, StoreError> {
        done.map_err(|why| self.trouble(beneath, why.into()))
    }

    /// Returns an error if the path no longer leads to the open directory: objects that are put into a removed or renamed
    /// directory would be lost.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let store = || the_store(&self.path);
        let found =
            rustix::fs::stat(&self.path).map_err(|why| StoreError::io(store(), why.into()))?;
        if (found.st_dev as u64, found.st_ino as u64) != self.identity {
            let what = format!(
                "{}: another program replaced the directory of the store during the run",
                store()
            );
            return Err(StoreError::temporary(what));
        }
        Ok(())
    }

    pub(super) fn existing(&self, key: &Key) -> Result<Option<OwnedFd>, StoreError> {
        let [outer, inner] = key.folders();
        let Some(at) = self.at(&outer, absent(open_folder(&self.root, &outer)))? else {
            return Ok(None);
        };
        let place = format!("{outer}/{inner}");
        self.at(&place, absent(open_folder(&at, &inner)))
    }

    pub(super) fn object(&self, key: &Key) -> Result<Option<File>, StoreError> {
        let Some(folder) = self.existing(key)? else {
            return Ok(None);
        };
        self.at(&key.path(), absent(open_file(&folder, &key.to_string())))
    }

    pub(super) fn not_its_name(&self, beneath: &str) -> StoreError {
        StoreError::not_its_name(self.path.join(beneath).display())
    }

    /// Creates the two directories of an object, and returns them. Neither is durable yet.
    pub(super) fn made(&self, key: &Key) -> Result<[OwnedFd; 2], StoreError> {
        let [outer, inner] = key.folders();
        let at = self.at(&outer, self.make_folder(&self.root, &outer))?;
        let place = format!("{outer}/{inner}");
        let folder = self.at(&place, self.make_folder(&at, &inner))?;
        Ok([at, folder])
    }

    /// Returns whether this process has synced the directory around `beneath`. The process that created `beneath` may not
    /// have done this yet, so it is done even if the directory existed, but only once per process.
    pub(super) fn is_durable(&self, beneath: &str) -> bool {
        unpoisoned(self.durable.lock()).contains(beneath)
    }

    pub(super) fn set_durable(&self, beneath: String) {
        unpoisoned(self.durable.lock()).insert(beneath);
    }

    /// Writes a temporary file and makes it read-only. The file stays locked while it is open, so that another process does not
    /// remove it as abandoned.
    pub(super) fn write(
        &self,
        temporaries: &Arc<OwnedFd>,
        octets: &[u8],
    ) -> Result<Temporary, StoreError> {
        let created = Temporary::new(temporaries, STORE_PREFIX);
        let mut temporary = self.at(STORE_TEMPORARIES, created)?;
        let file = &mut temporary.file;
        let written = rustix::fs::flock(&*file, FlockOperation::NonBlockingLockExclusive)
            .map_err(io::Error::from)
            .and_then(|()| file.write_all(octets))
            .and_then(|()| Ok(rustix::fs::fchmod(&*file, Mode::from_raw_mode(0o440))?));
        self.at(STORE_TEMPORARIES, written)?;
        Ok(temporary)
    }

    /// Creates a directory with the mode of the store, whatever the umask is, so that a web server that can read the store can
    /// read every directory in it.
    pub(super) fn make_folder(&self, at: impl AsFd, name: &str) -> io::Result<OwnedFd> {
        let made = match rustix::fs::mkdirat(&at, name, self.mode) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(why) => return Err(why.into()),
        };
        let folder = open_folder(&at, name)?;
        if made {
            let found = rustix::fs::fstat(&folder)?;
            // The new directory may have inherited the set-group-ID bit from its parent. `fchmod` with the mode alone
            // would clear the bit, so it is added to the mode.
            let inherited = Mode::from_raw_mode(found.st_mode as RawMode & 0o7000);
            rustix::fs::fchmod(&folder, self.mode | inherited)?;
        }
        Ok(folder)
    }
}
