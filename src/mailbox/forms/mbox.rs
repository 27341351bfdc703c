//! The mbox format: finds the ends of messages, by separators and by Content-Length. Pure: any bytes are divided into
//! messages without gaps.
//!
//! RFC 4155 and its appendix A describe the format. The names of its variants mboxo, mboxrd, mboxcl and mboxcl2 are
//! from qmail's mbox(5).
//!
//! **Content-Length** is untrusted input. It is *right* if the body of this length ends at a separator or at the end of
//! the file, with at most two line endings between them. A right Content-Length is *believed* (used to find the end of
//! the message) in two cases:
//! * The body of this length contains no plausible separator. The separators then give the same end of the message.
//! * The mailbox is mboxcl2 as far as it was read: all earlier messages and the next message have a right
//!   Content-Length. The last message needs at least one earlier message. `From ` lines inside such a message are text.
//!
//! In all other cases it is ignored. Otherwise, a sender who guesses the position of a later separator could include
//! the messages of other people in the sender's message.
//!
//! The variants mboxo and mboxrd differ only in `>From ` lines, and a file rarely shows which one it is
//! ([`Quoting::of_sample`](crate::mailbox::forms::quoting::Quoting::of_sample)).

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

use crate::mailbox::forms::separator::{
    self, LOOK_AHEAD, from_line_length, holds_plausible, is_separator,
};
use crate::mailbox::forms::{cost, mmdf};
use crate::span::Span;

const MAX_TRAILING_LINE_ENDS: usize = 2;

/// Number of bytes that are searched for the Content-Length of the next message.
const FOLLOWING_HEADER: usize = 64 << 10;

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Counted {
    any: bool,
    /// Set after a message without a right Content-Length: the mailbox is not mboxcl2, so only separators end messages.
    pub(crate) is_settled: bool,
    /// The right Content-Length of the message that starts at this offset, so that its header is not read twice.
    /// Offsets are relative to the window.
    following: Option<(u64, Right)>,
}

impl Counted {
    pub(crate) fn elsewhere(self) -> Self {
        Self {
            following: None,
            ..self
        }
    }

    pub(crate) fn count(&mut self, believed: bool) {
        self.any = true;
        self.is_settled |= !believed;
    }
}

/// The position of one message. The ranges `start..end` of all messages cover the mailbox without gaps.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Frame {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Whether the header was read. False in mailboxes that are not mboxcl2, where [`looked_at`](Self::looked_at) reads
    /// the header only if the message changes.
    pub(crate) is_looked_at: bool,
    /// End of the body, if a Content-Length determines it. In MMDF, the start of the closing line.
    pub(crate) content_end: Option<usize>,
    /// Whether the message is in an mboxcl2 mailbox, so that lines of its body are not quoted.
    pub(crate) is_mboxcl2: bool,
}

impl Frame {
    /// Creates the frame of a message whose end is determined by a Content-Length or by a format other than mbox. `From
    /// ` lines in the message are neither separators nor quoted.
    pub(crate) fn counted(start: usize, content_end: usize, end: usize) -> Self {
        Self {
            start,
            end,
            is_looked_at: true,
            content_end: Some(content_end),
            is_mboxcl2: true,
        }
    }

    /// Reads the header if it was not read before. `bytes` are the bytes of the window, at least up to the end of the
    /// frame. A Content-Length that ends at the end of the frame, apart from line endings, is right.
    pub(crate) fn looked_at(self, bytes: &[u8]) -> Self {
        if self.is_looked_at {
            return self;
        }
        let bytes = bytes.get(..self.end).unwrap_or(bytes);
        self.with_header(bytes, &Header::of_message(bytes, self.start))
    }

    fn with_header(self, bytes: &[u8], header: &Header) -> Self {
        let bytes = bytes.get(..self.end).unwrap_or(bytes);
        let body = header.body.unwrap_or_default();
        let content_end = header
            .counted_end()
            .and_then(|end| usize::try_from(end).ok())
            .filter(|&content| content > 0)
            .filter(|&content| {
                let behind = bytes.get(content..);
                behind.is_some_and(|rest| boundary_behind(b'\n', rest) == Some(rest.len()))
            })
            .filter(|_| !holds_plausible(bytes, body.saturating_sub(1)));
        Self {
            is_looked_at: true,
            content_end,
            ..self
        }
    }

