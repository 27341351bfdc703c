//! The note that `embody detach` writes into a part whose content it moved out of the mail (docs/detach.md).
//!
//! The note is the field `X-Embody-Detached`. It contains what else would be unknown: how the body was encoded, the
//! Content-Transfer-Encoding field, and the positions of the fields in the header of a message. With the note, `restore`
//! restores the part byte for byte. Programs that do not support the note treat the part like any other external body.
//!
//! A note is untrusted input. A field that does not have exactly this form is ignored, and its numbers are limited.

use std::collections::HashMap;
use std::fmt::Write as _;

use percent_encoding::{AsciiSet, percent_decode, percent_encode};

use crate::link::url::all_but;
use crate::mime::TransferEncoding;
use crate::mime::exact::{EditManner, FieldText, LONGEST_TAIL};
use crate::mime::header::{Field, Header, has_control_character};
use crate::mime::transfer::{LINE_LIMIT, with_newlines};
use crate::span::{Newline, Span};

pub const NOTE_FIELD: &str = "X-Embody-Detached";

/// Maximum length of the field `X-Embody-Detached` in bytes. Sendmail and Postfix truncate longer fields without a
/// warning, and a truncated note would be useless.
pub const LONGEST_FIELD: usize = 900;

const MOST_PLACES: usize = 64;

const WORDS: [&str; 9] = [
    "sha256", "size", "encoding", "line", "newline", "tail", "cte", "md5", "at",
];

const ENCODING_FIELD: &str = "Content-Transfer-Encoding";

const ESCAPED: AsciiSet = all_but(b"-._:");

