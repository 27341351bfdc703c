//! Removes the two layers around the URL of a [`LinkValue`]: the markup and the grammar of the value. Adds both layers
//! to a new URL.

use std::borrow::Cow;

use percent_encoding::percent_encode_byte;

use super::entity::{self, Within, character, number_in_front, push_character};
use super::value::{Grammar, LinkValue, Markup};
use crate::span::front;

impl LinkValue {
    /// Returns the URL as a parser reads it, without resolving or percent-decoding it. `document` must be the
    /// document in which the link was found.
    pub fn decoded<'a>(&self, document: &'a [u8]) -> Cow<'a, [u8]> {
        let raw = self.span.of(document);
        let text = match self.markup {
            Markup::Attribute { .. } => entity::text(raw, Within::Attribute),
            Markup::StyleText => entity::text(raw, Within::Text),
            Markup::StyleSheet | Markup::StyleElement | Markup::StyleSection => Cow::Borrowed(raw),
        };
        match self.grammar {
            Grammar::CssUrl | Grammar::CssString(_) => match text {
                Cow::Borrowed(bytes) => unescape(bytes),
                Cow::Owned(bytes) => Cow::Owned(unescape(&bytes).into_owned()),
            },
            _ => text,
        }
    }

    /// Does the same as [`decoded`](Self::decoded), but character references and escapes become the characters
    /// themselves, for display. `raw` is the text of the span after decoding it from the charset of the document.
    pub fn characters(&self, raw: &str) -> String {
        let raw = raw.as_bytes();
        let text = match self.markup {
            Markup::Attribute { .. } => entity::shown(raw, Within::Attribute),
            Markup::StyleText => entity::shown(raw, Within::Text),
            Markup::StyleSheet | Markup::StyleElement | Markup::StyleSection => Cow::Borrowed(raw),
        };
        let text = if self.is_css() {
            Cow::Owned(unescape_with(&text, push_utf_8).into_owned())
        } else {
            text
        };
        String::from_utf8_lossy(&text).into_owned()
    }

    pub fn is_css(&self) -> bool {
        matches!(self.grammar, Grammar::CssUrl | Grammar::CssString(_))
    }

    /// Encodes a new URL for this place in the document, so that a parser reads the same URL. If the grammar has no
    /// escape for a character, the character is percent-encoded. `url` must not contain white space or NUL. In a list
    /// or a `srcset`, an empty URL cannot be written, so the result is empty.
    pub fn encoded(&self, url: impl AsRef<[u8]>) -> Vec<u8> {
        let url = url.as_ref();
        let text = match self.grammar {
            Grammar::Url => Cow::Borrowed(url),
            Grammar::Srcset => srcset_url(url),
            Grammar::SpaceSeparated => percent_encoded(url, |_, byte| byte.is_ascii_whitespace()),
            Grammar::CommaSeparated => {
                percent_encoded(url, |_, byte| byte.is_ascii_whitespace() || byte == b',')
            }
            Grammar::Refresh(Some(quote)) => percent_encoded(url, |_, byte| byte == quote),
            Grammar::Refresh(None) => percent_encoded(url, |at, byte| {
                at == 0 && matches!(byte, b'"' | b'\'' | b',' | b';')
            }),
            Grammar::CssUrl => escape(url, self.markup, b"\"'()").into(),
            Grammar::CssString(quote) => escape(url, self.markup, &[quote]).into(),
        };
        match self.markup {
            // An empty value is written with quotes. Without quotes, a parser would read the text after it as the
            // value.
            Markup::Attribute { quote: None, .. }
                if text.is_empty() && self.grammar == Grammar::Url =>
            {
                b"\"\"".to_vec()
            }
            Markup::Attribute {
                quote,
                escapes_ampersands,
            } => entity::encode(&text, quote, escapes_ampersands),
            _ => text.into_owned(),
        }
    }
}

fn srcset_url(url: &[u8]) -> Cow<'_, [u8]> {
    let comma = |byte: &&u8| **byte == b',';
    let leading = url.iter().take_while(comma).count();
    let trailing = url.iter().rev().take_while(comma).count();
    percent_encoded(url, |at, byte| {
        byte.is_ascii_whitespace() || byte == b',' && (at < leading || at >= url.len() - trailing)
    })
}

fn percent_encoded(url: &[u8], must: impl Fn(usize, u8) -> bool) -> Cow<'_, [u8]> {
    if !url.iter().enumerate().any(|(at, &byte)| must(at, byte)) {
        return Cow::Borrowed(url);
    }
    let written = url.iter().enumerate().flat_map(|(at, byte)| {
        if must(at, *byte) {
            percent_encode_byte(*byte).as_bytes()
        } else {
            std::slice::from_ref(byte)
        }
    });
    Cow::Owned(written.copied().collect())
}

/// Decodes CSS escapes. An escape of a character outside ASCII, or of NUL, becomes percent-encoded UTF-8, so that the
/// charset of the document need not be known (see [`entity`]).
pub(super) fn unescape(css: &[u8]) -> Cow<'_, [u8]> {
    unescape_with(css, push_character)
}

fn push_utf_8(character: char, out: &mut Vec<u8>) {
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

fn unescape_with(css: &[u8], write: fn(char, &mut Vec<u8>)) -> Cow<'_, [u8]> {
    if memchr::memchr2(b'\\', 0, css).is_none() {
        return Cow::Borrowed(css);
    }
    let mut out = Vec::with_capacity(css.len());
    let mut at = 0;
    while let Some(&byte) = css.get(at) {
        at += 1;
        let rest = &css[at..];
        match byte {
            0 => write('\u{FFFD}', &mut out),
            b'\\' => at += unescape_one(rest, &mut out, write),
            _ => out.push(byte),
        }
    }
    Cow::Owned(out)
}

fn unescape_one(rest: &[u8], out: &mut Vec<u8>, write: fn(char, &mut Vec<u8>)) -> usize {
    if let Some((code_point, length)) = escaped_code_point(rest) {
        write(character(code_point), out);
        return length;
    }
    let continuation = line_end(rest, |byte| matches!(byte, b'\n' | b'\r' | 0x0C));
    match rest.first() {
        Some(_) if continuation > 0 => return continuation,
        None | Some(0) => write('\u{FFFD}', out),
        Some(&next) => out.push(next),
    }
    1
}

/// Reads a CSS escape after its backslash (CSS Syntax §4.3.7): up to six hexadecimal digits, and one white space
/// character that ends them. Returns the code point and the length. Returns `None` if no digit follows.
pub(super) fn escaped_code_point(rest: &[u8]) -> Option<(u32, usize)> {
    let (code_point, digits) = number_in_front(front(rest, 6), 16);
    let blank = line_end(rest.get(digits..)?, u8::is_ascii_whitespace);
    (digits > 0).then_some((code_point, digits + blank))
}

pub(super) fn line_end(text: &[u8], counts: impl Fn(&u8) -> bool) -> usize {
    match text {
        [b'\r', b'\n', ..] => 2,
        [first, ..] if counts(first) => 1,
        _ => 0,
    }
}

fn escape(url: &[u8], markup: Markup, special: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(url.len() + 8);
    let mut before = 0;
    for &byte in url {
        let is_markup = match markup {
            // `</style` would end the element. `-->` or `--!>` would end a conditional comment around it.
            Markup::StyleElement => byte == b'<' || byte == b'>' && matches!(before, b'-' | b'!'),
            // In the text of a `<style>`, `<` and `&` begin markup. In a CDATA section, `]]>` is its end. Both can
            // occur in one `<style>`, so the same characters are escaped in both.
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
