//! Compares the milter with the pipe filter: after the replies of the milter, the mail system has the message that the
//! filter writes.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tempfile::TempDir;

use super::common::checks::milter::Conversation;
use super::common::hostile::SHAPES;
use super::common::mail::{
    assert_bytes, changed_samples, mhtml_samples, untouched_samples, with_url,
};
use super::common::mail_system::{ACTIONS, Became, MailSystem, OPTIONS, divided, packet};
use super::embed;
use crate::engine::Content;
use crate::engine::Mark;
use crate::engine::policy::{OnFailure, Policy, Scheme};
use crate::engine::report::{Reason, Refusal, Report};
use crate::expand::Expander;
use crate::fetch::{Bytes, Fetch, NoFetch, Request};
use crate::milter::{
    Address, FilterVerdict, IncomingMail, MilterListener, MilterServer, MilterWork, ServerLog,
};

#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl ServerLog for Notes {
    fn processed(&self, message: &IncomingMail, verdict: &FilterVerdict, _: &Report, _: Duration) {
        let what = match verdict {
            FilterVerdict::Unchanged(why) => format!("{why:?}"),
            FilterVerdict::Changed(..) => "changed".to_owned(),
            FilterVerdict::Later(_) => "later".to_owned(),
        };
        let line = format!("{}: {what}", message.queue_id);
        self.0.lock().unwrap().push(line);
    }

    fn says(&self, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }
}

fn work(expander: Expander, journal: Arc<Notes>, connections: usize) -> MilterWork {
    MilterWork {
        expander,
        journal,
        connections,
    }
}

struct House {
    folder: TempDir,
    server: Arc<MilterServer>,
    notes: Arc<Notes>,
}

