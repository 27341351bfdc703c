//! The plain form of a message: the message without the traces of the mailbox that contains it.

use std::borrow::Cow;

use memchr::memmem;
use sha2::{Digest as _, Sha256};

use crate::engine::text_lines::{lines, unquoted};
use crate::from_field::{SpellingPlace, has_header, is_field, is_quoted_from_line, spelled};
use crate::mailbox_field::is_of_mailbox;
use crate::mime::date;
use crate::prologue::{BYTE_ORDER_MARK, Prologue, is_exchange_banner};
use crate::span::{is_from_line, split_once};

/// The field of `--mark`, in lower case.
const MARK: &[u8] = b"x-embody";

/// The first half of a SHA-256 hash. It saves memory, and is long enough that two different values with one digest cannot be
/// made: this would need about 2^64 hashes. With 64 bits, a sender could make two mails of which `merge` keeps only one.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Debug,
    serde::Serialize,
    serde::Deserialize,
)]
pub(crate) struct Digest(u64, u64);

impl Digest {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self::of_sha256(&Sha256::digest(bytes).into())
    }

    fn of_sha256(sha256: &[u8; 32]) -> Self {
        let half = |at: usize| {
            let bytes = sha256.get(at..at + 8).and_then(|it| it.try_into().ok());
            u64::from_be_bytes(bytes.unwrap_or_default())
        };
        Self(half(0), half(8))
    }

    /// Returns the first half of the digest.
    pub(crate) fn half(self) -> u64 {
        self.0
    }

    pub(crate) fn to_bytes(self) -> [u8; 16] {
        ((u128::from(self.0) << 64) | u128::from(self.1)).to_be_bytes()
    }

    /// Parses a SHA-256 hash of 64 hexadecimal digits. Returns `None` for any other text.
    pub(crate) fn of_hex(digits: &str) -> Option<Self> {
        let half = |at: usize| u64::from_str_radix(digits.get(at..at + 16)?, 16).ok();
        (digits.len() == 64).then_some(())?;
        Some(Self(half(0)?, half(16)?))
    }
}

/// Returns the plain form of a message, which must not begin with the separator line of an mbox:
/// * every line ends with a line feed ([`lines`]);
/// * the lines before the header ([`Prologue`]) are removed;
/// * the quoting of `From ` lines is removed, even if it was added several times;
/// * fields that mailboxes add ([`mailbox_field`](crate::mailbox_field)), the field of `--mark`, and separators and banners
///   of Exchange in the header are removed. If the header contains a line that is not a field, nothing is removed after that
///   line: the empty line after the header may be missing, and the rest is then text;
/// * a text without a header follows an empty line, because a mailbox that adds fields to it adds this line, too;
/// * the From field is not quoted, and has no blank before its colon ([`from_field`](crate::from_field));
/// * empty lines at the end are removed;
/// * the banner of Exchange in the first line is removed, also if no header follows;
/// * a message of which only separators with dates are left is empty.
pub(crate) fn plain(content: &[u8]) -> Vec<u8> {
    let mail = with_line_feeds(Prologue::behind(content));
    let Some(mail) = without_trace(&mail) else {
        return Vec::new();
    };
    let content = &*spelled(mail, SpellingPlace::UnquotedWithoutBlank);
    let mut plain = Vec::with_capacity(content.len() + 1);
    let mut header = HeaderLines::of(content);
    let has_returns = memchr::memchr(b'\r', content).is_some();
    let mut read = 0;
    let mut rest = lines(content);
    while let Some(line) = rest.next() {
        if header.is_over && !has_returns {
            // Each line of the body already ends with a line feed, so the body is not divided into lines.
            append_unquoted(&mut plain, content.get(read..).unwrap_or_default());
            break;
        }
        // Each line is counted with one line feed. With carriage returns, a line ending can have two bytes and this number
        // would be wrong. It is used above only if the message has no carriage returns.
        read += line.len() + 1;
        if header.drops(line, &rest) {
            continue;
        }
        // In a header, `>From : Ann` is a field and not a quoted line.
        let unmarked = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        let is_text = header.is_over || !header.has_fields || is_quoted_from_line(unmarked);
        let (mark, line) = if is_text {
            unquoted(line)
        } else {
            (&[][..], line)
        };
        if plain.is_empty() && (!mark.is_empty() || header.is_text_first(line, &rest)) {
            plain.push(b'\n');
        }
        plain.extend_from_slice(mark);
        plain.extend_from_slice(line);
        plain.push(b'\n');
    }
    let end = plain.iter().rposition(|byte| *byte != b'\n');
    plain.truncate(end.map_or(0, |end| end + 2));
    plain
}

