//! See `tests/common/checks/cost.rs`. What is counted there is held here against what was allocated
//! meanwhile: octets that are copied and not counted show.
#![no_main]

#[path = "../../common/checks/mod.rs"]
mod checks;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Allocated now, the most of it, and all that ever was.
static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static EVER: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn more(octets: usize) {
    EVER.fetch_add(octets, Relaxed);
    let now = NOW.fetch_add(octets, Relaxed) + octets;
    MOST.fetch_max(now, Relaxed);
}

// SAFETY: everything is the system's; only sizes are noted.
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
        // In place or not is the system's luck: what is gained counts.
        if size > layout.size() {
            more(size - layout.size());
        } else {
            NOW.fetch_sub(layout.size() - size, Relaxed);
        }
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// What no mail pays for: tables that are made once, rows of the report.
const SLACK: u64 = 1 << 20;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let before = NOW.load(Relaxed);
    MOST.store(before, Relaxed);
    EVER.store(0, Relaxed);
    let cost = checks::cost::check(data);
    let most = MOST.load(Relaxed).saturating_sub(before) as u64;
    let ever = EVER.load(Relaxed) as u64;
    let material = cost.input + cost.retrieved + cost.output;
    assert!(most <= 4 * material + SLACK, "{most} octets held: {cost:?}");
    assert!(ever <= 8 * (material + cost.work) + SLACK, "{ever} octets allocated: {cost:?}");
});
