//! Divides an mbox, or another file with many messages, of any size into chunks of complete messages.
//!
//! The chunks together contain all bytes of the file, and the division into messages does not depend on the window
//! size. A window is kept in memory, which grows only for a larger message, up to a limit: the bytes of a message
//! beyond the limit are passed on without being examined. If the header of such a message does not end within the
//! limit, its Content-Length is unknown, and only separators divide the messages after it.

mod chunk;

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use super::source::InputSource;
#[cfg(test)]
use crate::mailbox::forms::lie::Lie;
use crate::mailbox::forms::mbox::{Frame, MboxReadState, MessageEndSearch};
use crate::mailbox::forms::separator::{LOOK_AHEAD, next_separator};
use crate::mailbox::forms::{Division, eudora, mmdf};
use crate::mailbox::start::before_first_message;
use chunk::Buffers;
pub(crate) use chunk::{MessageText, WindowChunk};

/// Number of bytes at the end of a window that are searched again together with the next window. A separator that
/// starts there is recognised only when the bytes after it are read.
const UNSURE: usize = LOOK_AHEAD + 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WindowPosition {
    FirstByte,
    Message,
    /// Inside bytes that are passed on without being examined: a message that is too large, or empty lines before the
    /// first message. `Some` contains the number of these bytes that are left. `None` means that they end at the next
    /// separator.
    Passing(Option<u64>),
}

pub(crate) struct Windows {
    pub(crate) source: InputSource,
    buffers: Arc<Buffers>,
    max_message: usize,
    carried: Vec<u8>,
    filled: usize,
    /// State of the search for the end of the incomplete message in `carried`. The search continues with the next
    /// window instead of starting again.
    progress: MessageEndSearch,
    pub(crate) offset: u64,
    /// Offset up to which the source was read. It includes the bytes that are not in a chunk yet.
    pub(crate) read: u64,
    /// Number of bytes of a last message that is incomplete because of damage. They are not passed on.
    cut_off: u64,
    pub(crate) next_number: u64,
    pub(crate) at: WindowPosition,
    /// Rule by which the file is divided into messages. The first bytes of the file determine the rule: for example, an
    /// MMDF file begins with four Control-A characters.
    pub(crate) division: Division,
    /// Offset at which a requested range ends: a message that starts there or later is not returned.
    pub(crate) until: u64,
    pub(crate) counted: MboxReadState,
}

