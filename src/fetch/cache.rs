//! The same URL once per run.

use std::fmt;
use std::time::{Instant, SystemTime};

use quick_cache::sync::{Cache, DefaultLifecycle, GuardResult};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use super::waiting::late;
use super::{Fetch, Probed, Request, Retrieved};
use crate::report::{Reason, Refusal, Retry};

/// URL without fragment, the type asked for, and the date where that counts.
type Key = (String, Option<String>, Option<SystemTime>);
type Answer = Result<Retrieved, Refusal>;

/// What one entry costs besides its body, roughly.
const ENTRY: usize = 512;

/// Remembers the answers of another fetcher, lasting refusals included.
///
/// Whoever asks for what is being retrieved right now waits for it and shares the answer, but waits no
/// longer than its own deadline. A refusal because *a message's* deadline passed is not shared: it says
/// nothing about another message. No temporary refusal is kept: the next message may be luckier.
///
/// Answers are kept until they hold `capacity` octets together; then those go that were not asked for
/// lately. One that has more than half of that is not kept. A hit shares the body with the cache.
pub struct Cached<F> {
    inner: F,
    answers: Cache<Key, Answer, Octets>,
}

impl<F: Fetch> Cached<F> {
    /// Octets kept unless said otherwise: 64 MiB.
    pub const CAPACITY: usize = 64 << 20;

    /// Remembers up to [`Cached::CAPACITY`] octets.
    #[must_use]
    pub fn new(inner: F) -> Self {
        Self::with_capacity(inner, Self::CAPACITY)
    }

    /// Remembers up to this many octets.
    #[must_use]
    pub fn with_capacity(inner: F, capacity: usize) -> Self {
        let mut options = OptionsBuilder::new();
        options
            // Each shard has its part of the capacity, where a large body would not fit.
            .shards(1)
            // Half for what was asked for once, lately; with less, what comes next would hardly stay.
            .hot_allocation(0.5)
            // Only sizes the memory of what was thrown out.
            .estimated_items_capacity(1000)
            .weight_capacity(capacity as u64);
        let answers = match options.build() {
            Ok(options) => Cache::with_options(
                options,
                Octets,
                DefaultHashBuilder::default(),
                DefaultLifecycle::default(),
            ),
            // No number is missing, which would be the only error.
            Err(_) => Cache::with_weighter(1000, capacity as u64, Octets),
        };
        Self { inner, answers }
    }

    /// The fetcher behind it.
    #[must_use]
    pub fn inner(&self) -> &F {
        &self.inner
    }

    /// Gives back the fetcher behind it.
    #[must_use]
    pub fn into_inner(self) -> F {
        self.inner
    }
}

/// Weighs an answer in octets.
#[derive(Clone)]
struct Octets;

impl Weighter<Key, Answer> for Octets {
    fn weight(&self, key: &Key, answer: &Answer) -> u64 {
        let body = answer.as_ref().map_or(0, |retrieved| retrieved.body.len());
        (key.0.len() + ENTRY + body) as u64
    }
}

fn is_temporary(answer: &Answer) -> bool {
    let is_temporary = |refusal: &Refusal| refusal.retry == Retry::Later;
    answer.as_ref().is_err_and(is_temporary)
}

/// Whether a message ran out of time.
fn is_late(answer: &Answer) -> bool {
    let is_late = |refusal: &Refusal| refusal.reason == Reason::Deadline;
    answer.as_ref().is_err_and(is_late)
}

impl<F: Fetch> Fetch for Cached<F> {
    fn fetch(&self, request: &Request) -> Result<Retrieved, Refusal> {
        let url = request
            .url
            .split_once('#')
            .map_or(&*request.url, |(url, _)| url);
        let key = (url.to_owned(), request.accept.clone(), request.date);
        let patience = request.deadline.saturating_duration_since(Instant::now());
        // A guard that is dropped, by a panic too, passes to one of those who wait.
        match self.answers.get_value_or_guard(&key, Some(patience)) {
            GuardResult::Value(answer) => answer,
            GuardResult::Timeout => Err(late()),
            GuardResult::Guard(guard) => {
                let answer = self.inner.fetch(request);
                if is_late(&answer) {
                    return answer;
                }
                // Those who wait get it in any case.
                let _ = guard.insert(answer.clone());
                if is_temporary(&answer) {
                    self.answers.remove_if(&key, is_temporary);
                }
                answer
            }
        }
    }

    fn probe(&self, request: &Request) -> Result<Probed, Refusal> {
        self.inner.probe(request)
    }

    fn heeds_date(&self) -> bool {
        self.inner.heeds_date()
    }
}

impl<F: fmt::Debug> fmt::Debug for Cached<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Cached")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
