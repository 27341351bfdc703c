//! One pass over a message in which the parts of one form are opened. All forms use this code.

use super::handled::HandledParts;
use super::known::KnownParts;
use super::place::{InsertionEdits, place};
use crate::edit::{Edit, Edits, Group};
use crate::engine::ledger::Ledger;
use crate::engine::outlook::compose::ItemParts;
use crate::engine::policy::Policy;
use crate::engine::report::{Outcome, Provenance, Reason, Refusal, Row};
use crate::mime::{MessageTree, PartId};

/// Number of bytes of work that are counted for examining one part of the message.
const LOOK: usize = 64;

pub(crate) struct FormOpener<'o> {
    pub tree: &'o MessageTree<'o>,
    pub policy: &'o Policy,
    pub ledger: &'o mut Ledger,
    /// Parts that this pass or an earlier one opened.
    pub handled: &'o mut HandledParts,
    pub edits: Edits,
    /// Digests of the contents that the message already has, so that they are not inserted twice. They are computed when they
    /// are first needed.
    known: Option<KnownParts>,
}

impl<'o> FormOpener<'o> {
    pub(crate) fn new(
        tree: &'o MessageTree<'o>,
        policy: &'o Policy,
        ledger: &'o mut Ledger,
        handled: &'o mut HandledParts,
    ) -> Self {
        Self {
            tree,
            policy,
            ledger,
            handled,
            edits: Edits::new(),
            known: None,
        }
    }

    /// Inserts `contents` in the place of `part`, except content that the message already contains. `digest` is the digest of
    /// the part. If `keeps` is true, the part stays. Returns the number of new parts. Returns `None` if the part must be opened
    /// in the next pass, because its edits would overlap those of another part.
    ///
    /// # Errors
    /// Returns [`Reason::AlreadyInMail`] with the detail `already` if nothing would change, and the errors of the
    /// limits.
    pub(crate) fn put_contents(
        &mut self,
        part: PartId,
        digest: String,
        (contents, keeps): (ItemParts<'_>, bool),
        already: impl FnOnce() -> String,
        row: &mut Row,
    ) -> Result<Option<usize>, Refusal> {
        // For each part of this form, all parts of the message are searched for texts. With many parts the time grows
        // quadratically, so each search counts as work.
        self.ledger
            .work(self.tree.ids().count().saturating_mul(LOOK))?;
        if self.known.is_none() {
            self.ledger.work(self.tree.original.len())?;
        }
        let known = self.known.get_or_insert_with(|| KnownParts::of(self.tree));
        let InsertionEdits { edits, parts, host } = place(self.tree, part, contents, known, keeps)?;
        if edits.is_empty() {
            return Err(Refusal::lasting(Reason::AlreadyInMail, already()));
        }
        if self.handled.waits_for(host) {
            return Ok(None);
        }
        self.put(edits, row)?;
        self.handled.add(digest, host, keeps);
        Ok(Some(parts))
    }

    /// Adds all edits of one part, or none.
    ///
    /// # Errors
    /// Returns the refusal of the ledger, or [`Reason::BoundaryCollision`] if an edit overlaps an earlier one.
    pub(crate) fn put(&mut self, group: Group, row: &mut Row) -> Result<(), Refusal> {
        let growth: i64 = group.iter().map(Edit::growth).sum();
        self.ledger.grow(growth)?;
        if self.edits.add(group).is_err() {
            self.ledger.lose(growth);
            let detail = "the replacement overlaps another change in the same message";
            return Err(Refusal::lasting(Reason::BoundaryCollision, detail));
        }
        row.outcome = Outcome::Expanded;
        row.from = Provenance::Message;
        Ok(())
    }
}
