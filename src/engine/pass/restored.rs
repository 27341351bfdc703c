//! Restores parts to their original form. A detached attachment is restored byte for byte. A body that Apple Mail stored in a
//! file is encoded as the header of the part says. If the recorded length shows how its lines ended, the original lines are
//! restored too. Only the field with this length is removed; everything else in the part stays unchanged.

use super::{Change, Pending, Put};
use crate::edit::{Edit, Edits, Group};
use crate::engine::composite::{self, allows};
use crate::engine::external_body::{
    LENGTH_FIELD, Note, listing, relisted, restored, torn_delimiter,
};
use crate::engine::obtained::Obtained;
use crate::engine::plan::Item;
use crate::engine::report::{Reason, Refusal};
use crate::mime::exact::{Manner, Wording};
use crate::mime::media_type::is_ascii_compatible;
use crate::mime::transfer::{
    Encoded, encode_base64, encode_by_words, encode_like, encode_text, has_boundary,
};
use crate::mime::{self, PartId, TransferEncoding};
use crate::span::{Newline, Span};

impl Pending<'_, '_> {
    pub(super) fn exactly(
        &mut self,
        item: &Item<'_>,
        note: &Note,
        obtained: &Obtained,
    ) -> Result<Put, Refusal> {
        let octets = obtained.content.bytes();
        let part = self.tree.part(item.body.part);
        // The note of `embody detach` in the part is untrusted input, so the length of the result is computed before the result
        // is created.
        let least = match note.wording.manner {
            Manner::QuotedPrintable => octets.len(),
            _ => note.wording.length(octets),
        };
        let ledger = &mut self.session.ledger;
        ledger.would_fit(least as i64 - part.span.len() as i64)?;
        ledger.work(octets.len())?;
        let refuse = |detail| Refusal::lasting(Reason::BadNote, detail);
        let body = note.wording.write(octets);
        let body =
            body.ok_or_else(|| refuse("the attachment was not encoded, and this content cannot be inserted without an encoding"))?;
        let is_encoded = matches!(note.wording.manner, Manner::Base64 { .. });
        let boundaries = self.tree.boundaries_around(item.body.part);
        if !is_encoded && has_boundary(&body, &boundaries) {
            let detail = "the content has a line that is also a boundary of the message";
            return Err(Refusal::lasting(Reason::BoundaryCollision, detail));
        }
        let group = restored(self.tree, &item.body, note, body).map_err(refuse)?;
        let mut told = self.told(item, obtained);
        told.waits = self.session.may_refer(obtained);
        Ok((Change::Edits(group), told))
    }

    /// Updates the text that lists the detached attachments, after some of them were restored.
    pub(super) fn relisted(&self, edits: Edits) -> Edits {
        // Applying the edits is slow, so this is done only if the message contains such a text.
        if listing(self.tree).is_none() {
            return edits;
        }
        let output = edits.splice(self.tree.original).into_bytes();
        let tree = mime::scan(&output, &self.place.limits);
        let reading = self.session.policy().reading();
        let text = Edits::from(relisted(self.tree, &tree, &reading, false));
        edits.then(self.tree.original.len(), text)
    }

    pub(super) fn refilled(&mut self, item: &Item<'_>, obtained: Obtained) -> Result<Put, Refusal> {
        let id = item.body.part;
        let part = self.tree.part(id);
        let is_base64 = part.encoding == TransferEncoding::Base64;
        let least = obtained.content.least_body(is_base64) as i64 - part.span.len() as i64;
        let ledger = &mut self.session.ledger;
        ledger.would_fit(least)?;
        ledger.work(obtained.content.len())?;
        let (encoded, proved) = self.encoded_again(item, &obtained)?;
        let mut told = self.told(item, &obtained);
        for row in told.report.rows.iter_mut().filter(|_| proved) {
            row.remark("verified: the content has the length that the mail notes");
            row.proved = true;
        }
        let prefilter = &self.session.settings.prefilter;
        let kinds =
            prefilter.kinds_beside(obtained.content.bytes(), self.session.context.form_beside());
        told.waits = kinds.references;
        Ok((Change::Edits(self.with_body(id, encoded)), told))
    }

