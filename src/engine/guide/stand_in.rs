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
use crate::mime::transfer::{LINE_LIMIT, with_newlines};
use crate::span::Newline;

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
    /// Line ending of the body from which the content was detached. Without base64, it is part of the content.
    pub(in crate::engine) newline: Newline,
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
        let newline = match self.manner {
            EditManner::Base64 { .. } => Newline::Lf,
            EditManner::QuotedPrintable | EditManner::Identity { .. } => self.newline,
        };
        if newline == Newline::CrLf {
            bytes = with_newlines(bytes, newline);
        }
        while bytes.len() < self.length {
            bytes.extend(newline.bytes());
            bytes.extend([b'x'; 31]);
        }
        bytes.truncate(self.length);
        // The end may have been within a line ending.
        if let Some(last) = bytes.last_mut().filter(|last| **last == b'\r') {
            *last = b'x';
        }
        if self.essence == SVG
            && let Some(end) = self.length.checked_sub(END_OF_SVG.len())
        {
            bytes.truncate(end);
            bytes.extend(END_OF_SVG);
        }
        if matches!(self.manner, EditManner::Identity { .. })
            && let Some(end) = self.length.checked_sub(newline.bytes().len())
        {
            bytes.truncate(end);
            if let Some(last) = bytes.last_mut().filter(|last| **last == b'\r') {
                *last = b'x';
            }
            bytes.extend(newline.bytes());
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
        start.extend(start_of_file(&self.essence));
        let is_unknown = self.charset.as_deref() == Some("unknown-8bit");
        let is_long = self.charset.is_none() && self.length > LINE_LIMIT + start.len();
        match (self.manner, &*self.essence) {
            (EditManner::Identity { .. }, _) => {}
            (EditManner::QuotedPrintable, _) if is_unknown => start.push(0xfc),
            // ASCII is only encoded if it has a long line.
            (EditManner::QuotedPrintable, _) if is_long => start.extend([b'x'; LINE_LIMIT + 1]),
            (EditManner::QuotedPrintable, _) => start.extend("\u{fc}".as_bytes()),
            // An ASCII text is in base64 only to keep its line endings.
            (_, essence) if essence.starts_with("text/") && self.charset.is_none() => {
                start.extend(b"\r\n");
            }
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

/// Types of the pictures, fonts and media that embody embeds, and the start of a file of each type. An image with a size
/// follows, where the engine checks that there is one.
const STARTS: [(&str, &[u8]); 25] = [
    (
        "image/png",
        b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x09\0\0\0\x09\x08\x02\0\0\0\0\0\0\0\0\0\0\x01IDAT",
    ),
    (
        "image/gif",
        b"GIF89a\x09\0\x09\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x09\0\x09\0\0\x02\x02D\x01\0;",
    ),
    (
        "image/jpeg",
        b"\xff\xd8\xff\xc0\0\x11\x08\0\x09\0\x09\x03\x01\"\0\x02\x11\x01\x03\x11\x01",
    ),
    ("image/webp", b"RIFF\xff\xff\0\0WEBPVP8 \xff\xff\0\0"),
    ("image/tiff", b"II*\0\x08\0\0\0"),
    ("image/avif", b"\0\0\0\x14ftypavif\0\0\0\0avif\0\0\0\0mdat"),
    ("image/heic", b"\0\0\0\x14ftypheic\0\0\0\0heic\0\0\0\0mdat"),
    ("image/jxl", b"\0\0\0\x0cJXL \r\n\x87\n\0\0\0\0jxlc"),
    ("image/j2c", b"\xff\x4f\xff\x51"),
    (
        "image/jp2",
        b"\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x14ftypjp2 \0\0\0\0jp2 \0\0\0\0jp2c",
    ),
    (
        "image/jpx",
        b"\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x14ftypjpx \0\0\0\0jpx \0\0\0\0jp2c",
    ),
    (
        "image/jpm",
        b"\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x14ftypjpm \0\0\0\0jpm \0\0\0\0jp2c",
    ),
    (
        "image/bmp",
        b"BM\xff\xff\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x09\0\0\0\x09\0\0\0\x01\0\x18\0",
    ),
    (
        "image/vnd.microsoft.icon",
        b"\0\0\x01\0\x01\0\x09\x09\0\0\x01\0\x20\0\x01\0\0\0\x16\0\0\0",
    ),
    (
        "image/x-icon",
        b"\0\0\x02\0\x01\0\x09\x09\0\0\x01\0\x20\0\x01\0\0\0\x16\0\0\0",
    ),
    ("font/woff", b"wOFF"),
    ("font/woff2", b"wOF2"),
    ("font/otf", b"OTTO\0\x01\0\0\0\0\0\0cmap"),
    ("font/ttf", b"\0\x01\0\0\0\x01\0\0\0\0\0\0cmap"),
    ("video/mp4", b"\0\0\0\x10ftypmp42\0\0\0\0"),
    ("video/quicktime", b"\0\0\0\x10ftypqt  \0\0\0\0"),
    ("audio/mp4", b"\0\0\0\x10ftypM4A \0\0\0\0"),
    ("video/webm", b"\x1a\x45\xdf\xa3\x42\x82\x84webm"),
    ("audio/wav", b"RIFF\xff\xff\0\0WAVE"),
    ("audio/mpeg", b"ID3\x04\0\0"),
];

const SVG: &str = "image/svg+xml";
/// End of a placeholder for an SVG, which must be complete to be embedded.
const END_OF_SVG: &[u8] = b"</svg>";

/// Returns the first bytes of a file of this type.
fn start_of_file(essence: &str) -> Vec<u8> {
    const OGG: &[u8] = b"OggS\0";
    const LENGTH_OF_PAGE_HEADER: usize = 28;

    let ogg = |codec: &[u8]| {
        let mut start = OGG.to_vec();
        start.resize(LENGTH_OF_PAGE_HEADER, 0);
        [start.as_slice(), codec].concat()
    };
    match essence {
        "audio/ogg" => ogg(b"\x01vorbis"),
        "video/ogg" => ogg(b"\x80theora"),
        SVG => b"<svg xmlns=\"http://www.w3.org/2000/svg\">".to_vec(),
        _ => {
            let start = STARTS.iter().find(|(known, _)| *known == essence);
            start.map_or_else(Vec::new, |(_, start)| start.to_vec())
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

    /// Returns the placeholder as content. The digests are those of the object for which the placeholder stands, because
    /// the new mail names them.
    pub(super) fn content(&self, media_type: Option<String>) -> Content {
        let content = Content::new("", media_type, self.bytes.clone());
        content.with_digests(self.key.to_string(), self.md5)
    }
}

/// Placeholders for all objects that neither mail contains.
pub(in crate::engine) type StandIns = Arc<[StandIn]>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::svg::is_harmless_svg;
    use crate::mime::{picture, picture_end};

    #[test]
    fn placeholder_of_each_type_is_recognised_as_a_file_of_this_type() {
        let others = ["audio/ogg", "video/ogg", SVG];
        for essence in STARTS.iter().map(|(essence, _)| *essence).chain(others) {
            let facts = StandInFacts {
                essence: essence.to_owned(),
                charset: None,
                length: 500,
                manner: EditManner::Base64 { line: 76 },
                newline: Newline::Lf,
                page: None,
            };
            let bytes = facts.bytes(Key::of(b"x"));
            let found = picture::sniff(&bytes)
                .or_else(|| picture::sniff_font(&bytes))
                .or_else(|| picture::sniff_media(&bytes));
            assert_eq!(found.map(|it| it.essence), Some(essence));
            assert!(picture_end::has_image(&bytes), "{essence}");
            assert!(essence != SVG || is_harmless_svg(&bytes));
        }
    }
}
