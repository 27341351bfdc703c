//! What a server counts from its start on, and how Prometheus reads it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::draft::Left;
use super::service::Verdict;
use crate::fetch::Retrieved;
use crate::report::{Kind, Outcome, Reason, Refusal, Report, Retry};

/// The upper bounds of the histogram, in seconds: most messages take milliseconds; those with retrievals as long as
/// networks do, and none much longer than the longest `--deadline`.
const BOUNDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 240.0,
];

/// Counts of one server. Each only grows, but [`Counters::open`].
#[derive(Default, Debug)]
pub struct Counters {
    /// Messages that went on unchanged, because nothing was to be done or everything was left.
    unchanged: AtomicU64,
    changed: AtomicU64,
    later: AtomicU64,
    too_large: AtomicU64,
    trouble: AtomicU64,
    expanded: AtomicU64,
    left: Mutex<BTreeMap<Reason, u64>>,
    links: AtomicU64,
    retrieved: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    octets: AtomicU64,
    /// Messages by how long they took: up to each of [`BOUNDS`] and above the one before, and those above all.
    took: [AtomicU64; BOUNDS.len() + 1],
    microseconds: AtomicU64,
    connections: AtomicU64,
    full: AtomicU64,
    malformed: AtomicU64,
    open: AtomicU64,
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

fn value(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl Counters {
    pub fn processed(&self, verdict: &Verdict, report: &Report, elapsed: Duration) {
        let counter = match verdict {
            Verdict::Unchanged(Left::AsItIs) => &self.unchanged,
            Verdict::Unchanged(Left::TooLarge(_)) => &self.too_large,
            Verdict::Unchanged(Left::Trouble(_)) => &self.trouble,
            Verdict::Changed(..) => &self.changed,
            Verdict::Later(_) => &self.later,
        };
        add(counter, 1);
        add(&self.expanded, report.expanded() as u64);
        for row in &report.rows {
            let is_left = row.outcome == Outcome::Left && row.kind != Kind::Link;
            if let Some(reason) = row.reason.filter(|_| is_left) {
                *self.left().entry(reason).or_default() += 1;
            }
        }
        add(&self.links, report.links());
        let seconds = elapsed.as_secs_f64();
        let above = BOUNDS.iter().position(|bound| seconds <= *bound);
        if let Some(counter) = self.took.get(above.unwrap_or(BOUNDS.len())) {
            add(counter, 1);
        }
        let elapsed = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        add(&self.microseconds, elapsed);
    }

    fn left(&self) -> MutexGuard<'_, BTreeMap<Reason, u64>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One retrieval ended so.
    pub fn asked(&self, answer: &Result<Retrieved, Refusal>) {
        match answer {
            Ok(retrieved) => {
                add(&self.retrieved, 1);
                add(&self.octets, retrieved.body.len() as u64);
            }
            Err(refusal) if refusal.retry == Retry::Later => add(&self.failed, 1),
            Err(_) => add(&self.refused, 1),
        }
    }

    /// A message was put off because there were too many connections.
    pub fn refused(&self) {
        add(&self.later, 1);
    }

    /// A connection came. Whether it found no place.
    pub fn connected(&self, is_full: bool) {
        add(&self.connections, 1);
        add(&self.full, u64::from(is_full));
    }

    /// A connection ended because of what came over it.
    pub fn malformed(&self) {
        add(&self.malformed, 1);
    }

    pub fn open(&self, count: usize) {
        self.open.store(count as u64, Ordering::Relaxed);
    }

    /// All of it in Prometheus's text format, version 0.0.4.
    pub fn text(&self) -> String {
        let mut page = Exposition::default();
        page.head(
            "build_info",
            "gauge",
            "Always 1; the label is the version that runs.",
        );
        page.line(
            "build_info",
            Some(("version", env!("CARGO_PKG_VERSION"))),
            1,
        );
        page.head(
            "messages_total",
            "counter",
            "Messages, by what became of them.",
        );
        for (outcome, counter) in [
            ("unchanged", &self.unchanged),
            ("changed", &self.changed),
            ("later", &self.later),
            ("too_large", &self.too_large),
            ("trouble", &self.trouble),
        ] {
            page.line("messages_total", Some(("outcome", outcome)), value(counter));
        }
        self.histogram(&mut page);
        page.head(
            "references_left_total",
            "counter",
            "References that were left, by reason (docs/reasons.md).",
        );
        let left = self.left().clone();
        for reason in Reason::ALL {
            let count = left.get(reason).copied().unwrap_or_default();
            let reason = Some(("reason", reason.as_str()));
            page.line("references_left_total", reason, count);
        }
        page.head(
            "retrievals_total",
            "counter",
            "Retrievals, by how they ended; failed ones may succeed later. An answer in memory takes none.",
        );
        for (outcome, counter) in [
            ("retrieved", &self.retrieved),
            ("refused", &self.refused),
            ("failed", &self.failed),
        ] {
            page.line(
                "retrievals_total",
                Some(("outcome", outcome)),
                value(counter),
            );
        }
        for (name, help, counter) in [
            (
                "retrieved_bytes_total",
                "Bytes of the contents that were retrieved.",
                &self.octets,
            ),
            (
                "references_expanded_total",
                "References whose content was put in.",
                &self.expanded,
            ),
            ("links_total", "Links that were changed.", &self.links),
            (
                "connections_total",
                "Connections of mail systems.",
                &self.connections,
            ),
            (
                "connections_full_total",
                "Connections above the limit of connections.",
                &self.full,
            ),
            (
                "connections_malformed_total",
                "Connections ended by what came over them.",
                &self.malformed,
            ),
        ] {
            page.head(name, "counter", help);
            page.line(name, None, value(counter));
        }
        page.head("connections", "gauge", "Open connections of mail systems.");
        page.line("connections", None, value(&self.open));
        page.0
    }

    fn histogram(&self, page: &mut Exposition) {
        page.head(
            "processing_seconds",
            "histogram",
            "Time that messages took, retrievals included.",
        );
        let mut count = 0;
        let bounds = BOUNDS.iter().map(f64::to_string);
        let bounds = bounds.chain(["+Inf".to_owned()]);
        for (bound, counter) in bounds.zip(&self.took) {
            count += value(counter);
            page.line("processing_seconds_bucket", Some(("le", &bound)), count);
        }
        let seconds = value(&self.microseconds) as f64 / 1e6;
        page.line("processing_seconds_sum", None, seconds);
        // Not read again: it is what the last bucket says, whatever has been counted meanwhile.
        page.line("processing_seconds_count", None, count);
    }
}

#[derive(Default)]
struct Exposition(String);

impl Exposition {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(
            self.0,
            "# HELP embody_milter_{name} {help}\n# TYPE embody_milter_{name} {kind}"
        );
    }

    /// No label has a value that would have to be escaped.
    fn line(&mut self, name: &str, label: Option<(&str, &str)>, value: impl std::fmt::Display) {
        let _ = write!(self.0, "embody_milter_{name}");
        if let Some((label, text)) = label {
            let _ = write!(self.0, "{{{label}=\"{text}\"}}");
        }
        let _ = writeln!(self.0, " {value}");
    }
}
