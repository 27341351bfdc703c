//! Placeholders for content that only a store has.
//!
//! One run can insert content from a server, and a later run can move it into a store. Then neither the old nor the new
//! mail contains it: the new mail has only its length and digests. To write the header of the part, the engine needs no
//! more than these, so `compare` runs it with other bytes of the same length.

use std::sync::Arc;

use bytes::Bytes;

use crate::engine::Content;
use crate::key::Key;
use crate::mime::exact::EditManner;

/// Placeholder for a stored object: bytes of the same length, with the digests of the object.
#[derive(Clone, Debug)]
pub(in crate::engine) struct StandIn {
    pub(in crate::engine) key: Key,
    pub(in crate::engine) md5: Option<[u8; 16]>,
    bytes: Bytes,
}

impl StandIn {
    /// Creates a placeholder of `length` bytes. It starts like a file of the type `essence`, because the engine checks
    /// that a picture is one before embedding it.
    pub(in crate::engine) fn new(
        key: Key,
        md5: Option<[u8; 16]>,
        (essence, length): (&str, usize),
        manner: EditManner,
    ) -> Self {
        let mut bytes = match (manner, essence) {
            (EditManner::QuotedPrintable, _) => "\u{fc}".as_bytes(),
            (EditManner::Identity { .. }, _) => b"",
            (_, "image/png") => {
                b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x09\0\0\0\x09\x08\x02\0\0\0\0\0\0\0"
            }
            (_, "image/gif") => {
                b"GIF89a\x09\0\x09\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x09\0\x09\0\0\x02\x02D\x01\0;"
            }
            (_, "image/jpeg") => {
                b"\xff\xd8\xff\xc0\0\x11\x08\0\x09\0\x09\x03\x01\"\0\x02\x11\x01\x03\x11\x01"
            }
            _ => b"",
        }
        .to_vec();
        // Placeholders of different objects must differ, because the engine merges parts with equal bytes.
        bytes.extend(key.to_string().bytes());
        while bytes.len() < length {
            bytes.extend(b"\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        }
        bytes.truncate(length);
        if matches!(manner, EditManner::Identity { .. })
            && let Some(last) = bytes.last_mut()
        {
            *last = b'\n';
        }
        Self {
            key,
            md5,
            bytes: bytes.into(),
        }
    }

    pub(in crate::engine) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the placeholder as content with the digests of the object.
    pub(super) fn content(&self, media_type: Option<String>) -> Content {
        let content = Content::new("", media_type, self.bytes.clone());
        content.with_digests(self.key.to_string(), self.md5)
    }
}

/// Placeholders for all objects that neither mail contains.
pub(in crate::engine) type StandIns = Arc<[StandIn]>;
