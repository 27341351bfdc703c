//! The progress of a pass: its plan, and the changes for the references that are decided. If content is missing, the driver
//! retrieves it and starts another round. The pass over the mail then continues where it stopped, because a mail can have
//! thousands of references, and each failing source or enclosed message needs a round.
//!
//! This changes nothing in the result. A round reads its answers by need, and the driver only adds answers, so another round
//! would decide about the references before the stop in the same way.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use crate::edit::Edits;
use crate::engine::contents::{Contents, Settled};
use crate::engine::ledger::Ledger;
use crate::engine::lengths::Lengths;
use crate::engine::needs::Found;
use crate::engine::new_part::{NewPart, Text};
use crate::engine::part_edits::PartEdits;
use crate::engine::plan::{Bases, Plan};
use crate::engine::report::{Detail, Report};
use crate::engine::session::Session;
use crate::engine::{Content, Need, plan};
use crate::link::base::Base;
use crate::mime::{PartId, Tree};

/// The result of a pass.
#[derive(Default)]
pub(in crate::engine) struct Pass {
    pub(in crate::engine) edits: Edits,
    pub(in crate::engine) report: Report,
    /// True if another pass may help: a change elsewhere can resolve a reference that was left, or reveal a new one.
    pub(in crate::engine) waits: bool,
    pub(in crate::engine) temporary: Option<Detail>,
}

impl Pass {
    pub(in crate::engine) fn add(&mut self, behind: Self) {
        self.report.rows.extend(behind.report.rows);
        self.report.notes.extend(behind.report.notes);
        self.temporary = self.temporary.take().or(behind.temporary);
        self.waits |= behind.waits;
    }
}

/// The new parts of one text or message, each with the positions of its rows in the report.
pub(super) type Filled = Vec<(NewPart, Range<usize>)>;

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
    pub(super) progress: Box<Progress<'t>>,
    pub(super) ledger: Ledger,
    pub(super) retrieved: HashMap<Need, Found<Content>>,
}

/// The state before a pass decides about a reference.
pub(super) struct Before {
    ledger: Box<Ledger>,
    asked: usize,
    settled: Settled,
    texts: usize,
}

impl Before {
    pub(super) fn of(session: &Session<'_>, progress: &Progress<'_>) -> Self {
        Self {
            ledger: Box::new(session.ledger.clone()),
            asked: session.asked.len(),
            settled: progress.contents.settled(),
            texts: progress.texts.len(),
        }
    }

    /// Forgets what was done for the reference `index`, because content for it is missing. The next round begins with
    /// this reference.
    pub(super) fn restore(
        self,
        session: &mut Session<'_>,
        progress: &mut Progress<'_>,
        index: usize,
    ) {
        session.undo(*self.ledger, self.asked);
        progress.contents.undo(self.settled);
        if progress.texts.len() > self.texts
            && let Some(item) = progress.plan.references.get(index)
        {
            progress.texts.remove(&item.body.part);
        }
    }
}
