//! Header fields as text: what may stand in them, and how a URL is written into one.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::mime::{Field, TransferEncoding};
use crate::span::Newline;

pub(super) fn named<'p>(parameters: &'p [(String, String)], name: &str) -> Option<&'p str> {
    parameters
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

/// Whether a body in the encoding `used` may stand under a field that names `declared` (RFC 2045 §6.2).
pub(super) fn allows(declared: TransferEncoding, used: TransferEncoding) -> bool {
    use TransferEncoding::{Binary, EightBit, SevenBit};
    match declared {
        EightBit => matches!(used, SevenBit | EightBit),
        Binary => matches!(used, SevenBit | EightBit | Binary),
        _ => declared == used,
    }
}

pub(super) fn is_content_field(original: &[u8], field: &Field) -> bool {
    const PREFIX: &[u8] = b"content-";
    let name = field.name.of(original);
    name.get(..PREFIX.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}

/// Whether other readers may see a line end where there is none.
pub(super) fn has_control_character(field: &[u8]) -> bool {
    let mut rest = field;
    while let Some(at) = memchr::memchr2(b'\r', 0, rest) {
        let is_line_end = rest.get(at..at + 2) == Some(b"\r\n".as_slice());
        if !is_line_end {
            return true;
        }
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    false
}

/// A field that holds a URL, folded like RFC 2017's URL parameter where it would be too long: white
/// space inside the field means nothing (the draft, 5.1.1).
pub(super) fn folded_url(name: &str, url: &str, newline: Newline) -> Vec<u8> {
    const COLUMNS: usize = 76;
    let mut field = name.as_bytes().to_vec();
    const NOT_GRAPHIC: &AsciiSet = &CONTROLS.add(b' ');
    let escaped = utf8_percent_encode(url, NOT_GRAPHIC).to_string();
    let mut column = name.len();
    for (index, word) in escaped.as_bytes().chunks(COLUMNS - 2).enumerate() {
        if index > 0 || column + 1 + word.len() > COLUMNS {
            field.extend_from_slice(newline.bytes());
            column = 0;
        }
        field.push(b' ');
        field.extend_from_slice(word);
        column += 1 + word.len();
    }
    field.extend_from_slice(newline.bytes());
    field
}
