//! Replacements that stand close together become one: a replacement costs more than the bytes between two
//! links, which are copied as they are.

use crate::span::Span;

/// Bytes between two replacements, at most, that are copied. A replacement takes about a hundred.
const NEAR: usize = 64;
/// A replacement of so many bytes is not continued: it would have to be moved to grow.
const LARGE: usize = 64 << 10;

/// Adds a replacement of a span of the original behind the last one.
pub(super) fn push_joined(
    replacements: &mut Vec<(Span, Vec<u8>)>,
    original: &[u8],
    span: Span,
    bytes: &[u8],
) {
    if let Some((last, joined)) = replacements.last_mut() {
        let between = Span::new(last.end, span.start);
        if between.len() <= NEAR && joined.len() < LARGE {
            joined.extend_from_slice(between.of(original));
            joined.extend_from_slice(bytes);
            last.end = span.end;
            return;
        }
        joined.shrink_to_fit();
    }
    replacements.push((span, bytes.to_vec()));
}
