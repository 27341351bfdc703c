//! Worker pool: works on many items in parallel, passes them on in order, and bounds the memory.
//!
//! An item is a window of a mailbox, a message of a directory or of a server, or a request for content. All of them go
//! through this pool, so that errors, stops and limits have the same effect everywhere.
//!
//! Each thread takes the next task: pass on the first item if it is finished, work on a part of an item, or read an
//! item and find the parts that need work. An item without such parts is read, searched and passed on by one thread,
//! while its bytes are in the processor cache. If there are enough items, a thread works on the parts of the item that
//! it read itself, and frees the memory that it allocated itself. Only one thread at a time reads, and only one passes
//! items on, in the order of reading.
//!
//! Reading stops while the items in the pool weigh more than the budget, so a slow part cannot fill the memory. If an
//! item stays unfinished for some time, finished items after it are made lighter, for example by freeing bytes that
//! can be read again. So a part that waits for a server does not stop the others.
//!
//! The calling thread is one of the workers. If the system cannot start more threads, the existing ones do all the
//! work. The first error ends the run. A panic in a stage is passed on after all threads have ended. No thread waits
//! forever.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, unpoisoned};
use crate::stop::Stop;

/// Interval at which a waiting thread checks whether a stop was requested.
const LOOK_UP: Duration = Duration::from_millis(50);

/// Time after which an unfinished first item counts as slow. From then on, the pool frees the memory of the finished items
/// that wait for it.
const PATIENCE: Duration = Duration::from_millis(50);

type Read<'p, I> = &'p mut (dyn FnMut() -> Result<Option<(I, usize)>, Error> + Send);
type Take<'p, I, D> = &'p mut (dyn FnMut(I, Vec<(usize, D)>) -> Result<(), Error> + Send);
type Lighten<'p, I, D> = &'p (dyn Fn(&mut I, &[(usize, Option<D>)]) -> Option<usize> + Sync);
type Guard<'s, 'p, I, D> = MutexGuard<'s, PoolState<'p, I, D>>;

/// Limits of one run of the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolLimits {
    /// Number of threads, including the calling one.
    pub(crate) workers: usize,
    /// Weight of the items that may be in the pool at a time. The unit is that of the weights that `read` returns, such as
    /// bytes. If the pool is empty, one item of any weight is read.
    pub(crate) budget: usize,
}

struct Pool<'p, I, D> {
    parts: &'p (dyn Fn(&I) -> Vec<usize> + Sync),
    work: &'p (dyn Fn(&I, usize) -> Result<D, Error> + Sync),
    lighten: Lighten<'p, I, D>,
    limits: PoolLimits,
    stop: &'p Stop,
    state: Mutex<PoolState<'p, I, D>>,
    changed: Condvar,
}

struct PoolState<'p, I, D> {
    /// The function that reads items. `None` while a thread uses it, and after the last item.
    read: Option<Read<'p, I>>,
    is_read: bool,
    /// The function that passes items on. `None` while a thread uses it.
    take: Option<Take<'p, I, D>>,
    slots: VecDeque<PoolSlot<I, D>>,
    /// Number of the first item in `slots`.
    first: u64,
    /// Time at which the first item in `slots` became the first one.
    first_since: Instant,
    weight: usize,
    /// Number of waiting threads. If it is 0, waking one needs no system call.
    waiting: usize,
    outcome: Option<Result<(), Error>>,
}

struct PoolSlot<I, D> {
    /// The item. `None` while a thread frees its memory.
    item: Option<Arc<I>>,
    weight: usize,
    /// For each part of the item, its position and the result of its work, which is `None` until the part is finished.
    done: Vec<(usize, Option<D>)>,
    given: usize,
    /// Number of unfinished tasks of the item: the search for parts, and each part.
    open: usize,
    /// Whether freeing memory of the item was already tried. It is not tried again.
    is_light: bool,
}

impl<I, D> PoolSlot<I, D> {
    fn shared_item(&self) -> Arc<I> {
        match &self.item {
            Some(item) => Arc::clone(item),
            None => unreachable!(
                "only finished items are made lighter, and they have no part left to work on"
            ),
        }
    }
}

