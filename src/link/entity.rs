//! Character references in attribute values and in the text of elements (HTML standard §13.2.5.72 to §13.2.5.80).
//!
//! If a named reference has no `;` and is followed by `=` or an alphanumeric character, it is plain text in an
//! attribute, but a reference in an element.
//!
//! Deviation: if a reference stands for a character outside ASCII (or for U+FFFD, in the case of NUL), it is decoded
//! to the percent-encoded UTF-8 of the character: `&eacute;` becomes `%C3%A9`. Therefore the charset of the document
//! need not be known, and the result can be written into any document. A URL parser does the same, except in the
//! query of a URL in a document that is not UTF-8.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;

use memchr::{memchr, memchr_iter, memchr3, memrchr};
use percent_encoding::percent_encode_byte;

use crate::span::Span;

/// Maximum number of letters that are read as a name. The longest name, `CounterClockwiseContourIntegral`, has 31
/// characters. Without this limit, a long text after a `&` would be read to its end.
const LONGEST_NAME: usize = 32;

const LONGEST_OPEN_NAME: usize = 6;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Within {
    Attribute,
    Text,
}

pub(super) fn text(raw: &[u8], within: Within) -> Cow<'_, [u8]> {
    decode(raw, within, push_character)
}

/// Decodes references for display: each is replaced with its character in UTF-8.
pub(super) fn shown(raw: &[u8], within: Within) -> Cow<'_, [u8]> {
    decode(raw, within, |character, out| {
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    })
}

/// Decodes references for a parser that splits the value into URLs. A non-ASCII character becomes the single byte 0x80:
/// parsers treat all bytes above 127 alike. The result is never longer than `raw`.
pub(super) fn split_text(raw: &[u8], within: Within) -> Cow<'_, [u8]> {
    const STAND_IN: u8 = 0x80;
    decode(raw, within, |character, out| {
        out.push(u8::try_from(character).unwrap_or(STAND_IN).min(STAND_IN));
    })
}

fn decode(raw: &[u8], within: Within, write: fn(char, &mut Vec<u8>)) -> Cow<'_, [u8]> {
    let mut text = Vec::new();
    let mut copied = 0;
    while let Some(reference) = next_reference(raw, within, copied) {
        text.reserve(raw.len() - copied);
        text.extend_from_slice(&raw[copied..reference.span.start]);
        let (first, second) = reference.meaning;
        write(first, &mut text);
        if let Some(second) = second {
            write(second, &mut text);
        }
        copied = reference.span.end;
    }
    if copied == 0 {
        return Cow::Borrowed(raw);
    }
    text.extend_from_slice(&raw[copied..]);
    Cow::Owned(text)
}

/// Characters that a reference stands for. No reference of the standard has more than two.
type Meaning = (char, Option<char>);

struct EntityReference {
    span: Span,
    meaning: Meaning,
    /// Whether the `;` is missing. A letter or digit after it could then be read as part of the reference.
    is_open: bool,
}

fn next_reference(raw: &[u8], within: Within, mut from: usize) -> Option<EntityReference> {
    loop {
        let start = from + memchr3(b'&', b'\r', 0, raw.get(from..)?)?;
        let rest = raw.get(start..)?;
        let found = match rest {
            [b'&', ..] => reference(rest, within),
            // CR LF is decoded as one line ending. If CR and LF were decoded as two characters, a replacement could
            // begin between them, and the CR would remain in the document without its LF.
            [b'\r', b'\n', ..] => Some((('\n', None), 2)),
            [b'\r', ..] => Some((('\n', None), 1)),
            _ => Some((('\u{FFFD}', None), 1)),
        };
        let Some((meaning, length)) = found else {
            from = start + 1;
            continue;
        };
        return Some(EntityReference {
            span: Span::new(start, start + length),
            meaning,
            is_open: rest.first() == Some(&b'&') && rest.get(length - 1) != Some(&b';'),
        });
    }
}

/// Maps offsets in the result of [`split_text`], in ascending order, to offsets in the raw value. The value is read a
/// second time, because a table of offsets would be many times as large as a value that consists of references.
pub(super) struct Offsets<'a> {
    raw: &'a [u8],
    within: Within,
    next: Option<(EntityReference, usize)>,
    text_from: usize,
    raw_from: usize,
    is_behind_open: bool,
}

