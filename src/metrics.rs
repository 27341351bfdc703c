//! Counters in version 0.0.4 of Prometheus's text format, for the milter and the HTTP service.

use std::fmt::{Display, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper limits of the intervals of a [`TimeHistogram`], in seconds. Most messages take milliseconds, and retrievals take
/// little longer than `--deadline`.
const BOUNDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 240.0,
];

pub(crate) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

pub(crate) fn value(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// Histogram of the times that messages took.
#[derive(Default, Debug)]
pub(crate) struct TimeHistogram {
    /// Number of messages in each interval between two values of [`BOUNDS`]. The last number counts the messages above
    /// all of them.
    took: [AtomicU64; BOUNDS.len() + 1],
    microseconds: AtomicU64,
}

impl TimeHistogram {
    pub(crate) fn count(&self, elapsed: Duration) {
        let seconds = elapsed.as_secs_f64();
        let above = BOUNDS.iter().position(|bound| seconds <= *bound);
        if let Some(counter) = self.took.get(above.unwrap_or(BOUNDS.len())) {
            add(counter, 1);
        }
        let elapsed = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        add(&self.microseconds, elapsed);
    }
}

/// The response to a request for metrics. The name of each metric starts with the same prefix.
pub(crate) struct MetricsPage {
    prefix: &'static str,
    text: String,
}

impl MetricsPage {
    /// Returns a page with the version of the program.
    pub(crate) fn new(prefix: &'static str) -> Self {
        let mut page = Self {
            prefix,
            text: String::new(),
        };
        let version = format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
        let head = "build_info gauge Always 1; the label is the version of the running program.";
        page.add(head, [(version, 1)]);
        page
    }

    /// Appends one metric. `head` contains its name, its type and its help. A row contains the labels and a value. Values of
    /// labels are not escaped, because no value contains characters that need it.
    pub(crate) fn add<V: Display>(
        &mut self,
        head: &str,
        rows: impl IntoIterator<Item = (String, V)>,
    ) {
        let mut words = head.splitn(3, ' ');
        let [name, kind, help] = std::array::from_fn(|_| words.next().unwrap_or_default());
        let name = format!("{}{name}", self.prefix);
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for (labels, value) in rows {
            let _ = writeln!(self.text, "{name}{labels} {value}");
        }
    }

    /// Appends a metric without labels.
    pub(crate) fn add_value(&mut self, head: &str, value: u64) {
        self.add(head, [(String::new(), value)]);
    }

    pub(crate) fn add_histogram(&mut self, head: &str, times: &TimeHistogram) {
        let mut count = 0;
        let bounds = BOUNDS.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        let mut rows = Vec::new();
        for (bound, counter) in bounds.zip(&times.took) {
            count += value(counter);
            rows.push((format!("_bucket{{le=\"{bound}\"}}"), count as f64));
        }
        let seconds = value(&times.microseconds) as f64 / 1e6;
        rows.push(("_sum".to_owned(), seconds));
        // Other threads may be counting at the same time. The total is the sum of the buckets on this page, so that the
        // two always agree.
        rows.push(("_count".to_owned(), count as f64));
        self.add(head, rows);
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}
