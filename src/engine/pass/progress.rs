//! What a pass has decided so far. If content is missing, the driver retrieves it and starts another round. The pass over the
//! mail then continues where it stopped, because a mail can have thousands of references, and each failing source or enclosed
//! message needs a round.
//!
//! This changes nothing in the result. A round reads its answers by need, and the driver only adds answers, so another round
//! would decide about the references before the stop in the same way.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use super::{Filled, Pass, Pending};
use crate::engine::Need;
use crate::engine::ledger::Ledger;
use crate::engine::lengths::Lengths;
use crate::engine::needs::Found;
use crate::engine::new_part::Text;
use crate::engine::part_edits::PartEdits;
use crate::engine::plan::{Bases, Plan};
use crate::engine::retrieve::{Contents, Settled};
use crate::engine::session::Session;
use crate::engine::{Content, plan};
use crate::link::base::Base;
use crate::mime::{PartId, Tree};

/// The plan of a pass, and the changes for the references about which the pass has decided.
pub(in crate::engine) struct Progress<'t> {
    pub(super) plan: Rc<Plan<'t>>,
    /// Index of the first reference about which the pass has not decided.
    pub(super) next: usize,
    /// Indexes of references that were decided together with an earlier one, because both offer the same attachment.
    pub(super) decided: HashSet<usize>,
    pub(super) contents: Contents<'t>,
    pub(super) bases: Bases,
    pub(super) pass: Pass,
    pub(super) edits: PartEdits<'t>,
    /// Treatment of the fields Content-Length and Lines around the changed parts. If all of these parts were restored byte for
    /// byte, the old values of the fields are right again.
    pub(super) lengths: Lengths,
    pub(super) removed_to: usize,
    pub(super) texts: BTreeMap<PartId, Text>,
    pub(super) filled: BTreeMap<PartId, Filled>,
}

impl<'t> Progress<'t> {
    pub(super) fn new(tree: &'t Tree<'t>, plan: Plan<'t>, base: Option<Rc<Base>>) -> Self {
        let plan = Rc::new(plan);
        let pass = Pass {
            waits: plan::opaque_parts(tree).next().is_some(),
            ..Pass::default()
        };
        Self {
            next: 0,
            decided: HashSet::new(),
            contents: Contents::new(tree, Rc::clone(&plan)),
            bases: Bases::within(base),
            pass,
            edits: PartEdits::new(tree),
            lengths: Lengths::Reversible,
            removed_to: 0,
            texts: BTreeMap::new(),
            filled: BTreeMap::new(),
            plan,
        }
    }
}

/// A pass that stopped because content is missing, and the state of its session before the reference that needs the content.
pub(in crate::engine) struct Stopped<'t> {
    progress: Progress<'t>,
    ledger: Ledger,
    retrieved: HashMap<Need, Found<Content>>,
}

impl<'t> Stopped<'t> {
    /// Takes what later rounds need out of a session whose pass has stopped.
    pub(super) fn new(progress: Progress<'t>, session: &mut Session<'_>) -> Self {
        Self {
            progress,
            ledger: session.ledger.clone(),
            retrieved: std::mem::take(&mut session.retrieved),
        }
    }

    /// Returns the progress, and sets the session to the state that it had when the pass stopped.
    pub(super) fn resume(self, session: &mut Session<'_>) -> Progress<'t> {
        session.resume(self.ledger, self.retrieved);
        self.progress
    }
}

/// The state before a pass decides about a reference.
pub(super) struct Before {
    ledger: Ledger,
    asked: usize,
    settled: Settled,
    texts: usize,
}

impl Pending<'_, '_, '_> {
    pub(super) fn before(&self) -> Before {
        Before {
            ledger: self.session.ledger.clone(),
            asked: self.session.asked.len(),
            settled: self.progress.contents.settled(),
            texts: self.progress.texts.len(),
        }
    }

    /// Forgets what was done for the reference `index`, because content for it is missing. The next round begins with
    /// this reference.
    pub(super) fn undo(&mut self, index: usize, before: Before) {
        self.session.undo(before.ledger, before.asked);
        let progress = &mut self.progress;
        progress.contents.undo(before.settled);
        if progress.texts.len() > before.texts
            && let Some(item) = progress.plan.references.get(index)
        {
            progress.texts.remove(&item.body.part);
        }
    }
}
