//! Requests with one message: each verb, the fields of the response, and the report.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::common::archives::zip;
use crate::common::mail::{
    assert_bytes, changed_samples, mailboxes_of_two, singles_with_from_lines, with_url,
};
use crate::common::programs::{embody, fed};
use crate::common::reports;
use crate::common::serve::{Answer, Service, objects, octets, with_attachment};
use crate::common::tnef::usual;

fn digest(body: &[u8]) -> String {
    format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(body)))
}

#[track_caller]
fn assert_mail(answer: &Answer, mail: &[u8], changed: &str, left: &str) {
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.field("content-type"), Some("message/rfc822"));
    assert_eq!(answer.field("embody-changed"), Some(changed));
    assert_eq!(answer.field("embody-left"), Some(left));
    assert_eq!(answer.field("repr-digest"), Some(&*digest(&answer.body)));
    assert_bytes(&answer.body, mail, "the mail");
}

#[test]
fn filter_request_gives_the_bytes_of_the_command() {
    let service = Service::start(&[]);
    for sample in changed_samples() {
        let output = fed(embody().args(["filter", "--quiet"]), &sample.before);
        let answer = service.post("/v1/filter", &sample.before);
        assert_eq!(answer.status, 200, "{}", sample.name);
        assert_bytes(&answer.body, &output.stdout, &sample.name);
        let is_changed = output.stdout != sample.before;
        let expected = if is_changed { "1" } else { "0" };
        assert_eq!(answer.field("embody-changed"), Some(expected));
    }
}

#[test]
fn detached_mail_is_restored_byte_for_byte() {
    let service = Service::start(&[]);
    let mail = with_attachment(1, &octets(200_000, 1));
    let small = service.post("/v1/detach", &mail);
    assert_eq!(small.status, 200, "{small:?}");
    assert_eq!(small.field("embody-changed"), Some("1"));
    assert_eq!(small.field("embody-left"), Some("0"));
    assert!(small.body.len() < 3000, "{}", small.text());
    assert_eq!(objects(&service.path("store")).len(), 1);
    assert_mail(&service.post("/v1/restore", &small.body), &mail, "1", "0");
    // The command reads the same store.
    let store = service.path("store");
    let output = fed(
        embody().args(["restore", "--store"]).arg(&store),
        &small.body,
    );
    assert_bytes(&output.stdout, &mail, "restored by the command");
    // A small attachment stays, unless the request says otherwise.
    let mail = with_attachment(2, &octets(2000, 2));
    assert_mail(&service.post("/v1/detach", &mail), &mail, "0", "0");
    let small = service.post("/v1/detach?larger-than=1k&note=1", &mail);
    assert_eq!(small.field("embody-changed"), Some("1"));
    assert_mail(&service.post("/v1/restore", &small.body), &mail, "1", "0");
}

#[test]
fn mailbox_sent_to_a_request_for_one_message_gets_a_422_and_changes_nothing() {
    let service = Service::start(&[]);
    for (kind, mailbox) in mailboxes_of_two() {
        for path in [
            "/v1/filter",
            "/v1/embed",
            "/v1/recover",
            "/v1/detach?larger-than=1",
            "/v1/restore",
            "/v1/inspect",
        ] {
            let detail = service.post(path, &mailbox).problem(422);
            assert!(
                detail.contains("a mailbox with several messages")
                    && detail.contains("Send a mailbox to /v1/messages"),
                "{path}, {kind}: {detail}"
            );
        }
    }
    assert!(objects(&service.path("store")).is_empty());
    for (kind, message) in singles_with_from_lines() {
        let answer = service.post("/v1/filter", &message);
        assert_eq!(answer.status, 200, "{kind}: {answer:?}");
        assert_eq!(answer.field("embody-changed"), Some("1"), "{kind}");
    }
}

