//! Recognises the lines that separate the messages of an mbox. docs/mailbox-internals.md compares these rules with
//! other programs. The time is linear: no more than [`LOOK_AHEAD`] bytes after a `From ` line are read, and the count of the
//! header fields after it ends at the next `From ` line, so no field is counted twice.
//!
//! **A separator** is a line that starts with `From ` at the start of the file, or in one of these cases:
//! * After an empty line, if it contains a complete date with the day of the week, as asctime(3) writes it (RFC 4155), or
//!   ends with a date in any language or in ISO 8601 ([`ends_with_date`]); or if it contains a complete date without the
//!   day of the week and a header field follows: text can contain such a date.
//! * After any line, if it contains such a date and a header field, a `>From ` line or an older separator follows; or
//!   if it contains a month and a time of day and a header field of mail follows. Some programs omit the empty line,
//!   and Python, Dovecot and mutt do not require it.
//! * After any line, with or without a date, if *the header of a mail* follows ([`FromLine::follows`]): Thunderbird and
//!   other programs write `From ` or `From - ` alone. Text such as "From the minutes of our last meeting", which some
//!   programs do not quote, is not a separator even if `Name: value` lines follow.
//! * After any line, if it contains only `From ` or `From - ` and two header fields or one field of mail follow; or if
//!   it contains only an address and two fields follow, one of them of mail. Ordinary text does not look like this.
//! * After an empty line, if it contains at most one word (`From b`), starts with an address or contains a time of day,
//!   and a field of mail follows; or if it contains no word and any field follows. This rule is for separators that
//!   were written by hand or with dates in other languages: dividing a message is better than merging two messages.
//!
//! `From : Ann` is a header field, not a separator.
//!
//! **An older separator** does not start a message. Some programs write a separator before a message that still has its
//! separator of another mailbox ([`own_lines`]). If both were separators, an empty message would be between them.
//!
//! **A plausible separator** is a separator, or any other line that starts with `From ` and contains a date. Dovecot
//! and mutt start a message there, and Python at every `From ` line. [`rewrite`](crate::mailbox::forms::rewrite) never
//! removes such a line.

mod date;
mod written;

use memchr::memmem::Finder;
use memchr::{memchr, memchr2};
use std::sync::LazyLock;

use crate::mailbox::forms::cost;
use crate::prologue::{BYTE_ORDER_MARK, Prologue};
use crate::span::{is_from_field, is_from_line};
pub(crate) use date::is_asctime;
use date::{
    ends_with_date, holds_date, holds_time, holds_weekday_and_date, holds_whole_date, words,
};
pub(crate) use written::from_line;

/// Number of bytes, from the start of a `From ` line, that decide whether the line is a separator. It is large because
/// the header field that decides may come after long fields.
pub(crate) const LOOK_AHEAD: usize = 2048;

/// The start of a separator. A space or a tab follows.
static FROM: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"From"));

/// Returns whether a line that follows an empty line is a separator. If fewer than [`LOOK_AHEAD`] bytes are given, the
/// file must end after them.
pub(crate) fn is_separator(bytes: &[u8]) -> bool {
    FromLine::of(bytes).is_some_and(|from| {
        if is_from_field(from.line) {
            return false;
        }
        from.has_date_of_program() || from.has_date() && from.has_header() || {
            let follows = from.follows();
            let is_home_made = from.has_one_word() || from.names_address() || holds_time(from.line);
            from.divides_without_date(follows)
                || is_home_made && follows.mail_fields > 0
                || from.is_bare() && follows.fields > 0
        }
    })
}

/// Returns whether a line that does not follow an empty line is a separator. The conditions are stricter than in
/// [`is_separator`], because an ordinary text may contain a line that starts with `From `.
pub(crate) fn is_separator_in_text(bytes: &[u8]) -> bool {
    FromLine::of(bytes).is_some_and(|from| {
        if is_from_field(from.line) {
            return false;
        }
        from.has_date() && from.has_header() || from.divides_without_date(from.follows())
    })
}

