//! Content-Transfer-Encoding: undoing it, choosing one, writing it (RFC 2045 §6).

use std::borrow::Cow;

use base64_simd::AsOut as _;
use memchr::{memchr, memchr_iter};

use super::parameters::without_comments;
use super::quoted_printable::{self, ENCODED_COLUMNS};
use crate::span::{Lines, Newline, Span};

/// Without the terminator (RFC 5322 §2.1.1).
pub const LINE_LIMIT: usize = 998;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransferEncoding {
    /// Also where no field says.
    SevenBit,
    EightBit,
    Binary,
    QuotedPrintable,
    Base64,
    /// RFC 2045 §6.4 says to treat the body as octets of no known meaning.
    Unknown,
}

impl TransferEncoding {
    /// Comments and case do not matter.
    pub fn of(value: Option<&[u8]>) -> Self {
        let Some(value) = value else {
            return Self::SevenBit;
        };
        let ends = |&byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b';');
        let word = without_comments(value).split(ends).next();
        match word.unwrap_or_default().to_ascii_lowercase().as_slice() {
            b"7bit" => Self::SevenBit,
            b"8bit" => Self::EightBit,
            b"binary" => Self::Binary,
            b"quoted-printable" => Self::QuotedPrintable,
            b"base64" => Self::Base64,
            _ => Self::Unknown,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::SevenBit => "7bit",
            Self::EightBit => "8bit",
            Self::Binary => "binary",
            Self::QuotedPrintable => "quoted-printable",
            Self::Base64 => "base64",
            Self::Unknown => "x-unknown",
        }
    }

    pub fn is_encoded(self) -> bool {
        matches!(self, Self::QuotedPrintable | Self::Base64 | Self::Unknown)
    }

    /// base64 skips what is not in its alphabet (RFC 2045 §6.8) and takes missing padding; quoted-printable keeps what
    /// is no escape (§6.7). None: an unknown encoding, or base64 with an impossible length.
    pub fn decode(self, body: &[u8]) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::SevenBit | Self::EightBit | Self::Binary => Some(Cow::Borrowed(body)),
            Self::Base64 => decode_base64(body).map(Cow::Owned),
            Self::QuotedPrintable => Some(Cow::Owned(quoted_printable::decode(body))),
            Self::Unknown => None,
        }
    }
}

fn decode_base64(body: &[u8]) -> Option<Vec<u8>> {
    let mut stripped = Vec::with_capacity(body.len());
    append_letters(body, &mut stripped);
    let octets = base64_simd::forgiving_decode_inplace(&mut stripped).ok()?;
    let length = octets.len();
    stripped.truncate(length);
    Some(stripped)
}

pub fn append_letters(body: &[u8], letters: &mut Vec<u8>) {
    for line in Lines::new(body, Span::new(0, body.len())) {
        let line = line.content.of(body);
        // Looked at to its end, which the processor does for many bytes at once.
        let are_all = line.iter().fold(true, |all, &byte| all & in_alphabet(byte));
        if are_all {
            letters.extend_from_slice(line);
        } else {
            letters.extend(line.iter().copied().filter(|&byte| in_alphabet(byte)));
        }
    }
}

