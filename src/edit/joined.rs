//! Edits of edited text put together to edits of the original ([`Edits::then`]).

use bytes::Bytes;

use super::{Edit, Edits};
use crate::span::Span;

impl Edits {
    /// These edits, then `next`, which are edits of the output: together edits of the original.
    ///
    /// Nothing long is copied.
    pub(crate) fn then(self, original_length: usize, next: Self) -> Self {
        if self.is_empty() {
            return next;
        }
        let mut joined = Joined::default();
        let mut chunks = chunks(self, original_length);
        let mut at = 0;
        for edit in next {
            take(&mut chunks, edit.span.start - at, |chunk| {
                joined.push(chunk)
            });
            take(&mut chunks, edit.span.len(), |_| ());
            joined.push(Chunk::New(edit.replacement));
            at = edit.span.end;
        }
        chunks.into_iter().rev().for_each(|it| joined.push(it));
        joined.close(original_length);
        Self::in_order(joined.edits)
    }
}

enum Chunk {
    Kept(Span),
    New(Bytes),
}

impl Chunk {
    fn len(&self) -> usize {
        match self {
            Self::Kept(span) => span.len(),
            Self::New(bytes) => bytes.len(),
        }
    }

    /// Takes that many bytes off its front; nothing is copied.
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

/// The output of edits, the first chunk last.
fn chunks(edits: Edits, original_length: usize) -> Vec<Chunk> {
    let mut chunks = Vec::with_capacity(edits.len() * 2 + 1);
    let mut at = 0;
    for edit in edits {
        chunks.push(Chunk::Kept(Span::new(at, edit.span.start)));
        chunks.push(Chunk::New(edit.replacement));
        at = edit.span.end;
    }
    chunks.push(Chunk::Kept(Span::new(at, original_length)));
    chunks.reverse();
    chunks
}

/// Takes that many bytes of output off the front, or all that is left.
fn take(chunks: &mut Vec<Chunk>, mut length: usize, mut taken: impl FnMut(Chunk)) {
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
struct Joined {
    edits: Vec<Edit>,
    /// The end of the last chunk of the original.
    at: usize,
    /// New bytes since then: a shared slice, or a copy of several short ones.
    shared: Bytes,
    own: Vec<u8>,
}

impl Joined {
    /// A longer replacement stays an edit of its own, and is not copied.
    const LONG: usize = 4 << 10;

    fn push(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Kept(span) if span.is_empty() => {}
            Chunk::Kept(span) => {
                self.close(span.start);
                self.at = span.end;
            }
            Chunk::New(bytes) if bytes.is_empty() => {}
            Chunk::New(bytes) if !self.has_new() => self.shared = bytes,
            Chunk::New(bytes) if bytes.len().max(self.shared.len()) > Self::LONG => {
                self.close(self.at);
                self.shared = bytes;
            }
            Chunk::New(bytes) => {
                let first = std::mem::take(&mut self.shared);
                self.own.extend_from_slice(&first);
                self.own.extend_from_slice(&bytes);
            }
        }
    }

    fn has_new(&self) -> bool {
        !(self.shared.is_empty() && self.own.is_empty())
    }

    /// The original goes on at `start`: the bytes that were left out and the new ones become one edit.
    fn close(&mut self, start: usize) {
        if start > self.at || self.has_new() {
            let shared = std::mem::take(&mut self.shared);
            let own = std::mem::take(&mut self.own);
            self.edits.push(Edit {
                span: Span::new(self.at, start),
                replacement: match own.is_empty() {
                    true => shared,
                    false => own.into(),
                },
            });
        }
    }
}
