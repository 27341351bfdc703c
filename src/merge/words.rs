//! Reads and adds keywords and labels in the header of a message. The kept copy of a mail gets the keywords of all
//! copies.

use std::borrow::Cow;
use std::collections::HashSet;

use base64::Engine as _;
use serde::{Deserialize, Serialize};

use crate::mailbox::{Flags, Keywords, MessageFlags};
use crate::mime::Header;
use crate::mime::encoded_words::decoded_words;
use crate::mime::header::unfold;
use crate::mime::labels::{labels, written_label};
use crate::span::{Newline, Span, starts_like};

/// Names of the fields in which mail programs store keywords and labels. The second value is true if commas separate
/// the words of the field, and false if blanks do.
const FIELDS: [(&str, bool); 4] = [
    ("X-Keywords", false),
    ("X-Mozilla-Keys", false),
    ("X-Gmail-Labels", true),
    ("X-Label", true),
];

/// Start of the names of the fields in which Thunderbird stores flags.
const STATUS: &str = "X-Mozilla-Status";

const LONGEST_HEADER: usize = 1 << 20;

/// Maximum number of words in one field. Gmail allows this number of labels for a whole account.
const MOST: usize = 10_000;

/// Maximum length of the text in one encoded word, in bytes. In base64, it has 56 characters, and the encoded word
/// around it may have 75 (RFC 2047 section 2).
const LONGEST_ENCODED: usize = 42;

/// The words of each field in [`FIELDS`], and the keywords that a mailbox stores outside of the header.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct MailWords {
    fields: [Vec<String>; 4],
    keywords: Vec<String>,
    /// Flags and keywords in fields of Thunderbird that follow other fields: the bits of [`Flags`], and names. They count
    /// only if copies are merged, so that the kept copy has the flags of all of them.
    #[serde(default)]
    further: (u8, Vec<String>),
}

/// Returns the labels that the copy `new` of a mail lacks and `old` has, in words for a report: `label Work`.
pub(crate) fn lost_labels(old: &[u8], new: &[u8]) -> Vec<String> {
    let (old, new) = (MailWords::of(old), MailWords::of(new));
    let mut lost = Vec::new();
    for ((old, new), (_, is_labels)) in old.fields.iter().zip(&new.fields).zip(FIELDS) {
        if is_labels {
            let new: HashSet<&String> = new.iter().collect();
            let absent = old.iter().filter(|label| !new.contains(label));
            lost.extend(absent.map(|label| format!("label {label}")));
        }
    }
    lost
}

impl MailWords {
    pub(super) fn of(content: &[u8]) -> Self {
        // Most messages have no such field, and this search is faster than parsing the header.
        let [one, two, three, four] = FIELDS.map(|(name, _)| name);
        if !contains(content, &[one, two, three, four, STATUS]) {
            return Self::default();
        }
        let header = Header::of_message(content, LONGEST_HEADER);
        let mut words = Self::default();
        for (own, (name, by_comma)) in words.fields.iter_mut().zip(FIELDS) {
            let fields = header.fields.iter(content);
            for field in fields.filter(|field| field.is(content, name)) {
                unite(own, words_in(field.value.of(content), by_comma));
            }
        }
        if contains(content, &[STATUS]) {
            let further = MessageFlags::of_all_fields(content, false);
            let names = further.keywords.names().filter(|name| !name.contains(' '));
            let flags = further.system.without_deleted().to_byte();
            words.further = (flags, names.map(str::to_owned).collect());
        }
        words
    }

    /// Adds the keywords that the mailbox stores for the message.
    pub(super) fn with_keywords(mut self, keywords: &Keywords) -> Self {
        self.keywords.extend(keywords.names().map(str::to_owned));
        self
    }

    /// Returns the flags and keywords in fields of Thunderbird that follow other fields, where no program reads them.
    pub(super) fn further(&self) -> MessageFlags {
        let (flags, names) = &self.further;
        let keywords = Keywords::of_names(names.iter().map(String::as_str));
        MessageFlags::new(Flags::of_byte(*flags), keywords)
    }

    /// Returns the keywords that were added with [`with_keywords`](Self::with_keywords).
    pub(super) fn keywords(&self) -> Keywords {
        Keywords::of_names(self.keywords.iter().map(String::as_str))
    }

    pub(super) fn is_empty(&self) -> bool {
        let (flags, names) = &self.further;
        let has_none = *flags == 0 && names.is_empty();
        self.fields.iter().all(Vec::is_empty) && self.keywords.is_empty() && has_none
    }

    pub(super) fn unite(&mut self, other: Self) {
        for (own, others) in self.fields.iter_mut().zip(other.fields) {
            unite(own, others);
        }
        unite(&mut self.keywords, other.keywords);
        self.further.0 |= other.further.0;
        unite(&mut self.further.1, other.further.1);
    }

