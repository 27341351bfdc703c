//! How many retrievals run at the same time, over all messages of a run.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};
use std::time::Instant;

use super::waiting::{late, locked};
use super::{Fetch, Probed, Request, Retrieved};
use crate::report::Refusal;

/// Another world, of which at most `most` questions are asked at the same time, whoever asks. Whoever
/// comes first is served first, so that no message starves; nobody waits longer than its deadline.
#[derive(Debug)]
pub struct AtMost<F> {
    inner: F,
    queue: Mutex<Queue>,
    moved: Condvar,
}

#[derive(Debug)]
struct Queue {
    /// How many more may be asked now.
    free: usize,
    /// Those who wait, in the order in which they came.
    waiting: VecDeque<u64>,
    next_number: u64,
}

impl<F: Fetch> AtMost<F> {
    /// At most this many at a time; zero counts as one.
    #[must_use]
    pub fn new(most: usize, inner: F) -> Self {
        Self {
            inner,
            queue: Mutex::new(Queue {
                free: most.max(1),
                waiting: VecDeque::new(),
                next_number: 0,
            }),
            moved: Condvar::new(),
        }
    }

    /// The world behind it.
    #[must_use]
    pub fn inner(&self) -> &F {
        &self.inner
    }

    /// Waits for its turn. Wakes all who wait when the queue moves: a wave of threads is small beside
    /// a retrieval.
    fn turn(&self, deadline: Instant) -> Result<Turn<'_, F>, Refusal> {
        let mut queue = locked(&self.queue);
        let number = queue.next_number;
        queue.next_number += 1;
        queue.waiting.push_back(number);
        while queue.free == 0 || queue.waiting.front() != Some(&number) {
            let patience = deadline.saturating_duration_since(Instant::now());
            if patience.is_zero() {
                queue.waiting.retain(|&waiting| waiting != number);
                drop(queue);
                self.moved.notify_all();
                return Err(late());
            }
            queue = match self.moved.wait_timeout(queue, patience) {
                Ok((queue, _)) => queue,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        queue.waiting.pop_front();
        queue.free -= 1;
        let more = queue.free > 0 && !queue.waiting.is_empty();
        drop(queue);
        if more {
            self.moved.notify_all();
        }
        Ok(Turn { at_most: self })
    }
}

/// The right to ask, given back even if the retrieval panics.
struct Turn<'a, F> {
    at_most: &'a AtMost<F>,
}

impl<F> Drop for Turn<'_, F> {
    fn drop(&mut self) {
        locked(&self.at_most.queue).free += 1;
        self.at_most.moved.notify_all();
    }
}

impl<F: Fetch> Fetch for AtMost<F> {
    fn fetch(&self, request: &Request) -> Result<Retrieved, Refusal> {
        let _turn = self.turn(request.deadline)?;
        self.inner.fetch(request)
    }

    fn probe(&self, request: &Request) -> Result<Probed, Refusal> {
        let _turn = self.turn(request.deadline)?;
        self.inner.probe(request)
    }

    fn heeds_date(&self) -> bool {
        self.inner.heeds_date()
    }
}
