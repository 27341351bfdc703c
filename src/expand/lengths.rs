//! Content-Length and Lines of a message that changed are made true.
//!
//! No document of mail defines them, but programs that keep mailboxes write and believe them. A
//! mailbox corrects them itself, because it may quote lines of the body besides.

use crate::edit::{Edit, Edits};
use crate::mime::Field;
use crate::mime::header::{Front, Header};
use crate::span::Span;

const CONTENT_LENGTH: &str = "Content-Length";
const LINES: &str = "Lines";

/// Whether a field says how long a body is.
pub(super) fn is_length(original: &[u8], field: &Field) -> bool {
    field.is(original, CONTENT_LENGTH) || field.is(original, LINES)
}

/// The edits, with the two fields of the message's header made true.
pub(super) fn corrected(message: &[u8], edits: Edits) -> Edits {
    let output = edits.splice(message).into_bytes();
    let within = Span::new(0, output.len());
    let header = Header::read(&output, within, Front::Message, usize::MAX, |_| false);
    if !header.fields.iter().any(|field| is_length(&output, field)) {
        return edits;
    }
    let body = output.get(header.body_start()..).unwrap_or_default();
    let octets = format!(" {}", body.len());
    let lines = format!(" {}", memchr::memchr_iter(b'\n', body).count());
    let group = header
        .fields
        .iter()
        .filter(|field| is_length(&output, field))
        .map(|field| {
            let is_octets = field.is(&output, CONTENT_LENGTH);
            let value = if is_octets { &octets } else { &lines };
            (field, value)
        })
        .filter(|(field, value)| {
            field.value.of(&output).trim_ascii() != value.trim_start().as_bytes()
        })
        .map(|(field, value)| Edit::replace(field.value, value.as_bytes()))
        .collect();
    let mut corrections = Edits::new();
    // Different fields do not overlap.
    let _ = corrections.add(group);
    edits.then(message.len(), corrections)
}
