//! One message while it is worked on: what was chosen, what is known, what may still be spent.

use std::collections::HashMap;
#[cfg(debug_assertions)]
use std::collections::HashSet;
use std::time::{Duration, Instant, SystemTime};

use super::answer::Answer;
use super::date;
use super::prefilter::kinds::Kinds;
use super::settings::Settings;
use crate::fetch::{Fetch, Sidecars};
use crate::ledger::Ledger;
use crate::policy::Policy;
use crate::report::Refusal;

/// More than any deadline needs, and little enough to be added to any instant.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// How long behind the deadline of the retrievals work goes on, at most: what came shortly before is put in.
const BEHIND_DEADLINE: Duration = Duration::from_secs(5);

pub(super) struct Session<'s> {
    pub(super) settings: &'s Settings,
    /// What the prefilter found in the message as it came.
    pub(super) kinds: Kinds,
    /// What rows call the message.
    pub(super) name: &'s str,
    pub(super) fetch: &'s dyn Fetch,
    pub(super) asking: Asking,
    /// What lies beside it in its mailbox.
    pub(super) beside: Option<&'s Sidecars>,
    /// When nothing is retrieved any more. Work ends a little later.
    pub(super) deadline: Instant,
    /// When the message was on its way, if whoever is asked heeds that.
    pub(super) date: Option<SystemTime>,
    /// Answers so far, by URL and wanted type: nothing is asked twice. Of URLs beyond the limit there is none.
    pub(super) retrieved: HashMap<(String, Option<String>), Found<Answer>>,
    pub(super) ledger: Ledger,
    /// The `cid:` URLs that were written, for the last look at what is handed on.
    #[cfg(debug_assertions)]
    pub(super) written: HashSet<String>,
}

/// What came of looking for content: none where somebody would have to be asked and nobody is, or is being asked now.
pub(super) type Found<T> = Result<Option<T>, Refusal>;

/// Whether sources are asked for what is not in the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asking {
    Sources,
    /// They are, in a run that writes nothing: pictures that they do not give count as embedded where links are resolved,
    /// and in what the message gains.
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    Rehearsing,
    /// The rows of the report say what would become of each reference.
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
            date: match asking != Asking::Nobody && fetch.heeds_date() {
                true => date::of(message, SystemTime::now()),
                false => None,
            },
            retrieved: HashMap::new(),
            ledger: Ledger::new(limits, message.len()).until(end),
            #[cfg(debug_assertions)]
            written: HashSet::new(),
        }
    }

    /// Notes URLs that were written into documents.
    #[cfg_attr(not(debug_assertions), allow(unused_variables, clippy::unused_self))]
    pub(super) fn note_written<'u>(&mut self, urls: impl IntoIterator<Item = &'u String>) {
        #[cfg(debug_assertions)]
        self.written.extend(urls.into_iter().cloned());
    }

    pub(super) fn policy(&self) -> &'s Policy {
        &self.settings.policy
    }

    /// Whether it is only to be said what would be done.
    pub(super) fn is_forecast(&self) -> bool {
        self.asking == Asking::Nobody
    }

    /// Whether nothing of it will be written.
    pub(super) fn is_rehearsal(&self) -> bool {
        self.asking != Asking::Sources
    }
}
