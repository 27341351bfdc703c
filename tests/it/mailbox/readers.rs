//! Readers and failures while a message in a Maildir has two names, and between the two steps of an exchange: mail is neither
//! lost nor duplicated, and the run continues (docs/mailbox-internals.md, "Locks and replacing").

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::mailboxes::{Expand, in_place};
use crate::common::programs::{embody, is_traced, skipped, stderr};
use embody::mailbox::Summary;

const NEW: Expand = Expand("what was fetched");
const PARTS: [&str; 2] = ["cur", "new"];

fn mail(number: usize) -> String {
    format!(
        "From: a@b\nX-Id: <{number}>\nContent-Type: message/external-body; access-type=URL; URL=\"data:,hi\"\n\n\
         Content-Type: text/plain\n\n"
    )
}

fn maildir(folder: &Path) {
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(folder.join(part)).unwrap();
    }
}

/// Returns the messages of a Maildir: names with their directories, and contents.
fn all(folder: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for part in PARTS {
        for entry in fs::read_dir(folder.join(part)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let Ok(text) = fs::read_to_string(folder.join(part).join(&name)) else {
                continue;
            };
            all.insert(format!("{part}/{name}"), text);
        }
    }
    all
}

/// Moves each message to `cur` as soon as it has two names.
fn read_along(folder: &Path, is_over: &AtomicBool) {
    let listed = || -> Vec<String> {
        let entries = fs::read_dir(folder.join("new")).unwrap();
        entries
            .flatten()
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect()
    };
    let base = |name: &str| name.split(',').next().unwrap().to_owned();
    let first = listed();
    while !is_over.load(Ordering::Relaxed) {
        let names = listed();
        let fresh: Vec<String> = names
            .iter()
            .filter(|name| !first.contains(name))
            .map(|name| base(name))
            .collect();
        for name in names.iter().filter(|name| fresh.contains(&base(name))) {
            let to = folder.join("cur").join(format!("{name}:2,"));
            let _ = fs::rename(folder.join("new").join(name), to);
        }
    }
}

#[test]
fn a_reader_that_moves_new_mail_meanwhile_loses_and_doubles_none() {
    for _ in 0..3 {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        maildir(folder);
        for number in 0..200 {
            let content = mail(number);
            let name = format!("new/{number}.h,S={}", content.len());
            fs::write(folder.join(name), content).unwrap();
        }
        let is_over = AtomicBool::new(false);
        let output = std::thread::scope(|scope| {
            scope.spawn(|| read_along(folder, &is_over));
            let output = embody()
                .args(["convert", "--in-place", "--jobs", "1"])
                .arg(folder)
                .output()
                .unwrap();
            is_over.store(true, Ordering::Relaxed);
            output
        });
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for text in all(folder).into_values() {
            let id = text.lines().find(|line| line.starts_with("X-Id")).unwrap();
            *seen.entry(id.to_owned()).or_default() += 1;
        }
        assert_eq!(seen.len(), 200);
        assert!(seen.values().all(|&count| count == 1), "{seen:?}");
        assert_eq!(fs::read_dir(folder.join("tmp")).unwrap().count(), 0);
    }
}

