//! Each URL is retrieved once per run, several at the same time, and the answers are in order (P4 of docs/design.md).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::mta::eventually;
use crate::common::world::fetch_all;
use embody::engine::{Content, Need};
use embody::fetch::{Bytes, Fetch, Fetcher, Request};
use embody::report::{Reason, Refusal};

/// A slow source that counts the requests, in total and at the same time.
#[derive(Default)]
struct Slow {
    asked: Mutex<HashMap<String, usize>>,
    now: AtomicUsize,
    most: AtomicUsize,
    /// The response to the URL `long` is delayed until this is set.
    is_long_over: AtomicBool,
}

impl Slow {
    /// Waits until a retrieval of the URL `long` has started.
    fn long_is_under_way(&self) {
        eventually(60, "what is long is asked for", || {
            self.asked("http://h/long") > 0
        });
    }

    fn asked(&self, url: &str) -> usize {
        self.asked.lock().unwrap().get(url).copied().unwrap_or(0)
    }
}

impl Fetch for Slow {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        *self
            .asked
            .lock()
            .unwrap()
            .entry(request.url().to_owned())
            .or_default() += 1;
        // Later requests are answered sooner, so that a correct order is not accidental.
        let number: u64 = request
            .url()
            .rsplit('/')
            .next()
            .unwrap()
            .parse()
            .unwrap_or(20);
        thread::sleep(Duration::from_millis(40 - number.min(40)));
        let end = Instant::now() + Duration::from_secs(30);
        let is_over = || self.is_long_over.load(Ordering::SeqCst) || Instant::now() > end;
        while request.url().contains("long") && !is_over() {
            thread::sleep(Duration::from_millis(1));
        }
        self.now.fetch_sub(1, Ordering::SeqCst);
        if request.url().contains("panic") {
            panic!("as the test wants");
        }
        if request.url().contains("late") && request.deadline <= Instant::now() {
            return Err(Refusal::temporary(Reason::Deadline, "late"));
        }
        if request.url().contains("missing") {
            return Err(Refusal::lasting(Reason::HttpStatus, "404"));
        }
        if request.url().contains("busy") {
            return Err(Refusal::temporary(Reason::HttpStatus, "503"));
        }
        Ok(Content::new(
            request.url(),
            request.need.accept().map(str::to_owned),
            if request.url().contains("large") {
                vec![b'x'; 9_000]
            } else {
                request.url().to_owned().into_bytes()
            },
        ))
    }
}

fn request(url: &str) -> Request {
    Request {
        need: Need::of_url(url, None),
        deadline: Instant::now() + Duration::from_secs(10),
        date: None,
    }
}

/// Returns the source, and a fetcher that remembers this number of bytes from it.
fn remembering(octets: usize) -> (Arc<Slow>, Fetcher) {
    let slow = Arc::new(Slow::default());
    let fetcher = Fetcher::around(Arc::clone(&slow)).memory(octets, None);
    (slow, fetcher)
}

#[test]
fn answers_keep_the_request_order_and_parallel_retrievals_are_bounded() {
    let requests: Vec<_> = (0..40)
        .map(|number| request(&format!("http://h/{number}")))
        .collect();
    for in_flight in [0, 1, 4, 100] {
        let world = Slow::default();
        let answers = fetch_all(&world, &requests, in_flight, u64::MAX);
        let urls: Vec<_> = answers
            .into_iter()
            .map(|answer| answer.unwrap().origin.url)
            .collect();
        assert!(
            urls.iter()
                .map(|url| &**url)
                .eq(requests.iter().map(|request| request.url()))
        );
        let most = world.most.load(Ordering::SeqCst);
        assert!(most <= in_flight.max(1), "{most} of {in_flight}");
        assert!(in_flight < 2 || most > 1, "{most} of {in_flight}");
    }
    assert!(fetch_all(&Slow::default(), &[], 4, u64::MAX).is_empty());
}

#[test]
fn the_same_url_is_retrieved_once_also_when_it_fails() {
    let (slow, world) = remembering(Fetcher::MEMORY);
    let mut requests = Vec::new();
    for number in 0..30 {
        requests.push(request(&format!("http://h/x#{number}")));
        requests.push(request("http://h/missing"));
    }
    let mut image = request("http://h/x");
    image.need = Need::of_url(image.url(), Some("image/gif"));
    requests.push(image);
    let answers = fetch_all(&world, &requests, 16, u64::MAX);
    assert_eq!(
        answers[60].as_ref().unwrap().media_type.as_deref(),
        Some("image/gif")
    );
    assert!(answers.iter().take(60).step_by(2).all(Result::is_ok));
    assert!(answers.iter().skip(1).step_by(2).all(Result::is_err));
    let all: usize = (0..30)
        .map(|number| slow.asked(&format!("http://h/x#{number}")))
        .sum();
    assert_eq!(
        (
            all + slow.asked("http://h/x"),
            slow.asked("http://h/missing")
        ),
        (2, 1)
    );
}

#[test]
fn a_temporary_refusal_is_shared_by_those_who_wait_and_not_kept() {
    let (slow, world) = remembering(Fetcher::MEMORY);
    let requests = vec![request("http://h/busy"); 8];
    let answers = fetch_all(&world, &requests, 8, u64::MAX);
    assert!(answers.iter().all(Result::is_err));
    // A thread that started late may have sent its request after the first answer.
    let asked = slow.asked("http://h/busy");
    assert!(asked < 8, "{asked}");
    assert!(world.fetch(&request("http://h/busy")).is_err());
    assert_eq!(slow.asked("http://h/busy"), asked + 1);
}

