//! `-` is standard input or output wherever a file can be named. Input that is not mail is reported as such.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::common::bounded::{ended, finished};
use crate::common::programs::{embody, fed, stderr};

const DATE: &str = "Mon Jan  1 10:00:00 2024";

fn mailbox() -> String {
    let first = "Subject: 1\nMIME-Version: 1.0\nContent-Type: message/external-body; access-type=URL;\n URL=\"data:,one%0A\"\n\n\
                 Content-Type: text/plain\n\nphantom\n\n";
    format!("From a@b {DATE}\n{first}From a@b {DATE}\nSubject: 2\n\ntwo\n")
}

fn expanded() -> String {
    let first = "Subject: 1\nMIME-Version: 1.0\nContent-Type: text/plain\nContent-Transfer-Encoding: 7bit\n\none\n\n";
    format!("From a@b {DATE}\n{first}From a@b {DATE}\nSubject: 2\n\ntwo\n")
}

/// Runs the program in `folder` with `input` as its standard input.
fn run(arguments: &[&str], folder: &Path, input: &[u8]) -> (i32, String, String) {
    let mut command = embody();
    command.args(arguments).current_dir(folder);
    let output = fed(&mut command, input);
    assert!(
        !folder.join("-").exists(),
        "{arguments:?} made a file named -"
    );
    seen(&output)
}

fn seen(output: &Output) -> (i32, String, String) {
    (
        output.status.code().expect("it ended by itself"),
        String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr(output),
    )
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn file_named_like_standard_input_is_not_opened() {
    for is_folder in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let named = folder.path().join("-");
        if is_folder {
            fs::create_dir(&named).unwrap()
        } else {
            fs::write(&named, "no mail").unwrap()
        }
        for (arguments, expected) in [
            (&["convert", "-", "--output", "-"][..], expanded()),
            (&["convert", "-", "--output", "to"], String::new()),
        ] {
            let mut command = embody();
            command.args(arguments).current_dir(folder.path());
            let output = fed(&mut command, mailbox().as_bytes());
            let (status, stdout, said) = seen(&output);
            assert_eq!((status, stdout), (0, expected), "{arguments:?}: {said}");
        }
        let to = fs::read_to_string(folder.path().join("to")).unwrap();
        assert_eq!(to, expanded());
        for sources in [&["-"][..], &[]] {
            let mut command = embody();
            command
                .arg("inspect")
                .args(sources)
                .current_dir(folder.path());
            let output = fed(&mut command, mailbox().as_bytes());
            let (status, stdout, said) = seen(&output);
            assert_eq!(status, 0, "{said}");
            assert!(stdout.contains("1 mailbox, 2 messages"), "{stdout}");
        }
    }
}

#[test]
fn a_mailbox_is_converted_from_and_to_standard_streams_and_files_alike() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("box"), mailbox()).unwrap();
    for arguments in [
        &["convert", "-", "--output", "-"][..],
        &["convert", "box", "--output", "-"],
        &["convert", "/dev/stdin", "--output", "-"],
    ] {
        let (status, out, said) = run(arguments, folder.path(), mailbox().as_bytes());
        assert_eq!((status, out), (0, expanded()), "{arguments:?}: {said}");
        assert!(
            said.contains("2 messages read, 1 changed.\n1 attachment put into the mail."),
            "{said}"
        );
    }
    let (status, out, said) = run(
        &["convert", "-", "--output", "new"],
        folder.path(),
        mailbox().as_bytes(),
    );
    assert_eq!((status, out.as_str()), (0, ""), "{said}");
    let new = fs::read_to_string(folder.path().join("new")).unwrap();
    assert_eq!(new, expanded());
    let (status, ..) = run(
        &["convert", "-", "--output", "new"],
        folder.path(),
        mailbox().as_bytes(),
    );
    assert_eq!(status, 1, "nothing is overwritten");
    let (status, out, said) = run(
        &["convert", "--dry-run", "-", "--output", "-"],
        folder.path(),
        mailbox().as_bytes(),
    );
    assert_eq!((status, out.as_str()), (0, ""), "{said}");
    assert!(said.contains("1 would be changed"), "{said}");
    assert_eq!(names(folder.path()), ["box", "new"]);
}

#[test]
fn a_single_message_and_an_empty_mailbox_go_through_standard_streams_too() {
    let folder = tempfile::tempdir().unwrap();
    let message = mailbox()
        .split_once('\n')
        .unwrap()
        .1
        .split("From a@b")
        .next()
        .unwrap()
        .to_owned();
    let (status, out, said) = run(
        &["convert", "-", "--output", "-"],
        folder.path(),
        message.as_bytes(),
    );
    assert_eq!(status, 0, "{said}");
    assert!(out.ends_with("\n\none\n"), "{out}");
    let (status, out, _) = run(&["convert", "-", "--output", "-"], folder.path(), b"");
    assert_eq!((status, out.as_str()), (0, ""));
}

