//! Whether a part refers to its content, in any of the forms.

use super::reference::{ESSENCE, ExternalBody, Form, Reader, Reading, identifier, size_of};
use super::unusable::encoded;
use super::{access, exact};
use crate::mime::{Header, MediaType, PartId, TransferEncoding, Tree};

impl<'a> ExternalBody<'a> {
    pub fn read(tree: &Tree<'a>, part: PartId, reading: &Reading) -> Option<Self> {
        let reader = Reader {
            tree,
            part,
            reading,
        };
        if tree.part(part).essence == ESSENCE {
            let content_type = tree.fields(part).first(tree.original, "Content-Type");
            let value = content_type.map(|field| field.value.of(tree.original));
            let mut media_type = MediaType::parse(value.unwrap_or_default());
            if content_type.is_some_and(|field| tree.ends_in(&field)) {
                media_type = media_type.open_ended();
            }
            let body = reader.exchange(&media_type);
            let body = body.unwrap_or_else(|| reader.document(&media_type));
            return Some(body.claimed(tree));
        }
        let thunderbird = || Some(reader.thunderbird()?.claimed(tree));
        reader
            .apple()
            .or_else(thunderbird)
            .or_else(|| reader.attached_shortcut())
            .or_else(|| reader.sympa())
    }

    fn claimed(mut self, tree: &Tree<'_>) -> Self {
        self.claim = exact::claim_of(tree, &self);
        self
    }
}

impl<'a> Reader<'a, '_> {
    fn document(&self, media_type: &MediaType<'a>) -> ExternalBody<'a> {
        let entity = self.tree.part(self.part);
        let phantom = Header::read(self.tree.original, entity.body, self.reading.header_limit);
        let phantom_id = phantom.fields.value(self.tree.original, "Content-ID");
        let phantom_id = phantom_id.map(identifier).filter(|id| !id.is_empty());
        let target = match entity.encoding {
            TransferEncoding::Base64 | TransferEncoding::QuotedPrintable => Err(encoded()),
            _ => self.target(media_type, phantom_id.as_deref()),
        };
        let form = Form::ExternalBody;
        let mut body = ExternalBody::with(self.tree.original, self.part, form, target, phantom);
        body.size = size_of(media_type);
        body.expiration = media_type
            .parameter("expiration")
            .map(|value| String::from_utf8_lossy(&value).into_owned());
        body.access_type = access::name_of(media_type);
        body
    }
}
