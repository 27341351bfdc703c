use super::{Change, Pending, Put};
use crate::edit::Edits;
use crate::expand::content::Obtained;
use crate::expand::session::Session;
use crate::external_body::{Note, listing, relisted, restored};
use crate::mime;
use crate::mime::exact::Manner;
use crate::mime::transfer::has_boundary;
use crate::plan::Item;
use crate::report::{Reason, Refusal};

impl Pending<'_> {
    pub(super) fn exactly(
        &self,
        session: &mut Session<'_>,
        item: &Item<'_>,
        note: &Note,
        obtained: &Obtained,
    ) -> Result<Put, Refusal> {
        let octets = obtained.octets.bytes();
        let part = self.tree.part(item.body.part);
        // The note may be a stranger's: what it makes of the octets is known before it is made.
        let least = match note.wording.manner {
            Manner::QuotedPrintable => octets.len(),
            _ => note.wording.length(octets),
        };
        let ledger = &mut session.ledger;
        ledger.would_fit(least as i64 - part.span.len() as i64)?;
        ledger.work(octets.len())?;
        let refuse = |detail| Refusal::lasting(Reason::BadNote, detail);
        let body = note.wording.write(octets);
        let body =
            body.ok_or_else(|| refuse("the content cannot stand there without an encoding"))?;
        let is_encoded = matches!(note.wording.manner, Manner::Base64 { .. });
        let boundaries = self.tree.boundaries_around(item.body.part);
        if !is_encoded && has_boundary(&body, &boundaries) {
            let detail = "the content holds a line that is a boundary of the message";
            return Err(Refusal::lasting(Reason::BoundaryCollision, detail));
        }
        let group = restored(self.tree, &item.body, note, body).map_err(refuse)?;
        let mut told = self.told(session, item, obtained);
        told.waits = session.may_refer(obtained);
        Ok((Change::Edits(group), told))
    }

    /// Also edits the text which names what was detached, now that some of it is back.
    pub(super) fn relisted(&self, session: &Session<'_>, edits: Edits) -> Edits {
        // Edits are put together only where there is something to take out.
        if listing(self.tree).is_none() {
            return edits;
        }
        let output = edits.splice(self.tree.original).into_bytes();
        let tree = mime::scan(&output, &self.place.limits);
        let reading = session.policy().reading();
        let text = Edits::from(relisted(self.tree, &tree, &reading, false));
        edits.then(self.tree.original.len(), text)
    }
}
