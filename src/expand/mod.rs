//! The verb: scan → plan → fetch → edits → splice.
//!
//! [`Expander::expand`] puts the content of external bodies where the references were. It stops
//! with an [`Error`] only if the policy asks for that ([`OnFailure::Defer`]); any trouble with one
//! reference leaves its part byte for byte and is a row of the report.
//!
//! Content that is itself a message or a multipart is looked at again, in rounds, until nothing
//! more changes. So that running the program twice changes nothing more than running it once, the
//! bounds of a whole message hold for the whole message: if its references would need more
//! retrievals or more growth than allowed, *none* of those that need any is followed; and if
//! something inside retrieved content would exceed a bound or lead in a circle, the reference that
//! brought that content is left.

mod new_part;
mod obtain;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Instant;

use self::new_part::Inside;
use self::obtain::Obtained;
use crate::edit::{Edit, Edits, Group, Spliced};
use crate::error::Error;
use crate::external_body::ESSENCE;
use crate::fetch::{Fetch, Request, Retrieved};
use crate::link::url;
use crate::mime::{self, PartId, ScanLimits, TransferEncoding, Tree};
use crate::plan::{self, Item, Plan, Step};
use crate::policy::{OnFailure, Policy};
use crate::report::{Duration, Outcome, Reason, Refusal, Report, Row};
use crate::span::{Newline, Span};

/// The header field that `--mark` adds.
pub const MARK_FIELD: &str = "X-Embody";

/// Whether to say in the message that it was worked on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Mark {
    /// Add nothing.
    #[default]
    Off,
    /// Add `X-Embody: expanded=2 left=1 links=14` to messages that hold references.
    Field,
}

/// Fills external bodies.
///
/// ```
/// use embody::{Expander, Policy, fetch::Nowhere};
///
/// let mail = b"Content-Type: message/external-body; access-type=URL;\n URL=\"data:,A%20brief%20note\"\n\n";
/// let expander = Expander::new(Policy::default(), &Nowhere);
/// let expansion = expander.expand(mail, "stdin")?;
/// assert_eq!(expansion.report.expanded(), 1);
/// assert!(expansion.output.into_bytes().ends_with(b"\n\nA brief note"));
/// # Ok::<(), embody::Error>(())
/// ```
pub struct Expander<'w> {
    policy: Policy,
    world: &'w dyn Fetch,
    mark: Mark,
}

/// What became of one message.
#[derive(Clone, Debug)]
pub struct Expansion<'m> {
    /// The message; borrowed from the input wherever nothing changed.
    pub output: Spliced<'m>,
    /// What was done and what was not.
    pub report: Report,
}

impl<'w> Expander<'w> {
    /// An expander with this policy, in this world.
    #[must_use]
    pub fn new(policy: Policy, world: &'w dyn Fetch) -> Self {
        Self {
            policy,
            world,
            mark: Mark::Off,
        }
    }

    /// Whether to add the `X-Embody` field.
    #[must_use]
    pub fn with_mark(mut self, mark: Mark) -> Self {
        self.mark = mark;
        self
    }

    /// The policy in force.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Expands one message. `name` is what the report calls it.
    ///
    /// # Errors
    /// [`Error::Deferred`] if a retrieval failed for a while only and the policy says to try later.
    pub fn expand<'m>(&self, message: &'m [u8], name: &str) -> Result<Expansion<'m>, Error> {
        let mut session = Session {
            expander: self,
            name,
            deadline: Instant::now() + self.policy.limits.deadline,
            retrieved: HashMap::new(),
            barred: BTreeMap::new(),
        };
        let (expansion, temporary) = loop {
            match session.attempt(message) {
                Ok(done) => break done,
                // Each time at least one more reference of the message is barred: this ends.
                Err(barred) => session.barred.extend(barred),
            }
        };
        if self.policy.on_failure == OnFailure::Defer
            && let Some(detail) = temporary
        {
            return Err(Error::Deferred(detail));
        }
        Ok(expansion)
    }

    /// What [`Expander::expand`] would do, as far as that can be known without retrieving: the rows
    /// of the report with the outcomes `would-expand`, `would-fetch` and `left`.
    #[must_use]
    pub fn forecast(&self, message: &[u8], name: &str) -> Report {
        let tree = mime::scan(message, &self.scan_limits());
        let plan = plan::plan(message, &tree, &self.policy);
        Report {
            rows: plan.items.iter().map(|item| item.forecast(name)).collect(),
            notes: Vec::new(),
        }
    }

    /// The policy's structural bounds.
    #[must_use]
    pub fn scan_limits(&self) -> ScanLimits {
        let limits = &self.policy.limits;
        ScanLimits {
            depth: limits.depth,
            parts: limits.parts,
            header: limits.header,
        }
    }
}

