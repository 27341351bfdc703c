//! What fails under a program: memory, stack, disks, descriptors, clocks, locales. Mail is never lost:
//! `filter` ends with a whole message and 0, or with nothing and 75.
//!
//! Elsewhere: interrupted and short reads and writes (unit tests of `cli/input.rs`, `edit.rs` and
//! `mailbox/window.rs`), a full disk, kills, vanishing folders and changing sources under `convert`
//! (convert_safety.rs, maildir.rs), `filter` into closed and full outputs (cli.rs), servers that
//! break off (fetch_hostile.rs, fetch_cli_hostile.rs).
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/mail.rs"]
mod mail;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use common::programs::{program, skipped};
use common::raw::{Raw, ok};
use mail::{assert_bytes, with_url};

const TRY_AGAIN: Option<i32> = Some(75);
/// Address space of a process, octets.
const LITTLE: u64 = 256 << 20;

fn embody() -> Command {
    Command::new(env!("CARGO_BIN_EXE_embody"))
}

/// Runs a command with this on its standard input.
fn fed(command: &mut Command, input: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // The program may end before it has read everything.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().unwrap()
    })
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn expanding() -> Vec<u8> {
    with_url("data:text/plain,x", "Content-Type: text/plain\n")
}

/// `prlimit`, in front of the program.
fn limited(test: &str, limit: &str) -> Option<Command> {
    let Some(prlimit) = program("prlimit") else {
        skipped(test, "prlimit");
        return None;
    };
    let mut command = Command::new(prlimit);
    command.arg(limit).arg(env!("CARGO_BIN_EXE_embody"));
    Some(command)
}

/// 0 with what there would be without the limit, or 75 with nothing: true if the former.
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

/// Ways of working on a mail.
const WAYS: [&str; 6] = [
    "nothing to do",
    "a reference first",
    "a reference last",
    "a large data: URL",
    "many links",
    "a large part several times",
];

/// A mail of about so many octets that is worked on in one of [`WAYS`].
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
            lines("<a href=b>c</a>\n")
        ),
        _ => format!(
            "{HEADER}Content-ID: <a@x>\n\n{}\n--b\n{copies}--\n",
            filling()
        ),
    }
    .into_bytes()
}

#[test]
fn with_little_memory_a_mail_comes_out_whole_or_later() {
    const TEST: &str = "with_little_memory_a_mail_comes_out_whole_or_later";
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
        // Without room for its own libraries the program is not even started by the loader.
        if little.status.code() == Some(127) || stderr(&little).contains("shared librar") {
            assert!(little.stdout.is_empty());
            continue;
        }
        if little.status.code().is_none() {
            // Killed by the kernel while it was being loaded.
            assert!(little.stdout.is_empty(), "{megabytes} MB: {little:?}");
            later += 1;
            continue;
        }
        later += usize::from(!good_or_later(&little, &free, &format!("{megabytes} MB")));
    }
    eprintln!("{later} of 19 were put off");
}

