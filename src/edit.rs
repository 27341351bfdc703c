//! Edits and [`splice`](Edits::splice): the only maker of output, which is the original, copied up to each edit.
//! Without edits the input is given back borrowed, so nothing can have changed.

mod joined;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use bytes::Bytes;

use crate::span::Span;

/// One replacement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// The bytes that go; an empty span is an insertion.
    pub span: Span,
    /// The bytes that come. Several edits may hold slices of one buffer.
    pub replacement: Bytes,
}

impl Edit {
    /// Replaces a span.
    pub fn replace(span: Span, replacement: impl Into<Vec<u8>>) -> Self {
        Self {
            span,
            replacement: Bytes::from(replacement.into()),
        }
    }

    /// Removes a span.
    pub fn remove(span: Span) -> Self {
        Self::replace(span, Vec::new())
    }

    /// Inserts bytes.
    pub fn insert(at: usize, bytes: impl Into<Vec<u8>>) -> Self {
        Self::replace(Span::empty_at(at), bytes)
    }

    /// Octets the output gains by this edit; negative if it loses some.
    pub fn growth(&self) -> i64 {
        self.replacement.len() as i64 - self.span.len() as i64
    }
}

/// They stand or fall together; an external body is one group.
pub(crate) type Group = Vec<Edit>;

/// Sorted, disjoint edits of one original.
#[derive(Clone, Default, Debug)]
pub struct Edits {
    /// In the order of the original, as most are added.
    edits: Vec<Edit>,
    /// Added behind an edit that stands further on, by place and number: a sorted vector would move for each.
    late: BTreeMap<(Span, usize), Edit>,
}

/// An edit meets another one, so the outcome is not defined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("two edits overlap; one of them changes the bytes {start}..{end}", start = .0.start, end = .0.end)]
pub struct Overlap(pub(crate) Span);

impl Edits {
    /// No edits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the output is the input.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of edits.
    pub fn len(&self) -> usize {
        self.edits.len() + self.late.len()
    }

    /// The edits, sorted by where they stand.
    pub fn iter(&self) -> impl Iterator<Item = &Edit> {
        let (mut edits, mut late) = (self.edits.iter().peekable(), self.late.values().peekable());
        std::iter::from_fn(move || match (edits.peek(), late.peek()) {
            (Some(edit), Some(other)) if other.span < edit.span => late.next(),
            (None, _) => late.next(),
            _ => edits.next(),
        })
    }

    /// These edits, in any order.
    ///
    /// # Errors
    /// [`Overlap`] if two of them meet.
    pub fn of(edits: impl IntoIterator<Item = Edit>) -> Result<Self, Overlap> {
        let mut all = Self::new();
        all.add(edits.into_iter().collect())?;
        Ok(all)
    }

    /// These, which are sorted and disjoint.
    fn in_order(edits: impl IntoIterator<Item = Edit>) -> Self {
        Self {
            edits: edits.into_iter().collect(),
            ..Self::default()
        }
    }

    /// All edits are added, or none. Two insertions at one place stay in the order in which they were added.
    pub(crate) fn add(&mut self, mut group: Group) -> Result<(), Overlap> {
        group.sort_by_key(|edit| (edit.span.start, edit.span.end));
        let mut behind = 0;
        for Edit { span, .. } in &group {
            if span.start < behind || self.meets(*span) {
                return Err(Overlap(*span));
            }
            behind = span.end;
        }
        if self.is_empty() {
            // There may be a million of them.
            self.edits = group;
            return Ok(());
        }
        for edit in group {
            match self.edits.last() {
                Some(last) if edit.span < last.span => {
                    self.late.insert((edit.span, self.late.len()), edit);
                }
                _ => self.edits.push(edit),
            }
        }
        Ok(())
    }

    /// Also if one lies inside the other.
    pub(crate) fn meets(&self, span: Span) -> bool {
        let from = self
            .edits
            .partition_point(|edit| edit.span.end <= span.start);
        let inside = |edit: &Edit| edit.span.start < span.end;
        // Of those that begin in front of its end, the last one ends last.
        let late = self.late.range(..(Span::empty_at(span.end), 0)).next_back();
        self.edits.get(from).is_some_and(inside)
            || late.is_some_and(|(_, edit)| edit.span.end > span.start)
    }

