//! Failures of the environment: disks, descriptors, permissions, clocks, locales, servers. No mail is lost: `filter` ends with
//! a complete message and status 0, or with no output and status 75.
//!
//! Other files test signals, limits on file sizes and the files of killed runs (signals.rs), too little memory and stack
//! (faults_memory.rs), interrupted and short reads and writes (stopped.rs, unit tests of `cli/streams.rs`, `edit.rs` and
//! `mailbox/input/window/`), a full disk, kills, vanishing folders and changing sources under `convert` (convert_safety.rs,
//! maildir.rs), `filter` into closed and full outputs (cli.rs), and servers that break off (fetch_hostile.rs,
//! fetch_cli_hostile.rs).
#![cfg(unix)]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::mail::{self, assert_bytes, expanding, with_url};
use crate::common::mta::eventually;
use crate::common::programs::{embody, false_clock, fed, program, skipped, stderr, unprivileged};
use crate::common::raw::{Raw, ok};
use crate::common::reports;

const TRY_AGAIN: Option<i32> = Some(75);

const HEADER: &str = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n";
const REFERENCE: &str =
    "Content-Type: message/external-body; access-type=URL; URL=\"data:,x\"\n\n\n--b";

#[test]
fn large_mail_stays_in_memory_where_no_temporary_file_can_be_written() {
    let large = [b"A: b\n\n".as_slice(), &b"x".repeat(17 << 20)].concat();
    for folder in ["/nonexistent", "/dev/null"] {
        let output = fed(embody().arg("filter").env("TMPDIR", folder), &large);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(output.stdout == large);
        assert!(
            stderr(&output).contains(&format!("temporary file in {folder}: ")),
            "{}",
            stderr(&output)
        );
        let output = fed(embody().arg("filter").env("TMPDIR", folder), &expanding());
        assert_eq!(output.status.code(), Some(0));
        assert!(
            !stderr(&output).contains("temporary"),
            "{}",
            stderr(&output)
        );
    }
}

/// The temporary file can be created, but writing fails in the middle of the mail. The part that was written is read back.
#[test]
fn large_mail_stays_in_memory_from_where_the_disk_is_full() {
    const TEST: &str = "large_mail_stays_in_memory_from_where_the_disk_is_full";
    if program("sh").is_none() {
        skipped(TEST, "sh");
        return;
    }
    let mut large = b"A: b\n\n".to_vec();
    large.extend((0..20_000_000_u32).map(|number| ((number * 7) >> 3) as u8 | 1));
    for blocks in [100, 35_000, 36_500] {
        // SIGXFSZ has its default action, or is ignored. In both cases the write must fail without ending the program.
        for trap in ["", "trap '' XFSZ; "] {
            let script = format!("{trap}ulimit -f {blocks}; exec \"$0\" filter");
            let mut shell = Command::new("sh");
            shell.args(["-c", &script, env!("CARGO_BIN_EXE_embody")]);
            let output = fed(&mut shell, &large);
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            assert!(output.stdout == large, "{script}");
            assert!(
                stderr(&output).contains("temporary file in"),
                "{}",
                stderr(&output)
            );
        }
    }
}

#[test]
fn a_report_into_a_pipe_that_nobody_reads_does_not_hold_the_mail_up() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    if !Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .is_ok_and(|made| made.success())
    {
        skipped(
            "a_report_into_a_pipe_that_nobody_reads_does_not_hold_the_mail_up",
            "mkfifo",
        );
        return;
    }
    let begun = Instant::now();
    let output = fed(
        embody().args(["filter", "--report"]).arg(&pipe),
        &expanding(),
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_bytes(&output.stdout, &mail::expand(&expanding()).0, "no reader");
    assert!(stderr(&output).contains("pipe"), "{}", stderr(&output));
    // A reader that reads nothing: the pipe holds only 64 KiB.
    let many = format!("{HEADER}{}--\n", vec![REFERENCE; 1_000].join("\n"));
    let reader = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&pipe)
        .unwrap();
    let output = fed(
        embody().args(["filter", "--quiet", "--report"]).arg(&pipe),
        many.as_bytes(),
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("pipe"), "{}", stderr(&output));
    drop(reader);
    assert!(begun.elapsed() < Duration::from_secs(20));
    // A reader that starts late gets every row.
    let output = std::thread::scope(|scope| {
        let read = scope.spawn(|| {
            sleep(Duration::from_millis(300));
            fs::read_to_string(&pipe).unwrap()
        });
        let output = fed(
            embody().args(["filter", "--report"]).arg(&pipe),
            &expanding(),
        );
        assert_eq!(output.status.code(), Some(0));
        read.join().unwrap()
    });
    assert!(output.contains("\"expanded\""), "{output}");
}