    /// Divides the message into its `From ` line, its content, and the empty line after it.
    pub(crate) fn parts<'a>(&self, bytes: &'a [u8]) -> (&'a [u8], &'a [u8], &'a [u8]) {
        let raw = &bytes[self.start..self.end];
        let content_start = content_start(raw);
        let content_end = match self.content_end {
            Some(end) => end - self.start,
            None if raw.ends_with(b"\n\r\n") => raw.len() - 2,
            None if raw.ends_with(b"\n\n") => raw.len() - 1,
            None => raw.len(),
        }
        .max(content_start);
        let (head, behind) = raw.split_at(content_end);
        let (from_line, content) = head.split_at(content_start);
        (from_line, content, behind)
    }
}

pub(crate) fn content_start(raw: &[u8]) -> usize {
    let from_line = from_line_length(raw);
    from_line.unwrap_or_else(|| mmdf::content_start(raw).unwrap_or(0))
}

/// The end of a message. `Err` means that more bytes are needed to find it. If a Content-Length determines the
/// end, the error contains the offset up to which bytes are needed; otherwise it contains `None`.
pub(crate) type End = Result<Frame, Option<u64>>;

/// Reads bytes at a distance after the window, without moving the window. Fewer bytes are read only at the end of the
/// file. Returns `None` if the source cannot read ahead.
pub(crate) type Peek<'a> = dyn FnMut(u64, &mut [u8]) -> Option<usize> + 'a;

/// Number of bytes that are read after the end of a Content-Length, to check that a separator follows.
const CHECKED: usize = LOOK_AHEAD + 2 * MAX_TRAILING_LINE_ENDS;

/// The state of the search for the end of a message that is longer than the window. When more bytes were read, the
/// search continues where it stopped, so that the time is proportional to the size of the message. Offsets are relative
/// to the start of the message.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Progress {
    /// Offset at which the search for the next separator continues. The line ending before the separator is at this
    /// offset or later.
    pub(crate) searched: usize,
    header: HeaderReader,
    /// Whether the Content-Length was checked and rejected, so that a separator determines the end.
    is_judged: bool,
}

/// Finds the end of a message by separators only. `whole` is true if `bytes` extends to the end of the file.
pub(crate) fn end_by_separator(
    bytes: &[u8],
    start: usize,
    progress: &mut Progress,
    whole: bool,
) -> End {
    if progress.searched == 0 {
        // The message's own separator, and older separators directly after it, do not end the message.
        match separator::own_lines(&bytes[start..], whole) {
            Some(own) => progress.searched = own.saturating_sub(1),
            None => return Err(None),
        }
    }
    let end = match separator::search(bytes, start + progress.searched, whole) {
        Ok(end) => end,
        Err(_) if whole => bytes.len(),
        Err(searched) => {
            progress.searched = searched - start;
            return Err(None);
        }
    };
    Ok(Frame {
        start,
        end,
        ..Frame::default()
    })
}

