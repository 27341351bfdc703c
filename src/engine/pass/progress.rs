//! The progress of a pass: its plan, and the changes for the references that are decided.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use crate::edit::Edits;
use crate::engine::contents::KnownContents;
use crate::engine::lengths::Lengths;
use crate::engine::new_part::{NewPart, PartText};
use crate::engine::part_edits::PartEdits;
use crate::engine::plan::{Bases, Plan};
use crate::engine::protection::opaque_parts;
use crate::engine::report::{Detail, Report};
use crate::link::base::Base;
use crate::mime::{MessageTree, PartId};

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
pub(in crate::engine) struct PassProgress<'t> {
    pub(super) plan: Rc<Plan<'t>>,
    pub(super) contents: KnownContents<'t>,
    pub(super) bases: Bases,
    pub(super) pass: Pass,
    pub(super) edits: PartEdits<'t>,
    /// Treatment of the fields Content-Length and Lines around the changed parts. If all of these parts were restored byte for
    /// byte, the old values of the fields are right again.
    pub(super) lengths: Lengths,
    pub(super) removed_to: usize,
    pub(super) texts: BTreeMap<PartId, PartText>,
    pub(super) filled: BTreeMap<PartId, Filled>,
}

impl<'t> PassProgress<'t> {
    pub(super) fn new(tree: &'t MessageTree<'t>, plan: Plan<'t>, base: Option<Rc<Base>>) -> Self {
        let plan = Rc::new(plan);
        let pass = Pass {
            waits: opaque_parts(tree).next().is_some(),
            ..Pass::default()
        };
        Self {
            contents: KnownContents::new(tree, Rc::clone(&plan)),
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
