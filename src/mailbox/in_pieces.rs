//! A message that is larger than a window, passed on in pieces while nothing in it matters.
//!
//! So it is not held whole, and while one thread looks into a piece another reads the next one. If a piece turns
//! out to matter, the message is read again from the source once its last piece has come, and worked on. If it
//! changes, what was written of it is taken back.

use std::path::Path;

use super::failure::in_full;
use super::mbox::Frame;
use super::messages::Messages;
use super::piece::Piece;
use super::pipeline::Stages as _;
use super::sample::piece_of;
use super::sink::{Bytes, Sink};
use super::source::Source;
use super::window::Chunk;
use crate::error::Error;

/// A message of which not all pieces have come.
pub(super) struct InPieces {
    /// Where in the source it starts.
    start: u64,
    number: u64,
    /// Where what is written of it starts.
    written: u64,
    is_touched: bool,
}

impl InPieces {
    /// One whose first piece comes next, of the number given.
    pub(super) fn begin(piece: &Piece, number: u64, sink: &mut Sink<'_>) -> Result<Self, Error> {
        Ok(Self {
            start: piece.start,
            number,
            written: sink.length()?,
            is_touched: false,
        })
    }

    /// One more piece has come, which matters or does not.
    pub(super) fn add(&mut self, is_touched: bool) {
        self.is_touched |= is_touched;
    }

    /// All pieces have come, and are written; the message ends at `end`. If it changes, it is written anew: how
    /// long it is now.
    ///
    /// # Errors
    /// What reading it again says, [`Error::Changed`] if it is not there any more; those of the transform and of the
    /// sink.
    pub(super) fn finish(
        self,
        end: u64,
        source: &impl Source,
        path: &Path,
        messages: &Messages<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<Option<u64>, Error> {
        if !self.is_touched {
            return Ok(None);
        }
        let changed = || Error::Changed { path: path.into() };
        let length = usize::try_from(end - self.start).map_err(|_| changed())?;
        let bytes = piece_of(source, self.start, length).map_err(|error| in_full(error, path))?;
        if bytes.len() < length {
            return Err(changed());
        }
        let chunk = Chunk {
            buffer: bytes,
            length,
            frames: vec![Frame::unread(0, length)],
            ..Chunk::new(self.number)
        };
        for part in messages.split(&chunk)? {
            if let (_, Some(new)) = messages.work(&chunk, part)? {
                sink.go_back(self.written)?;
                sink.put(&new, Bytes::New)?;
                return Ok(Some(new.len() as u64));
            }
        }
        Ok(None)
    }
}
