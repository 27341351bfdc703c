//! The MIME structure of a message as spans (RFC 2046 §5.1), which tile the input.

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
    /// Parts nested deeper are leaves. The message itself has depth 0.
    pub depth: usize,
    /// Behind so many parts the rest of a multipart is one opaque span.
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
    /// A `message/external-body` is a leaf, too.
    Leaf,
    Multipart(Multipart),
    /// The only child's span is the body.
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
    /// Read once: a long Content-Type may stand above ten thousand parts.
    pub boundary: Vec<u8>,
    pub preamble: Span,
    /// One boundary line before each child, with the line break in front of it where that is free.
    pub delimiters: Vec<Span>,
    pub close: Option<Span>,
    /// Behind the close delimiter; or, when `overflow` is set, everything from the first part that was not looked at.
    pub epilogue: Span,
    pub overflow: Option<Limit>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// None for the message itself.
    pub parent: Option<PartId>,
    pub ordinal: usize,
    pub depth: usize,
    pub span: Span,
    pub envelope: Span,
    pub header: Span,
    /// Where a new field is put: at the end of the header, or before its first stray line.
    pub agreed_end: usize,
    pub separator: Span,
    /// The line break before a boundary line is not part of it.
    pub body: Span,
    /// Lower-case `type/subtype`; the default type where no field says.
    pub essence: String,
    pub encoding: TransferEncoding,
    pub content: PartKind,
    pub children: Vec<PartId>,
    pub(super) fields: Fields,
}

impl Part {
    /// Whether the header has lines that are no fields. Readers disagree about the fields after such a line.
    pub fn has_stray_lines(&self) -> bool {
        self.agreed_end != self.header.end
    }
}

#[derive(Clone, Debug)]
pub struct Tree<'a> {
    pub original: &'a [u8],
    pub(super) parts: Vec<Part>,
    pub newline: Newline,
}

impl<'a> Tree<'a> {
    pub fn part(&self, id: PartId) -> &Part {
        // Ids are only made by `scan`, one for each element.
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

    /// Folded, with its blanks, as it came.
    pub fn value(&self, id: PartId, name: &str) -> Option<&'a [u8]> {
        self.fields(id).value(self.original, name)
    }

    /// The first word of the field, in any case; empty if there is none.
    pub fn disposition(&self, id: PartId) -> &'a [u8] {
        let value = self.value(id, "Content-Disposition");
        let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b';' | b'(');
        let mut words = value.unwrap_or_default().trim_ascii().split(ends);
        words.next().unwrap_or_default()
    }

    pub fn has_disposition(&self, id: PartId, word: &str) -> bool {
        self.disposition(id).eq_ignore_ascii_case(word.as_bytes())
    }

    /// Returns the transfer encoding for people: of an unknown one the word that the mail has.
    pub fn encoding_word(&self, id: PartId) -> String {
        const LONGEST: usize = 40;
        let encoding = self.part(id).encoding;
        if encoding != TransferEncoding::Unknown {
            return encoding.as_str().to_owned();
        }
        let value = self.value(id, "Content-Transfer-Encoding");
        let value = unfold(value.unwrap_or_default());
        String::from_utf8_lossy(&value)
            .chars()
            .take(LONGEST)
            .collect()
    }

    /// More of the field may have followed.
    pub fn ends_in(&self, field: &Field) -> bool {
        field.whole.end == self.root().span.end
    }

    /// A boundary line would have ended the part.
    pub fn is_cut_off(&self, id: PartId) -> bool {
        let is_multipart = |above| matches!(self.part(above).content, PartKind::Multipart(_));
        self.part(id).span.end == self.root().span.end && self.ancestors(id).any(is_multipart)
    }

    /// The header is that of a message, not of a body part.
    pub fn is_message(&self, id: PartId) -> bool {
        self.part(id)
            .parent
            .is_none_or(|above| self.part(above).content == PartKind::Message)
    }

    /// A Content-ID means a part of the same message first.
    pub fn message_of(&self, id: PartId) -> PartId {
        self.messages_around(id).next().unwrap_or(PartId::ROOT)
    }

    /// The message of the part, and those that it stands in, nearest first.
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

    /// In different branches of a multipart/alternative, of which a reader shows one.
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

    /// As IMAP counts (RFC 9051 §6.4.5): `1.2.1`. The message itself is `1` if it is no multipart, else empty; so is,
    /// behind its own number, a message in a message.
    pub fn number(&self, id: PartId) -> String {
        let around = std::iter::once(id).chain(self.ancestors(id));
        let steps = around.filter_map(|at| match self.part(at) {
            part if self.is_under_multipart(at) => Some((part.ordinal + 1).to_string()),
            part if matches!(part.content, PartKind::Multipart(_)) => None,
            _ => Some("1".to_owned()),
        });
        let mut steps: Vec<String> = steps.collect();
        steps.reverse();
        steps.join(".")
    }

    /// Content put there must end its last line itself.
    pub fn abuts_boundary(&self, id: PartId) -> bool {
        let end = self.part(id).span.end;
        let next = self.original.get(end);
        next.is_some_and(|byte| !b"\r\n".contains(byte))
    }

    /// What goes with a part that is removed: its boundary line, and the line break that would otherwise be one too many.
    /// `removed_to` is the end of what was removed before it.
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
        // A line break must be left where one was, and none where none was: what stands in front may need it. A boundary
        // line behind another part's header has none of its own, and of several parts that go only the first had one.
        let start = delimiter.start.max(removed_to);
        let own_break = match start == delimiter.start {
            true => free_break(start),
            false => 0,
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

    /// Of all multiparts, those without a single boundary line included.
    pub fn boundaries(&self) -> Vec<&[u8]> {
        self.boundaries_of(self.ids())
    }

    fn boundaries_of(&self, ids: impl Iterator<Item = PartId>) -> Vec<&[u8]> {
        ids.filter_map(|id| self.part(id).content.boundary())
            .collect()
    }
}
