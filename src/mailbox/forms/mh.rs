//! MH folders: directories with one file per message, named by the message number (mh-profile(5), mh-sequence(5)).
//! `maildir` reads and changes them.
//!
//! A directory is an MH folder if it contains one of the files that mail programs keep next to the messages. Only files
//! with a plain number as their name are messages: names such as `,12` and `#12` mark removed messages.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::mailbox::compressed::Method;
use crate::mailbox::forms::flags::{Flags, MessageFlags};
use crate::mailbox::forms::keywords::{FORWARDED, Keywords, of_label};
use crate::span::rest_or_empty;

/// File in which nmh and Python store flags by message number.
pub(crate) const SEQUENCES: &str = ".mh_sequences";

/// Marker files of nmh, exmh, Mew, Sylpheed, Claws Mail and Gnus. A directory with one of these files is an MH folder.
const MARKS: [&str; 7] = [
    SEQUENCES,
    ".xmhcache",
    ".mew_cache",
    ".mew-cache",
    ".sylpheed_cache",
    ".claws_cache",
    ".overview",
];

/// Sequences of an MH folder: named lists of message numbers. nmh, mutt and Python store flags in them.
#[derive(Debug)]
pub(crate) struct MhSequences(Vec<(String, Vec<(u32, u32)>)>);

/// Name of the sequence of unread messages. If a folder has this sequence, all messages outside of it are read.
const UNSEEN: &str = "unseen";
/// Sequences that are positions and not flags: the current message and the previous one.
const POSITIONS: [&str; 2] = ["cur", "pcur"];
/// Maximum number of sequences that are read.
const MOST: usize = 1000;

impl MhSequences {
    /// Parses the file [`SEQUENCES`]: `NAME: 1 3-5 8`.
    pub(crate) fn of_file(content: &[u8]) -> Self {
        let text = String::from_utf8_lossy(content);
        let sequences = text.lines().filter_map(|line| {
            let (name, numbers) = line.split_once(':')?;
            let words = numbers.split_whitespace();
            let parsed = words.filter_map(|range| {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                Some((first.parse().ok()?, last.parse().ok()?))
            });
            let mut ranges: Vec<(u32, u32)> = parsed.collect();
            ranges.sort_unstable();
            Some((name.trim().to_owned(), ranges))
        });
        Self(sequences.take(MOST).collect())
    }

    /// Returns the flags of the message with this number. `noted` contains the flags in its header.
    pub(crate) fn flags(&self, number: u32, noted: MessageFlags) -> MessageFlags {
        let (mut names, mut is_unseen) = (Vec::new(), None);
        for (name, ranges) in &self.0 {
            // If any range contains the number, it is the last range that starts at or before the number (unless ranges
            // overlap).
            let end = ranges.partition_point(|(first, _)| *first <= number);
            let before = ranges.get(..end).unwrap_or_default();
            let is_in = before.last().is_some_and(|(_, last)| number <= *last);
            match name.as_str() {
                UNSEEN => is_unseen = Some(is_in),
                name if POSITIONS.contains(&name) || !is_in => {}
                "replied" | "answered" => names.push("answered".to_owned()),
                "flagged" | "deleted" => names.push(name.clone()),
                "forwarded" | "passed" => names.push("$Forwarded".to_owned()),
                name => names.push(of_label(name)),
            }
        }
        let of_sequences = MessageFlags::of_imap(names.iter().map(String::as_str));
        let flags = match (is_unseen, names.is_empty()) {
            (None, true) => noted,
            _ => noted.with(&of_sequences),
        };
        match is_unseen {
            Some(is_unseen) => flags.with_seen(!is_unseen),
            None => flags,
        }
    }
}

/// The sequences of a new MH folder.
#[derive(Default)]
pub(crate) struct NewSequences {
    /// The ranges of message numbers of each sequence. Numbers are added in ascending order.
    named: BTreeMap<String, Vec<(u32, u32)>>,
    last: u32,
}