/// Returns whether a line that starts with `From ` contains a date. Dovecot, mutt and other programs read such a line
/// as a separator.
pub(crate) fn is_plausible(bytes: &[u8]) -> bool {
    FromLine::of(bytes).is_some_and(|from| holds_date(from.line))
}

/// Returns whether a line that starts with `From ` contains a complete date with the day of the week, as a program writes it.
pub(crate) fn has_date_of_program(bytes: &[u8]) -> bool {
    FromLine::of(bytes).is_some_and(|from| from.has_date_of_program())
}

/// Returns whether a line that follows a bare CR is a separator. The line must contain a date, because an ordinary text
/// may contain a bare CR before `From `.
pub(crate) fn is_separator_after_cr(bytes: &[u8]) -> bool {
    is_plausible(bytes) && is_separator_in_text(bytes)
}

pub(crate) fn from_line_length(bytes: &[u8]) -> Option<usize> {
    (bytes.starts_with(b"From ") && !is_from_field(bytes)).then(|| line_end(bytes).1)
}

/// Returns the length of the first line of `bytes`, without and with its line ending. The line ending is LF, CR LF, or
/// a bare CR. Several CRs before an LF belong to one line ending, because files that were converted twice contain CR CR
/// LF.
pub(crate) fn line_end(bytes: &[u8]) -> (usize, usize) {
    let Some(end) = memchr2(b'\r', b'\n', bytes) else {
        return (bytes.len(), bytes.len());
    };
    let returns = bytes[end..].iter().take_while(|&&byte| byte == b'\r');
    let line_feed = end + returns.count();
    match bytes.get(line_feed) {
        Some(b'\n') => (end, line_feed + 1),
        _ => (end, end + 1),
    }
}

/// Maximum number of older separators after a separator. An older separator is a `From ` line that a message kept from
/// an earlier mailbox. More than one is rare. Without a limit, many `From ` lines in sequence would take quadratic
/// time.
const MOST_OLDER: usize = 3;

/// Returns the length of the older separators at the start of `behind`, the bytes after a separator. These are `From `
/// and `>From ` lines that the message kept from earlier mailboxes. Returns 0 if no header field follows them, because
/// they are then not separators.
fn older_lines(behind: &[u8]) -> usize {
    let mut length = 0;
    for _ in 0..MOST_OLDER {
        let rest = &behind[length..];
        if !is_from_line(rest) {
            break;
        }
        let (_, next) = line_end(rest);
        cost::count(next);
        length += next;
    }
    match field(&behind[length..]) {
        Some((name, value)) if !name.is_empty() && !value.starts_with(b"//") => length,
        _ => 0,
    }
}

/// Returns whether `message` begins with lines that look like older separators. After a message that consists only of
/// its separator, such lines would be read as a part of that message.
pub(crate) fn starts_older(message: &[u8]) -> bool {
    older_lines(message) > 0
}

/// Returns the length of the separator at the start of `message` and of the older separators after it, which do not
/// start another message. The first [`LOOK_AHEAD`] bytes decide. Returns `None` if more bytes could change the length.
/// `whole` is true if no more bytes exist.
pub(crate) fn own_lines(message: &[u8], whole: bool) -> Option<usize> {
    let seen = message.get(..LOOK_AHEAD);
    let (seen, is_all) = (seen.unwrap_or(message), whole || seen.is_some());
    let Some(length) = from_line_length(seen) else {
        return Some(0);
    };
    let behind = &seen[length..];
    if is_from_line(behind) {
        return is_all.then(|| length + older_lines(behind));
    }
    // More bytes could change the length if the known bytes end inside the separator, inside its line ending, or inside
    // a `From ` after it.
    let returns = behind.iter().take_while(|&&byte| byte == b'\r');
    let text = &behind[returns.count()..];
    let is_start = |line: &[u8]| line.starts_with(text);
    let is_sure = is_all || !is_start(b"From ") && !is_start(b">From ");
    is_sure.then_some(length)
}

