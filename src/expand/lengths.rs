//! Content-Length and Lines of a message that changed are made true.
//!
//! No document of mail defines them, but programs that keep mailboxes write and believe them. A
//! mailbox corrects them itself, because it may quote lines of the body besides.

use std::collections::HashSet;

use crate::edit::{Edit, Edits, Group};
use crate::mime::header::{Front, Header};
use crate::mime::{Field, PartId, Tree};
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
    if length_fields(message).is_empty() {
        return edits;
    }
    let output = edits.splice(message).into_bytes();
    let before = counts(message);
    let [octets, lines] = counts(&output);
    let mut group = Group::new();
    for field in length_fields(&output) {
        let is_octets = field.is(&output, CONTENT_LENGTH);
        let value = if is_octets { &octets } else { &lines };
        let was = if is_octets { &before[0] } else { &before[1] };
        let is_true = field.value.of(&output) == was.as_bytes();
        if which == Which::True && !is_true {
            continue;
        }
        if field.value.of(&output).trim_ascii() != value.trim_start().as_bytes() {
            group.push(Edit::replace(field.value, value.as_bytes()));
        }
    }
    drop(output);
    let mut corrections = Edits::new();
    // Different fields do not overlap.
    let _ = corrections.add(group);
    edits.then(message.len(), corrections)
}

/// Whether [`corrected`] gives the fields of `message` back for `output`, which was made of it: a value that was
/// wrong must not have become right by chance.
#[cfg(feature = "cli")]
pub(crate) fn is_reversible(message: &[u8], output: &[u8]) -> bool {
    let is_true = |bytes: &[u8]| -> Vec<bool> {
        let fields = length_fields(bytes);
        if fields.is_empty() {
            return Vec::new();
        }
        let [octets, lines] = counts(bytes);
        let is_true = |field: &Field| {
            let is_octets = field.is(bytes, CONTENT_LENGTH);
            let value = if is_octets { &octets } else { &lines };
            field.value.of(bytes) == value.as_bytes()
        };
        fields.iter().map(is_true).collect()
    };
    is_true(message) == is_true(output)
}

/// The values that are true: octets and lines of the body.
fn counts(message: &[u8]) -> [String; 2] {
    let body = header_of(message).body_start();
    let body = message.get(body..).unwrap_or_default();
    [body.len(), memchr::memchr_iter(b'\n', body).count()].map(|count| format!(" {count}"))
}

fn header_of(message: &[u8]) -> Header {
    let within = Span::new(0, message.len());
    Header::read(message, within, Front::Message, usize::MAX, |_| false)
}

fn length_fields(message: &[u8]) -> Vec<Field> {
    let fields = header_of(message).fields;
    let lengths = fields
        .iter(message)
        .filter(|field| is_length(message, field));
    lengths.collect()
}
