//! `embody convert` and `embody inspect` on mailboxes, with the arguments that a user types.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

use crate::common::programs::{embody, program, skipped, stderr};
use crate::common::reports;

fn run(arguments: &[&str], folder: &Path) -> Output {
    embody()
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("embody can be run")
}

fn status(output: &Output) -> i32 {
    output.status.code().expect("it ended by itself")
}

fn folder_with(name: &str, bytes: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(name), bytes).expect("a file");
    folder
}

fn message(number: usize, body: &str) -> String {
    format!("From a@example.org Sat Jan  1 00:00:{number:02} 2000\nSubject: {number}\n{body}\n\n")
}

fn external(url: &str) -> String {
    format!(
        "Content-Type: message/external-body; access-type=URL; URL=\"{url}\"\n\nContent-Type: text/plain\n\nphantom"
    )
}

fn mailbox() -> String {
    [
        message(1, "\nplain\n>From quoted"),
        message(2, &external("data:,From%20me%0AFrom%20here%20on%0A")),
        message(3, &external("http://www.example.org/x")),
        message(4, "\nFrom here on, no separator"),
    ]
    .concat()
}

/// A file that replaces a mailbox keeps its modification time. A new file has the time at which it was created.
#[test]
fn a_new_file_has_the_time_at_which_it_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let dated = |path: &Path| {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(old).unwrap();
    };
    let modified = |name: &str| {
        let made = fs::metadata(folder.path().join(name)).unwrap();
        made.modified().unwrap()
    };
    let ran = |arguments: &[&str]| {
        let output = embody()
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    fs::create_dir(folder.path().join("messages")).unwrap();
    for (from, to) in [
        ("mailbox.mbox", "old.mbox"),
        ("postcard.in.eml", "old.eml"),
        ("postcard.in.eml", "messages/old.eml"),
    ] {
        let to = folder.path().join(to);
        fs::copy(samples.join(from), &to).unwrap();
        dated(&to);
    }
    let since = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    for new in ["new.mbox", "new.mbox.gz"] {
        ran(&["convert", "--quiet", "old.mbox", "--output", new]);
        assert!(modified(new) > since, "{new}");
    }
    // The modification time of a message in a file of its own is the time at which it arrived.
    for (from, to, new) in [
        ("old.eml", "new.eml", "new.eml"),
        ("messages", "others", "others/old.eml"),
    ] {
        ran(&["convert", "--quiet", from, "--output", to]);
        assert_eq!(modified(new), old, "{new}");
    }
    ran(&["convert", "--quiet", "--in-place", "old.mbox"]);
    assert_eq!(modified("old.mbox"), old);
}

#[test]
fn a_mailbox_is_converted_beside_and_in_place_alike() {
    let before = mailbox();
    let folder = folder_with("a.mbox", before.as_bytes());
    let output = run(&["convert", "a.mbox", "--output", "b.mbox"], folder.path());
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert!(
        stderr(&output).contains(
            "4 messages read, 1 changed.\n1 attachment put into the mail. 1 could not be: "
        ),
        "{}",
        stderr(&output)
    );
    let beside = fs::read_to_string(folder.path().join("b.mbox")).expect("a result");
    assert!(beside.contains(">From me\n>From here on\n"), "{beside}");
    assert!(beside.starts_with(&message(1, "\nplain\n>From quoted")));
    assert!(
        beside.ends_with(
            &[
                message(3, &external("http://www.example.org/x")),
                message(4, "\nFrom here on, no separator")
            ]
            .concat()
        )
    );
    let output = run(
        &["convert", "--in-place", "--backup", ".old", "a.mbox"],
        folder.path(),
    );
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert_eq!(
        fs::read_to_string(folder.path().join("a.mbox")).expect("it"),
        beside
    );
    assert_eq!(
        fs::read_to_string(folder.path().join("a.mbox.old")).expect("it"),
        before
    );
    let output = run(&["convert", "--in-place", "a.mbox"], folder.path());
    assert!(stderr(&output).contains("0 changed"), "{}", stderr(&output));
    assert_eq!(
        fs::read_to_string(folder.path().join("a.mbox")).expect("it"),
        beside
    );
    let left = fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(left, 3, "a stray file");
}

#[test]
fn the_sample_mailbox_is_converted() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/mailbox.mbox");
    let bytes = fs::read(&sample).expect("the sample");
    let folder = folder_with("m", &bytes);
    let output = run(&["convert", "m", "--output", "n"], folder.path());
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert!(
        stderr(&output).contains("8 messages"),
        "{}",
        stderr(&output)
    );
    let twice = run(&["convert", "n", "--output", "o"], folder.path());
    assert_eq!(status(&twice), 0);
    assert_eq!(
        fs::read(folder.path().join("n")).expect("n"),
        fs::read(folder.path().join("o")).expect("o")
    );
}

