//! Normalises the head of each response before ureq parses it, because browsers and curl accept more than ureq does.
//!
//! * A folded field becomes one line (RFC 9112 §5.2). Blanks before the colon are removed (§5.1).
//! * A line without a colon and a field whose name is empty or is not a token are removed, with the lines that continue them.
//! * Control characters in a value become spaces (RFC 9110 §5.5).
//! * The coding `identity`, which changes nothing, is removed from Transfer-Encoding. RFC 9112 no longer lists the coding, but
//!   old servers send it.
//! * ureq accepts 128 fields. If a response has more, fields that embody does not use are removed, the last ones first.
//!
//! The fields that delimit the content are repaired only where all readers agree on the result. If their names or values
//! contain anything else, the head is passed on unchanged and ureq rejects it: a wrong length would make bytes of the content
//! look like the next response of the connection. For the same reason, a connection is not reused if bytes follow a response.
//!
//! Recordings contain the head as the server sent it, because [`super::tap`] is below this layer.

use std::fmt;

use ureq::http::{HeaderName, header};
use ureq::unversioned::transport::{Buffers, NextTimeout, Transport};

use super::exchange::MEMENTO_DATETIME;
use crate::span::split_once;

/// Maximum length of the head of a response in bytes, with the interim responses before it. curl has the limit 300 KiB.
pub(super) const LONGEST_HEAD: usize = 300 << 10;

/// Maximum number of fields of a response that ureq accepts.
const MOST_FIELDS: usize = 128;

/// Maximum length of a field name in bytes. The crate `http` rejects a response if a name has 64 KiB or more.
const LONGEST_NAME: usize = 1 << 10;

const FRAMING: [HeaderName; 2] = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING];

/// Fields that embody or ureq evaluates.
const USED: [&str; 16] = [
    "age",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "date",
    "etag",
    "expires",
    "last-modified",
    "location",
    MEMENTO_DATETIME,
    "pragma",
    "retry-after",
    "transfer-encoding",
    "vary",
];

/// A transport whose responses begin with normalised heads. The content is passed on by the buffers of the transport below.
pub(super) struct HeadTransport {
    transport: Box<dyn Transport>,
    head: HeadBuffer,
    /// Bytes of an incomplete head. `None` after the head, until the next request.
    incomplete: Option<Incomplete>,
}

#[derive(Default)]
struct Incomplete {
    bytes: Vec<u8>,
    /// Length of the empty lines and interim responses (RFC 9110 §15.2) before this head, in bytes.
    before: usize,
}

/// A normalised head that ureq has not read yet.
#[derive(Default)]
struct HeadBuffer {
    bytes: Vec<u8>,
    /// Whether ureq has not seen the head yet, so that it need not wait for more bytes.
    is_new: bool,
}

impl HeadTransport {
    pub(super) fn new(transport: Box<dyn Transport>) -> Self {
        Self {
            transport,
            head: HeadBuffer::default(),
            incomplete: None,
        }
    }

    /// Moves the head from the transport's buffer. Leaves the buffer empty, unless the head is complete.
    fn take_head(&mut self) -> Result<(), ureq::Error> {
        while let Some(incomplete) = &mut self.incomplete {
            let buffers = self.transport.buffers();
            let input = buffers.input();
            if input.is_empty() {
                return Ok(());
            }
            let known = incomplete.bytes.len();
            // RFC 9112 §2.2: empty lines before the start line are ignored.
            let blank = match known {
                0 => input.iter().take_while(|it| is_line_end(**it)).count(),
                _ => 0,
            };
            incomplete.bytes.extend(input.iter().skip(blank));
            let end = head_end(&incomplete.bytes, known);
            incomplete.bytes.truncate(end.unwrap_or(usize::MAX));
            let taken = incomplete.bytes.len() - known;
            buffers.input_consume(blank.saturating_add(taken));
            incomplete.before = incomplete.before.saturating_add(blank);
            let length = incomplete.before.saturating_add(incomplete.bytes.len());
            if length > LONGEST_HEAD {
                return Err(ureq::Error::LargeResponseHeader(length, LONGEST_HEAD));
            }
            // Something that is not HTTP need not have an empty line, so waiting for one would only delay the error.
            let is_http = begins_like_http(&incomplete.bytes);
            if is_http && end.is_none() {
                continue;
            }
            if is_http && is_interim(&incomplete.bytes) {
                incomplete.bytes.clear();
                incomplete.before = length;
                continue;
            }
            let head = std::mem::take(&mut incomplete.bytes);
            self.head.bytes = normalized(&head).unwrap_or(head);
            self.head.is_new = true;
            self.incomplete = None;
        }
        Ok(())
    }
}

impl Transport for HeadTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        if self.head.bytes.is_empty() {
            self.transport.buffers()
        } else {
            &mut self.head
        }
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.incomplete.get_or_insert_default();
        self.transport.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        let has_come = self.transport.await_input(timeout)?;
        self.take_head()?;
        Ok(has_come)
    }

    fn is_open(&mut self) -> bool {
        // Bytes after a response belong to no request, and would otherwise be read as the next response.
        self.head.bytes.is_empty()
            && self.transport.buffers().input().is_empty()
            && self.transport.is_open()
    }

    fn is_tls(&self) -> bool {
        self.transport.is_tls()
    }
}

