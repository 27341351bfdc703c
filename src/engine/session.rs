use std::collections::HashMap;

use super::context::Context;
use super::needs::{Answers, Found, Needs, Unanswered};
use super::prefilter::kinds::Kinds;
use super::settings::Settings;
use super::{Content, Need};
use crate::engine::ledger::Ledger;
use crate::policy::Policy;

/// One round over one message: with what its driver retrieved so far, as far as that leads.
pub(super) struct Session<'s> {
    pub(super) settings: &'s Settings,
    pub(super) kinds: Kinds,
    pub(super) context: &'s Context,
    pub(super) asking: Asking,
    /// Content that the driver has retrieved. No round changes it.
    pub(super) answers: Answers,
    /// Reaction to content that is not in `answers`.
    pub(super) unanswered: Unanswered,
    /// Content that this round has asked for, with its answer. Content that the limit on retrievals excludes is not in here.
    pub(super) retrieved: HashMap<Need, Found<Content>>,
    /// Content without which this round cannot go on. It ends as soon as possible, and its result is not used.
    pub(super) needs: Option<Needs>,
    pub(super) ledger: Ledger,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asking {
    Sources,
    /// In a run that writes nothing: pictures that the sources do not give count as embedded.
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    Rehearsing,
    Nobody,
}

impl<'s> Session<'s> {
    pub(super) fn policy(&self) -> &'s Policy {
        &self.settings.policy
    }

    pub(super) fn is_forecast(&self) -> bool {
        self.asking == Asking::Nobody
    }

    pub(super) fn is_rehearsal(&self) -> bool {
        self.asking != Asking::Sources
    }

    /// Whether the round lacks content. Nothing that it decides from then on is used.
    pub(super) fn is_stopped(&self) -> bool {
        self.needs.is_some()
    }
}
