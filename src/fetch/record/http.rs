//! Finds in the bytes of an HTTP response (RFC 9112) where the head and the content end, and whether all of it has arrived.
//!
//! Interim responses (RFC 9110 §15.2) and bytes after the end are skipped. The length of the content is determined as `fetch`
//! does it: by a single `chunked` coding, by a Content-Length field, or by the end of the connection.

use crate::span::split_once;

/// Maximum length of the head of a response, in bytes. If a head is longer, parsing stops, and the end of the response is
/// unknown.
const LONGEST_HEAD: usize = 1 << 20;

/// Maximum length of a line with the size of a chunk, or of a trailer field, in bytes.
const LONGEST_LINE: usize = 64 << 10;

/// A parser for a response that arrives in pieces.
#[derive(Debug)]
pub(super) struct ResponseParser {
    /// Bytes of the head that have arrived so far, including the empty line at its end.
    pub(super) head: Vec<u8>,
    /// Whether the request was HEAD. If so, the response has no content, even if a field declares a length.
    is_head: bool,
    stage: ParserStage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ParserStage {
    Head,
    /// Number of bytes of the content that have not arrived yet.
    Length(u64),
    /// Inside the line that contains the size of the next chunk.
    Size {
        size: u64,
        line: usize,
        is_ended: bool,
    },
    Chunk(u64),
    /// Inside the line ending that follows the data of a chunk.
    ChunkEnd,
    /// Inside a line of the trailer fields, which follow the last chunk. The number is the length of the line so far, in bytes.
    Trailer(usize),
    UntilClosed,
    /// The response is malformed, so it is unknown where it ends.
    Unknown,
    Whole,
}

const SIZE: ParserStage = ParserStage::Size {
    size: 0,
    line: 0,
    is_ended: false,
};

impl ResponseParser {
    pub(super) fn new(is_head: bool) -> Self {
        Self {
            head: Vec::new(),
            is_head,
            stage: ParserStage::Head,
        }
    }

    pub(super) fn has_head(&self) -> bool {
        self.stage != ParserStage::Head
    }

    pub(super) fn is_whole(&self) -> bool {
        self.stage == ParserStage::Whole
    }

    /// Handles the end of the connection: a response without a length is complete now.
    pub(super) fn close(&mut self) {
        if self.stage == ParserStage::UntilClosed {
            self.stage = ParserStage::Whole;
        }
    }

    pub(super) fn status(&self) -> Option<u16> {
        let line = self.head.strip_prefix(b"HTTP/")?;
        let mut words = line.split(|octet| *octet == b' ');
        let word = words.nth(1)?.get(..3)?;
        std::str::from_utf8(word).ok()?.parse().ok()
    }

    /// Returns the value of the first field with this name.
    pub(super) fn value(&self, name: &str) -> Option<&[u8]> {
        let lines = self.head.split(|octet| *octet == b'\n').skip(1);
        lines
            .filter_map(|line| {
                let (known, value) = split_once(b':', line)?;
                let is_it = known.trim_ascii_end().eq_ignore_ascii_case(name.as_bytes());
                is_it.then(|| value.trim_ascii())
            })
            .next()
    }

    /// Returns whether the content is already compressed, so that compressing it again would not make it smaller.
    pub(super) fn is_packed(&self) -> bool {
        if self.value("content-encoding").is_some() {
            return true;
        }
        let named = self
            .value("content-type")
            .unwrap_or_default()
            .to_ascii_lowercase();
        let types: [&[u8]; 10] = [
            b"image/jpeg",
            b"image/png",
            b"image/gif",
            b"image/webp",
            b"image/avif",
            b"video/",
            b"audio/",
            b"font/woff",
            b"application/zip",
            b"application/gzip",
        ];
        types.iter().any(|start| named.starts_with(start))
    }