impl fmt::Debug for HeadTransport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HeadTransport")
            .finish_non_exhaustive()
    }
}

/// No output is possible here: ureq sends nothing between the head of a response and its end.
impl Buffers for HeadBuffer {
    fn output(&mut self) -> &mut [u8] {
        &mut []
    }

    fn input(&self) -> &[u8] {
        &self.bytes
    }

    fn input_append_buf(&mut self) -> &mut [u8] {
        &mut []
    }

    fn input_appended(&mut self, _amount: usize) {}

    fn input_consume(&mut self, amount: usize) {
        self.is_new = false;
        self.bytes.drain(..amount.min(self.bytes.len()));
    }

    fn tmp_and_output(&mut self) -> (&mut [u8], &mut [u8]) {
        (&mut [], &mut [])
    }

    fn can_use_input(&self) -> bool {
        self.is_new
    }
}

/// Returns the end of the head: after its first empty line. The first `known` bytes have been searched before.
fn head_end(bytes: &[u8], known: usize) -> Option<usize> {
    let mut ends = memchr::memchr_iter(b'\n', bytes.get(known..)?).map(|at| known + at);
    ends.find_map(|end| {
        let line = bytes.get(..end)?;
        let before = line.strip_suffix(b"\r").unwrap_or(line);
        before.ends_with(b"\n").then_some(end + 1)
    })
}

fn is_line_end(octet: u8) -> bool {
    matches!(octet, b'\r' | b'\n')
}

fn begins_like_http(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .zip(b"HTTP/1.")
        .all(|(read, known)| read == known)
}

/// Whether the head belongs to an interim response (RFC 9110 §15.2). After 101, the connection has another protocol.
fn is_interim(head: &[u8]) -> bool {
    let code = status(head).map(|(_, code)| code);
    code.is_some_and(|code| code.starts_with(b"1") && code != b"101")
}

/// Returns the version and the status code of a status line.
fn status(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (version, rest) = split_once(b' ', line)?;
    let (code, reason) = rest.trim_ascii_start().split_at_checked(3)?;
    let is_end = reason.first().is_none_or(u8::is_ascii_whitespace);
    (is_end && code.iter().all(u8::is_ascii_digit)).then_some((version, code))
}

struct HeadField {
    name: Vec<u8>,
    value: Vec<u8>,
}

impl HeadField {
    fn is(&self, name: &HeaderName) -> bool {
        self.name.eq_ignore_ascii_case(name.as_str().as_bytes())
    }

    fn is_used(&self) -> bool {
        let is_it = |name: &&str| self.name.eq_ignore_ascii_case(name.as_bytes());
        USED.iter().any(is_it)
    }
}

/// Returns the head in the form that ureq parses. Returns `None` if the head must be rejected.
fn normalized(head: &[u8]) -> Option<Vec<u8>> {
    let raw_lines = head.split(|octet| *octet == b'\n');
    let mut lines = raw_lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let (version, code) = status(lines.next()?)?;
    let mut fields = fields(lines)?;
    for field in &mut fields {
        let is_framing = FRAMING.iter().any(|name| field.is(name));
        for octet in &mut field.value {
            if octet.is_ascii_control() && *octet != b'\t' {
                if is_framing {
                    return None;
                }
                *octet = b' ';
            }
        }
    }
    remove_identity(&mut fields);
    choose(&mut fields);
    let mut normal = [version, b" ", code, b" \r\n"].concat();
    for HeadField { name, value } in &fields {
        for piece in [name, &b": "[..], value.trim_ascii(), b"\r\n"] {
            normal.extend_from_slice(piece);
        }
    }
    normal.extend_from_slice(b"\r\n");
    Some(normal)
}

fn fields<'h>(lines: impl Iterator<Item = &'h [u8]>) -> Option<Vec<HeadField>> {
    let mut fields: Vec<HeadField> = Vec::new();
    let mut is_continued = false;
    for line in lines {
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            if let Some(field) = fields.last_mut().filter(|_| is_continued) {
                field.value.push(b' ');
                field.value.extend_from_slice(line.trim_ascii());
            }
            continue;
        }
        is_continued = false;
        let Some((name, value)) = split_once(b':', line) else {
            continue;
        };
        let name = name.trim_ascii_end();
        if !name.is_empty() && name.len() <= LONGEST_NAME && name.iter().all(|it| is_token(*it)) {
            is_continued = true;
            fields.push(HeadField {
                name: name.to_vec(),
                value: value.trim_ascii().to_vec(),
            });
        } else if resembles_framing(name) {
            return None;
        }
    }
    Some(fields)
}

/// Whether a lenient reader would take the malformed name for a framing field, ignoring the wrong bytes in it.
fn resembles_framing(name: &[u8]) -> bool {
    let token: Vec<u8> = name.iter().copied().filter(|it| is_token(*it)).collect();
    let is_it = |known: &HeaderName| token.eq_ignore_ascii_case(known.as_str().as_bytes());
    FRAMING.iter().any(is_it)
}

