//! The cost of planning: linear in the size of the mail, whatever its documents share (P5), and stopped at the
//! deadline.

use std::time::{Duration, Instant};

use embody::engine::Content;
use embody::fetch::{Bytes, Fetch, NoFetch, Request};
use embody::policy::{Embed, OnFailure, Policy, Scheme, Trackers};
use embody::report::{Outcome, Reason, Refusal};
use embody::{Error, Expander, Mark};

use super::common::hostile::{SHAPES, Shape};
use super::common::mail::expander;

/// Returns a policy that embeds everything.
fn policy() -> Policy {
    let mut policy = Policy {
        embed: Embed {
            data: true,
            remote: true,
            pictures: true,
            styles: true,
            trackers: Trackers::Blank,
            ..Embed::default()
        },
        ..Policy::default()
    };
    policy.fetch.insert(Scheme::Http);
    policy.limits.fetches = 100_000;
    policy
}

/// Answers each request with a picture or a style sheet. The response contains its URL, so each response is different.
/// Each style sheet displays the picture `p`.
struct Everybody;

impl Fetch for Everybody {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        let is_sheet = request.need.accept() == Some("text/css");
        let (media_type, body) = if is_sheet {
            ("text/css", format!("a{{b:url(p)}}/*{}*/", request.url()))
        } else {
            ("image/gif", format!("GIF89a\x09\0\x09\0{}", request.url()))
        };
        Ok(Content::new(
            request.url(),
            Some(media_type.to_owned()),
            Bytes::from(body),
        ))
    }
}

/// Returns the shapes whose documents share much, or could make embody read the same bytes many times.
fn shapes() -> impl Iterator<Item = &'static Shape> {
    let words = [
        "embed-data-documents",
        "embed-style-documents",
        "embed-blank-documents",
        "embed-remote-documents",
        "documents-that-link-each-other",
        "locations-below-a-long-base",
        "references-by-message-id",
        "embed-data-boundaries",
        "rivals-behind-many-changes",
    ];
    let is_one = move |name: &str| words.iter().any(|word| name.starts_with(word));
    SHAPES.iter().filter(move |shape| is_one(shape.name))
}

/// Creates a mail of this shape with URLs that the source answers.
fn made(shape: &Shape, octets: usize) -> Vec<u8> {
    let mail = String::from_utf8((shape.make)(octets)).unwrap();
    mail.replace("//localhost/", "//h.example/").into_bytes()
}

#[test]
fn eight_times_the_mail_takes_eight_times_as_long() {
    let expander = Expander::builder(policy())
        .fetch(Everybody)
        .build()
        .unwrap();
    // The best of several runs counts, because the machine also does other work.
    let least = |mail: &[u8]| {
        let runs = (0..3).map(|_| {
            let begun = Instant::now();
            let expansion = expander.expand(mail, "test").unwrap();
            assert!(expansion.work > 0);
            begun.elapsed()
        });
        runs.min().unwrap()
    };
    let mut seen = 0;
    for shape in shapes() {
        let (few, many) = (made(shape, 100 << 10), made(shape, 800 << 10));
        // On a busy machine a single measurement can be slow, but not all of them.
        let is_linear = || {
            let (eighth, whole) = (least(&few), least(&many));
            whole < eighth.max(Duration::from_millis(2)) * 24
        };
        assert!((0..5).any(|_| is_linear()), "{}", shape.name);
        seen += 1;
    }
    assert_eq!(seen, 13);
}

fn reference(url: &str) -> String {
    format!(
        "Content-Type: message/external-body; access-type=URL; URL=\"{url}\"\n\nContent-Type: text/plain\n\n"
    )
}

fn mixed(parts: &[String]) -> Vec<u8> {
    let parts: String = parts.iter().map(|part| format!("--b\n{part}\n")).collect();
    format!("Content-Type: multipart/mixed; boundary=b\n\n{parts}--b--\n").into_bytes()
}

/// Any mail is written unchanged, with a row with the reason for each reference.
#[test]
fn behind_its_deadline_a_message_goes_on_unchanged_and_rows_say_why() {
    let data = "data:image/gif;base64,R0lGODlhCQAJAIAAAAAAAP///ywAAAAAAQABAAACAkQBADs=";
    let html = format!(
        "Content-Type: text/html\nContent-Base: http://b.example/\n\n<a href=x><img src={data}>"
    );
    let references = mixed(&[reference("data:,x"), reference("data:,y")]);
    let copies = mixed(&["Content-ID: <q>\n\nhi".to_owned(), reference("cid:q")]);
    for (what, mail, rows) in [
        ("references", references, 2),
        ("copies", copies, 1),
        ("a document", html.clone().into_bytes(), 2),
        ("documents", mixed(&vec![html; 10]), 2),
    ] {
        for on_failure in [OnFailure::Leave, OnFailure::Defer] {
            let mut policy = Policy {
                on_failure,
                ..policy()
            };
            policy.limits.deadline = Duration::ZERO;
            let expander = Expander::builder(policy)
                .fetch(NoFetch)
                .mark(Mark::Off)
                .build()
                .unwrap();
            let expanded = expander.expand(&mail, "test");
            if on_failure == OnFailure::Defer {
                assert!(matches!(expanded, Err(Error::Deferred(_))), "{what}");
                continue;
            }
            let expansion = expanded.unwrap();
            assert!(expansion.edits.is_empty(), "{what}");
            let is_late = |row: &embody::report::Row| {
                (row.outcome, row.reason) == (Outcome::Left, Some(Reason::Deadline))
            };
            assert!(
                expansion.report.rows.iter().all(is_late),
                "{what}: {:?}",
                expansion.report.rows
            );
            assert_eq!(
                expansion.report.rows.len(),
                rows,
                "{what}: {:?}",
                expansion.report.rows
            );
        }
    }
}

/// Only the first of a thousand documents are processed.
#[test]
fn a_deadline_ends_the_planning_of_a_mail_that_takes_longer() {
    let shape = SHAPES
        .iter()
        .find(|shape| shape.name == "embed-data-documents-apart")
        .unwrap();
    let mail = made(shape, 4 << 20);
    let took = |deadline| {
        let mut policy = policy();
        policy.limits.deadline = deadline;
        let begun = Instant::now();
        let expansion = expander(policy, NoFetch)
            .expand(&mail, "test")
            .unwrap()
            .report;
        let late = expansion
            .rows
            .iter()
            .filter(|row| row.reason == Some(Reason::Deadline))
            .count();
        (begun.elapsed(), late, expansion.rows.len())
    };
    let (whole, none, _) = took(Duration::from_secs(600));
    assert_eq!(none, 0);
    let (short, late, all) = took(whole / 10);
    assert!(late > 0 && all >= late, "{late} of {all}");
    assert!(short < whole * 3 / 4, "{short:?} of {whole:?}");
}