    /// Also gives the same edits as slices of the output: each replacement is let go of when it was copied, so that
    /// what the message gained is held once. None: the output is the original.
    pub(crate) fn put_together(self, original: &[u8]) -> (Option<Bytes>, Self) {
        if self.is_empty() {
            return (None, self);
        }
        let length = self.splice(original).len();
        let mut output = Vec::with_capacity(length);
        let mut places = Vec::with_capacity(self.len());
        let mut at = 0;
        for Edit { span, replacement } in self {
            output.extend_from_slice(Span::new(at, span.start).of(original));
            let start = output.len();
            output.extend_from_slice(&replacement);
            places.push((span, start..output.len()));
            at = span.end;
        }
        output.extend_from_slice(original.get(at..).unwrap_or_default());
        let output = Bytes::from(output);
        let edits = places.into_iter().map(|(span, place)| Edit {
            span,
            replacement: output.slice(place),
        });
        let edits = Self::in_order(edits);
        (Some(output), edits)
    }

    /// The output: the original with the edits made. Nothing is copied but the replacements.
    pub fn splice<'a>(&'a self, original: &'a [u8]) -> Spliced<'a> {
        let mut chunks = Vec::with_capacity(self.len() * 2 + 1);
        let mut at = 0;
        for edit in self.iter() {
            let kept = Span::new(at, edit.span.start).of(original);
            if !kept.is_empty() {
                chunks.push(kept);
            }
            at = edit.span.end;
            if !edit.replacement.is_empty() {
                chunks.push(&edit.replacement);
            }
        }
        let rest = original.get(at..).unwrap_or_default();
        if !rest.is_empty() {
            chunks.push(rest);
        }
        Spliced { chunks }
    }
}

impl From<Option<Edit>> for Edits {
    fn from(edit: Option<Edit>) -> Self {
        Self::in_order(edit)
    }
}

impl IntoIterator for Edits {
    type Item = Edit;
    type IntoIter = std::vec::IntoIter<Edit>;

    fn into_iter(self) -> Self::IntoIter {
        let mut all = self.edits;
        if !self.late.is_empty() {
            // Of two at one place, the one that was not late comes first.
            all.extend(self.late.into_values());
            all.sort_by_key(|edit| edit.span);
        }
        all.into_iter()
    }
}

/// None where an edit touches the span. Spans must be asked about in their order.
pub(crate) fn moved(edits: &Edits) -> impl FnMut(Span) -> Option<usize> {
    let mut edits = edits.iter().peekable();
    let mut by = 0;
    move |span| {
        while let Some(edit) = edits.next_if(|edit| edit.span.end <= span.start) {
            by += edit.growth();
        }
        let mut is_kept = true;
        // Such an edit reaches into the span, or stands in it; it may reach into the next as well.
        while let Some(edit) = edits.peek().filter(|edit| edit.span.start < span.end) {
            is_kept = false;
            if edit.span.end > span.end {
                break;
            }
            by += edit.growth();
            edits.next();
        }
        let start = i64::try_from(span.start).ok()? + by;
        usize::try_from(start).ok().filter(|_| is_kept)
    }
}

/// Output as a sequence of slices, of the original and of edits.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Spliced<'a> {
    chunks: Vec<&'a [u8]>,
}

/// Bytes after a header section that may decide where it ends, because a line that is no field may be followed by
/// fields.
pub(crate) const BEHIND_HEADER: usize = 16 << 10;

impl<'a> Spliced<'a> {
    /// Bytes in order.
    pub fn chunks(&self) -> &[&'a [u8]] {
        &self.chunks
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len()).sum()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.chunks.iter().all(|chunk| chunk.is_empty())
    }

    /// The front of large output, with [`BEHIND_HEADER`] bytes and a line after the header section at least. `ends` tells
    /// where that section ends.
    pub(crate) fn front(&self, ends: impl Fn(&[u8]) -> usize) -> Vec<u8> {
        const FIRST: usize = 64 << 10;
        let mut front: Vec<u8> = Vec::new();
        let mut wanted = FIRST;
        for chunk in &self.chunks {
            let mut rest = *chunk;
            while !rest.is_empty() {
                let (taken, behind) = rest.split_at(rest.len().min(wanted - front.len()));
                front.extend_from_slice(taken);
                rest = behind;
                if front.len() == wanted {
                    // Without a whole line behind it, it may seem to end in the name of a field that is cut.
                    let behind = front.get(ends(&front)..).unwrap_or_default();
                    if behind.len() >= BEHIND_HEADER && memchr::memchr(b'\n', behind).is_some() {
                        return front;
                    }
                    wanted *= 2;
                }
            }
        }
        front
    }

    /// Everything in one piece; borrowed if the output is one slice.
    pub fn into_bytes(self) -> Cow<'a, [u8]> {
        match self.chunks.as_slice() {
            [] => Cow::Borrowed(&[]),
            [chunk] => Cow::Borrowed(chunk),
            chunks => Cow::Owned(chunks.concat()),
        }
    }

    /// Writes everything.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write_to(&self, writer: &mut impl Write) -> io::Result<()> {
        for chunk in &self.chunks {
            writer.write_all(chunk)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
