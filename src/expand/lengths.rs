//! Content-Length and Lines of a message that changed are made true.
//!
//! No document of mail defines them, but programs that keep mailboxes write and believe them. A
//! mailbox corrects them itself, because it may quote lines of the body besides.

use std::collections::HashSet;

use crate::edit::{Edit, Edits, Group};
use crate::mime::{Field, Header, PartId, Tree};
use crate::span::Span;

const CONTENT_LENGTH: &str = "Content-Length";
const LINES: &str = "Lines";

/// Whether a field says how long a body is.
pub(super) fn is_length(original: &[u8], field: &Field) -> bool {
    field.is(original, CONTENT_LENGTH) || field.is(original, LINES)
}

/// The removal of what is said of the bodies around changed parts and is not true any more: their
/// lengths, and digests, which RFC 1864 §2 does not know there. `is_message` tells that the tree is that of
/// the message handed on, whose own lengths are corrected when all is done.
pub(super) fn untrue_around(
    original: &[u8],
    tree: &Tree,
    changed: impl Iterator<Item = PartId>,
    is_message: bool,
) -> Group {
    let mut around: HashSet<PartId> = HashSet::new();
    for part in changed {
        // Whoever is in the set has those around it there, too.
        for above in tree.ancestors(part) {
            if !around.insert(above) {
                break;
            }
        }
    }
    let mut around: Vec<PartId> = around.into_iter().collect();
    around.sort_unstable();
    let mut group = Group::new();
    for part in around {
        let is_corrected = is_message && part == PartId::ROOT;
        let fields = tree.fields(part).iter(original);
        let untrue = fields.filter(|field| {
            field.is(original, "Content-MD5") || (!is_corrected && is_length(original, field))
        });
        group.extend(untrue.map(|field| Edit::remove(field.whole)));
    }
    group
}

/// Which of the two fields are corrected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Which {
    /// All.
    All,
    /// Those that were true: the others are kept, so that what is detached and restored is what it was.
    True,
}

/// The edits, with the two fields of the message's header made true.
pub(crate) fn corrected(message: &[u8], edits: Edits, which: Which) -> Edits {
    // Content brings none of them: nothing has to be put together where there was none.
    let fields = length_fields(message);
    if fields.is_empty() {
        return edits;
    }
    let before = Counts::of(message);
    let output = edits.splice(message);
    let count = |bytes: &[u8]| memchr::memchr_iter(b'\n', bytes).count();
    let all_lines: usize = output.chunks().iter().map(|chunk| count(chunk)).sum();
    let length = output.len();
    let output = output.front(|front| header_of(front).body_start());
    let body = header_of(&output).body_start();
    let header_lines = count(output.get(..body).unwrap_or_default());
    let counts = Counts {
        octets: length.saturating_sub(body).to_string(),
        lines: (all_lines - header_lines).to_string(),
    };
    let mut group = Group::new();
    for (index, field) in length_fields(&output).into_iter().enumerate() {
        let count = counts.count(&output, &field);
        let is_now = says(&output, &field, &count);
        match which {
            Which::All if field.value.of(&output).trim_ascii() != count.as_bytes() => {
                group.push(Edit::replace(field.value, format!(" {count}")));
            }
            Which::True
                if !is_now
                    && fields
                        .get(index)
                        .is_some_and(|field| before.is_true(message, field)) =>
            {
                group.push(Edit::replace(digits(&output, &field), count));
            }
            _ => {}
        }
    }
    // Different fields do not overlap.
    edits.then(message.len(), Edits::of(group).unwrap_or_default())
}

/// Whether [`corrected`] gives the fields of `message` back for what these edits make of it: a value that was
/// wrong must not have become right by chance.
#[cfg(feature = "cli")]
pub(crate) fn is_reversible(message: &[u8], edits: &Edits) -> bool {
    if length_fields(message).is_empty() {
        return true;
    }
    let output = edits.splice(message).into_bytes();
    let is_true = |bytes: &[u8]| -> Vec<bool> {
        let fields = length_fields(bytes);
        if fields.is_empty() {
            return Vec::new();
        }
        let counts = Counts::of(bytes);
        fields
            .iter()
            .map(|field| counts.is_true(bytes, field))
            .collect()
    };
    is_true(message) == is_true(&output)
}

/// What is true of a body.
struct Counts {
    octets: String,
    lines: String,
}

impl Counts {
    fn of(message: &[u8]) -> Self {
        let body = header_of(message).body_start();
        let body = message.get(body..).unwrap_or_default();
        Self {
            octets: body.len().to_string(),
            lines: memchr::memchr_iter(b'\n', body).count().to_string(),
        }
    }

    /// What a field should say.
    fn count(&self, original: &[u8], field: &Field) -> String {
        match field.is(original, CONTENT_LENGTH) {
            true => self.octets.clone(),
            false => self.lines.clone(),
        }
    }

    fn is_true(&self, original: &[u8], field: &Field) -> bool {
        says(original, field, &self.count(original, field))
    }
}

/// Whether a field says this number, in the digits in which it is written here.
fn says(original: &[u8], field: &Field, count: &str) -> bool {
    digits(original, field).of(original) == count.as_bytes()
}

/// A value without the blanks around it.
fn digits(original: &[u8], field: &Field) -> Span {
    let value = field.value.of(original);
    let start = field.value.start + (value.len() - value.trim_ascii_start().len());
    Span::new(start, start + value.trim_ascii().len())
}

fn header_of(message: &[u8]) -> Header {
    Header::of_message(message, usize::MAX)
}

fn length_fields(message: &[u8]) -> Vec<Field> {
    let fields = header_of(message).fields;
    let lengths = fields
        .iter(message)
        .filter(|field| is_length(message, field));
    lengths.collect()
}
