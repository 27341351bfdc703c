//! MIME structure of a message (RFC 2046 §5.1) as spans, which cover the message without gaps.

use super::fields::{Field, Fields};
use super::header::unfold;
use super::transfer::TransferEncoding;
use crate::span::{Newline, Span};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PartId(pub(super) u32);

impl PartId {
    pub const ROOT: Self = Self(0);
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScanLimits {
    /// Maximum depth of nested parts. Deeper parts are not divided further. The message itself has depth 0.
    pub depth: usize,
    /// Maximum number of parts. The rest of a multipart after this number is not divided into parts.
    pub parts: usize,
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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    TooDeep,
    TooManyParts,
    HeaderTooLarge,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PartKind {
    /// A part without inner parts. A `message/external-body` is a leaf as well.
    Leaf,
    Multipart(Multipart),
    /// A part that contains a message, such as `message/rfc822`. Its only child is this message, whose span is the body of the
    /// part.
    Message,
    Opaque(Limit),
}

impl PartKind {
    pub fn boundary(&self) -> Option<&[u8]> {
        match self {
            Self::Multipart(multipart) => Some(&multipart.boundary),
            _ => None,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Multipart {
    /// Boundary of the multipart. It is stored, because parsing a long Content-Type again for each of ten thousand
    /// parts would be slow.
    pub boundary: Vec<u8>,
    pub preamble: Span,
    /// The boundary line before each child. Each span includes the line break before the boundary line, unless that
    /// line break ends the header above.
    pub delimiters: Vec<Span>,
    pub close: Option<Span>,
    /// Text after the last boundary line (`--boundary--`). If `overflow` is set, this is everything from the first part
    /// that was not read because of a limit.
    pub epilogue: Span,
    pub overflow: Option<Limit>,
}

impl Multipart {
    /// Returns whether an offset is after the last boundary line. If there are more parts than were read, this is unknown.
    pub fn is_closed_before(&self, at: usize) -> bool {
        self.close.is_some() && self.overflow.is_none() && at >= self.epilogue.start
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The part around this one. It is `None` for the message itself.
    pub parent: Option<PartId>,
    pub ordinal: usize,
    pub depth: usize,
    pub span: Span,
    pub envelope: Span,
    pub header: Span,
    /// Offset at which a new field is inserted: the end of the header. If the header contains a stray line, which is
    /// not a field, this is the start of the first one, because programs disagree about the fields after it.
    pub agreed_end: usize,
    pub separator: Span,
    /// The body, without the line break that belongs to the following boundary line.
    pub body: Span,
    /// `type/subtype` in lower case. It is the default type if there is no Content-Type field.
    pub essence: String,
    pub encoding: TransferEncoding,
    pub content: PartKind,
    pub children: Vec<PartId>,
    pub(super) fields: Fields,
}

impl Part {
    /// Returns whether the header has lines that are not fields. Programs disagree about the fields after such a line.
    pub fn has_stray_lines(&self) -> bool {
        self.agreed_end != self.header.end
    }
}

#[derive(Clone, Debug)]
pub struct MessageTree<'a> {
    pub original: &'a [u8],
    pub(super) parts: Vec<Part>,
    pub newline: Newline,
}

impl<'a> MessageTree<'a> {
    pub fn part(&self, id: PartId) -> &Part {
        // Only `scan` creates ids, one for each part, so the index is valid.
        &self.parts[id.0 as usize]
    }

    pub fn root(&self) -> &Part {
        self.part(PartId::ROOT)
    }

    pub fn ids(&self) -> impl DoubleEndedIterator<Item = PartId> + use<> {
        (0..self.parts.len() as u32).map(PartId)
    }

    pub fn fields(&self, id: PartId) -> &Fields {
        &self.part(id).fields
    }

    /// Returns the value of a header field, including folds and surrounding white space.
    pub fn value(&self, id: PartId, name: &str) -> Option<&'a [u8]> {
        self.fields(id).value(self.original, name)
    }

    /// Returns the first word of the Content-Disposition field, in its original case. It is empty if there is no such field.
    pub fn disposition(&self, id: PartId) -> &'a [u8] {
        let value = self.value(id, "Content-Disposition");
        let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b';' | b'(');
        let mut words = value.unwrap_or_default().trim_ascii().split(ends);
        words.next().unwrap_or_default()
    }

    pub fn has_disposition(&self, id: PartId, word: &str) -> bool {
        self.disposition(id).eq_ignore_ascii_case(word.as_bytes())
    }

    /// Returns the transfer encoding for display. For an unknown encoding, this is the value of the header field.
    pub fn encoding_word(&self, id: PartId) -> String {
        const LONGEST: usize = 40;
        let encoding = self.part(id).encoding;
        if encoding != TransferEncoding::Unknown {
            return encoding.as_str().to_owned();
        }
        let value = unfold(
            self.value(id, "Content-Transfer-Encoding")
                .unwrap_or_default(),
        );
        String::from_utf8_lossy(&value)
            .chars()
            .take(LONGEST)
            .collect()
    }

    /// Whether the message ends with this field. A truncated message may have cut the field, too.
    pub fn ends_in(&self, field: &Field) -> bool {
        field.whole.end == self.root().span.end
    }

    /// Returns whether the part is incomplete: the message ends within it, although a boundary line should end it.
    pub fn is_cut_off(&self, id: PartId) -> bool {
        let is_multipart = |above| matches!(self.part(above).content, PartKind::Multipart(_));
        self.part(id).span.end == self.root().span.end && self.ancestors(id).any(is_multipart)
    }

    /// Returns whether the header of the part is the header of a message, as opposed to the header of a body part.
    pub fn is_message(&self, id: PartId) -> bool {
        self.part(id)
            .parent
            .is_none_or(|above| self.part(above).content == PartKind::Message)
    }

    /// Returns the innermost message that contains the part. A Content-ID refers to a part of the same message first.
    pub fn message_of(&self, id: PartId) -> PartId {
        self.messages_around(id).next().unwrap_or(PartId::ROOT)
    }

    /// Returns the messages that contain the part, from the innermost to the outermost.
    pub fn messages_around(&self, id: PartId) -> impl Iterator<Item = PartId> + '_ {
        let around = std::iter::once(id).chain(self.ancestors(id));
        around.filter(|part| self.is_message(*part))
    }

    pub fn is_under_multipart(&self, id: PartId) -> bool {
        let above = self.part(id).parent.map(|above| &self.part(above).content);
        matches!(above, Some(PartKind::Multipart(_)))
    }

    pub fn ancestors(&self, id: PartId) -> impl Iterator<Item = PartId> + '_ {
        std::iter::successors(self.part(id).parent, |&above| self.part(above).parent)
    }

