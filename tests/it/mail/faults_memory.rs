//! With too little memory or stack, `filter` ends with a complete message and status 0, or with no output and status 75. The
//! library needs no more stack than a small thread has.
#![cfg(unix)]

use std::process::{Command, Output};

use crate::common::mail::{self, expanding, with_url};
use crate::common::programs::{embody, fed, program, skipped, stderr};
use crate::common::raw::{Raw, ok};

const TRY_AGAIN: Option<i32> = Some(75);
/// Address space of a process, in bytes.
const LITTLE: u64 = 256 << 20;

/// Returns a command that runs the program under `prlimit`.
fn limited(test: &str, limit: &str) -> Option<Command> {
    let Some(prlimit) = program("prlimit") else {
        skipped(test, "prlimit");
        return None;
    };
    let mut command = Command::new(prlimit);
    command.arg(limit).arg(env!("CARGO_BIN_EXE_embody"));
    Some(command)
}

/// Asserts that the status is 0 with the same output as without the limit, or 75 without output. Returns true in the first
/// case.
#[track_caller]
fn good_or_later(limited: &Output, free: &Output, what: &str) -> bool {
    assert_eq!(free.status.code(), Some(0), "{what}: {}", stderr(free));
    if limited.status.code() == Some(0) {
        assert!(
            limited.stdout == free.stdout,
            "{what}: success with other output"
        );
        return true;
    }
    assert_eq!(
        limited.status.code(),
        TRY_AGAIN,
        "{what}: {:?} {}",
        limited.status,
        stderr(limited)
    );
    assert!(limited.stdout.is_empty(), "{what}: half a message");
    assert!(!limited.stderr.is_empty(), "{what}: nothing was said");
    false
}

const HEADER: &str = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n";
const REFERENCE: &str =
    "Content-Type: message/external-body; access-type=URL; URL=\"data:,x\"\n\n\n--b";

/// The kinds of work that a mail requires.
const WAYS: [&str; 6] = [
    "nothing to do",
    "a reference first",
    "a reference last",
    "a large data: URL",
    "many links",
    "a large part several times",
];

/// Returns a mail of about this size in bytes, for one of [`WAYS`].
fn large_mail(way: &str, octets: usize) -> Vec<u8> {
    let lines = |line: &str| line.repeat(octets / line.len());
    let filling = || lines("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n");
    let symbols = "\n AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4v";
    let copies = [REFERENCE.replace("data:,x", "cid:a@x").as_str(); 3].join("\n");
    match way {
        "nothing to do" => format!("Subject: x\n\n{}", filling()),
        "a reference first" => format!("{HEADER}{REFERENCE}\n\n{}\n--b--\n", filling()),
        "a reference last" => format!("{HEADER}\n{}\n--b\n{REFERENCE}--\n", filling()),
        "a large data: URL" => {
            return with_url(&format!("data:image/png;base64,{}", lines(symbols)), "");
        }
        "many links" => format!(
            "Content-Type: text/html\nContent-Base: http://www.example.org/a/\n\n{}",
            lines(&format!("{}<a href=b>c</a>\n", "text ".repeat(50)))
        ),
        _ => format!(
            "{HEADER}Content-ID: <a@x>\n\n{}\n--b\n{copies}--\n",
            filling()
        ),
    }
    .into_bytes()
}

#[test]
fn with_little_memory_a_mail_is_written_whole_or_deferred() {
    const TEST: &str = "with_little_memory_a_mail_is_written_whole_or_deferred";
    let options = ["filter", "--quiet", "--max-body=1G", "--max-growth=1G"];
    let rows = [
        (LITTLE, 1 << 20, &WAYS[..]),
        (64 << 20, 8 << 20, &WAYS[..]),
        (LITTLE, 160 << 20, &WAYS[2..3]),
    ];
    let (mut good, mut later) = (0, 0);
    for (limit, octets, ways) in rows {
        for way in ways {
            let mail = large_mail(way, octets);
            let Some(mut little) = limited(TEST, &format!("--as={limit}")) else {
                return;
            };
            let little = fed(little.args(options), &mail);
            let free = fed(embody().args(options), &mail);
            let what = format!("{way}, {octets} octets");
            if good_or_later(&little, &free, &what) {
                good += 1;
            } else {
                later += 1;
            }
            let small = mail.len() < 2 << 20;
            assert!(!small || later == 0, "{what}: {}", stderr(&little));
        }
    }
    eprintln!("{good} whole, {later} later");
    assert!(good > 6 && later > 0, "{good} whole, {later} later");
}

