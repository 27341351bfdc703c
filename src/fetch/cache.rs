//! The same URL once per run.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::{Fetch, Probed, Request, Retrieved};
use crate::report::{Reason, Refusal};

/// URL without fragment, and the type asked for.
type Key = (String, Option<String>);
type Answer = Result<Arc<Retrieved>, Refusal>;

/// What one entry costs besides its body, roughly.
const ENTRY: usize = 512;

/// Remembers the answers of another world, refusals included.
///
/// Whoever asks for what is being retrieved right now waits for it, not longer than its own
/// deadline. Answers are kept until they hold `capacity` octets together; what comes later is
/// handed to those who wait for it and forgotten. A refusal because *a message's* deadline
/// passed says nothing about the next message and is not kept.
#[derive(Debug)]
pub struct Cached<F> {
    inner: F,
    capacity: usize,
    state: Mutex<State>,
}

#[derive(Default, Debug)]
struct State {
    entries: HashMap<Key, Arc<Entry>>,
    held: usize,
}

#[derive(Default, Debug)]
struct Entry {
    answer: Mutex<Option<Answer>>,
    done: Condvar,
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
        Self {
            inner,
            capacity,
            state: Mutex::default(),
        }
    }

    /// The world behind it.
    #[must_use]
    pub fn into_inner(self) -> F {
        self.inner
    }

    /// Asks, tells whoever waits, and keeps the answer if there is room.
    fn ask(&self, request: &Request, key: &Key, entry: &Arc<Entry>) -> Answer {
        let mut promise = Promise {
            cached: self,
            key,
            entry,
            answer: None,
        };
        let answer = self.inner.fetch(request).map(Arc::new);
        promise.answer = Some(answer.clone());
        answer
    }
}

/// Keeps what was promised to those who wait, even if the retrieval panics.
struct Promise<'a, F> {
    cached: &'a Cached<F>,
    key: &'a Key,
    entry: &'a Entry,
    answer: Option<Answer>,
}

impl<F> Drop for Promise<'_, F> {
    fn drop(&mut self) {
        let answer = self.answer.take();
        let cost = self.key.0.len()
            + ENTRY
            + match &answer {
                Some(Ok(retrieved)) => retrieved.body.len(),
                _ => 0,
            };
        let mut state = locked(&self.cached.state);
        if lasts(answer.as_ref()) && cost <= self.cached.capacity.saturating_sub(state.held) {
            state.held += cost;
        } else {
            state.entries.remove(self.key);
        }
        drop(state);
        let gone = Refusal::temporary(Reason::ConnectionFailed, "the retrieval was given up");
        *locked(&self.entry.answer) = Some(answer.unwrap_or(Err(gone)));
        self.entry.done.notify_all();
    }
}

/// Whether an answer holds for the next message too.
fn lasts(answer: Option<&Answer>) -> bool {
    match answer {
        Some(Ok(_)) => true,
        Some(Err(refusal)) => refusal.reason != Reason::Deadline,
        None => false,
    }
}

impl<F: Fetch> Fetch for Cached<F> {
    fn fetch(&self, request: &Request) -> Result<Retrieved, Refusal> {
        let url = request
            .url
            .split_once('#')
            .map_or(&*request.url, |(url, _)| url);
        let key = (url.to_owned(), request.accept.clone());
        loop {
            let mut state = locked(&self.state);
            let Some(entry) = state.entries.get(&key).cloned() else {
                let entry = Arc::new(Entry::default());
                state.entries.insert(key.clone(), Arc::clone(&entry));
                drop(state);
                return given(self.ask(request, &key, &entry));
            };
            drop(state);
            let answer = wait(&entry, request.deadline)?;
            if lasts(Some(&answer)) {
                return given(answer);
            }
            // Another message ran out of time; ours may have some left.
            if Instant::now() >= request.deadline {
                return Err(late());
            }
        }
    }

    fn probe(&self, request: &Request) -> Result<Probed, Refusal> {
        self.inner.probe(request)
    }
}

fn given(answer: Answer) -> Result<Retrieved, Refusal> {
    answer.map(Arc::unwrap_or_clone)
}

fn wait(entry: &Entry, deadline: Instant) -> Result<Answer, Refusal> {
    let mut answer = locked(&entry.answer);
    loop {
        if let Some(answer) = &*answer {
            return Ok(answer.clone());
        }
        let remaining = deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return Err(late());
        }
        answer = match entry.done.wait_timeout(answer, remaining) {
            Ok((answer, _)) => answer,
            Err(poisoned) => poisoned.into_inner().0,
        };
    }
}

pub(super) fn late() -> Refusal {
    Refusal::temporary(
        Reason::Deadline,
        "not whole within --deadline, which holds for the whole message",
    )
}

/// A lock that another thread's panic does not spoil: every state here is whole between steps.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
