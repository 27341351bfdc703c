//! A decoded body that still knows where each octet came from, so that a few octets can be changed
//! and the rest of an encoded body keeps its bytes.

use std::borrow::Cow;
use std::ops::Range;

use super::transfer::{TransferEncoding, encode_base64, quoted_printable_octet};
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

#[derive(Clone, Debug)]
enum Layout {
    /// Octets and bytes are the same.
    Identity,
    /// Runs of octets: where each starts among the octets, and where among the bytes. Within a run
    /// both advance together, except that an escape is a run of its own.
    QuotedPrintable(Vec<(usize, usize)>),
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
            TransferEncoding::QuotedPrintable => {
                let (octets, runs) = decode_runs(bytes);
                (Cow::Owned(octets), Layout::QuotedPrintable(runs))
            }
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
        match &self.layout {
            Layout::Identity => changes
                .into_iter()
                .map(|change| {
                    let span = Span::new(change.octets.start, change.octets.end);
                    (span.shifted(self.body.start), change.replacement)
                })
                .collect(),
            Layout::QuotedPrintable(runs) => self.quoted_printable(runs, &changes, newline),
            Layout::Base64 => vec![self.base64(&changes, newline)],
        }
    }

    fn quoted_printable(
        &self,
        runs: &[(usize, usize)],
        changes: &[Change],
        newline: Newline,
    ) -> Vec<(Span, Vec<u8>)> {
        let bytes = self.body.of(self.original);
        let place = |octet: usize| {
            let run = runs.partition_point(|&(start, _)| start <= octet);
            run.checked_sub(1)
                .and_then(|run| runs.get(run))
                .map_or(octet, |&(start, byte)| byte + (octet - start))
        };
        let mut replacements = Vec::with_capacity(changes.len());
        // The column at which the bytes behind the last replacement go on, if on the same line.
        let mut behind: Option<(usize, usize)> = None;
        for change in changes {
            let start = place(change.octets.start);
            let end = match change.octets.end.checked_sub(1) {
                Some(last) if last >= change.octets.start => {
                    let byte = place(last);
                    byte + if bytes.get(byte) == Some(&b'=') { 3 } else { 1 }
                }
                _ => start,
            };
            let line_start = bytes
                .get(..start)
                .and_then(|front| memchr::memrchr(b'\n', front))
                .map_or(0, |at| at + 1);
            let column = match behind {
                Some((from, column)) if from >= line_start => column + (start - from),
                _ => start - line_start,
            };
            let line_end = bytes
                .get(end..)
                .and_then(|rest| memchr::memchr(b'\n', rest))
                .map_or(bytes.len(), |at| end + at);
            let rest = bytes
                .get(end..line_end)
                .map_or(0, |rest| rest.trim_ascii_end().len());
            let (written, column) = write_octets(&change.replacement, column, rest, newline);
            behind = Some((end, column));
            replacements.push((Span::new(start, end).shifted(self.body.start), written));
        }
        replacements
    }

    fn base64(&self, changes: &[Change], newline: Newline) -> (Span, Vec<u8>) {
        let bytes = self.body.of(self.original);
        let first_changed = changes.first().map_or(0, |change| change.octets.start);
        let (kept_octets, kept_bytes) = intact_lines(bytes, first_changed);
        let mut octets = Vec::with_capacity(self.octets.len());
        let mut at = kept_octets;
        for change in changes {
            octets.extend_from_slice(self.octets.get(at..change.octets.start).unwrap_or_default());
            octets.extend_from_slice(&change.replacement);
            at = change.octets.end;
        }
        octets.extend_from_slice(self.octets.get(at..).unwrap_or_default());
        let mut written = encode_base64(&octets, newline).body;
        if bytes.ends_with(b"\n") {
            written.extend_from_slice(newline.bytes());
        }
        let span = Span::new(self.body.start + kept_bytes, self.body.end);
        (span, written)
    }
}

/// How many whole lines of a base64 body, in octets and in bytes, lie before `octet` and hold a
/// multiple of four symbols each, with nothing else in them.
fn intact_lines(bytes: &[u8], octet: usize) -> (usize, usize) {
    let (mut octets, mut at) = (0, 0);
    for line in Lines::new(bytes, Span::new(0, bytes.len())) {
        let symbols = line.content.of(bytes);
        let plain = symbols
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
        let holds = symbols.len() / 4 * 3;
        if !plain || symbols.len() % 4 != 0 || octets + holds > octet {
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
        let symbols = quoted_printable_octet(octet);
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

/// Quoted-printable octets with the places they came from.
fn decode_runs(bytes: &[u8]) -> (Vec<u8>, Vec<(usize, usize)>) {
    let digit = |at: usize| {
        bytes
            .get(at)
            .and_then(|&byte| char::from(byte).to_digit(16))
    };
    let mut octets = Vec::with_capacity(bytes.len());
    let mut runs = Vec::new();
    for line in Lines::new(bytes, Span::new(0, bytes.len())) {
        let content = line.content.of(bytes);
        let blanks = content
            .iter()
            .rev()
            .take_while(|&&byte| matches!(byte, b' ' | b'\t'))
            .count();
        let mut end = line.content.end - blanks;
        let soft = end > line.content.start && bytes.get(end - 1) == Some(&b'=');
        if soft {
            end -= 1;
        }
        let mut at = line.content.start;
        runs.push((octets.len(), at));
        while at < end {
            let rest = bytes.get(at..end).unwrap_or_default();
            let plain = memchr::memchr(b'=', rest).unwrap_or(rest.len());
            octets.extend_from_slice(rest.get(..plain).unwrap_or_default());
            at += plain;
            if at >= end {
                break;
            }
            match (digit(at + 1), digit(at + 2)) {
                (Some(high), Some(low)) if at + 2 < end => {
                    runs.push((octets.len(), at));
                    octets.push((high << 4 | low) as u8);
                    at += 3;
                    runs.push((octets.len(), at));
                }
                _ => {
                    octets.push(b'=');
                    at += 1;
                }
            }
        }
        if !soft {
            runs.push((octets.len(), line.content.end));
            octets.extend_from_slice(Span::new(line.content.end, line.whole.end).of(bytes));
        }
    }
    (octets, runs)
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

    proptest! {
        #[test]
        fn changing_an_encoded_body_changes_its_octets_and_no_others(
            text in "[a-z é=\\n]{1,300}",
            cuts in proptest::collection::vec((0usize..300, 0usize..9, "[a-z=/é]{0,90}"), 1..5),
            base64: bool,
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
                        else { body.extend_from_slice(&quoted_printable_octet(octet)); }
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
