//! The size limit of a cache, and the eviction of entries.
//!
//! The file `size` contains the total, and processes lock it while they add to it. The total is an estimate: a file that
//! another process overwrote counts twice, and files that were deleted by hand still count. If the total exceeds `--cache-max`,
//! and once a day, one process measures all files and evicts the least recently used ones. A process that is reading such a
//! file still has it open and can finish; later reads are misses.
//!
//! The cache of one run has no size limit. It stops growing when the disk is nearly full, so that the output still fits.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::fetch::now;
use crate::platform::disk::layout::{Area, CACHE_SIZE};
use crate::platform::disk::{names, open_folder, open_to_write};

/// Block size of the file system, in bytes: a file occupies whole blocks.
const BLOCK: u64 = 4 << 10;

/// Upper limit, in bytes, of the disk space that the cache of one run leaves free. The cache leaves a twentieth of the disk
/// free, but on a large disk not more than this limit.
const SPARE: u64 = 1 << 30;

const SPARE_FILES: u64 = 10_000;
const FEW_FILES: u64 = 8;

const BELIEVED: u64 = 24 * 60 * 60;

pub(super) fn on_disk(length: u64) -> u64 {
    length.max(1).div_ceil(BLOCK).saturating_mul(BLOCK)
}

#[derive(Default, Debug)]
pub(super) struct Size {
    pub(super) at_most: Option<u64>,
    /// Number of bytes that the cache of one run leaves free on the disk, shown to the user. `None` for a shared cache,
    /// which has a size limit instead.
    pub(super) leaves: Option<u64>,
    pub(super) added: AtomicU64,
}

impl Size {
    pub(super) fn is_of_run(&self) -> bool {
        self.leaves.is_some()
    }

    pub(super) fn room(&self, root: &OwnedFd, length: u64) -> io::Result<bool> {
        if let Some(leaves) = self.leaves {
            let disk = rustix::fs::fstatvfs(root)?;
            let spare = disk.f_blocks.saturating_mul(disk.f_frsize) / 20;
            let wanted = leaves.saturating_add(spare.min(SPARE));
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            // A file system that creates inodes on demand, such as btrfs, reports zero inodes in total. This does not
            // mean that it is full, so the number of free inodes is then not checked.
            let spare = (disk.f_files / 20).min(SPARE_FILES) + FEW_FILES;
            let has_no_files = disk.f_files > 0 && disk.f_favail < spare;
            if has_no_files || free < wanted.saturating_add(on_disk(length)) {
                return Err(Errno::NOSPC.into());
            }
        }
        Ok(self.at_most.is_none_or(|most| on_disk(length) <= most))
    }

    pub(super) fn grew(&self, root: &OwnedFd, octets: u64) {
        if self.is_of_run() {
            return;
        }
        self.added.fetch_add(octets, Ordering::Relaxed);
        let mode = Mode::RUSR | Mode::WUSR;
        let Ok(mut file) = open_to_write(root, CACHE_SIZE, OFlags::CREATE, mode) else {
            return;
        };
        // Another process that holds the lock is updating the total, so this one returns. Otherwise the lock lasts
        // until `file` is closed below.
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        let now = now();
        let added = self.added.swap(0, Ordering::Relaxed);
        let sum = sum(&file).map(|(octets, counted)| (octets.saturating_add(added), counted));
        let is_believed = |counted: u64| now.checked_sub(counted).is_some_and(|age| age < BELIEVED);
        let (octets, counted) = match (sum, self.at_most) {
            (Some((octets, counted)), Some(most)) if octets <= most && is_believed(counted) => {
                (octets, counted)
            }
            (_, Some(most)) => (evict(root, most), now),
            (Some(sum), None) => sum,
            // If there is neither a size limit nor a stored total, nothing is written: without a limit nothing is
            // evicted, so measuring all files would have no use.
            (None, None) => return,
        };
        let text = format!("{octets} {counted}");
        let _ = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(text.as_bytes()));
    }
}

fn sum(file: &File) -> Option<(u64, u64)> {
    let mut text = String::new();
    file.take(64).read_to_string(&mut text).ok()?;
    let (octets, counted) = text.split_once(' ')?;
    Some((octets.parse().ok()?, counted.parse().ok()?))
}

fn evict(root: &OwnedFd, most: u64) -> u64 {
    let mut found = Vec::new();
    for area in Area::ALL {
        if let Ok(folder) = open_folder(root, area.name()) {
            collect(&folder, area.name(), area.depth(), &mut found);
        }
    }
    found.sort_unstable();
    let mut sum: u64 = found.iter().map(|(_, _, octets)| octets).sum();
    // Evicts down to 95 % of the limit. Measuring all files takes a long time, and a total just below the limit would trigger
    // it again at once.
    if sum <= most / 20 * 19 {
        return sum;
    }
    let wanted = most / 10 * 9;
    for (_, path, octets) in &found {
        if sum <= wanted {
            break;
        }
        if rustix::fs::unlinkat(root, path, AtFlags::empty()).is_ok() {
            sum -= octets;
        }
    }
    sum
}

/// Collects the files below a directory, with the time of their last use in nanoseconds. Symbolic links are not followed.
fn collect(folder: &OwnedFd, path: &str, depth: usize, found: &mut Vec<(i128, String, u64)>) {
    for name in names(folder).unwrap_or_default() {
        if name.starts_with('.') {
            continue;
        }
        let path = format!("{path}/{name}");
        if depth > 0 {
            if let Ok(inner) = open_folder(folder, &name) {
                collect(&inner, &path, depth - 1, found);
            }
            continue;
        }
        if let Ok(status) = rustix::fs::statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
            let used =
                i128::from(status.st_mtime) * 1_000_000_000 + i128::from(status.st_mtime_nsec);
            let octets = on_disk(u64::try_from(status.st_size).unwrap_or(0));
            found.push((used, path, octets));
        }
    }
}
