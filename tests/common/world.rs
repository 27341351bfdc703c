//! Policies that allow requests to 127.0.0.1, requests, and host names that resolve to the addresses of a test.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use embody::engine::{Content, Mode, Need};
use embody::fetch::{Fetch, Fetcher, Names, Request, answer_all};
use embody::policy::{Limits, Policy, Scheme};
use embody::report::{Reason, Refusal};

/// Returns a policy that allows all schemes, 127.0.0.0/8 and these ports, with short timeouts.
pub fn policy(ports: &[u16]) -> Policy {
    Policy::default()
        .with_fetch(Scheme::ALL)
        .with_allow_nets(["127.0.0.0/8".parse().unwrap()])
        .with_allow_ports(ports.iter().copied())
        .with_limits(Limits::default().with_timeout(Duration::from_secs(5)))
}

pub fn request(url: &str) -> Request {
    Request {
        need: Need::of_url(url, None),
        deadline: Instant::now() + Duration::from_secs(30),
        date: None,
    }
}

pub fn fetch(policy: &Policy, url: &str) -> Result<Content, Refusal> {
    Fetcher::new(policy.clone()).unwrap().fetch(&request(url))
}

/// Returns the contents that a run gets for these requests.
pub fn fetch_all(
    source: &dyn Fetch,
    requests: &[Request],
    in_flight: usize,
    octets: u64,
) -> Vec<Result<Content, Refusal>> {
    let answers = answer_all(source, requests, Mode::Run, in_flight, octets);
    let content = |answer: embody::engine::Answer| answer.content().expect("a run gets content");
    answers.into_iter().map(|it| it.map(content)).collect()
}

#[track_caller]
pub fn refused(policy: &Policy, url: &str) -> Refusal {
    fetch(policy, url).expect_err("this should have been refused")
}

/// A resolver with the addresses of a test. Tests resolve host names only with this resolver.
#[derive(Debug, Default)]
pub struct Told {
    names: HashMap<&'static str, Vec<IpAddr>>,
    pub asked: Mutex<Vec<String>>,
}

impl Told {
    pub fn of(rows: &[(&'static str, &[&str])]) -> Arc<Self> {
        let names = rows
            .iter()
            .map(|(name, addresses)| {
                let addresses = addresses.iter().map(|text| text.parse().unwrap());
                (*name, addresses.collect())
            })
            .collect();
        Arc::new(Self {
            names,
            asked: Mutex::default(),
        })
    }
}

impl Names for Told {
    fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Refusal> {
        self.asked.lock().unwrap().push(name.to_owned());
        self.names
            .get(name)
            .cloned()
            .ok_or_else(|| Refusal::lasting(Reason::NameNotFound, name))
    }
}
