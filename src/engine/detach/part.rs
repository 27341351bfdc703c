//! Detaches one part: decodes its content, and creates the edits that leave a reference in its place.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::choice::Stub;
use crate::edit::{Edit, Group};
use crate::engine::Mode;
use crate::engine::external_body::{
    BodyNote, LONGEST_FIELD, newline_of, noted_encoding_field, usual_encoding_field,
};
use crate::engine::forms::thunderbird::{ALTERED_FIELD, SENTENCE, URL_FIELD};
use crate::engine::stub::is_of_content;
use crate::key::Key;
use crate::mime::exact::{EditManner, FieldText};
use crate::mime::transfer::has_boundary;
use crate::mime::{Field, MessageTree, PartId};
use crate::span::Newline;

const NOT_QUOTABLE: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'\\').add(b'<').add(b'>');

/// Maximum length in bytes of one word of the URL parameter (RFC 2017 §3.1).
const WORD: usize = 40;

/// Settings for the references that replace detached parts.
#[derive(Debug)]
pub(super) struct StubSettings {
    /// Start of the URL of all stored contents, ending with a slash. The path of a content in the store is appended to it.
    pub(super) base_url: String,
    /// Full URL of the object, which replaces `base_url` plus path. Set if [`Planner::only`](super::Planner) repeats an
    /// earlier detachment.
    pub(super) url: Option<String>,
    pub(super) form: Stub,
    pub(super) mode: Mode,
    /// MD5 of the real content, if the body of the part is only a placeholder for it (see `StandIn`).
    pub(super) md5: Option<[u8; 16]>,
}

impl StubSettings {
    pub(super) fn url_of(&self, key: &Key) -> String {
        match &self.url {
            Some(url) => url.clone(),
            None => format!("{}{}", self.base_url, key.path()),
        }
    }
}

pub(super) fn content_of(
    tree: &MessageTree<'_>,
    part: PartId,
) -> Result<(Vec<u8>, FieldText), &'static str> {
    let entity = tree.part(part);
    let body = entity.body.of(tree.original);
    let newline = newline_of(tree, part);
    let (octets, wording) = FieldText::read(body, entity.encoding, newline)
        .ok_or("encoding the content of the part again would produce a different body")?;
    let is_plain = !matches!(wording.manner, EditManner::Base64 { .. });
    if is_plain && has_boundary(body, &tree.boundaries_around(part)) {
        return Err("the body of the part has a line that begins like a boundary of the message");
    }
    Ok((octets, wording))
}

