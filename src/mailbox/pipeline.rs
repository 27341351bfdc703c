//! Many at a time, in order, in bounded memory.
//!
//! A reader makes items; workers find the parts of each that need work, and do the work; the
//! calling thread takes finished items in the order they were read. Parts of one item and of several are worked on at once; an item waits for those
//! before it. The reader waits while the items between it and the caller weigh more than the
//! budget: one slow part stops the reading, it does not fill the memory.
//!
//! The first error ends everything. A panic in a stage is passed on once all threads have ended;
//! none waits for ever.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Stop;
use crate::error::Error;

/// How long the caller's thread sleeps before it looks at the stop flag again.
const LOOK_UP: Duration = Duration::from_millis(50);

/// What is done with items.
pub(super) trait Stages: Sync {
    /// What is read and taken.
    type Item: Send + Sync;
    /// Where in an item there is work.
    type Part: Send;
    /// What comes of it.
    type Done: Send;

    /// The parts of an item that need work.
    fn split(&self, item: &Self::Item) -> Result<Vec<Self::Part>, Error>;

    /// The work; done by the workers.
    fn work(&self, item: &Self::Item, part: Self::Part) -> Result<Self::Done, Error>;
}

/// How much at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Threads that work.
    pub(super) workers: usize,
    /// What items between reader and caller may weigh together.
    pub(super) budget: usize,
}

/// Something to do for an item.
struct Task<S: Stages> {
    /// The number of the item.
    number: u64,
    item: Arc<S::Item>,
    what: What<S::Part>,
}

enum What<P> {
    /// To find its parts.
    Split,
    /// To work on one of them, which has this index.
    Work(usize, P),
}

/// An item on its way.
struct Slot<S: Stages> {
    item: Arc<S::Item>,
    weight: usize,
    done: Vec<Option<S::Done>>,
    /// Tasks that are not finished.
    open: usize,
}

struct State<S: Stages> {
    tasks: VecDeque<Task<S>>,
    slots: VecDeque<Slot<S>>,
    /// The number of the first of `slots`.
    first: u64,
    weight: usize,
    ended: bool,
    over: bool,
    failure: Option<Error>,
}

struct Shared<S: Stages> {
    state: Mutex<State<S>>,
    /// There are tasks, or it is over.
    work: Condvar,
    /// There is room for an item, or it is over.
    room: Condvar,
    /// The first item is finished, or it is over.
    ready: Condvar,
}

impl<S: Stages> Shared<S> {
    fn lock(&self) -> MutexGuard<'_, State<S>> {
        // Nothing in a critical section leaves the state half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, failure: Option<Error>) {
        let mut state = self.lock();
        state.over = true;
        if state.failure.is_none() {
            state.failure = failure;
        }
        drop(state);
        self.work.notify_all();
        self.room.notify_all();
        self.ready.notify_all();
    }
}

/// Ends the run when its thread panics, so that no other waits for it.
struct Alarm<'a, S: Stages>(&'a Shared<S>);

impl<S: Stages> Drop for Alarm<'_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end(None);
        }
    }
}

