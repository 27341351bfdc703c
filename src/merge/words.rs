//! Reads and adds keywords and labels in the header of a message. The kept copy of a mail gets the keywords of all
//! copies.

use std::borrow::Cow;
use std::collections::HashSet;

use base64::Engine as _;
use serde::{Deserialize, Serialize};

use crate::mime::Header;
use crate::mime::encoded_words::decoded_words;
use crate::mime::header::unfold;
use crate::span::{Newline, starts_like};

/// Names of the fields in which mail programs store keywords and labels. The second value is true if commas separate
/// the words of the field, and false if blanks do.
const FIELDS: [(&str, bool); 4] = [
    ("X-Keywords", false),
    ("X-Mozilla-Keys", false),
    ("X-Gmail-Labels", true),
    ("X-Label", true),
];

const LONGEST_HEADER: usize = 1 << 20;

/// Maximum number of words in one field. Gmail allows this number of labels for a whole account.
const MOST: usize = 10_000;

/// Maximum length of the text in one encoded word, in bytes. In base64, it has 56 characters, and the encoded word
/// around it may have 75 (RFC 2047 section 2).
const LONGEST_ENCODED: usize = 42;

/// The words of each field in [`FIELDS`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Words([Vec<String>; 4]);

impl Words {
    pub(super) fn of(content: &[u8]) -> Self {
        // Most messages have no such field, and this search is faster than parsing the header.
        if !contains_name(content) {
            return Self::default();
        }
        let header = Header::of_message(content, LONGEST_HEADER);
        let mut words = Self::default();
        for (own, (name, by_comma)) in words.0.iter_mut().zip(FIELDS) {
            let fields = header.fields.iter(content);
            for field in fields.filter(|field| field.is(content, name)) {
                let text = decoded_words(&unfold(field.value.of(content)));
                let found: Vec<String> = if by_comma {
                    divided(&text)
                } else {
                    text.split_whitespace().map(str::to_owned).collect()
                };
                unite(own, found);
            }
        }
        words
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(Vec::is_empty)
    }

    pub(super) fn unite(&mut self, other: Self) {
        for (own, others) in self.0.iter_mut().zip(other.0) {
            unite(own, others);
        }
    }

    /// Adds the missing words to the fields of the message. No word is removed.
    pub(super) fn put_into<'c>(&self, content: &'c [u8]) -> Cow<'c, [u8]> {
        let there = Self::of(content);
        let header = Header::of_message(content, LONGEST_HEADER);
        let newline = Newline::of_first_line(content);
        let mut edits: Vec<(usize, Vec<u8>)> = Vec::new();
        // Thunderbird reads X-Mozilla-Keys only if it is before the other header fields, so it is added at the start of
        // the header. All other fields are added at its end.
        let (mut fields_before, mut fields_behind) = (Vec::new(), Vec::new());
        for ((words, there), (name, by_comma)) in self.0.iter().zip(&there.0).zip(FIELDS) {
            let missing: Vec<String> = words
                .iter()
                .filter(|word| !there.contains(word))
                .map(|word| written(word, by_comma))
                .collect();
            if missing.is_empty() {
                continue;
            }
            let between = if by_comma { "," } else { " " };
            let text = missing.join(between);
            match header.fields.first(content, name) {
                Some(field) => {
                    let value = field.value.of(content).trim_ascii_end();
                    let start = if there.is_empty() { " " } else { between };
                    let at = field.value.start + value.len();
                    edits.push((at, format!("{start}{text}").into_bytes()));
                }
                None => {
                    let fields = match name {
                        "X-Mozilla-Keys" => &mut fields_before,
                        _ => &mut fields_behind,
                    };
                    fields.extend(format!("{name}: {text}").into_bytes());
                    fields.extend_from_slice(newline.bytes());
                }
            }
        }
        if edits.is_empty() && fields_before.is_empty() && fields_behind.is_empty() {
            return Cow::Borrowed(content);
        }
        let is_open = content
            .get(..header.agreed_end)
            .and_then(<[u8]>::last)
            .is_some_and(|last| *last != b'\n' && *last != b'\r');
        if is_open && !fields_behind.is_empty() {
            // The message ends within its last header line. A line ending is added, so that a new field starts on its
            // own line.
            fields_behind.splice(0..0, newline.bytes().iter().copied());
        }
        edits.push((header.span.start, fields_before));
        edits.push((header.agreed_end, fields_behind));
        edits.sort_by_key(|(at, _)| *at);
        let mut out = Vec::with_capacity(content.len() + 200);
        let mut copied = 0;
        for (at, text) in edits {
            out.extend_from_slice(content.get(copied..at).unwrap_or_default());
            out.extend(text);
            copied = at;
        }
        out.extend_from_slice(content.get(copied..).unwrap_or_default());
        Cow::Owned(out)
    }
}