#[test]
fn a_dry_run_writes_nothing_and_says_what_it_would_do() {
    let folder = folder_with("a.mbox", mailbox().as_bytes());
    let output = run(
        &["convert", "--dry-run", "--in-place", "a.mbox"],
        folder.path(),
    );
    assert_eq!(status(&output), 0);
    assert!(
        stderr(&output).contains("dry run, nothing was written"),
        "{}",
        stderr(&output)
    );
    assert_eq!(
        fs::read_to_string(folder.path().join("a.mbox")).expect("it"),
        mailbox()
    );
}

#[test]
fn bad_usage_is_2_and_what_is_no_mailbox_is_1() {
    let folder = folder_with("a.mbox", b"this is\nnot a mailbox\n");
    for arguments in [
        &["convert", "a.mbox"][..],
        &["convert", "a.mbox", "--in-place", "--output", "b"],
        &["convert", "--in-place"],
        &["convert", "--nonsense", "a.mbox"],
        &["convert", "a.mbox", "--output", "b", "--backup", ".old"],
    ] {
        assert_eq!(status(&run(arguments, folder.path())), 2, "{arguments:?}");
    }
    let output = run(&["convert", "--in-place", "a.mbox"], folder.path());
    assert_eq!(status(&output), 1);
    assert!(stderr(&output).contains("a.mbox"), "{}", stderr(&output));
    fs::write(folder.path().join("c.mbox"), mailbox()).expect("a file");
    fs::write(folder.path().join("d"), b"mine").expect("a file");
    let output = run(&["convert", "c.mbox", "--output", "d"], folder.path());
    assert_eq!(status(&output), 1, "nothing is overwritten");
    assert_eq!(fs::read(folder.path().join("d")).expect("d"), b"mine");
}

#[test]
fn the_report_has_a_row_for_each_reference_in_the_order_of_the_messages() {
    let many: String = (0..200)
        .map(|n| message(n % 60, &external(&format!("http://h{n}.example/"))))
        .collect();
    let folder = folder_with("a.mbox", many.as_bytes());
    let arguments = [
        "convert", "a.mbox", "--output", "b", "--report", "r", "--quiet", "--jobs", "4",
    ];
    let output = run(&arguments, folder.path());
    assert_eq!((status(&output), stderr(&output).as_str()), (0, ""));
    let report = fs::read_to_string(folder.path().join("r")).expect("a report");
    let numbers: Vec<u64> = report
        .lines()
        .map(|line| {
            let row = reports::object(line);
            assert_eq!(row["reason"], "scheme-not-allowed");
            row["message"]
                .as_str()
                .and_then(|number| number.parse().ok())
                .expect("a number")
        })
        .collect();
    assert_eq!(numbers, (1..=200).collect::<Vec<u64>>());
}