impl Windows {
    pub(crate) fn new(source: InputSource, window: usize, max_message: usize) -> Self {
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
            progress: MessageEndSearch::default(),
            offset: 0,
            read: 0,
            cut_off: 0,
            next_number: 1,
            at: WindowPosition::FirstByte,
            division: Division::Mbox,
            until: u64::MAX,
            counted: MboxReadState::default(),
        }
    }

    pub(crate) fn behind(self, counted: MboxReadState) -> Self {
        Self { counted, ..self }
    }

    pub(crate) fn next_chunk(&mut self) -> io::Result<Option<WindowChunk>> {
        let mut chunk = self.read_chunk()?;
        if let (Some(chunk), Some(packed)) = (&mut chunk, self.source.packed()) {
            chunk.packed = Some(packed.news());
        }
        Ok(chunk)
    }

    fn read_chunk(&mut self) -> io::Result<Option<WindowChunk>> {
        // The end of the requested range was reached. If this end is inside a message that is being skipped, reading
        // continues up to the next message.
        if self.offset >= self.until && !matches!(self.at, WindowPosition::Passing(_)) {
            return Ok(None);
        }
        let mut filled = self.filled;
        let mut buffer = if self.carried.is_empty() {
            self.buffers.take()
        } else {
            std::mem::take(&mut self.carried)
        };
        let mut full = self.buffers.window.max(buffer.len());
        let mut chunk = WindowChunk {
            buffer: Vec::new(),
            buffers: Arc::clone(&self.buffers),
            place: self.place(),
            let_go: None,
            length: 0,
            packed: None,
            offset: self.offset,
            frames: Vec::new(),
            first_number: self.next_number,
            oversized: 0,
            is_torn: false,
            is_utf16: self.source.is_utf16(),
            division: self.division,
            appended: OnceLock::new(),
        };
        let is_end = loop {
            let whole = self.fill(&mut buffer[..full], &mut filled)?;
            let bytes = &buffer[..filled];
            if self.at == WindowPosition::FirstByte {
                if mmdf::starts(bytes) {
                    self.division = Division::Mmdf;
                    self.at = WindowPosition::Message;
                } else if let Some(length) = before_first_message(bytes) {
                    self.at = match length {
                        0 => WindowPosition::Message,
                        // A byte order mark and empty lines are not part of the first message.
                        length => WindowPosition::Passing(Some(length as u64)),
                    };
                }
            }
            #[cfg(test)]
            if let Some(lie) = Lie::of_start(bytes).filter(|_| self.offset == 0) {
                self.division = Division::Lying(lie);
            }
            let mut wanted = 0;
            chunk.length = match self.at {
                WindowPosition::Message => {
                    let (cut, needed) = self.frames(bytes, whole, &mut chunk.frames);
                    if let Some(needed) = needed.and_then(|n| usize::try_from(n).ok()) {
                        wanted = needed.saturating_add(LOOK_AHEAD);
                    }
                    let stuck = cut == 0 && !whole;
                    let beyond = needed.is_some_and(|needed| needed > self.max_message as u64);
                    if stuck && (filled >= self.max_message || beyond) {
                        self.at = WindowPosition::Passing(needed);
                        self.counted.count(needed.is_some());
                        self.next_number += 1;
                        chunk.oversized += 1;
                        self.pass(bytes, whole, needed)
                    } else {
                        cut
                    }
                }
                WindowPosition::Passing(left) => self.pass(bytes, whole, left),
                WindowPosition::FirstByte => self.pass(bytes, whole, None),
            };
            if chunk.length > 0 || whole {
                break whole;
            }
            // The window grows by a fraction of its size, so that the time stays proportional to the size of the message,
            // even if the window is searched again from its start. The unused part only costs memory.
            let least = filled + self.buffers.window.max(filled / 8) + 1;
            let most = self.max_message.max(filled + 1);
            full = wanted.max(least).min(most);
            if full > buffer.len() {
                buffer.reserve_exact(full - buffer.len());
                buffer.resize(full, 0);
            }
        };
        // The damage may have removed the end of the last message, so this message is not returned.
        let damage = self.source.damage();
        if is_end && damage.is_some_and(|damage| !damage.whole) && chunk.length == filled {
            chunk.is_torn = chunk.frames.is_empty();
            chunk.length = chunk.frames.pop().map_or(filled, |frame| frame.start);
            // The number is added, not assigned. After the damage, the source returns no more bytes, and the next call
            // would overwrite the number with 0.
            self.cut_off += (filled - chunk.length) as u64;
            filled = chunk.length;
        }
        chunk.division = self.division;
        chunk.buffer = buffer;
        if chunk.length == 0 {
            self.filled = filled;
            return Ok(None);
        }
        // The chunk owns the buffer. The bytes after the chunk are copied once, to the buffer of the next chunk.
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

    /// Returns the file and offset from which the next chunk can be read again.
    fn place(&self) -> Option<(Arc<File>, u64)> {
        // Eudora of classic Mac OS ends lines with CR. These line endings are converted while reading, so the bytes in
        // memory differ from the file and cannot be read again.
        let is_as_read = !matches!(self.division, Division::Eudora { .. });
        let (file, at) = self.source.place().filter(|_| is_as_read)?;
        Some((Arc::clone(file), at.checked_sub(self.filled as u64)?))
    }

    /// Returns the number of messages from here to the end of the mailbox. Stops reading when `enough` messages were
    /// counted.
    pub(crate) fn count(&mut self, enough: u64) -> io::Result<u64> {
        let mut messages = 0;
        while messages < enough
            && let Some(chunk) = self.next_chunk()?
        {
            messages += chunk.messages();
        }
        Ok(messages)
    }

    /// Returns whether the chunks up to offset `end` contain all bytes that were read, so that none was lost. Bytes
    /// that damage cut off and bytes after the requested range are not expected to be in a chunk.
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

    /// Adds the complete messages in the window to `frames`. Returns the end of the last one. If the message after it
    /// is incomplete but has a Content-Length, also returns the length of that message.
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
            let end = self.division.end_of_message(
                bytes,
                (at, whole),
                &mut counted,
                &mut progress,
                &mut peek,
            );
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
                0 => WindowPosition::Message,
                left => WindowPosition::Passing(Some(left)),
            };
            return passed;
        }
        // If a message is being skipped, `bytes` begins in one of two ways. If `bytes` begins with the message, the
        // separator at offset 0 belongs to the message and does not end it. If `bytes` begins inside the message, a
        // line ending at offset 0 (at most two bytes, CR LF) belongs to a line of an earlier window and is not an empty
        // line. In both cases, the next separator can only be found from offset 2.
        let from = searched
            .max(usize::from(self.at != WindowPosition::FirstByte) * 2)
            .min(bytes.len());
        let next = match self.division {
            Division::Mmdf => mmdf::closing(bytes, from, whole).map(|(_, end)| end),
            Division::Eudora { .. } => eudora::next_message(bytes, from, whole),
            Division::Mbox => next_separator(bytes, from, whole),
            #[cfg(test)]
            Division::Lying(_) => None,
        };
        self.at = next.map_or(WindowPosition::Passing(None), |_| WindowPosition::Message);
        match next {
            Some(next) => next,
            None if whole => bytes.len(),
            None => bytes.len().saturating_sub(UNSURE),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