impl NewSequences {
    /// Adds a message: gives it the next number, and adds this number to the sequences of its flags and keywords. Also
    /// returns the keywords that cannot be stored, because a sequence of this name has another meaning or because the
    /// file cannot contain the name.
    pub(crate) fn add(&mut self, flags: Flags, keywords: &Keywords) -> (u32, Vec<String>) {
        self.last = self.last.saturating_add(1);
        let letters = flags.letters();
        let of_letters = [
            ('R', "replied"),
            ('F', "flagged"),
            ('P', "forwarded"),
            ('T', "deleted"),
            ('D', "draft"),
        ];
        if !letters.contains('S') {
            self.put(UNSEEN);
        }
        for (letter, name) in of_letters {
            let is_forwarded = letter == 'P' && keywords.has(FORWARDED);
            if letters.contains(letter) || is_forwarded {
                self.put(name);
            }
        }
        let mut lost = Vec::new();
        for name in keywords.names() {
            if name.eq_ignore_ascii_case(FORWARDED) {
                continue;
            }
            let is_new = !self.named.contains_key(name);
            if !is_name(name) || is_new && self.named.len() >= MOST - 1 {
                lost.push(name.to_owned());
            } else {
                self.put(name);
            }
        }
        (self.last, lost)
    }

    fn put(&mut self, name: &str) {
        let number = self.last;
        let ranges = self.named.entry(name.to_owned()).or_default();
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }

    /// Returns the content of the file [`SEQUENCES`]. The sequence of unread messages is written even if it is empty:
    /// without it, all messages would count as unread.
    pub(crate) fn file(&self) -> String {
        let mut text = String::new();
        if !self.named.contains_key(UNSEEN) {
            let _ = writeln!(text, "{UNSEEN}:");
        }
        for (name, ranges) in &self.named {
            let _ = write!(text, "{name}:");
            for (first, last) in ranges {
                let _ = if first == last {
                    write!(text, " {first}")
                } else {
                    write!(text, " {first}-{last}")
                };
            }
            text.push('\n');
        }
        text
    }
}

/// Returns whether a keyword can be the name of a sequence, and reading this sequence gives the same keyword.
fn is_name(keyword: &str) -> bool {
    const OTHERS: [&str; 13] = [
        "cur",
        "pcur",
        "unseen",
        "seen",
        "replied",
        "answered",
        "flagged",
        "deleted",
        "forwarded",
        "passed",
        "draft",
        "recent",
        "all",
    ];
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b':';
    let is_other = OTHERS
        .iter()
        .any(|other| keyword.eq_ignore_ascii_case(other));
    keyword.bytes().all(is_plain) && !is_other && of_label(keyword) == keyword
}

pub(crate) fn is_marked(folder: &Path) -> bool {
    MARKS.iter().any(|name| folder.join(name).is_file())
}

/// Parses the name of a message file as a message number. Old messages may be compressed, with a name such as `12.gz`.
pub(crate) fn number(name: &OsStr) -> Option<u32> {
    let path = Path::new(name);
    let plain = match Method::of_name(path) {
        Some(_) => path.file_stem()?,
        None => name,
    };
    let digits = plain.to_str()?;
    digits
        .parse()
        .ok()
        .filter(|_| !digits.starts_with(['0', '+']))
}

/// Returns a description if the name is that of a file that mail programs keep in an MH folder, or of a removed
/// message.
pub(crate) fn own_file(name: &OsStr) -> Option<&'static str> {
    if is_removed(name) {
        return Some("a message that was removed from an MH folder");
    }
    let is_mark = MARKS.iter().any(|mark| name == *mark);
    is_mark.then_some("a file in which a mail program keeps the state of an MH folder")
}

/// Returns whether a file contains only sequences: names with message numbers. A sequence can have the name of a header field.
pub(crate) fn is_sequences(content: &[u8]) -> bool {
    let is_of_numbers =
        |byte: &u8| byte.is_ascii_digit() || matches!(byte, b' ' | b'\t' | b'-' | b'\r');
    let mut lines = content.split(|&byte| byte == b'\n');
    lines.all(|line| {
        let numbers = memchr::memchr(b':', line).map_or(line, |end| rest_or_empty(line, end + 1));
        numbers.iter().all(is_of_numbers)
    })
}

