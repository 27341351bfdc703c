//! Prologue of a mail: lines that programs put before its header. The header after these lines is read as usual. A mail
//! that is written in another format loses its prologue, because most programs find no header after it.
//!
//! A prologue consists of, in any order:
//! * a UTF-8 byte order mark, which editors on Windows write;
//! * empty lines, or lines of blanks;
//! * separators of an mbox (`From ` and `>From ` lines), which a program copied with the mail;
//! * banners: lines of the program or protocol that delivered the mail ([`BANNERS`]);
//! * the status line of an HTTP response, and the header fields of this response.
//!
//! A prologue counts only if the header of a mail follows directly. Otherwise the lines are text of a mail without a
//! header, or of a file that is not mail, such as a web page that was saved with its HTTP header.

#[cfg(feature = "mailbox")]
use std::borrow::Cow;

use memchr::{memchr2, memmem};

use crate::span::{front, is_from_line, rest_or_empty};

/// The UTF-8 byte order mark, which some editors write at the start of a file.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Maximum number of lines of a prologue, so that a file of empty lines is not searched to its end.
const MOST_LINES: usize = 64;

/// Maximum length of a line of a prologue, in bytes.
const LONGEST_LINE: usize = 2048;

/// Minimum length, in bytes, of the first fields of a header that is longer than the bytes in which it is searched for.
pub(crate) const LONG_HEADER: usize = 30 << 10;

/// Number of bytes after the prologue in which the fields of a header are searched for.
const LOOKED_AT: usize = 64 << 10;

/// A banner, as a test for its line. Each test accepts only the words that the program or protocol writes.
type Banner = fn(&[u8]) -> bool;

/// Start of the banner of Exchange 5.5 and 2000, and of MailStore.
const EXCHANGE: &[u8] = b"Microsoft Mail Internet Headers Version";

/// Start of the line before each article in a batch of Usenet news (RFC 1036, section 4.3).
const RNEWS: &[u8] = b"#! rnews ";

const BANNERS: [Banner; 8] = [
    is_exchange_banner,
    // The response to RETR (RFC 1939).
    |line| line == b"+OK" || line.starts_with(b"+OK "),
    // The response to ARTICLE and HEAD (RFC 3977): 220 and 221, the number and the Message-ID of the article.
    |line| is_numbered(line, &[b"220 ", b"221 "]),
    // The response to FETCH (RFC 3501).
    |line| line.starts_with(b"* ") && has_word(line, b"FETCH") && line.contains(&b'('),
    |line| {
        let count = line.strip_prefix(RNEWS);
        count.is_some_and(|count| count.trim_ascii().iter().all(u8::is_ascii_digit))
    },
    // An article that a news reader saved: `Article 7301 of comp.mail.mime:`.
    |line| is_numbered(line, &[b"Article "]) && has_word(line, b"of"),
    // The commands before the mail in a recorded SMTP session, or in a file of batch SMTP (RFC 2442).
    is_smtp_command,
    // A separator of an mbox that programs quoted more than once: `>>From - Mon Jan  6 10:00:00 2020`.
    |line| {
        let quoted = line.strip_prefix(b">>");
        quoted.is_some_and(|rest| without_quotes(rest).starts_with(b"From "))
    },
];

/// Returns a line without the `>` at its start.
fn without_quotes(line: &[u8]) -> &[u8] {
    let quotes = line.iter().take_while(|&&byte| byte == b'>');
    rest_or_empty(line, quotes.count())
}

/// Lines that precede the header of a mail.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Prologue {
    /// Number of bytes before the header.
    pub(crate) length: usize,
    /// Start and end of the first separator (`From ` or `>From ` line), without the `>` and the line ending.
    pub(crate) separator: Option<(usize, usize)>,
    /// Whether the prologue contains nothing but separators.
    pub(crate) is_separators: bool,
    /// Number of separators.
    pub(crate) separators: usize,
    /// Whether a separator follows a banner. In a file, this is then the separator of an mbox, which can contain further
    /// messages.
    pub(crate) has_separator_after_banner: bool,
}