/// If the reader exits, the result is a failed write, neither a panic nor a signal.
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
    let path = mail::samples_folder().join("postcard.in.eml");
    let sample = path.to_str().unwrap();
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
    // If the report cannot be written, this is reported, and the mailbox is converted anyway.
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
fn non_utf8_file_names_and_locales_are_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let odd = |text: &[u8]| folder.path().join(OsStr::from_bytes(text));
    let (source, out, report) = (odd(b"\xe4\xff in.eml"), odd(b"\xf6ut"), odd(b"\xfe.json"));
    if fs::write(&source, expanding()).is_err() {
        skipped(
            "non_utf8_file_names_and_locales_are_accepted",
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
        let row = reports::object(fs::read(&report).unwrap());
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

/// Deadlines use the monotonic clock, which does not jump. If another clock were used, a jump could make a limit end
/// immediately or never, so both kinds of limits are tested.
#[test]
fn zero_or_huge_time_limit_never_expires_and_a_tiny_one_expires_at_once() {
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
            "0",
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
        let over = "0.000000001ms";
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
    // For programs that use the library, the longest possible duration means "no limit".
    let mut policy = embody::Policy::default();
    policy = policy.map_limits(|limits| limits.with_deadline(std::time::Duration::MAX));
    let (output, _) = mail::expand_with(policy, &expanding());
    assert_bytes(&output, &mail::expand(&expanding()).0, "no deadline");
}

#[test]
fn a_clock_that_jumps_while_a_body_comes_in_changes_nothing() {
    const TEST: &str = "a_clock_that_jumps_while_a_body_comes_in_changes_nothing";
    let Some(library) = false_clock(TEST) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let clock = folder.path().join("clock");
    let set = |time: &str| fs::write(&clock, time).unwrap();
    set("+0");
    static BEGAN: AtomicBool = AtomicBool::new(false);
    let server = Raw::http(|_, stream| {
        let answer = ok("text/plain", b"slow");
        let (first, last) = answer.split_at(answer.len() - 1);
        let _ = stream.write_all(first);
        BEGAN.store(true, Ordering::SeqCst);
        sleep(Duration::from_millis(600));
        let _ = stream.write_all(last);
    });
    let port = server.address.port().to_string();
    let message = with_url(&server.url("/"), "Content-Type: text/plain\n");
    let mut filter = embody();
    filter.args(["filter", "--fetch=http", "--allow-net=127.0.0.0/8"]);
    filter.args(["--allow-port", &port, "--timeout=20s", "--deadline=30s"]);
    let straight = fed(&mut filter, &message);
    assert!(straight.stdout != message, "{}", stderr(&straight));

    BEGAN.store(false, Ordering::SeqCst);
    let lied_to = |program: &mut Command, input: &[u8]| {
        program
            .env("LD_PRELOAD", &library)
            .env("FAKETIME_TIMESTAMP_FILE", &clock)
            .env("FAKETIME_NO_CACHE", "1")
            .env("DONT_FAKE_MONOTONIC", "1");
        fed(program, input)
    };
    let year = || lied_to(Command::new("date").arg("+%Y"), b"").stdout;
    let now = year();
    set("+10y");
    assert!(year() != now, "the clock does not lie");
    set("+0");
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            eventually(60, "it began", || BEGAN.load(Ordering::SeqCst));
            for time in ["+10y", "-10y", "+1d"] {
                sleep(Duration::from_millis(150));
                set(time);
            }
        });
        lied_to(&mut filter, &message)
    });
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_bytes(&output.stdout, &straight.stdout, "the clock jumped");
}

