//! Puts a changed message back into its mbox.
//!
//! New text in the body is quoted as the mailbox quotes it, and Content-Length and Lines in the header of the message
//! are corrected. The end of the message is kept in a form that lets the next separator be recognised. Bytes outside of
//! the change are kept. In a file that is not an mbox, no text is quoted, and a change must not remove a line that
//! starts with `From `.
//!
//! A change is refused if it would remove a line that starts with `From `, because some program may start a message
//! there. It is also refused if it would turn an existing line into a separator.
//!
//! Some programs count the empty line after the message: a value of Lines that was wrong by one stays wrong by one.
//! Other values become the number of line endings.

use std::borrow::Cow;
use std::cell::LazyCell;

use memchr::memchr_iter;

use crate::edit::{Edits, moved};
use crate::engine::lengths::{Lengths, Measure};
use crate::from_field::has_header;
use crate::mailbox::forms::MboxVariant;
use crate::mailbox::forms::flag_fields::agreed_end;
use crate::mailbox::forms::mbox::{self, Frame, MboxHeader};
use crate::mailbox::forms::quoting::{self, Quoting};
use crate::mailbox::forms::separator::{self, next_in_message};
use crate::mailbox::forms::{cost, mmdf};
use crate::mailbox_field::is_of_mailbox;
use crate::prologue::{BYTE_ORDER_MARK, Prologue};
use crate::span::{Newline, Span, SpanLines};

/// Capacity in bytes that is reserved for the `From ` line, added line endings and longer numbers.
const ROOM: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RewriteRefusal {
    /// The change would remove or create a line that some program reads as a separator. Messages could then be merged
    /// or divided.
    Separator,
    Misfit,
}

pub(crate) type Rewritten = Result<Option<Vec<u8>>, RewriteRefusal>;

pub(crate) fn rewritten(
    bytes: &[u8],
    frame: &Frame,
    edits: &Edits,
    quoting: Quoting,
    lengths: Lengths,
) -> Rewritten {
    let (from_line, content, behind) = frame.parts(bytes);
    let Some(new) = spliced(content, edits)? else {
        return Ok(None);
    };
    let is_mmdf = mmdf::starts(from_line);
    if is_mmdf && (mmdf::holds_line(content) || mmdf::holds_line(&new)) {
        return Err(RewriteRefusal::Separator);
    }
    let kept = if is_mmdf {
        Vec::new()
    } else {
        kept_lines(content, &new, edits, |_| true)?
    };
    let quoting = quoting_in(frame, from_line, quoting);
    let mut new = quoting.marked(&new, &kept).unwrap_or(new);

    let newline = Newline::of_first_line(content).bytes();
    let is_line = content.ends_with(b"\n") || is_mmdf && !behind.is_empty();
    if is_line && !new.ends_with(b"\n") {
        new.extend_from_slice(newline);
    }
    let blanks = if is_mmdf { b"" } else { behind };
    let separated = ends_with_empty_line(content, blanks);
    if separated && !ends_with_empty_line(&new, blanks) {
        new.extend_from_slice(newline);
    }
    let mut new = counted(content, new, lengths);
    // The `From ` line is inserted in place, because a copy of a large message would need twice the memory.
    new.splice(..0, from_line.iter().copied());
    new.extend_from_slice(behind);
    // Refuses a change that creates or removes a separator. New text is quoted, but three dangers remain:
    // * An old line may become a separator if the text next to it changes.
    // * The message's own separator may stop being a separator if the header field after it changes.
    // * If the message then consists only of separators, the separator of the next message would be read as one of
    //   them.
    let old = &bytes[frame.start..];
    let is_lost = |is: fn(&[u8]) -> bool| is(old) && !is(&new);
    // The separator at the start of the message must not begin to look like an older separator, which is a `From ` line
    // of an earlier mailbox. If the message before it is empty, both messages would then be read as one.
    let becomes_older = !separator::starts_older(old) && separator::starts_older(&new);
    if becomes_older
        || is_lost(separator::is_separator)
        || is_lost(separator::is_separator_in_text)
        || (!frame.is_mboxcl2 && next_in_message(&new).is_some())
        || separator::is_all_separators(&new)
    {
        return Err(RewriteRefusal::Separator);
    }
    Ok(Some(new))
}

