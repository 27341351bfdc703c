//! Requests with a mailbox.

use std::fs;
use std::io::{Read as _, Write as _};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::common::pst::{Form, Message, Pst};
use crate::common::reports;
use crate::common::serve::{Answer, Service, octets, untarred, with_attachment};

fn mbox(count: usize) -> Vec<u8> {
    let mail = |number| {
        format!(
            "From a@example.org Sat Jan  3 01:05:34 1996\nSubject: {number}\n\nText {number}\n>From here\n\n"
        )
    };
    (1..=count).map(mail).collect::<String>().into_bytes()
}

fn report(answer: &Answer) -> (Vec<(String, Vec<u8>)>, serde_json::Value) {
    assert_eq!(
        (answer.status, answer.is_whole),
        (200, true),
        "{}",
        answer.text()
    );
    assert_eq!(answer.field("content-type"), Some("application/x-tar"));
    let mut files = untarred(&answer.body);
    let (name, json) = files.pop().unwrap();
    assert_eq!(name, "report.json");
    let report = reports::object(&json);
    let delivered = report["delivered"].as_u64().unwrap();
    assert_eq!(delivered as usize, files.len());
    let unreadable = report["unreadable_count"].as_u64().unwrap();
    assert_eq!(report["announced"], delivered + unreadable);
    assert_eq!(
        report["unreadable"].as_array().unwrap().len() as u64,
        unreadable
    );
    let text = report.to_string();
    assert!(
        !text.contains("/tmp") && !text.contains(".embody-"),
        "{text}"
    );
    (files, report)
}

/// Returns a .pst with a folder in a folder.
fn pst() -> Vec<u8> {
    let mut pst = Pst::in_memory(Form {
        version: 23,
        encoding: 1,
    });
    let inbox = pst.folder(
        None,
        "Inbox",
        &[
            Message::mail("one", "first"),
            Message::mail("two", "second"),
        ],
    );
    pst.folder(
        Some(inbox),
        "Old/mail ..",
        &[Message::mail("three", "third").with_file("a.txt", b"content")],
    );
    pst.bytes()
}

#[test]
fn mbox_becomes_an_archive_of_its_messages() {
    let service = Service::start(&[]);
    let (files, report) = report(&service.post("/v1/messages", &mbox(3)));
    assert_eq!(files[0].0, "000001.eml");
    assert_eq!(files[1].1, b"Subject: 2\n\nText 2\nFrom here\n");
    assert_eq!(
        (&report["announced"], &report["damaged_count"]),
        (&3.into(), &0.into())
    );
}

#[test]
fn archive_gives_its_messages_in_directories_named_as_its_mailboxes() {
    let service = Service::start(&[]);
    let mut tar = tar::Builder::new(Vec::new());
    let eml = b"Subject: one\n\ntext\n".to_vec();
    for (name, content) in [
        ("mail/Inbox.mbox", mbox(2)),
        ("mail/notes.bin", b"\x7fELF".to_vec()),
        ("mail/Inbox.sbd/Work", mbox(300)),
        ("Maildir/.Sent/cur/1.host:2,S", eml.clone()),
        ("Maildir/.Sent/cur/2.host:2,S", eml.clone()),
        ("one.eml", eml),
        ("mail/Sent.mbox", mbox(1)),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, &*content).unwrap();
    }
    let (files, _) = report(&service.post("/v1/messages", &tar.into_inner().unwrap()));
    let mut folders: Vec<(String, usize)> = Vec::new();
    for (name, _) in &files {
        let (folder, _) = name.rsplit_once('/').unwrap_or_default();
        match folders.last_mut().filter(|(last, _)| last == folder) {
            Some((_, count)) => *count += 1,
            None => folders.push((folder.to_owned(), 1)),
        }
    }
    let counts = [
        ("mail/Inbox", 2),
        ("mail/Inbox/Work", 300),
        ("Maildir/.Sent", 2),
        ("", 1),
        ("mail/Sent", 1),
    ];
    let expected = counts.map(|(folder, count)| (folder.to_owned(), count));
    assert_eq!(folders, expected);
}

