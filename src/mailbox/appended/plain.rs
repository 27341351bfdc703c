//! Finds an mbox that was appended to a single message (`cat old.mbox >> x.eml`), or to a mailbox that is not divided at `From `
//! lines (MMDF, Eudora).
//!
//! A separator alone is no sign: a patch of git begins with one, and a mail can contain such a patch, or quote an mbox. So all of
//! the following is required: a date as a program writes it, which is not the fixed date of git; after the separator, a header
//! with the fields of a mail that was delivered; and a place that is not inside a complete MIME part. In a mail with several parts,
//! this is the text after the last part, or the last part if the last boundary line is missing ([`AppendedText`]). In list mail and
//! the test suites of other programs (83,000 files), these signs are never wrong.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use memchr::{memchr2, memrchr, memrchr2};

use crate::engine::undeclared::AppendedText;
use crate::mailbox::forms::recorded::starts_mail;
use crate::mailbox::forms::separator::{field, has_date_of_program, is_asctime};
use crate::span::{front, rest_or_empty};

/// The start of a separator. A space follows, or a tab.
static FROM: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"From"));

/// Maximum length of a separator in bytes.
const LONGEST_LINE: usize = 512;

/// Maximum number of bytes after the separator that are searched for the header of a mail.
const LONGEST_HEADER: usize = 64 << 10;

/// Maximum number of header bytes that are read for each byte of a message. A header can contain further separators, each
/// followed by a header. Without this limit, a hostile message could make us read up to [`LONGEST_HEADER`] for each line.
const WORK: usize = 4;

/// Date that `git format-patch` writes into the separator of each patch.
const DATE_OF_GIT: &[u8] = b"Mon Sep 17 00:00:00 2001";

/// Separators that a search for an mbox finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MboxSearch {
    All,
    /// Only separators with a tab after `From`. No program divides the messages of an mbox there.
    WithTabs,
}

/// Returns the offset of an mbox that was appended to a message.
pub(super) fn mbox_in(message: &[u8], search: MboxSearch) -> Option<usize> {
    let mut places = None;
    let mut work = message.len().saturating_mul(WORK);
    FROM.find_iter(message).find(|&at| {
        let is_line = at > 0 && matches!(message.get(at - 1), Some(b'\n' | b'\r'));
        let text = rest_or_empty(message, at);
        let is_mbox = match text.get(4) {
            Some(b' ') => {
                search == MboxSearch::All && at > 0 && starts_mbox(text, is_line, &mut work)
            }
            Some(b'\t') => is_line && starts_mbox_with_tab(text, &mut work),
            _ => false,
        };
        is_mbox && is_outside_parts(message, at, &mut places)
    })
}

/// Returns the offset of a mail without a separator that was appended to a message (`cat 1.eml 2.eml`). It is only found after the
/// last part of a multipart, and after data in base64: a text can quote a whole mail, as the error reports of some mail servers do.
pub(super) fn mail_in(message: &[u8]) -> Option<usize> {
    let mut places = None;
    let mut work = message.len().saturating_mul(WORK);
    FROM.find_iter(message).find_map(|at| {
        let is_field = message.get(at + 4) == Some(&b':') && front(message, at).ends_with(b"\n");
        is_field.then_some(())?;
        let start = start_of_header(message, at, &mut work)?;
        let header = front(rest_or_empty(message, start), LONGEST_HEADER);
        let is_mail = start > 0 && starts_received_mail(header, &mut work);
        is_mail.then_some(())?;
        let places = places.get_or_insert_with(|| AppendedText::of(message));
        places.contains_mail(start).then_some(start)
    })
}

/// Returns the start of the header that contains the field at `at`: the line after an empty line, or after a boundary line. Returns
/// `None` if a line between them is no part of a header.
fn start_of_header(message: &[u8], at: usize, work: &mut usize) -> Option<usize> {
    let mut start = at;
    while at - start < LONGEST_HEADER {
        let before = front(message, start);
        let line_start = before
            .strip_suffix(b"\n")
            .map(|before| memrchr(b'\n', before).map_or(0, |end| end + 1))?;
        let line = rest_or_empty(before, line_start).trim_ascii_end();
        *work = work.checked_sub(before.len() - line_start)?;
        let is_folded = matches!(line, [b' ' | b'\t', ..]);
        let is_field = || field(line).is_some_and(|(name, _)| !name.is_empty());
        match line {
            [_, ..] if !line.starts_with(b"--") && (is_folded || is_field()) => start = line_start,
            _ => return Some(start),
        }
    }
    None
}

