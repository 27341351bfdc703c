//! Thread pool for messages. A job needs a [`Place`], so the queue is bounded.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::error::unpoisoned;

type Job = Box<dyn FnOnce() + Send>;

/// Slot for one request, held while it waits for a thread and while it is processed.
pub(super) type Place = OwnedSemaphorePermit;

pub(super) struct Workers {
    queue: Arc<(Mutex<VecDeque<Job>>, Condvar)>,
    places: Arc<Semaphore>,
}

impl Workers {
    /// Starts `threads` threads. At most `waiting` more jobs can wait.
    pub(super) fn start(threads: usize, waiting: usize) -> io::Result<Self> {
        let queue: Arc<(Mutex<VecDeque<Job>>, Condvar)> = Arc::default();
        for _ in 0..threads.max(1) {
            let queue = Arc::clone(&queue);
            let builder = thread::Builder::new().name("worker".to_owned());
            builder.spawn(move || work(&queue))?;
        }
        let places = threads.max(1).saturating_add(waiting);
        Ok(Self {
            queue,
            places: Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))),
        })
    }

    /// Takes a slot, or returns `None` if all are taken.
    pub(super) fn place(&self) -> Option<Place> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Runs `work` in a thread. Returns `None` if it panicked.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        place: Place,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        let job = Box::new(move || {
            // Skips the job if the client is gone.
            let is_awaited = !sender.is_closed();
            let done = is_awaited.then(|| catch_unwind(AssertUnwindSafe(work)));
            // Frees the slot before the response is sent, so that the client's next request finds a free one.
            drop(place);
            if let Some(Ok(result)) = done {
                let _ = sender.send(result);
            }
        });
        let (jobs, is_ready) = &*self.queue;
        unpoisoned(jobs.lock()).push_back(job);
        is_ready.notify_one();
        receiver.await.ok()
    }
}

fn work(queue: &(Mutex<VecDeque<Job>>, Condvar)) {
    let (jobs, is_ready) = queue;
    loop {
        let waiting = is_ready.wait_while(unpoisoned(jobs.lock()), |jobs| jobs.is_empty());
        let job = unpoisoned(waiting).pop_front();
        if let Some(job) = job {
            job();
        }
    }
}
