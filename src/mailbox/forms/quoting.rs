//! Quotes and unquotes lines that start with `From `, as the mbox variants mboxo, mboxrd and mboxcl2 do (qmail's
//! mbox(5)).

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::mailbox::forms::mbox::{MboxReadState, MessageEndSearch, end_of_message};
use crate::mailbox::forms::mmdf;
use crate::mailbox::forms::separator::{is_mark_of_line, is_plausible, next_in_message};
use crate::span::Span;

static FROM: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"From "));

/// How a mailbox quotes body lines that start with `From `, so that they are not read as separators.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Quoting {
    /// mboxrd: a `>` before `From ` and before lines that already start with `>` and `From `. It can be undone.
    Rd,
    /// mboxo: a `>` only before lines that start with `From `. A line that starts with `>From ` is not quoted, so it is
    /// not clear later whether its `>` was added.
    O,
    /// No quoting: mboxcl2, which uses Content-Length; MMDF; and single messages.
    None,
}

impl Quoting {
    /// Recognises the quoting of a mailbox by its first bytes. MMDF has no quoting. If a `From ` line is in a body only
    /// because of its Content-Length, the mailbox is mboxcl2, which has no quoting either. A body line that starts with
    /// `>>From `, or the sender of public-inbox in the first line, shows mboxrd. Every other mailbox counts as mboxo,
    /// which Dovecot, mutt, procmail and Postfix write.
    pub(crate) fn of_sample(sample: &[u8], whole: bool) -> Self {
        if mmdf::starts(sample) || holds_unquoted(sample, whole) {
            Self::None
        } else if sample.starts_with(b"From mboxrd@")
            || from_lines(sample).any(|(line, at)| at - line > 1)
        {
            Self::Rd
        } else {
            Self::O
        }
    }

    /// Returns `body` with its lines quoted. Borrows `body` if no line needs quoting.
    pub fn quote(self, body: &[u8]) -> Cow<'_, [u8]> {
        self.marked(body, &[])
            .map_or(Cow::Borrowed(body), Cow::Owned)
    }

    /// Quotes the lines of `bytes`. Lines that start at an offset in `kept` are not quoted, because they were in the
    /// mailbox before. `kept` must be sorted. Returns `None` if no line needs quoting.
    pub(crate) fn marked(self, bytes: &[u8], kept: &[usize]) -> Option<Vec<u8>> {
        let is_bare = |&(line, at): &(usize, usize)| {
            let divides = match self {
                Self::Rd => true,
                Self::O => at == line,
                Self::None => false,
            };
            divides && kept.binary_search(&line).is_err()
        };
        let places: Vec<usize> = from_lines(bytes).filter(is_bare).map(|it| it.0).collect();
        let marks = places.iter().map(|&line| (Span::empty_at(line), b">"));
        replaced(bytes, places.len(), marks)
    }

    /// Removes the quoting that [`quote`](Self::quote) adds: one `>` from each line that starts with `>` and `From `.
    /// In mboxo, a `>` that the sender wrote before `From ` is removed as well, because it looks the same.
    pub fn unquote(self, body: &[u8]) -> Cow<'_, [u8]> {
        self.unmarked(body, |_| true)
            .map_or(Cow::Borrowed(body), Cow::Owned)
    }

    pub(crate) fn unmarked(
        self,
        bytes: &[u8],
        is_quoted: impl Fn(usize) -> bool,
    ) -> Option<Vec<u8>> {
        let marks = from_lines(bytes).filter(|&(line, at)| {
            let is_marked = match self {
                Self::Rd => at > line,
                Self::O => at == line + 1,
                Self::None => false,
            };
            is_marked && is_quoted(line)
        });
        replaced(
            bytes,
            0,
            marks.map(|(line, _)| (Span::new(line, line + 1), b"")),
        )
    }
}

/// Returns `bytes` with each span replaced by its new bytes. `room` is the expected growth in bytes. Returns `None` if
/// no span is given.
pub(crate) fn replaced(
    bytes: &[u8],
    room: usize,
    spans: impl Iterator<Item = (Span, impl AsRef<[u8]>)>,
) -> Option<Vec<u8>> {
    let mut out = None;
    let mut copied = 0;
    for (span, new) in spans {
        let out = out.get_or_insert_with(|| Vec::with_capacity(bytes.len() + room));
        out.extend_from_slice(&bytes[copied..span.start]);
        out.extend_from_slice(new.as_ref());
        copied = span.end;
    }
    let mut out: Vec<u8> = out?;
    out.extend_from_slice(&bytes[copied..]);
    Some(out)
}

/// Returns the start of each line that begins with `From `, after any number of `>`, and the position of its `From `.
/// After a bare CR or a byte order mark, only lines with a date are returned, because only they can be separators there.
pub(crate) fn from_lines(bytes: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    FROM.find_iter(bytes).filter_map(|at| {
        let marks = bytes[..at].iter().rev().take_while(|&&b| b == b'>').count();
        let line = at - marks;
        let is_line = match bytes[..line].last() {
            None | Some(b'\n') => true,
            Some(b'\r') => is_plausible(&bytes[at..]),
            Some(_) => is_mark_of_line(&bytes[..line]) && is_plausible(&bytes[at..]),
        };
        is_line.then_some((line, at))
    })
}

/// Returns whether a message contains a line that looks like a separator, but is text because a right Content-Length
/// includes it. Such a mailbox is mboxcl2.
fn holds_unquoted(sample: &[u8], whole: bool) -> bool {
    let mut at = 0;
    let mut counted = MboxReadState::default();
    while at < sample.len()
        && !counted.is_settled
        && let Ok(frame) = end_of_message(
            sample,
            at,
            whole,
            &mut counted,
            &mut MessageEndSearch::default(),
            &mut |_, _| None,
        )
    {
        if frame.is_mboxcl2 {
            let message = &sample[frame.start..frame.content_end.unwrap_or(frame.end)];
            if next_in_message(message).is_some() {
                return true;
            }
        }
        counted.count(frame.content_end.is_some());
        at = frame.end;
    }
    false
}