#[test]
fn bodies_from_a_server_with_little_memory_come_in_whole_or_later() {
    const TEST: &str = "bodies_from_a_server_with_little_memory_come_in_whole_or_later";
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

/// The recursion of every library below ours included: messages nested as deep as is looked into,
/// boundaries that are never closed, style sheets and markup that are nothing but brackets.
#[test]
fn the_library_runs_on_a_small_stack() {
    let nested = |step: &str, levels: usize| -> String {
        (0..levels)
            .map(|level| step.replace('#', &level.to_string()))
            .collect()
    };
    let reference = &expanding()[..];
    let reference = String::from_utf8_lossy(reference);
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

/// Content-IDs that lead through one another, to a text at the end.
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

#[test]
fn a_folder_for_temporary_files_that_is_not_there_delays_large_mail_only() {
    let large = [b"A: b\n\n".as_slice(), &b"x".repeat(17 << 20)].concat();
    for folder in ["/nonexistent", "/dev/null"] {
        let output = fed(embody().arg("filter").env("TMPDIR", folder), &large);
        assert_eq!(output.status.code(), TRY_AGAIN);
        assert!(output.stdout.is_empty());
        assert!(
            stderr(&output).contains("cannot read"),
            "{}",
            stderr(&output)
        );
        let output = fed(embody().arg("filter").env("TMPDIR", folder), &expanding());
        assert_eq!(output.status.code(), Some(0));
    }
}

#[test]
fn a_limit_on_file_sizes_delays_mail_that_would_be_spooled() {
    const TEST: &str = "a_limit_on_file_sizes_delays_mail_that_would_be_spooled";
    let large = [b"A: b\n\n".as_slice(), &b"x".repeat(17 << 20)].concat();
    // The signal that comes with it ends the program unless it is ignored; then writing fails.
    let script = "trap '' XFSZ; ulimit -f 100; exec \"$0\" filter";
    if program("sh").is_none() {
        skipped(TEST, "sh");
        return;
    }
    let mut shell = Command::new("sh");
    let output = fed(
        shell.args(["-c", script, env!("CARGO_BIN_EXE_embody")]),
        &large,
    );
    assert_eq!(output.status.code(), TRY_AGAIN, "{}", stderr(&output));
    assert!(output.stdout.is_empty());
}

/// A reader that goes away is a failed write, not a panic and not a signal.
#[test]
fn a_reader_that_goes_away_is_told_from_success() {
    let folder = tempfile::tempdir().unwrap();
    let many = folder.path().join("many.mbox");
    let message = format!(
        "From a 10:00\n{}\n",
        String::from_utf8(expanding()).unwrap()
    );
    fs::write(&many, message.repeat(3_000)).unwrap();
    for arguments in ["inspect --json", "inspect"] {
        let mails: Vec<String> = vec![mail::samples_folder().display().to_string(); 3];
        let sources = match arguments {
            "inspect" => mails.join("/postcard.in.eml ") + "/postcard.in.eml",
            _ => many.display().to_string(),
        };
        let script = format!("{{ \"$0\" {arguments} {sources}; echo \"status $?\" >&2; }} | :");
        let output = Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_embody")])
            .output()
            .unwrap();
        let said = stderr(&output);
        assert!(!said.contains("panicked"), "{arguments}: {said}");
        assert!(
            said.contains("status 1") || said.contains("status 141") || arguments == "inspect",
            "{arguments}: {said}"
        );
    }
}

#[test]
fn what_is_printed_to_a_full_device_is_a_failure() {
    if !Path::new("/dev/full").exists() {
        skipped("what_is_printed_to_a_full_device_is_a_failure", "/dev/full");
        return;
    }
    let sample = mail::samples_folder().join("postcard.in.eml");
    let sample = sample.to_str().unwrap();
    for arguments in [
        vec!["inspect", sample],
        vec!["inspect", "--json", sample],
        vec!["completions", "bash"],
        vec!["man"],
        vec!["--help"],
    ] {
        let full = fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let output = embody().args(&arguments).stdout(full).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(1),
            "{arguments:?} {}",
            stderr(&output)
        );
        assert!(!stderr(&output).contains("panicked"), "{arguments:?}");
    }
    // A report that cannot be written is said, and the mailbox is converted all the same.
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.eml");
    let output = embody()
        .args(["convert", "--report", "/dev/full", sample, "--output"])
        .arg(&out)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let expected = fs::read(sample.replace(".in.", ".out.")).unwrap();
    assert_bytes(&fs::read(&out).unwrap(), &expected, "converted");
}

#[test]
fn names_and_locales_that_are_no_utf8_are_names_and_locales() {
    let folder = tempfile::tempdir().unwrap();
    let odd = |text: &[u8]| folder.path().join(OsStr::from_bytes(text));
    let (source, out, report) = (odd(b"\xe4\xff in.eml"), odd(b"\xf6ut"), odd(b"\xfe.json"));
    if fs::write(&source, expanding()).is_err() {
        skipped(
            "names_and_locales_that_are_no_utf8_are_names_and_locales",
            "a file system for them",
        );
        return;
    }
    let (expected, _) = mail::expand(&expanding());
    for locale in ["C", "POSIX", "de_DE.ISO-8859-1", "no such", ""] {
        let run = |arguments: &[&OsStr]| {
            embody()
                .args(arguments)
                .env("LC_ALL", locale)
                .env("LANG", OsString::from_vec(vec![0xff]))
                .env_remove("LANGUAGE")
                .output()
                .unwrap()
        };
        let word = OsStr::new;
        let output = run(&[
            word("filter"),
            word("--report"),
            report.as_os_str(),
            source.as_os_str(),
        ]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_bytes(&output.stdout, &expected, locale);
        let row: serde_json::Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
        assert_eq!(row["outcome"], "expanded");
        fs::remove_file(&report).unwrap();
        let output = run(&[
            word("convert"),
            source.as_os_str(),
            word("--output"),
            out.as_os_str(),
        ]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_bytes(&fs::read(&out).unwrap(), &expected, locale);
        fs::remove_file(&out).unwrap();
        let output = run(&[word("inspect"), word("--json"), source.as_os_str()]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(output.stdout.is_ascii());
        let output = run(&[word("filter"), odd(b"\xffgone").as_os_str()]);
        assert_eq!(output.status.code(), TRY_AGAIN);
        let output = run(&[
            word("filter"),
            word("--map"),
            OsStr::from_bytes(b"\xff=\xfe"),
        ]);
        assert_eq!(output.status.code(), TRY_AGAIN, "{}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}

/// Deadlines are counted on the monotonic clock, which does not jump; what a jump of another clock
/// could bring about is a limit that is over before it begins, and one that is never over.
#[test]
fn limits_of_no_time_and_of_all_time_are_limits() {
    let server = Raw::saying(ok("text/plain", b"hello"));
    let port = server.address.port().to_string();
    let mail = with_url(&server.url("/x"), "");
    let options = [
        "filter",
        "--fetch=http",
        "--allow-net=127.0.0.0/8",
        "--allow-port",
        &port,
    ];
    let filtered = |more: &[&str]| fed(embody().args(options).args(more), &mail);
    for limit in ["--deadline", "--timeout"] {
        for forever in [
            "100000000h",
            "9300000000000000000s",
            "18000000000000000000s",
        ] {
            let output = filtered(&[limit, forever]);
            assert_eq!(
                output.status.code(),
                Some(0),
                "{limit} {forever}: {}",
                stderr(&output)
            );
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("\n\nhello"), "{limit} {forever}: {text}");
        }
        for over in ["0", "0.000000001ms"] {
            let output = filtered(&[limit, over]);
            assert_eq!(
                output.status.code(),
                Some(0),
                "{limit} {over}: {}",
                stderr(&output)
            );
            assert_bytes(&output.stdout, &mail, over);
            let output = filtered(&[limit, over, "--on-failure=defer"]);
            assert_eq!(
                output.status.code(),
                TRY_AGAIN,
                "{limit} {over}: {}",
                stderr(&output)
            );
            assert!(output.stdout.is_empty());
        }
    }
    // For programs that use the library, the longest there is means "none".
    let mut policy = embody::Policy::default();
    policy.limits.deadline = std::time::Duration::MAX;
    let (output, _) = mail::expand_with(policy, &expanding());
    assert_bytes(&output, &mail::expand(&expanding()).0, "no deadline");
}

/// The wall clock decides only how old another program's lock is: one from the future, left by a clock
/// that was set back, is neither taken for an old one nor waited for longer than asked.
#[test]
fn a_lock_from_the_future_is_respected_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box");
    let old = b"From a 10:00\nSubject: x\n\nbody\n";
    fs::write(&path, old).unwrap();
    let lock = folder.path().join("box.lock");
    fs::write(&lock, "0").unwrap();
    let future = std::time::SystemTime::now() + std::time::Duration::from_secs(10 * 365 * 86_400);
    let times = fs::FileTimes::new().set_modified(future);
    fs::File::options()
        .write(true)
        .open(&lock)
        .unwrap()
        .set_times(times)
        .unwrap();
    let options = embody::mailbox::Options {
        lock_timeout: std::time::Duration::from_millis(300),
        ..embody::mailbox::Options::default()
    };
    let begun = Instant::now();
    let stop = embody::mailbox::Stop::default();
    let outcome = embody::mailbox::convert_in_place(&path, &options, &Nothing, &(), &stop);
    assert!(
        matches!(outcome, Err(embody::Error::Locked { .. })),
        "{outcome:?}"
    );
    assert!(begun.elapsed().as_secs() < 20);
    assert_eq!(fs::read(&path).unwrap(), old);
    assert!(lock.exists());
}

/// Looks at no message.
struct Nothing;

impl embody::mailbox::Transform for Nothing {
    fn next_touch(&self, _bytes: &[u8]) -> Option<usize> {
        None
    }

    fn transform(
        &self,
        _message: &embody::mailbox::Message<'_>,
    ) -> Result<embody::mailbox::Change, embody::Error> {
        Ok(embody::mailbox::Change::AsItCame)
    }
}

/// The program as a user who may not read what others keep to themselves; root needs `setpriv` for
/// that.
fn unprivileged(test: &str, folder: &Path) -> Option<Command> {
    let Some(setpriv) = program("setpriv") else {
        skipped(test, "setpriv");
        return None;
    };
    // The build folder may itself be out of that user's reach.
    let copy = folder.join("embody");
    if !copy.exists() {
        fs::copy(env!("CARGO_BIN_EXE_embody"), &copy).unwrap();
    }
    let mut command = Command::new(setpriv);
    if fs::read("/etc/shadow").is_ok() {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    }
    command.arg(copy);
    Some(command)
}

#[test]
fn what_may_not_be_read_is_said_and_loses_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    const TEST: &str = "what_may_not_be_read_is_said_and_loses_nothing";
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, b"From a 10:00\nSubject: x\n\nbody\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    let secret = secret.to_str().unwrap();
    for (arguments, status) in [
        (vec!["filter", secret], 75),
        (vec!["filter", "--config", secret], 75),
        (vec!["inspect", secret], 1),
        (vec!["convert", secret, "--output", "/dev/null"], 1),
        (vec!["convert", "--in-place", secret], 1),
    ] {
        let Some(mut command) = unprivileged(TEST, folder.path()) else {
            return;
        };
        let output = fed(command.args(&arguments), &expanding());
        assert_eq!(
            output.status.code(),
            Some(status),
            "{arguments:?} {}",
            stderr(&output)
        );
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(stderr(&output).contains("secret"), "{}", stderr(&output));
    }
    let mail = with_url(&format!("file://{secret}"), "");
    let Some(mut command) = unprivileged(TEST, folder.path()) else {
        return;
    };
    let root = folder.path().to_str().unwrap();
    let output = fed(
        command.args(["filter", "--fetch=file", "--file-root", root]),
        &mail,
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_bytes(&output.stdout, &mail, "left");
    assert!(
        stderr(&output).contains("file-not-readable"),
        "{}",
        stderr(&output)
    );
}

/// A world in which each retrieval may fail in each of the ways there are, decided by its number.
struct Unreliable {
    seed: u64,
}

impl embody::fetch::Fetch for Unreliable {
    fn fetch(
        &self,
        request: &embody::fetch::Request,
    ) -> Result<embody::fetch::Retrieved, embody::report::Refusal> {
        use embody::report::{Reason, Refusal};
        let number: u64 = request.url.rsplit('/').next().unwrap().parse().unwrap();
        let draw = (number + 1)
            .wrapping_mul(self.seed | 1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            >> 40;
        match draw % 4 {
            0 => Err(Refusal::temporary(Reason::Timeout, "too slow")),
            1 => Err(Refusal::lasting(
                Reason::ALL[draw as usize / 4 % Reason::ALL.len()],
                "it failed",
            )),
            _ => Ok(embody::fetch::Retrieved {
                url: request.url.clone(),
                media_type: [None, Some("text/plain"), Some("???"), Some("image/png")]
                    [draw as usize / 4 % 4]
                    .map(str::to_owned),
                body: vec![b'y'; draw as usize % 50],
                elapsed: std::time::Duration::MAX,
            }),
        }
    }
}

#[test]
fn whatever_fails_the_parts_that_were_left_are_as_they_came() {
    use embody::policy::{OnFailure, Scheme};
    let part = |number: usize| REFERENCE.replace("data:,x", &format!("https://e.example/{number}"));
    let parts: Vec<String> = (0..12).map(part).collect();
    let mail = format!("{HEADER}{}--\n", parts.join("\n"));
    let (mut expanded, mut left, mut deferred) = (0, 0, 0);
    for seed in 0..200 {
        let world = Unreliable { seed };
        let mut policy = embody::Policy::default();
        policy.fetch.insert(Scheme::Https);
        let expander = embody::Expander::new(policy.clone(), &world);
        let expansion = expander.expand(mail.as_bytes(), "test").unwrap();
        let output = expansion.output.into_bytes().into_owned();
        let text = String::from_utf8(output.clone()).unwrap();
        assert_eq!(expansion.report.rows.len(), 12);
        for (number, row) in expansion.report.rows.iter().enumerate() {
            let came = text.contains(&parts[number]);
            assert_eq!(came, row.reason.is_some(), "seed {seed}: {row:?}");
            left += usize::from(came);
            expanded += usize::from(!came);
        }
        let again = expander.expand(&output, "test").unwrap();
        assert!(again.output.into_bytes() == output, "seed {seed}");
        policy.on_failure = OnFailure::Defer;
        let late = embody::Expander::new(policy, &world)
            .expand(mail.as_bytes(), "test")
            .is_err();
        let temporary = expansion
            .report
            .rows
            .iter()
            .any(|row| row.detail == "too slow");
        assert_eq!(late, temporary, "seed {seed}");
        deferred += usize::from(late);
    }
    assert!(
        expanded > 500 && left > 500 && deferred > 50,
        "{expanded} {left} {deferred}"
    );
}
