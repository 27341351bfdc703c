//! Header sections as spans, according to RFC 5322 §2.2 and to real mail.
//!
//! A field starts at a line `name:`. Lines that start with a space or tab continue it. The section ends at an empty
//! line, at a boundary line of an enclosing multipart, at a line that starts the body without an empty line before
//! it, or at the end of the file.
//!
//! Deviations from RFC 5322, because they occur in mail:
//! * spaces between the name and the colon are accepted (RFC 822 allowed them);
//! * names may contain bytes above 127;
//! * a `From ` or `>From ` line before the first field belongs to the section ([`Header::envelope`]), and so do other
//!   lines that programs put before the header of a mail ([`Prologue`]);
//! * a continuation line before any field is a field without a name;
//! * a line that consists of white space continues the field before it and does not end the section;
//! * **a stray line**, which is neither a field nor a continuation line, is skipped if fields follow. Real mail has
//!   `>From ` lines and others in the middle of headers. Dovecot and Thunderbird skip all stray lines, mutt skips `From `
//!   and `>From ` lines, and Python skips `From ` lines. All other stray lines start the body for these programs. Whether
//!   fields follow is decided once for each section, from the lines up to the next empty line ([`fields_follow`]).
//!   Otherwise the body of a mail without an empty line would be read as a header.
//!
//! Programs disagree about the fields after a stray line. They are read here (types, names, flags), but new fields
//! are inserted before the stray line, where all programs find them ([`Header::agreed_end`]).

use memchr::memchr;

pub use super::fields::{Field, Fields};
use crate::edit::BEHIND_HEADER;
use crate::prologue::Prologue;
use crate::span::{Span, SpanLine, SpanLines, is_from_line};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SectionEnd {
    Regular,
    /// The section ends without an empty line, before a line that is not a field. The body starts with this line.
    Unseparated,
    Boundary,
    /// The section is longer than the limit, and its rest was not read.
    TooLarge,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// A `From ` line or another prologue before the first field. The span is empty if the header begins with a field.
    pub envelope: Span,
    pub span: Span,
    pub separator: Span,
    pub fields: Fields,
    /// End of the part of the header that all programs read in the same way: the start of the first stray line (neither
    /// a field nor a continuation), or the end of the section.
    pub agreed_end: usize,
    pub end: SectionEnd,
}

/// Kind of entity to which a header section belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Section {
    /// A message. An envelope line (`From `) may precede the fields.
    Message,
    /// A part of a multipart.
    Part,
    /// Fields in another text, such as a body. The section ends at the first line that is not a field.
    Text,
}

impl Header {
    /// Reads fields in a text: envelope and boundary lines have no special meaning, and the section ends at the first
    /// line that is not a field.
    pub fn read(original: &[u8], within: Span, limit: usize) -> Self {
        Self::read_until(original, within, Section::Text, limit, |_| false)
    }

    /// Reads a header section. `is_boundary` is called for each line that starts with `--`. `limit` is the maximum
    /// length of the section in bytes, because a message can consist of fields only. It is at most
    /// [`Fields::LONGEST`].
    pub(super) fn read_until(
        original: &[u8],
        within: Span,
        section: Section,
        limit: usize,
        mut is_boundary: impl FnMut(&[u8]) -> bool,
    ) -> Self {
        const USUAL: usize = 16;
        let start = within.start;
        let limit = limit.min(Fields::LONGEST);
        let mut header = Self::none_at(start);
        let is_message = section == Section::Message;
        let mut follow = (section == Section::Text).then_some(false);
        let mut first_stray = None;
        let mut is_stray = false;
        if is_message {
            header.fields.reserve(USUAL);
        }
        header.envelope = match section {
            Section::Message => prologue(original, within),
            Section::Part | Section::Text => Span::empty_at(start),
        };
        let mut at = header.envelope.end;
        for line in SpanLines::new(original, Span::new(at, within.end)) {
            let bytes = line.content.of(original);
            match bytes.first() {
                None => {
                    header.separator = line.whole;
                    break;
                }
                // A line that begins with a space or tab continues the line before it. If that line is not a field,
                // both are skipped.
                Some(b' ' | b'\t') if is_stray => {}
                Some(b' ' | b'\t') if !header.fields.is_empty() => {
                    header.fields.extend_last(line.whole.end);
                }
                Some(b' ' | b'\t') => header.fields.push(line.whole),
                Some(_) if bytes.starts_with(b"--") && is_boundary(bytes) => {
                    header.end = SectionEnd::Boundary;
                    break;
                }
                Some(_) => match is_field(original, line) {
                    true => {
                        header.fields.push(line.whole);
                        is_stray = false;
                    }
                    false if at == start && is_message && is_from_line(bytes) => {
                        header.envelope = line.whole;
                    }
                    false => {
                        let is_among = !header.fields.is_empty() || is_from_line(bytes);
                        let rest = Span::new(at, within.end.min(start.saturating_add(limit)));
                        let follow = follow.get_or_insert_with(|| {
                            is_among && fields_follow(original, rest, &mut is_boundary)
                        });
                        if !*follow {
                            header.end = SectionEnd::Unseparated;
                            break;
                        }
                        first_stray.get_or_insert(at);
                        is_stray = true;
                    }
                },
            }
            at = line.whole.end;
            if at - start > limit {
                header.end = SectionEnd::TooLarge;
                break;
            }
        }
        header.span = Span::new(start, at);
        header.agreed_end = first_stray.unwrap_or(at);
        if header.separator.is_empty() {
            header.separator = Span::empty_at(at);
        }
        header
    }

