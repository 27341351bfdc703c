//! How far a file was read whose mail is not what lies on the disk: what is compressed, or an archive. Nobody knows how much
//! mail is in it, but how long it is.

use std::sync::atomic::{AtomicU64, Ordering};

/// Octets of the file that were read, or passed over; and how many of them were told.
#[derive(Default, Debug)]
pub(crate) struct Consumed {
    read: AtomicU64,
    told: AtomicU64,
}

impl Consumed {
    /// That many more were read.
    pub(crate) fn read(&self, octets: u64) {
        self.read.fetch_add(octets, Ordering::Relaxed);
    }

    /// How many were read since the last time.
    pub(crate) fn news(&self) -> u64 {
        let read = self.read.load(Ordering::Relaxed);
        read.saturating_sub(self.told.swap(read, Ordering::Relaxed))
    }

    /// How many of the file's were never told, once all that is wanted of it was read.
    pub(crate) fn rest(&self, length: u64) -> u64 {
        length.saturating_sub(self.told.swap(length, Ordering::Relaxed))
    }
}