impl Prologue {
    /// Returns the prologue at the start of `bytes`, which are a mail. Returns `None` if the header begins with the
    /// first byte, or if no header follows.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        Self::read(bytes, true)
    }

    /// Returns the prologue of an enclosed mail. Empty lines and HTTP headers are not accepted here, because for most
    /// programs an empty line at this place ends the header of the part.
    pub(crate) fn of_enclosed(bytes: &[u8]) -> Option<Self> {
        Self::read(bytes, false)
    }

    /// Returns the prologue of a message of which only separators are left: each of its lines is one, or is empty. `is_dated`
    /// returns whether a separator, without the `>`, has a date. Without a date, the line may be a text.
    #[cfg(feature = "mailbox")]
    pub(crate) fn of_separators(bytes: &[u8], is_dated: impl Fn(&[u8]) -> bool) -> Option<Self> {
        let mut found = Self {
            is_separators: true,
            ..Self::default()
        };
        while let Some(rest) = bytes.get(found.length..).filter(|rest| !rest.is_empty()) {
            let (end, next) = line_end(front(rest, LONGEST_LINE));
            let line = rest.get(..end)?.trim_ascii_end();
            if !line.is_empty() {
                let unquoted = line.strip_prefix(b">").unwrap_or(line);
                if !is_from_line(line) || !is_dated(unquoted) {
                    return None;
                }
                let start = found.length + line.len() - unquoted.len();
                let span = (start, found.length + line.len());
                found.separator.get_or_insert(span);
                found.separators += 1;
            }
            found.length += next;
        }
        (found.separators > 0).then_some(found)
    }

    /// Returns the bytes after the prologue of a mail.
    pub(crate) fn behind(bytes: &[u8]) -> &[u8] {
        let prologue = Self::of(bytes).unwrap_or_default();
        rest_or_empty(bytes, prologue.length)
    }

    fn read(bytes: &[u8], is_outermost: bool) -> Option<Self> {
        // Fast path: nearly every mail begins with a field.
        if starts_with_field(bytes) && !bytes.starts_with(BYTE_ORDER_MARK) {
            return None;
        }
        let mut found = Self {
            is_separators: true,
            ..Self::default()
        };
        let (mut has_lines, mut has_banner) = (false, false);
        for _ in 0..MOST_LINES {
            let rest = bytes.get(found.length..)?;
            if let Some(behind) = rest.strip_prefix(BYTE_ORDER_MARK) {
                found.length = bytes.len() - behind.len();
                found.is_separators = false;
                continue;
            }
            let (end, next) = line_end(front(rest, LONGEST_LINE));
            let line = rest.get(..end).unwrap_or_default();
            if next == 0 || next == LONGEST_LINE {
                break;
            }
            let is_empty = line.trim_ascii().is_empty();
            if is_from_line(line) {
                let start = found.length + usize::from(line.starts_with(b">"));
                let end = found.length + line.trim_ascii_end().len();
                found.separator.get_or_insert((start, end));
                found.separators += 1;
                found.has_separator_after_banner |= has_banner;
                found.length += next;
                continue;
            }
            let (is_status, is_banner) = (is_http_status(line), BANNERS.iter().any(|is| is(line)));
            if !(is_banner || is_outermost && (is_empty || is_status)) {
                break;
            }
            found.length += next;
            found.is_separators = false;
            (has_lines, has_banner) = (true, has_banner || !is_empty);
            if is_status && !is_header(&bytes[found.length..], true) {
                found.length += http_fields(&bytes[found.length..])?;
            }
        }
        let rest = bytes.get(found.length..)?;
        let follows = if found.is_separators {
            starts_with_field(rest)
        } else {
            is_header(rest, has_lines)
        };
        (found.length > 0 && follows).then_some(found)
    }
}

/// Returns a mail without the text before its header, and without the banner of Exchange among the fields of its header.
/// Returns `None` if the mail contains neither.
#[cfg(feature = "mailbox")]
pub(crate) fn without_prologue(mail: &[u8]) -> Option<Cow<'_, [u8]>> {
    let prologue = Prologue::of(mail).unwrap_or_default();
    let plain = rest_or_empty(mail, prologue.length);
    match without_banner_in_header(plain) {
        Some(other) => Some(Cow::Owned(other)),
        None => (prologue.length > 0).then_some(Cow::Borrowed(plain)),
    }
}

