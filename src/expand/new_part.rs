//! The edits that put content where a reference was (the contract's §3, "The new part").
//!
//! The outer Content-Type field gives way to the phantom header's own fields, byte for byte; the
//! outer Content-Transfer-Encoding goes; the other outer fields stay, except those that the phantom
//! header also has. The body becomes the content.
//!
//! A detached part gets back the header it had, and in the encoding that header names where the content
//! allows it: it shall be the part it was. The fields that made a part a reference always go.
//!
//! Deviation: on a message header (not a body part's) only the phantom's `Content-*` fields are
//! taken. RFC 2046 gives the phantom header no power over From, Subject or Date, and a stranger
//! should not get it.

use super::obtain::{Obtained, Octets};
use crate::edit::{Edit, Group};
use crate::external_body::{ExternalBody, Form, is_reference_field};
use crate::mime::header::{self, Field};
use crate::mime::media_type::{self, is_ascii_compatible};
use crate::mime::transfer::{
    Encoded, encode_base64, encode_like, encode_text, pass_composite, with_newlines,
};
use crate::mime::{self, MediaType, ScanLimits, TransferEncoding, Tree};
use crate::report::{Reason, Refusal};
use crate::span::{Newline, Span};

/// Whether the content holds parts of its own and must be looked at once more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Inside {
    /// Octets.
    Leaf,
    /// Octets that may be a reference themselves.
    Reference,
    /// `multipart/*` or `message/*`.
    Composite,
}

/// Makes the edits for one part.
///
/// # Errors
/// [`Reason::BoundaryCollision`] if composite content cannot stand where the part stands.
pub(super) fn edits(
    original: &[u8],
    tree: &Tree,
    body: &ExternalBody<'_>,
    obtained: Obtained,
) -> Result<(Group, Inside), Refusal> {
    let builder = Builder {
        original,
        tree,
        body,
        newline: tree.newline,
        // A page whose content is a page after all is rightly named one.
        suffix: body
            .suffix()
            .filter(|_| !(body.is_page_about_it() && obtained.essence == "text/html")),
    };
    builder.build(obtained)
}

struct Builder<'p> {
    original: &'p [u8],
    tree: &'p Tree,
    body: &'p ExternalBody<'p>,
    newline: Newline,
    /// What the part's names have behind the content's.
    suffix: Option<&'static str>,
}