/// Returns whether a file has the name of a message that was removed from an MH folder, such as `,12`.
pub(crate) fn is_removed(name: &OsStr) -> bool {
    name.to_str()
        .and_then(|name| name.strip_prefix([',', '#']))
        .is_some_and(|rest| number(OsStr::new(rest)).is_some())
}

pub(crate) fn sort(names: &mut [PathBuf]) {
    names.sort_by_key(|name| name.file_name().and_then(number));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_a_message_come_from_the_sequences_with_its_number() {
        let file = b"unseen: 2 4-6\nreplied: 1-3\nflagged: 6\ncur: 1\nto do: 9\nx\nbad: -\n";
        let with_unseen = MhSequences::of_file(file);
        let without = MhSequences::of_file(b"cur: 1\nflagged: 6-4000000000\n");
        let of = |sequences: &MhSequences, number| {
            let flags = sequences.flags(number, MessageFlags::default());
            let keywords: Vec<&str> = flags.keywords.names().collect();
            format!("{}{}", flags.system.letters(), keywords.join(" "))
        };
        for (number, flags, other) in [
            (1, "RS", ""),
            (2, "R", ""),
            (3, "RS", ""),
            (5, "", ""),
            (6, "F", "F"),
            (7, "S", "F"),
            (9, "Sto_do", "F"),
        ] {
            assert_eq!(of(&with_unseen, number), flags, "{number}");
            assert_eq!(of(&without, number), other, "{number}");
        }
        assert!(!without.flags(1, MessageFlags::default()).system.is_in_cur());
    }

    #[test]
    fn written_sequences_are_read_as_the_same_flags() {
        let mut sequences = NewSequences::default();
        let mut mails = Vec::new();
        for (letters, keywords) in [
            ("", "a"),
            ("S", "$MDNSent a"),
            ("DFPRST", "x.y"),
            ("S", ""),
            ("F", "$Forwarded"),
        ] {
            let flags = Flags::of_letters(letters.as_bytes(), true);
            let keywords = Keywords::of_names(keywords.split_whitespace());
            let (number, lost) = sequences.add(flags, &keywords);
            assert_eq!(lost, [""; 0]);
            mails.push((number, MessageFlags::new(flags, keywords)));
        }
        let file = sequences.file();
        let read = MhSequences::of_file(file.as_bytes());
        for (number, flags) in mails {
            let found = read.flags(number, MessageFlags::default());
            assert_eq!(found.system, flags.system, "{number}: {file}");
            let missing = flags.missing_in(&found);
            assert!(missing.is_empty(), "{number}: {missing:?}");
        }
        let (_, lost) = sequences.add(Flags::default(), &Keywords::of_names(["cur", "a:b", "a b"]));
        assert_eq!(lost, ["cur", "a:b", "a b"]);
        assert_eq!(NewSequences::default().file(), "unseen:\n");
    }

    #[test]
    fn file_with_sequences_contains_only_names_and_numbers() {
        for (file, expected) in [
            ("unseen: 2 4-6\ncur: 1\n", true),
            ("from: 3-5\r\n 8 9\n\n", true),
            ("", true),
            ("From: a@b\nSubject: 1\n\n", false),
            ("from: 3\nDear all,\n", false),
        ] {
            assert_eq!(is_sequences(file.as_bytes()), expected, "{file}");
        }
    }

    #[test]
    fn a_message_has_a_number_for_a_name() {
        let of = |name: &str| number(OsStr::new(name));
        assert_eq!(
            (of("1"), of("20.gz"), of("999999")),
            (Some(1), Some(20), Some(999_999))
        );
        for name in [
            "",
            "0",
            "007",
            ",1",
            "#1",
            "1.eml",
            "+1",
            "-1",
            "1 ",
            "99999999999",
            "١",
        ] {
            assert_eq!(of(name), None, "{name}");
        }
        let mut names = ["10", "9", "100", "1"].map(PathBuf::from);
        sort(&mut names);
        assert_eq!(names, ["1", "9", "10", "100"].map(PathBuf::from));
    }
}
