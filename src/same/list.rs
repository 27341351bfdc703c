//! What a mailing list adds to a mail: a tag in the subject, an address for replies, and a footer.
//!
//! Anyone can write such things. They count as a list's only if the list is a recipient of the mail: its address is in To or
//! Cc, and the same address is in List-Id or List-Post of the same copy. The recipients are compared, so that a forged copy
//! cannot name a list of its own.

use std::collections::BTreeSet;

use super::fields::Digests;
use super::plain::hash;
use super::spelling::{Mailbox, entries, text};
use crate::mime::header::Fields;
use crate::mime::header::unfold;

/// The lists that sent a copy, which are also among its recipients.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Lists {
    lists: Vec<List>,
    /// Links in the List fields.
    links: BTreeSet<String>,
    /// Whether the mail has only one recipient.
    is_alone: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct List {
    /// The name is the part of the address before `@`. All is in lower case.
    name: String,
    host: String,
}

impl List {
    fn address(&self) -> String {
        format!("{}@{}", self.name, self.host)
    }

    /// Whether a mailbox has no name, or that of the list.
    fn is_named(&self, mailbox: &Mailbox) -> bool {
        mailbox.name.is_empty() || mailbox.name.eq_ignore_ascii_case(self.name.as_bytes())
    }
}

const LONGEST_NAME: usize = 64;

/// Lists of one mail that are told from other recipients.
const MOST_LISTS: usize = 16;

impl Lists {
    /// `fields` are those of the message.
    pub(super) fn of(original: &[u8], fields: &Fields) -> Self {
        let (mut known, mut links) = (BTreeSet::new(), BTreeSet::new());
        let mut recipients: Vec<Mailbox> = Vec::new();
        for field in fields.iter(original) {
            let name = field.name.of(original).trim_ascii().to_ascii_lowercase();
            let value = field.value.of(original);
            match name.as_slice() {
                b"to" | b"cc" => {
                    let entries = entries(value);
                    recipients.extend(entries.iter().filter_map(|entry| entry.mailbox()));
                }
                b"list-id" | b"list-post" => known.extend(bracketed(value)),
                _ => {}
            }
            if name.starts_with(b"list-") {
                links.extend(bracketed(value));
            }
        }
        let is_alone = recipients.len() == 1;
        let mut lists: Vec<List> = Vec::new();
        for recipient in recipients {
            if lists.len() >= MOST_LISTS {
                break;
            }
            let address = recipient.address();
            let Some((name, host)) = address.rsplit_once('@') else {
                continue;
            };
            let is_of_name =
                |symbol: char| symbol.is_ascii_alphanumeric() || "._+-".contains(symbol);
            let list = List {
                name: name.to_owned(),
                host: host.to_owned(),
            };
            if name.len() <= LONGEST_NAME
                && name.chars().all(is_of_name)
                && host.contains('.')
                && (known.contains(&format!("{name}.{host}"))
                    || known.contains(&format!("mailto:{address}")))
                && !lists.contains(&list)
            {
                lists.push(list);
            }
        }
        Self {
            lists,
            links,
            is_alone,
        }
    }

    /// Whether a Reply-To leads to the list that is the only recipient. If there are others, a forger can call one of them a
    /// list, and lead answers there.
    pub(super) fn have_reply_to(&self, mailbox: &Mailbox) -> bool {
        let address = mailbox.address();
        self.is_alone
            && self
                .lists
                .iter()
                .any(|list| list.address() == address && list.is_named(mailbox))
    }

