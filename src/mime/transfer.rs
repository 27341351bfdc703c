//! Content-Transfer-Encoding (RFC 2045 §6): decoding, choosing an encoding, and encoding.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

pub use super::base64::{append_base64, base64_length};
use super::base64::{decode_base64, is_base64};
use super::parameters::without_comments;
use super::quoted_printable;
use crate::span::{Newline, Span, SpanLines, front};

/// Maximum length of a line, in bytes without the line ending (RFC 5322 §2.1.1).
pub const LINE_LIMIT: usize = 998;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransferEncoding {
    /// 7bit, which is also the default if there is no field.
    SevenBit,
    EightBit,
    Binary,
    QuotedPrintable,
    Base64,
    /// An encoding that embody does not support (`x-uuencode`), or an unknown word on a part that is not text (RFC
    /// 2045 §6.4). The body cannot be decoded.
    Unknown,
}

/// Names of encodings that are not in RFC 2045, without hyphens and other punctuation. A text part with one of these
/// encodings cannot be decoded. A text part with any other unknown encoding is read as 8bit.
const FOREIGN: [&[u8]; 12] = [
    b"uuencode",
    b"xuuencode",
    b"uue",
    b"xuue",
    b"xuu",
    b"yenc",
    b"xyenc",
    b"binhex",
    b"binhex40",
    b"macbinhex40",
    b"xbinhex",
    b"xgzip64",
];

/// Returns the first word of a Content-Transfer-Encoding field, in lower case and without punctuation: `xyz` for `"X-YZ" (a)`.
pub fn first_word(value: &[u8]) -> Vec<u8> {
    let ends = |&byte: &u8| byte.is_ascii_whitespace() || byte == b',';
    letters(bare(value).split(ends).next().unwrap_or_default())
}

impl TransferEncoding {
    /// Returns the encoding that the value of a Content-Transfer-Encoding field declares, for a part of any type.
    ///
    /// Case, comments and quotation marks are ignored. So are hyphens, spaces and underscores, and any text after a
    /// semicolon or after the first word: `"base64"`, `8-bit`, `8bits` and `quoted_printable` are unambiguous. An
    /// empty value counts like a missing field, but the body may contain bytes above 127.
    pub fn of(value: Option<&[u8]>) -> Self {
        let Some(value) = value else {
            return Self::SevenBit;
        };
        if let Some(spelled) = Self::spelled(value) {
            return spelled;
        }
        let value = bare(value);
        if value.is_empty() {
            return Self::EightBit;
        }
        let ends = |&byte: &u8| byte.is_ascii_whitespace() || byte == b',';
        let word = value.split(ends).next().unwrap_or_default();
        let known = |text: &[u8]| match letters(text).as_slice() {
            // A program that misspells `7bit` may also write bytes above 127, so the body is treated as 8bit.
            b"7bit" | b"7bits" | b"8bit" | b"8bits" | b"x8bit" => Some(Self::EightBit),
            b"binary" => Some(Self::Binary),
            b"quotedprintable" | b"quotedprintible" | b"xquotedprintable" => {
                Some(Self::QuotedPrintable)
            }
            b"base64" | b"xbase64" => Some(Self::Base64),
            _ => None,
        };
        known(value)
            .or_else(|| known(word))
            .unwrap_or(Self::Unknown)
    }