/// Returns whether the name of a field in [`FIELDS`] occurs anywhere in the message.
fn contains_name(content: &[u8]) -> bool {
    memchr::memchr_iter(b'-', content).any(|at| {
        let start = at.checked_sub(1).and_then(|start| content.get(start..));
        let mut names = FIELDS.iter().map(|(name, _)| name.as_bytes());
        start.is_some_and(|start| names.any(|name| starts_like(start, name)))
    })
}

fn unite(own: &mut Vec<String>, others: Vec<String>) {
    let mut known: HashSet<String> = own.iter().cloned().collect();
    for word in others {
        if own.len() < MOST && known.insert(word.clone()) {
            own.push(word);
        }
    }
}

/// Returns the words between commas. A word in quotation marks can contain commas.
fn divided(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut is_quoted = false;
    for symbol in text.chars().chain([',']) {
        match symbol {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => {
                let trimmed = word.trim();
                if !trimmed.is_empty() {
                    words.push(trimmed.to_owned());
                }
                word.clear();
            }
            symbol => word.push(symbol),
        }
    }
    words
}

fn written(word: &str, by_comma: bool) -> String {
    let is_plain = word.is_ascii() && !word.contains(char::is_control) && !word.contains("=?");
    if is_plain {
        return if by_comma && word.contains(',') {
            format!("\"{word}\"")
        } else {
            word.to_owned()
        };
    }
    let text = if by_comma && word.contains(',') {
        format!("\"{word}\"")
    } else {
        word.to_owned()
    };
    let mut words = Vec::new();
    let mut piece = String::new();
    for symbol in text.chars() {
        if piece.len() + symbol.len_utf8() > LONGEST_ENCODED {
            words.push(std::mem::take(&mut piece));
        }
        piece.push(symbol);
    }
    words.push(piece);
    let encoded = words.iter().map(|piece| {
        let base64 = base64::engine::general_purpose::STANDARD.encode(piece);
        format!("=?UTF-8?B?{base64}?=")
    });
    encoded.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_of_repeated_fields_are_added_to_a_message_without_a_body() {
        let words = Words::of(b"X-Keywords: one\nX-Keywords: two\n\nx");
        for (content, expected) in [
            ("Subject: x", "Subject: x\nX-Keywords: one two\n"),
            ("Subject: x\n", "Subject: x\nX-Keywords: one two\n"),
        ] {
            let made = words.put_into(content.as_bytes()).into_owned();
            assert_eq!(String::from_utf8(made).unwrap(), expected);
        }
    }

    #[test]
    fn keywords_and_labels_of_copies_are_united_in_the_kept_copy() {
        let one = "Subject: a\nX-Keywords: $Label1 x\nX-Gmail-Labels: =?UTF-8?Q?Bo=C3=AEte,Work?=\n\nX-Keywords: y\n";
        let other = "X-Gmail-Labels: Work,\"a, b\",=?UTF-8?B?w7xiZXI=?=\nX-Keywords: z $Label1\nX-Mozilla-Keys: t1\n\nx";
        let mut words = Words::of(one.as_bytes());
        words.unite(Words::of(other.as_bytes()));
        let united = words.put_into(one.as_bytes()).into_owned();
        let text = String::from_utf8(united.clone()).unwrap();
        assert_eq!(
            text,
            "X-Mozilla-Keys: t1\nSubject: a\nX-Keywords: $Label1 x z\nX-Gmail-Labels: =?UTF-8?Q?Bo=C3=AEte,Work?=,\"a, b\",=?UTF-8?B?w7xiZXI=?=\n\
             \nX-Keywords: y\n"
        );
        assert_eq!(Words::of(&united), words);
        assert!(matches!(words.put_into(&united), Cow::Borrowed(_)));
    }

    #[test]
    fn labels_with_any_text_are_read_back_unchanged() {
        for word in [
            "über, \u{1f600} und mehr als vierzig Bytes in einem Wort",
            "=?x",
            "a,b",
            "plain",
        ] {
            let words = Words([vec![], vec![], vec![word.to_owned()], vec![]]);
            let content = words.put_into(b"Subject: x\r\n\r\ny\r\n").into_owned();
            assert_eq!(
                Words::of(&content),
                words,
                "{}",
                String::from_utf8_lossy(&content)
            );
            assert!(content.ends_with(b"\r\n\r\ny\r\n"));
        }
        assert!(Words::of(b"").is_empty());
        assert!(!Words::of(b"x-gMAIL-labels: a\n\n").is_empty());
    }
}
