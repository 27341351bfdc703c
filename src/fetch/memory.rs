//! Keeps responses in memory, so that a run retrieves each URL only once.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use quick_cache::sync::{Cache, GuardResult};
use quick_cache::{OptionsBuilder, Weighter};

use super::Request;
use super::allowance::late;
use crate::engine::report::{Reason, Refusal, Retry};
use crate::engine::{Answer, Content, Need};
use crate::error::unpoisoned;

type Key = (Need, Option<SystemTime>);
type Answers<T> = Cache<Key, Result<T, Refusal>, ResponseWeight>;

/// Estimated memory for the key and the header fields of one entry, in bytes. It is added to the size of the content.
const ENTRY: usize = 512;

/// A type of answer that an [`AnswerMemory`] can hold.
pub(super) trait SharedAnswer: Clone {
    /// Size of the content in bytes, for the limit of the memory.
    fn octets(&self) -> usize;
}

impl SharedAnswer for Content {
    fn octets(&self) -> usize {
        self.len()
    }
}

impl SharedAnswer for Answer {
    fn octets(&self) -> usize {
        match self {
            Self::Content(content) => content.len(),
            Self::Announced(announcement) => announcement.detail.len(),
        }
    }
}

/// Cache of answers by URL and date. If another thread is already retrieving the URL, the request waits for its answer,
/// but not beyond its own deadline.
///
/// A refusal caused by the deadline of *one message* is not shared with other messages. A temporary refusal is kept
/// only in a run that ends ([`AnswerMemory::keep_failures`]): in a service, the same request may succeed later.
///
/// If the answers exceed `octets`, the least recently used ones are evicted. An answer larger than half of `octets` is
/// not kept.
pub(super) struct AnswerMemory<T: SharedAnswer> {
    octets: usize,
    /// Whether temporary refusals are kept. This is only right for a run that ends soon: a service must send the request again.
    keeps_failures: bool,
    /// Age at which all answers are discarded. A service runs for months, and must not return the answers of its first day.
    age: Option<Duration>,
    current: Mutex<(Instant, Arc<Answers<T>>)>,
}

impl<T: SharedAnswer> AnswerMemory<T> {
    pub(super) fn new(octets: usize, age: Option<Duration>) -> Self {
        Self {
            octets,
            keeps_failures: false,
            age,
            current: Mutex::new((Instant::now(), Arc::new(answers(octets)))),
        }
    }

    pub(super) fn keep_failures(&mut self) {
        self.keeps_failures = true;
    }

    pub(super) fn answer(
        &self,
        request: &Request,
        ask: impl FnOnce() -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let key = (without_fragment(&request.need), request.date);
        let patience = request.deadline.saturating_duration_since(Instant::now());
        let answers = self.current();
        // The guard reserves the answer for this request. If the guard is dropped without an answer, even by a panic, the next
        // waiting request sends the request itself.
        match answers.get_value_or_guard(&key, Some(patience)) {
            GuardResult::Value(answer) => answer,
            GuardResult::Timeout => Err(late()),
            GuardResult::Guard(guard) => {
                let answer = ask();
                if matches!(&answer, Err(refusal) if refusal.reason == Reason::Deadline) {
                    return answer;
                }
                let _ = guard.insert(answer.clone());
                if is_temporary(&answer) && !self.keeps_failures {
                    answers.remove_if(&key, is_temporary);
                }
                answer
            }
        }
    }

    fn current(&self) -> Arc<Answers<T>> {
        let mut current = unpoisoned(self.current.lock());
        if self.age.is_some_and(|age| current.0.elapsed() >= age) {
            *current = (Instant::now(), Arc::new(answers(self.octets)));
        }
        Arc::clone(&current.1)
    }
}

/// Removes the fragment (`#...`) from the URL to retrieve. URLs that differ only in the fragment have the same content,
/// so they share one response.
fn without_fragment(need: &Need) -> Need {
    match need {
        Need::Url { url, accept } => {
            Need::of_url(url.split('#').next().unwrap_or_default(), accept.as_deref())
        }
        other => other.clone(),
    }
}

fn answers<T: SharedAnswer>(octets: usize) -> Answers<T> {
    let mut options = OptionsBuilder::new();
    options
        // The cache divides its capacity among its shards, and no entry can be larger than its shard. A single shard therefore
        // allows the largest bodies.
        .shards(1)
        // Half of the capacity is reserved for entries that were requested only once so far. With a smaller share, most
        // new entries would be evicted before their second request.
        .hot_allocation(0.5)
        .estimated_items_capacity(1000)
        .weight_capacity(octets as u64);
    let options = options.build().expect("both capacities are set");
    let (hasher, lifecycle) = Default::default();
    Cache::with_options(options, ResponseWeight, hasher, lifecycle)
}

#[derive(Clone)]
struct ResponseWeight;

impl<T: SharedAnswer> Weighter<Key, Result<T, Refusal>> for ResponseWeight {
    fn weight(&self, key: &Key, answer: &Result<T, Refusal>) -> u64 {
        let body = answer.as_ref().map_or(0, SharedAnswer::octets);
        let url = key.0.url().map_or(0, str::len);
        (url + ENTRY + body) as u64
    }
}

fn is_temporary<T>(answer: &Result<T, Refusal>) -> bool {
    matches!(answer, Err(refusal) if refusal.retry == Retry::Later)
}
