//! An mbox, or another file of messages (`forms`), of any size, walked in windows of whole messages.
//!
//! Chunks put together are the file, and the division into messages does not depend on the window's size. Memory is one
//! window, more only for a message that is larger, up to a bound: a message beyond it is passed on in windows that
//! nobody looks into. If its header does not end within the bound either, its Content-Length is not known, and
//! separators alone divide what follows.

use std::borrow::Cow;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::sync::{Arc, Mutex};

use super::source::{Source, read_between};
use crate::error::unpoisoned;
#[cfg(test)]
use crate::mailbox::forms::lie::Lie;
use crate::mailbox::forms::mbox::{self, Counted, Frame, Progress};
use crate::mailbox::forms::separator::{LOOK_AHEAD, next_separator};
use crate::mailbox::forms::{Division, carriage, eudora, mmdf};
use crate::mailbox::read::message_check::check_message;
use crate::mailbox::start::before_first_message;

/// A separator may start within it and not be seen: as much as one can need, and the empty line before it.
const UNSURE: usize = LOOK_AHEAD + 8;

/// A message of so many windows weighs as much as one.
const LIGHT: usize = 8;

/// Whole messages, or octets of one that are passed on.
pub(crate) struct Chunk {
    /// The chunk is the first [`length`](Self::length) bytes of this.
    buffer: Vec<u8>,
    buffers: Arc<Buffers>,
    /// File and offset from which the bytes can be read again. `None` for a stream, or if the bytes were converted while
    /// they were read.
    place: Option<(Arc<File>, u64)>,
    /// Digest of the bytes while the buffer is freed. `None` otherwise.
    let_go: Option<u64>,
    pub(crate) length: usize,
    /// Where the chunk begins in what is read.
    pub(crate) offset: u64,
    /// Bytes outside of them (before the first separator, or of a message that is too large) are passed on.
    pub(crate) frames: Vec<Frame>,
    pub(crate) first_number: u64,
    pub(crate) oversized: u64,
    /// The bytes are what damage left of a mailbox before its first message.
    pub(crate) is_torn: bool,
}

impl Chunk {
    pub(crate) fn messages(&self) -> u64 {
        self.frames.len() as u64 + self.oversized
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }

    /// The message of that frame as it is read.
    ///
    /// # Errors
    /// Bytes of the frame belong to nothing.
    pub(crate) fn text(&self, index: usize) -> io::Result<Text<'_>> {
        let bytes = self.bytes();
        let frame = self.frames[index].looked_at(bytes);
        let raw = &bytes[frame.start..frame.end];
        let text = match carriage::ends_lines_with_cr(raw) {
            false => Text {
                bytes: Cow::Borrowed(bytes),
                frame,
                has_cr: false,
            },
            true => {
                let read = carriage::in_line_feeds(raw);
                let alone = Frame {
                    start: 0,
                    end: read.len(),
                    ..Frame::default()
                };
                let alone = match frame.is_mboxcl2 {
                    true => Frame::counted(
                        0,
                        frame
                            .content_end
                            .map_or(read.len(), |end| end - frame.start),
                        read.len(),
                    ),
                    false => alone.looked_at(&read),
                };
                Text {
                    bytes: Cow::Owned(read),
                    frame: alone,
                    has_cr: true,
                }
            }
        };
        check_message(&frame, text.parts(), self.offset + frame.start as u64)?;
        Ok(text)
    }

    /// The message as the mailbox holds it.
    pub(crate) fn raw(&self, index: usize) -> &[u8] {
        let frame = self.frames[index];
        &self.bytes()[frame.start..frame.end]
    }

    /// Frees the buffer and returns the number of bytes that the chunk still uses, or `None` if the buffer cannot be read
    /// again.
    pub(crate) fn let_go(&mut self) -> Option<usize> {
        self.place.as_ref()?;
        self.let_go = Some(digest(self.bytes()));
        self.free_buffer();
        Some(size_of::<Self>() + self.frames.len() * size_of::<Frame>())
    }

    /// Reads the bytes again if the buffer was freed.
    ///
    /// # Errors
    /// The file cannot be read, or it was changed in the meantime.
    pub(crate) fn read_again(&mut self) -> io::Result<()> {
        let (Some(expected), Some((file, offset))) = (self.let_go.take(), &self.place) else {
            return Ok(());
        };
        let mut buffer = match self.length <= self.buffers.window {
            true => self.buffers.take(),
            false => vec![0; self.length],
        };
        let bytes = buffer.get_mut(..self.length).unwrap_or_default();
        let end = offset + self.length as u64;
        let filled = read_between(file, *offset, end, bytes)?;
        if filled < self.length || digest(bytes) != expected {
            let what =
                "another program changed the mailbox while it was read; run the same command again";
            return Err(io::Error::other(what));
        }
        self.buffer = buffer;
        Ok(())
    }

    fn free_buffer(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        if buffer.len() == self.buffers.window {
            unpoisoned(self.buffers.spare.lock()).push(buffer);
        }
    }

    /// A message of several windows weighs as one: else the other threads would wait while one works on it.
    pub(crate) fn weight(&self) -> usize {
        let window = self.buffers.window;
        match self.length {
            length if length <= window.saturating_mul(LIGHT) => length.min(window),
            length => length,
        }
    }
}

