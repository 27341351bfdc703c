use std::sync::atomic::{AtomicBool, Ordering};

use super::allowance::late;
use super::{Fetch, Request};
use crate::engine::report::Refusal;
use crate::engine::{Answer, Mode, too_much};
use crate::pool;
use crate::stop::Stop;

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
    let is_full = AtomicBool::new(false);
    let mut left = Some(octets);
    let mut waiting = requests.iter();
    let mut answers = Vec::with_capacity(requests.len());
    let limits = pool::PoolLimits {
        workers: in_flight.min(requests.len()),
        // Each request has the weight 1.
        budget: in_flight,
    };
    let done = pool::run(
        limits,
        // Each request ends at its own time limit, so the pool needs no other stop.
        &Stop::default(),
        || Ok(waiting.next().map(|request| (request, 1))),
        |_| vec![0],
        |request, _| {
            if is_full.load(Ordering::Relaxed) {
                Ok(Err(too_much(octets)))
            } else {
                Ok(fetch.answer(request, mode))
            }
        },
        |_, _| None,
        |_, answer| {
            for (_, mut answer) in answer {
                let size = match &answer {
                    Ok(Answer::Content(content)) => content.len() as u64,
                    _ => 0,
                };
                left = left.and_then(|left| left.checked_sub(size));
                if left.is_none() {
                    is_full.store(true, Ordering::Relaxed);
                    // This body arrived although an earlier one exceeded the limit. Whether its request was sent at all
                    // depends on timing, but the result must not, so it is refused, too.
                    answer = Err(too_much(octets));
                }
                answers.push(answer);
            }
            Ok(())
        },
    );
    // A request that fails gives a refusal, so the pool has no error of its own. If it had one, no answer would be known to
    // belong to its request.
    if done.is_err() {
        answers.clear();
    }
    answers.resize_with(requests.len(), || Err(late()));
    answers
}