/// Returns the mail without the banner of Exchange among the fields of its header. Some exports contain the banner there,
/// after fields that another program added. A banner in the first line is removed, too. Returns `None` if there is no such line.
pub(crate) fn without_banner_in_header(mail: &[u8]) -> Option<Vec<u8>> {
    let found = memmem::find(front(mail, LOOKED_AT), EXCHANGE)?;
    let mut at = 0;
    while at <= found {
        let rest = mail.get(at..)?;
        let (end, next) = line_end(rest);
        let line = rest.get(..end)?;
        let is_folded = at > 0 && (line.starts_with(b" ") || line.starts_with(b"\t"));
        let is_of_header = is_folded || field_name(line).is_some();
        if at < found && !is_of_header {
            return None;
        }
        if at == found {
            return Some([&mail[..at], &rest[next..]].concat());
        }
        at += next;
    }
    None
}

pub(crate) fn is_exchange_banner(line: &[u8]) -> bool {
    has_words(line, EXCHANGE)
}

/// Returns whether a file that begins with these bytes is mail: a message or an mbox.
#[cfg(feature = "mailbox")]
pub(crate) fn starts_mail(bytes: &[u8]) -> bool {
    is_from_line(bytes) || is_header(bytes, false) || Prologue::of(bytes).is_some()
}

/// Returns the length of the first line, without and with its line ending: LF, CR LF or a bare CR.
fn line_end(bytes: &[u8]) -> (usize, usize) {
    match memchr2(b'\r', b'\n', bytes) {
        None => (bytes.len(), bytes.len()),
        Some(end) if bytes[end..].starts_with(b"\r\n") => (end, end + 2),
        Some(end) if bytes[end..].starts_with(b"\r\r\n") => (end, end + 3),
        Some(end) => (end, end + 1),
    }
}

fn field_name(line: &[u8]) -> Option<&[u8]> {
    let is_of_name = |byte: &&u8| byte.is_ascii_graphic() && **byte != b':';
    let (name, behind) = line.split_at(line.iter().take_while(is_of_name).count());
    let value = behind.trim_ascii_start().strip_prefix(b":")?;
    let is_line = !behind.starts_with(b"\r") && !behind.starts_with(b"\n");
    (!name.is_empty() && is_line && !value.starts_with(b"//")).then_some(name)
}

fn starts_with_field(bytes: &[u8]) -> bool {
    field_name(front(bytes, LONGEST_LINE)).is_some()
}

/// Header fields that distinguish a mail from other files: every mail has at least one of them, and other files rarely
/// do.
#[derive(Clone, Copy, Default)]
pub(crate) struct MailFields {
    /// A bit for each field of [`MailFields::NAMES`] that occurs.
    found: u16,
}

impl MailFields {
    const NAMES: [&[u8]; 13] = [
        b"received",
        b"return-path",
        b"delivered-to",
        b"from",
        b"sender",
        b"to",
        b"subject",
        b"message-id",
        b"x-mozilla-status",
        b"x-envelope-from",
        // From here on, the fields also occur in HTTP responses and web pages.
        b"date",
        b"mime-version",
        b"content-type",
    ];
    const OF_MAIL_ALONE: u16 = (1 << 10) - 1;

    /// Adds the field with this name, if it is one of [`MailFields::NAMES`].
    pub(crate) fn add(&mut self, name: &[u8]) {
        let is = |field: &&[u8]| name.eq_ignore_ascii_case(field);
        if let Some(at) = Self::NAMES.iter().position(is) {
            self.found |= 1 << at;
        }
    }

    /// Returns whether the field with this name occurs only in mail.
    #[cfg(feature = "mailbox")]
    pub(crate) fn is_of_mail(name: &[u8]) -> bool {
        let mut found = Self::default();
        found.add(name);
        found.found & Self::OF_MAIL_ALONE != 0
    }

    pub(crate) fn is_any(self) -> bool {
        self.found != 0
    }

    /// Returns whether a field with this name begins the header of a mail, if the header is so long that no other field is
    /// among its first bytes.
    pub(crate) fn begins_long_header(name: &[u8]) -> bool {
        const PREFIXES: [&[u8]; 11] = [
            b"x-",
            b"arc-",
            b"authentication-",
            b"autocrypt",
            b"dkim-",
            b"domainkey-",
            b"list-",
            b"old-",
            b"received-",
            b"resent-",
            b"thread-",
        ];
        const NAMES: [&[u8]; 9] = [
            b"bcc",
            b"cc",
            b"comments",
            b"in-reply-to",
            b"keywords",
            b"newsgroups",
            b"path",
            b"references",
            b"reply-to",
        ];
        let mut known = Self::default();
        known.add(name);
        let lower = name.to_ascii_lowercase();
        known.is_any()
            || NAMES.contains(&lower.as_slice())
            || PREFIXES.iter().any(|prefix| lower.starts_with(prefix))
    }