impl Builder<'_> {
    fn build(&self, obtained: Obtained) -> Result<(Group, Inside), Refusal> {
        let inside = match obtained.essence.split('/').next() {
            Some("multipart" | "message") => Inside::Composite,
            // With --shortcuts all such a file is a reference itself.
            _ if obtained.essence.ends_with("internet-shortcut") => Inside::Reference,
            _ => Inside::Leaf,
        };
        let content_type = self.content_type(&obtained);
        let location = obtained.location.clone();
        let encoded = self.encode(obtained, inside, &content_type)?;
        let (mut group, homeless) = self.header_edits(&content_type, &encoded, location.as_deref());
        let last_stays = self
            .tree
            .fields(self.body.part)
            .last(self.original)
            .is_some_and(|last| !group.iter().any(|edit| edit.span == last.whole));
        group.extend(self.body_edits(encoded, last_stays, &homeless));
        Ok((group, inside))
    }

    /// The Content-Type field of the new part, with its terminator.
    fn content_type(&self, obtained: &Obtained) -> Vec<u8> {
        let phantom = header::first(self.original, &self.body.phantom.fields, "Content-Type");
        let is_detached = self.body.form == Form::Detached;
        let own = || {
            let fields = self.tree.fields(self.body.part);
            header::first(self.original, fields, "Content-Type").filter(|_| is_detached)
        };
        let Some(field) = phantom.or_else(own) else {
            // An attachment that had no Content-Type was of the default type, and gets none.
            return match self.body.form {
                Form::Detached => Vec::new(),
                _ => self.written_type(obtained),
            };
        };
        let declared = MediaType::parse(field.value.of(self.original));
        let is_multipart = declared.main() == "multipart";
        let source_boundary = named(&obtained.parameters, "boundary");
        if is_multipart
            && source_boundary.is_some()
            && declared.parameter("boundary").as_deref() != source_boundary.map(str::as_bytes)
        {
            // Only the content knows where its parts begin.
            return self.written_type(obtained);
        }
        let carries_all = obtained.location.is_none();
        let more: Vec<(String, String)> = obtained
            .parameters
            .iter()
            .filter(|(name, _)| {
                let wanted = (name == "charset" && declared.main() == "text")
                    || (name == "boundary" && is_multipart)
                    || (carries_all && obtained.source_type.as_deref() == Some(&*declared.essence));
                wanted && declared.parameter(name).is_none()
            })
            .cloned()
            .collect();
        let value_end = field.value.start + field.value.of(self.original).trim_ascii_end().len();
        let mut written = Span::new(field.whole.start, value_end)
            .of(self.original)
            .to_vec();
        if written.ends_with(b";") && !more.is_empty() {
            written.pop();
        }
        if more.is_empty() {
            written = Span::new(field.whole.start, field.value.end)
                .of(self.original)
                .to_vec();
        } else {
            written.extend_from_slice(&with_newlines(media_type::write_more(&more), self.newline));
        }
        written.extend_from_slice(self.newline.bytes());
        written
    }

    fn written_type(&self, obtained: &Obtained) -> Vec<u8> {
        let mut written = b"Content-Type: ".to_vec();
        let mut parameters = obtained.parameters.clone();
        if let Some(name) = self.own_name("Content-Type", "name")
            && named(&parameters, "name").is_none()
        {
            parameters.push(("name".to_owned(), name));
        }
        let value = media_type::write(&obtained.essence, &parameters);
        written.extend_from_slice(&with_newlines(value, self.newline));
        written
    }

    fn encode(
        &self,
        obtained: Obtained,
        inside: Inside,
        content_type: &[u8],
    ) -> Result<Encoded, Refusal> {
        let boundaries = self.tree.boundaries_around(self.body.part);
        if inside == Inside::Composite {
            let collision =
                |detail: &str| Refusal::lasting(Reason::BoundaryCollision, detail.to_owned());
            let encoded =
                pass_composite(Octets::into_vec(obtained.octets), self.newline, &boundaries)
                    .ok_or_else(|| {
                        collision("a line of the content would end the part it is put into")
                    })?;
            if takes_in(content_type, &encoded.body, &boundaries) {
                return Err(collision(
                    "a multipart of the content would take in the parts that follow",
                ));
            }
            return Ok(encoded);
        }
        let value = memchr::memchr(b':', content_type)
            .and_then(|colon| content_type.get(colon + 1..))
            .unwrap_or_default();
        let charset = MediaType::parse(value)
            .parameter("charset")
            .map(|charset| String::from_utf8_lossy(&charset).into_owned());
        let is_text = obtained.essence.starts_with("text/");
        let is_text = is_text && charset.is_none_or(|charset| is_ascii_compatible(&charset));
        // What quotes no header says nothing of an encoding.
        if self.body.form == Form::Detached && !self.body.phantom.fields.is_empty() {
            let declared = self.declared_encoding();
            let octets = obtained.octets.bytes();
            let like = encode_like(declared, octets, is_text, self.newline, &boundaries);
            if let Some(encoded) = like {
                return Ok(encoded);
            }
        }
        if is_text {
            return Ok(encode_text(
                Octets::into_vec(obtained.octets),
                self.newline,
                &boundaries,
            ));
        }
        Ok(encode_base64(obtained.octets.bytes(), self.newline))
    }

    /// What the phantom header says of the encoding.
    fn declared_encoding(&self) -> TransferEncoding {
        let fields = &self.body.phantom.fields;
        let field = header::first(self.original, fields, "Content-Transfer-Encoding");
        TransferEncoding::of(field.map(|field| field.value.of(self.original)))
    }

    /// The part's own name for its file, without what it has behind the content's.
    fn own_name(&self, field: &str, parameter: &str) -> Option<String> {
        let suffix = self.suffix?;
        let value = self.tree.value(self.original, self.body.part, field)?;
        let value = MediaType::parse(value).parameter(parameter)?.into_owned();
        let name = header::decoded_words(&header::unfold(&value));
        let stem = name.len().checked_sub(suffix.len());
        let halves = stem.and_then(|stem| name.split_at_checked(stem));
        match halves {
            Some((stem, end)) if !stem.is_empty() && end.eq_ignore_ascii_case(suffix) => {
                Some(stem.to_owned())
            }
            _ => Some(name),
        }
    }

    /// The Content-Disposition of a file whose name was that of a shortcut or a page. Its other
    /// parameters, sizes and dates, described those.
    fn written_disposition(&self, field: &Field) -> Option<Vec<u8>> {
        let name = self.own_name("Content-Disposition", "filename")?;
        let value = field.value.of(self.original);
        let end = memchr::memchr(b';', value)?;
        let mut written = Span::new(field.whole.start, field.value.start + end)
            .of(self.original)
            .to_vec();
        let more = media_type::write_more(&[("filename".to_owned(), name)]);
        written.extend_from_slice(&with_newlines(more, self.newline));
        written.extend_from_slice(self.newline.bytes());
        Some(written)
    }

    /// Edits of the outer header; and the new fields, if there is no field in whose place they come.
    fn header_edits(
        &self,
        content_type: &[u8],
        encoded: &Encoded,
        location: Option<&str>,
    ) -> (Group, Vec<u8>) {
        let original = self.original;
        let outer = self.tree.fields(self.body.part);
        let is_message = self.tree.is_message(self.body.part);
        let taken: Vec<Field> = self
            .body
            .phantom
            .fields
            .iter(original)
            .filter(|field| {
                !field.name.is_empty()
                    && !is_reference_field(original, field)
                    && (!is_message || is_content_field(original, field))
            })
            .collect();
        let new_fields = self.new_fields(&taken, content_type, encoded, location);
        let mut group = Group::new();
        let mut place = None;
        for field in outer.iter(original) {
            let field = &field;
            if field.is(original, "Content-Type") && place.is_none() {
                place = Some(field.whole);
                group.push(Edit::replace(field.whole, new_fields.clone()));
                continue;
            }
            let is_disposition = field.is(original, "Content-Disposition");
            let replaced = field.is(original, "Content-Type")
                || field.is(original, "Content-Transfer-Encoding")
                || is_reference_field(original, field)
                // Thunderbird wrote this one where there may have been none.
                || (is_disposition && self.body.form == Form::Detached)
                || taken
                    .iter()
                    .any(|phantom| same_name(original, phantom, field));
            if replaced {
                group.push(Edit::remove(field.whole));
            } else if is_disposition && let Some(written) = self.written_disposition(field) {
                group.push(Edit::replace(field.whole, written));
            }
        }
        let homeless = if place.is_none() {
            new_fields
        } else {
            Vec::new()
        };
        (group, homeless)
    }

    fn new_fields(
        &self,
        taken: &[Field],
        content_type: &[u8],
        encoded: &Encoded,
        location: Option<&str>,
    ) -> Vec<u8> {
        let original = self.original;
        let outer = self.tree.fields(self.body.part);
        let newline = self.newline.bytes();
        let transfer_encoding = [
            b"Content-Transfer-Encoding: ".as_slice(),
            encoded.encoding.as_str().as_bytes(),
            newline,
        ]
        .concat();
        let has = |fields: &[Field], name| fields.iter().any(|field| field.is(original, name));
        let mut written = Vec::new();
        if self.tree.is_message(self.body.part) && outer.first(original, "MIME-Version").is_none() {
            written.extend_from_slice(b"MIME-Version: 1.0");
            written.extend_from_slice(newline);
        }
        if !has(taken, "Content-Type") {
            written.extend_from_slice(content_type);
        }
        let (mut typed, mut encoding_said) = (false, false);
        for field in taken {
            if field.is(original, "Content-Type") {
                if !typed {
                    written.extend_from_slice(content_type);
                }
                typed = true;
            } else if field.is(original, "Content-Transfer-Encoding") {
                if !encoding_said {
                    let written_before = field.whole.of(original);
                    let fits = self.body.form == Form::Detached
                        && written_before.ends_with(b"\n")
                        && allows(self.declared_encoding(), encoded.encoding);
                    written.extend_from_slice(if fits {
                        written_before
                    } else {
                        &transfer_encoding
                    });
                }
                encoding_said = true;
            } else {
                let bytes = field.whole.of(original);
                written.extend_from_slice(bytes);
                if !bytes.ends_with(b"\n") {
                    // The last line of a phantom header may have lost its end to a boundary.
                    written.extend_from_slice(newline);
                }
            }
        }
        let is_default = encoded.encoding == TransferEncoding::SevenBit;
        if !(encoding_said || is_default && self.body.form == Form::Detached) {
            written.extend_from_slice(&transfer_encoding);
        }
        if let Some(name) = &self.body.file_name
            && outer.first(original, "Content-Disposition").is_none()
        {
            written.extend_from_slice(b"Content-Disposition: attachment");
            let more = media_type::write_more(&[("filename".to_owned(), name.clone())]);
            written.extend_from_slice(&with_newlines(more, self.newline));
            written.extend_from_slice(newline);
        }
        if let Some(location) = location {
            let outer_has = outer.first(original, "Content-Location").is_some();
            if !has(taken, "Content-Location") && !outer_has {
                written.extend_from_slice(&folded_location(location, self.newline));
            }
        }
        written
    }

    /// The edit of separator and body. `last_stays` tells whether the header's last field is kept;
    /// `fields` come behind it.
    /// The edits that put the end of the header and the body there. They are two: the body, the
    /// largest thing there is, is handed on as it was encoded, and not copied behind a few octets.
    fn body_edits(&self, encoded: Encoded, last_stays: bool, fields: &[u8]) -> [Edit; 2] {
        let part = self.tree.part(self.body.part);
        let newline = self.newline.bytes();
        let mut front = Vec::with_capacity(fields.len() + 2 * newline.len());
        // A kept last line without an end needs one before the empty line.
        if last_stays && !part.header.of(self.original).ends_with(b"\n") {
            front.extend_from_slice(newline);
        }
        front.extend_from_slice(fields);
        front.extend_from_slice(newline);
        let mut body = encoded.body;
        let is_last = part.span.end >= self.original.len();
        let abuts = self.tree.abuts_boundary(self.original, self.body.part);
        let is_base64 = encoded.encoding == TransferEncoding::Base64;
        if !body.is_empty() && (abuts || (is_last && is_base64)) {
            body.extend_from_slice(newline);
        }
        [
            Edit::insert(part.header.end, front),
            Edit::replace(Span::new(part.header.end, part.body.end), body),
        ]
    }
}

