//! Composition of two consecutive sets of edits ([`Edits::then`]).

use bytes::Bytes;

use super::{Edit, Edits};
use crate::span::Span;

impl Edits {
    /// Combines these edits with `next`, which are edits of their output. The result is one set of edits of the
    /// original that gives the same output as both sets one after the other.
    ///
    /// Replacements longer than [`ChunkJoiner::LONG`] are shared, not copied.
    pub(crate) fn then(self, original_length: usize, next: Self) -> Self {
        if self.is_empty() {
            return next;
        }
        let mut joined = ChunkJoiner::default();
        let mut chunks = chunks(self, original_length);
        let mut at = 0;
        for edit in next {
            take(&mut chunks, edit.span.start - at, |chunk| {
                joined.push(chunk)
            });
            take(&mut chunks, edit.span.len(), |_| ());
            joined.push(EditChunk::New(edit.replacement));
            at = edit.span.end;
        }
        chunks.into_iter().rev().for_each(|it| joined.push(it));
        joined.close(original_length);
        Self::in_order(joined.edits)
    }
}

enum EditChunk {
    Kept(Span),
    New(Bytes),
}

impl EditChunk {
    fn len(&self) -> usize {
        match self {
            Self::Kept(span) => span.len(),
            Self::New(bytes) => bytes.len(),
        }
    }

    /// Removes the first `length` bytes of the chunk and returns them. No bytes are copied.
    fn split_to(&mut self, length: usize) -> Self {
        match self {
            Self::Kept(span) => {
                let start = span.start;
                span.start += length;
                Self::Kept(Span::new(start, span.start))
            }
            Self::New(bytes) => Self::New(bytes.split_to(length)),
        }
    }
}

/// Returns the output of the edits as chunks in reverse order, so that [`take`] can pop the first chunk off the end.
fn chunks(edits: Edits, original_length: usize) -> Vec<EditChunk> {
    let mut chunks = Vec::with_capacity(edits.len() * 2 + 1);
    let mut at = 0;
    for edit in edits {
        chunks.push(EditChunk::Kept(Span::new(at, edit.span.start)));
        chunks.push(EditChunk::New(edit.replacement));
        at = edit.span.end;
    }
    chunks.push(EditChunk::Kept(Span::new(at, original_length)));
    chunks.reverse();
    chunks
}

/// Removes the first `length` bytes of the output from `chunks`, or all remaining bytes, and passes them to `taken`.
fn take(chunks: &mut Vec<EditChunk>, mut length: usize, mut taken: impl FnMut(EditChunk)) {
    while length > 0
        && let Some(first) = chunks.last_mut()
    {
        if first.len() > length {
            return taken(first.split_to(length));
        }
        length -= first.len();
        chunks.pop().into_iter().for_each(&mut taken);
    }
}

#[derive(Default)]
struct ChunkJoiner {
    edits: Vec<Edit>,
    /// End of the last chunk of the original that was pushed.
    at: usize,
    /// New bytes after that chunk, in one of two buffers: `shared` is a single replacement without copying, `own`
    /// collects several short ones.
    shared: Bytes,
    own: Vec<u8>,
}

impl ChunkJoiner {
    /// Length in bytes above which a replacement is not joined with the replacements next to it, because joining copies
    /// it.
    const LONG: usize = 4 << 10;

    fn push(&mut self, chunk: EditChunk) {
        match chunk {
            EditChunk::Kept(span) if span.is_empty() => {}
            EditChunk::Kept(span) => {
                self.close(span.start);
                self.at = span.end;
            }
            EditChunk::New(bytes) if bytes.is_empty() => {}
            EditChunk::New(bytes) if !self.has_new() => self.shared = bytes,
            EditChunk::New(bytes) if bytes.len().max(self.shared.len()) > Self::LONG => {
                self.close(self.at);
                self.shared = bytes;
            }
            EditChunk::New(bytes) => {
                let first = std::mem::take(&mut self.shared);
                self.own.extend_from_slice(&first);
                self.own.extend_from_slice(&bytes);
            }
        }
    }

    fn has_new(&self) -> bool {
        !(self.shared.is_empty() && self.own.is_empty())
    }

    /// Completes the current edit before a chunk of the original that begins at `start` and is kept. The edit replaces
    /// the bytes of the original between the last kept chunk and `start` with the new bytes.
    fn close(&mut self, start: usize) {
        if start > self.at || self.has_new() {
            let shared = std::mem::take(&mut self.shared);
            let own = std::mem::take(&mut self.own);
            self.edits.push(Edit {
                span: Span::new(self.at, start),
                replacement: if own.is_empty() { shared } else { own.into() },
            });
        }
    }
}
