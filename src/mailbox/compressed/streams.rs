//! The streams of gzip, bzip2 and xz.

use std::io;

use flate2::FlushDecompress;
use liblzma::stream::{Action, Stream};

use super::stepwise::{Decompress, Stepwise};

/// What decoding xz may take: a dictionary of 128 MiB, and what is around it.
const MEMORY: u64 = (128 << 20) + (16 << 20);

/// The largest window of deflate, which a member of gzip (RFC 1952) does not name.
const WINDOW_BITS: u8 = 15;

/// With its header, and its checksum and length behind the data.
pub(super) fn gzip() -> Stepwise<flate2::Decompress> {
    Stepwise::new(flate2::Decompress::new_gzip(WINDOW_BITS))
}

pub(super) fn bzip2() -> Stepwise<bzip2::Decompress> {
    Stepwise::new(bzip2::Decompress::new(false))
}

pub(super) fn xz() -> io::Result<Stepwise<Stream>> {
    Ok(Stepwise::new(Stream::new_stream_decoder(MEMORY, 0)?))
}

impl Decompress for flate2::Decompress {
    fn totals(&self) -> (u64, u64) {
        (self.total_in(), self.total_out())
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> io::Result<bool> {
        let status = self.decompress(input, output, FlushDecompress::None);
        let status = status.map_err(|error| match error.message() {
            Some("incorrect data check" | "incorrect length check") => {
                io::Error::other("the checksum is wrong")
            }
            _ => io::Error::other(error),
        });
        Ok(status? == flate2::Status::StreamEnd)
    }
}

impl Decompress for bzip2::Decompress {
    fn totals(&self) -> (u64, u64) {
        (self.total_in(), self.total_out())
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> io::Result<bool> {
        let status = self.decompress(input, output);
        Ok(status.map_err(io::Error::other)? == bzip2::Status::StreamEnd)
    }
}

impl Decompress for Stream {
    fn totals(&self) -> (u64, u64) {
        (self.total_in(), self.total_out())
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> io::Result<bool> {
        let status = self.process(input, output, Action::Run)?;
        Ok(status == liblzma::stream::Status::StreamEnd)
    }
}
