//! Restores parts to their original form. A detached attachment is restored byte for byte. A part whose body was stored in a
//! separate file gets this body back, and keeps its header.

use super::{PassChange, PendingReference, Put};
use crate::edit::Edits;
use crate::engine::content_source::ContentSource;
use crate::engine::external_body::BodyNote;
use crate::engine::external_body::reference::Refill;
use crate::engine::plan::PlanItem;
use crate::engine::report::{Reason, Refusal};
use crate::engine::stub::{listing, relisted, restored};
use crate::mime::exact::EditManner;
use crate::mime::transfer::has_boundary;
use crate::mime::{self, TransferEncoding};

impl PendingReference<'_, '_, '_> {
    pub(super) fn exactly(
        &mut self,
        item: &PlanItem<'_>,
        note: &BodyNote,
        obtained: &ContentSource,
    ) -> Result<Put, Refusal> {
        let octets = obtained.content.bytes();
        let part = self.tree.part(item.body.part);
        // The note of `embody detach` in the part is untrusted input, so the length of the result is computed before the result
        // is created.
        let least = match note.wording.manner {
            EditManner::QuotedPrintable => octets.len(),
            _ => note.wording.length(octets),
        };
        let ledger = &mut self.session.ledger;
        ledger.would_fit(least as i64 - part.span.len() as i64)?;
        ledger.work(octets.len())?;
        let refuse = |detail| Refusal::lasting(Reason::BadNote, detail);
        let body = note.wording.write(octets);
        let body =
            body.ok_or_else(|| refuse("the X-Embody-Detached field says that the attachment had no transfer encoding, but the content needs one: the content has a NUL byte, a CR without LF, or a line that starts with \"From \""))?;
        let is_encoded = matches!(note.wording.manner, EditManner::Base64 { .. });
        let boundaries = self.tree.boundaries_around(item.body.part);
        if !is_encoded && has_boundary(&body, &boundaries) {
            let detail = "the content has a line that is also a boundary of the message";
            return Err(Refusal::lasting(Reason::BoundaryCollision, detail));
        }
        let group = restored(self.tree, &item.body, note, body).map_err(refuse)?;
        let mut told = self.told(item, obtained);
        told.waits = self.session.may_refer(obtained);
        Ok((PassChange::Edits(group), told))
    }

    /// Updates the text that lists the detached attachments, after some of them were restored.
    pub(super) fn relisted(&self, edits: Edits) -> Edits {
        // Splicing the message is slow, so this is skipped unless the message contains such a text.
        if listing(self.tree).is_none() {
            return edits;
        }
        let output = edits.splice(self.tree.original).into_bytes();
        let tree = mime::scan(&output, &self.place.limits);
        let reading = self.session.policy().reading();
        let text = Edits::from(relisted(self.tree, &tree, &reading, false));
        edits.then(self.tree.original.len(), text)
    }

    /// Gives a part its body back. `refill` returns the edits, and whether the content is proved to be the original.
    pub(super) fn refilled(
        &mut self,
        item: &PlanItem<'_>,
        refill: Refill,
        obtained: &ContentSource,
    ) -> Result<Put, Refusal> {
        let part = self.tree.part(item.body.part);
        let is_base64 = part.encoding == TransferEncoding::Base64;
        let least = obtained.content.least_body(is_base64) as i64 - part.span.len() as i64;
        let ledger = &mut self.session.ledger;
        ledger.would_fit(least)?;
        ledger.work(obtained.content.len())?;
        let (group, proved) = refill(self.tree, &item.body, obtained)?;
        let mut told = self.told(item, obtained);
        for row in told.report.rows.iter_mut().filter(|_| proved) {
            row.remark("verified: the content has the length that the mail notes");
            row.proved = true;
        }
        let prefilter = &self.session.settings.prefilter;
        let kinds =
            prefilter.kinds_beside(obtained.content.bytes(), self.session.context.form_beside());
        told.waits = kinds.references;
        Ok((PassChange::Edits(group), told))
    }
}
