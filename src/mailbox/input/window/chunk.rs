//! A part of a mailbox in memory: complete messages, whose bytes can be freed and read again to save memory.

use std::borrow::Cow;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use crate::engine::declared_charsets::in_declared_charsets;
use crate::error::unpoisoned;
use crate::mailbox::appended::{
    AppendedData, ends_unlike_text, first_sign, has_separator_with_tab,
};
use crate::mailbox::forms::mbox::{Frame, content_start};
use crate::mailbox::forms::recorded::may_begin_session;
use crate::mailbox::forms::{Division, carriage};
use crate::mailbox::input::message_check::check_message;
use crate::mailbox::input::source::read_between;

/// A message of up to this many windows counts as one window in the memory budget, so that it does not stop the other
/// threads from reading.
const LIGHT: usize = 8;

/// A part of the file: complete messages, or bytes of a message that is too large.
pub(crate) struct WindowChunk {
    /// The window. The chunk consists of its first [`length`](Self::length) bytes.
    pub(super) buffer: Vec<u8>,
    pub(super) buffers: Arc<Buffers>,
    /// File and offset from which the bytes can be read again after the buffer was freed. `None` for a stream, and if
    /// the bytes were converted while they were read.
    pub(super) place: Option<(Arc<File>, u64)>,
    /// Digest of the bytes if the buffer was freed to save memory. It shows whether the bytes have changed when they
    /// are read again. `None` while the bytes are in the buffer.
    pub(super) let_go: Option<u64>,
    pub(crate) length: usize,
    /// Number of compressed bytes that were read for this chunk. `None` if the source is not compressed.
    pub(crate) packed: Option<u64>,
    /// Offset of the chunk in the source, in bytes.
    pub(crate) offset: u64,
    /// The messages in the chunk. Bytes that belong to no frame (before the first separator, or of a message that is
    /// too large) are copied unchanged.
    pub(crate) frames: Vec<Frame>,
    pub(crate) first_number: u64,
    pub(crate) oversized: u64,
    /// Whether damage ended the mailbox before any message of this chunk was found. The bytes of the chunk then
    /// belong to no message.
    pub(crate) is_torn: bool,
    /// Whether the bytes were decoded from UTF-16. The text of a message is then encoded again, in the charsets that its
    /// parts declare.
    pub(super) is_utf16: bool,
    /// How the mailbox is divided into messages.
    pub(super) division: Division,
    /// Data of other formats in the messages, after they were searched for.
    pub(super) appended: OnceLock<Vec<AppendedPlace>>,
}

/// Data of another format in a message of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AppendedPlace {
    /// Index of the message in the chunk.
    pub(crate) index: usize,
    /// Offset of the content of the message in the source, in bytes. `None` if the source is compressed, or is no file.
    pub(crate) offset: Option<u64>,
    pub(crate) data: AppendedData,
}

impl WindowChunk {
    pub(crate) fn messages(&self) -> u64 {
        self.frames.len() as u64 + self.oversized
    }

