//! Edits of a message, and the code that applies them ([`splice`](Edits::splice)). All output consists of bytes of
//! the original, except where an edit replaces them. Without edits, the original itself is returned, so no byte can
//! have changed.

mod joined;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use bytes::Bytes;

use crate::span::Span;

/// Replacement of one span of the original.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// Bytes of the original that are removed. If the span is empty, the edit is an insertion.
    pub span: Span,
    /// Bytes that are inserted. The replacements of several edits can share one buffer.
    pub replacement: Bytes,
}

impl Edit {
    /// Returns an edit that replaces the bytes of a span.
    pub fn replace(span: Span, replacement: impl Into<Vec<u8>>) -> Self {
        Self {
            span,
            replacement: Bytes::from(replacement.into()),
        }
    }

    /// Returns an edit that removes the bytes of a span.
    pub fn remove(span: Span) -> Self {
        Self::replace(span, Vec::new())
    }

    /// Returns an edit that inserts bytes at an offset.
    pub fn insert(at: usize, bytes: impl Into<Vec<u8>>) -> Self {
        Self::replace(Span::empty_at(at), bytes)
    }

    /// Returns how many bytes longer the edit makes the output. Negative if the output becomes shorter.
    pub fn growth(&self) -> i64 {
        self.replacement.len() as i64 - self.span.len() as i64
    }
}

/// A group of edits, such as all edits for one external body. If one of them cannot be made, none of them is made.
pub(crate) type Group = Vec<Edit>;

/// Edits of one original, sorted by their spans, which do not overlap.
#[derive(Clone, Default, Debug)]
pub struct Edits {
    /// Edits in the order of the original. Most edits are added in this order.
    edits: Vec<Edit>,
    /// Edits that were added out of order, by span and order of insertion. Inserting each of them into the sorted
    /// vector would move all edits after it.
    late: BTreeMap<(Span, usize), Edit>,
}

/// Error for an edit that overlaps an earlier one. It is rejected because the output would depend on the order of the
/// two.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("two edits overlap; one of them changes the bytes {start}..{end}", start = .0.start, end = .0.end)]
pub struct Overlap(pub(crate) Span);

impl Edits {
    /// Returns an empty set of edits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether there are no edits, so that the output is the input.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of edits.
    pub fn len(&self) -> usize {
        self.edits.len() + self.late.len()
    }

    /// Returns the edits in the order of their spans.
    pub fn iter(&self) -> impl Iterator<Item = &Edit> {
        let (mut edits, mut late) = (self.edits.iter().peekable(), self.late.values().peekable());
        std::iter::from_fn(move || match (edits.peek(), late.peek()) {
            (Some(edit), Some(other)) if other.span < edit.span => late.next(),
            (None, _) => late.next(),
            _ => edits.next(),
        })
    }

    /// Collects edits, which can be in any order.
    ///
    /// # Errors
    /// [`Overlap`] if two of the edits overlap.
    pub fn of(edits: impl IntoIterator<Item = Edit>) -> Result<Self, Overlap> {
        let mut all = Self::new();
        all.add(edits.into_iter().collect())?;
        Ok(all)
    }

