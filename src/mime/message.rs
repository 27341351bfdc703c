//! Bytes → [`Tree`]: the MIME structure of a message as spans (RFC 2046 §5.1).
//!
//! The scanner is total, reads every byte at most once for boundaries (memchr finds `\n--`), and
//! never recurses: nesting costs a vector, not stack. The spans tile the input ([`Tree::tiles`]).
//!
//! What it holds to:
//! * a boundary line is `--boundary` at the start of a line, then `--` or nothing, then blanks
//!   only; text such as `--foobar` is no boundary `foo`;
//! * the line break in front of a boundary line belongs to it, unless a header needs it;
//! * a boundary of an enclosing multipart ends every inner one; behind its own close delimiter a
//!   boundary means nothing any more;
//! * `multipart/digest` makes its parts `message/rfc822` unless they say otherwise;
//! * `message/rfc822` and `message/global` are entered unless they are encoded; `message/partial`
//!   and everything else is a leaf.
//!
//! Deviations: a multipart without a usable boundary parameter, or with a transfer encoding of
//! base64 or quoted-printable (RFC 2045 §6.4 forbids those), is a leaf.

use memchr::memmem;

use super::header::{self, End, Field, Fields, Front, Header};
use super::media_type::{DEFAULT_TYPE, MediaType};
use super::transfer::TransferEncoding;
use crate::span::{Newline, Span};

/// Which part of a [`Tree`]; only meaningful together with the tree that gave it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PartId(u32);

impl PartId {
    /// The message itself.
    pub const ROOT: Self = Self(0);
}

/// Bounds that keep hostile structure cheap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScanLimits {
    /// Parts nested deeper than this are leaves. The message itself has depth 0.
    pub depth: usize,
    /// Behind this many parts the rest of a multipart is one opaque span.
    pub parts: usize,
    /// Octets of one header section.
    pub header: usize,
}

impl Default for ScanLimits {
    fn default() -> Self {
        Self {
            depth: 64,
            parts: 10_000,
            header: 64 << 20,
        }
    }
}

/// Which of [`ScanLimits`] ended the look into a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// [`ScanLimits::depth`].
    TooDeep,
    /// [`ScanLimits::parts`].
    TooManyParts,
    /// [`ScanLimits::header`].
    HeaderTooLarge,
}

/// What a part's body is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// Octets, whatever the type; a `message/external-body` is one too.
    Leaf,
    /// Body parts between boundary lines.
    Multipart(Multipart),
    /// One message: the only child's span is the body.
    Message,
    /// Not looked into, because a limit was reached.
    Opaque(Limit),
}

impl Content {
    /// The boundary of a multipart.
    fn boundary(&self) -> Option<&[u8]> {
        match self {
            Self::Multipart(multipart) => Some(&multipart.boundary),
            _ => None,
        }
    }
}

/// The spans of a multipart that belong to no part, and what ends its parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Multipart {
    /// Its boundary parameter, read once: a long Content-Type may stand above ten thousand parts.
    pub boundary: Vec<u8>,
    /// Before the first boundary line.
    pub preamble: Span,
    /// One boundary line before each child, with the line break in front of it where that is free.
    pub delimiters: Vec<Span>,
    /// The close delimiter; none in a truncated message.
    pub close: Option<Span>,
    /// Behind the close delimiter; or, when `overflow` is set, everything from the first part that
    /// was not looked at.
    pub epilogue: Span,
    /// Set when there were more parts than the limit allows.
    pub overflow: Option<Limit>,
}

/// One entity: the message, a body part, or a message in a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// What it stands in; none for the message itself.
    pub parent: Option<PartId>,
    /// Position among its siblings, from 0.
    pub ordinal: usize,
    /// 0 for the message itself.
    pub depth: usize,
    /// Header section, separator and body.
    pub span: Span,
    /// A `From ` line in front, else empty.
    pub envelope: Span,
    /// Envelope and fields.
    pub header: Span,
    /// The empty line behind the header; empty if missing.
    pub separator: Span,
    /// The body. The line break before a boundary line is not part of it.
    pub body: Span,
    /// Lower-case `type/subtype`; the default type where no field says.
    pub essence: String,
    /// How the body is encoded.
    pub encoding: TransferEncoding,
    /// What the body is made of.
    pub content: Content,
    /// The parts in it, in order.
    pub children: Vec<PartId>,
    fields: Fields,
}

/// A message as spans.
#[derive(Clone, Debug)]
pub struct Tree {
    parts: Vec<Part>,
    /// The terminator of the message's first line.
    pub newline: Newline,
}

impl Tree {
    /// The part of that id.
    #[must_use]
    pub fn part(&self, id: PartId) -> &Part {
        // Ids are only made by `scan`, one for each element.
        &self.parts[id.0 as usize]
    }

