//! Spellings of From fields that are confused with mbox separators.
//!
//! An mbox separates messages by lines that start with `From `. A From field can look like such a line:
//! * `From : Ann` has a blank before the colon (RFC 5322 section 4.5). Python's `mailbox` and other programs start a
//!   new message at this line.
//! * `>From: Ann` was quoted by a program that puts `>` before every line that starts with `From`, not only before
//!   lines that start with `From ` in the body. Other programs find no From field in such a header.

use std::borrow::Cow;

use crate::span::{Span, SpanLines, is_from_line, split_while, starts_like};

/// Destination of a message, which determines how its From field must be spelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SpellingPlace {
    /// `>From: Ann` becomes `From: Ann`, if the header has no other From field.
    Unquoted,
    /// `From : Ann` also becomes `From: Ann`.
    UnquotedWithoutBlank,
}

/// A line with the name of a From field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FromName {
    /// Number of `>` before the name.
    marks: usize,
    /// Offset of the colon in the line.
    colon: usize,
}

impl FromName {
    /// Returns `None` if the line has another name.
    fn of(line: &[u8]) -> Option<Self> {
        let marks = line.iter().take_while(|byte| **byte == b'>').count();
        let name = line.get(marks..)?;
        if !starts_like(name, b"From") {
            return None;
        }
        let behind = name.get(b"From".len()..)?;
        let blanks = behind
            .iter()
            .take_while(|byte| b" \t".contains(byte))
            .count();
        (behind.get(blanks) == Some(&b':')).then_some(Self {
            marks,
            colon: marks + b"From".len() + blanks,
        })
    }
}

/// Returns whether a message starts with a header: its first line, apart from `From ` lines, is a field.
pub(crate) fn has_header(message: &[u8]) -> bool {
    let mut lines = SpanLines::new(message, Span::new(0, message.len())).map(|it| it.content);
    let first = lines.find(|line| !is_from_line(line.of(message)));
    first.is_some_and(|line| is_field(line.of(message)))
}

/// Returns whether the header of a message has a From field. A quoted one does not count.
fn has_from(message: &[u8]) -> bool {
    from_names(message).any(|(_, name)| name.marks == 0)
}

/// Returns the message with the From field in a new spelling. Borrows the message if it stays as it is. A message without a
/// header is not changed.
pub(crate) fn spelled(message: &[u8], spelling: SpellingPlace) -> Cow<'_, [u8]> {
    if !may_be_respelled(message) {
        return Cow::Borrowed(message);
    }
    let mut has_from = None;
    let mut new = Vec::new();
    let mut copied = 0;
    for (start, name) in from_names(message) {
        let is_wanted = if name.marks > 0 {
            let known = has_from.unwrap_or_else(|| self::has_from(message));
            // Only the first of several quoted fields is unquoted.
            has_from = Some(true);
            !known
        } else {
            spelling == SpellingPlace::UnquotedWithoutBlank
                && message
                    .get(start..)
                    .is_some_and(|line| line.starts_with(b"From "))
        };
        if is_wanted {
            new.extend_from_slice(message.get(copied..start).unwrap_or_default());
            new.extend_from_slice(b"From");
            copied = start + name.colon;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(message);
    }
    new.extend_from_slice(message.get(copied..).unwrap_or_default());
    Cow::Owned(new)
}

/// Returns false if no line of the header starts like a From field that gets a new spelling. This is cheap, and true of most
/// messages.
fn may_be_respelled(message: &[u8]) -> bool {
    SpanLines::new(message, Span::new(0, message.len()))
        .map(|line| line.content.of(message))
        .take_while(|line| !is_end_of_header(line))
        .any(|line| line.starts_with(b">") || line.starts_with(b"From "))
}

/// Returns whether a line has no content. Some programs write several carriage returns before the line feed.
fn is_end_of_header(line: &[u8]) -> bool {
    line.iter().all(|byte| *byte == b'\r')
}

/// Returns the From fields in the header of a message, each with the start of its line. If no empty line ends the header,
/// it ends at the first line that is not a field.
fn from_names(message: &[u8]) -> impl Iterator<Item = (usize, FromName)> {
    let end = if has_header(message) {
        end_of_header(message)
    } else {
        0
    };
    SpanLines::new(message, Span::new(0, end)).filter_map(|line| {
        let name = FromName::of(line.content.of(message))?;
        Some((line.content.start, name))
    })
}