#[test]
fn with_hardly_any_memory_nothing_is_lost_either() {
    const TEST: &str = "with_hardly_any_memory_nothing_is_lost_either";
    let mail = expanding();
    let free = fed(embody().arg("filter"), &mail);
    let mut later = 0;
    for megabytes in (2..40).step_by(2) {
        let Some(mut little) = limited(TEST, &format!("--as={}", megabytes << 20)) else {
            return;
        };
        let little = fed(little.arg("filter"), &mail);
        // If there is no memory for its libraries, the loader does not start the program.
        if little.status.code() == Some(127) || stderr(&little).contains("shared librar") {
            assert!(little.stdout.is_empty());
            continue;
        }
        if little.status.code().is_none() {
            // The kernel killed the program while it was loading.
            assert!(little.stdout.is_empty(), "{megabytes} MB: {little:?}");
            later += 1;
            continue;
        }
        later += usize::from(!good_or_later(&little, &free, &format!("{megabytes} MB")));
    }
    eprintln!("{later} of 19 were put off");
}

#[test]
fn mail_with_retrieved_bodies_is_whole_or_deferred_with_little_memory() {
    const TEST: &str = "mail_with_retrieved_bodies_is_whole_or_deferred_with_little_memory";
    let answer = ok("application/octet-stream", &vec![b'x'; 8 << 20]);
    let server = Raw::saying(answer);
    let port = server.address.port().to_string();
    for references in [1, 6, 24] {
        let parts: String = (0..references)
            .map(|number| {
                let url = server.url(&format!("/{number}"));
                REFERENCE.replace("data:,x", &url) + "\n"
            })
            .collect();
        let parts = parts.strip_suffix("\n").unwrap();
        let mail = format!("{HEADER}{parts}--\n").into_bytes();
        let options = [
            "filter",
            "--quiet",
            "--fetch=http",
            "--allow-net=127.0.0.0/8",
            "--allow-port",
            &port,
            "--max-growth=1G",
        ];
        let Some(mut little) = limited(TEST, &format!("--as={LITTLE}")) else {
            return;
        };
        let little = fed(little.args(options), &mail);
        let free = fed(embody().args(options), &mail);
        assert!(free.stdout.len() > references * (8 << 20));
        let good = good_or_later(&little, &free, &format!("{references} references"));
        assert!(good || references > 1);
    }
}

/// Tests the recursion of all libraries, too: messages nested as deeply as the limit permits, unclosed boundaries, and style
/// sheets and markup that consist of brackets.
#[test]
fn the_library_runs_on_a_small_stack() {
    let nested = |step: &str, levels: usize| -> String {
        (0..levels)
            .map(|level| step.replace('#', &level.to_string()))
            .collect()
    };
    let octets = expanding();
    let reference = String::from_utf8_lossy(&octets);
    let html = "Content-Type: text/html\nContent-Base: http://www.example.org/\n\n";
    let mails = [
        nested(
            "Content-Type: multipart/mixed; boundary=b#\n\n--b#\n",
            5_000,
        ),
        nested("Content-Type: message/rfc822\n\n", 5_000),
        nested("Content-Type: message/rfc822\n\n", 20) + &reference,
        nested("Content-Type: multipart/mixed; boundary=c#\n\n--c#\n", 40) + &reference,
        format!("{html}<a href=x>{}", "<b><style>a{b:url(y)}".repeat(20_000)),
        format!("{html}<style>{}url(x)", "a{b:(".repeat(20_000)),
        format!("{html}{}<a href=x>", "<!--[if x]>".repeat(20_000)),
        with_external_chain(2_000),
        format!(
            "Content-Type: {}text/html\n\n<a href=x>",
            "(".repeat(20_000)
        ),
    ];
    let expected: Vec<(Vec<u8>, usize)> = mails
        .iter()
        .map(|mail| mail::expand(mail.as_bytes()))
        .map(|(output, report)| (output, report.rows.len()))
        .collect();
    assert!(expected.iter().filter(|(_, rows)| *rows > 0).count() >= 5);
    let small = std::thread::Builder::new().stack_size(64 << 10);
    let there = small
        .spawn(move || {
            mails
                .iter()
                .map(|mail| mail::expand(mail.as_bytes()))
                .map(|(output, report)| (output, report.rows.len()))
                .collect::<Vec<_>>()
        })
        .unwrap()
        .join()
        .unwrap();
    assert!(there == expected);
}

/// Returns a chain of Content-IDs that leads to a text at its end.
fn with_external_chain(length: usize) -> String {
    let links: String = (0..length)
        .map(|number| {
            format!(
                "--b\nContent-ID: <{number}@x>\nContent-Type: message/external-body;\n access-type=URL; URL=\"cid:{}@x\"\n\n\n",
                number + 1
            )
        })
        .collect();
    format!(
        "Content-Type: multipart/mixed; boundary=b\n\n{links}--b\nContent-ID: <{length}@x>\n\nend\n--b--\n"
    )
}
