//! Compressed mail, known by magic and not by name (docs/mailbox-internals.md, "Compressed mail").
//!
//! `read` takes members apart until the data ends, and keeps the limits; `write` makes one member. `streams` (gzip,
//! bzip2, xz, zstd) and `dovecot_lz4` read a member each.

mod dovecot_lz4;
mod method;
mod octets;
mod read;
mod streams;
mod write;

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::Arc;

pub(super) use self::method::plain_suffix;
pub(crate) use self::method::{MAGIC, Method};
pub(crate) use self::read::{Damage, Decoder, decompressed, exceeded};
pub(super) use self::write::Encoder;
use crate::mailbox::Options;
use crate::mailbox::read::file::octets_at;
use crate::mailbox::read::source::Source;

pub(crate) enum Content {
    Whole(Vec<u8>),
    TooLarge,
    Damaged(Damage),
}

/// Errors are the system's.
pub(crate) fn content_of(
    file: &Arc<File>,
    length: u64,
    method: Option<Method>,
    options: &Options,
    most: usize,
) -> io::Result<Content> {
    let mut content = Vec::new();
    if let Some(method) = method {
        let decoder = Decoder::new(method, Source::file(file), options.max_expanded);
        let read = decoder.take(most as u64 + 1).read_to_end(&mut content);
        return match read {
            Ok(_) if content.len() > most => Ok(Content::TooLarge),
            Ok(_) => Ok(Content::Whole(content)),
            Err(error) => error.downcast::<Damage>().map(Content::Damaged),
        };
    }
    if length > most as u64 {
        return Ok(Content::TooLarge);
    }
    content.reserve_exact(usize::try_from(length).unwrap_or(0) + 1);
    (&**file).read_to_end(&mut content)?;
    Ok(Content::Whole(content))
}

pub(crate) fn method_of(file: &File) -> io::Result<Option<Method>> {
    Ok(Method::of_start(&octets_at(file, 0, MAGIC)?))
}
