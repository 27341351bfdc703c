//! Limits of the content that is retrieved and held for one message (P4 and P5 of docs/design.md).

use crate::common::mail::expander;
use crate::common::world::fetch_all;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use embody::Report;
use embody::engine::{Content, Need};
use embody::fetch::Canned;
use embody::fetch::{Fetch, Request};
use embody::policy::{Policy, Scheme};
use embody::report::{Reason, Refusal};

/// A source with bodies of 1000 bytes each. Later requests are answered sooner.
#[derive(Default)]
struct Thousands {
    asked: AtomicUsize,
}

impl Fetch for Thousands {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        let turn = self.asked.fetch_add(1, Ordering::SeqCst) as u64;
        sleep(Duration::from_millis(20_u64.saturating_sub(turn * 3)));
        if request.url().contains("missing") {
            return Err(Refusal::temporary(Reason::HttpStatus, "503"));
        }
        Ok(Content::new(request.url(), None, vec![b'x'; 1000]))
    }
}

fn requests(number: usize) -> Vec<Request> {
    (0..number)
        .map(|number| Request {
            need: Need::of_url(
                format!(
                    "http://h/{}{number}",
                    if number == 0 { "missing" } else { "" }
                ),
                None,
            ),
            deadline: Instant::now() + Duration::from_secs(10),
            date: None,
        })
        .collect()
}

#[test]
fn bodies_are_kept_in_the_order_of_the_requests_as_far_as_they_fit() {
    for in_flight in [1, 3, 8] {
        for octets in [0, 999, 1000, 9_999, 10_000, 99_000] {
            let world = Thousands::default();
            let answers = fetch_all(&world, &requests(100), in_flight, octets);
            let kept: Vec<bool> = answers.iter().map(Result::is_ok).collect();
            let fit = usize::try_from(octets / 1000).unwrap();
            // The first response is a 503 without content.
            let expected: Vec<bool> = (0..100).map(|at| at > 0 && at <= fit).collect();
            assert_eq!(kept, expected, "{octets} octets, {in_flight} in flight");
            let asked = world.asked.load(Ordering::SeqCst);
            if octets == 10_000 {
                assert!((11..=11 + in_flight).contains(&asked), "{asked} asked");
            }
        }
    }
}

fn policy(growth: u64) -> Policy {
    let mut policy = Policy::default().with_fetch(Scheme::ALL);
    policy = policy.map_limits(|limits| limits.with_growth(growth));
    policy = policy.map_limits(|limits| limits.with_in_flight(1));
    policy
}

fn multipart(urls: &[&str], phantom: &str) -> Vec<u8> {
    let mut mail = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n".to_owned();
    for url in urls {
        mail.push_str(&format!(
            "--b\nContent-Type: message/external-body; access-type=URL;\n URL=\"{url}\"\n\n{phantom}\n\n\n"
        ));
    }
    mail.push_str("--b--\n");
    mail.into_bytes()
}

fn expanded(policy: &Policy, world: &Canned, mail: &[u8]) -> (Vec<u8>, Report) {
    let expander = expander(policy.clone(), world.clone());
    let expansion = expander.expand(mail, "-").unwrap();
    (
        expansion.output().into_bytes().into_owned(),
        expansion.report,
    )
}

fn reasons(report: &Report) -> Vec<Option<Reason>> {
    report.rows.iter().map(|row| row.reason).collect()
}

#[test]
fn bodies_come_in_the_order_of_the_message_as_far_as_they_fit() {
    let world = Canned::new()
        .with("http://h.example/1", None, vec![1; 3000])
        .with("http://h.example/2", None, vec![2; 4000])
        .with("http://h.example/3", None, vec![3; 500])
        .with("http://h.example/4", None, vec![3; 600])
        .with("http://h.example/5", None, vec![3; 1]);
    let urls = [
        "http://h.example/1",
        "http://h.example/2",
        "data:,note",
        "http://h.example/3",
        "http://h.example/4",
        "http://h.example/5",
    ];
    let mail = multipart(&urls, "Content-Type: image/gif");
    let (output, report) = expanded(&policy(8000), &world, &mail);
    let growth = Some(Reason::GrowthLimit);
    // The second body does not fit into the message, but the third does. After the next one, more than 8000 bytes were
    // retrieved, and no further request is sent.
    assert_eq!(reasons(&report), [None, growth, None, None, growth, growth]);
    assert_eq!(world.asked().len(), 4);
    let part = "\n URL=\"http://h.example/2\"\n\nContent-Type: image/gif\n";
    assert!(memchr::memmem::find(&output, part.as_bytes()).is_some());
    // A later run retrieves the rest.
    let (_, report) = expanded(&policy(8000), &world, &output);
    assert_eq!(reasons(&report), [None; 3]);
}

#[test]
fn output_of_a_body_referenced_9000_times_stays_within_the_growth_limit() {
    let world = Canned::new().with("http://h.example/1", None, vec![1; 4 << 20]);
    let mail = multipart(&["http://h.example/1"; 9000], "Content-Type: image/gif");
    // Without a limit, this would be 36 GB, and the test would not end.
    let (output, report) = expanded(&policy(20 << 20), &world, &mail);
    assert!(output.len() < mail.len() + (20 << 20));
    let reasons = reasons(&report);
    assert_eq!(reasons[..3], [None; 3]);
    assert!(
        reasons[3..]
            .iter()
            .all(|reason| *reason == Some(Reason::GrowthLimit))
    );
    assert_eq!(report.rows.len(), 9000);

    // A `cid:` URL is also a reference, but needs no request.
    let mut mail = b"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: image/gif\nContent-ID: <x@y>\n\n".to_vec();
    mail.extend(std::iter::repeat_n(b'x', 4 << 20));
    mail.push(b'\n');
    let references = multipart(&["cid:x@y"; 9000], "Content-Type: image/gif");
    mail.extend_from_slice(&references[memchr::memmem::find(&references, b"--b\n").unwrap()..]);
    let (output, report) = expanded(&policy(20 << 20), &world, &mail);
    assert!(output.len() < mail.len() + (20 << 20));
    assert_eq!(report.left(), 8997);
}

#[test]
fn ftp_urls_that_differ_only_by_fragment_or_type_share_one_retrieval() {
    let world = Canned::new().with("ftp://h.example/1", None, "x");
    let mut mail = multipart(
        &["ftp://h.example/1", "ftp://h.example/1#a"],
        "Content-Type: image/gif",
    );
    mail.truncate(mail.len() - "--b--\n".len());
    let other = multipart(&["ftp://h.example/1#b"], "Content-Type: image/png");
    mail.extend_from_slice(&other[memchr::memmem::find(&other, b"--b\n").unwrap()..]);
    let expander = expander(policy(8000), world.clone());
    let report = expander.expand(&mail, "-").unwrap().report;
    assert_eq!(report.expanded(), 3, "{report:?}");
    assert_eq!(world.asked().len(), 1, "{:?}", world.asked());
}
