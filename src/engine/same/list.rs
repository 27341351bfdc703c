//! Recognizes the additions of a mailing list to a mail: a tag in the subject, an address for replies, and a footer.
//!
//! An attacker could write such additions, too. They are ignored in the comparison only if the list is a recipient of the mail:
//! its address must be in To or Cc, and also in List-Id or List-Post of the same copy. The recipients are compared, so a forged
//! copy cannot name a list of the attacker.

use std::collections::BTreeSet;

use super::spelling::{Mailbox, entries, text};
use crate::mime::header::Fields;
use crate::mime::header::unfold;

/// The mailing lists that sent a copy and are also among its recipients.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Lists {
    lists: Vec<MailList>,
    /// Links in the List fields.
    links: BTreeSet<String>,
    /// Whether the mail has only one recipient. The Reply-To of a list is ignored only in such a mail.
    is_alone: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct MailList {
    /// Part of the list's address before `@`, in lower case. `host` is the part after it, in lower case, too.
    name: String,
    host: String,
}

impl MailList {
    fn address(&self) -> String {
        format!("{}@{}", self.name, self.host)
    }

    /// Returns whether the display name of a mailbox is empty or is the name of the list.
    fn is_named(&self, mailbox: &Mailbox) -> bool {
        mailbox.name.is_empty() || mailbox.name.eq_ignore_ascii_case(self.name.as_bytes())
    }
}

const LONGEST_NAME: usize = 64;

/// Maximum number of mailing lists that are recognized in one mail.
const MOST_LISTS: usize = 16;

impl Lists {
    /// Finds the mailing lists in the header of a message.
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
        let mut lists: Vec<MailList> = Vec::new();
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
            let list = MailList {
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

    /// Returns whether the address in a Reply-To field is the address of the list. Returns false if To and Cc contain
    /// more than one recipient: an attacker could add List fields that declare one of several recipients to be a list, and
    /// so direct the replies to this recipient.
    pub(super) fn have_reply_to(&self, mailbox: &Mailbox) -> bool {
        let address = mailbox.address();
        self.is_alone
            && self
                .lists
                .iter()
                .any(|list| list.address() == address && list.is_named(mailbox))
    }

    /// Returns whether the address in a Sender field belongs to the software or the owner of one of the lists, such as
    /// `dev-bounces@HOST`.
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

    /// Returns a subject without the tags of the lists (`[list] `), even after `Re: `.
    pub(super) fn untagged(&self, subject: &[u8]) -> Vec<u8> {
        const MOST_TAGS: usize = 8;
        let text = text(subject);
        // A subject that is not valid UTF-8 is compared unchanged.
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

    /// Finds the footer of a list at the end of a text. Returns its start, and whether all its links lead to the host of the
    /// list.
    ///
    /// A footer is a line of underscores, the name of the list with the words "mailing list", and lines that consist only of
    /// the address of the list, a link to it, or the address for unsubscribing. If any other word occurs, the lines are text of
    /// the mail.
    pub(super) fn footer(&self, text: &[u8]) -> Option<(usize, bool)> {
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

    /// Returns whether all links in the footer lead to the host of the list, or `None` if the lines are not a footer.
    fn is_footer_of(&self, list: &MailList, lines: &[&[u8]]) -> Option<bool> {
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

/// Returns whether a path is that of a list in Mailman. Some installations append the host name to that of the list.
fn is_path_of(path: &str, list: &MailList) -> bool {
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

/// Returns whether a line is the address of the list, or its address for unsubscribing. An archive may hide the `@`.
fn is_address_of(line: &str, list: &MailList) -> bool {
    let address = line.replacen(" at ", "@", 1);
    let Some((local, host)) = address.trim_matches(['<', '>']).split_once('@') else {
        return false;
    };
    local.strip_suffix("-leave").unwrap_or(local) == list.name && host == list.host
}

/// Returns the texts between `<` and `>` in a List field, in lower case.
fn bracketed(value: &[u8]) -> Vec<String> {
    let value = String::from_utf8_lossy(&unfold(value)).to_lowercase();
    value
        .split('<')
        .skip(1)
        .filter_map(|piece| Some(piece.split_once('>')?.0.trim().to_owned()))
        .collect()
}

/// Maximum number of lines in a footer after the line of underscores.
const MOST_LINES: usize = 5;

/// Minimum number of underscores in the first line of a footer. Shorter lines of underscores occur in text that people write.
const UNDERSCORES: usize = 20;

const LONGEST_FOOTER: usize = 2000;

#[cfg(test)]
mod tests {
    use super::super::plain_text::{Footers, PlainText};
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
