//! Decides whether a failed operation is repeated, how often, and after which pauses.

use super::failure::ImapFailure;

/// Pauses before the next attempts to connect, in seconds: 53 seconds in total.
const PAUSES: [u64; 6] = [0, 1, 2, 5, 15, 30];

/// Number of failed attempts of one operation.
#[derive(Default)]
pub(super) struct Tries {
    failed: usize,
}

impl Tries {
    /// Returns the number of seconds until the next attempt, or `None` if the failure is final. `was_open` is true if the run
    /// had a session before.
    ///
    /// * An interrupted connection may work again soon: the operation is repeated after each of the pauses.
    /// * If the first connection cannot be opened, the name of the server is probably wrong: no further attempt. If the first
    ///   greeting is BYE, the server probably rejects this client: two more attempts.
    /// * An unreadable response may have been garbled by accident: one more attempt. A server that keeps sending unrelated data
    ///   gets no further attempt.
    pub(super) fn pause(&mut self, why: &ImapFailure, was_open: bool) -> Option<u64> {
        let most = match why {
            ImapFailure::Connect { .. } if !was_open => 0,
            ImapFailure::TurnedAway(_) if !was_open => 2,
            ImapFailure::Protocol(_) | ImapFailure::Unreadable(_) => 1,
            why if why.is_passing() => PAUSES.len(),
            _ => 0,
        };
        let pause = PAUSES.get(self.failed).filter(|_| self.failed < most)?;
        self.failed += 1;
        Some(*pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_end_sooner_where_another_one_is_of_no_use() {
        let pauses = |why: ImapFailure, was_open| {
            let mut tries = Tries::default();
            std::iter::from_fn(|| tries.pause(&why, was_open)).collect::<Vec<_>>()
        };
        let connect = || ImapFailure::Connect {
            host: "x".to_owned(),
            source: std::io::ErrorKind::ConnectionRefused.into(),
        };
        assert_eq!(pauses(ImapFailure::Silent(1), false), PAUSES);
        assert_eq!(pauses(connect(), true), PAUSES);
        assert!(pauses(connect(), false).is_empty());
        assert_eq!(pauses(ImapFailure::TurnedAway("x".into()), false), [0, 1]);
        assert_eq!(pauses(ImapFailure::TurnedAway("x".into()), true), PAUSES);
        assert_eq!(pauses(ImapFailure::Unreadable("x"), true), [0]);
        assert!(pauses(ImapFailure::Endless("x".into()), true).is_empty());
    }
}