/// The wall clock is used only for the age of another program's lock. If the clock was set back, a lock may have a time in the
/// future. It is not treated as old, and the program does not wait for it longer than requested.
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
    let outcome = embody::mailbox::Conversion::of(&path)
        .in_place()
        .options(&options)
        .stop(&stop)
        .run(&Nothing, &());
    assert!(
        matches!(outcome, Err(embody::Error::Locked { .. })),
        "{outcome:?}"
    );
    assert!(begun.elapsed().as_secs() < 20);
    assert_eq!(fs::read(&path).unwrap(), old);
    assert!(lock.exists());
}

/// A transformation that inspects no message.
struct Nothing;

impl embody::mailbox::Transform for Nothing {
    fn next_touch(&self, _bytes: &[u8]) -> Option<usize> {
        None
    }

    fn transform(
        &self,
        _message: &embody::mailbox::Message<'_>,
    ) -> Result<(embody::Edits, ()), embody::Error> {
        Ok((embody::Edits::new(), ()))
    }
}

#[test]
fn unreadable_file_is_reported_and_no_mail_is_lost() {
    use std::os::unix::fs::PermissionsExt as _;
    const TEST: &str = "unreadable_file_is_reported_and_no_mail_is_lost";
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
    // A mailbox that can be read but not written is not replaced.
    let old = format!("From a 10:00\n{}", String::from_utf8(expanding()).unwrap());
    for (name, old) in [
        ("sealed.mbox", old.as_bytes()),
        ("sealed.eml", &expanding()),
    ] {
        let sealed = folder.path().join(name);
        fs::write(&sealed, old).unwrap();
        fs::set_permissions(&sealed, fs::Permissions::from_mode(0o444)).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let Some(mut command) = unprivileged(TEST, folder.path()) else {
            return;
        };
        let output = command
            .args(["convert", "--in-place"])
            .arg(&sealed)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(
            stderr(&output).contains("cannot write"),
            "{}",
            stderr(&output)
        );
        assert_bytes(&fs::read(&sealed).unwrap(), old, name);
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

/// A source in which each retrieval may fail in one of all possible ways. The number of the request determines which.
struct Unreliable {
    seed: u64,
}

impl embody::fetch::Fetch for Unreliable {
    fn fetch(
        &self,
        request: &embody::fetch::Request,
    ) -> Result<embody::engine::Content, embody::report::Refusal> {
        use embody::report::{Reason, Refusal};
        let number: u64 = request.url().rsplit('/').next().unwrap().parse().unwrap();
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
            _ => {
                let types = [None, Some("text/plain"), Some("???"), Some("image/png")];
                let media_type = types[draw as usize / 4 % 4].map(str::to_owned);
                let body = vec![b'y'; draw as usize % 50];
                let mut retrieved = embody::engine::Content::new(request.url(), media_type, body);
                retrieved.origin.elapsed = std::time::Duration::MAX;
                Ok(retrieved)
            }
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
        let mut policy = embody::Policy::default();
        policy = policy.with_fetch([Scheme::Https]);
        let expander = mail::expander(policy.clone(), Unreliable { seed });
        let expansion = expander.expand(mail.as_bytes(), "test").unwrap();
        let output = expansion.output().into_bytes().into_owned();
        let text = String::from_utf8(output.clone()).unwrap();
        assert_eq!(expansion.report.rows.len(), 12);
        for (number, row) in expansion.report.rows.iter().enumerate() {
            let came = text.contains(&parts[number]);
            assert_eq!(came, row.reason.is_some(), "seed {seed}: {row:?}");
            left += usize::from(came);
            expanded += usize::from(!came);
        }
        let again = expander.expand(&output, "test").unwrap();
        assert!(again.output().into_bytes() == output, "seed {seed}");
        policy = policy.with_on_failure(OnFailure::Defer);
        let late = mail::expander(policy, Unreliable { seed })
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
