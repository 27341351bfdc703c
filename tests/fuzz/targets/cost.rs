//! Runs the check in `tests/common/checks/cost.rs` on the input of libFuzzer, and compares the bytes that embody
//! counted with the memory that was allocated during the check. The comparison fails if code copies many bytes
//! without counting them.
#![no_main]

#[path = "../../common/checks/mod.rs"]
mod checks;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Number of bytes that are allocated now.
static NOW: AtomicUsize = AtomicUsize::new(0);
/// Maximum of [`NOW`] since the start of the current check.
static MOST: AtomicUsize = AtomicUsize::new(0);
/// Number of bytes that were allocated since the start of the current check, including freed bytes.
static EVER: AtomicUsize = AtomicUsize::new(0);

/// The allocator of the system, with the counts above.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn more(octets: usize) {
    EVER.fetch_add(octets, Relaxed);
    let now = NOW.fetch_add(octets, Relaxed) + octets;
    MOST.fetch_max(now, Relaxed);
}

// SAFETY: all calls are passed on to the allocator of the system. Only the sizes are counted here.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Only the difference of the sizes is counted: the system decides whether the bytes are moved to a new place.
        if size > layout.size() {
            more(size - layout.size());
        } else {
            NOW.fetch_sub(layout.size() - size, Relaxed);
        }
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Number of allocated bytes that the limits do not count: tables that are created once, and the rows of the report.
const SLACK: u64 = 1 << 20;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let before = NOW.load(Relaxed);
    MOST.store(before, Relaxed);
    EVER.store(0, Relaxed);
    let cost = checks::cost::check(data);
    let most = MOST.load(Relaxed).saturating_sub(before) as u64;
    let ever = EVER.load(Relaxed) as u64;
    let material = cost.input + cost.retrieved + cost.output;
    assert!(
        most <= 4 * material + SLACK,
        "at most {most} bytes were allocated at a time, which is above the limit: {cost:?}"
    );
    assert!(
        ever <= 8 * (material + cost.work) + SLACK,
        "{ever} bytes were allocated in total, which is above the limit: {cost:?}"
    );
});
