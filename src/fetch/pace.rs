//! Limits how often requests are sent to a web archive, over all threads of a run.
//!
//! * A request waits until the limit allows it, but not beyond the deadline of the message. `--timeout` begins when the
//!   request is sent.
//! * If the limit would allow the request only after the deadline, the request is refused immediately.
//! * If the archive does not respond to three requests in a row, requests are refused immediately during a pause, so that not
//!   every message waits for its deadline. After the pause, one request finds out whether the archive responds again.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::allowance::{FetchFailure, RequestAllowance, is_long};
use super::exchange::{FetchResponse, LONGEST_PAUSE, RequestPurpose, captured, retry_after};
use super::unresponsive::TIMEOUTS;
use crate::engine::report::{Detail, Reason, Refusal, Setting};
use crate::error::unpoisoned;

/// Longest sleep between two checks whether the run was stopped.
const LONGEST_SLEEP: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug)]
struct Rates {
    between: Duration,
    between_questions: Duration,
    /// Minimum pause after a 429. It is long, because archives block clients that ignore a 429.
    pause: Duration,
    /// Pause after a failed connection. After the third one, [`pause`](Self::pause) applies.
    between_connections: Duration,
    strikes: u32,
    end: Option<Duration>,
}

const RATES: Rates = Rates {
    between: Duration::from_millis(125),
    between_questions: Duration::from_millis(2500),
    pause: Duration::from_secs(60),
    between_connections: Duration::from_secs(10),
    strikes: 3,
    end: None,
};

#[derive(Debug)]
pub(crate) struct Pace {
    limits: Rates,
    state: Mutex<PaceState>,
}

#[derive(Debug)]
struct PaceState {
    next: Instant,
    next_question: Instant,
    paused: Option<(Instant, &'static str)>,
    strikes: u32,
    ended: Option<Instant>,
    /// Number of failures since the last response: failed connections, and requests that timed out.
    failures: u32,
}

const TOO_MANY: &str = "the archive requested a pause (status 429)";
const UNAVAILABLE: &str = "the archive requested a pause (status 503)";
const UNREACHABLE: &str =
    "the archive could not be reached a short time ago, so no request was sent to it";

impl Default for Pace {
    fn default() -> Self {
        Self::with(RATES)
    }
}

impl Pace {
    /// Creates the pace of a service. A service runs for months, so after three 429 responses it uses the archive again
    /// one day later. In a run that ends, three 429 responses stop the use of the archive for the whole run.
    #[cfg(any(test, feature = "milter", feature = "serve"))]
    pub(crate) fn of_service() -> Self {
        Self::with(Rates {
            end: Some(Duration::from_secs(24 * 60 * 60)),
            ..RATES
        })
    }

    fn with(limits: Rates) -> Self {
        let now = Instant::now();
        Self {
            limits,
            state: Mutex::new(PaceState {
                next: now,
                next_question: now,
                paused: None,
                strikes: 0,
                ended: None,
                failures: 0,
            }),
        }
    }

    pub(super) fn turn(
        &self,
        whose: RequestPurpose,
        allowance: RequestAllowance,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), Refusal> {
        loop {
            if is_stopped() {
                return Err(busy("the run was stopped"));
            }
            let remaining = allowance.remaining()?;
            let mut state = unpoisoned(self.state.lock());
            let now = Instant::now();
            if state.strikes >= self.limits.strikes {
                if state.ended.is_none_or(|end| now < end) {
                    let why = "the archive refused three requests (status 429), so embody sends no requests to the archive for some time";
                    return Err(busy(why));
                }
                state.strikes = 0;
            }
            let mut at = state.next;
            if whose == RequestPurpose::Index {
                at = at.max(state.next_question);
            }
            let paused = state.paused.filter(|(until, _)| *until > now);
            let is_silent = state.failures >= TIMEOUTS;
            if let Some((until, why)) = paused {
                if is_silent && why == UNREACHABLE {
                    return Err(unreachable());
                }
                at = at.max(until);
            }
            let wait = at.saturating_duration_since(now);
            if wait.is_zero() {
                state.next = now + self.limits.between;
                if whose == RequestPurpose::Index {
                    state.next_question = now + self.limits.between_questions;
                }
                if is_silent {
                    // This request is the only one until the archive responds.
                    state.paused = Some((now + self.limits.pause, UNREACHABLE));
                }
                return Ok(());
            }
            let has_failed = state.failures > 0;
            drop(state);
            if wait >= remaining {
                // The archive did not respond, so it is not busy, and its failure must not count as a response.
                if has_failed {
                    return Err(unreachable());
                }
                let late = Detail::from(
                    "other requests to the archive are waiting, and this request could not be sent before ",
                ).naming(Setting::Deadline).then(" ends");
                return Err(busy(paused.map_or(late, |(_, why)| why.into())));
            }
            std::thread::sleep(wait.min(LONGEST_SLEEP));
        }
    }

