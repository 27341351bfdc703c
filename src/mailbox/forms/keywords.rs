//! Keywords of messages: user-defined tags and labels, in contrast to flags such as "read". Keywords are compared
//! case-insensitively, as in IMAP. No I/O is performed.
//!
//! The names of keywords are stored in these places:
//! * Dovecot's Maildirs: a letter from a to z in the file name. The file `dovecot-keywords` of the folder contains a
//!   line `NUMBER NAME` for each letter (0 is a).
//! * Courier's Maildirs: the directory `courierimapkeywords`. Its file `:list` contains the names, an empty line, and for
//!   each message a line `FILE:NUMBER NUMBER`. Further files have the name of a message, and contain one keyword per line.
//! * mboxes: the header fields X-Keywords (Dovecot, UW IMAP) and X-Mozilla-Keys (Thunderbird), in `flag_fields`.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use crate::mailbox::forms::modified_utf7;

/// File in which Dovecot stores the keyword that each lower-case letter in a file name of a Maildir means.
pub(crate) const DOVECOT: &str = "dovecot-keywords";

/// Keyword of forwarded mail. In Maildirs and Thunderbird, it is a flag.
pub(crate) const FORWARDED: &str = "$Forwarded";
/// Keyword of important mail (RFC 8457).
pub(crate) const IMPORTANT: &str = "$Important";
/// Thunderbird's tag that is named "Important" by default.
pub(crate) const IMPORTANT_TAG: &str = "$label1";
/// Keyword of mail for which a read receipt was sent (RFC 3503).
pub(crate) const RECEIPT_SENT: &str = "$MDNSent";
/// Marks of Thunderbird for threads. They are compared like keywords, and never written: no program stores them as such.
pub(crate) const WATCHED_THREAD: &str = "watched thread";
pub(crate) const IGNORED_THREAD: &str = "ignored thread";

/// Maximum number of keywords of a message. Headers are untrusted input.
const MOST: usize = 1000;
/// Number of letters for keywords in the file names of a Maildir.
const LETTERS: usize = 26;

/// The keywords of a message, without duplicates, in the order in which they were found.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Keywords(Vec<String>);

impl Keywords {
    /// Returns the keywords with these names. Names that differ only in case are the same keyword.
    pub(crate) fn of_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let mut known = HashSet::new();
        let mut keywords = Vec::new();
        for name in names {
            let name = name.trim();
            if keywords.len() == MOST {
                break;
            }
            if !name.is_empty() && known.insert(name.to_ascii_lowercase()) {
                keywords.push(name.to_owned());
            }
        }
        Self(keywords)
    }

    /// Returns the union of the keywords of `self` and `other`.
    pub(crate) fn with(self, other: &Self) -> Self {
        match (self.0.is_empty(), other.0.is_empty()) {
            (_, true) => self,
            (true, _) => other.clone(),
            _ => Self::of_names(self.names().chain(other.names())),
        }
    }

    /// Returns the keywords that `self` has and `other` lacks.
    pub(crate) fn without(&self, other: &Self) -> Self {
        if self.0.is_empty() || other.0.is_empty() {
            return self.clone();
        }
        let known: HashSet<String> = other.names().map(str::to_ascii_lowercase).collect();
        let missing = self.names();
        Self::of_names(missing.filter(|name| !known.contains(&name.to_ascii_lowercase())))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.names().any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// Returns whether the keyword can be stored in a header field.
pub(crate) fn is_writable(name: &str) -> bool {
    !name.contains(char::is_control) && words(name) == [name]
}

/// Describes a keyword letter that `dovecot-keywords` does not explain, for the report.
pub(crate) fn unexplained(letter: char) -> String {
    format!("keyword letter {letter}, because the file dovecot-keywords does not explain it")
}

/// Describes a keyword that an mbox cannot store, for the report.
pub(crate) fn unwritable(name: &str) -> String {
    format!("keyword {name}, because a header field cannot contain it")
}

/// Splits the value of an X-Keywords field into keywords. They are separated by blanks, and in OfflineIMAP by commas. A
/// comma inside an encoded character such as `&AAD,-` (modified UTF-7) is not a separator.
pub(crate) fn words(field: &str) -> Vec<&str> {
    let mut is_encoded = false;
    let between = |symbol: char| {
        is_encoded = match symbol {
            '&' => true,
            '+' | ',' => is_encoded,
            symbol => is_encoded && symbol.is_ascii_alphanumeric(),
        };
        symbol.is_whitespace() || symbol == ',' && !is_encoded
    };
    field
        .split(between)
        .filter(|word| !word.is_empty())
        .collect()
}

/// Returns whether IMAP allows the character in a keyword. A server that reads other characters from `dovecot-keywords`
/// sends responses that clients cannot parse.
fn is_allowed(symbol: char) -> bool {
    !symbol.is_control() && !symbol.is_whitespace() && !"(){%*\"\\]".contains(symbol)
}

/// Converts a label of another program, which may contain any characters, to a keyword. The rules are those of
/// Thunderbird's tags: characters that IMAP does not allow become underscores, and characters outside of ASCII are
/// written in modified UTF-7.
pub(crate) fn of_label(label: &str) -> String {
    let allowed = label.trim().chars().map(|symbol| match symbol {
        ',' => '_',
        symbol if is_allowed(symbol) => symbol,
        _ => '_',
    });
    modified_utf7::encoded(&allowed.collect::<String>())
}

/// Decodes text as UTF-8, or as Latin-1 if it is not valid UTF-8. Files of old programs are in Latin-1.
fn decoded(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|&byte| char::from(byte)).collect(),
    }
}

