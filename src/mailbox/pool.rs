//! The buffers of a walk.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So many times what may be on its way is kept in buffers that have grown: to touch fresh memory for every large
/// message takes a tenth of the time.
const GROWN: usize = 8;

/// Buffers to use again: touching fresh memory costs a third of the time of reading into it.
///
/// None is freed. One that has grown for a large message gives the memory back to the system where it shrinks;
/// freed ones would be kept by the allocator, for each thread.
#[derive(Clone, Default, Debug)]
pub(super) struct Pool(Arc<Mutex<Buffers>>);

#[derive(Default, Debug)]
struct Buffers {
    spare: Vec<Vec<u8>>,
    /// The bytes of these and of those that were taken.
    total: usize,
    /// Buffers that have grown stay so while there are no more bytes.
    most: usize,
}

impl Pool {
    /// For a walk of which so many bytes may be on their way.
    pub(super) fn of(budget: usize) -> Self {
        Self(Arc::new(Mutex::new(Buffers {
            most: budget.saturating_mul(GROWN),
            ..Buffers::default()
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Buffers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer of at least `window` bytes, all of them initialised, with old contents.
    pub(super) fn take(&self, window: usize) -> Vec<u8> {
        let mut buffers = self.lock();
        // The one that came back last is in the cache; those that have grown are for large messages.
        let spare = buffers.spare.iter().map(Vec::len).enumerate().rev();
        if let Some((place, length)) = spare.min_by_key(|&(_, length)| length)
            && length >= window
        {
            return buffers.spare.remove(place);
        }
        buffers.total += window;
        drop(buffers);
        vec![0; window]
    }

    /// Makes a buffer longer, of which `filled` bytes are in use, or exchanges it for one that is.
    pub(super) fn grow(&self, buffer: &mut Vec<u8>, filled: usize, length: usize) {
        if buffer.len() >= length {
            return;
        }
        let mut buffers = self.lock();
        let largest = buffers.spare.iter_mut().max_by_key(|spare| spare.len());
        if let Some(larger) = largest.filter(|spare| spare.len() >= length) {
            larger[..filled].copy_from_slice(&buffer[..filled]);
            std::mem::swap(larger, buffer);
            return;
        }
        let more = length - buffer.len();
        buffers.total += more;
        drop(buffers);
        buffer.reserve_exact(more);
        buffer.resize(length, 0);
    }

    /// Keeps a buffer for the next [`take`](Self::take), as large as a window if there is much memory in use.
    pub(super) fn give_back(&self, mut buffer: Vec<u8>, window: usize) {
        let mut buffers = self.lock();
        if buffer.len() > window && buffers.total > buffers.most {
            buffers.total -= buffer.len() - window;
            buffer.truncate(window);
            buffer.shrink_to_fit();
        }
        buffers.spare.push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: usize = 1000;

    #[test]
    fn a_buffer_that_has_grown_is_used_for_the_next_large_message() {
        let pool = Pool::of(10 * WINDOW);
        let (mut large, mut next) = (pool.take(WINDOW), pool.take(WINDOW));
        pool.grow(&mut large, WINDOW, 5 * WINDOW);
        pool.give_back(large, WINDOW);
        next.fill(b'x');
        pool.grow(&mut next, 700, 3 * WINDOW);
        assert_eq!(next.len(), 5 * WINDOW);
        assert!(next[..700].iter().all(|&byte| byte == b'x') && next[700] == 0);
        assert_eq!(pool.take(WINDOW).len(), WINDOW, "the other one");
        assert_eq!(pool.lock().total, 6 * WINDOW);
    }

    #[test]
    fn buffers_that_have_grown_shrink_where_there_is_much_memory() {
        let pool = Pool::of(WINDOW);
        for round in 0..9 {
            let mut buffers: Vec<Vec<u8>> = (0..3).map(|_| pool.take(WINDOW)).collect();
            for buffer in &mut buffers {
                pool.grow(buffer, round, 4 * WINDOW);
            }
            for buffer in buffers {
                pool.give_back(buffer, WINDOW);
            }
            let buffers = pool.lock();
            let lengths: usize = buffers.spare.iter().map(Vec::capacity).sum();
            assert_eq!(lengths, buffers.total);
            assert!(buffers.total <= GROWN * WINDOW + 2 * WINDOW, "{round}");
        }
    }
}
