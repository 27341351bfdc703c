//! The state of one round, and how it looks up the answers for references: retrieved content, files next to the
//! mailbox, copies.

mod copies;
mod hosted;
mod retrieve;

use std::collections::{HashMap, HashSet};

use crate::engine::context::Context;
use crate::engine::guide::Guide;
use crate::engine::ledger::Ledger;
use crate::engine::needs::{Answers, Found, Needs};
use crate::engine::policy::Policy;
use crate::engine::prefilter::kinds::Kinds;
use crate::engine::report::Refusal;
use crate::engine::settings::EngineSettings;
use crate::engine::{Content, Mode, Need};

/// State of one round: one call of the engine for one message, with the content that the driver has retrieved so far.
pub(in crate::engine) struct Session<'s> {
    pub(in crate::engine) settings: &'s EngineSettings,
    pub(in crate::engine) kinds: Kinds,
    pub(in crate::engine) context: &'s Context,
    pub(in crate::engine) mode: Mode,
    /// Content that the driver has retrieved. A round does not change it.
    pub(in crate::engine) answers: Answers,
    /// Set in the last round only: the refusal for content that is missing in `answers`. In other rounds, missing
    /// content ends the round, and the driver retrieves it for the next round.
    pub(in crate::engine) last: Option<Refusal>,
    /// Needs of this round, each with its answer. Needs that exceed the limit on retrievals are not included.
    pub(in crate::engine) retrieved: HashMap<Need, Found<Content>>,
    /// Refusals for references for which no copy was found, by a hash of their note. Part numbers change between passes, so
    /// later passes use this map instead of another search.
    pub(in crate::engine) not_copied: HashMap<u64, Refusal>,
    /// Content that this round needs but does not have. The round then ends as soon as possible, and its result is not used.
    pub(in crate::engine) needs: Option<Needs>,
    pub(in crate::engine) ledger: Ledger,
    /// Indexes of the parts of the guide that already answer a reference.
    pub(in crate::engine) given: HashSet<usize>,
    /// Result of an earlier run, which supplies the content when `compare` repeats that run. `None` in every other run.
    pub(in crate::engine) guide: Option<&'s Guide>,
}

impl<'s> Session<'s> {
    pub(in crate::engine) fn policy(&self) -> &'s Policy {
        &self.settings.policy
    }

    /// Returns true if the round continues without the content of a need. Its reference gets the outcome `WouldFetch`.
    pub(in crate::engine) fn is_left_open(&self, need: &Need) -> bool {
        match need {
            Need::Url { .. } => !self.mode.asks_servers(),
            // The answer comes from the program of `--resolver`, which is started only in a run that writes mail.
            Need::Question { .. } => !self.mode.writes(),
            Need::Attachment { .. } | Need::Object { .. } | Need::Neighbour(_) | Need::Copy(_) => {
                false
            }
        }
    }

    /// Returns true if content is missing. The result of the round is then not used.
    pub(in crate::engine) fn is_stopped(&self) -> bool {
        self.needs.is_some()
    }
}