impl<'a> Offsets<'a> {
    pub(super) fn new(raw: &'a [u8], within: Within) -> Self {
        let mut offsets = Self {
            raw,
            within,
            next: None,
            text_from: 0,
            raw_from: 0,
            is_behind_open: false,
        };
        offsets.look_ahead();
        offsets
    }

    /// Converts a range of the decoded text to a span of the raw value. Returns `None` if a reference without `;` is
    /// directly before the range. A new URL at this place could then be read as part of the reference.
    pub(super) fn raw_span(&mut self, range: Range<usize>) -> Option<Span> {
        let start = self.raw_offset(range.start);
        let is_writable = !self.is_behind_open || self.text_from != range.start;
        is_writable.then(|| Span::new(start, self.raw_offset(range.end)))
    }

    fn raw_offset(&mut self, at: usize) -> usize {
        while let Some((passed, text_from)) = self.next.take_if(|(_, text_from)| *text_from <= at) {
            self.text_from = text_from;
            self.raw_from = passed.span.end;
            self.is_behind_open = passed.is_open;
            self.look_ahead();
        }
        self.raw_from + (at - self.text_from)
    }

    fn look_ahead(&mut self) {
        let next = next_reference(self.raw, self.within, self.raw_from);
        self.next = next.map(|next| {
            let literal = next.span.start - self.raw_from;
            let characters = 1 + usize::from(next.meaning.1.is_some());
            (next, self.text_from + literal + characters)
        });
    }
}

/// Returns whether the value contains a reference to `&`, such as `&amp;`. Its writer then escapes ampersands, so those
/// of a new URL are escaped as well.
pub(super) fn escapes_ampersands(raw: &[u8]) -> bool {
    memchr_iter(b'&', raw).any(|at| {
        let meaning = reference(&raw[at..], Within::Attribute);
        matches!(meaning, Some((('&', _), _)))
    })
}

/// Encodes text for an attribute value between two `quote` characters, so that a parser reads the same text. NUL cannot
/// be represented and becomes `%00`.
///
/// `<` is always written as `&lt;`, which XML requires and HTML allows. `>` is written as a reference where it could
/// end a comment, because the attribute may be in a conditional comment.
pub(super) fn encode(text: &[u8], quote: Option<u8>, escapes_ampersands: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 16);
    let mut copied = 0;
    for (at, &byte) in text.iter().enumerate() {
        // Most bytes of URLs need no escape, so these are tested first.
        if !matches!(byte, 0..=b'\'' | b'-' | b'<' | b'>' | b'`') {
            continue;
        }
        let rest = &text[at..];
        let before = at.checked_sub(1).and_then(|at| text.get(at));
        let written: &[u8] = match byte {
            b'&' if escapes_ampersands || reference(rest, Within::Attribute).is_some() => b"&amp;",
            b'<' => b"&lt;",
            0 => b"%00",
            b'\r' => b"&#13;",
            b'>' if matches!(before, Some(b'-' | b'!')) => b"&gt;",
            _ => match (quote, byte) {
                (None | Some(b'"'), b'"') => b"&quot;",
                (None | Some(b'\''), b'\'') => b"&#39;",
                (None, b'>') => b"&gt;",
                (None, b'`') => b"&#96;",
                (None, b' ') => b"&#32;",
                (None, b'\t') => b"&#9;",
                (None, b'\n') => b"&#10;",
                (None, 0x0C) => b"&#12;",
                // The end of an unquoted value can be followed directly by the `>` of the tag. `->` or `!>` could then
                // end a conditional comment around the tag.
                (None, b'-') if rest.len() == 1 => b"&#45;",
                (None, b'!') if rest.len() == 1 => b"&#33;",
                _ => continue,
            },
        };
        out.extend_from_slice(&text[copied..at]);
        out.extend_from_slice(written);
        copied = at + 1;
    }
    out.extend_from_slice(&text[copied..]);
    out
}

pub(super) fn push_character(character: char, out: &mut Vec<u8>) {
    let mut buffer = [0; 4];
    for &byte in character.encode_utf8(&mut buffer).as_bytes() {
        if byte.is_ascii() {
            out.push(byte);
        } else {
            out.extend_from_slice(percent_encode_byte(byte).as_bytes());
        }
    }
}

pub(super) fn character(code_point: u32) -> char {
    match char::from_u32(code_point) {
        None | Some('\0') => '\u{FFFD}',
        Some(found) => found,
    }
}

