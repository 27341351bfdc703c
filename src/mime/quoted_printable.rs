//! quoted-printable (RFC 2045 §6.7): the one place that knows its rules, read and written.
//!
//! Reading takes what is broken as most programs do: an `=` that begins no escape stands for itself, and
//! digits may be in lower case. Blanks before a line end were added on the way and go (rule 3).

use memchr::memchr;

use super::transfer::ENCODED_COLUMNS as COLUMNS;
use crate::span::{Lines, Newline, Span};

/// What an `=` stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sign {
    /// The octet that two digits name.
    Escape(u8),
    /// Nothing: the line goes on in the next one.
    SoftBreak,
    /// Itself.
    Bare,
}

impl Sign {
    /// Reads what stands behind an `=`, and how many bytes of that belong to it.
    #[must_use]
    pub fn read(behind: &[u8]) -> (Self, usize) {
        let digit = |at: usize| char::from(*behind.get(at)?).to_digit(16);
        if let (Some(high), Some(low)) = (digit(0), digit(1)) {
            return (Self::Escape((high << 4 | low) as u8), 2);
        }
        let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
        let blanks = behind.iter().take_while(is_blank).count();
        match behind.get(blanks..) {
            Some([b'\n', ..]) => (Self::SoftBreak, blanks + 1),
            Some([b'\r', b'\n', ..]) => (Self::SoftBreak, blanks + 2),
            _ => (Self::Bare, 0),
        }
    }
}

/// The octets of a body.
pub(super) fn decode(body: &[u8]) -> Vec<u8> {
    let mut octets = Vec::with_capacity(body.len());
    for piece in Pieces::new(body) {
        match piece.escaped {
            Some(octet) => octets.push(octet),
            None => octets.extend_from_slice(piece.bytes.of(body)),
        }
    }
    octets
}

/// Bytes of a quoted-printable body that stand for octets.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) bytes: Span,
    /// The one octet of an escape; other bytes are octets themselves.
    pub(super) escaped: Option<u8>,
}

impl Piece {
    /// How many octets it stands for.
    fn len(&self) -> usize {
        self.escaped.map_or(self.bytes.len(), |_| 1)
    }
}

/// The pieces of a body, in order; soft line breaks and blanks before a line end are none.
pub(super) struct Pieces<'b> {
    bytes: &'b [u8],
    lines: Lines<'b>,
    /// What is not read yet of the current line's text.
    text: Span,
    /// The line end behind it, unless it is soft.
    ending: Option<Span>,
}

impl<'b> Pieces<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self {
            bytes,
            lines: Lines::new(bytes, Span::new(0, bytes.len())),
            text: Span::new(0, 0),
            ending: None,
        }
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        while self.text.is_empty() {
            if let Some(ending) = self.ending.take() {
                return Some(Piece {
                    bytes: ending,
                    escaped: None,
                });
            }
            let line = self.lines.next()?;
            let mut text = line.content.of(self.bytes);
            while let [front @ .., b' ' | b'\t'] = text {
                text = front;
            }
            if let [front @ .., b'='] = text {
                text = front;
            } else {
                self.ending = Some(Span::new(line.content.end, line.whole.end));
            }
            self.text = Span::new(line.content.start, line.content.start + text.len());
        }
        let text = self.text.of(self.bytes);
        let (escaped, length) = match text.split_first() {
            Some((b'=', behind)) => match Sign::read(behind) {
                (Sign::Escape(octet), digits) => (Some(octet), 1 + digits),
                // A soft line break was taken off the text's end.
                (Sign::SoftBreak | Sign::Bare, _) => (None, 1),
            },
            _ => (None, memchr(b'=', text).unwrap_or(text.len())),
        };
        let start = self.text.start;
        self.text = Span::new(start + length, self.text.end);
        Some(Piece {
            bytes: Span::new(start, start + length),
            escaped,
        })
    }
}

/// Where octets stand among the bytes; asked for in order.
pub(super) struct Places<'b> {
    pieces: Pieces<'b>,
    piece: Option<Piece>,
    /// How many octets there are before the piece.
    octets: usize,
    /// Where the last piece ended.
    end: usize,
}

