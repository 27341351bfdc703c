//! A decoded body that can be mapped back to its encoded bytes. If a few bytes of the content change, all other
//! encoded bytes stay the same.

mod changes;
mod written;

use std::borrow::Cow;

pub use self::changes::TextChanges;
use self::written::{Base64Lines, push_joined};
use super::base64::{decode_base64, in_alphabet};
use super::quoted_printable::{ENCODED_COLUMNS, escape, is_plain, places, push_soft_break};
use super::transfer::TransferEncoding;
use crate::span::{Newline, Span, SpanLines, until};

pub struct MappedBody<'a> {
    original: &'a [u8],
    body: Span,
    octets: Cow<'a, [u8]>,
    encoding: TransferEncoding,
    /// Length of the encoded bytes that contain the content. A footer in plain text after base64 is not included.
    decoded: usize,
}

impl<'a> MappedBody<'a> {
    pub fn decode(original: &'a [u8], body: Span, encoding: TransferEncoding) -> Option<Self> {
        let (octets, decoded) = match encoding {
            TransferEncoding::Base64 => {
                let (octets, end) = decode_base64(body.of(original))?;
                (Cow::Owned(octets), end)
            }
            _ => (encoding.decode(body.of(original))?, body.len()),
        };
        Some(Self {
            original,
            body,
            octets,
            encoding,
            decoded,
        })
    }

    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// Returns the encoded bytes that must be replaced, as spans of the original, and their replacements. In an
    /// identity body, only the changed bytes are replaced. In quoted-printable, only changed bytes are encoded again,
    /// with soft line breaks in lines that become too long. Base64 is encoded again from the first changed line.
    pub fn replacements(&self, changes: TextChanges, newline: Newline) -> Vec<(Span, Vec<u8>)> {
        if changes.is_empty() {
            return Vec::new();
        }
        let mut replacements = match self.encoding {
            TransferEncoding::QuotedPrintable => self.quoted_printable(changes, newline),
            TransferEncoding::Base64 => self.base64(changes, newline),
            _ => {
                let mut replacements = Vec::new();
                changes.for_each(|octets, replacement| {
                    let span = Span::new(octets.start, octets.end).shifted(self.body.start);
                    push_joined(&mut replacements, self.original, span, replacement);
                });
                replacements
            }
        };
        if let Some((_, last)) = replacements.last_mut() {
            last.shrink_to_fit();
        }
        replacements
    }

    /// Encodes changes in quoted-printable. The body is decoded a second time to find the encoded bytes of each change.
    /// A table of these offsets would save this, but could be ten times as large as the body.
    fn quoted_printable(&self, changes: TextChanges, newline: Newline) -> Vec<(Span, Vec<u8>)> {
        let bytes = self.body.of(self.original);
        let mut place_of = places(bytes);
        let mut line = LineAround::default();
        let mut replacements = Vec::new();
        let mut written = Vec::new();
        // Offset and column in the encoded body after the last replacement. The column of the next replacement depends
        // on them if it is on the same line.
        let mut behind: Option<(usize, usize)> = None;
        changes.for_each(|changed, replacement| {
            let mut start = place_of(changed.start).start;
            let end = match changed.end.checked_sub(1) {
                Some(last) if last >= changed.start => place_of(last).end,
                _ => start,
            };
            let mut octets = Cow::Borrowed(replacement);
            let free = bytes.get(behind.map_or(0, |(from, _)| from)..start);
            let bare = free.map_or(0, |front| half_escape(front, &octets));
            if bare > 0 {
                let before = bytes[start - bare..start].iter().copied();
                octets.to_mut().splice(0..0, before);
                start -= bare;
            }
            line.seek(bytes, start);
            let column = match behind {
                Some((from, column)) if from >= line.start => column + (start - from),
                _ => start - line.start,
            };
            line.seek(bytes, end);
            let rest = line.text_end.saturating_sub(end);
            written.clear();
            let column = write_octets(&octets, column, rest, newline, &mut written);
            behind = Some((end, column));
            let span = Span::new(start, end).shifted(self.body.start);
            push_joined(&mut replacements, self.original, span, &written);
        });
        replacements
    }

    /// Returns the number of encoded bytes that contain no content: in base64, the line endings and other bytes outside
    /// the alphabet. Encoding the body again can remove them, so the first change can make the body shorter by up to
    /// this number.
    pub fn spare(&self) -> usize {
        match self.encoding {
            TransferEncoding::Base64 => self.decoded.saturating_sub(self.octets.len() * 4 / 3),
            _ => 0,
        }
    }

    /// Returns by how many bytes the encoded body grows at least if `lost` bytes of content are replaced with
    /// `replacement`. The result is negative if the body can become shorter. It does not include the bytes that
    /// [`spare`](Self::spare) counts.
    pub fn least_gain(&self, lost: usize, replacement: &[u8]) -> i64 {
        let is_escaped = |octet: &&u8| !is_plain(**octet);
        let (least, most) = match self.encoding {
            TransferEncoding::QuotedPrintable => {
                let escapes = replacement.iter().filter(is_escaped).count();
                (replacement.len() + 2 * escapes, 3 * lost)
            }
            TransferEncoding::Base64 => (replacement.len() * 4 / 3, (lost * 4).div_ceil(3)),
            _ => (replacement.len(), lost),
        };
        least as i64 - most as i64
    }

    pub fn changed(&self, changes: &TextChanges, mut piece: impl FnMut(&[u8])) {
        let mut at = 0;
        for (octets, replacement) in changes.iter() {
            piece(&self.octets[at..octets.start]);
            piece(replacement);
            at = octets.end;
        }
        piece(&self.octets[at..]);
    }

