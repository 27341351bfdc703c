//! What is tried again after a failure, how often, and after which pauses.

use super::failure::ImapFailure;

/// Pauses before a connection is made again, in seconds: 53 in all.
const PAUSES: [u64; 6] = [0, 1, 2, 5, 15, 30];

/// Tries of one thing.
#[derive(Default)]
pub(super) struct Tries {
    failed: usize,
}

impl Tries {
    /// Seconds until the next try; none if the failure is final. `was_open`: the run had a session before.
    ///
    /// * A server that breaks off may be back soon: all pauses.
    /// * One that was never there is most likely a wrong name, and one that greets with BYE most likely does not take this
    ///   client: it says so at once, and is asked twice more.
    /// * What cannot be read may have been garbled once: one more try. So does a server that never stops sending get none.
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
