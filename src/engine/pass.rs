//! One pass over a message or a part: scans it, plans the changes, retrieves the contents and creates the edits. If the
//! content of a reference is itself a message or a multipart, a separate pass, one level deeper, processes the content before
//! it is inserted.

mod attached;
mod decide;
mod nested;
mod noted;
mod progress;
mod restored;
mod rows;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

pub(super) use self::progress::Pass;
use self::progress::{Filled, PassProgress};
use super::new_part::NewPart;
use super::session::Session;
use super::stored::by_hash;
use crate::edit::{Edit, Group};
use crate::engine::external_body::Claim;
use crate::engine::lengths::corrected;
use crate::engine::plan::{Plan, PlanItem};
use crate::engine::policy::{Follow, ReferenceParse};
use crate::engine::report::{Detail, Outcome, Reason, Refusal, Row, Setting};
use crate::link::base::Base;
use crate::mime::{self, MessageTree, PartId, ScanLimits};

#[derive(Default)]
pub(super) struct PassPosition {
    prefix: String,
    limits: ScanLimits,
    level: usize,
    base: Option<Rc<Base>>,
    trail: Vec<String>,
    /// True inside content that replaces a note in a text. The message does not record the URL of such content, so a
    /// second run could not detect a reference that leads back to it.
    is_of_note: bool,
    /// Size of the content around this entity, in bytes. It stays in memory during the pass.
    held: usize,
}

impl PassPosition {
    pub(super) fn message(limits: ScanLimits, level: usize) -> Self {
        Self {
            limits,
            level,
            ..Self::default()
        }
    }

    /// Whether the entity is the mail itself, before any reference was replaced. Only then can it be compared with
    /// other copies of the mail.
    fn is_mail(&self) -> bool {
        self.level == 0 && self.prefix.is_empty()
    }

    fn number(&self, inside: &str) -> String {
        match (self.prefix.as_str(), inside) {
            ("", number) | (number, "") => number.to_owned(),
            (prefix, number) => format!("{prefix}.{number}"),
        }
    }
}

pub(super) enum PassStop {
    Left(Refusal),
    /// A reference leads back to this URL. The changed mail would not contain the URL, so a second run could not detect
    /// the cycle. Therefore the reference that leads into the cycle is not replaced.
    Circle(String),
    /// Content is missing, so the round stops.
    Needs,
}

impl From<Refusal> for PassStop {
    fn from(refusal: Refusal) -> Self {
        Self::Left(refusal)
    }
}

type Put = (PassChange, Pass);

enum PassChange {
    Edits(Group),
    /// A new part that replaces a note in a text, or that becomes an attachment of a message. It is written
    /// later, together with all other new parts of the same text or message.
    Filled(PartId, NewPart),
}

impl PassChange {
    fn growth(&self) -> i64 {
        match self {
            Self::Edits(group) => group.iter().map(Edit::growth).sum(),
            Self::Filled(_, new) => new.growth,
        }
    }
}

/// Runs a pass over an entity. `parts` contains the parts of the entity, if the caller has scanned it.
pub(super) fn pass(
    session: &mut Session<'_>,
    entity: &[u8],
    place: &PassPosition,
    parts: Option<&MessageTree<'_>>,
) -> Result<Pass, PassStop> {
    let scanned;
    let tree = match parts {
        Some(tree) => tree,
        None => {
            scanned = mime::scan(entity, &place.limits);
            &scanned
        }
    };
    let progress = begin(session, tree, place)?;
    let plan = Rc::clone(&progress.plan);
    let pass = decide_all(session, tree, place, progress);
    session.remember_copies(tree, &plan.references, place.is_mail());
    session.ledger.release_urls(plan.held);
    pass
}

