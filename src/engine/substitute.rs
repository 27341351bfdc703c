//! The edits that replace a reference by its content (docs/design.md, "The new part").
//!
//! An external-body part has an outer header, and a header inside it (the phantom header) that describes the content. The
//! fields of the phantom header replace the outer Content-Type field, byte for byte. The outer Content-Transfer-Encoding is
//! removed. Other outer fields stay, unless the phantom header contains the same field. A detached part gets its original
//! header back, and the original encoding if the content allows it. Fields that make a part a reference are always removed.
//!
//! Deviation from RFC 2046: if the reference is a whole message, only the `Content-*` fields of the phantom header are used.
//! RFC 2046 does not let the phantom header change From, Subject or Date, and untrusted content must not be able to change
//! them.

mod described;

use std::rc::Rc;

use super::composite::{self, allows};
use super::field_names::{field_names, is_among};
use super::source_field::SOURCE_FIELD;
use super::wrapped;
use crate::edit::{Edit, Group};
use crate::engine::content_source::ContentSource;
use crate::engine::external_body::reference::Facts;
use crate::engine::external_body::{ESSENCE, ExternalBody};
use crate::engine::forms::references::is_reference_field;
use crate::engine::lengths::is_length;
use crate::engine::report::{Reason, Refusal};
use crate::link::base::{Base, THIS_MESSAGE};
use crate::mime::entity::{folded_url, push_field};
use crate::mime::header::{Field, has_control_character};
use crate::mime::media_type::{self, is_ascii_compatible, is_composite};
use crate::mime::transfer::{
    TransferEncoder, encode_base64, encode_like, encode_text, with_newlines,
};
use crate::mime::{MediaType, MessageTree, PartId, TransferEncoding};
use crate::span::{Newline, Span};

pub(super) struct Substitute<'p> {
    tree: &'p MessageTree<'p>,
    body: &'p ExternalBody<'p>,
    newline: Newline,
    suffix: Option<&'static str>,
    obtained: ContentSource,
    content_type: Vec<u8>,
}

impl<'p> Substitute<'p> {
    pub(super) fn prepare(
        tree: &'p MessageTree<'p>,
        body: &'p ExternalBody<'p>,
        obtained: ContentSource,
    ) -> Result<Self, Refusal> {
        if obtained.essence == ESSENCE {
            return Err(composite::refused(
                "the content is a message/external-body part, which contains a further reference",
            ));
        }
        let mut substitute = Self {
            tree,
            body,
            newline: tree.newline,
            // A page about a file has the suffix `.html` after the file's name, which is removed. If the content is
            // itself a web page, `.html` is part of its name.
            suffix: (body.suffix())
                .filter(|_| !(body.is_page_about_it() && obtained.essence == "text/html")),
            content_type: Vec::new(),
            obtained,
        };
        let is_hidden = |field: Field| has_control_character(field.whole.of(tree.original));
        if substitute.taken().any(is_hidden) {
            let detail = "a header field inside the external-body part contains a NUL byte or a CR without LF";
            return Err(Refusal::lasting(Reason::ControlCharacter, detail));
        }
        substitute.content_type = substitute.content_type_field();
        Ok(substitute)
    }

