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

/// Decompresses from input, which is empty at the end, to output: how many octets it took and wrote so far, and whether the
/// stream ended, or why it cannot go on.
type Step = dyn FnMut(&[u8], &mut [u8]) -> (u64, u64, io::Result<bool>) + Send;

/// The reader.
pub(super) struct Stepwise {
    step: Box<Step>,
    totals: (u64, u64),
    ended: bool,
    failed: Option<io::Error>,
}

impl Stepwise {
    pub(super) fn new(
        step: impl FnMut(&[u8], &mut [u8]) -> (u64, u64, io::Result<bool>) + Send + 'static,
    ) -> Self {
        Self {
            step: Box::new(step),
            totals: (0, 0),
            ended: false,
            failed: None,
        }
    }
}

impl<R: Read> Member<R> for Stepwise {
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
            let before = self.totals;
            let (taken, written, ended) = (self.step)(input, into);
            self.totals = (taken, written);
            octets.consume(usize::try_from(taken - before.0).unwrap_or(usize::MAX));
            match ended {
                Ok(ended) => self.ended = ended,
                Err(error) => self.failed = Some(error),
            }
            if written > before.1 {
                return usize::try_from(written - before.1).map_err(io::Error::other);
            }
            if is_end && !self.ended && self.failed.is_none() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
