//! Normalizes header fields: programs fold them differently, and write names in quotation marks or as encoded words.
//!
//! An address field is divided into words and [`SPECIALS`] before the words are decoded. A `<` or `,` inside quotation marks or
//! an encoded word is therefore part of the name and not the start of an address.

use std::borrow::Cow;

use crate::mime::encoded_words::decoded_words;
use crate::mime::header::unfold;
use crate::span::{front, split_while};

/// Characters that separate the elements of an address field (RFC 5322 section 3.2.3).
const SPECIALS: &[u8] = b"<>(),;:@";

/// Returns the value of a field as text: unfolded, with encoded words decoded and with single spaces. A value with invalid
/// bytes or malformed encoded words is returned unchanged, because programs decode it differently.
pub(super) fn text(value: &[u8]) -> Vec<u8> {
    let value = unfold(value);
    let text = decoded_words(&value);
    if text.contains(char::REPLACEMENT_CHARACTER) {
        [b"\0", value.as_slice()].concat()
    } else {
        text.split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .into_bytes()
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum AddressToken {
    /// Words, decoded and with single spaces.
    Words(Vec<u8>),
    /// Encoded words with invalid bytes, which programs decode differently. They are not decoded.
    Undecodable(Vec<u8>),
    Special(u8),
}

/// An entry of an address field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct AddressEntry(Vec<AddressToken>);

/// A name with an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Mailbox {
    pub(super) name: Vec<u8>,
    /// The part of the address before `@`.
    pub(super) local: Vec<u8>,
    pub(super) host: Vec<u8>,
}

impl Mailbox {
    /// Returns the address in lower case.
    pub(super) fn address(&self) -> String {
        let address = [self.local.as_slice(), b"@", self.host.as_slice()].concat();
        String::from_utf8_lossy(&address).to_lowercase()
    }
}

/// Returns the entries of an address field, which are separated by commas.
pub(super) fn entries(value: &[u8]) -> Vec<AddressEntry> {
    let mut entries = vec![AddressEntry(Vec::new())];
    for token in tokens(&unfold(value)) {
        match token {
            AddressToken::Special(b',') => entries.push(AddressEntry(Vec::new())),
            token => {
                if let Some(entry) = entries.last_mut() {
                    entry.0.push(token);
                }
            }
        }
    }
    entries.retain(|entry| !entry.0.is_empty());
    entries
        .iter_mut()
        .for_each(AddressEntry::strip_single_quotes);
    entries
}

impl AddressEntry {
    /// Removes single quotation marks around the name of a mailbox. Outlook writes them (`'Ann B' <ann@example.org>`), also
    /// inside double ones.
    fn strip_single_quotes(&mut self) {
        let specials = |at: Option<usize>| match at.and_then(|at| self.0.get(at)) {
            None => Some(b','),
            Some(AddressToken::Special(special)) => Some(*special),
            Some(AddressToken::Words(_) | AddressToken::Undecodable(_)) => None,
        };
        let is_name = |at: &usize| {
            let around = (specials(at.checked_sub(1)), specials(Some(at + 1)));
            // A name is before an address, or it is a comment after the address.
            matches!(
                around,
                (Some(b',' | b':'), Some(b'<')) | (Some(b'('), Some(b')'))
            )
        };
        let names: Vec<usize> = (0..self.0.len()).filter(is_name).collect();
        for name in names {
            if let Some(AddressToken::Words(words)) = self.0.get_mut(name) {
                while let [b'\'', inside @ .., b'\''] = words.as_slice()
                    && !inside.trim_ascii().is_empty()
                {
                    *words = inside.trim_ascii().to_vec();
                }
            }
        }
    }

    /// Returns bytes that are equal for different spellings of the same entry, and different for any other entry.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for token in &self.0 {
            match token {
                AddressToken::Special(special) => bytes.extend([1, *special]),
                AddressToken::Words(words) => append_escaped(&mut bytes, words),
                AddressToken::Undecodable(words) => {
                    bytes.extend([1, 0]);
                    append_escaped(&mut bytes, words);
                }
            }
        }
        bytes
    }

    /// Parses `name <local@host>`, `<local@host>`, `local@host` and `local@host (name)`.
    pub(super) fn mailbox(&self) -> Option<Mailbox> {
        use AddressToken::{Special, Words};
        let none = Vec::new();
        let (name, local, host) = match self.0.as_slice() {
            [
                Words(name),
                Special(b'<'),
                Words(local),
                Special(b'@'),
                Words(host),
                Special(b'>'),
            ] => (name, local, host),
            [
                Special(b'<'),
                Words(local),
                Special(b'@'),
                Words(host),
                Special(b'>'),
            ] => (&none, local, host),
            [Words(local), Special(b'@'), Words(host)] => (&none, local, host),
            [
                Words(local),
                Special(b'@'),
                Words(host),
                Special(b'('),
                Words(name),
                Special(b')'),
            ] => (name, local, host),
            _ => return None,
        };
        let is_one_word = |word: &[u8]| !word.iter().any(u8::is_ascii_whitespace);
        (is_one_word(local) && is_one_word(host)).then(|| Mailbox {
            name: name.clone(),
            local: local.clone(),
            host: host.clone(),
        })
    }
}

