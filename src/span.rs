//! Byte ranges ([`Span`]) of a message that is never modified, by which parts, header fields, attribute values and
//! edits refer to bytes. Also line iteration and helpers for splitting bytes.

use memchr::memchr;

/// A half-open range of byte offsets `start..end` into a message. The span has no reference to the message:
/// [`Span::of`] is given the message and returns the bytes. `start <= end` for spans from [`Span::new`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
}

impl Span {
    /// Returns the span `start..end`. If `end` is less than `start`, returns the empty span at `start`.
    pub fn new(start: usize, end: usize) -> Self {
        Self {
            start,
            end: end.max(start),
        }
    }

    /// Returns the empty span at `at`, which is the span of an insertion.
    pub fn empty_at(at: usize) -> Self {
        Self { start: at, end: at }
    }

    /// Returns the number of bytes.
    pub fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Returns whether the span contains no bytes.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of this span. The result is empty if the span is not within `original`.
    pub fn of(self, original: &[u8]) -> &[u8] {
        original.get(self.start..self.end).unwrap_or_default()
    }

    /// Returns whether `inner` is within this span.
    pub fn contains(self, inner: Self) -> bool {
        self.start <= inner.start && inner.end <= self.end
    }

    /// Returns the span without white space at its start and end.
    pub(crate) fn trimmed(self, original: &[u8]) -> Self {
        let bytes = self.of(original);
        let start = self.start + (bytes.len() - bytes.trim_ascii_start().len());
        Self::new(start, start + bytes.trim_ascii().len())
    }

    /// Returns the same span in a message with `by` more bytes before it.
    pub fn shifted(self, by: usize) -> Self {
        Self {
            start: self.start + by,
            end: self.end + by,
        }
    }
}

/// Returns whether a line is a separator line of an mbox, or a separator line that was quoted with `>`. `From : Ann`
/// is not: it is a From field with a space before the colon, which is valid (RFC 5322 §4.5).
pub(crate) fn is_from_line(line: &[u8]) -> bool {
    let unquoted = line.strip_prefix(b">").unwrap_or(line);
    unquoted.starts_with(b"From ") && !is_from_field(unquoted)
}

/// Returns whether a line is a From field with spaces or tabs before the colon.
pub(crate) fn is_from_field(line: &[u8]) -> bool {
    let behind = line.strip_prefix(b"From ").unwrap_or_default();
    let blanks = behind
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'));
    behind.get(blanks.count()) == Some(&b':')
}

/// Returns whether the text starts with `start`, ignoring the case of ASCII letters.
pub(crate) fn starts_like(text: &[u8], start: &[u8]) -> bool {
    let front = text.get(..start.len());
    front.is_some_and(|front| front.eq_ignore_ascii_case(start))
}

/// Returns the first `most` bytes, or all bytes if there are fewer.
pub(crate) fn front(bytes: &[u8], most: usize) -> &[u8] {
    bytes.get(..most).unwrap_or(bytes)
}

/// Returns the bytes before the first `byte`, or all bytes if it does not occur.
pub(crate) fn until(byte: u8, bytes: &[u8]) -> &[u8] {
    front(bytes, memchr(byte, bytes).unwrap_or(bytes.len()))
}

/// Splits at the first `byte`, which is in neither half. Returns `None` if it does not occur.
pub(crate) fn split_once(byte: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (before, rest) = bytes.split_at(memchr(byte, bytes)?);
    Some((before, rest.split_first()?.1))
}

/// Splits before the first item for which `holds` is false.
pub(crate) fn split_while<T>(items: &[T], holds: impl Fn(&T) -> bool) -> (&[T], &[T]) {
    let end = items.iter().position(|item| !holds(item));
    items.split_at(end.unwrap_or(items.len()))
}

/// Returns the bytes after the last `\n`, or all bytes if they contain no `\n`.
pub(crate) fn last_line(bytes: &[u8]) -> &[u8] {
    memchr::memrchr(b'\n', bytes).map_or(bytes, |at| &bytes[at + 1..])
}

