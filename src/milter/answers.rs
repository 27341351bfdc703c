//! What was retrieved, kept for the messages that follow, and not for ever: a process that runs for months must not
//! give the answers of its first day.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::fetch::{Cached, Fetch, Probed, Request, Retrieved};
use crate::report::Refusal;

/// As [`Cached`], but no answer is older than a while: all are forgotten then, so that memory stays what `Cached`
/// says.
pub struct Answers {
    inner: Arc<dyn Fetch>,
    octets: usize,
    age: Duration,
    /// Since when, and what.
    current: RwLock<(Instant, Arc<Kept>)>,
}

type Kept = Cached<Arc<dyn Fetch>>;

impl Answers {
    /// How old an answer may be unless said otherwise.
    pub const AGE: Duration = Duration::from_secs(300);

    /// Remembers what this one answers, up to so many octets.
    #[must_use]
    pub fn new(inner: Arc<dyn Fetch>, octets: usize, age: Duration) -> Self {
        let cached = Cached::with_capacity(Arc::clone(&inner), octets);
        Self {
            inner,
            octets,
            age,
            current: RwLock::new((Instant::now(), Arc::new(cached))),
        }
    }

    fn current(&self) -> Arc<Kept> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        if current.0.elapsed() < self.age {
            return Arc::clone(&current.1);
        }
        drop(current);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        // Somebody else may have been here between the two locks.
        if current.0.elapsed() >= self.age {
            let cached = Cached::with_capacity(Arc::clone(&self.inner), self.octets);
            *current = (Instant::now(), Arc::new(cached));
        }
        Arc::clone(&current.1)
    }
}

impl Fetch for Answers {
    fn fetch(&self, request: &Request) -> Result<Retrieved, Refusal> {
        self.current().fetch(request)
    }

    fn probe(&self, request: &Request) -> Result<Probed, Refusal> {
        self.current().probe(request)
    }

    fn heeds_date(&self) -> bool {
        self.inner.heeds_date()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::fetch::Bytes;

    struct Counting(AtomicUsize);

    impl Fetch for Counting {
        fn fetch(&self, request: &Request) -> Result<Retrieved, Refusal> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(Retrieved {
                url: request.url.clone(),
                media_type: None,
                body: Bytes::from_static(b"body"),
                elapsed: Duration::ZERO,
                captured: None,
            })
        }
    }

    #[test]
    fn an_answer_is_kept_for_a_while_and_then_asked_for_again() {
        let counting = Arc::new(Counting(AtomicUsize::new(0)));
        let age = Duration::from_secs(60 * 60);
        let mut answers = Answers::new(Arc::<Counting>::clone(&counting), 1 << 20, age);
        let request = Request {
            url: "https://a.example/x".to_owned(),
            accept: None,
            deadline: Instant::now() + Duration::from_secs(60),
            date: None,
        };
        for _ in 0..3 {
            assert!(answers.fetch(&request).is_ok());
        }
        assert_eq!(counting.0.load(Ordering::SeqCst), 1);
        // Now it is older than that.
        answers.age = Duration::ZERO;
        assert!(answers.fetch(&request).is_ok());
        assert_eq!(counting.0.load(Ordering::SeqCst), 2);
    }
}