    /// Adds the next bytes of the response. Returns the bytes among them that belong to the content, including the framing of
    /// chunks.
    pub(super) fn take<'o>(&mut self, octets: &'o [u8]) -> &'o [u8] {
        let mut rest = octets;
        while self.stage == ParserStage::Head && !rest.is_empty() {
            let known = self.head.len();
            self.head.extend_from_slice(rest);
            let Some(end) = head_end(&self.head, known) else {
                if self.head.len() > LONGEST_HEAD {
                    self.stage = ParserStage::Unknown;
                }
                return &[];
            };
            self.head.truncate(end);
            rest = &rest[end - known..];
            match self.status() {
                Some(101) => self.stage = ParserStage::UntilClosed,
                Some(100..=199) => self.head.clear(),
                status => self.stage = self.content(status),
            }
        }
        let mut taken = 0;
        while let Some(octet) = rest.get(taken) {
            match self.stage {
                ParserStage::Whole | ParserStage::Head => break,
                ParserStage::UntilClosed | ParserStage::Unknown => taken = rest.len(),
                ParserStage::Length(left) | ParserStage::Chunk(left) => {
                    let here = (rest.len() - taken) as u64;
                    let part = here.min(left);
                    taken += usize::try_from(part).unwrap_or(0);
                    self.stage = match (self.stage, left - part) {
                        (ParserStage::Length(_), 0) => ParserStage::Whole,
                        (ParserStage::Length(_), left) => ParserStage::Length(left),
                        (_, 0) => ParserStage::ChunkEnd,
                        (_, left) => ParserStage::Chunk(left),
                    };
                }
                _ => {
                    taken += 1;
                    self.stage = framed(self.stage, *octet);
                }
            }
        }
        &rest[..taken]
    }

    /// Returns the state of the parser after the head. It depends on how the end of the content is marked.
    fn content(&self, status: Option<u16>) -> ParserStage {
        if self.is_head || matches!(status, Some(204 | 304)) {
            return ParserStage::Whole;
        }
        let coding = self.value("transfer-encoding");
        if let Some(coding) = coding.filter(|it| !it.eq_ignore_ascii_case(b"identity")) {
            return if coding.eq_ignore_ascii_case(b"chunked") {
                SIZE
            } else {
                ParserStage::UntilClosed
            };
        }
        let Some(length) = self.value("content-length") else {
            return ParserStage::UntilClosed;
        };
        let length = std::str::from_utf8(length).ok();
        match length.and_then(|length| length.parse().ok()) {
            Some(0) => ParserStage::Whole,
            Some(length) => ParserStage::Length(length),
            None => ParserStage::Unknown,
        }
    }
}

/// Returns the next state of the parser, after one more byte of the framing of chunks.
fn framed(stage: ParserStage, octet: u8) -> ParserStage {
    match (stage, octet) {
        (ParserStage::Size { size: 0, line, .. }, b'\n') if line > 0 => ParserStage::Trailer(0),
        (ParserStage::Size { size, .. }, b'\n') if size > 0 => ParserStage::Chunk(size),
        (ParserStage::Size { line, .. }, _) if line > LONGEST_LINE => ParserStage::Unknown,
        (
            ParserStage::Size {
                size,
                line,
                is_ended,
            },
            octet,
        ) => {
            let digit = char::from(octet).to_digit(16).filter(|_| !is_ended);
            match (digit, size.checked_mul(16)) {
                (Some(digit), Some(more)) => ParserStage::Size {
                    size: more.saturating_add(u64::from(digit)),
                    line: line + 1,
                    is_ended,
                },
                (Some(_), None) => ParserStage::Unknown,
                (None, _) if line == 0 => ParserStage::Unknown,
                (None, _) => ParserStage::Size {
                    size,
                    line: line + 1,
                    is_ended: true,
                },
            }
        }
        (ParserStage::ChunkEnd, b'\n') => SIZE,
        (ParserStage::ChunkEnd, b'\r') => ParserStage::ChunkEnd,
        (ParserStage::Trailer(0), b'\n') => ParserStage::Whole,
        (ParserStage::Trailer(_), b'\n') => ParserStage::Trailer(0),
        (ParserStage::Trailer(0), b'\r') => ParserStage::Trailer(0),
        (ParserStage::Trailer(line), _) if line < LONGEST_LINE => ParserStage::Trailer(line + 1),
        _ => ParserStage::Unknown,
    }
}

