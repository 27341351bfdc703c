//! Header sections as spans: RFC 5322 §2.2, and what stands in real mail.
//!
//! A field starts at a line `name:`; lines that start with a blank continue it. The section ends
//! at an empty line, at a line that is neither, at a boundary line of an enclosing multipart, or
//! at the end. Nothing is unfolded, decoded or copied here.
//!
//! Deviations from RFC 5322, because mail has them:
//! * blanks between the name and the colon are accepted (RFC 822 had them);
//! * names may hold octets above 127;
//! * a `From ` or `>From ` line in front of the first field belongs to the section ([`Header::envelope`]);
//! * a continuation line before any field is a field without a name;
//! * a line of blanks only continues the field above it, it does not end the section.

use mail_parser::HeaderValue;
use mail_parser::parsers::MessageStream;
use memchr::{memchr, memmem};

use crate::span::{Line, Lines, Span};

/// One header field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// The name, without blanks before the colon; empty for a stray continuation line.
    pub name: Span,
    /// Everything behind the colon up to the terminator of the last line, folds included.
    pub value: Span,
    /// The field with its terminator; fields tile their section.
    pub whole: Span,
}

impl Field {
    /// Whether the field has this name, case-blind.
    #[must_use]
    pub fn is(&self, original: &[u8], name: &str) -> bool {
        self.name.len() == name.len()
            && self.name.of(original).eq_ignore_ascii_case(name.as_bytes())
    }
}

/// Why a section ended where it did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// At an empty line, or where the input ended.
    Regular,
    /// At a line that is no field: the body starts with it.
    Unseparated,
    /// At a boundary line of an enclosing multipart.
    Boundary,
    /// At the limit: what follows was not read.
    TooLarge,
}

/// A header section.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The `From ` line in front, if there is one, else empty.
    pub envelope: Span,
    /// Envelope line and fields, without the separator.
    pub span: Span,
    /// The empty line behind the fields; empty if there is none.
    pub separator: Span,
    /// The fields in their order.
    pub fields: Vec<Field>,
    /// Why the section ended.
    pub end: End,
}

/// Whether an envelope (`From `) line may stand in front.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Front {
    /// The start of a message.
    Message,
    /// The start of a body part.
    Part,
}

impl Header {
    /// Reads the section that starts at `within.start` and ends at `within.end` at the latest.
    ///
    /// `is_boundary` is asked, for every line that starts with `--`, whether it ends the part.
    /// `limit` is the largest section that is read, in octets: it fends off messages that are
    /// nothing but fields.
    pub fn read(
        original: &[u8],
        within: Span,
        front: Front,
        limit: usize,
        mut is_boundary: impl FnMut(&[u8]) -> bool,
    ) -> Self {
        let start = within.start;
        let mut header = Self {
            envelope: Span::empty_at(start),
            span: Span::empty_at(start),
            separator: Span::empty_at(start),
            fields: Vec::new(),
            end: End::Regular,
        };
        let mut at = start;
        for line in Lines::new(original, within) {
            let bytes = line.content.of(original);
            match bytes.first() {
                None => {
                    header.separator = line.whole;
                    break;
                }
                Some(b' ' | b'\t') => match header.fields.last_mut() {
                    Some(field) => {
                        field.value.end = line.content.end;
                        field.whole.end = line.whole.end;
                    }
                    None => header.fields.push(Field {
                        name: Span::empty_at(line.content.start),
                        value: line.content,
                        whole: line.whole,
                    }),
                },
                Some(_) if bytes.starts_with(b"--") && is_boundary(bytes) => {
                    header.end = End::Boundary;
                    break;
                }
                Some(_) => match read_field(original, line) {
                    Some(field) => header.fields.push(field),
                    None if at == start && front == Front::Message && is_envelope(bytes) => {
                        header.envelope = line.whole;
                    }
                    None => {
                        header.end = End::Unseparated;
                        break;
                    }
                },
            }
            at = line.whole.end;
            if at - start > limit {
                header.end = End::TooLarge;
                break;
            }
        }
        header.span = Span::new(start, at);
        if header.separator.is_empty() {
            header.separator = Span::empty_at(at);
        }
        header
    }

    /// Where the body starts.
    #[must_use]
    pub fn body_start(&self) -> usize {
        self.separator.end
    }
}