/// Returns the meaning and the length of the reference at the start of `bytes`. It reads at most one run of
/// alphanumeric characters. The runs after different ampersands do not overlap, so the total time is linear.
fn reference(bytes: &[u8], within: Within) -> Option<(Meaning, usize)> {
    if bytes.get(1) == Some(&b'#') {
        return numeric_reference(bytes);
    }
    let name = bytes
        .iter()
        .skip(1)
        .take(LONGEST_NAME)
        .take_while(|byte| byte.is_ascii_alphanumeric())
        .count();
    let is_whole = || named(bytes.get(..2 + name)?);
    let end = match bytes.get(1 + name) {
        _ if name == 0 => return None,
        next if within == Within::Text && (next != Some(&b';') || is_whole().is_none()) => {
            let mut lengths = (2..=name.min(LONGEST_OPEN_NAME)).rev();
            return lengths
                .find_map(|length| Some((characters_of(bytes.get(..=length)?)?, 1 + length)));
        }
        // In an attribute, a name without `;` must not be followed by a letter or digit, so only the complete run of
        // letters and digits can be the name, and one look-up is enough.
        Some(b';') => 2 + name,
        Some(next) if *next == b'=' || next.is_ascii_alphanumeric() => return None,
        _ => 1 + name,
    };
    match bytes.get(..end)? {
        // Almost every reference in a URL is `&amp;`, so the table is not searched for it.
        b"&amp;" => Some((('&', None), end)),
        written => Some((characters_of(written)?, end)),
    }
}

fn characters_of(name: &[u8]) -> Option<Meaning> {
    let mut characters = str::from_utf8(named(name)?).ok()?.chars();
    Some((characters.next()?, characters.next()))
}

/// Table of all named references, sorted by name. Each line contains the name without `&`, a space, and the characters
/// in UTF-8. The table is a single text, because a table of slices contains pointers, which must be adjusted each time
/// the program starts.
const ENTITIES: &[u8] = include_bytes!("entities.txt");

fn named(written: &[u8]) -> Option<&'static [u8]> {
    let name = written.strip_prefix(b"&")?;
    if name == b"NewLine;" {
        // `&NewLine;` stands for a line ending. It cannot be in the table, because each entry of the table is one line.
        return Some(b"\n");
    }
    let mut rest = ENTITIES;
    while !rest.is_empty() {
        let middle = rest.len() / 2;
        let start = memrchr(b'\n', rest.get(..middle)?).map_or(0, |at| at + 1);
        let end = middle + memchr(b'\n', rest.get(middle..)?)?;
        let line = rest.get(start..end)?;
        let (known, value) = line.split_at(memchr(b' ', line)?);
        match name.cmp(known) {
            Ordering::Equal => return value.get(1..),
            Ordering::Less => rest = rest.get(..start)?,
            Ordering::Greater => rest = rest.get(end + 1..)?,
        }
    }
    None
}

/// Characters that the numbers 0x80 to 0x9f stand for in references. They are those of windows-1252. All other numbers
/// are Unicode code points.
const WINDOWS_1252: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ";

fn numeric_reference(bytes: &[u8]) -> Option<(Meaning, usize)> {
    let (radix, digits_at) = match bytes.get(2) {
        Some(b'x' | b'X') => (16, 3),
        _ => (10, 2),
    };
    let (code_point, digits) = number_in_front(bytes.get(digits_at..)?, radix);
    if digits == 0 {
        return None;
    }
    let digits_end = digits_at + digits;
    let end = digits_end + usize::from(bytes.get(digits_end) == Some(&b';'));
    // The HTML standard replaces the numbers 0x80 to 0x9f, which are control characters in Unicode, with characters of
    // windows-1252.
    let index = code_point.checked_sub(0x80);
    let replaced = index.and_then(|index| WINDOWS_1252.chars().nth(index as usize));
    let found = replaced.unwrap_or_else(|| character(code_point));
    Some(((found, None), end))
}

/// Returns the number at the start of the text and the count of its digits. A number that is too large becomes the
/// largest `u32`.
pub(super) fn number_in_front(text: &[u8], radix: u32) -> (u32, usize) {
    let digits = text
        .iter()
        .map_while(|&byte| char::from(byte).to_digit(radix));
    digits.fold((0_u32, 0), |(number, count), digit| {
        let number = number.saturating_mul(radix).saturating_add(digit);
        (number, count + 1)
    })
}

#[cfg(test)]
mod tests;
