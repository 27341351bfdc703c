//! Divides a message into its parts (RFC 2046 §5.1) and returns them as a [`MessageTree`].
//!
//! The scanner accepts any bytes, searches each byte at most once for boundaries, and is not recursive, so that deep
//! nesting cannot exhaust the stack.
//! * A boundary line is `--boundary` at the start of a line, then `--` or nothing, then only white space. `--foobar` is
//!   not a boundary line for the boundary `foo`.
//! * The line break before a boundary line belongs to it, unless it ends a header.
//! * A boundary line of an outer multipart ends all inner multiparts. After its close delimiter, the boundary of a
//!   multipart has no meaning.
//! * The default type of parts in a `multipart/digest` is `message/rfc822`.
//! * `message/rfc822` and `message/global` are divided further unless they are really encoded. `message/partial` and all
//!   other types are leaves.
//!
//! Deviations: a multipart without a usable boundary parameter is a leaf. RFC 2045 §6.4 allows only 7bit, 8bit and
//! binary for multiparts and messages, but other transfer encodings occur and are often wrong. Such an encoding is
//! ignored on a multipart whose body contains one of its boundary lines, and on a message whose body begins with a
//! header field; the part counts as 7bit. Otherwise the part is a leaf. Dovecot and Python read such mail in the same
//! way.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::header::{self, Header, Section, SectionEnd};
use super::media_type::{DEFAULT_TYPE, MediaType};
use super::message::{Limit, MessageTree, Multipart, Part, PartId, PartKind, ScanLimits};
use super::transfer::TransferEncoding;
use crate::span::{Newline, Span};

pub fn scan<'a>(original: &'a [u8], limits: &ScanLimits) -> MessageTree<'a> {
    let mut scanner = Scanner {
        original,
        limits,
        // Most messages have one part, so memory for one part is reserved. Otherwise, the vector would reserve memory
        // for four parts at first, which is slower.
        parts: Vec::with_capacity(1),
        open: Vec::new(),
        floor: 0,
    };
    scanner.run();
    MessageTree {
        original,
        parts: scanner.parts,
        newline: Newline::of_first_line(original),
    }
}

// The finder is created only once, because creating it for each of many short messages would be slow.
static DELIMITERS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\n--"));

struct Scanner<'a> {
    original: &'a [u8],
    limits: &'a ScanLimits,
    parts: Vec<Part>,
    /// Parts whose end was not found yet, the outermost first. For each part, its index in `parts`, and whether its
    /// boundary is searched for. That is true for a multipart until its closing boundary line was found.
    open: Vec<(usize, bool)>,
    /// Start of the current body. No boundary line is searched for before it. The line break before it ends the header,
    /// so this line break is not counted as part of a boundary line.
    floor: usize,
}

