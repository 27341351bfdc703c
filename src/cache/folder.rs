//! The folder of a cache. Each file is written in `tmp/` and renamed, so that a reader sees the old one or the new one.
//!
//! * The folder is ours and nobody else may enter it (0700); files are 0600. A folder that others may write is refused;
//!   what is not ours, or is a symbolic link, counts as missing.
//! * Nothing is synced: what a crash tears is found by its hash, and is a miss.
//! * A file that is used is touched: `size` removes the oldest.

use std::fs::DirBuilder;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once, OnceLock};
use std::time::SystemTime;

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use super::size::{Size, on_disk};
use super::{cannot_write, is_of_disk, the_cache};
use crate::disk::layout::{
    Area, CACHE_TAG, CACHE_TAGGING, CACHE_TEMPORARIES, CACHE_WORDS, has_tag,
};
use crate::disk::{Key, Temporary, absent, names, open_file, open_folder, open_root, sweep};
use crate::error::Error;
use crate::report::{Detail, Setting};

/// An open cache. Other processes may use it at the same time.
#[derive(Debug)]
pub struct CacheFolder {
    path: PathBuf,
    pub(super) root: Arc<OwnedFd>,
    size: Size,
    swept: Once,
    is_tagged: AtomicBool,
    trouble: OnceLock<String>,
}

impl CacheFolder {
    /// Opens a cache, and makes it if it is missing. Beyond `at_most` bytes the oldest answers go; `None` is no bound.
    ///
    /// # Errors
    /// As [`CacheFolder::open_to_read`]; [`Error::Write`] if it cannot be made.
    pub fn open(path: &Path, at_most: Option<u64>) -> Result<Self, Error> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(Error::cannot_write(the_cache(path)))?;
        Self::open_to_read(path, at_most)
    }

    /// Opens a cache that is there.
    ///
    /// # Errors
    /// [`Error::Usage`] for a folder that is something else, or that others may enter; [`Error::Read`] if it cannot be
    /// opened; [`Error::Write`] for a new one that cannot be made a cache. If nothing can be written there,
    /// [`CacheFolder::trouble`] says so.
    pub fn open_to_read(path: &Path, at_most: Option<u64>) -> Result<Self, Error> {
        let failed = Error::cannot_read(the_cache(path));
        let root = Arc::new(open_root(path).map_err(&failed)?);
        let status = || rustix::fs::fstat(&root).map_err(|why| failed(why.into()));
        let found = status()?;
        let wrong = |what: &str| {
            let detail = Detail::default().naming(Setting::Cache);
            let what = format!(" {}: {what}", path.display());
            Err(Error::Usage(detail.then(what)))
        };
        if found.st_uid != rustix::process::geteuid().as_raw() {
            return wrong("the folder belongs to another user; what is in it cannot be trusted");
        }
        let mut tagged = Ok(());
        if has_tag(&root, CACHE_WORDS) {
            // The process that made it closed it before.
            if status()?.st_mode & 0o077 != 0 {
                return wrong("other users may enter the folder; chmod 700 it, or name a new one");
            }
        } else if is_empty(&root).map_err(&failed)? {
            let closed = rustix::fs::fchmod(&root, Mode::RWXU);
            tagged = closed.map_err(Into::into).and_then(|()| tag(&root));
        } else if !has_tag(&root, CACHE_WORDS) {
            return wrong(
                "the folder is not empty and no cache of embody (a store of detach is none); name a new one",
            );
        }
        let size = Size {
            at_most,
            ..Size::default()
        };
        let cache = Self::over(path, root, size, tagged.is_ok());
        match tagged {
            Err(why) if is_of_disk(&why) => {
                let _ = cache.trouble.set(cannot_write(path, &why));
            }
            Err(why) => return Err(Error::cannot_write(the_cache(path))(why)),
            Ok(()) => {}
        }
        Ok(cache)
    }

    pub(super) fn over(path: &Path, root: Arc<OwnedFd>, size: Size, is_tagged: bool) -> Self {
        Self {
            path: path.to_owned(),
            root,
            size,
            swept: Once::new(),
            is_tagged: AtomicBool::new(is_tagged),
            trouble: OnceLock::new(),
        }
    }

    /// What kept the cache from being written.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.get().map(String::as_str)
    }

    pub(super) fn read(&self, area: Area, key: &Key, at_most: u64) -> Option<Vec<u8>> {
        let folder = self.folder(area, key)?;
        let file = open_file(&folder, &key.to_string()).ok()?;
        let found = rustix::fs::fstat(&file).ok()?;
        if found.st_uid != rustix::process::geteuid().as_raw() {
            return None;
        }
        let length = u64::try_from(found.st_size).ok();
        let length = length.filter(|&it| it <= at_most)?;
        let mut octets = Vec::with_capacity(usize::try_from(length).ok()?);
        // A file that grows meanwhile does not have its hash.
        (&file).take(length + 1).read_to_end(&mut octets).ok()?;
        // A cache that cannot be written is read all the same.
        let _ = file.set_modified(SystemTime::now());
        Some(octets)
    }

    pub(super) fn write(&self, area: Area, key: &Key, octets: &[u8]) -> bool {
        let length = octets.len() as u64;
        let written = self.size.room(&self.root, length).and_then(|has_room| {
            if has_room {
                self.written(area, key, octets)?;
                self.size.grew(&self.root, on_disk(length));
            }
            Ok(has_room)
        });
        written.unwrap_or_else(|why| {
            let _ = self.trouble.set(cannot_write(&self.path, &why));
            false
        })
    }

    pub(super) fn path(&self, area: Area, key: &Key) -> PathBuf {
        let mut path = self.path.clone();
        path.extend(area.folders(key, self.size.is_of_run()));
        path.join(key.to_string())
    }

    pub(super) fn remove(&self, area: Area, key: &Key) {
        if let Some(folder) = self.folder(area, key) {
            let _ = rustix::fs::unlinkat(&folder, key.to_string(), AtFlags::empty());
        }
    }

    fn folder(&self, area: Area, key: &Key) -> Option<Arc<OwnedFd>> {
        let root = Arc::clone(&self.root);
        area.folders(key, self.size.is_of_run())
            .try_fold(root, |at, name| open_folder(&at, &name).ok().map(Arc::new))
    }

    fn written(&self, area: Area, key: &Key, octets: &[u8]) -> io::Result<()> {
        if !self.is_tagged.load(Ordering::Relaxed) {
            tag(&self.root)?;
            self.is_tagged.store(true, Ordering::Relaxed);
        }
        let temporaries = Arc::new(made(&self.root, CACHE_TEMPORARIES)?);
        self.swept.call_once(|| sweep(&temporaries, "", |_| true));
        let mut folder = Arc::clone(&self.root);
        for name in area.folders(key, self.size.is_of_run()) {
            folder = Arc::new(made(&folder, &name)?);
        }
        let mut temporary = Temporary::new(&temporaries, "")?;
        temporary.file.write_all(octets)?;
        temporary.replace(&folder, &key.to_string())
    }
}

