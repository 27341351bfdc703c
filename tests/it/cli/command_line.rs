//! The command line: exit statuses, complete output or none, and the standard streams.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::bounded::ended;
use crate::common::mail::{self, assert_bytes, expanding, with_external_body, with_url};
use crate::common::programs::{embody, fed, stderr};
use crate::common::reports;

const TRY_AGAIN: Option<i32> = Some(75);

fn run(arguments: &[&str], input: &[u8]) -> Output {
    fed(embody().args(arguments), input)
}

fn spooled(write: impl FnOnce(&mut File)) -> File {
    let mut file = tempfile::tempfile().unwrap();
    write(&mut file);
    file.seek(SeekFrom::Start(0)).unwrap();
    file
}

#[test]
fn every_sample_runs_as_a_filter() {
    for sample in mail::changed_samples() {
        let output = run(&["filter"], &sample.before);
        assert_eq!(output.status.code(), Some(0), "{}", sample.name);
        assert_bytes(&output.stdout, &sample.after, &sample.name);
        assert!(stderr(&output).contains(": expanded: "), "{}", sample.name);
    }
}

#[test]
fn message_without_references_is_unchanged() {
    let external = |newline: &str| {
        with_external_body("access-type=mail-server", "Content-Type: text/plain\n")
            .split(|&byte| byte == b'\n')
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect::<Vec<_>>()
            .join(newline)
            .into_bytes()
    };
    let nested: String = (0..10_000)
        .map(|depth| format!("Content-Type: multipart/mixed; boundary=b{depth}\n\n--b{depth}\n"))
        .collect();
    let parts = format!(
        "Content-Type: multipart/mixed; boundary=b\n\n{}--b--\n",
        "--b\nContent-Type: message/external-body\n\n\n".repeat(100_000)
    );
    let mixed = external("\n")
        .split_inclusive(|&byte| byte == b'\n')
        .enumerate()
        .flat_map(|(at, line)| {
            if at % 2 == 0 {
                mail::crlf(line)
            } else {
                line.to_vec()
            }
        })
        .collect();
    let mut messages: Vec<(&str, Vec<u8>)> = vec![
        ("LF", external("\n")),
        ("CRLF", external("\r\n")),
        ("mixed line ends", mixed),
        ("bare CR", external("\r")),
        ("no final newline", external("\n").trim_ascii_end().to_vec()),
        (
            "8-bit header",
            b"Subject: \xff\xe4\xfc\nContent-Type: message/external-body; access-type=\xff\n\n"
                .to_vec(),
        ),
        (
            "NULs",
            b"A: \0\nContent-Type: message/external-body\0\n\n\0\0\0".to_vec(),
        ),
        ("empty", Vec::new()),
        ("one newline", b"\n".to_vec()),
        (
            "nested",
            [nested.as_bytes(), b"message/external-body"].concat(),
        ),
        ("many parts", parts.into_bytes()),
        (
            "a header line of 5 MB",
            format!(
                "Content-Type: message/external-body; x=\"{}\"\n\n",
                "y".repeat(5_000_000)
            )
            .into_bytes(),
        ),
        (
            "a header of 5 MB",
            format!(
                "Subject: {}\nContent-Type: message/external-body\n\n",
                "yyyyyyyyy\n ".repeat(500_000)
            )
            .into_bytes(),
        ),
    ];
    messages.extend(
        mail::untouched_samples()
            .into_iter()
            .map(|sample| ("sample", sample.before)),
    );
    for (name, message) in messages {
        let started = Instant::now();
        let output = run(&["filter", "--quiet"], &message);
        assert_eq!(output.status.code(), Some(0), "{name}");
        assert!(output.stdout == message, "{name}");
        assert!(output.stderr.is_empty(), "{name}: {}", stderr(&output));
        let took = started.elapsed();
        assert!(took < Duration::from_secs(20), "{name} took {took:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_body_of_300_mb_passes_in_little_memory() {
    const LINE: &[u8] =
        b"VGhpcyBsaW5lIGlzIG9uZSBvZiBtYW55IGluIGEgbGFyZ2UgYXR0YWNobWVudCwgbm8gbW9yZQ==\n";
    let header =
        b"MIME-Version: 1.0\nContent-Type: application/x\nContent-Transfer-Encoding: base64\n\n";
    let block = LINE.repeat(10_000);
    let blocks = 300_000_000 / block.len();
    let input = spooled(|file| {
        file.write_all(header).unwrap();
        for _ in 0..blocks {
            file.write_all(&block).unwrap();
        }
    });
    let mut child = embody()
        .arg("filter")
        .stdin(input)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut front = vec![0; header.len()];
    stdout.read_exact(&mut front).unwrap();
    assert!(front == header);
    let mut read = vec![0; block.len()];
    for at in 0..blocks {
        if at + 1 == blocks {
            // The process is still running, because the rest of its output was not read yet.
            let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
            let peak = status
                .lines()
                .find(|line| line.starts_with("VmHWM:"))
                .unwrap();
            let kilobytes: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
            assert!(kilobytes < 64 << 10, "{peak}");
        }
        stdout.read_exact(&mut read).unwrap();
        assert!(read == block, "block {at}");
    }
    assert_eq!(stdout.read(&mut read).unwrap(), 0);
    assert_eq!(ended(&mut child).code(), Some(0));
}

/// Returns the shortest of three run times, so that a busy machine does not affect the result.
fn fastest(message: &[u8]) -> Duration {
    (0..3)
        .map(|_| {
            let started = Instant::now();
            let (output, _) = mail::expand(message);
            assert!(!output.is_empty());
            started.elapsed()
        })
        .min()
        .unwrap()
}

#[test]
fn twice_the_size_takes_at_most_about_twice_the_time() {
    let multipart = |parts: String| {
        format!("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n{parts}--b--\n")
    };
    type Shape<'s> = (&'s str, usize, &'s dyn Fn(usize) -> String);
    let shapes: [Shape<'_>; 9] = [
        ("parts", 2_000, &|n| {
            multipart(
                "--b\nContent-Type: message/external-body; access-type=URL; URL=\"data:,x\"\n\n\n"
                    .repeat(n),
            )
        }),
        ("references by id", 1_500, &|n| {
            let references: String = (0..n)
                .map(|at| format!("--b\nContent-ID: <{at}@x>\nContent-Type: message/external-body; access-type=URL; URL=\"cid:{}@x\"\n\n\n", at + 1))
                .collect();
            multipart(references)
        }),
        ("almost boundaries", 60_000, &|n| {
            multipart(format!(
                "--b\nContent-Type: message/external-body\n\n{}\n",
                "--bb\n".repeat(n)
            ))
        }),
        ("dashes", 300_000, &|n| {
            multipart(format!(
                "--b\nContent-Type: message/external-body\n\n{}\n",
                "\n--".repeat(n)
            ))
        }),
        ("nesting", 3_000, &|n| {
            let nested: String = (0..n)
                .map(|at| format!("Content-Type: multipart/mixed; boundary=b{at}\n\n--b{at}\n"))
                .collect();
            nested + "Content-Type: message/external-body\n\n"
        }),
        ("parameters", 20_000, &|n| {
            let many: String = (0..n).map(|at| format!("; p{at}=v")).collect();
            format!(
                "Content-Type: message/external-body{many}; access-type=URL; URL=\"data:,x\"\n\n\n"
            )
        }),
        ("sections", 20_000, &|n| {
            let many: String = (1..n).rev().map(|at| format!("; URL*{at}=v")).collect();
            format!(
                "Content-Type: message/external-body; access-type=URL; URL*0=\"data:,\"{many}\n\n\n"
            )
        }),
        ("comments and quotes", 50_000, &|n| {
            format!(
                "Content-Type: message/external-body; {}; access-type=URL; URL=\"{}\"\n\n\n",
                "(\"".repeat(n),
                "\\\"".repeat(n)
            )
        }),
        ("phantom fields", 20_000, &|n| {
            format!(
                "Content-Type: message/external-body; access-type=URL; URL=\"data:,x\"\n\n{}\n",
                "X-A: b\n c\n".repeat(n)
            )
        }),
    ];
    for (name, size, shape) in shapes {
        let (small, large) = (shape(size), shape(size * 2));
        let mut measured = Vec::new();
        // Three attempts, because another program may have used the processor during one.
        let linear = (0..3).any(|_| {
            let (one, two) = (fastest(small.as_bytes()), fastest(large.as_bytes()));
            measured.push((one, two));
            two < one * 3 + Duration::from_millis(5)
        });
        assert!(linear, "{name}: {measured:?}");
    }
}

#[test]
fn ten_thousand_references_to_one_large_part_cost_neither_memory_nor_time() {
    let large = "QUJD".repeat(1_500_000);
    let references =
        "--b\nContent-Type: message/external-body; access-type=URL; URL=\"cid:a@x\"\n\n\
                      Content-Type: text/plain\nContent-MD5: AAAAAAAAAAAAAAAAAAAAAA==\n\n"
            .repeat(2_000)
            + &"--b\nContent-Type: message/external-body; access-type=URL; URL=\"cid:a@x\"\n\n\n"
                .repeat(2_000);
    let mail = format!(
        "Content-Type: multipart/mixed; boundary=b\n\n{references}--b\nContent-ID: <a@x>\n\
         Content-Transfer-Encoding: base64\n\n{large}\n--b--\n"
    );
    let started = Instant::now();
    let output = run(&["filter", "--quiet"], mail.as_bytes());
    assert_eq!(output.status.code(), Some(0));
    // As many references as --max-growth permits are filled, all others are left.
    let text = String::from_utf8_lossy(&output.stdout);
    let left = text.matches("URL=\"cid:a@x\"").count();
    assert!((3_900..4_000).contains(&left), "{left}");
    assert!(output.stdout.len() < mail.len() + (50 << 20));
    assert!(
        started.elapsed() < Duration::from_secs(120),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn a_bad_option_delays_mail_and_is_bad_usage_elsewhere() {
    for (arguments, status) in [
        (&["filter", "--no-such-option"][..], 75),
        (&["filter", "--fetch", "gopher"], 75),
        (&["filter", "--max-body", "lots"], 75),
        (&["filter", "--signed", "maybe"], 75),
        (&["filter", "a", "b"], 75),
        (&["fliter"], 75),
        (&["detahc", "--store", "s"], 75),
        (&["bogus"], 2),
        (&["bogus", "--fetch", "https"], 2),
        // A command line without a command is never part of a mail system's configuration, so the status is not 75.
        (&[], 2),
        (&["inspect", "--no-such-option"], 2),
        (&["inspect", "--max-body", "lots"], 2),
        // These commands are filters unless an option or an argument says otherwise.
        (&["detach", "--bogus"], 75),
        (&["restore", "--bogus"], 75),
        (&["embed", "--fetch", "https", "--bogus"], 75),
        (&["embed", "--bogus", "-"], 75),
        (&["detach", "--store", "s", "--bogus"], 75),
        (&["detach", "-qv", "--bogus"], 75),
        // A mail system passes the mail on standard input, not as a FILE.
        (&["embed", "--bogus", "a"], 2),
        (&["embed", "a", "--bogus"], 2),
        (&["recover", "--fetch", "https", "a", "--bogus"], 2),
        (&["detach", "--store=s", "a", "--bogus"], 2),
        (&["embed", "--", "--bogus", "a", "--fetch"], 2),
        (&["filter", "--bogus", "a"], 75),
        (&["detach", "--store", "s", "--in-place", "--bogus", "a"], 2),
        (&["restore", "a", "--output=b", "--bogus"], 2),
        (&["restore", "--dry-run", "--bogus"], 2),
        (&["convert", "--bogus"], 2),
        (&["split", "--bogus"], 2),
        (&["milter", "--bogus"], 2),
        (&["store", "--bogus"], 2),
        (&["schemes", "--bogus"], 2),
        (&["man", "--bogus"], 2),
        (&["completions", "--bogus"], 2),
        (&["help", "--bogus"], 2),
    ] {
        let output = run(arguments, &expanding());
        assert_eq!(output.status.code(), Some(status), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
    for arguments in [
        &["--help"][..],
        &["help", "--help"],
        &["--version"],
        &["filter", "--help"],
        &["inspect", "--help"],
    ] {
        let output = run(arguments, b"");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!output.stdout.is_empty());
    }
}

#[test]
fn error_messages_name_the_problem_and_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let mail = folder.path().join("in.eml");
    fs::write(&mail, expanding()).unwrap();
    let mail = mail.to_string_lossy();
    let template = "http://web.example/{date}/{url}";
    for (arguments, words) in [
        (
            &[
                "convert",
                &mail,
                "--output",
                &mail.replace("in.eml", "there"),
            ][..],
            "remove the file, or choose another name",
        ),
        (
            &["filter", "--store", "/nonexistent/store"],
            "folder /nonexistent/store",
        ),
        (
            &[
                "filter",
                "--archive",
                template,
                "--archive-window",
                "6m,12m",
            ],
            "write months as days",
        ),
    ] {
        fs::write(mail.replace("in.eml", "there"), "x").unwrap();
        let output = run(arguments, &expanding());
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        let said = stderr(&output);
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

#[test]
fn error_about_an_invalid_proxy_hides_the_password() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("embody.toml");
    let file = path.to_string_lossy();
    for value in [
        "htp://user:hush@proxy",
        "user:hush@proxy:3128",
        "http//user:hush@",
        "hush",
    ] {
        fs::write(&*file, format!("proxy = \"{value}\"\n")).unwrap();
        let equals = format!("--proxy={value}");
        for arguments in [
            &["filter", "--proxy", value][..],
            &["filter", &equals],
            &["inspect", "--proxy", value],
            &["milter", "--listen", "inet:1", "--proxy", value],
            &["filter", "--config", &file],
        ] {
            let output = run(arguments, &expanding());
            let said = stderr(&output);
            assert_ne!(output.status.code(), Some(0), "{arguments:?}");
            assert!(said.contains("--proxy"), "{arguments:?}: {said}");
            assert!(!said.contains("hush"), "{arguments:?}: {said}");
        }
    }
}

#[test]
fn a_message_that_cannot_be_read_delays_mail() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    for (path, words) in [
        (
            folder.path(),
            ": a directory, but filter reads only one message",
        ),
        (missing.as_path(), "embody: cannot read "),
    ] {
        let path = path.to_string_lossy();
        let output = run(&["filter", &path], b"");
        assert_eq!(output.status.code(), TRY_AGAIN);
        assert!(output.stdout.is_empty());
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
        let output = run(&["inspect", &path], b"");
        assert_eq!(output.status.code(), Some(1));
    }
    let standard_input = File::open(folder.path()).unwrap();
    let output = embody()
        .arg("filter")
        .stdin(standard_input)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), TRY_AGAIN);
    assert!(output.stdout.is_empty());
}

#[test]
fn a_message_from_a_file_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.eml");
    fs::write(&path, expanding()).unwrap();
    let output = run(&["filter", &path.to_string_lossy()], b"");
    assert_bytes(&output.stdout, &mail::expand(&expanding()).0, "from a file");
    assert_bytes(
        &fs::read(&path).unwrap(),
        &expanding(),
        "the file was not changed",
    );
}

fn shell(script: &str, input: &[u8]) -> Output {
    let mut shell = Command::new("sh");
    fed(
        shell.args(["-c", script, "sh", env!("CARGO_BIN_EXE_embody")]),
        input,
    )
}

#[cfg(unix)]
#[test]
fn a_full_output_is_no_success_of_other_commands_either() {
    // Closed outputs are tested in outputs.rs.
    if !Path::new("/dev/full").exists() {
        return;
    }
    for command in [
        "inspect",
        "inspect --json --embed data",
        "schemes",
        "man",
        "completions bash",
    ] {
        let output = shell(&format!("\"$1\" {command} >/dev/full"), &expanding());
        assert_eq!(output.status.code(), Some(1), "{command}");
        assert!(stderr(&output).contains("cannot write"), "{command}");
    }
    let output = shell("\"$1\" filter --help >/dev/full", b"");
    assert_eq!(output.status.code(), TRY_AGAIN);
}

#[cfg(unix)]
#[test]
fn output_that_cannot_be_written_delays_mail() {
    let large = [b"A: b\n\n".as_slice(), &b"x".repeat(20 << 20)].concat();
    for message in [expanding(), b"A: b\n\nx\n".to_vec(), large] {
        let mut scripts = vec!["\"$1\" filter >&-"];
        if Path::new("/dev/full").exists() {
            scripts.push("\"$1\" filter >/dev/full");
        }
        for script in scripts {
            let output = shell(script, &message);
            assert_eq!(output.status.code(), TRY_AGAIN, "{script}");
            assert!(
                stderr(&output).contains("cannot write"),
                "{}",
                stderr(&output)
            );
        }
    }
    // If the reader exits, the program ends with a signal or a failed write, never with success.
    let output = shell(
        "{ \"$1\" filter; echo \"status $?\" >&2; } | true",
        &[b"A: b\n\n".as_slice(), &b"x".repeat(4 << 20)].concat(),
    );
    assert!(!stderr(&output).contains("status 0"), "{}", stderr(&output));
    // Output to /dev/null is discarded intentionally, so this is success.
    let output = shell("\"$1\" filter >/dev/null", &expanding());
    assert_eq!(output.status.code(), Some(0));
    // /dev/null opened for reading and writing cannot be distinguished from a closed descriptor, so it counts as closed.
    let output = shell("\"$1\" filter 1<>/dev/null", &expanding());
    assert_eq!(output.status.code(), TRY_AGAIN);
    // A closed standard error does not affect the mail.
    let output = shell("\"$1\" filter 2>&-", &expanding());
    assert_eq!(output.status.code(), Some(0));
    assert_bytes(
        &output.stdout,
        &mail::expand(&expanding()).0,
        "without stderr",
    );
}

/// If standard input is closed, the message cannot be read. This must not count as an empty message.
#[test]
fn a_closed_input_is_no_message() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file").to_string_lossy().into_owned();
    let write_only = format!("\"$1\" filter 0>'{file}'");
    for script in [
        "\"$1\" filter <&-",
        "\"$1\" filter 0<>/dev/null",
        &write_only,
    ] {
        let output = shell(script, b"");
        assert_eq!(output.status.code(), TRY_AGAIN, "{script}");
        assert!(output.stdout.is_empty(), "{script}");
        assert!(
            stderr(&output).contains("cannot read standard input"),
            "{script}: {}",
            stderr(&output)
        );
    }
    for script in ["\"$1\" filter </dev/null", ": | \"$1\" filter"] {
        let output = shell(script, b"");
        assert_eq!(
            output.status.code(),
            Some(0),
            "{script}: {}",
            stderr(&output)
        );
        assert!(output.stdout.is_empty(), "{script}");
    }
}

