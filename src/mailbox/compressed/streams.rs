//! The streams of gzip, bzip2 and xz.

use std::io;

use flate2::FlushDecompress;
use liblzma::stream::{Action, Status, Stream};

use super::stepwise::Stepwise;

/// What decoding xz may take: a dictionary of 128 MiB, and what is around it.
const MEMORY: u64 = (128 << 20) + (16 << 20);

/// The largest window of deflate, which a member of gzip (RFC 1952) does not name.
const WINDOW_BITS: u8 = 15;

/// With its header, and its checksum and length behind the data.
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
        (
            stream.total_in(),
            stream.total_out(),
            ended.map_err(io::Error::from),
        )
    }))
}
