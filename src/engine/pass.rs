//! One pass over a message or a part: scans it, plans the changes, retrieves the contents and creates the edits. If the
//! content of a reference is itself a message or a multipart, a separate pass, one level deeper, processes the content before
//! it is inserted.

mod attached;
mod nested;
mod noted;
mod progress;
mod restored;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use self::progress::{Before, Filled, Progress};
pub(super) use self::progress::{Pass, Stopped};
use super::kept::Kept;
use super::new_part::NewPart;
use super::obtained::Obtained;
use super::part_edits::removal;
use super::session::Session;
use super::stored::by_hash;
use super::substitute::Substitute;
use crate::edit::{Edit, Group};
use crate::engine::external_body::facts::Insertion;
use crate::engine::external_body::{Claim, Follow, Form, Reading, Referent};
use crate::engine::forms::references::is_reference_type;
use crate::engine::lengths::{Lengths, corrected};
use crate::engine::plan::{self, Item, Plan, Step};
use crate::engine::report::{Detail, Kind, Outcome, Reason, Refusal, Retry, Row, Setting};
use crate::link::base::Base;
use crate::mime::media_type::is_composite;
use crate::mime::{self, PartId, ScanLimits, Tree};

#[derive(Default)]
pub(super) struct Place {
    prefix: String,
    limits: ScanLimits,
    level: usize,
    base: Option<Rc<Base>>,
    trail: Vec<String>,
    /// True if this content replaces a note in a text, or is inside such content. The URL of such content is not written
    /// into the message, so a second run could not detect a reference that leads back to the URL.
    is_of_note: bool,
    /// Number of bytes of the contents around this entity, which stay in memory during the pass.
    held: usize,
}

impl Place {
    pub(super) fn message(limits: ScanLimits, level: usize) -> Self {
        Self {
            limits,
            level,
            ..Self::default()
        }
    }

    /// Returns true if the entity is the mail itself, and no reference in it has been filled yet. Only then can it be compared
    /// with its copies.
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

pub(super) enum Stop {
    Left(Refusal),
    /// A reference leads back to this URL. A second run could not detect this cycle, because the changed mail would not
    /// contain the URL. So the reference that leads into the cycle is left unchanged.
    Circle(String),
    /// Content is missing, so the round stops.
    Needs,
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Left(refusal)
    }
}

type Put = (Change, Pass);

enum Change {
    Edits(Group),
    /// A new part that replaces a note in a text, or that becomes an attachment of a message. It is written
    /// later, together with all other new parts of the same text or message.
    Filled(PartId, NewPart),
}

impl Change {
    fn growth(&self) -> i64 {
        match self {
            Self::Edits(group) => group.iter().map(Edit::growth).sum(),
            Self::Filled(_, new) => new.growth,
        }
    }
}