/// Returns whether `message` consists only of its separator and of lines that look like older separators. The separator
/// of the next message would then be read as an older separator as well, and both messages would become one.
pub(crate) fn is_all_separators(message: &[u8]) -> bool {
    let mut rest = message;
    for _ in 0..=MOST_OLDER {
        if !is_from_line(rest) {
            break;
        }
        rest = &rest[line_end(rest).1..];
    }
    rest.is_empty()
}

/// Returns the first separator in a message that would start another message. The separator of the message itself and
/// older separators after it do not count.
pub(crate) fn next_in_message(message: &[u8]) -> Option<usize> {
    let own = own_lines(message, true).unwrap_or_default();
    next_separator(message, own.saturating_sub(1), true)
}

/// A line that starts with `From `, and the bytes after it that decide whether it is a separator.
struct FromLine<'a> {
    line: &'a [u8],
    behind: &'a [u8],
    /// Whether bytes after [`LOOK_AHEAD`] were not read, so that more header fields may follow.
    is_cut: bool,
}

impl<'a> FromLine<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        if !bytes.starts_with(b"From ") {
            return None;
        }
        let looked_at = bytes.get(..LOOK_AHEAD);
        let (bytes, is_cut) = (looked_at.unwrap_or(bytes), looked_at.is_some());
        let (line, next) = line_end(bytes);
        cost::count(next);
        let behind = &bytes[next..];
        let prologue = Prologue::of_enclosed(behind).filter(|it| !it.is_separators);
        Some(Self {
            line: &bytes[..line],
            behind: &behind[prologue.unwrap_or_default().length..],
            is_cut,
        })
    }

    fn has_date(&self) -> bool {
        holds_whole_date(self.line) || ends_with_date(self.line)
    }

    /// Returns whether a program, and not a person, wrote the date: mutt and Dovecot accept only dates with the day of
    /// the week.
    fn has_date_of_program(&self) -> bool {
        holds_weekday_and_date(self.line) || ends_with_date(self.line)
    }

    /// Returns whether a header field or an older separator follows.
    fn has_header(&self) -> bool {
        starts_header(self.behind) || older_lines(self.behind) > 0
    }

    /// Returns whether the header fields after the line make it a separator, even if it has no date and no empty line
    /// precedes it.
    fn divides_without_date(&self, follows: Follows) -> bool {
        let has_two = follows.fields > 1;
        let is_of_mail = follows.mail_fields > 0;
        follows.is_header_of_mail()
            || is_of_mail && holds_date(self.line)
            || (has_two || is_of_mail) && self.is_bare()
            || has_two && is_of_mail && self.has_one_word() && self.names_address()
    }

    /// Returns whether the line contains only `From ` or `From - `, which is a separator without a sender and a date.
    fn is_bare(&self) -> bool {
        matches!(self.line.trim_ascii_end(), b"From" | b"From -")
    }

    fn has_one_word(&self) -> bool {
        words(self.line).nth(2).is_none()
    }

    /// Returns whether the first word after `From ` contains an `@`, so that it may be the address of a sender.
    fn names_address(&self) -> bool {
        words(self.line)
            .nth(1)
            .is_some_and(|word| word.contains(&b'@'))
    }

    /// Counts the header fields after the line. `>From ` lines before and between the fields are skipped, as other mail
    /// programs do. Counting stops as soon as the fields are clearly those of a mail.
    fn follows(&self) -> Follows {
        const TELLING: [&[u8]; 7] = [
            b"from",
            b"date",
            b"received",
            b"message-id",
            b"x-mozilla-status",
            b"return-path",
            b"delivered-to",
        ];
        const OF_MAIL: [&[u8]; 10] = [
            b"content-length",
            b"status",
            b"x-status",
            b"subject",
            b"to",
            b"cc",
            b"sender",
            b"reply-to",
            b"mime-version",
            b"content-type",
        ];
        let mut follows = Follows::default();
        let mut rest = self.behind;
        while !rest.is_empty() {
            let is_folded = matches!(rest, [b' ' | b'\t', ..]) && follows.fields > 0;
            if !is_folded && !rest.starts_with(b">From ") {
                let name = &rest[..name_length(rest)];
                if !starts_header(rest) {
                    // At the end of the bytes, the name of a field may be incomplete. The text then still counts as the
                    // start of a field.
                    follows.is_cut = self.is_cut && name.len() == rest.len();
                    cost::count(name.len() + 1);
                    return follows;
                }
                let is_among =
                    |names: &[&[u8]]| names.iter().any(|it| it.eq_ignore_ascii_case(name));
                let is_telling = is_among(&TELLING);
                follows.fields += 1;
                follows.telling += usize::from(is_telling);
                follows.mail_fields += usize::from(is_telling || is_among(&OF_MAIL));
                if follows.is_header_of_mail() {
                    return follows;
                }
            }
            // The end of a line is searched for only if the line is a part of a header. Otherwise, in a text with many
            // lines that end with CR, each line would cost a search of `LOOK_AHEAD` bytes.
            let length = memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
            cost::count(length);
            rest = &rest[length..];
        }
        follows.is_cut = self.is_cut;
        follows
    }
}

