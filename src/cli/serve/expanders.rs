//! Expanders of the service. Each verb has one with the start policy. A request that narrows the policy gets an
//! expander of its own.

use std::sync::Arc;
use std::time::Duration;

use super::super::cache::{Cache, Process};
use super::super::copies::CopyMailboxes;
use super::store::ServedStore;
use crate::engine::Mark;
use crate::engine::policy::Policy;
use crate::error::Error;
use crate::expand::Expander;
use crate::fetch::Fetcher;
use crate::mailbox::Stop;
use crate::serve::Verb;

/// How long content stays in memory for other messages, as in the milter.
const AGE: Duration = Duration::from_secs(300);

/// Expander of a verb with the policy that was set when the service started.
pub(super) struct Ready {
    pub(super) policy: Policy,
    pub(super) expander: Expander,
}

/// Creates the expander of each request from the cache, the copies and the store, which all requests share.
pub(super) struct ExpanderMaker<'s> {
    pub(super) cache: &'s Cache,
    pub(super) copies: &'s CopyMailboxes,
    pub(super) store: Option<&'s ServedStore>,
}

impl ExpanderMaker<'_> {
    pub(super) fn expander(
        &self,
        verb: Verb,
        policy: Policy,
        mark: Mark,
    ) -> Result<Expander, Error> {
        let builder = Expander::builder(policy).mark(mark).fetch_with(|policy| {
            // All messages share one fetcher, so that connections are reused and responses stay in memory for some
            // time.
            let stop = Stop::default();
            let fetcher = self
                .cache
                .fetcher(policy, Process::Service, &stop)?
                .in_flight(policy.limits.in_flight)
                .memory(Fetcher::MEMORY, Some(AGE));
            Ok(self.copies.before(policy, fetcher))
        })?;
        if verb != Verb::Restore {
            return builder.build();
        }
        let builder = builder.restoring();
        match self.store {
            Some(store) => builder.store(Arc::clone(&store.reading)).build(),
            None => builder.build(),
        }
    }
}