fn is_token(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&octet)
}

/// Removes the coding `identity` from the Transfer-Encoding field. If the header has more than one such field, they stay
/// unchanged, because their meaning is doubtful.
fn remove_identity(fields: &mut Vec<HeadField>) {
    let is_coding = |field: &HeadField| field.is(&header::TRANSFER_ENCODING);
    let Some(at) = fields.iter().position(is_coding) else {
        return;
    };
    let Some(field) = fields.get(at) else {
        return;
    };
    let codings = field.value.split(|octet| *octet == b',');
    let kept: Vec<&[u8]> = codings
        .map(<[u8]>::trim_ascii)
        .filter(|coding| !coding.eq_ignore_ascii_case(b"identity"))
        .collect();
    let value = kept.join(&b", "[..]);
    let is_empty = kept.is_empty();
    if fields.iter().filter(|field| is_coding(field)).count() > 1 {
        return;
    }
    if is_empty {
        fields.remove(at);
    } else if let Some(field) = fields.get_mut(at) {
        field.value = value;
    }
}

/// Removes fields that are not used until ureq accepts the number of fields.
fn choose(fields: &mut Vec<HeadField>) {
    let Some(mut excess) = fields.len().checked_sub(MOST_FIELDS) else {
        return;
    };
    // One Set-Cookie is kept, because a response with this field is private.
    let cookie = fields
        .iter()
        .position(|field| field.is(&header::SET_COOKIE));
    let mut at = fields.len();
    fields.reverse();
    fields.retain(|field| {
        at -= 1;
        let is_removed = excess > 0 && cookie != Some(at) && !field.is_used();
        excess -= usize::from(is_removed);
        !is_removed
    });
    fields.reverse();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(fields: &str) -> Option<String> {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let normal = String::from_utf8(normalized(head.as_bytes())?).unwrap();
        let fields = normal.strip_prefix("HTTP/1.1 200 \r\n").unwrap();
        Some(fields.strip_suffix("\r\n").unwrap().to_owned())
    }

    #[test]
    fn odd_fields_become_fields_that_ureq_parses() {
        for (sent, expected) in [
            ("A: b\r\nC:d\n", "A: b\r\nC: d\r\n"),
            ("A: b,\r\n c\r\n\t d\r\n", "A: b, c d\r\n"),
            ("A:\r\n b\r\n \r\nC: d\r\n", "A: b\r\nC: d\r\n"),
            (" no: field\r\nA: b\r\n", "A: b\r\n"),
            ("A : b\r\nC\t: d\r\n", "A: b\r\nC: d\r\n"),
            (
                "PHP Warning: x\r\n  y\r\nno field\r\n z\r\n: e\r\nA: b\r\n",
                "A: b\r\n",
            ),
            ("A: b\rc\x01d\x7f\r\n", "A: b c d\r\n"),
            ("Content-Length : 5\r\n", "Content-Length: 5\r\n"),
            ("Transfer-Encoding: Identity\r\nA: b\r\n", "A: b\r\n"),
            (
                "Transfer-Encoding: identity, chunked\r\n",
                "Transfer-Encoding: chunked\r\n",
            ),
            // ureq must reject both: the lengths differ or are malformed.
            (
                "Content-Length: 5\r\nContent-Length : 6\r\n",
                "Content-Length: 5\r\nContent-Length: 6\r\n",
            ),
            ("Content-Length: 5\r\n 6\r\n", "Content-Length: 5 6\r\n"),
        ] {
            assert_eq!(normal(sent).as_deref(), Some(expected), "{sent:?}");
        }
    }

    #[test]
    fn malformed_framing_field_is_left_to_ureq() {
        for fields in [
            "Content-Length\0: 5\r\n",
            "Content Length: 5\r\nContent-Leng th: 5\r\n",
            "Content-Length: 5\0\r\n",
            "\x0bTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\x0b\r\n",
        ] {
            assert_eq!(normal(fields), None, "{fields:?}");
        }
    }

    #[test]
    fn excess_fields_are_removed_except_those_that_are_used() {
        let many = "X: y\r\nSet-Cookie: c=1\r\n".repeat(1000);
        let normal = normal(&format!("{many}Location: /\r\nContent-Length: 5\r\n")).unwrap();
        assert_eq!(normal.lines().count(), MOST_FIELDS);
        assert!(normal.contains("Set-Cookie") && normal.ends_with("Content-Length: 5\r\n"));
        assert!(normal.contains("Location: /\r\n"));
    }

    #[test]
    fn head_ends_at_the_same_place_however_it_arrives() {
        for (sent, end) in [
            ("HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody", 25),
            ("HTTP/1.1 200 OK\n\nbody", 17),
            ("HTTP/1.1 200 OK\r\n \r\n\nbody", 21),
        ] {
            for known in 0..end {
                assert_eq!(head_end(&sent.as_bytes()[..known], 0), None);
                assert_eq!(head_end(sent.as_bytes(), known), Some(end), "{sent:?}");
            }
        }
    }
}
