//! What windows are read from: a file, a section of one or of what a stream left of itself, or bytes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::growing::Growing;
use super::mbox::Counted;

/// What windows are read from.
pub(super) trait Source {
    /// As [`FileExt::read_at`].
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl Source for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, bytes, offset)
    }
}

/// For tests, and for what is in memory already.
impl Source for [u8] {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.len());
        let length = bytes.len().min(self.len() - start);
        bytes[..length].copy_from_slice(&self[start..start + length]);
        Ok(length)
    }
}

impl<S: Source + ?Sized> Source for &S {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        (**self).read_at(bytes, offset)
    }
}

/// The bytes of a file between two offsets.
#[derive(Clone, Copy)]
pub(super) struct Section<'a> {
    pub(super) file: &'a File,
    /// The stream that grows into the file.
    pub(super) growing: Option<&'a Growing>,
    pub(super) start: u64,
    pub(super) end: u64,
    /// What the messages before it say about its Content-Lengths.
    pub(super) counted: Counted,
}

impl<'a> Section<'a> {
    /// All of it.
    pub(super) fn whole(file: &'a File) -> Self {
        Self {
            file,
            growing: None,
            start: 0,
            end: u64::MAX,
            counted: Counted::default(),
        }
    }
}

impl Source for Section<'_> {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let at = self.start.saturating_add(offset);
        let left = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX);
        let wanted = left.min(bytes.len());
        let bytes = &mut bytes[..wanted];
        match self.growing {
            None => FileExt::read_at(self.file, bytes, at),
            Some(growing) => growing.read_at(bytes, at).map_err(io::Error::other),
        }
    }
}