/// Counts of the header fields after a `From ` line. Some fields prove more clearly than others that a mail starts
/// there.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Follows {
    fields: usize,
    /// Number of fields that occur in nearly every mail and rarely in other texts, such as Subject.
    mail_fields: usize,
    /// Number of the fields that best show a mail: From, Date, and fields that only mail programs write, such as
    /// Received.
    telling: usize,
    /// Whether the bytes ended while only fields had been read, so that more fields may follow.
    is_cut: bool,
}

impl Follows {
    fn is_header_of_mail(self) -> bool {
        self.fields > 1 && (self.telling > 0 || self.is_cut)
    }
}

pub(crate) fn name_length(bytes: &[u8]) -> usize {
    let is_of_name = |octet: &&u8| octet.is_ascii_graphic() && **octet != b':';
    bytes.iter().take_while(is_of_name).count()
}

pub(crate) fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, behind) = line.split_at(name_length(line));
    let blanks = behind
        .iter()
        .take_while(|octet| matches!(octet, b' ' | b'\t'));
    Some((name, behind[blanks.count()..].strip_prefix(b":")?))
}

/// Returns whether `bytes` begins with a header field or a `>From ` line. `http://...` is not a header field.
fn starts_header(bytes: &[u8]) -> bool {
    let is_field = |(name, value): (&[u8], &[u8])| !name.is_empty() && !value.starts_with(b"//");
    bytes.starts_with(b">From ") || field(bytes).is_some_and(is_field)
}

/// Returns the start of the first separator. The line ending before it is at `from` or later. `whole` is true if no
/// bytes follow.
pub(crate) fn next_separator(bytes: &[u8], from: usize, whole: bool) -> Option<usize> {
    search(bytes, from, whole, &mut false).ok()
}

/// Returns the start of the first separator. The line ending before it is at `from` or later. If no separator is found,
/// the error is the offset at which the search continues after more bytes were read. If `whole` is false, more bytes
/// exist, so a separator may start in the last bytes. Sets `has_tab` if a line before the separator starts with `From` and
/// a tab.
pub(crate) fn search(
    bytes: &[u8],
    from: usize,
    whole: bool,
    has_tab: &mut bool,
) -> Result<usize, usize> {
    for line in from_lines(bytes, from) {
        if line.has_tab {
            *has_tab = true;
            continue;
        }
        let rest = &bytes[line.start..];
        if rest.len() < LOOK_AHEAD && !whole {
            cost::count(line.start - from);
            return Err(line.start - 1);
        }
        let divides = match line.after {
            SeparatorEnd::Return => is_separator_after_cr(rest),
            SeparatorEnd::EmptyLine => is_separator(rest),
            SeparatorEnd::Text => is_separator_in_text(rest),
        };
        if divides {
            cost::count(line.start - from);
            return Ok(line.start);
        }
    }
    cost::count(bytes.len().saturating_sub(from));
    // The last bytes may be a line ending and the start of `From `, so the next search starts before them.
    Err(bytes.len().saturating_sub(b"From ".len()).max(from))
}