#[test]
fn the_report_has_one_json_object_for_each_reference() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report").to_string_lossy().into_owned();
    let sample = fs::read(mail::samples_folder().join("several-in-one.in.eml")).unwrap();
    for _ in 0..2 {
        let output = run(&["filter", "--quiet", "--report", &path], &sample);
        assert_eq!(output.status.code(), Some(0));
    }
    let text = fs::read_to_string(&path).unwrap();
    let rows: Vec<serde_json::Value> = text.lines().map(reports::object).collect();
    assert_eq!(rows.len(), 8, "two runs append");
    let row = &rows[0];
    assert_eq!(row["part"], "1");
    assert_eq!(row["kind"], "external-body");
    assert_eq!(row["outcome"], "expanded");
    assert_eq!(row["url"], "data:text/plain,one");
    assert_eq!(row["media_type"], "text/plain");
    assert_eq!(row["bytes"], 3);
    assert_eq!(row["reason"], serde_json::Value::Null);
    assert_eq!(rows[1]["outcome"], "left");
    assert_eq!(rows[1]["reason"], "unsupported-access-type");
    let output = run(&["filter", "--quiet", "--report", "-"], &sample);
    let lines = stderr(&output);
    assert_eq!(lines.lines().count(), 4, "{lines}");
    assert!(lines.lines().all(|line| line.starts_with('{')));
}

