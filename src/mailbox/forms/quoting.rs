//! Quotes and unquotes lines that start with `From `, as the mbox variants mboxo, mboxrd and mboxcl2 do (qmail's
//! mbox(5)).

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::mailbox::forms::mbox::{Counted, Progress, end_of_message};
use crate::mailbox::forms::mmdf;
use crate::mailbox::forms::separator::{is_plausible, next_in_message};
use crate::span::Span;

static FROM: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"From "));

/// How a mailbox quotes body lines that start with `From `, so that they are not read as separators.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Quoting {
    /// mboxrd: a `>` before `From ` and before lines that already start with `>` and `From `. It can be undone.
    Rd,
    /// mboxo: a `>` only before `From `. Lines that start with `>From ` are not quoted, so it cannot always be undone.
    O,
    /// No quoting: mboxcl2, which uses Content-Length; MMDF; and single messages.
    None,
}

impl Quoting {
    /// Recognises the quoting of a mailbox by its first bytes. MMDF has no quoting. If only a Content-Length shows that
    /// a `From ` line is text, the mailbox is mboxcl2, and its `>From ` lines are text too. A body line that starts
    /// with `>>From `, or the sender of public-inbox, shows mboxrd. Every other mailbox is mboxo, as Dovecot, mutt,
    /// procmail and Postfix write it.
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

    /// Quotes the lines, except for lines that start at an offset in `kept`, which is sorted. Returns `None` if no line
    /// needs quoting.
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
    /// In mboxo, a line that had this `>` originally loses it too, because the format does not distinguish the two.
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

/// Returns `bytes` with these spans replaced. `room` is the expected growth in bytes. Returns `None` if there are no
/// spans.
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

/// Returns the start of each line that starts with any number of `>` and then `From `, and the position of its `From `.
/// After a bare CR, only lines with a date are returned: other lines are never separators there.
pub(crate) fn from_lines(bytes: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    FROM.find_iter(bytes).filter_map(|at| {
        let marks = bytes[..at].iter().rev().take_while(|&&b| b == b'>').count();
        let line = at - marks;
        let is_line = match bytes[..line].last() {
            None | Some(b'\n') => true,
            Some(b'\r') => is_plausible(&bytes[at..]),
            Some(_) => false,
        };
        is_line.then_some((line, at))
    })
}

/// Returns whether a `From ` line is text only because a right Content-Length covers it. This shows mboxcl2.
fn holds_unquoted(sample: &[u8], whole: bool) -> bool {
    let mut at = 0;
    let mut counted = Counted::default();
    while at < sample.len()
        && !counted.is_settled
        && let Ok(frame) = end_of_message(
            sample,
            at,
            whole,
            &mut counted,
            &mut Progress::default(),
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
