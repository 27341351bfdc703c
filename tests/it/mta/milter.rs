//! samples/recipes/milter/main.cf with Postfix: the delivered mail is the same as that of the pipe filter.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read as _};
use std::net::Shutdown;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use crate::common::mail::changed_samples;
use crate::common::mail_system::divided;
use crate::common::mailboxes::Numbers;
use crate::common::milter::Milter;
use crate::common::mta::{House, Letter, NOBODY, eventually, many};
use crate::common::postfix::Postfix;
use crate::common::programs::{embody, fed, free_port, stderr};
use crate::common::raw::{Raw, ok};
use crate::common::smtp::Smtp;

fn unix(house: &House) -> String {
    format!("unix:{}", house.text("milter.sock"))
}

/// Starts Postfix with these milters, as in the recipe. Postfix's program for virtual mailboxes delivers the mail.
pub(super) fn postfix(house: &House, milters: &str, changes: &[(&str, &str)]) -> Postfix {
    let all = [&[("unix:embody/milter.sock", milters)], changes].concat();
    let main = fs::read_to_string(house.recipe("milter/main.cf", &all)).unwrap();
    delivering(house, &main)
}

/// Starts Postfix with these lines, and with its program for virtual mailboxes.
fn delivering(house: &House, main: &str) -> Postfix {
    house.maildir_of("Maildir", Some(NOBODY));
    let mailboxes = format!(
        "local_header_rewrite_clients =\n\
         virtual_mailbox_base = {}\n\
         virtual_mailbox_maps = static:Maildir/\n\
         virtual_mailbox_limit = 0\n\
         virtual_uid_maps = static:{NOBODY}\n\
         virtual_gid_maps = static:{NOBODY}\n",
        house.folder.path().display()
    );
    Postfix::start(
        house,
        &format!("{main}\n{mailboxes}"),
        "127.0.0.1:PORT inet n - n - - smtpd\n",
    )
}

fn possible(test: &str) -> bool {
    Postfix::possible(test)
}

#[track_caller]
fn arrives(house: &House, letter: &Letter) {
    arrives_as(house, letter);
}

/// Returns the delivered mail, with the lines that the mail system added at the top.
#[track_caller]
pub(super) fn arrives_as(house: &House, letter: &Letter) -> Vec<u8> {
    eventually(60, "the mail arrives", || {
        !house.delivered("Maildir").is_empty()
    });
    let mail = house.only("Maildir");
    letter.arrived_as(&mail);
    mail
}