/// Returns a mail whose lines end with carriage returns alone, as on an old Macintosh, with line feeds. Borrows any other mail.
fn with_line_feeds(mail: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\n', mail).is_some() || memchr::memchr(b'\r', mail).is_none() {
        return Cow::Borrowed(mail);
    }
    let line_feed_for = |byte: &u8| if *byte == b'\r' { b'\n' } else { *byte };
    Cow::Owned(mail.iter().map(line_feed_for).collect())
}

/// Decides which lines of a header are traces of mailboxes.
struct HeaderLines {
    /// Whether the message begins with a header.
    has_fields: bool,
    /// Whether the message begins with folded lines, and a field follows. The lines may also be a text.
    is_header_doubtful: bool,
    /// Whether the empty line after the header was read.
    is_over: bool,
    /// Whether no line can be dropped any more, because the text may have begun.
    may_be_text: bool,
    /// Whether the last line was dropped and may be folded.
    is_field_dropped: bool,
}

impl HeaderLines {
    fn of(content: &[u8]) -> Self {
        // A mailbox of Thunderbird adds fields after such lines, because they would become a part of a field before them.
        let without_fold = lines(content).find(|line| !is_folded(line));
        let has_header = has_header(content);
        let has_fields = has_header || without_fold.is_some_and(is_field);
        Self {
            has_fields,
            is_header_doubtful: !has_header,
            is_over: false,
            may_be_text: !has_fields,
            is_field_dropped: false,
        }
    }

    /// Returns whether the next line is dropped. `rest` contains the lines after it.
    fn drops<'l>(&mut self, line: &[u8], rest: &(impl Iterator<Item = &'l [u8]> + Clone)) -> bool {
        self.is_over |= line.is_empty();
        if self.is_over || self.may_be_text {
            return false;
        }
        if is_folded(line) {
            return self.is_field_dropped;
        }
        self.is_field_dropped = is_field_of_mailboxes(line, rest);
        let is_line_of_program = || is_dated_separator(line) || is_exchange_banner(line);
        let is_trace = self.is_field_dropped || !self.is_header_doubtful && is_line_of_program();
        self.may_be_text = !is_trace && !is_field(line);
        is_trace
    }

    /// Returns whether the message begins with this line of its text, without the empty line after a header. `rest` contains the
    /// lines after it.
    fn is_text_first<'l>(
        &self,
        line: &[u8],
        rest: &(impl Iterator<Item = &'l [u8]> + Clone),
    ) -> bool {
        let has_field = || {
            let next = rest.clone().find(|line| !is_quoted_from_line(line));
            next.is_some_and(is_field)
        };
        let is_trace = self.has_fields && is_quoted_from_line(line) && has_field();
        !line.is_empty() && !is_field(line) && !is_trace
    }
}

/// Returns a mail without the banner of Exchange in its first line. Returns `None` for a mail that consists of separators with
/// dates.
fn without_trace(mail: &[u8]) -> Option<&[u8]> {
    let first = lines(mail).next().unwrap_or_default();
    if is_exchange_banner(first) {
        let end = memchr::memchr(b'\n', mail).map_or(mail.len(), |end| end + 1);
        return Some(mail.get(end..).unwrap_or_default());
    }
    let mut written = lines(mail).filter(|line| !line.is_empty());
    let is_separator = is_from_line(first) && written.all(is_dated_separator);
    (!is_separator).then_some(mail)
}

/// Returns true for a separator that ends with its date, `From a@example.org Sat Jan  3 01:05:34 2015`, and for a quoted one.
/// Without a date, the line may be the first sentence of the text.
fn is_dated_separator(line: &[u8]) -> bool {
    const WORDS_OF_DATE: usize = 5;

    let mut words = line
        .rsplit(|byte| *byte == b' ')
        .filter(|word| !word.is_empty());
    let first_of_date = words.nth(WORDS_OF_DATE - 1);
    let date = first_of_date.and_then(|word| line.get(memmem::rfind(line, word)?..));
    is_from_line(line) && date.is_some_and(date::is_asctime)
}