fn append_escaped(bytes: &mut Vec<u8>, words: &[u8]) {
    for byte in words {
        if matches!(byte, 0..=2) {
            bytes.push(2);
        }
        bytes.push(*byte);
    }
}

/// Parses a field with exactly one mailbox. Its address may be hidden as in the archive of a list (`ann at example.org (Ann
/// B)`). Also returns whether it was hidden.
pub(super) fn one_mailbox(value: &[u8]) -> Option<(Mailbox, bool)> {
    let value = unfold(value);
    let shown = with_addresses_shown(&value);
    let is_hidden = matches!(shown, Cow::Owned(_));
    match entries(&shown).as_slice() {
        [entry] => Some((entry.mailbox()?, is_hidden)),
        _ => None,
    }
}

/// Divides a field into tokens. `value` must be unfolded.
fn tokens(value: &[u8]) -> Vec<AddressToken> {
    let mut tokens: Vec<AddressToken> = Vec::new();
    let mut rest = value;
    let mut is_spaced = false;
    // Becomes false when a quotation mark has no closing one after it. Later quotation marks then have none either, and
    // searching for it each time would take quadratic time.
    let mut has_end = true;
    while let Some((&first, behind)) = rest.split_first() {
        if first.is_ascii_whitespace() {
            is_spaced = true;
            rest = rest.trim_ascii_start();
            continue;
        }
        let starts_entry = matches!(
            tokens.last(),
            None | Some(AddressToken::Special(b',' | b':'))
        );
        let (token, behind) = match first {
            b'\'' if starts_entry && let Some((name, behind)) = single_quoted(rest) => {
                (AddressToken::Words(single_blanks(name)), behind)
            }
            b'"' => match has_end.then(|| quoted(rest)).flatten() {
                Some((words, behind)) => (AddressToken::Words(words), behind),
                None => {
                    has_end = false;
                    (AddressToken::Words(b"\"".to_vec()), behind)
                }
            },
            _ if SPECIALS.contains(&first) => (AddressToken::Special(first), behind),
            // The word after `@` is a host name, in which encoded words are not decoded.
            _ if tokens.last() == Some(&AddressToken::Special(b'@')) => {
                let (word, behind) = rest.split_at(word_length(rest));
                (AddressToken::Words(word.to_vec()), behind)
            }
            _ => word(rest),
        };
        rest = behind;
        match (tokens.last_mut(), token) {
            (Some(AddressToken::Words(before)), AddressToken::Words(words)) => {
                if is_spaced {
                    before.push(b' ');
                }
                before.extend(words);
            }
            (_, token) => tokens.push(token),
        }
        is_spaced = false;
    }
    tokens
}

/// Parses a quoted string. Returns `None` if the closing quotation mark is missing.
pub(super) fn quoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut words = Vec::new();
    let mut at = 1;
    loop {
        match *text.get(at)? {
            b'"' => return Some((single_blanks(&words), text.get(at + 1..)?)),
            b'\\' => {
                words.push(*text.get(at + 1)?);
                at += 2;
            }
            byte => {
                words.push(byte);
                at += 1;
            }
        }
    }
}

/// Maximum length in bytes of an address that is also a name in single quotation marks.
const LONGEST_QUOTED: usize = 400;

/// Parses `'ann@example.org' <`. Outlook writes an address as a name without double quotation marks. Returns the name with its
/// single quotation marks, and the rest. Returns `None` if the text contains more than one address before the `<`.
fn single_quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = front(text, LONGEST_QUOTED);
    let (name, behind) = text.split_at_checked(memchr::memchr(b'<', start)?)?;
    let inside = name
        .trim_ascii_end()
        .strip_prefix(b"'")?
        .strip_suffix(b"'")?;
    let is_address = |byte: &u8| !byte.is_ascii_whitespace() && !b"\"<>(),;:='".contains(byte);
    let addresses = inside.iter().filter(|byte| **byte == b'@').count();
    (addresses == 1 && inside.iter().all(is_address)).then_some((name.trim_ascii_end(), behind))
}