/// Returns whether bytes start with the header of a mail that a server received or numbered. If `work` is used up, returns false.
fn starts_received_mail(bytes: &[u8], work: &mut usize) -> bool {
    const OF_SERVERS: [&[u8]; 3] = [b"received", b"return-path", b"message-id"];
    let (mut fields, mut has_sender, mut is_received) = (0, false, false);
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let Some(left) = work.checked_sub(line.len()) else {
            return false;
        };
        *work = left;
        if fields > 0 && matches!(line, [b' ' | b'\t', ..]) {
            continue;
        }
        let Some((name, _)) = field(line).filter(|(name, _)| !name.is_empty()) else {
            return false;
        };
        fields += 1;
        has_sender |= name.eq_ignore_ascii_case(b"from");
        is_received |= OF_SERVERS.iter().any(|it| it.eq_ignore_ascii_case(name));
        if fields > 2 && has_sender && is_received {
            return true;
        }
    }
    false
}

/// Returns whether a separator at `at` has a tab after `From`.
pub(super) fn starts_with_tab(message: &[u8], at: usize) -> bool {
    rest_or_empty(message, at).starts_with(b"From\t")
}

/// Returns the start of the line with a separator, if nothing but `>` precedes the separator in the line. A program quoted such a
/// separator.
pub(super) fn start_of_quoted(message: &[u8], at: usize) -> Option<usize> {
    let quotes = front(message, at).iter().rev();
    let length = quotes.take_while(|&&byte| byte == b'>').count();
    let start = at - length;
    let before = front(message, start).last();
    (length > 0 && matches!(before, Some(b'\n' | b'\r'))).then_some(start)
}

/// Returns whether a position is not inside a MIME part that is complete. `places` caches the places of appended text.
fn is_outside_parts<'m>(
    message: &'m [u8],
    at: usize,
    places: &mut Option<AppendedText<'m>>,
) -> bool {
    let places = places.get_or_insert_with(|| AppendedText::of(message));
    places.contains(at) || is_after_delimiter(message, at)
}

/// Returns whether bytes start with a separator that has a tab after `From` and a date as a program writes it, and with the
/// header of a mail.
fn starts_mbox_with_tab(bytes: &[u8], work: &mut usize) -> bool {
    let Some((line, _)) = first_line(bytes) else {
        return false;
    };
    let rest = line.get(5..).unwrap_or_default();
    let with_space = [&b"From "[..], rest].concat();
    let separator = with_space.trim_ascii_end();
    has_date_of_program(separator)
        && !separator.ends_with(DATE_OF_GIT)
        && starts_mail(rest_or_empty(bytes, line.len()), work)
}

/// Returns the first line with its line ending, and the last byte of the line ending: LF, or a bare CR. Returns `None` if the line is
/// too long for a separator.
fn first_line(bytes: &[u8]) -> Option<(&[u8], u8)> {
    let start = front(bytes, LONGEST_LINE);
    let end = memchr2(b'\n', b'\r', start)?;
    let returns = rest_or_empty(start, end)
        .iter()
        .take_while(|&&byte| byte == b'\r')
        .count();
    match start.get(end + returns) {
        Some(b'\n') => Some((front(start, end + returns + 1), b'\n')),
        _ => Some((front(start, end + 1), b'\r')),
    }
}

/// Returns whether an mbox starts with the first byte of `text`, which belongs to no message. Empty lines can precede the mbox.
pub(super) fn mbox_at_start(text: &[u8]) -> Option<usize> {
    let at = text.len() - text.trim_ascii_start().len();
    let mut work = LONGEST_HEADER;
    starts_mbox(rest_or_empty(text, at), true, &mut work).then_some(at)
}

