//! Copies Outlook mailboxes from an archive or a stream to temporary files. Reading such a mailbox needs random access,
//! because its index can be at any position. The files are unnamed, so the system removes them when the run ends.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use crate::error::{Error, unpoisoned};

/// Directory of the temporary copies. If unset, the temporary directory of the system is used.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Sets the directory of the copies for the whole process. A service does this once, before it reads mail.
#[cfg_attr(not(all(unix, feature = "serve")), allow(dead_code))]
pub(crate) fn spool_in(folder: &Path) {
    let _ = FOLDER.set(folder.to_owned());
}

/// A file that was copied out of an archive or a stream.
#[derive(Debug)]
pub(crate) struct SpooledFile {
    /// Path of the archive.
    pub(crate) archive: PathBuf,
    /// Name of the member in the archive. Empty if the source itself is an Outlook mailbox in a stream or in compressed
    /// form.
    pub(crate) name: String,
    pub(crate) file: File,
    /// Whether the copy is complete.
    pub(crate) is_whole: bool,
}

impl SpooledFile {
    /// Copies `start` and the remaining bytes of `reader` to a temporary file. If the reader fails, returns the
    /// incomplete copy together with the error.
    ///
    /// # Errors
    /// Returns [`Error::Write`], wrapped in an I/O error, if the temporary file cannot be written.
    pub(crate) fn copy(
        name: String,
        start: &[u8],
        reader: &mut dyn Read,
    ) -> io::Result<(Self, Option<io::Error>)> {
        const PIECE: usize = 256 << 10;
        let folder = FOLDER.get().cloned().unwrap_or_else(std::env::temp_dir);
        let failed = |why| io::Error::other(Error::cannot_write(folder.display())(why));
        let mut file = tempfile::tempfile_in(&folder).map_err(failed)?;
        file.write_all(start).map_err(failed)?;
        let mut piece = vec![0; PIECE];
        let error = loop {
            match reader.read(&mut piece) {
                Ok(0) => break None,
                Ok(read) => file.write_all(&piece[..read]).map_err(failed)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Some(error),
            }
        };
        let is_whole = error.is_none();
        let copy = Self {
            archive: PathBuf::new(),
            name,
            file,
            is_whole,
        };
        Ok((copy, error))
    }
}

/// The Outlook mailboxes that were found while a source was read.
#[derive(Default)]
pub(crate) struct InnerMailboxes {
    pub(crate) found: Mutex<Vec<SpooledFile>>,
    /// Path for the mail of the source that is not in Outlook mailboxes. It is used if the result contains folders of
    /// Outlook mailboxes as well, because the result is then a directory.
    pub(crate) nested: Option<PathBuf>,
}

impl InnerMailboxes {
    pub(crate) fn take(&self) -> Vec<SpooledFile> {
        std::mem::take(&mut *unpoisoned(self.found.lock()))
    }
}
