//! The mbox format: what separates messages, how body text is quoted, where one message ends.
//!
//! RFC 4155 and its appendix A describe the family; mboxo, mboxrd, mboxcl and mboxcl2 are the names of qmail's mbox(5).
//! Pure: bytes in, spans out; any bytes give a division that tiles them.
//!
//! **Content-Length** is a stranger's word. It is *right* if the end of the file or a separator stands at its end, with
//! at most two line ends between. A right one is *believed* in two cases:
//! * no plausible separator stands in what it covers: the next one says the same, and only a true count depends on it;
//! * the mailbox is mboxcl2 as far as it was read: each message before has a right one, and so has the one that
//!   follows; the last message needs at least one before it. Then `From ` lines inside are text.
//!
//! Everywhere else it is ignored: a stranger who guesses a later separator could take in the mails of others.
//!
//! Mboxo and mboxrd differ only in `>From ` lines, and a file seldom tells which it is
//! ([`Quoting::of_sample`](crate::mailbox::forms::quoting::Quoting::of_sample)).

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

use crate::mailbox::forms::separator::{
    self, LOOK_AHEAD, from_line_length, holds_plausible, is_separator,
};
use crate::mailbox::forms::{cost, mmdf};
use crate::span::Span;

const MAX_TRAILING_LINE_ENDS: usize = 2;

/// Bytes that are searched for the following message's Content-Length.
const FOLLOWING_HEADER: usize = 64 << 10;

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Counted {
    any: bool,
    /// One had no right Content-Length: separators alone tell messages from here on.
    pub(crate) is_settled: bool,
    /// What was found of the message that starts at the number, so that no header is read twice. Offsets are into the window.
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

/// `start..end` tiles the mailbox.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Frame {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// False once the mailbox cannot be mboxcl2: the header is not read then before [`looked_at`](Self::looked_at).
    pub(crate) is_looked_at: bool,
    /// Where a believed Content-Length ends the body; or the closing line of MMDF.
    pub(crate) content_end: Option<usize>,
    /// Nothing in the body is quoted then.
    pub(crate) is_mboxcl2: bool,
}

impl Frame {
    /// Nothing in the message divides or is quoted: something else than its text says where it ends.
    pub(crate) fn counted(start: usize, content_end: usize, end: usize) -> Self {
        Self {
            start,
            end,
            is_looked_at: true,
            content_end: Some(content_end),
            is_mboxcl2: true,
        }
    }

    /// Reads the header, if that was not done. `bytes` are those of the window up to the frame's end or further. A
    /// Content-Length that ends there, but for line ends, is right.
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

    /// `From ` line, content, and the line ends behind.
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

/// The error asks for more bytes: up to an offset, if a Content-Length is believed.
pub(crate) type End = Result<Frame, Option<u64>>;

/// At a distance behind the window. Fewer bytes come at the end of the file only; None cannot tell.
pub(crate) type Peek<'a> = dyn FnMut(u64, &mut [u8]) -> Option<usize> + 'a;

/// From a Content-Length's end on.
const CHECKED: usize = LOOK_AHEAD + 2 * MAX_TRAILING_LINE_ENDS;

/// What was found of a message whose end is not in sight. When more bytes are there, the search for its end goes on
/// where it stopped, so that the time is in proportion to the bytes. Offsets are from the start of the message.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Progress {
    /// The line ending before the next separator is here or later.
    pub(crate) searched: usize,
    header: HeaderReader,
    /// The Content-Length is not believed.
    is_judged: bool,
}

/// Only separators count. `whole`: nothing follows `bytes`.
pub(crate) fn end_by_separator(
    bytes: &[u8],
    start: usize,
    progress: &mut Progress,
    whole: bool,
) -> End {
    if progress.searched == 0 {
        // Neither the message's own separator nor an older one after it divides.
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

/// While the mailbox may be mboxcl2: nothing is settled in `counted`.
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
            // Both ends are in the window, or neither is of use yet.
            return match (usize::try_from(right.end), usize::try_from(right.content)) {
                (Ok(end), Ok(content)) if end <= bytes.len() => {
                    Ok(Frame::counted(start, content, end))
                }
                _ => Err(Some(right.end)),
            };
        }
        // The header may have no end in sight yet, and its Content-Length may follow.
        progress.header.read_on(&bytes[start..], whole);
        progress.is_judged = progress.header.is_over;
    }
    // The empty line that ends the header also serves the next separator: a body may be empty. A header that has an end
    // holds no separator; in others even the first line may be one.
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

    /// What a `header` that starts `at` this offset counts.
    fn right(&mut self, at: u64, header: &Header) -> Option<Right> {
        let content = at.checked_add(header.counted_end()?)?;
        // The byte before is read, too: so no end behind the end of the file passes for one at it.
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
            // It may end in the window by chance: only what the file holds counts.
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

/// The bytes of line ends before the end of the file or the next separator; None if neither follows.
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
    /// The first one that is a number.
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

    /// Of a message that was divided from others: a `From ` line in its header divides nothing.
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

    /// For a header that was read without the bytes before it.
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

/// Reads the header of a message, which may start with a `From ` line, as far as its bytes are there.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct HeaderReader {
    header: Header,
    /// Start of the line to be read next. It is 0 until the separators at the start were read.
    line: usize,
    /// No line before it ends later than `line`.
    searched: usize,
    /// The header has ended, or the next message starts before it was closed.
    is_over: bool,
}

impl HeaderReader {
    /// `message` starts with the bytes that were given before. `whole`: nothing follows.
    fn read_on(&mut self, message: &[u8], whole: bool) -> Header {
        if self.line == 0 {
            let Some(own) = separator::own_lines(message, whole) else {
                return self.header;
            };
            // A message of MMDF has other lines.
            let start = own.max(content_start(message));
            // A CR in the end may be the first half of a line ending.
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
                // What follows tells whether the line is a separator.
                self.searched = end;
                break;
            }
            // The header was never closed; the next message starts.
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

/// Whether a message starts after a bare CR within the first `line` of `bytes`.
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
