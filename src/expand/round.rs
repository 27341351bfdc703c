//! One round: scan, plan, obtain, edit, splice.

use std::collections::HashMap;
use std::time;

use super::gather::untried;
use super::new_part::{self, Inside};
use super::obtain::Obtained;
use super::region::{Region, owners_of, regions_after};
use super::{Barred, Session, unseen};
use crate::edit::{Edit, Edits, Group, Spliced};
use crate::external_body::Target;
use crate::mime::{self, PartId, Tree};
use crate::plan::{self, Plan, Step};
use crate::report::{Duration, Outcome, Reason, Refusal, Row};
use crate::span::Span;

/// What one round made.
pub(super) struct Round<'m> {
    pub(super) output: Spliced<'m>,
    pub(super) rows: Vec<Row>,
    pub(super) notes: Vec<String>,
    pub(super) regions: Vec<Region>,
    pub(super) growth: u64,
    pub(super) changed: bool,
    /// Whether something was put in that holds parts of its own.
    pub(super) composites: bool,
    /// Whether what changed may let something be done that was left, or not even seen.
    pub(super) again: bool,
    pub(super) temporary: Option<String>,
}

impl<'m> Round<'m> {
    /// A round in which there is nothing to follow.
    pub(super) fn without_references(message: &'m [u8]) -> Self {
        Self {
            output: Spliced::untouched(message),
            rows: Vec::new(),
            notes: Vec::new(),
            regions: Vec::new(),
            growth: 0,
            changed: false,
            composites: false,
            again: false,
            temporary: None,
        }
    }
}

/// Content that is composite: where its part stood, and which item it belongs to.
#[derive(Clone, Copy)]
pub(super) struct Composite {
    pub(super) reach: Span,
    pub(super) item: usize,
}

/// What became of each item, in the order of the plan.
#[derive(Default)]
pub(super) struct Made {
    /// The edits; none where there is no content, or too much of it.
    pub(super) groups: Vec<Option<(Group, Inside)>>,
    /// Octets the message would gain.
    pub(super) growths: Vec<u64>,
    pub(super) results: Vec<Result<Obtained, Refusal>>,
    facts: Vec<Option<Facts>>,
}

/// Where a round stands in the work on its message.
struct Place<'r> {
    /// The region each item stands in.
    owners: &'r [Option<&'r Region>],
    /// All regions so far.
    regions: &'r [Region],
    /// What this round adds, in octets.
    growth: u64,
}