/// Returns whether `bytes` contains a line with `From ` and a date, which some programs read as a separator. The LF
/// before it is at `from` or later.
pub(crate) fn holds_plausible(bytes: &[u8], from: usize) -> bool {
    from_lines(bytes, from)
        .filter(|line| line.after != SeparatorEnd::Return && !line.has_tab)
        .any(|line| is_plausible(&bytes[line.start..]))
}

/// The start of a line that begins with `From `, and the bytes before it. The line may be a separator.
struct SeparatorCandidate {
    start: usize,
    after: SeparatorEnd,
    /// Whether the line begins with `From` and a tab. It is then no separator.
    has_tab: bool,
}

/// The kind of line ending or line before a line that starts with `From `. It determines which other signs of a
/// separator are required.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SeparatorEnd {
    /// A bare CR, or a byte order mark. An mbox that was appended to another one may begin with a mark.
    Return,
    EmptyLine,
    Text,
}

/// Returns the lines that start with `From ` or with `From` and a tab. The line ending before each line is at `from` or
/// later. One search for both is as fast as a search for one of them.
fn from_lines(bytes: &[u8], from: usize) -> impl Iterator<Item = SeparatorCandidate> {
    FROM.find_iter(&bytes[from..]).filter_map(move |hit| {
        let start = from + hit;
        let has_tab = match bytes.get(start + 4) {
            Some(b' ') => false,
            Some(b'\t') => true,
            _ => return None,
        };
        let before = &bytes[..start];
        let with_cr = match (hit > 0, before.strip_suffix(b"\n")) {
            (true, Some(line)) => line,
            (true, None) if before.ends_with(b"\r") || is_mark_of_line(before) => {
                return Some(SeparatorCandidate {
                    start,
                    after: SeparatorEnd::Return,
                    has_tab,
                });
            }
            _ => return None,
        };
        let lines = with_cr.strip_suffix(b"\r").unwrap_or(with_cr);
        let after = if lines.is_empty() || lines.ends_with(b"\n") {
            SeparatorEnd::EmptyLine
        } else {
            SeparatorEnd::Text
        };
        Some(SeparatorCandidate {
            start,
            after,
            has_tab,
        })
    })
}

/// Returns whether the last bytes are a byte order mark at the start of a line.
pub(crate) fn is_mark_of_line(before: &[u8]) -> bool {
    let line = before.strip_suffix(BYTE_ORDER_MARK);
    line.is_some_and(|line| line.ends_with(b"\n") || line.ends_with(b"\r"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_what_dovecot_and_mutt_read_as_one() {
        for line in [
            "From - Mon Jan  1 10:00:00 1996",
            "From a@b Thu Nov 29 22:33:52 EEST 2001",
            "From 1786543210987654321@xxx Mon Jan 02 15:04:05 +0000 2023\r",
            "From a at b.example  Wed Aug  2 00:39:12 MET DST 1995\r",
            "From Fri Sep 1 9:05 95",
            "From x Thu ??? 29 22:33:52 2001",
            "From \"a b\"@c  SAT JUL  4 00:00:00 2026",
        ] {
            assert!(is_plausible(line.as_bytes()), "{line}");
        }
        for line in [
            "From here on, walk",
            "From 10:30 on we meet",
            "From Monday to Friday, in May",
            "From decimal 1:2",
            " From - Mon Jan  1 10:00:00 1996",
        ] {
            let expected = line.contains("decimal");
            assert_eq!(is_plausible(line.as_bytes()), expected, "{line}");
        }
    }
}