/// Runs: `read` gives an item and its weight until there are none, `take` gets each item and
/// what was done, in the order of the parts.
///
/// # Errors
/// The first that `read`, a stage or `take` gave; [`Error::Interrupted`] if `stop` was requested.
pub(super) fn run<S: Stages>(
    stages: &S,
    limits: Limits,
    stop: &Stop,
    mut read: impl FnMut() -> Result<Option<(S::Item, usize)>, Error> + Send,
    mut take: impl FnMut(S::Item, Vec<S::Done>) -> Result<(), Error>,
) -> Result<(), Error> {
    let shared = Shared::<S> {
        state: Mutex::new(State {
            tasks: VecDeque::new(),
            slots: VecDeque::new(),
            first: 0,
            weight: 0,
            ended: false,
            over: false,
            failure: None,
        }),
        work: Condvar::new(),
        room: Condvar::new(),
        ready: Condvar::new(),
    };
    std::thread::scope(|scope| {
        let shared = &shared;
        let _alarm = Alarm(shared);
        scope.spawn(move || {
            let _alarm = Alarm(shared);
            if let Err(error) = feed(shared, limits.budget, stop, &mut read) {
                shared.end(Some(error));
            }
        });
        for _ in 0..limits.workers.max(1) {
            scope.spawn(move || {
                let _alarm = Alarm(shared);
                if let Err(error) = serve(shared, stages, stop) {
                    shared.end(Some(error));
                }
            });
        }
        let outcome = drain(shared, stop, &mut take);
        shared.end(outcome.err());
    });
    match shared.lock().failure.take() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

fn feed<S: Stages>(
    shared: &Shared<S>,
    budget: usize,
    stop: &Stop,
    read: &mut impl FnMut() -> Result<Option<(S::Item, usize)>, Error>,
) -> Result<(), Error> {
    loop {
        stop.check()?;
        let Some((item, weight)) = read()? else {
            shared.lock().ended = true;
            shared.ready.notify_all();
            return Ok(());
        };
        let mut state = shared.lock();
        while !state.over && state.weight > 0 && state.weight + weight > budget {
            state = shared
                .room
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.over {
            return Ok(());
        }
        let item = Arc::new(item);
        let number = state.first + state.slots.len() as u64;
        state.weight += weight;
        state.slots.push_back(Slot {
            item: Arc::clone(&item),
            weight,
            done: Vec::new(),
            open: 1,
        });
        state.tasks.push_back(Task {
            number,
            item,
            what: What::Split,
        });
        drop(state);
        shared.work.notify_one();
    }
}

/// What came of a task.
enum Finished<P, D> {
    Split(Vec<P>),
    Work(usize, D),
}

fn serve<S: Stages>(shared: &Shared<S>, stages: &S, stop: &Stop) -> Result<(), Error> {
    loop {
        let task = {
            let mut state = shared.lock();
            loop {
                if state.over {
                    return Ok(());
                }
                if let Some(task) = state.tasks.pop_front() {
                    break task;
                }
                state = shared
                    .work
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        };
        stop.check()?;
        let Task { number, item, what } = task;
        let finished = match what {
            What::Split => Finished::Split(stages.split(&item)?),
            What::Work(index, part) => Finished::Work(index, stages.work(&item, part)?),
        };
        let mut state = shared.lock();
        // A slot leaves only when it is finished, so those before it cannot have passed it.
        let place = (number - state.first) as usize;
        let State { slots, tasks, .. } = &mut *state;
        let Some(slot) = slots.get_mut(place) else {
            continue;
        };
        let mut parts = 0;
        match finished {
            Finished::Split(found) => {
                parts = found.len();
                slot.done = found.iter().map(|_| None).collect();
                slot.open += parts;
                // Before what waits behind: this item is waited for first.
                for (index, part) in found.into_iter().enumerate().rev() {
                    tasks.push_front(Task {
                        number,
                        item: Arc::clone(&item),
                        what: What::Work(index, part),
                    });
                }
            }
            Finished::Work(index, done) => {
                if let Some(entry) = slot.done.get_mut(index) {
                    *entry = Some(done);
                }
            }
        }
        slot.open -= 1;
        let is_ready = slot.open == 0 && place == 0;
        // Before the slot is seen finished: `drain` unwraps the item.
        drop(item);
        drop(state);
        if parts > 1 {
            // One of them is for this thread.
            shared.work.notify_all();
        }
        if is_ready {
            shared.ready.notify_all();
        }
    }
}

fn drain<S: Stages>(
    shared: &Shared<S>,
    stop: &Stop,
    take: &mut impl FnMut(S::Item, Vec<S::Done>) -> Result<(), Error>,
) -> Result<(), Error> {
    loop {
        stop.check()?;
        let slot = {
            let mut state = shared.lock();
            loop {
                if state.over {
                    return Ok(());
                }
                if state.slots.front().is_some_and(|slot| slot.open == 0) {
                    break;
                }
                if state.ended && state.slots.is_empty() {
                    return Ok(());
                }
                state = shared
                    .ready
                    .wait_timeout(state, LOOK_UP)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
                if stop.is_requested() {
                    return Err(Error::Interrupted);
                }
            }
            state.first += 1;
            state.slots.pop_front()
        };
        let Some(slot) = slot else { continue };
        let weight = slot.weight;
        if let Ok(item) = Arc::try_unwrap(slot.item).map_err(drop) {
            take(item, slot.done.into_iter().flatten().collect())?;
        } else {
            unreachable!("an item is held by its open tasks only");
        }
        shared.lock().weight -= weight;
        shared.room.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Squares(AtomicUsize);

    impl Stages for Squares {
        type Item = Vec<u64>;
        type Part = usize;
        type Done = u64;

        fn split(&self, item: &Vec<u64>) -> Result<Vec<usize>, Error> {
            Ok((0..item.len()).collect())
        }

        fn work(&self, item: &Vec<u64>, part: usize) -> Result<u64, Error> {
            let value = item[part];
            if value.is_multiple_of(7) {
                std::thread::sleep(Duration::from_millis(1));
            }
            if value == u64::MAX {
                return Err(Error::Usage("no".into()));
            }
            assert_ne!(value, u64::MAX - 1, "a panic");
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(value * value)
        }
    }

    fn squares(items: Vec<Vec<u64>>, workers: usize, budget: usize) -> Result<Vec<u64>, Error> {
        let mut out = Vec::new();
        let mut items = items.into_iter();
        let limits = Limits { workers, budget };
        run(
            &Squares(AtomicUsize::new(0)),
            limits,
            &Stop::default(),
            || {
                Ok(items.next().map(|item| {
                    let weight = item.len();
                    (item, weight)
                }))
            },
            |_, done| {
                out.extend(done);
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
        let limits = Limits {
            workers: 2,
            budget: 5,
        };
        let outcome = run(
            &Squares(AtomicUsize::new(0)),
            limits,
            &stop,
            || Ok(Some((vec![1], 1))),
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
}