/// The first field of that name, case-blind. When a message repeats a field that must be unique,
/// the first is what most readers go by.
#[must_use]
pub fn first<'f>(original: &[u8], fields: &'f [Field], name: &str) -> Option<&'f Field> {
    fields.iter().find(|field| field.is(original, name))
}

fn is_envelope(line: &[u8]) -> bool {
    line.starts_with(b"From ") || line.starts_with(b">From ")
}

fn read_field(original: &[u8], line: Line) -> Option<Field> {
    let bytes = line.content.of(original);
    let colon = memchr(b':', bytes)?;
    let padded = bytes.get(..colon)?;
    let name = padded.trim_ascii_end();
    // A name is one word. `From x@y Sat Jan  1 00:00:00` has a colon too, but no name before it.
    if name.iter().any(|&byte| byte <= b' ' || byte == 0x7f) {
        return None;
    }
    let start = line.content.start;
    Some(Field {
        name: Span::new(start, start + name.len()),
        value: Span::new(start + colon + 1, line.content.end),
        whole: line.whole,
    })
}

/// A field value with its folds undone (the line ends removed, RFC 5322 §2.2.3) and outer blanks
/// cut off.
#[must_use]
pub fn unfold(value: &[u8]) -> Vec<u8> {
    let unfolded: Vec<u8> = value
        .iter()
        .copied()
        .filter(|byte| !matches!(byte, b'\r' | b'\n'))
        .collect();
    unfolded.trim_ascii().to_vec()
}

/// Text with its encoded words undone (RFC 2047), which also stand, against its §5, in quoted
/// parameters. Text of more than 4096 octets is given as it is: the reader starts anew at every `=?`
/// that is never closed.
#[must_use]
pub fn decoded_words(text: &[u8]) -> String {
    const LONGEST: usize = 4096;
    if text.len() > LONGEST || memmem::find(text, b"=?").is_none() {
        return String::from_utf8_lossy(text).into_owned();
    }
    let line = [text, b"\n"].concat();
    match MessageStream::new(&line).parse_unstructured() {
        HeaderValue::Text(decoded) => decoded.into_owned(),
        _ => String::from_utf8_lossy(text).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Header {
        let within = Span::new(0, bytes.len());
        Header::read(bytes, within, Front::Message, 1 << 20, |line| {
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
        assert_eq!(header.fields.len(), 2);
        assert_eq!(header.fields[0].whole.end, header.fields[1].whole.start);
        assert_eq!(header.fields[1].name.of(mail), b"B");
        assert_eq!(header.fields[1].value.of(mail), b"\r\n 2\r\n\t3");
        assert_eq!(header.separator.of(mail), b"\r\n");
        assert_eq!(&mail[header.body_start()..], b"body: no\r\n");
    }

    #[test]
    fn a_line_without_a_colon_starts_the_body() {
        let mail = b"A: 1\nno field here\n\nx";
        let header = read(mail);
        assert_eq!(header.end, End::Unseparated);
        assert_eq!(&mail[header.body_start()..], b"no field here\n\nx");
    }

    #[test]
    fn a_boundary_line_ends_the_section_even_with_a_colon_in_it() {
        let mail = b"A: 1\n--b\nB: 2\n";
        assert_eq!(read(mail).end, End::Boundary);
        assert_eq!(read(b"A: 1\n--c:\nB: 2\n").fields.len(), 3);
    }

    #[test]
    fn a_section_above_the_limit_is_not_read_to_its_end() {
        let mail = b"A: 1\nB: 2\nC: 3\n\nbody";
        let header = Header::read(mail, Span::new(0, mail.len()), Front::Part, 7, |_| false);
        assert_eq!(header.end, End::TooLarge);
        assert_eq!(header.fields.len(), 2);
    }

    #[test]
    fn encoded_words_are_undone_and_other_text_is_not() {
        for (text, decoded) in [
            (
                "=?utf-8?B?QmVyaWNodCBmw7xyLnVybA==?=",
                "Bericht f\u{fc}r.url",
            ),
            (
                "=?iso-8859-1?Q?f=FCr?= =?us-ascii?Q?_x?=.url",
                "f\u{fc}r x .url",
            ),
            ("a =? b.url", "a =? b.url"),
            ("Report (1).url", "Report (1).url"),
            ("", ""),
        ] {
            assert_eq!(decoded_words(text.as_bytes()), decoded);
        }
    }
}
