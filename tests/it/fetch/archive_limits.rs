//! `--archive` with an archive that limits its clients: 429 as the Wayback Machine sends it, and the number of requests.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::common::filter::{filled, filter, filter_at, mail, open, reference};
use crate::common::programs::{embody, free_port, stderr};
use crate::common::raw::{Raw, ok};
use crate::common::reports;

const TOO_MANY: &str = "HTTP/1.1 429 Too Many Requests\r\nServer: nginx\r\nContent-Type: text/html\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// A port of this machine on which no server listens, in place of the original sources. Some resolvers return an address for
/// every name, so a name could not be used.
static GONE: LazyLock<u16> = LazyLock::new(free_port);

fn options(server: &Raw) -> String {
    format!(
        "{} --archive http://{}/web/{{date}}id_/{{url}}",
        open(&[server.address.port(), *GONE]),
        server.address
    )
}

/// Returns a mail with this number of texts on a host that is gone.
fn letter(name: &str, texts: usize) -> Vec<u8> {
    let parts: Vec<String> = (0..texts)
        .map(|text| reference(&url(name, text), "text/plain"))
        .collect();
    dated(&parts)
}

fn dated(parts: &[String]) -> Vec<u8> {
    let date = b"Date: Fri, 02 May 2003 10:11:12 +0000\n".to_vec();
    [date, mail(parts)].concat()
}

fn url(name: &str, text: usize) -> String {
    format!("http://127.0.0.1:{}/{name}/{text}", *GONE)
}

fn write_mailbox(file: &Path, mails: usize) {
    let mails = (0..mails).flat_map(|number| {
        let from = b"From a@example.org Fri May  2 10:11:12 2003\n".to_vec();
        [from, letter(&number.to_string(), 1), b"\n\n".to_vec()].concat()
    });
    fs::write(file, mails.collect::<Vec<u8>>()).unwrap();
}

