//! MH folders, which contain one message per file, named by its number (mh-profile(5), mh-sequence(5)). `maildir` reads
//! and changes them.
//!
//! A directory is an MH folder if it contains a file that mail programs keep next to messages. Only files named by a
//! plain number are messages: names such as `,12` and `#12` mark removed messages.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::mailbox::compressed::Method;
use crate::mailbox::forms::flags::MessageFlags;
use crate::mailbox::forms::keywords::of_label;

/// The file in which nmh and Python store flags, by message number.
pub(crate) const SEQUENCES: &str = ".mh_sequences";

/// Files of nmh, exmh, Mew, Sylpheed, Claws Mail and Gnus. A directory that contains one of these files is an MH
/// folder.
const MARKS: [&str; 7] = [
    SEQUENCES,
    ".xmhcache",
    ".mew_cache",
    ".mew-cache",
    ".sylpheed_cache",
    ".claws_cache",
    ".overview",
];

/// The sequences of an MH folder: lists of message numbers, each with a name. nmh, mutt and Python store flags in them.
#[derive(Debug)]
pub(crate) struct MhSequences(Vec<(String, Vec<(u32, u32)>)>);

/// The sequence of unread messages. If a folder has this sequence, all other messages are read.
const UNSEEN: &str = "unseen";
/// Sequences that are not flags: the current message, and the one before it.
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

    /// Returns the flags of the message with this number. `noted` contains those of its header.
    pub(crate) fn flags(&self, number: u32, noted: MessageFlags) -> MessageFlags {
        let (mut names, mut is_unseen) = (Vec::new(), None);
        for (name, ranges) in &self.0 {
            // The last range that starts before the number contains the number, unless ranges overlap.
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

pub(crate) fn is_marked(folder: &Path) -> bool {
    MARKS.iter().any(|name| folder.join(name).is_file())
}

/// Returns the number of a message. The file of an old message may be compressed, with a name such as `12.gz`.
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

/// Returns a description if the name is that of a file which mail programs keep in an MH folder, or of a message that was
/// removed from the folder.
pub(crate) fn own_file(name: &OsStr) -> Option<&'static str> {
    let is_mark = MARKS.iter().any(|mark| name == *mark);
    let is_removed = name
        .to_str()
        .and_then(|name| name.strip_prefix([',', '#']))
        .is_some_and(|rest| number(OsStr::new(rest)).is_some());
    if is_removed {
        return Some("a message that was removed from an MH folder");
    }
    is_mark.then_some("a file in which a mail program keeps the state of an MH folder")
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
