use std::borrow::Cow;

use super::entity::{character, push_character};
use super::srcset::is_blank;
use super::value::Markup;

/// An escape of a character outside ASCII, or of NUL, reads percent-encoded: [`entity`](super::entity) says why.
pub(super) fn unescape(css: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr2(b'\\', 0, css).is_none() {
        return Cow::Borrowed(css);
    }
    let mut out = Vec::with_capacity(css.len());
    let mut at = 0;
    while let Some(&byte) = css.get(at) {
        at += 1;
        let rest = css.get(at..).unwrap_or_default();
        match byte {
            0 => push_character('\u{FFFD}', &mut out),
            b'\\' => at += unescape_one(rest, &mut out),
            _ => out.push(byte),
        }
    }
    Cow::Owned(out)
}

fn unescape_one(rest: &[u8], out: &mut Vec<u8>) -> usize {
    let digits = rest
        .iter()
        .take(6)
        .map_while(|&byte| char::from(byte).to_digit(16));
    let (digits, code_point) = digits.fold((0, 0), |(count, value), digit| {
        (count + 1, value * 16 + digit)
    });
    if digits > 0 {
        push_character(character(code_point), out);
        return digits + line_end(rest.get(digits..).unwrap_or_default(), is_blank);
    }
    let continuation = line_end(rest, |byte| matches!(byte, b'\n' | b'\r' | 0x0C));
    match rest.first() {
        Some(_) if continuation > 0 => return continuation,
        None | Some(0) => push_character('\u{FFFD}', out),
        Some(&next) => out.push(next),
    }
    1
}

fn line_end(text: &[u8], counts: impl Fn(u8) -> bool) -> usize {
    match text {
        [b'\r', b'\n', ..] => 2,
        [first, ..] if counts(*first) => 1,
        _ => 0,
    }
}

pub(super) fn escape(url: &[u8], markup: Markup, special: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(url.len() + 8);
    let mut before = 0;
    for &byte in url {
        let is_markup = match markup {
            // `</style` would end the element, `-->` a conditional comment around it.
            Markup::StyleElement => byte == b'<' || byte == b'>' && matches!(before, b'-' | b'!'),
            // Both may be in one: references count in the first, and `]]>` ends the other.
            Markup::StyleText | Markup::StyleSection => matches!(byte, b'<' | b'>' | b'&'),
            Markup::StyleSheet | Markup::Attribute { .. } => false,
        };
        if byte == 0 {
            out.extend_from_slice(b"%00");
        } else if byte <= b' ' || byte == 0x7F || is_markup {
            out.extend_from_slice(format!("\\{byte:x} ").as_bytes());
        } else {
            if byte == b'\\' || special.contains(&byte) {
                out.push(b'\\');
            }
            out.push(byte);
        }
        before = byte;
    }
    out
}
