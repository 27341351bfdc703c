//! The identity of a file at one moment, which shows later whether the path still belongs to the same, unchanged file.

use std::fs::{self, Metadata};
use std::io;
use std::path::Path;

use crate::error::Error;
use crate::mailbox::failure::{changed, unreadable};
use crate::platform::MetadataExt as _;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct FileIdentity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) length: u64,
    pub(crate) modified: (i64, i64),
}

impl FileIdentity {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }

    /// Returns [`Error::Changed`] if the path belongs to another file or the file has changed, and
    /// [`Error::Unreadable`] if this cannot be checked.
    pub(crate) fn check(&self, path: &Path) -> Result<(), Error> {
        match fs::metadata(path) {
            Ok(metadata) if Self::of(&metadata) == *self => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unreadable(path)(error)),
            _ => Err(changed(path)),
        }
    }
}