/// Returns whether bytes start with a separator and the header of a mail. The separator can follow a text without a final line
/// ending (`is_line` is false). Its date must then be that of asctime(3). `work` is the number of bytes of headers that may still
/// be read.
fn starts_mbox(bytes: &[u8], is_line: bool, work: &mut usize) -> bool {
    let Some((line, line_end)) = first_line(bytes) else {
        return false;
    };
    let separator = line.trim_ascii_end();
    let is_separator = if is_line {
        has_date_of_program(separator)
    } else {
        is_asctime(separator)
    };
    let header = front(rest_or_empty(bytes, line.len()), LONGEST_HEADER);
    is_separator
        && !separator.ends_with(DATE_OF_GIT)
        && starts_delivered_mail(header, line_end, work)
}

/// Returns whether bytes start with a header that contains the sender, and a field that programs add when they send a mail. All
/// lines before must belong to fields. `line_end` ends each line. If `work` is used up, the separator alone decides, so that no mail
/// is passed over.
fn starts_delivered_mail(bytes: &[u8], line_end: u8, work: &mut usize) -> bool {
    const OF_DELIVERY: [&[u8]; 3] = [b"date", b"received", b"message-id"];
    let (mut fields, mut has_sender, mut is_delivered) = (0, false, false);
    for line in bytes.split_inclusive(|&byte| byte == line_end) {
        let Some(left) = work.checked_sub(line.len()) else {
            return true;
        };
        *work = left;
        if line.starts_with(b">From ") || fields > 0 && matches!(line, [b' ' | b'\t', ..]) {
            continue;
        }
        let Some((name, _)) = field(line).filter(|(name, _)| !name.is_empty()) else {
            return false;
        };
        fields += 1;
        has_sender |= name.eq_ignore_ascii_case(b"from");
        is_delivered |= OF_DELIVERY.iter().any(|it| it.eq_ignore_ascii_case(name));
        if fields > 2 && has_sender && is_delivered {
            return true;
        }
    }
    false
}

