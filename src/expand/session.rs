use std::collections::HashMap;
use std::sync::Arc;

use super::context::{Beside, Context};
use super::mark::Mark;
use super::needs::{Answers, Found, Needs, Unanswered};
use super::prefilter::Prefilter;
use super::prefilter::kinds::Kinds;
use crate::engine::{Content, Need};
#[cfg(all(feature = "file", feature = "mailbox"))]
use crate::error::unpoisoned;
#[cfg(all(feature = "file", feature = "mailbox"))]
use crate::fetch::EudoraMailbox;
use crate::fetch::Sidecars;
use crate::ledger::Ledger;
use crate::policy::Policy;

#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) policy: Arc<Policy>,
    pub(super) mark: Mark,
    /// Else on all references, and on links as the policy says.
    pub(super) detached_only: bool,
    /// What was detached is looked up by its hash, whatever URL the part has.
    pub(super) store: bool,
    pub(super) prefilter: Prefilter,
    #[cfg(all(feature = "file", feature = "mailbox"))]
    pub(super) eudora: EudoraMailbox,
}

impl Settings {
    /// Describes the mailbox that `beside` has the files of.
    pub(super) fn context_of(&self, beside: &Sidecars) -> Beside {
        Beside {
            form: beside.form(),
            #[cfg(all(feature = "file", feature = "mailbox"))]
            eudora: beside.number().and_then(|number| {
                let mailbox = unpoisoned(self.eudora.lock()).clone();
                Some((number, mailbox?.1))
            }),
        }
    }
}

/// One round over one message: with what its driver retrieved so far, as far as that leads.
pub(super) struct Session<'s> {
    pub(super) settings: &'s Settings,
    pub(super) kinds: Kinds,
    pub(super) context: &'s Context<'s>,
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