/// Returns the bytes from `at`. Returns no bytes if `at` is at the end, or after it.
pub(crate) fn rest_or_empty(bytes: &[u8], at: usize) -> &[u8] {
    bytes.get(at..).unwrap_or_default()
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Newline {
    /// `\n`, as in files on Unix, including mbox files.
    #[default]
    Lf,
    /// `\r\n`, as in SMTP and IMAP.
    CrLf,
}

impl Newline {
    pub fn bytes(self) -> &'static [u8] {
        match self {
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
        }
    }

    /// Returns the line ending of the first line. Lines that are added to a message get the same line ending. Returns
    /// [`Newline::Lf`] if the text has no line ending.
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

    /// Returns whether every line ends with this line ending. The last line may have no line ending.
    pub fn is_throughout(self, bytes: &[u8]) -> bool {
        let is_crlf = |at: usize| at > 0 && bytes.get(at - 1) == Some(&b'\r');
        memchr::memchr_iter(b'\n', bytes).all(|at| is_crlf(at) == (self == Self::CrLf))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SpanLine {
    pub content: Span,
    /// The line with its line ending. It equals `content` if the last line has no line ending.
    pub whole: Span,
}

/// Iterator over the lines in a span. Only `\n` ends a line. One `\r` before the `\n` belongs to the line ending, and
/// all other `\r` are content. The spans in [`SpanLine::whole`] follow each other without gaps.
#[derive(Clone, Debug)]
pub(crate) struct SpanLines<'a> {
    original: &'a [u8],
    rest: Span,
}

impl<'a> SpanLines<'a> {
    /// Returns the lines within a span. Offsets in the lines are offsets in `original`.
    pub(crate) fn new(original: &'a [u8], within: Span) -> Self {
        let end = within.end.min(original.len());
        Self {
            original,
            rest: Span::new(within.start.min(end), end),
        }
    }
}

impl Iterator for SpanLines<'_> {
    type Item = SpanLine;

    fn next(&mut self) -> Option<SpanLine> {
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
        Some(SpanLine {
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
            for line in SpanLines::new(bytes, Span::new(0, bytes.len())) {
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
        let lines: Vec<_> = SpanLines::new(b"a\rb\r\r\nc", Span::new(0, 7)).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].content.of(b"a\rb\r\r\nc"), b"a\rb\r");
    }

    #[test]
    fn splitting_bytes_works_at_both_ends_and_without_a_match() {
        assert_eq!(front(b"abc", 2), b"ab");
        assert_eq!(front(b"abc", 9), b"abc");
        assert_eq!(until(b';', b"a;b;c"), b"a");
        assert_eq!(until(b';', b"abc"), b"abc");
        assert_eq!(split_once(b';', b"a;b;c"), Some((&b"a"[..], &b"b;c"[..])));
        assert_eq!(split_once(b';', b"a;"), Some((&b"a"[..], &b""[..])));
        assert_eq!(split_once(b';', b"abc"), None);
        let digits = |text| split_while(text, u8::is_ascii_digit);
        assert_eq!(digits(b"12a3"), (&b"12"[..], &b"a3"[..]));
        assert_eq!(digits(b"123"), (&b"123"[..], &b""[..]));
        assert_eq!(last_line(b"a\nbc"), b"bc");
        assert_eq!(last_line(b"a\n"), b"");
        assert_eq!(last_line(b"a"), b"a");
        assert_eq!(rest_or_empty(b"abc", 1), b"bc");
        assert_eq!(rest_or_empty(b"abc", 3), b"");
        assert_eq!(rest_or_empty(b"abc", 4), b"");
    }

    #[test]
    fn a_span_outside_its_original_is_empty() {
        assert_eq!(Span::new(2, 9).of(b"abc"), b"");
    }
}