/// Returns whether the line before `at` is the last boundary line of a multipart. Without a line ending after it, a MIME parser
/// does not read it as such.
fn is_after_delimiter(message: &[u8], at: usize) -> bool {
    let before = front(message, at);
    let start = memrchr2(b'\n', b'\r', before).map_or(0, |end| end + 1);
    let line = rest_or_empty(before, start);
    line.len() > 4 && line.starts_with(b"--") && line.ends_with(b"--")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str =
        "From: Ann <a@example.org>\nSubject: old\nDate: Mon, 6 Jan 2020 10:00:00 +0000\n\nold\n";
    const SEPARATOR: &str = "From a@example.org Mon Jan  6 10:00:00 2020\n";

    fn found(host: &str, mbox: &str) -> bool {
        let message = format!("{host}{mbox}");
        let at = mbox_in(message.as_bytes(), MboxSearch::All);
        assert!(at.is_none_or(|at| at == host.len()), "{message}");
        at.is_some()
    }

    #[test]
    fn appended_mbox_is_found_after_each_kind_of_message() {
        let multipart =
            "Subject: s\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\ntext\n--b--\n";
        for host in [
            "Subject: s\n",
            "Subject: s\n\ntext\n",
            "Subject: s\n\ntext\n\n",
            "Subject: s\n\ntext",
            "Subject: s\n\n",
            "Subject: s\nContent-Transfer-Encoding: base64\n\nAAAA\n",
            multipart,
            multipart.trim_end(),
            multipart.trim_end_matches("--b--\n"),
            "Subject: s\nContent-Type: message/rfc822\n\nSubject: t\n\ntext\n",
        ] {
            for header in [
                HEADER.to_owned(),
                HEADER.replace('\n', "\r\n"),
                HEADER.replace("Subject: old", "To: b\n\tc"),
            ] {
                assert!(found(host, &format!("{SEPARATOR}{header}")), "{host}");
            }
        }
        let zone = "From a@example.org Mon Jan  6 10:00:00 +0100 2020\n";
        assert!(found("Subject: s\n\ntext\n", &format!("{zone}{HEADER}")));
    }

    #[test]
    fn boundary_line_after_an_mbox_counts_unless_the_mbox_declares_it() {
        let open = "Subject: s\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\ntext\n";
        let header = "Subject: s\nContent-Type: multipart/mixed; boundary=\"b\"\n\n";
        let mbox = format!("{SEPARATOR}{HEADER}");
        assert!(found(open, &mbox));
        for rest in ["--b--\n", "--b\n\nmore\n", "--b\n\nmore\n--b--\n"] {
            assert!(!found(open, &format!("{mbox}{rest}")));
            let copy = format!("{mbox}{SEPARATOR}{header}{rest}");
            assert!(found(open, &copy));
            let first = format!("{SEPARATOR}From: a\nDate: b\n{header}{rest}");
            assert!(found(open, &first));
            let other = format!("{mbox}{SEPARATOR}{}{rest}", header.replace("\"b\"", "bb"));
            assert!(!found(open, &other));
        }
        let outer =
            format!("Content-Type: multipart/mixed; boundary=o\n\n--o\n{open}{mbox}--o--\n");
        assert_eq!(mbox_in(outer.as_bytes(), MboxSearch::All), None);
    }

    #[test]
    fn mail_that_contains_a_patch_or_an_mbox_has_no_appended_mbox() {
        let mbox = format!("{SEPARATOR}{HEADER}");
        let text = "Subject: s\n\ntext\n";
        let patch = mbox.replace(
            "a@example.org Mon Jan  6 10:00:00 2020",
            "1f2 Mon Sep 17 00:00:00 2001",
        );
        for other in [
            patch.as_str(),
            "From here on, walk\nFrom: x\nDate: y\nSubject: z\n\n",
            "From a@example.org Mon Jan  6 10:00:00 2020\nDear Ann,\nFrom: x\nDate: y\nSubject: z\n\n",
            "From a@example.org Mon Jan  6 10:00:00 2020\nTitle: x\nAuthor: y\nPages: z\n\n",
            "From a@example.org Mon Jan  6 10:00:00 2020\nFrom: x\n\nSubject: y\nDate: z\n\n",
            "From a@example.org Mon Jan  6 10:00:00 2020",
        ] {
            assert!(!found(text, other), "{other}");
        }
        let quoted: String = mbox.lines().map(|line| format!("> {line}\n")).collect();
        let indented: String = mbox.lines().map(|line| format!("    {line}\n")).collect();
        for other in [quoted, indented] {
            assert_eq!(
                mbox_in(format!("{text}{other}").as_bytes(), MboxSearch::All),
                None
            );
        }
        for part in [
            "Content-Type: text/plain\n",
            "Content-Disposition: attachment\n",
            "Content-Type: application/mbox\n",
            "Content-Type: message/rfc822\n",
        ] {
            for line in ["", "the mbox:\n"] {
                let message = format!(
                    "Subject: s\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\ntext\n--b\n{part}\n{line}{mbox}--b--\n"
                );
                assert_eq!(
                    mbox_in(message.as_bytes(), MboxSearch::All),
                    None,
                    "{message}"
                );
            }
        }
        let attached = format!("Subject: s\nContent-Type: text/plain; name=old.mbox\n\n{mbox}");
        assert_eq!(mbox_in(attached.as_bytes(), MboxSearch::All), None);
        assert_eq!(mbox_in(mbox.as_bytes(), MboxSearch::All), None);
        assert_eq!(mbox_at_start(format!("\n{mbox}").as_bytes()), Some(1));
        assert_eq!(mbox_at_start(patch.as_bytes()), None);
    }

    #[test]
    fn many_separators_in_one_header_do_not_each_cost_a_whole_header() {
        let line = "X: From a@b Mon Jan  6 10:00:00 2020\n";
        let few = format!("Subject: s\n\n{}", line.repeat(8));
        assert_eq!(mbox_in(few.as_bytes(), MboxSearch::All), None);
        // Without the limit, these separators need 700 MB of headers, and none of them counts.
        let many = format!("Subject: s\n\n{}", line.repeat(20_000));
        assert!(mbox_in(many.as_bytes(), MboxSearch::All).is_some());
    }
}
