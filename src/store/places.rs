//! The folders of a store, each opened in the one around it.
//!
//! No symbolic link is followed beneath the store: a link that somebody planted leads nowhere, neither to read nor
//! to write. The store itself may be named by one; it is opened once.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, RawMode};
use rustix::io::Errno;

use super::{Key, StoreError};

/// The file that is locked.
pub(super) const LOCK: &str = ".lock";

/// The folder in which objects are written.
pub(super) const TEMPORARIES: &str = ".tmp";

/// What temporary files start with.
pub(super) const PREFIX: &str = "embody-";

/// The folder of the list of users.
pub(super) const USERS: &str = ".users";

/// Whether that is the name of something in a store that is no object.
pub(super) fn is_our_own(name: &str) -> bool {
    [LOCK, TEMPORARIES, USERS].contains(&name)
}

/// An open store.
#[derive(Debug)]
pub(super) struct Places {
    path: PathBuf,
    root: OwnedFd,
    /// Device and inode of the store's folder.
    identity: (u64, u64),
    /// What new folders may: what the store's own folder may.
    mode: Mode,
    /// Folders of folders whose names this process has made durable.
    durable: Mutex<HashSet<String>>,
}

impl Places {
    /// Opens the folder at an absolute path without links.
    pub(super) fn open(path: PathBuf) -> Result<Self, StoreError> {
        let trouble = |why| StoreError::io(format!("the store {}", path.display()), why);
        let root = rustix::fs::open(&path, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty())
            .map_err(|why| trouble(why.into()))?;
        let found = rustix::fs::fstat(&root).map_err(|why| trouble(why.into()))?;
        Ok(Self {
            root,
            identity: (found.st_dev as u64, found.st_ino as u64),
            mode: Mode::from_raw_mode((found.st_mode as RawMode & 0o777) | 0o700),
            path,
            durable: Mutex::default(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn root(&self) -> &OwnedFd {
        &self.root
    }

    /// Trouble with what lies at a path beneath the store.
    pub(super) fn trouble(&self, beneath: &str, why: io::Error) -> StoreError {
        let path = self.path.join(beneath);
        match Errno::from_io_error(&why) {
            Some(Errno::LOOP) => StoreError::lasting(format!(
                "{}: a symbolic link, which is not followed in a store",
                path.display()
            )),
            Some(Errno::NOTDIR) => {
                StoreError::lasting(format!("{}: no folder, or behind none", path.display()))
            }
            _ => StoreError::io(path.display().to_string(), why),
        }
    }

    /// The store's folder is still where it was: what is put into one that was removed or renamed is lost.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let lost = |why| StoreError::io(format!("the store {}", self.path.display()), why);
        let found = rustix::fs::stat(&self.path).map_err(|why| lost(why.into()))?;
        if (found.st_dev as u64, found.st_ino as u64) != self.identity {
            return Err(StoreError::temporary(format!(
                "the store {}: another folder took its place",
                self.path.display()
            )));
        }
        Ok(())
    }

    /// The folder of an object; none if there is none.
    pub(super) fn existing(&self, key: &Key) -> Result<Option<OwnedFd>, StoreError> {
        let [outer, inner] = key.folders();
        let Some(at) =
            absent(open_folder(&self.root, &outer)).map_err(|w| self.trouble(&outer, w))?
        else {
            return Ok(None);
        };
        absent(open_folder(&at, &inner))
            .map_err(|why| self.trouble(&format!("{outer}/{inner}"), why))
    }

    /// The file that has an object's name; none if there is none.
    pub(super) fn object(&self, key: &Key) -> Result<Option<File>, StoreError> {
        let Some(folder) = self.existing(key)? else {
            return Ok(None);
        };
        absent(open_file(&folder, &key.to_string())).map_err(|why| self.trouble(&key.path(), why))
    }

    /// Another content than its name says is there: a damaged file, or one that somebody planted.
    pub(super) fn not_its_name(&self, key: &Key) -> StoreError {
        StoreError::not_its_name(self.path.join(key.path()).display())
    }

    /// The folder of an object, made if need be; its own name and that of the folder around it are durable.
    pub(super) fn made(&self, key: &Key) -> Result<OwnedFd, StoreError> {
        let [outer, inner] = key.folders();
        let outer_failed = |why| self.trouble(&outer, why);
        let at = self.make_folder(&self.root, &outer).map_err(outer_failed)?;
        let place = format!("{outer}/{inner}");
        let folder = self
            .make_folder(&at, &inner)
            .map_err(|why| self.trouble(&place, why))?;
        // Once a process, also if the folder was there: who made it may not have come to this yet.
        if self.is_new(&outer) {
            sync(&self.root).map_err(outer_failed)?;
            self.remember(outer.clone());
        }
        if self.is_new(&place) {
            sync(&at).map_err(outer_failed)?;
            self.remember(place);
        }
        Ok(folder)
    }

    fn is_new(&self, place: &str) -> bool {
        let durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        !durable.contains(place)
    }

    fn remember(&self, place: String) {
        let mut durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        durable.insert(place);
    }

    /// A folder with the permissions of the store's own, whatever the umask: a web server that may read one may
    /// read all.
    pub(super) fn make_folder(&self, at: impl AsFd, name: &str) -> io::Result<OwnedFd> {
        let made = match rustix::fs::mkdirat(&at, name, self.mode) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(why) => return Err(why.into()),
        };
        let folder = open_folder(&at, name)?;
        if made {
            let found = rustix::fs::fstat(&folder)?;
            // The bit that hands the group down comes from the folder around it and stays.
            let inherited = Mode::from_raw_mode(found.st_mode as RawMode & 0o7000);
            rustix::fs::fchmod(&folder, self.mode | inherited)?;
        }
        Ok(folder)
    }
}

/// How folders are opened.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

pub(crate) fn open_folder(at: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(at, name, FOLDER, Mode::empty())?)
}

/// Opens a regular file to read, without waiting for whoever has the other end of a pipe.
pub(crate) fn open_file(at: impl AsFd, name: &str) -> io::Result<File> {
    // Opening some devices does something; look before.
    regular(rustix::fs::statat(&at, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode as RawMode)?;
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::openat(at, name, flags, Mode::empty())?;
    regular(rustix::fs::fstat(&file)?.st_mode as RawMode)?;
    Ok(File::from(file))
}

/// No run writes one file for that long.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

/// What tells the temporary files of this process apart.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// A file of our own that was not there, and its name: the prefix, the process, and a number.
pub(crate) fn new_file(at: impl AsFd, prefix: &str) -> io::Result<(File, String)> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let name = format!("{prefix}{}-{serial}", std::process::id());
        match rustix::fs::openat(&at, &name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => return Ok((File::from(file), name)),
            // Of a process of that number on another machine, or before this one.
            Err(Errno::EXIST) => {}
            Err(why) => return Err(why.into()),
        }
    }
}