/// Returns the result of the pipe filter for a message.
fn piped(house: &House, message: &[u8]) -> Vec<u8> {
    let output = fed(
        embody()
            .arg("filter")
            .arg("--config")
            .arg(house.path("embody.toml")),
        message,
    );
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

/// Letters for one connection: if a message is accepted after its header, this must not affect the next message.
pub(super) fn in_a_row() -> [Letter; 4] {
    [
        Letter::text("first"),
        Letter::data("second"),
        Letter::text("third"),
        Letter::text("fourth"),
    ]
}

/// Returns the letters of the other recipes, and each sample that can be sent over SMTP.
pub(super) fn letters(house: &House) -> Vec<Letter> {
    let mut letters: Vec<Letter> = house.letters().to_vec();
    for letter in &letters {
        let piped = piped(house, letter.sent.as_bytes());
        assert!(piped == letter.arrives.as_bytes(), "{}", letter.name);
    }
    letters.push(Letter::text("text"));
    letters.push(Letter {
        name: "bounce".to_owned(),
        ..Letter::data("bounce")
    });
    // Fields with the same name before, at and after the position of the added fields, in several spellings.
    for (name, phantom) in [
        (
            "places",
            "Content-ID: <a@example.org>\nContent-Type: text/plain\nCONTENT-Description: one\n\ttwo\n",
        ),
        (
            "description-first",
            "Content-Description: x\ncontent-type: text/plain\nContent-Description:\n y\n",
        ),
        (
            "language",
            "content-TYPE: text/plain\nContent-Language: en\n",
        ),
    ] {
        for own in [
            "Content-Description: old\nSubject: a\nMIME-Version: 1.0\nTYPE",
            "TYPEContent-Transfer-Encoding: 7bit\nContent-ID: <b@example.org>\nSubject: a\n",
            "Content-ID: <b@example.org>\nTYPEMIME-Version: 1.0\nContent-Language: de\nSubject: a\ncontent-id: <c@example.org>\n",
        ] {
            let reference =
                "Content-Type: message/external-body; access-type=URL;\n URL=\"data:,hello%0A\"\n";
            let header = own.replace("TYPE", reference);
            let sent = format!("From: alice@example.org\n{header}X-Last: 1\n\n{phantom}\n");
            let arrives = String::from_utf8(piped(house, sent.as_bytes())).unwrap();
            assert!(arrives.ends_with("\n\nhello\n"), "{arrives}");
            letters.push(Letter {
                name: name.to_owned(),
                sent,
                arrives,
            });
        }
    }
    for sample in changed_samples() {
        let Ok(sent) = String::from_utf8(sample.before) else {
            continue;
        };
        let is_mail =
            divided(sent.as_bytes()).is_some() && sent.contains("\n\n") && sent.ends_with('\n');
        // CRs within a line, and lines that Postfix wraps, are changed by Postfix and not by the milter.
        if !is_mail || sent.contains('\r') || sent.lines().any(|line| line.len() > 900) {
            continue;
        }
        let arrives = String::from_utf8(piped(house, sent.as_bytes())).unwrap();
        if !arrives.ends_with('\n') {
            continue;
        }
        letters.push(Letter {
            name: sample.name,
            sent,
            arrives,
        });
    }
    assert!(letters.len() > 20, "only {} letters", letters.len());
    letters
}

fn all_arrive(listen: &str, milters: &str, house: &House) {
    let milter = Milter::start(house, listen, &["--max-message", "9M"]);
    let postfix = postfix(house, milters, &[]);
    for letter in letters(house) {
        Smtp::connect(postfix.port).send(&letter);
        arrives(house, &letter);
    }
    let mut session = Smtp::connect(postfix.port);
    for letter in in_a_row() {
        session.send(&letter);
        arrives(house, &letter);
    }
    assert!(
        !postfix.log().contains("warning: milter"),
        "{}",
        postfix.log()
    );
    assert!(!milter.log().contains("defect"), "{}", milter.log());
}

/// Uses the text blocks for Postfix in docs/milter.md unchanged: the configuration of embody, and the lines of main.cf.
#[test]
fn postfix_settings_on_the_milter_page_work_as_pasted() {
    if !possible("the lines of docs/milter.md in Postfix") {
        return;
    }
    let page = include_str!("../../../docs/milter.md");
    let (_, page) = page.split_once("\n## Postfix\n").unwrap();
    let block = |language: &str| {
        let (_, rest) = page.split_once(&format!("\n```{language}\n")).unwrap();
        rest.split_once("```").unwrap().0
    };
    let house = House::new();
    house.write("embody.toml", block("toml"));
    let postfix = delivering(&house, block("text"));
    let folder = house.path("postfix");
    // Postfix only prints a warning for unknown parameters.
    let output = Command::new("postconf")
        .arg("-n")
        .arg("-c")
        .arg(&folder)
        .output();
    let said = stderr(&output.unwrap());
    assert!(
        !said.contains("embody") && !said.contains("unused"),
        "{said}"
    );

    waits(&postfix, &Letter::data("nobody-answers"));
    let socket = folder.join("queue/embody/milter.sock");
    fs::create_dir(socket.parent().unwrap()).unwrap();
    // As in the documentation without systemd: Postfix's own user, who is a different one, connects.
    let listen = format!("unix:{}", socket.display());
    let options = ["--socket-group", "postfix", "--socket-mode", "0660"];
    let milter = Milter::start(&house, &listen, &options);
    // The socket accepts connections before its group is set. Until then, only its owner has access.
    eventually(10, "the socket is Postfix's", || {
        fs::metadata(&socket).unwrap().mode() & 0o777 == 0o660
    });
    for letter in [Letter::data("pasted"), Letter::text("text")] {
        Smtp::connect(postfix.port).send(&letter);
        arrives(&house, &letter);
    }
    let log = postfix.log();
    assert!(!log.contains("unused parameter"), "{log}");
    assert!(milter.log().contains(": version "), "{}", milter.log());
}

#[test]
fn each_letter_arrives_over_a_socket_as_the_pipe_filter_delivers_it() {
    if !possible("the milter over a socket") {
        return;
    }
    let house = House::new();
    all_arrive(&unix(&house), &unix(&house), &house);
}

#[test]
fn each_letter_arrives_over_tcp_as_the_pipe_filter_delivers_it() {
    if !possible("the milter over TCP") {
        return;
    }
    let house = House::new();
    let port = free_port();
    all_arrive(
        &format!("inet:{port}"),
        &format!("inet:127.0.0.1:{port}"),
        &house,
    );
}

/// Sends a letter, and asserts that Postfix rejects it temporarily.
#[track_caller]
fn waits(postfix: &Postfix, letter: &Letter) {
    assert!(!Smtp::connect(postfix.port).offer(letter));
}

#[test]
fn when_the_milter_is_missing_or_is_to_defer_the_sender_keeps_the_mail() {
    if !possible("the milter and trouble") {
        return;
    }
    let house = House::new();
    let port = free_port();
    let away = format!("http://127.0.0.1:{port}/away");
    let letter = Letter::http("away", &away);
    let postfix = postfix(&house, &unix(&house), &[]);
    waits(&postfix, &Letter::data("nobody-answers"));
    for (options, is_taken) in [
        (["--on-failure", "leave"], true),
        (["--on-failure", "defer"], false),
    ] {
        house.may_ask(port);
        let milter = Milter::start(&house, &unix(&house), &options);
        if is_taken {
            Smtp::connect(postfix.port).send(&letter);
            arrives(&house, &letter.unfiltered());
        } else {
            waits(&postfix, &letter)
        }
        drop(milter);
        waits(&postfix, &Letter::data("nobody-answers"));
    }
    assert!(house.delivered("Maildir").is_empty());
    assert_eq!(postfix.waiting(), 0);
}

/// The milter is killed at random moments. A run that fails prints its seed, which `EMBODY_SEED` repeats.
#[test]
fn a_thousand_messages_while_the_milter_is_killed_at_random_instants_arrive_once() {
    if !possible("a thousand messages and a milter that is killed") {
        return;
    }
    let since_1970 = || UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seed = std::env::var("EMBODY_SEED").map_or_else(|_| since_1970(), |it| it.parse().unwrap());
    println!("EMBODY_SEED={seed}");
    let mut numbers = Numbers(seed);
    let house = House::new();
    let postfix = postfix(&house, &unix(&house), &[]);
    let mut letters = many(&house, 1000);
    // Letters whose new body needs many packets, so that some kills happen between them.
    for number in (0..letters.len()).step_by(10) {
        let octets = 100_000 + numbers.below(200_000) as usize;
        letters[number] = Letter::large(&format!("large{number}"), octets);
    }
    let port = postfix.port;
    let done = AtomicBool::new(false);
    let (mut tries, mut kills) = (0, 0);
    thread::scope(|scope| {
        let killing = scope.spawn(|| {
            let mut kills = 0;
            while !done.load(Ordering::SeqCst) {
                let milter = Milter::start(&house, &unix(&house), &[]);
                // The milter is often killed during the first messages, and sometimes after many.
                let span = [20_000, 100_000, 600_000][kills % 3];
                thread::sleep(Duration::from_micros(numbers.below(span)));
                // Kills the milter without a signal before.
                drop(milter);
                kills += 1;
                thread::sleep(Duration::from_micros(numbers.below(30_000)));
            }
            kills
        });
        let sending: Vec<_> = letters
            .chunks(250)
            .map(|part| {
                scope.spawn(move || {
                    let mut tries = 0;
                    for letter in part {
                        // A new connection for each attempt, because Postfix connects to the milter once per connection.
                        while !Smtp::connect(port).offer(letter) {
                            tries += 1;
                            thread::sleep(Duration::from_millis(20));
                        }
                    }
                    tries
                })
            })
            .collect();
        tries = sending.into_iter().map(|part| part.join().unwrap()).sum();
        done.store(true, Ordering::SeqCst);
        kills = killing.join().unwrap();
    });
    assert!(
        kills > 20 && tries > 20,
        "{kills} kills, {tries} messages put off"
    );
    println!("{kills} kills, {tries} messages put off");
    eventually(120, "the queue is empty", || postfix.waiting() == 0);
    let mut delivered = HashMap::new();
    for mail in house.delivered("Maildir") {
        let text = String::from_utf8_lossy(&mail).into_owned();
        let id = text
            .split("\nMessage-ID: <")
            .nth(1)
            .and_then(|rest| rest.split('@').next());
        let before = delivered.insert(id.unwrap().to_owned(), mail);
        assert!(before.is_none(), "{id:?} arrived twice");
    }
    assert_eq!(delivered.len(), letters.len());
    for letter in &letters {
        letter.arrived_as(&delivered[&letter.name]);
    }
}

/// Starts a proxy between Postfix and the milter. It ends each connection after this number of bytes from the milter, as if the
/// milter died.
fn dying(house: &House, octets: Arc<AtomicU64>) -> Raw {
    let socket = house.path("milter.sock");
    Raw::connections(move |postfix| {
        let milter = UnixStream::connect(&socket).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| io::copy(&mut &postfix, &mut &milter));
            let octets = octets.load(Ordering::SeqCst);
            let _ = io::copy(&mut (&milter).take(octets), &mut &postfix);
            let _ = postfix.shutdown(Shutdown::Both);
            let _ = milter.shutdown(Shutdown::Both);
        });
    })
}

