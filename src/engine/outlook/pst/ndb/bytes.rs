//! Reads bytes and numbers of a file: the width of its numbers depends on its version.

use std::io;

use crate::span::front;

/// A file that can be read at any position, such as a file on disk, or a file that a browser has not loaded into memory.
pub trait RandomAccess: Send + Sync {
    /// Returns the length of the file in bytes. It must not change while the file is read.
    fn length(&self) -> u64;

    /// Reads bytes at `offset` into `into`, up to the end of `into` or of the file, and returns their number. Fewer bytes
    /// are allowed; 0 means the end of the file.
    ///
    /// # Errors
    /// Returns the error of the system that contains the file.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
}

impl RandomAccess for Vec<u8> {
    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|at| self.get(at..));
        let found = front(rest.unwrap_or_default(), into.len());
        into[..found.len()].copy_from_slice(found);
        Ok(found.len())
    }
}

/// Reads bytes at `offset` until `into` is full or the file ends.
pub(super) fn exact(bytes: &dyn RandomAccess, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match bytes.read_at(offset.saturating_add(filled as u64), rest)? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

pub(in crate::engine::outlook) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(in crate::engine::outlook) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(in crate::engine::outlook) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Computes the checksum of MS-PST 5.3: CRC-32 without the two inversions.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(u32::MAX);
    hasher.update(bytes);
    !hasher.finalize()
}

/// The width of the ids and offsets in a file, which depends on its version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::engine::outlook) enum Width {
    /// Numbers of 4 bytes, in the versions 14 and 15.
    Ansi,
    /// Numbers of 8 bytes, in version 23.
    Unicode,
}

impl Width {
    /// Returns the length of an id or an offset, in bytes.
    pub(in crate::engine::outlook) fn of_id(self) -> usize {
        match self {
            Self::Ansi => 4,
            Self::Unicode => 8,
        }
    }

    pub(super) fn id(self, bytes: &[u8], at: usize) -> Option<u64> {
        match self {
            Self::Ansi => u32_at(bytes, at).map(u64::from),
            Self::Unicode => u64_at(bytes, at),
        }
    }

    /// Returns the length in bytes of the trailer after the data of a block and after the entries of a page.
    pub(super) fn of_trailer(self) -> usize {
        match self {
            Self::Ansi => 12,
            Self::Unicode => 16,
        }
    }

    /// Returns the maximum number of bytes in a block.
    pub(in crate::engine::outlook) fn of_block(self) -> usize {
        8192 - self.of_trailer()
    }
}