/// Names of the keyword letters a to z in a Maildir.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct KeywordLetters(Vec<Option<String>>);

impl KeywordLetters {
    /// Parses the file `dovecot-keywords`. Malformed lines are ignored.
    pub(crate) fn of_file(content: &[u8]) -> Self {
        let mut letters = Self::default();
        for line in content.split(|&byte| byte == b'\n') {
            let line = decoded(line);
            let Some((number, name)) = line.trim_end().split_once(' ') else {
                continue;
            };
            let name = name.trim();
            let Some(number) = number.parse().ok().filter(|&it: &usize| it < LETTERS) else {
                continue;
            };
            if letters.0.len() <= number {
                letters.0.resize(number + 1, None);
            }
            if let Some(place) = letters.0.get_mut(number).filter(|_| !name.is_empty()) {
                *place = Some(name.to_owned());
            }
        }
        letters
    }

    /// Returns the content of the file `dovecot-keywords`.
    pub(crate) fn file(&self) -> String {
        let named = (0..).zip(&self.0);
        named
            .filter_map(|(number, name): (usize, _)| Some((number, name.as_ref()?)))
            .map(|(number, name)| format!("{number} {name}\n"))
            .collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the keyword of a letter, or `None` if the file has no name for the letter.
    pub(crate) fn name(&self, letter: u8) -> Option<&str> {
        let number = usize::from(letter.checked_sub(b'a')?);
        self.0.get(number)?.as_deref()
    }

    /// Returns the letter of a keyword. A new keyword gets the next free letter. Returns `None` if all letters are in
    /// use, or if `dovecot-keywords` cannot store the name.
    pub(crate) fn letter(&mut self, name: &str) -> Option<char> {
        let is_same = |known: &Option<String>| {
            let known = known.as_deref();
            known.is_some_and(|known| known.eq_ignore_ascii_case(name))
        };
        let number = match self.0.iter().position(is_same) {
            Some(number) => number,
            None if self.0.len() >= LETTERS || !name.chars().all(is_allowed) => return None,
            None => {
                self.0.push(Some(name.to_owned()));
                self.0.len() - 1
            }
        };
        Some(char::from(b'a' + u8::try_from(number).ok()?))
    }
}

/// Keywords as Courier stores them, by the name of the message in the Maildir (without its flags).
///
/// If several files contain keywords of a message, the newest file is used. The file `:list` is the oldest. A file
/// `NAME` is newer, and a file `.N.NAME` (which Courier later renames to `NAME`) is the newest.
#[derive(Default)]
pub(crate) struct CourierKeywords(HashMap<Vec<u8>, (CourierAge, Keywords)>);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CourierAge {
    List,
    File,
    /// A file `.N.NAME`, with the number N.
    Pending(u64),
}

impl CourierKeywords {
    /// Adds a file of the directory `courierimapkeywords`. The files can be added in any order.
    pub(crate) fn add_file(&mut self, name: &[u8], content: &[u8]) {
        let is_list = name.ends_with(b"list") && !name.contains(&b'.');
        if is_list {
            // The file is named `:list`. File systems without colons in names replace the colon by another character.
            for (message, own) in of_courier_list(content) {
                self.add(message, CourierAge::List, own);
            }
            return;
        }
        let pending = || {
            let rest = name.strip_prefix(b".")?;
            let dot = memchr::memchr(b'.', rest)?;
            let (number, message) = rest.split_at(dot);
            let number = std::str::from_utf8(number).ok()?.parse().ok()?;
            Some((CourierAge::Pending(number), message.get(1..)?))
        };
        let (age, message) = pending().unwrap_or((CourierAge::File, name));
        self.add(message.to_owned(), age, of_courier_file(content));
    }

    fn add(&mut self, message: Vec<u8>, age: CourierAge, own: Keywords) {
        match self.0.entry(message) {
            Entry::Occupied(known) if known.get().0 > age => {}
            Entry::Occupied(mut known) => _ = known.insert((age, own)),
            Entry::Vacant(new) => _ = new.insert((age, own)),
        }
    }

    /// Returns the keywords of the message with this name, or `None` if it has no keywords.
    pub(crate) fn of_message(&self, name: &[u8]) -> Option<&Keywords> {
        let (_, own) = self.0.get(name)?;
        (!own.is_empty()).then_some(own)
    }

