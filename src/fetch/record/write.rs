//! Writes a record as a gzip member (RFC 1952): the header, the block, and two empty lines.
//!
//! Content that is already compressed is stored uncompressed in the member. For other content, encoders are reused: each has
//! tables of a third of a megabyte, and allocating them takes longer than compressing a short record.

use std::io::{self, Read, Seek as _, SeekFrom, Write};
use std::sync::Mutex;

use flate2::write::DeflateEncoder;
use flate2::{Compression, CrcReader};
use tempfile::{SpooledData, SpooledTempFile};

use super::header::{LONGEST, RecordHeader, names};
use crate::error::unpoisoned;

/// Maximum size in bytes of content or a record in memory. If it is larger, it is written to an unnamed temporary file.
pub(super) const HELD: usize = 1 << 20;

/// Maximum length of a stored (uncompressed) block in bytes. The deflate format allows up to 64 KiB, because it stores
/// the length in 16 bits (RFC 1951 §3.2.4). A quarter of this is used, because the block is an array on the stack.
const STORED: usize = 16 << 10;

/// The header of a gzip member, without a file name and a time.
const START: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\xff";

/// Idle encoders for reuse. Their number never exceeds the number of threads that compressed at the same time.
static IDLE: Mutex<Vec<DeflateEncoder<SpooledTempFile>>> = Mutex::new(Vec::new());

/// A compressed record.
#[derive(Debug)]
pub(super) struct RecordMember {
    octets: SpooledData,
}

impl RecordMember {
    /// Creates a record with a block of `length` bytes. `is_packed` means that the block is compressed already.
    pub(super) fn new(
        header: &RecordHeader,
        length: u64,
        block: impl Read,
        is_packed: bool,
    ) -> io::Result<Self> {
        let mut header = header.clone();
        header.add(names::LENGTH, &length.to_string());
        let text = header.to_string();
        if text.len() as u64 > LONGEST {
            return Err(io::Error::other(
                "the header of the record would be too long",
            ));
        }
        let content = text.as_bytes().chain(block.take(length));
        let mut source = CrcReader::new(content.chain(&b"\r\n\r\n"[..]));
        let mut octets = SpooledTempFile::new(HELD);
        if is_packed {
            // The buffer gets its final size at once. Growing it step by step would copy the bytes several times.
            octets.set_len(length + length / STORED as u64 * 5 + 1024)?;
        }
        octets.write_all(START)?;
        octets = if is_packed {
            stored(&mut source, octets)?
        } else {
            deflated(&mut source, octets)?
        };
        let sum = source.crc();
        let whole = (text.len() as u64 + length + 4) & u64::from(u32::MAX);
        if u64::from(sum.amount()) != whole {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        octets.write_all(&sum.sum().to_le_bytes())?;
        octets.write_all(&sum.amount().to_le_bytes())?;
        let end = octets.stream_position()?;
        octets.set_len(end)?;
        Ok(Self {
            octets: octets.into_inner(),
        })
    }

    /// Writes the record, in one piece if it is in memory. Returns its length in bytes.
    pub(super) fn copy_to(&mut self, target: &mut impl Write) -> io::Result<u64> {
        match &mut self.octets {
            SpooledData::InMemory(held) => {
                target.write_all(held.get_ref())?;
                Ok(held.get_ref().len() as u64)
            }
            SpooledData::OnDisk(file) => {
                file.seek(SeekFrom::Start(0))?;
                io::copy(file, target)
            }
        }
    }
}

fn stored(source: &mut impl Read, target: SpooledTempFile) -> io::Result<SpooledTempFile> {
    let mut target = target;
    let mut block = [0; STORED];
    loop {
        let length = source.read(&mut block)?;
        let short = u16::try_from(length).map_err(io::Error::other)?;
        // Writes one stored (uncompressed) block. Its first byte is 1 for the last block of the gzip member and 0 for
        // all others. The block after the end of the content is empty and is the last one.
        target.write_all(&[u8::from(length == 0)])?;
        target.write_all(&short.to_le_bytes())?;
        target.write_all(&(!short).to_le_bytes())?;
        target.write_all(&block[..length])?;
        if length == 0 {
            return Ok(target);
        }
    }
}

fn deflated(source: &mut impl Read, target: SpooledTempFile) -> io::Result<SpooledTempFile> {
    let idle = || unpoisoned(IDLE.lock());
    let again = idle().pop();
    let new = || DeflateEncoder::new(SpooledTempFile::new(HELD), Compression::fast());
    let mut encoder = again.unwrap_or_else(new);
    *encoder.get_mut() = target;
    io::copy(source, &mut encoder)?;
    let target = encoder.reset(SpooledTempFile::new(HELD))?;
    idle().push(encoder);
    Ok(target)
}
