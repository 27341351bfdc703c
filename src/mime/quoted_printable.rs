//! Decoding and encoding of quoted-printable (RFC 2045 §6.7).
//!
//! Malformed text is decoded as most programs do: an `=` that does not begin an escape is kept, and hexadecimal
//! digits may be in lower case. White space before a line ending was added during transport and is removed (rule 3).

use memchr::memchr;

use crate::span::{Newline, Span, SpanLines, split_while};

/// Maximum length of an encoded line, in columns (RFC 2045 §6.7 rule 5, §6.8).
pub(super) const ENCODED_COLUMNS: usize = 76;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sign {
    Escape(u8),
    SoftBreak,
    Bare,
}

impl Sign {
    /// Returns what an `=` means, and the text after it. `behind` is the text after the `=`.
    pub fn read(behind: &[u8]) -> (Self, &[u8]) {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        if let [high, low, rest @ ..] = behind
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        {
            return (Self::Escape((high << 4 | low) as u8), rest);
        }
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        match split_while(behind, is_blank).1 {
            [b'\n', rest @ ..] | [b'\r', b'\n', rest @ ..] => (Self::SoftBreak, rest),
            _ => (Self::Bare, behind),
        }
    }
}

pub(super) fn decode(body: &[u8]) -> Vec<u8> {
    let mut octets = Vec::with_capacity(body.len());
    for (piece, escaped) in pieces(body) {
        match escaped {
            Some(octet) => octets.push(octet),
            None => octets.extend_from_slice(piece.of(body)),
        }
    }
    octets
}

/// Returns the pieces of a body. A piece is either an escape, with its decoded byte, or a run of bytes that are not encoded.
fn pieces(bytes: &[u8]) -> impl Iterator<Item = (Span, Option<u8>)> {
    let mut lines = SpanLines::new(bytes, Span::new(0, bytes.len()));
    // `text` is the part of the current line that was not returned yet. `ending` is the span of the line ending. It is
    // `None` if the line ends with a soft line break, which has no content.
    let (mut text, mut ending) = (Span::default(), None);
    std::iter::from_fn(move || {
        while text.is_empty() {
            if let Some(ending) = ending.take() {
                return Some((ending, None));
            }
            let line = lines.next()?;
            let mut content = line.content.of(bytes);
            while let [front @ .., b' ' | b'\t'] = content {
                content = front;
            }
            if let [front @ .., b'='] = content {
                content = front;
            } else {
                ending = Some(Span::new(line.content.end, line.whole.end));
            }
            text = Span::new(line.content.start, line.content.start + content.len());
        }
        let rest = text.of(bytes);
        let (escaped, length) = match rest.split_first() {
            Some((b'=', behind)) => match Sign::read(behind) {
                (Sign::Escape(octet), after) => (Some(octet), rest.len() - after.len()),
                // Soft line breaks were already removed from the end of `text`, so this `=` is an ordinary byte.
                (Sign::SoftBreak | Sign::Bare, _) => (None, 1),
            },
            _ => (None, memchr(b'=', rest).unwrap_or(rest.len())),
        };
        let piece = Span::new(text.start, text.start + length);
        text.start = piece.end;
        Some((piece, escaped))
    })
}

/// Returns a function that maps the offset of a decoded byte to the span of its encoded bytes. Offsets must be passed
/// to it in ascending order. For an offset after the last byte, it returns an empty span at the end.
pub(super) fn places(bytes: &[u8]) -> impl FnMut(usize) -> Span {
    let mut pieces = pieces(bytes).peekable();
    // Number of decoded bytes before the next piece, and the end of the piece before it.
    let (mut octets, mut end) = (0, 0);
    move |octet| {
        while let Some(&(piece, escaped)) = pieces.peek() {
            let length = escaped.map_or(piece.len(), |_| 1);
            let start = piece.start + octet.saturating_sub(octets);
            if octet.saturating_sub(octets) < length {
                return Span::new(start, escaped.map_or(start + 1, |_| piece.end));
            }
            octets += length;
            end = piece.end;
            pieces.next();
        }
        Span::empty_at(end)
    }
}

/// Encodes text. Bare CRs are escaped, and so are white space before a line ending, `From ` and `--` at the start of
/// a line, and a line that is a single `.`, so that other programs cannot misread them.
pub(crate) fn encode(text: &[u8], newline: Newline) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(text.len() + text.len() / 8);
    for line in SpanLines::new(text, Span::new(0, text.len())) {
        push_line(line.content.of(text), newline, &mut encoded);
        if line.whole.end > line.content.end {
            encoded.extend_from_slice(newline.bytes());
        }
    }
    encoded
}

/// Appends one line with soft line breaks. Line endings in `content` are escaped like other bytes.
pub(super) fn push_line(content: &[u8], newline: Newline, encoded: &mut Vec<u8>) {
    let mut column = 0;
    let mut rest = content;
    while let [_, behind @ ..] = rest {
        // The `=` of a soft line break needs a column, unless this is the last byte of the line.
        let room = ENCODED_COLUMNS - usize::from(rest.len() > 1);
        if column + width(rest, column) > room {
            push_soft_break(newline, encoded);
            column = 0;
        }
        column += push_octet(rest, column, encoded);
        rest = behind;
    }
}

