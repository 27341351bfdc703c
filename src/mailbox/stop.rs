//! How a run is asked to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

/// Asks a run to stop; clones ask the same run. Safe to set from a signal handler's thread.
#[derive(Clone, Default, Debug)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// A stop over a flag that something else sets (a signal handler, say).
    #[must_use]
    pub fn over(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }

    /// Asks.
    pub fn request(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether it was asked.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// # Errors
    /// [`Error::Interrupted`] once it was asked.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_requested() {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }
}
