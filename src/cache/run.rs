//! The cache of one run over mailboxes, beside its output, so that the same command goes on after a kill
//! (docs/cache.md). It is removed once the output is whole.
//!
//! Others may write where the output goes. So a folder is used, and removed, only if embody made it: it is no link, it
//! is ours, nobody else may enter it, and it has our tag, which is the lock of the run, too. What else lies in it
//! stays, and the folder with it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::folder::{CacheFolder, tag_saying};
use super::made::Made;
use super::size::Size;
use super::the_cache;
use crate::disk::layout::{
    Area, CACHE_TAG, CACHE_TAGGING, CACHE_TEMPORARIES, RUN_MADE, RUN_WORDS, is_temporary, says,
};
use crate::disk::{FOLDER, Key, absent, names, open_file, open_folder, open_root, open_to_write};
use crate::error::Error;

const WORDS: &str = "# The same command goes on with them, and removes the folder once its output is whole. You may remove it, too.";

const TRIES: usize = 16;

pub(crate) struct RunFolder {
    pub(crate) cache: Arc<CacheFolder>,
    pub(crate) path: PathBuf,
    place: (OwnedFd, PathBuf),
    _tag: File,
}

impl RunFolder {
    /// [`Error::Usage`] for something there that embody did not make, [`Error::Write`] if there can be no folder, as on
    /// a full disk. `leaves` octets of the disk stay free.
    pub(crate) fn open(path: &Path, leaves: u64) -> Result<Self, Error> {
        let failed = Error::cannot_write(the_cache(path));
        let (folder, name) = match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) if folder.as_os_str().is_empty() => (Path::new("."), name),
            (Some(folder), Some(name)) => (folder, name),
            _ => return Err(failed(Errno::INVAL.into())),
        };
        let around = open_root(folder).map_err(&failed)?;
        let size = Size {
            leaves: Some(leaves),
            ..Size::default()
        };
        for _ in 0..TRIES {
            let made = size
                .room(&around, 0)
                .and_then(|_| Ok(rustix::fs::mkdirat(&around, name, Mode::RWXU)?));
            let root = rustix::fs::openat(&around, name, FOLDER, Mode::empty());
            let root = match (root, &made) {
                (Ok(root), _) => Arc::new(root),
                (Err(Errno::NOENT), Err(why)) if why.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed(io::Error::from(why.kind())));
                }
                // The run that made it has removed it.
                (Err(Errno::NOENT), _) => continue,
                (Err(_), _) => return Err(not_ours(path)),
            };
            match Self::locked(path, &root) {
                Ok(Some(tag)) => {
                    return Ok(Self {
                        cache: Arc::new(CacheFolder::over(path, root, size, true)),
                        path: path.to_owned(),
                        place: (around, name.into()),
                        _tag: tag,
                    });
                }
                Ok(None) => {}
                Err(error) => {
                    if made.is_ok() {
                        // The run may need what it takes on the disk.
                        let _ = rustix::fs::unlinkat(&around, name, AtFlags::REMOVEDIR);
                    }
                    return Err(error);
                }
            }
        }
        Err(failed(Errno::AGAIN.into()))
    }

    fn locked(path: &Path, root: &Arc<OwnedFd>) -> Result<Option<File>, Error> {
        let failed = Error::cannot_write(the_cache(path));
        let found = rustix::fs::fstat(root).map_err(|why| failed(why.into()))?;
        let is_ours = found.st_uid == rustix::process::geteuid().as_raw();
        if !is_ours || found.st_mode & 0o077 != 0 {
            return Err(not_ours(path));
        }
        let tag = tagged(root).map_err(&failed)?;
        let tag = tag.ok_or_else(|| not_ours(path))?;
        let locked = rustix::fs::flock(&tag, FlockOperation::NonBlockingLockExclusive);
        locked.map_err(|why| match why {
            Errno::WOULDBLOCK => Error::Locked {
                path: path.to_owned(),
                lock: path.to_owned(),
            },
            why => failed(why.into()),
        })?;
        let found = rustix::fs::fstat(&tag).map_err(|why| failed(why.into()))?;
        Ok((found.st_nlink > 0).then_some(tag))
    }

    pub(crate) fn made(&self, command: &str) -> Made {
        let root = &self.cache.root;
        let before = open_file(root, RUN_MADE).ok();
        let (more, mode) = (OFlags::APPEND | OFlags::CREATE, Mode::RUSR | Mode::WUSR);
        Made::new(
            command,
            before,
            open_to_write(root, RUN_MADE, more, mode).ok(),
        )
    }

    pub(crate) fn answers(&self) -> usize {
        let keys = open_folder(&self.cache.root, Area::Keys.name()).and_then(names);
        keys.map_or(0, |keys| keys.iter().filter(|name| is_key(name)).count())
    }

    pub(crate) fn remove(&self) -> bool {
        let root = &self.cache.root;
        for area in Area::ALL {
            if let Ok(folder) = open_folder(root, area.name()) {
                clear(&folder, &is_key);
                let _ = rustix::fs::unlinkat(root, area.name(), AtFlags::REMOVEDIR);
            }
        }
        // Killed runs left some, too: the lock says that nobody writes them.
        if let Ok(folder) = open_folder(root, CACHE_TEMPORARIES) {
            clear(&folder, &|name| is_temporary(name.as_bytes(), ""));
            let _ = rustix::fs::unlinkat(root, CACHE_TEMPORARIES, AtFlags::REMOVEDIR);
        }
        clear(root, &|name| {
            name == RUN_MADE || is_temporary(name.as_bytes(), CACHE_TAGGING)
        });
        let is_bare = |names: Vec<String>| names.iter().all(|name| name == CACHE_TAG);
        if !names(root).is_ok_and(is_bare) {
            return false;
        }
        let _ = rustix::fs::unlinkat(root, CACHE_TAG, AtFlags::empty());
        let (around, name) = &self.place;
        rustix::fs::unlinkat(around, name, AtFlags::REMOVEDIR).is_ok()
    }
}

fn not_ours(path: &Path) -> Error {
    let what = "is not a folder that embody made, and answers would be kept there; move it away, or name another output";
    Error::Usage(format!("{} {what}", path.display()).into())
}

/// An empty folder gets a new tag: a run that was about to make it was killed. It is none if something else lies there.
fn tagged(root: &Arc<OwnedFd>) -> io::Result<Option<File>> {
    if let Some(tag) = open_tag(root)? {
        return Ok(says(&tag, RUN_WORDS).then_some(tag));
    }
    let is_ours = |name: &String| name == CACHE_TAG || is_temporary(name.as_bytes(), CACHE_TAGGING);
    if !names(root)?.iter().all(is_ours) {
        return Ok(None);
    }
    tag_saying(root, RUN_WORDS, WORDS)?.become_new(root, CACHE_TAG)?;
    Ok(open_tag(root)?.filter(|tag| says(tag, RUN_WORDS)))
}

fn open_tag(root: &OwnedFd) -> io::Result<Option<File>> {
    let (nothing_more, mode) = (OFlags::empty(), Mode::empty());
    absent(open_to_write(root, CACHE_TAG, nothing_more, mode))
}

fn is_key(name: &str) -> bool {
    Key::parse(name).is_some()
}

fn clear(folder: &OwnedFd, is_ours: &dyn Fn(&str) -> bool) {
    for name in names(folder).unwrap_or_default() {
        if is_ours(&name) {
            let _ = rustix::fs::unlinkat(folder, &name, AtFlags::empty());
        }
    }
}
