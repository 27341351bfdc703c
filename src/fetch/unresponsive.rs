//! Stops requests to a host after three time-outs in a row.
//!
//! Each time-out delays a message by `--timeout`, and a mailbox can name thousands of pictures on a host that no longer
//! exists. Any response, and any other failure, resets the count of a host that is not stopped yet.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use super::allowance::is_long;
use crate::engine::policy::Limits;
use crate::engine::report::{Detail, Reason, Refusal, Setting};
use crate::error::unpoisoned;

/// Number of consecutive time-outs after which no further request is sent to a host.
pub(crate) const TIMEOUTS: u32 = 3;

/// Maximum number of counted hosts. Further hosts are not counted, and requests to them are never stopped.
const HOSTS: usize = 10_000;

/// The time-outs of each host and port in a run. Threads share the value.
#[derive(Debug)]
pub(crate) struct Unresponsive {
    /// Time limit for one retrieval. A failed request counts as a time-out only if it took a large part of this time
    /// ([`is_long`]).
    patience: Duration,
    timeouts: Mutex<HashMap<(String, u16), u32>>,
}

impl Unresponsive {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            patience: limits.timeout.min(limits.deadline),
            timeouts: Mutex::default(),
        }
    }

    /// Returns a refusal if the host has timed out too often.
    ///
    /// # Errors
    /// [`Reason::HostUnresponsive`]. A later run may try again.
    pub(crate) fn judge(&self, host: &str, port: u16) -> Result<(), Refusal> {
        let timeouts = unpoisoned(self.timeouts.lock());
        match timeouts.get(&(host.to_owned(), port)) {
            Some(&count) if count >= TIMEOUTS => {
                let detail = Detail::from(format!(
                    "{TIMEOUTS} requests in a row to {host} timed out, so this run sends no further requests to it; run the command again later, or raise "
                )).naming(Setting::Timeout);
                Err(Refusal::temporary(Reason::HostUnresponsive, detail))
            }
            _ => Ok(()),
        }
    }

    /// Counts the result of a request that took `took`. `failure` is `None` for a response.
    pub(crate) fn heed(&self, host: &str, port: u16, failure: Option<Reason>, took: Duration) {
        let mut timeouts = unpoisoned(self.timeouts.lock());
        let key = (host.to_owned(), port);
        match failure {
            // A short failure may be due to the message's deadline. Only a long wait shows that the host does not
            // respond.
            Some(Reason::Timeout | Reason::Deadline) if is_long(took, self.patience) => {
                if timeouts.len() < HOSTS || timeouts.contains_key(&key) {
                    *timeouts.entry(key).or_default() += 1;
                }
            }
            Some(Reason::Deadline | Reason::Timeout) => {}
            _ => {
                if timeouts.get(&key).is_some_and(|&count| count < TIMEOUTS) {
                    timeouts.remove(&key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    fn hosts() -> Unresponsive {
        Unresponsive::new(&Limits::default())
    }

    #[test]
    fn three_time_outs_in_a_row_end_the_requests_to_a_host() {
        let hosts = hosts();
        for _ in 0..3 {
            assert_eq!(hosts.judge("a.example", 80), Ok(()));
            hosts.heed("a.example", 80, Some(Reason::Timeout), LONG);
        }
        let refusal = hosts.judge("a.example", 80).unwrap_err();
        assert_eq!(refusal.reason, Reason::HostUnresponsive);
        // A response to an earlier request that arrives late does not reset a host that is already stopped.
        hosts.heed("a.example", 80, None, LONG);
        assert!(hosts.judge("a.example", 80).is_err());
        assert_eq!(hosts.judge("a.example", 443), Ok(()));
        assert_eq!(hosts.judge("b.example", 80), Ok(()));
    }

    #[test]
    fn a_response_or_a_deadline_that_came_early_counts_as_no_time_out() {
        for between in [
            None,
            Some(Reason::HttpStatus),
            Some(Reason::ConnectionFailed),
        ] {
            let hosts = hosts();
            for _ in 0..4 {
                hosts.heed("a.example", 80, Some(Reason::Timeout), LONG);
                hosts.heed("a.example", 80, Some(Reason::Deadline), LONG);
                hosts.heed("a.example", 80, between, Duration::ZERO);
            }
            assert_eq!(hosts.judge("a.example", 80), Ok(()), "{between:?}");
        }
        let hosts = hosts();
        for _ in 0..9 {
            hosts.heed(
                "a.example",
                80,
                Some(Reason::Deadline),
                Duration::from_secs(1),
            );
        }
        assert_eq!(hosts.judge("a.example", 80), Ok(()));
    }
}