/// Appends a text whose lines end with line feeds, without the quoting of `From ` lines, and with a line feed at its end.
fn append_unquoted(plain: &mut Vec<u8>, text: &[u8]) {
    let mut copied = 0;
    for quote in memmem::find_iter(text, b">From ") {
        let before = text.get(..quote).unwrap_or_default();
        let start = before
            .iter()
            .rposition(|byte| *byte != b'>')
            .map_or(0, |last| last + 1);
        let marked = before.get(..start).unwrap_or_default();
        let lines = marked.strip_suffix(BYTE_ORDER_MARK).unwrap_or(marked);
        if lines.is_empty() || lines.ends_with(b"\n") {
            plain.extend_from_slice(text.get(copied..start).unwrap_or_default());
            copied = quote + 1;
        }
    }
    plain.extend_from_slice(text.get(copied..).unwrap_or_default());
    if !text.ends_with(b"\n") {
        plain.push(b'\n');
    }
}

/// Returns the digest of a plain form. Messages with the same digest are identical.
pub(crate) fn identity(plain: &[u8]) -> Digest {
    Digest::of(plain)
}

fn is_folded(line: &[u8]) -> bool {
    line.starts_with(b" ") || line.starts_with(b"\t")
}

/// Returns whether a program that stores mail wrote the field that begins with `line`. `rest` contains the lines after it.
fn is_field_of_mailboxes<'l>(line: &[u8], rest: &(impl Iterator<Item = &'l [u8]> + Clone)) -> bool {
    let Some((name, value)) = split_once(b':', line) else {
        return false;
    };
    let name = name.trim_ascii_end();
    let whole_value = || {
        let mut folded = rest.clone().take_while(|line| is_folded(line)).peekable();
        match folded.peek() {
            None => Cow::Borrowed(value),
            Some(_) => {
                Cow::Owned(folded.fold(value.to_vec(), |all, line| [&all, line].join(&b'\n')))
            }
        }
    };
    // Tags of Evolution are only in its own field (`UID-FLAGS;TAGS`), so such a field is content.
    let has_tags = || name.eq_ignore_ascii_case(b"X-Evolution") && whole_value().contains(&b';');
    name.eq_ignore_ascii_case(MARK) && is_mark(&whole_value())
        || is_of_mailbox(name, whole_value) && !has_tags()
}

