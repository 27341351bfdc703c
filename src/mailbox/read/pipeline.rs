//! Many at a time, in order, in bounded memory.
//!
//! Every thread does whatever is next: it hands on the first item if that is finished, works on a part, or reads an
//! item and finds the parts of it that need work. So an item that nothing has to be done to is read, searched and handed
//! on by one thread, while its bytes are in the cache of that processor. Only one thread reads at a time, and one hands
//! on, in the order in which items were read. Parts of one item and of several are worked on at once; an item waits
//! for those before it. Nobody reads while the items on their way weigh more than the budget: one slow part stops the
//! reading, it does not fill the memory.
//!
//! The first error ends everything. A panic in a stage is passed on once all threads have ended;
//! none waits for ever.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::Error;
use crate::mailbox::Stop;

/// How long the caller's thread sleeps before it looks at the stop flag again.
const LOOK_UP: Duration = Duration::from_millis(50);

/// What is done with items.
pub(crate) trait Stages: Sync {
    /// What is read and taken.
    type Item: Send + Sync;
    /// Where in an item there is work.
    type Part: Send;
    /// What comes of it.
    type Done: Send;

    /// The parts of an item that need work.
    fn split(&self, item: &Self::Item) -> Result<Vec<Self::Part>, Error>;

    /// The work on one part.
    fn work(&self, item: &Self::Item, part: Self::Part) -> Result<Self::Done, Error>;
}

/// Work on a part of an item.
struct Task<S: Stages> {
    /// The number of the item.
    number: u64,
    item: Arc<S::Item>,
    /// Which of its parts.
    index: usize,
    part: S::Part,
}

/// An item on its way.
struct Slot<S: Stages> {
    item: Arc<S::Item>,
    weight: usize,
    done: Vec<Option<S::Done>>,
    /// What is not finished: the search for parts, and the parts.
    open: usize,
}

/// Whether a thread can enter a stage that one thread at a time is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Gate {
    Free,
    Taken,
    /// There is nothing more to read.
    Closed,
}

struct State<S: Stages> {
    tasks: VecDeque<Task<S>>,
    slots: VecDeque<Slot<S>>,
    /// The number of the first of `slots`.
    first: u64,
    /// What `slots` and the item that is handed on weigh.
    weight: usize,
    reading: Gate,
    taking: Gate,
    over: bool,
    failure: Option<Error>,
    /// Threads that wait for work. To wake nobody is a call of the system, too.
    waiting: usize,
}

impl<S: Stages> State<S> {
    fn first_is_finished(&self) -> bool {
        self.slots.front().is_some_and(|slot| slot.open == 0)
    }

    /// Whether nothing is left to do, nor will be.
    fn is_done(&self) -> bool {
        self.reading == Gate::Closed && self.taking == Gate::Free && self.slots.is_empty()
    }
}

/// Ends the run when its thread panics, so that no other waits for it.
struct Alarm<F: Fn()>(F);

impl<F: Fn()> Drop for Alarm<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0)();
        }
    }
}

/// Runs in so many threads: `read` gives an item and its weight until there are none, `take` gets each item and
/// what was done, in the order of the parts. Items between the two weigh `budget` together, or one is there.
///
/// # Errors
/// The first that `read`, a stage or `take` gave; [`Error::Interrupted`] if `stop` was requested.
pub(crate) fn run<S: Stages>(
    stages: &S,
    workers: usize,
    budget: usize,
    stop: &Stop,
    read: impl FnMut() -> Result<Option<(S::Item, usize)>, Error> + Send,
    take: impl FnMut(S::Item, Vec<S::Done>) -> Result<(), Error> + Send,
) -> Result<(), Error> {
    let pipeline = Pipeline {
        stages,
        stop,
        budget,
        read: Mutex::new(read),
        take: Mutex::new(take),
        state: Mutex::new(State {
            tasks: VecDeque::new(),
            slots: VecDeque::new(),
            first: 0,
            weight: 0,
            reading: Gate::Free,
            taking: Gate::Free,
            over: false,
            failure: None,
            waiting: 0,
        }),
        work: Condvar::new(),
        end: Condvar::new(),
    };
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            scope.spawn(|| {
                let _alarm = Alarm(|| pipeline.end(None));
                if let Err(error) = pipeline.serve() {
                    pipeline.end(Some(error));
                }
            });
        }
        let mut state = pipeline.lock();
        while !state.over && !stop.is_requested() {
            let waited = pipeline.end.wait_timeout(state, LOOK_UP);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let is_stopped = !state.over;
        drop(state);
        if is_stopped {
            pipeline.end(Some(Error::Interrupted));
        }
    });
    match pipeline.lock().failure.take() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// What is next for a thread.
enum Next<S: Stages> {
    Take(Slot<S>),
    Work(Task<S>),
    Read,
    End,
}

/// What all threads share.
struct Pipeline<'a, S: Stages, R, T> {
    stages: &'a S,
    stop: &'a Stop,
    budget: usize,
    /// Only one thread at a time asks for it: `reading` is `Taken` then.
    read: Mutex<R>,
    /// The same, by `taking`.
    take: Mutex<T>,
    state: Mutex<State<S>>,
    /// There is something to do for a thread, or it is over.
    work: Condvar,
    /// It is over.
    end: Condvar,
}

