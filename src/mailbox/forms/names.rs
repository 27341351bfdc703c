//! Creates names of files and directories from labels of mail, which are untrusted input.
//!
//! A name cannot lead out of its directory: it is one path component without `/` and NUL, never `.` or `..`, and never
//! hidden. It is also valid on other systems: no device name of Windows, no characters that Windows refuses, no blank
//! or dot at the end, and no characters that change the direction of text. The `/` of nested Gmail labels becomes a
//! dot, as in Maildir++.
//!
//! Two labels never get the same name: if names differ only in case, or are the same for the file system, a number is
//! added.

use std::collections::{HashMap, HashSet};

use icu_normalizer::ComposingNormalizer;

use crate::platform::is_device;

/// Maximum length of a name in bytes, without a number and a suffix. File systems allow 255 bytes.
const LONGEST: usize = 200;

const PARTS: [&str; 3] = ["cur", "new", "tmp"];

/// Returns a name in lower case and with composed characters (NFC). If a file system might treat two names as equal, both
/// have the same result.
pub(crate) fn folded(name: &str) -> String {
    composed(&name.to_uppercase().to_lowercase())
}

/// Returns a name with composed characters (NFC).
pub(crate) fn composed(name: &str) -> String {
    ComposingNormalizer::new_nfc().normalize(name).into_owned()
}

#[derive(Default, Debug)]
pub(crate) struct FolderNames {
    given: HashSet<String>,
    next: HashMap<String, u64>,
}

impl FolderNames {
    /// Returns a name for `label` that differs from all names returned before. `make` creates a file or directory with
    /// this name. If `make` returns false, the name is already taken, and a higher number is added to the name.
    pub(crate) fn give<E>(
        &mut self,
        label: &str,
        suffix: &str,
        make: impl FnMut(&str) -> Result<bool, E>,
    ) -> Result<String, E> {
        self.give_safe(&safe(label), suffix, make)
    }

    /// Does the same as [`give`](Self::give) for a name that needs no change, because it is valid on every system.
    pub(crate) fn give_safe<E>(
        &mut self,
        safe: &str,
        suffix: &str,
        mut make: impl FnMut(&str) -> Result<bool, E>,
    ) -> Result<String, E> {
        let mut name = format!("{safe}{suffix}");
        let folded = name.to_lowercase();
        loop {
            // The next number of each name is remembered. So each numbered name is tried only once, even if thousands
            // of labels would get the same name.
            if self.given.insert(name.to_lowercase()) && make(&name)? {
                return Ok(name);
            }
            let next = self.next.entry(folded.clone()).or_insert(1);
            *next += 1;
            name = format!("{safe} ({next}){suffix}");
        }
    }
}

/// Maximum length of a Thunderbird folder name in bytes, before a number is added. For a folder name of more than 55
/// bytes, Thunderbird expects a file with a shortened name, so it would not find the folder.
const LONGEST_OF_THUNDERBIRD: usize = 46;

/// Names of files in which Thunderbird stores other data next to its folders. It would not show a folder with such a
/// name.
const OF_THUNDERBIRD: [&str; 15] = [
    "feeditems.json",
    "feeditems.rdf",
    "feeds.json",
    "feeds.rdf",
    "filterlog.html",
    "filters.js",
    "junklog.html",
    "mailfilt.log",
    "msgfilterrules.dat",
    "popstate.dat",
    "rules.dat",
    "rulesbackup.dat",
    "sort.dat",
    "virtualfolders.dat",
    "training.dat",
];

/// Endings of file and directory names that Thunderbird uses for other data. It would not show a folder with such a
/// name.
const ENDS_OF_THUNDERBIRD: [&str; 5] = [".sbd", ".msf", ".snm", ".toc", ".mozmsgs"];

/// Folders of Local Folders that Thunderbird treats in a special way. For example, it empties the trash.
#[cfg(feature = "cli")]
const SPECIAL: [&str; 11] = [
    "archives",
    "drafts",
    "inbox",
    "junk",
    "outbox",
    "queue",
    "sent",
    "spam",
    "templates",
    "trash",
    "unsent messages",
];

