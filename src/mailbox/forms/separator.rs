//! What separates the messages of an mbox. docs/mailbox-internals.md compares this with what other programs do. Pure,
//! and linear: no line is looked at beyond [`LOOK_AHEAD`].
//!
//! **A separator** is a line that starts with `From `, at the start of the file or
//! * after an empty line, if it holds a time of day (`12:34`, which every dialect of the date has) or is followed by a
//!   header field or a `>From ` line. Body text like "From here on, walk", which lax writers leave unquoted, stays in
//!   its message; a home-made separator without a date works;
//! * after any other line, if it holds a date as asctime(3) writes it *and* is followed by a header field or a `>From `
//!   line: some writers leave the empty line out, and Python, Dovecot and mutt do not ask for it.
//!
//! **A plausible separator** is a separator, or any other line that starts with `From ` and holds such a date: Dovecot and
//! mutt divide there, Python at every `From `. [`rewrite`](crate::mailbox::forms::rewrite) takes none of these lines away.

use mail_parser::DateTime;
use memchr::memchr;
use memchr::memmem::Finder;
use std::sync::LazyLock;

/// From `From ` on: more bytes cannot change an answer.
pub(crate) const LOOK_AHEAD: usize = 512;

static SEPARATOR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\nFrom "));

/// `bytes` start a line behind an empty one. Whoever has fewer than [`LOOK_AHEAD`] bytes and could have more must wait.
pub(crate) fn is_separator(bytes: &[u8]) -> bool {
    line_of(bytes)
        .is_some_and(|(line, behind)| holds_time(line) || behind.is_some_and(starts_header))
}

/// `bytes` start behind a line that is not empty.
pub(crate) fn is_separator_in_text(bytes: &[u8]) -> bool {
    line_of(bytes)
        .is_some_and(|(line, behind)| behind.is_some_and(starts_header) && holds_date(line))
}

/// Dovecot or mutt would take the line for a separator.
pub(crate) fn is_plausible(bytes: &[u8]) -> bool {
    line_of(bytes).is_some_and(|(line, _)| holds_date(line))
}

pub(crate) fn from_line_length(bytes: &[u8]) -> Option<usize> {
    let is_one = bytes.starts_with(b"From ");
    is_one.then(|| memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1))
}

fn line_of(bytes: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    if !bytes.starts_with(b"From ") {
        return None;
    }
    let bytes = bytes.get(..LOOK_AHEAD).unwrap_or(bytes);
    let line = memchr(b'\n', bytes).unwrap_or(bytes.len());
    Some((&bytes[..line], bytes.get(line + 1..)))
}

fn holds_time(line: &[u8]) -> bool {
    line.windows(4).any(|w| {
        w[0].is_ascii_digit() && w[1] == b':' && w[2].is_ascii_digit() && w[3].is_ascii_digit()
    })
}

/// The name of a month and a time of day: Dovecot and mutt accept no date without them. Dovecot also takes `???` for a month.
fn holds_date(line: &[u8]) -> bool {
    const MONTHS: [[u8; 3]; 13] = [
        *b"jan", *b"feb", *b"mar", *b"apr", *b"may", *b"jun", *b"jul", *b"aug", *b"sep", *b"oct",
        *b"nov", *b"dec", *b"???",
    ];
    let is_time = |w: &[u8]| w[0].is_ascii_digit() && w[1] == b':' && w[2].is_ascii_digit();
    let is_month = |word: &[u8]| {
        let start = word.first_chunk::<3>();
        start.is_some_and(|start| MONTHS.iter().any(|month| start.eq_ignore_ascii_case(month)))
    };
    let mut words = line.split(|byte| byte.is_ascii_whitespace() || *byte == b',');
    line.windows(3).any(is_time) && words.any(is_month)
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

/// The next line is a header field or a further `From ` line. `http://...` is neither.
fn starts_header(bytes: &[u8]) -> bool {
    let is_field = |(name, value): (&[u8], &[u8])| !name.is_empty() && !value.starts_with(b"//");
    bytes.starts_with(b">From ") || field(bytes).is_some_and(is_field)
}

/// The first separator whose preceding `\n` is at `from` or later, and whether a merely plausible one was passed on the
/// way. Unless nothing follows, one may also start in the last bytes.
pub(crate) fn next_separator(bytes: &[u8], from: usize, whole: bool) -> (Option<usize>, bool) {
    let searched = bytes.get(from..).unwrap_or_default();
    let mut passed_plausible = false;
    for hit in SEPARATOR.find_iter(searched) {
        let newline = from + hit;
        let rest = &bytes[newline + 1..];
        if rest.len() < LOOK_AHEAD && !whole {
            break;
        }
        let before = &bytes[..newline];
        let before = before.strip_suffix(b"\r").unwrap_or(before);
        let divides = match before.is_empty() || before.ends_with(b"\n") {
            true => is_separator(rest),
            false => is_separator_in_text(rest),
        };
        if divides {
            return (Some(newline + 1), passed_plausible);
        }
        passed_plausible |= is_plausible(rest);
    }
    (None, passed_plausible)
}

/// An address that needs no domain.
const NOBODY: &str = "MAILER-DAEMON";

/// RFC 5321 §4.5.3.1: 64 octets, 255, and the `@` between them; a longer sender would hide the date from readers.
const LONGEST: usize = 320;

/// The last second that has a year of four digits.
const LATEST: i64 = 253_402_300_799;

/// RFC 4155, appendix A: `From `, the envelope sender, and the date of asctime(3) in UTC; without the line's end.
pub(crate) fn from_line(sender: &[u8], seconds: i64) -> String {
    let is_word =
        !sender.is_empty() && sender.len() <= LONGEST && sender.iter().all(u8::is_ascii_graphic);
    let sender = std::str::from_utf8(sender).ok().filter(|_| is_word);
    let sender = sender.unwrap_or(NOBODY);
    // `Thu, 1 Jan 1970 00:00:00 +0000`
    let date = DateTime::from_timestamp(seconds.clamp(0, LATEST)).to_rfc822();
    let mut words = date.split([',', ' ']).filter(|word| !word.is_empty());
    let [weekday, day, month, year, time] = [(); 5].map(|()| words.next().unwrap_or_default());
    format!("From {sender} {weekday} {month} {day:>2} {time} {year}")
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

    #[test]
    fn the_line_is_that_of_asctime_in_utc() {
        for (sender, seconds, line) in [
            (
                "a@b.example",
                0,
                "From a@b.example Thu Jan  1 00:00:00 1970",
            ),
            (
                "",
                1_718_000_000,
                "From MAILER-DAEMON Mon Jun 10 06:13:20 2024",
            ),
            ("a b", -5, "From MAILER-DAEMON Thu Jan  1 00:00:00 1970"),
            (
                "a\nb",
                i64::MAX,
                "From MAILER-DAEMON Fri Dec 31 23:59:59 9999",
            ),
            (
                "\u{fc}@b",
                951_782_400,
                "From MAILER-DAEMON Tue Feb 29 00:00:00 2000",
            ),
        ] {
            assert_eq!(from_line(sender.as_bytes(), seconds), line);
        }
    }
}