#[test]
fn restore_with_missing_object_counts_it_as_left() {
    let service = Service::start(&[]);
    let mail = with_attachment(3, &octets(150_000, 3));
    let small = service.post("/v1/detach", &mail).body;
    fs::remove_file(&objects(&service.path("store"))[0]).unwrap();
    assert_mail(&service.post("/v1/restore", &small), &small, "0", "1");
}

#[test]
fn multipart_answer_has_the_report_before_the_mail() {
    let service = Service::start(&[]);
    let mail = with_url("data:,hello", "Content-Type: text/plain");
    let fields = ["Accept: multipart/mixed, message/rfc822;q=0.5"];
    let answer = service.ask("POST", "/v1/filter", &fields, &mail);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.field("embody-changed"), Some("1"));
    assert_eq!(answer.field("repr-digest"), Some(&*digest(&answer.body)));
    let kind = answer.field("content-type").unwrap();
    let boundary = kind.strip_prefix("multipart/mixed; boundary=").unwrap();
    let text = answer.text();
    let parts: Vec<&str> = text.split(&format!("--{boundary}")).collect();
    let [_, report, whole, end] = parts[..] else {
        panic!("{text}");
    };
    assert_eq!(end, "--\r\n");
    let text = report.strip_prefix("\r\nContent-Type: application/json\r\n\r\n");
    let json = reports::object(text.unwrap().trim());
    assert_eq!(json["kind"], "report");
    assert_eq!(json["changed"], true);
    assert_eq!(json["rows"][0]["outcome"], "expanded");
    assert_eq!(json["rows"][0]["source"], "-");
    let (head, whole) = whole.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("Content-Type: message/rfc822"), "{head}");
    let plain = service.post("/v1/filter", &mail);
    assert_eq!(whole.strip_suffix("\r\n").unwrap(), plain.text());
    assert!(head.contains(plain.field("repr-digest").unwrap()), "{head}");
    // Without the media type, or with the quality 0, the answer is the mail.
    for accept in [
        "Accept: */*",
        "Accept: multipart/mixed;q=0",
        "Accept: text/plain",
    ] {
        let answer = service.ask("POST", "/v1/filter", &[accept], &mail);
        assert_eq!(answer.field("content-type"), Some("message/rfc822"));
    }
}

#[test]
fn inspect_request_gives_the_rows_of_the_command() {
    let service = Service::start(&[]);
    let mail = with_url("https://www.example.org/a", "Content-Type: text/plain");
    let answer = service.post("/v1/inspect", &mail);
    assert_eq!(answer.field("content-type"), Some("application/json"));
    let output = fed(embody().args(["inspect", "--json"]), &mail);
    let lines = String::from_utf8(output.stdout).unwrap();
    let (line, last) = lines.trim().split_once('\n').unwrap();
    let mut row = reports::object(line);
    let mut rows = answer.json()["rows"].clone();
    let mut survey = reports::object(last)["survey"].clone();
    // The service predicts the size after `detach` into its own store.
    survey["detach"]["base_url"] = answer.json()["survey"]["detach"]["base_url"].clone();
    assert_eq!(answer.json()["survey"], survey);
    row["time"] = "".into();
    rows[0]["time"] = "".into();
    // The options of both differ: the store of the service is a directory from which files may be read.
    row["detail"] = "".into();
    rows[0]["detail"] = "".into();
    let allowed = row.as_object_mut().unwrap().remove("allowed_by");
    assert_eq!(allowed, Some("--fetch https".into()));
    assert_eq!(rows, serde_json::json!([row]));
    assert!(service.post("/v1/inspect", b"Subject: x\n\n").json()["rows"] == serde_json::json!([]));
}

