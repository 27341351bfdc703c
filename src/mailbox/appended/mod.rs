//! Finds mail of another format in a message. A person who runs `cat old.mbox.gz >> Inbox` appends the compressed mail to the
//! last message of the mailbox, and no program reads it there. The data stay where they are, and are reported.
//!
//! Each message is first searched for bytes that hardly occur in text. This must run at memory speed. Only a message with such
//! bytes is divided into its parts, and the places in which no part declares binary data are searched for the signatures of all
//! formats (`signature`). Data are reported only if their header is right. Compressed data are not reported if they
//! expand to something that is certainly not mail. A mail can therefore mention a signature, or have such a file attached.

mod found;
mod lzw;
mod plain;
mod signature;

use crate::detail::Detail;
use crate::engine::undeclared::undeclared_spans;
use crate::mailbox::forms::emlx::{self, LIST_END, list_length};
use crate::mailbox::forms::recorded::{may_begin_session, refused_session};
use crate::mailbox::forms::{Division, mmdf};
use crate::mailbox::not_mail::NotMail;
use crate::prologue::starts_mail;
use crate::span::{Span, rest_or_empty};
pub(crate) use found::AppendedData;
use plain::{MboxSearch, mail_in, mbox_at_start, mbox_in, start_of_quoted, starts_with_tab};
use signature::SignatureSearch;

/// Name of a message without a separator.
const A_MESSAGE: &str = "a message";

/// Number of bytes at the end of a message that are searched for control characters. The formats that may contain no NUL end
/// with such characters, or with compressed data, which contain them everywhere.
const TAIL: usize = 256;

impl AppendedData {
    /// Returns the data in the content of a file with one message.
    pub(crate) fn in_file(content: &[u8]) -> Option<Self> {
        match emlx::message(content) {
            Some(Ok(range)) => {
                let message = content.get(range.clone()).unwrap_or_default();
                let in_message = Self::in_single(message).map(|data| data.shifted(range.start));
                in_message.or_else(|| Self::behind_list(content))
            }
            Some(Err(_)) => None,
            None => Self::in_single(content),
        }
    }

    /// Returns the data in a message that is not divided at `From ` lines, so that it can contain an mbox.
    pub(crate) fn in_single(message: &[u8]) -> Option<Self> {
        Self::in_message(message)
            .or_else(|| Self::mbox_behind(message, MboxSearch::All))
            .or_else(|| mail_in(message).map(|at| Self::of(at, A_MESSAGE)))
    }

    /// Returns an mbox after the text of a message.
    fn mbox_behind(message: &[u8], search: MboxSearch) -> Option<Self> {
        let at = mbox_in(message, search)?;
        if starts_with_tab(message, at) {
            return Self::refused(at, NotMail::MBOX_WITH_TABS);
        }
        match start_of_quoted(message, at) {
            Some(line) => Self::refused(line, NotMail::QUOTED_MBOX),
            None => Some(Self::mbox(at)),
        }
    }

    /// Returns a recorded session that a program wrote to a mailbox as one message. A mail that quotes a session begins with a
    /// header.
    fn session(message: &[u8]) -> Option<Self> {
        let session = Some(message)
            .filter(|it| may_begin_session(it))
            .and_then(refused_session);
        Self::refused(0, session?)
    }

    /// Returns the data in a message of a mailbox.
    pub(crate) fn in_mailbox(message: &[u8], division: Division) -> Option<Self> {
        // An mbox can be appended after the last line of Control-A characters, too.
        let mbox = || mbox_in(message, MboxSearch::All);
        let is_shared = |at: &usize| mbox().is_none_or(|mbox| mbox > at + mmdf::LOOK_AHEAD);
        let shared = match division {
            Division::Mmdf => mmdf::next_in_message(message).filter(is_shared),
            _ => None,
        };
        let other = || {
            if division.is_at_from_lines() {
                let mbox = || Self::mbox_behind(message, MboxSearch::WithTabs);
                Self::in_message(message).or_else(mbox)
            } else {
                Self::in_single(message)
            }
        };
        let shared = shared.map(Self::shared_line);
        shared.or_else(|| Self::session(message)).or_else(other)
    }