    /// Returns the bytes of the chunk.
    ///
    /// # Panics
    /// Panics if the buffer was freed ([`let_go`](Self::let_go)) and not read again. A caller that then received no bytes
    /// would write no bytes, and the messages of the chunk would be lost.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    /// Returns the message with this index in the chunk, with LF line endings.
    ///
    /// # Errors
    /// Returns an error if a byte of the message would be lost in the division into separator, content and empty lines.
    pub(crate) fn text(&self, index: usize) -> io::Result<MessageText<'_>> {
        let bytes = self.bytes();
        let frame = self.frames[index].looked_at(bytes);
        let raw = &bytes[frame.start..frame.end];
        let text = if !carriage::ends_lines_with_cr(raw) {
            MessageText {
                bytes: Cow::Borrowed(bytes),
                frame,
                has_cr: false,
                refused: None,
            }
        } else {
            let read = carriage::in_line_feeds(raw);
            let alone = Frame {
                start: 0,
                end: read.len(),
                ..Frame::default()
            };
            let alone = if frame.is_mboxcl2 {
                Frame::counted(
                    0,
                    frame
                        .content_end
                        .map_or(read.len(), |end| end - frame.start),
                    read.len(),
                )
            } else {
                alone.looked_at(&read)
            };
            MessageText {
                bytes: Cow::Owned(read),
                frame: alone,
                has_cr: true,
                refused: None,
            }
        };
        check_message(&frame, text.parts(), self.offset + frame.start as u64)?;
        Ok(if self.is_utf16 { text.encoded() } else { text })
    }

    /// Returns the offset of `bytes` in the file, in bytes. Returns `None` if they do not belong to this chunk, or if the
    /// chunk was not read from a file.
    pub(crate) fn place_of(&self, bytes: &[u8]) -> Option<u64> {
        let (_, offset) = self.place.as_ref()?;
        let within = self.bytes().as_ptr_range();
        let start = bytes.as_ptr();
        let is_within = within.contains(&start) && bytes.as_ptr_range().end <= within.end;
        is_within.then(|| offset + (start.addr() - within.start.addr()) as u64)
    }

    /// Returns the data of other formats in the messages. The messages are searched at the first call, which needs the bytes of
    /// the chunk.
    pub(crate) fn appended(&self) -> &[AppendedPlace] {
        self.appended.get_or_init(|| {
            let bytes = self.bytes();
            let mut zero = first_sign(bytes);
            let mut found = Vec::new();
            for (index, frame) in self.frames.iter().enumerate() {
                if zero.is_some_and(|zero| zero < frame.start) {
                    let behind = first_sign(&bytes[frame.start..]);
                    zero = behind.map(|distance| frame.start + distance);
                }
                let has_zero = zero.is_some_and(|zero| zero < frame.end);
                let message = &bytes[frame.start..frame.end];
                if has_zero
                    || frame.has_tab
                    || frame.is_mboxcl2 && has_separator_with_tab(message)
                    || !self.division.is_at_from_lines()
                    || ends_unlike_text(message)
                    || may_begin_session(&message[content_start(message)..])
                {
                    found.extend(self.appended_to(index));
                }
            }
            found
        })
    }

    /// Returns the data of another format in one message.
    pub(crate) fn appended_to(&self, index: usize) -> Option<AppendedPlace> {
        // A mail in UTF-16 was decoded, so its bytes are not those of the file.
        let text = self.text(index).ok().filter(|_| !self.is_utf16)?;
        let (from_line, content, _) = text.parts();
        let data = AppendedData::in_mailbox(content, self.division)?;
        let start = self.frames[index].start + from_line.len();
        Some(AppendedPlace {
            index,
            offset: self.place.as_ref().map(|_| self.offset + start as u64),
            data,
        })
    }

    /// Returns the indices of the messages that need work. `search` returns those that contain words of references: its
    /// arguments are the bytes of consecutive messages, and the ends of the messages in them.
    pub(crate) fn touched(&self, search: impl Fn(&[u8], &[usize]) -> Vec<usize>) -> Vec<usize> {
        let Some(first) = self.frames.first() else {
            return Vec::new();
        };
        // The messages follow each other without gaps, so the end of one is the start of the next, and only the ends
        // are passed on.
        let frames = self.frames.iter();
        let ends: Vec<usize> = frames.map(|frame| frame.end - first.start).collect();
        let mut touched = search(&self.bytes()[first.start..], &ends);
        // The search words are for lines that end with LF. A message with CR could be missed, so it is always examined.
        let all = 0..self.frames.len();
        touched.extend(all.filter(|&index| carriage::ends_lines_with_cr(self.raw(index))));
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    /// Returns the bytes of the message as they are in the mailbox.
    pub(crate) fn raw(&self, index: usize) -> &[u8] {
        let frame = self.frames[index];
        &self.bytes()[frame.start..frame.end]
    }

    /// Frees the buffer and returns the number of bytes that the chunk still uses. Returns `None` if the buffer cannot
    /// be read again.
    pub(crate) fn let_go(&mut self) -> Option<usize> {
        self.place.as_ref()?;
        self.let_go = Some(digest(self.bytes()));
        Some(self.discard())
    }

    /// Frees the buffer of a chunk whose bytes are not needed any more. Returns the number of bytes that the chunk still uses.
    pub(crate) fn discard(&mut self) -> usize {
        self.free_buffer();
        size_of::<Self>() + self.frames.len() * size_of::<Frame>()
    }

    /// Reads the bytes again if the buffer was freed.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or was changed in the meantime.
    pub(crate) fn read_again(&mut self) -> io::Result<()> {
        let (Some(expected), Some((file, offset))) = (self.let_go.take(), &self.place) else {
            return Ok(());
        };
        let mut buffer = if self.length <= self.buffers.window {
            self.buffers.take()
        } else {
            vec![0; self.length]
        };
        let bytes = &mut buffer[..self.length];
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

    /// Returns the weight of the chunk in the memory budget. A message of several windows counts as one window:
    /// otherwise, the other threads would wait while one thread works on it.
    pub(crate) fn weight(&self) -> usize {
        let window = self.buffers.window;
        match self.length {
            length if length <= window.saturating_mul(LIGHT) => length.min(window),
            length => length,
        }
    }
}

impl Drop for WindowChunk {
    fn drop(&mut self) {
        self.free_buffer();
    }
}

/// A message with LF line endings.
pub(crate) struct MessageText<'c> {
    /// The bytes of the whole chunk, or, if the lines of the message end with CR, only the bytes of the message with LF
    /// instead.
    pub(crate) bytes: Cow<'c, [u8]>,
    /// Position of the message in `bytes`.
    pub(crate) frame: Frame,
    pub(crate) has_cr: bool,
    /// Reason why a message that was decoded from UTF-16 cannot be encoded in the charsets that its parts declare. Such a
    /// message is in UTF-8, and must not be written.
    pub(crate) refused: Option<String>,
}

