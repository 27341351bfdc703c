use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use super::allowance::late;
use crate::error::unpoisoned;
use crate::report::{Reason, Refusal};

pub(crate) type IsStopped = Arc<dyn Fn() -> bool + Send + Sync>;

/// Requests of all messages come in by their order, so that no message starves; none waits longer than its deadline.
/// Once the run is to stop, none comes in any more, also of those that wait.
pub(super) struct Gate {
    queue: Mutex<Queue>,
    moved: Condvar,
    pub(super) is_stopped: IsStopped,
}

struct Queue {
    free: usize,
    waiting: VecDeque<u64>,
    next_number: u64,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            queue: Mutex::new(Queue {
                free: usize::MAX,
                waiting: VecDeque::new(),
                next_number: 0,
            }),
            moved: Condvar::new(),
            is_stopped: Arc::new(|| false),
        }
    }
}

impl Gate {
    pub(super) fn allow(&mut self, most: usize) {
        unpoisoned(self.queue.lock()).free = most.max(1);
    }

    /// All that wait are woken when the queue moves: a wave of threads is small beside a retrieval.
    pub(super) fn turn(&self, deadline: Instant) -> Result<Turn<'_>, Refusal> {
        let mut queue = unpoisoned(self.queue.lock());
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
            let moved = self.moved.wait_timeout(queue, patience);
            queue = unpoisoned(moved).0;
        }
        queue.waiting.pop_front();
        queue.free -= 1;
        let more = queue.free > 0 && !queue.waiting.is_empty();
        drop(queue);
        if more {
            self.moved.notify_all();
        }
        let turn = Turn(self);
        match (self.is_stopped)() {
            true => Err(Refusal::temporary(Reason::Deadline, "the run was stopped")),
            false => Ok(turn),
        }
    }
}

pub(super) struct Turn<'g>(&'g Gate);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        unpoisoned(self.0.queue.lock()).free += 1;
        self.0.moved.notify_all();
    }
}