#[test]
fn within_the_pause_after_a_429_nobody_asks() {
    for answer in [
        TOO_MANY.to_owned(),
        TOO_MANY.replacen("\r\n", "\r\nRetry-After: 5\r\n", 1),
        TOO_MANY.replacen("\r\n", "\r\nRetry-After: 300\r\n", 1),
        TOO_MANY
            .replacen("429 Too Many Requests", "503 Unavailable", 1)
            .replacen("\r\n", "\r\nRetry-After: 1\r\n", 1),
    ] {
        let server = Raw::saying(answer);
        let folder = tempfile::tempdir().unwrap();
        let here = |name: &str| folder.path().join(name);
        write_mailbox(&here("in.mbox"), 20);
        let begun = Instant::now();
        let output = embody()
            // The time limit of a mail is shorter than the pause.
            .args([
                "convert",
                "--quiet",
                "--max-in-flight",
                "1",
                "--deadline",
                "30s",
            ])
            .args(options(&server).split(' '))
            .arg("--report")
            .arg(here("report"))
            .arg(here("in.mbox"))
            .arg("--output")
            .arg(here("out.mbox"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(server.count(), 1, "asked within the pause");
        assert!(begun.elapsed() < Duration::from_secs(25), "it waited");
        assert!(fs::read(here("out.mbox")).unwrap() == fs::read(here("in.mbox")).unwrap());
        let report = fs::read_to_string(here("report")).unwrap();
        let reasons: Vec<String> = report
            .lines()
            .map(|line| reports::object(line)["reason"].to_string())
            .collect();
        assert_eq!(reasons.len(), 20, "{report}");
        let busy = reasons
            .iter()
            .filter(|reason| *reason == "\"archive-busy\"")
            .count();
        assert!(busy >= 19, "{reasons:?}");
    }
}

#[test]
fn a_busy_archive_is_a_temporary_failure_and_the_cache_knows_of_the_pause() {
    const TEST: &str = "a_busy_archive_is_a_temporary_failure_and_the_cache_knows_of_the_pause";
    let server = Raw::saying(TOO_MANY);
    let mail = letter("a", 1);
    let ran = filter(&options(&server), &mail);
    ran.leaves(&mail, &["archive-busy"]);
    let ran = filter(&format!("{} --on-failure defer", options(&server)), &mail);
    assert_eq!(ran.code, Some(75), "{}", ran.stderr);
    let folder = tempfile::tempdir().unwrap();
    let cached = format!(
        "{} --cache {}",
        options(&server),
        folder.path().join("c").display()
    );
    filter(&cached, &mail).leaves(&mail, &["archive-busy"]);
    // For a minute, other processes send no requests, either.
    let count = server.count();
    let other = letter("b", 2);
    filter(&cached, &other).leaves(&other, &["archive-busy", "archive-busy"]);
    assert_eq!(server.count(), count, "asked within the pause");
    if let Some(ran) = filter_at(TEST, "+70s", &cached, &other) {
        assert!(ran.stdout == other, "{}", ran.stderr);
        assert!(server.count() > count, "{}", ran.stderr);
    }
}

#[test]
fn a_429_that_was_captured_is_no_pause_and_eight_are_asked_in_a_second() {
    let server = Raw::http(|path, stream| {
        let captured = "\r\nMemento-Datetime: Thu, 01 May 2003 00:00:00 GMT\r\n";
        let answer = if path.ends_with("/3") {
            TOO_MANY.replacen("\r\n", captured, 1).into_bytes()
        } else {
            String::from_utf8(ok("text/plain", b"of then"))
                .unwrap()
                .replacen("\r\n", captured, 1)
                .into_bytes()
        };
        let _ = stream.write_all(&answer);
    });
    let parts: Vec<String> = (0..17)
        .map(|text| match text {
            3 => reference(&url("a", text), "text/plain"),
            _ => filled(Some(&url("a", text)), "text/plain", b"of then"),
        })
        .collect();
    let ran = filter(&options(&server), &letter("a", 17));
    ran.gives(&dated(&parts));
    assert_eq!(ran.column("reason")[3], "not-archived", "{}", ran.stderr);
    assert_eq!(server.count(), 17);
    assert!(ran.took >= Duration::from_secs(2), "{:?}", ran.took);
}

#[test]
fn an_archive_that_is_away_is_tried_once() {
    let port = free_port();
    let options = format!(
        "{} --archive http://127.0.0.1:{port}/web/{{date}}id_/{{url}} --on-failure defer",
        open(&[port, *GONE])
    );
    let mail = letter("a", 5);
    let ran = filter(&options, &mail);
    assert_eq!(ran.code, Some(75), "{}", ran.stderr);
    let options = options.replace(" --on-failure defer", "");
    let ran = filter(&options, &mail);
    assert!(ran.stdout == mail);
    assert!(ran.took < Duration::from_secs(30), "{:?}", ran.took);
}

#[test]
fn answer_without_a_valid_capture_is_refused_as_not_archived() {
    let server = Raw::http(|path, stream| {
        let answer = match path.rsplit('/').next() {
            // A page of the archive itself, which is not a capture.
            Some("0") => ok("text/plain", b"please log in"),
            Some("1") => b"HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
            Some("2") => b"HTTP/1.1 302 Found\r\nLocation: http://gone.example/a/9\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
            Some("3") => b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
            _ => b"HTTP/1.1 200 OK\r\nMemento-Datetime: soon\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx".to_vec(),
        };
        let _ = stream.write_all(&answer);
    });
    let mail = letter("a", 5);
    filter(&options(&server), &mail).leaves(&mail, &["not-archived"; 5]);
    assert_eq!(server.count(), 5, "{:?}", server.heads());
    // A wrong option delays the mail of a filter, and is reported.
    for wrong in [
        "--archive http://web.example/{url}",
        "--archive-first",
        "--archive-window 90d --archive http://web.example/{date}/{url}",
        "--archive-cdx http://web.example/ --archive http://web.example/{date}/{url}",
        "--archive-window 1d,1d",
    ] {
        let ran = filter(wrong, &mail);
        assert_eq!(ran.code, Some(75), "{wrong}: {}", ran.stderr);
        assert!(ran.stdout.is_empty());
    }
}

#[test]
fn secret_redirect_target_of_a_capture_is_not_requested() {
    let secret = "http://o.example/9e107d9d372bb6826bd81d3542a419d6";
    let server = Raw::http(move |path, stream| {
        let answer = match path.split('/').next_back() {
            Some("0") => format!(
                "HTTP/1.1 302 Found\r\nMemento-Datetime: Thu, 01 May 2003 00:00:00 GMT\r\n\
                 Location: {secret}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
            .into_bytes(),
            _ => String::from_utf8(ok("text/plain", b"of then"))
                .unwrap()
                .replacen(
                    "\r\n",
                    "\r\nMemento-Datetime: Thu, 01 May 2003 00:00:00 GMT\r\n",
                    1,
                )
                .into_bytes(),
        };
        let _ = stream.write_all(&answer);
    });
    let mail = letter("a", 1);
    filter(&options(&server), &mail).leaves(&mail, &["secret-url"]);
    assert_eq!(server.count(), 1, "{:?}", server.heads());
    let any = format!("{} --archive-any", options(&server));
    filter(&any, &mail).gives(&dated(&[filled(Some(secret), "text/plain", b"of then")]));
}