/// Separator of a message whose sender and date are not known, and which is quoted as mboxrd. public-inbox writes the same line.
pub(crate) const MBOXRD_SEPARATOR: &[u8] = b"From mboxrd@z Thu Jan  1 00:00:00 1970";

/// Returns the quoting that the separator of a message declares: the sender `mboxrd@z` stands for mboxrd, whatever the quoting of
/// the other messages in the mailbox.
pub(crate) fn declared_quoting(from_line: &[u8], quoting: Quoting) -> Quoting {
    if from_line.starts_with(b"From mboxrd@z ") {
        Quoting::Rd
    } else {
        quoting
    }
}

pub(crate) fn quoting_in(frame: &Frame, from_line: &[u8], quoting: Quoting) -> Quoting {
    match declared_quoting(from_line, quoting) {
        // In MMDF, a `From ` line does not start a message, so new text is not quoted.
        _ if mmdf::starts(from_line) => Quoting::None,
        // The message ends at a separator, so an unquoted `From ` line in new text would end it too early. New text is
        // quoted, even if the mailbox has no quoting.
        Quoting::None if !frame.is_mboxcl2 => Quoting::O,
        quoting => quoting,
    }
}

/// Applies the edits to a message that is written to a mailbox of another format. Old lines of the body are unquoted.
/// New text was never quoted, so a `>` in it is kept.
pub(crate) fn unquoted(content: &[u8], edits: &Edits, quoting: Quoting) -> Rewritten {
    let Some(new) = spliced(content, edits)? else {
        return Ok(None);
    };
    let kept = kept_lines(content, &new, edits, |_| true)?;
    let body = text_of(&new);
    let is_quoted = |line: usize| line >= body && kept.binary_search(&line).is_ok();
    let unquoted = quoting.unmarked(&new, is_quoted);
    Ok(Some(unquoted.unwrap_or(new)))
}

/// Unquotes a message that did not change. Also returns the number of lines whose original text is unknown. In mboxo, a
/// line with `>From ` may have been quoted or may have been written by the sender in this way.
pub(crate) fn plain(content: &[u8], quoting: Quoting) -> (Cow<'_, [u8]>, u64) {
    let body = text_of(content);
    let marked = |&(line, at): &(usize, usize)| line >= body && at > line;
    let unsure = match quoting {
        Quoting::O => quoting::from_lines(content).filter(marked).count(),
        Quoting::Rd | Quoting::None => 0,
    };
    let plain = quoting.unmarked(content, |line| line >= body);
    (
        plain.map_or(Cow::Borrowed(content), Cow::Owned),
        unsure as u64,
    )
}

/// Returns the content in the form for an mbox: quoted as the variant says, with a line ending at its end, and with a correct
/// Content-Length. A wrong Content-Length would make some programs merge the next messages with this one.
pub(crate) fn for_mbox(content: &[u8], variant: MboxVariant) -> Cow<'_, [u8]> {
    let body = text_of(content);
    // In the header, a line that starts with `From ` is quoted, because it would be read as a separator. A line that
    // starts with `>` is kept, because unquoting does not change the header. A From field with a blank before its colon
    // does not get here: the blank was removed.
    let kept: Vec<usize> = quoting::from_lines(&content[..body])
        .filter(|(line, at)| at > line)
        .map(|(line, _)| line)
        .collect();
    let quoted = match variant {
        MboxVariant::Rd => Quoting::Rd.marked(content, &kept),
        MboxVariant::O => Quoting::O.marked(content, &kept),
        // Content-Length says where the body ends, so its lines are not quoted. Nothing says it about the header.
        MboxVariant::Cl2 => quoted_header(content, body),
    };
    let mut new = quoted.map_or(Cow::Borrowed(content), Cow::Owned);
    if !new.is_empty() && !new.ends_with(b"\n") {
        let newline = Newline::of_first_line(content).bytes();
        new.to_mut().extend_from_slice(newline);
    }
    let body = body_of(&new);
    let octets = (new.len() - body) as u64;
    let wrong = length_fields(&new, body).filter_map(|(measure, value)| {
        let digits = value.of(&new);
        let is_wrong = measure == Measure::Octets && mbox::number(digits) != Some(octets);
        (is_wrong && is_of_mailbox(b"Content-Length", || digits.into()))
            .then(|| (value, octets.to_string()))
    });
    let new = quoting::replaced(&new, ROOM, wrong).map_or(new, Cow::Owned);
    match variant {
        MboxVariant::Cl2 => Cow::Owned(with_length(new.into_owned())),
        MboxVariant::Rd | MboxVariant::O => new,
    }
}

