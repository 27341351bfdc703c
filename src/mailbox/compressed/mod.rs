//! Mail as it is kept: compressed, by magic and not by name (docs/mailbox-internals.md, "Compressed mail").
//!
//! `method` knows the formats by their first octets, `read` takes members apart until the data ends, and keeps the
//! limits; `write` makes one member. `streams` (gzip, bzip2, xz), `zstd` and `dovecot_lz4` read a member each,
//! through `stepwise`; `octets` is what they read from, and counts. `content` is that of a file that holds one message.

pub(super) mod content;
mod dovecot_lz4;
mod method;
mod octets;
mod read;
mod stepwise;
mod streams;
mod write;
mod zstd;

pub(super) use method::plain_suffix;
pub(crate) use method::{MAGIC, Method};
pub(crate) use read::{Damage, Decoder, decompressed, exceeded};
pub(super) use write::Encoder;
