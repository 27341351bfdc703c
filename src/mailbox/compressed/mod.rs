//! Reads and writes compressed mail, recognised by its first bytes and not by its name (docs/mailbox-internals.md,
//! "Compressed mail").
//!
//! `read` decompresses the members of a file one after the other and enforces the limits. `write` compresses to a
//! single member. `streams` (gzip, bzip2, xz, zstd) and `dovecot_lz4` decompress one member. `utf16` decodes mail in
//! UTF-16, which is read as compressed mail is, but never written.
//!
//! Without the feature `archives`, `not_built` replaces `streams` and `write`. Compressed mail is still recognised, so
//! that it is not read as text, but it is refused with an error that names the feature.

mod damage;
#[cfg(feature = "archives")]
mod dovecot_lz4;
mod method;
#[cfg(not(feature = "archives"))]
mod not_built;
mod octets;
mod read;
#[cfg(feature = "archives")]
mod streams;
mod utf16;
#[cfg(feature = "archives")]
mod write;

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::Arc;

#[cfg(not(feature = "archives"))]
pub(super) use self::damage::unsupported;
pub(crate) use self::damage::{CompressionDamage, check_built};
pub(super) use self::method::plain_suffix;
pub(crate) use self::method::{MAGIC, Method};
#[cfg(not(feature = "archives"))]
pub(super) use self::not_built::Encoder;
pub(crate) use self::read::Decoder;
#[cfg(feature = "archives")]
pub(crate) use self::read::{RATIO, UNJUDGED, decompressed, exceeded};
pub(crate) use self::utf16::{LEFT_AS_UTF16, not_encoded};
#[cfg(feature = "archives")]
pub(super) use self::write::Encoder;
use crate::engine::declared_charsets::in_declared_charsets;
use crate::mailbox::Options;
use crate::mailbox::forms::encoding;
use crate::mailbox::read::file::octets_at;
use crate::mailbox::read::source::InputSource;
use crate::span::front;

pub(crate) enum CompressedContent {
    Whole(Vec<u8>),
    TooLarge,
    Damaged(CompressionDamage),
}

/// Reads a complete message file and decompresses it. Damage and an excessive size are not errors but variants of the
/// result. An error is an I/O error of the system.
pub(crate) fn content_of(
    file: &Arc<File>,
    length: u64,
    method: Option<Method>,
    options: &Options,
    most: usize,
) -> io::Result<CompressedContent> {
    let mut content = Vec::new();
    if let Some(method) = method {
        let decoder = Decoder::new(method, InputSource::file(file), options.max_expanded);
        let read = decoder.take(most as u64 + 1).read_to_end(&mut content);
        return match read {
            Ok(_) if content.len() > most => Ok(CompressedContent::TooLarge),
            Ok(_) if method.is_utf16() => Ok(match in_declared_charsets(&content) {
                Ok(encoded) => CompressedContent::Whole(encoded.unwrap_or(content)),
                Err(why) => {
                    let why = not_encoded(why);
                    CompressedContent::Damaged(CompressionDamage::of_archive(why, false))
                }
            }),
            Ok(_) => Ok(CompressedContent::Whole(content)),
            Err(error) => error
                .downcast::<CompressionDamage>()
                .map(CompressedContent::Damaged),
        };
    }
    if length > most as u64 {
        return Ok(CompressedContent::TooLarge);
    }
    content.reserve_exact(usize::try_from(length).unwrap_or(0) + 1);
    (&**file).read_to_end(&mut content)?;
    Ok(CompressedContent::Whole(content))
}

/// Returns how the file is compressed, or in which byte order of UTF-16 its text is encoded.
pub(crate) fn method_of(file: &File) -> io::Result<Option<Method>> {
    let start = octets_at(file, 0, MAGIC)?;
    if let Some(method) = Method::of_start(&start) {
        return Ok(Some(method));
    }
    // The bytes of UTF-16 include NULs and marks, which no other mail begins with. More is read only after them.
    let is_plain = front(&start, 4).iter().all(|byte| matches!(byte, 1..=0x7f));
    if is_plain {
        return Ok(None);
    }
    Ok(Method::of_text(&octets_at(file, 0, encoding::LOOKED_AT)?))
}
