use std::sync::{Condvar, Mutex};
use std::thread;

use super::allowance::late;
use super::{Fetch, Request};
use crate::engine::report::Refusal;
use crate::engine::{Answer, Mode, too_much};
use crate::error::unpoisoned;

/// Answers all requests, at most `in_flight` at a time. The answers have the order of the requests.
///
/// `octets` limits the size of all bodies together, counted in the order of the requests. A body that exceeds the limit and
/// every later one are refused with [`Reason::GrowthLimit`](crate::engine::report::Reason::GrowthLimit), and requests that are
/// not sent yet are not sent. A new request is sent only if it is less than `in_flight` requests after the first unanswered
/// one. Otherwise one slow response would let all later bodies collect in memory, although the size limit may refuse them in
/// the end.
pub fn answer_all(
    fetch: &dyn Fetch,
    requests: &[Request],
    mode: Mode,
    in_flight: usize,
    octets: u64,
) -> Vec<Result<Answer, Refusal>> {
    let in_flight = in_flight.max(1);
    let state = Mutex::new(Several {
        next: 0,
        settled: 0,
        left: Some(octets),
        answers: vec![None; requests.len()],
    });
    let advanced = Condvar::new();
    let work = || {
        loop {
            let is_ahead = |held: &mut Several| {
                held.next < requests.len() && held.next >= held.settled + in_flight
            };
            let held = advanced.wait_while(unpoisoned(state.lock()), is_ahead);
            let mut held = unpoisoned(held);
            let turn = held.next;
            let Some(request) = requests.get(turn) else {
                return;
            };
            held.next += 1;
            let is_over = held.left.is_none();
            drop(held);
            let answer = match is_over {
                true => Err(too_much(octets)),
                false => fetch.answer(request, mode),
            };
            let mut held = unpoisoned(state.lock());
            if let Some(slot) = held.answers.get_mut(turn) {
                *slot = Some(answer);
            }
            held.settle(octets);
            drop(held);
            advanced.notify_all();
        }
    };
    thread::scope(|scope| {
        // If the system cannot start another thread, this thread answers all requests alone.
        for _ in 1..in_flight.min(requests.len()) {
            if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    let state = unpoisoned(state.into_inner());
    // A thread ends only after it has answered the requests that it took, so every answer is present.
    let answers = state.answers.into_iter();
    answers
        .map(|answer| answer.unwrap_or_else(|| Err(late())))
        .collect()
}

struct Several {
    next: usize,
    settled: usize,
    left: Option<u64>,
    answers: Vec<Option<Result<Answer, Refusal>>>,
}

impl Several {
    fn settle(&mut self, octets: u64) {
        while let Some(Some(answer)) = self.answers.get_mut(self.settled) {
            self.settled += 1;
            let size = match answer {
                Ok(Answer::Content(content)) => content.len() as u64,
                _ => 0,
            };
            self.left = self.left.and_then(|left| left.checked_sub(size));
            if self.left.is_none() {
                // The bodies up to this one exceed the size limit. Some later requests may already have been answered,
                // depending on the speed of the threads. To give the same result in each run, every answer from here on
                // is replaced with the refusal.
                *answer = Err(too_much(octets));
            }
        }
    }
}