    /// Returns whether two parts are in different branches of a multipart/alternative, of which mail clients display only one.
    pub fn are_alternatives(&self, one: PartId, other: PartId) -> bool {
        let (mut above, mut beside) = (one, other);
        while above != beside {
            let is_deeper = self.part(above).depth > self.part(beside).depth;
            let at = if is_deeper { &mut above } else { &mut beside };
            match self.part(*at).parent {
                Some(parent) => *at = parent,
                None => return false,
            }
        }
        above != one && above != other && self.part(above).essence == "multipart/alternative"
    }

    /// Returns the number of a part as in IMAP (RFC 9051 §6.4.5), such as `1.2.1`. The number of the whole message is `1`, or
    /// empty if the message is a multipart. A message inside a part has the number of that part, followed by `.1` if the
    /// message is not a multipart.
    pub fn number(&self, id: PartId) -> String {
        let mut steps: Vec<String> = std::iter::once(id)
            .chain(self.ancestors(id))
            .filter_map(|at| match self.part(at) {
                part if self.is_under_multipart(at) => Some((part.ordinal + 1).to_string()),
                part if matches!(part.content, PartKind::Multipart(_)) => None,
                _ => Some("1".to_owned()),
            })
            .collect();
        steps.reverse();
        steps.join(".")
    }

    /// Returns whether no line break separates the part from the next boundary line, because the last line break
    /// belongs to the part. If new content replaces the part, it must then end with a line ending.
    pub fn abuts_boundary(&self, id: PartId) -> bool {
        let end = self.part(id).span.end;
        let next = self.original.get(end);
        next.is_some_and(|byte| !b"\r\n".contains(byte))
    }

    /// Returns the span to delete so that a part is removed: the part, its boundary line, and one line break. If other
    /// parts were removed before it, `removed_to` is the end of the last removed span.
    pub fn removal(&self, part: PartId, removed_to: usize) -> Span {
        let entity = self.part(part);
        let end = entity.span.end;
        let above = entity.parent.map(|above| &self.part(above).content);
        let delimiter = match above {
            Some(PartKind::Multipart(multipart)) => multipart.delimiters.get(entity.ordinal),
            _ => None,
        };
        let Some(delimiter) = delimiter else {
            return Span::empty_at(end);
        };
        let free_break = |at: usize| match self.original.get(at..) {
            Some([b'\r', b'\n', ..]) => 2,
            Some([b'\n', ..]) => 1,
            _ => 0,
        };
        // After the removal, the next boundary line must still be on its own line, so one line break must stay. This can
        // be the line break before the boundary line of the removed part (the own break), or the one after the part.
        // There is no own break if the boundary line directly follows the header of another part, or if the part before
        // this one was also removed.
        let start = delimiter.start.max(removed_to);
        let own_break = if start == delimiter.start {
            free_break(start)
        } else {
            0
        };
        if own_break > 0 && self.abuts_boundary(part) {
            return Span::new(start + own_break, end);
        }
        let behind = if own_break > 0 { 0 } else { free_break(end) };
        Span::new(start, end + behind)
    }

    pub fn boundaries_around(&self, id: PartId) -> Vec<&[u8]> {
        self.boundaries_of(self.ancestors(id))
    }

    /// Returns the boundaries of all multiparts, so that new content contains no boundary line. A multipart without any
    /// boundary line also counts, because a line in new content would become its first one.
    pub fn boundaries(&self) -> Vec<&[u8]> {
        self.boundaries_of(self.ids())
    }

    fn boundaries_of(&self, ids: impl Iterator<Item = PartId>) -> Vec<&[u8]> {
        ids.filter_map(|id| self.part(id).content.boundary())
            .collect()
    }
}
