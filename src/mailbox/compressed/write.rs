//! Compresses mail to a single member. The output is deterministic.

use std::io::{self, Write};

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use liblzma::write::XzEncoder;

use super::dovecot_lz4;
use super::method::Method;

// Compression levels: the defaults of the compression programs. `LEVEL` is for gzip and xz.
const LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;
const BZIP2_LEVEL: u32 = 9;

pub(crate) enum Encoder<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstd(zstd::stream::write::Encoder<'static, W>),
    Bzip2(BzEncoder<W>),
    Xz(XzEncoder<W>),
    DovecotLz4(dovecot_lz4::DovecotLz4Writer<W>),
}

impl<W: Write> Encoder<W> {
    pub(crate) fn new(method: Option<Method>, writer: W) -> io::Result<Self> {
        Ok(match method {
            None => Self::Plain(writer),
            Some(Method::Gzip) => {
                Self::Gzip(GzEncoder::new(writer, flate2::Compression::new(LEVEL)))
            }
            Some(Method::Zstd) => {
                let mut encoder = zstd::stream::write::Encoder::new(writer, ZSTD_LEVEL)?;
                encoder.include_checksum(true)?;
                Self::Zstd(encoder)
            }
            Some(Method::Bzip2) => {
                Self::Bzip2(BzEncoder::new(writer, bzip2::Compression::new(BZIP2_LEVEL)))
            }
            Some(Method::Xz) => Self::Xz(XzEncoder::new(writer, LEVEL)),
            Some(Method::DovecotLz4) => {
                Self::DovecotLz4(dovecot_lz4::DovecotLz4Writer::new(writer)?)
            }
            Some(Method::Utf16(_)) => {
                let what = "embody does not write UTF-16";
                return Err(io::Error::new(io::ErrorKind::Unsupported, what));
            }
        })
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let writer: &mut dyn Write = match self {
            Self::Plain(writer) => writer,
            Self::Gzip(encoder) => encoder,
            Self::Zstd(encoder) => encoder,
            Self::Bzip2(encoder) => encoder,
            Self::Xz(encoder) => encoder,
            Self::DovecotLz4(encoder) => encoder,
        };
        writer.write_all(bytes)
    }

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
