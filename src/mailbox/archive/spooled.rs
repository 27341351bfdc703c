//! Mailboxes of Outlook in an archive or a stream. Their index can be anywhere in the file, so each one is copied to a
//! temporary file without a name, which the system removes when the run ends.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::PathBuf;
use std::sync::Mutex;

use crate::error::{Error, unpoisoned};

/// A copied file.
#[derive(Debug)]
pub(crate) struct Spooled {
    /// Name in the archive; empty if the whole source was copied.
    pub(crate) name: String,
    pub(crate) file: File,
}

impl Spooled {
    /// Copies `start` and what follows in `reader`. An error of the reader ends the copy, and is returned with it.
    ///
    /// # Errors
    /// An [`Error::Write`] if the temporary file cannot be written.
    pub(crate) fn copy(
        name: String,
        start: &[u8],
        reader: &mut dyn Read,
    ) -> io::Result<(Self, Option<io::Error>)> {
        const PIECE: usize = 256 << 10;
        let folder = std::env::temp_dir();
        let failed = |why| io::Error::other(Error::cannot_write(folder.display())(why));
        let mut file = tempfile::tempfile_in(&folder).map_err(failed)?;
        file.write_all(start).map_err(failed)?;
        let mut piece = vec![0; PIECE];
        let error = loop {
            match reader.read(&mut piece) {
                Ok(0) => break None,
                Ok(read) => {
                    let read = piece.get(..read).unwrap_or_default();
                    file.write_all(read).map_err(failed)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Some(error),
            }
        };
        Ok((Self { name, file }, error))
    }
}

/// The mailboxes of Outlook that were found while a source was read.
#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) found: Mutex<Vec<Spooled>>,
    /// The name of the mailbox that the mboxes of the source become if there are other mailboxes.
    pub(crate) nested: Option<PathBuf>,
}

impl Inner {
    pub(crate) fn take(&self) -> Vec<Spooled> {
        std::mem::take(&mut *unpoisoned(self.found.lock()))
    }
}
