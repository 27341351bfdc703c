//! Pieces of a source: its start, which tells how an mbox quotes.

use std::io;

use super::full::up_to;
use super::quoting::{Extent, Quoting};
use super::window::Source;

/// How much of an mbox is read to see how it quotes.
const SAMPLE: usize = 1 << 20;

/// How the mbox quotes, as far as its start tells.
pub(super) fn quoting_of(source: &impl Source) -> io::Result<Quoting> {
    let mut sample = piece_of(source, 0, SAMPLE)?;
    let extent = if sample.len() < SAMPLE {
        Extent::Whole
    } else {
        Extent::Start
    };
    let quoting = Quoting::of_sample(&sample, extent);
    // Where so much is freed at once, glibc's allocator keeps what is no larger from then on, for each thread.
    sample.truncate(1);
    sample.shrink_to_fit();
    Ok(quoting)
}

/// So many bytes from an offset on, or all there are.
pub(super) fn piece_of(source: &impl Source, from: u64, length: usize) -> io::Result<Vec<u8>> {
    up_to(length, |rest, before| source.read_at(rest, from + before))
}