/// A message as it is read.
pub(crate) struct Text<'c> {
    /// The chunk's; or those of the message alone, in LF, if its lines end with CR.
    pub(crate) bytes: Cow<'c, [u8]>,
    /// Where the message is in `bytes`.
    pub(crate) frame: Frame,
    pub(crate) has_cr: bool,
}

impl Text<'_> {
    pub(crate) fn parts(&self) -> (&[u8], &[u8], &[u8]) {
        self.frame.parts(&self.bytes)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum At {
    FirstByte,
    Message,
    /// Up to the next separator; or so many bytes. Nobody looks into them.
    Passing(Option<u64>),
}

/// Touching fresh memory costs a third of the time of reading into it. Buffers that have grown are freed.
struct Buffers {
    window: usize,
    spare: Mutex<Vec<Vec<u8>>>,
}

impl Buffers {
    fn take(&self) -> Vec<u8> {
        let mut spare = unpoisoned(self.spare.lock());
        // The buffer that came back last is in the cache.
        spare.pop().unwrap_or_else(|| vec![0; self.window])
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.free_buffer();
    }
}

/// Returns a hash that shows whether bytes that are read again have changed.
fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

pub(crate) struct Windows {
    pub(crate) source: Source,
    buffers: Arc<Buffers>,
    max_message: usize,
    carried: Vec<u8>,
    filled: usize,
    /// Of the message that these bytes start, which does not end in them.
    progress: Progress,
    pub(crate) offset: u64,
    /// Where the source was read to, whatever became of the bytes.
    pub(crate) read: u64,
    /// Bytes of a message that damage cuts off.
    cut_off: u64,
    pub(crate) next_number: u64,
    pub(crate) at: At,
    /// The start tells what divides all of it.
    pub(crate) division: Division,
    /// No message may start from here on.
    pub(crate) until: u64,
    pub(crate) counted: Counted,
}

impl Windows {
    pub(crate) fn new(source: Source, window: usize, max_message: usize) -> Self {
        let window = window.max(2 * LOOK_AHEAD);
        Self {
            source,
            buffers: Arc::new(Buffers {
                window,
                spare: Mutex::default(),
            }),
            max_message: max_message.max(window),
            carried: Vec::new(),
            filled: 0,
            progress: Progress::default(),
            offset: 0,
            read: 0,
            cut_off: 0,
            next_number: 1,
            at: At::FirstByte,
            division: Division::Mbox,
            until: u64::MAX,
            counted: Counted::default(),
        }
    }

    pub(crate) fn behind(self, counted: Counted) -> Self {
        Self { counted, ..self }
    }

    pub(crate) fn next_chunk(&mut self) -> io::Result<Option<Chunk>> {
        // A message that is passed over is read up to the next one.
        if self.offset >= self.until && !matches!(self.at, At::Passing(_)) {
            return Ok(None);
        }
        let mut filled = self.filled;
        let mut buffer = match self.carried.is_empty() {
            true => self.buffers.take(),
            false => std::mem::take(&mut self.carried),
        };
        let mut full = self.buffers.window.max(buffer.len());
        let mut chunk = Chunk {
            buffer: Vec::new(),
            buffers: Arc::clone(&self.buffers),
            place: self.place(),
            let_go: None,
            length: 0,
            offset: self.offset,
            frames: Vec::new(),
            first_number: self.next_number,
            oversized: 0,
            is_torn: false,
        };
        let is_end = loop {
            let whole = self.fill(&mut buffer[..full], &mut filled)?;
            let bytes = &buffer[..filled];
            if self.at == At::FirstByte {
                if mmdf::starts(bytes) {
                    self.division = Division::Mmdf;
                    self.at = At::Message;
                } else if let Some(length) = before_first_message(bytes) {
                    self.at = match length {
                        0 => At::Message,
                        // A mark and empty lines stay in front of the first message.
                        length => At::Passing(Some(length as u64)),
                    };
                }
            }
            #[cfg(test)]
            if let Some(lie) = Lie::of_start(bytes).filter(|_| self.offset == 0) {
                self.division = Division::Lying(lie);
            }
            let mut wanted = 0;
            chunk.length = match self.at {
                At::Message => {
                    let (cut, needed) = self.frames(bytes, whole, &mut chunk.frames);
                    if let Some(needed) = needed.and_then(|n| usize::try_from(n).ok()) {
                        wanted = needed.saturating_add(LOOK_AHEAD);
                    }
                    let stuck = cut == 0 && !whole;
                    let beyond = needed.is_some_and(|needed| needed > self.max_message as u64);
                    if stuck && (filled >= self.max_message || beyond) {
                        self.at = At::Passing(needed);
                        self.counted.count(needed.is_some());
                        self.next_number += 1;
                        chunk.oversized += 1;
                        self.pass(bytes, whole, needed)
                    } else {
                        cut
                    }
                }
                At::Passing(left) => self.pass(bytes, whole, left),
                At::FirstByte => self.pass(bytes, whole, None),
            };
            if chunk.length > 0 || whole {
                break whole;
            }
            // The window grows by a part of itself, so that the time stays in proportion also where it is looked at
            // again from its start. What it is too long by is memory.
            let least = filled + self.buffers.window.max(filled / 8) + 1;
            let most = self.max_message.max(filled + 1);
            full = wanted.max(least).min(most);
            if full > buffer.len() {
                buffer.reserve_exact(full - buffer.len());
                buffer.resize(full, 0);
            }
        };
        // Nobody knows where the last message would have ended.
        let damage = self.source.damage();
        if is_end && damage.is_some_and(|damage| !damage.whole) && chunk.length == filled {
            chunk.is_torn = chunk.frames.is_empty();
            chunk.length = chunk.frames.pop().map_or(filled, |frame| frame.start);
            // What is read behind this end is empty, and cuts nothing off.
            self.cut_off += (filled - chunk.length) as u64;
            filled = chunk.length;
        }
        chunk.buffer = buffer;
        if chunk.length == 0 {
            self.filled = filled;
            return Ok(None);
        }
        // The buffer is the chunk's: what is behind the chunk is copied once, into the next one.
        let carried = &chunk.buffer[chunk.length..filled];
        self.filled = carried.len();
        if !carried.is_empty() {
            let mut next = self.buffers.take();
            if next.len() < carried.len() {
                next = vec![0; carried.len()];
            }
            next[..carried.len()].copy_from_slice(carried);
            self.carried = next;
        }
        self.offset += chunk.length as u64;
        self.next_number += chunk.frames.len() as u64;
        Ok(Some(chunk))
    }

    /// Where the next chunk can be read again.
    fn place(&self) -> Option<(Arc<File>, u64)> {
        // Line endings of classic Mac Eudora mailboxes are converted while reading, so the bytes differ from the file.
        let is_as_read = !matches!(self.division, Division::Eudora { .. });
        let (file, at) = self.source.place().filter(|_| is_as_read)?;
        Some((Arc::clone(file), at.checked_sub(self.filled as u64)?))
    }

    /// How many messages follow; reads on until there are `enough`.
    pub(crate) fn count(&mut self, enough: u64) -> io::Result<u64> {
        let mut messages = 0;
        while messages < enough
            && let Some(chunk) = self.next_chunk()?
        {
            messages += chunk.messages();
        }
        Ok(messages)
    }

    /// Whether everything that was read ends at `end`, but for what damage cuts off and for what is behind a range.
    pub(crate) fn is_read_up_to(&self, end: u64) -> bool {
        let is_all = self.filled == 0 || self.offset >= self.until;
        is_all && end == self.offset && self.read == end + self.filled as u64 + self.cut_off
    }

    fn fill(&mut self, buffer: &mut [u8], filled: &mut usize) -> io::Result<bool> {
        let before = *filled;
        *filled += self.source.fill(&mut buffer[before..])?;
        self.read += (*filled - before) as u64;
        if self.division == (Division::Eudora { has_cr: true }) {
            let mut next = [0];
            let is_more = self.source.look(0, &mut next)? > 0;
            eudora::with_line_feeds(&mut buffer[before..*filled], is_more.then_some(next[0]));
        }
        Ok(*filled < buffer.len())
    }

    /// Where the messages end, and how long the one behind is if known.
    fn frames(
        &mut self,
        bytes: &[u8],
        whole: bool,
        frames: &mut Vec<Frame>,
    ) -> (usize, Option<u64>) {
        let mut at = 0;
        let mut counted = self.counted.elsewhere();
        let source = &mut self.source;
        let mut peek = |distance: u64, there: &mut [u8]| source.look(distance, there).ok();
        while at < bytes.len() && self.offset + (at as u64) < self.until {
            let mut progress = std::mem::take(&mut self.progress);
            let from = at + progress.searched;
            let end = match self.division {
                Division::Mmdf => mmdf::end_of_message(bytes, at, from, whole)
                    .map(|(content, end)| Frame::counted(at, content, end))
                    .ok_or(None),
                Division::Eudora { .. } => eudora::next_message(bytes, from, whole)
                    .or(whole.then_some(bytes.len()))
                    .map(|end| Frame::counted(at, end, end))
                    .ok_or(None),
                #[cfg(test)]
                Division::Lying(lie) => Ok(lie.frame(bytes, at)),
                Division::Mbox if counted.is_settled => {
                    mbox::end_by_separator(bytes, at, &mut progress, whole)
                }
                Division::Mbox => {
                    mbox::end_of_message(bytes, at, whole, &mut counted, &mut progress, &mut peek)
                }
            };
            match end {
                Ok(frame) => {
                    at = frame.end;
                    counted.count(frame.content_end.is_some());
                    frames.push(frame);
                }
                Err(needed) => {
                    if self.division != Division::Mbox {
                        progress.searched = (bytes.len() - at).saturating_sub(UNSURE);
                    }
                    self.progress = progress;
                    self.counted = counted;
                    return (at, needed.map(|end| end.saturating_sub(at as u64)));
                }
            }
        }
        self.counted = counted;
        (at, None)
    }

    fn pass(&mut self, bytes: &[u8], whole: bool, left: Option<u64>) -> usize {
        let searched = std::mem::take(&mut self.progress).searched;
        if let Some(left) = left {
            let passed = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
            self.at = match left - passed as u64 {
                0 => At::Message,
                left => At::Passing(Some(left)),
            };
            return passed;
        }
        // The `From ` line of the message that is passed is no separator here: offset 0 has no `\n` before it. An empty
        // first line of the *file* counts, one of a window does not.
        let from = searched.max(usize::from(self.at != At::FirstByte) * 2);
        let next = match self.division {
            Division::Mmdf => mmdf::closing(bytes, from, whole).map(|(_, end)| end),
            Division::Eudora { .. } => eudora::next_message(bytes, from, whole),
            Division::Mbox => next_separator(bytes, from, whole),
            #[cfg(test)]
            Division::Lying(_) => None,
        };
        self.at = next.map_or(At::Passing(None), |_| At::Message);
        match next {
            Some(next) => next,
            None if whole => bytes.len(),
            None => bytes.len().saturating_sub(UNSURE),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
