//! Placeholders for content that only a store has.
//!
//! One run can insert content from a server, and a later run can move it into a store. Then neither the old nor the new
//! mail contains it: the new mail has only its length and digests. To write the header of the part, the engine needs no
//! more than these, so `compare` runs it with other bytes of the same length.

use std::sync::Arc;

use bytes::Bytes;

use crate::engine::Content;
use crate::engine::external_body::Scrap;
use crate::key::Key;
use crate::mime::exact::EditManner;
use crate::mime::transfer::LINE_LIMIT;

/// Placeholder for a stored object: bytes of the same length, with the digests of the object.
#[derive(Clone, Debug)]
pub(in crate::engine) struct StandIn {
    pub(in crate::engine) key: Key,
    pub(in crate::engine) md5: Option<[u8; 16]>,
    bytes: Bytes,
}

/// The facts about content that only a store has, as far as the new mail and the reference in the old one show them.
#[derive(Clone, Debug)]
pub(in crate::engine) struct StandInFacts {
    pub(in crate::engine) essence: String,
    pub(in crate::engine) charset: Option<String>,
    /// Length of the content, in bytes.
    pub(in crate::engine) length: usize,
    pub(in crate::engine) manner: EditManner,
    /// The kind of Mailman's note, if the content is a page whose original could not be restored, so that it has the name of
    /// the page.
    pub(in crate::engine) page: Option<Scrap>,
}

impl StandInFacts {
    /// Returns bytes for which the engine writes the same header and chooses the same encoding as for the content.
    fn bytes(&self, key: Key) -> Vec<u8> {
        let is_text = self.essence.starts_with("text/");
        let mut bytes = self.start();
        if is_text && self.charset.is_some() && matches!(self.manner, EditManner::Base64 { .. }) {
            // Quoted-printable is longer than base64 only if most characters are not ASCII.
            self.fill_without_ascii(key, &mut bytes);
        }
        // Placeholders of different objects must differ, because the engine merges parts with equal bytes.
        bytes.extend(key.to_string().bytes());
        while bytes.len() < self.length {
            bytes.extend(b"\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        }
        bytes.truncate(self.length);
        if matches!(self.manner, EditManner::Identity { .. })
            && let Some(last) = bytes.last_mut()
        {
            *last = b'\n';
        }
        bytes
    }

    /// Returns the start of the bytes: that of a file of this type, because the engine checks that a picture is one before
    /// embedding it, or of a text that needs the encoding.
    fn start(&self) -> Vec<u8> {
        let mut start = match self.page {
            // These pages have an entity or no end, so their originals cannot be restored.
            Some(Scrap::Message) => b"From x\n&eacute;\n".to_vec(),
            Some(_) => b"<tt>\n".to_vec(),
            None => Vec::new(),
        };
        let is_unknown = self.charset.as_deref() == Some("unknown-8bit");
        let is_long = self.charset.is_none() && self.length > LINE_LIMIT + start.len();
        match (self.manner, &*self.essence) {
            (EditManner::Identity { .. }, _) => {}
            (EditManner::QuotedPrintable, _) if is_unknown => start.push(0xfc),
            // ASCII is only encoded if it has a long line.
            (EditManner::QuotedPrintable, _) if is_long => start.extend([b'x'; LINE_LIMIT + 1]),
            (EditManner::QuotedPrintable, _) => start.extend("\u{fc}".as_bytes()),
            // A text that is ASCII is only in base64 to keep its line endings.
            (_, essence) if essence.starts_with("text/") && self.charset.is_none() => {
                start.extend(b"\r\n");
            }
            (_, "image/png") => start.extend(
                b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x09\0\0\0\x09\x08\x02\0\0\0\0\0\0\0",
            ),
            (_, "image/gif") => start.extend(
                b"GIF89a\x09\0\x09\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x09\0\x09\0\0\x02\x02D\x01\0;",
            ),
            (_, "image/jpeg") => start.extend(
                b"\xff\xd8\xff\xc0\0\x11\x08\0\x09\0\x09\x03\x01\"\0\x02\x11\x01\x03\x11\x01",
            ),
            _ => {}
        }
        start
    }

    /// Appends characters that are not ASCII. Which ones depends on the key.
    fn fill_without_ascii(&self, key: Key, bytes: &mut Vec<u8>) {
        let is_unknown = self.charset.as_deref() == Some("unknown-8bit");
        for digit in key.to_string().bytes().cycle() {
            let character = char::from(0xc0 | digit & 0x3f);
            let mut utf8 = [0; 2];
            let octets = character.encode_utf8(&mut utf8).as_bytes();
            if bytes.len() + octets.len() > self.length {
                break;
            }
            if is_unknown {
                bytes.push(0xc0 | digit & 0x3f);
            } else {
                bytes.extend_from_slice(octets);
            }
        }
    }
}

impl StandIn {
    pub(in crate::engine) fn new(key: Key, md5: Option<[u8; 16]>, facts: &StandInFacts) -> Self {
        Self {
            key,
            md5,
            bytes: facts.bytes(key).into(),
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
