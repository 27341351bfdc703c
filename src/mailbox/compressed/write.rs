//! Writing what is compressed: one member, the same octets for the same mail.

use std::io::{self, Write};

use super::dovecot_lz4;
use super::method::Method;

/// gzip's and xz's own default, for both.
const LEVEL: u32 = 6;
/// zstd's own default.
const ZSTD_LEVEL: i32 = 3;
/// bzip2's own default.
const BZIP2_LEVEL: u32 = 9;

/// Compresses what is written to it, if a method is asked for.
pub(crate) enum Encoder<W: Write> {
    Plain(W),
    Gzip(flate2::write::GzEncoder<W>),
    Zstd(zstd::stream::write::Encoder<'static, W>),
    Bzip2(bzip2::write::BzEncoder<W>),
    Xz(liblzma::write::XzEncoder<W>),
    DovecotLz4(dovecot_lz4::Writer<W>),
}

impl<W: Write> Encoder<W> {
    pub(crate) fn new(method: Option<Method>, writer: W) -> io::Result<Self> {
        let Some(method) = method else {
            return Ok(Self::Plain(writer));
        };
        Ok(match method {
            Method::Gzip => Self::Gzip(flate2::write::GzEncoder::new(
                writer,
                flate2::Compression::new(LEVEL),
            )),
            Method::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(writer, ZSTD_LEVEL)?;
                encoder.include_checksum(true)?;
                Self::Zstd(encoder)
            }
            Method::Bzip2 => Self::Bzip2(bzip2::write::BzEncoder::new(
                writer,
                bzip2::Compression::new(BZIP2_LEVEL),
            )),
            Method::Xz => Self::Xz(liblzma::write::XzEncoder::new(writer, LEVEL)),
            Method::DovecotLz4 => Self::DovecotLz4(dovecot_lz4::Writer::new(writer)?),
        })
    }

    fn inner(&mut self) -> &mut dyn Write {
        match self {
            Self::Plain(writer) => writer,
            Self::Gzip(encoder) => encoder,
            Self::Zstd(encoder) => encoder,
            Self::Bzip2(encoder) => encoder,
            Self::Xz(encoder) => encoder,
            Self::DovecotLz4(encoder) => encoder,
        }
    }

    /// Ends the member; gives the writer back, which is not flushed.
    pub(crate) fn finish(self) -> io::Result<W> {
        match self {
            Self::Plain(writer) => Ok(writer),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
            Self::Bzip2(encoder) => encoder.finish(),
            Self::Xz(encoder) => encoder.finish(),
            Self::DovecotLz4(encoder) => encoder.finish(),
        }
    }
}

impl<W: Write> Write for Encoder<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner().flush()
    }
}
