//! How an mbox quotes, as far as its start tells.

use std::io;

use crate::mailbox::forms::quoting::{Extent, Quoting};
use crate::mailbox::read::source::Source;

/// How much of an mbox is read to see how it quotes.
const SAMPLE: usize = 1 << 20;

/// How the mbox quotes, as far as its start tells.
pub(crate) fn quoting_of(source: &mut Source) -> io::Result<Quoting> {
    let sample = source.start(SAMPLE)?;
    let extent = if sample.len() < SAMPLE {
        Extent::Whole
    } else {
        Extent::Start
    };
    Ok(Quoting::of_sample(&sample, extent))
}