    /// Collects edits that are already sorted and do not overlap.
    fn in_order(edits: impl IntoIterator<Item = Edit>) -> Self {
        Self {
            edits: edits.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Adds all edits of the group, or returns an error and adds none of them. Two insertions at the same offset are
    /// kept in the order in which they were added.
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
            // A group can contain a million edits, so the vector is moved instead of copied.
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

    /// Returns whether an edit overlaps the span. An insertion inside the span, and an edit around an empty span, also
    /// count, although they have no bytes in common.
    pub(crate) fn meets(&self, span: Span) -> bool {
        let from = self
            .edits
            .partition_point(|edit| edit.span.end <= span.start);
        let inside = |edit: &Edit| edit.span.start < span.end;
        // Only the last late edit that begins before the end of the span must be checked. Edits do not overlap, so it
        // also ends last.
        let late = self.late.range(..(Span::empty_at(span.end), 0)).next_back();
        self.edits.get(from).is_some_and(inside)
            || late.is_some_and(|(_, edit)| edit.span.end > span.start)
    }

    /// Returns the output and the edits. The output is `None` if there are no edits. The replacements in the returned
    /// edits are slices of the output: each replacement is freed after it was copied, so that inserted content is not
    /// in memory twice.
    pub(crate) fn put_together(self, original: &[u8]) -> (Option<Bytes>, Self) {
        if self.is_empty() {
            return (None, self);
        }
        let length = self.splice(original).len();
        let mut octets = Vec::with_capacity(length);
        let mut places = Vec::with_capacity(self.len());
        let mut at = 0;
        for Edit { span, replacement } in self {
            octets.extend_from_slice(&original[at..span.start]);
            let start = octets.len();
            octets.extend_from_slice(&replacement);
            places.push((span, start..octets.len()));
            at = span.end;
        }
        octets.extend_from_slice(&original[at..]);
        let output = Bytes::from(octets);
        let edits = Self::in_order(places.into_iter().map(|(span, place)| Edit {
            span,
            replacement: output.slice(place),
        }));
        (Some(output), edits)
    }

    /// Returns the output (the original after all edits) as slices of the original and of the replacements. No bytes
    /// are copied.
    ///
    /// # Panics
    /// Panics if an edit is not within `original`. The edits then belong to another message, and the output would lack
    /// bytes of this one.
    pub fn splice<'a>(&'a self, original: &'a [u8]) -> Spliced<'a> {
        let mut chunks = Vec::with_capacity(self.len() * 2 + 1);
        let mut at = 0;
        for edit in self.iter() {
            let kept = &original[at..edit.span.start];
            if !kept.is_empty() {
                chunks.push(kept);
            }
            at = edit.span.end;
            if !edit.replacement.is_empty() {
                chunks.push(&edit.replacement);
            }
        }
        let rest = &original[at..];
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
            // The sort is stable: of two edits with the same span, the one that was added in order stays before the
            // late one.
            all.extend(self.late.into_values());
            all.sort_by_key(|edit| edit.span);
        }
        all.into_iter()
    }
}

/// Returns a function that computes where a span of the original starts in the output. The function returns `None` if
/// an edit changes bytes of the span or inserts bytes into it. Spans must be passed to it in ascending order.
pub(crate) fn moved(edits: &Edits) -> impl FnMut(Span) -> Option<usize> {
    let mut edits = edits.iter().peekable();
    let mut by = 0;
    move |span| {
        while let Some(edit) = edits.next_if(|edit| edit.span.end <= span.start) {
            by += edit.growth();
        }
        let mut is_kept = true;
        // The edit changes bytes of the span. If it ends after the span, it may overlap the next one, too, so it is not
        // consumed yet.
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

/// Output of [`Edits::splice`] as a sequence of slices of the original and of the replacements.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Spliced<'a> {
    chunks: Vec<&'a [u8]>,
}

/// Number of bytes after a header section that must be read to decide where it ends: a stray line, which is not a
/// field, is inside the header if enough fields follow it within this distance.
pub(crate) const BEHIND_HEADER: usize = 16 << 10;

impl<'a> Spliced<'a> {
    /// Returns the slices of the original and of the replacements, in the order in which they make up the output.
    pub fn chunks(&self) -> &[&'a [u8]] {
        &self.chunks
    }

    /// Returns the length of the output, in bytes.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len()).sum()
    }

    /// Returns whether the output is empty.
    pub fn is_empty(&self) -> bool {
        self.chunks.iter().all(|chunk| chunk.is_empty())
    }

    /// Returns the start of the output, so that a header can be read without copying a large message. The start
    /// contains the header section, then at least [`BEHIND_HEADER`] bytes and a complete line. A short output is
    /// returned completely. `ends` returns the end of the header section in the bytes that are passed to it.
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
                    // A copy that ends in the middle of a field name would seem to end the header section. Only a
                    // complete line after the section proves its end.
                    let behind = &front[ends(&front)..];
                    if behind.len() >= BEHIND_HEADER && memchr::memchr(b'\n', behind).is_some() {
                        return front;
                    }
                    wanted *= 2;
                }
            }
        }
        front
    }

    /// Returns the output in one piece. The bytes are borrowed if the output is a single slice.
    pub fn into_bytes(self) -> Cow<'a, [u8]> {
        match self.chunks.as_slice() {
            [] => Cow::Borrowed(&[]),
            [chunk] => Cow::Borrowed(chunk),
            chunks => Cow::Owned(chunks.concat()),
        }
    }

    /// Writes all slices in order.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn write_to(&self, writer: &mut impl Write) -> io::Result<()> {
        for chunk in &self.chunks {
            writer.write_all(chunk)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
