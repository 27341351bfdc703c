//! The directory of a shared cache, and that of the cache of one run. Each file is written in `tmp/` and renamed, so that a
//! reader sees either the old file or the new one.
//!
//! * The directory has the mode 0700, files have 0600. A directory that other users may access is refused. A file that belongs
//!   to another user, or is a symbolic link, counts as missing.
//! * Files are not synced to the disk. A file that a crash truncated does not have its hash and counts as missing.
//! * The modification time of a file is updated at each use, so that `size` can evict the least recently used ones.

use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once, OnceLock};
use std::time::SystemTime;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::size::{Size, on_disk};
use super::{cannot_write, is_of_disk, the_cache};
use crate::engine::report::{Detail, Setting};
use crate::error::Error;
use crate::key::Key;
use crate::platform::disk::layout::{
    Area, CACHE_TAG, CACHE_TAGGING, CACHE_TEMPORARIES, CACHE_WORDS, RUN_MADE, RUN_WORDS, has_tag,
    is_temporary, says,
};
use crate::platform::disk::{
    FOLDER, Temporary, absent, names, open_file, open_folder, open_root, open_to_write, sweep,
};

const GOES_ON: &str = "# To continue the run, start the same command again; the directory is removed when the output is complete. You can also delete it.";

const TRIES: usize = 16;

/// An open cache directory. Other processes may use it at the same time.
#[derive(Debug)]
pub struct CacheFolder {
    path: PathBuf,
    root: Arc<OwnedFd>,
    size: Size,
    swept: Once,
    is_tagged: AtomicBool,
    trouble: OnceLock<String>,
}