/// Returns whether a field of `--mark` has this value: words such as `links=3`. A sender may use the name for another field.
fn is_mark(value: &[u8]) -> bool {
    let words = value.split(u8::is_ascii_whitespace);
    words.filter(|word| !word.is_empty()).all(|word| {
        let (name, count) = split_once(b'=', word).unwrap_or_default();
        let is_count = !count.is_empty() && count.iter().all(u8::is_ascii_digit);
        is_count && name.iter().all(u8::is_ascii_lowercase)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_form_of_one_mail_in_two_mailboxes_is_the_same() {
        let mbox = b"Status: RO\nSubject: a\nContent-Length: 9\nX-Mozilla-Keys:\n\t$Label1\nTo: b\n\n>From here\nx\n\n";
        let maildir = b"Subject: a\r\nTo: b\r\n\r\nFrom here\r\nx";
        assert_eq!(plain(mbox), plain(maildir));
        assert_eq!(plain(mbox), b"Subject: a\nTo: b\n\nFrom here\nx\n");
    }

    #[test]
    fn plain_form_keeps_every_other_byte() {
        let mail = b"Statusx: 1\nX-Status-Report: 2\nSubject: a\n\nStatus: RO\n> From x\n\n\ny";
        assert_eq!(plain(mail), [&mail[..], b"\n"].concat());
        assert_eq!(plain(b""), b"");
        assert_eq!(plain(b"\n\n"), b"");
    }

    #[test]
    fn plain_form_keeps_text_that_follows_a_header_without_an_empty_line() {
        for text in [
            "Hello,\nStatus: all of it is broken\nBye\n",
            "Hello,\nFrom tomorrow on it costs 5\nLines: none\n",
            "From Monday to May 5 at 10:30 we are closed\nStatus: x\n\nmore\n",
            "--\nX-UID: 1\n folded\n\nmore\n",
        ] {
            let mail = format!("Subject: a\n{text}");
            assert_eq!(String::from_utf8_lossy(&plain(mail.as_bytes())), mail);
        }
    }

    #[test]
    fn plain_form_keeps_text_that_looks_like_a_field_in_a_mail_without_a_header() {
        let text = "Hello,\nStatus: all of it is broken\nFrom tomorrow on it costs 5\n";
        assert_eq!(plain(text.as_bytes()), format!("\n{text}").as_bytes());
    }

    #[test]
    fn plain_form_of_a_text_without_a_header_is_the_one_that_a_mailbox_gives_it() {
        for text in ["Hello,\nBye\n", " folded\n\nx\n", "\nHello\n", "\n\nx\n"] {
            let line = if text.starts_with('\n') { "" } else { "\n" };
            let kept = format!("{line}{text}");
            assert_eq!(plain(text.as_bytes()), kept.as_bytes());
            assert_eq!(plain(kept.as_bytes()), kept.as_bytes());
            for fields in ["Content-Length: 9\n", "Status: RO\nX-UID: 1\n"] {
                let stored = format!("{fields}{kept}");
                assert_eq!(plain(stored.as_bytes()), kept.as_bytes(), "{stored}");
            }
        }
        for text in [" X: y\nSubject: a\n\nx\n", "\tX\n\tY\nFrom: a\n\nx\n"] {
            let at = text.find("\nSubject").or(text.find("\nFrom")).unwrap() + 1;
            let stored = format!("{}X-Mozilla-Status: 0001\n{}", &text[..at], &text[at..]);
            assert_eq!(plain(stored.as_bytes()), plain(text.as_bytes()), "{stored}");
        }
        // The first line is a field of the header, and a line of the text.
        assert_ne!(plain(b"Subject: a\n\nx\n"), plain(b"\nSubject: a\n\nx\n"));
    }

    #[test]
    fn plain_form_of_a_mail_without_a_body_or_a_header_is_the_one_that_a_mailbox_gives_it() {
        let separator = "From a@b.example Mon Jan  6 10:00:00 2020\n";
        for (mail, kept) in [
            (separator, ""),
            (&format!(">{separator}\n"), ""),
            (separator.trim_end(), ""),
            ("From here on\n", "\nFrom here on\n"),
            (">From here on\n", "\nFrom here on\n"),
            ("\u{feff}", "\n\u{feff}\n"),
            ("\u{feff}>From here\n", "\n\u{feff}From here\n"),
            ("Microsoft Mail Internet Headers Version 2.0\n", ""),
            (
                "Microsoft Mail Internet Headers Version 2.0\nbody\n",
                "\nbody\n",
            ),
            (
                "Microsoft Mail Internet Headers Version 2.0\nSubject: a\n\nb\n",
                "Subject: a\n\nb\n",
            ),
            (
                "From here\nMicrosoft Mail Internet Headers Version 2.0\n",
                "\nFrom here\nMicrosoft Mail Internet Headers Version 2.0\n",
            ),
            ("Subject: a", "Subject: a\n"),
        ] {
            let found = plain(mail.as_bytes());
            assert_eq!(String::from_utf8_lossy(&found), kept, "{mail:?}");
            if !mail.starts_with("Subject") {
                let marked = mail.replace("From ", ">From ").replace(">>", ">");
                for quoted in [mail, &marked] {
                    let stored = format!("Status: RO\nX-UID: 1\n{quoted}");
                    assert_eq!(
                        String::from_utf8_lossy(&plain(stored.as_bytes())),
                        kept,
                        "{stored:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn plain_form_keeps_text_behind_folded_lines_that_looks_like_a_field() {
        for text in [
            " Dear Ann,\nStatus: anything\nbye\n",
            " Dear Ann,\nNote: x\nLines: none\nX-UID: call me\n\nbye\n",
            "\tfolded\nNote: x\nFrom a@b Sat Jan  3 01:05:34 2015\nMicrosoft Mail Internet Headers Version 2.0\n",
            " Dear Ann,\nStatus: R\n and more\n",
        ] {
            assert_eq!(plain(text.as_bytes()), format!("\n{text}").as_bytes());
        }
    }

    #[test]
    fn plain_form_keeps_fields_of_mailboxes_with_values_of_a_sender() {
        let fields = "Subject: a\nStatus: order shipped\nStatus: RO\n to Ann\nX-Mozilla-Status: read\nX-UID: esmfr-4710\nLines: 3 of 5\nX-Embody: a text\nX-Evolution: 0000000a-0010;important\n";
        let mail = format!("{fields}\nx\n");
        assert_eq!(String::from_utf8_lossy(&plain(mail.as_bytes())), mail);
        let stored = format!("Status: RO\nX-UID:\n 12\nX-Embody: expanded=1\n left=0\n{mail}");
        assert_eq!(plain(stored.as_bytes()), mail.as_bytes());
    }

    #[test]
    fn plain_form_lacks_separators_with_a_date_among_the_fields() {
        for line in [
            "From a@b Sat Jan  3 01:05:34 2015",
            ">From a@b  Sat Jan  3 01:05 2015",
            "From a b Sat Jan 3 01:05:34 2015",
            "Microsoft Mail Internet Headers Version 2.0",
        ] {
            let mail = format!("Subject: a\n{line}\nStatus: R\nTo: b\n\nx\n");
            assert_eq!(plain(mail.as_bytes()), b"Subject: a\nTo: b\n\nx\n");
            let folded = format!("Subject: a\n{line}\n folded\n\nx\n");
            assert_eq!(plain(folded.as_bytes()), b"Subject: a\n folded\n\nx\n");
        }
    }

    #[test]
    fn plain_form_keeps_a_field_that_looks_like_a_separator_and_bare_carriage_returns() {
        let mail = b"From: Ann <a@example.org>\nFrom:b\n\na\rb\n";
        assert_eq!(plain(mail), mail);
        let with_blanks = b"From : Ann <a@example.org>\nFrom  :b\n\na\rb\n";
        assert_eq!(plain(with_blanks), mail);
        assert_eq!(plain(b"From a@b c\nTo: b\n\nx\n"), b"To: b\n\nx\n");
        assert_eq!(plain(b"To: b\r\rx\r"), b"To: b\n\nx\n");
    }

    #[test]
    fn plain_form_of_a_quoted_from_field_is_that_of_the_field() {
        for (quoted, field) in [
            (
                ">From: Ann\nTo: b\n\n>From: x\n",
                "From: Ann\nTo: b\n\n>From: x\n",
            ),
            (
                "To: b\r\n>>From : Ann\r\n\r\nx\r\n",
                "To: b\nFrom: Ann\n\nx\n",
            ),
            (
                ">From: Ann\n>From: Bob\n\nx\n",
                "From: Ann\n>From: Bob\n\nx\n",
            ),
            ("text\n>From : Ann\n\nx\n", "\ntext\nFrom : Ann\n\nx\n"),
        ] {
            let found = plain(quoted.as_bytes());
            assert_eq!(String::from_utf8_lossy(&found), field);
        }
        assert_eq!(
            plain(b">From: Ann\rTo: b\r\rx\r"),
            b"From: Ann\nTo: b\n\nx\n"
        );
        for kept in [">From: Ann\nFrom: Bob\n\nx\n", "\ntext\n>From: Ann\n\nx\n"] {
            assert_eq!(plain(kept.as_bytes()), kept.as_bytes());
        }
    }

    #[test]
    fn digest_is_read_from_the_digits_of_a_sha256() {
        let digits = format!("{:x}", Sha256::digest(b"x"));
        assert_eq!(Digest::of_hex(&digits), Some(Digest::of(b"x")));
        for bad in ["", "00", &digits[1..], &digits.replace('2', "g")] {
            assert_eq!(Digest::of_hex(bad), None, "{bad}");
        }
    }

    proptest! {
        // `plain` reads the body of a mail with carriage returns line by line, and the body of any other mail in one piece.
        // This compares the results of both.
        #[test]
        fn plain_form_is_the_same_with_and_without_carriage_returns(
            lines in prop::collection::vec("(\u{feff}?>{0,2}From x|a>From x|>|>>From|>?From ?: a|Status: R|Subject: b| folded||text)", 0..12),
            end in "\n{0,2}",
        ) {
            let mail = lines.join("\n") + &end;
            prop_assert_eq!(plain(mail.as_bytes()), plain(mail.replace('\n', "\r\n").as_bytes()));
        }

        #[test]
        fn plain_form_of_a_plain_form_is_itself(
            lines in prop::collection::vec("(>{0,2}From x|>?From ?: a|Status: R|Subject: b| folded||text)(\r\n|\n)", 0..12),
            is_old in any::<bool>(),
        ) {
            // If a mail contains line feeds, `lines` treats a bare carriage return as content, but `from_field` as the end of a
            // field. The plain form of such a header can have another plain form. Therefore all lines of a mail end with line
            // feeds here, or all with carriage returns.
            // The text begins with a field that `plain` keeps. If `plain` removed the first line, the next line could
            // end the header when `plain` is applied again, and the second result would differ. For the same reason an
            // empty line follows, which `plain` keeps.
            let mixed = format!("Subject: a\n{}\n\nend\n", lines.concat());
            let content = if is_old { mixed.replace("\r\n", "\n").replace('\n', "\r") } else { mixed };
            let once = plain(content.as_bytes());
            prop_assert_eq!(plain(&once), once);
        }
    }
}
