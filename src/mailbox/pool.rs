//! The buffers of a walk.

use std::sync::{Arc, Mutex, PoisonError};

/// Buffers to use again: touching fresh memory costs a third of the time of reading into it.
#[derive(Clone, Default, Debug)]
pub(super) struct Pool(Arc<Mutex<Vec<Vec<u8>>>>);

impl Pool {
    /// A buffer of at least `length` bytes, all of them initialised, with old contents.
    pub(super) fn take(&self, length: usize) -> Vec<u8> {
        let mut buffers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let buffer = buffers.pop().unwrap_or_default();
        drop(buffers);
        if buffer.len() < length {
            // Not resized: fresh zeros come from the system, which makes them when they are touched.
            return vec![0; length];
        }
        buffer
    }

    /// Keeps a buffer for the next [`take`](Self::take), unless it has grown beyond `window`.
    pub(super) fn give_back(&self, buffer: Vec<u8>, window: usize) {
        if buffer.len() <= window.saturating_mul(2) {
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(buffer);
        }
    }
}