/// Whether a multipart in this content has a boundary that is one of `boundaries`, or the beginning
/// of one, as many readers compare them. With no such line in the content it is still open at the
/// content's end, and the next line of the message would be its.
fn takes_in(content_type: &[u8], body: &[u8], boundaries: &[&[u8]]) -> bool {
    if boundaries.is_empty() {
        return false;
    }
    let entity = [content_type, b"\n", body].concat();
    let tree = mime::scan(&entity, &ScanLimits::default());
    let inner = tree.boundaries();
    boundaries
        .iter()
        .any(|around| inner.iter().any(|inner| around.starts_with(inner)))
}

fn named<'p>(parameters: &'p [(String, String)], name: &str) -> Option<&'p str> {
    parameters
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

/// Whether a body in the encoding `used` may stand under a field that names `declared` (RFC 2045 §6.2).
fn allows(declared: TransferEncoding, used: TransferEncoding) -> bool {
    use TransferEncoding::{Binary, EightBit, SevenBit};
    match declared {
        EightBit => matches!(used, SevenBit | EightBit),
        Binary => matches!(used, SevenBit | EightBit | Binary),
        _ => declared == used,
    }
}

fn is_content_field(original: &[u8], field: &Field) -> bool {
    const PREFIX: &[u8] = b"content-";
    let name = field.name.of(original);
    name.get(..PREFIX.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}

fn same_name(original: &[u8], one: &Field, other: &Field) -> bool {
    one.name
        .of(original)
        .eq_ignore_ascii_case(other.name.of(original))
}

/// A Content-Location field, folded like RFC 2017's URL parameter where it would be too long: white
/// space inside the field means nothing (the draft, 5.1.1).
fn folded_location(url: &str, newline: Newline) -> Vec<u8> {
    const NAME: &[u8] = b"Content-Location:";
    const COLUMNS: usize = 76;
    let mut field = NAME.to_vec();
    let escaped: Vec<u8> = url
        .bytes()
        .flat_map(|byte| {
            if byte.is_ascii_graphic() {
                vec![byte]
            } else {
                format!("%{byte:02X}").into_bytes()
            }
        })
        .collect();
    let mut column = NAME.len();
    for (index, word) in escaped.chunks(COLUMNS - 2).enumerate() {
        if index > 0 || column + 1 + word.len() > COLUMNS {
            field.extend_from_slice(newline.bytes());
            column = 0;
        }
        field.push(b' ');
        field.extend_from_slice(word);
        column += 1 + word.len();
    }
    field.extend_from_slice(newline.bytes());
    field
}
