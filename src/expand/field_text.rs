//! Header fields as text: what may stand in them, and how a URL is written into one.

use crate::mime::TransferEncoding;

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