#[test]
fn inspect_counts_what_is_in_a_mailbox_and_touches_nothing() {
    let folder = folder_with("a.mbox", mailbox().as_bytes());
    let output = run(
        &["inspect", "--verbose", "--fetch", "http", "a.mbox"],
        folder.path(),
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(status(&output), 0);
    for line in [
        "1 mailbox, 4 messages",
        "external-body",
        "www.example.org",
        "would-fetch",
        "would-expand",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    let output = run(&["inspect", "--json", "a.mbox"], folder.path());
    let rows = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(rows.lines().count(), 2 + 1);
    let survey = rows.lines().last().expect("there are three");
    assert!(
        survey.starts_with("{\"kind\":\"survey\",\"survey\":{"),
        "{survey}"
    );
    assert_eq!(
        fs::read_to_string(folder.path().join("a.mbox")).expect("it"),
        mailbox()
    );
}

#[test]
fn a_maildir_and_a_message_are_converted_in_place() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["cur", "new", "tmp"] {
        fs::create_dir_all(folder.path().join("M").join(name)).expect("a folder");
    }
    let letter = format!("Subject: x\n{}", external("data:,note"));
    let name = format!("M/cur/1.host,S={}:2,S", letter.len());
    fs::write(folder.path().join(&name), &letter).expect("a message");
    fs::write(folder.path().join("x.eml"), &letter).expect("a message");
    let output = run(&["convert", "--in-place", "M", "x.eml"], folder.path());
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let eml = fs::read_to_string(folder.path().join("x.eml")).expect("it");
    assert!(eml.ends_with("\n\nnote"), "{eml}");
    let entry = fs::read_dir(folder.path().join("M/cur"))
        .expect("cur")
        .next()
        .expect("one")
        .expect("it");
    let expected = format!("1.host,S={}:2,S", eml.len());
    assert_eq!(entry.file_name().to_string_lossy(), expected);
}

/// Returns the text and the exit status on a terminal of this type with 80 columns, or `None` if no terminal is available.
fn on_a_terminal(test: &str, kind: &str, arguments: &str, folder: &Path) -> Option<(String, i32)> {
    let Some(script) = program("script") else {
        skipped(test, "script");
        return None;
    };
    let command = format!("stty rows 24 cols 80; exec \"$EMBODY\" {arguments}");
    let output = Command::new(script)
        .args(["-qec", &command, "/dev/null"])
        .env("EMBODY", env!("CARGO_BIN_EXE_embody"))
        .env("TERM", kind)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("script can be run");
    let sent = String::from_utf8(output.stdout.clone()).expect("text");
    Some((sent, status(&output)))
}

#[test]
fn a_bar_goes_away_before_anything_else_is_written() {
    let folder = folder_with("a.mbox", mailbox().as_bytes());
    let convert = "convert --verbose --progress always a.mbox --output";
    let test = "a_bar_goes_away_before_anything_else_is_written";
    let Some((sent, ended)) =
        on_a_terminal(test, "xterm", &format!("{convert} b.mbox"), folder.path())
    else {
        return;
    };
    assert_eq!(ended, 0, "{sent:?}");
    const CLEAR: &str = "\r\u{1b}[2K";
    // Messages are printed, the progress bar is drawn and removed, and the summary follows.
    let shown: Vec<&str> = sent.split(CLEAR).collect();
    assert_eq!(shown.len(), 3, "{sent:?}");
    assert!(shown[0].starts_with("embody: \"2\", part 1: "), "{sent:?}");
    assert!(shown[0].ends_with("\r\n"), "{sent:?}");
    assert!(shown[1].starts_with("[####"), "{sent:?}");
    assert!(
        shown[1].contains("#] 100 %, 0.5 of 0.5 KiB, 4 messages, 1 filled in, 1 unchanged, "),
        "{sent:?}"
    );
    // One column stays free.
    assert_eq!(shown[1].len(), 79, "{sent:?}");
    assert!(
        shown[2].starts_with("embody: 4 messages read, "),
        "{sent:?}"
    );

    // A terminal that cannot clear a line gets full lines. Without --progress, a short run shows no progress.
    let dumb = on_a_terminal(test, "dumb", &format!("{convert} c.mbox"), folder.path());
    let (dumb, _) = dumb.expect("there was a terminal");
    assert!(!dumb.contains('\u{1b}'), "{dumb:?}");
    assert!(
        dumb.contains("embody: 100 %, 0.5 of 0.5 KiB, 4 messages, "),
        "{dumb:?}"
    );
    let short = on_a_terminal(
        test,
        "xterm",
        "convert a.mbox --output d.mbox",
        folder.path(),
    );
    let (short, _) = short.expect("there was a terminal");
    assert!(!short.contains('\u{1b}'));

    // The bar is also removed before an error: the second source does not exist.
    fs::create_dir(folder.path().join("out")).expect("a folder");
    let failing = "convert --progress always a.mbox missing.mbox --output out";
    let stopped = on_a_terminal(test, "xterm", failing, folder.path());
    let (stopped, ended) = stopped.expect("there was a terminal");
    assert_ne!(ended, 0, "{stopped:?}");
    assert!(stopped.contains(&format!("{CLEAR}embody: ")), "{stopped:?}");
    assert!(stopped.contains("missing.mbox"), "{stopped:?}");
}

#[test]
fn source_without_a_file_name_is_refused_before_any_work() {
    let folder = folder_with("a.mbox", mailbox().as_bytes());
    let output = run(
        &["convert", "a.mbox", "..", "--output", "out"],
        folder.path(),
    );
    assert_eq!(status(&output), 2);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.starts_with("embody: ..: this source has no file name "),
        "{said}"
    );
    assert!(!folder.path().join("out").exists());
}

