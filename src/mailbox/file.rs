//! Reads a file at given offsets, independently of the position of other readers of the file.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::mailbox::Stop;
use crate::platform::FileExt as _;

pub(crate) fn uninterrupted(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Fills `buffer` with as many calls of `read` as needed. `read` gets the unfilled rest of the buffer and the number of
/// bytes before it. Returns fewer bytes only at the end of the file.
pub(crate) fn filled_by(
    buffer: &mut [u8],
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match uninterrupted(|| read(rest, filled as u64))? {
            0 => break,
            more => filled += more,
        }
    }
    Ok(filled)
}

pub(crate) fn octets_at(file: &File, at: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut octets = vec![0; length];
    let filled = filled_by(&mut octets, |rest, before| file.read_at(rest, at + before))?;
    octets.truncate(filled);
    Ok(octets)
}

/// A compressed file or an archive. The size of the mail in it is unknown, so the progress is the number of compressed
/// bytes that were read.
pub(crate) struct PackedFile {
    pub(crate) file: Arc<File>,
    pub(crate) stop: Stop,
    /// Number of bytes that were read or skipped (`read`), and the part of them that was already reported as progress
    /// (`told`).
    read: AtomicU64,
    told: AtomicU64,
}

impl PackedFile {
    pub(crate) fn new(file: &Arc<File>, stop: &Stop) -> Arc<Self> {
        Arc::new(Self {
            file: Arc::clone(file),
            stop: stop.clone(),
            read: AtomicU64::new(0),
            told: AtomicU64::new(0),
        })
    }

    /// Returns an error if a stop was requested. This is also called while archive members are skipped, because that
    /// can take a long time.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.stop.check().map_err(io::Error::other)
    }

    pub(crate) fn passed(&self, octets: u64) {
        self.read.fetch_add(octets, Ordering::Relaxed);
    }

    /// Returns the number of bytes that were read since the previous call.
    pub(crate) fn news(&self) -> u64 {
        let read = self.read.load(Ordering::Relaxed);
        read.saturating_sub(self.told.swap(read, Ordering::Relaxed))
    }

    pub(crate) fn rest(&self) -> u64 {
        let length = self.file.metadata().map_or(0, |metadata| metadata.len());
        length.saturating_sub(self.told.swap(length, Ordering::Relaxed))
    }
}

/// Reads the file from its start, or at given offsets, and counts the bytes as progress.
pub(crate) struct PackedReader {
    pub(crate) packed: Arc<PackedFile>,
    pub(crate) at: u64,
}

impl PackedReader {
    pub(crate) fn new(packed: &Arc<PackedFile>) -> Self {
        let packed = Arc::clone(packed);
        Self { packed, at: 0 }
    }
}

impl PackedReader {
    fn read_from(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let read = self.packed.file.read_at(into, at)?;
        self.packed.passed(read as u64);
        Ok(read)
    }
}

#[cfg(feature = "archives")]
impl rawzip::ReaderAt for PackedReader {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.read_from(into, at)
    }
}

impl Read for PackedReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.packed.check()?;
        let read = self.read_from(into, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