    /// Returns the messages that have keywords, by name.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (&[u8], &Keywords)> {
        let named = self.0.iter().map(|(name, (_, own))| (name.as_slice(), own));
        named.filter(|(_, own)| !own.is_empty())
    }
}

/// Parses Courier's file `:list`.
fn of_courier_list(content: &[u8]) -> HashMap<Vec<u8>, Keywords> {
    let mut lines = content
        .split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let names: Vec<String> = lines
        .by_ref()
        .take_while(|line| !line.is_empty())
        .map(decoded)
        .collect();
    let mut keywords = HashMap::new();
    for line in lines {
        // In a valid list, file names contain no colons. In a damaged list they can, so the numbers are after the last
        // colon.
        let Some(at) = memchr::memrchr(b':', line) else {
            continue;
        };
        let (file, behind) = line.split_at(at);
        let digits = behind.split(|byte| !byte.is_ascii_digit());
        let numbers = digits.filter_map(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        let named = numbers.filter_map(|number: usize| names.get(number));
        let own = Keywords::of_names(named.map(String::as_str));
        if !own.is_empty() {
            keywords.insert(file.to_owned(), own);
        }
    }
    keywords
}

/// Parses a file of Courier that contains the keywords of one message.
fn of_courier_file(content: &[u8]) -> Keywords {
    let names = decoded(content);
    Keywords::of_names(names.lines())
}

/// Returns the content of Courier's file `:list`.
pub(crate) fn courier_list(messages: &[(Vec<u8>, Keywords)]) -> Vec<u8> {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let (mut names, mut list) = (Vec::new(), Vec::new());
    for (file, keywords) in messages {
        list.extend_from_slice(file);
        list.push(b':');
        let own = keywords.names().map(|name| {
            let next = numbers.len();
            let number = *numbers.entry(name.to_ascii_lowercase()).or_insert(next);
            if number == next {
                names.extend_from_slice(name.as_bytes());
                names.push(b'\n');
            }
            number.to_string()
        });
        list.extend(own.collect::<Vec<_>>().join(" ").into_bytes());
        list.push(b'\n');
    }
    names.push(b'\n');
    [names, list].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_from_dovecot_keywords_and_written_again() {
        let file = b"0 $Forwarded\n2 Invoices\r\nx\n3\n26 z\n4 caf\xe9\n";
        let mut letters = KeywordLetters::of_file(file);
        assert_eq!(letters.name(b'a'), Some("$Forwarded"));
        assert_eq!(letters.name(b'b'), None);
        assert_eq!(letters.name(b'e'), Some("caf\u{e9}"));
        assert_eq!(letters.letter("invoices"), Some('c'));
        assert_eq!(letters.letter("new"), Some('f'));
        assert_eq!(letters.letter("two words"), None);
        let again = KeywordLetters::of_file(letters.file().as_bytes());
        assert_eq!(again, letters);
        for number in 6..26 {
            assert!(letters.letter(&format!("k{number}")).is_some());
        }
        assert_eq!(letters.letter("one more"), None);
        assert_eq!(letters.letter("new"), Some('f'));
    }

    #[test]
    fn keywords_are_read_from_the_list_of_courier_and_written_again() {
        let list = of_courier_list(b"$Forwarded\nInvoices\n\n1.M1.h,S=3:0 1\n2.M2.h:1\n3.h:7\nx\n");
        assert_eq!(list.len(), 2);
        let names: Vec<&str> = list[&b"1.M1.h,S=3".to_vec()].names().collect();
        assert_eq!(names, ["$Forwarded", "Invoices"]);
        let mut messages: Vec<_> = list.clone().into_iter().collect();
        messages.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(of_courier_list(&courier_list(&messages)), list);
        assert!(of_courier_list(b"").is_empty());
    }

    #[test]
    fn keywords_that_differ_in_case_are_one_keyword() {
        let one = Keywords::of_names(["$Label1", " $label1", "", "x"]);
        let other = Keywords::of_names(["X", "y"]);
        assert_eq!(one.names().collect::<Vec<_>>(), ["$Label1", "x"]);
        let united = one.clone().with(&other);
        assert_eq!(united.names().collect::<Vec<_>>(), ["$Label1", "x", "y"]);
        assert_eq!(one.without(&other).names().collect::<Vec<_>>(), ["$Label1"]);
        for (label, keyword) in [
            ("To do (now)", "To_do__now_"),
            ("K\u{fc}che & Bad", "K&APw-che_&-_Bad"),
            ("\u{1f600}", "&2D3eAA-"),
            ("\u{fff}", "&D,8-"),
        ] {
            assert_eq!(of_label(label), keyword);
            assert!(is_writable(keyword));
        }
        assert_eq!(words(" a,b , &D,8-,c\td"), ["a", "b", "&D,8-", "c", "d"]);
        assert!(!is_writable("a b") && !is_writable("a,b"));
    }
}