    /// Records the result of a request that took `took`. `patience` is the time limit for a request.
    pub(super) fn heed(
        &self,
        given: &Result<FetchResponse, FetchFailure>,
        took: Duration,
        patience: Duration,
    ) {
        match given {
            Err(failed) => {
                let reason = failed.refusal.reason;
                let is_late = matches!(reason, Reason::Timeout | Reason::Deadline);
                if is_late && is_long(took, patience) {
                    self.fail(false);
                } else if failed.unresponsive.is_some() {
                    self.fail(true);
                }
            }
            Ok(answer) => {
                self.respond();
                if captured(&answer.headers).is_none() {
                    let wanted = retry_after(&answer.headers);
                    match (answer.status, wanted) {
                        (429, _) => self.pause(TOO_MANY, wanted),
                        (503, Some(_)) => self.pause(UNAVAILABLE, wanted),
                        _ => {}
                    }
                }
            }
        }
    }

    /// Ends a pause that began because the archive did not respond.
    fn respond(&self) {
        let mut state = unpoisoned(self.state.lock());
        state.failures = 0;
        state.paused = state.paused.filter(|(_, why)| *why != UNREACHABLE);
    }

    /// Counts a failure. A refused connection begins a pause. A single time-out does not, because archives are often slow. If
    /// the connections of several requests that were sent at the same time are refused, they count as one failure.
    fn fail(&self, is_refused: bool) {
        let mut state = unpoisoned(self.state.lock());
        let now = Instant::now();
        let is_paused = state
            .paused
            .is_some_and(|(until, why)| until > now && why == UNREACHABLE);
        if !is_paused || !is_refused || state.failures == 0 {
            state.failures = state.failures.saturating_add(1);
        }
        if is_refused || state.failures >= TIMEOUTS {
            let is_silent = state.failures >= TIMEOUTS;
            let until = if is_silent {
                now + self.limits.pause
            } else {
                now + self.limits.between_connections
            };
            if state.paused.is_none_or(|(before, _)| before < until) {
                state.paused = Some((until, UNREACHABLE));
            }
        }
    }