impl<I, D> PoolState<'_, I, D> {
    fn slot(&mut self, number: u64) -> &mut PoolSlot<I, D> {
        // A slot is removed only when its item is finished and all items before it were passed on. So the slot of an
        // unfinished item still exists.
        &mut self.slots[(number - self.first) as usize]
    }

    /// Returns the number of a finished item whose memory should be freed. Its bytes must later be read again, so this
    /// pays off only if the first item has been unfinished for [`PATIENCE`], because it waits for a network.
    fn heavy(&self) -> Option<u64> {
        let is_stalled = self.slots.front().is_some_and(|slot| slot.open > 0);
        if !is_stalled || self.first_since.elapsed() < PATIENCE {
            return None;
        }
        let is_heavy = |slot: &PoolSlot<I, D>| slot.open == 0 && !slot.is_light;
        // The memory of items near the start was usually freed already, so the search runs from the last item to the
        // first.
        let place = self.slots.iter().skip(1).rposition(is_heavy)?;
        Some(self.first + 1 + place as u64)
    }

    fn waits(&self, from: u64) -> Option<u64> {
        let mut numbered = (self.first..).zip(&self.slots);
        let found = numbered.find(|(number, slot)| *number >= from && slot.given < slot.done.len());
        found.map(|(number, _)| number)
    }
}

/// Processes all items in five stages:
///
/// * `read` returns the next item and its weight, and `None` after the last one;
/// * `parts` returns the positions of the parts of an item that need work;
/// * `work` processes one part;
/// * `lighten` frees memory of a finished item that waits for earlier items, and returns the new weight of the item, or
///   `None` if no memory can be freed;
/// * `take` receives each item with the results of its parts, in the order of reading.
///
/// Only one thread at a time is in `read`, and only one in `take`.
///
/// # Errors
/// The first error of a stage, or [`Error::Interrupted`] after a request to `stop`.
pub(crate) fn run<I: Send + Sync, D: Send>(
    limits: PoolLimits,
    stop: &Stop,
    mut read: impl FnMut() -> Result<Option<(I, usize)>, Error> + Send,
    parts: impl Fn(&I) -> Vec<usize> + Sync,
    work: impl Fn(&I, usize) -> Result<D, Error> + Sync,
    lighten: impl Fn(&mut I, &[(usize, Option<D>)]) -> Option<usize> + Sync,
    mut take: impl FnMut(I, Vec<(usize, D)>) -> Result<(), Error> + Send,
) -> Result<(), Error> {
    let pool = Pool {
        parts: &parts,
        work: &work,
        lighten: &lighten,
        limits: PoolLimits {
            workers: limits.workers.max(1),
            budget: limits.budget.max(1),
        },
        stop,
        state: Mutex::new(PoolState {
            read: Some(&mut read),
            is_read: false,
            take: Some(&mut take),
            slots: VecDeque::new(),
            first: 0,
            first_since: Instant::now(),
            weight: 0,
            waiting: 0,
            outcome: None,
        }),
        changed: Condvar::new(),
    };
    let serve = || {
        let served = catch_unwind(AssertUnwindSafe(|| pool.serve()));
        pool.end(served.unwrap_or_else(|panic| {
            // The panic is passed on only after the other threads have ended.
            pool.end(Err(Error::Interrupted));
            resume_unwind(panic)
        }));
    };
    thread::scope(|scope| {
        for _ in 1..pool.limits.workers {
            if thread::Builder::new().spawn_scoped(scope, serve).is_err() {
                break;
            }
        }
        serve();
    });
    let outcome = pool.lock().outcome.take();
    outcome.unwrap_or(Ok(()))
}

impl<'p, I, D> Pool<'p, I, D> {
    fn lock(&self) -> Guard<'_, 'p, I, D> {
        unpoisoned(self.state.lock())
    }

    fn wake_one(&self, state: &PoolState<'_, I, D>) {
        if state.waiting > 0 {
            self.changed.notify_one();
        }
    }

    fn end(&self, outcome: Result<(), Error>) {
        self.lock().outcome.get_or_insert(outcome);
        self.changed.notify_all();
    }