#[test]
fn invalid_backup_suffix_is_refused_and_a_hard_linked_backup_is_kept() {
    let folder = folder_with("a.mbox", mailbox().as_bytes());
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a.eml"), mailbox().split_once('\n').expect("a line").1).expect("a file");
    fs::create_dir(at("many")).expect("a folder");
    fs::write(at("many/b.mbox"), mailbox()).expect("a file");
    let configuration = at("embody.toml");
    for (suffix, toml) in [
        ("", "\"\""),
        ("/x", "\"/x\""),
        ("../x", "\"../x\""),
        ("", "\"\\u0000\""),
    ] {
        for source in ["a.mbox", "a.eml", "many"] {
            let output = run(
                &["convert", "--in-place", "--backup", suffix, source],
                folder.path(),
            );
            assert_eq!(status(&output), 2, "{suffix:?} {}", stderr(&output));
            fs::write(&configuration, format!("backup = {toml}\n")).expect("a file");
            let arguments = ["convert", "--config", "embody.toml", "--in-place", source];
            let output = run(&arguments, folder.path());
            assert_eq!(status(&output), 2, "{toml} {}", stderr(&output));
        }
    }
    for name in ["a.mbox", "many/b.mbox"] {
        assert_eq!(fs::read_to_string(at(name)).expect(name), mailbox());
    }
    assert!(at("a.eml").exists());

    // The second name of the mailbox keeps the old mail, even if the run fails.
    fs::hard_link(at("a.mbox"), at("a.mbox.old")).expect("a second name");
    let arguments = ["convert", "--in-place", "--backup", ".old", "a.mbox"];
    fs::hard_link(at("a.mbox"), at("third")).expect("a third name");
    assert_eq!(status(&run(&arguments, folder.path())), 1);
    assert_eq!(fs::read_to_string(at("a.mbox.old")).expect("it"), mailbox());
    fs::remove_file(at("third")).expect("it");
    let output = run(&arguments, folder.path());
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert_eq!(fs::read_to_string(at("a.mbox.old")).expect("it"), mailbox());
    assert_ne!(fs::read_to_string(at("a.mbox")).expect("it"), mailbox());
}

#[test]
fn a_folder_of_a_maildir_and_a_message_in_one_are_converted_as_the_maildir_is() {
    let mail = format!("Subject: x\n{}", external("data:,hello"));
    let old = format!("1.M1P1.host,S={}:2,S", mail.len());
    let made = || {
        let folder = tempfile::tempdir().expect("a folder");
        for part in ["cur", "new", "tmp"] {
            fs::create_dir_all(folder.path().join("M").join(part)).expect("a folder");
        }
        for part in ["cur", "new"] {
            fs::write(folder.path().join("M").join(part).join(&old), &mail).expect("a message");
        }
        folder
    };
    let only = |folder: &Path| {
        let entries: Vec<_> = fs::read_dir(folder).expect("a folder").collect();
        assert_eq!(entries.len(), 1);
        let path = entries.into_iter().flatten().next().expect("a file").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        (name, fs::read_to_string(path).expect("a message"))
    };
    let whole = made();
    let output = run(&["convert", "--in-place", "M"], whole.path());
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let converted = only(&whole.path().join("M/cur"));
    assert_eq!(
        converted.0,
        format!("1.M1P1.host,S={}:2,S", converted.1.len())
    );
    let untouched = (old.clone(), mail.clone());

    let one = format!("M/cur/{old}");
    for (source, below) in [
        ("M/cur", ""),
        ("M/cur/", ""),
        (&one, ""),
        (".", "M/cur"),
        (&old, "M/cur"),
    ] {
        let folder = made();
        let output = run(
            &["convert", "--in-place", source],
            &folder.path().join(below),
        );
        assert_eq!(status(&output), 0, "{source}: {}", stderr(&output));
        assert!(
            stderr(&output).contains("1 message read, 1 changed"),
            "{}",
            stderr(&output)
        );
        assert_eq!(only(&folder.path().join("M/cur")), converted, "{source}");
        assert_eq!(only(&folder.path().join("M/new")), untouched, "{source}");
        assert_eq!(
            fs::read_dir(folder.path().join("M")).expect("it").count(),
            3
        );
        let output = run(
            &["convert", "--in-place", "--backup", ".old", "M/new"],
            folder.path(),
        );
        assert_eq!(status(&output), 2, "{}", stderr(&output));
    }
    let folder = made();
    // An old temporary file of a run on this host is removed.
    let system = rustix::system::uname();
    let host = system.nodename().to_str().expect("a name");
    let left = folder
        .path()
        .join(format!("out/.embody-{host}-999999-00000000-abcdefgh"));
    fs::create_dir(folder.path().join("out")).expect("a folder");
    fs::write(&left, "half").expect("a file");
    let long_ago = SystemTime::now() - Duration::from_secs(3 * 24 * 60 * 60);
    let file = fs::File::options().write(true).open(&left).expect("it");
    file.set_modified(long_ago).expect("a time");
    let output = run(&["convert", "M/cur", "--output", "out"], folder.path());
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert_eq!(only(&folder.path().join("out")), converted);
    let output = run(&["convert", &one, "--output", "one.eml"], folder.path());
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert_eq!(
        fs::read_to_string(folder.path().join("one.eml")).expect("it"),
        converted.1
    );
    assert_eq!(only(&folder.path().join("M/cur")), untouched);
}