    pub fn of_message(message: &[u8], limit: usize) -> Self {
        let within = Span::new(0, message.len());
        Self::read_until(message, within, Section::Message, limit, |_| false)
    }

    pub fn none_at(start: usize) -> Self {
        Self {
            envelope: Span::empty_at(start),
            span: Span::empty_at(start),
            separator: Span::empty_at(start),
            fields: Fields::none_at(start),
            agreed_end: start,
            end: SectionEnd::Regular,
        }
    }

    pub fn body_start(&self) -> usize {
        self.separator.end
    }
}

/// Returns the prologue of a message, if it is more than a single separator. The separator is found line by line.
fn prologue(original: &[u8], within: Span) -> Span {
    let bytes = within.of(original);
    let found = match within.start {
        0 => Prologue::of(bytes),
        _ => Prologue::of_enclosed(bytes),
    };
    let length = found
        .filter(|it| !it.is_separators)
        .map_or(0, |it| it.length);
    Span::new(within.start, within.start + length)
}

/// Returns whether the field contains a NUL or a CR without LF, which some programs read as a line ending.
pub fn has_control_character(field: &[u8]) -> bool {
    memchr::memchr2_iter(b'\r', 0, field).any(|at| field.get(at..at + 2) != Some(b"\r\n"))
}

/// Returns whether the header continues after a stray line, which is not a field. The stray line could also be the start
/// of the body, if the empty line before the body is missing. The header continues only if the lines up to the next empty
/// line look like fields of mail: at least as many fields as other lines, and among them one of the usual fields of mail,
/// or no other lines except `From ` and `>From ` lines.
fn fields_follow(original: &[u8], rest: Span, is_boundary: &mut impl FnMut(&[u8]) -> bool) -> bool {
    const OF_MAIL: [&str; 16] = [
        "from",
        "to",
        "cc",
        "subject",
        "date",
        "received",
        "message-id",
        "return-path",
        "delivered-to",
        "reply-to",
        "sender",
        "mime-version",
        "x-mozilla-status",
        "content-type",
        "content-transfer-encoding",
        "content-disposition",
    ];
    let within = Span::new(
        rest.start,
        rest.end.min(rest.start.saturating_add(BEHIND_HEADER)),
    );
    let (mut fields, mut others, mut is_of_mail) = (0_usize, 0_usize, false);
    for line in SpanLines::new(original, within) {
        let bytes = line.content.of(original);
        match bytes.first() {
            None => break,
            Some(b' ' | b'\t') => continue,
            Some(b'-') if bytes.starts_with(b"--") && is_boundary(bytes) => break,
            Some(_) if is_from_line(bytes) => continue,
            Some(_) if !is_field(original, line) => others += 1,
            Some(_) => {
                let name = Field::of(original, line.whole).name.of(original);
                fields += 1;
                is_of_mail |= OF_MAIL
                    .iter()
                    .any(|it| name.eq_ignore_ascii_case(it.as_bytes()));
            }
        }
    }
    fields > 0 && fields >= others && (is_of_mail || others == 0)
}

fn is_field(original: &[u8], line: SpanLine) -> bool {
    let bytes = line.content.of(original);
    let name = memchr(b':', bytes).and_then(|colon| bytes.get(..colon));
    // A name is a single word. `From x@y Sat Jan  1 00:00:00` has a colon, but the text before it is not a name.
    let is_word = |name: &[u8]| !name.iter().any(|&byte| byte <= b' ' || byte == 0x7f);
    name.is_some_and(|name| is_word(name.trim_ascii_end()))
}

/// Returns whether the first line is a header field, or an envelope line with a field after it.
pub(super) fn begins_with_field(
    original: &[u8],
    within: Span,
    is_boundary: impl Fn(&[u8]) -> bool,
) -> bool {
    let mut lines = SpanLines::new(original, within);
    let is_envelope_line = |line: &SpanLine| is_from_line(line.content.of(original));
    let first = match lines.next() {
        Some(line) if is_envelope_line(&line) => lines.next(),
        line => line,
    };
    first.is_some_and(|line| is_field(original, line) && !is_boundary(line.content.of(original)))
}