impl MessageText<'_> {
    /// Encodes a message that was decoded from UTF-16.
    fn encoded(self) -> Self {
        let (from_line, content, behind) = self.parts();
        let encoded = match in_declared_charsets(content) {
            Ok(None) => return self,
            Ok(Some(encoded)) => encoded,
            Err(why) => {
                return Self {
                    refused: Some(why),
                    ..self
                };
            }
        };
        let bytes = [from_line, &encoded, behind].concat();
        let content_end = from_line.len() + encoded.len();
        let frame = Frame {
            start: 0,
            end: bytes.len(),
            is_looked_at: true,
            content_end: Some(content_end),
            is_mboxcl2: self.frame.is_mboxcl2,
            has_tab: self.frame.has_tab,
        };
        Self {
            bytes: Cow::Owned(bytes),
            frame,
            has_cr: false,
            refused: None,
        }
    }

    pub(crate) fn parts(&self) -> (&[u8], &[u8], &[u8]) {
        self.frame.parts(&self.bytes)
    }
}

/// The buffers for windows, which are reused because the allocation of new memory takes a third as long as
/// reading into it. Buffers that have grown are freed.
pub(super) struct Buffers {
    pub(super) window: usize,
    pub(super) spare: Mutex<Vec<Vec<u8>>>,
}

impl Buffers {
    pub(super) fn take(&self) -> Vec<u8> {
        let mut spare = unpoisoned(self.spare.lock());
        // The buffer that was returned last is reused first, because it is still in the cache of the processor.
        spare.pop().unwrap_or_else(|| vec![0; self.window])
    }
}

/// Returns a hash that shows whether bytes that are read again have changed.
fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}
