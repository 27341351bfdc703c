//! The mbox format: what separates messages, how body text is quoted, where one message ends.
//!
//! RFC 4155 and its appendix A describe the family; mboxo, mboxrd, mboxcl and mboxcl2 are the
//! names of qmail's mbox(5). Pure: bytes in, spans out; any bytes give a division that tiles
//! them. Reading files is `window`'s.
//!
//! **A separator** is a line that starts with `From `, at the start of the file or after an empty
//! line, and *either* holds a time of day (`12:34`, which every dialect of the date has) *or* is
//! followed by a header field or a `>From ` line. The first line of a file needs only the `From `.
//! That is stricter than formail (any `From ` after an empty line) and looser than Dovecot and
//! mutt (the whole asctime date): body text like "From here on, walk" after an empty line, which
//! lax writers leave unquoted, stays in its message; a home-made separator without a date works.
//!
//! **Content-Length** is honoured where it is right: at its end there is the end of the file or a
//! separator, with at most two line ends between. Elsewhere it is ignored.
//!
//! What is not kept apart: mboxo and mboxrd differ only in what they do to `>From `, and a file
//! seldom tells; see [`Quoting::of_sample`].

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memchr;
use memchr::memmem::Finder;

/// Bytes from `From ` on that [`is_separator`] looks at: more cannot change its answer.
pub const LOOK_AHEAD: usize = 512;

/// Line ends accepted between a right Content-Length's last byte and what follows.
const MAX_TRAILING_LINE_ENDS: usize = 2;

static SEPARATOR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\nFrom "));
static FROM: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"From "));

/// How a mailbox hides body lines that would read as separators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quoting {
    /// mboxrd: `>` before every line of `>`s and `From `; can be undone.
    Rd,
    /// mboxo: `>` before `From ` only; `>From ` stays as it is.
    O,
    /// Nothing is hidden: mboxcl2, which counts instead; and single messages.
    None,
}

impl Quoting {
    /// How the mailbox that starts with `sample` quotes its messages.
    ///
    /// * a body line that starts with `>>From `: mboxrd (and mboxcl of that kind);
    /// * else, a `From ` line that only a right Content-Length keeps from being a separator, and
    ///   no `>From ` line: mboxcl2;
    /// * else mboxo: what Dovecot, mutt, procmail and Postfix write.
    #[must_use]
    pub fn of_sample(sample: &[u8]) -> Self {
        let mut quoted = false;
        for (line, at) in from_lines(sample) {
            match at - line {
                0 => {}
                1 => quoted = true,
                _ => return Self::Rd,
            }
        }
        if !quoted && holds_unquoted(sample) {
            return Self::None;
        }
        Self::O
    }

    /// Whether a line (of `>`s before a `From `) has to be quoted.
    pub(super) fn hides(self, marks: usize) -> bool {
        match self {
            Self::Rd => true,
            Self::O => marks == 0,
            Self::None => false,
        }
    }

    /// `body` with its lines quoted; borrowed if there is nothing to quote.
    #[must_use]
    pub fn quote(self, body: &[u8]) -> Cow<'_, [u8]> {
        let places: Vec<usize> = from_lines(body)
            .filter(|&(line, at)| self.hides(at - line))
            .map(|(line, _)| line)
            .collect();
        if places.is_empty() {
            return Cow::Borrowed(body);
        }
        Cow::Owned(with_marks(body, &places))
    }

    /// What [`quote`](Self::quote) did, undone: one `>` off each line of `>`s and `From `. For
    /// mboxo that also takes one from lines that had it before: the format does not tell.
    #[must_use]
    pub fn unquote(self, body: &[u8]) -> Cow<'_, [u8]> {
        let mut out: Option<Vec<u8>> = None;
        let mut copied = 0;
        for (line, at) in from_lines(body) {
            let undo = match self {
                Self::Rd => at > line,
                Self::O => at == line + 1,
                Self::None => false,
            };
            if undo {
                let out = out.get_or_insert_with(|| Vec::with_capacity(body.len()));
                out.extend_from_slice(&body[copied..line]);
                copied = line + 1;
            }
        }
        match out {
            None => Cow::Borrowed(body),
            Some(mut out) => {
                out.extend_from_slice(&body[copied..]);
                Cow::Owned(out)
            }
        }
    }
}

/// Every line of `>`s and `From `: where it starts, and where its `From ` does.
pub(super) fn from_lines(bytes: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    FROM.find_iter(bytes).filter_map(|at| {
        let marks = bytes[..at].iter().rev().take_while(|&&b| b == b'>').count();
        let line = at - marks;
        (line == 0 || bytes[line - 1] == b'\n').then_some((line, at))
    })
}

/// `bytes` with a `>` put in at each of `places`, which are sorted offsets into it.
pub(super) fn with_marks(bytes: &[u8], places: &[usize]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + places.len());
    let mut copied = 0;
    for &place in places {
        out.extend_from_slice(&bytes[copied..place]);
        out.push(b'>');
        copied = place;
    }
    out.extend_from_slice(&bytes[copied..]);
    out
}

