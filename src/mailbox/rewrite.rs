//! A changed message, put back into its mbox.
//!
//! New body text is quoted the way the mailbox quotes, Content-Length and Lines in the top header
//! say what is true again (only their digits change), and the message still ends so that the next
//! separator is one. Bytes outside the change stay.
//!
//! Lines: a value that was off by one (some writers count the empty line behind) stays off by
//! that; any other becomes the count of line ends.

use memchr::memchr;
use memchr::memchr_iter;

use super::mbox::{self, Frame, Header, Next, Quoting};
use super::{Change, Replacement};
use crate::span::{Lines, Newline, Span};

/// A change that does not fit its message: spans out of order, or outside of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Misfit;

/// The frame's new bytes, `From ` line and separating line ends included; `None` if they are the
/// old ones.
pub(super) fn rewritten(
    bytes: &[u8],
    frame: &Frame,
    change: Change,
    quoting: Quoting,
) -> Result<Option<Vec<u8>>, Misfit> {
    let (from_line, content, behind) = frame.parts(bytes);
    let Some(New {
        bytes: mut new,
        spans,
        known,
    }) = changed(content, change)?
    else {
        return Ok(None);
    };
    if new == content {
        return Ok(None);
    }
    let counted = frame.content_end.is_some();
    new = quoted(new, &spans, known, quoting, counted);

    let newline = Newline::of_first_line(content).bytes();
    if content.ends_with(b"\n") && !new.ends_with(b"\n") {
        new.extend_from_slice(newline);
    }
    let separated = ends_with_empty_line(content, behind);
    if separated && !ends_with_empty_line(&new, behind) {
        new.extend_from_slice(newline);
    }
    new = counts_corrected(content, new);
    Ok(Some([from_line, &new, behind].concat()))
}

/// The content of a single message after a change: nothing is quoted or counted.
pub(super) fn spliced(content: &[u8], change: Change) -> Result<Option<Vec<u8>>, Misfit> {
    Ok(changed(content, change)?
        .map(|new| new.bytes)
        .filter(|new| new != content))
}

/// A change carried out.
struct New<'a> {
    bytes: Vec<u8>,
    /// What in them is new.
    spans: Vec<Span>,
    /// The bytes that the new ones took the place of, if lines of those may be among the new.
    known: &'a [u8],
}

fn changed(content: &[u8], change: Change) -> Result<Option<New<'_>>, Misfit> {
    match change {
        Change::AsItCame => Ok(None),
        Change::Edited(replacements) => edited(content, &replacements).map(Some),
        Change::Whole(bytes) => {
            let prefix = common_prefix(content, &bytes);
            let suffix = common_suffix(&content[prefix..], &bytes[prefix..]);
            let span = Span::new(prefix, bytes.len() - suffix);
            Ok(Some(New {
                bytes,
                spans: vec![span],
                known: &content[prefix..content.len() - suffix],
            }))
        }
    }
}

fn edited<'a>(content: &'a [u8], replacements: &[Replacement]) -> Result<New<'a>, Misfit> {
    let gain: usize = replacements.iter().map(|new| new.bytes.len()).sum();
    let mut bytes = Vec::with_capacity(content.len() + gain);
    let mut spans = Vec::with_capacity(replacements.len());
    let mut copied = 0;
    for replacement in replacements {
        let Span { start, end } = replacement.span;
        if start < copied || end < start {
            return Err(Misfit);
        }
        bytes.extend_from_slice(content.get(copied..start).ok_or(Misfit)?);
        copied = end;
        let new = bytes.len();
        bytes.extend_from_slice(&replacement.bytes);
        spans.push(Span::new(new, bytes.len()));
    }
    bytes.extend_from_slice(content.get(copied..).ok_or(Misfit)?);
    Ok(New {
        bytes,
        spans,
        known: &[],
    })
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    let pairs = a.iter().rev().zip(b.iter().rev());
    pairs.take_while(|(a, b)| a == b).count()
}

/// Quotes the lines of the body that are new and have to be, and whatever else would now divide
/// the message. In a counted message nothing divides it.
fn quoted(new: Vec<u8>, spans: &[Span], known: &[u8], quoting: Quoting, counted: bool) -> Vec<u8> {
    let Some(body) = Header::of(&new).body else {
        return new;
    };
    let known: std::collections::HashSet<&[u8]> = mbox::from_lines(known)
        .map(|(line, _)| line_at(known, line))
        .collect();
    let mut spans = spans.iter().peekable();
    let mut places = Vec::new();
    for (line, at) in mbox::from_lines(&new) {
        if line < body {
            continue;
        }
        while spans.next_if(|span| span.end <= line).is_some() {}
        let is_new = spans.peek().is_some_and(|span| span.start <= line)
            && !known.contains(line_at(&new, line));
        if is_new && quoting.hides(at - line) {
            places.push(line);
        }
    }
    let mut new = if places.is_empty() {
        new
    } else {
        mbox::with_marks(&new, &places)
    };
    if !counted {
        let mut places = Vec::new();
        let mut from = body.saturating_sub(1);
        while let Next::At(separator) = mbox::next_separator(&new, from, true) {
            places.push(separator);
            from = separator;
        }
        if !places.is_empty() {
            new = mbox::with_marks(&new, &places);
        }
    }
    new
}

fn line_at(bytes: &[u8], start: usize) -> &[u8] {
    let rest = &bytes[start..];
    &rest[..memchr(b'\n', rest).unwrap_or(rest.len())]
}

fn ends_with_empty_line(content: &[u8], behind: &[u8]) -> bool {
    let tail = &content[content.len().saturating_sub(4)..];
    let tail = [tail, behind].concat();
    tail.ends_with(b"\n\n") || tail.ends_with(b"\n\r\n")
}

/// Content-Length and Lines in the header of `new`, corrected.
fn counts_corrected(old: &[u8], new: Vec<u8>) -> Vec<u8> {
    let header = Header::of(&new);
    let body = header.body.unwrap_or(new.len());
    let line_ends = |bytes: &[u8]| memchr_iter(b'\n', bytes).count() as u64;
    let mut fields: Vec<(Span, u64)> = Vec::new();
    for line in Lines::new(&new, Span::new(0, body)) {
        let text = line.content.of(&new);
        if let Some(value) = mbox::field(text, b"content-length")
            && mbox::number(value.of(text)).is_some()
        {
            let length = (new.len() - body) as u64;
            fields.push((value.shifted(line.content.start), length));
        } else if let Some(value) = mbox::field(text, b"lines")
            && let Some(lines) = mbox::number(value.of(text))
        {
            let old_body = Header::of(old).body.unwrap_or(old.len());
            let true_before = line_ends(&old[old_body..]);
            let true_now = line_ends(&new[body..]);
            let now = if lines == true_before + 1 {
                true_now + 1
            } else if lines + 1 == true_before {
                true_now.saturating_sub(1)
            } else {
                true_now
            };
            fields.push((value.shifted(line.content.start), now));
        }
    }
    if fields.is_empty() {
        return new;
    }
    let mut out = Vec::with_capacity(new.len() + 8);
    let mut copied = 0;
    for (value, number) in fields {
        out.extend_from_slice(&new[copied..value.start]);
        if mbox::number(value.of(&new)) == Some(number) {
            out.extend_from_slice(value.of(&new));
        } else {
            out.extend_from_slice(number.to_string().as_bytes());
        }
        copied = value.end;
    }
    out.extend_from_slice(&new[copied..]);
    out
}
