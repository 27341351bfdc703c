//! Mailboxes in memory: recognises the format of a file by its bytes and its name, and finds its messages. No I/O.
//!
//! [`embody::view`](crate::view) reads mailboxes in this way. The reader of files on a disk (`find`, `read`) recognises and
//! divides them with the same functions, but it reads them in windows and can write them.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use crate::mailbox::appended::AppendedData;
pub(crate) use crate::mailbox::appended::appended_to_file;
use crate::mailbox::candidate::FormatCandidate;
pub(crate) use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::mbox::{Frame, MboxReadState, MessageEndSearch, content_start};
use crate::mailbox::forms::quoting::Quoting;
use crate::mailbox::forms::recorded::refused_session;
use crate::mailbox::forms::refused::refused_by_name;
use crate::mailbox::forms::suffixes::SuffixClass;
use crate::mailbox::forms::{
    Division, Format, as_named as message_in, carriage, eudora, mmdf, rewrite, uw_imap,
};
pub(crate) use crate::mailbox::not_mail::NotMail;
use crate::mailbox::start::{as_named, before_first_message, kind_of};
use crate::prologue;
use crate::span::front;

/// Number of bytes at the start of a file that show its format, as for files on a disk.
const LOOKED_AT: usize = 64 << 10;

/// Number of bytes at the start of a mailbox that show how it quotes `From ` lines.
const SAMPLE: usize = 1 << 20;

/// Returns the format of a file, by its first bytes and its name.
///
/// # Errors
/// Returns what the file is, if embody does not read it as mail.
pub(crate) fn recognise(bytes: &[u8], name: &str) -> Result<StartKind, NotMail> {
    let path = Path::new(name);
    let start = front(bytes, LOOKED_AT);
    if let Some(other) = refused_by_name(path, start) {
        return Err(other);
    }
    let by_start = kind_of(start, Format::Auto, FormatCandidate::Memory(path, bytes));
    let kind = as_named(by_start, (path, start), Format::Auto)?;
    match refused_session(bytes).filter(|_| kind == StartKind::Eml) {
        Some(session) => Err(session),
        None => Ok(kind),
    }
}

/// Returns whether a file with the name of a single message starts with a `From ` line: some programs save a message with the
/// separator that it had in an mbox.
fn is_saved_message(name: &str, messages: usize) -> bool {
    let suffix = Path::new(name).extension();
    messages == 1 && suffix.and_then(SuffixClass::of) == Some(SuffixClass::Message)
}

/// Returns the message in a file with one message. The message is the whole file, except in an `.emlx` file.
pub(crate) fn single_message(file: &[u8]) -> &[u8] {
    message_in(file, None)
}

/// The positions of the messages of a mailbox.
#[derive(Debug)]
pub(crate) struct MemoryMailbox {
    frames: Vec<Frame>,
    quoting: Quoting,
    is_eudora: bool,
    division: Division,
}

