//! Spans over the immutable original, and the walker that finds lines in it. Parts, header fields, attribute values,
//! edits: a [`Span`] says where. It never owns bytes and is never adjusted after it was made.

use memchr::memchr;

/// A half-open range of byte offsets `start..end` into one immutable original, which it does not know; [`Span::of`]
/// looks the bytes up. Spans made by [`Span::new`] have `start <= end`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset behind the last byte.
    pub end: usize,
}

impl Span {
    /// The span `start..end`; an `end` before `start` gives the empty span at `start`.
    pub fn new(start: usize, end: usize) -> Self {
        Self {
            start,
            end: end.max(start),
        }
    }

    /// The empty span at `at`: the place of an insertion.
    pub fn empty_at(at: usize) -> Self {
        Self { start: at, end: at }
    }

    /// Number of bytes.
    pub fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Whether the span covers no byte.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The bytes under this span; empty if the span does not lie within `original`.
    pub fn of(self, original: &[u8]) -> &[u8] {
        original.get(self.start..self.end).unwrap_or_default()
    }

    /// Whether `inner` lies within this span.
    pub fn contains(self, inner: Self) -> bool {
        self.start <= inner.start && inner.end <= self.end
    }

    /// Without white space at its ends.
    pub(crate) fn trimmed(self, original: &[u8]) -> Self {
        let bytes = self.of(original);
        let start = self.start + (bytes.len() - bytes.trim_ascii_start().len());
        Self::new(start, start + bytes.trim_ascii().len())
    }

    /// The same span seen from an original that has `by` more bytes in front.
    pub fn shifted(self, by: usize) -> Self {
        Self {
            start: self.start + by,
            end: self.end + by,
        }
    }
}

/// Whether a line is a separator of an mbox, or one that a program has quoted. `From : Ann` is a header field, with a blank before
/// the colon (RFC 5322 section 4.5).
pub(crate) fn is_from_line(line: &[u8]) -> bool {
    let unquoted = line.strip_prefix(b">").unwrap_or(line);
    unquoted.starts_with(b"From ") && !is_from_field(unquoted)
}

/// Whether a line is a From field with blanks before the colon.
pub(crate) fn is_from_field(line: &[u8]) -> bool {
    let behind = line.strip_prefix(b"From ").unwrap_or_default();
    let blanks = behind
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'));
    behind.get(blanks.count()) == Some(&b':')
}

/// Case-blind.
pub(crate) fn starts_like(text: &[u8], start: &[u8]) -> bool {
    let front = text.get(..start.len());
    front.is_some_and(|front| front.eq_ignore_ascii_case(start))
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Newline {
    /// `\n`, as local delivery and mbox files have it.
    #[default]
    Lf,
    /// `\r\n`, as on the wire.
    CrLf,
}

impl Newline {
    pub fn bytes(self) -> &'static [u8] {
        match self {
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
        }
    }

    /// What a message uses where it must be asked for one. Bytes without any line end count as [`Newline::Lf`].
    pub fn of_first_line(bytes: &[u8]) -> Self {
        match memchr(b'\n', bytes) {
            Some(at) if at > 0 && bytes[at - 1] == b'\r' => Self::CrLf,
            _ => Self::Lf,
        }
    }

    pub fn other(self) -> Self {
        match self {
            Self::Lf => Self::CrLf,
            Self::CrLf => Self::Lf,
        }
    }

    /// The last line may have no end.
    pub fn is_throughout(self, bytes: &[u8]) -> bool {
        let is_crlf = |at: usize| at > 0 && bytes.get(at - 1) == Some(&b'\r');
        memchr::memchr_iter(b'\n', bytes).all(|at| is_crlf(at) == (self == Self::CrLf))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line {
    pub content: Span,
    /// With the terminator; equal to `content` for a last line that has none.
    pub whole: Span,
}

/// Concatenating every [`Line::whole`] gives the span back. Only `\n` ends a line; one `\r` before it belongs to the
/// terminator. A bare `\r` is content.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    original: &'a [u8],
    rest: Span,
}

impl<'a> Lines<'a> {
    /// Spans count from the start of `original`.
    pub fn new(original: &'a [u8], within: Span) -> Self {
        let end = within.end.min(original.len());
        Self {
            original,
            rest: Span::new(within.start.min(end), end),
        }
    }
}

impl Iterator for Lines<'_> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        if self.rest.is_empty() {
            return None;
        }
        let start = self.rest.start;
        let bytes = self.rest.of(self.original);
        let (content_end, whole_end) = match memchr(b'\n', bytes) {
            None => (self.rest.end, self.rest.end),
            Some(0) => (start, start + 1),
            Some(at) if bytes[at - 1] == b'\r' => (start + at - 1, start + at + 1),
            Some(at) => (start + at, start + at + 1),
        };
        self.rest.start = whole_end;
        Some(Line {
            content: Span::new(start, content_end),
            whole: Span::new(start, whole_end),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lines_tile_their_span(bytes in "[a\r\n]{0,40}") {
            let bytes = bytes.as_bytes();
            let mut at = 0;
            for line in Lines::new(bytes, Span::new(0, bytes.len())) {
                prop_assert_eq!(line.whole.start, at);
                prop_assert!(line.whole.contains(line.content));
                prop_assert!(!line.content.of(bytes).contains(&b'\n'));
                at = line.whole.end;
            }
            prop_assert_eq!(at, bytes.len());
        }
    }

    #[test]
    fn a_bare_carriage_return_is_content() {
        let lines: Vec<_> = Lines::new(b"a\rb\r\r\nc", Span::new(0, 7)).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].content.of(b"a\rb\r\r\nc"), b"a\rb\r");
    }

    #[test]
    fn a_span_outside_its_original_is_empty() {
        assert_eq!(Span::new(2, 9).of(b"abc"), b"");
    }
}
