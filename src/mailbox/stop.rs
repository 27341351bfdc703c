use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

/// Asks a run to stop; clones ask the same run. Safe to set from a signal handler's thread.
#[derive(Clone, Default, Debug)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    /// The flag of the run that this one is a part of.
    outer: Option<Arc<AtomicBool>>,
}

impl Stop {
    /// A stop over a flag that something else sets (a signal handler, say).
    pub fn over(flag: Arc<AtomicBool>) -> Self {
        Self { flag, outer: None }
    }

    /// A part stops with its run, or alone.
    pub(crate) fn of_part(&self) -> Self {
        Self {
            flag: Arc::default(),
            outer: Some(Arc::clone(&self.flag)),
        }
    }

    /// Asks the run to stop.
    pub fn request(&self) {
        self.flag.store(true, Ordering::SeqCst);
    }

    /// Whether it was asked.
    pub fn is_requested(&self) -> bool {
        let is_set = |flag: &Arc<AtomicBool>| flag.load(Ordering::SeqCst);
        is_set(&self.flag) || self.outer.as_ref().is_some_and(is_set)
    }

    /// # Errors
    /// [`Error::Interrupted`] once it was asked.
    pub fn check(&self) -> Result<(), Error> {
        match self.is_requested() {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }
}
