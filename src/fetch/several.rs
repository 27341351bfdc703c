use std::sync::{Condvar, Mutex};
use std::thread;

use super::allowance::late;
use super::{Fetch, Request};
use crate::engine::{Answer, Mode, too_much};
use crate::error::unpoisoned;
use crate::report::Refusal;

/// Asks for all, at most `in_flight` at a time; answers stand in the order of the requests.
///
/// The bodies together have at most `octets` octets, in the order of the requests: a body beyond that is refused with
/// [`Reason::GrowthLimit`](crate::report::Reason::GrowthLimit), and nothing behind it is asked for. No thread runs further ahead of the first missing
/// answer than `in_flight`, which bounds the bodies that are held, or retrieved in vain.
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
        // If the system has no further thread to give, this one works alone.
        for _ in 1..in_flight.min(requests.len()) {
            if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    let state = unpoisoned(state.into_inner());
    // Somebody took every turn below the number of requests.
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
                // Whether it was asked at all depends on which thread was faster: the answer must not.
                *answer = Err(too_much(octets));
            }
        }
    }
}
