//! A quoted-printable body taken apart: which bytes stand for which octets (RFC 2045 §6.7).

use crate::span::{Lines, Span};

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
        let escaped = escape(text);
        let length = match escaped {
            Some(_) => 3,
            // An `=` that begins no escape is kept (§6.7).
            None => {
                let behind = text.get(1..).unwrap_or_default();
                1 + memchr::memchr(b'=', behind).unwrap_or(behind.len())
            }
        };
        let start = self.text.start;
        self.text = Span::new(start + length, self.text.end);
        Some(Piece {
            bytes: Span::new(start, start + length),
            escaped,
        })
    }
}

/// The octet of the escape that `text` begins with.
fn escape(text: &[u8]) -> Option<u8> {
    let &[b'=', high, low, ..] = text else {
        return None;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
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
