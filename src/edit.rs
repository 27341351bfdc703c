//! Edits and [`splice`](Edits::splice): the only maker of output.
//!
//! A decision to change something is an [`Edit`]: a span of the original and the bytes that stand
//! there instead. Output is the original, copied up to each edit. No edits: the input is
//! given back borrowed, so nothing can have changed.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::span::Span;

/// One replacement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// The bytes that go; an empty span is an insertion.
    pub span: Span,
    /// The bytes that come.
    pub replacement: Vec<u8>,
}

impl Edit {
    /// Replaces a span.
    #[must_use]
    pub fn replace(span: Span, replacement: impl Into<Vec<u8>>) -> Self {
        Self {
            span,
            replacement: replacement.into(),
        }
    }

    /// Removes a span.
    #[must_use]
    pub fn remove(span: Span) -> Self {
        Self::replace(span, Vec::new())
    }

    /// Inserts bytes.
    #[must_use]
    pub fn insert(at: usize, bytes: impl Into<Vec<u8>>) -> Self {
        Self::replace(Span::empty_at(at), bytes)
    }

    /// Octets the output gains by this edit; negative if it loses some.
    #[must_use]
    pub fn growth(&self) -> i64 {
        self.replacement.len() as i64 - self.span.len() as i64
    }

    /// Octets the output gains by all of these together; 0 if it loses some.
    #[must_use]
    pub fn growth_of(edits: &[Self]) -> u64 {
        let gained: i64 = edits.iter().map(Self::growth).sum();
        u64::try_from(gained).unwrap_or_default()
    }
}

/// Edits that stand or fall together; an external body is one group.
pub type Group = Vec<Edit>;

/// Sorted, disjoint edits of one original.
#[derive(Clone, Default, Debug)]
pub struct Edits {
    edits: Vec<Edit>,
}

/// A group was refused because it overlaps edits that were there before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("an edit of bytes {start}..{end} overlaps another", start = .0.start, end = .0.end)]
pub struct Overlap(pub Span);

impl Edits {
    /// No edits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the output is the input.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// The edits, sorted by where they stand.
    #[must_use]
    pub fn as_slice(&self) -> &[Edit] {
        &self.edits
    }

    /// Adds all edits of a group, or none.
    ///
    /// Two insertions at one place stay in the order in which they were added.
    ///
    /// # Errors
    /// [`Overlap`] if a span of the group meets one that is there, or another of the group.
    pub fn add(&mut self, mut group: Group) -> Result<(), Overlap> {
        group.sort_by_key(|edit| (edit.span.start, edit.span.end));
        if let Some(pair) = group
            .windows(2)
            .find(|pair| pair[0].span.end > pair[1].span.start)
        {
            return Err(Overlap(pair[1].span));
        }
        if let Some(span) = group
            .iter()
            .map(|edit| edit.span)
            .find(|&span| self.meets(span))
        {
            return Err(Overlap(span));
        }
        let in_order = match (self.edits.last(), group.first()) {
            (Some(last), Some(first)) => last.span <= first.span,
            _ => true,
        };
        self.edits.extend(group);
        if !in_order {
            self.edits
                .sort_by_key(|edit| (edit.span.start, edit.span.end));
        }
        Ok(())
    }

    /// Whether an edit that is there shares bytes with `span`, or one lies inside the other.
    fn meets(&self, span: Span) -> bool {
        let from = self
            .edits
            .partition_point(|edit| edit.span.end <= span.start);
        let inside = |edit: &Edit| edit.span.start < span.end;
        self.edits.get(from).is_some_and(inside)
    }

    /// The output: the original with the edits made. Nothing is copied but the replacements.
    #[must_use]
    pub fn splice(self, original: &[u8]) -> Spliced<'_> {
        let mut chunks = Vec::with_capacity(self.edits.len() * 2 + 1);
        let mut at = 0;
        for edit in self.edits {
            let kept = Span::new(at, edit.span.start).of(original);
            if !kept.is_empty() {
                chunks.push(Cow::Borrowed(kept));
            }
            at = edit.span.end;
            if !edit.replacement.is_empty() {
                chunks.push(Cow::Owned(edit.replacement));
            }
        }
        let rest = original.get(at..).unwrap_or_default();
        if !rest.is_empty() {
            chunks.push(Cow::Borrowed(rest));
        }
        Spliced { chunks }
    }
}

/// Output as a sequence of slices, most of them borrowed from the original.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Spliced<'a> {
    chunks: Vec<Cow<'a, [u8]>>,
}

impl<'a> Spliced<'a> {
    /// The input as output.
    #[must_use]
    pub fn untouched(original: &'a [u8]) -> Self {
        Edits::new().splice(original)
    }

