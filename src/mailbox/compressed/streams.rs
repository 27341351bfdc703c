//! The streams of bzip2 and xz.

use std::io;

use liblzma::stream::Action;

use super::stepwise::{Decompress, Step};

/// What decoding xz may take: a dictionary of 128 MiB, and what is around it.
const MEMORY: u64 = (128 << 20) + (16 << 20);

/// A stream of bzip2.
pub(crate) struct Bzip2(bzip2::Decompress);

impl Bzip2 {
    pub(super) fn new() -> Self {
        Self(bzip2::Decompress::new(false))
    }
}

impl Decompress for Bzip2 {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        let before = (self.0.total_in(), self.0.total_out());
        let ended = self.0.decompress(input, output);
        Step {
            taken: self.0.total_in() - before.0,
            written: self.0.total_out() - before.1,
            ended: ended
                .map(|status| status == bzip2::Status::StreamEnd)
                .map_err(io::Error::other),
        }
    }
}

/// A stream of xz.
pub(crate) struct Xz(liblzma::stream::Stream);

impl Xz {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(liblzma::stream::Stream::new_stream_decoder(
            MEMORY, 0,
        )?))
    }
}

impl Decompress for Xz {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        let before = (self.0.total_in(), self.0.total_out());
        let ended = self.0.process(input, output, Action::Run);
        Step {
            taken: self.0.total_in() - before.0,
            written: self.0.total_out() - before.1,
            ended: ended
                .map(|status| status == liblzma::stream::Status::StreamEnd)
                .map_err(io::Error::from),
        }
    }
}