/// Returns the Content-Transfer-Encoding field that programs usually write for an encoding, without its line ending. Returns
/// `None` if no field is needed.
pub fn usual_encoding_field(manner: EditManner) -> Option<Vec<u8>> {
    let field = || format!("{ENCODING_FIELD}: {}", word_of(manner)).into_bytes();
    (!matches!(manner, EditManner::Identity { .. })).then(field)
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Claim {
    None,
    Unreadable,
    Note(Box<BodyNote>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BodyNote {
    /// SHA-256 of the content, as 64 lower-case hexadecimal digits.
    pub sha256: String,
    pub size: Option<usize>,
    pub wording: FieldText,
    /// The original Content-Transfer-Encoding field, without the line ending at its end. `None` if there was no such field.
    pub encoding: Option<Vec<u8>>,
    /// True if embody added the Content-MD5 field to the phantom header, the header inside the external-body part.
    pub digest_added: bool,
    /// Positions of the fields that were moved into the phantom header, so that their order can be restored. A position is the
    /// number of other fields between the moved field and Content-Type. It is negative if the moved field was before
    /// Content-Type. Empty if no other field was between them.
    pub places: Vec<i32>,
}

impl BodyNote {
    /// Parses a note. Returns `None` if it is invalid. `newline` is the line ending in the header of the part. Plain text has
    /// the same line ending, unless the note specifies another one.
    pub fn read(value: &[u8], newline: Newline) -> Option<Self> {
        let text = std::str::from_utf8(value)
            .ok()
            .filter(|text| text.len() < 2 * LONGEST_FIELD)?;
        let mut parameters: HashMap<&str, &str> = HashMap::new();
        for parameter in text.split(';') {
            let (name, value) = parameter.trim().split_once('=')?;
            // A later version of embody may add parameters that this version cannot restore, so an unknown parameter makes the
            // note invalid.
            if !WORDS.contains(&name) || parameters.insert(name, value).is_some() {
                return None;
            }
        }
        let said = |name| parameters.get(name).copied();
        let manner = match (said("encoding")?, said("line")) {
            ("base64", Some(line)) => EditManner::Base64 {
                line: number(line, LINE_LIMIT)?,
            },
            ("quoted-printable", None) => EditManner::QuotedPrintable,
            ("identity", None) => EditManner::Identity {
                keeps_line_ends: said("newline").is_some(),
            },
            _ => return None,
        };
        let wording = FieldText {
            manner,
            newline: match said("newline") {
                None => newline,
                Some("lf") => Newline::Lf,
                Some("crlf") => Newline::CrLf,
                Some(_) => return None,
            },
            tail: said("tail").map_or(Some(0), |tail| number(tail, LONGEST_TAIL))?,
        };
        let is_digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        let is_digest = |digits: &&str| digits.len() == 64 && digits.bytes().all(is_digit);
        Some(Self {
            sha256: said("sha256").filter(is_digest)?.to_owned(),
            size: match said("size") {
                None => None,
                Some(size) => Some(number(size, usize::MAX)?),
            },
            encoding: read_encoding(said("cte"), &wording)?,
            wording,
            digest_added: match said("md5") {
                None => false,
                Some("added") => true,
                Some(_) => return None,
            },
            places: said("at").map_or(Some(Vec::new()), read_places)?,
        })
    }

    /// Returns the original Content-Transfer-Encoding field with its line ending. If the field has several lines, all
    /// of them end with `newline`.
    pub fn encoding_field(&self, newline: Newline) -> Option<Vec<u8>> {
        let mut bytes = with_newlines(self.encoding.clone()?, newline);
        bytes.extend_from_slice(newline.bytes());
        Some(bytes)
    }

    pub fn field(&self, newline: Newline) -> Option<Vec<u8>> {
        let mut words = vec![format!("sha256={}", self.sha256)];
        words.extend(self.size.map(|size| format!("size={size}")));
        words.push(format!("encoding={}", word_of(self.wording.manner)));
        if let EditManner::Base64 { line } = self.wording.manner {
            words.push(format!("line={line}"));
        }
        if self.wording.newline != newline {
            words.push(match self.wording.newline {
                Newline::Lf => "newline=lf".to_owned(),
                Newline::CrLf => "newline=crlf".to_owned(),
            });
        }
        if self.wording.tail > 0 {
            words.push(format!("tail={}", self.wording.tail));
        }
        match &self.encoding {
            None => words.push("cte=none".to_owned()),
            usual if *usual == usual_encoding_field(self.wording.manner) => {}
            Some(bytes) => words.push(format!("cte={}", percent_encode(bytes, &ESCAPED))),
        }
        if self.digest_added {
            words.push("md5=added".to_owned());
        }
        if !self.places.is_empty() {
            let places: Vec<String> = self.places.iter().map(i32::to_string).collect();
            words.push(format!("at={}", places.join(",")));
        }
        let field = folded(NOTE_FIELD, &words, newline);
        (field.len() <= LONGEST_FIELD && self.places.len() <= MOST_PLACES).then_some(field)
    }
}

/// Writes a field with parameters separated by `;`. The line is folded before a parameter that would make it too long.
fn folded(name: &str, words: &[String], newline: Newline) -> Vec<u8> {
    const COLUMNS: usize = 76;
    let ending = String::from_utf8_lossy(newline.bytes());
    let mut field = format!("{name}:");
    let mut column = field.len();
    for (index, word) in words.iter().enumerate() {
        let divider = if index + 1 < words.len() { ";" } else { "" };
        if column + 1 + word.len() + divider.len() > COLUMNS && index > 0 {
            field.push_str(&ending);
            column = 0;
        }
        let _ = write!(field, " {word}{divider}");
        column += 1 + word.len() + divider.len();
    }
    field.push_str(&ending);
    field.into_bytes()
}

fn word_of(manner: EditManner) -> &'static str {
    match manner {
        EditManner::Base64 { .. } => "base64",
        EditManner::QuotedPrintable => "quoted-printable",
        EditManner::Identity { .. } => "identity",
    }
}

fn number(digits: &str, most: usize) -> Option<usize> {
    let is_plain = digits.bytes().all(|digit| digit.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| is_plain)?;
    (number <= most).then_some(number)
}

/// Reads the Content-Transfer-Encoding field in a note. The note is untrusted, and the field is inserted into a header, so it
/// must be exactly one such field.
fn read_encoding(written: Option<&str>, wording: &FieldText) -> Option<Option<Vec<u8>>> {
    let (encoding, field) = match written {
        None => return usual_encoding_field(wording.manner).map(Some),
        Some("none") => (TransferEncoding::SevenBit, None),
        Some(written) => {
            let field: Vec<u8> = percent_decode(written.as_bytes()).collect();
            (encoding_of(&field)?, Some(field))
        }
    };
    wording.is_of(encoding).then_some(field)
}

/// Returns the transfer encoding if `field` is exactly one Content-Transfer-Encoding field without its last line ending.
/// Returns `None` for any other text.
fn encoding_of(field: &[u8]) -> Option<TransferEncoding> {
    let whole = Span::new(0, field.len());
    let header = Header::read(field, whole, LONGEST_FIELD);
    let only: Vec<Field> = header.fields.iter(field).collect();
    let [only] = only.as_slice() else { return None };
    let is_one =
        only.is(field, ENCODING_FIELD) && only.whole == whole && header.separator.is_empty();
    let is_ended = field.ends_with(b"\n") || field.ends_with(b"\r");
    let is_clean = !has_control_character(field);
    (is_one && !is_ended && is_clean).then(|| TransferEncoding::of(Some(only.value.of(field))))
}

/// Returns the value of [`BodyNote::encoding`] for a part with this Content-Transfer-Encoding field. The outer `None`
/// means that a note cannot represent the field, so the part cannot be restored exactly. `newline` is the line ending
/// in the header.
pub fn noted_encoding_field(
    original: &[u8],
    field: Option<&Field>,
    wording: &FieldText,
    newline: Newline,
) -> Option<Option<Vec<u8>>> {
    let Some(field) = field else {
        return Some(None);
    };
    let bytes = field.whole.of(original).strip_suffix(newline.bytes())?;
    let is_noted = wording.is_of(encoding_of(bytes)?) && newline.is_throughout(bytes);
    is_noted.then(|| Some(bytes.to_vec()))
}

fn read_places(text: &str) -> Option<Vec<i32>> {
    let places: Vec<i32> = text
        .split(',')
        .map(|place| place.parse().ok())
        .collect::<Option<_>>()?;
    (places.len() <= MOST_PLACES && places.is_sorted()).then_some(places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn notes() -> impl Strategy<Value = BodyNote> {
        let manner = prop_oneof![
            (0_usize..=LINE_LIMIT).prop_map(|line| EditManner::Base64 { line }),
            Just(EditManner::QuotedPrintable),
            any::<bool>().prop_map(|keeps_line_ends| EditManner::Identity { keeps_line_ends }),
        ];
        let places = prop::collection::vec(-40_i32..40, 0..9).prop_map(|mut places| {
            places.sort_unstable();
            places
        });
        (
            "[0-9a-f]{64}",
            manner,
            any::<bool>(),
            0_usize..=LONGEST_TAIL,
            any::<bool>(),
            places,
            0_u8..2,
        )
            .prop_map(|(sha256, manner, crlf, tail, digest_added, places, odd)| {
                let name = match manner {
                    EditManner::Identity { .. } => "8bit",
                    manner => word_of(manner),
                };
                let odd_field = format!("content-Transfer-encoding :\r\n\t{name} (it; is 100%)");
                let usual = usual_encoding_field(manner).filter(|_| odd == 0);
                BodyNote {
                    sha256,
                    size: (odd == 0).then_some(tail),
                    wording: FieldText {
                        manner,
                        newline: if crlf { Newline::CrLf } else { Newline::Lf },
                        tail,
                    },
                    encoding: Some(usual.unwrap_or(odd_field.into_bytes())),
                    digest_added,
                    places,
                }
            })
    }

    fn value(field: &[u8]) -> &[u8] {
        &field[NOTE_FIELD.len() + 1..]
    }

    proptest! {
        #[test]
        fn a_note_is_read_as_it_was_written(note in notes(), crlf: bool) {
            let newline = if crlf { Newline::CrLf } else { Newline::Lf };
            let mut note = note;
            // The note records the line endings of the body only if they differ from those of the header, so the
            // generator must follow this rule. Otherwise the note would not survive the round trip.
            if let EditManner::Identity { keeps_line_ends } = note.wording.manner {
                note.wording.newline = if keeps_line_ends { newline.other() } else { newline };
            }
            let field = note.field(newline).expect("it is short");
            let text = String::from_utf8_lossy(&field);
            prop_assert!(text.lines().all(|line| line.len() <= 998));
            prop_assert_eq!(BodyNote::read(value(&field), newline), Some(note), "{}", text);
        }

        #[test]
        fn note_parsed_from_any_text_stays_within_the_length_limits(text in "(sha256=[0-9a-f]{64}|encoding=(base64|identity|x)|line=-?[0-9]{1,5}|tail=[0-9]{1,7}|cte=[A-Za-z%0-9:-]{0,40}|cte=none|at=-?[0-9]{1,12}|;|; | ){0,12}") {
            if let Some(note) = BodyNote::read(text.as_bytes(), Newline::Lf) {
                prop_assert!(note.wording.tail <= LONGEST_TAIL);
                prop_assert!(note.encoding_field(Newline::Lf).is_none_or(|bytes| bytes.len() < 2000));
            }
        }
    }

    #[test]
    fn what_is_not_exactly_a_note_is_none() {
        let digest = "0".repeat(64);
        let good = format!("sha256={digest}; encoding=base64; line=76");
        assert!(BodyNote::read(good.as_bytes(), Newline::Lf).is_some());
        for bad in [
            "".to_owned(),
            good.replace("76", "999"),
            good.replace("76", "-1"),
            good.replace("76", "+76"),
            good.replace('0', "O"),
            good.replace("; line=76", ""),
            good.replace("base64", "identity"),
            format!("{good}; line=76"),
            format!("{good}; tail=1001"),
            format!("{good}; size=-1"),
            format!("{good}; size=99999999999999999999999"),
            format!("{good}; more=1"),
            format!("{good}; at=2,1"),
            format!("{good}; newline=cr"),
            format!("{good}; cte=none"),
            format!("{good}; cte=Content-Transfer-Encoding: 8bit"),
            format!("{good}; cte=Content-Transfer-Encoding: base64%0ABcc: x"),
            format!("{good}; cte=Content-Transfer-Encoding: base64%0A%0Abody"),
            format!("{good}; cte=Content-Transfer-Encoding: base64%0D(%0D"),
            format!("{good}; cte=Bcc: base64"),
            format!("{good}; cte="),
        ] {
            assert_eq!(BodyNote::read(bad.as_bytes(), Newline::Lf), None, "{bad}");
        }
    }
}
