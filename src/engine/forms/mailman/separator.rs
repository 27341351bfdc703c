//! Finds separators in a text from Mailman. If Mailman turns a mail with several parts into one text, it writes such a line
//! between them: `-------------- next part --------------`, in the language of the list.

use std::collections::BTreeSet;

use crate::span::{Span, SpanLine, SpanLines, last_line};

const LONGEST: usize = 120;
/// Minimum number of hyphens before and after the words. Most translations of Mailman have 14.
const HYPHENS: usize = 8;
/// The Vietnamese translation has this stroke of three bytes instead of a hyphen.
const STROKE: &[u8] = "\u{2501}".as_bytes();
const STROKES: usize = 4;

/// Returns the position in the line at which a separator begins, if the line ends with one. The position is usually 0. It is
/// larger if the text before had no line ending, because old versions of Mailman appended the separator directly.
pub(crate) fn at_end(line: &[u8]) -> Option<usize> {
    let line = line.trim_ascii_end();
    let from = line.len().saturating_sub(LONGEST);
    let near = line.get(from..)?;
    with(near, b"-", HYPHENS)
        .or_else(|| with(near, STROKE, STROKES))
        .map(|at| from + at)
}

fn with(line: &[u8], stroke: &[u8], least: usize) -> Option<usize> {
    let front = without(line, stroke);
    if (line.len() - front.len()) / stroke.len() < least {
        return None;
    }
    let opening = stroke.repeat(least);
    let at = memchr::memmem::rfind(front, &opening)?;
    let words = front.get(at + opening.len()..)?;
    let has_words = words
        .iter()
        .any(|byte| !byte.is_ascii_whitespace() && *byte != b'-');
    let before = without(front.get(..at)?, stroke);
    has_words.then_some(before.len())
}

fn without<'t>(mut text: &'t [u8], stroke: &[u8]) -> &'t [u8] {
    while let Some(front) = text.strip_suffix(stroke) {
        text = front;
    }
    text
}

/// Divides a text into the notes that are replaced (lines that Mailman left in place of attachments) and the text
/// between them.
///
/// `notes` contains all notes in order, each with true if it is replaced. Each returned piece is either a replaced
/// note, with its index in `notes`, or text that stays, with `None`. The span of a note covers only the empty lines
/// after the note. A separator line is removed if its words also occur in a separator next to a note.
pub(crate) fn divided(
    text: &[u8],
    within: Span,
    notes: &[(Span, bool)],
) -> Vec<(Option<usize>, Span)> {
    let known = beside(text, within, notes);
    let mut pieces = Vec::new();
    let mut start = within.start;
    let mut next = notes.iter().enumerate().peekable();
    let mut lines = SpanLines::new(text, within);
    let mut at = within.start;
    let push_text = |pieces: &mut Vec<_>, from: usize, to: usize| {
        if from < to {
            pieces.push((None, Span::new(from, to)));
        }
    };
    while at < within.end {
        if let Some((number, (note, goes))) = next.next_if(|(_, (note, _))| note.start <= at) {
            let mut end = note.end;
            if *goes {
                push_text(&mut pieces, start, note.start);
                let behind = blank_behind(text, Span::new(end, within.end));
                pieces.push((Some(number), behind));
                end = behind.end;
                start = end;
            }
            at = end;
            lines = SpanLines::new(text, Span::new(end, within.end));
            continue;
        }
        let Some(line) = lines.next() else { break };
        at = line.whole.end;
        if let Some((from, words)) = separator(text, line)
            && known.contains(words)
        {
            push_text(&mut pieces, start, from);
            start = line.whole.end;
        }
    }
    push_text(&mut pieces, start, within.end);
    pieces
}

/// Returns the empty lines at the start of `within`, if a separator or the end of the text follows them. Returns an empty span
/// if other text follows, because the empty lines then belong to this text.
fn blank_behind(text: &[u8], within: Span) -> Span {
    let mut end = within.start;
    for line in SpanLines::new(text, within) {
        let content = line.content.of(text);
        if content.iter().all(u8::is_ascii_whitespace) {
            end = line.whole.end;
            continue;
        }
        return match at_end(content) {
            Some(0) => Span::new(within.start, end),
            _ => Span::empty_at(within.start),
        };
    }
    Span::new(within.start, end)
}

fn separator(text: &[u8], line: SpanLine) -> Option<(usize, &[u8])> {
    let content = line.content.of(text);
    let from = at_end(content)?;
    Some((
        line.content.start + from,
        content.get(from..)?.trim_ascii_end(),
    ))
}

fn beside<'t>(text: &'t [u8], within: Span, notes: &[(Span, bool)]) -> BTreeSet<&'t [u8]> {
    let mut known = BTreeSet::new();
    for (note, _) in notes {
        let above = note.start.checked_sub(1).filter(|&end| end >= within.start);
        if let Some(end) = above {
            let low = within.start.max(end.saturating_sub(8 * LONGEST));
            let line = last_line(&text[low..end]).trim_ascii_end();
            known.extend(at_end(line).and_then(|from| line.get(from..)));
        }
        let blank = blank_behind(text, Span::new(note.end, within.end));
        let behind = SpanLines::new(text, Span::new(blank.end, within.end)).next();
        let below = behind
            .and_then(|line| separator(text, line).filter(|(from, _)| *from == line.content.start));
        known.extend(below.map(|(_, words)| words));
    }
    known
}
