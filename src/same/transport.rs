//! The differences between copies of one mail that the way of the mail explains: fields that servers and mail programs add,
//! prefixes and footers of mailing lists, and hidden addresses.
//!
//! The table of docs/merge.md lists them. Each row has a test in `tests.rs`.

use std::borrow::Cow;

use crate::mime::date;
use crate::mime::encoded_words::decoded_words;
use crate::mime::header::unfold;

/// The role of a header field for the question whether two mails are copies of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// Servers, lists and mail programs add the field or change it.
    Transport,
    /// Describes the content of the mail, which is compared instead.
    Content,
    /// Only the copy of the sender has the field.
    Sender,
    /// The author wrote the field.
    Author,
}

/// Names in lower case. A name that ends with a hyphen stands for all names that start with it.
///
/// Sender is here because Mailman replaces it.
const TRANSPORT: [&str; 42] = [
    "apparently-to",
    "approved-by",
    "arc-",
    "archived-at",
    "auto-submitted",
    "authentication-results",
    "authentication-results-original",
    "autoforwarded",
    "bounces-to",
    "cancel-lock",
    "content-length",
    "delivered-to",
    "delivery-date",
    "dkim-filter",
    "dkim-signature",
    "domainkey-signature",
    "envelope-to",
    "errors-to",
    "injection-date",
    "injection-info",
    "lines",
    "list-",
    "mailing-list",
    "message-id",
    "nntp-posting-date",
    "nntp-posting-host",
    "old-return-path",
    "original-recipient",
    "path",
    "precedence",
    "received",
    "received-spf",
    "require-recipient-valid-since",
    "resent-",
    "return-path",
    "sender",
    "spamdiagnosticmetadata",
    "spamdiagnosticoutput",
    "status",
    "x-",
    "x400-",
    "xref",
];

/// The fields of the one copy that the sender keeps.
const SENDER: [&str; 2] = ["bcc", "fcc"];

/// `name` is in lower case.
pub(super) fn role(name: &[u8]) -> Role {
    let is = |known: &str| match known.ends_with('-') {
        true => name.starts_with(known.as_bytes()),
        false => name == known.as_bytes(),
    };
    if name.starts_with(b"content-") && name != b"content-length" || name == b"mime-version" {
        Role::Content
    } else if TRANSPORT.iter().any(|known| is(known)) {
        Role::Transport
    } else if SENDER.iter().any(|known| is(known)) {
        Role::Sender
    } else {
        Role::Author
    }
}

/// Fields that Pipermail keeps in the monthly text of a list, and no others.
pub(super) fn is_kept_by_pipermail(name: &[u8]) -> bool {
    matches!(
        name,
        b"from" | b"date" | b"subject" | b"in-reply-to" | b"references" | b"message-id"
    )
}

/// Returns the value of a field as people read it: unfolded, with encoded words decoded, with single blanks and without
/// quotation marks. Programs write these in different ways.
pub(super) fn field_text(value: &[u8]) -> String {
    let text = decoded_words(&unfold(value));
    let mut words = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.extend(word.chars().filter(|symbol| *symbol != '"'));
    }
    words
}

/// Returns a date in seconds, so that its zone and its comments do not count. A date that cannot be read is compared as text.
pub(super) fn date_text(value: &[u8]) -> String {
    match date::seconds(value) {
        Some(seconds) => seconds.to_string(),
        None => field_text(value),
    }
}

/// Returns a subject without the tags that lists put before it: `[list] `, also after `Re: `.
pub(super) fn subject_text(value: &[u8]) -> String {
    const MOST_TAGS: usize = 8;
    let text = field_text(value);
    let mut rest = text.as_str();
    let mut answers = String::new();
    for _ in 0..MOST_TAGS {
        rest = rest.trim_start();
        let tag = rest.strip_prefix('[').and_then(|it| it.split_once(']'));
        if let Some((_, behind)) = tag {
            rest = behind;
        } else if let Some((answer, behind)) = rest.split_at_checked("re:".len())
            && answer.eq_ignore_ascii_case("re:")
        {
            answers.push_str("re: ");
            rest = behind;
        } else {
            break;
        }
    }
    answers + rest.trim_start()
}

