//! Counts the bytes that are read to find the ends of messages, so that tests can check that the cost is linear. A
//! measured time would depend on the machine. Outside of tests, nothing is counted.

#[cfg(not(test))]
pub(crate) fn count(_bytes: usize) {}

#[cfg(test)]
pub(crate) use counted::{count, taken};

#[cfg(test)]
mod counted {
    use std::cell::Cell;

    thread_local! {
        static LOOKED_AT: Cell<u64> = const { Cell::new(0) };
    }

    pub(crate) fn count(bytes: usize) {
        LOOKED_AT.set(LOOKED_AT.get() + bytes as u64);
    }

    /// Returns the number of bytes that were counted in this thread since the last call of this function, and sets it
    /// to 0.
    pub(crate) fn taken() -> u64 {
        LOOKED_AT.take()
    }
}