/// Whether a right Content-Length in `sample` covers a line that would be a separator.
fn holds_unquoted(sample: &[u8]) -> bool {
    let mut at = 0;
    while let End::At(frame) = end_of_message(sample, at, true, &mut |_, _| None) {
        if let Some(content_end) = frame.content_end {
            let body = &sample[frame.start..content_end];
            let mut hits = SEPARATOR.find_iter(body);
            if hits.any(|hit| empty_line_before(body, hit) && is_separator(&body[hit + 1..])) {
                return true;
            }
        }
        if frame.end >= sample.len() {
            break;
        }
        at = frame.end;
    }
    false
}

/// Whether `bytes`, which start at the start of a line behind an empty one, start with a
/// separator. Looks at [`LOOK_AHEAD`] bytes, so whoever has fewer and could have more must wait.
#[must_use]
pub fn is_separator(bytes: &[u8]) -> bool {
    let bytes = &bytes[..bytes.len().min(LOOK_AHEAD)];
    if !bytes.starts_with(b"From ") {
        return false;
    }
    let Some(end) = memchr(b'\n', bytes) else {
        return holds_time(bytes);
    };
    holds_time(&bytes[..end]) || starts_header(&bytes[end + 1..])
}

fn holds_time(line: &[u8]) -> bool {
    line.windows(4).any(|w| {
        w[0].is_ascii_digit() && w[1] == b':' && w[2].is_ascii_digit() && w[3].is_ascii_digit()
    })
}

/// Whether the next line is a header field or a further `From ` line. `http://...` is neither.
fn starts_header(bytes: &[u8]) -> bool {
    if bytes.starts_with(b">From ") {
        return true;
    }
    let name = bytes
        .iter()
        .take_while(|&&b| b.is_ascii_graphic() && b != b':')
        .count();
    let blanks = bytes[name..]
        .iter()
        .take_while(|&&b| b == b' ' || b == b'\t')
        .count();
    let rest = &bytes[name + blanks..];
    name > 0 && rest.starts_with(b":") && !rest.starts_with(b"://")
}

/// Whether the line that the `\n` at `newline` ends is empty (`\n\n`, `\n\r\n`), or the first of
/// `bytes` and empty.
pub(super) fn empty_line_before(bytes: &[u8], newline: usize) -> bool {
    match newline {
        0 => true,
        1 => bytes[0] == b'\n' || bytes[0] == b'\r',
        _ => {
            bytes[newline - 1] == b'\n'
                || (bytes[newline - 1] == b'\r' && bytes[newline - 2] == b'\n')
        }
    }
}

/// One message: `start..end` tiles the mailbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Frame {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Where a right Content-Length says that the body ends.
    pub(super) content_end: Option<usize>,
}

impl Frame {
    /// The frame's bytes as `From ` line, content, and the line ends behind.
    pub(super) fn parts<'a>(&self, bytes: &'a [u8]) -> (&'a [u8], &'a [u8], &'a [u8]) {
        let raw = &bytes[self.start..self.end];
        let content_start = content_start(raw);
        let content_end = match self.content_end {
            Some(end) => end - self.start,
            None if raw.ends_with(b"\n\r\n") => raw.len() - 2,
            None if raw.ends_with(b"\n\n") => raw.len() - 1,
            None => raw.len(),
        }
        .max(content_start);
        (
            &raw[..content_start],
            &raw[content_start..content_end],
            &raw[content_end..],
        )
    }
}

/// Behind the `From ` line.
fn content_start(raw: &[u8]) -> usize {
    if raw.starts_with(b"From ") {
        memchr(b'\n', raw).map_or(raw.len(), |at| at + 1)
    } else {
        0
    }
}

/// Where a message ends, as far as can be seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// There.
    At(Frame),
    /// More bytes are needed; if a Content-Length was found right, it is known how many: the
    /// message's end, counted like `start`.
    NotInSight(Option<u64>),
}

/// What is at a Content-Length's end, for ends beyond the window: the byte before it and up to
/// [`CHECKED`] bytes from it on (fewer only at the end of the file). Takes an offset into the
/// window, beyond its end; `None` if it cannot be known.
pub(super) type Peek<'a> = dyn FnMut(u64, &mut [u8]) -> Option<usize> + 'a;

/// Bytes needed from a Content-Length's end on to tell whether it is right.
const CHECKED: usize = LOOK_AHEAD + 2 * MAX_TRAILING_LINE_ENDS;

/// The end of the message that starts at `start`; `whole`: nothing follows `bytes`.
pub(super) fn end_of_message(bytes: &[u8], start: usize, whole: bool, peek: &mut Peek<'_>) -> End {
    let first = start + content_start(&bytes[start..]);
    let header = Header::of(&bytes[first..]);
    let Some(body) = header.body.map(|body| first + body) else {
        return if whole {
            End::At(Frame {
                start,
                end: bytes.len(),
                content_end: None,
            })
        } else {
            End::NotInSight(None)
        };
    };
    if let Some(length) = header.content_length
        && let Some(end) = counted_end(bytes, body, length, whole, peek)
    {
        return match end {
            Counted::Here(content_end, end) => End::At(Frame {
                start,
                end,
                content_end: Some(content_end),
            }),
            Counted::Beyond(end) => End::NotInSight(Some(end)),
        };
    }
    // The empty line that ends the header also serves the next separator: a body may be empty.
    match next_separator(bytes, body.saturating_sub(1), whole) {
        Next::At(end) => End::At(Frame {
            start,
            end,
            content_end: None,
        }),
        Next::NotHere if whole => End::At(Frame {
            start,
            end: bytes.len(),
            content_end: None,
        }),
        Next::NotHere | Next::Unsure => End::NotInSight(None),
    }
}

