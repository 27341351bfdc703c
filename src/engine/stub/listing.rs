//! The listing of `embody detach --note`: a text part at the end of the multipart/mixed, which names the detached
//! attachments for people whose mail client does not support external bodies. The text is computed from the detached
//! parts, so `restore` can check that it is unchanged before removing it. An edited listing stays in the mail.

use std::fmt::Write as _;

use crate::edit::Edit;
use crate::engine::external_body::file_names::file_name;
use crate::engine::external_body::{ExternalBody, NOTE_FIELD, ReferenceShape, Referent};
use crate::engine::forms::references;
use crate::engine::policy::ReferenceParse;
use crate::mime::entity::push_field;
use crate::mime::transfer::encode_text;
use crate::mime::{MessageTree, PartId, PartKind};
use crate::span::Span;

const LISTING: &str = "listing";

/// Returns the edit that updates the listing (the text that names the detached attachments) after a change of the
/// message from `before` to `after`. The listing is replaced only if it is exactly as embody wrote it. If there is
/// none, one is added only if `new` is set. `None` means that nothing changes.
pub(crate) fn relisted(
    before: &MessageTree<'_>,
    after: &MessageTree<'_>,
    reading: &ReferenceParse,
    new: bool,
) -> Option<Edit> {
    let written = written(after, reading);
    let Some(part) = listing(before) else {
        return inserted(after, &written.filter(|_| new)?);
    };
    let bytes = bytes_of(before, part);
    if self::written(before, reading).as_deref() != Some(bytes) {
        return None;
    }
    let part = listing(after).filter(|&part| bytes_of(after, part) == bytes)?;
    let place = span_of(after, part);
    match written {
        Some(written) if written == bytes => None,
        Some(written) => Some(Edit::replace(place, written)),
        None => {
            let PartKind::Multipart(multipart) = &after.root().content else {
                return None;
            };
            let delimiter = multipart.delimiters.get(after.part(part).ordinal)?;
            Some(Edit::remove(Span::new(delimiter.start, place.end)))
        }
    }
}

pub(crate) fn listing(tree: &MessageTree<'_>) -> Option<PartId> {
    let children = tree.root().children.iter().rev().copied();
    children.into_iter().find(|&part| {
        let value = tree.value(part, NOTE_FIELD);
        value.is_some_and(|value| value.trim_ascii() == LISTING.as_bytes())
    })
}

fn span_of(tree: &MessageTree<'_>, part: PartId) -> Span {
    let part = tree.part(part);
    Span::new(part.header.start, part.body.end)
}

fn bytes_of<'a>(tree: &MessageTree<'a>, part: PartId) -> &'a [u8] {
    span_of(tree, part).of(tree.original)
}

fn written(tree: &MessageTree<'_>, reading: &ReferenceParse) -> Option<Vec<u8>> {
    let mut lines = String::new();
    for part in tree.ids() {
        let body = references::read(tree, part, reading);
        if let Some(body) = body.filter(|body| body.note().is_some()) {
            lines.push_str(&line(tree.original, &body));
        }
    }
    if lines.is_empty() {
        return None;
    }
    let newline = tree.newline;
    let text = format!("Attachments of this message were moved to:\n{lines}");
    let encoded = encode_text(text.into_bytes(), newline, &[]);
    let mut part = Vec::new();
    for (name, value) in [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Disposition", "inline"),
        (NOTE_FIELD, LISTING),
        ("Content-Transfer-Encoding", encoded.encoding.as_str()),
    ] {
        push_field(&mut part, name, value, newline);
    }
    part.extend_from_slice(newline.bytes());
    part.extend_from_slice(&encoded.body);
    Some(part)
}

fn inserted(tree: &MessageTree<'_>, part: &[u8]) -> Option<Edit> {
    let root = tree.root();
    let PartKind::Multipart(multipart) = &root.content else {
        return None;
    };
    let (close, newline) = (multipart.close?, tree.newline.bytes());
    if root.essence != "multipart/mixed"
        || root.children.is_empty()
        || !close.of(tree.original).starts_with(newline)
    {
        return None;
    }
    let bytes = [newline, b"--", &multipart.boundary, newline, part].concat();
    Some(Edit::insert(close.start, bytes))
}

fn line(original: &[u8], body: &ExternalBody<'_>) -> String {
    let Ok(Referent::Url(url)) = &body.target else {
        return String::new();
    };
    let essence = || Some(body.declared.as_ref()?.essence.to_string());
    let name = file_name(original, &body.phantom.fields)
        .or_else(essence)
        .unwrap_or_else(|| "attachment".to_owned());
    let mut line = format!("\n- {name}");
    let size = match body.facts.shape {
        ReferenceShape::ExternalBody => body.size,
        _ => body.note().and_then(|note| Some(note.size? as u64)),
    };
    if let Some(size) = size {
        let _ = write!(line, ", {size} octets");
    }
    let _ = writeln!(line, "\n  {url}");
    line
}