    /// Returns whether at least two fields occur, one of which is specific to mail.
    pub(crate) fn are_of_mail_alone(self) -> bool {
        self.found.count_ones() > 1 && self.found & Self::OF_MAIL_ALONE != 0
    }
}

/// Whether `bytes` begin with the header of a mail. `is_strict` is for a header after other lines: it then needs two
/// fields of mail, one of which no other format has.
fn is_header(bytes: &[u8], is_strict: bool) -> bool {
    let (mut known, mut fields, mut others) = (MailFields::default(), 0_usize, 0_usize);
    let mut rest = front(bytes, LOOKED_AT);
    if !starts_with_field(rest) {
        return false;
    }
    let mut is_whole = rest.len() < LONG_HEADER;
    while !rest.is_empty() {
        let (end, next) = line_end(rest);
        let line = &rest[..end];
        match (line.first(), field_name(line)) {
            (None, _) => {
                is_whole = true;
                break;
            }
            (Some(b' ' | b'\t'), _) => {}
            (_, Some(name)) => {
                fields += 1;
                known.add(name);
            }
            // The last line may be cut.
            (_, None) if next == end || is_from_line(line) => {}
            (_, None) => others += 1,
        }
        rest = &rest[next..];
    }
    let is_of_mail = if is_strict {
        known.are_of_mail_alone()
    } else {
        known.is_any()
    };
    let first = field_name(front(bytes, LONGEST_LINE));
    let is_long = !is_whole && others == 0 && first.is_some_and(MailFields::begins_long_header);
    (is_of_mail || is_long) && fields > others
}

/// Returns the length of the header of an HTTP response and of the empty line after it.
fn http_fields(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = bytes.get(at..)?;
        let (end, next) = line_end(front(rest, LONGEST_LINE));
        at += next;
        match rest.get(..end)? {
            [] if next > 0 => return Some(at),
            [] => return None,
            [b' ' | b'\t', ..] => {}
            line => drop(field_name(line)?),
        }
        if at > LOOKED_AT {
            return None;
        }
    }
}

fn is_http_status(line: &[u8]) -> bool {
    let version = [&b"HTTP/1.0 "[..], b"HTTP/1.1 ", b"HTTP/2 ", b"HTTP/3 "];
    let code = version.iter().find_map(|start| line.strip_prefix(*start));
    code.is_some_and(|code| matches!(code, [b'1'..=b'5', b'0'..=b'9', b'0'..=b'9', ..]))
}

pub(crate) fn is_smtp_command(line: &[u8]) -> bool {
    let starts: [&[u8]; 7] = [
        b"MAIL FROM:",
        b"RCPT TO:",
        b"HELO ",
        b"EHLO ",
        b"LHLO ",
        // Commands of batch SMTP in BITNET.
        b"TICK ",
        b"VERB ",
    ];
    let words: [&[u8]; 3] = [b"DATA", b"HELO", b"RSET"];
    starts.iter().any(|start| has_words(line, start))
        || words.iter().any(|word| is_word(line, word))
}

fn is_numbered(line: &[u8], starts: &[&[u8]]) -> bool {
    let number = starts.iter().find_map(|start| line.strip_prefix(*start));
    number.is_some_and(|number| number.first().is_some_and(u8::is_ascii_digit))
}

fn has_words(line: &[u8], words: &[u8]) -> bool {
    line.get(..words.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(words))
}

fn is_word(line: &[u8], word: &[u8]) -> bool {
    line.trim_ascii().eq_ignore_ascii_case(word)
}

