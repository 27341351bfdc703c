//! What one message may have retrieved and hold together (spec §7, P4, P5).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use embody::fetch::canned::Canned;
use embody::fetch::{Budget, Fetch, Request, Retrieved, fetch_all};
use embody::policy::{Policy, Scheme};
use embody::report::{Outcome, Reason, Refusal};
use embody::{Expander, Report};

/// Every body has 1000 octets; later requests answer sooner.
#[derive(Default)]
struct Thousands {
    asked: AtomicUsize,
}

impl Fetch for Thousands {
    fn fetch(&self, request: &Request) -> Result<Retrieved, Refusal> {
        let turn = self.asked.fetch_add(1, Ordering::SeqCst) as u64;
        sleep(Duration::from_millis(20_u64.saturating_sub(turn * 3)));
        if request.url.contains("missing") {
            return Err(Refusal::temporary(Reason::HttpStatus, "503"));
        }
        Ok(Retrieved {
            url: request.url.clone(),
            media_type: None,
            body: vec![b'x'; 1000],
            elapsed: Duration::ZERO,
        })
    }
}

fn requests(number: usize) -> Vec<Request> {
    (0..number)
        .map(|number| Request {
            url: format!(
                "http://h/{}{number}",
                if number == 0 { "missing" } else { "" }
            ),
            accept: None,
            deadline: Instant::now() + Duration::from_secs(10),
        })
        .collect()
}

#[test]
fn within_the_budget_everything_comes_and_above_it_nothing_does() {
    for in_flight in [1, 3, 8] {
        let world = Thousands::default();
        let budget = Budget::of(10_000);
        let answers = fetch_all(&world, &requests(11), in_flight, &budget);
        assert!(answers.iter().skip(1).all(Result::is_ok));
        assert!(budget.overdrawn().is_none());

        let world = Thousands::default();
        let budget = Budget::of(10_000);
        let answers = fetch_all(&world, &requests(100), in_flight, &budget);
        // The 503 as well: whether it came before or after is an accident.
        assert!(
            answers
                .iter()
                .all(|answer| answer.as_ref().unwrap_err().reason == Reason::GrowthLimit)
        );
        let asked = world.asked.load(Ordering::SeqCst);
        assert!((12..=12 + in_flight).contains(&asked), "{asked} asked");

        // It stays so for whatever comes later.
        assert!(fetch_all(&world, &requests(1), in_flight, &budget)[0].is_err());
        assert_eq!(world.asked.load(Ordering::SeqCst), asked);
    }
}

#[test]
fn what_is_too_large_alone_is_refused_alone() {
    let world = Thousands::default();
    let answers = fetch_all(&world, &requests(4), 1, &Budget::of(999));
    assert!(answers[1..].iter().all(Result::is_err));
    assert_eq!(world.asked.load(Ordering::SeqCst), 4);
    assert_eq!(answers[0].as_ref().unwrap_err().reason, Reason::HttpStatus);
}

fn policy(growth: u64) -> Policy {
    let mut policy = Policy {
        fetch: Scheme::ALL.into_iter().collect(),
        ..Policy::default()
    };
    policy.limits.growth = growth;
    policy.limits.in_flight = 1;
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
    let expander = Expander::new(policy.clone(), world);
    let first = expander.expand(mail, "-").unwrap();
    let output = first.output.into_bytes().into_owned();
    let second = expander.expand(&output, "-").unwrap();
    assert_eq!(
        second.output.into_bytes(),
        output,
        "a second run changes more"
    );
    (output, first.report)
}

fn reasons(report: &Report) -> Vec<Option<Reason>> {
    report.rows.iter().map(|row| row.reason).collect()
}