/// Returns a folder name that Thunderbird uses as a file name without a change. In other names, Thunderbird replaces
/// characters, and it shortens long names with a hash (`NS_MsgHashIfNecessary`). It would then not find the file.
pub(crate) fn thunderbird_name(name: &str) -> String {
    let name = if name == "INBOX" { "Inbox" } else { name };
    let whole = safe(name).replace([';', '#'], "_");
    let mut safe = whole.clone();
    if safe.len() > LONGEST_OF_THUNDERBIRD {
        let mut end = LONGEST_OF_THUNDERBIRD - 9;
        while !safe.is_char_boundary(end) {
            end -= 1;
        }
        safe.truncate(end);
        // The hash distinguishes two long names that start with the same characters.
        let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        safe = format!("{}-{hash:08x}", safe.trim_end());
    }
    let folded = safe.to_lowercase();
    let is_other = OF_THUNDERBIRD.contains(&folded.as_str())
        || ENDS_OF_THUNDERBIRD.iter().any(|end| folded.ends_with(end))
        || folded.starts_with("feeditems_error")
        || folded.ends_with('~');
    if is_other {
        safe.push('_');
    }
    safe
}

/// Returns a name for a folder at the top level of Local Folders. If Thunderbird treats a folder of this name in a
/// special way, a number is added.
#[cfg(feature = "cli")]
pub(crate) fn thunderbird_top(name: &str) -> String {
    let name = thunderbird_name(name);
    if SPECIAL.contains(&name.to_lowercase().as_str()) {
        format!("{name} (2)")
    } else {
        name
    }
}