/// Returns the position after the empty line that ends a header, or `None` if the empty line has not arrived yet.
/// `known` is the number of bytes that an earlier call has searched already.
fn head_end(head: &[u8], known: usize) -> Option<usize> {
    let from = known.saturating_sub(3);
    let new = head.get(from..)?;
    let ends = memchr::memchr_iter(b'\n', new).map(|at| from + at);
    ends.filter_map(|at| {
        let behind = head.get(at + 1..)?;
        let length = [&b"\r\n"[..], b"\n"]
            .into_iter()
            .find(|end| behind.starts_with(end))?
            .len();
        Some(at + 1 + length)
    })
    .next()
}

/// Returns a copy of the request with the credentials replaced by `instead`, so that it can be recorded; the authentication
/// scheme is kept. Also returns whether anything was replaced.
pub(super) fn masked(request: &[u8], instead: &str) -> (Vec<u8>, bool) {
    let end = head_end(request, 0).unwrap_or(request.len());
    let (head, content) = request.split_at_checked(end).unwrap_or((request, &[]));
    let mut told = Vec::with_capacity(request.len());
    let mut is_masked = false;
    for line in head.split_inclusive(|octet| *octet == b'\n') {
        let (name, value) = split_once(b':', line).unwrap_or((line, &[]));
        let names = [&b"authorization"[..], b"proxy-authorization", b"cookie"];
        if !names.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            told.extend_from_slice(line);
            continue;
        }
        is_masked = true;
        let scheme = value.trim_ascii().split(u8::is_ascii_whitespace).next();
        told.extend_from_slice(name);
        told.extend_from_slice(b": ");
        told.extend_from_slice(scheme.unwrap_or_default());
        told.extend_from_slice(format!(" {instead}\r\n").as_bytes());
    }
    told.extend_from_slice(content);
    (told, is_masked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(octets: &[u8], is_head: bool, step: usize) -> (Vec<u8>, Vec<u8>, bool) {
        let mut answered = ResponseParser::new(is_head);
        let pieces = octets.chunks(step);
        let content = pieces
            .flat_map(|piece| answered.take(piece).to_vec())
            .collect();
        let is_whole = answered.is_whole();
        (answered.head, content, is_whole)
    }

    #[test]
    fn an_answer_ends_where_its_head_says() {
        type Row = (&'static [u8], bool, &'static [u8], &'static [u8], bool);
        let rows: [Row; 12] = [
            (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef", false, b"", b"abc", true),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", false, b"", b"ab", false),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", true, b"", b"", true),
            (b"HTTP/1.1 304 x\r\nContent-Length: 3\r\n\r\nabc", false, b"", b"", true),
            (b"HTTP/1.1 200 OK\ncontent-length:0\n\n", false, b"", b"", true),
            (b"HTTP/1.1 200 OK\r\n\r\nabc", false, b"", b"abc", false),
            (
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n1;x=0\r\na\r\n1A\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nA: b\r\n\r\nmore",
                false,
                b"",
                b"1;x=0\r\na\r\n1A\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nA: b\r\n\r\n",
                true,
            ),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", false, b"", b"0\r\n", false),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", false, b"", b"x\r\n", false),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
                false,
                b"",
                b"fffffffffffffffff\r\n",
                false,
            ),
            (
                b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
                false,
                b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n",
                b"a",
                true,
            ),
            (b"HTTP/1.1 200 OK\r\nContent-Le", false, b"", b"", false),
        ];
        for (octets, is_head, interim, content, is_whole) in rows {
            for step in [1, 2, 3, 7, octets.len()] {
                let (head, found, whole) = read(octets, is_head, step);
                let shown = String::from_utf8_lossy(octets);
                assert_eq!((found.as_slice(), whole), (content, is_whole), "{shown}");
                assert!(octets[interim.len()..].starts_with(&head), "{shown}");
            }
        }
    }

    #[test]
    fn recorded_credentials_contain_only_the_scheme() {
        let request =
            b"GET / HTTP/1.1\r\nHost: a\r\nauthorization: Basic c2VjcmV0\r\n\r\nAuthorization: x";
        let (told, is_masked) = masked(request, "***");
        assert!(is_masked);
        let expected =
            b"GET / HTTP/1.1\r\nHost: a\r\nauthorization: Basic ***\r\n\r\nAuthorization: x";
        assert_eq!(told, expected);
        assert!(!masked(expected.get(..27).unwrap(), "***").1);
    }
}