impl Scanner<'_> {
    fn run(&mut self) {
        self.enter(0, None, DEFAULT_TYPE);
        while let Some((level, is_close, delimiter)) = self.next_delimiter() {
            self.close_above(level + 1, delimiter.start);
            self.floor = delimiter.end;
            let (parent, is_open) = &mut self.open[level];
            let parent = *parent;
            *is_open = !is_close && self.parts.len() < self.limits.parts;
            let PartKind::Multipart(multipart) = &mut self.parts[parent].content else {
                continue;
            };
            if multipart.preamble.end == usize::MAX {
                multipart.preamble.end = delimiter.start;
            }
            if is_close {
                multipart.close = Some(delimiter);
                multipart.epilogue = Span::empty_at(delimiter.end);
            } else if !*is_open {
                multipart.overflow = Some(Limit::TooManyParts);
                multipart.epilogue = Span::empty_at(delimiter.start);
            } else {
                multipart.delimiters.push(delimiter);
                let default = match self.parts[parent].essence.as_str() {
                    "multipart/digest" => "message/rfc822",
                    _ => DEFAULT_TYPE,
                };
                self.enter(delimiter.end, Some(parent), default);
            }
        }
        self.close_above(0, self.original.len());
    }

    /// Reads the header of the part that starts at `start`. If the part is a message, also reads the header of the message
    /// inside it, and so on.
    fn enter(&mut self, start: usize, parent: Option<usize>, default: &str) {
        let mut next = Some((start, parent, default));
        while let Some((start, parent, default)) = next.take() {
            let index = self.parts.len();
            let part = self.read_part(start, parent, default);
            self.floor = part.body.start;
            let is_open = part.content.boundary().is_some();
            if part.content == PartKind::Message {
                next = Some((part.body.start, Some(index), DEFAULT_TYPE));
            }
            self.parts.push(part);
            if let Some(parent) = parent {
                self.parts[parent].children.push(PartId(index as u32));
            }
            self.open.push((index, is_open));
        }
    }

    fn read_part(&mut self, start: usize, parent: Option<usize>, default: &str) -> Part {
        let original = self.original;
        let above = parent.and_then(|parent| self.parts.get(parent));
        let is_message = above.is_none_or(|above| above.content == PartKind::Message);
        let within = Span::new(start, original.len());
        let limit = self.limits.header;
        let is_boundary = |line: &[u8]| self.matching(line).is_some();
        let section = if is_message {
            Section::Message
        } else {
            Section::Part
        };
        let header = Header::read_until(original, within, section, limit, is_boundary);
        let value = |name| header.fields.value(original, name);
        let essence = value("Content-Type").map_or_else(
            || default.to_owned(),
            |value| MediaType::parse(value).essence.into_owned(),
        );
        let encoding = TransferEncoding::of_part(value("Content-Transfer-Encoding"), &essence);
        let body = header.body_start();
        let mut part = Part {
            parent: parent.map(|parent| PartId(parent as u32)),
            ordinal: above.map_or(0, |above| above.children.len()),
            depth: above.map_or(0, |above| above.depth + 1),
            span: Span::new(start, usize::MAX),
            envelope: header.envelope,
            header: header.span,
            agreed_end: header.agreed_end,
            separator: header.separator,
            body: Span::new(body, usize::MAX),
            essence,
            encoding,
            content: PartKind::Leaf,
            children: Vec::new(),
            fields: header.fields,
        };
        part.content = self.content_of(&part, header.end);
        if part.content == PartKind::Message && part.encoding.is_encoded() {
            part.encoding = TransferEncoding::SevenBit;
        }
        part
    }

    fn content_of(&self, part: &Part, end: SectionEnd) -> PartKind {
        if end == SectionEnd::TooLarge {
            return PartKind::Opaque(Limit::HeaderTooLarge);
        }
        let container = match part.essence.as_str() {
            "message/rfc822" | "message/global" => {
                if part.encoding.is_encoded() && !self.begins_with_field(part.body.start) {
                    return PartKind::Leaf;
                }
                PartKind::Message
            }
            essence if essence.starts_with("multipart/") => {
                let Some(boundary) = self.boundary_of(part) else {
                    return PartKind::Leaf;
                };
                // This part is a multipart but declares an encoding such as base64. Boundary lines in its body would
                // show that it is not really encoded. If an outer multipart has the same boundary, the lines may belong
                // to that one and show nothing, so the part is treated as encoded.
                let is_taken = || self.boundaries().any(|(_, around)| around == boundary);
                if part.encoding.is_encoded() && is_taken() {
                    return PartKind::Leaf;
                }
                PartKind::Multipart(Multipart {
                    boundary,
                    preamble: Span::new(part.body.start, usize::MAX),
                    delimiters: Vec::new(),
                    close: None,
                    epilogue: Span::empty_at(part.body.start),
                    overflow: None,
                })
            }
            _ => return PartKind::Leaf,
        };
        if part.depth >= self.limits.depth {
            return PartKind::Opaque(Limit::TooDeep);
        }
        if container == PartKind::Message && self.parts.len() + 1 >= self.limits.parts {
            return PartKind::Opaque(Limit::TooManyParts);
        }
        container
    }

    /// Returns whether the body begins with a header field. An envelope line (`From `) may precede the field.
    fn begins_with_field(&self, body: usize) -> bool {
        let within = Span::new(body, self.original.len());
        let is_boundary = |line: &[u8]| line.starts_with(b"--") && self.matching(line).is_some();
        header::begins_with_field(self.original, within, is_boundary)
    }

    /// Returns the boundary of a multipart. Trailing white space is not part of it (RFC 2046 §5.1.1).
    fn boundary_of(&self, part: &Part) -> Option<Vec<u8>> {
        let content_type = part.fields.value(self.original, "Content-Type")?;
        let value = MediaType::parse(content_type).parameter("boundary")?;
        let boundary = header::unfold(&value);
        (!boundary.is_empty()).then_some(boundary)
    }

    /// Finds the next boundary line. Returns the index in `open` of the multipart to which the line belongs, whether
    /// the line closes this multipart, and the span of the line. The span includes the line ending, and the line break
    /// before the line unless that ends a header.
    fn next_delimiter(&self) -> Option<(usize, bool, Span)> {
        self.boundaries().next()?;
        let mut from = self.floor;
        // The search looks for a line break before each boundary line. Only a boundary line directly at `floor`, which is the
        // start of a line, has no such line break.
        let mut at_floor = true;
        loop {
            let rest = self.original.get(from..)?;
            let start = if at_floor && rest.starts_with(b"--") {
                from
            } else {
                from + DELIMITERS.find(rest)? + 1
            };
            at_floor = false;
            let line = memchr::memchr(b'\n', self.original.get(start..)?)
                .map_or(self.original.len(), |at| start + at + 1);
            let whole = Span::new(start, line).of(self.original);
            let without_lf = whole.strip_suffix(b"\n").unwrap_or(whole);
            let content = without_lf.strip_suffix(b"\r").unwrap_or(without_lf);
            if let Some((level, is_close)) = self.matching(content) {
                let span = Span::new(self.line_break_before(start), line);
                return Some((level, is_close, span));
            }
            // The search continues at the line ending of this line, because it can be the line break before the next
            // boundary line.
            from = line.saturating_sub(1).max(start + 1);
        }
    }

    /// Returns the innermost multipart to which the boundary line belongs. The line is compared with at most
    /// [`ScanLimits::depth`] boundaries.
    fn matching(&self, line: &[u8]) -> Option<(usize, bool)> {
        let dashes = line.strip_prefix(b"--")?;
        self.boundaries().find_map(|(level, boundary)| {
            let rest = dashes.strip_prefix(boundary)?;
            let blank = |rest: &[u8]| rest.iter().all(|byte| matches!(byte, b' ' | b'\t'));
            if blank(rest) {
                return Some((level, false));
            }
            let rest = rest.strip_prefix(b"--")?;
            blank(rest).then_some((level, true))
        })
    }

    fn boundaries(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let open = self.open.iter().enumerate().rev();
        open.filter(|(_, (_, is_open))| *is_open)
            .filter_map(|(level, (part, _))| {
                Some((level, self.parts.get(*part)?.content.boundary()?))
            })
    }

    fn line_break_before(&self, line: usize) -> usize {
        match &self.original[self.floor..line] {
            [.., b'\r', b'\n'] => line - 2,
            [.., b'\n'] => line - 1,
            _ => line,
        }
    }

    fn close_above(&mut self, level: usize, end: usize) {
        for (part, _) in self.open.drain(level..).rev() {
            let part = &mut self.parts[part];
            // If the body is empty, the part and the boundary line share a line break, which already ends the header.
            // The part must not end before its own body starts.
            part.span.end = end.max(part.body.start);
            part.body.end = part.span.end;
            // A multipart without any boundary line may really be encoded. Its declared transfer encoding is then kept,
            // and the part is treated as a leaf.
            let is_false = match &part.content {
                PartKind::Multipart(multipart) => {
                    multipart.close.is_some() || multipart.preamble.end < usize::MAX
                }
                _ => true,
            };
            if part.encoding.is_encoded() && matches!(part.content, PartKind::Multipart(_)) {
                if is_false {
                    part.encoding = TransferEncoding::SevenBit
                } else {
                    part.content = PartKind::Leaf
                }
            }
            if part.encoding.is_encoded() && part.content == PartKind::Leaf {
                let value = part
                    .fields
                    .value(self.original, "Content-Transfer-Encoding");
                let body = part.body.of(self.original);
                part.encoding = part.encoding.of_leaf(value, &part.essence, body);
            }
            if let PartKind::Multipart(multipart) = &mut part.content {
                multipart.preamble.end = multipart.preamble.end.min(part.body.end);
                if multipart.close.is_some() || multipart.overflow.is_some() {
                    multipart.epilogue.end = part.body.end.max(multipart.epilogue.start);
                } else {
                    multipart.epilogue = Span::empty_at(part.body.end);
                }
            }
        }
    }
}
