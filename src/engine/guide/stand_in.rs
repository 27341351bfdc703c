//! Content that a proof uses in place of content that only a store has.
//!
//! A run can insert content from a server, and a later run can move it into a store. Then neither the old nor the new mail
//! contains it: the new mail has its length and digests only. The engine needs no more than these to write the header of the
//! part, so the proof runs it with other bytes of the same length.

use std::sync::Arc;

use bytes::Bytes;

use crate::engine::Content;
use crate::key::Key;
use crate::mime::exact::EditManner;

/// Content of the same length as an object of a store, with the digests of this object.
#[derive(Clone, Debug)]
pub(in crate::engine) struct StandIn {
    pub(in crate::engine) key: Key,
    pub(in crate::engine) md5: Option<[u8; 16]>,
    bytes: Bytes,
}

impl StandIn {
    /// Creates content of `length` bytes. It begins like a file of the type `essence`, because embody only embeds pictures.
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
        // Different objects need different bytes.
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

    /// Returns the content with the digests of the object.
    pub(super) fn content(&self, media_type: Option<String>) -> Content {
        let content = Content::new("", media_type, self.bytes.clone());
        content.with_digests(self.key.to_string(), self.md5)
    }
}

/// The contents in place of the objects that neither mail contains.
pub(in crate::engine) type StandIns = Arc<[StandIn]>;
