//! Messages of an mbox whose lines end with a bare CR, as Entourage and old Mac programs wrote them. A mailbox may
//! contain such messages next to others. This module performs no I/O.
//!
//! A message is read with an LF in place of each bare CR, so that offsets are the same as in the file. A changed
//! message is written with CRs again, and an LF that was in the message is kept as an LF.

use crate::edit::Edits;
use crate::engine::lengths::Lengths;
use crate::mailbox::forms::eudora::with_line_feeds;
use crate::mailbox::forms::mbox::{Frame, content_start};
use crate::mailbox::forms::quoting::Quoting;
use crate::mailbox::forms::rewrite::{self, RewriteRefusal, Rewritten};
use crate::mailbox::forms::separator::{field, line_end};
use crate::prologue::Prologue;

/// Minimum number of header lines that must end with CR, in a message that also contains an LF. A message of today can
/// contain a single bare CR in a field, so one such line proves nothing.
const TELLING: usize = 2;

/// Returns whether the lines of a message end with a bare CR. The message may start with a `From ` line. Only the
/// header is read, up to its empty line.
pub(crate) fn ends_lines_with_cr(message: &[u8]) -> bool {
    let start = content_start(message);
    let (from_line, content) = message.split_at(start);
    // The lines of most messages do not end with CR. The first line is enough to exclude such a message, so that the
    // check is cheap.
    if !ends_with_cr(content, line_end(content)) {
        return false;
    }
    let is_told = from_line.ends_with(b"\r");
    let (mut at, mut lines) = (0, 0);
    loop {
        let rest = &content[at..];
        let (end, next) = line_end(rest);
        if next == end {
            // The message has no empty line and no LF, so all of it is a header.
            return is_told || lines > 0;
        }
        if !ends_with_cr(rest, (end, next)) {
            return false;
        }
        if end == 0 {
            let has_line_feed = || memchr::memchr(b'\n', rest).is_some();
            return is_told || lines >= TELLING || lines > 0 && !has_line_feed();
        }
        let is_field = || field(&rest[..end]).is_some_and(|(name, _)| !name.is_empty());
        let is_folded = matches!(rest[0], b' ' | b'\t');
        let is_quoted = || rest.starts_with(b">From ");
        if !(is_told || is_field() || is_folded && lines > 0 || is_quoted()) {
            return false;
        }
        lines += 1;
        at += next;
    }
}

fn ends_with_cr(bytes: &[u8], (end, next): (usize, usize)) -> bool {
    &bytes[end..next] == b"\r"
}

pub(crate) fn in_line_feeds(message: &[u8]) -> Vec<u8> {
    let mut read = message.to_vec();
    with_line_feeds(&mut read, None);
    read
}

/// Returns the content of a file with a single message. If its lines end with CR, they end with LF instead.
pub(crate) fn with_line_feeds_alone(content: Vec<u8>) -> Vec<u8> {
    if ends_lines_with_cr(Prologue::behind(&content)) {
        in_line_feeds(&content)
    } else {
        content
    }
}

/// Returns a changed message with its original line endings. `raw` is the message as it is in the mailbox, and `read`
/// the same message with an LF in place of each CR. `frame` is the position of the message in `read`.
pub(crate) fn rewritten(
    raw: &[u8],
    read: &[u8],
    frame: &Frame,
    edits: &Edits,
    quoting: Quoting,
    lengths: Lengths,
) -> Rewritten {
    let Some(new) = rewrite::rewritten(read, frame, edits, quoting, lengths)? else {
        return Ok(None);
    };
    let start = content_start(read);
    let is_own = |&at: &usize| raw[at] == b'\n';
    let own: Vec<usize> = (start..raw.len()).filter(is_own).collect();
    if own.is_empty() {
        return Ok(Some(in_returns(raw, start, &new, None)));
    }
    // An LF of the original message must not become a CR. So it is replaced by a byte that does not occur in the
    // message, and becomes an LF again after the change.
    let mut used = [false; 256];
    for &byte in read.iter().chain(&new) {
        used[usize::from(byte)] = true;
    }
    let free = (0..=u8::MAX).find(|&byte| !used[usize::from(byte)] && byte != b'\r');
    let Some(mark) = free else {
        return Err(RewriteRefusal::Separator);
    };
    let mut marked = read.to_vec();
    for at in own {
        marked[at] = mark;
    }
    let new = rewrite::rewritten(&marked, frame, edits, quoting, Lengths::Reversible)?;
    Ok(new.map(|new| in_returns(raw, start, &new, Some(mark))))
}