    /// Encodes the lines from the first change to the last symbol again. Bytes after the last symbol are kept,
    /// because they have no meaning or are a footer in plain text.
    fn base64(&self, changes: TextChanges, newline: Newline) -> Vec<(Span, Vec<u8>)> {
        let bytes = self.body.of(self.original);
        let symbols_end = self.decoded;
        let symbols = &bytes[..symbols_end];
        let first_changed = changes.first().unwrap_or(0);
        let (kept_octets, kept_bytes) = intact_lines(symbols, first_changed);
        let mut lines = Base64Lines::new(newline);
        let mut at = kept_octets;
        changes.for_each(|octets, replacement| {
            lines.push(&self.octets[at..octets.start]);
            lines.push(replacement);
            at = octets.end;
        });
        lines.push(&self.octets[at..]);
        // The first piece replaces the old lines, and the other pieces are inserted after it.
        let whole = Span::new(kept_bytes, symbols_end).shifted(self.body.start);
        let behind = Span::empty_at(whole.end);
        let spans = std::iter::once(whole).chain(std::iter::repeat(behind));
        spans.zip(lines.finish()).collect()
    }
}

/// Returns how much of the body before the decoded byte `octet` can stay unchanged: whole lines, as their length in
/// decoded and in encoded bytes. Each of these lines has a multiple of four symbols and a line ending. It has no
/// padding, because many programs stop reading at padding.
fn intact_lines(bytes: &[u8], octet: usize) -> (usize, usize) {
    let (mut octets, mut at) = (0, 0);
    for line in SpanLines::new(bytes, Span::new(0, bytes.len())) {
        let symbols = line.content.of(bytes);
        let is_plain = symbols
            .iter()
            .all(|&byte| byte != b'=' && in_alphabet(byte));
        let holds = symbols.len() / 4 * 3;
        let is_last = line.whole.end == line.content.end;
        if is_last || !is_plain || symbols.len() % 4 != 0 || octets + holds > octet {
            break;
        }
        octets += holds;
        at = line.whole.end;
    }
    (octets, at)
}

/// Appends the quoted-printable form of `octets` and returns the column after them. `rest` is the number of bytes
/// that follow on the line.
fn write_octets(
    octets: &[u8],
    mut column: usize,
    rest: usize,
    newline: Newline,
    written: &mut Vec<u8>,
) -> usize {
    for octet in octets {
        let escape = escape(*octet);
        let symbols = if is_plain(*octet) {
            std::slice::from_ref(octet)
        } else {
            escape.as_slice()
        };
        if column > 0 && column + symbols.len() > ENCODED_COLUMNS - 1 {
            push_soft_break(newline, written);
            column = 0;
        }
        written.extend_from_slice(symbols);
        column += symbols.len();
    }
    if rest > 0 && column > 0 && column + rest > ENCODED_COLUMNS {
        push_soft_break(newline, written);
        column = 0;
    }
    column
}

/// Returns the number of bytes at the end of `front` that could become an escape if `octets` are written after them: a
/// bare `=`, or a bare `=` and a digit. RFC 2045 §6.7 requires that `=` is escaped, but many programs do not do so.
/// Such an `=` is read as text only while no two digits follow it, and `octets` can begin with digits.
fn half_escape(front: &[u8], octets: &[u8]) -> usize {
    match front {
        _ if octets
            .first()
            .is_some_and(|octet| !octet.is_ascii_hexdigit()) =>
        {
            0
        }
        [.., b'='] => 1,
        [.., b'=', digit] if digit.is_ascii_hexdigit() => 2,
        _ => 0,
    }
}

/// The encoded line that contains an offset. Offsets must be passed in ascending order, so that each byte is searched
/// only once, even if there are many offsets on one line.
#[derive(Default)]
struct LineAround {
    start: usize,
    text_end: usize,
    end: Option<usize>,
}

impl LineAround {
    fn seek(&mut self, bytes: &[u8], at: usize) {
        if self.end.is_some_and(|end| at <= end) {
            return;
        }
        let searched = self.end.unwrap_or(0);
        let between = &bytes[searched..at];
        self.start = memchr::memrchr(b'\n', between).map_or(0, |found| searched + found + 1);
        let end = at + until(b'\n', &bytes[at..]).len();
        let text = bytes[self.start..end].trim_ascii_end();
        self.text_end = self.start + text.len();
        self.end = Some(end);
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::edit::{Edit, Edits};
    use crate::mime::transfer::encode_base64;
    use proptest::prelude::*;

    struct Change {
        octets: Range<usize>,
        replacement: Vec<u8>,
    }

    fn changed(body: &[u8], encoding: TransferEncoding, changes: Vec<Change>) -> Vec<u8> {
        let mut packed = TextChanges::default();
        for change in &changes {
            packed.push(change.octets.clone(), &change.replacement);
        }
        let span = Span::new(0, body.len());
        let mapped = MappedBody::decode(body, span, encoding).expect("a sound body");
        let mut edits = Edits::new();
        let group = mapped
            .replacements(packed, Newline::Lf)
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

    /// Returns whether a decoder reads the `=` at this offset as an ordinary character: two characters must follow on
    /// the same line, and they must not both be hexadecimal digits.
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
        // Without a stored end of the line, each change would search the line again. The test would then read 640 GB
        // and take too long.
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
                        else if is_plain(octet) { body.push(octet); }
                        else { body.extend_from_slice(&escape(octet)); }
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
                // Two kinds of changes are skipped here, because embody makes neither: a change that contains a hard line
                // break, which a link cannot contain, and a change that directly follows another one.
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
