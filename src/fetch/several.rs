//! Several URLs at a time, with a bound on what their bodies hold together.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use super::allowance::late;
use super::gate::locked;
use super::{Fetch, Request, Retrieved};
use crate::report::{Detail, Reason, Refusal, Setting};

/// Retrieves all of it, at most `in_flight` at a time; answers stand in the order of the requests,
/// whatever the order in which they came.
///
/// The bodies together have at most `octets` octets. The bound is met in the order of the requests: a
/// body that exceeds it is refused with [`Reason::GrowthLimit`], and behind it nothing more is asked for.
/// No thread runs further ahead of the first missing answer than `in_flight`, so that no more bodies than
/// that are held, or retrieved in vain, beyond the bound.
pub fn fetch_all(
    fetch: &dyn Fetch,
    requests: &[Request],
    in_flight: usize,
    octets: u64,
) -> Vec<Result<Retrieved, Refusal>> {
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
            let held = advanced.wait_while(locked(&state), is_ahead);
            let mut held = held.unwrap_or_else(PoisonError::into_inner);
            let turn = held.next;
            let Some(request) = requests.get(turn) else {
                return;
            };
            held.next += 1;
            let is_over = held.left.is_none();
            drop(held);
            let answer = match is_over {
                true => Err(too_much(octets)),
                false => fetch.fetch(request),
            };
            let mut held = locked(&state);
            if let Some(slot) = held.answers.get_mut(turn) {
                *slot = Some(answer);
            }
            held.settle(octets);
            drop(held);
            advanced.notify_all();
        }
    };
    thread::scope(|scope| {
        // This thread works too; if the system has no further thread to give, it works alone.
        for _ in 1..in_flight.min(requests.len()) {
            if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Every turn below the number of requests was taken by somebody.
    let answers = state.answers.into_iter();
    answers
        .map(|answer| answer.unwrap_or_else(|| Err(late())))
        .collect()
}

struct Several {
    next: usize,
    /// How many answers from the front are there, and were judged.
    settled: usize,
    /// Octets that further bodies may have; none once there was one too many.
    left: Option<u64>,
    answers: Vec<Option<Result<Retrieved, Refusal>>>,
}

impl Several {
    fn settle(&mut self, octets: u64) {
        while let Some(Some(answer)) = self.answers.get_mut(self.settled) {
            self.settled += 1;
            let size = |retrieved: &Retrieved| retrieved.body.len() as u64;
            let size = answer.as_ref().map_or(0, size);
            self.left = self.left.and_then(|left| left.checked_sub(size));
            if self.left.is_none() {
                // Whether it was asked at all depends on who was faster: the answer must not.
                *answer = Err(too_much(octets));
            }
        }
    }
}

fn too_much(octets: u64) -> Refusal {
    let what = format!("with the bodies before it, it has more bytes than the {octets} that ");
    let detail = Detail::from(what).naming(Setting::Growth);
    Refusal::lasting(Reason::GrowthLimit, detail.then(" still allows"))
}