#[test]
fn inspect_request_counts_pictures_without_options_and_names_the_option_for_rows() {
    let mail = b"Subject: x\nMIME-Version: 1.0\nContent-Type: text/html\n\n<img src=https://a.example/1.png><img src=https://a.example/2.png><img src=https://a.example/t.gif width=1 height=1>\n";
    let service = Service::start(&[]);
    let answer = service.post("/v1/inspect", mail).json();
    assert_eq!(answer["rows"], serde_json::json!([]));
    assert_eq!(answer["survey"]["pictures"]["remote"], 2);
    assert_eq!(answer["survey"]["pictures"]["trackers"], 1);
    for (value, option) in [("remote", "remote"), ("remote,data", "data,remote")] {
        let refused = service.post(&format!("/v1/inspect?embed={value}"), mail);
        assert_eq!(refused.json()["parameter"], "embed");
        let detail = refused.problem(400);
        let advice = format!("start embody serve with --embed {option},");
        assert!(detail.contains(&advice), "{detail}");
    }
    let wide = service.post("/v1/inspect?max-body=1G", mail).problem(400);
    assert!(
        wide.contains("start embody serve with another value of --max-body"),
        "{wide}"
    );
    let embedding = Service::start(&["--embed", "remote", "--fetch", "https"]);
    let with_rows = embedding.post("/v1/inspect?embed=remote", mail).json();
    assert_eq!(
        with_rows["rows"].as_array().unwrap().len(),
        3,
        "{with_rows}"
    );
}

#[test]
fn messages_that_cannot_be_parsed_are_returned_unchanged() {
    let service = Service::start(&[]);
    for mail in [
        &b""[..],
        b"\0\0\0",
        b"no mail at all",
        b"Content-Type: multipart/mixed; boundary=\"\n\n--",
        b"\xff\xfe\xfd",
        // The start of an Outlook message, and of a winmail.dat.
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 and no more",
        b"\x78\x9f\x3e\x22 and no more",
        b"\x1f\x8b\x08 gzip",
    ] {
        for verb in ["filter", "embed", "recover", "detach", "restore"] {
            let answer = service.post(&format!("/v1/{verb}"), mail);
            assert_mail(&answer, mail, "0", "0");
        }
        // A survey of such a body would say that nothing is missing.
        let is_binary = mail.is_empty() || mail.starts_with(b"\0");
        let answer = service.post("/v1/inspect", mail);
        if is_binary {
            let detail = answer.problem(422);
            assert!(detail.contains("/v1/inspect reads one message"), "{detail}");
        } else {
            assert_eq!(answer.status, 200);
        }
    }
}

#[test]
fn body_with_messages_in_another_form_gets_a_422_that_names_the_form() {
    let service = Service::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let mail = with_attachment(4, &octets(150_000, 4));
    fs::write(folder.path().join("mail.eml"), &mail).unwrap();
    let made = |program: &str, arguments: &[&str], result: &str| {
        let status = Command::new(program)
            .args(arguments)
            .current_dir(folder.path())
            .status()
            .unwrap();
        assert!(status.success(), "{program}");
        fs::read(folder.path().join(result)).unwrap()
    };
    let utf16: Vec<u8> = "\u{feff}Subject: x\r\nFrom: a@example.org\r\n\r\nhello\r\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for (what, body) in [
        ("an archive", zip(&[("mail.eml", &mail)])),
        (
            "an archive",
            made("tar", &["-cf", "mail.tar", "mail.eml"], "mail.tar"),
        ),
        (
            "compressed with gzip",
            made("gzip", &["-k", "mail.eml"], "mail.eml.gz"),
        ),
        (
            "compressed with gzip",
            made("tar", &["-czf", "mail.tgz", "mail.eml"], "mail.tgz"),
        ),
        ("an Outlook mailbox", [&b"!BDN"[..], &[0; 600]].concat()),
        ("mail in UTF-16", utf16),
        ("a 7z archive", b"7z\xbc\xaf\x27\x1c\0\x04".to_vec()),
    ] {
        for verb in ["filter", "embed", "recover", "detach", "restore", "inspect"] {
            let detail = service.post(&format!("/v1/{verb}"), &body).problem(422);
            assert!(
                detail.contains(what) && detail.contains("reads only one message"),
                "{verb}, {what}: {detail}"
            );
            let is_readable = what != "a 7z archive";
            assert_eq!(
                detail.contains("Send the body to /v1/messages"),
                is_readable,
                "{verb}, {what}: {detail}"
            );
        }
    }
    for picture in [&b"\x89PNG\r\n\x1a\n and more"[..], b"%PDF-1.7\n"] {
        let detail = service.post("/v1/inspect", picture).problem(422);
        assert!(detail.contains("a picture, a document"), "{detail}");
        assert_mail(&service.post("/v1/filter", picture), picture, "0", "0");
    }
    assert!(objects(&service.path("store")).is_empty());
}

