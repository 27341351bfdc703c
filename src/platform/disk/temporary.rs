//! Creates temporary files, renames them, and removes those that were abandoned.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{AtFlags, Mode, OFlags};

use super::files::{names, open_file, open_to_write};
use super::layout::is_temporary;
use crate::platform::name_anew;

/// Age after which a temporary file counts as abandoned. No run writes to one file for that long.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

static SERIAL: AtomicU64 = AtomicU64::new(0);

/// A temporary file, removed when the value is dropped. If the process is killed, [`sweep`] in a later run removes the file.
#[derive(Debug)]
pub(crate) struct Temporary {
    pub file: File,
    folder: Arc<OwnedFd>,
    name: String,
    is_temporary: bool,
}

impl Temporary {
    pub(crate) fn new(folder: &Arc<OwnedFd>, prefix: &str) -> io::Result<Self> {
        let new = OFlags::CREATE | OFlags::EXCL;
        loop {
            let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
            let name = format!("{prefix}{}-{serial}", std::process::id());
            match open_to_write(folder, &name, new, Mode::RUSR | Mode::WUSR) {
                Ok(file) => {
                    return Ok(Self {
                        file,
                        folder: Arc::clone(folder),
                        name,
                        is_temporary: true,
                    });
                }
                // A process on another machine, or before a restart, had the same process id and left this file, so the
                // next number is tried.
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
                Err(why) => return Err(why),
            }
        }
    }

    pub(crate) fn replace(mut self, folder: impl AsFd, name: &str) -> io::Result<()> {
        rustix::fs::renameat(&self.folder, &self.name, folder, name)?;
        self.is_temporary = false;
        Ok(())
    }

    pub(crate) fn become_new(mut self, folder: impl AsFd, name: &str) -> io::Result<bool> {
        match name_anew(&self.folder, self.name.as_str(), folder, name) {
            Ok(is_gone) => {
                self.is_temporary = !is_gone;
                Ok(true)
            }
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(why) => Err(why),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.is_temporary {
            let _ = rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty());
        }
    }
}

/// Removes abandoned temporary files: those that were not written for an hour and for which `is_over` returns true. Errors are
/// ignored, because a file that remains does no harm.
pub(crate) fn sweep(folder: impl AsFd, prefix: &str, is_over: impl Fn(&File) -> bool) {
    let mut names = names(&folder).unwrap_or_default();
    names.retain(|name| is_temporary(name.as_bytes(), prefix));
    for name in &names {
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