fn has_word(line: &[u8], word: &[u8]) -> bool {
    line.split(|byte| matches!(byte, b' ' | b'\t'))
        .any(|part| part.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "Received: x\nFrom: a@example.org\nSubject: s\n\nbody\n";

    #[test]
    fn header_behind_a_banner_is_found_with_every_line_ending() {
        for before in [
            "Microsoft Mail Internet Headers Version 2.0\n",
            "+OK 1234 octets\n",
            "+OK\n",
            "220 3000234 <45223423@example.com>\n",
            "* 12 FETCH (UID 7 RFC822 {1234}\n",
            "#! rnews 1234\n",
            "Article 7301 of comp.mail.mime:\n",
            "MAIL FROM:<a@b> SIZE=28451 BODY=8BITMIME\nRCPT TO:<c@d>\nDATA\n",
            "HTTP/1.1 200 OK\n",
            "HTTP/1.1 200 OK\nContent-Type: message/rfc822\nServer: x\n\n",
            "\n",
            " \t \n\n",
            "\u{feff}",
            "\u{feff}\nMicrosoft Mail Internet Headers Version 2.0\n\n",
            "From a@b Thu Jan  1 00:00:00 1970\n",
            ">From - Thu Jan  1 00:00:00 1970\n>From x\n",
            "\nFrom a@b x\n+OK\n",
        ] {
            for ending in ["\n", "\r\n", "\r", "\r\r\n"] {
                let text = [before, HEADER].concat().replace('\n', ending);
                let found = Prologue::of(text.as_bytes());
                let length = before.replace('\n', ending).len();
                assert_eq!(found.map(|it| it.length), Some(length), "{text:?}");
            }
        }
    }

    #[test]
    fn text_without_a_header_behind_it_is_no_prologue() {
        for text in [
            HEADER,
            "",
            "\n",
            "\n\n\nDear all,\nSubject: x\n",
            "\nSubject: x\n\n",
            "Microsoft Mail Internet Headers Version 2.0",
            "Microsoft Mail Internet Headers Version 2.0\n",
            "Microsoft Mail Internet Headers Version 2.0\nare written by Exchange.\nSubject: x\n",
            "Microsoft Mail\nFrom: a\nSubject: x\n\n",
            "+OK Pete, here\nDear all,\n",
            "+OKAY\nFrom: a\nSubject: x\n\n",
            "HTTP/1.1 200 OK\nDate: x\nContent-Type: text/html\n\n<html>From: a\nTo: b\n",
            "HTTP/1.1 200 OK\nDate: x\nContent-Type: text/html\nMIME-Version: 1.0\n\n",
            "HTTP/1.1 is a protocol\nFrom: a\nTo: b\n\n",
            "\u{feff}title: x\n\n",
            "From here on\nwe walk\n",
            "#! /bin/sh\nFrom: a\nTo: b\n\n",
            "220 pages\n\n",
        ] {
            assert_eq!(Prologue::of(text.as_bytes()), None, "{text:?}");
        }
        let many = "\n".repeat(MOST_LINES + 1) + HEADER;
        assert_eq!(Prologue::of(many.as_bytes()), None);
        assert_eq!(
            Prologue::of_enclosed(["\n", HEADER].concat().as_bytes()),
            None
        );
        let banner = ["+OK\n", HEADER].concat();
        assert!(Prologue::of_enclosed(banner.as_bytes()).is_some());
    }

    #[test]
    fn banner_of_exchange_among_the_fields_of_a_header_is_removed() {
        let banner = "Microsoft Mail Internet Headers Version 2.0\n";
        for (mail, has) in [
            (format!("Date: x\n{banner}Subject: s\n\nbody\n"), true),
            (format!("Date: x\n\n{banner}body\n"), false),
            (banner.to_owned(), true),
            (format!("{banner}body\n"), true),
            (format!("a text\n{banner}body\n"), false),
            (format!("Date: x {banner}Subject: s\n\nbody\n"), false),
            ("Date: x\n\nbody\n".to_owned(), false),
        ] {
            for ending in ["\n", "\r\n"] {
                let text = mail.replace('\n', ending);
                let expected = text.replace(&banner.replace('\n', ending), "");
                let found = without_banner_in_header(text.as_bytes());
                assert_eq!(found, has.then(|| expected.into_bytes()), "{text:?}");
            }
        }
    }

    #[test]
    fn first_separator_of_a_prologue_is_told_apart() {
        let text = ["\u{feff}>From - x \r\nFrom b\r\n", HEADER].concat();
        let found = Prologue::of(text.as_bytes()).unwrap();
        let (start, end) = found.separator.unwrap();
        assert_eq!(&text[start..end], "From - x");
        assert!(!found.is_separators && !found.has_separator_after_banner);
        let text = ["+OK\nFrom - x\n", HEADER].concat();
        assert!(
            Prologue::of(text.as_bytes())
                .unwrap()
                .has_separator_after_banner
        );
    }
}