#[test]
fn outlook_message_becomes_a_mail() {
    let service = Service::start(&[]);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mailbox/outlook");
    let file = fs::read(folder.join("simple.msg")).unwrap();
    let output = fed(embody().args(["filter", "--quiet"]), &file);
    let answer = service.ask("POST", "/v1/filter", &["Content-Type: text/html"], &file);
    assert_mail(&answer, &output.stdout, "1", "0");
    assert!(answer.text().contains("Subject:"), "{}", answer.text());
}

#[test]
fn winmail_file_becomes_a_mail() {
    let service = Service::start(&[]);
    let file = usual();
    let answer = service.post("/v1/filter", &file);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.field("embody-changed"), Some("1"), "{answer:?}");
    assert!(answer.text().contains("Hello"), "{}", answer.text());
}

#[test]
fn content_comes_from_the_network_only_with_fetch() {
    let service = Service::start(&[]);
    let picture = b"Content-Type: text/html\n\n<img src=\"http://127.0.0.1:1/a.png\">\n";
    for verb in ["filter", "embed", "recover"] {
        let answer = service.post(&format!("/v1/{verb}"), picture);
        assert_eq!(answer.status, 200);
        assert_eq!(answer.field("embody-changed"), Some("0"), "{verb}");
    }
    let answer = service.post("/v1/embed?fetch=http", picture);
    assert!(answer.problem(400).contains("fetch"), "{answer:?}");
    let html = b"Content-Type: text/html\n\n<img src=\"data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==\">\n";
    let answer = service.post("/v1/embed", html);
    assert_eq!(
        answer.field("embody-changed"),
        Some("1"),
        "{}",
        answer.text()
    );
}

#[test]
fn temporary_failure_with_defer_is_a_503_with_retry_after() {
    let service = Service::start(&[
        "--fetch=http",
        "--allow-net=127.0.0.0/8",
        "--allow-port=1",
        "--timeout=2s",
    ]);
    let mail = with_url("http://127.0.0.1:1/x", "Content-Type: text/plain");
    assert_mail(&service.post("/v1/filter", &mail), &mail, "0", "1");
    let answer = service.post("/v1/filter?on-failure=defer", &mail);
    assert!(answer.problem(503).contains("again"), "{answer:?}");
    assert!(answer.field("retry-after").is_some());
}

#[test]
fn report_option_appends_the_rows_of_each_request() {
    let service = Service::start(&["--report", "rows.jsonl"]);
    let mail = with_url("data:,hello", "Content-Type: text/plain");
    service.post("/v1/filter", &mail);
    service.post("/v1/filter", &mail);
    let rows = fs::read_to_string(service.path("rows.jsonl")).unwrap();
    assert_eq!(rows.lines().count(), 2, "{rows}");
}

#[test]
fn nothing_is_logged_for_a_request_without_verbose() {
    let service = Service::start(&[]);
    service.post("/v1/filter", b"Subject: x\n\n");
    service.get("/nothing");
    assert_eq!(service.log().lines().count(), 1, "{}", service.log());
    let service = Service::start(&["--verbose"]);
    service.post("/v1/filter?links=keep", b"Subject: x\n\n");
    assert!(
        service.log().contains("POST /v1/filter: 200"),
        "{}",
        service.log()
    );
}