impl Session<'_> {
    /// Runs a pass over an entity. If the entity is the mail as it arrived, `kept` contains its parts, and the pass over them
    /// that stopped in the last round.
    pub(super) fn pass(
        &mut self,
        entity: &[u8],
        place: &Place,
        kept: Option<&mut Kept<'_>>,
    ) -> Result<Pass, Stop> {
        let kept = kept.and_then(|kept| Some((kept.parts?, &mut kept.stopped)));
        let Some((tree, stopped)) = kept else {
            let tree = mime::scan(entity, &place.limits);
            let progress = self.begin(&tree, place)?;
            let decided = self.decide_all(&tree, place, progress);
            return decided.map_err(|unfinished| unfinished.0);
        };
        let progress = match stopped.take() {
            Some(stopped) => {
                self.resume(stopped.ledger, stopped.retrieved);
                stopped.progress
            }
            None => self.begin(tree, place)?,
        };
        let decided = self.decide_all(tree, place, progress);
        decided.map_err(|unfinished| {
            let (stop, progress) = *unfinished;
            if matches!(stop, Stop::Needs) {
                *stopped = Some(Stopped {
                    progress,
                    ledger: self.ledger.clone(),
                    retrieved: std::mem::take(&mut self.retrieved),
                });
            }
            stop
        })
    }

    /// Plans the pass, and looks up the content that is retrieved in advance.
    fn begin<'t>(&mut self, tree: &'t Tree<'t>, place: &Place) -> Result<Box<Progress<'t>>, Stop> {
        let room = self.ledger.room_for_urls();
        let policy = self.policy();
        let told = policy.reading_to_tell();
        let is_told = |form: &Follow| told.forms.contains(*form);
        let reading = if place.prefix.is_empty() {
            Reading {
                beside: self.context.form_beside().filter(is_told),
                ..told
            }
        } else {
            // In inserted content, two kinds of references are not followed: files next to the mailbox, because the content was
            // never there, and Mailman notes, because only the mail itself contains them.
            Reading {
                beside: None,
                forms: told.forms.without_notes(),
                ..told
            }
        };
        let base = place.base.clone();
        let mut plan = Plan::of_references(tree, policy, &reading, base, room);
        // A long base can make the URLs of ten thousand parts long. Their total length is limited, and counts as work.
        self.ledger.spend(plan.held);
        self.ledger.hold_urls(plan.held);
        if self.settings.detached_only {
            let is_ours = |item: &Item<'_>| item.body.claim != Claim::None;
            plan.references.retain(is_ours);
            // A detached attachment has only one source: the store. So there are no alternatives to compare.
            plan.rivals.clear();
        }
        if self.settings.store {
            plan.references.iter_mut().for_each(by_hash);
        }
        self.plan_copies(tree, &mut plan.references, place.is_mail());
        let in_group = by_member(&plan.rivals);
        // If several references offer the same attachment, only the first one is retrieved in advance, together with all
        // references that are the only source.
        let is_first = |(index, _): &(usize, &Item<'_>)| {
            let members = in_group.get(index);
            members.is_none_or(|members| members.first() == Some(index))
        };
        let first: Vec<&Item<'_>> = plan
            .references
            .iter()
            .enumerate()
            .filter(is_first)
            .map(|(_, item)| item)
            .collect();
        self.read_beside(&first);
        if !self.is_stopped() {
            self.find_copies(&first);
        }
        let has_none = |item: &&Item<'_>| !self.has_copy(item);
        let rest: Vec<&Item<'_>> = first.iter().copied().filter(has_none).collect();
        if !self.is_stopped() {
            self.retrieve(&rest);
        }
        if !self.is_stopped() {
            self.resolve(&rest);
        }
        if self.is_stopped() {
            return Err(Stop::Needs);
        }
        // Passes are nested, and the stack can be small.
        Ok(Box::new(Progress::new(tree, plan, place.base.clone())))
    }

    /// Decides about the references of an entity, from the one on at which an earlier round stopped.
    ///
    /// # Errors
    /// If content is missing, the error contains the progress so far, without the reference that needs the content.
    fn decide_all<'t>(
        &mut self,
        tree: &'t Tree<'t>,
        place: &Place,
        progress: Box<Progress<'t>>,
    ) -> Result<Pass, Box<(Stop, Box<Progress<'t>>)>> {
        let plan = Rc::clone(&progress.plan);
        let in_group = by_member(&plan.rivals);
        let mut pending = Pending {
            session: self,
            tree,
            place,
            progress,
        };
        while pending.progress.next < plan.references.len() {
            let index = pending.progress.next;
            if !pending.progress.decided.contains(&index) {
                let alone = [index];
                let members = in_group.get(&index).copied();
                let before = Before::of(pending.session, &pending.progress);
                match pending.decide(members.unwrap_or(&alone)) {
                    Ok(()) => {}
                    Err(Stop::Needs) => {
                        before.restore(pending.session, &mut pending.progress, index);
                        return Err(Box::new((Stop::Needs, pending.progress)));
                    }
                    Err(stop) => {
                        let progress = pending.progress;
                        self.end(tree, place, &plan);
                        return Err(Box::new((stop, progress)));
                    }
                }
                let decided = &mut pending.progress.decided;
                decided.extend(members.into_iter().flatten());
            }
            pending.progress.next += 1;
        }
        let pass = pending.finish();
        self.end(tree, place, &plan);
        Ok(pass)
    }

    fn end(&mut self, tree: &Tree<'_>, place: &Place, plan: &Plan<'_>) {
        self.remember_copies(tree, &plan.references, place.is_mail());
        self.ledger.release_urls(plan.held);
    }
}

/// Returns the group of each reference that offers the same attachment as others.
fn by_member(rivals: &[Vec<usize>]) -> HashMap<usize, &[usize]> {
    let groups = rivals.iter();
    groups
        .flat_map(|members| members.iter().map(|&index| (index, members.as_slice())))
        .collect()
}

struct Pending<'p, 't, 's> {
    session: &'p mut Session<'s>,
    tree: &'t Tree<'t>,
    place: &'p Place,
    progress: Box<Progress<'t>>,
}