fn single_blanks(text: &[u8]) -> Vec<u8> {
    let mut single = Vec::with_capacity(text.len());
    for &byte in text {
        match byte {
            b' ' | b'\t' if single.last() == Some(&b' ') => {}
            b'\t' => single.push(b' '),
            byte => single.push(byte),
        }
    }
    single
}

/// Parses a word. Several encoded words with only white space between them are a single text (RFC 2047 section 6.2).
fn word(text: &[u8]) -> (AddressToken, &[u8]) {
    let length = word_length(text);
    let (first, mut behind) = text.split_at(length);
    if !is_encoded(first) {
        return (AddressToken::Words(first.to_vec()), behind);
    }
    let mut end = length;
    loop {
        let next = behind.trim_ascii_start();
        if next.is_empty() || next.len() == behind.len() {
            break;
        }
        let (word, after) = next.split_at(word_length(next));
        if !is_encoded(word) {
            break;
        }
        end = text.len() - after.len();
        behind = after;
    }
    let (words, behind) = text.split_at(end);
    let decoded = decoded_words(words);
    if decoded.contains(char::REPLACEMENT_CHARACTER) {
        return (AddressToken::Undecodable(words.to_vec()), behind);
    }
    let words: Vec<&str> = decoded.split_whitespace().collect();
    (AddressToken::Words(words.join(" ").into_bytes()), behind)
}

/// Maximum length of an encoded word in bytes. The standard allows 75 (RFC 2047 section 2), but some programs write longer
/// ones.
const LONGEST_ENCODED: usize = 1000;

/// Returns the length of the word at the start of `text` in bytes, at least 1.
fn word_length(text: &[u8]) -> usize {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || SPECIALS.contains(byte) || *byte == b'"';
    // An encoded word may contain characters that otherwise end a word, so its end is searched first.
    if text.starts_with(b"=?") {
        let is_of_word = |byte: &u8| !byte.is_ascii_whitespace();
        let (until_blank, _) = split_while(front(text, LONGEST_ENCODED), is_of_word);
        if let Some(end) = end_of_encoded(until_blank) {
            return end;
        }
    }
    text.iter().position(ends).unwrap_or(text.len()).max(1)
}

/// Returns the end of the encoded word at the start of `text`: `=?charset?encoding?text?=`.
fn end_of_encoded(text: &[u8]) -> Option<usize> {
    let mut marks = memchr::memchr_iter(b'?', text);
    let third = marks.nth(2)?;
    let end = marks.next()?;
    (end > third && text.get(end + 1) == Some(&b'=')).then_some(end + 2)
}

fn is_encoded(word: &[u8]) -> bool {
    word.starts_with(b"=?") && word.ends_with(b"?=") && word.len() > 6
}

