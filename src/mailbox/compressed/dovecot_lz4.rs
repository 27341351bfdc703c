//! lz4 as Dovecot's zlib plugin writes it (its iostream-lz4.h): a magic, the size of the largest chunk when it is
//! decompressed, then chunks, each with its compressed length in front; numbers are big-endian, of 32 bits.
//!
//! Nothing marks the end, and there are no checksums: data that was cut between two chunks looks whole.

use std::io::{self, BufRead as _, Read, Write};

use super::method::DOVECOT_LZ4;
use super::octets::{Member, Octets};

/// Dovecot refuses larger chunks, compressed or not.
const MOST: usize = 1 << 20;
const GROWTH: usize = 256;
/// What Dovecot puts into a chunk.
const CHUNK: usize = 64 << 10;

#[derive(Default)]
pub(super) struct Chunks {
    most: Option<usize>,
    compressed: Vec<u8>,
    plain: Vec<u8>,
    start: usize,
    end: usize,
}

fn size(octets: &[u8]) -> io::Result<usize> {
    let size = octets.try_into();
    let size = u32::from_be_bytes(size.map_err(|_| io::ErrorKind::UnexpectedEof)?) as usize;
    match size <= MOST {
        true => Ok(size),
        false => Err(io::Error::other("a larger chunk than Dovecot allows")),
    }
}

impl Chunks {
    fn header(&mut self, octets: &mut Octets<impl Read>) -> io::Result<usize> {
        let header = octets.peek(DOVECOT_LZ4.len() + 4)?;
        let most = size(header.get(DOVECOT_LZ4.len()..).unwrap_or_default())?;
        octets.consume(DOVECOT_LZ4.len() + 4);
        self.most = Some(most);
        Ok(most)
    }

    fn next(&mut self, octets: &mut Octets<impl Read>, most: usize) -> io::Result<bool> {
        let prefix = octets.peek(4)?;
        if matches!(prefix, [] | [0, 0, 0, 0] | b"Dove") {
            return Ok(false);
        }
        let length = size(prefix)?;
        octets.consume(4);
        self.compressed.resize(length, 0);
        octets.read_exact(&mut self.compressed)?;
        // Each of many headers may say that a mebibyte follows.
        let room = most.min(length.saturating_mul(GROWTH));
        self.plain.resize(room.max(self.plain.len()), 0);
        let decompressed = lz4_flex::block::decompress_into(&self.compressed, &mut self.plain);
        self.end = decompressed.map_err(io::Error::other)?;
        self.start = 0;
        Ok(true)
    }
}

impl<R: Read> Member<R> for Chunks {
    fn read(&mut self, octets: &mut Octets<R>, into: &mut [u8]) -> io::Result<usize> {
        let most = match self.most {
            Some(most) => most,
            None => self.header(octets)?,
        };
        while self.start == self.end {
            if !self.next(octets, most)? {
                return Ok(0);
            }
        }
        let mut plain = self.plain.get(self.start..self.end).unwrap_or_default();
        let length = plain.read(into)?;
        self.start += length;
        Ok(length)
    }
}

pub(crate) struct Writer<W> {
    inner: W,
    plain: Vec<u8>,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(mut inner: W) -> io::Result<Self> {
        inner.write_all(DOVECOT_LZ4)?;
        inner.write_all(&(CHUNK as u32).to_be_bytes())?;
        Ok(Self {
            inner,
            plain: Vec::with_capacity(CHUNK),
        })
    }

    fn chunk(&mut self) -> io::Result<()> {
        if self.plain.is_empty() {
            return Ok(());
        }
        let compressed = lz4_flex::block::compress(&self.plain);
        let length = u32::try_from(compressed.len()).map_err(io::Error::other)?;
        self.inner.write_all(&length.to_be_bytes())?;
        self.inner.write_all(&compressed)?;
        self.plain.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<W> {
        self.chunk()?;
        Ok(self.inner)
    }
}

impl<W: Write> Write for Writer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.plain.len() == CHUNK {
            self.chunk()?;
        }
        let length = bytes.len().min(CHUNK - self.plain.len());
        self.plain.extend_from_slice(&bytes[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