#[test]
fn a_report_that_cannot_be_written_changes_neither_mail_nor_status() {
    let output = run(&["filter", "--report", "/nonexistent/report"], &expanding());
    assert_eq!(output.status.code(), Some(0));
    assert_bytes(&output.stdout, &mail::expand(&expanding()).0, "the mail");
    assert!(stderr(&output).contains("cannot write the report"));
}

#[test]
fn a_mark_is_added_once() {
    let sample = fs::read(mail::samples_folder().join("several-in-one.in.eml")).unwrap();
    for sample in [sample.clone(), mail::crlf(&sample)] {
        let once = run(&["filter", "--mark"], &sample).stdout;
        let text = String::from_utf8_lossy(&once).into_owned();
        assert!(
            text.contains("\nX-Embody: expanded=3 left=1 links=0"),
            "{text}"
        );
        let twice = run(&["filter", "--mark"], &once).stdout;
        assert_bytes(&twice, &once, "the second run");
        // The field describes a single run: the values of an earlier run are replaced.
        let before = [b"X-Embody: expanded=7 left=7 links=7\n".as_slice(), &sample].concat();
        let marked = run(&["filter", "--mark"], &before).stdout;
        let text = String::from_utf8_lossy(&marked).into_owned();
        assert_eq!(text.matches("X-Embody").count(), 1, "{text}");
        assert!(
            text.contains("X-Embody: expanded=3 left=1 links=0"),
            "{text}"
        );
        let without: Vec<u8> = once
            .split_inclusive(|&byte| byte == b'\n')
            .filter(|line| !line.starts_with(b"X-Embody"))
            .flatten()
            .copied()
            .collect();
        assert_bytes(&without, &mail::expand(&sample).0, "one field and no more");
    }
    let plain = b"A: b\n\nx".as_slice();
    assert_bytes(
        &run(&["filter", "--mark"], plain).stdout,
        plain,
        "no reference",
    );
    let forged = b"X-Embody: expanded=9\nA: b\nx-embody: left=0\n\nx".as_slice();
    assert_bytes(
        &run(&["filter", "--mark"], forged).stdout,
        plain,
        "a stranger's marks",
    );
    assert_bytes(&run(&["filter"], forged).stdout, forged, "without --mark");
}