/// Plans the pass, and looks up the content that is retrieved in advance.
fn begin<'t>(
    session: &mut Session<'_>,
    tree: &'t MessageTree<'t>,
    place: &PassPosition,
) -> Result<Box<PassProgress<'t>>, PassStop> {
    let room = session.ledger.room_for_urls();
    let policy = session.policy();
    let told = policy.reading_to_tell();
    let is_told = |form: &Follow| told.forms.contains(*form);
    let reading = if place.prefix.is_empty() {
        ReferenceParse {
            beside: session.context.form_beside().filter(is_told),
            ..told
        }
    } else {
        // Two kinds of references are not followed in inserted content: Apple Mail and Eudora keep files only for mails
        // in the mailbox, and only the mail itself contains Mailman notes.
        ReferenceParse {
            beside: None,
            forms: told.forms.without_notes(),
            ..told
        }
    };
    let base = place.base.clone();
    let mut plan = Plan::of_references(tree, policy, &reading, base, room);
    // A long base URL makes the URLs of ten thousand parts long, so their total length is limited and counts as work.
    session.ledger.spend(plan.held);
    session.ledger.hold_urls(plan.held);
    if session.settings.detached_only {
        let is_ours = |item: &PlanItem<'_>| item.body.claim != Claim::None;
        plan.references.retain(is_ours);
        // The store is the only source of a detached attachment, so there are no alternatives to compare.
        plan.rivals.clear();
    }
    if session.settings.store {
        plan.references.iter_mut().for_each(by_hash);
    }
    session.plan_copies(tree, &mut plan.references, place.is_mail());
    if let Some(guide) = session.guide {
        let references = &mut plan.references;
        guide.answer_references(tree, references, &mut session.given, &mut session.answers);
    }
    let in_group = by_member(&plan.rivals);
    // If several references offer the same attachment, only the first is retrieved in advance. References that are the only
    // source of their content are always retrieved in advance.
    let is_first = |(index, _): &(usize, &PlanItem<'_>)| {
        let members = in_group.get(index);
        members.is_none_or(|members| members.first() == Some(index))
    };
    let first: Vec<&PlanItem<'_>> = plan
        .references
        .iter()
        .enumerate()
        .filter(is_first)
        .map(|(_, item)| item)
        .collect();
    session.read_beside(&first);
    if !session.is_stopped() {
        session.find_copies(&first);
    }
    let has_none = |item: &&PlanItem<'_>| !session.has_copy(item);
    let rest: Vec<&PlanItem<'_>> = first.iter().copied().filter(has_none).collect();
    if !session.is_stopped() {
        session.retrieve(&rest);
    }
    if !session.is_stopped() {
        session.resolve(&rest);
    }
    if session.is_stopped() {
        return Err(PassStop::Needs);
    }
    // Boxed because passes are nested, and the stack can be small.
    Ok(Box::new(PassProgress::new(tree, plan, place.base.clone())))
}

/// Decides about the references of an entity, in the order of the entity.
fn decide_all(
    session: &mut Session<'_>,
    tree: &MessageTree<'_>,
    place: &PassPosition,
    progress: Box<PassProgress<'_>>,
) -> Result<Pass, PassStop> {
    let plan = Rc::clone(&progress.plan);
    let in_group = by_member(&plan.rivals);
    let mut pending = PendingReference {
        session,
        tree,
        place,
        progress,
    };
    // References that were decided together with an earlier one, because both offer the same attachment.
    let mut decided: HashSet<usize> = HashSet::new();
    for index in 0..plan.references.len() {
        if decided.contains(&index) {
            continue;
        }
        let alone = [index];
        let members = in_group.get(&index).copied().unwrap_or(&alone);
        pending.decide(members)?;
        decided.extend(members);
    }
    Ok(pending.finish())
}

/// Returns the group of each reference that offers the same attachment as others.
fn by_member(rivals: &[Vec<usize>]) -> HashMap<usize, &[usize]> {
    let groups = rivals.iter();
    groups
        .flat_map(|members| members.iter().map(|&index| (index, members.as_slice())))
        .collect()
}

struct PendingReference<'p, 't, 's> {
    session: &'p mut Session<'s>,
    tree: &'t MessageTree<'t>,
    place: &'p PassPosition,
    progress: Box<PassProgress<'t>>,
}

impl PendingReference<'_, '_, '_> {
    fn finish(mut self) -> Pass {
        self.put_filled();
        let mut edits = std::mem::take(&mut self.progress.edits.edits);
        let is_restored = |row: &Row| row.outcome == Outcome::Restored;
        if self.place.prefix.is_empty() && self.progress.pass.report.rows.iter().any(is_restored) {
            edits = self.relisted(edits);
        }
        let (tree, limits) = (self.tree, &self.place.limits);
        self.progress.pass.edits = corrected(tree, edits, self.progress.lengths, limits).0;
        self.tell_unseen();
        self.progress.pass
    }
}

fn too_deep() -> Refusal {
    let detail = Detail::from("the part would be nested more deeply than ").naming(Setting::Depth);
    Refusal::lasting(Reason::TooDeep, detail)
}