    /// The message itself.
    #[must_use]
    pub fn root(&self) -> &Part {
        self.part(PartId::ROOT)
    }

    /// All parts in the order of the message.
    pub fn ids(&self) -> impl Iterator<Item = PartId> + use<> {
        (0..self.parts.len() as u32).map(PartId)
    }

    /// A part's header fields, in order.
    #[must_use]
    pub fn fields(&self, id: PartId) -> &Fields {
        &self.part(id).fields
    }

    /// The value of the first field of that name: folded, with its blanks, as it came.
    #[must_use]
    pub fn value<'a>(&self, original: &'a [u8], id: PartId, name: &str) -> Option<&'a [u8]> {
        header::first(original, self.fields(id), name).map(|field| field.value.of(original))
    }

    /// Whether the input ends in this field: more of it may have followed.
    #[must_use]
    pub fn ends_in(&self, field: &Field) -> bool {
        field.whole.end == self.root().span.end
    }

    /// Whether the input ends in a part that a boundary line would have ended.
    #[must_use]
    pub fn is_cut_off(&self, id: PartId) -> bool {
        let is_multipart = |above| matches!(self.part(above).content, Content::Multipart(_));
        self.part(id).span.end == self.root().span.end && self.ancestors(id).any(is_multipart)
    }

    /// Whether a part's header is that of a message, not of a body part.
    #[must_use]
    pub fn is_message(&self, id: PartId) -> bool {
        self.part(id)
            .parent
            .is_none_or(|above| self.part(above).content == Content::Message)
    }

    /// What a part stands in, nearest first.
    pub fn ancestors(&self, id: PartId) -> impl Iterator<Item = PartId> + '_ {
        std::iter::successors(self.part(id).parent, |&above| self.part(above).parent)
    }

    /// The part's number as IMAP counts (RFC 9051 §6.4.5): `1.2.1`. The message itself is `1` if it
    /// is no multipart, else empty; so is, behind its own number, a message in a message.
    #[must_use]
    pub fn number(&self, id: PartId) -> String {
        let mut steps = Vec::new();
        let mut at = id;
        loop {
            let part = self.part(at);
            let under_multipart = part
                .parent
                .is_some_and(|above| matches!(self.part(above).content, Content::Multipart(_)));
            if under_multipart {
                steps.push((part.ordinal + 1).to_string());
            } else if !matches!(part.content, Content::Multipart(_)) {
                steps.push("1".to_owned());
            }
            match part.parent {
                Some(above) => at = above,
                None => break,
            }
        }
        steps.reverse();
        steps.join(".")
    }

    /// Whether a boundary line follows the part directly, so that content put there must end its
    /// last line itself.
    #[must_use]
    pub fn abuts_boundary(&self, original: &[u8], id: PartId) -> bool {
        let end = self.part(id).span.end;
        original
            .get(end)
            .is_some_and(|&byte| byte != b'\n' && byte != b'\r')
    }

    /// The boundaries of all multiparts around a part, innermost first.
    #[must_use]
    pub fn boundaries_around(&self, id: PartId) -> Vec<&[u8]> {
        self.boundaries_of(self.ancestors(id))
    }

    /// The boundaries of all multiparts, those without a single boundary line included.
    #[must_use]
    pub fn boundaries(&self) -> Vec<&[u8]> {
        self.boundaries_of(self.ids())
    }

    fn boundaries_of(&self, ids: impl Iterator<Item = PartId>) -> Vec<&[u8]> {
        ids.filter_map(|id| self.part(id).content.boundary())
            .collect()
    }

    /// Every byte of the input under exactly one span, in order; empty spans are left out.
    #[cfg(any(test, feature = "internals"))]
    #[must_use]
    pub fn tiles(&self) -> Vec<Span> {
        enum Step {
            Part(PartId),
            Tile(Span),
        }
        let mut tiles = Vec::new();
        let mut steps = vec![Step::Part(PartId::ROOT)];
        while let Some(step) = steps.pop() {
            let id = match step {
                Step::Tile(span) => {
                    tiles.push(span);
                    continue;
                }
                Step::Part(id) => id,
            };
            let part = self.part(id);
            tiles.push(part.envelope);
            tiles.extend(self.fields(id).wholes());
            tiles.push(part.separator);
            match &part.content {
                Content::Leaf | Content::Opaque(_) => tiles.push(part.body),
                Content::Message => {
                    steps.extend(part.children.iter().copied().map(Step::Part));
                }
                Content::Multipart(multipart) => {
                    tiles.push(multipart.preamble);
                    steps.push(Step::Tile(multipart.epilogue));
                    steps.extend(multipart.close.map(Step::Tile));
                    for (&child, &delimiter) in
                        part.children.iter().zip(&multipart.delimiters).rev()
                    {
                        steps.push(Step::Part(child));
                        steps.push(Step::Tile(delimiter));
                    }
                }
            }
        }
        tiles.retain(|span| !span.is_empty());
        tiles
    }
}

