//! A decompressor that is called step by step, as a reader.
//!
//! The readers of the crates forget what a call gave when it ended with an error, or take the end of data that were cut
//! off for the end of the stream. Here what was there comes before the trouble.

use std::io::{self, BufRead as _, Read};

use super::octets::Octets;

/// What one call did.
pub(crate) struct Step {
    pub(super) taken: u64,
    pub(super) written: u64,
    /// Whether the stream ended; or why it cannot go on.
    pub(super) ended: io::Result<bool>,
}

/// Decompresses one stream.
pub(crate) trait Decompress {
    /// From `input`, which is empty at the end, to `output`.
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step;
}

/// The reader.
pub(crate) struct Stepwise<R, D> {
    pub(super) octets: Octets<R>,
    decompress: D,
    ended: bool,
    failed: Option<io::Error>,
}

impl<R: Read, D: Decompress> Stepwise<R, D> {
    pub(super) fn new(octets: Octets<R>, decompress: D) -> Self {
        Self {
            octets,
            decompress,
            ended: false,
            failed: None,
        }
    }
}

impl<R: Read, D: Decompress> Read for Stepwise<R, D> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            if self.ended {
                return Ok(0);
            }
            let input = self.octets.fill_buf()?;
            let is_end = input.is_empty();
            let step = self.decompress.step(input, into);
            let taken = usize::try_from(step.taken).unwrap_or(usize::MAX);
            self.octets.consume(taken);
            match step.ended {
                Ok(ended) => self.ended = ended,
                Err(error) => self.failed = Some(error),
            }
            if step.written > 0 {
                return usize::try_from(step.written).map_err(io::Error::other);
            }
            if is_end && !self.ended && self.failed.is_none() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