#[test]
fn quiet_says_nothing_and_verbose_says_more() {
    let sample = fs::read(mail::samples_folder().join("dkim-signed.in.eml")).unwrap();
    let quiet = run(&["filter", "--quiet"], &sample);
    assert_eq!(stderr(&quiet), "");
    let normal = stderr(&run(&["filter"], &sample));
    assert_eq!(normal.lines().count(), 1, "{normal}");
    let verbose = stderr(&run(&["filter", "--verbose"], &sample));
    assert!(verbose.contains("DKIM-Signature"), "{verbose}");
    assert!(verbose.lines().count() > 1);
    let plain = stderr(&run(&["filter", "--verbose"], b"A: b\n\nx"));
    assert_eq!(plain, "embody: nothing to do\n");
}

#[test]
fn what_a_stranger_wrote_reaches_the_terminal_harmless() {
    for parameters in [
        "access-type=\"x-\x1b[31m\r\x07\u{9b}31m\u{202e}\"",
        "access-type=URL; URL=\"http://h/\x1b[31m\x07\"",
        "access-type=URL; URL*=utf-8''http:%2F%2Fh%2F%1B%5B31m%0D%0A%E2%80%AE",
        "access-type=URL; URL=\"data:text/html%1b%0d,\x1b[0m\"",
        "access-type=local-file; name=\"\x1b]0;x\x07\"",
        "access-type=tftp; site=\"\x1b[31m\"; directory=\"\u{202e}\"; name=\"\x07\r\"",
        "access-type=content-id",
    ] {
        let outer = "Content-ID: <\x1b[31m@x>\n";
        let mail = with_external_body(
            &format!("{parameters}\n{outer}"),
            "Content-Type: text/plain\x1b[31m\n",
        );
        for arguments in [
            &["filter", "--verbose"][..],
            &["filter", "--report", "-"],
            &["inspect"],
            &["inspect", "--json"],
        ] {
            let output = run(arguments, &mail);
            assert_eq!(output.status.code(), Some(0));
            let mut said = stderr(&output);
            if arguments[0] == "inspect" {
                said.push_str(&String::from_utf8_lossy(&output.stdout));
            }
            assert!(!said.is_empty());
            let bad = said
                .chars()
                .find(|symbol| symbol.is_control() && *symbol != '\n');
            assert_eq!(bad, None, "{arguments:?} {said:?}");
            assert!(
                !said.contains('\u{202e}') && !said.contains('\u{9b}'),
                "{said:?}"
            );
        }
    }
}