    fn encoded_again(
        &self,
        item: &Item<'_>,
        obtained: &Obtained,
    ) -> Result<(Encoded, bool), Refusal> {
        let (id, newline) = (item.body.part, self.tree.newline);
        let declared = self.tree.part(id).encoding;
        let octets = obtained.content.bytes();
        let noted = self.tree.value(id, LENGTH_FIELD);
        let noted =
            noted.and_then(|value| std::str::from_utf8(value.trim_ascii()).ok()?.parse().ok());
        let in_base64 = || {
            let wording = noted.and_then(|noted| Wording::of_base64(octets.len(), noted, newline));
            let body = wording.and_then(|wording| wording.write(octets));
            let encoding = TransferEncoding::Base64;
            body.map(|body| Encoded { encoding, body })
        };
        let again = |encoded| (encoded, true);
        if declared == TransferEncoding::Base64 {
            let plainly = || (encode_base64(octets, newline), false);
            return Ok(in_base64().map_or_else(plainly, again));
        }
        let boundaries = self.tree.boundaries_around(id);
        let named = item.body.declared.as_ref();
        let charset = named.and_then(|it| it.parameter("charset"));
        let is_compatible = |charset: &[u8]| is_ascii_compatible(&String::from_utf8_lossy(charset));
        let is_text =
            obtained.essence.starts_with("text/") && charset.as_deref().is_none_or(is_compatible);
        if declared == TransferEncoding::QuotedPrintable && is_text {
            let (encoded, proved) = fitted(encode_by_words(octets, newline), noted, newline);
            if proved {
                return Ok((encoded, true));
            }
        }
        let encoded = match encode_like(declared, octets, is_text, newline, &boundaries) {
            Some(encoded) => encoded,
            None if obtained.essence.starts_with("message/") => {
                composite::fit(self.tree, id, b"", octets.to_vec(), &boundaries)?
            }
            None => match in_base64() {
                Some(encoded) => return Ok(again(encoded)),
                None if is_text => encode_text(octets.to_vec(), newline, &boundaries),
                None => encode_base64(octets, newline),
            },
        };
        Ok(fitted(encoded, noted, newline))
    }

    fn with_body(&self, id: PartId, encoded: Encoded) -> Group {
        let newline = self.tree.newline.bytes();
        let part = self.tree.part(id);
        let mut group = Group::new();
        let field = format!("Content-Transfer-Encoding: {}", encoded.encoding.as_str());
        let field = [field.as_bytes(), newline].concat();
        // True if the encoding field of the part is right for the body. A part without such a field is 7bit.
        let mut is_said = allows(part.encoding, encoded.encoding);
        let mut ends_line = true;
        for own in self.tree.fields(id).iter(self.tree.original) {
            let is_encoding = own.is(self.tree.original, "Content-Transfer-Encoding");
            let edit = match is_encoding && !allows(part.encoding, encoded.encoding) {
                true if !is_said => Edit::replace(own.whole, field.clone()),
                false if !own.is(self.tree.original, LENGTH_FIELD) => {
                    ends_line = own.whole.of(self.tree.original).ends_with(b"\n");
                    continue;
                }
                _ => Edit::remove(own.whole),
            };
            is_said |= is_encoding;
            group.push(edit);
        }
        let mut front = Vec::new();
        if !ends_line {
            front.extend_from_slice(newline);
        }
        if !is_said {
            front.extend_from_slice(&field);
        }
        match part.separator.of(self.tree.original) {
            [] => front.extend_from_slice(newline),
            separator => front.extend_from_slice(separator),
        }
        let mut body = encoded.body;
        let torn = torn_delimiter(self.tree, id);
        let is_last = part.span.end >= self.tree.original.len();
        let wants_end = match torn {
            Some(_) => true,
            None if is_last => !body.ends_with(b"\n"),
            None => self.tree.abuts_boundary(id),
        };
        if !body.is_empty() && wants_end {
            body.extend_from_slice(newline);
        }
        if let Some(torn) = torn {
            body.extend_from_slice(torn.of(self.tree.original));
            body.push(b'-');
            body.extend_from_slice(Span::new(torn.end, part.body.end).of(self.tree.original));
        }
        let place = Span::new(part.header.end, part.body.end);
        group.extend([
            Edit::insert(part.header.end, front),
            Edit::replace(place, body),
        ]);
        group
    }
}

/// Adds or removes one line ending at the end if this makes the length right. Apple Mail may have counted the line ending
/// before the boundary as part of the body, or stored it with the content. A line ending counts as one byte. The second value
/// is true if the length is right.
fn fitted(mut encoded: Encoded, noted: Option<u64>, newline: Newline) -> (Encoded, bool) {
    let body = &mut encoded.body;
    let crlf = memchr::memmem::find_iter(body, b"\r\n").count();
    let length = (body.len() - crlf) as u64;
    let is_noted = |length| noted == Some(length);
    let proved = if is_noted(length + 1) {
        body.extend_from_slice(newline.bytes());
        true
    } else if length > 0 && is_noted(length - 1) && body.ends_with(newline.bytes()) {
        body.truncate(body.len() - newline.bytes().len());
        true
    } else {
        is_noted(length)
    };
    (encoded, proved)
}