    /// Bytes that were made elsewhere.
    #[must_use]
    pub fn owned(bytes: Vec<u8>) -> Spliced<'static> {
        Spliced::from_bytes(Cow::Owned(bytes))
    }

    /// One piece.
    #[must_use]
    pub fn from_bytes(bytes: Cow<'a, [u8]>) -> Self {
        Self {
            chunks: vec![bytes],
        }
    }

    /// Bytes with edits made in them; borrowed pieces stay borrowed.
    #[must_use]
    pub fn edited(bytes: Cow<'a, [u8]>, edits: Edits) -> Self {
        match bytes {
            _ if edits.is_empty() => Self::from_bytes(bytes),
            Cow::Borrowed(bytes) => edits.splice(bytes),
            Cow::Owned(bytes) => Spliced::owned(edits.splice(&bytes).into_bytes().into_owned()),
        }
    }

    /// Bytes in order.
    #[must_use]
    pub fn chunks(&self) -> &[Cow<'a, [u8]>] {
        &self.chunks
    }

    /// The edits that make this output of `original`, if every piece that was not made anew is a
    /// slice of it; none if the output was built in one piece.
    #[must_use]
    pub fn as_edits(&self, original: &[u8]) -> Option<Vec<Edit>> {
        let first = original.as_ptr().addr();
        let mut edits = Vec::new();
        let mut new: Vec<u8> = Vec::new();
        let mut at = 0;
        for chunk in &self.chunks {
            match chunk {
                Cow::Owned(bytes) => new.extend_from_slice(bytes),
                Cow::Borrowed(bytes) => {
                    let start = bytes.as_ptr().addr().checked_sub(first)?;
                    if start < at || start + bytes.len() > original.len() {
                        return None;
                    }
                    if start > at || !new.is_empty() {
                        edits.push(Edit::replace(
                            Span::new(at, start),
                            std::mem::take(&mut new),
                        ));
                    }
                    at = start + bytes.len();
                }
            }
        }
        if at < original.len() || !new.is_empty() {
            if at == 0
                && self
                    .chunks
                    .iter()
                    .all(|chunk| matches!(chunk, Cow::Owned(_)))
            {
                return None;
            }
            edits.push(Edit::replace(Span::new(at, original.len()), new));
        }
        Some(edits)
    }

    /// Number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len()).sum()
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.iter().all(|chunk| chunk.is_empty())
    }

    /// Everything in one piece; borrowed if the output is one piece of the original.
    #[must_use]
    pub fn into_bytes(mut self) -> Cow<'a, [u8]> {
        match self.chunks.len() {
            0 => Cow::Borrowed(&[]),
            1 => self.chunks.remove(0),
            _ => Cow::Owned(self.chunks.concat()),
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_edits_borrow_the_input() {
        let output = Edits::new().splice(b"abc").into_bytes();
        assert!(matches!(output, Cow::Borrowed(b"abc")));
    }

    #[test]
    fn a_group_that_overlaps_is_refused_whole() {
        let mut edits = Edits::new();
        edits
            .add(vec![Edit::replace(Span::new(2, 4), b"x".to_vec())])
            .expect("the first group");
        let group = vec![
            Edit::insert(0, b"y".to_vec()),
            Edit::remove(Span::new(3, 5)),
        ];
        assert!(edits.add(group).is_err());
        assert_eq!(edits.splice(b"abcdef").into_bytes().as_ref(), b"abxef");
    }

    #[test]
    fn edits_can_be_read_off_the_output() {
        let original = b"abcdef".to_vec();
        let mut edits = Edits::new();
        edits
            .add(vec![
                Edit::insert(0, b"x".to_vec()),
                Edit::remove(Span::new(2, 3)),
                Edit::replace(Span::new(5, 6), b"yy".to_vec()),
            ])
            .expect("disjoint edits");
        let list = edits.as_slice().to_vec();
        assert_eq!(edits.splice(&original).as_edits(&original), Some(list));
        assert_eq!(
            Spliced::untouched(&original).as_edits(&original),
            Some(Vec::new())
        );
        assert_eq!(Spliced::owned(b"new".to_vec()).as_edits(&original), None);
    }

    proptest! {
        #[test]
        fn bytes_outside_edits_are_the_inputs(
            original in proptest::collection::vec(any::<u8>(), 0..60),
            cuts in proptest::collection::vec((0usize..60, 0usize..6, "[a-c]{0,3}"), 0..8),
        ) {
            let mut edits = Edits::new();
            for (start, length, text) in cuts {
                let start = start.min(original.len());
                let end = (start + length).min(original.len());
                let _ = edits.add(vec![Edit::replace(Span::new(start, end), text)]);
            }
            let list = edits.as_slice().to_vec();
            let output = edits.splice(&original);
            prop_assert_eq!(output.len(), output.clone().into_bytes().len());
            let growth: i64 = list.iter().map(Edit::growth).sum();
            prop_assert_eq!(output.len() as i64, original.len() as i64 + growth);
            let output = output.into_bytes();
            let (mut from, mut to) = (0, 0);
            for edit in &list {
                let kept = &original[from..edit.span.start];
                prop_assert_eq!(kept, &output[to..to + kept.len()]);
                to += kept.len() + edit.replacement.len();
                from = edit.span.end;
            }
            prop_assert_eq!(&original[from..], &output[to..]);
        }
    }

    /// Takes a few octets at a time, is interrupted before each of them, and is full behind `room`.
    struct Faulty {
        taken: Vec<u8>,
        room: usize,
        interrupted: bool,
    }

    impl Write for Faulty {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.interrupted = !self.interrupted;
            if self.interrupted {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if self.taken.len() == self.room {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let most = bytes.len().min(3).min(self.room - self.taken.len());
            self.taken.extend_from_slice(&bytes[..most]);
            Ok(most)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn interrupted_and_short_writes_lose_nothing_and_a_full_disk_is_an_error() {
        let original = b"0123456789".repeat(5);
        let edited = || {
            let mut edits = Edits::new();
            let group = vec![
                Edit::insert(0, b"front".to_vec()),
                Edit::replace(Span::new(10, 30), b"instead".to_vec()),
            ];
            edits.add(group).expect("they are apart");
            edits.splice(&original)
        };
        let whole = edited().into_bytes().into_owned();
        for room in 0..=whole.len() {
            let mut writer = Faulty {
                taken: Vec::new(),
                room,
                interrupted: false,
            };
            let outcome = edited().write_to(&mut writer);
            assert_eq!(outcome.is_ok(), room == whole.len(), "room for {room}");
            assert_eq!(writer.taken, whole[..room]);
        }
    }
}