    /// Adds the missing words to the fields of the message. No word is removed.
    pub(super) fn put_into<'c>(&self, content: &'c [u8]) -> Cow<'c, [u8]> {
        let there = Self::of(content);
        let header = Header::of_message(content, LONGEST_HEADER);
        let newline = Newline::of_first_line(content);
        let mut edits: Vec<(Span, Vec<u8>)> = Vec::new();
        // Thunderbird reads X-Mozilla-Keys only if it is before the other header fields, so it is added at the start of
        // the header. All other fields are added at its end.
        let (mut fields_before, mut fields_behind) = (Vec::new(), Vec::new());
        for ((words, there), (name, by_comma)) in self.fields.iter().zip(&there.fields).zip(FIELDS)
        {
            let missing: Vec<String> = words
                .iter()
                .filter(|word| !there.contains(word))
                .cloned()
                .collect();
            if missing.is_empty() {
                continue;
            }
            match header.fields.first(content, name) {
                Some(field) => {
                    let value = field.value.of(content).trim_ascii_end();
                    let end = field.value.start + value.len();
                    edits.push(match extended(value, &missing, by_comma) {
                        FieldChange::More(text) => (Span::empty_at(end), text.into_bytes()),
                        FieldChange::Value(text) => {
                            (Span::new(field.value.start, end), text.into_bytes())
                        }
                    });
                }
                None => {
                    let fields = match name {
                        "X-Mozilla-Keys" => &mut fields_before,
                        _ => &mut fields_behind,
                    };
                    let value = new_value(&missing, by_comma);
                    fields.extend(format!("{name}:{value}").into_bytes());
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
        edits.push((Span::empty_at(header.span.start), fields_before));
        edits.push((Span::empty_at(header.agreed_end), fields_behind));
        edits.sort_by_key(|(span, _)| span.start);
        let mut out = Vec::with_capacity(content.len() + 200);
        let mut copied = 0;
        for (span, text) in edits {
            out.extend_from_slice(content.get(copied..span.start).unwrap_or_default());
            out.extend(text);
            copied = span.end;
        }
        out.extend_from_slice(content.get(copied..).unwrap_or_default());
        Cow::Owned(out)
    }
}

/// Returns whether one of these names of fields, which begin with `X-`, occurs anywhere in the message.
fn contains(content: &[u8], names: &[&str]) -> bool {
    memchr::memchr_iter(b'-', content).any(|at| {
        let start = at.checked_sub(1).and_then(|start| content.get(start..));
        let is_at = |start: &[u8]| names.iter().any(|name| starts_like(start, name.as_bytes()));
        start.is_some_and(is_at)
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

/// Returns the words in the value of a field.
fn words_in(value: &[u8], by_comma: bool) -> Vec<String> {
    let text = decoded_words(&unfold(value));
    if by_comma {
        labels(&text, false)
    } else {
        text.split_whitespace().map(str::to_owned).collect()
    }
}

/// A change of the value of a field, to which words are added.
enum FieldChange {
    /// Text to be added at the end of the value.
    More(String),
    /// The new value.
    Value(String),
}

/// Appends words to a value. The old value is kept as it is, unless the words could then not be read back. For example,
/// the blank between two encoded words is not part of the text (RFC 2047 section 6.2), and an unbalanced quotation mark
/// in an old label could pair up with one in a new label.
fn extended(value: &[u8], missing: &[String], by_comma: bool) -> FieldChange {
    let mut all = words_in(value, by_comma);
    let start = match (all.is_empty(), by_comma) {
        (true, _) | (_, false) => " ",
        (_, true) => ",",
    };
    let more = format!("{start}{}", each_written(missing, by_comma));
    all.extend_from_slice(missing);
    if words_in(&[value, more.as_bytes()].concat(), by_comma) == all {
        FieldChange::More(more)
    } else {
        FieldChange::Value(new_value(&all, by_comma))
    }
}

/// Returns a value that consists of these words.
fn new_value(words: &[String], by_comma: bool) -> String {
    let each = each_written(words, by_comma);
    if words_in(each.as_bytes(), by_comma) == words {
        format!(" {each}")
    } else {
        format!(" {}", encoded(&as_text(words, by_comma)))
    }
}

/// Encodes each word on its own, if it needs encoding, so that all other words stay readable.
fn each_written(words: &[String], by_comma: bool) -> String {
    let words = words.iter().map(|word| {
        let text = as_text(std::slice::from_ref(word), by_comma);
        let is_plain = text.is_ascii() && !text.contains(char::is_control) && !text.contains("=?");
        if is_plain { text } else { encoded(&text) }
    });
    let between = if by_comma { "," } else { " " };
    words.collect::<Vec<_>>().join(between)
}

/// Returns the words as the decoded text of a field.
fn as_text(words: &[String], by_comma: bool) -> String {
    if by_comma {
        let labels = words.iter().map(|word| written_label(word));
        labels.collect::<Vec<_>>().join(",")
    } else {
        words.join(" ")
    }
}

/// Returns the text in encoded words (RFC 2047).
fn encoded(text: &str) -> String {
    const BYTE_ORDER_MARK: char = '\u{feff}';
    let mut words = Vec::new();
    let mut piece = String::new();
    // Decoders remove a byte order mark from the start of a text. If the text itself starts with this character, another one is
    // written before it.
    let mark = text.starts_with(BYTE_ORDER_MARK).then_some(BYTE_ORDER_MARK);
    for symbol in mark.into_iter().chain(text.chars()) {
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keywords_of_repeated_fields_are_added_to_a_message_without_a_body() {
        let words = MailWords::of(b"X-Keywords: one\nX-Keywords: two\n\nx");
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
        let mut words = MailWords::of(one.as_bytes());
        words.unite(MailWords::of(other.as_bytes()));
        let united = words.put_into(one.as_bytes()).into_owned();
        let text = String::from_utf8(united.clone()).unwrap();
        assert_eq!(
            text,
            "X-Mozilla-Keys: t1\nSubject: a\nX-Keywords: $Label1 x z\nX-Gmail-Labels: =?UTF-8?Q?Bo=C3=AEte,Work?=,\"a, b\",=?UTF-8?B?w7xiZXI=?=\n\
             \nX-Keywords: y\n"
        );
        assert_eq!(MailWords::of(&united), words);
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
            let words = MailWords {
                fields: [vec![], vec![], vec![word.to_owned()], vec![]],
                ..MailWords::default()
            };
            let content = words.put_into(b"Subject: x\r\n\r\ny\r\n").into_owned();
            assert_eq!(
                MailWords::of(&content),
                words,
                "{}",
                String::from_utf8_lossy(&content)
            );
            assert!(content.ends_with(b"\r\n\r\ny\r\n"));
        }
        assert!(MailWords::of(b"").is_empty());
        assert!(!MailWords::of(b"x-gMAIL-labels: a\n\n").is_empty());
    }
    #[test]
    fn labels_with_quotation_marks_stay_labels_of_their_own() {
        for (one, other, united) in [
            ("Work", "12\" vinyl,Play", "Work,12\" vinyl,Play"),
            ("12\" vinyl,Play", "Work", "12\" vinyl,Play,Work"),
            (
                "12\" vinyl",
                "7\" single,\"a,b\"",
                "12\" vinyl,7\" single,\"a,b\"",
            ),
            ("\"never closed", "\"a,b\"", "\"never closed,\"a,b\""),
            // Unless the old label is requoted, the two would be read as one label.
            ("\"x", "y\"", "\"\\\"x\",y\""),
            (
                "=?UTF-8?Q?=C3=A9_12=22?=",
                "b",
                "=?UTF-8?Q?=C3=A9_12=22?=,b",
            ),
        ] {
            let field = |labels: &str| format!("X-Gmail-Labels: {labels}\n\nx\n");
            let mut words = MailWords::of(field(one).as_bytes());
            words.unite(MailWords::of(field(other).as_bytes()));
            let content = words.put_into(field(one).as_bytes()).into_owned();
            assert_eq!(String::from_utf8_lossy(&content), field(united));
            assert_eq!(MailWords::of(&content), words);
        }
    }

    proptest! {
        #[test]
        fn words_of_two_copies_are_all_in_the_kept_copy(
            values in prop::collection::vec(
                "([a-b,\"\\\\ é\u{a0}]{0,9}|=\\?utf-8\\?q\\?[a,\"_]{0,4}(=C3=A9)?\\?=| ,|\n )*", 8,
            ),
        ) {
            let copy = |values: &[String]| {
                let named = FIELDS.iter().zip(values);
                let fields: Vec<String> = named.map(|((name, _), value)| format!("{name}: {value}\n")).collect();
                format!("{}Subject: a\n\nx\n", fields.concat())
            };
            let (one, other) = (copy(&values[..4]), copy(&values[4..]));
            let mut words = MailWords::of(one.as_bytes());
            words.unite(MailWords::of(other.as_bytes()));
            for copy in [one.as_str(), "Subject: a\n\nx\n"] {
                let united = words.put_into(copy.as_bytes()).into_owned();
                prop_assert_eq!(&MailWords::of(&united), &words, "{}", String::from_utf8_lossy(&united));
                prop_assert!(matches!(words.put_into(&united), Cow::Borrowed(_)));
                prop_assert!(united.ends_with(b"\nSubject: a\n\nx\n") || copy != one);
            }
        }

        #[test]
        fn any_words_are_read_back(words in prop::collection::vec("[^\\s]([^\r\n]{0,60}[^\\s])?", 0..9)) {
            for (field, (_, by_comma)) in FIELDS.iter().enumerate() {
                let mut written = MailWords::default();
                let words = words.iter().filter(|word| *by_comma || !word.contains(char::is_whitespace));
                unite(&mut written.fields[field], words.map(|word| word.trim().to_owned()).collect());
                let content = written.put_into(b"Subject: a\r\n\r\nx").into_owned();
                prop_assert_eq!(MailWords::of(&content), written);
            }
        }
    }
}
