//! State of a pass: its plan, and the changes decided so far.

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
    /// Whether another pass may do more: a change in this pass can make a reference resolvable, or insert a new one.
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

/// State of a pass: its plan, and the changes for the references that were decided.
pub(in crate::engine) struct PassProgress<'t> {
    pub(super) plan: Rc<Plan<'t>>,
    pub(super) contents: KnownContents<'t>,
    pub(super) bases: Bases,
    pub(super) pass: Pass,
    pub(super) edits: PartEdits<'t>,
    /// How Content-Length and Lines around the changed parts are corrected. If the pass restored all parts byte for
    /// byte, the fields may already be right.
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
