//! The text that lists the detached attachments for people whose mail client does not support external bodies: one part at the
//! end of the multipart/mixed of a message (`embody detach --note`). Its text is computed from the detached parts. So
//! `restore` can check that the text is unchanged before it removes the part. A text that was edited stays in the mail.

use std::fmt::Write as _;

use super::note::NOTE_FIELD;
use super::reference::{ExternalBody, ReferenceParse, ReferenceShape, Referent};
use crate::edit::Edit;
use crate::mime::entity::push_field;
use crate::mime::header::Fields;
use crate::mime::media_type::NamedType;
use crate::mime::transfer::encode_text;
use crate::mime::{MediaType, MessageTree, PartId, PartKind};
use crate::span::Span;

const LISTING: &str = "listing";

const LONGEST_NAME: usize = 100;

/// Returns the edit that corrects the listing, the text that names the detached attachments, after a change of the message from
/// `before` to `after`. The listing in `before` is replaced only if it is exactly the text that embody writes. If there is no
/// listing, one is added only if `new` is set. `None` means that nothing changes.
pub fn relisted(
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

pub fn listing(tree: &MessageTree<'_>) -> Option<PartId> {
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
        let body = ExternalBody::read(tree, part, reading);
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

/// Returns the name of a part, without control characters and limited in length. Returns `None` if the name cannot be decoded.
pub(crate) fn file_name(original: &[u8], fields: &Fields) -> Option<String> {
    let name = name_of(original, fields).text()?;
    Some(short_name(&name))
}

/// Returns the first characters of a name.
pub(crate) fn short_name(name: &str) -> String {
    name.chars().take(LONGEST_NAME).collect()
}

/// Returns the name of a part for display. A name that cannot be decoded is returned as it is written.
pub(crate) fn shown_name(original: &[u8], fields: &Fields) -> Option<String> {
    let name = match name_of(original, fields) {
        NamedType::None => return None,
        NamedType::Text(name) | NamedType::Undecodable(name) => name,
    };
    Some(short_name(&name))
}

/// Returns the name of a part. A name that can be decoded is preferred to one that cannot.
pub(crate) fn name_of(original: &[u8], fields: &Fields) -> NamedType {
    let named = |field, parameter| {
        let Some(value) = fields.value(original, field) else {
            return NamedType::None;
        };
        let clean = |name: String| {
            let name: String = name.chars().filter(|symbol| !symbol.is_control()).collect();
            Some(name).filter(|name| !name.trim().is_empty())
        };
        match MediaType::parse(value).name(parameter) {
            NamedType::Text(name) => clean(name).map_or(NamedType::None, NamedType::Text),
            NamedType::Undecodable(name) => {
                clean(name).map_or(NamedType::None, NamedType::Undecodable)
            }
            NamedType::None => NamedType::None,
        }
    };
    let names = [
        named("Content-Disposition", "filename"),
        named("Content-Type", "name"),
    ];
    let is_text = |name: &&NamedType| matches!(name, NamedType::Text(_));
    let is_any = |name: &&NamedType| **name != NamedType::None;
    let best = names.iter().find(is_text).or(names.iter().find(is_any));
    best.cloned().unwrap_or(NamedType::None)
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
    let size = match body.form {
        ReferenceShape::ExternalBody => body.size,
        _ => body.note().and_then(|note| Some(note.size? as u64)),
    };
    if let Some(size) = size {
        let _ = write!(line, ", {size} octets");
    }
    let _ = writeln!(line, "\n  {url}");
    line
}