#[test]
fn what_standard_streams_cannot_do_is_bad_usage_and_makes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("box"), mailbox()).unwrap();
    fs::create_dir(folder.path().join("folder")).unwrap();
    for arguments in [
        &["convert", "--in-place", "-"][..],
        &["convert", "-", "-", "--output", "out"],
        &["convert", "-", "box", "--output", "out"],
        &["convert", "box", "box", "--output", "-"],
        &["convert", "folder", "--output", "-"],
    ] {
        let (status, out, said) = run(arguments, folder.path(), mailbox().as_bytes());
        assert_eq!((status, out.as_str()), (2, ""), "{arguments:?}: {said}");
        assert_eq!(names(folder.path()), ["box", "folder"]);
    }
    assert_eq!(
        fs::read_to_string(folder.path().join("box")).unwrap(),
        mailbox()
    );
}

#[test]
fn a_closed_standard_input_is_no_mailbox_and_a_file_is_not_appended_to_itself() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("box"), mailbox()).unwrap();
    for (script, status) in [
        ("\"$1\" convert - --output new <&-", 1),
        ("\"$1\" inspect - <&-", 1),
        ("\"$1\" convert box --output - >>box", 2),
    ] {
        let output = std::process::Command::new("sh")
            .args(["-c", script, "sh", env!("CARGO_BIN_EXE_embody")])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(status), "{script}");
        assert_eq!(names(folder.path()), ["box"], "{script}");
        let now = fs::read_to_string(folder.path().join("box")).unwrap();
        assert_eq!(now, mailbox(), "{script}");
    }
}

#[test]
fn inspect_reads_a_mailbox_on_standard_input_as_one() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("box"), mailbox()).unwrap();
    let (_, expected, _) = run(&["inspect", "box"], folder.path(), b"");
    assert!(expected.contains("2 messages"), "{expected}");
    // The next step in the summary names the mailbox, but standard input has no name.
    let before_next_step = |text: &str| text.split("Next step").next().map(str::to_owned);
    for arguments in [
        &["inspect"][..],
        &["inspect", "-"],
        &["inspect", "/dev/stdin"],
    ] {
        let (status, out, said) = run(arguments, folder.path(), mailbox().as_bytes());
        assert_eq!(status, 0, "{arguments:?}: {said}");
        assert_eq!(before_next_step(&out), before_next_step(&expected));
        assert!(out.contains("embody recover MAILBOX --output NEW"), "{out}");
    }
    let (_, out, _) = run(&["inspect"], folder.path(), b"Subject: x\n\ny\n");
    assert!(
        out.contains("text/plain") && out.contains("Nothing is missing"),
        "{out}"
    );
}

#[test]
fn filter_refuses_a_mailbox_by_name_and_passes_one_on_that_is_fed_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut large = mailbox().into_bytes();
    large.extend_from_slice(&b"0123456789abcde\n".repeat(1_200_000));
    let plain = format!("From a@b {DATE}\nSubject: 1\n\n");
    let spooled = [
        plain.as_bytes(),
        &b"0123456789abcde\n".repeat(1_200_000),
        mailbox().as_bytes(),
    ]
    .concat();
    let quiet = String::from_utf8(spooled)
        .unwrap()
        .replace("external-body", "plain-text")
        .into_bytes();
    for bytes in [mailbox().as_bytes(), &large, &quiet] {
        fs::write(folder.path().join("box"), bytes).unwrap();
        let (status, out, said) = run(&["filter", "box"], folder.path(), b"");
        assert_eq!((status, out.as_str()), (75, ""), "{said}");
        assert!(said.contains("use embody convert"), "{said}");
        for arguments in [&["filter"][..], &["filter", "-"], &["filter", "/dev/stdin"]] {
            // Another message follows the reference, and it must not be lost.
            let (status, out, said) = run(arguments, folder.path(), bytes);
            assert_eq!(status, 0, "{said}");
            assert!(out.as_bytes() == bytes, "{arguments:?}");
            assert!(
                said.contains("looks like a mailbox with several messages"),
                "{said}"
            );
        }
        let (status, _, said) = run(&["filter", "--quiet"], folder.path(), bytes);
        assert_eq!((status, said.as_str()), (0, ""));
    }
    // A single message with the `From ` line that procmail adds at its start.
    let one = mailbox().split("\n\nFrom ").next().unwrap().to_owned();
    let (status, out, said) = run(&["filter"], folder.path(), one.as_bytes());
    assert_eq!(status, 0);
    assert!(
        out.ends_with("\n\none\n") && !said.contains("second"),
        "{out}{said}"
    );
}

