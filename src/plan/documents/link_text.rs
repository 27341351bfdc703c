//! Link values as text that can be resolved, and back: the octets of any ASCII-compatible charset are carried through.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::link::base::{Base, THIS_MESSAGE};
use crate::link::url::all_but;

pub(super) fn mentions_base(document: &[u8]) -> bool {
    let is_base = |name: &[u8]| name.eq_ignore_ascii_case(b"base");
    memchr::memchr_iter(b'<', document).any(|at| document.get(at + 1..at + 5).is_some_and(is_base))
}

/// Bytes that are no UTF-8 are carried in a private area while a URL is text.
const CARRIED: u32 = 0xF700;

/// Bytes that are no UTF-8 are carried through.
pub(super) fn readable(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) => text.to_owned(),
        Err(_) => carried(value),
    }
}

/// Bytes that are no ASCII are carried through.
pub(super) fn carried(value: &[u8]) -> String {
    let carry = |&byte: &u8| match byte.is_ascii() {
        true => char::from(byte),
        false => char::from_u32(CARRIED + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER),
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

/// Bytes that are carried through came from the document, and may stand in it as they are.
pub(super) fn ascii(url: &str) -> String {
    if url.is_ascii() {
        return url.to_owned();
    }
    let mut written = String::new();
    for symbol in url.chars() {
        match symbol.is_ascii() || carried_by(symbol).is_some() {
            true => written.push(symbol),
            false => written.extend(utf8_percent_encode(
                symbol.encode_utf8(&mut [0; 4]),
                CONTROLS,
            )),
        }
    }
    written
}

/// Without a base it is within the message.
pub(super) fn base_url(base: Option<&Base>) -> String {
    ascii(base.map_or(THIS_MESSAGE, |base| &base.url))
}

/// With its colon: it decides whether a reference is relative.
pub(super) fn scheme(base_url: &str) -> Option<&str> {
    base_url.split_inclusive(':').next()
}

/// RFC 2392 §2
pub(crate) fn cid_escaped(content_id: &str) -> String {
    const ESCAPED: AsciiSet = all_but(b"-._~!$&'*+=@");
    utf8_percent_encode(content_id, &ESCAPED).to_string()
}