/// Most folders are there, and making one locks the folder around it.
fn made(at: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    if let Some(folder) = absent(open_folder(&at, name))? {
        return Ok(folder);
    }
    match rustix::fs::mkdirat(&at, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => open_folder(at, name),
        Err(why) => Err(why.into()),
    }
}

fn is_empty(folder: &OwnedFd) -> io::Result<bool> {
    let is_ours = |name: &String| name.starts_with(CACHE_TAGGING) || name == CACHE_TAG;
    if !names(folder)?.iter().all(is_ours) {
        return Ok(false);
    }
    Ok(has_tag(folder, CACHE_WORDS) || absent(open_file(folder, CACHE_TAG))?.is_none())
}

fn tag(folder: &Arc<OwnedFd>) -> io::Result<()> {
    let rest = "# All of it may be removed at any time.";
    tag_saying(folder, CACHE_WORDS, rest)?.replace(folder, CACHE_TAG)
}

pub(super) fn tag_saying(folder: &Arc<OwnedFd>, words: &str, rest: &str) -> io::Result<Temporary> {
    let text = format!("Signature: 8a477f597d28d172789f06886806bc55\n{words}\n{rest}\n");
    let mut temporary = Temporary::new(folder, CACHE_TAGGING)?;
    temporary.file.write_all(text.as_bytes())?;
    Ok(temporary)
}
