//! Compact description of how a body was encoded ([`FieldText`]). With it, the decoded content can later be encoded to
//! exactly the same body.
//!
//! RFC 2045 leaves some choices to the writer: the length of lines, the line ending, and the end of the last line. The
//! description contains these choices. It is created only if encoding the content with it gives the same body, byte for
//! byte.
//!
//! A [`FieldText`] can come from untrusted input. Therefore its lengths are limited, and the size of the encoded body can
//! be computed in advance ([`FieldText::length`]).

use memchr::memchr;

use super::base64::push_base64;
use super::header::has_control_character;
use super::quoted_printable;
use super::transfer::{LINE_LIMIT, TransferEncoding, with_newlines};
use crate::span::Newline;

pub const LONGEST_TAIL: usize = 1000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EditManner {
    /// Base64 in lines of `line` columns, of which the last one may be shorter. 0 means a single line of any length.
    Base64 { line: usize },
    /// Quoted-printable with the escapes and line breaks that embody itself would write.
    QuotedPrintable,
    Identity {
        /// Whether the line endings of the body belong to its content. They are then kept if the body is later inserted
        /// into a mail with other line endings.
        keeps_line_ends: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldText {
    pub manner: EditManner,
    /// Line ending of the encoded body. For a body without encoding ([`EditManner::Identity`]), this is usually the
    /// line ending of the header. If any line ends differently, it is the opposite one, which marks that the line
    /// endings of the body must be kept.
    pub newline: Newline,
    /// Number of line endings at the end of the body.
    pub tail: usize,
}

impl FieldText {
    /// Decodes a body and determines how it was encoded. Returns `None` if encoding the content again would not give
    /// the same body. `newline` is the line ending of the header.
    pub fn read(
        body: &[u8],
        encoding: TransferEncoding,
        newline: Newline,
    ) -> Option<(Vec<u8>, Self)> {
        match encoding {
            TransferEncoding::Base64 => read_base64(body, newline),
            TransferEncoding::QuotedPrintable => read_quoted_printable(body, newline),
            TransferEncoding::SevenBit | TransferEncoding::EightBit | TransferEncoding::Binary => {
                let keeps_line_ends = !newline.is_throughout(body);
                let wording = Self {
                    manner: EditManner::Identity { keeps_line_ends },
                    newline: if keeps_line_ends {
                        newline.other()
                    } else {
                        newline
                    },
                    tail: 0,
                };
                is_plain(body).then(|| (body.to_vec(), wording))
            }
            TransferEncoding::Unknown => None,
        }
    }

    /// Deduces the line length of a base64 body with `octets` bytes of content. `length` is the length of the body, in
    /// which each line ending counts as one byte. Returns `None` if no line length gives this total. 76 columns, the
    /// most common length, is tried first.
    pub fn of_base64(octets: usize, length: u64, newline: Newline) -> Option<Self> {
        let symbols = octets.div_ceil(3) * 4;
        let ends = usize::try_from(length).ok()?.checked_sub(symbols)?;
        let shorter = (1..19).rev().map(|quarter| quarter * 4);
        let any = [0].into_iter().filter(|_| symbols > LINE_LIMIT);
        let mut lines = std::iter::once(76)
            .chain(shorter)
            .chain(1..=LINE_LIMIT)
            .chain(any);
        lines.find_map(|line| {
            let tail = ends.checked_sub(breaks(symbols, line));
            Some(Self {
                manner: EditManner::Base64 { line },
                newline,
                tail: tail.filter(|&tail| tail <= 1)?,
            })
        })
    }

    /// Whether a body with this description can have the Content-Transfer-Encoding `encoding`.
    pub fn is_of(&self, encoding: TransferEncoding) -> bool {
        match self.manner {
            EditManner::Base64 { .. } => encoding == TransferEncoding::Base64,
            EditManner::QuotedPrintable => encoding == TransferEncoding::QuotedPrintable,
            // Identity means that the body is not encoded. A body with an unknown transfer encoding is also stored as
            // it is.
            EditManner::Identity { .. } => {
                !encoding.is_encoded() || encoding == TransferEncoding::Unknown
            }
        }
    }

    /// Returns the length of the encoded body in bytes. It is exact for base64 and identity, and an upper limit for
    /// quoted-printable.
    pub fn length(&self, octets: &[u8]) -> usize {
        let newline = self.newline.bytes().len();
        let tail = self.tail * newline;
        match self.manner {
            EditManner::Base64 { line } => {
                let symbols = octets.len().div_ceil(3).saturating_mul(4);
                let breaks = breaks(symbols, line).saturating_mul(newline);
                symbols.saturating_add(breaks).saturating_add(tail)
            }
            // Upper limit: an escape of three bytes for each byte, and soft line breaks after at least 73 columns,
            // which add less than one byte for each byte.
            EditManner::QuotedPrintable => octets.len().saturating_mul(4).saturating_add(tail),
            EditManner::Identity { keeps_line_ends } if keeps_line_ends => octets.len(),
            EditManner::Identity { .. } => {
                let count = |end: &[u8]| memchr::memmem::find_iter(octets, end).count();
                let (lines, crlf) = (count(b"\n"), count(b"\r\n"));
                octets.len() - lines - crlf + lines * newline
            }
        }
    }

    pub(crate) fn keep_line_ends(&mut self) {
        if let EditManner::Identity { keeps_line_ends } = &mut self.manner {
            *keeps_line_ends = true;
        }
    }

    pub fn write(&self, octets: &[u8]) -> Option<Vec<u8>> {
        let mut body = match self.manner {
            EditManner::Base64 { line } => {
                let mut body = Vec::with_capacity(self.length(octets));
                push_base64(octets, line, self.newline, |piece| {
                    body.extend_from_slice(piece);
                    true
                });
                body
            }
            EditManner::QuotedPrintable => quoted_printable::encode(octets, self.newline),
            EditManner::Identity { .. } if !is_plain(octets) => return None,
            EditManner::Identity { keeps_line_ends } if keeps_line_ends => octets.to_vec(),
            EditManner::Identity { .. } => with_newlines(octets.to_vec(), self.newline),
        };
        if !matches!(self.manner, EditManner::Identity { .. }) {
            body.extend(self.newline.bytes().repeat(self.tail));
        }
        Some(body)
    }
}

fn breaks(symbols: usize, line: usize) -> usize {
    match line {
        0 => 0,
        line => symbols.div_ceil(line).saturating_sub(1),
    }
}

/// Returns whether every mail system transports the body without changes. The body must have no NUL, no CR without LF,
/// and no line that begins with `From `, which mailboxes quote.
fn is_plain(octets: &[u8]) -> bool {
    !has_control_character(octets) && !has_from_line(octets)
}

/// Returns whether a line begins with `From `, possibly after some `>`. Mailboxes put another `>` before such a line,
/// which would change the body.
fn has_from_line(octets: &[u8]) -> bool {
    memchr::memmem::find_iter(octets, b"From ").any(|at| {
        let before = octets[..at].iter().rev().find(|&&byte| byte != b'>');
        before.is_none_or(|&byte| byte == b'\n')
    })
}

/// Splits the line endings off the end of the body. Returns the rest, the line ending of the first line (`newline` if
/// there is none), and the number of line endings that were removed. Returns `None` if there are too many, or if they
/// are of different kinds.
fn without_tail(body: &[u8], newline: Newline) -> Option<(&[u8], Newline, usize)> {
    let newline = memchr(b'\n', body).map_or(newline, |_| Newline::of_first_line(body));
    let mut core = body;
    let mut tail = 0;
    while let Some(front) = core.strip_suffix(newline.bytes()) {
        if tail == LONGEST_TAIL {
            return None;
        }
        core = front;
        tail += 1;
    }
    // Line endings of the other kind remain at the end, so the body mixes both kinds and cannot be described.
    (!core.ends_with(b"\r") && !core.ends_with(b"\n")).then_some((core, newline, tail))
}

fn read_base64(body: &[u8], newline: Newline) -> Option<(Vec<u8>, FieldText)> {
    let (core, newline, tail) = without_tail(body, newline)?;
    let ending = newline.bytes();
    let first = memchr(b'\n', core).map_or(core.len(), |at| at + 1 - ending.len());
    let line = match first {
        1..=LINE_LIMIT => first,
        1.. if first == core.len() => 0,
        _ => return None,
    };
    // Assumes that all lines have the length of the first one. If not, the comparison below fails, and the body is not
    // described.
    let mut symbols = Vec::with_capacity(core.len());
    for whole in core.chunks(first + ending.len()) {
        symbols.extend_from_slice(whole.get(..first).unwrap_or(whole));
    }
    let octets = base64_simd::STANDARD.decode_inplace(&mut symbols).ok()?;
    let length = octets.len();
    symbols.truncate(length);
    let mut rest = core;
    let is_same = push_base64(&symbols, line, newline, |piece| {
        let behind = rest.strip_prefix(piece);
        rest = behind.unwrap_or(rest);
        behind.is_some()
    });
    let wording = FieldText {
        manner: EditManner::Base64 { line },
        newline,
        tail,
    };
    (is_same && rest.is_empty()).then_some((symbols, wording))
}

fn read_quoted_printable(body: &[u8], newline: Newline) -> Option<(Vec<u8>, FieldText)> {
    let (core, newline, tail) = without_tail(body, newline)?;
    if has_from_line(core) {
        return None;
    }
    let octets = quoted_printable::decode(core);
    let wording = FieldText {
        manner: EditManner::QuotedPrintable,
        newline,
        tail,
    };
    (quoted_printable::encode(&octets, newline) == core).then_some((octets, wording))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mime::transfer::encode_base64;
    use proptest::prelude::*;

    fn newlines() -> impl Strategy<Value = Newline> {
        prop_oneof![Just(Newline::Lf), Just(Newline::CrLf)]
    }

    fn plainly(octets: &[u8], line: usize, newline: Newline, tail: usize) -> Vec<u8> {
        let symbols = base64_simd::STANDARD.encode_to_string(octets);
        let lines: Vec<&[u8]> = symbols.as_bytes().chunks(line.max(1)).collect();
        let mut body = match line {
            0 => symbols.clone().into_bytes(),
            _ => lines.join(newline.bytes()),
        };
        body.extend(newline.bytes().repeat(tail));
        body
    }

    proptest! {
        #[test]
        fn base64_of_any_line_length_is_read_and_written_again(
            octets in prop::collection::vec(any::<u8>(), 1..9000),
            line in 1_usize..=LINE_LIMIT,
            newline in newlines(),
            tail in 0_usize..4,
        ) {
            let body = plainly(&octets, line, newline, tail);
            let (read, wording) = FieldText::read(&body, TransferEncoding::Base64, newline).expect("it is regular");
            prop_assert_eq!(&read, &octets);
            prop_assert_eq!(wording.tail, tail);
            let length = wording.length(&octets);
            let written = wording.write(&octets).expect("base64 holds all octets");
            prop_assert_eq!(length, written.len());
            prop_assert_eq!(written, body);
        }

        #[test]
        fn encoding_a_decoded_body_restores_its_bytes(
            body in "([A-Za-z0-9+/]{4}|[A-Z]{3}=|\r?\n|=|[ \t=3D.-]|é|From |>|\u{0}|\r){0,40}",
            encoding in prop_oneof![
                Just(TransferEncoding::Base64), Just(TransferEncoding::QuotedPrintable),
                Just(TransferEncoding::EightBit), Just(TransferEncoding::Unknown),
            ],
        ) {
            if let Some((octets, wording)) = FieldText::read(body.as_bytes(), encoding, Newline::Lf) {
                prop_assert!(wording.is_of(encoding));
                let written = wording.write(&octets).expect("it was read");
                prop_assert!(written.len() <= wording.length(&octets));
                prop_assert_eq!(written.escape_ascii().to_string(), body.as_bytes().escape_ascii().to_string());
            }
        }
    }

    #[test]
    fn base64_written_by_embody_can_be_reproduced_exactly() {
        for length in [1, 2, 3, 56, 57, 58, 114, 10_000] {
            let octets: Vec<u8> = (0..length)
                .map(|index: usize| (index % 251) as u8)
                .collect();
            for newline in [Newline::Lf, Newline::CrLf] {
                let body = encode_base64(&octets, newline).body;
                assert!(FieldText::read(&body, TransferEncoding::Base64, newline).is_some());
            }
        }
    }

    #[test]
    fn body_that_cannot_be_reproduced_exactly_is_not_decoded() {
        let read = |body: &str, encoding| {
            FieldText::read(body.as_bytes(), encoding, Newline::Lf).is_some()
        };
        for body in [
            "QUJD\nREVG\r\nR0hJ\n",
            "QUJD\n\nREVG\n",
            "\nQUJD\n",
            "QUJD \nREVG\n",
            "QUJD\nRE\nVG\n",
            "QUI\n",
            "QUI=\n-- \na list\n",
            "QUJ=\n",
            "QUJD\n\r\n",
            "QUJD\r",
            "",
            "\n",
        ] {
            assert!(!read(body, TransferEncoding::Base64), "{body:?}");
        }
        assert!(read("QUJD\nREVG\nR0k=", TransferEncoding::Base64));
        assert!(!read(
            &"\n".repeat(LONGEST_TAIL + 2),
            TransferEncoding::QuotedPrintable
        ));
        assert!(!read("a\n>From b\n", TransferEncoding::QuotedPrintable));
        for body in ["a\n>From b\n", "From a", "a\rb", "a\0b", "a\r"] {
            assert!(!read(body, TransferEncoding::EightBit), "{body:?}");
        }
        assert!(read("a\r\nFrom: b\n> From c\n", TransferEncoding::EightBit));
        assert!(!read("=3d\n", TransferEncoding::QuotedPrintable));
    }

    #[test]
    fn base64_body_of_one_very_long_line_is_reproduced_as_one_line() {
        let octets = vec![7; 100_000];
        for tail in [0, 2] {
            let body = plainly(&octets, 0, Newline::CrLf, tail);
            let (read, wording) = FieldText::read(&body, TransferEncoding::Base64, Newline::CrLf)
                .expect("it is regular");
            assert_eq!(wording.manner, EditManner::Base64 { line: 0 });
            assert_eq!(wording.write(&read), Some(body));
        }
    }
}
