//! The mbox format: finds the ends of messages, by separators and by Content-Length. Any input is accepted, and every
//! byte belongs to a message. This module performs no I/O.
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
    self, LOOK_AHEAD, from_line_length, holds_plausible, is_separator, is_separator_after_cr,
};
use crate::mailbox::forms::{cost, mmdf};
use crate::prologue::BYTE_ORDER_MARK;
use crate::span::{Span, front};

const MAX_TRAILING_LINE_ENDS: usize = 2;

/// Number of bytes at the start of the next message in which its Content-Length is searched for.
const FOLLOWING_HEADER: usize = 64 << 10;

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct MboxReadState {
    any: bool,
    /// Set after a message without a right Content-Length. The mailbox is then certainly not mboxcl2, so all further
    /// messages end at separators.
    pub(crate) is_settled: bool,
    /// Cache: offset of the next message and its Content-Length, which was already found right while the previous
    /// message was checked. So the header need not be read twice. Offsets are relative to the window (the part of the
    /// file in memory).
    following: Option<(u64, TrustedLength)>,
}

impl MboxReadState {
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

/// The position of one message. The ranges `start..end` of all messages cover the mailbox without gaps, so that no byte
/// is lost.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Frame {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Whether the header was read. Unless the mailbox is mboxcl2, the end of the message is found without its header.
    /// [`looked_at`](Self::looked_at) reads the header later, only if the message changes.
    pub(crate) is_looked_at: bool,
    /// End of the body, if a Content-Length determines it. In MMDF, this is the start of the closing line. `None` if a
    /// separator determines the end.
    pub(crate) content_end: Option<usize>,
    /// Whether the end was found without separators, as in an mboxcl2 mailbox. `From ` lines in the message are then
    /// plain text and are not quoted.
    pub(crate) is_mboxcl2: bool,
    /// Whether the search for the end met a line that starts with `From` and a tab, after which another mail may begin.
    pub(crate) has_tab: bool,
}

impl Frame {
    /// Creates the frame of a message whose end is not determined by separators, but by a Content-Length or by another
    /// format. `From ` lines in the message are plain text, and new ones are not quoted.
    pub(crate) fn counted(start: usize, content_end: usize, end: usize) -> Self {
        Self {
            start,
            end,
            is_looked_at: true,
            content_end: Some(content_end),
            is_mboxcl2: true,
            has_tab: false,
        }
    }

    /// Reads the header, unless this was done before, and checks the Content-Length. It is right if the body then ends
    /// at the end of the frame, apart from line endings. `bytes` is the window, at least up to the end of the frame.
    pub(crate) fn looked_at(self, bytes: &[u8]) -> Self {
        if self.is_looked_at {
            return self;
        }
        let bytes = front(bytes, self.end);
        self.with_header(bytes, &MboxHeader::of_message(bytes, self.start))
    }

    fn with_header(self, bytes: &[u8], header: &MboxHeader) -> Self {
        let bytes = front(bytes, self.end);
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
        let unmarked = without_mark(raw);
        let content_end = match self.content_end {
            Some(end) => end - self.start,
            None if unmarked.ends_with(b"\n\r\n") => unmarked.len() - 2,
            None if unmarked.ends_with(b"\n\n") => unmarked.len() - 1,
            None => unmarked.len(),
        }
        .max(content_start);
        let (head, behind) = raw.split_at(content_end);
        let (from_line, content) = head.split_at(content_start);
        (from_line, content, behind)
    }
}

/// Returns the message without a byte order mark at its end. Such a mark belongs to the next message, because it is
/// directly before the separator of that message.
fn without_mark(raw: &[u8]) -> &[u8] {
    match raw.strip_suffix(BYTE_ORDER_MARK) {
        Some(message) if message.ends_with(b"\n") || message.ends_with(b"\r") => message,
        _ => raw,
    }
}

pub(crate) fn content_start(raw: &[u8]) -> usize {
    let from_line = from_line_length(raw);
    from_line.unwrap_or_else(|| mmdf::content_start(raw).unwrap_or(0))
}

/// Result of a search for the end of a message. `Err` means that the end is not in memory yet: `Err(Some(offset))` if a
/// Content-Length determines the end, so that all bytes up to `offset` must be read, and otherwise `Err(None)`.
pub(crate) type End = Result<Frame, Option<u64>>;