impl MemoryMailbox {
    /// Finds the messages of a mailbox whose kind is [`StartKind::Mbox`] or [`StartKind::Eudora`]. Returns `None` if the file is a single
    /// message with a separator before it. Bare CR line endings of a Eudora mailbox are replaced in `bytes`.
    pub(crate) fn of(bytes: &mut [u8], kind: StartKind, name: &str) -> Option<Self> {
        let is_eudora = kind == StartKind::Eudora;
        let division = if mmdf::starts(bytes) {
            Division::Mmdf
        } else if is_eudora {
            let has_cr = eudora::ends_lines_with_cr(front(bytes, LOOKED_AT));
            if has_cr {
                eudora::with_line_feeds(bytes, None);
            }
            Division::Eudora { has_cr }
        } else {
            Division::Mbox
        };
        let mut at = match division {
            Division::Mmdf => 0,
            _ => before_first_message(bytes).unwrap_or(0),
        };
        let mut frames = Vec::new();
        let mut counted = MboxReadState::default();
        while at < bytes.len() {
            let mut progress = MessageEndSearch::default();
            let found = division.end_of_message(
                bytes,
                (at, true),
                &mut counted,
                &mut progress,
                &mut |_, _| None,
            );
            let Ok(frame) = found else { break };
            // A frame is never empty. Without this check, a defect would become an endless loop.
            if frame.end <= at {
                break;
            }
            at = frame.end;
            counted.count(frame.content_end.is_some());
            frames.push(frame);
        }
        if division == Division::Mbox && is_saved_message(name, frames.len()) {
            return None;
        }
        let sample = front(bytes, SAMPLE);
        let whole = sample.len() == bytes.len();
        let quoting = if carriage::ends_lines_with_cr(sample) {
            Quoting::of_sample(&carriage::in_line_feeds(sample), whole)
        } else {
            Quoting::of_sample(sample, whole)
        };
        let mut mailbox = Self {
            frames,
            quoting,
            is_eudora,
            division,
        };
        // The first message can contain the state of the mailbox. It is not mail, and conversion leaves it out too.
        let first = mailbox.message(bytes, 0);
        if first.is_some_and(|message| uw_imap::is_internal(&message)) {
            mailbox.frames.remove(0);
        }
        Some(mailbox)
    }

    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns sentences about data of other formats in the messages. `is_whole_file` is false if the file was compressed, so that
    /// offsets in `bytes` are not those in the file.
    pub(crate) fn appended(&self, bytes: &[u8], is_whole_file: bool) -> Vec<String> {
        let in_message = |(number, frame): (usize, &Frame)| {
            let (from_line, content, _) = frame.looked_at(bytes).parts(bytes);
            let data = AppendedData::in_mailbox(content, self.division)?;
            let offset = (frame.start + from_line.len()) as u64;
            let why = data.detail(
                &format!("message {number}"),
                is_whole_file.then_some(offset),
            );
            Some(why.to_string())
        };
        (1..).zip(&self.frames).filter_map(in_message).collect()
    }

    /// Returns the bytes of a message with its separator, as they are in the mailbox.
    pub(crate) fn range(&self, index: usize) -> Option<Range<usize>> {
        let frame = self.frames.get(index)?;
        Some(frame.start..frame.end)
    }

    /// Returns the start of a message, which contains its header, without the separator. Nothing is unquoted.
    pub(crate) fn start_of<'b>(&self, bytes: &'b [u8], index: usize) -> Option<&'b [u8]> {
        let raw = bytes.get(self.range(index)?)?;
        raw.get(content_start(raw)..)
    }

    /// Returns a message without its separator. Its text is unquoted, and its lines do not end with a bare CR.
    pub(crate) fn message<'b>(&self, bytes: &'b [u8], index: usize) -> Option<Cow<'b, [u8]>> {
        let frame = self.frames.get(index)?;
        let raw = bytes.get(frame.start..frame.end)?;
        if carriage::ends_lines_with_cr(raw) {
            let read = carriage::in_line_feeds(raw);
            let alone = Frame {
                start: 0,
                end: read.len(),
                ..Frame::default()
            };
            let content = self.content(&read, &alone.looked_at(&read)).into_owned();
            return Some(Cow::Owned(content));
        }
        Some(self.content(bytes, &frame.looked_at(bytes)))
    }

    fn content<'b>(&self, bytes: &'b [u8], frame: &Frame) -> Cow<'b, [u8]> {
        let (from_line, content, _) = frame.parts(bytes);
        if self.is_eudora {
            return Cow::Borrowed(content);
        }
        let quoting = rewrite::quoting_in(frame, from_line, self.quoting);
        without_prologue(rewrite::plain(content, quoting).0)
    }
}

/// Removes an older separator and other lines before the header, which are not part of the message, as conversion to another
/// format does.
fn without_prologue(message: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    match prologue::without_prologue(&message).map(Cow::into_owned) {
        Some(rest) => Cow::Owned(rest),
        None => message,
    }
}