    /// Whether a Sender is the program or the owner of one of the lists (`dev-bounces@HOST`).
    pub(super) fn have_sender(&self, mailbox: &Mailbox) -> bool {
        let address = mailbox.address();
        let Some((local, host)) = address.rsplit_once('@') else {
            return false;
        };
        self.lists.iter().any(|list| {
            let name = list.name.as_str();
            let role = local
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix('-'))
                .or_else(|| local.strip_suffix(name)?.strip_suffix('-'));
            let is_role =
                role.is_some_and(|it| matches!(it, "bounces" | "admin" | "owner" | "request"));
            host == list.host && is_role && list.is_named(mailbox)
        })
    }

    /// Returns a subject without the tags of the lists (`[list] `), also after `Re: `.
    pub(super) fn untagged(&self, subject: &[u8]) -> Vec<u8> {
        const MOST_TAGS: usize = 8;
        let text = text(subject);
        // A subject with bytes that are no characters is compared as it is.
        let Ok(text) = String::from_utf8(text.clone()) else {
            return text;
        };
        let mut rest = text.as_str();
        let mut answers = String::new();
        for _ in 0..MOST_TAGS {
            rest = rest.trim_start();
            let tag = rest.strip_prefix('[').and_then(|it| it.split_once(']'));
            if let Some((tag, behind)) = tag
                && self
                    .lists
                    .iter()
                    .any(|list| list.name.eq_ignore_ascii_case(tag))
            {
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
        (answers + rest.trim_start()).into_bytes()
    }

    /// Finds the footer of a list at the end of a text, and returns where it starts, and whether the hosts of all its links
    /// are those of the list.
    ///
    /// A footer is a line of underscores, the name of the list with the words "mailing list", and then lines that are only the
    /// address of the list, a link to it, or the address for unsubscribing. A footer with any other word is text.
    fn footer(&self, text: &[u8]) -> Option<(usize, bool)> {
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
                let of = |list| Some((from + line_start, self.is_footer_of(list, &lines)?));
                return self.lists.iter().find_map(of);
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

    /// Returns whether the hosts of all links are those of the list.
    fn is_footer_of(&self, list: &List, lines: &[&[u8]]) -> Option<bool> {
        let text = |line: &&[u8]| Some(str::from_utf8(line).ok()?.to_lowercase());
        let lines = lines.iter().map(text).collect::<Option<Vec<String>>>()?;
        let (first, others) = lines.split_first()?;
        let (title, behind) = first.split_once(" mailing list")?;
        let behind = behind.trim_start_matches([' ', '-']).trim();
        let is_title = title == list.name || title == list.address();
        if !is_title || !behind.is_empty() && !is_address_of(behind, list) {
            return None;
        }
        let mut is_proved = true;
        for line in others {
            let leave = line.strip_prefix("to unsubscribe send an email to ");
            if is_address_of(line, list) || leave.is_some_and(|it| is_address_of(it, list)) {
                continue;
            }
            let link = line
                .strip_prefix("https://")
                .or_else(|| line.strip_prefix("http://"))?;
            let (host, path) = link.split_once('/')?;
            let is_of_host = host == list.host;
            if !is_path_of(path, list) || !is_of_host && !self.links.contains(line) {
                return None;
            }
            is_proved &= is_of_host;
        }
        Some(is_proved)
    }
}

/// Whether a path is one that Mailman has for a list. Some hosts write their own name behind that of the list.
fn is_path_of(path: &str, list: &List) -> bool {
    const BEFORE: [&str; 7] = [
        "",
        "listinfo/",
        "mailman/listinfo/",
        "cgi-bin/mailman/listinfo/",
        "mailman/options/",
        "mailman3/lists/",
        "postorius/lists/",
    ];
    let path = path.strip_suffix('/').unwrap_or(path);
    let ends = ["", "_", "."].map(|between| match between {
        "" => list.name.clone(),
        between => format!("{}{between}{}", list.name, list.host),
    });
    let mut starts = BEFORE.iter().filter_map(|before| path.strip_prefix(before));
    starts.any(|name| ends.iter().any(|end| end == name))
}

/// Whether a line is the address of the list, or one of the addresses for commands to it. Archives hide the `@`.
fn is_address_of(line: &str, list: &List) -> bool {
    let line = line.replacen(" at ", "@", 1);
    let line = line.trim_matches(['<', '>']);
    let Some((local, host)) = line.split_once('@') else {
        return false;
    };
    local.strip_suffix("-leave").unwrap_or(local) == list.name && host == list.host
}

/// Returns the texts between `<` and `>` in a List field, in lower case.
fn bracketed(value: &[u8]) -> Vec<String> {
    let value = String::from_utf8_lossy(&unfold(value)).to_lowercase();
    let pieces = value.split('<').skip(1);
    let pieces = pieces.filter_map(|piece| Some(piece.split_once('>')?.0.trim().to_owned()));
    pieces.collect()
}

/// A mail that went over several lists can have a footer of each.
const MOST_FOOTERS: usize = 4;

/// Lines of a footer after the underscores.
const MOST_LINES: usize = 5;

/// Fewer underscores than this are a line that a person wrote.
const UNDERSCORES: usize = 20;

const LONGEST_FOOTER: usize = 2000;

/// The text of a part, as it is compared.
pub(super) struct PlainText {
    /// With line feeds, and nothing after the last word.
    pub(super) whole: Vec<u8>,
    /// Length of the text without the footers of lists.
    pub(super) length: usize,
    pub(super) footers: Footers,
}

/// The footers that were found in a copy, as digests.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Footers {
    /// With links only to the host of the list.
    pub(super) proved: Vec<u64>,
    /// With links to hosts that only a List field names.
    pub(super) claimed: Vec<u64>,
}

impl Footers {
    pub(super) fn count(&self) -> usize {
        self.proved.len() + self.claimed.len()
    }

    pub(super) fn extend(&mut self, others: &Self) {
        self.proved.extend(&others.proved);
        self.claimed.extend(&others.claimed);
    }

    /// Whether two copies of one mail can have these footers. Of two different ones whose links are not proved, nobody knows
    /// which one is the list's.
    pub(super) fn agree_with(&self, others: &Self) -> bool {
        let set = |digests: &[u64]| digests.iter().copied().collect::<Digests>();
        self.count() == 0 || others.count() == 0 || set(&self.claimed) == set(&others.claimed)
    }
}

/// The lines of a text with line feeds. The plain form of a mail has them, and no quoted `From ` lines; an encoded text is as
/// its author encoded it.
fn with_line_feeds(content: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(content.len());
    for line in content.split(|byte| *byte == b'\n') {
        text.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
        text.push(b'\n');
    }
    text
}

impl PlainText {
    /// The text of a part that is no plain text: a page or an attached file. Only its line ends do not count.
    pub(super) fn of_file(content: &[u8]) -> Self {
        let mut whole = with_line_feeds(content);
        let end = whole.iter().rposition(|byte| *byte != b'\n');
        whole.truncate(end.map_or(0, |end| end + 1));
        Self {
            length: whole.len(),
            whole,
            footers: Footers::default(),
        }
    }

    pub(super) fn of(content: &[u8], lists: &Lists) -> Self {
        let mut whole = with_line_feeds(content);
        whole.truncate(whole.trim_ascii_end().len());
        let mut length = whole.len();
        let mut footers = Footers::default();
        while footers.count() < MOST_FOOTERS
            && let Some(text) = whole.get(..length)
            && let Some((start, is_proved)) = lists.footer(text)
        {
            let digest = hash(text.get(start..).unwrap_or_default());
            match is_proved {
                true => footers.proved.push(digest),
                false => footers.claimed.push(digest),
            }
            length = text.get(..start).unwrap_or_default().trim_ascii_end().len();
        }
        Self {
            whole,
            length,
            footers,
        }
    }

    /// The text without the footers of lists.
    pub(super) fn own(&self) -> &[u8] {
        self.whole.get(..self.length).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mime::Header;

    fn lists(header: &str) -> Lists {
        let header = header.as_bytes();
        Lists::of(header, &Header::of_message(header, 1 << 20).fields)
    }

    #[test]
    fn list_is_known_if_it_is_a_recipient() {
        for (header, is_known) in [
            (
                "To: dev@a.example\nList-Id: Developers <dev.a.example>\n\n",
                true,
            ),
            (
                "Cc: x@b.example, \"Dev\" <Dev@a.example>\nList-Post: <mailto:dev@a.example>\n\n",
                true,
            ),
            ("To: dev@a.example\n\n", false),
            (
                "To: x@a.example\nList-Id: <dev.a.example>\nList-Post: <mailto:dev@a.example>\n\n",
                false,
            ),
            (
                "To: \"dev@a.example\" <x@b.example>\nList-Id: <dev.a.example>\n\n",
                false,
            ),
        ] {
            assert_eq!(!lists(header).lists.is_empty(), is_known, "{header}");
        }
    }

    const DEV: &str = "To: dev@a.example\nList-Id: <dev.a.example>\n\
        List-Subscribe: <https://b.example/listinfo/dev>, <mailto:dev-request@a.example>\n\n";

    #[test]
    fn footer_of_a_list_is_known_by_all_its_lines() {
        let line = "_".repeat(47);
        let lists = lists(DEV);
        let found = |footer: &str| {
            let text = format!("hello\n\n{line}\n{footer}\n");
            let plain = PlainText::of(text.as_bytes(), &lists);
            let [proved, claimed] = [&plain.footers.proved, &plain.footers.claimed].map(Vec::len);
            assert_eq!(plain.own() == b"hello", proved + claimed == 1, "{footer}");
            (proved, claimed)
        };
        for footer in [
            "dev mailing list\ndev@a.example\nhttps://a.example/mailman/listinfo/dev",
            "Dev mailing list\ndev at a.example\nhttp://a.example/mailman/listinfo/dev_a.example",
            "dev@a.example mailing list",
            "Dev mailing list -- dev@a.example\nTo unsubscribe send an email to dev-leave@a.example",
        ] {
            assert_eq!(found(footer), (1, 0), "{footer}");
        }
        assert_eq!(
            found("dev mailing list\nhttps://b.example/listinfo/dev"),
            (0, 1)
        );
        for text in [
            "dev mailing list\nPay to account 7.",
            "dev mailing list\nhttps://evil.example/dev",
            "dev mailing list\nhttps://a.example/pay?to=dev",
            "dev mailing list\nhttps://a.example/pay-1000-EUR/dev",
            "dev mailing list\nhttps://a.example/?the+code+is+4711/dev",
            "dev mailing list\nother@a.example",
            "dev@ Please pay before noon. mailing list",
            "Please-pay-to-account-7 mailing list",
            "My thoughts about the dev mailing list",
            "dev mailing list pay",
            "",
        ] {
            assert_eq!(found(text), (0, 0), "{text}");
        }
        let text = format!("hello\n{line}\ndev mailing list\n");
        let unknown = PlainText::of(text.as_bytes(), &Lists::default());
        assert_eq!(unknown.footers, Footers::default());
    }

    #[test]
    fn subject_is_compared_without_the_tags_of_its_lists() {
        let lists = lists(DEV);
        for subject in [
            "[dev] Re: a b",
            "Re: [DEV] a\n b",
            "RE: [dev][dev] a b",
            "re: =?utf-8?q?a_b?=",
        ] {
            assert_eq!(lists.untagged(subject.as_bytes()), b"re: a b", "{subject}");
        }
        for subject in [
            "[URGENT] a",
            "[part 1 of 2] a",
            "a [dev] c",
            "a b c [",
            "Re a",
        ] {
            assert_eq!(lists.untagged(subject.as_bytes()), subject.as_bytes());
        }
    }

    #[test]
    fn sender_and_reply_to_are_those_of_a_list_without_another_name() {
        let one = |value: &str| entries(value.as_bytes())[0].mailbox().unwrap();
        let dev = lists(DEV);
        for address in ["dev-bounces@a.example", "Dev <owner-dev@a.example>"] {
            assert!(dev.have_sender(&one(address)), "{address}");
        }
        for address in [
            "dev-bounces@b.example",
            "x-bounces@a.example",
            "dev@a.example",
            "The boss <dev-bounces@a.example>",
        ] {
            assert!(!dev.have_sender(&one(address)), "{address}");
        }
        assert!(dev.have_reply_to(&one("dev@a.example")));
        assert!(!dev.have_reply_to(&one("Ann <dev@a.example>")));
        let others = lists(&DEV.replace("To: dev", "Cc: x@b.example\nTo: dev"));
        assert!(!others.have_reply_to(&one("dev@a.example")));
    }
}
