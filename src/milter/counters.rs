//! What a server counts from its start on, and how Prometheus reads it.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::service::{Left, Verdict};
use crate::report::Report;

/// Counts of one server. Each only grows, but [`Counters::open`].
#[derive(Debug, Default)]
pub struct Counters {
    /// Messages that went on unchanged, because nothing was to be done or everything was left.
    unchanged: AtomicU64,
    changed: AtomicU64,
    later: AtomicU64,
    too_large: AtomicU64,
    trouble: AtomicU64,
    expanded: AtomicU64,
    left: AtomicU64,
    links: AtomicU64,
    microseconds: AtomicU64,
    connections: AtomicU64,
    full: AtomicU64,
    malformed: AtomicU64,
    open: AtomicU64,
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl Counters {
    /// One message was answered.
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
        add(&self.left, report.left() as u64);
        add(&self.links, report.links());
        let elapsed = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        add(&self.microseconds, elapsed);
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

    /// So many connections are open.
    pub fn open(&self, count: usize) {
        self.open.store(count as u64, Ordering::Relaxed);
    }

    /// All of it in Prometheus's text format, version 0.0.4.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let outcomes = [
            ("unchanged", &self.unchanged),
            ("changed", &self.changed),
            ("later", &self.later),
            ("too_large", &self.too_large),
            ("trouble", &self.trouble),
        ];
        head(
            &mut text,
            "messages_total",
            "counter",
            "Messages, by what became of them.",
        );
        for (outcome, counter) in outcomes {
            let value = value(counter);
            let _ = writeln!(
                text,
                "embody_milter_messages_total{{outcome=\"{outcome}\"}} {value}"
            );
        }
        let counters = [
            (
                "references_expanded_total",
                "References whose content was put in.",
                &self.expanded,
            ),
            (
                "references_left_total",
                "References that were left.",
                &self.left,
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
        ];
        for (name, help, counter) in counters {
            head(&mut text, name, "counter", help);
            let _ = writeln!(text, "embody_milter_{name} {}", value(counter));
        }
        let seconds = value(&self.microseconds) as f64 / 1e6;
        head(
            &mut text,
            "processing_seconds_total",
            "counter",
            "Time spent on messages, retrievals included.",
        );
        let _ = writeln!(text, "embody_milter_processing_seconds_total {seconds}");
        head(
            &mut text,
            "connections",
            "gauge",
            "Open connections of mail systems.",
        );
        let _ = writeln!(text, "embody_milter_connections {}", value(&self.open));
        text
    }
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(
        text,
        "# HELP embody_milter_{name} {help}\n# TYPE embody_milter_{name} {kind}"
    );
}