/// Takes away what runs left that were killed: temporary files that nobody wrote for an hour, and of which
/// `is_over` says that nobody writes them. Best effort: they are in nobody's way.
pub(crate) fn sweep(temporaries: impl AsFd, prefix: &str, is_over: impl Fn(&File) -> bool) {
    let Ok(entries) = Dir::read_from(&temporaries) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_str().ok();
        let Some(name) = name.filter(|name| name.starts_with(prefix)) else {
            continue;
        };
        let Ok(file) = open_file(&temporaries, name) else {
            continue;
        };
        let modified = file.metadata().and_then(|found| found.modified());
        let age = modified.ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age > ABANDONED) && is_over(&file) {
            let _ = rustix::fs::unlinkat(&temporaries, name, AtFlags::empty());
        }
    }
}

fn regular(mode: RawMode) -> io::Result<()> {
    match rustix::fs::FileType::from_raw_mode(mode) {
        rustix::fs::FileType::RegularFile => Ok(()),
        rustix::fs::FileType::Symlink => Err(Errno::LOOP.into()),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        )),
    }
}

/// Makes the names in a folder, or the content of a file, durable.
pub(super) fn sync(of: impl AsFd) -> io::Result<()> {
    match rustix::fs::fsync(of) {
        // A file system that has no such call for folders.
        Err(Errno::INVAL) => Ok(()),
        done => Ok(done?),
    }
}

/// None for what is not there.
pub(crate) fn absent<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(why),
    }
}
