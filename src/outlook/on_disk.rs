//! Mailboxes on disk.

use std::fs::File;
use std::io;

use crate::engine::outlook::pst::RandomAccess;
use crate::platform::FileExt as _;

/// A file on disk, which is read at any position.
pub(crate) struct OnDisk {
    file: File,
    length: u64,
}

impl OnDisk {
    pub(crate) fn of(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { file, length })
    }
}

impl RandomAccess for OnDisk {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }
}