impl<'b> Places<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        let mut pieces = Pieces::new(bytes);
        Self {
            piece: pieces.next(),
            pieces,
            octets: 0,
            end: 0,
        }
    }

    /// The bytes of an octet; behind the last one, no bytes at the end.
    pub(super) fn of(&mut self, octet: usize) -> Span {
        while let Some(piece) = self.piece {
            let within = octet.saturating_sub(self.octets);
            if within < piece.len() {
                let start = piece.bytes.start + within;
                let end = piece.escaped.map_or(start + 1, |_| piece.bytes.end);
                return Span::new(start, end);
            }
            self.octets += piece.len();
            self.end = piece.bytes.end;
            self.piece = self.pieces.next();
        }
        Span::new(self.end, self.end)
    }
}

/// Text as quoted-printable. Bare CR, blanks before a line end, `From ` and `--` at the
/// start of a line are escaped too: no transport and no boundary can mistake them.
pub(super) fn encode(text: &[u8], newline: Newline) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(text.len() + text.len() / 8);
    for line in Lines::new(text, Span::new(0, text.len())) {
        push_line(line.content.of(text), newline, &mut encoded);
        if line.whole.end > line.content.end {
            encoded.extend_from_slice(newline.bytes());
        }
    }
    encoded
}

/// One line as quoted-printable, with soft line breaks; line ends in it are octets like others.
pub(super) fn push_line(content: &[u8], newline: Newline, encoded: &mut Vec<u8>) {
    let mut column = 0;
    for (index, &byte) in content.iter().enumerate() {
        let is_last = index + 1 == content.len();
        // What starts an encoded line may do so behind a soft line break as well.
        let is_literal = |column| match byte {
            b' ' | b'\t' => !is_last,
            b'-' | b'F' | b'.' if column == 0 => {
                let rest = content.get(index..).unwrap_or_default();
                !(rest.starts_with(b"--") || rest.starts_with(b"From ") || rest == b".")
            }
            b'=' => false,
            _ => (b'!'..=b'~').contains(&byte),
        };
        let width = |column| if is_literal(column) { 1 } else { 3 };
        // A soft line break needs a column of its own unless the line ends here.
        let room = if is_last { COLUMNS } else { COLUMNS - 1 };
        if column + width(column) > room {
            encoded.push(b'=');
            encoded.extend_from_slice(newline.bytes());
            column = 0;
        }
        if is_literal(column) {
            encoded.push(byte);
        } else {
            encoded.extend_from_slice(&escape(byte));
        }
        column += width(column);
    }
}

/// One octet inside a quoted-printable line, at neither end of it: itself or an escape.
pub(super) fn octet(octet: u8) -> Vec<u8> {
    if octet == b' ' || (octet.is_ascii_graphic() && octet != b'=') {
        vec![octet]
    } else {
        escape(octet).to_vec()
    }
}

fn escape(octet: u8) -> [u8; 3] {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or(b'0');
    [b'=', digit(octet >> 4), digit(octet & 15)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use mail_parser::decoders::quoted_printable::quoted_printable_decode;
    use proptest::prelude::*;

    /// The rules in the words of RFC 2045 §6.7, one line after the other.
    fn plainly(body: &str) -> Vec<u8> {
        let mut octets = Vec::new();
        for line in body.split_inclusive('\n') {
            let text = line.strip_suffix('\n').unwrap_or(line);
            let text = text
                .strip_suffix('\r')
                .filter(|_| line.ends_with('\n'))
                .unwrap_or(text);
            let end = &line[text.len()..];
            let text = text.trim_end_matches([' ', '\t']);
            let (text, end) = match text.strip_suffix('=') {
                Some(text) => (text, ""),
                None => (text, end),
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
            let encoded = encode(text.as_bytes(), Newline::Lf);
            for line in Lines::new(&encoded, Span::new(0, encoded.len())) {
                prop_assert!(line.content.len() <= 76);
            }
            let decoded = decode(&encoded);
            prop_assert_eq!(decoded.as_slice(), text.as_bytes());
            let theirs = quoted_printable_decode(&encoded).expect("it is well-formed");
            prop_assert_eq!(theirs.as_slice(), text.as_bytes());
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