/// Scans a whole message. Never fails: any bytes give a tree.
#[must_use]
pub fn scan(original: &[u8], limits: &ScanLimits) -> Tree {
    let mut scanner = Scanner {
        original,
        limits,
        parts: Vec::new(),
        open: Vec::new(),
        floor: 0,
    };
    scanner.run();
    Tree {
        parts: scanner.parts,
        newline: Newline::of_first_line(original),
    }
}

/// A part whose end has not been found.
struct Open {
    part: usize,
    /// Whether its boundary is looked for; not of leaves, messages, and closed multiparts.
    is_open: bool,
}

struct Scanner<'a> {
    original: &'a [u8],
    limits: &'a ScanLimits,
    parts: Vec<Part>,
    open: Vec<Open>,
    /// Where the current body text starts: no line break before it is free for a boundary.
    floor: usize,
}

/// A boundary line that was found.
struct Delimiter {
    /// Index into `open`.
    level: usize,
    /// The line with its terminator and, where free, the line break in front.
    span: Span,
    side: Side,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Between,
    Close,
}

impl Scanner<'_> {
    fn run(&mut self) {
        let finder = memmem::Finder::new(b"\n--");
        self.enter(0, None, DEFAULT_TYPE);
        while let Some(delimiter) = self.next_delimiter(&finder) {
            self.close_above(delimiter.level + 1, delimiter.span.start);
            self.floor = delimiter.span.end;
            let parent = self.open[delimiter.level].part;
            let full = self.parts.len() >= self.limits.parts;
            let Content::Multipart(multipart) = &mut self.parts[parent].content else {
                continue;
            };
            if multipart.preamble.end == usize::MAX {
                multipart.preamble.end = delimiter.span.start;
            }
            match delimiter.side {
                Side::Close => {
                    multipart.close = Some(delimiter.span);
                    multipart.epilogue = Span::empty_at(delimiter.span.end);
                    self.open[delimiter.level].is_open = false;
                }
                Side::Between if full => {
                    multipart.overflow = Some(Limit::TooManyParts);
                    multipart.epilogue = Span::empty_at(delimiter.span.start);
                    self.open[delimiter.level].is_open = false;
                }
                Side::Between => {
                    multipart.delimiters.push(delimiter.span);
                    let default = match self.parts[parent].essence.as_str() {
                        "multipart/digest" => "message/rfc822",
                        _ => DEFAULT_TYPE,
                    };
                    self.enter(delimiter.span.end, Some(parent), default);
                }
            }
        }
        self.close_above(0, self.original.len());
    }

    /// Opens the entity at `start`, and the message in it if it is one, and so on inwards.
    fn enter(&mut self, start: usize, parent: Option<usize>, default: &str) {
        let mut next = Some((start, parent, default));
        while let Some((start, parent, default)) = next.take() {
            let index = self.parts.len();
            let part = self.read_part(start, parent, default);
            self.floor = part.body.start;
            let is_open = part.content.boundary().is_some();
            if part.content == Content::Message {
                next = Some((part.body.start, Some(index), DEFAULT_TYPE));
            }
            self.parts.push(part);
            if let Some(parent) = parent {
                self.parts[parent].children.push(PartId(index as u32));
            }
            self.open.push(Open {
                part: index,
                is_open,
            });
        }
    }

    fn read_part(&mut self, start: usize, parent: Option<usize>, default: &str) -> Part {
        let original = self.original;
        let above = parent.and_then(|parent| self.parts.get(parent));
        let front = match above {
            Some(above) if above.content != Content::Message => Front::Part,
            _ => Front::Message,
        };
        let within = Span::new(start, original.len());
        let header = Header::read(original, within, front, self.limits.header, |line| {
            self.matching(line).is_some()
        });
        let essence = header::first(original, &header.fields, "Content-Type").map_or_else(
            || default.to_owned(),
            |field| {
                MediaType::parse(field.value.of(original))
                    .essence
                    .into_owned()
            },
        );
        let encoding = TransferEncoding::of(
            header::first(original, &header.fields, "Content-Transfer-Encoding")
                .map(|field| field.value.of(original)),
        );
        let body = header.body_start();
        let mut part = Part {
            parent: parent.map(|parent| PartId(parent as u32)),
            ordinal: above.map_or(0, |above| above.children.len()),
            depth: above.map_or(0, |above| above.depth + 1),
            span: Span::new(start, usize::MAX),
            envelope: header.envelope,
            header: header.span,
            separator: header.separator,
            body: Span::new(body, usize::MAX),
            essence,
            encoding,
            content: Content::Leaf,
            children: Vec::new(),
            fields: header.fields,
        };
        part.content = self.content_of(&part, header.end);
        part
    }

    fn content_of(&self, part: &Part, end: End) -> Content {
        if end == End::TooLarge {
            return Content::Opaque(Limit::HeaderTooLarge);
        }
        let container = match part.essence.as_str() {
            _ if part.encoding.is_encoded() => return Content::Leaf,
            "message/rfc822" | "message/global" => Content::Message,
            essence if essence.starts_with("multipart/") => {
                let Some(boundary) = self.boundary_of(part) else {
                    return Content::Leaf;
                };
                Content::Multipart(Multipart {
                    boundary,
                    preamble: Span::new(part.body.start, usize::MAX),
                    delimiters: Vec::new(),
                    close: None,
                    epilogue: Span::empty_at(part.body.start),
                    overflow: None,
                })
            }
            _ => return Content::Leaf,
        };
        if part.depth >= self.limits.depth {
            return Content::Opaque(Limit::TooDeep);
        }
        if container == Content::Message && self.parts.len() + 1 >= self.limits.parts {
            return Content::Opaque(Limit::TooManyParts);
        }
        container
    }

    fn boundary_of(&self, part: &Part) -> Option<Vec<u8>> {
        let field = header::first(self.original, &part.fields, "Content-Type")?;
        boundary_of(&MediaType::parse(field.value.of(self.original)))
    }

    /// The next line that is a boundary of an open multipart.
    fn next_delimiter(&self, finder: &memmem::Finder<'_>) -> Option<Delimiter> {
        if self.open.iter().all(|open| !open.is_open) {
            return None;
        }
        let mut from = self.floor;
        // The floor is the start of a line: it needs no line break in front.
        let mut at_floor = true;
        loop {
            let rest = self.original.get(from..)?;
            let start = if at_floor && rest.starts_with(b"--") {
                from
            } else {
                from + finder.find(rest)? + 1
            };
            at_floor = false;
            let line = memchr::memchr(b'\n', self.original.get(start..)?)
                .map_or(self.original.len(), |at| start + at + 1);
            let content = Span::new(start, line).of(self.original);
            let content = content.strip_suffix(b"\n").unwrap_or(content);
            let content = content.strip_suffix(b"\r").unwrap_or(content);
            if let Some((level, side)) = self.matching(content) {
                return Some(Delimiter {
                    level,
                    span: Span::new(self.line_break_before(start), line),
                    side,
                });
            }
            // The line's own terminator may be the break in front of the next candidate.
            from = line.saturating_sub(1).max(start + 1);
        }
    }

    /// Which open multipart a line delimits, innermost first. Of the line, not more is compared than
    /// it has octets, for each of at most [`ScanLimits::depth`] boundaries.
    fn matching(&self, line: &[u8]) -> Option<(usize, Side)> {
        let dashes = line.strip_prefix(b"--")?;
        let open = self.open.iter().enumerate().rev();
        let mut open = open.filter(|(_, open)| open.is_open);
        open.find_map(|(level, open)| {
            let boundary = self.parts.get(open.part)?.content.boundary()?;
            let rest = dashes.strip_prefix(boundary)?;
            let blank = |rest: &[u8]| rest.iter().all(|byte| matches!(byte, b' ' | b'\t'));
            if blank(rest) {
                return Some((level, Side::Between));
            }
            let rest = rest.strip_prefix(b"--")?;
            blank(rest).then_some((level, Side::Close))
        })
    }

    fn line_break_before(&self, line: usize) -> usize {
        let before = self.original.get(self.floor..line).unwrap_or_default();
        if before.ends_with(b"\r\n") {
            line - 2
        } else if before.ends_with(b"\n") {
            line - 1
        } else {
            line
        }
    }

    /// Ends every open part from `level` on at `end`.
    fn close_above(&mut self, level: usize, end: usize) {
        while self.open.len() > level {
            let Some(open) = self.open.pop() else { break };
            let part = &mut self.parts[open.part];
            // An empty body may end where a boundary took the line break of the part above it.
            part.span.end = end.max(part.body.start);
            part.body.end = part.span.end;
            if let Content::Multipart(multipart) = &mut part.content {
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

/// The boundary parameter; trailing blanks can't be part of one (RFC 2046 §5.1.1).
fn boundary_of(media_type: &MediaType<'_>) -> Option<Vec<u8>> {
    let value = media_type.parameter("boundary")?;
    let boundary = header::unfold(&value);
    (!boundary.is_empty()).then_some(boundary)
}