impl House {
    fn new(expander: Expander, most: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let notes = Arc::new(Notes::default());
        let journal: Arc<Notes> = Arc::clone(&notes);
        let server =
            Arc::new(MilterServer::new(work(expander, journal, most), Arc::default()).unwrap());
        let listener = MilterListener::bind(&Address::Unix(path), 0o600, None).unwrap();
        server.start(vec![listener], None).unwrap();
        Self {
            folder,
            server,
            notes,
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn connect(&self) -> MailSystem {
        let mut mail_system = MailSystem::unix(&self.socket());
        mail_system.negotiate();
        mail_system
    }

    /// Waits until the journal fulfils a condition, because it is written after the reply to the mail system.
    #[track_caller]
    fn notes(&self, is_so: impl Fn(&[String]) -> bool) -> Vec<String> {
        let begun = Instant::now();
        loop {
            let notes = self.notes.0.lock().unwrap().clone();
            if is_so(&notes) {
                return notes;
            }
            let patience = Duration::from_secs(60);
            assert!(begun.elapsed() < patience, "{notes:#?}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn expander(mark: Mark) -> Expander {
    Expander::builder(Policy::default())
        .fetch(NoFetch)
        .mark(mark)
        .build()
        .unwrap()
}

/// Returns the output of the pipe filter.
fn piped(expander: &Expander, message: &[u8]) -> Vec<u8> {
    let expansion = expander.expand(message, "-").unwrap();
    expansion.output().into_bytes().into_owned()
}

fn samples() -> Vec<(String, Vec<u8>)> {
    let all = [changed_samples(), untouched_samples(), mhtml_samples()];
    all.into_iter()
        .flatten()
        .map(|sample| (sample.name, sample.before))
        // The protocol cannot express an invalid header, or a message that ends with its header.
        .filter(|(_, message)| {
            divided(message).is_some() && memchr::memmem::find(message, b"\n\n").is_some()
        })
        .filter(|(_, message)| !message.contains(&b'\r'))
        .collect()
}

#[test]
fn each_sample_comes_out_as_the_pipe_filter_writes_it() {
    let samples = samples();
    assert!(samples.len() > 40, "only {} samples", samples.len());
    for mark in [Mark::Off, Mark::Field] {
        let expander = expander(mark);
        let house = House::new(expander.clone(), 8);
        for removed_count in [false, true] {
            let mut mail_system = house.connect();
            mail_system.removed_count = removed_count;
            let mut changed = 0;
            for (name, message) in &samples {
                let expected = piped(&expander, message);
                let came = mail_system.filter(name, message).message();
                assert_bytes(&came, &expected, name);
                changed += usize::from(expected != *message);
            }
            assert!(changed > 30, "only {changed} of them change");
        }
        let notes = house.notes(|notes| notes.len() == samples.len() * 2);
        let defects = notes.iter().filter(|note| note.contains("defect"));
        assert_eq!(defects.count(), 0, "{notes:#?}");
    }
}

/// A message that is only HTML gets other fields in its header, and its own fields move to an inner part.
#[test]
fn what_html_shows_is_put_in_as_the_pipe_filter_does_it() {
    let expander = Expander::builder(embed::policy())
        .fetch(NoFetch)
        .build()
        .unwrap();
    let house = House::new(expander.clone(), 8);
    let html = format!(
        "<p>Hello<img src=\"{}\"></p>\n",
        embed::data(&embed::gif(9, 9, 1))
    );
    let alternative = format!(
        "--b\nContent-Type: text/plain\n\nHello\n--b\nContent-Type: text/html\n\n{html}--b--\n"
    );
    for (fields, body) in [
        ("Content-Type: text/html\n", &html),
        (
            "Subject: a\nContent-Type: text/html;\n charset=utf-8\nContent-Transfer-Encoding: 8bit\nX: y\n",
            &html,
        ),
        (
            "Content-Language: en\nX: y\nMIME-Version: 1.0\nContent-Type: text/html\nContent-Id: <a@b>\n",
            &html,
        ),
        (
            "Content-Type: multipart/alternative; boundary=b\nX: y\n",
            &alternative,
        ),
    ] {
        let mail = format!("{fields}\n{body}").into_bytes();
        let expected = piped(&expander, &mail);
        assert_ne!(expected, mail);
        for removed_count in [false, true] {
            let mut mail_system = house.connect();
            mail_system.removed_count = removed_count;
            assert_bytes(&mail_system.filter("1", &mail).message(), &expected, fields);
            assert_bytes(
                &mail_system.filter("2", &expected).message(),
                &expected,
                fields,
            );
        }
    }
}

#[test]
fn mail_system_with_fewer_milter_features_gets_the_same_result() {
    let expander = expander(Mark::Off);
    let house = House::new(expander.clone(), 8);
    // The options of version 2 of the protocol, and only the necessary actions.
    for (actions, options) in [(ACTIONS, 0x7f), (0x13, 0), (0x13, OPTIONS & !0x10_0000)] {
        let mut mail_system = MailSystem::unix(&house.socket());
        mail_system.offer(actions, options);
        for (name, message) in samples() {
            let came = mail_system.filter(&name, &message).message();
            // Without this option, the mail system inserts the blank after the colon itself.
            let blanks = |message: &[u8]| {
                let (fields, body) = divided(message).unwrap();
                let unblanked = |(name, value): (Vec<u8>, Vec<u8>)| {
                    [name, value.strip_prefix(b" ").unwrap_or(&value).to_vec()]
                };
                (fields.into_iter().map(unblanked).collect::<Vec<_>>(), body)
            };
            assert_eq!(blanks(&came), blanks(&piped(&expander, &message)), "{name}");
        }
    }
}

#[test]
fn a_mail_system_that_allows_no_changes_gets_the_mail_back() {
    let house = House::new(expander(Mark::Off), 8);
    let mut mail_system = MailSystem::unix(&house.socket());
    mail_system.offer(0x01, OPTIONS);
    let letter = with_url("data:,hello", "Content-Type: text/plain");
    assert_eq!(mail_system.filter("1", &letter), Became::Message(letter));
}

#[test]
fn milter_requests_no_body_if_the_header_excludes_a_change() {
    let house = House::new(expander(Mark::Off), 8);
    let mut mail_system = house.connect();
    let text = b"Subject: a\nContent-Type: text/plain\n\nmessage/external-body\n".to_vec();
    let mixed = b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\nText\n--b--\n";
    for _ in 0..2 {
        assert_eq!(mail_system.filter("1", &text).message(), text);
        assert!(mail_system.accepted);
        assert_eq!(mail_system.filter("2", mixed).message(), mixed);
        assert!(!mail_system.accepted);
    }
    house.notes(|notes| notes.join(" ") == "1: AsItIs 2: AsItIs 1: AsItIs 2: AsItIs");
}

#[test]
fn chunks_of_a_body_are_answered_where_the_mail_system_waits_for_that() {
    let mut policy = Policy::default();
    policy.limits.message = Some(100_000);
    let expander = Expander::builder(policy).fetch(NoFetch).build().unwrap();
    let house = House::new(expander.clone(), 8);
    let letter = with_url("data:,hello", "Content-Type: text/plain");
    let large = [letter.clone(), b"x".repeat(500_000)].concat();
    for (options, skipped) in [
        (OPTIONS, false),
        (OPTIONS & !0x8_0000, true),
        (OPTIONS & !0x8_0400, false),
    ] {
        let mut mail_system = MailSystem::unix(&house.socket());
        mail_system.offer(ACTIONS, options);
        for _ in 0..2 {
            let came = mail_system.filter("1", &letter).message();
            assert_bytes(&came, &piped(&expander, &letter), "small");
            assert_eq!(mail_system.filter("2", &large).message(), large);
            assert_eq!(mail_system.skipped, skipped);
        }
    }
}

/// If a header shows that the body does not matter, no body may cause a change.
#[test]
fn no_body_causes_a_change_if_the_header_says_the_body_does_not_matter() {
    let bodies: Vec<Vec<u8>> = samples()
        .into_iter()
        .map(|(_, message)| divided(&message).unwrap().1)
        .collect();
    let mut skipped = 0;
    for (name, message) in samples() {
        let end = memchr::memmem::find(&message, b"\n\n").unwrap() + 2;
        let header = &message[..end];
        let expander = expander(Mark::Off);
        if expander.body_matters(header) {
            continue;
        }
        skipped += 1;
        for body in &bodies {
            let message = [header, body].concat();
            assert_bytes(&piped(&expander, &message), &message, &name);
        }
    }
    assert!(
        skipped >= 1,
        "only {skipped} headers say that the body does not matter"
    );
}

#[test]
fn aborts_and_further_connections_leave_nothing_behind() {
    let house = House::new(expander(Mark::Off), 8);
    let mut mail_system = house.connect();
    let letter = with_url("data:,hello", "Content-Type: text/plain");
    let expected = piped(&expander(Mark::Off), &letter);
    mail_system.send(&packet(b'A', b""));
    for word in [b"A".as_slice(), b"AA", b"K", b"AKA"] {
        mail_system.send(&packet(b'L', b"X-Of-Another\0 message\0"));
        for &kind in word {
            mail_system.send(&packet(kind, b""));
        }
        assert_eq!(mail_system.filter("1", &letter).message(), expected);
        assert_eq!(mail_system.filter("2", &letter).message(), expected);
    }
    mail_system.send(&packet(b'Q', b""));
    assert!(mail_system.is_closed());
}

/// A source that fails temporarily, or takes some time.
struct Slow {
    takes: Duration,
    is_asked: Arc<AtomicBool>,
}

impl Fetch for Slow {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        self.is_asked.store(true, Ordering::SeqCst);
        thread::sleep(self.takes);
        if request.url().ends_with("away") {
            return Err(Refusal::temporary(Reason::Timeout, "it is away"));
        }
        assert!(
            !request.url().ends_with("defect"),
            "a fetcher with a defect"
        );
        Ok(Content::new(
            request.url(),
            Some("text/plain".to_owned()),
            Bytes::from_static(b"remote"),
        ))
    }
}

fn slow(takes: Duration, on_failure: OnFailure) -> Expander {
    slow_and_seen(takes, on_failure).0
}

/// Returns the same expander, and whether its source was called.
fn slow_and_seen(takes: Duration, on_failure: OnFailure) -> (Expander, Arc<AtomicBool>) {
    let is_asked = Arc::new(AtomicBool::new(false));
    let fetch = Slow {
        takes,
        is_asked: Arc::clone(&is_asked),
    };
    let policy = Policy {
        on_failure,
        ..Policy::default()
    };
    let expander = Expander::builder(policy.with_fetch([Scheme::Https]))
        .fetch(fetch)
        .build()
        .unwrap();
    (expander, is_asked)
}

#[test]
fn trouble_leaves_the_mail_or_puts_it_off_and_never_refuses_it() {
    let away = with_url("https://www.example.org/away", "Content-Type: text/plain");
    let defect = with_url("https://www.example.org/defect", "Content-Type: text/plain");
    for (on_failure, expected) in [
        (OnFailure::Leave, Became::Message(away.clone())),
        (OnFailure::Defer, Became::Later),
    ] {
        let house = House::new(slow(Duration::ZERO, on_failure), 8);
        let mut mail_system = house.connect();
        assert_eq!(mail_system.filter("1", &away), expected);
        assert_eq!(
            mail_system.filter("2", &defect),
            Became::Message(defect.clone())
        );
        house.notes(|notes| notes.iter().any(|note| note.starts_with("2: ")));
    }
}

#[test]
fn while_something_is_retrieved_the_mail_system_is_told_to_wait() {
    let house = House::new(slow(Duration::from_millis(10_500), OnFailure::Leave), 8);
    let mut mail_system = house.connect();
    let letter = with_url("https://www.example.org/x", "Content-Type: text/plain");
    let came = mail_system.filter("1", &letter).message();
    assert!(came.ends_with(b"remote\n--b--\n") || came.windows(6).any(|it| it == b"remote"));
    assert_eq!(mail_system.waited, 1);
}

#[test]
fn what_would_be_too_large_goes_on_unchanged() {
    let limited = |most| {
        let mut policy = Policy::default();
        policy.limits.message = Some(most);
        Expander::builder(policy).fetch(NoFetch).build().unwrap()
    };
    let letter = with_url("data:,hello%20hello", "Content-Type: text/plain");
    let size = letter.len() as u64;
    for (most, what) in [(size - 1, "TooLarge"), (2 * size, "changed")] {
        let house = House::new(limited(most), 8);
        let mut mail_system = house.connect();
        let came = mail_system.filter("1", &letter).message();
        let expected = piped(&limited(1 << 20), &letter);
        // This letter becomes smaller.
        assert!(expected.len() < letter.len());
        let expected = if what == "TooLarge" {
            &letter
        } else {
            &expected
        };
        assert_eq!(came, *expected, "{what}");
    }
    let small = with_url("data:,hello", "Content-Type: text/html");
    let house = House::new(limited(small.len() as u64 - 1), 8);
    assert_eq!(house.connect().filter("1", &small).message(), small);
    house.notes(|notes| notes.iter().any(|note| note.contains("TooLarge")));
}

#[test]
fn above_the_limit_mail_is_put_off_and_far_above_it_connections_are_closed() {
    let house = House::new(expander(Mark::Off), 2);
    let letter = with_url("data:,hello", "Content-Type: text/plain");
    let mut served: Vec<MailSystem> = (0..2).map(|_| house.connect()).collect();
    let mut full: Vec<MailSystem> = (0..2).map(|_| house.connect()).collect();
    assert!(MailSystem::unix(&house.socket()).is_closed());
    for mail_system in &mut full {
        for _ in 0..2 {
            assert_eq!(mail_system.filter("1", &letter), Became::Later);
        }
    }
    for mail_system in &mut served {
        assert_ne!(mail_system.filter("1", &letter).message(), letter);
    }
    drop((served, full));
    assert_eq!(house.server.drain(Duration::from_secs(60)), 0);
}

#[test]
fn draining_milter_finishes_open_messages_and_closes_connections() {
    let (expander, is_asked) = slow_and_seen(Duration::from_millis(1500), OnFailure::Leave);
    let house = House::new(expander, 8);
    let letter = with_url("https://www.example.org/x", "Content-Type: text/plain");
    let mut idle = house.connect();
    let mut busy = house.connect();
    thread::scope(|scope| {
        let answer = scope.spawn(|| {
            let came = busy.filter("1", &letter);
            (came, busy.is_closed())
        });
        let begun = Instant::now();
        while !is_asked.load(Ordering::SeqCst) {
            assert!(begun.elapsed() < Duration::from_secs(60), "nobody asks");
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(house.server.drain(Duration::from_secs(20)), 0);
        let (came, is_closed) = answer.join().unwrap();
        assert_ne!(came.message(), letter);
        assert!(is_closed);
    });
    assert!(idle.is_closed());
    let begun = Instant::now();
    while house.socket().exists() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "the socket stays"
        );
    }
}

#[test]
fn another_service_holds_for_the_next_message_of_a_connection() {
    let house = House::new(expander(Mark::Off), 8);
    let letter = with_url("data:,hello", "Content-Type: text/plain");
    let mut mail_system = house.connect();
    let before = mail_system.filter("1", &letter).message();
    let notes: Arc<Notes> = Arc::clone(&house.notes);
    house.server.replace(work(expander(Mark::Field), notes, 8));
    let after = mail_system.filter("2", &letter).message();
    let marked = |message: &[u8]| memchr::memmem::find(message, b"\nX-Embody: ").is_some();
    assert!(!marked(&before) && marked(&after));
}

#[test]
fn what_is_no_packet_ends_its_connection_and_no_other() {
    let house = House::new(expander(Mark::Off), 8);
    let letter = with_url("data:,hello", "Content-Type: text/plain");
    let mut other = house.connect();
    for bytes in [
        b"GET / HTTP/1.1\r\n\r\n".as_slice(),
        b"\0\0\0\0",
        b"\0\0\0\x01N",
        &packet(b'L', b"no NUL"),
    ] {
        let mut broken = MailSystem::unix(&house.socket());
        broken.send(bytes);
        assert!(broken.is_closed(), "{}", bytes.escape_ascii());
    }
    assert_ne!(other.filter("1", &letter).message(), letter);
}

/// The threads of the milter have a smaller stack than the main thread of a program.
#[test]
fn hostile_mails_come_out_as_the_pipe_filter_writes_them() {
    let expander = expander(Mark::Field);
    let house = House::new(expander.clone(), 8);
    let mut mail_system = house.connect();
    let mut count = 0;
    for shape in SHAPES {
        let mail = (shape.make)(20_000);
        let has_end = memchr::memmem::find(&mail, b"\n\n").is_some();
        if !has_end || mail.contains(&b'\r') || divided(&mail).is_none() {
            continue;
        }
        count += 1;
        let came = mail_system.filter(shape.name, &mail).message();
        assert_bytes(&came, &piped(&expander, &mail), shape.name);
    }
    assert!(count > 20, "only {count} shapes");
    let notes = house.notes(|notes| notes.len() == count);
    assert!(
        !notes.iter().any(|note| note.contains("defect")),
        "{notes:#?}"
    );
}

#[test]
fn a_word_that_two_chunks_of_a_large_mail_share_is_found() {
    let expander = expander(Mark::Off);
    let house = House::new(expander.clone(), 8);
    let mut mail_system = house.connect();
    let parts = [
        "Content-Type: message/external-body; access-type=URL;\n URL=\"data:,hello\"\n\nContent-Type: text/plain\n\n",
        "Content-Type: text/html\n\n<base href=http://example.org/><a href=x>x</a>\n",
    ];
    // The first search covers three chunks, and this is their end. In the body, lines end with CRLF.
    let end = 3 * 65_535;
    for (part, before) in parts
        .iter()
        .flat_map(|part| (0..90).map(move |before| (part, before)))
    {
        let start = end - before - "--b\r\n\r\n\r\n--b\r\n".len();
        let lines = "x".repeat(62) + "\n";
        let text = lines.repeat(start / 64) + &"x".repeat(start % 64);
        let mail = format!(
            "Content-Type: multipart/mixed; boundary=b\n\n--b\n\n{text}\n--b\n{part}\n--b--\n"
        );
        let expected = piped(&expander, mail.as_bytes());
        assert_ne!(expected, mail.as_bytes(), "{part}");
        let came = mail_system.filter("1", mail.as_bytes()).message();
        assert!(came == expected, "{before} octets before the end: {part}");
    }
}

/// Returns a message that is one external body. Fields of its body then become fields of its header.
fn whole(outer: &str, phantom: &str) -> Vec<u8> {
    let own = "Content-Type: message/external-body; access-type=URL;\n URL=\"data:,hello\"\n";
    format!("{outer}{own}\nContent-Type: text/plain\n{phantom}\n").into_bytes()
}

#[test]
fn change_that_the_mail_system_cannot_accept_is_not_made() {
    let house = House::new(expander(Mark::Off), 8);
    let mut mail_system = house.connect();
    let long = |octets: usize| {
        format!(
            "Content-Description:{}\n",
            " long\n".repeat(octets / 6).trim_end()
        )
    };
    let many = |count| {
        (0..count)
            .map(|number| format!("Content-X{number}: x\n"))
            .collect::<String>()
    };
    let taken = [
        whole("", &long(65_000)),
        whole("", &many(200)),
        whole(&many(200), &many(200)),
        whole(&"X: x\n".repeat(10_000), &many(200)),
    ];
    for mail in taken {
        let came = mail_system.filter("taken", &mail).message();
        assert_ne!(came, mail);
        assert_bytes(&came, &piped(&expander(Mark::Off), &mail), "taken");
    }
    let left = [
        whole("", &long(66_000)),
        whole("", &many(300)),
        whole(&many(300), &many(300)),
        whole(&"Content-X: x\n".repeat(10_000), "Content-X: y\n"),
    ];
    let count = left.len();
    for mail in left {
        assert_ne!(piped(&expander(Mark::Off), &mail), mail);
        assert_eq!(mail_system.filter("left", &mail).message(), mail);
    }
    let is_left = |note: &&String| note.starts_with("left: TooLarge");
    house.notes(|notes| notes.iter().filter(is_left).count() == count);
}

/// Generates a line of a header or body, or a boundary line.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("--b\n".to_owned()),
        Just("\n".to_owned()),
        Just("Content-Type: text/plain\n".to_owned()),
        Just(
            "Content-Type: message/external-body; access-type=URL; URL=\"data:,one%0Atwo\"\n"
                .to_owned()
        ),
        "[ -~\t]{0,20}\n",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_message_comes_out_as_the_pipe_filter_writes_it(
        fields in proptest::collection::vec("(X-[A-C]: [ -~]{0,9}(\n\t[!-~]{1,5})?|Content-ID: <[a-c]>|Lines: [0-9]|Content-Length: [0-9])\n", 0..5),
        composite: bool,
        position in 0_usize..5,
        body in proptest::collection::vec(line(), 0..20),
    ) {
        let mut fields = fields;
        let own = if composite { "Content-Type: multipart/mixed; boundary=b\n" } else { "Content-Type: message/external-body;\n access-type=URL; URL=\"data:,hello%0A\"\n" };
        fields.insert(position.min(fields.len()), own.to_owned());
        let message = format!("{}\n{}", fields.concat(), body.concat());
        for mark in [Mark::Off, Mark::Field] {
            let expander = expander(mark);
            let conversation = Conversation::new(expander.clone(), false);
            let mut mail_system = MailSystem::over(Box::new(conversation));
            mail_system.negotiate();
            let came = mail_system.filter("1", message.as_bytes()).message();
            prop_assert_eq!(
                String::from_utf8_lossy(&came).into_owned(),
                String::from_utf8_lossy(&piped(&expander, message.as_bytes())).into_owned()
            );
        }
    }
}