    fn serve(&self) -> Result<(), Error> {
        let mut own = 0;
        let mut state = self.lock();
        while state.outcome.is_none() {
            self.stop.check()?;
            let may_read = state.weight < self.limits.budget && state.read.is_some();
            let waits = match state.waits(own) {
                Some(number) if number == own => Some(own),
                _ if may_read && state.slots.len() < self.limits.workers => None,
                _ => state.waits(0),
            };
            if state.slots.front().is_some_and(|slot| slot.open == 0)
                && let Some(take) = state.take.take()
            {
                state = self.take(state, take)?;
            } else if let Some(number) = waits {
                let slot = state.slot(number);
                let index = slot.given;
                slot.given += 1;
                let (item, part) = (slot.shared_item(), slot.done[index].0);
                drop(state);
                let work = self.work;
                let done = work(&item, part)?;
                state = self.lock();
                let slot = state.slot(number);
                slot.done[index].1 = Some(done);
                // `item` is dropped here, before the lock is released. So a thread that finds no unfinished part in the
                // slot holds the last reference, and can take the item out of its `Arc`.
                slot.open -= 1;
            } else if state.weight < self.limits.budget
                && let Some(read) = state.read.take()
            {
                own = state.first + state.slots.len() as u64;
                state = self.read(state, read)?;
            } else if state.is_read && state.slots.is_empty() && state.take.is_some() {
                break;
            } else if state.read.is_some()
                && let Some(number) = state.heavy()
            {
                state = self.lighten(state, number);
            } else {
                state.waiting += 1;
                let waited = self.changed.wait_timeout(state, LOOK_UP);
                state = unpoisoned(waited).0;
                state.waiting -= 1;
            }
        }
        Ok(())
    }

