//! One record as a gzip member: header, block, two empty lines.

use std::io::{self, Read, Seek as _, SeekFrom, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::{SpooledData, SpooledTempFile};

use super::header::{RecordHeader, names};

/// Octets of content, or of a record, that are held in memory; more goes to a temporary file without a name.
pub(super) const HELD: usize = 1 << 20;

/// A record, compressed.
#[derive(Debug)]
pub(super) struct RecordMember {
    octets: SpooledData,
}

impl RecordMember {
    /// A record with this block, which has this length.
    pub(super) fn new(
        header: &RecordHeader,
        length: u64,
        block: impl Read,
        is_packed: bool,
    ) -> io::Result<Self> {
        let mut header = header.clone();
        header.add(names::LENGTH, &length.to_string());
        // What was compressed before does not get smaller.
        let level = match is_packed {
            true => Compression::none(),
            false => Compression::fast(),
        };
        let octets = SpooledTempFile::new(HELD);
        let mut encoder = GzEncoder::new(octets, level);
        encoder.write_all(header.to_string().as_bytes())?;
        let copied = io::copy(&mut block.take(length), &mut encoder)?;
        if copied != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        encoder.write_all(b"\r\n\r\n")?;
        Ok(Self {
            octets: encoder.finish()?.into_inner(),
        })
    }

    /// Writes it, in one piece if it is held in memory; says how long it is.
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