impl CacheFolder {
    /// Opens a cache, and creates it if it does not exist. If it exceeds `at_most` bytes, the least recently used responses are
    /// evicted. `None` means no limit.
    ///
    /// # Errors
    /// The errors of [`CacheFolder::open_to_read`], and [`Error::Write`] if the directory cannot be created.
    pub fn open(path: &Path, at_most: Option<u64>) -> Result<Self, Error> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(Error::cannot_write(the_cache(path)))?;
        Self::open_to_read(path, at_most)
    }

    /// Opens an existing cache.
    ///
    /// # Errors
    /// [`Error::Usage`] if the directory is not a cache, or if other users may access it; [`Error::Read`] if it cannot be
    /// opened; [`Error::Write`] if an empty directory cannot be made a cache. If the disk is full or read-only, the cache is
    /// opened anyway, and [`CacheFolder::trouble`] returns the reason.
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
            return wrong(
                "the directory belongs to another user, so its content cannot be trusted; name a new directory",
            );
        }
        let mut tagged = Ok(());
        if has_tag(&root, CACHE_WORDS) {
            // The mode was 0700 before the tag was written. If other users have access now, it was changed later, and
            // they may have changed files, so the cache is refused.
            if status()?.st_mode & 0o077 != 0 {
                return wrong(
                    "the permissions of the directory let other users read it; run chmod 700 on it, or name a new directory",
                );
            }
        } else if is_empty(&root).map_err(&failed)? {
            let closed = rustix::fs::fchmod(&root, Mode::RWXU);
            tagged = closed.map_err(Into::into).and_then(|()| tag(&root));
        } else if !has_tag(&root, CACHE_WORDS) {
            return wrong(
                "the directory is not empty and is not a cache of embody; name a new directory",
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

    fn over(path: &Path, root: Arc<OwnedFd>, size: Size, is_tagged: bool) -> Self {
        Self {
            path: path.to_owned(),
            root,
            size,
            swept: Once::new(),
            is_tagged: AtomicBool::new(is_tagged),
            trouble: OnceLock::new(),
        }
    }

    /// Returns the message of the first error that occurred while writing to the cache. Returns `None` if there was no error.
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
        let length = u64::try_from(found.st_size)
            .ok()
            .filter(|&it| it <= at_most)?;
        let mut octets = Vec::with_capacity(usize::try_from(length).ok()?);
        // Reads one byte more than the length, so that a file that grows meanwhile has another hash and counts as
        // missing.
        (&file).take(length + 1).read_to_end(&mut octets).ok()?;
        // Setting the time fails in a read-only cache, which can be used nevertheless.
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

/// The cache of one run over mailboxes, next to its output. With it, the same command continues after an interruption
/// (docs/cache.md). It is removed when the output is complete.
///
/// Other users may be able to write to the directory of the output. An existing directory is therefore used, and removed, only
/// if embody created it: it must not be a symbolic link, it must belong to this user and be closed to others, and it must
/// contain the tag of embody, which also is the lock of the run. If it contains other files, they and the directory are kept.
pub(crate) struct RunFolder {
    pub(crate) cache: Arc<CacheFolder>,
    pub(crate) path: PathBuf,
    place: (OwnedFd, PathBuf),
    /// Whether an earlier run left the directory.
    pub(crate) has_earlier_run: bool,
    _tag: File,
}

impl RunFolder {
    /// Opens the directory, or creates it. `leaves` is the number of bytes that responses leave free on the disk, or `None` if
    /// the run stores no responses. Returns [`Error::Usage`] if another program created it, and [`Error::Write`] if it cannot
    /// be created, for example because the disk is full.
    pub(crate) fn open(path: &Path, leaves: Option<u64>) -> Result<Self, Error> {
        let failed = Error::cannot_write(the_cache(path));
        let (folder, name) = match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) if folder.as_os_str().is_empty() => (Path::new("."), name),
            (Some(folder), Some(name)) => (folder, name),
            _ => return Err(failed(Errno::INVAL.into())),
        };
        let around = open_root(folder).map_err(&failed)?;
        let size = Size {
            leaves,
            ..Size::default()
        };
        for _ in 0..TRIES {
            let made = size
                .room(&around, 0)
                .and_then(|_| Ok(rustix::fs::mkdirat(&around, name, Mode::RWXU)?));
            let opened = rustix::fs::openat(&around, name, FOLDER, Mode::empty());
            let root = match (opened, &made) {
                (Ok(root), _) => Arc::new(root),
                (Err(Errno::NOENT), Err(why)) if why.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed(io::Error::from(why.kind())));
                }
                // Another run created the directory and has removed it in the meantime. Creating it is tried again.
                (Err(Errno::NOENT), _) => continue,
                (Err(_), _) => return Err(not_ours(path)),
            };
            match Self::locked(path, &root, made.is_ok()) {
                Ok(Some(tag)) => {
                    return Ok(Self {
                        cache: Arc::new(CacheFolder::over(path, root, size, true)),
                        path: path.to_owned(),
                        place: (around, name.into()),
                        has_earlier_run: made.is_err(),
                        _tag: tag,
                    });
                }
                Ok(None) => {}
                Err(error) => {
                    if made.is_ok() {
                        // The directory is new and cannot be used. It is removed, because the run may need its space on
                        // the disk.
                        let _ = rustix::fs::unlinkat(&around, name, AtFlags::REMOVEDIR);
                    }
                    return Err(error);
                }
            }
        }
        Err(failed(Errno::AGAIN.into()))
    }

    fn locked(path: &Path, root: &Arc<OwnedFd>, is_new: bool) -> Result<Option<File>, Error> {
        let failed = Error::cannot_write(the_cache(path));
        let found = rustix::fs::fstat(root).map_err(|why| failed(why.into()))?;
        let is_ours = found.st_uid == rustix::process::geteuid().as_raw();
        if !is_ours || found.st_mode & 0o077 != 0 {
            let why = "the file system has no private directories";
            return Err(if is_new {
                failed(io::Error::other(why))
            } else {
                not_ours(path)
            });
        }
        let tag = tagged(root)
            .map_err(&failed)?
            .ok_or_else(|| not_ours(path))?;
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

    /// Opens the journal of the results of the run: the one of an earlier run, if it exists, and a file to which lines are
    /// appended.
    pub(crate) fn journal(&self) -> (Option<File>, Option<File>) {
        let root = &self.cache.root;
        let before = open_file(root, RUN_MADE).ok();
        let (more, mode) = (OFlags::APPEND | OFlags::CREATE, Mode::RUSR | Mode::WUSR);
        (before, open_to_write(root, RUN_MADE, more, mode).ok())
    }

    pub(crate) fn answers(&self) -> usize {
        let keys = open_folder(&self.cache.root, Area::Keys.name()).and_then(names);
        keys.map_or(0, |keys| keys.iter().filter(|name| is_key(name)).count())
    }

    /// Removes the directory, and returns false if it contains files that embody did not create. The journal is removed at
    /// the end: a run that is killed before is continued.
    pub(crate) fn remove(&self) -> bool {
        let root = &self.cache.root;
        for area in Area::ALL {
            if let Ok(folder) = open_folder(root, area.name()) {
                clear(&folder, &is_key);
                let _ = rustix::fs::unlinkat(root, area.name(), AtFlags::REMOVEDIR);
            }
        }
        // Temporary files of killed runs are removed, too. The lock ensures that no other process is writing them.
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

/// Opens a subdirectory, and creates it if necessary. Opening is tried first: the directory usually exists, and creating one
/// locks its parent.
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
    let rest = "# You can delete this directory at any time.";
    tag_saying(folder, CACHE_WORDS, rest)?.replace(folder, CACHE_TAG)
}

fn tag_saying(folder: &Arc<OwnedFd>, words: &str, rest: &str) -> io::Result<Temporary> {
    let text = format!("Signature: 8a477f597d28d172789f06886806bc55\n{words}\n{rest}\n");
    let mut temporary = Temporary::new(folder, CACHE_TAGGING)?;
    temporary.file.write_all(text.as_bytes())?;
    Ok(temporary)
}

fn not_ours(path: &Path) -> Error {
    let what = "already exists and was not created by embody, which needs this name for server responses during the run; move it away, or choose another output";
    Error::Usage(format!("{} {what}", path.display()).into())
}

/// Opens the tag of the directory. An empty directory gets a new tag: it was left by a run that was killed before it wrote one.
/// Returns `None` if the directory contains other files.
fn tagged(root: &Arc<OwnedFd>) -> io::Result<Option<File>> {
    if let Some(tag) = open_tag(root)? {
        if says(&tag, RUN_WORDS) {
            return Ok(Some(tag));
        }
        // After a power failure, the tag can be empty. An empty tag is accepted if the directory contains only files of embody.
        let is_known = |name: &String| {
            let areas = Area::ALL.iter().map(|area| area.name());
            let mut known = areas.chain([CACHE_TAG, CACHE_TEMPORARIES, RUN_MADE]);
            known.any(|it| it == name) || is_temporary(name.as_bytes(), CACHE_TAGGING)
        };
        if tag.metadata()?.len() > 0 || !names(root)?.iter().all(is_known) {
            return Ok(None);
        }
        tag_saying(root, RUN_WORDS, GOES_ON)?.replace(root, CACHE_TAG)?;
        return Ok(open_tag(root)?.filter(|tag| says(tag, RUN_WORDS)));
    }
    let is_ours = |name: &String| name == CACHE_TAG || is_temporary(name.as_bytes(), CACHE_TAGGING);
    if !names(root)?.iter().all(is_ours) {
        return Ok(None);
    }
    tag_saying(root, RUN_WORDS, GOES_ON)?.become_new(root, CACHE_TAG)?;
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