/// Returns `new` with a CR in place of each LF, and an LF in place of each `mark`. The `From ` line, which has `start`
/// bytes in `raw`, is copied without a change.
fn in_returns(raw: &[u8], start: usize, new: &[u8], mark: Option<u8>) -> Vec<u8> {
    let mut out = Vec::with_capacity(new.len());
    out.extend_from_slice(&raw[..start]);
    let mut content = new[start..].iter().copied().peekable();
    while let Some(byte) = content.next() {
        out.push(match byte {
            // New text may contain CR LF. Its CR is dropped, because its LF becomes a CR.
            b'\r' if content.peek() == Some(&b'\n') => continue,
            b'\n' => b'\r',
            byte if Some(byte) == mark => b'\n',
            byte => byte,
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::edit::Edit;
    use crate::span::Span;

    const LINE: &str = "From a@b Thu Jan  1 00:00:00 1970";

    #[test]
    fn header_tells_whether_lines_end_with_cr() {
        for (text, is_cr) in [
            ("\rA: b\rC: d\r\rtext\r", true),
            ("\r\nA: b\rC: d\r\rtext\r", true),
            ("\nA: b\rC: d\r\rtext\r", true),
            // The body contains LFs, because the message quotes text from another system. Its header still decides.
            ("\rA: b\r\rtext\nmore\r", true),
            ("\nA: b\rC: d\r folded\r\rtext\nmore\r", true),
            ("\rA: b\r", true),
            ("\r\rtext\r", true),
            ("\nA: b\nC: d\n\ntext\r\rmore\r", false),
            ("\r\nA: b\r\nC: d\r\n\r\ntext\r\n", false),
            ("\r\r\nA: b\r\r\nC: d\r\r\n\r\r\ntext\r\r\n", false),
            ("\nA: b\rc\nD: e\n\ntext\n", false),
            ("\nA: b\r\rc\nD: e\n\ntext\n", false),
            ("\rA: b\nC: d\n\ntext\n", false),
            ("\n", false),
            ("", false),
        ] {
            let text = format!("{LINE}{text}");
            assert_eq!(ends_lines_with_cr(text.as_bytes()), is_cr, "{text:?}");
        }
    }

    fn changed(raw: &str, old: &str, new: &str) -> Option<String> {
        let raw = raw.as_bytes();
        let read = in_line_feeds(raw);
        let content = &read[content_start(&read)..];
        let at = memchr::memmem::find(content, old.as_bytes()).expect("it is there");
        let span = Span::new(at, at + old.len());
        let edits = Edits::of([Edit::replace(span, new)]).unwrap();
        let frame = Frame {
            end: read.len(),
            ..Frame::default()
        }
        .looked_at(&read);
        let quoting = Quoting::O;
        let result = rewritten(raw, &read, &frame, &edits, quoting, Lengths::default());
        let new = result.expect("it is not refused");
        new.map(|new| String::from_utf8(new).unwrap())
    }

    #[test]
    fn changed_message_has_its_own_line_endings() {
        for separator in ["\r", "\n", "\r\n"] {
            let message =
                format!("{LINE}{separator}A: b\rContent-Length: 14\r\rtext\none\r\ntwo\r\r");
            let new = changed(&message, "text", "From x\r\ny\nz").unwrap();
            let expected = format!(
                "{LINE}{separator}A: b\rContent-Length: 22\r\r>From x\ry\rz\none\r\ntwo\r\r"
            );
            assert_eq!(new, expected);
        }
        let message = format!("{LINE}\rA: b\r\rtext\r\r");
        assert_eq!(
            changed(&message, "text\n", "new"),
            Some(format!("{LINE}\rA: b\r\rnew\r\r"))
        );
    }

    proptest! {
        #[test]
        fn bytes_outside_of_a_change_stay(body in "[ab\r\n:]{0,40}", at in any::<prop::sample::Index>()) {
            let raw = format!("{LINE}\rA: b\r\rX{body}");
            let letters: Vec<usize> = raw.match_indices(['a', 'b', 'X']).map(|it| it.0).filter(|&at| at > LINE.len() + 6).collect();
            let place = letters[at.index(letters.len())];
            let read = in_line_feeds(raw.as_bytes());
            let start = content_start(&read);
            let span = Span::new(place - start, place - start + 1);
            let edits = Edits::of([Edit::replace(span, "new\n")]).unwrap();
            let frame = Frame { end: read.len(), ..Frame::default() }.looked_at(&read);
            let new = rewritten(raw.as_bytes(), &read, &frame, &edits, Quoting::O, Lengths::default());
            if let Ok(Some(new)) = new {
                let (front, behind) = (&raw[..place], &raw[place + 1..]);
                let mut expected = format!("{front}new\r{behind}");
                let mut new = String::from_utf8(new).unwrap();
                // A line ending may be added at the end of the message, so that the next separator is recognised.
                while new.len() > expected.len() { prop_assert_eq!(new.pop(), Some('\r')); }
                expected.truncate(new.len());
                prop_assert_eq!(new, expected);
            }
        }
    }
}
