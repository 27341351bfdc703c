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

/// The edits, with the two fields of the message's header made true.
pub(super) fn corrected(message: &[u8], edits: Edits) -> Edits {
    // Content brings none of them: nothing has to be put together where there was none.
    if length_fields(message).is_empty() {
        return edits;
    }
    let output = edits.splice(message);
    let count = |bytes: &[u8]| memchr::memchr_iter(b'\n', bytes).count();
    let all_lines: usize = output.chunks().iter().map(|chunk| count(chunk)).sum();
    let length = output.len();
    let output = output.front(|front| header_of(front).body_start());
    let body = header_of(&output).body_start();
    let header_lines = count(output.get(..body).unwrap_or_default());
    let octets = format!(" {}", length.saturating_sub(body));
    let lines = format!(" {}", all_lines - header_lines);
    let mut group = Group::new();
    for field in length_fields(&output) {
        let is_octets = field.is(&output, CONTENT_LENGTH);
        let value = if is_octets { &octets } else { &lines };
        if field.value.of(&output).trim_ascii() != value.trim_start().as_bytes() {
            group.push(Edit::replace(field.value, value.as_bytes()));
        }
    }
    let mut corrections = Edits::new();
    // Different fields do not overlap.
    let _ = corrections.add(group);
    edits.then(message.len(), corrections)
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