#[test]
fn compressed_and_archived_mailboxes_are_read() {
    let service = Service::start(&[]);
    let mut gz = GzEncoder::new(Vec::new(), Compression::default());
    gz.write_all(&mbox(4)).unwrap();
    assert_eq!(
        report(&service.post("/v1/messages", &gz.finish().unwrap()))
            .0
            .len(),
        4
    );
    let mut tar = tar::Builder::new(Vec::new());
    for (name, count) in [("mail/Inbox.mbox", 2), ("mail/Sent.mbox", 3)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(mbox(count).len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, &*mbox(count)).unwrap();
    }
    assert_eq!(
        report(&service.post("/v1/messages", &tar.into_inner().unwrap()))
            .0
            .len(),
        5
    );
    let one = b"Subject: one\n\ntext\n";
    let (files, _) = report(&service.post("/v1/messages", one));
    assert_eq!(files, [("000001.eml".to_owned(), one.to_vec())]);
}

#[test]
fn pst_becomes_an_archive_with_directories_named_as_its_folders() {
    let service = Service::start(&[]);
    let (files, _) = report(&service.post("/v1/messages", &pst()));
    let names: Vec<&str> = files.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names[0].ends_with("Inbox/000001.eml"), "{names:?}");
    assert!(names[2].ends_with("/000003.eml"), "{names:?}");
    assert!(
        !names
            .iter()
            .any(|name| name.contains("..//") || name.starts_with('/'))
    );
    // The same messages as the command writes.
    fs::write(service.path("m.pst"), pst()).unwrap();
    let output = crate::common::programs::embody()
        .args(["inspect", "--messages"])
        .arg(service.path("m.pst"))
        .output()
        .unwrap();
    for (name, content) in &files {
        let finder = memchr::memmem::find(&output.stdout, content);
        assert!(finder.is_some(), "{name}");
    }
}