#[test]
fn output_without_a_parent_folder_or_equal_to_the_source_is_refused() {
    let folder = folder_with("a.mbox", mailbox().as_bytes());
    fs::write(folder.path().join("b.mbox"), mailbox()).expect("a file");
    for arguments in [
        &["convert", "a.mbox", "--output", "none/out"][..],
        &["convert", "a.mbox", "--output", "none/out", "--dry-run"],
        &["convert", ".", "--output", "none/out"],
        &["convert", "a.mbox", "b.mbox", "--output", "none/out"],
    ] {
        let output = run(arguments, folder.path());
        assert_eq!(status(&output), 1, "{arguments:?} {}", stderr(&output));
        assert!(
            stderr(&output).contains("the directory none does not exist"),
            "{}",
            stderr(&output)
        );
        assert!(!folder.path().join("none").exists(), "{arguments:?}");
    }
    let absolute = folder.path().join("a.mbox").display().to_string();
    for same in ["a.mbox", "./a.mbox", &absolute] {
        let output = run(&["convert", "a.mbox", "--output", same], folder.path());
        assert_eq!(status(&output), 2, "{}", stderr(&output));
        assert!(
            stderr(&output).contains("--in-place"),
            "{}",
            stderr(&output)
        );
    }
    assert_eq!(
        fs::read_to_string(folder.path().join("a.mbox")).expect("it"),
        mailbox()
    );
    // The directory for several results must not exist before the run.
    let output = run(
        &["convert", "a.mbox", "b.mbox", "--output", "out"],
        folder.path(),
    );
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert!(folder.path().join("out/b.mbox").exists());
}

#[test]
fn a_lock_that_is_waited_for_is_named() {
    let folder = folder_with("a.mbox", mailbox().as_bytes());
    let lock = folder.path().join("a.mbox.lock");
    fs::write(&lock, "0").expect("a lock");
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(2500));
            fs::remove_file(&lock).expect("it is still there");
        });
        run(&["convert", "--in-place", "a.mbox"], folder.path())
    });
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let said = stderr(&output);
    assert_eq!(
        said.matches("a.mbox.lock; waiting for it\n").count(),
        1,
        "{said}"
    );
}

#[test]
fn forged_mark_is_removed_even_if_nothing_else_changes() {
    let forged = "From: a@b\nX-EMBODY: expanded=9\nSubject: s\n\nhi\n";
    let clean = "From: a@b\nSubject: s\n\nhi\n";
    let separator = "From x@y Mon Jan  1 00:00:00 2024\n";
    let box_of = |message: &str| format!("{separator}{clean}\n{separator}{message}\n");
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    for name in ["cur", "new", "tmp"] {
        fs::create_dir_all(at("maildir").join(name)).expect("a folder");
    }
    let long = "x".repeat(76) + "\n";
    // A message smaller than a window, and a larger one.
    for body in [String::new(), long.repeat(10_000)] {
        let forged = format!("{forged}{body}");
        let clean = format!("{clean}{body}");
        fs::write(at("a.mbox"), box_of(&forged)).expect("a file");
        fs::write(at("a.eml"), &forged).expect("a file");
        fs::write(at("maildir/cur/1:2,S"), &forged).expect("a file");
        let marked = |source: &str| {
            run(
                &["convert", "--mark", "--quiet", source, "--output", "-"],
                folder.path(),
            )
        };
        assert_eq!(marked("a.mbox").stdout, box_of(&clean).as_bytes());
        assert_eq!(marked("a.eml").stdout, clean.as_bytes());
        for source in ["a.mbox", "a.eml", "maildir"] {
            let done = run(
                &["convert", "--mark", "--quiet", "--in-place", source],
                folder.path(),
            );
            assert_eq!(status(&done), 0, "{}", stderr(&done));
        }
        let read = |name: &str| fs::read_to_string(at(name)).expect("a file");
        assert_eq!(read("a.mbox"), box_of(&clean));
        assert_eq!(read("a.eml"), clean);
        assert_eq!(read("maildir/cur/1:2,S"), clean);
        // Without --mark, the field is kept.
        fs::write(at("a.eml"), &forged).expect("a file");
        let kept = run(
            &["convert", "--quiet", "a.eml", "--output", "-"],
            folder.path(),
        );
        assert_eq!(kept.stdout, forged.as_bytes());
    }
}