#[test]
fn bodies_that_are_too_much_together_are_all_left_and_data_is_not() {
    let world = Canned::new()
        .with("http://h.example/1", None, vec![1; 4000])
        .with("http://h.example/2", None, vec![2; 4000])
        .with("http://h.example/3", None, vec![3; 4000]);
    let urls = [
        "http://h.example/1",
        "http://h.example/2",
        "data:,note",
        "http://h.example/3",
    ];
    let mail = multipart(&urls, "Content-Type: image/gif");
    let (output, report) = expanded(&policy(8000), &world, &mail);
    let growth = Some(Reason::GrowthLimit);
    assert_eq!(reasons(&report), [growth, growth, None, growth]);
    assert_eq!(report.rows[2].outcome, Outcome::Expanded);
    for url in urls.iter().filter(|url| url.starts_with("http")) {
        let part = format!("\n URL=\"{url}\"\n\nContent-Type: image/gif\n");
        assert!(memchr::memmem::find(&output, part.as_bytes()).is_some());
    }
}

#[test]
fn the_budget_holds_over_all_rounds_of_a_message() {
    let inner = multipart(
        &["http://h.example/1", "http://h.example/2"],
        "Content-Type: image/gif",
    );
    let inner = String::from_utf8(inner).unwrap();
    let inner = inner
        .replace("boundary=b", "boundary=c")
        .replace("--b", "--c");
    let world = Canned::new()
        .with("http://h.example/mail", Some("message/rfc822"), inner)
        .with("http://h.example/0", None, vec![0; 4000])
        .with("http://h.example/1", None, vec![1; 4000])
        .with("http://h.example/2", None, vec![2; 4000]);
    let outer = |urls: &[&str]| multipart(urls, "Content-Type: message/rfc822");
    let alone = outer(&["http://h.example/mail"]);
    let (_, report) = expanded(&policy(16_000), &world, &alone);
    assert_eq!(report.expanded(), 3, "{report:?}");
    // Together with a third body it is too much, and neither came first.
    let mut both = outer(&["http://h.example/mail"]);
    both.truncate(both.len() - "--b--\n".len());
    let third = multipart(&["http://h.example/0"], "Content-Type: image/gif");
    both.extend_from_slice(&third[memchr::memmem::find(&third, b"--b\n").unwrap()..]);
    let (output, report) = expanded(&policy(9000), &world, &both);
    assert_eq!(reasons(&report), [Some(Reason::GrowthLimit); 2]);
    assert_eq!(output, both);
}

#[test]
fn one_body_that_is_meant_ten_thousand_times_is_not_held_ten_thousand_times() {
    let world = Canned::new().with("http://h.example/1", None, vec![1; 4 << 20]);
    let mail = multipart(&["http://h.example/1"; 9000], "Content-Type: image/gif");
    // 36 GB if nobody counted: this test would not end.
    let (output, report) = expanded(&policy(20 << 20), &world, &mail);
    assert_eq!(output, mail);
    assert!(
        reasons(&report)
            .iter()
            .all(|reason| *reason == Some(Reason::GrowthLimit))
    );
    assert_eq!(report.rows.len(), 9000);

    // A Content-ID is a reference as well, and fetches nothing.
    let mut mail = b"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: image/gif\nContent-ID: <x@y>\n\n".to_vec();
    mail.extend(std::iter::repeat_n(b'x', 4 << 20));
    mail.push(b'\n');
    let references = multipart(&["cid:x@y"; 9000], "Content-Type: image/gif");
    mail.extend_from_slice(&references[memchr::memmem::find(&references, b"--b\n").unwrap()..]);
    let (output, report) = expanded(&policy(20 << 20), &world, &mail);
    assert!(output == mail);
    assert_eq!(report.left(), 9000);
}

#[test]
fn fragments_and_types_that_nobody_is_asked_for_make_no_second_retrieval() {
    let world = Canned::new().with("ftp://h.example/1", None, "x");
    let mut mail = multipart(
        &["ftp://h.example/1", "ftp://h.example/1#a"],
        "Content-Type: image/gif",
    );
    mail.truncate(mail.len() - "--b--\n".len());
    let other = multipart(&["ftp://h.example/1#b"], "Content-Type: image/png");
    mail.extend_from_slice(&other[memchr::memmem::find(&other, b"--b\n").unwrap()..]);
    let expander = Expander::new(policy(8000), &world);
    let report = expander.expand(&mail, "-").unwrap().report;
    assert_eq!(report.expanded(), 3, "{report:?}");
    assert_eq!(world.asked().len(), 1, "{:?}", world.asked());
}