#[test]
fn a_password_is_never_shown() {
    for url in [
        "http://me:s3cret@example.org/x",
        "ftp://me:s3cret@example.org/x",
        "//me:s3cret@example.org/x",
        "HTTP://me:s3cret@example.org:99999/x",
        "http://me:s3cret@exa mple.org/\\x",
        "x-unknown://me:s3cret@example.org/x",
    ] {
        let mut mail = with_url(url, "Content-Type: text/plain\n");
        mail.splice(
            0..0,
            b"Content-Type: message/external-body; access-type=FTP; name=a; directory=b; "
                .iter()
                .chain(b"site=\"me:s3cret@example.org\"\n")
                .copied()
                .filter(|_| url.starts_with("ftp")),
        );
        for arguments in [
            &["filter", "--verbose", "--report", "-"][..],
            &[
                "filter",
                "--fetch",
                "http,ftp",
                "--deny-host",
                "example.org",
                "--report",
                "-",
            ],
            &["inspect", "--fetch", "http,ftp"],
            &["inspect", "--json"],
        ] {
            let output = run(arguments, &mail);
            let mut said = stderr(&output);
            if arguments[0] == "inspect" {
                said.push_str(&String::from_utf8_lossy(&output.stdout));
            }
            assert!(said.contains("example.org"), "{said}");
            assert!(!said.contains("s3cret"), "{said}");
        }
    }
}