#[test]
fn signal_finishes_the_request_that_has_begun_and_ends_with_status_0() {
    use std::io::Write as _;
    let mut service = Service::start(&["--deadline", "30s"]);
    let mail = with_attachment(9, &octets(300_000, 9));
    let mut stream = service.connect();
    let head = format!(
        "POST /v1/detach HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: {}\r\n\r\n",
        service.port,
        mail.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&mail[..1000]).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    service.signal("TERM");
    std::thread::sleep(Duration::from_millis(300));
    let answer = service.get("/healthz");
    assert!(answer.problem(503).contains("stopped"), "{answer:?}");
    stream.write_all(&mail[1000..]).unwrap();
    let answer = crate::common::serve::answer(&mut stream, false).unwrap();
    assert_eq!((answer.status, answer.is_whole), (200, true));
    assert_eq!(answer.field("embody-changed"), Some("1"));
    drop(stream);
    assert_eq!(service.status(), Some(0));
    assert!(
        service.log().contains("stopped by SIGTERM"),
        "{}",
        service.log()
    );
}

#[test]
fn stop_waits_at_most_the_deadline() {
    use std::io::Write as _;
    let mut service = Service::start(&["--deadline", "1s"]);
    let mut stream = service.connect();
    let head = format!(
        "POST /v1/filter HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: 100\r\n\r\nS",
        service.port
    );
    stream.write_all(head.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    service.signal("TERM");
    assert_eq!(service.status(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(15));
}

#[test]
fn metrics_count_requests_messages_and_connections() {
    let service = Service::start(&[]);
    let mail = with_url("data:,hello", "Content-Type: text/plain");
    service.post("/v1/filter", &mail);
    service.post("/v1/filter", b"Subject: x\n\n");
    service.post("/v1/filter?nonsense=1", b"Subject: x\n\n");
    let text = service.get("/metrics").text();
    for line in [
        "embody_serve_requests_total{path=\"/v1/filter\",status=\"200\"} 2",
        "embody_serve_requests_total{path=\"/v1/filter\",status=\"400\"} 1",
        "embody_serve_messages_total{verb=\"filter\",outcome=\"changed\"} 1",
        "embody_serve_messages_total{verb=\"filter\",outcome=\"unchanged\"} 1",
        "embody_serve_connections_total 4",
        "embody_serve_processing_seconds_count 3",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line} in {text}");
    }
}

#[test]
fn killed_service_has_stored_every_object_that_a_response_refers_to() {
    for round in 0..4 {
        let folder = tempfile::tempdir().unwrap();
        let service = Service::start_in(folder, &[]);
        let answers: Vec<Vec<u8>> = std::thread::scope(|scope| {
            let asking: Vec<_> = (0..8)
                .map(|thread| {
                    let service = &service;
                    scope.spawn(move || {
                        let mut answers = Vec::new();
                        for number in 0.. {
                            let seed = 1000 * thread + number;
                            let mail = with_attachment(seed, &octets(3000, seed));
                            match service.try_post("/v1/detach?larger-than=1k", &mail) {
                                Some(answer) if answer.is_whole && answer.status == 200 => {
                                    answers.push(answer.body);
                                }
                                _ => return answers,
                            }
                        }
                        answers
                    })
                })
                .collect();
            std::thread::sleep(Duration::from_millis(300 + 150 * round));
            service.signal("KILL");
            let answers = asking.into_iter().flat_map(|thread| thread.join().unwrap());
            answers.collect()
        });
        assert!(!answers.is_empty());
        let store = service.path("store");
        for answer in &answers {
            let output = fed(
                embody().args(["restore", "--quiet", "--store"]).arg(&store),
                answer,
            );
            assert!(output.status.success());
            assert!(
                !output
                    .stdout
                    .windows(16)
                    .any(|it| it == b"X-Embody-Detache"),
                "an object is missing"
            );
        }
    }
}