/// Creates the edits that replace a part by a reference. In a dry run, the Content-MD5 field gets the digest of empty content,
/// which has the right length without hashing the part.
pub(super) fn edits(
    leaving: &StubSettings,
    tree: &MessageTree<'_>,
    part: PartId,
    key: &Key,
    (octets, wording): &(Vec<u8>, FieldText),
) -> Result<Group, &'static str> {
    let newline = newline_of(tree, part);
    let url = utf8_percent_encode(&leaving.url_of(key), NOT_QUOTABLE).to_string();
    let is_message = tree.is_message(part);
    let (mut moved, mut stays) = (Vec::new(), 0_i64);
    for field in tree.fields(part).iter(tree.original) {
        if is_of_content(tree.original, &field, is_message) {
            moved.push((field, stays));
        } else {
            stays += 1;
        }
    }
    // The reference replaces the Content-Type field. The note (the field `X-Embody-Detached`) records the positions of the
    // other fields relative to this field, so that `restore` can put them back.
    let anchor = moved
        .iter()
        .position(|(field, _)| field.is(tree.original, "Content-Type"))
        .unwrap_or(0);
    let Some(&(anchor, anchor_place)) = moved.get(anchor) else {
        return Err("the header of the part has no field that could be replaced by a reference");
    };
    let place = |&(_, place): &(Field, i64)| i32::try_from(place - anchor_place);
    let places: Vec<i32> = moved
        .iter()
        .map(|it| place(it).unwrap_or(i32::MAX))
        .collect();
    let fields: Vec<Field> = moved.iter().map(|&(field, _)| field).collect();
    let of = |name| fields.iter().find(|field| field.is(tree.original, name));
    let encoding_field = of("Content-Transfer-Encoding");
    let encoding = match leaving.form {
        Stub::ExternalBody => noted_encoding_field(tree.original, encoding_field, wording, newline)
            .ok_or("the Content-Transfer-Encoding field of the part is too unusual to be recorded for restore")?,
        Stub::Thunderbird => usual_encoding_field(wording.manner),
    };
    let digest_added = leaving.form == Stub::ExternalBody && of("Content-MD5").is_none();
    let note = BodyNote {
        sha256: key.to_string(),
        // A message/external-body states the size in a parameter. A stub in Thunderbird's form has no such parameter,
        // so the note records the size.
        size: (leaving.form == Stub::Thunderbird).then_some(octets.len()),
        wording: *wording,
        encoding,
        digest_added,
        places: if places.iter().any(|&place| place != 0) {
            places
        } else {
            Vec::new()
        },
    }
    .field(newline)
    .ok_or("the X-Embody-Detached field, which restore needs, would be too long")?;
    let (front, mut body) = match leaving.form {
        Stub::ExternalBody => {
            let hashed: &[u8] = if leaving.mode.writes() { octets } else { b"" };
            let md5 = || leaving.md5.unwrap_or_else(|| Md5::digest(hashed).into());
            let digest = digest_added.then(md5);
            (
                reference_field(&url, octets.len(), newline),
                phantom_header(tree.original, &fields, digest, &note, newline),
            )
        }
        Stub::Thunderbird => {
            let told = of("Content-Type")
                .into_iter()
                .chain(of("Content-Disposition"));
            let mut front = whole(tree.original, told);
            for line in [
                format!("{URL_FIELD}: {url}"),
                format!("{ALTERED_FIELD}: AttachmentDetached"),
            ] {
                front.extend([line.as_bytes(), newline.bytes()].concat());
            }
            front.extend(note);
            // The body is the same as that of Thunderbird: a fixed English sentence, and then the original header of the part.
            let quoted = whole(tree.original, &fields);
            (front, [SENTENCE, newline.bytes(), &quoted].concat())
        }
    };
    if front.len() > LONGEST_FIELD && leaving.form == Stub::ExternalBody {
        return Err("the URL of the content in the store is too long for a header field");
    }
    finish(&mut body, tree, part, newline);
    let mut group = Group::new();
    for field in &fields {
        if field.whole == anchor.whole {
            group.push(Edit::replace(field.whole, front.clone()))
        } else {
            group.push(Edit::remove(field.whole))
        }
    }
    group.push(Edit::replace(tree.part(part).body, body));
    Ok(group)
}

/// Gives the new body the same ending as the old one. Mailbox formats change any other ending: they treat an empty line
/// at the end of a message as part of the separator, and add a missing line ending.
fn finish(body: &mut Vec<u8>, tree: &MessageTree<'_>, part: PartId, newline: Newline) {
    let part = tree.part(part);
    if part.body.end < tree.root().span.end {
        body.extend_from_slice(newline.bytes());
    } else if !part.body.of(tree.original).ends_with(b"\n") {
        body.truncate(body.len() - newline.bytes().len());
    }
}

fn whole<'f>(original: &[u8], fields: impl IntoIterator<Item = &'f Field>) -> Vec<u8> {
    let fields = fields.into_iter().map(|field| field.whole.of(original));
    fields.collect::<Vec<&[u8]>>().concat()
}

/// Writes the Content-Type field of the reference. The URL is split into words of 40 characters, as in RFC 2017.
fn reference_field(url: &str, size: usize, newline: Newline) -> Vec<u8> {
    let (ending, size) = (newline.bytes(), format!(" size={size}; URL=\""));
    let start = b"Content-Type: message/external-body; access-type=URL;";
    let mut field = [start, ending, size.as_bytes()].concat();
    for word in url.as_bytes().chunks(WORD) {
        field.extend([ending, b" ", word].concat());
    }
    field.extend([b"\"", ending].concat());
    field
}

fn phantom_header(
    original: &[u8],
    fields: &[Field],
    digest: Option<[u8; 16]>,
    note: &[u8],
    newline: Newline,
) -> Vec<u8> {
    let binary = [b"Content-Transfer-Encoding: binary", newline.bytes()].concat();
    let is_encoding = |field: &Field| field.is(original, "Content-Transfer-Encoding");
    let mut header = Vec::new();
    for field in fields {
        header.extend_from_slice(if is_encoding(field) {
            &binary
        } else {
            field.whole.of(original)
        });
    }
    if !fields.iter().any(is_encoding) {
        header.extend_from_slice(&binary);
    }
    if let Some(digest) = digest {
        let field = format!("Content-MD5: {}", STANDARD.encode(digest));
        header.extend([field.as_bytes(), newline.bytes()].concat());
    }
    header.extend_from_slice(note);
    header
}