/// Finds the end of a message while the mailbox may still be mboxcl2, that is while each message has a right
/// Content-Length (`counted` is not settled).
pub(crate) fn end_of_message(
    bytes: &[u8],
    start: usize,
    whole: bool,
    counted: &mut Counted,
    progress: &mut Progress,
    peek: &mut Peek<'_>,
) -> End {
    if !progress.is_judged {
        let mut window = Window { bytes, whole, peek };
        let known = counted.following.take();
        let right = match known.filter(|&(at, _)| at == start as u64) {
            Some((_, right)) => Some(right),
            None => {
                let header = progress.header.read_on(&bytes[start..], whole);
                window.right(0, &header.behind(start))
            }
        };
        if let Some(right) = right
            && window.is_right_behind(&right, counted)
        {
            // If the end is not in the window, the caller must read up to it.
            return match (usize::try_from(right.end), usize::try_from(right.content)) {
                (Ok(end), Ok(content)) if end <= bytes.len() => {
                    Ok(Frame::counted(start, content, end))
                }
                _ => Err(Some(right.end)),
            };
        }
        // If the end of the header is not in the window yet, a Content-Length may still follow. The decision then waits
        // for more bytes.
        progress.header.read_on(&bytes[start..], whole);
        progress.is_judged = progress.header.is_over;
    }
    // The body may be empty, so a separator can directly follow the empty line that ends the header. The search
    // starts at this empty line, because the header before it contains no separator. If no empty line ends the
    // header, the search starts at its first line.
    let header = progress.header.header;
    if let Some(body) = header.body {
        progress.searched = progress.searched.max(body.saturating_sub(1));
    }
    let frame = end_by_separator(bytes, start, progress, whole)?;
    Ok(frame.with_header(bytes, &header.behind(start)))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Right {
    content: u64,
    end: u64,
    is_last: bool,
}

struct Window<'a, 'p> {
    bytes: &'a [u8],
    whole: bool,
    peek: &'a mut Peek<'p>,
}

impl Window<'_, '_> {
    fn look(&mut self, at: u64, length: usize) -> Option<Cow<'_, [u8]>> {
        let here = usize::try_from(at).ok().and_then(|at| self.bytes.get(at..));
        let here = here.unwrap_or_default();
        let here = here.get(..length).unwrap_or(here);
        if self.whole || here.len() == length {
            return Some(Cow::Borrowed(here));
        }
        let mut all = here.to_vec();
        all.resize(length, 0);
        let distance = at.saturating_sub(self.bytes.len() as u64);
        let read = (self.peek)(distance, &mut all[here.len()..])?;
        all.truncate(here.len() + read);
        Some(Cow::Owned(all))
    }

    /// Returns the end of the message according to its Content-Length, if the Content-Length is right. `at` is the
    /// offset of the header.
    fn right(&mut self, at: u64, header: &Header) -> Option<Right> {
        let content = at.checked_add(header.counted_end()?)?;
        // The byte before the end is read as well. Otherwise, an end beyond the end of the file would look like one at
        // the end of the file.
        let there = self.look(content.checked_sub(1)?, CHECKED + 1)?;
        let (&before, rest) = there.split_first()?;
        let line_ends = boundary_behind(before, rest)?;
        Some(Right {
            content,
            end: content + line_ends as u64,
            is_last: line_ends == rest.len(),
        })
    }

    fn following(&mut self, at: u64) -> Option<Right> {
        let here = usize::try_from(at).ok().and_then(|at| self.bytes.get(at..));
        let here = here.map(|rest| rest.get(..FOLLOWING_HEADER).unwrap_or(rest));
        let header = here.map(|rest| Header::of_message(rest, 0));
        let header = match header.filter(|header| header.body.is_some()) {
            Some(header) => header,
            // The header may be cut off by the end of the window, so it is read again from the file.
            None => Header::of_message(&self.look(at, FOLLOWING_HEADER)?, 0),
        };
        self.right(at, &header)
    }

    fn is_right_behind(&mut self, right: &Right, counted: &mut Counted) -> bool {
        if right.is_last {
            return counted.any;
        }
        let following = self.following(right.end);
        counted.following = following.map(|following| (right.end, following));
        following.is_some()
    }
}