impl<S, R, T> Pipeline<'_, S, R, T>
where
    S: Stages,
    R: FnMut() -> Result<Option<(S::Item, usize)>, Error>,
    T: FnMut(S::Item, Vec<S::Done>) -> Result<(), Error>,
{
    fn lock(&self) -> MutexGuard<'_, State<S>> {
        // Nothing in a critical section leaves the state half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_one(&self, state: &State<S>) {
        if state.waiting > 0 {
            self.work.notify_one();
        }
    }

    fn end(&self, failure: Option<Error>) {
        let mut state = self.lock();
        state.over = true;
        if state.failure.is_none() {
            state.failure = failure;
        }
        drop(state);
        self.work.notify_all();
        self.end.notify_all();
    }

    fn serve(&self) -> Result<(), Error> {
        loop {
            let next = self.next();
            self.stop.check()?;
            match next {
                Next::End => return Ok(()),
                Next::Take(slot) => self.take(slot)?,
                Next::Work(task) => self.work(task)?,
                Next::Read => self.read()?,
            }
        }
    }

    /// Waits until there is something to do.
    fn next(&self) -> Next<S> {
        let mut state = self.lock();
        loop {
            if state.over {
                return Next::End;
            }
            if state.taking == Gate::Free
                && state.first_is_finished()
                && let Some(slot) = state.slots.pop_front()
            {
                state.first += 1;
                state.taking = Gate::Taken;
                if !state.tasks.is_empty() {
                    self.wake_one(&state);
                }
                return Next::Take(slot);
            }
            if let Some(task) = state.tasks.pop_front() {
                return Next::Work(task);
            }
            let weight = state.weight;
            if state.reading == Gate::Free && (weight == 0 || weight < self.budget) {
                state.reading = Gate::Taken;
                return Next::Read;
            }
            if state.is_done() {
                state.over = true;
                drop(state);
                self.work.notify_all();
                self.end.notify_all();
                return Next::End;
            }
            state.waiting += 1;
            let waited = self.work.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }

    fn take(&self, slot: Slot<S>) -> Result<(), Error> {
        let Slot {
            item, weight, done, ..
        } = slot;
        let Ok(item) = Arc::try_unwrap(item).map_err(drop) else {
            unreachable!("an item is held by its open tasks only");
        };
        let mut take = self.take.lock().unwrap_or_else(PoisonError::into_inner);
        take(item, done.into_iter().flatten().collect())?;
        drop(take);
        let mut state = self.lock();
        state.taking = Gate::Free;
        state.weight -= weight;
        // This thread looks for itself; another one may read, and one may have waited for the end.
        self.wake_one(&state);
        Ok(())
    }

    /// Reads an item, and finds the parts of it that need work.
    fn read(&self) -> Result<(), Error> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let item = read()?;
        drop(read);
        let mut state = self.lock();
        let Some((item, weight)) = item else {
            state.reading = Gate::Closed;
            drop(state);
            self.work.notify_all();
            return Ok(());
        };
        let item = Arc::new(item);
        let number = state.first + state.slots.len() as u64;
        state.reading = Gate::Free;
        state.weight += weight;
        state.slots.push_back(Slot {
            item: Arc::clone(&item),
            weight,
            done: Vec::new(),
            open: 1,
        });
        self.wake_one(&state);
        drop(state);
        let found = self.stages.split(&item)?;
        let parts = found.len();
        let mut state = self.lock();
        let place = (number - state.first) as usize;
        let State { slots, tasks, .. } = &mut *state;
        // Before what waits behind: this item is waited for first.
        for (index, part) in found.into_iter().enumerate().rev() {
            tasks.push_front(Task {
                number,
                item: Arc::clone(&item),
                index,
                part,
            });
        }
        if let Some(slot) = slots.get_mut(place) {
            slot.done.resize_with(parts, || None);
            slot.open += parts;
        }
        self.finish(state, number, item, parts);
        Ok(())
    }

    fn work(&self, task: Task<S>) -> Result<(), Error> {
        let Task {
            number,
            item,
            index,
            part,
        } = task;
        let done = self.stages.work(&item, part)?;
        let mut state = self.lock();
        let place = (number - state.first) as usize;
        let entry = state
            .slots
            .get_mut(place)
            .and_then(|slot| slot.done.get_mut(index));
        if let Some(entry) = entry {
            *entry = Some(done);
        }
        self.finish(state, number, item, 0);
        Ok(())
    }

    /// One thing that was open in an item is done, and so many parts of it can be worked on.
    fn finish(
        &self,
        mut state: MutexGuard<'_, State<S>>,
        number: u64,
        item: Arc<S::Item>,
        parts: usize,
    ) {
        // A slot leaves only when it is finished, so those before it cannot have passed it.
        let place = (number - state.first) as usize;
        if let Some(slot) = state.slots.get_mut(place) {
            slot.open -= 1;
        }
        // Before the slot is seen finished: who takes it unwraps the item.
        drop(item);
        drop(state);
        if parts > 1 {
            // One of them is for this thread.
            self.work.notify_all();
        }
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
        run(
            &Squares(AtomicUsize::new(0)),
            workers,
            budget,
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
        let outcome = run(
            &Squares(AtomicUsize::new(0)),
            2,
            5,
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
