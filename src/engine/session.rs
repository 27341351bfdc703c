use std::collections::HashMap;

use super::context::Context;
use super::needs::{Answers, Found, Needs};
use super::prefilter::kinds::Kinds;
use super::settings::Settings;
use super::{Content, Mode, Need};
use crate::engine::ledger::Ledger;
use crate::engine::policy::Policy;
use crate::engine::report::Refusal;

/// One round over one message: with what its driver retrieved so far, as far as that leads.
pub(super) struct Session<'s> {
    pub(super) settings: &'s Settings,
    pub(super) kinds: Kinds,
    pub(super) context: &'s Context,
    pub(super) mode: Mode,
    /// Content that the driver has retrieved. No round changes it.
    pub(super) answers: Answers,
    /// Refusal for content that is not in `answers`. If it is `None`, the round ends when content is missing, and another
    /// round follows.
    pub(super) last: Option<Refusal>,
    /// Content that this round has asked for, with its answer. Content that the limit on retrievals excludes is not in here.
    pub(super) retrieved: HashMap<Need, Found<Content>>,
    /// Content without which this round cannot go on. It ends as soon as possible, and its result is not used.
    pub(super) needs: Option<Needs>,
    pub(super) ledger: Ledger,
}

impl<'s> Session<'s> {
    pub(super) fn policy(&self) -> &'s Policy {
        &self.settings.policy
    }

    /// Whether the round goes on without the content of a need: the reference has the outcome `WouldFetch`.
    pub(super) fn is_left_open(&self, need: &Need) -> bool {
        match need {
            Need::Url { .. } => !self.mode.asks_servers(),
            // Only a run starts the program that answers.
            Need::Question { .. } => !self.mode.writes(),
            Need::Attachment { .. } | Need::Object { .. } | Need::Neighbour(_) => false,
        }
    }

    /// Whether the round lacks content. Nothing that it decides from then on is used.
    pub(super) fn is_stopped(&self) -> bool {
        self.needs.is_some()
    }
}
