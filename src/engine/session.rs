use std::collections::{HashMap, HashSet};

use super::context::Context;
use super::guide::Guide;
use super::needs::{Answers, Found, Needs};
use super::prefilter::kinds::Kinds;
use super::settings::EngineSettings;
use super::{Content, Mode, Need};
use crate::engine::ledger::Ledger;
use crate::engine::policy::Policy;
use crate::engine::report::Refusal;

/// State of one round: one call of the engine for one message, with the content that the driver has retrieved so far.
pub(super) struct Session<'s> {
    pub(super) settings: &'s EngineSettings,
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
    /// Refusals for references for which no copy was found, by a hash of their note. Part numbers change between passes, so
    /// later passes use this map instead of another search.
    pub(super) not_copied: HashMap<u64, Refusal>,
    /// Content that this round needs but does not have. The round then ends as soon as possible, and its result is not used.
    pub(super) needs: Option<Needs>,
    pub(super) ledger: Ledger,
    /// Parts of the guide that already answer a reference, by their index.
    pub(super) given: HashSet<usize>,
    /// The mail from which a proof takes the answers. `None` in every other run.
    pub(super) guide: Option<&'s Guide>,
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

    /// Returns true if content is missing. The result of the round is then not used.
    pub(super) fn is_stopped(&self) -> bool {
        self.needs.is_some()
    }
}