#[test]
fn file_in_place_of_a_command_is_answered_with_a_command_that_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("my mail.mbox"), "").unwrap();
    for (word, tip) in [
        ("my mail.mbox", Some("run: embody inspect 'my mail.mbox'\n")),
        ("absent.mbox", None),
    ] {
        let output = embody()
            .arg(word)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert_eq!(said.contains("embody inspect"), tip.is_some(), "{said}");
        assert!(said.ends_with(tip.unwrap_or_default()), "{said}");
    }
}

#[test]
fn a_refusal_names_the_option_that_would_allow_it() {
    let mail = with_url("https://example.org/x", "Content-Type: text/plain\n");
    let said = stderr(&run(&["filter"], &mail));
    assert!(
        said.contains("scheme-not-allowed") && said.contains("--fetch https"),
        "{said}"
    );
    let mail = with_url("file:///srv/x", "Content-Type: text/plain\n");
    let said = stderr(&run(&["filter"], &mail));
    assert!(
        said.contains("--fetch file --file-root DIR would allow it"),
        "{said}"
    );
    // `recover` allows http and https by default, and `--fetch ftp` alone would forbid both.
    let mail = with_url("ftp://ftp.example.org/x", "Content-Type: text/plain\n");
    let said = stderr(&run(&["recover"], &mail));
    assert!(
        said.contains("--fetch http,https,ftp would allow it"),
        "{said}"
    );
    // No option retrieves content with such an access type, so the line names the place of the content.
    let long = "x".repeat(9_000);
    for (parameters, place) in [
        (
            "access-type=tftp; site=\"me:s3cret@example.org\"; name=a.txt; directory=pub",
            "access-type=tftp (site=example.org, directory=pub, name=a.txt); no",
        ),
        (
            "access-type=mail-server; server=\"ask@example.org\"",
            "access-type=mail-server (server=ask@example.org); no",
        ),
        (
            "access-type=afs; name=/afs/a",
            "access-type=afs (name=/afs/a); no",
        ),
        ("access-type=tftp", "access-type=tftp; no"),
        (
            &format!("access-type=afs; name={long}"),
            "more characters)); no",
        ),
    ] {
        let mail = with_external_body(&format!("{parameters}\n"), "Content-Type: text/plain\n");
        let said = stderr(&run(&["filter"], &mail));
        assert!(
            said.contains(&format!("{place} option retrieves it\n")),
            "{said}"
        );
        assert!(said.len() < 1_000, "{said}");
    }
    // No directory of Unix contains a drive of Windows.
    let mail = with_url("file:///C:/Users/a.pdf", "Content-Type: text/plain\n");
    for options in [
        &["filter"][..],
        &["filter", "--fetch", "file", "--file-root", "."],
    ] {
        let said = stderr(&run(options, &mail));
        assert_eq!(
            said.contains("; --copies MAILBOX may provide it\n"),
            cfg!(unix),
            "{said}"
        );
        assert_eq!(said.contains("would allow it"), cfg!(windows), "{said}");
    }
    let mail = with_url("data:text/html,x", "Content-Type: text/plain\n");
    let said = stderr(&run(&["filter"], &mail));
    assert!(said.contains("--accept-mismatch"), "{said}");
    let said = stderr(&run(
        &["filter", "--max-growth", "0"],
        &with_url("data:,x", ""),
    ));
    assert!(
        said.contains("growth-limit") && said.contains("--max-growth"),
        "{said}"
    );
}

