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
use std::io;

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
use crate::mailbox::encoding;
use crate::mailbox::file::octets_at;
use crate::span::front;

/// Returns the compression method of the file, or its UTF-16 byte order.
pub(crate) fn method_of(file: &File) -> io::Result<Option<Method>> {
    let start = octets_at(file, 0, MAGIC)?;
    if let Some(method) = Method::of_start(&start) {
        return Ok(Some(method));
    }
    // The first four bytes of mail in UTF-16 contain a NUL byte or a byte order mark. Other mail usually begins with
    // plain ASCII, so more of the file is read only if these bytes are not plain ASCII.
    let is_plain = front(&start, 4).iter().all(|byte| matches!(byte, 1..=0x7f));
    if is_plain {
        return Ok(None);
    }
    Ok(Method::of_text(&octets_at(file, 0, encoding::LOOKED_AT)?))
}