/// Function that reads bytes at a distance after the window (the part of the file in memory). It returns the number of
/// bytes read, which is smaller than requested only at the end of the file. It returns `None` if the source cannot read
/// ahead, for example a pipe.
pub(crate) type Peek<'a> = dyn FnMut(u64, &mut [u8]) -> Option<usize> + 'a;

/// Number of bytes after the end of a body that are checked for a separator.
const CHECKED: usize = LOOK_AHEAD + 2 * MAX_TRAILING_LINE_ENDS;

/// The state of the search for the end of one message. If the message is longer than the window (the part of the file
/// in memory), more bytes are read, and the search continues where it stopped. So the time is proportional to the size
/// of the message. Offsets are relative to the start of the message.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct MessageEndSearch {
    /// Offset at which the search for the next separator continues. The line ending before this separator is at or
    /// after this offset.
    pub(crate) searched: usize,
    header: HeaderReader,
    /// Whether the Content-Length was checked and rejected. The message then ends at the next separator.
    is_judged: bool,
    /// Whether a line starts with `From` and a tab.
    has_tab: bool,
}

/// Finds the end of a message at the next separator, without using its Content-Length. `whole` is true if `bytes`
/// extends to the end of the file.
pub(crate) fn end_by_separator(
    bytes: &[u8],
    start: usize,
    progress: &mut MessageEndSearch,
    whole: bool,
) -> End {
    if progress.searched == 0 {
        // The search starts after the separator of this message. `From ` lines directly after the separator are skipped
        // too: they were separators in an earlier mailbox and do not end the message.
        match separator::own_lines(&bytes[start..], whole) {
            Some(own) => progress.searched = own.saturating_sub(1),
            None => return Err(None),
        }
    }
    let from = start + progress.searched;
    let end = match separator::search(bytes, from, whole, &mut progress.has_tab) {
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
        has_tab: progress.has_tab,
        ..Frame::default()
    })
}

/// Finds the end of a message in a mailbox that may be mboxcl2, because all messages so far have a right
/// Content-Length. If the Content-Length of this message is wrong, the message ends at the next separator.
pub(crate) fn end_of_message(
    bytes: &[u8],
    start: usize,
    whole: bool,
    counted: &mut MboxReadState,
    progress: &mut MessageEndSearch,
    peek: &mut Peek<'_>,
) -> End {
    if !progress.is_judged {
        let mut window = MboxWindow { bytes, whole, peek };
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
            // If the end is not in the window (the part of the file in memory), the caller must read up to it.
            return match (usize::try_from(right.end), usize::try_from(right.content)) {
                (Ok(end), Ok(content)) if end <= bytes.len() => {
                    Ok(Frame::counted(start, content, end))
                }
                _ => Err(Some(right.end)),
            };
        }
        // While the end of the header is not in the window, a Content-Length may still follow. So the Content-Length is
        // rejected only after the whole header was read.
        progress.header.read_on(&bytes[start..], whole);
        progress.is_judged = progress.header.is_over;
    }
    // The search for the next separator starts at the empty line that ends the header. It includes this line, because
    // in a message without a body a separator directly follows it. If no empty line ends the header, the search starts
    // at its first line.
    let header = progress.header.header;
    if let Some(body) = header.body {
        progress.searched = progress.searched.max(body.saturating_sub(1));
    }
    let frame = end_by_separator(bytes, start, progress, whole)?;
    Ok(frame.with_header(bytes, &header.behind(start)))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct TrustedLength {
    content: u64,
    end: u64,
    is_last: bool,
}

struct MboxWindow<'a, 'p> {
    bytes: &'a [u8],
    whole: bool,
    peek: &'a mut Peek<'p>,
}

impl MboxWindow<'_, '_> {
    fn look(&mut self, at: u64, length: usize) -> Option<Cow<'_, [u8]>> {
        let rest = usize::try_from(at).ok().and_then(|at| self.bytes.get(at..));
        let here = front(rest.unwrap_or_default(), length);
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

    /// Returns the end of the message according to its Content-Length, or `None` if the Content-Length is wrong: a
    /// separator or the end of the file must follow. The offsets in `header` are relative to `at`.
    fn right(&mut self, at: u64, header: &MboxHeader) -> Option<TrustedLength> {
        let content = at.checked_add(header.counted_end()?)?;
        // The last byte of the body is read too, because it must exist. Otherwise, a Content-Length that points far
        // beyond the end of the file would look like one that ends exactly there.
        let there = self.look(content.checked_sub(1)?, CHECKED + 1)?;
        let (&before, rest) = there.split_first()?;
        let line_ends = boundary_behind(before, rest)?;
        Some(TrustedLength {
            content,
            end: content + line_ends as u64,
            is_last: line_ends == rest.len(),
        })
    }

