//! Signals: a stopped run reports what it did, ends with 128 plus the number of the signal, and leaves neither a lock nor a
//! temporary file. Files that a killed run leaves are removed by the next run.
#![cfg(unix)]

use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::bounded::finished;
use crate::common::programs::{embody, fed, stderr};
use crate::common::raw::{Raw, ok};
use rustix::process::{Pid, Signal, kill_process};

const SIGNALS: [(Signal, i32); 3] = [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)];

fn message(url: &str) -> String {
    format!(
        "Subject: x\nContent-Type: message/external-body; access-type=URL; URL=\"{url}\"\n\nContent-Type: text/plain\n\n\n"
    )
}

fn in_mbox(url: &str) -> String {
    format!("From a@b Thu Jan  1 00:00:00 1970\n{}", message(url))
}

/// The first message causes the temporary file to be created, because the next window is far away. The last message waits for a
/// response.
fn started_and_waiting(server: &Raw) -> String {
    let filler = "From a@b Thu Jan  1 00:00:00 1970\nSubject: x\n\nx\n\n".repeat(100_000);
    in_mbox("data:,hello") + &filler + &in_mbox(&server.url("/"))
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn start(command: &mut Command) -> Child {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn signalled(child: Child, signal: Signal) -> Output {
    kill_process(Pid::from_child(&child), signal).unwrap();
    finished(child)
}

#[track_caller]
fn wait_until(what: impl Fn() -> bool) {
    let began = Instant::now();
    while !what() {
        assert!(began.elapsed() < Duration::from_secs(60), "it never comes");
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn stopped_run_over_a_maildir_prints_the_number_of_changed_messages() {
    for (signal, status) in SIGNALS {
        let folder = tempfile::tempdir().unwrap();
        for part in ["cur", "new", "tmp"] {
            fs::create_dir(folder.path().join(part)).unwrap();
        }
        let cur = folder.path().join("cur");
        for number in 0..1500 {
            fs::write(cur.join(format!("{number}.a:2,")), message("data:,hello")).unwrap();
        }
        let changed = || {
            let texts = names(&cur)
                .into_iter()
                .map(|name| fs::read(cur.join(name)).unwrap());
            texts.filter(|text| text.ends_with(b"\n\nhello")).count()
        };
        let run = start(embody().args(["convert", "--in-place"]).arg(folder.path()));
        wait_until(|| changed() > 0);
        let output = signalled(run, signal);
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        let changed = changed();
        assert!(changed < 1500, "it was too fast to be stopped");
        let said = stderr(&output);
        let line = format!("embody: stopped by a signal; {changed} messages were changed, ");
        assert!(said.contains(&line), "{line}{said}");
        assert!(
            said.contains(&format!(
                " {changed} changed.\n{changed} attachments put into the mail.\n"
            )),
            "{changed}: {said}"
        );
        assert_eq!(names(folder.path()), ["cur", "new", "tmp"]);
        assert!(names(&folder.path().join("tmp")).is_empty());
    }
}

/// Returns a server that records that it got a request, and responds late.
fn slow(delay: Duration) -> (Raw, Arc<AtomicBool>) {
    let asked = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&asked);
    let server = Raw::http(move |_, stream| {
        seen.store(true, Ordering::SeqCst);
        sleep(delay);
        let _ = stream.write_all(&ok("text/plain", b"slow"));
    });
    (server, asked)
}

fn convert(server: &Raw) -> Command {
    convert_in(1, server)
}

fn convert_in(jobs: usize, server: &Raw) -> Command {
    let mut command = embody();
    command.args(["convert", "--fetch=http", "--allow-net=127.0.0.0/8"]);
    command.arg(format!("--jobs={jobs}"));
    command.args(["--max-in-flight=1", "--allow-port"]);
    command.arg(server.address.port().to_string());
    command
}

#[test]
fn a_stopped_run_asks_for_nothing_more_also_for_those_who_wait_for_their_turn() {
    let asked = Arc::new(AtomicUsize::new(0));
    let is_stopped = Arc::new(AtomicBool::new(false));
    let (seen, may_answer) = (Arc::clone(&asked), Arc::clone(&is_stopped));
    let server = Raw::http(move |_, stream| {
        seen.fetch_add(1, Ordering::SeqCst);
        wait_until(|| may_answer.load(Ordering::SeqCst));
        let _ = stream.write_all(&ok("text/plain", b"slow"));
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box");
    let before: String = (0..6)
        .map(|number| in_mbox(&server.url(&format!("/{number}"))))
        .collect();
    fs::write(&path, &before).unwrap();
    // The limit of one retrieval at a time applies to the whole run, not to each job.
    let mut command = convert_in(4, &server);
    command.args(["--in-place", "box"]);
    let run = start(command.current_dir(&folder));
    wait_until(|| asked.load(Ordering::SeqCst) > 0);
    sleep(Duration::from_millis(300));
    kill_process(Pid::from_child(&run), Signal::TERM).unwrap();
    sleep(Duration::from_millis(300));
    is_stopped.store(true, Ordering::SeqCst);
    let output = finished(run);
    assert_eq!(output.status.code(), Some(143), "{}", stderr(&output));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}

#[test]
fn a_stopped_run_over_an_mbox_leaves_it_as_it_was_and_nothing_beside_it() {
    for (signal, status) in SIGNALS {
        let (server, asked) = slow(Duration::from_millis(800));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("box");
        let before = started_and_waiting(&server);
        for arguments in [&["--in-place"][..], &["--output", "out", "--no-resume"]] {
            asked.store(false, Ordering::SeqCst);
            fs::write(&path, &before).unwrap();
            let run = start(
                convert(&server)
                    .args(arguments)
                    .arg("box")
                    .current_dir(&folder),
            );
            wait_until(|| asked.load(Ordering::SeqCst));
            assert!(
                !folder.path().join("box.lock").exists(),
                "nobody is kept out"
            );
            let output = signalled(run, signal);
            assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
            let said = stderr(&output);
            assert!(said.contains("stopped by a signal; 0 messages "), "{said}");
            assert!(said.contains("0 changed."), "{said}");
            assert_eq!(fs::read_to_string(&path).unwrap(), before);
            assert_eq!(names(folder.path()), ["box"]);
        }
    }
}

#[test]
fn a_stopped_run_asks_for_nothing_more() {
    let (server, asked) = slow(Duration::from_millis(300));
    let folder = tempfile::tempdir().unwrap();
    let part = |number| format!("--b\n{}", message(&server.url(&format!("/{number}"))));
    let parts: String = (0..20).map(part).collect();
    let mail = format!("Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n{parts}--b--\n");
    for kept in ["box.eml", "Maildir/cur/1.a:2,"] {
        asked.store(false, Ordering::SeqCst);
        for part in ["cur", "new", "tmp"] {
            fs::create_dir_all(folder.path().join("Maildir").join(part)).unwrap();
        }
        fs::write(folder.path().join(kept), &mail).unwrap();
        let before = server.count();
        let run = start(
            convert(&server)
                .args(["--in-place", kept])
                .current_dir(&folder),
        );
        wait_until(|| asked.load(Ordering::SeqCst));
        let output = signalled(run, Signal::INT);
        assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        assert!(
            stderr(&output).contains("stopped by a signal; 0 messages were changed"),
            "{}",
            stderr(&output)
        );
        assert!(server.count() - before < 4, "{}", server.count() - before);
        assert_eq!(fs::read_to_string(folder.path().join(kept)).unwrap(), mail);
    }
}

#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let (server, asked) = slow(Duration::from_millis(300));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("box"), in_mbox(&server.url("/"))).unwrap();
    let convert = convert(&server);
    let mut nohup = Command::new("sh");
    nohup.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]);
    nohup.arg(convert.get_program()).args(convert.get_args());
    let run = start(nohup.args(["--in-place", "box"]).current_dir(&folder));
    wait_until(|| asked.load(Ordering::SeqCst));
    let output = signalled(run, Signal::HUP);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        fs::read_to_string(folder.path().join("box"))
            .unwrap()
            .contains("\n\nslow")
    );
}

/// A mail system treats status 75 as "try again". Some treat a death by signal as an error of the mail.
#[test]
fn a_stopped_filter_says_try_again_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let scratch = folder.path().join("scratch");
    fs::create_dir(&scratch).unwrap();
    for (signal, _) in SIGNALS {
        let (server, asked) = slow(Duration::from_secs(5));
        let file = folder.path().join("m.eml");
        fs::write(&file, message(&server.url("/"))).unwrap();
        let mut filter = embody();
        filter.args(["filter", "--fetch", "http", "--allow-net", "127.0.0.0/8"]);
        filter.args(["--allow-port", &server.address.port().to_string()]);
        let run = filter
            .arg(&file)
            .env("TMPDIR", &scratch)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until(|| asked.load(Ordering::SeqCst));
        let output = signalled(run, signal);
        assert_eq!(output.status.code(), Some(75), "{signal:?} {output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        assert!(names(&scratch).is_empty());
    }
    // As a filter, with standard input that does not end.
    for line in ["filter", "detach --store st", "restore --store st"] {
        fs::create_dir_all(folder.path().join("st")).unwrap();
        let mut run = embody()
            .args(line.split(' '))
            .current_dir(&folder)
            .env("TMPDIR", &scratch)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = run.stdin.take().unwrap();
        // This is more than fits into memory buffers and the pipe, so the program is reading.
        input.write_all(&b"x\n".repeat(10 << 20)).unwrap();
        let output = signalled(run, Signal::TERM);
        assert_eq!(output.status.code(), Some(75), "{line} {output:?}");
        assert!(output.stdout.is_empty(), "{line}");
        assert!(names(&scratch).is_empty(), "{line}");
    }
}

#[test]
fn a_signal_that_a_filter_was_told_to_ignore_stays_ignored() {
    let (server, asked) = slow(Duration::from_millis(300));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m.eml"), message(&server.url("/"))).unwrap();
    let port = server.address.port().to_string();
    let mut nohup = Command::new("sh");
    nohup.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]);
    nohup.arg(env!("CARGO_BIN_EXE_embody"));
    nohup.args(["filter", "--fetch", "http", "--allow-net", "127.0.0.0/8"]);
    nohup.args(["--allow-port", &port, "m.eml"]);
    let run = start(nohup.current_dir(&folder));
    wait_until(|| asked.load(Ordering::SeqCst));
    let output = signalled(run, Signal::HUP);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn next_run_removes_files_of_a_killed_run_in_every_place() {
    let (server, asked) = slow(Duration::from_secs(5));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box");
    fs::write(&path, started_and_waiting(&server)).unwrap();
    let run = start(convert(&server).arg("--in-place").arg(&path));
    wait_until(|| asked.load(Ordering::SeqCst) && names(folder.path()).len() == 2);
    signalled(run, Signal::KILL);
    let left = names(folder.path()).remove(0);
    assert!(left.starts_with(".embody-"), "{left}");
    fs::remove_file(folder.path().join(&left)).unwrap();

    let places: [(&str, &[&str], &str); 5] = [
        ("in place", &["--in-place", "box"], ""),
        ("beside the source", &["--output", "away/out", "box"], ""),
        (
            "beside the result",
            &["--output", "away/out", "box"],
            "away",
        ),
        ("in a Maildir", &["--in-place", "Maildir"], "Maildir"),
        ("in its tmp", &["--in-place", "Maildir/cur"], "Maildir/tmp"),
    ];
    for (place, arguments, inside) in places {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in [
            "away",
            "Maildir",
            "Maildir/cur",
            "Maildir/new",
            "Maildir/tmp",
        ] {
            fs::create_dir(at(name)).unwrap();
        }
        // Nothing in the mailbox changes.
        fs::write(
            at("box"),
            "From a@b Thu Jan  1 00:00:00 1970\nSubject: x\n\nx\n",
        )
        .unwrap();
        let of_ours = at(inside).join(&left);
        let of_others = at(inside).join(left.replace(".embody-", ".embody-elsewhere"));
        fs::write(&of_ours, "half").unwrap();
        fs::write(&of_others, "half").unwrap();
        let mut run = embody();
        let output = run
            .arg("convert")
            .args(arguments)
            .current_dir(&folder)
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{place}: {}",
            stderr(&output)
        );
        assert!(!of_ours.exists(), "{place}");
        assert!(of_others.exists(), "{place}");
    }
}