/// docs/milter.md recommends tempfail and not accept, because Postfix accepts a message after half a response. It then delivers
/// a mixture of two mails, or cannot deliver the message.
#[test]
fn a_milter_that_dies_within_its_answer_loses_no_mail_with_tempfail_and_loses_some_with_accept() {
    if !possible("a milter that dies within its answer") {
        return;
    }
    for (action, loses) in [("tempfail", false), ("accept", true)] {
        let house = House::new();
        let _milter = Milter::start(&house, &unix(&house), &[]);
        let octets = Arc::default();
        let between = dying(&house, Arc::clone(&octets));
        let line = (
            "milter_default_action = tempfail",
            &*format!("milter_default_action = {action}"),
        );
        let server = postfix(&house, &format!("inet:{}", between.address), &[line]);
        // After the negotiation, in the header, and in the body.
        let cuts = [17, 60, 100, 1_000, 100_000, 250_000];
        for cut in cuts {
            octets.store(cut, Ordering::SeqCst);
            let letter = Letter::large(&format!("large{cut}"), 200_000);
            let is_taken = Smtp::connect(server.port).offer(&letter);
            assert_eq!(is_taken, loses, "{action}, {cut} octets: {}", server.log());
        }
        let taken = if loses { cuts.len() } else { 0 };
        let ended = || server.corrupt() + house.delivered("Maildir").len();
        eventually(60, "each message arrives or is lost", || ended() == taken);
        let arrived = house.delivered("Maildir");
        let lines_of = |mail: &[u8]| mail.iter().filter(|&&octet| octet == b'\n').count();
        // The mail as it was sent, below some lines of Postfix; or the start of the new body and the end of the old one.
        let sent = lines_of(Letter::large("", 200_000).sent.as_bytes());
        let is_whole = |mail: &&Vec<u8>| {
            memchr::memmem::find(mail, b"message/external-body").is_some()
                && lines_of(mail) - sent < 30
        };
        let harmed = taken - arrived.iter().filter(is_whole).count();
        assert_eq!(harmed > 0, loses, "{action}: {harmed} of {taken}");
        assert_eq!(server.corrupt() > 0, loses);
        println!(
            "{action}: {harmed} of {taken}, {} corrupt",
            server.corrupt()
        );
        assert_eq!(server.waiting(), 0);
    }
}

