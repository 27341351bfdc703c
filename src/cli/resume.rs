//! Going on with a run over mailboxes that was stopped, killed, or failed: its answers are kept beside its output until
//! that is whole (docs/cache.md).

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

use super::args::Volume;
use super::input::is_standard;
use super::say;
use crate::cache::{Made, RunFolder};
use crate::error::Error;

const SUFFIX: &str = ".embody-resume";

pub(super) struct Resume {
    pub(super) folder: RunFolder,
    pub(super) made: Made,
    pub(super) is_whole: Cell<bool>,
}

impl Resume {
    /// `command` is all that decides about a result besides its source. `leaves` bytes of the disk stay free.
    pub(super) fn beside(
        output: &Path,
        command: &str,
        leaves: u64,
        volume: Volume,
    ) -> Result<Option<Self>, Error> {
        let Some(path) = place(output) else {
            return Ok(None);
        };
        let folder = match RunFolder::open(&path, leaves) {
            Ok(folder) => folder,
            Err(Error::Usage(why)) => return Err(Error::Usage(why.then(", or give --no-resume"))),
            // No mail waits for a disk that is only good for keeping copies.
            Err(error @ Error::Write { .. }) => {
                if volume >= Volume::Normal {
                    let why = say::error(&error);
                    say::tell(&format!("{why}; a run that is stopped will begin anew"));
                }
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let (answers, made) = (folder.answers(), folder.made(command));
        if (answers > 0 || made.before() > 0) && volume >= Volume::Normal {
            let path = say::shown(&folder.path);
            say::tell(&format!(
                "going on with {answers} answers that an earlier run kept in {path}"
            ));
        }
        Ok(Some(Self {
            folder,
            made,
            is_whole: Cell::new(false),
        }))
    }
}

impl Drop for Resume {
    fn drop(&mut self) {
        let folder = &self.folder;
        let (answers, path) = (folder.answers(), say::shown(&folder.path));
        let is_of_use = answers > 0 || self.made.is_any();
        if self.is_whole.get() || !is_of_use {
            if !folder.remove() {
                let what = "holds files that embody did not make, and was not removed";
                say::tell(&format!("{path} {what}"));
            }
            return;
        }
        let told = |why| format!(" (no more were kept: {})", say::harmless(why));
        let trouble = folder.cache.trouble().map(told).unwrap_or_default();
        say::tell(&format!(
            "run the same command again to go on; {answers} answers are kept in {path}{trouble}"
        ));
    }
}

fn place(output: &Path) -> Option<PathBuf> {
    let is_device = |found: fs::Metadata| !found.is_file() && !found.is_dir();
    if is_standard(output) || fs::metadata(output).is_ok_and(is_device) {
        return None;
    }
    let whole = match output.file_name() {
        Some(_) => output.to_owned(),
        // `.` and `..` have no name.
        None => output.canonicalize().ok()?,
    };
    let mut name = whole.file_name()?.to_owned();
    name.push(SUFFIX);
    let place = whole.with_file_name(name);
    let folder = place.parent()?;
    (folder.as_os_str().is_empty() || folder.is_dir()).then_some(place)
}
