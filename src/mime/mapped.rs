//! A decoded body that still knows where each octet came from, so that a few octets can be changed
//! and the rest of an encoded body keeps its bytes.

use std::borrow::Cow;
use std::ops::Range;

use super::quoted_printable::{self, Places};
use super::transfer::{TransferEncoding, encode_base64, in_alphabet};
use crate::span::{Lines, Newline, Span};

/// Columns of a quoted-printable line (RFC 2045 §6.7 rule 5), one of them for a soft line break.
const COLUMNS: usize = 76;

/// A body and its octets.
#[derive(Clone, Debug)]
pub struct MappedBody<'a> {
    original: &'a [u8],
    body: Span,
    octets: Cow<'a, [u8]>,
    layout: Layout,
}

#[derive(Clone, Copy, Debug)]
enum Layout {
    /// Octets and bytes are the same.
    Identity,
    /// Where an octet stands is found by reading the body once more, only if something changes:
    /// a table would be ten times as large as a body of nothing but escapes.
    QuotedPrintable,
    /// Every change moves everything behind it.
    Base64,
}

/// A change to the octets of a body, and what it is in the message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Which octets go.
    pub octets: Range<usize>,
    /// Which octets come.
    pub replacement: Vec<u8>,
}

impl<'a> MappedBody<'a> {
    /// Decodes a body. None for an encoding nobody knows and for damaged base64.
    #[must_use]
    pub fn decode(original: &'a [u8], body: Span, encoding: TransferEncoding) -> Option<Self> {
        let bytes = body.of(original);
        let (octets, layout) = match encoding {
            TransferEncoding::QuotedPrintable => (encoding.decode(bytes)?, Layout::QuotedPrintable),
            TransferEncoding::Base64 => (encoding.decode(bytes)?, Layout::Base64),
            _ => (encoding.decode(bytes)?, Layout::Identity),
        };
        Some(Self {
            original,
            body,
            octets,
            layout,
        })
    }

    /// The octets.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// Turns changes (in order, disjoint) into replacements of spans of the original.
    ///
    /// Identity bodies change only where the octets do. Of a quoted-printable body only the
    /// changed octets are written anew, with soft line breaks where a line would become too long.
    /// A base64 body is written anew from its first changed line on.
    #[must_use]
    pub fn replacements(&self, changes: Vec<Change>, newline: Newline) -> Vec<(Span, Vec<u8>)> {
        if changes.is_empty() {
            return Vec::new();
        }
        match self.layout {
            Layout::Identity => changes
                .into_iter()
                .map(|change| {
                    let span = Span::new(change.octets.start, change.octets.end);
                    (span.shifted(self.body.start), change.replacement)
                })
                .collect(),
            Layout::QuotedPrintable => self.quoted_printable(&changes, newline),
            Layout::Base64 => vec![self.base64(&changes, newline)],
        }
    }

    fn quoted_printable(&self, changes: &[Change], newline: Newline) -> Vec<(Span, Vec<u8>)> {
        let bytes = self.body.of(self.original);
        let mut places = Places::new(bytes);
        let mut line = LineAround::default();
        let mut replacements = Vec::with_capacity(changes.len());
        // The column at which the bytes behind the last replacement go on, if on the same line.
        let mut behind: Option<(usize, usize)> = None;
        for change in changes {
            let mut start = places.of(change.octets.start).start;
            let end = match change.octets.end.checked_sub(1) {
                Some(last) if last >= change.octets.start => places.of(last).end,
                _ => start,
            };
            let mut octets = Cow::Borrowed(change.replacement.as_slice());
            let free = bytes.get(behind.map_or(0, |(from, _)| from)..start);
            let bare = free.map_or(0, |front| half_escape(front, &octets));
            if bare > 0 {
                start -= bare;
                let before = bytes.get(start..start + bare).unwrap_or_default();
                octets.to_mut().splice(0..0, before.iter().copied());
            }
            line.seek(bytes, start);
            let column = match behind {
                Some((from, column)) if from >= line.start => column + (start - from),
                _ => start - line.start,
            };
            line.seek(bytes, end);
            let rest = line.text_end.saturating_sub(end);
            let (written, column) = write_octets(&octets, column, rest, newline);
            behind = Some((end, column));
            replacements.push((Span::new(start, end).shifted(self.body.start), written));
        }
        replacements
    }

