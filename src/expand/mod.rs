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

mod bars;
mod candidates;
mod document_digest;
mod documents;
mod gather;
mod link_text;
mod long_lines;
mod mark;
mod new_part;
mod obtain;
mod region;
mod relink;
mod round;
mod siblings;
mod unseen;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

pub use self::candidates::Candidates;
use self::mark::{add_mark, has_dkim_signature};
use self::obtain::Answer;
use self::round::Round;
use crate::edit::Spliced;
use crate::error::Error;
use crate::fetch::{Budget, Fetch};
use crate::mime::{self, ScanLimits};
use crate::plan;
use crate::policy::{Links, OnFailure, Policy};
use crate::report::{Kind, Outcome, Reason, Refusal, Report, Row};

/// The header field that `--mark` adds.
pub const MARK_FIELD: &str = "X-Embody";

/// More than any deadline needs, and little enough to be added to any instant.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

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
    candidates: Candidates,
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
            candidates: Candidates::new(&policy),
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
        if !self.candidates.in_message(message) {
            return Ok(Expansion {
                output: Spliced::untouched(message),
                report: Report::default(),
            });
        }
        let mut session = Session {
            expander: self,
            name,
            // Instants end somewhere; whoever waits longer than this waits for ever.
            deadline: Instant::now() + self.policy.limits.deadline.min(CENTURY),
            retrieved: HashMap::new(),
            budget: Budget::of(self.policy.limits.growth),
            barred: BTreeMap::new(),
            growers: BTreeSet::new(),
            retrievers: BTreeSet::new(),
        };
        let (expansion, temporary) = loop {
            match session.attempt(message) {
                Ok(done) => break done,
                Err(barred) => {
                    let before = session.barred.len();
                    session.barred.extend(barred);
                    // Each time at least one more reference is barred, or none may be followed.
                    if session.barred.len() == before {
                        return Ok(self.untouched(message, name, &session.barred));
                    }
                }
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
    /// of the report with the outcomes `would-expand`, `would-fetch`, `would-rewrite` and `left`.
    #[must_use]
    pub fn forecast(&self, message: &[u8], name: &str) -> Report {
        let tree = mime::scan(message, &self.scan_limits());
        let plan = plan::plan(message, &tree, &self.policy);
        let mut rows: Vec<Row> = plan.items.iter().map(|item| item.forecast(name)).collect();
        rows.extend(unseen::rows(message, &tree, &plan, &self.candidates, name));
        if self.policy.links == Links::Resolve {
            let room = self.policy.limits.growth;
            let documents = documents::rewrite(message, &tree, &self.policy, name, room);
            rows.extend(documents.rows.into_iter().map(|mut row| {
                if row.outcome == Outcome::Rewritten {
                    row.outcome = Outcome::WouldRewrite;
                }
                row
            }));
        }
        rows.sort_by_cached_key(|row| number_key(&row.part));
        Report {
            rows,
            notes: Vec::new(),
        }
    }

    /// The message as it came, every reference left for the first reason there is.
    fn untouched<'m>(&self, message: &'m [u8], name: &str, barred: &Barred) -> Expansion<'m> {
        let mut report = self.forecast(message, name);
        for row in &mut report.rows {
            if row.outcome != Outcome::Left {
                let refusal = barred.get(&row.part).or_else(|| barred.values().next());
                row.outcome = Outcome::Left;
                row.reason = refusal.map(|refusal| refusal.reason);
                row.detail = refusal.map_or_else(String::new, |refusal| refusal.detail.clone());
            }
        }
        Expansion {
            output: Spliced::untouched(message),
            report,
        }
    }

    fn has_documents(&self, output: &Spliced<'_>) -> bool {
        // Types stand in header fields, which are never split between two chunks.
        output
            .chunks()
            .iter()
            .any(|chunk| self.candidates.documents(chunk))
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

/// One message while it is worked on.
struct Session<'s> {
    expander: &'s Expander<'s>,
    name: &'s str,
    deadline: Instant,
    /// Answers so far, by URL and wanted type: nothing is asked twice.
    retrieved: HashMap<(String, Option<String>), Result<Answer, Refusal>>,
    /// What all bodies of the message may hold together.
    budget: Budget,
    barred: Barred,
    /// References of the original message that made the message grow in this attempt.
    growers: BTreeSet<String>,
    /// Those that asked the world in this attempt.
    retrievers: BTreeSet<String>,
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
        self.growers.clear();
        self.retrievers.clear();
        // Most messages that get here hold HTML and no reference: one scan is enough for them.
        let mut round = if self.expander.candidates.external_bodies(message) {
            self.round(message, &[], 0)?
        } else {
            Round::without_references(message)
        };
        let mut report = Report {
            rows: Vec::new(),
            notes: std::mem::take(&mut round.notes),
        };
        let expanded_at_first: Vec<String> = round
            .rows
            .iter()
            .filter(|row| row.outcome == Outcome::Expanded)
            .map(|row| row.part.clone())
            .collect();
        let mut changed = round.changed;
        let mut growth = round.growth;
        let mut temporary = round.temporary.take();
        while round.again {
            // What was expanded stays said; what was left is looked at again in the next round.
            let done = |row: &Row| row.outcome != Outcome::Left;
            report.rows.extend(round.rows.drain(..).filter(done));
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
                composites: next.composites,
                again: next.again,
                temporary: None,
            };
        }
        report.rows.append(&mut round.rows);
        let mut output = round.output;
        if self.policy().links == Links::Resolve && self.expander.has_documents(&output) {
            let (linked, growth_of_links) = self.resolve_links(output, growth, &mut report);
            output = linked;
            if let Some(refusal) = over_together(&report, growth) {
                // Externals and links share one bound: neither may win by coming first.
                let mut barred: Barred = expanded_at_first
                    .into_iter()
                    .map(|number| (number, refusal.clone()))
                    .collect();
                barred.insert(LINKS.to_owned(), refusal);
                return Err(barred);
            }
            changed |= growth_of_links.is_some();
        }
        report.rows.sort_by_cached_key(|row| number_key(&row.part));
        if changed && has_dkim_signature(message) {
            let note = "the message carries a DKIM-Signature, which will not verify any more";
            let mut rows = report.rows.iter_mut();
            let is_change = |row: &&mut Row| row.outcome != Outcome::Left;
            if let Some(row) = rows.find(is_change) {
                row.remark(note);
            }
            report.notes.push(note.to_owned());
        }
        if self.expander.mark == Mark::Field {
            let limits = self.expander.scan_limits();
            output = add_mark(message, output, &report, changed, &limits);
        }
        Ok((Expansion { output, report }, temporary))
    }

    /// Resolves the links of all documents; tells the growth if anything changed.
    fn resolve_links<'m>(
        &self,
        output: Spliced<'m>,
        growth: u64,
        report: &mut Report,
    ) -> (Spliced<'m>, Option<u64>) {
        let bytes = output.into_bytes();
        let tree = mime::scan(&bytes, &self.expander.scan_limits());
        let room = if self.barred.contains_key(LINKS) {
            0
        } else {
            self.policy().limits.growth.saturating_sub(growth)
        };
        let made = documents::rewrite(&bytes, &tree, self.policy(), self.name, room);
        report.rows.extend(made.rows);
        let changed = (!made.edits.is_empty()).then_some(made.growth);
        (Spliced::edited(bytes, made.edits), changed)
    }
}

/// The key under which [`Barred`] holds why no document may grow.
const LINKS: &str = "links";

/// Whether documents were refused only because external bodies had used the room up.
fn over_together(report: &Report, growth: u64) -> Option<Refusal> {
    if growth == 0 {
        return None;
    }
    report
        .rows
        .iter()
        .find(|row| row.kind == Kind::Link && row.reason == Some(Reason::GrowthLimit))
        .map(|row| Refusal::lasting(Reason::GrowthLimit, row.detail.clone()))
}

/// Sorts `1.10` behind `1.9`.
fn number_key(number: &str) -> Vec<u64> {
    number
        .split('.')
        .map(|step| step.parse().unwrap_or(0))
        .collect()
}
