//! Converts link values to text for URL resolution, and back. A URL can contain bytes in a charset other than UTF-8. In
//! the text, a private-use character of Unicode carries each such byte, so that it can be written back unchanged.

use std::borrow::Cow;

use encoding_rs::Encoding;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::link::base::{Base, THIS_MESSAGE};
use crate::link::url::all_but;
use crate::span::starts_like;

pub(super) fn mentions_base(document: &[u8]) -> bool {
    let is_base = |name: &[u8]| name.eq_ignore_ascii_case(b"base");
    memchr::memchr_iter(b'<', document).any(|at| document.get(at + 1..at + 5).is_some_and(is_base))
}

/// Returns true if a document may contain an `originalsrc` attribute, which Outlook on the web writes.
pub(crate) fn mentions_original_source(document: &[u8]) -> bool {
    ["originalsrc", "originalSrc", "ORIGINALSRC"]
        .iter()
        .any(|name| memchr::memmem::find(document, name.as_bytes()).is_some())
}

/// Offset of the private-use characters that represent bytes that are not UTF-8 while a URL is text. For example,
/// U+F7E9 represents the byte 0xE9.
const CARRIED: u32 = 0xF700;

/// Converts a link value to text. If it is not UTF-8, private-use characters carry its non-ASCII bytes.
pub(super) fn readable(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) => text.to_owned(),
        Err(_) => carried(value),
    }
}

/// Converts a link value to text, in which private-use characters carry all non-ASCII bytes, even if the value is
/// UTF-8.
pub(super) fn carried(value: &[u8]) -> String {
    let carry = |&byte: &u8| {
        if byte.is_ascii() {
            char::from(byte)
        } else {
            char::from_u32(CARRIED + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
    };
    value.iter().map(carry).collect()
}

pub(super) fn holds_carried(text: &str) -> bool {
    may_hold_carried(text) && text.chars().any(|symbol| carried_by(symbol).is_some())
}

fn may_hold_carried(text: &str) -> bool {
    memchr::memchr(0xef, text.as_bytes()).is_some()
}

fn carried_by(symbol: char) -> Option<u8> {
    let byte = u8::try_from(u32::from(symbol).wrapping_sub(CARRIED)).ok();
    byte.filter(|&byte| byte >= 0x80)
}

pub(super) fn raw(text: String) -> Vec<u8> {
    if !may_hold_carried(&text) {
        return text.into_bytes();
    }
    let mut octets = Vec::with_capacity(text.len());
    for symbol in text.chars() {
        match carried_by(symbol) {
            Some(byte) => octets.push(byte),
            None => octets.extend_from_slice(symbol.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    octets
}

/// Percent-encodes non-ASCII characters, except private-use characters: each of these carries one byte of the document,
/// and is written as this byte again later.
pub(super) fn ascii(url: &str) -> String {
    if url.is_ascii() {
        return url.to_owned();
    }
    let mut written = String::new();
    for symbol in url.chars() {
        if symbol.is_ascii() || carried_by(symbol).is_some() {
            written.push(symbol)
        } else {
            written.extend(utf8_percent_encode(
                symbol.encode_utf8(&mut [0; 4]),
                CONTROLS,
            ))
        }
    }
    written
}

/// Returns the URL against which the relative links of a document are resolved. If the message declares no base URL, this is
/// `thismessage:/` (RFC 2557 §5): a link then still leads to the part of the message with that Content-Location.
pub(super) fn base_url(base: Option<&Base>) -> String {
    ascii(base.map_or(THIS_MESSAGE, |base| &base.url))
}

/// Decodes the bytes that private-use characters carry, in the charset of the document. Returns `None` if a byte is
/// invalid in it.
pub(super) fn uncarried(text: &str, encoding: &'static Encoding) -> Option<String> {
    let mut written = String::with_capacity(text.len());
    let mut bytes = Vec::new();
    for symbol in text.chars().map(Some).chain([None]) {
        if let Some(byte) = symbol.and_then(carried_by) {
            bytes.push(byte);
            continue;
        }
        let characters = encoding.decode_without_bom_handling_and_without_replacement(&bytes)?;
        written.push_str(&characters);
        bytes.clear();
        written.extend(symbol);
    }
    Some(written)
}

/// Removes line endings and tabs from a reference, as browsers do. A `data:` URL can be very long and keeps them, because its
/// decoder removes them.
pub(super) fn cleaned(value: &[u8]) -> Cow<'_, str> {
    let text = match std::str::from_utf8(value) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(readable(value)),
    };
    let is_removed = |symbol| matches!(symbol, '\t' | '\n' | '\r');
    if !is_data(&text) && text.contains(is_removed) {
        return Cow::Owned(text.replace(is_removed, ""));
    }
    text
}

pub(super) fn is_data(url: &str) -> bool {
    starts_like(url.as_bytes(), b"data:")
}

/// Returns the scheme of a base, with its colon. A reference such as `http:g` is relative only to a base with the same
/// scheme.
pub(super) fn scheme(base_url: &str) -> Option<&str> {
    base_url.split_inclusive(':').next()
}

/// Escapes a Content-ID for a `cid:` URL (RFC 2392 §2).
pub(crate) fn cid_escaped(content_id: &str) -> String {
    const ESCAPED: AsciiSet = all_but(b"-._~!$&'*+=@");
    utf8_percent_encode(content_id, &ESCAPED).to_string()
}
