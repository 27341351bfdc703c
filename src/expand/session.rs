use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::answer::Answer;
use super::date;
use super::mark::Mark;
use super::prefilter::Prefilter;
use super::prefilter::kinds::Kinds;
#[cfg(all(feature = "file", feature = "mailbox"))]
use crate::fetch::EudoraMailbox;
use crate::fetch::{Fetch, Sidecars};
use crate::ledger::Ledger;
use crate::policy::Policy;
use crate::report::Refusal;

/// More than any deadline needs, and little enough to be added to any instant.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Work goes on for so long, at most: what came shortly before is put in.
const BEHIND_DEADLINE: Duration = Duration::from_secs(5);

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

pub(super) struct Session<'s> {
    pub(super) settings: &'s Settings,
    pub(super) kinds: Kinds,
    pub(super) name: &'s str,
    pub(super) fetch: &'s dyn Fetch,
    pub(super) asking: Asking,
    pub(super) beside: Option<&'s Sidecars>,
    /// Nothing is retrieved then. Work ends a little later.
    pub(super) deadline: Instant,
    /// When the message was on its way, if whoever is asked heeds that.
    pub(super) date: Option<SystemTime>,
    /// By URL and wanted type: nothing is asked twice. Of URLs beyond the limit there is none.
    pub(super) retrieved: HashMap<(String, Option<String>), Found<Answer>>,
    pub(super) ledger: Ledger,
}

/// None: somebody would have to be asked and nobody is, or is being asked now.
pub(super) type Found<T> = Result<Option<T>, Refusal>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asking {
    Sources,
    /// In a run that writes nothing: pictures that the sources do not give count as embedded.
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    Rehearsing,
    Nobody,
}

impl<'s> Session<'s> {
    pub(super) fn new(
        settings: &'s Settings,
        message: &[u8],
        kinds: Kinds,
        name: &'s str,
        (fetch, asking): (&'s dyn Fetch, Asking),
        beside: Option<&'s Sidecars>,
    ) -> Self {
        let limits = &settings.policy.limits;
        // Instants end somewhere; whoever waits longer than this waits for ever.
        let time = limits.deadline.min(CENTURY);
        let deadline = Instant::now() + time;
        let end = deadline + BEHIND_DEADLINE.min(time / 4);
        Self {
            settings,
            kinds,
            name,
            fetch,
            asking,
            beside,
            deadline,
            date: (asking != Asking::Nobody && fetch.heeds_date())
                .then(|| date::of(message, SystemTime::now()))
                .flatten(),
            retrieved: HashMap::new(),
            ledger: Ledger::new(limits, message.len()).until(end),
        }
    }

    pub(super) fn policy(&self) -> &'s Policy {
        &self.settings.policy
    }

    pub(super) fn is_forecast(&self) -> bool {
        self.asking == Asking::Nobody
    }

    pub(super) fn is_rehearsal(&self) -> bool {
        self.asking != Asking::Sources
    }
}
