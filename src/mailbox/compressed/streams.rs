//! Decompresses streams of gzip, bzip2, xz and zstd step by step.
//!
//! We do not use the `Read` adapters of the crates: if a call ends with an error, they drop the bytes that it
//! decompressed, or they accept truncated data as complete. Here, the decompressed bytes are returned before the error.

use std::io::{self, BufRead as _, Read};

use flate2::FlushDecompress;
use liblzma::stream::{Action, Status, Stream};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation as _, OutBuffer};

use super::dovecot_lz4::chunks;
use super::method::{Method, is_skippable};
use super::octets::Member;
use crate::span::front;

pub(super) fn member<R: Read>(method: Method) -> io::Result<Member<R>> {
    Ok(match method {
        Method::Gzip => gzip(),
        Method::Zstd => zstd()?,
        Method::Bzip2 => bzip2(),
        Method::Xz => xz()?,
        Method::DovecotLz4 => chunks(),
        Method::Utf16(order) => super::utf16::member(order),
    })
}

/// Memory limit of the xz decoder, in bytes: 128 MiB for the dictionary, and 16 MiB for the rest.
const MEMORY: u64 = (128 << 20) + (16 << 20);

/// Window size of deflate, as a power of two: 2^15 bytes is the maximum. The gzip header (RFC 1952) does not contain
/// the actual size.
const WINDOW_BITS: u8 = 15;

fn gzip<R: Read>() -> Member<R> {
    let mut stream = flate2::Decompress::new_gzip(WINDOW_BITS);
    stepwise(move |input, output| {
        let status = stream
            .decompress(input, output, FlushDecompress::None)
            .map_err(|error| match error.message() {
                Some("incorrect data check" | "incorrect length check") => {
                    io::Error::other("the checksum of the compressed data is wrong")
                }
                _ => io::Error::other(error),
            });
        let ended = status.map(|status| status == flate2::Status::StreamEnd);
        (stream.total_in(), stream.total_out(), ended)
    })
}

fn bzip2<R: Read>() -> Member<R> {
    let mut stream = bzip2::Decompress::new(false);
    stepwise(move |input, output| {
        let status = stream.decompress(input, output).map_err(io::Error::other);
        let ended = status.map(|status| status == bzip2::Status::StreamEnd);
        (stream.total_in(), stream.total_out(), ended)
    })
}

fn xz<R: Read>() -> io::Result<Member<R>> {
    let mut stream = Stream::new_stream_decoder(MEMORY, 0)?;
    Ok(stepwise(move |input, output| {
        let status = stream
            .process(input, output, Action::Run)
            .map_err(io::Error::from);
        let ended = status.map(|status| status == Status::StreamEnd);
        (stream.total_in(), stream.total_out(), ended)
    }))
}

/// Turns `step` into a [`Member`]. `step` decompresses some of the input into the output. Its input is empty at the end
/// of the file. It returns the total bytes read, the total bytes written, and whether the stream has ended.
fn stepwise<R: Read>(
    mut step: impl FnMut(&[u8], &mut [u8]) -> (u64, u64, io::Result<bool>) + Send + 'static,
) -> Member<R> {
    let (mut before, mut ended) = ((0, 0), Ok(false));
    Box::new(move |octets, into| {
        while !std::mem::replace(&mut ended, Ok(false))? {
            let input = octets.fill_buf()?;
            let is_end = input.is_empty();
            let (taken, written, has_ended) = step(input, into);
            ended = has_ended;
            octets.consume(usize::try_from(taken - before.0).unwrap_or(usize::MAX));
            let new = written - before.1;
            before = (taken, written);
            if new > 0 {
                return usize::try_from(new).map_err(io::Error::other);
            }
            if is_end && matches!(ended, Ok(false)) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        ended = Ok(true);
        Ok(0)
    })
}

/// Maximum window size of zstd: 2^27 bytes (128 MiB). It limits the memory. zstd(1) accepts this size without a special
/// option.
const WINDOW_LOG: u32 = 27;

/// Decompresses zstd frames (RFC 8878). We do not use the `Read` adapter of the crate, because it treats other data
/// after a frame as a damaged frame.
fn zstd<R: Read>() -> io::Result<Member<R>> {
    let mut decoder = Decoder::new()?;
    decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG))?;
    let mut left = 0;
    Ok(Box::new(move |octets, into| {
        loop {
            if left == 0 {
                let start = octets.peek(4)?;
                if !start.starts_with(Method::Zstd.magic()) && !is_skippable(start) {
                    return Ok(0);
                }
                left = start.len();
                decoder.reinit()?;
            }
            let input = octets.fill_buf()?;
            let is_end = input.is_empty();
            // Each call decompresses only one block. If a call fails, the bytes that it has already decompressed are
            // lost, so a call should cover as little as possible.
            let block = front(input, left);
            let mut input = InBuffer::around(block);
            let mut output = OutBuffer::around(&mut *into);
            left = decoder.run(&mut input, &mut output)?;
            let (taken, written) = (input.pos(), output.pos());
            octets.consume(taken);
            if written > 0 {
                return Ok(written);
            }
            if is_end && left != 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }))
}
