//! Reads the complete content of a file with one message.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::Arc;

use crate::engine::declared_charsets::in_declared_charsets;
use crate::mailbox::ReadOptions;
use crate::mailbox::compressed::{CompressionDamage, Decoder, Method, not_encoded};
use crate::mailbox::input::source::InputSource;

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
    options: &ReadOptions,
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
