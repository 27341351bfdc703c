//! Decompresses data up to the end of the file.
//!
//! Compressed data may consist of several members (streams, frames) one after the other, and zeros as padding. All
//! decompressed bytes are returned first. Then a [`CompressionDamage`] error follows if the data end too early, expand
//! beyond the limits, or are followed by other bytes.

use std::io::{self, BufRead as _, Read};

use super::damage::CompressionDamage;
use super::method::{EMPTY_BZIP2, MAGIC, Method};
#[cfg(not(feature = "archives"))]
use super::not_built::member;
use super::octets::{Member, Octets};
#[cfg(feature = "archives")]
use super::streams::member;
use crate::detail::{Detail, Setting};

pub(crate) fn exceeded(most: u64, expanded: u64, compressed: u64) -> Option<Detail> {
    if expanded > most {
        let detail = Detail::from(format!(
            "the decompressed data are larger than {most} bytes ("
        ));
        return Some(detail.naming(Setting::Expanded).then(")"));
    }
    let most = compressed.saturating_mul(RATIO).max(UNJUDGED);
    (expanded > most).then(|| {
        format!("the decompressed data are more than {RATIO} times as large as the compressed data, which is typical of a zip bomb")
            .into()
    })
}

/// Maximum decompressed size, as a multiple of the compressed size.
pub(crate) const RATIO: u64 = 1000;
/// Decompressed size in bytes up to which the compression ratio is not checked. Mail that consists of spaces or zeros
/// has a high ratio, but is harmless.
pub(crate) const UNJUDGED: u64 = 64 << 20;

fn empty_bzip2(start: &[u8]) -> Option<usize> {
    let behind = start.get(4..)?.strip_prefix(EMPTY_BZIP2)?;
    let is_one = matches!(start, [b'B', b'Z', b'h', b'1'..=b'9', ..]);
    (is_one && behind.starts_with(&[0; 4])).then_some(4 + EMPTY_BZIP2.len() + 4)
}

pub(crate) struct Decoder<R> {
    method: Method,
    most: u64,
    octets: Octets<R>,
    state: DecoderState<R>,
    expanded: u64,
}

enum DecoderState<R> {
    Between(bool),
    Within(Member<R>, u64),
    Ended,
    Damaged(CompressionDamage),
}

impl<R: Read> Decoder<R> {
    pub(crate) fn new(method: Method, reader: R, most: u64) -> Self {
        Self::of(method, Octets::new(reader), most)
    }

    fn of(method: Method, octets: Octets<R>, most: u64) -> Self {
        Self {
            method,
            most,
            octets,
            state: DecoderState::Between(false),
            expanded: 0,
        }
    }

    fn next(&mut self, mut is_behind: bool) -> io::Result<DecoderState<R>> {
        while self.method == Method::Bzip2
            && let Some(length) = empty_bzip2(self.octets.peek(MAGIC)?)
        {
            // Empty streams are skipped without creating a decoder. A new decoder clears megabytes of memory, so a file
            // with many empty streams would take very long.
            self.octets.consume(length);
            is_behind = true;
        }
        let at = self.octets.taken;
        if is_behind {
            self.pass_zeros()?;
        }
        let zeros = self.octets.taken - at;
        let start = self.octets.peek(MAGIC)?;
        let is_aligned = self.method != Method::Xz || zeros.is_multiple_of(4);
        if start.is_empty() && is_aligned {
            return Ok(DecoderState::Ended);
        }
        // Only xz allows zero padding before another stream. gzip(1) and the other programs ignore a stream after
        // zeros, so here it is reported as other data.
        let may_follow = zeros == 0 || self.method == Method::Xz && is_aligned;
        let is_member = match self.method {
            Method::Utf16(_) => !is_behind,
            method => may_follow && Method::of_start(start) == Some(method),
        };
        if is_member {
            return Ok(match member(self.method) {
                Ok(member) => DecoderState::Within(member, self.octets.taken),
                Err(error) => DecoderState::Damaged(error.downcast()?),
            });
        }
        let is_cut = !is_behind
            || may_follow && start.len() < MAGIC && self.method.magic().starts_with(start);
        let name = self.method.name();
        let why = match is_cut {
            _ if start.is_empty() => {
                format!("the padding after the {name} data is not a multiple of four bytes")
            }
            true => format!("the end of the {name} data is missing"),
            false => format!("the file contains other data after the {name} data"),
        };
        Ok(DecoderState::Damaged(CompressionDamage {
            at: Some(at),
            whole: !is_cut,
            is_cut,
            ..self.damage(why)
        }))
    }

    fn pass_zeros(&mut self) -> io::Result<()> {
        loop {
            let padding = self.octets.fill_buf()?;
            let count = padding.iter().take_while(|&&octet| octet == 0).count();
            let is_over = count < padding.len() || padding.is_empty();
            self.octets.consume(count);
            if is_over {
                return Ok(());
            }
        }
    }

    fn damage(&self, why: impl Into<Detail>) -> CompressionDamage {
        CompressionDamage {
            at: Some(self.octets.taken).filter(|_| !self.method.is_utf16()),
            ..CompressionDamage::of_archive(why, false)
        }
    }

    fn broken(&self, error: &io::Error) -> CompressionDamage {
        let name = self.method.name();
        let is_cut = error.kind() == io::ErrorKind::UnexpectedEof;
        let why = if is_cut {
            format!("the end of the {name} data is missing")
        } else {
            format!("the {name} data are damaged ({error})")
        };
        CompressionDamage {
            is_cut,
            ..self.damage(why)
        }
    }
}

/// Reads the decompressed data. An error is an I/O error of the underlying reader or contains a [`CompressionDamage`].
impl<R: Read> Read for Decoder<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while !into.is_empty() {
            match std::mem::replace(&mut self.state, DecoderState::Ended) {
                DecoderState::Ended => return Ok(0),
                DecoderState::Damaged(damage) => {
                    self.state = DecoderState::Damaged(damage.clone());
                    return Err(damage.into());
                }
                DecoderState::Between(is_behind) => self.state = self.next(is_behind)?,
                DecoderState::Within(mut member, before) => match member(&mut self.octets, into) {
                    // A member that consumes no input is an error. Otherwise a truncated magic number would count as an
                    // empty member again and again, in an endless loop.
                    Ok(0) if self.octets.taken == before => {
                        let error = io::ErrorKind::UnexpectedEof.into();
                        self.state = DecoderState::Damaged(self.broken(&error));
                    }
                    Ok(0) => self.state = DecoderState::Between(true),
                    Ok(read) => {
                        self.expanded += read as u64;
                        let exceeded = exceeded(self.most, self.expanded, self.octets.taken);
                        if let Some(why) = exceeded {
                            self.state = DecoderState::Damaged(self.damage(why));
                            continue;
                        }
                        self.state = DecoderState::Within(member, before);
                        return Ok(read);
                    }
                    Err(error) if self.octets.failed => return Err(error),
                    Err(error) => self.state = DecoderState::Damaged(self.broken(&error)),
                },
            }
        }
        Ok(0)
    }
}

#[cfg(feature = "archives")]
pub(crate) fn decompressed<R: Read + Send + 'static>(
    reader: R,
    most: u64,
) -> io::Result<Box<dyn Read + Send>> {
    let mut octets = Octets::new(reader);
    Ok(match Method::of_start(octets.peek(MAGIC)?) {
        Some(method) => Box::new(Decoder::of(method, octets, most)),
        None => Box::new(octets),
    })
}
