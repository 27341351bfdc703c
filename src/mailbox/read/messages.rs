//! What is done with messages: those that something points at are transformed.

use std::io;
use std::path::Path;

use crate::edit::Edits;
use crate::error::Error;
use crate::mailbox::failure::cannot_write;
use crate::mailbox::forms::quoting::Quoting;
use crate::mailbox::forms::rewrite::{self, Misfit, Rewritten};
use crate::mailbox::read::pipeline::Stages;
use crate::mailbox::read::window::Chunk;
use crate::mailbox::{Message, Transform};

/// The stages of an mbox: a chunk's messages that something points at are transformed.
pub(crate) struct Messages<'a> {
    pub(crate) path: &'a Path,
    pub(crate) transform: &'a dyn Transform,
    pub(crate) quoting: Quoting,
    /// Messages of the mailbox that are not in the section.
    pub(crate) before: u64,
}

impl Stages for Messages<'_> {
    type Item = Chunk;
    /// An index into the chunk's frames.
    type Part = usize;
    type Done = (usize, Option<Vec<u8>>);

    fn split(&self, chunk: &Chunk) -> Result<Vec<usize>, Error> {
        let Some(first) = chunk.frames.first() else {
            return Ok(Vec::new());
        };
        // Frames tile what they cover.
        let ends: Vec<usize> = chunk
            .frames
            .iter()
            .map(|frame| frame.end - first.start)
            .collect();
        let bytes = chunk.bytes().get(first.start..).unwrap_or_default();
        Ok(self.transform.touched(bytes, &ends))
    }

    fn work(&self, chunk: &Chunk, index: usize) -> Result<Self::Done, Error> {
        let frame = chunk.frames[index].looked_at(chunk.bytes());
        let (_, content, _) = frame.parts(chunk.bytes());
        let number = self.before + chunk.first_number + index as u64;
        let message = Message {
            number,
            source: self.path,
            content,
            quoting: self.quoting,
        };
        let edits = self.transform.transform(&message)?;
        let lengths = self.transform.lengths();
        let new = rewrite::rewritten(chunk.bytes(), &frame, &edits, self.quoting, lengths);
        Ok((index, result(self.transform, &message, new)?))
    }
}

/// A single message's new bytes, if it changes; `splice` makes the change, or refuses it.
pub(crate) fn transformed(
    transform: &dyn Transform,
    message: &Message<'_>,
    splice: fn(&[u8], &Edits) -> Result<Rewritten, Misfit>,
) -> Result<Option<Vec<u8>>, Error> {
    if transform.next_touch(message.content).is_none() {
        return Ok(None);
    }
    let edits = transform.transform(message)?;
    result(transform, message, splice(message.content, &edits))
}

/// The new bytes, if there are any; a change that is refused is told.
fn result(
    transform: &dyn Transform,
    message: &Message<'_>,
    new: Result<Rewritten, Misfit>,
) -> Result<Option<Vec<u8>>, Error> {
    match new {
        Ok(Rewritten::Changed(new)) => Ok(Some(new)),
        Ok(Rewritten::Unchanged) => Ok(None),
        Ok(Rewritten::Refused) => {
            transform.refused(message);
            Ok(None)
        }
        Err(Misfit) => {
            let number = message.number;
            let what = format!("message {number}: an edit lies outside the message");
            Err(cannot_write(message.source)(io::Error::other(what)))
        }
    }
}