    fn following(&mut self, at: u64) -> Option<TrustedLength> {
        let rest = usize::try_from(at).ok().and_then(|at| self.bytes.get(at..));
        let in_window = rest.map(|rest| MboxHeader::of_message(front(rest, FOLLOWING_HEADER), 0));
        let header = match in_window.filter(|header| header.body.is_some()) {
            Some(header) => header,
            // The window may contain only the start of the header, so the header is read again from the file.
            None => MboxHeader::of_message(&self.look(at, FOLLOWING_HEADER)?, 0),
        };
        self.right(at, &header)
    }

    fn is_right_behind(&mut self, right: &TrustedLength, counted: &mut MboxReadState) -> bool {
        if right.is_last {
            return counted.any;
        }
        let following = self.following(right.end);
        counted.following = following.map(|following| (right.end, following));
        following.is_some()
    }
}

/// Returns the length, in bytes, of the line endings at the start of `rest`, if a separator or the end of the file
/// follows them. Otherwise returns `None`. `before` is the byte before `rest`.
fn boundary_behind(before: u8, mut rest: &[u8]) -> Option<usize> {
    let all = rest.len();
    for line_ends in 0..=MAX_TRAILING_LINE_ENDS {
        let at_line_start = line_ends > 0 || before == b'\n';
        if rest.is_empty() || (at_line_start && is_separator(rest)) {
            return Some(all - rest.len());
        }
        if let Some(marked) = rest.strip_prefix(BYTE_ORDER_MARK)
            && at_line_start
            && (marked.is_empty() || is_separator_after_cr(marked))
        {
            return Some(all - marked.len());
        }
        let behind = rest.strip_prefix(b"\n");
        rest = behind.or_else(|| rest.strip_prefix(b"\r\n"))?;
    }
    None
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct MboxHeader {
    pub(crate) body: Option<usize>,
    /// The value of the first Content-Length field that is a number.
    pub(crate) content_length: Option<u64>,
}

impl MboxHeader {
    fn counted_end(&self) -> Option<u64> {
        (self.body? as u64).checked_add(self.content_length?)
    }

    pub(crate) fn of_message(bytes: &[u8], start: usize) -> Self {
        let header = HeaderReader::default().read_on(&bytes[start..], true);
        header.behind(start)
    }

    /// Reads the header of a message that was already split off. A `From ` line in the header is therefore not a
    /// separator.
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

    /// Makes the offsets of the header relative to the window: adds `start`, the offset of the message in the window.
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

/// Reader for the header of a message, which may start with a `From ` line. It stops if the rest of the header is not
/// in the window (the part of the file in memory), and continues after more bytes were read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct HeaderReader {
    header: MboxHeader,
    /// Offset of the next header line, or 0 while the `From ` lines at the start of the message are not skipped yet.
    line: usize,
    /// Offset at which the search for the end of the current line continues. No line ending is between `line` and this
    /// offset.
    searched: usize,
    /// Set at the end of the header, which is an empty line or the separator of the next message.
    is_over: bool,
}

impl HeaderReader {
    /// Continues to read the header. `message` contains the bytes of the previous call and more bytes after them.
    /// `whole` is true if no further bytes follow.
    fn read_on(&mut self, message: &[u8], whole: bool) -> MboxHeader {
        if self.line == 0 {
            let Some(own) = separator::own_lines(message, whole) else {
                return self.header;
            };
            // In an MMDF message, the opening line also precedes the header.
            let start = own.max(content_start(message));
            // The bytes read so far end directly after the `From ` line. If the last byte is a CR, an LF may follow
            // that belongs to the same line ending, so more bytes are needed.
            if start == message.len() && !whole {
                return self.header;
            }
            (self.line, self.searched) = (start, start);
        }
        while !self.is_over {
            let searched = &message[self.searched..];
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
                // Only the bytes after the line show whether the line is a separator. They are not in the window yet,
                // so reading stops before the line.
                self.searched = end;
                break;
            }
            // If a separator comes before the empty line that should end the header, the next message starts there. The
            // message then has only a header.
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

/// Returns whether `line` contains a bare CR with a separator after it, so that another message starts there. `line` is
/// the first line of `bytes`.
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
