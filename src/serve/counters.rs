//! Counters of the service in Prometheus's text format. They start at zero with the process.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::backend::{BackendResult, Verb};
use super::problem::Problem;
use crate::error::unpoisoned;
use crate::metrics::{MetricsPage, TimeHistogram, add, value};

#[derive(Default, Debug)]
pub(crate) struct ServeCounters {
    /// Requests by route and status.
    requests: Mutex<BTreeMap<(&'static str, u16), u64>>,
    /// Messages by verb and outcome.
    messages: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
    left: AtomicU64,
    of_mailboxes: AtomicU64,
    took: TimeHistogram,
    pub(super) connections: AtomicU64,
    pub(super) full: AtomicU64,
    pub(super) open: AtomicUsize,
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
        self.took.count(elapsed);
    }

    pub(super) fn delivered(&self, count: u64) {
        add(&self.of_mailboxes, count);
    }

    pub(super) fn text(&self) -> String {
        let mut page = MetricsPage::new("embody_serve_");
        let requests = unpoisoned(self.requests.lock()).clone();
        let rows = requests.into_iter().map(|((route, status), count)| {
            (format!("{{path=\"{route}\",status=\"{status}\"}}"), count)
        });
        let head = "requests_total counter Requests, by path and status of the response.";
        page.add(head, rows);
        let messages = unpoisoned(self.messages.lock()).clone();
        let rows = messages.into_iter().map(|((verb, outcome), count)| {
            (format!("{{verb=\"{verb}\",outcome=\"{outcome}\"}}"), count)
        });
        let head = "messages_total counter Single messages, by verb and outcome.";
        page.add(head, rows);
        let head =
            "processing_seconds histogram Time that each single message took, with its retrievals.";
        page.add_histogram(head, &self.took);
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
            page.add_value(head, count);
        }
        page.into_text()
    }
}