impl Pending<'_, '_, '_> {
    /// Decides about references that offer the same attachment, in the order in which they are tried. Usually there is only
    /// one.
    fn decide(&mut self, members: &[usize]) -> Result<(), Stop> {
        let plan = Rc::clone(&self.progress.plan);
        let references = &plan.references;
        let items = members
            .iter()
            .filter_map(|&index| Some((index, references.get(index)?)));
        let mut refusals = Vec::new();
        for (index, item) in items.clone() {
            let done = match self.attempt(index, item) {
                Ok(Some((change, told))) => self.put(item, change, told),
                Ok(None) => {
                    self.await_content(item);
                    for (_, other) in items.filter(|(other, _)| *other != index) {
                        self.tell_removal(other, item);
                    }
                    return Ok(());
                }
                Err(Stop::Left(refusal)) => Err(refusal),
                Err(stop @ (Stop::Circle(_) | Stop::Needs)) => return Err(stop),
            };
            match done {
                Ok(()) => {
                    for (_, other) in items.filter(|(other, _)| *other != index) {
                        self.remove(other, item);
                    }
                    return Ok(());
                }
                Err(refusal) => {
                    let refusal = self.session.refused_twice(self.tree, item, refusal);
                    refusals.push((item, refusal));
                }
            }
        }
        for (item, refusal) in refusals {
            self.leave(item, refusal);
        }
        Ok(())
    }

    fn attempt(&mut self, index: usize, item: &Item<'_>) -> Result<Option<Put>, Stop> {
        self.session.ledger.in_time()?;
        let obtained = self.progress.contents.of(self.session, index);
        if self.session.is_stopped() {
            return Err(Stop::Needs);
        }
        let Some(obtained) = obtained? else {
            return Ok(None);
        };
        let before = self.session.ledger.gained();
        let put = self.substitute(item, obtained);
        self.session.ledger.restore_gained(before);
        let put = put?;
        self.session.ledger.grow(put.0.growth())?;
        Ok(Some(put))
    }

    fn substitute(&mut self, item: &Item<'_>, obtained: Obtained) -> Result<Put, Stop> {
        if let Some(note) = item.body.note() {
            return Ok(self.exactly(item, note, &obtained)?);
        }
        match item.body.form.facts().insertion {
            Insertion::Note(convert) => return self.noted(item, convert, obtained),
            Insertion::Attachment => return Ok(self.attached(item, obtained)?),
            Insertion::Body(refill) => return Ok(self.refilled(item, refill, &obtained)?),
            Insertion::Part => {}
        }
        let mut told = self.told(item, &obtained);
        // The inserted content can itself be a reference, such as a shortcut file (`.url`). The next pass follows it.
        let is_reference = is_reference_type(&obtained.essence);
        told.waits =
            self.session.may_refer(&obtained) || is_reference && !is_composite(&obtained.essence);
        let part = self.tree.part(item.body.part);
        // Content that would exceed a limit is refused before it is encoded. Encoding counts as work, and a hostile mail can
        // cause it many times.
        let octets = obtained.content.len();
        // Text, messages and multiparts may be written in another encoding than base64. All other content is written in
        // base64, so its exact length in the message is already known here.
        let is_readable = obtained.essence.starts_with("text/") || is_composite(&obtained.essence);
        let is_exact = item.body.form == Form::ExternalBody && !is_readable;
        let least = obtained.content.least_body(is_exact) as i64 - part.span.len() as i64;
        self.session.ledger.would_fit(least)?;
        self.session.ledger.work(octets)?;
        let mut substitute = Substitute::prepare(self.tree, &item.body, obtained)?;
        let mut body = None;
        if substitute.is_composite() {
            let (whole, inside) = self.composite(item, &mut substitute)?;
            told.add(inside);
            body = Some(whole);
        }
        Ok((Change::Edits(substitute.finish(body)?), told))
    }

    fn told(&self, item: &Item<'_>, obtained: &Obtained) -> Pass {
        let mut told = Pass::default();
        let mut row = self.row(item);
        obtained.describe(&mut row);
        let notes = obtained
            .notes
            .iter()
            .map(|note| format!("part {}: {note}", row.part));
        told.report.notes.extend(notes);
        told.report.rows.push(row);
        told
    }

    fn row(&self, item: &Item<'_>) -> Row {
        Row {
            part: self.place.number(&item.number),
            ..item.row(self.session.context.name())
        }
    }

    fn put(&mut self, item: &Item<'_>, change: Change, told: Pass) -> Result<(), Refusal> {
        let growth = change.growth();
        match change {
            Change::Filled(part, new) => {
                let start = self.progress.pass.report.rows.len();
                let rows = start..start + told.report.rows.len();
                self.progress
                    .filled
                    .entry(part)
                    .or_default()
                    .push((new, rows));
            }
            Change::Edits(group) => {
                if let Err(refusal) = self.progress.edits.change(group, []) {
                    self.session.ledger.lose(growth);
                    return Err(refusal);
                }
                if item.body.note().is_none() {
                    self.progress.lengths = Lengths::Corrected;
                }
            }
        }
        self.progress.pass.add(told);
        Ok(())
    }

    fn leave(&mut self, item: &Item<'_>, refusal: Refusal) {
        let mut row = self.row(item);
        // The reference refers to a Content-ID. Another reference may insert the part with this id, so another pass may
        // help.
        self.progress.pass.waits |= matches!(item.body.target, Ok(Referent::ContentId { .. }))
            && !refusal.reason.is_bound();
        if refusal.retry == Retry::Later {
            let detail = row.waiting_for(&refusal.detail);
            self.progress.pass.temporary.get_or_insert(detail);
        }
        if let Step::Retrieve(need) = &item.step
            && let Some(Ok(Some(answer))) = self.session.retrieved.get(need)
        {
            answer.describe_source(&mut row);
        }
        row.tell_refusal(refusal);
        item.tell_claim(&mut row);
        self.progress.pass.report.rows.push(row);
    }

    /// Adds the row of a reference whose content could be retrieved, but was not retrieved in this run.
    fn await_content(&mut self, item: &Item<'_>) {
        let mut row = self.row(item);
        row.outcome = Outcome::WouldFetch;
        match &item.step {
            Step::Retrieve(need) => {
                if let Some(announced) = self.session.answers.announcement(need) {
                    announced.describe(&mut row);
                    item.tell_claim(&mut row);
                }
            }
            Step::Copy(_) => {
                row.detail =
                    "the content of the part to which this reference points would be retrieved"
                        .into();
            }
            Step::Decode | Step::Read { .. } | Step::Leave(_) => {}
        }
        self.progress.pass.report.rows.push(row);
    }

    fn remove(&mut self, item: &Item<'_>, winner: &Item<'_>) {
        let removal = removal(self.tree, item.body.part, self.progress.removed_to);
        match self.progress.edits.change(vec![Edit::remove(removal)], []) {
            Ok(()) => {
                self.progress.removed_to = removal.end;
                self.progress.lengths = Lengths::Corrected;
                self.tell_removal(item, winner);
            }
            Err(refusal) => {
                let mut row = self.row(item);
                row.tell_refusal(refusal);
                self.progress.pass.report.rows.push(row);
            }
        }
    }

    fn tell_removal(&mut self, item: &Item<'_>, winner: &Item<'_>) {
        let mut row = self.row(item);
        let number = self.place.number(&winner.number);
        row.outcome = Outcome::Rewritten;
        row.reason = Some(Reason::RivalExpanded);
        row.detail = if self.session.mode.writes() {
            format!(
                "this part was removed, because part {number} offered the same content and was used"
            )
        } else {
            format!("this part would be removed, because part {number} offers the same content")
        }
        .into();
        self.progress.pass.report.rows.push(row);
    }

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

    /// Adds rows for parts that were not parsed because of a limit. They can contain references, so they count as left
    /// unchanged.
    fn tell_unseen(&mut self) {
        let references = self.progress.plan.references.iter();
        let known: HashSet<PartId> = references.map(|item| item.body.part).collect();
        for (part, span, refusal) in plan::opaque_parts(self.tree) {
            let octets = span.of(self.tree.original);
            if known.contains(&part) || !self.session.settings.prefilter.external_bodies(octets) {
                continue;
            }
            let number = self.place.number(&self.tree.number(part));
            let mut row = Row::new(
                self.session.context.name(),
                number,
                Kind::ExternalBody,
                Outcome::Left,
            );
            row.bytes = Some(span.len() as u64);
            row.tell_refusal(refusal);
            self.progress.pass.report.rows.push(row);
        }
    }
}

fn too_deep() -> Refusal {
    let detail = Detail::from("the part would be nested more deeply than ").naming(Setting::Depth);
    Refusal::lasting(Reason::TooDeep, detail)
}