fn end_of_header(message: &[u8]) -> usize {
    let mut first_other = None;
    for line in SpanLines::new(message, Span::new(0, message.len())) {
        let content = line.content.of(message);
        if is_end_of_header(content) {
            return line.content.start;
        }
        let is_folded = content.starts_with(b" ") || content.starts_with(b"\t");
        if !is_folded && !is_field(content) && !is_quoted_from_line(content) {
            first_other.get_or_insert(line.content.start);
        }
    }
    first_other.unwrap_or(message.len())
}

/// Returns whether a line starts with `From ` after any number of `>`, and is not a From field.
pub(crate) fn is_quoted_from_line(line: &[u8]) -> bool {
    let (_, unquoted) = split_while(line, |byte| *byte == b'>');
    is_from_line(unquoted)
}

/// Returns whether a line starts with the name of a field and a colon. Blanks before the colon are allowed.
pub(crate) fn is_field(line: &[u8]) -> bool {
    let name = line
        .iter()
        .take_while(|byte| byte.is_ascii_graphic() && **byte != b':');
    let (name, behind) = line.split_at(name.count());
    !name.is_empty() && behind.trim_ascii_start().starts_with(b":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_from_field_is_the_from_field_if_there_is_no_other() {
        for (message, expected) in [
            (">From: Ann\nTo: b\n\nx", "From: Ann\nTo: b\n\nx"),
            (
                "To: b\r\n>From : Ann\r\n\r\nx",
                "To: b\r\nFrom: Ann\r\n\r\nx",
            ),
            ("To: b\n>>From: Ann\n", "To: b\nFrom: Ann\n"),
            (">From: Ann\n>From: Bob\n\nx", "From: Ann\n>From: Bob\n\nx"),
            (
                ">From a@b Mon Jan  6 10:01:00 2020\n>From: Ann\n\nx",
                ">From a@b Mon Jan  6 10:01:00 2020\nFrom: Ann\n\nx",
            ),
            (
                "A: 1\nno field\n>From: Ann\n\nx",
                "A: 1\nno field\nFrom: Ann\n\nx",
            ),
            (">From: Ann\nFrom: Bob\n\nx", ">From: Ann\nFrom: Bob\n\nx"),
            ("from : Ann\n>From: Bob\n\nx", "from : Ann\n>From: Bob\n\nx"),
            ("To: b\n\n>From: Ann\n", "To: b\n\n>From: Ann\n"),
            ("hello\n>From: Ann\n\nx", "hello\n>From: Ann\n\nx"),
            ("A: 1\nhello\n>From: Ann", "A: 1\nhello\n>From: Ann"),
            ("A: 1\n >From: Ann\n\nx", "A: 1\n >From: Ann\n\nx"),
            (">Fromage: Brie\n\nx", ">Fromage: Brie\n\nx"),
            ("\n>From: Ann", "\n>From: Ann"),
            ("", ""),
        ] {
            let new = spelled(message.as_bytes(), SpellingPlace::Unquoted);
            assert_eq!(String::from_utf8_lossy(&new), expected, "{message}");
            let again = spelled(&new, SpellingPlace::Unquoted);
            assert!(matches!(again, Cow::Borrowed(_)), "{message}");
        }
    }

    #[test]
    fn blank_before_the_colon_is_removed_only_from_the_header() {
        for (message, expected) in [
            ("From : Ann\n\nFrom : x", "From: Ann\n\nFrom : x"),
            (
                "To: b\nFrom \t : Ann\nA: 1\n\nx",
                "To: b\nFrom: Ann\nA: 1\n\nx",
            ),
            ("From : Ann\nFrom : Bob\n\nx", "From: Ann\nFrom: Bob\n\nx"),
            (
                "From\t: Ann\nfrom : Bob\n\nx",
                "From\t: Ann\nfrom : Bob\n\nx",
            ),
            (">From : Ann\n\nx", "From: Ann\n\nx"),
            ("hello\nFrom : Ann\n\nx", "hello\nFrom : Ann\n\nx"),
            ("From a@b x\nFrom : Ann", "From a@b x\nFrom: Ann"),
        ] {
            let new = spelled(message.as_bytes(), SpellingPlace::UnquotedWithoutBlank);
            assert_eq!(String::from_utf8_lossy(&new), expected, "{message}");
        }
        let kept = spelled(b"From : Ann\n\nx", SpellingPlace::Unquoted);
        assert!(matches!(kept, Cow::Borrowed(_)));
    }
}