impl Session<'_> {
    /// Scans, plans, obtains and edits once.
    pub(super) fn round<'m>(
        &mut self,
        current: &'m [u8],
        regions: &[Region],
        growth_before: u64,
    ) -> Result<Round<'m>, Barred> {
        let tree = mime::scan(current, &self.expander.scan_limits());
        let mut plan = plan::plan(current, &tree, self.policy());
        let owners = owners_of(current, &tree, &plan, regions);
        for (item, owner) in plan.items.iter_mut().zip(&owners) {
            if let (None, Some(refusal)) = (owner, self.barred.get(&item.number)) {
                item.step = Step::Leave(refusal.clone());
            }
        }
        self.bar_circles(&plan, &owners)?;
        self.bar_fetches(&mut plan, &owners)?;
        let results = self.obtain_all(current, &tree, &plan)?;
        let mut made = self.make(current, &tree, &plan, results, growth_before);
        let growth = self.bar_growth(&plan, &mut made, &owners, growth_before)?;
        explain_losers(&plan, &mut made);
        let place = Place {
            owners: &owners,
            regions,
            growth,
        };
        Ok(self.assemble(current, &tree, &plan, made, &place))
    }

    /// Makes the edits of all items. Once they exceed the bound together, no more are kept or
    /// made: what is held stays within the bound, however often content is referred to.
    fn make(
        &self,
        current: &[u8],
        tree: &Tree,
        plan: &Plan<'_>,
        results: Vec<Result<Obtained, Refusal>>,
        growth_before: u64,
    ) -> Made {
        let limit = self.policy().limits.growth;
        let mut made = Made::default();
        let mut total = growth_before;
        for (item, result) in plan.items.iter().zip(results) {
            let (mut kept, mut fact, mut growth) = (None, None, 0);
            let result = match result {
                Err(refusal) => Err(refusal),
                Ok(obtained) => {
                    let whole = tree.part(item.body.part).span.len();
                    // Encoding never makes less than half of anything: only CRLF shrinks.
                    let least = (obtained.octets.len() / 2).saturating_sub(whole) as u64;
                    fact = Some(Facts::of(&obtained));
                    if least > 0 && (total > limit || least > limit) {
                        growth = least;
                        Err(untried())
                    } else {
                        match new_part::edits(current, tree, &item.body, obtained) {
                            Ok(group) => {
                                growth = Edit::growth_of(&group.0);
                                kept = (growth <= limit).then_some(group);
                                Err(untried())
                            }
                            Err(refusal) => Err(refusal),
                        }
                    }
                }
            };
            let was_over = total > limit;
            if growth <= limit {
                total = total.saturating_add(growth);
            }
            if total > limit && !was_over {
                // Nothing that grows will be let in.
                let grows = |growth: &u64| *growth > 0;
                let so_far = made.growths.iter().zip(&mut made.groups);
                for (_, group) in so_far.filter(|(growth, _)| grows(growth)) {
                    *group = None;
                }
            }
            kept = kept.filter(|_| growth == 0 || total <= limit);
            made.groups.push(kept);
            made.growths.push(growth);
            made.facts.push(fact);
            made.results.push(result);
        }
        made
    }

    fn assemble<'m>(
        &self,
        current: &'m [u8],
        tree: &Tree,
        plan: &Plan<'_>,
        made: Made,
        place: &Place<'_>,
    ) -> Round<'m> {
        let winners = winners(plan, &made.groups);
        let mut edits = Edits::new();
        let mut composites: Vec<Composite> = Vec::new();
        let mut removed_to = 0;
        let mut round = Round {
            output: Spliced::default(),
            rows: Vec::new(),
            notes: Vec::new(),
            regions: Vec::new(),
            growth: place.growth,
            changed: false,
            composites: false,
            again: false,
            temporary: None,
        };
        let mut waits = !plan::opaque_parts(tree).is_empty();
        let outcomes = made.groups.into_iter().zip(made.facts).zip(made.results);
        let everything = plan.items.iter().zip(outcomes);
        for (index, (item, ((group, fact), result))) in everything.enumerate() {
            let mut row = item.forecast(self.name);
            let rival = winners.get(&index);
            match (group, fact, rival) {
                (_, _, Some(&winner)) if winner != index => {
                    let removal = removal(current, tree, item.body.part, removed_to);
                    if edits.add(vec![Edit::remove(removal)]).is_ok() {
                        removed_to = removal.end;
                        let number = plan.items.get(winner).map(|item| item.number.as_str());
                        row.outcome = Outcome::Rewritten;
                        row.reason = Some(Reason::RivalExpanded);
                        row.detail = format!(
                            "removed: part {} offers the same and was put in",
                            number.unwrap_or_default()
                        );
                    }
                }
                (Some((group, inside)), Some(fact), _) => {
                    let reach = reach(&group);
                    if edits.add(group).is_ok() {
                        fact.describe(&mut row);
                        let part = &item.number;
                        round
                            .notes
                            .extend(fact.notes.iter().map(|note| format!("part {part}: {note}")));
                        if inside != Inside::Leaf {
                            composites.push(Composite { reach, item: index });
                        }
                    }
                }
                (_, _, _) => {
                    let refusal = result.err().unwrap_or_else(untried);
                    waits |= matches!(item.body.target, Ok(Target::ContentId { .. }));
                    if refusal.duration == Duration::Temporary && rival.is_none() {
                        round.temporary.get_or_insert_with(|| {
                            format!("part {}: {}", item.number, refusal.detail)
                        });
                    }
                    row.outcome = Outcome::Left;
                    row.reason = Some(refusal.reason);
                    row.detail = refusal.detail;
                }
            }
            round.rows.push(row);
        }
        let candidates = &self.expander.candidates;
        round
            .rows
            .extend(unseen::rows(current, tree, plan, candidates, self.name));
        round.changed = !edits.is_empty();
        round.composites = !composites.is_empty();
        round.again = round.changed && (round.composites || waits);
        round.regions = regions_after(&edits, &composites, plan, place.owners, place.regions);
        round.output = edits.splice(current);
        round
    }
}