fn quoted_header(content: &[u8], body: usize) -> Option<Vec<u8>> {
    let (header, rest) = content.split_at(body);
    let marks = quoting::from_lines(header).filter(|(line, at)| line == at);
    let quoted = quoting::replaced(
        header,
        0,
        marks.map(|(line, _)| (Span::empty_at(line), b">")),
    )?;
    Some([&quoted, rest].concat())
}

/// Adds a field Content-Length to a message that has none. If one message of an mboxcl2 mailbox lacks the field, no program can
/// read the others by their fields.
fn with_length(mut content: Vec<u8>) -> Vec<u8> {
    let newline = Newline::of_first_line(&content).bytes();
    // Fields of Thunderbird count only before all others, so the new field comes after them.
    let (at, body, end) = if has_header(Prologue::behind(&content)) {
        (agreed_end(&content), body_of(&content), &b""[..])
    } else if content.starts_with(newline) {
        // The header is empty, and its empty line is there.
        (0, newline.len(), &b""[..])
    } else {
        // A text without a header gets one, so that the text is its body.
        (0, 0, newline)
    };
    let is_there = body > 0
        && length_fields(&content, body).any(|(measure, value)| {
            measure == Measure::Octets && mbox::number(value.of(&content)).is_some()
        });
    if is_there {
        return content;
    }
    let length = content.len() - body;
    let field = format!("Content-Length: {length}").into_bytes();
    content.splice(at..at, [&field, newline, end].concat());
    content
}

fn body_of(content: &[u8]) -> usize {
    let message = Prologue::behind(content);
    let prologue = content.len() - message.len();
    let body = MboxHeader::of(message).body.map(|body| prologue + body);
    body.unwrap_or(content.len())
}

/// Returns the offset of the text whose `From ` lines are quoted. This is the body, and the whole message if it has no
/// header.
fn text_of(content: &[u8]) -> usize {
    if has_header(Prologue::behind(content)) {
        body_of(content)
    } else {
        0
    }
}

/// Applies the edits to a file with a single message. The file could be an mbox whose first separator is damaged, so a
/// line that looks like a separator may be the start of another message. A change that would remove such a line is refused.
pub(crate) fn spliced_in_file(content: &[u8], edits: &Edits) -> Rewritten {
    let new = spliced(content, edits)?;
    if let Some(new) = &new {
        kept_lines(content, new, edits, separator::is_separator_in_text)?;
    }
    Ok(new)
}

/// Applies the edits without quoting lines or correcting Content-Length.
pub(crate) fn spliced(content: &[u8], edits: &Edits) -> Rewritten {
    if edits.is_empty() {
        return Ok(None);
    }
    if edits.iter().any(|edit| edit.span.end > content.len()) {
        return Err(RewriteRefusal::Misfit);
    }
    let spliced = edits.splice(content);
    let mut new = Vec::with_capacity(spliced.len() + ROOM);
    for chunk in spliced.chunks() {
        new.extend_from_slice(chunk);
    }
    Ok((new != content).then_some(new))
}

