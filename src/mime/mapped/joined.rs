//! Replacements that stand close together become one: a replacement costs more than the bytes between two
//! links, which are copied as they are.

use crate::span::Span;

/// Bytes between two replacements, at most, that are copied. A replacement takes about a hundred.
const NEAR: usize = 64;
/// A replacement of so many bytes is not continued: it would have to be moved to grow.
const LARGE: usize = 64 << 10;

/// Replacements of spans of an original, in order.
pub(super) struct Joined<'o> {
    original: &'o [u8],
    replacements: Vec<(Span, Vec<u8>)>,
}

impl<'o> Joined<'o> {
    pub(super) fn new(original: &'o [u8]) -> Self {
        Self {
            original,
            replacements: Vec::new(),
        }
    }

    /// Adds a replacement behind the last one.
    pub(super) fn push(&mut self, span: Span, bytes: &[u8]) {
        if let Some((last, joined)) = self.replacements.last_mut() {
            let between = Span::new(last.end, span.start);
            if between.len() <= NEAR && joined.len() < LARGE {
                joined.extend_from_slice(between.of(self.original));
                joined.extend_from_slice(bytes);
                last.end = span.end;
                return;
            }
            joined.shrink_to_fit();
        }
        self.replacements.push((span, bytes.to_vec()));
    }

    pub(super) fn finish(mut self) -> Vec<(Span, Vec<u8>)> {
        if let Some((_, last)) = self.replacements.last_mut() {
            last.shrink_to_fit();
        }
        self.replacements
    }
}