/// What a search for a separator came to.
pub(super) enum Next {
    /// Its `F`.
    At(usize),
    /// One may start in the last bytes.
    Unsure,
    /// None.
    NotHere,
}

/// The first separator whose preceding `\n` is at `from` or later.
pub(super) fn next_separator(bytes: &[u8], from: usize, whole: bool) -> Next {
    let searched = bytes.get(from..).unwrap_or_default();
    for hit in SEPARATOR.find_iter(searched) {
        let newline = from + hit;
        if !empty_line_before(bytes, newline) {
            continue;
        }
        let rest = &bytes[newline + 1..];
        if rest.len() < LOOK_AHEAD && !whole {
            return Next::Unsure;
        }
        if is_separator(rest) {
            return Next::At(newline + 1);
        }
    }
    Next::NotHere
}

enum Counted {
    /// The body's end and the message's.
    Here(usize, usize),
    /// Right, and the message ends there, beyond the window.
    Beyond(u64),
}

/// Whether a Content-Length is right, and where that puts the end.
fn counted_end(
    bytes: &[u8],
    body: usize,
    length: u64,
    whole: bool,
    peek: &mut Peek<'_>,
) -> Option<Counted> {
    let end = (body as u64).checked_add(length)?;
    let here = usize::try_from(end).ok().filter(|&end| end <= bytes.len());
    if let Some(end) = here
        && (whole || bytes.len() - end >= CHECKED)
    {
        let before = if end > 0 { bytes[end - 1] } else { b'\n' };
        let line_ends = boundary_behind(before, &bytes[end..])?;
        return Some(Counted::Here(end, end + line_ends));
    }
    if whole || end == 0 {
        return None;
    }
    let mut there = [0; CHECKED + 1];
    let read = peek(end - 1, &mut there)?;
    let (&before, rest) = there.get(..read)?.split_first()?;
    let line_ends = boundary_behind(before, rest)? as u64;
    match here {
        Some(here) if end + line_ends <= bytes.len() as u64 => {
            Some(Counted::Here(here, here + line_ends as usize))
        }
        _ => Some(Counted::Beyond(end + line_ends)),
    }
}

/// How many bytes of line ends are between a body's last byte and the end of the file or the
/// next separator; `None` if neither follows.
fn boundary_behind(before: u8, mut rest: &[u8]) -> Option<usize> {
    let all = rest.len();
    for line_ends in 0..=MAX_TRAILING_LINE_ENDS {
        let at_line_start = line_ends > 0 || before == b'\n';
        if rest.is_empty() || (at_line_start && is_separator(rest)) {
            return Some(all - rest.len());
        }
        rest = rest
            .strip_prefix(b"\n")
            .or_else(|| rest.strip_prefix(b"\r\n"))?;
    }
    None
}

/// What the top header says about where the message ends.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Header {
    /// Where the body starts, behind the empty line.
    pub(super) body: Option<usize>,
    /// The first Content-Length that is a number.
    pub(super) content_length: Option<u64>,
}

impl Header {
    /// Reads the header that `content` starts with.
    pub(super) fn of(content: &[u8]) -> Self {
        let mut header = Self::default();
        let mut at = 0;
        while let Some(length) = memchr(b'\n', &content[at..]) {
            let line = &content[at..at + length];
            match line.first() {
                None => {
                    header.body = Some(at + 1);
                    return header;
                }
                Some(b'\r') if length == 1 => {
                    header.body = Some(at + 2);
                    return header;
                }
                Some(b'C' | b'c') if header.content_length.is_none() => {
                    header.content_length =
                        field(line, b"content-length").and_then(|value| number(value.of(line)));
                }
                _ => {}
            }
            at += length + 1;
        }
        header
    }
}

/// The value of the field `name` (lower case), without outer blanks, if `line` is one.
pub(super) fn field(line: &[u8], name: &[u8]) -> Option<crate::span::Span> {
    if !line.get(..name.len())?.eq_ignore_ascii_case(name) {
        return None;
    }
    let rest = line.get(name.len()..)?;
    let colon = rest.iter().position(|&b| b != b' ' && b != b'\t')?;
    if rest[colon] != b':' {
        return None;
    }
    let value = &rest[colon + 1..];
    let trimmed = value.trim_ascii();
    let blanks = value.len() - value.trim_ascii_start().len();
    let start = name.len() + colon + 1 + blanks;
    Some(crate::span::Span::new(start, start + trimmed.len()))
}

/// A field value of digits only.
pub(super) fn number(value: &[u8]) -> Option<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}