#[test]
fn a_hit_shares_the_octets() {
    let (_, world) = remembering(Fetcher::MEMORY);
    let body = |world: &Fetcher| {
        world
            .fetch(&request("http://h/large"))
            .unwrap()
            .bytes()
            .clone()
    };
    let (first, second): (Bytes, Bytes) = (body(&world), body(&world));
    assert_eq!(first.as_ptr(), second.as_ptr());
}

#[test]
fn least_recently_requested_body_is_evicted() {
    // The memory has room for two large bodies, or for some of the small ones with their overhead.
    let (slow, world) = remembering(20_000);
    let ask = |url: &str| world.fetch(&request(url)).unwrap();
    ask("http://h/large");
    ask("http://h/large");
    assert_eq!(slow.asked("http://h/large"), 1);
    let once = |number: usize| format!("http://h/once{number}/39");
    for number in 0..100 {
        ask(&once(number));
        ask("http://h/often/39");
    }
    assert_eq!(slow.asked("http://h/often/39"), 1);
    ask("http://h/large");
    assert_eq!(slow.asked("http://h/large"), 2);
    for number in 0..100 {
        ask(&once(number));
    }
    let again = (0..100)
        .filter(|&number| slow.asked(&once(number)) > 1)
        .count();
    assert!(again > 50, "{again}");
    // A body larger than half of the memory is not remembered.
    let (slow, narrow) = remembering(15_000);
    for _ in 0..2 {
        let answer = narrow.fetch(&request("http://h/large")).unwrap();
        assert_eq!(answer.bytes().len(), 9_000);
    }
    assert_eq!(slow.asked("http://h/large"), 2);
}

#[test]
fn retrievals_of_many_messages_run_no_more_at_a_time_than_allowed() {
    let slow = Arc::new(Slow::default());
    let world = Fetcher::around(Arc::clone(&slow))
        .memory(Fetcher::MEMORY, None)
        .in_flight(3);
    thread::scope(|scope| {
        for message in 0..6 {
            let world = &world;
            scope.spawn(move || {
                let requests: Vec<_> = (0..8)
                    .map(|number| request(&format!("http://h/{message}/{number}")))
                    .collect();
                let answers = fetch_all(world, &requests, 8, u64::MAX);
                assert!(answers.iter().all(Result::is_ok));
            });
        }
    });
    let most = slow.most.load(Ordering::SeqCst);
    assert_eq!(most, 3);
}

#[test]
fn who_waits_for_a_turn_waits_no_longer_than_its_deadline_and_takes_no_turn_along() {
    let slow = Arc::new(Slow::default());
    let world = Fetcher::around(Arc::clone(&slow)).in_flight(1);
    thread::scope(|scope| {
        scope.spawn(|| world.fetch(&request("http://h/long")));
        slow.long_is_under_way();
        let mut hurried = request("http://h/hurried");
        hurried.deadline = Instant::now() + Duration::from_millis(5);
        let hurried = world.fetch(&hurried);
        slow.is_long_over.store(true, Ordering::SeqCst);
        assert_eq!(hurried.unwrap_err().reason, Reason::Deadline);
        assert!(world.fetch(&request("http://h/1")).is_ok());
        let panicked = scope.spawn(|| world.fetch(&request("http://h/panic")));
        assert!(panicked.join().is_err());
        assert!(world.fetch(&request("http://h/2")).is_ok());
    });
    assert_eq!(slow.asked("http://h/hurried"), 0);
    assert_eq!(slow.most.load(Ordering::SeqCst), 1);
}

#[test]
fn one_message_out_of_time_does_not_spoil_the_next() {
    let (slow, world) = remembering(Fetcher::MEMORY);
    let mut hurried = request("http://h/late");
    hurried.deadline = Instant::now();
    assert_eq!(world.fetch(&hurried).unwrap_err().reason, Reason::Deadline);
    assert!(world.fetch(&request("http://h/late")).is_ok());
    // A request that waits for the retrieval of another one waits no longer than its own deadline.
    thread::scope(|scope| {
        scope.spawn(|| world.fetch(&request("http://h/long")));
        slow.long_is_under_way();
        let mut hurried = request("http://h/long");
        hurried.deadline = Instant::now() + Duration::from_millis(5);
        let hurried = world.fetch(&hurried);
        slow.is_long_over.store(true, Ordering::SeqCst);
        assert_eq!(hurried.unwrap_err().reason, Reason::Deadline);
    });
}

#[test]
fn a_retrieval_that_panics_leaves_nobody_waiting() {
    let (_, world) = remembering(Fetcher::MEMORY);
    thread::scope(|scope| {
        let first = scope.spawn(|| world.fetch(&request("http://h/panic")));
        thread::sleep(Duration::from_millis(5));
        let begun = Instant::now();
        let second = scope.spawn(|| world.fetch(&request("http://h/panic")));
        // The second request is either repeated or gets an error. It must end in both cases.
        let _ = second.join();
        assert!(first.join().is_err());
        assert!(begun.elapsed() < Duration::from_secs(20));
    });
}

#[test]
fn expired_answer_is_requested_again() {
    for (age, expected) in [(Duration::from_secs(3600), 1), (Duration::ZERO, 3)] {
        let slow = Arc::new(Slow::default());
        let world = Fetcher::around(Arc::clone(&slow)).memory(Fetcher::MEMORY, Some(age));
        for _ in 0..3 {
            assert!(world.fetch(&request("http://h/39")).is_ok());
        }
        assert_eq!(slow.asked("http://h/39"), expected, "{age:?}");
    }
}
