//! Reads and writes the lz4 format of Dovecot's zlib plugin (iostream-lz4.h in Dovecot). The data begin with a magic
//! number and the maximum decompressed size of a chunk. Each chunk is preceded by its compressed length. Numbers are
//! 32-bit big-endian.
//!
//! The format has no end mark and no checksums, so truncation between two chunks cannot be detected.

use std::io::{self, BufRead as _, Read, Write};

use super::method::DOVECOT_LZ4;
use super::octets::Member;
use crate::span::rest_or_empty;

/// Maximum size of a chunk in bytes, both compressed and decompressed. Dovecot refuses larger chunks, and the limit
/// protects the memory.
const MOST: usize = 1 << 20;
const GROWTH: usize = 256;
/// Size of the chunks that Dovecot writes, in bytes of mail.
const CHUNK: usize = 64 << 10;

fn size(octets: &[u8]) -> io::Result<usize> {
    let octets = octets
        .try_into()
        .map_err(|_| io::ErrorKind::UnexpectedEof)?;
    let size = u32::from_be_bytes(octets) as usize;
    if size <= MOST {
        Ok(size)
    } else {
        Err(io::Error::other(
            "a chunk of the compressed data is larger than Dovecot allows",
        ))
    }
}

pub(super) fn chunks<R: Read>() -> Member<R> {
    let mut most = None;
    let (mut compressed, mut plain) = (Vec::new(), Vec::new());
    let mut rest = 0..0;
    Box::new(move |octets, into| {
        let most = match most {
            Some(most) => most,
            None => {
                let header = octets.peek(DOVECOT_LZ4.len() + 4)?;
                let largest = size(rest_or_empty(header, DOVECOT_LZ4.len()))?;
                octets.consume(DOVECOT_LZ4.len() + 4);
                *most.insert(largest)
            }
        };
        while rest.is_empty() {
            let prefix = octets.peek(4)?;
            if matches!(prefix, [] | [0, 0, 0, 0] | b"Dove") {
                return Ok(0);
            }
            let length = size(prefix)?;
            octets.consume(4);
            compressed.resize(length, 0);
            octets.read_exact(&mut compressed)?;
            // The buffer for a chunk is not larger than `GROWTH` times its compressed size. Otherwise, malicious data
            // with many tiny chunks could make the program allocate and fill 1 MiB for each of them.
            let room = most.min(length.saturating_mul(GROWTH));
            plain.resize(room.max(plain.len()), 0);
            let decompressed = lz4_flex::block::decompress_into(&compressed, &mut plain);
            rest = 0..decompressed.map_err(io::Error::other)?;
        }
        let length = plain.get(rest.clone()).unwrap_or_default().read(into)?;
        rest.start += length;
        Ok(length)
    })
}

pub(crate) struct DovecotLz4Writer<W> {
    inner: W,
    plain: Vec<u8>,
}

impl<W: Write> DovecotLz4Writer<W> {
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

impl<W: Write> Write for DovecotLz4Writer<W> {
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