    /// The octets with changes made.
    #[must_use]
    pub fn changed(&self, changes: &[Change]) -> Vec<u8> {
        self.changed_from(0, changes)
    }

    fn changed_from(&self, mut at: usize, changes: &[Change]) -> Vec<u8> {
        let mut octets = Vec::with_capacity(self.octets.len());
        for change in changes {
            octets.extend_from_slice(self.octets.get(at..change.octets.start).unwrap_or_default());
            octets.extend_from_slice(&change.replacement);
            at = change.octets.end;
        }
        octets.extend_from_slice(self.octets.get(at..).unwrap_or_default());
        octets
    }

    /// The lines between the first change and the last symbol, written anew; what stands behind that
    /// symbol means nothing and stays.
    fn base64(&self, changes: &[Change], newline: Newline) -> (Span, Vec<u8>) {
        let bytes = self.body.of(self.original);
        let symbols_end = bytes
            .iter()
            .rposition(|&byte| in_alphabet(byte))
            .map_or(0, |last| last + 1);
        let symbols = bytes.get(..symbols_end).unwrap_or_default();
        let first_changed = changes.first().map_or(0, |change| change.octets.start);
        let (kept_octets, kept_bytes) = intact_lines(symbols, first_changed);
        let octets = self.changed_from(kept_octets, changes);
        let written = encode_base64(&octets, newline).body;
        let span = Span::new(kept_bytes, symbols_end).shifted(self.body.start);
        (span, written)
    }
}

/// How many whole lines of a base64 body, in octets and in bytes, lie before `octet` and hold a
/// multiple of four symbols each, with nothing else in them. The last line, which nothing ends, is not
/// counted.
fn intact_lines(bytes: &[u8], octet: usize) -> (usize, usize) {
    let (mut octets, mut at) = (0, 0);
    for line in Lines::new(bytes, Span::new(0, bytes.len())) {
        let symbols = line.content.of(bytes);
        let plain = symbols
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
        let holds = symbols.len() / 4 * 3;
        let is_last = line.whole.end == line.content.end;
        if is_last || !plain || symbols.len() % 4 != 0 || octets + holds > octet {
            break;
        }
        octets += holds;
        at = line.whole.end;
    }
    (octets, at)
}

/// Octets as quoted-printable text that starts at `column` and is followed by `rest` bytes on its
/// line; gives the text and the column behind it.
fn write_octets(
    octets: &[u8],
    mut column: usize,
    rest: usize,
    newline: Newline,
) -> (Vec<u8>, usize) {
    let mut written = Vec::with_capacity(octets.len() + 8);
    let soft_break = |written: &mut Vec<u8>| {
        written.push(b'=');
        written.extend_from_slice(newline.bytes());
    };
    for &octet in octets {
        let symbols = quoted_printable::octet(octet);
        if column > 0 && column + symbols.len() > COLUMNS - 1 {
            soft_break(&mut written);
            column = 0;
        }
        written.extend_from_slice(&symbols);
        column += symbols.len();
    }
    if rest > 0 && column > 0 && column + rest > COLUMNS {
        soft_break(&mut written);
        column = 0;
    }
    (written, column)
}

/// How many bytes at the end of `front` begin an escape that `octets`, or what follows if there are
/// none, would complete: a bare `=`, or one with a digit behind it.
///
/// RFC 2045 §6.7 wants such an `=` escaped; many programs do not care. It reads as itself as long as
/// no two digits follow, which a new value may bring.
fn half_escape(front: &[u8], octets: &[u8]) -> usize {
    if octets
        .first()
        .is_some_and(|octet| !octet.is_ascii_hexdigit())
    {
        return 0;
    }
    match front {
        [.., b'='] => 1,
        [.., b'=', digit] if digit.is_ascii_hexdigit() => 2,
        _ => 0,
    }
}

