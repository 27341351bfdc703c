use std::collections::HashMap;

use super::context::Context;
use super::needs::{Answers, Found, Needs};
use super::prefilter::kinds::Kinds;
use super::settings::Settings;
use super::{Content, Mode, Need};
use crate::engine::ledger::Ledger;
use crate::engine::policy::Policy;
use crate::engine::report::Refusal;

/// State of one round: one call of the engine for one message, with the content that the driver has retrieved so far.
pub(super) struct Session<'s> {
    pub(super) settings: &'s Settings,
    pub(super) kinds: Kinds,
    pub(super) context: &'s Context,
    pub(super) mode: Mode,
    /// Content that the driver has retrieved. A round does not change it.
    pub(super) answers: Answers,
    /// Refusal for content that is not in `answers`, if this is the last round. If it is `None`, the round ends when content
    /// is missing, and the driver starts another one.
    pub(super) last: Option<Refusal>,
    /// Needs of this round, each with its answer. Needs that exceed the limit on retrievals are not included.
    pub(super) retrieved: HashMap<Need, Found<Content>>,
    /// The needs in `retrieved`, in the order in which they were added.
    pub(super) asked: Vec<Need>,
    /// Refusals for references for which no copy was found, by a hash of their note. Part numbers change between passes, so
    /// later passes use this map instead of another search.
    pub(super) not_copied: HashMap<u64, Refusal>,
    /// Content that this round needs but does not have. The round then ends as soon as possible, and its result is not used.
    pub(super) needs: Option<Needs>,
    pub(super) ledger: Ledger,
    /// Work of this round, in bytes, that is no longer in the ledger. A round that stops or continues goes back to an earlier
    /// ledger, so that repeated work counts only once for the limit on work of the message. The repeated work is counted here,
    /// because the driver also limits the work of all rounds together.
    pub(super) uncounted: u64,
    /// Work in bytes that is counted in the ledger, but was done by earlier rounds.
    pub(super) inherited: u64,
}

impl<'s> Session<'s> {
    pub(super) fn policy(&self) -> &'s Policy {
        &self.settings.policy
    }

    /// Returns true if the round continues without the content of a need. Its reference gets the outcome `WouldFetch`.
    pub(super) fn is_left_open(&self, need: &Need) -> bool {
        match need {
            Need::Url { .. } => !self.mode.asks_servers(),
            // The answer comes from the program of `--resolver`, which is started only in a run that writes mail.
            Need::Question { .. } => !self.mode.writes(),
            Need::Attachment { .. } | Need::Object { .. } | Need::Neighbour(_) | Need::Copy(_) => {
                false
            }
        }
    }

    /// Adds the answer to a need, or `Ok(None)` while it is looked up.
    pub(super) fn add_retrieved(&mut self, need: Need, found: Found<Content>) {
        if self.retrieved.insert(need.clone(), found).is_none() {
            self.asked.push(need);
        }
    }

    /// Goes back to the state with this ledger and with the first `asked` needs. The work since then stays counted as work
    /// of the round.
    pub(super) fn undo(&mut self, ledger: Ledger, asked: usize) {
        self.uncounted += self.ledger.spent().saturating_sub(ledger.spent());
        self.ledger = ledger;
        for need in self.asked.drain(asked..) {
            self.retrieved.remove(&need);
        }
    }

    /// Continues with the ledger and the needs of an earlier round.
    pub(super) fn resume(&mut self, ledger: Ledger, retrieved: HashMap<Need, Found<Content>>) {
        self.uncounted += self.ledger.spent();
        self.inherited = ledger.spent();
        self.ledger = ledger;
        self.asked = retrieved.keys().cloned().collect();
        self.retrieved = retrieved;
    }

    /// Returns the work of this round, in bytes.
    pub(super) fn work(&self) -> u64 {
        let counted = self.ledger.spent().saturating_sub(self.inherited);
        counted.saturating_add(self.uncounted)
    }

    /// Returns true if content is missing. The result of the round is then not used.
    pub(super) fn is_stopped(&self) -> bool {
        self.needs.is_some()
    }
}
