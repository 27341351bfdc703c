use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

/// A request to stop a run. Clones belong to the same run. The thread of a signal handler can make the request.
#[derive(Clone, Default, Debug)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    /// Flag of the outer run, if this run is a part of another one.
    outer: Option<Arc<AtomicBool>>,
}

impl Stop {
    /// A stop over a flag that something else sets (a signal handler, say).
    pub fn over(flag: Arc<AtomicBool>) -> Self {
        Self { flag, outer: None }
    }

    /// Returns a stop for a part of the run. The part stops together with the run, or alone.
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

    /// Whether the run was requested to stop.
    pub fn is_requested(&self) -> bool {
        let is_set = |flag: &Arc<AtomicBool>| flag.load(Ordering::SeqCst);
        is_set(&self.flag) || self.outer.as_ref().is_some_and(is_set)
    }

    /// # Errors
    /// [`Error::Interrupted`] after the request to stop.
    pub fn check(&self) -> Result<(), Error> {
        match self.is_requested() {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }
}