/// Starts a run in place under strace, which delays or fails some calls.
fn traced(folder: &Path, traced: &[&str]) -> Child {
    Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null"])
        .args(traced)
        .arg(env!("CARGO_BIN_EXE_embody"))
        .args(["convert", "--in-place", "--jobs", "1"])
        .arg(folder)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Returns the old name of one message in a Maildir, its new name, and its new content.
fn one_message(folder: &Path) -> (String, String, String) {
    maildir(folder);
    let content = mail(1);
    let old = format!("cur/1.h,S={}:2,", content.len());
    fs::write(folder.join(&old), &content).unwrap();
    let output = embody()
        .args(["filter"])
        .arg(folder.join(&old))
        .output()
        .unwrap();
    let new = String::from_utf8(output.stdout).unwrap();
    (old, format!("cur/1.h,S={}:2,", new.len()), new)
}

/// An action of a reader while both names exist, and the expected result.
type Meanwhile = (
    &'static str,
    fn(&Path, &str, &str),
    fn(&str, &str) -> Vec<(String, bool)>,
);

fn moved(folder: &Path, from: &str, flags: &str) {
    fs::rename(folder.join(from), folder.join(format!("{from}{flags}"))).unwrap();
}

#[test]
fn message_under_two_names_stays_one_whatever_mail_readers_do() {
    if !is_traced() {
        return skipped("whatever_readers_do_while_both_names_are_there", "strace");
    }
    let ways: [Meanwhile; 8] = [
        ("nothing", |_, _, _| {}, |_, new| vec![(new.into(), true)]),
        (
            "both are moved",
            |folder, old, new| {
                moved(folder, old, "S");
                moved(folder, new, "S");
            },
            |_, new| vec![(format!("{new}S"), true)],
        ),
        (
            "ours is moved",
            |folder, _, new| moved(folder, new, "F"),
            |_, new| vec![(format!("{new}F"), true)],
        ),
        (
            "the old one is moved",
            |folder, old, _| moved(folder, old, "F"),
            |_, new| vec![(format!("{new}F"), true)],
        ),
        (
            "ours is taken for a copy and deleted",
            |folder, _, new| fs::remove_file(folder.join(new)).unwrap(),
            |_, new| vec![(new.into(), true)],
        ),
        (
            "the old one is taken for a copy and deleted",
            |folder, old, _| fs::remove_file(folder.join(old)).unwrap(),
            |_, new| vec![(new.into(), true)],
        ),
        (
            "the old one is taken for a copy and deleted, and ours moved",
            |folder, old, new| {
                fs::remove_file(folder.join(old)).unwrap();
                moved(folder, new, "S");
            },
            |_, new| vec![(format!("{new}S"), true)],
        ),
        (
            "the old one is written anew",
            |folder, old, _| {
                let content = fs::read(folder.join(old)).unwrap();
                fs::write(folder.join("tmp/other"), content).unwrap();
                fs::rename(folder.join("tmp/other"), folder.join(old)).unwrap();
            },
            |old, _| vec![(old.into(), false)],
        ),
    ];
    for (what, act, expected) in ways {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        let (old, new, content) = one_message(folder);
        let slow = [
            "-e",
            "trace=linkat",
            "-e",
            "inject=linkat:delay_exit=500000",
        ];
        // The lock of the directory is created by a link, too, and is delayed separately.
        let run = traced(folder, &slow);
        let start = Instant::now();
        while !folder.join(&new).exists() {
            assert!(start.elapsed() < Duration::from_secs(20), "{what}");
            std::thread::sleep(Duration::from_millis(2));
        }
        act(folder, &old, &new);
        let output = run.wait_with_output().unwrap();
        let status = i32::from(what == "the old one is written anew");
        let code = output.status.code();
        assert_eq!(code, Some(status), "{what}: {}", stderr(&output));
        let left: Vec<(String, bool)> = all(folder)
            .into_iter()
            .map(|(name, text)| (name, text == content))
            .collect();
        assert_eq!(left, expected(&old, &new), "{what}");
        assert_eq!(
            fs::read_dir(folder.join("tmp")).unwrap().count(),
            0,
            "{what}"
        );
    }
}

#[test]
fn failed_system_call_never_leaves_two_names_of_a_message() {
    if !is_traced() {
        return skipped("a_call_that_fails_behind_the_link", "strace");
    }
    for call in ["fsync", "openat", "unlink", "statx", "linkat", "renameat2"] {
        let mut failed = 0;
        for nth in 1.. {
            let temporary = tempfile::tempdir().unwrap();
            let folder = temporary.path();
            let (old, new, content) = one_message(folder);
            let before = fs::read_to_string(folder.join(&old)).unwrap();
            let cur = folder.join("cur");
            let tmp = folder.join("tmp");
            let old_path = folder.join(&old);
            let new_path = folder.join(&new);
            let expressions = [
                "-e".to_owned(),
                format!("trace={call}"),
                "-e".to_owned(),
                format!("inject={call}:error=EIO:when={nth}"),
            ];
            let mut arguments: Vec<&str> = expressions.iter().map(String::as_str).collect();
            for path in [&cur, &tmp, &old_path, &new_path] {
                arguments.extend(["-P", path.to_str().unwrap()]);
            }
            let output: Output = traced(folder, &arguments).wait_with_output().unwrap();
            let said = stderr(&output);
            let found = all(folder);
            let what = format!("{call} {nth}: {said} {:?}", found.keys());
            let is_new = found.get(&new) == Some(&content);
            assert!(found.len() == 1, "{what}");
            assert!(is_new || found.get(&old) == Some(&before), "{what}");
            assert!(output.status.code() == Some(1) || is_new, "{what}");
            if output.status.success() {
                break;
            }
            assert!(said.contains("Input/output error"), "{what}");
            failed += 1;
            assert!(nth < 50, "{what}");
        }
        println!("{call}: {failed} failures");
    }
}

/// Two copies of a message, and the result of the next run: names with their contents, old and new.
#[test]
fn copies_with_different_flags_are_united_and_different_messages_are_kept() {
    let old = "From: a\n\nEXPAND-ME\n";
    let new = "From: a\n\nwhat was fetched\n";
    let other = "From: a\n\nwhat was fetchet\n";
    for (names, after) in [
        // The state after a reader changed the result of a run that was killed.
        (
            [("cur/1.h,S=19:2,FS", old), ("cur/1.h,S=26:2,", new)],
            vec!["cur/1.h,S=26:2,FS"],
        ),
        (
            [("new/1.h,S=19", old), ("cur/1.h,S=26:2,S", new)],
            vec!["cur/1.h,S=26:2,S"],
        ),
        (
            [("cur/1.h,S=19:2,R", old), ("new/1.h,S=26", new)],
            vec!["cur/1.h,S=26:2,R"],
        ),
        (
            [("cur/1.h,S=19:2,RT", old), ("cur/1.h,S=26:2,aS", new)],
            vec!["cur/1.h,S=26:2,RSa"],
        ),
        (
            [("cur/1.h,S=19:2,T", old), ("cur/1.h,S=26:2,ST", new)],
            vec!["cur/1.h,S=26:2,ST"],
        ),
        // A different message, or a different base name.
        (
            [("cur/1.h,S=19:2,FS", old), ("cur/1.h,S=27:2,", other)],
            vec!["cur/1.h,S=26:2,FS", "cur/1.h,S=27:2,"],
        ),
        (
            [("cur/1.h,S=19:2,FS", old), ("cur/2.h,S=26:2,", new)],
            vec!["cur/1.h,S=26:2,FS", "cur/2.h,S=26:2,"],
        ),
        // The names do not show that one was made from the other.
        (
            [("cur/1.h,S=19:2,S", old), ("new/1.h,S=19", old)],
            vec!["cur/1.h,S=26:2,S", "new/1.h,S=26"],
        ),
        // Without sizes in the names, a run never creates two copies.
        (
            [("cur/1.h:2,FS", old), ("cur/1.h:2,", new)],
            vec!["cur/1.h:2,", "cur/1.h:2,FS"],
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        maildir(folder.path());
        for (name, content) in names {
            fs::write(folder.path().join(name), content).unwrap();
        }
        let summary: Summary = in_place(folder.path(), &NEW).unwrap();
        let changed = names.iter().filter(|(_, text)| *text == old).count() as u64;
        // A thread that processes the other copy after its flags were merged finds it moved.
        assert_eq!(summary.changed, changed, "{names:?}");
        let left = all(folder.path());
        assert_eq!(left.keys().collect::<Vec<_>>(), after, "{names:?}");
        assert!(left.values().all(|text| !text.contains("EXPAND-ME")));
    }
}

/// Waits until a condition is true.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn message_rewritten_before_its_replacement_is_kept() {
    if !is_traced() {
        return skipped("a_message_written_anew_before_the_exchange", "strace");
    }
    for (is_moved, left) in [(false, "cur/1.h:2,"), (true, "cur/1.h:2,")] {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        maildir(folder);
        let path = folder.join("cur/1.h:2,");
        fs::write(&path, mail(1)).unwrap();
        let slow = [
            "-e",
            "trace=renameat2",
            "-e",
            "inject=renameat2:delay_enter=3000000:delay_exit=400000",
        ];
        let run = traced(folder, &slow);
        until("written", || {
            let mut files = fs::read_dir(folder.join("tmp")).unwrap().flatten();
            files.any(|file| file.metadata().is_ok_and(|file| file.len() > 0))
        });
        fs::write(folder.join("tmp/other"), "From: another\n\n").unwrap();
        fs::rename(folder.join("tmp/other"), &path).unwrap();
        if is_moved {
            until("exchanged", || {
                !fs::read_to_string(&path).unwrap().contains("another")
            });
            fs::rename(&path, folder.join("cur/1.h:2,S")).unwrap();
        }
        let output = run.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let expected = BTreeMap::from([(left.to_owned(), "From: another\n\n".to_owned())]);
        assert_eq!(all(folder), expected);
        assert_eq!(fs::read_dir(folder.join("tmp")).unwrap().count(), 0);
    }
}

#[test]
fn a_file_that_another_program_puts_there_at_the_last_moment_stays() {
    if !is_traced() {
        return skipped("a_file_that_another_program_puts_there", "strace");
    }
    for backup in [&[][..], &["--backup", ".old"]] {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        let path = folder.join("one.eml");
        fs::write(&path, mail(1)).unwrap();
        let run = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=renameat2"])
            .args(["-e", "inject=renameat2:delay_enter=3000000"])
            .arg(env!("CARGO_BIN_EXE_embody"))
            .args(["convert", "--in-place", "one.eml"])
            .args(backup)
            .current_dir(folder)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let names = || fs::read_dir(folder).unwrap().count();
        until("written", || names() > 1 + backup.len() / 2);
        std::thread::sleep(Duration::from_millis(200));
        fs::write(folder.join("other"), "From: another\n\n").unwrap();
        fs::rename(folder.join("other"), &path).unwrap();
        let output = run.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert_eq!(fs::read_to_string(&path).unwrap(), "From: another\n\n");
        assert!(
            stderr(&output).contains("changed the file while embody read it"),
            "{}",
            stderr(&output)
        );
    }
}

/// A mail client may open the mailbox between the two listings of a Maildir.
#[test]
fn message_renamed_from_new_to_cur_before_either_listing_is_read_by_every_command() {
    if !is_traced() {
        return skipped("message_renamed_from_new_to_cur", "strace");
    }
    for part in ["new", "cur"] {
        for command in ["inspect", "convert", "merge", "compare"] {
            let work = tempfile::tempdir().unwrap();
            let folder = work.path().join("box");
            maildir(&folder);
            fs::write(folder.join("new/1.h"), mail(1)).unwrap();
            let output = work.path().join("out.mbox");
            let other = work.path().join("other.eml");
            fs::write(&other, "Subject: other\n\nother\n").unwrap();
            let mut run = Command::new("strace");
            run.args(["-f", "-qq", "-o", "/dev/null", "-P"])
                .arg(folder.join(part))
                .args(["-e", "inject=openat:delay_enter=400000:when=1"])
                .args([env!("CARGO_BIN_EXE_embody"), command])
                .arg(&folder);
            match command {
                "inspect" => run.arg("--json"),
                "compare" => run.arg(&other),
                _ => run
                    .args(["--output-format", "mbox", "--output"])
                    .arg(&output),
            };
            if command == "merge" {
                run.arg(&other);
            }
            run.stdout(Stdio::piped()).stderr(Stdio::piped());
            let run = run.spawn().unwrap();
            std::thread::sleep(Duration::from_millis(250));
            fs::rename(folder.join("new/1.h"), folder.join("cur/1.h:2,S")).unwrap();
            let done = run.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&done.stdout).into_owned() + &stderr(&done);
            match command {
                "inspect" => assert!(said.contains("\"messages\":1"), "{said}"),
                "compare" => assert!(said.starts_with("1 message in"), "{said}"),
                _ => {
                    let text = fs::read_to_string(&output).expect(&said);
                    assert!(text.contains("X-Id: <1>\n"), "{part} {command}: {said}");
                }
            }
        }
    }
}