    /// Frees memory of a finished item that waits for earlier items. The lock is released meanwhile, because a large
    /// item may have to be hashed completely.
    fn lighten<'s>(&'s self, mut state: Guard<'s, 'p, I, D>, number: u64) -> Guard<'s, 'p, I, D> {
        let slot = state.slot(number);
        slot.is_light = true;
        // The item is marked as unfinished, so that no thread passes it on while its memory is freed.
        slot.open = 1;
        let (item, done) = (slot.item.take(), std::mem::take(&mut slot.done));
        drop(state);
        let mut item = item.and_then(Arc::into_inner);
        let lighten = self.lighten;
        let weight = item.as_mut().and_then(|item| lighten(item, &done));
        let mut state = self.lock();
        let slot = state.slot(number);
        (slot.item, slot.done, slot.open) = (item.map(Arc::new), done, 0);
        if let Some(weight) = weight {
            let before = std::mem::replace(&mut slot.weight, weight);
            state.weight = state.weight - before + weight;
        }
        // Less memory is in use, so another thread may be able to read an item, or to pass this one on.
        self.wake_one(&state);
        state
    }

    fn take<'s>(
        &'s self,
        mut state: Guard<'s, 'p, I, D>,
        take: Take<'p, I, D>,
    ) -> Result<Guard<'s, 'p, I, D>, Error> {
        if let Some(slot) = state.slots.pop_front() {
            state.first += 1;
            state.first_since = Instant::now();
            if state.waits(0).is_some() {
                self.wake_one(&state);
            }
            drop(state);
            let item = slot.item.and_then(Arc::into_inner);
            let Some(item) = item else {
                unreachable!(
                    "all threads have finished this item and have dropped their references to it"
                );
            };
            let done = slot
                .done
                .into_iter()
                .filter_map(|(part, done)| Some((part, done?)));
            take(item, done.collect())?;
            state = self.lock();
            state.weight -= slot.weight;
        }
        state.take = Some(take);
        // This thread takes the next task itself. Another one is woken, because it may now be able to read, or may be
        // waiting for the end.
        self.wake_one(&state);
        Ok(state)
    }

    fn read<'s>(
        &'s self,
        state: Guard<'s, 'p, I, D>,
        read: Read<'p, I>,
    ) -> Result<Guard<'s, 'p, I, D>, Error> {
        drop(state);
        let Some((item, weight)) = read()? else {
            let mut state = self.lock();
            state.is_read = true;
            self.changed.notify_all();
            return Ok(state);
        };
        let item = Arc::new(item);
        let mut state = self.lock();
        let number = state.first + state.slots.len() as u64;
        state.read = Some(read);
        state.weight += weight;
        state.slots.push_back(PoolSlot {
            item: Some(Arc::clone(&item)),
            weight,
            done: Vec::new(),
            given: 0,
            open: 1,
            is_light: false,
        });
        self.wake_one(&state);
        drop(state);
        let parts = (self.parts)(&item);
        drop(item);
        let mut state = self.lock();
        if parts.len() > 1 {
            self.changed.notify_all();
        }
        let slot = state.slot(number);
        slot.open = parts.len();
        slot.done = parts.into_iter().map(|part| (part, None)).collect();
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    fn square(item: &[u64], part: usize) -> Result<u64, Error> {
        let value = item[part];
        if value.is_multiple_of(7) {
            std::thread::sleep(Duration::from_millis(1));
        }
        if value == u64::MAX {
            return Err(Error::Usage("no".into()));
        }
        assert_ne!(value, u64::MAX - 1, "a panic");
        Ok(value * value)
    }

    fn all(item: &[u64]) -> Vec<usize> {
        (0..item.len()).collect()
    }

    fn squares(items: Vec<Vec<u64>>, workers: usize, budget: usize) -> Result<Vec<u64>, Error> {
        let mut out = Vec::new();
        let mut items = items.into_iter();
        run(
            PoolLimits { workers, budget },
            &Stop::default(),
            || {
                Ok(items.next().map(|item| {
                    let weight = item.len();
                    (item, weight)
                }))
            },
            |item| all(item),
            |item, part| square(item, part),
            |_, _| None,
            |_, done| {
                out.extend(done.into_iter().map(|(_, square)| square));
                Ok(())
            },
        )?;
        Ok(out)
    }

    #[test]
    fn results_come_in_the_order_they_were_read() {
        let items: Vec<Vec<u64>> = (0..200).map(|n| (n..n + n % 5).collect()).collect();
        let expected: Vec<u64> = items.iter().flatten().map(|n| n * n).collect();
        for workers in [1, 2, 7] {
            for budget in [1, 10, 1000] {
                let got = squares(items.clone(), workers, budget).unwrap();
                assert_eq!(got, expected);
            }
        }
    }

    #[test]
    fn the_first_error_ends_the_run() {
        let items = vec![vec![1, 2], vec![3, u64::MAX], vec![5; 100]];
        assert!(matches!(squares(items, 3, 10), Err(Error::Usage(_))));
    }

    #[test]
    fn a_panic_is_passed_on_and_nobody_waits_for_ever() {
        let items = vec![vec![1, 2], vec![3, u64::MAX - 1], vec![5; 100]];
        assert!(std::panic::catch_unwind(|| squares(items, 3, 10)).is_err());
    }

    #[test]
    fn a_requested_stop_interrupts() {
        let stop = Stop::default();
        let mut taken = 0;
        let outcome = run(
            PoolLimits {
                workers: 2,
                budget: 5,
            },
            &stop,
            || Ok(Some((vec![1], 1))),
            |item| all(item),
            |item, part| square(item, part),
            |_, _| None,
            |_, _| {
                taken += 1;
                if taken == 10 {
                    stop.request();
                }
                Ok(())
            },
        );
        assert!(matches!(outcome, Err(Error::Interrupted)));
    }

    #[test]
    fn items_behind_a_slow_one_are_processed_if_that_frees_memory() {
        for (weight, most) in [(Some(1), 100), (None, 10)] {
            let (read, let_go) = (AtomicUsize::new(0), AtomicBool::new(false));
            let mut items = 0..100_u64;
            let mut taken = Vec::new();
            let ahead = thread::scope(|scope| {
                let watching = scope.spawn(|| {
                    let begun = Instant::now();
                    let is_done = || read.load(Ordering::SeqCst) >= most;
                    while !is_done() && begun.elapsed() < Duration::from_secs(30) {
                        thread::sleep(Duration::from_millis(1));
                    }
                    // The budget is used up. If the pool read beyond it, it would do so during this pause.
                    thread::sleep(Duration::from_millis(100));
                    let ahead = read.load(Ordering::SeqCst);
                    let_go.store(true, Ordering::SeqCst);
                    ahead
                });
                let done = run(
                    PoolLimits {
                        workers: 3,
                        budget: 1_000,
                    },
                    &Stop::default(),
                    || {
                        let item = items.next();
                        read.fetch_add(usize::from(item.is_some()), Ordering::SeqCst);
                        Ok(item.map(|item| (item, 100)))
                    },
                    |_| vec![0],
                    |item, _| {
                        while *item == 0 && !let_go.load(Ordering::SeqCst) {
                            thread::sleep(Duration::from_millis(1));
                        }
                        Ok(())
                    },
                    |_, _| weight,
                    |item, _| {
                        taken.push(item);
                        Ok(())
                    },
                );
                done.unwrap();
                watching.join().unwrap()
            });
            assert_eq!(ahead, most, "{weight:?}");
            assert!(taken.iter().copied().eq(0..100));
        }
    }
}
