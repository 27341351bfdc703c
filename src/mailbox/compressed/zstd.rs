//! The frames of zstd (RFC 8878), one behind the other.
//!
//! The crate's own reader goes on behind a frame as if nothing but a frame could follow; here what follows is left to
//! who reads.

use std::io::{self, BufRead as _, Read};

use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation as _, OutBuffer};

use super::method::is_skippable;
use super::octets::Octets;

/// The largest window that is decoded: 128 MiB, which is what zstd(1) takes without being asked.
const WINDOW_LOG: u32 = 27;

/// Frames, up to something else.
pub(super) struct Frames<R> {
    pub(super) octets: Octets<R>,
    decoder: Decoder<'static>,
    /// What is left of the frame, as far as the decoder tells; 0 between two frames.
    left: usize,
}

impl<R: Read> Frames<R> {
    pub(super) fn new(octets: Octets<R>) -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG))?;
        Ok(Self {
            octets,
            decoder,
            left: 0,
        })
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.left == 0 {
                let start = self.octets.peek(4)?;
                if !start.starts_with(b"\x28\xb5\x2f\xfd") && !is_skippable(start) {
                    return Ok(0);
                }
                self.left = start.len();
                self.decoder.reinit()?;
            }
            let input = self.octets.fill_buf()?;
            let is_end = input.is_empty();
            // One block at a time: what a call gives is lost if it fails.
            let block = input.get(..self.left).unwrap_or(input);
            let mut input = InBuffer::around(block);
            let mut output = OutBuffer::around(&mut *into);
            self.left = self.decoder.run(&mut input, &mut output)?;
            let (taken, written) = (input.pos(), output.pos());
            self.octets.consume(taken);
            if written > 0 {
                return Ok(written);
            }
            if is_end && self.left != 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
