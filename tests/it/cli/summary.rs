//! The summary at the end of a run over mailboxes: by reason, with the status of servers, short enough for one or two screens.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;

use crate::common::programs::{embody, stderr};
use crate::common::raw::{Raw, ok};

#[test]
fn a_run_over_3000_messages_says_in_60_lines_what_was_left_and_why() {
    let server = Raw::http(|path, stream| {
        let status: u16 = path.trim_start_matches('/').parse().unwrap_or(200);
        let answer = match status {
            200 => ok("text/plain", b"here"),
            _ => format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                .into_bytes(),
        };
        let _ = stream.write_all(&answer);
    });
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("in")).unwrap();
    let mut mailbox = String::new();
    for number in 0..3_000 {
        // Some statuses are frequent, and many occur once. Names and schemes are as a malicious sender may choose them.
        let url = match number % 10 {
            0 => server.url("/fine"),
            1..=4 => server.url("/404"),
            5 => server.url("/410"),
            6 => server.url("/403"),
            7 => server.url(&format!("/{}", 400 + number / 10 % 150)),
            8 => format!("https://host{number}.example/"),
            _ => format!("scheme{number}://a.example/"),
        };
        let _ = write!(
            mailbox,
            "From a@b Mon Jul  6 10:00:00 2015\nSubject: {number}\nMIME-Version: 1.0\nContent-Type: message/external-body; access-type=URL; URL=\"{url}\"\n\nContent-Type: text/plain\n\n\n"
        );
    }
    fs::write(at("in/box"), mailbox).unwrap();
    for (number, start) in [
        "%PDF-1.7",
        "SQLite format 3\0",
        "GIF89a",
        "text",
        "{}",
        "\u{0}\u{0}",
    ]
    .iter()
    .enumerate()
    {
        fs::write(at(&format!("in/{number}")), start).unwrap();
    }
    let port = server.address.port().to_string();
    let convert = |options: &[&str]| {
        let output = embody()
            .arg("convert")
            .arg(at("in"))
            .args(options)
            .args([
                "--fetch",
                "http",
                "--allow-net",
                "127.0.0.0/8",
                "--allow-port",
                &port,
                "--no-resume",
            ])
            .output()
            .unwrap();
        stderr(&output)
    };
    let out = at("out").display().to_string();
    let said = convert(&["--output", &out]);
    assert!(
        said.lines().count() <= 60,
        "{}: {said}",
        said.lines().count()
    );
    // The summary consists of sentences: first the successes, then the failures with their reasons.
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("embody: 3000 messages read"), "{said}");
    assert!(lines[0].ends_with(", 300 changed."), "{said}");
    let references = "300 attachments put into the mail. 2700 could not be: ";
    assert!(lines[1].starts_with(references), "{said}");
    // Statuses from the long list are counted, too.
    for reason in [
        "1202 gone (404)",
        "302 gone (410)",
        "302 forbidden (403)",
        "not allowed by --fetch",
    ] {
        assert!(lines[1].contains(reason), "{reason}: {said}");
    }
    assert!(lines[1].ends_with(" for other reasons."), "{said}");
    assert!(
        said.contains("6 files contain no mail and were skipped."),
        "{said}"
    );
    assert!(said.contains("--fetch http,https would allow "), "{said}");
    assert!(!said.contains("outcome "), "{said}");
    // Tables are printed only with --verbose.
    let verbose = at("verbose").display().to_string();
    let said = convert(&["--verbose", "--output", &verbose]);
    let count = |line: &str| {
        let found = said.lines().find(|it| it.ends_with(line));
        found
            .unwrap_or_else(|| panic!("{said}"))
            .split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    assert_eq!(count("  expanded"), 300);
    assert_eq!(count("  unchanged: http-status 404"), 1_202);
    let others = said
        .lines()
        .rfind(|line| line.starts_with("outcome "))
        .unwrap();
    assert!(
        others.contains(" in ") && others.ends_with(" more rows"),
        "{said}"
    );
    // The hosts with the most failures are listed.
    let worst = said.lines().filter(|line| line.starts_with("not from "));
    assert!((2..=6).contains(&worst.count()), "{said}");
    // --quiet prints no summary.
    let quiet = at("quiet").display().to_string();
    assert_eq!(convert(&["--quiet", "--output", &quiet]), "");
}
