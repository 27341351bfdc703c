//! Counters of the server, and a small HTTP/1.1 server that returns them to Prometheus (`GET /metrics`). It serves one
//! request at a time, with a time limit and a size limit for each.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use super::draft::HandoverResult;
use super::listen::Address;
use super::service::FilterVerdict;
use crate::engine::Content;
use crate::engine::report::{Outcome, Reason, Refusal, Report, Retry};
use crate::error::unpoisoned;
use crate::metrics::{MetricsPage, TimeHistogram, add, value};

const LONGEST: usize = 8 << 10;

const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Default, Debug)]
pub struct Counters {
    unchanged: AtomicU64,
    changed: AtomicU64,
    pub(super) later: AtomicU64,
    too_large: AtomicU64,
    trouble: AtomicU64,
    expanded: AtomicU64,
    left: Mutex<BTreeMap<Reason, u64>>,
    links: AtomicU64,
    retrieved: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    octets: AtomicU64,
    took: TimeHistogram,
    pub(super) connections: AtomicU64,
    pub(super) full: AtomicU64,
    pub(super) malformed: AtomicU64,
    pub(super) open: AtomicU64,
}

impl Counters {
    pub fn processed(&self, verdict: &FilterVerdict, report: &Report, elapsed: Duration) {
        let counter = match verdict {
            FilterVerdict::Unchanged(HandoverResult::AsItIs) => &self.unchanged,
            FilterVerdict::Unchanged(HandoverResult::TooLarge(_)) => &self.too_large,
            FilterVerdict::Unchanged(HandoverResult::Trouble(_)) => &self.trouble,
            FilterVerdict::Changed(..) => &self.changed,
            FilterVerdict::Later(_) => &self.later,
        };
        add(counter, 1);
        add(&self.expanded, report.expanded() as u64);
        for row in &report.rows {
            let is_left = row.outcome == Outcome::Left && !row.kind.is_of_links();
            if let Some(reason) = row.reason.filter(|_| is_left) {
                *unpoisoned(self.left.lock()).entry(reason).or_default() += 1;
            }
        }
        add(&self.links, report.links());
        self.took.count(elapsed);
    }

    pub fn asked(&self, answer: &Result<Content, Refusal>) {
        match answer {
            Ok(retrieved) => {
                add(&self.retrieved, 1);
                add(&self.octets, retrieved.len() as u64);
            }
            Err(refusal) if refusal.retry == Retry::Later => add(&self.failed, 1),
            Err(_) => add(&self.refused, 1),
        }
    }

    /// Returns all counters in version 0.0.4 of Prometheus's text format.
    pub fn text(&self) -> String {
        let mut page = MetricsPage::new("embody_milter_");
        let by_outcome = |(outcome, counter): (&str, &AtomicU64)| {
            (format!("{{outcome=\"{outcome}\"}}"), value(counter))
        };
        let messages = [
            ("unchanged", &self.unchanged),
            ("changed", &self.changed),
            ("later", &self.later),
            ("too_large", &self.too_large),
            ("trouble", &self.trouble),
        ];
        let head = "messages_total counter Messages, by outcome.";
        page.add(head, messages.map(by_outcome));
        let head = "processing_seconds histogram Time that each message took, with its retrievals.";
        page.add_histogram(head, &self.took);
        let counts = unpoisoned(self.left.lock()).clone();
        let left = Reason::ALL.iter().map(|reason| {
            let count = counts.get(reason).copied().unwrap_or_default();
            (format!("{{reason=\"{}\"}}", reason.as_str()), count)
        });
        let head = "references_left_total counter References that were not changed, by reason (docs/reasons.md).";
        page.add(head, left);
        let retrievals = [
            ("retrieved", &self.retrieved),
            ("refused", &self.refused),
            ("failed", &self.failed),
        ];
        let head = "retrievals_total counter Retrievals, by outcome. A failed retrieval may succeed later. If content is used again from memory, nothing is counted.";
        page.add(head, retrievals.map(by_outcome));
        for (head, counter) in [
            (
                "retrieved_bytes_total counter Bytes of retrieved content.",
                &self.octets,
            ),
            (
                "references_expanded_total counter References that were replaced by their content.",
                &self.expanded,
            ),
            ("links_total counter Links that were changed.", &self.links),
            (
                "connections_total counter Connections from mail systems.",
                &self.connections,
            ),
            (
                "connections_full_total counter Connections that were refused because too many were open.",
                &self.full,
            ),
            (
                "connections_malformed_total counter Connections closed because of malformed data.",
                &self.malformed,
            ),
            (
                "connections gauge Open connections from mail systems.",
                &self.open,
            ),
        ] {
            page.add_value(head, value(counter));
        }
        page.into_text()
    }
}

pub fn bind_metrics(address: &Address) -> io::Result<TcpListener> {
    match address {
        Address::Inet(name) => Address::bind_port(name),
        Address::Unix(_) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "metrics can be served only on a TCP port; write, for example, inet:9891",
        )),
    }
}

pub(super) fn serve(listener: &TcpListener, counters: &Counters) {
    loop {
        match listener.accept() {
            Ok((stream, _)) => drop(answer(&stream, counters)),
            // The process may have too many open files, which is temporary, so the server tries again.
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn answer(mut stream: &TcpStream, counters: &Counters) -> io::Result<()> {
    let begun = Instant::now();
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut buffer = [0; 1 << 10];
    while memchr::memmem::find(&request, b"\r\n\r\n").is_none() {
        let left = PATIENCE.saturating_sub(begun.elapsed());
        if left.is_zero() || request.len() > LONGEST {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            length => request.extend_from_slice(&buffer[..length]),
        }
    }
    let is_end = |octet: &u8| matches!(octet, b' ' | b'?' | b'\r');
    let rest = request.strip_prefix(b"GET ");
    let (status, text) = match rest.and_then(|rest| rest.split(is_end).next()) {
        Some(b"/metrics") => ("200 OK", counters.text()),
        _ => ("404 Not Found", "only GET /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
        Content-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())
}