fn limited(script: &str, folder: &Path) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_embody")]);
    shell.current_dir(folder);
    shell
}

/// `ulimit -f` counts blocks of 512 or 1024 bytes.
#[test]
fn exceeding_the_file_size_limit_is_a_write_error_and_not_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let old = in_mbox("data:,hello").repeat(3_000);
    fs::write(folder.path().join("box"), &old).unwrap();
    for script in [
        "ulimit -f 100; \"$0\" convert --in-place box",
        "ulimit -f 100; \"$0\" convert --output out box",
    ] {
        let output = limited(script, folder.path()).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(1),
            "{:?} {}",
            output.status.signal(),
            stderr(&output)
        );
        assert!(
            stderr(&output).contains("cannot write"),
            "{}",
            stderr(&output)
        );
        assert_eq!(fs::read_to_string(folder.path().join("box")).unwrap(), old);
        assert_eq!(names(folder.path()), ["box"]);
    }
    let mail = "Subject: x\n\n".to_owned() + &"x\n".repeat(100_000);
    let output = fed(
        &mut limited("ulimit -f 100; \"$0\" filter >out", folder.path()),
        mail.as_bytes(),
    );
    assert_eq!(
        output.status.code(),
        Some(75),
        "{:?} {}",
        output.status.signal(),
        stderr(&output)
    );
}

#[test]
fn closed_standard_error_does_not_stop_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("box");
    let message = in_mbox("http://not.allowed.example/") + &in_mbox("data:,hello");
    fs::write(&path, message.repeat(2_000)).unwrap();
    let script = "{ \"$0\" convert --verbose --in-place box 2>&1; echo $? >status; } | head -n 1";
    let output = limited(script, folder.path()).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("embody: "));
    assert_eq!(
        fs::read_to_string(folder.path().join("status")).unwrap(),
        "0\n"
    );
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches("\n\nhello").count(), 2_000);
}
