//! Temporary files for data that does not fit into memory.
//!
//! A [`SpoolWriter`] appends bytes and returns their positions, and a [`Spool`] reads them again. A [`Sorter`] sorts records
//! of a fixed length, which a [`RecordWriter`] encodes and a [`RecordReader`] decodes.
//!
//! The module does not depend on mail: `merge`, `copies` and `compare` decide what they store.

mod record;
mod sorted;

use std::fs::File;
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write as _};

use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use self::record::{RecordReader, RecordWriter};
pub(crate) use self::sorted::{SortedRecords, Sorter};
use crate::platform::FileExt as _;

/// Size of the write buffer, in bytes.
const BUFFER: usize = 1 << 18;

/// Size of a block's length prefix, in bytes.
const HEAD: usize = 4;

/// Appends bytes to a file.
pub(crate) struct SpoolWriter {
    writer: BufWriter<File>,
    end: u64,
}

impl SpoolWriter {
    /// Creates a temporary file in the default directory. The file has no name, so the operating system deletes it when the
    /// process ends.
    pub(crate) fn temporary() -> io::Result<Self> {
        Ok(Self::new(tempfile::tempfile()?))
    }

    /// Writes to an empty file.
    pub(crate) fn new(file: File) -> Self {
        Self {
            writer: BufWriter::with_capacity(BUFFER, file),
            end: 0,
        }
    }

    /// Continues a file, keeping its first `end` bytes.
    pub(crate) fn continued(mut file: File, end: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(end))?;
        Ok(Self {
            end,
            ..Self::new(file)
        })
    }

    /// Number of bytes in the file, which is the position of the bytes that are appended next.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Appends bytes, and returns their position.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let position = self.end;
        self.writer.write_all(bytes)?;
        self.end += bytes.len() as u64;
        Ok(position)
    }

    /// Appends bytes with their length, and returns the position for [`Spool::block`].
    pub(crate) fn push_block(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let position = self.push(&length.to_be_bytes())?;
        self.push(bytes)?;
        Ok(position)
    }

    /// Appends a value as JSON, and returns the position for [`Spool::value`].
    pub(crate) fn push_value(&mut self, value: &impl Serialize) -> io::Result<u64> {
        self.push_block(&serde_json::to_vec(value)?)
    }

    /// Writes all bytes to the file, and returns its length.
    pub(crate) fn save(&mut self) -> io::Result<u64> {
        self.writer.flush()?;
        Ok(self.end)
    }

    /// Ends the writing.
    pub(crate) fn finish(self) -> io::Result<Spool> {
        let file = self.writer.into_inner();
        Ok(Spool(file.map_err(|error| error.into_error())?))
    }
}

/// A complete file. Several threads can read from it.
pub(crate) struct Spool(File);

impl Spool {
    /// Returns `length` bytes.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file is shorter.
    pub(crate) fn read(&self, position: u64, length: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        self.read_into(&mut bytes, position)?;
        Ok(bytes)
    }

    /// Fills `bytes`.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file is shorter.
    pub(crate) fn read_into(&self, bytes: &mut [u8], position: u64) -> io::Result<()> {
        self.0.read_exact_at(bytes, position)
    }

    /// Fills `bytes` as far as the file reaches. Returns the number of bytes that were read.
    pub(crate) fn read_most(&self, bytes: &mut [u8], position: u64) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.0.read_at(rest, position + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// Returns the bytes that [`SpoolWriter::push_block`] wrote.
    pub(crate) fn block(&self, position: u64) -> io::Result<Vec<u8>> {
        let mut length = [0; HEAD];
        self.read_into(&mut length, position)?;
        let length = u32::from_be_bytes(length);
        self.read(position + HEAD as u64, length.into())
    }

    /// Returns the value that [`SpoolWriter::push_value`] wrote.
    pub(crate) fn value<T: DeserializeOwned>(&self, position: u64) -> io::Result<T> {
        Ok(serde_json::from_slice(&self.block(position)?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_blocks_and_values_are_read_from_the_positions_at_which_they_were_written() {
        let mut writer = SpoolWriter::temporary().unwrap();
        let bytes = writer.push(b"abc").unwrap();
        let empty = writer.push_block(b"").unwrap();
        let block = writer.push_block(b"\xff\0").unwrap();
        let value = writer.push_value(&("a", 7)).unwrap();
        let end = writer.end();
        assert_eq!(writer.save().unwrap(), end);
        let spool = writer.finish().unwrap();
        assert_eq!(spool.read(bytes, 3).unwrap(), b"abc");
        assert_eq!(spool.block(empty).unwrap(), b"");
        assert_eq!(spool.block(block).unwrap(), b"\xff\0");
        let read: (String, u8) = spool.value(value).unwrap();
        assert_eq!(read, ("a".to_owned(), 7));
        let error = spool.read(end - 1, 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        let mut more = [1; 4];
        assert_eq!(spool.read_most(&mut more, end - 1).unwrap(), 1);
        assert_eq!(more, [b']', 1, 1, 1]);
    }

    #[test]
    fn bytes_after_the_saved_length_of_a_continued_file_are_replaced() {
        let file = tempfile::tempfile().unwrap();
        let mut writer = SpoolWriter::new(file.try_clone().unwrap());
        writer.push(b"saved").unwrap();
        let end = writer.save().unwrap();
        writer.push(b"not saved").unwrap();
        drop(writer);
        let mut writer = SpoolWriter::continued(file, end).unwrap();
        assert_eq!(writer.push(b" and continued").unwrap(), end);
        let spool = writer.finish().unwrap();
        assert_eq!(spool.read(0, 19).unwrap(), b"saved and continued");
    }
}
