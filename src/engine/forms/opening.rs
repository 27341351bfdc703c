//! The work that all forms have in common: one pass over a message, in which the parts of one form are opened.

use super::handled::Handled;
use super::place::{Known, Placed, place};
use crate::edit::{Edit, Edits, Group};
use crate::engine::ledger::Ledger;
use crate::engine::outlook::compose::Contents;
use crate::mime::{PartId, Tree};
use crate::policy::Policy;
use crate::report::{Outcome, Provenance, Reason, Refusal, Row};

/// Bytes of work that a look at one part of the tree counts as.
const LOOK: usize = 64;

pub struct Opening<'o> {
    pub tree: &'o Tree<'o>,
    pub policy: &'o Policy,
    pub ledger: &'o mut Ledger,
    /// Parts that this pass or an earlier one opened.
    pub handled: &'o mut Handled,
    pub edits: Edits,
    /// The contents of the message, once a form has asked for them.
    known: Option<Known>,
}

impl<'o> Opening<'o> {
    pub fn new(
        tree: &'o Tree<'o>,
        policy: &'o Policy,
        ledger: &'o mut Ledger,
        handled: &'o mut Handled,
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

    /// Puts `contents` where `part` is, as far as the message does not have them already. `digest` is that of the part. If
    /// `keeps`, the part stays. Returns the number of new parts; `None` if the part waits for the next pass.
    ///
    /// # Errors
    /// [`Reason::AlreadyInMail`] with the detail `already` if nothing would change, and the errors of the limits.
    pub fn put_contents(
        &mut self,
        part: PartId,
        digest: String,
        (contents, keeps): (Contents<'_>, bool),
        already: impl FnOnce() -> String,
        row: &mut Row,
    ) -> Result<Option<usize>, Refusal> {
        // A message may consist of such parts, and each looks for the texts of the message.
        self.ledger
            .work(self.tree.ids().count().saturating_mul(LOOK))?;
        if self.known.is_none() {
            self.ledger.work(self.tree.original.len())?;
        }
        let known = self.known.get_or_insert_with(|| Known::of(self.tree));
        let Placed { edits, parts, host } = place(self.tree, part, contents, known, keeps)?;
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

    /// Makes the edits of one part, all or none of them.
    ///
    /// # Errors
    /// The refusal of the ledger, or [`Reason::BoundaryCollision`] if an edit overlaps with an earlier one.
    pub fn put(&mut self, group: Group, row: &mut Row) -> Result<(), Refusal> {
        let growth: i64 = group.iter().map(Edit::growth).sum();
        self.ledger.grow(growth)?;
        if self.edits.add(group).is_err() {
            self.ledger.lose(growth);
            let detail = "this change overlaps another change of the same message";
            return Err(Refusal::lasting(Reason::BoundaryCollision, detail));
        }
        row.outcome = Outcome::Expanded;
        row.from = Provenance::Message;
        Ok(())
    }
}