    fn facts(&self) -> &'static Facts {
        self.body.facts
    }

    pub(super) fn is_composite(&self) -> bool {
        is_composite(&self.obtained.essence)
    }

    pub(super) fn location(&self) -> Option<&str> {
        self.obtained.location.as_deref()
    }

    /// Returns the base for relative links in the content (draft-fielding-url-syntax-05 §5.1): from the fields of the part,
    /// otherwise the URL after redirects, otherwise the base of the surrounding part.
    pub(super) fn base_around(&self, around: Option<Rc<Base>>) -> Option<Rc<Base>> {
        let retrieval = self.location().and_then(Base::of_retrieval).map(Rc::new);
        let around = retrieval.or(around);
        let own = Base::of_entity(
            around.as_deref(),
            self.new_value("Content-Base"),
            self.new_value("Content-Location"),
            &self.tree.number(self.body.part),
        );
        own.map(Rc::new).or(around)
    }

    fn new_value(&self, name: &str) -> Option<&'p [u8]> {
        let phantom = self.body.phantom.fields.value(self.tree.original, name);
        phantom.or_else(|| self.tree.value(self.body.part, name))
    }

    /// Returns the IMAP part number that prefixes the numbers of the parts inside the new part.
    pub(super) fn number(&self) -> String {
        if self.is_multipart() {
            wrapped::number(self.tree, self.body.part)
        } else {
            self.tree.number(self.body.part)
        }
    }

    fn is_multipart(&self) -> bool {
        self.obtained.essence.starts_with("multipart/")
    }

    pub(super) fn octets(&self) -> usize {
        self.obtained.content.len()
    }

    /// Returns the content with the line endings of the message. The bytes are moved out, so that nested content is in memory
    /// only once per level.
    pub(super) fn composite_body(&mut self) -> Vec<u8> {
        let octets = Vec::from(self.obtained.content.take_bytes());
        with_newlines(octets, self.newline)
    }

    /// Returns the header that must precede the body of a multipart, so that both can be parsed as an entity. Returns
    /// an empty header for a message, because its body begins with its own header.
    pub(super) fn header_of_multipart(&self) -> Vec<u8> {
        if self.is_multipart() {
            [&self.content_type, self.newline.bytes()].concat()
        } else {
            Vec::new()
        }
    }

    pub(super) fn finish(mut self, body: Option<Vec<u8>>) -> Result<Group, Refusal> {
        let location = self.obtained.location.take();
        let encoded = match body {
            Some(body) => {
                let (tree, part) = (self.tree, self.body.part);
                let boundaries = tree.boundaries_around(part);
                composite::fit(tree, part, &self.header_of_multipart(), body, &boundaries)?
            }
            None => self.encode(),
        };
        let (mut group, homeless) = self.header_edits(&encoded, location.as_deref());
        let last = self.tree.fields(self.body.part).last(self.tree.original);
        let last_stays =
            last.is_some_and(|last| !group.iter().any(|edit| edit.span.contains(last.whole)));
        group.extend(self.body_edits(encoded, last_stays, &homeless));
        Ok(group)
    }

    fn encode(&mut self) -> TransferEncoder {
        let boundaries = self.tree.boundaries_around(self.body.part);
        let value = memchr::memchr(b':', &self.content_type)
            .and_then(|colon| self.content_type.get(colon + 1..))
            .unwrap_or_default();
        let charset = MediaType::parse(value)
            .parameter("charset")
            .map(|charset| String::from_utf8_lossy(&charset).into_owned());
        let is_text = self.obtained.essence.starts_with("text/")
            && charset.is_none_or(|charset| is_ascii_compatible(&charset));
        // The original header of the detached attachment is known, so the content gets its original encoding again.
        // Otherwise an encoding is chosen below.
        if self.facts().quotes_header && !self.body.phantom.fields.is_empty() {
            let declared = self.declared_encoding();
            let octets = self.obtained.content.bytes();
            let like = encode_like(declared, octets, is_text, self.newline, &boundaries);
            if let Some(encoded) = like {
                return encoded;
            }
        }
        let bytes = self.obtained.content.take_bytes();
        if is_text {
            encode_text(bytes.into(), self.newline, &boundaries)
        } else {
            encode_base64(&bytes, self.newline)
        }
    }

    fn declared_encoding(&self) -> TransferEncoding {
        let fields = &self.body.phantom.fields;
        TransferEncoding::of(fields.value(self.tree.original, "Content-Transfer-Encoding"))
    }

    fn taken(&self) -> impl Iterator<Item = Field> + use<'p> {
        let original = self.tree.original;
        let is_message = self.tree.is_message(self.body.part);
        let has_source = self.obtained.source_field.is_some();
        let fields = &self.body.phantom.fields;
        fields.iter(original).filter(move |field| {
            // The sender may have forged this field, so the true source replaces it.
            let is_replaced = has_source && field.is(original, SOURCE_FIELD);
            // Length fields describe the old body, so they are removed.
            let goes = is_reference_field(original, field) || is_length(original, field);
            let stays = !field.name.is_empty() && !is_replaced && !goes;
            stays && (!is_message || field.is_content(original))
        })
    }

    fn header_edits(&self, encoded: &TransferEncoder, location: Option<&str>) -> (Group, Vec<u8>) {
        let original = self.tree.original;
        let outer = self.tree.fields(self.body.part);
        let names = field_names(original, self.taken());
        let mut homeless = Some(self.new_fields(encoded, location));
        let mut group = Group::new();
        for field in outer.iter(original) {
            if field.is(original, "Content-Type")
                && let Some(new_fields) = homeless.take()
            {
                group.push(Edit::replace(field.whole, new_fields));
                continue;
            }
            let is_disposition = field.is(original, "Content-Disposition");
            let replaced = field.is(original, "Content-Type")
                || field.is(original, "Content-Transfer-Encoding")
                || is_reference_field(original, &field)
                // The mail program that made the reference wrote this field; the original part may have had none.
                || (is_disposition && self.facts().wrote_disposition)
                // Content-MD5 in the outer header describes the body of the reference, not the new content.
                || field.is(original, "Content-MD5")
                || (is_length(original, &field) && self.body.part != PartId::ROOT)
                || (self.obtained.source_field.is_some() && field.is(original, SOURCE_FIELD))
                || is_among(&names, field.name.of(original));
            if replaced {
                remove(&mut group, field.whole);
            } else if is_disposition && let Some(written) = self.written_disposition(&field) {
                group.push(Edit::replace(field.whole, written));
            }
        }
        (group, homeless.unwrap_or_default())
    }

    fn new_fields(&self, encoded: &TransferEncoder, location: Option<&str>) -> Vec<u8> {
        let original = self.tree.original;
        let outer = self.tree.fields(self.body.part);
        let newline = self.newline.bytes();
        let mut transfer_encoding = Vec::new();
        let (name, value) = ("Content-Transfer-Encoding", encoded.encoding.as_str());
        push_field(&mut transfer_encoding, name, value, self.newline);
        let mut written = Vec::new();
        if self.tree.is_message(self.body.part) && outer.first(original, "MIME-Version").is_none() {
            push_field(&mut written, "MIME-Version", "1.0", self.newline);
        }
        let is_type = |field: Field| field.is(original, "Content-Type");
        if !self.taken().any(is_type) {
            written.extend_from_slice(&self.content_type);
        }
        let (mut typed, mut encoding_said) = (false, false);
        for field in self.taken() {
            if field.is(original, "Content-Type") {
                if !std::mem::replace(&mut typed, true) {
                    written.extend_from_slice(&self.content_type);
                }
            } else if field.is(original, "Content-Transfer-Encoding") {
                if !std::mem::replace(&mut encoding_said, true) {
                    let written_before = field.whole.of(original);
                    let fits = self.facts().quotes_header
                        && written_before.ends_with(b"\n")
                        && allows(self.declared_encoding(), encoded.encoding);
                    written.extend_from_slice(if fits {
                        written_before
                    } else {
                        &transfer_encoding
                    });
                }
            } else {
                let bytes = field.whole.of(original);
                written.extend_from_slice(bytes);
                if !bytes.ends_with(b"\n") {
                    // The line ending before a boundary line belongs to the boundary, so the last line of a phantom header can
                    // lack one.
                    written.extend_from_slice(newline);
                }
            }
        }
        let is_default = encoded.encoding == TransferEncoding::SevenBit;
        if !(encoding_said || is_default && self.facts().quotes_header) {
            written.extend_from_slice(&transfer_encoding);
        }
        if let Some(name) = &self.body.file_name
            && (self.facts().wrote_disposition
                || outer.first(original, "Content-Disposition").is_none())
        {
            written.extend_from_slice(b"Content-Disposition: attachment");
            let more = media_type::write_more(&[("filename".to_owned(), name.clone())]);
            written.extend_from_slice(&with_newlines(more, self.newline));
            written.extend_from_slice(newline);
        }
        if let Some(location) = location {
            let (name, url) = match self.new_value("Content-Location") {
                None => ("Content-Location", Some(location.to_owned())),
                Some(_) => ("Content-Base", self.base_unsaid(location)),
            };
            if let Some(url) = url {
                written.extend_from_slice(&folded_url(name, &url, self.newline));
            }
        }
        if let Some(field) = &self.obtained.source_field {
            written.extend_from_slice(&with_newlines(field.to_vec(), self.newline));
        }
        written
    }

    /// Returns the absolute URL of the content if the part needs a Content-Base field. It does not if the content has
    /// no relative Content-Location, or if the base of that location is known from elsewhere in the message.
    fn base_unsaid(&self, location: &str) -> Option<String> {
        let own = self.new_value("Content-Location")?;
        let is_said = self.new_value("Content-Base").is_some()
            || crate::link::base::location(None, own)
                .is_none_or(|url| !url.starts_with(THIS_MESSAGE));
        let around = Base::of_retrieval(location).filter(|_| !is_said)?;
        crate::link::base::location(Some(&around), own)
    }

    /// Returns the edits for the body. The body is an edit of its own and is not copied, because it can be very large.
    /// `fields` are inserted after the last header field if that field stays.
    fn body_edits(&self, encoded: TransferEncoder, last_stays: bool, fields: &[u8]) -> Vec<Edit> {
        let part = self.tree.part(self.body.part);
        let newline = self.newline.bytes();
        let mut front = Vec::with_capacity(fields.len() + 2 * newline.len());
        // If the last header line stays and has no line ending, it needs one before the empty line.
        if last_stays && !part.header.of(self.tree.original).ends_with(b"\n") {
            front.extend_from_slice(newline);
        }
        let mut edits = Vec::with_capacity(3);
        if part.has_stray_lines() {
            // A stray line is neither a field nor a continuation of one. Some programs end the header at such a line,
            // so the fields are inserted before it.
            edits.push(Edit::insert(part.agreed_end, fields));
        } else {
            front.extend_from_slice(fields);
        }
        front.extend_from_slice(newline);
        let mut body = encoded.body;
        let is_last = part.span.end >= self.tree.original.len();
        let abuts = self.tree.abuts_boundary(self.body.part);
        let is_base64 = encoded.encoding == TransferEncoding::Base64;
        if !body.is_empty() && (abuts || (is_last && is_base64)) {
            body.extend_from_slice(newline);
        }
        edits.extend([
            Edit::insert(part.header.end, front),
            Edit::replace(Span::new(part.header.end, part.body.end), body),
        ]);
        edits
    }
}

/// Adds a removal. Adjacent removals are joined, because a header can consist of thousands of fields that are removed.
fn remove(group: &mut Group, span: Span) {
    match group.last_mut() {
        Some(last) if last.span.end == span.start => last.span.end = span.end,
        _ => group.push(Edit::remove(span)),
    }
}
