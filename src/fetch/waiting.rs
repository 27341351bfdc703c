//! A lock and a refusal, shared by all that wait for each other.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::report::{Detail, Reason, Refusal, Setting};

pub(super) fn late() -> Refusal {
    Refusal::temporary(
        Reason::Deadline,
        Detail::from("not whole within ")
            .naming(Setting::Deadline)
            .then(", which holds for the whole message"),
    )
}

/// A lock that another thread's panic does not spoil: every state here is whole between steps.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