/// References of the original message (by part number) that must be left, and why.
type Barred = BTreeMap<String, Refusal>;

/// What the world said, and how long it took.
type Answer = (Result<Retrieved, Refusal>, std::time::Duration);

/// One message while it is worked on.
struct Session<'s> {
    expander: &'s Expander<'s>,
    name: &'s str,
    deadline: Instant,
    /// Answers so far, by URL and wanted type: nothing is asked twice.
    retrieved: HashMap<(String, Option<String>), Answer>,
    barred: Barred,
}

/// A stretch of the current text that came in with content, and the reference of the original
/// message that brought it.
#[derive(Clone)]
struct Region {
    span: Span,
    owner: String,
    /// URLs that led here, outermost first.
    trail: Vec<String>,
}

/// What one round made.
struct Round<'m> {
    output: Spliced<'m>,
    rows: Vec<Row>,
    notes: Vec<String>,
    regions: Vec<Region>,
    growth: u64,
    changed: bool,
    temporary: Option<String>,
}

impl Session<'_> {
    fn policy(&self) -> &Policy {
        &self.expander.policy
    }

    /// Expands the message, or says what has to be barred before it can be tried again.
    fn attempt<'m>(
        &mut self,
        message: &'m [u8],
    ) -> Result<(Expansion<'m>, Option<String>), Barred> {
        let mut round = self.round(message, &[], 0)?;
        let mut report = Report {
            rows: Vec::new(),
            notes: std::mem::take(&mut round.notes),
        };
        let mut changed = round.changed;
        let mut growth = round.growth;
        let mut temporary = round.temporary.take();
        while !round.regions.is_empty() {
            // What was expanded stays said; what was left is looked at again in the next round.
            let expanded = |row: &Row| row.outcome != Outcome::Left || row.reason == Some(Reason::RivalExpanded);
            report.rows.extend(round.rows.drain(..).filter(expanded));
            let current = round.output.into_bytes();
            let next = self.round(&current, &round.regions, growth)?;
            growth += next.growth;
            changed |= next.changed;
            temporary = temporary.or(next.temporary);
            report.notes.extend(next.notes);
            round = Round {
                output: Spliced::owned(next.output.into_bytes().into_owned()),
                rows: next.rows,
                notes: Vec::new(),
                regions: next.regions,
                growth: 0,
                changed: false,
                temporary: None,
            };
        }
        report.rows.append(&mut round.rows);
        report.rows.sort_by_cached_key(|row| number_key(&row.part));
        let mut output = round.output;
        if changed && has_dkim_signature(message) {
            report.notes.push(
                "the message carries a DKIM-Signature, which will not verify any more".to_owned(),
            );
        }
        if self.expander.mark == Mark::Field {
            output = add_mark(message, output, &report, changed, &self.expander.scan_limits());
        }
        Ok((Expansion { output, report }, temporary))
    }

    /// Scans, plans, obtains and edits once.
    fn round<'m>(
        &mut self,
        current: &'m [u8],
        regions: &[Region],
        growth_before: u64,
    ) -> Result<Round<'m>, Barred> {
        let tree = mime::scan(current, &self.expander.scan_limits());
        let mut plan = plan::plan(current, &tree, self.policy());
        let owners = owners_of(&tree, &plan, regions);
        if regions.is_empty() {
            for item in &mut plan.items {
                if let Some(refusal) = self.barred.get(&item.number) {
                    item.step = Step::Leave(refusal.clone());
                }
            }
        }
        self.bar_circles(&plan, &owners)?;
        self.bar_fetches(&mut plan, &owners)?;
        let mut results = self.obtain_all(current, &tree, &plan);
        let mut groups: Vec<Option<(Group, Inside)>> = Vec::with_capacity(plan.items.len());
        let mut facts: Vec<Option<Facts>> = Vec::with_capacity(plan.items.len());
        for (item, result) in plan.items.iter().zip(&mut results) {
            let (group, fact) = match std::mem::replace(result, Err(untried())) {
                Err(refusal) => {
                    *result = Err(refusal);
                    (None, None)
                }
                Ok(obtained) => {
                    let fact = Facts::of(&obtained);
                    match new_part::edits(current, &tree, &item.body, obtained) {
                        Ok(group) => (Some(group), Some(fact)),
                        Err(refusal) => {
                            *result = Err(refusal);
                            (None, None)
                        }
                    }
                }
            };
            groups.push(group);
            facts.push(fact);
        }
        let growth = self.bar_growth(&mut groups, &mut results, &owners, growth_before)?;
        Ok(self.assemble(current, &tree, &plan, groups, facts, results, &owners, growth))
    }

    /// A URL that leads to content that refers to the same URL again: the reference of the
    /// original message where the circle is entered is left.
    fn bar_circles(&self, plan: &Plan<'_>, owners: &[Option<&Region>]) -> Result<(), Barred> {
        let mut barred = Barred::new();
        for (item, owner) in plan.items.iter().zip(owners) {
            if let (Step::Retrieve { url, .. }, Some(region)) = (&item.step, owner)
                && region.trail.iter().any(|before| before == url)
            {
                let detail = format!("{} leads back to itself", url::masked(url));
                barred.insert(
                    region.owner.clone(),
                    Refusal::lasting(Reason::ReferenceLoop, detail),
                );
            }
        }
        if barred.is_empty() { Ok(()) } else { Err(barred) }
    }

    /// More different retrievals than allowed: none is made.
    fn bar_fetches(
        &self,
        plan: &mut Plan<'_>,
        owners: &[Option<&Region>],
    ) -> Result<(), Barred> {
        let wanted: BTreeSet<(&str, Option<&str>)> = plan
            .items
            .iter()
            .filter_map(|item| match &item.step {
                Step::Retrieve { url, accept } => Some((url.as_str(), accept.as_deref())),
                _ => None,
            })
            .chain(
                self.retrieved
                    .keys()
                    .map(|(url, accept)| (url.as_str(), accept.as_deref())),
            )
            .collect();
        let limit = self.policy().limits.fetches as usize;
        if wanted.len() <= limit {
            return Ok(());
        }
        let refusal = Refusal::lasting(
            Reason::TooManyFetches,
            format!(
                "the message needs {} retrievals, --max-fetches is {limit}",
                wanted.len()
            ),
        );
        drop(wanted);
        let mut barred = Barred::new();
        for (item, owner) in plan.items.iter_mut().zip(owners) {
            if matches!(item.step, Step::Retrieve { .. }) {
                match owner {
                    Some(region) => {
                        barred.insert(region.owner.clone(), refusal.clone());
                    }
                    None => item.step = Step::Leave(refusal.clone()),
                }
            }
        }
        if barred.is_empty() { Ok(()) } else { Err(barred) }
    }

    /// One result per item; rivals behind the first success stay [`untried`].
    fn obtain_all(
        &mut self,
        current: &[u8],
        tree: &Tree,
        plan: &Plan<'_>,
    ) -> Vec<Result<Obtained, Refusal>> {
        let mut results: Vec<Option<Result<Obtained, Refusal>>> = vec![None; plan.items.len()];
        let in_group: BTreeSet<usize> = plan.rivals.iter().flatten().copied().collect();
        let mut wave: Vec<usize> = (0..plan.items.len())
            .filter(|index| !in_group.contains(index))
            .collect();
        let mut turns: Vec<std::slice::Iter<'_, usize>> =
            plan.rivals.iter().map(|members| members.iter()).collect();
        wave.extend(turns.iter_mut().filter_map(|turn| turn.next().copied()));
        while !wave.is_empty() {
            self.retrieve_wave(plan, &wave);
            for &index in &wave {
                self.obtain_one(current, tree, plan, index, &mut results, &mut Vec::new());
            }
            wave.clear();
            for (members, turn) in plan.rivals.iter().zip(&mut turns) {
                let won = members
                    .iter()
                    .any(|&index| matches!(results.get(index), Some(Some(Ok(_)))));
                if !won {
                    wave.extend(turn.next());
                }
            }
        }
        results
            .into_iter()
            .map(|result| result.unwrap_or_else(|| Err(untried())))
            .collect()
    }

    /// Retrieves, side by side, what a wave needs and nobody asked for yet.
    fn retrieve_wave(&mut self, plan: &Plan<'_>, wave: &[usize]) {
        let mut seen = BTreeSet::new();
        let requests: Vec<Request> = wave
            .iter()
            .filter_map(|&index| match &plan.items.get(index)?.step {
                Step::Retrieve { url, accept } => {
                    let key = (url.clone(), accept.clone());
                    (!self.retrieved.contains_key(&key) && seen.insert(key)).then(|| Request {
                        url: url.clone(),
                        accept: accept.clone(),
                        deadline: self.deadline,
                    })
                }
                _ => None,
            })
            .collect();
        let limits = &self.policy().limits;
        let answers = crate::fetch::fetch_all(
            self.expander.world,
            &requests,
            self.policy().in_flight,
            limits.growth.saturating_add(limits.body),
        );
        for (request, answer) in requests.into_iter().zip(answers) {
            self.retrieved
                .insert((request.url, request.accept), answer);
        }
    }

    /// Obtains the content of one item, following Content-IDs through other external bodies.
    fn obtain_one(
        &mut self,
        current: &[u8],
        tree: &Tree,
        plan: &Plan<'_>,
        index: usize,
        results: &mut [Option<Result<Obtained, Refusal>>],
        visiting: &mut Vec<usize>,
    ) {
        let Some(item) = plan.items.get(index) else {
            return;
        };
        if !matches!(results.get(index), Some(None)) {
            return;
        }
        let policy = self.policy();
        let result = match &item.step {
            Step::Leave(refusal) => Err(refusal.clone()),
            Step::Decode => obtain::decode(&item.body, policy),
            Step::Retrieve { url, accept } => self.retrieval(current, item, url, accept.as_ref()),
            Step::Copy(part) if tree.part(*part).essence == ESSENCE => {
                self.through(current, tree, plan, (index, *part), results, visiting)
            }
            Step::Copy(part) => obtain::copy(current, tree, *part),
        };
        let policy = self.policy();
        let result = result.and_then(|obtained| obtain::admit(obtained, &item.body, policy));
        if let Some(place) = results.get_mut(index) {
            *place = Some(result);
        }
    }

    fn retrieval(
        &self,
        current: &[u8],
        item: &Item<'_>,
        url: &str,
        accept: Option<&String>,
    ) -> Result<Obtained, Refusal> {
        let key = (url.to_owned(), accept.cloned());
        let Some((answer, elapsed)) = self.retrieved.get(&key) else {
            return Err(untried());
        };
        let encoding = TransferEncoding::of(
            mime::header::first(
                current,
                &item.body.phantom.fields,
                "Content-Transfer-Encoding",
            )
            .map(|field| field.value.of(current)),
        );
        let mut obtained = obtain::take(&item.body, answer.clone()?, encoding)?;
        obtained.elapsed = Some(*elapsed);
        Ok(obtained)
    }

    /// A Content-ID that names another external body stands for that one's content.
    fn through(
        &mut self,
        current: &[u8],
        tree: &Tree,
        plan: &Plan<'_>,
        (index, part): (usize, PartId),
        results: &mut [Option<Result<Obtained, Refusal>>],
        visiting: &mut Vec<usize>,
    ) -> Result<Obtained, Refusal> {
        let number = tree.number(part);
        let Some(other) = plan.items.iter().position(|item| item.body.part == part) else {
            return Err(untried());
        };
        visiting.push(index);
        if visiting.contains(&other) {
            return Err(Refusal::lasting(
                Reason::ReferenceLoop,
                format!("part {number} refers back to this one"),
            ));
        }
        if visiting.len() > self.policy().limits.depth {
            return Err(Refusal::lasting(
                Reason::TooDeep,
                "the chain of Content-IDs is longer than --max-depth",
            ));
        }
        self.obtain_one(current, tree, plan, other, results, visiting);
        match results.get(other) {
            Some(Some(Ok(obtained))) => {
                let mut obtained = obtained.clone();
                obtained.source_type = Some(obtained.essence.clone());
                obtained.location = None;
                Ok(obtained)
            }
            Some(Some(Err(refusal))) => Err(Refusal {
                reason: refusal.reason,
                detail: format!("part {number}, which it refers to, was left: {}", refusal.detail),
                duration: refusal.duration,
            }),
            _ => Err(untried()),
        }
    }

    /// More growth than allowed: nothing that makes the message grow is done.
    fn bar_growth(
        &self,
        groups: &mut [Option<(Group, Inside)>],
        results: &mut [Result<Obtained, Refusal>],
        owners: &[Option<&Region>],
        before: u64,
    ) -> Result<u64, Barred> {
        let limit = self.policy().limits.growth;
        let growths: Vec<u64> = groups
            .iter()
            .map(|group| {
                let gained = |(group, _): &(Group, Inside)| {
                    group.iter().map(Edit::growth).sum::<i64>().max(0) as u64
                };
                group.as_ref().map_or(0, gained)
            })
            .collect();
        // What is too large alone is left alone; the others share the limit.
        let total: u64 = growths.iter().filter(|&&growth| growth <= limit).sum();
        let mut barred = Barred::new();
        let mut granted = 0;
        for (index, &growth) in growths.iter().enumerate() {
            if growth <= limit && before + total <= limit {
                granted += growth;
                continue;
            }
            if growth == 0 {
                continue;
            }
            let refusal = Refusal::lasting(
                Reason::GrowthLimit,
                if growth > limit {
                    format!("it would add {growth} octets, --max-growth is {limit}")
                } else {
                    format!(
                        "the message would gain {} octets, --max-growth is {limit}",
                        before + total
                    )
                },
            );
            match owners.get(index).copied().flatten() {
                Some(region) => {
                    barred.insert(region.owner.clone(), refusal);
                }
                None => {
                    if let (Some(group), Some(result)) =
                        (groups.get_mut(index), results.get_mut(index))
                    {
                        *group = None;
                        *result = Err(refusal);
                    }
                }
            }
        }
        if barred.is_empty() { Ok(granted) } else { Err(barred) }
    }

    #[expect(clippy::too_many_arguments, reason = "the pieces of one round, taken apart here only")]
    fn assemble<'m>(
        &self,
        current: &'m [u8],
        tree: &Tree,
        plan: &Plan<'_>,
        groups: Vec<Option<(Group, Inside)>>,
        facts: Vec<Option<Facts>>,
        results: Vec<Result<Obtained, Refusal>>,
        owners: &[Option<&Region>],
        growth: u64,
    ) -> Round<'m> {
        let winners = winners(plan, &groups);
        let mut edits = Edits::new();
        let mut composites: Vec<(Span, usize)> = Vec::new();
        let mut round = Round {
            output: Spliced::default(),
            rows: Vec::new(),
            notes: Vec::new(),
            regions: Vec::new(),
            growth,
            changed: false,
            temporary: None,
        };
        let everything = plan.items.iter().zip(groups).zip(facts).zip(results);
        for (index, (((item, group), fact), result)) in everything.enumerate() {
            let mut row = item.forecast(self.name);
            let rival = winners.get(&index);
            match (group, fact, rival) {
                (_, _, Some(&winner)) if winner != index => {
                    let removal = removal(current, tree, item.body.part);
                    if edits.add(vec![Edit::remove(removal)]).is_ok() {
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
                        if inside == Inside::Composite {
                            composites.push((reach, index));
                        }
                    }
                }
                (_, _, _) => {
                    let refusal = result.err().unwrap_or_else(untried);
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
        round.changed = !edits.is_empty();
        round.regions = regions_after(&edits, &composites, plan, owners);
        round.output = edits.splice(current);
        round
    }
}

/// What a row says of content that was put in.
struct Facts {
    essence: String,
    octets: u64,
    location: Option<String>,
    elapsed: Option<std::time::Duration>,
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
            Some(location) => format!(
                "{} octets of {} from {location}",
                self.octets, self.essence
            ),
            None => format!("{} octets of {}", self.octets, self.essence),
        };
        row.media_type = Some(self.essence.clone());
        row.bytes = Some(self.octets);
        row.ms = self
            .elapsed
            .map(|elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
    }
}