/// Returns the length, in bytes, of the line endings at the start of
/// `rest`, if a separator or the end of the file follows them. Otherwise returns `None`.
fn boundary_behind(before: u8, mut rest: &[u8]) -> Option<usize> {
    let all = rest.len();
    for line_ends in 0..=MAX_TRAILING_LINE_ENDS {
        let at_line_start = line_ends > 0 || before == b'\n';
        if rest.is_empty() || (at_line_start && is_separator(rest)) {
            return Some(all - rest.len());
        }
        let behind = rest.strip_prefix(b"\n");
        rest = behind.or_else(|| rest.strip_prefix(b"\r\n"))?;
    }
    None
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Header {
    pub(crate) body: Option<usize>,
    /// The value of the first Content-Length field that is a number.
    pub(crate) content_length: Option<u64>,
}

impl Header {
    fn counted_end(&self) -> Option<u64> {
        (self.body? as u64).checked_add(self.content_length?)
    }

    pub(crate) fn of_message(bytes: &[u8], start: usize) -> Self {
        let header = HeaderReader::default().read_on(&bytes[start..], true);
        header.behind(start)
    }

    /// Reads the header of a message that was already separated from other messages, so that a `From ` line in the
    /// header is not a separator.
    pub(crate) fn of(content: &[u8]) -> Self {
        let mut header = Self::default();
        let mut at = 0;
        while header.body.is_none()
            && let Some(length) = memchr(b'\n', &content[at..])
        {
            header.take_line(&content[at..at + length], at + length + 1);
            at += length + 1;
        }
        header
    }

    /// Converts the offsets of a header from offsets in the message to offsets in the window. The message starts at
    /// `start`.
    fn behind(self, start: usize) -> Self {
        Self {
            body: self.body.map(|body| start + body),
            ..self
        }
    }

    fn take_line(&mut self, line: &[u8], next: usize) {
        match line {
            b"" | b"\r" => self.body = Some(next),
            [b'C' | b'c', ..] if self.content_length.is_none() => {
                let (name, value) = field(line).unwrap_or_default();
                if name.eq_ignore_ascii_case(b"content-length") {
                    self.content_length = number(value.of(line));
                }
            }
            _ => {}
        }
    }
}

/// Reader for the header of a message, which may start with a `From ` line. It reads as far as the bytes are in the window,
/// and continues when more bytes were read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct HeaderReader {
    header: Header,
    /// Offset of the next line to be read. 0 until the message's own separators were skipped.
    line: usize,
    /// Offset from which the end of the current line is searched. The bytes from `line` up to here contain no line
    /// ending.
    searched: usize,
    /// Set when the header has ended, or when the next message starts before the header has ended.
    is_over: bool,
}

impl HeaderReader {
    /// Continues to read the header. `message` starts with the bytes of the previous call. `whole` is true if no more bytes
    /// follow.
    fn read_on(&mut self, message: &[u8], whole: bool) -> Header {
        if self.line == 0 {
            let Some(own) = separator::own_lines(message, whole) else {
                return self.header;
            };
            // In an MMDF message, the opening line also precedes the header.
            let start = own.max(content_start(message));
            // A CR as the last byte may be the first half of a CR LF, so more bytes are needed.
            if start == message.len() && !whole {
                return self.header;
            }
            (self.line, self.searched) = (start, start);
        }
        while !self.is_over {
            let searched = message.get(self.searched..).unwrap_or_default();
            let Some(length) = memchr(b'\n', searched) else {
                cost::count(searched.len());
                self.searched = message.len();
                break;
            };
            cost::count(length + 1);
            let end = self.searched + length;
            let (line, rest) = (&message[self.line..end], &message[self.line..]);
            let has_from = line.starts_with(b"From ")
                || memchr(b'\r', line).is_some_and(|at| at + 1 < line.len());
            if has_from && !whole && message.len() - end < LOOK_AHEAD {
                // The bytes after the line decide whether the line is a separator, so more bytes are needed.
                self.searched = end;
                break;
            }
            // If a separator precedes the end of the header, no empty line ends the header: the next message starts at this
            // separator.
            self.is_over =
                has_from && (separator::is_separator_in_text(rest) || holds_separator(line, rest));
            if !self.is_over {
                self.header.take_line(line, end + 1);
                self.is_over = self.header.body.is_some();
            }
            (self.line, self.searched) = (end + 1, end + 1);
        }
        self.header
    }
}

/// Returns whether a message starts after a bare CR inside `line`, which is the first line of `bytes`.
fn holds_separator(line: &[u8], bytes: &[u8]) -> bool {
    memchr_iter(b'\r', line).any(|at| separator::is_separator_after_cr(&bytes[at + 1..]))
}

pub(crate) fn field(line: &[u8]) -> Option<(&[u8], Span)> {
    let (name, value) = separator::field(line)?;
    let start = line.len() - value.trim_ascii_start().len();
    Some((name, Span::new(start, start + value.trim_ascii().len())))
}

pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok()?;
    digits.parse().ok().filter(|_| !digits.starts_with('+'))
}
