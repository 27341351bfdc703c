//! Adds files as attachments of a mail: at the end of its multipart/mixed, or of a new one. The document that contains the
//! link to a file stays unchanged, byte for byte.

use super::{Filled, PassChange, PendingReference, Put};
use crate::edit::Group;
use crate::engine::content_source::ContentSource;
use crate::engine::forms::references::is_reference_type;
use crate::engine::new_part::StoredContent;
use crate::engine::plan::PlanItem;
use crate::engine::report::{Reason, Refusal};
use crate::engine::wrapped;
use crate::mime::transfer::{base64_length, encode_base64};
use crate::mime::{PartId, PartKind, media_type};

const WRAPPING: usize = 400;

const BOUNDARY_LINE: usize = 80;

impl PendingReference<'_, '_, '_> {
    pub(super) fn attached(
        &mut self,
        item: &PlanItem<'_>,
        obtained: ContentSource,
    ) -> Result<Put, Refusal> {
        let message = self.tree.message_of(item.body.part);
        let octets = obtained.content.len();
        let length = base64_length(octets, self.tree.newline) as i64;
        self.session.ledger.would_fit(length)?;
        self.session.ledger.work(octets)?;
        let is_first = !self.progress.filled.contains_key(&message);
        let overhead = match self.boundary_of(message)? {
            Some(boundary) => boundary.len() + 8,
            None if is_first => WRAPPING,
            None => BOUNDARY_LINE,
        };
        let made: usize = self
            .progress
            .filled
            .iter()
            .filter(|(part, _)| !self.progress.texts.contains_key(part))
            .map(|(_, parts)| parts.len() + 1)
            .sum();
        let most = self.place.limits.parts;
        if self.tree.ids().count() + made + 1 >= most {
            return Err(super::noted::too_many_parts(most));
        }
        let is_reference = is_reference_type(&obtained.essence);
        let link = item.body.linked.as_ref().map(|linked| linked.link.clone());
        let stored = StoredContent::attachment(item.body.file_name.clone(), link, obtained);
        let mut told = self.told(item, &stored.obtained);
        told.waits = is_reference;
        // Base64 keeps every byte, and never contains a boundary line.
        let encoded = encode_base64(stored.obtained.content.bytes(), self.tree.newline);
        let mut new = stored.written(encoded, self.tree.newline);
        new.growth = (new.len() + overhead) as i64;
        Ok((PassChange::Filled(message, new), told))
    }

    fn boundary_of(&self, message: PartId) -> Result<Option<&[u8]>, Refusal> {
        let entity = self.tree.part(message);
        let is_broken = match &entity.content {
            PartKind::Multipart(multipart) if entity.essence == "multipart/mixed" => {
                if multipart.close.is_some() && multipart.overflow.is_none() {
                    return Ok(Some(&multipart.boundary));
                }
                true
            }
            PartKind::Multipart(multipart) => multipart.close.is_none(),
            _ => false,
        };
        if is_broken || entity.separator.is_empty() || self.tree.is_cut_off(message) {
            let detail = "the header or the end of the attached message is missing";
            return Err(Refusal::lasting(Reason::IncompleteBody, detail));
        }
        Ok(None)
    }

    pub(super) fn extended(&self, message: PartId, parts: &Filled) -> Group {
        let (newline, entity) = (self.tree.newline.bytes(), self.tree.part(message));
        let new = parts.iter().map(|(new, _)| {
            let write = |bytes: &mut Vec<u8>| new.append_to(bytes, newline);
            (new.len() + newline.len(), write)
        });
        if let PartKind::Multipart(multipart) = &entity.content
            && entity.essence == "multipart/mixed"
            && let Some(close) = multipart.close
        {
            let at = wrapped::before_close(self.tree.original, close);
            return wrapped::parts(at, &multipart.boundary, self.tree.newline, false, new);
        }
        let seeds = parts.iter().map(|(part, _)| part.fields.as_slice());
        let field = |boundary: &str| {
            let value = [("boundary".to_owned(), boundary.to_owned())];
            media_type::write("multipart/mixed", &value)
        };
        wrapped::around(self.tree, message, Group::new(), field, seeds, new)
    }
}
