//! The streams of gzip, bzip2, xz and zstd, decompressed step by step.
//!
//! The readers of the crates forget what a call gave when it ended with an error, or take the end of cut data for the
//! end of the stream. Here what was there comes before the error.

use std::io::{self, BufRead as _, Read};

use flate2::FlushDecompress;
use liblzma::stream::{Action, Status, Stream};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation as _, OutBuffer};

use super::method::{Method, is_skippable};
use super::octets::{Member, Octets};

/// A dictionary of 128 MiB, and what is around it.
const MEMORY: u64 = (128 << 20) + (16 << 20);

/// The largest window of deflate, which a member of gzip (RFC 1952) does not name.
const WINDOW_BITS: u8 = 15;

pub(super) fn gzip() -> Stepwise {
    let mut stream = flate2::Decompress::new_gzip(WINDOW_BITS);
    Stepwise::new(move |input, output| {
        let status = stream.decompress(input, output, FlushDecompress::None);
        let status = status.map_err(|error| match error.message() {
            Some("incorrect data check" | "incorrect length check") => {
                io::Error::other("the checksum is wrong")
            }
            _ => io::Error::other(error),
        });
        let ended = status.map(|status| status == flate2::Status::StreamEnd);
        (stream.total_in(), stream.total_out(), ended)
    })
}

pub(super) fn bzip2() -> Stepwise {
    let mut stream = bzip2::Decompress::new(false);
    Stepwise::new(move |input, output| {
        let status = stream.decompress(input, output).map_err(io::Error::other);
        let ended = status.map(|status| status == bzip2::Status::StreamEnd);
        (stream.total_in(), stream.total_out(), ended)
    })
}

pub(super) fn xz() -> io::Result<Stepwise> {
    let mut stream = Stream::new_stream_decoder(MEMORY, 0)?;
    Ok(Stepwise::new(move |input, output| {
        let status = stream.process(input, output, Action::Run);
        let ended = status.map(|status| status == Status::StreamEnd);
        let ended = ended.map_err(io::Error::from);
        (stream.total_in(), stream.total_out(), ended)
    }))
}

/// Takes input, which is empty at the end, and output; gives the octets taken and written so far, and whether it ended.
type Step = dyn FnMut(&[u8], &mut [u8]) -> (u64, u64, io::Result<bool>) + Send;

pub(super) struct Stepwise {
    step: Box<Step>,
    totals: (u64, u64),
    ended: io::Result<bool>,
}

impl Stepwise {
    fn new(
        step: impl FnMut(&[u8], &mut [u8]) -> (u64, u64, io::Result<bool>) + Send + 'static,
    ) -> Self {
        Self {
            step: Box::new(step),
            totals: (0, 0),
            ended: Ok(false),
        }
    }
}

impl<R: Read> Member<R> for Stepwise {
    fn read(&mut self, octets: &mut Octets<R>, into: &mut [u8]) -> io::Result<usize> {
        while !std::mem::replace(&mut self.ended, Ok(false))? {
            let input = octets.fill_buf()?;
            let is_end = input.is_empty();
            let before = self.totals;
            let (taken, written, ended) = (self.step)(input, into);
            self.totals = (taken, written);
            self.ended = ended;
            octets.consume(usize::try_from(taken - before.0).unwrap_or(usize::MAX));
            if written > before.1 {
                return usize::try_from(written - before.1).map_err(io::Error::other);
            }
            if is_end && matches!(self.ended, Ok(false)) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.ended = Ok(true);
        Ok(0)
    }
}

/// 128 MiB: zstd(1) takes that without being asked.
const WINDOW_LOG: u32 = 27;

/// Frames of zstd (RFC 8878). The crate's own reader expects that only a frame can follow a frame.
pub(super) struct Frames {
    decoder: Decoder<'static>,
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