/// Finds the lines of the old message that start with `From `, after any number of `>`, in the changed message. Returns
/// their positions in `new`, sorted.
///
/// Returns an error if the change removed a line without `>` for which `divides` returns true, because a program may
/// start a message there. Python starts a message at each such line, Dovecot and mutt at lines with a date.
fn kept_lines(
    content: &[u8],
    new: &[u8],
    edits: &Edits,
    divides: impl Fn(&[u8]) -> bool,
) -> Result<Vec<usize>, RewriteRefusal> {
    let mut kept = Vec::new();
    let mut place_of = moved(edits);
    for (line, at) in quoting::from_lines(content) {
        let needed = if separator::is_plausible(&content[line..]) {
            // The separator ends at the first CR or LF. We could search for an LF only, but in a text whose lines end with
            // bare CRs, each search would scan the rest of the text, which takes quadratic time.
            let (length, _) = separator::line_end(&content[line..]);
            cost::count(length);
            line + length
        } else {
            at + b"From ".len()
        };
        let place = place_of(Span::new(line, needed));
        let starts_line = |&place: &usize| place == 0 || matches!(new[place - 1], b'\n' | b'\r');
        match place.filter(starts_line) {
            Some(place) => kept.push(place),
            None if at == line && divides(&content[line..]) => {
                return Err(RewriteRefusal::Separator);
            }
            None => {}
        }
    }
    Ok(kept)
}

fn ends_with_empty_line(content: &[u8], behind: &[u8]) -> bool {
    // The byte order mark of the next message does not change what precedes its separator.
    let blanks = behind.strip_suffix(BYTE_ORDER_MARK).unwrap_or(behind);
    let tail = [&content[content.len().saturating_sub(4)..], blanks].concat();
    tail.ends_with(b"\n\n") || tail.ends_with(b"\n\r\n")
}

fn counted(old: &[u8], new: Vec<u8>, lengths: Lengths) -> Vec<u8> {
    let line_ends = |bytes: &[u8]| memchr_iter(b'\n', bytes).count();
    let (old_body, new_body) = (body_of(old), body_of(&new));
    // The line endings are counted only if a field needs their number, and at most once, even if the field occurs
    // several times.
    let counts = LazyCell::new(|| (line_ends(&old[old_body..]), line_ends(&new[new_body..])));
    let mut fields_before = length_fields(old, old_body);
    let numbers = length_fields(&new, new_body).filter_map(|(measure, value)| {
        let number = mbox::number(value.of(&new));
        let field_before = fields_before.next().filter(|before| before.0 == measure);
        let before = field_before.and_then(|(_, value)| mbox::number(value.of(old)));
        let (was, is) = match measure {
            Measure::Octets => (old.len() - old_body, new.len() - new_body),
            Measure::LineEnds => *counts,
        };
        let (was, is) = (was as u64, is as u64);
        let wanted = match (lengths, before) {
            (_, Some(before)) if before == was => is,
            (Lengths::Reversible, _) => return None,
            (_, Some(before)) if measure == Measure::LineEnds && before == was + 1 => is + 1,
            (_, Some(before)) if measure == Measure::LineEnds && before + 1 == was => {
                is.saturating_sub(1)
            }
            _ => is,
        };
        (number? != wanted).then(|| (value, wanted.to_string()))
    });
    quoting::replaced(&new, ROOM, numbers).unwrap_or(new)
}

fn length_fields(content: &[u8], body: usize) -> impl Iterator<Item = (Measure, Span)> {
    SpanLines::new(content, Span::new(0, body)).filter_map(|line| {
        let (name, value) = mbox::field(line.content.of(content))?;
        Some((Measure::of(name)?, value.shifted(line.content.start)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::Edit;

    #[test]
    fn lines_with_dates_after_bare_cr_are_each_looked_at_once() {
        let lines = "\rFrom a Jan 1 10:00".repeat(2000);
        let content = format!("A: b\n\n@{lines}");
        let at = content.find('@').unwrap();
        let edits = Edits::of([Edit::replace(Span::new(at, at + 1), "new")]).unwrap();
        cost::taken();
        let new = spliced_in_file(content.as_bytes(), &edits)
            .unwrap()
            .unwrap();
        let looked_at = cost::taken();
        assert_eq!(new, content.replace('@', "new").as_bytes());
        assert!(
            looked_at > 2000 && looked_at < 8 * content.len() as u64,
            "{looked_at}"
        );
    }
}
