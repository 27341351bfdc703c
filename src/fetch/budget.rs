//! How many octets the bodies of one message may have together (the contract's P5).
//!
//! `--max-body` bounds one body and `--max-fetches` their number; without a bound on the sum, 32
//! bodies of 25 MB would be held at once before anybody sees that the message may not grow so much.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::report::{Reason, Refusal};

/// Octets of all bodies of one message together, shared by everybody who retrieves for it.
///
/// A body that is above the limit alone is refused alone and does not count. Once the others are
/// above it together, the budget stays overdrawn: whether it is does not depend on the order in
/// which bodies arrive.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    spent: AtomicU64,
}

impl Budget {
    /// A budget of this many octets.
    #[must_use]
    pub fn of(limit: u64) -> Self {
        Self {
            limit,
            spent: AtomicU64::new(0),
        }
    }

    /// A budget that nothing overdraws.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::of(u64::MAX)
    }

    /// Why nothing more may be retrieved; none as long as something may.
    #[must_use]
    pub fn overdrawn(&self) -> Option<Refusal> {
        (self.spent.load(Ordering::Relaxed) > self.limit).then(|| {
            Refusal::lasting(
                Reason::GrowthLimit,
                "what the message refers to has together more octets than --max-growth allows",
            )
        })
    }

    /// Counts a body that came.
    ///
    /// # Errors
    /// [`Reason::GrowthLimit`] if it may not be kept.
    pub(super) fn spend(&self, octets: u64) -> Result<(), Refusal> {
        if octets > self.limit {
            return Err(Refusal::lasting(
                Reason::GrowthLimit,
                format!("it has {octets} octets alone, more than --max-growth allows"),
            ));
        }
        let add = |spent: u64| Some(spent.saturating_add(octets));
        // The closure never declines, so neither does this.
        let _ = self
            .spent
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        self.overdrawn().map_or(Ok(()), Err)
    }
}