/// With a milter, Postfix truncates every field at 60,000 bytes. The line in the recipe prevents this for some fields.
#[test]
fn a_field_that_postfix_cuts_is_left_and_those_of_parts_are_not_cut() {
    if !possible("Postfix and long fields") {
        return;
    }
    let in_part = Letter::large("large", 200_000);
    let data = "%41".repeat(30_000);
    let own = Letter {
        name: "own".to_owned(),
        sent: format!(
            "From: alice@example.org\nContent-Type: message/external-body; access-type=URL;\n URL=\"data:,{}\"\n\n\
             Content-Type: text/plain\n\n",
            data.as_bytes()
                .chunks(60)
                .map(|line| format!("{}\n ", String::from_utf8_lossy(line)))
                .collect::<String>()
        ),
        arrives: String::new(),
    };
    let house = House::new();
    let _milter = Milter::start(&house, &unix(&house), &[]);
    let server = postfix(&house, &unix(&house), &[]);
    Smtp::connect(server.port).send(&in_part);
    arrives(&house, &in_part);
    Smtp::connect(server.port).send(&own);
    eventually(60, "the mail arrives", || {
        !house.delivered("Maildir").is_empty()
    });
    let mail = String::from_utf8(house.only("Maildir")).unwrap();
    assert!(
        mail.len() < own.sent.len() - 20_000,
        "{} octets",
        mail.len()
    );
    let start = own.sent.get(..59_000).unwrap();
    assert!(
        mail.contains(start),
        "what there is of it is left: {mail:.1000}"
    );
    assert!(!mail.contains("AAAA"));
    drop(server);
    // Without the line, fields of parts are truncated, too, and their references are left.
    let house = House::new();
    let _milter = Milter::start(&house, &unix(&house), &[]);
    let line = "disable_mime_input_processing = yes";
    let server = postfix(
        &house,
        &unix(&house),
        &[(line, "header_size_limit = 10240000")],
    );
    Smtp::connect(server.port).send(&in_part);
    eventually(60, "the mail arrives", || {
        !house.delivered("Maildir").is_empty()
    });
    let mail = house.only("Maildir");
    assert!(mail.len() < in_part.sent.len() / 2, "{} octets", mail.len());
    assert!(memchr::memmem::find(&mail, b"message/external-body").is_some());
}

#[test]
fn a_result_above_the_limit_goes_on_unchanged() {
    if !possible("the milter and a result that is too large") {
        return;
    }
    let content = vec![b'x'; 300_000];
    let http = Raw::saying(ok("application/x-any", &content));
    let letter = Letter::remote("grows", &http.url("/large"), &content);
    let house = House::new();
    house.may_ask(http.address.port());
    let postfix = postfix(&house, &unix(&house), &[]);
    {
        let _milter = Milter::start(&house, &unix(&house), &["--max-message", "300k"]);
        Smtp::connect(postfix.port).send(&letter);
        arrives(&house, &letter.unfiltered());
    }
    let _milter = Milter::start(&house, &unix(&house), &["--max-message", "600k"]);
    Smtp::connect(postfix.port).send(&letter);
    arrives(&house, &letter);
}