/// The result of a rival that another one made unnecessary.
fn untried() -> Refusal {
    Refusal::lasting(Reason::RivalExpanded, "it was not needed")
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

/// What goes when a part goes: the part and the boundary line in front of it.
fn removal(current: &[u8], tree: &Tree, part: PartId) -> Span {
    let ordinal = tree.part(part).ordinal;
    let end = tree.part(part).span.end;
    let delimiters = tree.part(part).parent.map(|parent| &tree.part(parent).content);
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
    // A first boundary line without a line break of its own takes the next one's with it.
    let own_break = free_break(delimiter.start);
    let behind = if own_break == 0 { free_break(end) } else { 0 };
    Span::new(delimiter.start, end + behind)
}

fn reach(group: &Group) -> Span {
    let start = group.iter().map(|edit| edit.span.start).min();
    let end = group.iter().map(|edit| edit.span.end).max();
    Span::new(start.unwrap_or_default(), end.unwrap_or_default())
}

/// Which region each item stands in.
fn owners_of<'r>(tree: &Tree, plan: &Plan<'_>, regions: &'r [Region]) -> Vec<Option<&'r Region>> {
    plan.items
        .iter()
        .map(|item| {
            let span = tree.part(item.body.part).span;
            regions.iter().find(|region| region.span.contains(span))
        })
        .collect()
}

/// Where the composite content stands in the output, and what brought it.
fn regions_after(
    edits: &Edits,
    composites: &[(Span, usize)],
    plan: &Plan<'_>,
    owners: &[Option<&Region>],
) -> Vec<Region> {
    let shifted = |at: usize, inclusive: bool| {
        let growth: i64 = edits
            .as_slice()
            .iter()
            .take_while(|edit| edit.span.end < at || (inclusive && edit.span.end <= at))
            .map(Edit::growth)
            .sum();
        usize::try_from(at as i64 + growth).unwrap_or_default()
    };
    composites
        .iter()
        .filter_map(|&(reach, index)| {
            let item = plan.items.get(index)?;
            let owner = owners.get(index).copied().flatten();
            let mut trail = owner.map(|region| region.trail.clone()).unwrap_or_default();
            if let Step::Retrieve { url, .. } = &item.step {
                trail.push(url.clone());
            }
            Some(Region {
                // The header may stand in front of the first edit: only the body's end matters.
                span: Span::new(shifted(reach.start, false), shifted(reach.end, true)),
                owner: owner.map_or_else(|| item.number.clone(), |region| region.owner.clone()),
                trail,
            })
        })
        .collect()
}

/// Sorts `1.10` behind `1.9`.
fn number_key(number: &str) -> Vec<u64> {
    number
        .split('.')
        .map(|step| step.parse().unwrap_or(0))
        .collect()
}

fn has_dkim_signature(message: &[u8]) -> bool {
    let within = Span::new(0, message.len());
    let header = mime::Header::read(message, within, mime::header::Front::Message, 1 << 20, |_| {
        false
    });
    mime::header::first(message, &header.fields, "DKIM-Signature").is_some()
}

/// Adds or renews the field. A message without references is not marked, and one that did not
/// change keeps the mark it has: running twice must change nothing more.
fn add_mark<'m>(
    message: &'m [u8],
    output: Spliced<'m>,
    report: &Report,
    changed: bool,
    limits: &ScanLimits,
) -> Spliced<'m> {
    if report.rows.is_empty() {
        return output;
    }
    let bytes = output.into_bytes();
    let tree = mime::scan(&bytes, limits);
    let root = tree.root();
    let mark = tree
        .fields(PartId::ROOT)
        .iter()
        .find(|field| field.is(&bytes, MARK_FIELD));
    let ends = root.header.of(&bytes).ends_with(b"\n");
    if (mark.is_some() && !changed) || !ends {
        return Spliced::from_bytes(bytes);
    }
    let field = format!(
        "{MARK_FIELD}: expanded={} left={} links={}",
        report.expanded(),
        report.left(),
        report.links()
    );
    let field = [field.as_bytes(), Newline::of_first_line(message).bytes()].concat();
    let edit = match mark {
        Some(mark) => Edit::replace(mark.whole, field),
        None => Edit::insert(root.header.end, field),
    };
    match bytes {
        Cow::Borrowed(bytes) => {
            let mut edits = Edits::new();
            // One edit overlaps nothing.
            let _ = edits.add(vec![edit]);
            edits.splice(bytes)
        }
        Cow::Owned(bytes) => {
            let mut edits = Edits::new();
            let _ = edits.add(vec![edit]);
            Spliced::owned(edits.splice(&bytes).into_bytes().into_owned())
        }
    }
}