/// Returns a name for `label` that is valid on every system.
pub(crate) fn safe(label: &str) -> String {
    let mut name = String::new();
    for symbol in label.trim().chars() {
        let symbol = match symbol {
            '.' | '/' if name.is_empty() => '_',
            '/' => '.',
            '\\' | '<' | '>' | ':' | '"' | '|' | '?' | '*' => '_',
            // Characters without a width, and characters that change the direction of text. They could hide the real
            // name. Joiners are kept, because some scripts and emoji need them.
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}' => '_',
            '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => '_',
            symbol if symbol.is_control() => '_',
            symbol => symbol,
        };
        if name.len() + symbol.len_utf8() > LONGEST {
            break;
        }
        name.push(symbol);
    }
    let kept = name.trim_end_matches(|symbol: char| symbol == '.' || symbol.is_whitespace());
    name.truncate(kept.len());
    if name.is_empty() {
        name.push('_');
    }
    if PARTS.contains(&name.as_str()) || is_device(&name) {
        let stem = name.split('.').next().unwrap_or_default().trim_end();
        let at = stem.len();
        name.insert(at, '_');
    }
    name
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_is_one_component_that_every_system_takes() {
        for (label, name) in [
            ("Work", "Work"),
            (" Work/2023 ", "Work.2023"),
            ("..", "_"),
            (".", "_"),
            ("", "_"),
            ("../../etc/passwd", "_.....etc.passwd"),
            ("/etc/passwd", "_etc.passwd"),
            (".ssh", "_ssh"),
            ("a\0b\nc", "a_b_c"),
            ("a. . ", "a"),
            ("CON", "CON_"),
            ("nul.txt", "nul_.txt"),
            ("Aux/x", "Aux_.x"),
            ("COM1", "COM1_"),
            ("lpt\u{b2}", "lpt\u{b2}_"),
            ("COM10", "COM10"),
            ("console", "console"),
            ("cur", "cur_"),
            ("Re: a|b?", "Re_ a_b_"),
            ("evil\u{202e}lmth", "evil_lmth"),
            ("\u{fc}ber", "\u{fc}ber"),
            ("-rf", "-rf"),
        ] {
            assert_eq!(safe(label), name, "{label:?}");
        }
        let long = "\u{fc}".repeat(400);
        assert_eq!(safe(&long).len(), LONGEST);
    }

    fn given(names: &mut FolderNames, label: &str) -> String {
        let made = names.give(label, ".mbox", |_| Ok::<_, Infallible>(true));
        made.unwrap_or_else(|never| match never {})
    }

    #[test]
    fn labels_that_differ_by_case_or_by_what_no_name_holds_get_numbers() {
        let mut names = FolderNames::default();
        let mut given = |label: &str| given(&mut names, label);
        assert_eq!(given("Work"), "Work.mbox");
        assert_eq!(given("work"), "work (2).mbox");
        assert_eq!(given("WORK (2)"), "WORK (2) (2).mbox");
        assert_eq!(given("WORK"), "WORK (3).mbox");
        assert_eq!(given("a/b"), "a.b.mbox");
        assert_eq!(given("a.b"), "a.b (2).mbox");
        let long = ["x".repeat(300), "x".repeat(301)];
        assert_eq!((given(&long[0]).len(), given(&long[1]).len()), (205, 209));
    }

    #[test]
    fn what_the_file_system_does_not_tell_apart_gets_a_number() {
        // Simulates a file system on which the composed and the decomposed form of a letter are the same name.
        let mut there = HashSet::new();
        let mut names = FolderNames::default();
        let mut make = |label: &str| {
            let made = names.give(label, "", |name| {
                Ok::<_, Infallible>(there.insert(name.replace("e\u{301}", "\u{e9}")))
            });
            made.unwrap_or_else(|never| match never {})
        };
        assert_eq!(make("caf\u{e9}"), "caf\u{e9}");
        assert_eq!(make("cafe\u{301}"), "cafe\u{301} (2)");
    }

    #[test]
    fn thousands_of_labels_of_one_name_cost_one_look_each() {
        let (mut names, mut looks) = (FolderNames::default(), 0_u64);
        for number in 0..20_000 {
            // Half of the labels contain a number, and use up the numbered names that the other labels would get.
            let label = match number % 2 {
                0 => format!("a ({})", number + 2),
                _ => "a".repeat(1 + number % 4 / 3),
            };
            let made = names.give(&label, "", |_| {
                looks += 1;
                Ok::<_, Infallible>(true)
            });
            assert!(made.is_ok());
        }
        assert_eq!(looks, 20_000);
        assert!(names.next.values().sum::<u64>() < 60_000);
    }

    #[test]
    fn folder_name_is_converted_to_one_that_thunderbird_accepts() {
        for (name, taken) in [
            ("Work", "Work"),
            ("INBOX", "Inbox"),
            ("a;b#c", "a_b_c"),
            (".hidden", "_hidden"),
            ("old~", "old~_"),
            ("notes.msf", "notes.msf_"),
            ("X.SBD", "X.SBD_"),
            ("popstate.dat", "popstate.dat_"),
            ("Bücher", "Bücher"),
        ] {
            assert_eq!(thunderbird_name(name), taken, "{name}");
        }
        let long = ["x".repeat(60), "x".repeat(61)].map(|name| thunderbird_name(&name));
        assert_ne!(long[0], long[1]);
        assert!(long.iter().all(|name| name.len() <= LONGEST_OF_THUNDERBIRD));
    }

    #[cfg(feature = "cli")]
    #[test]
    fn top_folder_is_not_given_the_name_of_the_thunderbird_trash() {
        assert_eq!(thunderbird_top("Trash"), "Trash (2)");
        assert_eq!(thunderbird_top("takeout"), "takeout");
    }

    proptest! {
        #[test]
        fn no_name_of_thunderbird_is_changed_by_it(label in any::<String>()) {
            let name = thunderbird_name(&label);
            prop_assert!(!name.is_empty() && name.len() <= 48);
            prop_assert!(!name.starts_with('.') && !name.ends_with(['.', '~', ' ']));
            prop_assert!(!name.contains(['/', '\\', ':', '*', '?', '"', '<', '>', '|', ';', '#', '\0']));
        }

        #[test]
        fn no_label_leads_out_of_its_folder(label in any::<String>()) {
            let name = safe(&label);
            prop_assert!(!name.is_empty() && name.len() <= LONGEST + 1);
            prop_assert!(!name.starts_with('.') && !name.ends_with('.') && !name.ends_with(' '));
            prop_assert!(!name.contains(['/', '\0', '\\']));
            prop_assert_eq!(&safe(&name), &name);
        }
    }
}