/// Returns the addresses in a field in lower case, each once and sorted, also those that an archive of a list hides
/// (`a at example.org`).
pub(super) fn addresses(value: &[u8]) -> Vec<String> {
    let text = field_text(value);
    let text = String::from_utf8_lossy(&with_addresses_shown(text.as_bytes())).into_owned();
    let is_edge = |symbol: char| {
        symbol.is_whitespace() || matches!(symbol, '<' | '>' | '(' | ')' | ',' | ';' | ':')
    };
    let words = text.split(is_edge).filter(|word| word.contains('@'));
    let mut found: Vec<String> = words.map(str::to_lowercase).collect();
    found.sort();
    found.dedup();
    found
}

/// Writes `a at example.org` as `a@example.org`, as archives of lists show addresses.
pub(super) fn with_addresses_shown(text: &[u8]) -> Cow<'_, [u8]> {
    const AT: &[u8] = b" at ";
    let mut shown = Vec::new();
    let mut copied = 0;
    for at in memchr::memmem::find_iter(text, AT) {
        let before = text.get(..at).and_then(<[u8]>::last);
        let behind = text.get(at + AT.len()..).unwrap_or_default();
        let end = behind.iter().position(u8::is_ascii_whitespace);
        let host = behind
            .get(..end.unwrap_or(behind.len()))
            .unwrap_or_default();
        let is_of_name = before.is_some_and(|byte| !byte.is_ascii_whitespace());
        let last = host.iter().rposition(u8::is_ascii_alphanumeric);
        let host = host.get(..last.unwrap_or_default()).unwrap_or_default();
        if is_of_name && host.contains(&b'.') && at >= copied {
            shown.extend_from_slice(text.get(copied..at).unwrap_or_default());
            shown.push(b'@');
            copied = at + AT.len();
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    shown.extend_from_slice(text.get(copied..).unwrap_or_default());
    Cow::Owned(shown)
}

/// The text of a part, as it is compared.
pub(super) struct PlainText {
    /// With line feeds, unquoted `From ` lines, and nothing after the last word.
    pub(super) text: Vec<u8>,
    /// Number of footers of lists that were removed.
    pub(super) footers: u32,
}

impl PlainText {
    pub(super) fn of(content: &[u8]) -> Self {
        let mut text = Vec::with_capacity(content.len());
        let mut rest = content;
        while !rest.is_empty() {
            let end = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
            let (line, behind) = rest.split_at(end);
            let ending = match behind {
                [b'\r', b'\n', ..] => 2,
                [_, ..] => 1,
                [] => 0,
            };
            rest = behind.get(ending..).unwrap_or_default();
            let quotes = line.iter().take_while(|byte| **byte == b'>').count();
            let unquoted = line.get(quotes..).unwrap_or_default();
            text.extend_from_slice(match unquoted.starts_with(b"From ") {
                true => unquoted,
                false => line,
            });
            text.push(b'\n');
        }
        let mut plain = Self { text, footers: 0 };
        plain.trim();
        while plain.footers < MOST_FOOTERS
            && let Some(start) = footer(&plain.text)
        {
            plain.text.truncate(start);
            plain.trim();
            plain.footers += 1;
        }
        plain
    }

    fn trim(&mut self) {
        let end = self.text.trim_ascii_end().len();
        self.text.truncate(end);
    }
}

/// A mail that went over several lists can have a footer of each.
const MOST_FOOTERS: u32 = 4;

/// Lines of a footer after the underscores.
const MOST_LINES: usize = 5;

/// Fewer underscores than this are a line that a person wrote.
const UNDERSCORES: usize = 20;

const LONGEST_FOOTER: usize = 2000;

/// Finds the footer of a list at the end of a text, and returns where it starts.
///
/// A footer is a line of underscores, the name of the list with the words "mailing list", and then lines that are only the
/// address of the list, a link that contains its name, or the address for unsubscribing. A footer with any other word is
/// text: a forged mail could contain it.
fn footer(text: &[u8]) -> Option<usize> {
    let from = text.len().saturating_sub(LONGEST_FOOTER);
    let near = text.get(from..)?;
    let mut start = near.len();
    let mut lines: Vec<&[u8]> = Vec::new();
    loop {
        let before = near.get(..start)?;
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        let line = before.get(line_start..)?.trim_ascii();
        if line.len() >= UNDERSCORES && line.iter().all(|byte| *byte == b'_') {
            lines.reverse();
            return is_of_list(&lines).then_some(from + line_start);
        }
        if !line.is_empty() {
            lines.push(line);
        }
        if lines.len() > MOST_LINES || line_start == 0 {
            return None;
        }
        start = line_start - 1;
    }
}

fn is_of_list(lines: &[&[u8]]) -> bool {
    let text = |line: &&[u8]| Some(str::from_utf8(line).ok()?.to_lowercase());
    let lines: Option<Vec<String>> = lines.iter().map(text).collect();
    let lines = lines.unwrap_or_default();
    let Some((first, others)) = lines.split_first() else {
        return false;
    };
    let Some((title, behind)) = first.split_once(" mailing list") else {
        return false;
    };
    // The name is a word, or the address of the list.
    let name = title.split('@').next().unwrap_or_default();
    let is_word = !name.is_empty() && !name.contains(char::is_whitespace);
    let is_address = |word: &str| is_address_of(word, name);
    let behind = behind.trim_start_matches([' ', '-']).trim();
    let is_line = |line: &String| {
        let link = line.starts_with("http://") || line.starts_with("https://");
        let leave = line.strip_prefix("to unsubscribe send an email to ");
        is_address(line)
            || leave.is_some_and(is_address)
            || link && !line.contains(char::is_whitespace) && line.contains(name)
    };
    is_word && (behind.is_empty() || is_address(behind)) && others.iter().all(is_line)
}

/// Whether a line is the address of the list, or one of the addresses for commands to it.
fn is_address_of(line: &str, name: &str) -> bool {
    let line = line.replacen(" at ", "@", 1);
    let line = line.trim_matches(['<', '>']);
    let Some((local, host)) = line.split_once('@') else {
        return false;
    };
    let local = local.strip_suffix("-leave").unwrap_or(local);
    local == name && host.contains('.') && !host.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn footer_of_a_list_is_known_by_all_its_lines() {
        let line = "_".repeat(47);
        let footers = [
            "iommu mailing list\niommu@lists.example.org\nhttps://lists.example.org/mailman/listinfo/iommu",
            "USRP-users mailing list\nUSRP-users at lists.example.com\nhttp://lists.example.com/mailman/listinfo/usrp-users_lists.example.com",
            "R-devel@example.org mailing list\nhttps://stat.example.ch/mailman/listinfo/r-devel",
            "Dev mailing list -- dev@example.org\nTo unsubscribe send an email to dev-leave@example.org",
        ];
        for footer in footers {
            let text = format!("hello\n\n{line}\n{footer}\n");
            let plain = PlainText::of(text.as_bytes());
            assert_eq!(
                (plain.text.as_slice(), plain.footers),
                (&b"hello"[..], 1),
                "{footer}"
            );
        }
        let both = format!(
            "hello\r\n{line}\r\n{}\r\n{line}\r\n{}\r\n",
            footers[0], footers[2]
        );
        assert_eq!(PlainText::of(both.as_bytes()).footers, 2);
        for text in [
            "iommu mailing list\nPay to account 7.",
            "iommu mailing list\nhttps://evil.example/",
            "iommu mailing list\nother@lists.example.org",
            "My thoughts about the iommu mailing list",
            "",
        ] {
            let text = format!("hello\n\n{line}\n{text}\n");
            assert_eq!(PlainText::of(text.as_bytes()).footers, 0, "{text}");
        }
    }

    #[test]
    fn subject_is_compared_without_the_tags_of_lists() {
        let same = [
            "[dev] Re: a b",
            "Re: [dev] a\n b",
            "RE: [a][b] a b",
            "re: =?utf-8?q?a_b?=",
        ];
        for subject in same {
            assert_eq!(subject_text(subject.as_bytes()), "re: a b", "{subject}");
        }
        for subject in ["a [b] c", "a b c [", "Re a"] {
            assert_eq!(subject_text(subject.as_bytes()), subject);
        }
    }

    #[test]
    fn hidden_addresses_are_shown_and_other_words_stay() {
        for (hidden, shown) in [
            (
                "mail a.b at example.org or c at d.example.",
                "mail a.b@example.org or c@d.example.",
            ),
            ("meet at noon. Fine", "meet at noon. Fine"),
            (" at example.org", " at example.org"),
        ] {
            let found = with_addresses_shown(hidden.as_bytes());
            assert_eq!(String::from_utf8_lossy(&found), shown);
        }
        let from = "ann at Example.ORG (Ann B)";
        assert_eq!(addresses(from.as_bytes()), ["ann@example.org"]);
        assert_eq!(
            addresses(b"\"Ann B\" <ann@example.org>"),
            ["ann@example.org"]
        );
    }
}
