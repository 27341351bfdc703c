//! The part that `embody detach` leaves in place of an attachment (a stub), and the text that lists these parts.
//!
//! Restores a detached part exactly from its [`BodyNote`]: the fields of the phantom header (the header inside the
//! part) return to their positions in the outer header, and the fields that embody added are removed.

mod listing;

pub(crate) use self::listing::{listing, relisted};
use crate::edit::Edit;
use crate::engine::external_body::{
    BodyNote, ExternalBody, NOTE_FIELD, ReferenceShape, newline_of,
};
use crate::engine::forms::references::is_reference_field;
use crate::mime::header::has_control_character;
use crate::mime::{Field, MediaType, MessageTree, TransferEncoding};
use crate::span::Span;

/// Returns true for header fields that belong to the content, so that `embody detach` moves them together with it. In a
/// body part, these are all fields. If the content is a whole message, these are the `Content-*` fields except
/// Content-Length: the other fields, such as Subject, stay in the mail.
pub(crate) fn is_of_content(original: &[u8], field: &Field, is_message: bool) -> bool {
    !is_message || (field.is_content(original) && !field.is(original, "Content-Length"))
}

/// Returns the edits that restore a part. `Err` contains the reason why this is impossible: the part differs from its
/// [`BodyNote`], or a header contains something that must not be restored.
pub(crate) fn restored(
    tree: &MessageTree<'_>,
    body: &ExternalBody<'_>,
    note: &BodyNote,
    content: Vec<u8>,
) -> Result<Vec<Edit>, &'static str> {
    let part = tree.part(body.part);
    if part.separator.is_empty() {
        return Err("no empty line follows the header of the part");
    }
    let behind = Span::new(body.phantom.body_start(), part.body.end).of(tree.original);
    if !behind.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
        && body.facts.shape == ReferenceShape::ExternalBody
    {
        return Err("the message/external-body part contains text after the inner header");
    }
    let fields = returning(tree, body, note)?;
    let written = body.facts.detach_fields.unwrap_or(&["Content-Type"]);
    let is_ours = |field: &Field| written.iter().any(|name| field.is(tree.original, name));
    let mut ours: Vec<Field> = Vec::new();
    let mut stays: Vec<Field> = Vec::new();
    let mut in_front = 0;
    for field in tree.fields(body.part).iter(tree.original) {
        if is_ours(&field) {
            if ours.is_empty() {
                in_front = stays.len();
            } else if stays.len() > in_front {
                return Err(
                    "the header of the part has other fields between the fields that embody wrote",
                );
            }
            ours.push(field);
        } else {
            stays.push(field);
        }
    }
    let (Some(first), Some(last)) = (ours.first(), ours.last()) else {
        return Err("the header of the part lacks the fields that embody wrote");
    };
    if body.facts.shape == ReferenceShape::ExternalBody && ours.len() > 1 {
        return Err("the part has several Content-Type fields");
    }
    let ours = Span::new(first.whole.start, last.whole.end);
    let at = |place: usize| match stays.get(place) {
        _ if place == in_front => ours,
        Some(field) => Span::empty_at(field.whole.start),
        None => Span::empty_at(part.header.end),
    };
    let mut pieces: Vec<(Span, Vec<u8>)> = vec![(ours, Vec::new())];
    for (index, field) in fields.into_iter().enumerate() {
        let from_there = note.places.get(index).copied().unwrap_or(0);
        let place = usize::try_from(in_front as i64 + i64::from(from_there))
            .ok()
            .filter(|&place| place <= stays.len());
        let span = at(place.ok_or("the X-Embody-Detached field is invalid, because it places a header field after the end of the header")?);
        match pieces.iter_mut().find(|(place, _)| *place == span) {
            Some((_, bytes)) => bytes.extend_from_slice(&field),
            None => pieces.push((span, field)),
        }
    }
    pieces.push((part.body, content));
    let edits = pieces.into_iter();
    Ok(edits
        .map(|(span, bytes)| Edit::replace(span, bytes))
        .collect())
}

fn returning(
    tree: &MessageTree<'_>,
    body: &ExternalBody<'_>,
    note: &BodyNote,
) -> Result<Vec<Vec<u8>>, &'static str> {
    let newline = newline_of(tree, body.part);
    let is_message = tree.is_message(body.part);
    let is_phantom = body.facts.shape == ReferenceShape::ExternalBody;
    let (mut notes, mut encodings, mut digests) = (0, 0, 0);
    let mut fields = Vec::new();
    for field in body.phantom.fields.iter(tree.original) {
        let is = |name| field.is(tree.original, name);
        if is(NOTE_FIELD) {
            notes += 1;
            continue;
        }
        if field.name.is_empty()
            || is_reference_field(tree.original, &field)
            || !is_of_content(tree.original, &field, is_message)
        {
            return Err(
                "the header that embody quoted in the part contains a field that embody did not write",
            );
        }
        let mut bytes = field.whole.of(tree.original).to_vec();
        if !bytes.ends_with(b"\n") {
            bytes.extend_from_slice(newline.bytes());
        }
        if has_control_character(&bytes) {
            return Err(
                "the header that embody quoted in the part has a field with a NUL byte or a CR without LF",
            );
        }
        if is("Content-Transfer-Encoding") {
            encodings += 1;
            if is_phantom {
                fields.extend(note.encoding_field(newline));
                continue;
            }
            let encoding = TransferEncoding::of(Some(field.value.of(tree.original)));
            if !note.wording.is_of(encoding) {
                return Err(
                    "the X-Embody-Detached field names a different transfer encoding from the header that the part quotes",
                );
            }
        } else if is_phantom && note.digest_added && is("Content-MD5") {
            digests += 1;
            continue;
        }
        fields.push(bytes);
    }
    let is_composite = body.declared.as_ref().map(MediaType::main);
    if matches!(is_composite, Some("multipart" | "message")) {
        return Err(
            "the header of the part declares a multipart or a message, and embody never detaches multiparts or messages",
        );
    }
    let counts_fit = if is_phantom {
        notes == 1 && encodings == 1 && digests == usize::from(note.digest_added)
    } else {
        notes == 0 && encodings <= 1
    };
    if !counts_fit {
        return Err(
            "the header that embody quoted in the part lacks a field, or has a field twice",
        );
    }
    if !is_phantom && encodings == 0 && !note.wording.is_of(TransferEncoding::SevenBit) {
        return Err(
            "the X-Embody-Detached field names a different transfer encoding from the header that the part quotes",
        );
    }
    if !note.places.is_empty() && note.places.len() != fields.len() {
        return Err("the X-Embody-Detached field does not give the position of each header field");
    }
    Ok(fields)
}
