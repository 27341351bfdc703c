//! The note of `embody detach` in a part: whether a part has one, and whether it can be read.

use super::note::{BodyNote, Claim, NOTE_FIELD};
use super::reference::{ExternalBody, ReferenceShape, newline_of};
use crate::mime::MessageTree;
use crate::span::Span;

/// Returns the note of `embody detach` in a part, if it has one.
pub(in crate::engine) fn claim_of(tree: &MessageTree<'_>, body: &ExternalBody<'_>) -> Claim {
    let fields = match body.facts.shape {
        ReferenceShape::ExternalBody => &body.phantom.fields,
        _ if body.facts.detach_fields.is_some() => tree.fields(body.part),
        _ => return Claim::None,
    };
    let Some(field) = fields.first(tree.original, NOTE_FIELD) else {
        return Claim::None;
    };
    let newline = newline_of(tree, body.part);
    let Some(mut note) = BodyNote::read(field.value.of(tree.original), newline) else {
        return Claim::Unreadable;
    };
    // Mail systems that convert line endings convert headers and text parts alike, so restored text gets the line
    // endings of the header. Other content keeps its own.
    let header = tree.part(body.part).header;
    // A part without a declared type is text (RFC 2045 §5.2).
    let declared = body.declared.as_ref().filter(|it| !it.essence.is_empty());
    let is_text = declared.is_none_or(|declared| declared.main() == "text");
    let is_uniform = |span: Span| newline.is_throughout(span.of(tree.original));
    if !is_text || !is_uniform(header) || !is_uniform(body.phantom.span) {
        note.wording.keep_line_ends();
    }
    Claim::Note(Box::new(note))
}