/// RFC 2045 §6.8
pub(super) fn in_alphabet(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Encoded {
    pub encoding: TransferEncoding,
    /// With the message's line ends, without a line end behind it.
    pub body: Vec<u8>,
}

/// ASCII bytes must be ASCII characters in the charset. 7bit is chosen if the text can stand so between `boundaries`.
/// Line ends become `newline` under 7bit and quoted-printable; base64 keeps the octets.
pub fn encode_text(text: Vec<u8>, newline: Newline, boundaries: &[&[u8]]) -> Encoded {
    let (encoding, body) = if is_seven_bit(&text) && !has_boundary(&text, boundaries) {
        (TransferEncoding::SevenBit, with_newlines(text, newline))
    } else {
        let printable = quoted_printable::encode(&text, newline);
        // A line end counts as one octet: the twins of a message in LF and CRLF shall choose alike.
        let line_ends = memchr_iter(b'\n', &printable).count();
        let length = printable.len() - line_ends * (newline.bytes().len() - 1);
        if length > base64_length(text.len(), Newline::Lf) {
            return encode_base64(&text, newline);
        }
        (TransferEncoding::QuotedPrintable, printable)
    };
    Encoded { encoding, body }
}

pub fn base64_length(octets: usize, newline: Newline) -> usize {
    let lines = octets.div_ceil(ENCODED_COLUMNS / 4 * 3);
    octets.div_ceil(3) * 4 + lines.saturating_sub(1) * newline.bytes().len()
}

pub fn encode_base64(octets: &[u8], newline: Newline) -> Encoded {
    let mut body = Vec::with_capacity(base64_length(octets.len(), newline));
    append_base64(octets, newline, &mut body);
    Encoded {
        encoding: TransferEncoding::Base64,
        body,
    }
}

pub fn append_base64(octets: &[u8], newline: Newline, body: &mut Vec<u8>) {
    push_base64(octets, ENCODED_COLUMNS, newline, |piece| {
        body.extend_from_slice(piece);
        true
    });
}

/// Piece by piece, as long as `sink` takes them. `line` is the columns of a line, 0 for one line.
pub(super) fn push_base64(
    octets: &[u8],
    line: usize,
    newline: Newline,
    mut sink: impl FnMut(&[u8]) -> bool,
) -> bool {
    // Many lines are encoded at a time, at SIMD speed, and then cut.
    const STAGED: usize = ENCODED_COLUMNS / 4 * 3 * 64;
    let mut stage = [0; STAGED / 3 * 4];
    let line = if line == 0 { usize::MAX } else { line };
    let mut room = line;
    for block in octets.chunks(STAGED) {
        let encoded = base64_simd::STANDARD.encode(block, stage.as_mut_slice().as_out());
        let mut symbols: &[u8] = encoded;
        while !symbols.is_empty() {
            if room == 0 {
                if !sink(newline.bytes()) {
                    return false;
                }
                room = line;
            }
            let (now, behind) = symbols.split_at(symbols.len().min(room));
            if !sink(now) {
                return false;
            }
            room -= now.len();
            symbols = behind;
        }
    }
    true
}

/// As before, if that loses nothing; None: another encoding has to be chosen.
///
/// Line ends become `newline` in text, and under 7bit and 8bit, which know no others (RFC 2045 §2.7): what is no text
/// must then have line ends of one kind only. Under quoted-printable it stays exact.
pub fn encode_like(
    before: TransferEncoding,
    octets: &[u8],
    is_text: bool,
    newline: Newline,
    boundaries: &[&[u8]],
) -> Option<Encoded> {
    if before == TransferEncoding::Base64 {
        return Some(encode_base64(octets, newline));
    }
    let body = if before == TransferEncoding::QuotedPrintable && !is_text {
        let mut encoded = Vec::with_capacity(octets.len() * 2);
        quoted_printable::push_line(octets, newline, &mut encoded);
        encoded
    } else {
        let lines = with_newlines(octets.to_vec(), newline);
        let is_of = |kind: Newline| with_newlines(lines.clone(), kind) == octets;
        if !is_text && !is_of(Newline::Lf) && !is_of(Newline::CrLf) {
            return None;
        }
        let has_boundary = has_boundary(&lines, boundaries);
        match before {
            TransferEncoding::SevenBit if is_seven_bit(&lines) && !has_boundary => lines,
            TransferEncoding::EightBit if is_eight_bit(&lines) && !has_boundary => lines,
            TransferEncoding::QuotedPrintable => quoted_printable::encode(&lines, newline),
            _ => return None,
        }
    };
    Some(Encoded {
        encoding: before,
        body,
    })
}

pub fn encode_by_words(text: &[u8], newline: Newline) -> Encoded {
    Encoded {
        encoding: TransferEncoding::QuotedPrintable,
        body: quoted_printable::encode_by_words(text, newline),
    }
}

/// A bare CR stays.
pub fn with_newlines(text: Vec<u8>, newline: Newline) -> Vec<u8> {
    let untouched = match newline {
        Newline::Lf => memchr::memmem::find(&text, b"\r\n").is_none(),
        Newline::CrLf => memchr(b'\n', &text).is_none(),
    };
    if untouched {
        return text;
    }
    let mut changed = Vec::with_capacity(text.len() + text.len() / 32);
    for line in Lines::new(&text, Span::new(0, text.len())) {
        changed.extend_from_slice(line.content.of(&text));
        if line.whole.end > line.content.end {
            changed.extend_from_slice(newline.bytes());
        }
    }
    changed
}

fn is_seven_bit(text: &[u8]) -> bool {
    text.is_ascii() && is_eight_bit(text)
}

/// RFC 2045 §2.8
pub fn is_eight_bit(text: &[u8]) -> bool {
    memchr(0, text).is_none()
        && Lines::new(text, Span::new(0, text.len())).all(|line| {
            line.content.len() <= LINE_LIMIT && memchr(b'\r', line.content.of(text)).is_none()
        })
}

pub fn has_long_line(text: &[u8]) -> bool {
    Lines::new(text, Span::new(0, text.len())).any(|line| line.content.len() > LINE_LIMIT)
}

/// Also for a line that begins like a boundary line.
pub fn has_boundary(text: &[u8], boundaries: &[&[u8]]) -> bool {
    !boundaries.is_empty()
        && Lines::new(text, Span::new(0, text.len())).any(|line| {
            let behind = line.content.of(text).strip_prefix(b"--");
            let starts = |rest: &[u8]| boundaries.iter().any(|known| rest.starts_with(known));
            behind.is_some_and(starts)
        })
}

/// Every line end CRLF (RFC 1864 §2 hashes that form).
pub fn canonical_text(text: &[u8]) -> Cow<'_, [u8]> {
    match Newline::CrLf.is_throughout(text) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(with_newlines(text.to_vec(), Newline::CrLf)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn text_decodes_to_itself(text in "[ -~\\t\\n\\r=é.F-]{0,400}", crlf: bool) {
            let newline = if crlf { Newline::CrLf } else { Newline::Lf };
            let encoded = encode_text(text.clone().into_bytes(), newline, &[]);
            let decoded = encoded.encoding.decode(&encoded.body).expect("a known encoding");
            let expected = match encoded.encoding {
                TransferEncoding::Base64 => text.into_bytes(),
                _ => with_newlines(text.into_bytes(), newline),
            };
            prop_assert_eq!(decoded.as_ref(), expected.as_slice());
            prop_assert!(encoded.body.is_ascii());
        }

        #[test]
        fn octets_decode_to_themselves(octets in proptest::collection::vec(any::<u8>(), 0..400)) {
            let encoded = encode_base64(&octets, Newline::CrLf);
            prop_assert!(!encoded.body.ends_with(b"\n"));
            for line in Lines::new(&encoded.body, Span::new(0, encoded.body.len())) {
                prop_assert!(line.content.len() <= 76);
            }
            let decoded = TransferEncoding::Base64.decode(&encoded.body).expect("base64");
            prop_assert_eq!(decoded.as_ref(), octets.as_slice());
        }
    }

    #[test]
    fn text_that_holds_a_boundary_line_is_not_put_in_as_it_is() {
        let text = b"a\n--b\nc\n".to_vec();
        let encoded = encode_text(text.clone(), Newline::Lf, &[b"b"]);
        assert_eq!(encoded.encoding, TransferEncoding::QuotedPrintable);
        assert_eq!(encoded.body, b"a\n=2D-b\nc\n");
        assert_eq!(
            encode_text(text, Newline::Lf, &[]).encoding,
            TransferEncoding::SevenBit
        );
    }

    #[test]
    fn a_long_line_a_bare_cr_and_a_nul_are_not_seven_bit() {
        for text in [vec![b'x'; 999], b"a\rb".to_vec(), b"a\0b".to_vec()] {
            let encoded = encode_text(text, Newline::Lf, &[]);
            assert_ne!(encoded.encoding, TransferEncoding::SevenBit);
        }
        let encoded = encode_text(vec![b'x'; 998], Newline::Lf, &[]);
        assert_eq!(encoded.encoding, TransferEncoding::SevenBit);
    }

    #[test]
    fn damaged_base64_is_refused_and_stray_characters_are_skipped() {
        assert_eq!(
            TransferEncoding::Base64.decode(b"TQ").as_deref(),
            Some(b"M".as_slice())
        );
        assert_eq!(
            TransferEncoding::Base64.decode(b"T!Q\n=*=").as_deref(),
            Some(b"M".as_slice())
        );
        assert_eq!(TransferEncoding::Base64.decode(b"TWFuT"), None);
    }

    #[test]
    fn the_canonical_form_of_text_has_crlf_everywhere() {
        assert_eq!(canonical_text(b"a\nb\r\nc").as_ref(), b"a\r\nb\r\nc");
        assert!(matches!(canonical_text(b"a\r\nb"), Cow::Borrowed(_)));
    }

    #[test]
    fn octets_go_as_they_went_before_where_nothing_is_lost() {
        use TransferEncoding::{EightBit, QuotedPrintable, SevenBit};
        let like = |before, octets: &[u8], is_text| {
            encode_like(before, octets, is_text, Newline::CrLf, &[b"b"]).map(|encoded| encoded.body)
        };
        assert_eq!(like(SevenBit, b"{\n}", false), Some(b"{\r\n}".to_vec()));
        assert_eq!(like(SevenBit, b"{\r\n\n}", false), None);
        assert_eq!(like(SevenBit, b"a\n--b", true), None);
        assert_eq!(like(SevenBit, b"\xfc", true), None);
        assert_eq!(like(EightBit, b"\xfc", true), Some(b"\xfc".to_vec()));
        assert_eq!(like(EightBit, b"\0", true), None);
        let exact = like(QuotedPrintable, b"a\n--b\r\n\0", false);
        assert_eq!(exact, Some(b"a=0A--b=0D=0A=00".to_vec()));
    }
}