    /// Returns the encoding if the first word of the value is spelled correctly.
    fn spelled(value: &[u8]) -> Option<Self> {
        let ends = |&byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b';');
        let word = without_comments(value).split(ends).next()?;
        match word.to_ascii_lowercase().as_slice() {
            b"7bit" => Some(Self::SevenBit),
            b"8bit" => Some(Self::EightBit),
            b"binary" => Some(Self::Binary),
            b"quoted-printable" => Some(Self::QuotedPrintable),
            b"base64" => Some(Self::Base64),
            _ => None,
        }
    }

    /// Whether every program reads the field as this encoding: its value is the plain name and nothing else. For
    /// example, Python does not accept a semicolon after it.
    pub fn is_plainly(self, value: &[u8]) -> bool {
        let value = value.trim_ascii();
        value.eq_ignore_ascii_case(self.as_str().as_bytes())
    }

    /// Returns the encoding of a leaf. If base64 or quoted-printable is misspelt, it is accepted only if the whole
    /// body has this encoding, because some programs write such words on bodies that they did not encode.
    pub(super) fn of_leaf(self, value: Option<&[u8]>, essence: &str, body: &[u8]) -> Self {
        let is_spelled = || value.is_some_and(|value| Self::spelled(value).is_some());
        let is_proved = match self {
            Self::Base64 => is_spelled() || is_base64(body),
            Self::QuotedPrintable => is_spelled() || quoted_printable::is_throughout(body),
            _ => true,
        };
        match is_proved {
            true => self,
            false if essence.starts_with("text/") => Self::EightBit,
            false => Self::Unknown,
        }
    }

    /// Like [`of`](Self::of), for a part of a given type. Text with an unknown encoding (`utf-8`, `none`) is read as
    /// 8bit, because mail clients display its bytes as they are.
    pub fn of_part(value: Option<&[u8]>, essence: &str) -> Self {
        match Self::of(value) {
            Self::Unknown if essence.starts_with("text/") => {
                let word = letters(bare(value.unwrap_or_default()));
                if FOREIGN.contains(&word.as_slice()) {
                    Self::Unknown
                } else {
                    Self::EightBit
                }
            }
            known => known,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::SevenBit => "7bit",
            Self::EightBit => "8bit",
            Self::Binary => "binary",
            Self::QuotedPrintable => "quoted-printable",
            Self::Base64 => "base64",
            Self::Unknown => "unknown",
        }
    }

    pub fn is_encoded(self) -> bool {
        matches!(self, Self::QuotedPrintable | Self::Base64 | Self::Unknown)
    }

    /// Decodes a body. In quoted-printable, malformed escapes are kept (RFC 2045 §6.7). Returns `None` for an unknown
    /// encoding and for damaged base64 (see [`decode_base64`]).
    pub fn decode(self, body: &[u8]) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::SevenBit | Self::EightBit | Self::Binary => Some(Cow::Borrowed(body)),
            Self::Base64 => decode_base64(body).map(|(octets, _)| Cow::Owned(octets)),
            Self::QuotedPrintable => Some(Cow::Owned(quoted_printable::decode(body))),
            Self::Unknown => None,
        }
    }
}

/// Returns the value without comments, parameters, and quotation marks around it.
fn bare(value: &[u8]) -> &[u8] {
    let value = without_comments(value);
    let front = value.split(|&byte| byte == b';').next();
    let is_mark =
        |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'<' | b'>');
    let mut bare = front.unwrap_or_default();
    while let [first, rest @ ..] = bare
        && is_mark(first)
    {
        bare = rest;
    }
    while let [rest @ .., last] = bare
        && (is_mark(last) || matches!(last, b'.' | b',' | b':'))
    {
        bare = rest;
    }
    bare
}