/// Removes folds (RFC 5322 §2.2.3) and surrounding white space.
pub fn unfold(value: &[u8]) -> Vec<u8> {
    let trimmed = value.trim_ascii();
    if memchr::memchr2(b'\r', b'\n', trimmed).is_none() {
        return trimmed.to_vec();
    }
    let is_text = |byte: &u8| !matches!(byte, b'\r' | b'\n');
    trimmed.iter().copied().filter(is_text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Header {
        let within = Span::new(0, bytes.len());
        Header::read_until(bytes, within, Section::Message, 1 << 20, |line| {
            line == b"--b"
        })
    }

    #[test]
    fn fields_tile_their_section() {
        let mail =
            b"From a Sat Jan  1 00:00:00 2000\r\nA: 1\r\nB :\r\n 2\r\n\t3\r\n\r\nbody: no\r\n";
        let header = read(mail);
        assert_eq!(
            header.envelope.of(mail),
            b"From a Sat Jan  1 00:00:00 2000\r\n"
        );
        let fields: Vec<Field> = header.fields.iter(mail).collect();
        assert_eq!(fields.len(), 2);
        assert_eq!(fields[0].whole.end, fields[1].whole.start);
        assert_eq!(fields[1].name.of(mail), b"B");
        assert_eq!(fields[1].value.of(mail), b"\r\n 2\r\n\t3");
        assert_eq!(header.separator.of(mail), b"\r\n");
        assert_eq!(&mail[header.body_start()..], b"body: no\r\n");
    }

    #[test]
    fn a_line_without_a_colon_starts_the_body() {
        let mail = b"A: 1\nno field here\n\nx";
        let header = read(mail);
        assert_eq!(header.end, SectionEnd::Unseparated);
        assert_eq!(&mail[header.body_start()..], b"no field here\n\nx");
    }

    #[test]
    fn stray_line_among_fields_is_passed_over_and_new_fields_are_put_before_it() {
        for stray in [
            ">From - Mon Jan 26 17:20:56 2009\n",
            "From - Mon Jan 26 17:20:56 2009\n",
            ">From x\n folded: no field\n>From y\n",
            "no field here\n",
            "a name with blanks: x\n",
            "no field here\n\tfolded: no field\nnor here\n",
        ] {
            let text = format!("A: 1\n{stray}Subject: s\n t\nTo: x\n\nbody: no\n");
            let mail = text.as_bytes();
            let header = read(mail);
            assert_eq!(header.end, SectionEnd::Regular, "{stray}");
            let fields: Vec<&[u8]> = header
                .fields
                .iter(mail)
                .map(|it| it.whole.of(mail))
                .collect();
            assert_eq!(
                fields,
                [&b"A: 1\n"[..], b"Subject: s\n t\n", b"To: x\n"],
                "{stray}"
            );
            assert_eq!(header.fields.value(mail, "Subject"), Some(&b" s\n t"[..]));
            assert_eq!(header.fields.value(mail, "folded"), None);
            assert_eq!(&mail[header.agreed_end..][..stray.len()], stray.as_bytes());
            assert_eq!(&mail[header.body_start()..], b"body: no\n");
        }
    }

    #[test]
    fn body_without_an_empty_line_before_it_is_no_header() {
        for body in [
            "Hello Bob,\nplease come\nNote: now\n\nx",
            "<html>\n<style>\na:hover {}\n</style>\n\nx",
            "text\n--b\nContent-Type: text/html\n\nx",
            "text\n\nSubject: x\n",
            "From here on\nwe walk\n\nTo: x\n",
        ] {
            let mail = format!("A: 1\n{body}");
            let header = read(mail.as_bytes());
            assert_eq!(header.end, SectionEnd::Unseparated, "{body}");
            assert_eq!(&mail[header.body_start()..], body);
            assert_eq!(header.agreed_end, header.span.end);
        }
    }

    #[test]
    fn a_boundary_line_ends_the_section_even_with_a_colon_in_it() {
        let mail = b"A: 1\n--b\nB: 2\n";
        assert_eq!(read(mail).end, SectionEnd::Boundary);
        assert_eq!(read(b"A: 1\n--c:\nB: 2\n").fields.len(), 3);
    }

    #[test]
    fn a_section_above_the_limit_is_not_read_to_its_end() {
        let mail = b"A: 1\nB: 2\nC: 3\n\nbody";
        let header = Header::read(mail, Span::new(0, mail.len()), 7);
        assert_eq!(header.end, SectionEnd::TooLarge);
        assert_eq!(header.fields.len(), 2);
    }
}
