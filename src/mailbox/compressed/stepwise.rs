//! A decompressor that is called step by step, as the reader of a member.
//!
//! The readers of the crates forget what a call gave when it ended with an error, or take the end of data that were cut
//! off for the end of the stream. Here what was there comes before the trouble.

use std::io::{self, BufRead as _, Read};

use super::octets::Octets;

/// Reads one member.
pub(super) trait Member<R> {
    /// What comes next of it, made of `octets`; nothing at its end.
    fn read(&mut self, octets: &mut Octets<R>, into: &mut [u8]) -> io::Result<usize>;
}

/// Decompresses one stream.
pub(super) trait Decompress {
    /// How many octets it took, and wrote, so far.
    fn totals(&self) -> (u64, u64);

    /// From `input`, which is empty at the end, to `output`; whether the stream ended, or why it cannot go on.
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> io::Result<bool>;
}

/// The reader.
pub(super) struct Stepwise<D> {
    decompress: D,
    ended: bool,
    failed: Option<io::Error>,
}

impl<D: Decompress> Stepwise<D> {
    pub(super) fn new(decompress: D) -> Self {
        Self {
            decompress,
            ended: false,
            failed: None,
        }
    }
}

impl<R: Read, D: Decompress> Member<R> for Stepwise<D> {
    fn read(&mut self, octets: &mut Octets<R>, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            if self.ended {
                return Ok(0);
            }
            let input = octets.fill_buf()?;
            let is_end = input.is_empty();
            let before = self.decompress.totals();
            let ended = self.decompress.step(input, into);
            let now = self.decompress.totals();
            octets.consume(usize::try_from(now.0 - before.0).unwrap_or(usize::MAX));
            match ended {
                Ok(ended) => self.ended = ended,
                Err(error) => self.failed = Some(error),
            }
            if now.1 > before.1 {
                return usize::try_from(now.1 - before.1).map_err(io::Error::other);
            }
            if is_end && !self.ended && self.failed.is_none() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