/// What a row says of content that was put in.
struct Facts {
    essence: String,
    octets: u64,
    location: Option<String>,
    elapsed: Option<time::Duration>,
    notes: Vec<String>,
}

impl Facts {
    fn of(obtained: &Obtained) -> Self {
        Self {
            essence: obtained.essence.clone(),
            octets: obtained.octets.len() as u64,
            location: obtained.location.clone(),
            elapsed: obtained.elapsed,
            notes: obtained.notes.clone(),
        }
    }

    fn describe(&self, row: &mut Row) {
        row.outcome = Outcome::Expanded;
        row.reason = None;
        row.detail = match &self.location {
            Some(location) => format!("{} octets of {} from {location}", self.octets, self.essence),
            None => format!("{} octets of {}", self.octets, self.essence),
        };
        for note in &self.notes {
            row.remark(note);
        }
        row.media_type = Some(self.essence.clone());
        row.bytes = Some(self.octets);
        row.ms = self
            .elapsed
            .map(|elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
    }
}

/// For every member of a group in which one succeeded: the one that did.
fn winners(plan: &Plan<'_>, groups: &[Option<(Group, Inside)>]) -> HashMap<usize, usize> {
    let mut winners = HashMap::new();
    for members in &plan.rivals {
        let won = members
            .iter()
            .copied()
            .find(|&index| matches!(groups.get(index), Some(Some(_))));
        if let Some(winner) = won {
            winners.extend(members.iter().map(|&index| (index, winner)));
        }
    }
    winners
}

/// Where no rival was let in, those that were not tried say why the first one was not.
fn explain_losers(plan: &Plan<'_>, made: &mut Made) {
    for members in &plan.rivals {
        let won = |&index: &usize| matches!(made.groups.get(index), Some(Some(_)));
        if members.iter().any(won) {
            continue;
        }
        let why = members
            .iter()
            .find_map(|&index| match made.results.get(index) {
                Some(Err(refusal)) if refusal.reason != Reason::RivalExpanded => {
                    Some(refusal.clone())
                }
                _ => None,
            });
        let Some(why) = why else { continue };
        for &index in members {
            if let Some(Err(refusal)) = made.results.get_mut(index)
                && refusal.reason == Reason::RivalExpanded
            {
                *refusal = why.clone();
            }
        }
    }
}

/// What goes when a part goes: the part and the boundary line in front of it, as far as it has not
/// gone with the part before (`removed_to`).
fn removal(current: &[u8], tree: &Tree, part: PartId, removed_to: usize) -> Span {
    let ordinal = tree.part(part).ordinal;
    let end = tree.part(part).span.end;
    let delimiters = tree
        .part(part)
        .parent
        .map(|parent| &tree.part(parent).content);
    let Some(mime::Content::Multipart(multipart)) = delimiters else {
        return Span::empty_at(end);
    };
    let Some(delimiter) = multipart.delimiters.get(ordinal) else {
        return Span::empty_at(end);
    };
    let free_break = |at: usize| match current.get(at..) {
        Some([b'\r', b'\n', ..]) => 2,
        Some([b'\n', ..]) => 1,
        _ => 0,
    };
    // One line break must be left where one was, and none where none was: what stands in front may
    // need it, or a header have it already. A boundary line behind another part's header has none of
    // its own, and of several parts that go only the first had one.
    let start = delimiter.start.max(removed_to);
    let own_break = if start == delimiter.start {
        free_break(start)
    } else {
        0
    };
    if own_break > 0 && tree.abuts_boundary(current, part) {
        return Span::new(start + own_break, end);
    }
    let behind = if own_break > 0 { 0 } else { free_break(end) };
    Span::new(start, end + behind)
}

fn reach(group: &Group) -> Span {
    let start = group.iter().map(|edit| edit.span.start).min();
    let end = group.iter().map(|edit| edit.span.end).max();
    Span::new(start.unwrap_or_default(), end.unwrap_or_default())
}
