//! Counters of the service in Prometheus's text format. They start at zero with the process.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::backend::{BackendResult, Verb};
use super::problem::Problem;
use crate::error::unpoisoned;

/// Upper limits of the histogram of processing times, in seconds, as in the milter.
const BOUNDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 240.0,
];

#[derive(Default, Debug)]
pub(crate) struct ServeCounters {
    /// Requests by route and status.
    requests: Mutex<BTreeMap<(&'static str, u16), u64>>,
    /// Messages by verb and outcome.
    messages: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
    left: AtomicU64,
    of_mailboxes: AtomicU64,
    /// Number of messages in each interval between two values of [`BOUNDS`]. The last number counts the messages above
    /// all of them.
    took: [AtomicU64; BOUNDS.len() + 1],
    microseconds: AtomicU64,
    pub(super) connections: AtomicU64,
    pub(super) full: AtomicU64,
    pub(super) open: AtomicUsize,
}

pub(super) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

fn value(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl ServeCounters {
    pub(super) fn answered(&self, route: &'static str, status: u16) {
        *unpoisoned(self.requests.lock())
            .entry((route, status))
            .or_default() += 1;
    }

    pub(super) fn processed(
        &self,
        verb: Verb,
        done: &Result<BackendResult, Problem>,
        elapsed: Duration,
    ) {
        let outcome = match done {
            Ok(BackendResult::Mail {
                is_changed: true, ..
            }) => "changed",
            Ok(BackendResult::Mail { .. } | BackendResult::Report(_)) => "unchanged",
            Err(_) => "failed",
        };
        if let Ok(BackendResult::Mail { left, .. }) = done {
            add(&self.left, *left);
        }
        *unpoisoned(self.messages.lock())
            .entry((verb.as_str(), outcome))
            .or_default() += 1;
        let seconds = elapsed.as_secs_f64();
        let above = BOUNDS.iter().position(|bound| seconds <= *bound);
        if let Some(counter) = self.took.get(above.unwrap_or(BOUNDS.len())) {
            add(counter, 1);
        }
        let elapsed = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        add(&self.microseconds, elapsed);
    }

    pub(super) fn delivered(&self, count: u64) {
        add(&self.of_mailboxes, count);
    }

    pub(super) fn text(&self) -> String {
        let mut page = String::new();
        let version = format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
        let head = "build_info gauge Always 1; the label is the version of the running program.";
        metric(&mut page, head, [(version, 1)]);
        let requests = unpoisoned(self.requests.lock()).clone();
        let rows = requests.into_iter().map(|((route, status), count)| {
            (format!("{{path=\"{route}\",status=\"{status}\"}}"), count)
        });
        let head = "requests_total counter Requests, by path and status of the response.";
        metric(&mut page, head, rows);
        let messages = unpoisoned(self.messages.lock()).clone();
        let rows = messages.into_iter().map(|((verb, outcome), count)| {
            (format!("{{verb=\"{verb}\",outcome=\"{outcome}\"}}"), count)
        });
        let head = "messages_total counter Single messages, by verb and outcome.";
        metric(&mut page, head, rows);
        self.histogram(&mut page);
        for (head, count) in [
            (
                "references_left_total counter References that were not changed.",
                value(&self.left),
            ),
            (
                "mailbox_messages_total counter Messages of mailboxes that were sent to clients.",
                value(&self.of_mailboxes),
            ),
            (
                "connections_total counter Connections of clients.",
                value(&self.connections),
            ),
            (
                "connections_full_total counter Connections that were refused because too many were open.",
                value(&self.full),
            ),
            (
                "connections gauge Open connections of clients.",
                self.open.load(Ordering::Relaxed) as u64,
            ),
        ] {
            metric(&mut page, head, [(String::new(), count)]);
        }
        page
    }

    fn histogram(&self, page: &mut String) {
        let mut count = 0;
        let bounds = BOUNDS.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        let mut rows = Vec::new();
        for (bound, counter) in bounds.zip(&self.took) {
            count += value(counter);
            rows.push((format!("_bucket{{le=\"{bound}\"}}"), count as f64));
        }
        rows.push(("_sum".to_owned(), value(&self.microseconds) as f64 / 1e6));
        rows.push(("_count".to_owned(), count as f64));
        let head =
            "processing_seconds histogram Time that each single message took, with its retrievals.";
        metric(page, head, rows);
    }
}

fn metric<V: Display>(page: &mut String, head: &str, rows: impl IntoIterator<Item = (String, V)>) {
    let mut words = head.splitn(3, ' ');
    let [name, kind, help] = std::array::from_fn(|_| words.next().unwrap_or_default());
    *page += &format!("# HELP embody_serve_{name} {help}\n# TYPE embody_serve_{name} {kind}\n");
    for (labels, value) in rows {
        *page += &format!("embody_serve_{name}{labels} {value}\n");
    }
}