/// The line of the last place looked for. Places come in order, so each byte is searched once,
/// however many places a line has.
#[derive(Default)]
struct LineAround {
    start: usize,
    /// Where its text ends, blanks at the end not counted.
    text_end: usize,
    /// Where its line feed stands, or the end of the body.
    end: Option<usize>,
}

impl LineAround {
    fn seek(&mut self, bytes: &[u8], at: usize) {
        if self.end.is_some_and(|end| at <= end) {
            return;
        }
        let searched = self.end.unwrap_or(0);
        let between = bytes.get(searched..at).unwrap_or_default();
        let rest = bytes.get(at..).unwrap_or_default();
        self.start = memchr::memrchr(b'\n', between).map_or(0, |found| searched + found + 1);
        let end = at + memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let text = bytes.get(self.start..end).unwrap_or_default();
        self.text_end = self.start + text.trim_ascii_end().len();
        self.end = Some(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::{Edit, Edits};
    use proptest::prelude::*;

    fn changed(body: &[u8], encoding: TransferEncoding, changes: Vec<Change>) -> Vec<u8> {
        let span = Span::new(0, body.len());
        let mapped = MappedBody::decode(body, span, encoding).expect("a sound body");
        let mut edits = Edits::new();
        let group = mapped
            .replacements(changes, Newline::Lf)
            .into_iter()
            .map(|(span, bytes)| Edit::replace(span, bytes))
            .collect();
        edits.add(group).expect("disjoint changes");
        edits.splice(body).into_bytes().into_owned()
    }

    #[test]
    fn quoted_printable_lines_that_do_not_change_keep_their_bytes() {
        let body = b"caf=E9 =3D=\n soft\nlink=3Dhere and =\nmore =20\nlast =e9 line\n";
        let mapped = MappedBody::decode(
            body,
            Span::new(0, body.len()),
            TransferEncoding::QuotedPrintable,
        )
        .expect("quoted-printable");
        let at = memchr::memmem::find(mapped.octets(), b"here").expect("it is there");
        let changes = vec![Change {
            octets: at..at + 4,
            replacement: b"a=b".to_vec(),
        }];
        let out = changed(body, TransferEncoding::QuotedPrintable, changes);
        let expected = b"caf=E9 =3D=\n soft\nlink=3Da=3Db and =\nmore =20\nlast =e9 line\n";
        assert_eq!(out, expected);
    }

    #[test]
    fn lines_that_grow_too_long_get_soft_breaks() {
        let body =
            b"x <a href=3D\"y\">text text text text text text text text text text text</a>\n";
        let mapped = MappedBody::decode(
            body,
            Span::new(0, body.len()),
            TransferEncoding::QuotedPrintable,
        )
        .expect("quoted-printable");
        let at = memchr::memmem::find(mapped.octets(), b"y\"").expect("it is there");
        let url = b"http://www.example.org/a/very/long/path/that/does/not/fit/into/one/line?x=1";
        let changes = vec![Change {
            octets: at..at + 1,
            replacement: url.to_vec(),
        }];
        let out = changed(body, TransferEncoding::QuotedPrintable, changes);
        for line in out.split(|&byte| byte == b'\n') {
            assert!(line.len() <= 76, "{}", String::from_utf8_lossy(line));
        }
    }

    /// Whether an `=` that is written as it is reads as itself: what follows on its line is no
    /// two digits, and something follows.
    fn stays_bare(content: &[u8], at: usize) -> bool {
        let digit = |at: usize| content.get(at).is_some_and(u8::is_ascii_hexdigit);
        let line_goes_on = (at + 1..at + 3).all(|next| next % 60 != 59);
        at + 2 < content.len() && line_goes_on && !(digit(at + 1) && digit(at + 2))
    }

    #[test]
    fn a_bare_equals_sign_at_the_end_of_a_value_takes_nothing_with_it() {
        let body = b"<a href=3D\"x?a=\">t</a>\n";
        let changes = vec![Change {
            octets: 9..13,
            replacement: b"http://h/x?a=".to_vec(),
        }];
        let out = changed(body, TransferEncoding::QuotedPrintable, changes);
        let expected = b"<a href=3D\"http://h/x?a=3D\">t</a>\n";
        assert_eq!(
            out.escape_ascii().to_string(),
            expected.escape_ascii().to_string()
        );
    }

    #[test]
    fn a_bare_equals_sign_before_a_value_makes_no_escape_of_it() {
        for (body, at, expected) in [
            (&b"<a href=x>"[..], 8, &b"<a href=3Dfeed://h/x>"[..]),
            (b"<a q=ax>", 6, b"<a q=3Dafeed://h/x>"),
            (b"<a href=3Dx>", 8, b"<a href=3Dfeed://h/x>"),
        ] {
            let changes = vec![Change {
                octets: at..at + 1,
                replacement: b"feed://h/x".to_vec(),
            }];
            let out = changed(body, TransferEncoding::QuotedPrintable, changes);
            assert_eq!(
                out.escape_ascii().to_string(),
                expected.escape_ascii().to_string()
            );
        }
    }

    #[test]
    fn many_changes_in_one_long_line_take_time_like_its_length() {
        let body = b"x=3D".repeat(400_000);
        let changes = (0..400_000)
            .map(|at| Change {
                octets: at * 2..at * 2 + 1,
                replacement: b"yz".to_vec(),
            })
            .collect();
        let begun = std::time::Instant::now();
        let out = changed(&body, TransferEncoding::QuotedPrintable, changes);
        let decoded = TransferEncoding::QuotedPrintable
            .decode(&out)
            .expect("quoted-printable");
        assert!(decoded.as_ref() == b"yz=".repeat(400_000));
        // A search for the line's ends at every change would look at 640 GB.
        let took = begun.elapsed();
        assert!(took.as_secs() < 20, "{took:?}");
    }

    proptest! {
        #[test]
        fn changing_an_encoded_body_changes_its_octets_and_no_others(
            text in "[a-z é=\\n]{1,300}",
            cuts in proptest::collection::vec((0usize..300, 0usize..9, "[a-z=/é]{0,90}"), 1..5),
            base64: bool,
            sloppy: bool,
        ) {
            let octets = text.into_bytes();
            let encoding = if base64 { TransferEncoding::Base64 } else { TransferEncoding::QuotedPrintable };
            let body = if base64 {
                encode_base64(&octets, Newline::Lf).body
            } else {
                let mut body = Vec::new();
                for line in octets.split_inclusive(|&byte| byte == b'\n') {
                    let content = line.strip_suffix(b"\n").unwrap_or(line);
                    for (at, &octet) in content.iter().enumerate() {
                        if at % 60 == 59 { body.extend_from_slice(b"=\n"); }
                        if octet == b' ' { body.extend_from_slice(b"=20"); }
                        else if octet == b'=' && sloppy && stays_bare(content, at) { body.push(b'='); }
                        else { body.extend_from_slice(&quoted_printable::octet(octet)); }
                    }
                    if line.ends_with(b"\n") { body.push(b'\n'); }
                }
                body
            };
            let mut changes: Vec<Change> = Vec::new();
            let mut expected = octets.clone();
            let mut cuts = cuts;
            cuts.sort();
            let mut last = 0;
            for (start, length, replacement) in cuts {
                let start = start.max(last).min(octets.len());
                let end = (start + length).min(octets.len());
                // A hard line break is no octet that a link could hold.
                if octets[start..end].contains(&b'\n') || (start < last + 1 && last > 0) { continue; }
                last = end;
                changes.push(Change { octets: start..end, replacement: replacement.into_bytes() });
            }
            for change in changes.iter().rev() {
                expected.splice(change.octets.clone(), change.replacement.iter().copied());
            }
            let out = changed(&body, encoding, changes);
            let decoded = encoding.decode(&out).expect("still sound");
            prop_assert_eq!(decoded.as_ref(), expected.as_slice());
        }
    }
}