#[test]
fn ndjson_has_a_line_for_each_message_and_the_report_last() {
    let service = Service::start(&[]);
    let mail = "From a@example.org Sat Jan  3 01:05:34 1996\nSubject: 1\nStatus: RO\nX-Status: AF\nX-Gmail-Labels: Work,Inbox\n\nText\n\n";
    let answer = service.ask(
        "POST",
        "/v1/messages",
        &["Accept: application/x-ndjson"],
        mail.as_bytes(),
    );
    assert_eq!(answer.field("content-type"), Some("application/x-ndjson"));
    let text = answer.text();
    let lines: Vec<serde_json::Value> = text.lines().map(reports::object).collect();
    let [message, report] = &lines[..] else {
        panic!("{text}");
    };
    assert_eq!(message["kind"], "message");
    let content = STANDARD
        .decode(message["content"].as_str().unwrap())
        .unwrap();
    assert!(content.starts_with(b"Subject: 1\n"));
    assert_eq!(message["bytes"], content.len());
    assert_eq!(message["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(message["folder"], serde_json::json!([]));
    let flags = message["flags"].to_string();
    assert!(
        flags.contains("\\\\Seen") && flags.contains("\\\\Answered"),
        "{flags}"
    );
    assert!(message["labels"].to_string().contains("Work"), "{message}");
    assert!(
        message["date"].as_str().unwrap().starts_with("1996-01-03"),
        "{message}"
    );
    assert_eq!(
        (&report["kind"], &report["delivered"]),
        (&"report".into(), &1.into())
    );
}

#[test]
fn what_is_not_a_mailbox_is_a_422_with_the_reason() {
    let service = Service::start(&[]);
    for body in [
        &b"\x7fELF\0\0\0\0\0\0"[..],
        b"%PDF-1.4 no mail",
        b"\x89PNG\r\n\x1a\n\0\0\0\0",
    ] {
        let detail = service.post("/v1/messages", body).problem(422);
        assert!(
            detail.contains("the mailbox") && !detail.contains("/tmp"),
            "{detail}"
        );
    }
}

/// Two mailboxes are read at the same time. A client that waits for each response must never find both places taken.
#[test]
fn client_that_waits_for_each_response_is_never_told_that_other_mailboxes_are_read() {
    let service = Service::start(&[]);
    let mailbox = mbox(1);
    for turn in 0..100 {
        let answer = service.post("/v1/messages", &mailbox);
        assert_eq!(answer.status, 200, "{turn}: {answer:?}");
        let answer = service.post("/v1/messages", b"%PDF-1.4 no mail");
        assert_eq!(answer.status, 422, "{turn}: {answer:?}");
    }
}

#[test]
fn damaged_mailbox_delivers_what_is_readable_and_names_the_rest() {
    let service = Service::start(&[]);
    let mut gz = GzEncoder::new(Vec::new(), Compression::none());
    gz.write_all(&mbox(200)).unwrap();
    let whole = gz.finish().unwrap();
    let (files, cut) = report(&service.post("/v1/messages", &whole[..whole.len() / 2]));
    assert!(files.len() > 50, "{}", files.len());
    assert_eq!(cut["damaged_count"], 1, "{cut}");
    let pst = pst();
    let answer = service.post("/v1/messages", &pst[..pst.len() / 2]);
    assert!([200, 422].contains(&answer.status), "{}", answer.status);
    if answer.status == 200 {
        assert!(report(&answer).1["damaged_count"].as_u64() > Some(0));
    }
}

#[test]
fn mailboxes_beyond_the_limit_are_refused_and_leave_nothing_in_the_spool() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("spool")).unwrap();
    let service = Service::start_in(folder, &["--max-mailbox", "10k", "--spool", "spool"]);
    assert!(
        service
            .post("/v1/messages", &mbox(500))
            .problem(413)
            .contains("--max-mailbox")
    );
    // Without an announced length, the limit is noticed while the body arrives.
    let mut body = String::new();
    let text = String::from_utf8(mbox(500)).unwrap();
    for piece in text.as_bytes().chunks(1000) {
        body += &format!(
            "{:x}\r\n{}\r\n",
            piece.len(),
            String::from_utf8_lossy(piece)
        );
    }
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nTransfer-Encoding: chunked\r\n\r\n",
        service.port
    );
    service
        .say(format!("{head}{body}0\r\n\r\n").as_bytes(), false)
        .problem(413);
    assert_eq!(service.post("/v1/messages", &mbox(3)).status, 200);
    let mut left = 1;
    for _ in 0..200 {
        left = fs::read_dir(service.path("spool")).unwrap().count();
        if left == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(left, 0);
}

#[test]
fn large_mailbox_needs_little_memory() {
    let service = Service::start(&["--jobs", "2"]);
    service.post("/v1/messages", &mbox(10));
    let before = service.peak();
    let mut mailbox = Vec::new();
    for number in 0..60 {
        mailbox.extend_from_slice(b"From a@example.org Sat Jan  3 01:05:34 1996\n");
        mailbox.extend_from_slice(&with_attachment(number, &octets(2_000_000, number)));
        mailbox.extend_from_slice(b"\n");
    }
    let answer = service.post("/v1/messages", &mailbox);
    assert_eq!(report(&answer).0.len(), 60);
    let more = service.peak() - before;
    assert!(more < 100 << 10, "{more} KiB for {} bytes", mailbox.len());
}

#[test]
fn client_that_goes_away_ends_the_reading_of_its_mailbox() {
    let service = Service::start(&[]);
    let body = mbox(200_000);
    for _ in 0..3 {
        let mut stream = service.connect();
        let head = format!(
            "POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: {}\r\n\r\n",
            service.port,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        // The service refuses the third mailbox if the others are still being read.
        let _ = stream.write_all(&body);
        let _ = stream.read_exact(&mut [0; 1000]);
    }
    // Both places for mailboxes are free again.
    for _ in 0..300 {
        if service.post("/v1/messages", &mbox(1)).status == 200 {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("the places of clients that are gone stay taken");
}
