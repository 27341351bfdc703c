//! The content of a file that holds one message, compressed or not.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use crate::mailbox::archive::FromStart;
use crate::mailbox::compressed::{Damage, Decoder, MAGIC, Method};
use crate::mailbox::read::full::up_to;
use crate::mailbox::{Options, Stop};
use crate::platform::FileExt as _;

/// What came of reading one message.
pub(crate) enum Content {
    Whole(Vec<u8>),
    TooLarge,
    Damaged(Damage),
}

/// What is in `file`, which has so many bytes and is compressed so, unless it is more than `most` bytes.
///
/// # Errors
/// The system's; damage of compressed data is none.
pub(crate) fn content_of(
    file: &Arc<File>,
    length: u64,
    method: Option<Method>,
    options: &Options,
    most: usize,
) -> io::Result<Content> {
    if let Some(method) = method {
        let reader = FromStart::new(file, &Stop::default());
        let decoder = Decoder::new(method, reader, options.max_expanded);
        let mut content = Vec::new();
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
    let mut content = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
    (&**file).read_to_end(&mut content)?;
    Ok(Content::Whole(content))
}

/// How a file is compressed.
pub(crate) fn method_of(file: &File) -> io::Result<Option<Method>> {
    let start = up_to(MAGIC, |rest, before| file.read_at(rest, before))?;
    Ok(Method::of_start(&start))
}