    /// Begins a pause. If requests that were sent at the same time get several 429 responses, these count as one.
    fn pause(&self, why: &'static str, wanted: Option<Duration>) {
        let mut state = unpoisoned(self.state.lock());
        let now = Instant::now();
        let before = state.paused.filter(|(until, _)| *until > now);
        if why == TOO_MANY && before.is_none_or(|(_, before)| before != why) {
            state.strikes = state.strikes.saturating_add(1);
            state.ended = self.limits.end.map(|end| now + end);
        }
        let pause = self.limits.pause.max(wanted.unwrap_or_default());
        let until = now + pause.min(LONGEST_PAUSE);
        if before.is_none_or(|(before, _)| before < until) {
            state.paused = Some((until, why));
        }
    }
}

fn unreachable() -> Refusal {
    Refusal::temporary(Reason::ConnectionFailed, UNREACHABLE)
}

fn busy(detail: impl Into<Detail>) -> Refusal {
    Refusal::temporary(Reason::ArchiveBusy, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::UnresponsiveScope;

    fn pace() -> Pace {
        Pace::with(Rates {
            between: Duration::from_millis(20),
            between_questions: Duration::from_millis(100),
            pause: Duration::from_millis(300),
            between_connections: Duration::from_millis(300),
            strikes: 3,
            end: None,
        })
    }

    /// Creates a pace whose pauses are longer than any test, even on a slow machine, so that no pause ends during the
    /// test.
    fn pausing() -> Pace {
        Pace::with(Rates {
            pause: Duration::from_secs(60 * 60),
            between_connections: Duration::from_secs(60 * 60),
            ..pace().limits
        })
    }

    fn turn(pace: &Pace) -> (Result<(), Refusal>, bool) {
        let looks = std::cell::Cell::new(0);
        let is_stopped = || {
            looks.set(looks.get() + 1);
            false
        };
        let allowance = RequestAllowance::of(Duration::from_secs(60));
        let turn = pace.turn(RequestPurpose::Archive, allowance, &is_stopped);
        (turn, looks.get() > 1)
    }

    #[test]
    fn service_is_asked_again_after_its_suspension_ends() {
        let pace = Pace::with(Rates {
            strikes: 1,
            end: Some(Duration::from_secs(60 * 60)),
            ..pace().limits
        });
        pace.pause(TOO_MANY, None);
        assert_eq!(turn(&pace).0.unwrap_err().reason, Reason::ArchiveBusy);
        unpoisoned(pace.state.lock()).ended = Some(Instant::now());
        turn(&pace).0.unwrap();
        assert!(Pace::of_service().limits.end.is_some() && Pace::default().limits.end.is_none());
    }

    #[test]
    fn questions_to_the_index_are_rarer() {
        let pace = pace();
        let begun = Instant::now();
        for _ in 0..3 {
            pace.turn(
                RequestPurpose::Index,
                RequestAllowance::of(Duration::from_secs(60)),
                &|| false,
            )
            .unwrap();
        }
        assert!(begun.elapsed() >= Duration::from_millis(200));
    }

    #[test]
    fn no_request_is_sent_during_a_pause_and_the_third_pause_ends_requests() {
        let pace = pausing();
        for _ in 0..4 {
            // The second and later calls happen while the first pause still lasts. In a run, this means that requests
            // which were sent before the pause also got a 429. Only the first call is counted.
            pace.pause(TOO_MANY, None);
            let (turn, has_waited) = turn(&pace);
            assert_eq!(turn.unwrap_err().reason, Reason::ArchiveBusy);
            assert!(!has_waited);
        }
        assert_eq!(unpoisoned(pace.state.lock()).strikes, 1);
        let pace = self::pace();
        for _ in 0..2 {
            let begun = Instant::now();
            pace.pause(TOO_MANY, None);
            turn(&pace).0.unwrap();
            assert!(begun.elapsed() >= Duration::from_millis(300));
        }
        pace.pause(TOO_MANY, None);
        let (turn, has_waited) = turn(&pace);
        assert_eq!(turn.unwrap_err().reason, Reason::ArchiveBusy);
        assert!(!has_waited);
    }

    #[test]
    fn archive_that_could_not_be_reached_is_not_called_busy() {
        let pace = pausing();
        refuse(&pace);
        assert_eq!(turn(&pace).0.unwrap_err().reason, Reason::ConnectionFailed);

        // The pause is over, but another request has already taken the next time slot.
        let pace = Pace::with(Rates {
            between: Duration::from_secs(60 * 60),
            between_connections: Duration::ZERO,
            ..pace.limits
        });
        refuse(&pace);
        turn(&pace).0.unwrap();
        assert_eq!(turn(&pace).0.unwrap_err().reason, Reason::ConnectionFailed);
        answer(&pace, &responded(200));
        assert_eq!(turn(&pace).0.unwrap_err().reason, Reason::ArchiveBusy);
    }

    const PATIENCE: Duration = Duration::from_secs(20);

    fn answer(pace: &Pace, given: &Result<FetchResponse, FetchFailure>) {
        pace.heed(given, PATIENCE, PATIENCE);
    }

    fn refuse(pace: &Pace) {
        let refusal = Refusal::temporary(Reason::ConnectionFailed, "refused");
        let unresponsive = Some(UnresponsiveScope::Port);
        answer(
            pace,
            &Err(FetchFailure {
                refusal,
                unresponsive,
            }),
        );
    }

    fn time_out(pace: &Pace, took: Duration) {
        let late = Refusal::temporary(Reason::Timeout, "late");
        pace.heed(&Err(late.into()), took, PATIENCE);
    }

    /// Returns what happens to a request whose deadline is long after the pause: it is sent, waits, or is refused.
    fn fate(pace: &Pace) -> &'static str {
        let looks = std::cell::Cell::new(0);
        let is_stopped = || {
            looks.set(looks.get() + 1);
            looks.get() > 1
        };
        let allowance = RequestAllowance::of(Duration::from_secs(5 * 60 * 60));
        match pace.turn(RequestPurpose::Archive, allowance, &is_stopped) {
            Ok(()) => "sent",
            Err(refusal) if refusal.reason == Reason::ConnectionFailed => "refused",
            Err(_) => "waits",
        }
    }

    fn end_pause(pace: &Pace) {
        unpoisoned(pace.state.lock()).paused = None;
    }

    #[test]
    fn requests_wait_after_a_failed_connection_and_are_refused_after_three() {
        let pace = Pace::with(Rates {
            between: Duration::ZERO,
            ..pausing().limits
        });
        for expected in ["waits", "waits", "refused"] {
            assert_eq!(fate(&pace), "sent");
            // The connections of three requests that were sent at the same time fail.
            for _ in 0..3 {
                refuse(&pace);
            }
            assert_eq!(fate(&pace), expected);
            end_pause(&pace);
        }
        // After the pause, one request finds out whether the archive responds again.
        assert_eq!((fate(&pace), fate(&pace)), ("sent", "refused"));
        answer(&pace, &responded(404));
        assert_eq!((fate(&pace), fate(&pace)), ("sent", "sent"));
    }

    #[test]
    fn requests_are_refused_after_three_time_outs_in_a_row() {
        let pace = Pace::with(Rates {
            between: Duration::ZERO,
            ..pausing().limits
        });
        for _ in 0..2 {
            time_out(&pace, PATIENCE);
        }
        answer(&pace, &responded(200));
        for _ in 0..9 {
            // The deadline of a message ended soon after its request was sent.
            time_out(&pace, Duration::from_secs(1));
        }
        for _ in 0..2 {
            time_out(&pace, PATIENCE);
            assert_eq!(fate(&pace), "sent");
        }
        time_out(&pace, PATIENCE);
        assert_eq!((fate(&pace), fate(&pace)), ("refused", "refused"));
    }

    fn responded(status: u16) -> Result<FetchResponse, FetchFailure> {
        Ok(FetchResponse {
            status,
            at: 0,
            headers: ureq::http::HeaderMap::new(),
            body: Default::default(),
            source: crate::fetch::ResponseSource::Proxy,
            recorded: None,
        })
    }

    fn ask(
        pace: Pace,
        answers: &[(u16, &'static [(&'static str, &'static str)])],
        times: usize,
    ) -> (Vec<Instant>, Vec<Option<Reason>>) {
        let mut asked = Vec::new();
        let mut reasons = Vec::new();
        for _ in 0..times {
            let allowance = RequestAllowance::of(Duration::from_secs(60));
            if let Err(refusal) = pace.turn(RequestPurpose::Archive, allowance, &|| false) {
                reasons.push(Some(refusal.reason));
                continue;
            }
            let (status, fields) = answers[asked.len().min(answers.len() - 1)];
            asked.push(Instant::now());
            let mut headers = ureq::http::HeaderMap::new();
            for (name, value) in fields {
                headers.insert(*name, value.parse().unwrap());
            }
            let mut given = responded(status);
            if let Ok(response) = &mut given {
                response.headers = headers;
            }
            answer(&pace, &given);
            reasons.push(None);
        }
        (asked, reasons)
    }

    #[test]
    fn after_each_429_there_is_a_pause_and_after_three_an_end() {
        // The pauses of `pace()` are short, so the requests wait until a pause is over. No request is sent during a pause.
        let (asked, reasons) = ask(pace(), &[(429, &[])], 6);
        assert_eq!(asked.len(), 3);
        for pair in asked.windows(2) {
            assert!(pair[1] - pair[0] >= Duration::from_millis(300), "{pair:?}");
        }
        assert_eq!(reasons[..3], [None; 3]);
        assert_eq!(reasons[3..], [Some(Reason::ArchiveBusy); 3]);
    }

    #[test]
    fn a_503_that_names_no_time_is_no_pause() {
        assert_eq!(ask(pausing(), &[(503, &[])], 4).0.len(), 4);
    }

    #[test]
    fn a_run_that_is_to_stop_does_not_wait() {
        let pace = pace();
        pace.pause(TOO_MANY, Some(Duration::from_secs(500)));
        let begun = Instant::now();
        let allowance = RequestAllowance::of(Duration::from_secs(1000));
        let is_stopped = || begun.elapsed() > Duration::from_millis(100);
        let refusal = pace.turn(RequestPurpose::Archive, allowance, &is_stopped);
        assert!(refusal.unwrap_err().detail.contains("stopped"));
        assert!(begun.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_pause_is_as_long_as_the_archive_wants() {
        let pause_of = |value: &'static str| {
            let field = (ureq::http::header::RETRY_AFTER, value.parse().unwrap());
            retry_after(&[field].into_iter().collect())
        };
        assert_eq!(pause_of("120"), Some(Duration::from_secs(120)));
        assert_eq!(pause_of("soon"), None);
        let pace = pace();
        pace.pause(UNAVAILABLE, Some(Duration::from_secs(500)));
        let refusal = pace
            .turn(
                RequestPurpose::Archive,
                RequestAllowance::of(Duration::from_secs(400)),
                &|| false,
            )
            .unwrap_err();
        assert!(refusal.detail.contains("503"), "{refusal:?}");
    }
}
