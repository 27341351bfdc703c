//! The verb: scan → plan → retrieve → edits → splice.
//!
//! [`Expander::expand`] puts the content of external bodies where the references were. It stops
//! with an [`Error`] only if the policy asks for that ([`OnFailure::Defer`]); any trouble with one
//! reference leaves its part byte for byte and is a row of the report.
//!
//! [`OnFailure::Defer`]: crate::policy::OnFailure::Defer
//!
//! Content that is itself a message or a multipart is looked at before it is put in. Bounds are met
//! in the order of the document: what fits is done, what does not is left with its reason, and a
//! later run may go on there. Without a bound that was reached, a second run changes nothing.

mod candidates;
mod composite;
mod content;
mod document_digest;
mod documents;
mod embed;
mod facts;
mod field_text;
mod ledger;
mod lengths;
mod link_text;
mod long_lines;
mod mark;
mod pass;
mod relink;
mod removal;
mod resolved;
mod retrieve;
mod session;
mod siblings;
mod substitute;
mod unseen;

pub use self::candidates::Candidates;
use self::mark::has_mark;
use self::session::{Asking, Session};
use crate::edit::{Edits, Spliced};
use crate::error::Error;
use crate::fetch::Fetch;
use crate::mime::ScanLimits;
use crate::policy::Policy;
use crate::report::Report;

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
/// assert!(expansion.output().into_bytes().ends_with(b"\n\nA brief note"));
/// # Ok::<(), embody::Error>(())
/// ```
pub struct Expander<'w> {
    policy: Policy,
    world: &'w dyn Fetch,
    mark: Mark,
    lengths: Lengths,
    candidates: Candidates,
}

/// What becomes of Content-Length and Lines in the header of a message that changes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Lengths {
    /// They are made true.
    #[default]
    Corrected,
    /// They stay: a mailbox corrects them, because it may quote lines of the body besides.
    Kept,
}

/// What became of one message.
#[derive(Clone, Debug)]
pub struct Expansion<'m> {
    message: &'m [u8],
    /// What changes in the message.
    pub edits: Edits,
    /// What was done and what was not.
    pub report: Report,
    /// Octets that were looked at, counted as [`Limits::work`](crate::policy::Limits::work) counts them:
    /// 0 if the message holds nothing that could be worked on.
    pub work: u64,
}

impl Expansion<'_> {
    /// The message with the edits made; borrowed from the input wherever nothing changed.
    #[must_use]
    pub fn output(&self) -> Spliced<'_> {
        self.edits.splice(self.message)
    }
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
            lengths: Lengths::default(),
        }
    }

    /// What becomes of Content-Length and Lines.
    #[must_use]
    pub fn with_lengths(mut self, lengths: Lengths) -> Self {
        self.lengths = lengths;
        self
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
        let is_marked = self.mark == Mark::Field && has_mark(message);
        if !is_marked && !self.candidates.in_message(message) {
            return Ok(Expansion {
                message,
                edits: Edits::new(),
                report: Report::default(),
                work: 0,
            });
        }
        let asking = Asking::Of(self.world);
        let mut session = Session::new(self, message, name, asking);
        let outcomes = session.run(message).unless_deferred(&self.policy)?;
        Ok(Expansion {
            message,
            edits: outcomes.edits,
            report: outcomes.report,
            work: session.ledger.spent(),
        })
    }

    /// What [`Expander::expand`] would do, as far as that can be known without retrieving: the rows
    /// of the report with the outcomes `would-expand`, `would-fetch`, `would-rewrite` and `left`.
    #[must_use]
    pub fn forecast(&self, message: &[u8], name: &str) -> Report {
        Session::new(self, message, name, Asking::Nobody)
            .run(message)
            .report
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