#[test]
fn what_is_no_mail_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes, words) in [
        (
            "pst",
            b"!BDNFrom: a\n".as_slice(),
            ["the file has the version 2657", "export the mailbox"],
        ),
        (
            "png",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
            ["binary data", "not mail"],
        ),
    ] {
        fs::write(folder.path().join(name), bytes).unwrap();
        for arguments in [
            &["inspect", name][..],
            &["convert", "--in-place", name],
            &["convert", "--format", "eml", "--in-place", name],
            &["convert", name, "--output", "out"],
            &["convert", name, "--output", "-"],
        ] {
            let (status, out, said) = run(arguments, folder.path(), b"");
            assert_eq!((status, out.as_str()), (1, ""), "{arguments:?}");
            // The user said that the file is one message, and it is not.
            let words = if arguments.contains(&"eml") && name == "pst" {
                ["an Outlook mailbox", "use --format auto"]
            } else {
                words
            };
            assert!(
                said.contains(name) && words.iter().all(|word| said.contains(word)),
                "{said}"
            );
        }
        let (status, _, said) = run(&["inspect"], folder.path(), bytes);
        assert_eq!(status, 1, "{said}");
        assert!(said.contains(words[0]), "{said}");
    }
    assert_eq!(names(folder.path()), ["png", "pst"]);
    fs::write(folder.path().join("box"), mailbox()).unwrap();
    fs::write(folder.path().join("pst2"), b"!BDN").unwrap();
    for (command, skipped) in [
        (&["inspect", "."][..], "skipped      1 binary data"),
        (
            &["convert", "--dry-run", "--in-place", "."],
            "skipped         1  binary data",
        ),
    ] {
        let (status, out, said) = run(command, folder.path(), b"");
        // A mailbox that cannot be read is not skipped.
        assert_eq!(status, 1, "{said}");
        assert!(said.contains("./pst: the file has the version"), "{said}");
        assert!(
            said.contains("./pst2: the file ends within its header"),
            "{said}"
        );
        let both = out + &said;
        assert!(both.contains(skipped), "{both}");
        assert!(!both.contains("png"), "{both}");
        let (_, _, said) = run(&[command, &["--verbose"]].concat(), folder.path(), b"");
        assert!(said.contains("./png: skipped: binary data"), "{said}");
    }
}

#[test]
fn a_mailbox_on_standard_input_streams_to_standard_output() {
    use std::io::Read as _;
    let mut child = embody()
        .args(["convert", "-", "--output", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let plain = format!("From a@b {DATE}\nSubject: 2\n\n{}\n", "two\n".repeat(2000));
    // This is more than the program reads ahead.
    let before = mailbox() + &plain.repeat(1000);
    let behind = mailbox();
    std::thread::scope(|scope| {
        let (go_on, gone_on) = std::sync::mpsc::channel::<()>();
        let (before, behind) = (&before, &behind);
        scope.spawn(move || {
            stdin.write_all(before.as_bytes()).unwrap();
            // The end of the input is sent only after the beginning of the output has arrived.
            gone_on.recv().unwrap();
            stdin.write_all(behind.as_bytes()).unwrap();
        });
        let mut out = vec![0; 1 << 20];
        stdout.read_exact(&mut out).unwrap();
        assert!(out.starts_with(expanded().as_bytes()));
        go_on.send(()).unwrap();
        stdout.read_to_end(&mut out).unwrap();
        assert!(ended(&mut child).success());
        let expected = expanded() + &plain.repeat(1000) + &expanded();
        assert!(out == expected.as_bytes(), "{} bytes", out.len());
    });
}

#[test]
fn a_stop_ends_a_run_that_waits_for_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = embody()
        .args(["convert", "-", "--output", "out"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // This is more than a pipe holds: when all of it is written, the program is reading.
    let more = mailbox().repeat((1 << 20) / mailbox().len());
    stdin.write_all(more.as_bytes()).unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = finished(child);
    drop(stdin);
    assert!(!output.status.success());
    assert!(stderr(&output).contains("stopped"), "{}", stderr(&output));
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_page_of_the_manual_goes_to_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let (status, out, _) = run(&["man", "-"], folder.path(), b"");
    assert!(status == 0 && out.contains(".TH"), "{out}");
}

/// Sets O_NONBLOCK on a file, as a process with an event loop does.
fn unblocked<F: std::os::fd::AsFd>(file: F) -> F {
    let flags = rustix::fs::fcntl_getfl(&file).unwrap();
    rustix::fs::fcntl_setfl(&file, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    file
}

#[test]
fn nonblocking_streams_are_used_as_if_they_blocked() {
    use std::io::Read as _;
    let mut message = b"Subject: x\n\n".to_vec();
    message.resize(2 << 20, b'x');
    message.push(b'\n');
    let mbox = [b"From a@b Mon Jan  1 10:00:00 2024\n", &message[..], b"\n"].concat();
    for (arguments, bytes) in [
        (&["filter"][..], &message),
        (&["convert", "-", "--output", "-"], &mbox),
    ] {
        let (input, mut feeding) = std::io::pipe().unwrap();
        let (mut reading, output) = std::io::pipe().unwrap();
        let mut command = embody();
        command.args(arguments).stderr(Stdio::piped());
        command.stdin(unblocked(input)).stdout(unblocked(output));
        let child = command.spawn().unwrap();
        drop(command);
        let mut read = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for part in bytes.chunks(300_000) {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    feeding.write_all(part).unwrap();
                }
            });
            std::thread::sleep(std::time::Duration::from_millis(300));
            reading.read_to_end(&mut read).unwrap();
        });
        let ended = finished(child);
        assert!(ended.status.success(), "{arguments:?}: {}", stderr(&ended));
        assert!(read == *bytes, "{arguments:?}: {} bytes", read.len());
    }
}