    /// Returns the data after the property list in the content of an `.emlx` file.
    pub(crate) fn behind_list(content: &[u8]) -> Option<Self> {
        let range = emlx::message(content)?.ok()?;
        let after = range.end + list_length(rest_or_empty(content, range.end));
        let behind = rest_or_empty(content, after);
        let data = Self::in_text(behind)
            .or_else(|| mbox_at_start(behind).map(Self::mbox))
            .or_else(|| Self::message_at_start(behind));
        data.map(|data| data.shifted(after))
    }

    /// Returns a message at the start of bytes that belong to no message. Empty lines can precede it.
    fn message_at_start(text: &[u8]) -> Option<Self> {
        let at = text.len() - text.trim_ascii_start().len();
        let is_mail = starts_mail(rest_or_empty(text, at));
        is_mail.then_some(Self::of(at, A_MESSAGE))
    }

    /// Returns the data of other formats than mbox in a message.
    pub(crate) fn in_message(message: &[u8]) -> Option<Self> {
        let may_be = first_sign(message).is_some() || ends_unlike_text(message);
        if !may_be {
            return None;
        }
        let spans = undeclared_spans(message);
        SignatureSearch::new(message).first(&spans)
    }

    /// Returns the data in bytes that belong to no message.
    fn in_text(text: &[u8]) -> Option<Self> {
        let all = Span::new(0, text.len());
        SignatureSearch::new(text).first(&[all])
    }
}

/// Returns a sentence about data of another format in a file with one message. `is_plain` is false if the file contains other
/// bytes than `content`, because it is compressed or encoded.
pub(crate) fn appended_to_file(content: &[u8], is_plain: bool) -> Option<Detail> {
    let data = AppendedData::in_file(content)?;
    Some(data.detail("the message", is_plain.then_some(0)))
}

/// Returns whether a message may contain a separator with a tab after `From`. This is for messages whose end was found without a
/// search for separators.
#[cfg_attr(not(any(unix, windows)), allow(dead_code))]
pub(crate) fn has_separator_with_tab(message: &[u8]) -> bool {
    memchr::memmem::find(message, b"From\t").is_some()
}

/// Returns the offset of the first NUL byte or end-of-file mark of DOS (0x1A). Text contains neither.
pub(crate) fn first_sign(bytes: &[u8]) -> Option<usize> {
    memchr::memchr2(0, 0x1a, bytes)
}

/// Returns whether the end of a message contains bytes that do not occur in text, is text in EBCDIC, or is the end of a property
/// list.
pub(crate) fn ends_unlike_text(message: &[u8]) -> bool {
    let tail = rest_or_empty(message, message.len().saturating_sub(TAIL));
    // Both minimums are computed with vector instructions. The unit separator (1F) is the last byte of a Babyl mailbox.
    let (mut least, mut separator) = (u8::MAX, u8::MAX);
    for &byte in tail {
        least = least.min(byte);
        separator = separator.min(byte ^ 0x1f);
    }
    let text = tail.trim_ascii_end();
    least < b'\t' || separator == 0 || text.ends_with(LIST_END) || ends_like_ebcdic(text)
}

/// Returns whether the last bytes of a text may be in EBCDIC: most of them are not ASCII, and neither a blank nor a line feed is
/// among them. Most texts contain a blank or a line feed near their end, so the check is usually over at once.
fn ends_like_ebcdic(text: &[u8]) -> bool {
    const END: usize = 32;
    let end = rest_or_empty(text, text.len().saturating_sub(END));
    let high = || end.iter().filter(|byte| !byte.is_ascii()).count();
    end.len() == END && !end.iter().any(|byte| matches!(byte, b' ' | b'\n')) && high() * 2 > END
}
