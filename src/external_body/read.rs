//! Whether a part refers to its content, in any of the forms.

use super::reference::{ESSENCE, ExternalBody, Form, Reading, identifier, size_of};
use super::unusable::encoded;
use super::{access, apple, detached, exact, hosted, shortcut};
use crate::mime::{Header, MediaType, PartId, TransferEncoding, Tree};

impl<'a> ExternalBody<'a> {
    /// Reads a part; none if it does not refer elsewhere.
    #[must_use]
    pub fn read(original: &'a [u8], tree: &Tree, part: PartId, reading: &Reading) -> Option<Self> {
        if tree.part(part).essence == ESSENCE {
            let content_type = tree.fields(part).first(original, "Content-Type");
            let value = content_type.map(|field| field.value.of(original));
            let mut media_type = MediaType::parse(value.unwrap_or_default());
            if content_type.is_some_and(|field| tree.ends_in(&field)) {
                media_type = media_type.open_ended();
            }
            return shortcut::of_exchange(original, tree, part, &media_type, reading)
                .or_else(|| Self::of_document(original, tree, part, &media_type, reading))
                .map(|body| body.claimed(original, tree));
        }
        if let Some(body) = apple::read(original, tree, part, reading) {
            return Some(body);
        }
        detached::read(original, tree, part, reading)
            .map(|body| body.claimed(original, tree))
            .or_else(|| shortcut::of_file(original, tree, part, reading))
            .or_else(|| hosted::read_sympa(original, tree, part, reading))
    }

    fn claimed(mut self, original: &[u8], tree: &Tree) -> Self {
        self.claim = exact::claim_of(original, tree, &self);
        self
    }

    /// A `message/external-body` as RFC 2046 has it.
    fn of_document(
        original: &'a [u8],
        tree: &Tree,
        part: PartId,
        media_type: &MediaType<'a>,
        reading: &Reading,
    ) -> Option<Self> {
        let body = tree.part(part).body;
        let phantom = Header::read(original, body, reading.header_limit);
        let phantom_id = phantom.fields.value(original, "Content-ID");
        let phantom_id = phantom_id.map(identifier).filter(|id| !id.is_empty());
        let target = match tree.part(part).encoding {
            TransferEncoding::Base64 | TransferEncoding::QuotedPrintable => Err(encoded()),
            _ => access::target_of(original, tree, part, media_type, phantom_id.as_deref()),
        };
        let mut body = Self::with(original, part, Form::ExternalBody, target, phantom);
        body.size = size_of(media_type);
        body.expiration = media_type
            .parameter("expiration")
            .map(|value| String::from_utf8_lossy(&value).into_owned());
        body.access_type = access::name_of(media_type);
        Some(body)
    }
}
