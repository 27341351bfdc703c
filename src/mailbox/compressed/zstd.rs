//! The frames of zstd (RFC 8878), one behind the other.
//!
//! The crate's own reader goes on behind a frame as if nothing but a frame could follow; here what follows is left to
//! who reads.

use std::io::{self, BufRead as _, Read};

use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation as _, OutBuffer};

use super::method::{Method, is_skippable};
use super::octets::{Member, Octets};

/// The largest window that is decoded: 128 MiB, which is what zstd(1) takes without being asked.
const WINDOW_LOG: u32 = 27;

pub(super) struct Frames {
    decoder: Decoder<'static>,
    /// Octets that the decoder still expects of the frame, as far as it tells; 0 between two frames.
    left: usize,
}

impl Frames {
    pub(super) fn new() -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG))?;
        Ok(Self { decoder, left: 0 })
    }
}

impl<R: Read> Member<R> for Frames {
    fn read(&mut self, octets: &mut Octets<R>, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.left == 0 {
                let start = octets.peek(4)?;
                if !start.starts_with(Method::Zstd.magic()) && !is_skippable(start) {
                    return Ok(0);
                }
                self.left = start.len();
                self.decoder.reinit()?;
            }
            let input = octets.fill_buf()?;
            let is_end = input.is_empty();
            // One block at a time: what a call gives is lost if it fails.
            let block = input.get(..self.left).unwrap_or(input);
            let mut input = InBuffer::around(block);
            let mut output = OutBuffer::around(&mut *into);
            self.left = self.decoder.run(&mut input, &mut output)?;
            let (taken, written) = (input.pos(), output.pos());
            octets.consume(taken);
            if written > 0 {
                return Ok(written);
            }
            if is_end && self.left != 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