#[test]
fn inspect_prints_the_tree_and_what_would_be_done() {
    let path = mail::samples_folder().join("nested-in-forwarded.in.eml");
    let output = run(&["inspect", &path.to_string_lossy()], b"");
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    for words in [
        "message  multipart/mixed",
        "2  message/rfc822",
        "2.2  message/external-body",
        "would-expand",
        "of image/png",
        "1 reference: 1 would be followed, 0 would stay unchanged",
    ] {
        assert!(text.contains(words), "{words}:\n{text}");
    }
    let mail = with_url("https://example.org/x", "Content-Type: text/plain\n");
    let fetch = run(&["inspect", "--fetch", "https"], &mail);
    assert!(String::from_utf8_lossy(&fetch.stdout).contains("would-fetch"));
    let plain = run(&["inspect"], b"A: b\n\nx");
    let said = String::from_utf8_lossy(&plain.stdout);
    assert!(
        said.contains("\nNothing is missing from this mail.\n"),
        "{said}"
    );
}

#[test]
fn inspect_json_has_the_rows_of_the_report() {
    let sample = fs::read(mail::samples_folder().join("several-in-one.in.eml")).unwrap();
    let output = run(&["inspect", "--json"], &sample);
    let text = String::from_utf8(output.stdout).unwrap();
    let (rows, last) = text.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(reports::object(last)["kind"], "survey");
    let outcomes: Vec<String> = rows
        .lines()
        .map(|line| {
            let row = reports::object(line);
            assert_eq!(row["message"], "-");
            row["outcome"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(
        outcomes,
        ["would-expand", "left", "would-expand", "would-expand"]
    );
}