/// Replaces `a at example.org`, as archives of lists write addresses, with `a@example.org`.
pub(super) fn with_addresses_shown(text: &[u8]) -> Cow<'_, [u8]> {
    const AT: &[u8] = b" at ";
    let mut shown = Vec::new();
    let mut copied = 0;
    for at in memchr::memmem::find_iter(text, AT) {
        let before = text.get(..at).and_then(<[u8]>::last);
        let behind = &text[at + AT.len()..];
        let (host, _) = split_while(behind, |byte| !byte.is_ascii_whitespace());
        let is_of_name = before.is_some_and(|byte| !byte.is_ascii_whitespace());
        let last = host.iter().rposition(u8::is_ascii_alphanumeric);
        let host = &host[..last.unwrap_or(0)];
        if is_of_name && host.contains(&b'.') && at >= copied {
            shown.extend_from_slice(&text[copied..at]);
            shown.push(b'@');
            copied = at + AT.len();
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    shown.extend_from_slice(&text[copied..]);
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }

    fn spelled(value: &str) -> Vec<Vec<u8>> {
        let entries = entries(value.as_bytes());
        entries.iter().map(AddressEntry::bytes).collect()
    }

    #[test]
    fn spellings_of_one_name_are_equal() {
        for other in [
            "\"Ann B\" <ann@example.org>",
            "Ann\n \"B\" <ann@example.org>",
            "=?utf-8?q?Ann_B?= <ann@example.org>",
            "=?utf-8?q?Ann_?=\n =?utf-8?b?Qg==?= <ann@example.org>",
            "Ann  B<ann@example.org>",
            "'Ann B' <ann@example.org>",
            "\"'Ann B'\"\n <ann@example.org>",
            "=?utf-8?q?'Ann_B'?= <ann@example.org>",
            "''Ann B''<ann@example.org>",
        ] {
            assert_eq!(
                spelled(other),
                spelled("Ann B <ann@example.org>"),
                "{other}"
            );
        }
        assert_eq!(
            spelled("=?utf-8?q?J=C3=BCrgen?= <a@b>, c@d"),
            spelled("Jürgen <a@b>,\n\tc@d")
        );
        for (one, other) in [
            ("'ann@b' <ann@b>, c@d", "\"ann@b\" <ann@b>, c@d"),
            ("\"'ann@b'\" <ann@b>", "\"ann@b\" <ann@b>"),
            ("c@d, 'O'Brien' <a@b>", "c@d, \"O'Brien\" <a@b>"),
            (
                "team: 'Ann' <a@b>, 'Bob' <b@b>;",
                "team: Ann <a@b>, \"Bob\" <b@b>;",
            ),
            ("a@b ('Ann')", "a@b (Ann)"),
        ] {
            assert_eq!(spelled(one), spelled(other), "{one}");
        }
    }

    #[test]
    fn names_that_look_like_addresses_are_names() {
        for (one, other) in [
            (
                "\"Bob, m@evil.example\" <bob@x>",
                "Bob, m@evil.example <bob@x>",
            ),
            ("=?utf-8?q?Ann_=3Cann=40good=3E?=", "Ann <ann@good>"),
            ("\"ann@good\"", "ann@good"),
            ("\"a\x01<b\"", "a<b"),
            ("\"a\x02\x01<b\"", "\"a\x01<b\""),
            ("\"a (b)\" <c@d>", "a (b) <c@d>"),
            (
                "'Bob, m@evil.example' <bob@x>",
                "\"Bob, m@evil.example\" <bob@x>",
            ),
            (
                "'Bob <m@evil.example>' <bob@x>",
                "\"Bob <m@evil.example>\" <bob@x>",
            ),
            ("'a@b' <c@d>", "a@b <c@d>"),
            ("'a@b'", "a@b"),
            ("'' <a@b>", "<a@b>"),
            ("'Ann <a@b>", "Ann <a@b>"),
            ("Ann' <a@b>", "Ann <a@b>"),
        ] {
            assert_ne!(spelled(one), spelled(other), "{one}");
        }
    }

    #[test]
    fn encoded_words_with_invalid_bytes_are_different() {
        for (one, other) in [
            ("=?utf-8?q?=FF?= <a@b>", "=?utf-8?q?=FE?= <a@b>"),
            ("=?utf-8?b?/w==?= <a@b>", "=?utf-8?b?/g==?= <a@b>"),
            ("a@b (=?utf-8?q?=FF?=)", "a@b (=?utf-8?q?=FE?=)"),
            ("=?utf-8?q?=FF?= <a@b>", "\"=?utf-8?q?=FF?=\" <a@b>"),
            ("=?utf-8?q?=FF?= <a@b>", "\u{fffd} <a@b>"),
        ] {
            assert_ne!(spelled(one), spelled(other), "{one}");
        }
        let folded = "=?utf-8?q?=FF?=\n <a@b>";
        assert_eq!(spelled(folded), spelled("=?utf-8?q?=FF?= <a@b>"));
    }

    #[test]
    fn mailbox_is_read_in_all_its_forms() {
        let read = |value: &str| {
            let (mailbox, is_hidden) = one_mailbox(value.as_bytes())?;
            Some((
                String::from_utf8(mailbox.name.clone()).ok()?,
                mailbox.address(),
                is_hidden,
            ))
        };
        let ann = |name: &str, is_hidden| {
            Some((name.to_owned(), "ann@example.org".to_owned(), is_hidden))
        };
        assert_eq!(read("\"Ann B\" <ann@example.org>"), ann("Ann B", false));
        assert_eq!(read("Ann@example.org"), ann("", false));
        assert_eq!(read("ann at example.org (Ann B)"), ann("Ann B", true));
        for other in ["ann", "a@b, c@d", "<a@b> c", "a b@c", ""] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
