//! Idle connections that a load balancer or a NAT has dropped without notice. A request on such a connection fails, and is sent
//! again on a new one.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use embody::fetch::{Fetch as _, Fetcher};
use embody::policy::Policy;

use crate::common::raw::{Raw, exact_head};
use crate::common::world::{policy, request};

/// Number of connections that are idle at the same time.
const IDLE: usize = 6;

const RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello";

/// How a connection ends if a second request arrives on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// Closing the connection with unread bytes makes the system send RST.
    Reset,
    /// The request is read, and the connection is closed without a response.
    Silent,
}

/// Answers one request on each connection, keeps the connection open, and ends it when a second request arrives. The
/// first [`IDLE`] requests are answered together, so that all their connections become idle. The second value counts
/// requests that arrived on an idle connection.
fn dropping(end: End) -> (Raw, Arc<AtomicUsize>) {
    let second = Arc::new(AtomicUsize::new(0));
    let (counter, connections) = (Arc::clone(&second), AtomicUsize::new(0));
    let together = Barrier::new(IDLE);
    let server = Raw::connections(move |mut stream| {
        let number = connections.fetch_add(1, Ordering::SeqCst);
        if exact_head(&mut stream).is_none() {
            return;
        }
        if number < IDLE {
            together.wait();
        }
        stream.write_all(RESPONSE).unwrap();
        if stream.peek(&mut [0]).is_ok_and(|read| read > 0) {
            counter.fetch_add(1, Ordering::SeqCst);
            if end == End::Silent {
                drain(&mut stream);
            }
        }
    });
    (server, second)
}

fn drain(stream: &mut TcpStream) {
    exact_head(stream).unwrap();
    let _ = stream.set_read_timeout(Some(Duration::from_millis(1)));
    let _ = stream.read(&mut [0; 16]);
}

fn fetch_after_idling(policy: Policy, url: &str) -> usize {
    let fetcher = Fetcher::new(policy).unwrap();
    let fetch = |number: usize| fetcher.fetch(&request(&format!("{url}{number}")));
    thread::scope(|scope| {
        for number in 0..IDLE {
            scope.spawn(move || fetch(number).unwrap());
        }
    });
    let later = (IDLE..IDLE + 4).map(fetch);
    later.filter(Result::is_ok).count()
}

#[test]
fn fetch_with_dead_idle_connections_opens_a_new_one() {
    for end in [End::Reset, End::Silent] {
        let (server, second) = dropping(end);
        let got = fetch_after_idling(policy(&[server.address.port()]), &server.url("/"));
        assert_eq!(got, 4, "{end:?}");
        // Each later request is tried once on an idle connection, and then on a new one.
        let second = second.load(Ordering::SeqCst);
        assert!((1..=4).contains(&second), "{end:?}: {second}");
    }
}

#[test]
fn fetch_through_a_proxy_with_dead_idle_connections_opens_a_new_one() {
    for end in [End::Reset, End::Silent] {
        let (proxy, second) = dropping(end);
        let mut policy = policy(&[]);
        policy = policy.with_proxy(format!("http://{}", proxy.address).parse().unwrap());
        let got = fetch_after_idling(policy, "http://www.example.org/");
        assert_eq!(got, 4, "{end:?}");
        assert!(second.load(Ordering::SeqCst) > 0, "{end:?}");
    }
}