/// Encodes text with exactly the line breaks and escapes of Apple Mail: lines are broken after spaces, and text that
/// does not end with a line ending is followed by a soft line break.
pub(super) fn encode_by_words(text: &[u8], newline: Newline) -> Vec<u8> {
    /// Maximum column in three cases: after a word with its space, after the last word of a line, and within a word
    /// that is too long for a line.
    const COLUMNS: [usize; 3] = [73, 75, 74];
    let is_blank = |octet: &u8| matches!(octet, b' ' | b'\t');
    let mut encoded = Vec::with_capacity(text.len() + text.len() / 8);
    for line in SpanLines::new(text, Span::new(0, text.len())) {
        let mut rest = line.content.of(text);
        let mut column = 0;
        while !rest.is_empty() {
            let word = rest
                .iter()
                .position(is_blank)
                .map_or(rest.len(), |at| at + 1);
            let room = COLUMNS[usize::from(word == rest.len())];
            let behind = |at| &rest[at..];
            // Apple Mail measures a word as if it were in the middle of a line, where fewer bytes must be escaped than
            // at the start.
            let wide: usize = (0..word).map(|at| width(behind(at), 1)).sum();
            if column > 0 && column + wide > room {
                push_soft_break(newline, &mut encoded);
                column = 0;
            }
            let fits = column + wide <= room;
            for at in 0..word {
                if !fits && column + width(behind(at), column) > COLUMNS[2] {
                    push_soft_break(newline, &mut encoded);
                    column = 0;
                }
                column += push_octet(behind(at), column, &mut encoded);
            }
            rest = behind(word);
        }
        if line.whole.end > line.content.end {
            encoded.extend_from_slice(newline.bytes());
        } else if column > 0 {
            push_soft_break(newline, &mut encoded);
        }
    }
    encoded
}

fn width(rest: &[u8], column: usize) -> usize {
    match rest {
        [b' ' | b'\t'] | [b'=', ..] => 3,
        b"." | [b'-', b'-', ..] if column == 0 => 3,
        [b'F', ..] if column == 0 && rest.starts_with(b"From ") => 3,
        [b' '..=b'~' | b'\t', ..] => 1,
        _ => 3,
    }
}

fn push_octet(rest: &[u8], column: usize, encoded: &mut Vec<u8>) -> usize {
    let octet = rest.first().copied().unwrap_or_default();
    let width = width(rest, column);
    match width {
        1 => encoded.push(octet),
        _ => encoded.extend_from_slice(&escape(octet)),
    }
    width
}

pub(super) fn push_soft_break(newline: Newline, encoded: &mut Vec<u8>) {
    encoded.push(b'=');
    encoded.extend_from_slice(newline.bytes());
}

/// Returns whether the byte can be written without an escape in the middle of a line.
pub(super) fn is_plain(octet: u8) -> bool {
    matches!(octet, b' '..=b'<' | b'>'..=b'~')
}

pub(super) fn escape(octet: u8) -> [u8; 3] {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or(b'0');
    [b'=', digit(octet >> 4), digit(octet & 15)]
}

/// Returns whether the whole body is quoted-printable: it is ASCII, has an escape or a soft line break, and has no other `=`.
pub(super) fn is_throughout(body: &[u8]) -> bool {
    let mut signs = memchr::memchr_iter(b'=', body).peekable();
    signs.peek().is_some()
        && body.is_ascii()
        && signs.all(|at| {
            let (sign, _) = Sign::read(&body[at + 1..]);
            !matches!(sign, Sign::Bare)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mail_parser::decoders::quoted_printable::quoted_printable_decode;
    use proptest::prelude::*;

    fn plainly(body: &str) -> Vec<u8> {
        let mut octets = Vec::new();
        for line in body.split_inclusive('\n') {
            let without_lf = line.strip_suffix('\n').unwrap_or(line);
            let content = without_lf
                .strip_suffix('\r')
                .filter(|_| line.ends_with('\n'))
                .unwrap_or(without_lf);
            let trimmed = content.trim_end_matches([' ', '\t']);
            let (text, end) = match trimmed.strip_suffix('=') {
                Some(text) => (text, ""),
                None => (trimmed, &line[content.len()..]),
            };
            let mut rest = text;
            while let Some(first) = rest.chars().next() {
                let digits = rest.get(1..3).filter(|digits| {
                    first == '=' && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
                });
                match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                    Some(octet) => octets.push(octet),
                    None => octets.extend(first.to_string().bytes()),
                }
                rest = &rest[digits.map_or(first.len_utf8(), |_| 3)..];
            }
            octets.extend(end.bytes());
        }
        octets
    }

    proptest! {
        #[test]
        fn any_body_is_read_as_the_rules_say(body in "[a-f=4é \t\r\n]{0,60}") {
            let octets = decode(body.as_bytes());
            let expected = plainly(&body);
            prop_assert_eq!(octets.escape_ascii().to_string(), expected.escape_ascii().to_string());
        }

        #[test]
        fn lines_are_short_and_read_alike_by_others(text in "[ -~é=]{0,600}") {
          for encode in [encode, encode_by_words] {
            let encoded = encode(text.as_bytes(), Newline::Lf);
            for line in SpanLines::new(&encoded, Span::new(0, encoded.len())) {
                prop_assert!(line.content.len() <= 76);
            }
            let decoded = decode(&encoded);
            prop_assert_eq!(decoded.as_slice(), text.as_bytes());
            let theirs = quoted_printable_decode(&encoded).expect("it is well-formed");
            prop_assert_eq!(theirs.as_slice(), text.as_bytes());
          }
        }
    }

    #[test]
    fn what_a_soft_line_break_uncovers_is_no_boundary() {
        for dangerous in ["--b1", "From me"] {
            let text = format!("\u{e9}{}{dangerous}\n", "x".repeat(69));
            let encoded = encode(text.as_bytes(), Newline::Lf);
            let shown = String::from_utf8(encoded.clone()).expect("it is ASCII");
            assert!(
                shown
                    .lines()
                    .skip(1)
                    .all(|line| !line.starts_with(dangerous)),
                "{shown}"
            );
            assert_eq!(decode(&encoded), text.as_bytes());
        }
    }
}
