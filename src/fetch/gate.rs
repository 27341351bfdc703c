use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use super::allowance::late;
use crate::engine::report::{Reason, Refusal};
use crate::error::unpoisoned;

pub(crate) type IsStopped = Arc<dyn Fn() -> bool + Send + Sync>;

/// Limits the number of requests that run at the same time, over all messages. Requests are admitted in the order in which they
/// arrive, so that every message makes progress. A request waits no longer than the deadline of its message. After the run was
/// stopped, no request is admitted, not even one that was already waiting.
pub(super) struct Gate {
    queue: Mutex<GateQueue>,
    moved: Condvar,
    pub(super) is_stopped: IsStopped,
}

struct GateQueue {
    free: usize,
    waiting: VecDeque<u64>,
    next_number: u64,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            queue: Mutex::new(GateQueue {
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

    /// Waits for a free slot, and occupies it. Every change wakes all waiting threads: that is simple, and cheap
    /// compared with a retrieval.
    pub(super) fn turn(&self, deadline: Instant) -> Result<GateTurn<'_>, Refusal> {
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
        let turn = GateTurn(self);
        if (self.is_stopped)() {
            Err(Refusal::temporary(Reason::Deadline, "the run was stopped"))
        } else {
            Ok(turn)
        }
    }
}

pub(super) struct GateTurn<'g>(&'g Gate);

impl Drop for GateTurn<'_> {
    fn drop(&mut self) {
        unpoisoned(self.0.queue.lock()).free += 1;
        self.0.moved.notify_all();
    }
}
