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
mod gather;
mod mark;
mod new_part;
mod obtain;
mod region;
mod round;

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

pub use self::candidates::Candidates;
use self::mark::{add_mark, has_dkim_signature};
use self::round::Round;
use crate::edit::Spliced;
use crate::error::Error;
use crate::fetch::{Fetch, Retrieved};
use crate::mime::{self, ScanLimits};
use crate::plan;
use crate::policy::{OnFailure, Policy};
use crate::report::{Outcome, Refusal, Report, Row};

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
        if !self.candidates.any(message) {
            return Ok(Expansion {
                output: Spliced::untouched(message),
                report: Report::default(),
            });
        }
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

/// One message while it is worked on.
struct Session<'s> {
    expander: &'s Expander<'s>,
    name: &'s str,
    deadline: Instant,
    /// Answers so far, by URL and wanted type: nothing is asked twice.
    retrieved: HashMap<(String, Option<String>), Result<Retrieved, Refusal>>,
    barred: Barred,
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
        while round.composites {
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
            output = add_mark(
                message,
                output,
                &report,
                changed,
                &self.expander.scan_limits(),
            );
        }
        Ok((Expansion { output, report }, temporary))
    }
}

/// Sorts `1.10` behind `1.9`.
fn number_key(number: &str) -> Vec<u64> {
    number
        .split('.')
        .map(|step| step.parse().unwrap_or(0))
        .collect()
}
