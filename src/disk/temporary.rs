//! Temporary files: written under a name of this process, then named in one step, or taken away.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;

use super::files::open_file;

/// No run writes one file for that long.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

/// What tells the temporary files of this process apart.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// A file of our own that has no name to stay under yet. It goes when this is dropped; what a killed run leaves is
/// [swept](sweep).
#[derive(Debug)]
pub struct Temporary {
    /// The file, open to read and to write.
    pub file: File,
    folder: Arc<OwnedFd>,
    /// None once it has become another name.
    name: Option<String>,
}

impl Temporary {
    /// A new file. Its name is the prefix, the process, and a number.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(folder: &Arc<OwnedFd>, prefix: &str) -> io::Result<Self> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
            let name = format!("{prefix}{}-{serial}", std::process::id());
            match rustix::fs::openat(folder, &name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => {
                    return Ok(Self {
                        file: File::from(file),
                        folder: Arc::clone(folder),
                        name: Some(name),
                    });
                }
                // Of a process of that number on another machine, or before this one.
                Err(Errno::EXIST) => {}
                Err(why) => return Err(why.into()),
            }
        }
    }

    /// Names the file. A file that has that name goes.
    ///
    /// # Errors
    /// It cannot be renamed; then it goes itself.
    pub fn replace(mut self, folder: impl AsFd, name: &str) -> io::Result<()> {
        if let Some(own) = &self.name {
            rustix::fs::renameat(&self.folder, own, folder, name)?;
            self.name = None;
        }
        Ok(())
    }

    /// Names the file, if no other file has that name; whether it could.
    ///
    /// # Errors
    /// It cannot be renamed; then it goes.
    pub fn become_new(mut self, folder: impl AsFd, name: &str) -> io::Result<bool> {
        let Some(own) = &self.name else {
            return Ok(false);
        };
        match rename_to_new(&self.folder, own, folder.as_fd(), name) {
            Ok(is_gone) => {
                if is_gone {
                    self.name = None;
                }
                Ok(true)
            }
            Err(Errno::EXIST) => Ok(false),
            Err(why) => Err(why.into()),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = rustix::fs::unlinkat(&self.folder, name, AtFlags::empty());
        }
    }
}

/// Gives a file a name that no other one has; whether the old name is gone.
fn rename_to_new(from: impl AsFd, old: &str, to: impl AsFd, new: &str) -> Result<bool, Errno> {
    #[cfg(target_os = "linux")]
    {
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(&from, old, &to, new, flags) {
            // File systems of other kinds (NFS).
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
            done => return done.map(|()| true),
        }
    }
    rustix::fs::linkat(from, old, to, new, AtFlags::empty()).map(|()| false)
}

/// Whether a name is one that [`Temporary::new`] makes.
pub(crate) fn is_temporary(name: &[u8], prefix: &str) -> bool {
    let serial = name.strip_prefix(prefix.as_bytes()).unwrap_or_default();
    let mut numbers = serial.split(|&octet| octet == b'-');
    let mut is_number = || {
        let digits = numbers.next().unwrap_or_default();
        !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
    };
    is_number() && is_number() && numbers.next().is_none()
}

/// Takes away what runs left that were killed: temporary files that nobody wrote for an hour, and of which `is_over` says
/// that nobody writes them. Best effort: they are in nobody's way.
pub fn sweep(folder: impl AsFd, prefix: &str, is_over: impl Fn(&File) -> bool) {
    let Ok(entries) = Dir::read_from(&folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_str().ok();
        let Some(name) = name.filter(|name| is_temporary(name.as_bytes(), prefix)) else {
            continue;
        };
        let Ok(file) = open_file(&folder, name) else {
            continue;
        };
        let modified = file.metadata().and_then(|found| found.modified());
        let age = modified.ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age > ABANDONED) && is_over(&file) {
            let _ = rustix::fs::unlinkat(&folder, name, AtFlags::empty());
        }
    }
}