/// Returns the letters and digits of a word in lower case. Only the first bytes are used, because the names of
/// encodings are short.
fn letters(word: &[u8]) -> Vec<u8> {
    const LONGEST: usize = 64;
    let word = front(word, LONGEST);
    let kept = word.iter().filter(|byte| byte.is_ascii_alphanumeric());
    kept.map(u8::to_ascii_lowercase).collect()
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransferEncoder {
    pub encoding: TransferEncoding,
    /// Encoded body with the line endings of the message, without a line ending at its end.
    pub body: Vec<u8>,
}

/// Encodes text in the most readable encoding that is possible: 7bit, quoted-printable or base64. 7bit is chosen if the
/// text can be written unchanged and contains no boundary line of `boundaries`. Under 7bit and quoted-printable, line
/// endings become `newline`. Under base64, all bytes are kept. In the charset of the text, bytes below 128 must be
/// ASCII characters.
pub fn encode_text(text: Vec<u8>, newline: Newline, boundaries: &[&[u8]]) -> TransferEncoder {
    let (encoding, body) = if is_seven_bit(&text) && !has_boundary(&text, boundaries) {
        (TransferEncoding::SevenBit, with_newlines(text, newline))
    } else {
        let printable = quoted_printable::encode(&text, newline);
        // Each line ending counts as one byte, so that the same encoding is chosen for a message with LF and with CRLF.
        let line_ends = memchr_iter(b'\n', &printable).count();
        let length = printable.len() - line_ends * (newline.bytes().len() - 1);
        if length > base64_length(text.len(), Newline::Lf) {
            return encode_base64(&text, newline);
        }
        (TransferEncoding::QuotedPrintable, printable)
    };
    TransferEncoder { encoding, body }
}

pub fn encode_base64(octets: &[u8], newline: Newline) -> TransferEncoder {
    let mut body = Vec::with_capacity(base64_length(octets.len(), newline));
    append_base64(octets, newline, &mut body);
    TransferEncoder {
        encoding: TransferEncoding::Base64,
        body,
    }
}

/// Encodes content in the encoding that its part had before. Returns `None` if this encoding would change the content,
/// so that another one must be chosen.
///
/// In text, all line endings become `newline`. Other content has its line endings converted only under 7bit and 8bit,
/// which allow no other line endings (RFC 2045 §2.7). It must then have line endings of only one kind, so that no
/// information is lost. Under quoted-printable, other content is kept exactly.
pub fn encode_like(
    before: TransferEncoding,
    octets: &[u8],
    is_text: bool,
    newline: Newline,
    boundaries: &[&[u8]],
) -> Option<TransferEncoder> {
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
    Some(TransferEncoder {
        encoding: before,
        body,
    })
}

pub fn encode_by_words(text: &[u8], newline: Newline) -> TransferEncoder {
    TransferEncoder {
        encoding: TransferEncoding::QuotedPrintable,
        body: quoted_printable::encode_by_words(text, newline),
    }
}

/// Replaces all line endings. A CR without LF is kept.
pub fn with_newlines(text: Vec<u8>, newline: Newline) -> Vec<u8> {
    let untouched = match newline {
        Newline::Lf => memchr::memmem::find(&text, b"\r\n").is_none(),
        Newline::CrLf => memchr(b'\n', &text).is_none(),
    };
    if untouched {
        return text;
    }
    let mut changed = Vec::with_capacity(text.len() + text.len() / 32);
    for line in SpanLines::new(&text, Span::new(0, text.len())) {
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

/// Returns whether the text may be sent as 8bit (RFC 2045 §2.8): it has no NUL, no bare CR and no long lines.
pub fn is_eight_bit(text: &[u8]) -> bool {
    memchr(0, text).is_none()
        && SpanLines::new(text, Span::new(0, text.len())).all(|line| {
            line.content.len() <= LINE_LIMIT && memchr(b'\r', line.content.of(text)).is_none()
        })
}

pub fn has_long_line(text: &[u8]) -> bool {
    SpanLines::new(text, Span::new(0, text.len())).any(|line| line.content.len() > LINE_LIMIT)
}

/// Returns whether a line begins with `--` and a boundary, even if the line continues.
pub fn has_boundary(text: &[u8], boundaries: &[&[u8]]) -> bool {
    !boundaries.is_empty()
        && SpanLines::new(text, Span::new(0, text.len())).any(|line| {
            let behind = line.content.of(text).strip_prefix(b"--");
            let starts = |rest: &[u8]| boundaries.iter().any(|known| rest.starts_with(known));
            behind.is_some_and(starts)
        })
}

/// Returns the text with CRLF as all line endings, which is the form that Content-MD5 hashes (RFC 1864 §2).
pub fn canonical_text(text: &[u8]) -> Cow<'_, [u8]> {
    if Newline::CrLf.is_throughout(text) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(with_newlines(text.to_vec(), Newline::CrLf))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn encoded_text_decodes_to_the_original(text in "[ -~\\t\\n\\r=é.F-]{0,400}", crlf: bool) {
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
        fn base64_encoded_octets_decode_to_the_original(octets in proptest::collection::vec(any::<u8>(), 0..400)) {
            let encoded = encode_base64(&octets, Newline::CrLf);
            prop_assert!(!encoded.body.ends_with(b"\n"));
            for line in SpanLines::new(&encoded.body, Span::new(0, encoded.body.len())) {
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
    fn original_transfer_encoding_is_kept_if_it_loses_nothing() {
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
