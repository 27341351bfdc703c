use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

/// A request to stop a run. Clones belong to the same run. The thread of a signal handler can make the request.
#[derive(Clone, Default, Debug)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    /// Flag of the whole run, if this value can also stop a part of the run alone. `None` if it stands for the whole
    /// run.
    outer: Option<Arc<AtomicBool>>,
}

impl Stop {
    /// Returns a stop with an existing flag, for example the flag that a signal handler sets.
    pub fn over(flag: Arc<AtomicBool>) -> Self {
        Self { flag, outer: None }
    }

    /// Returns a stop for a part of the run. A stop of the whole run also stops the part; the part can be stopped
    /// alone.
    pub(crate) fn of_part(&self) -> Self {
        Self {
            flag: Arc::default(),
            outer: Some(Arc::clone(&self.flag)),
        }
    }

    /// Requests that the run stops.
    pub fn request(&self) {
        self.flag.store(true, Ordering::SeqCst);
    }

    /// Returns whether a stop was requested, for this part of the run or for the whole run.
    pub fn is_requested(&self) -> bool {
        let is_set = |flag: &Arc<AtomicBool>| flag.load(Ordering::SeqCst);
        is_set(&self.flag) || self.outer.as_ref().is_some_and(is_set)
    }

    /// Checks whether the run must stop. Callers pass on the error to end the run.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`] if a stop was requested.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_requested() {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }
}
