//! A run is killed before each of its calls that change a file. The same command then completes the result, and leaves no other
//! file. A run that is killed after its last change has already done everything.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::folder::Folder;
use crate::common::programs::{is_traced, skipped, stderr};

/// System calls that change files, and the call that ends the process. Between two of these calls, the files do not change, so a kill
/// before each call is a kill at any time.
const CALLS: [&str; 17] = [
    "copy_file_range",
    "exit_group",
    "fsync",
    "ftruncate",
    "link",
    "linkat",
    "mkdir",
    "mkdirat",
    "openat",
    "pwrite64",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "unlink",
    "unlinkat",
    "write",
];

fn mbox(name: &str) -> String {
    let mail = |number: usize| {
        format!(
            "From a@example.org Mon Jan  2 10:00:00 2023\nFrom: a@example.org\nSubject: {name}{number}\n\
             Date: Mon, 2 Jan 2023 10:00:0{number} +0000\nMessage-ID: <{name}{number}@example.org>\n\ntext of {name}\n\n"
        )
    };
    (0..3).map(mail).collect()
}

fn sources() -> Folder {
    let folder = Folder::new();
    for name in ["a.mbox", "b.mbox", "in/a", "in/sub/b"] {
        let path = folder.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, mbox(name)).unwrap();
    }
    folder
}

/// Returns the files and directories below a directory. The names of messages in a Maildir contain the time of the run, so their
/// contents are in place of the names.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<Vec<u8>>> {
    let mut found: BTreeMap<PathBuf, Vec<Vec<u8>>> = BTreeMap::new();
    let mut left = vec![folder.to_owned()];
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let content = if path.is_dir() {
                left.push(path.clone());
                Vec::new()
            } else {
                fs::read(&path).unwrap()
            };
            let is_message = next.ends_with("cur") || next.ends_with("new");
            let name = if is_message { &next } else { &path };
            found.entry(name.clone()).or_default().push(content);
        }
    }
    found
        .into_iter()
        .map(|(path, mut contents)| {
            contents.sort();
            (path.strip_prefix(folder).unwrap().to_owned(), contents)
        })
        .collect()
}

fn run(folder: &Folder, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_embody"));
    command.current_dir(folder.path()).args(line.split(' '));
    command.output().unwrap()
}

/// Runs a command, and kills it before a thread makes a call for this time. Returns whether the run ended before.
fn is_done_before(folder: &Folder, line: &str, (call, time): (&str, usize)) -> bool {
    let mut command = Command::new("strace");
    command
        .current_dir(folder.path())
        .args(["-f", "-qq", "-o", "/dev/null"])
        .args(["-e", &format!("trace={call}")])
        .args(["-e", &format!("inject={call}:signal=KILL:when={time}")])
        .arg(env!("CARGO_BIN_EXE_embody"))
        .args(line.split(' '));
    command.output().unwrap().status.success()
}

fn check(line: &str) {
    let whole = sources();
    let output = run(&whole, line);
    assert!(output.status.success(), "{line}: {}", stderr(&output));
    let expected = tree(whole.path());
    let mut kills = 0;
    for call in CALLS {
        for time in 1.. {
            let folder = sources();
            if is_done_before(&folder, line, (call, time)) {
                break;
            }
            kills += 1;
            let before = tree(folder.path());
            let output = run(&folder, line);
            let what = format!("{line}, killed before {call} {time}: {}", stderr(&output));
            if before == expected {
                assert_eq!(call, "exit_group", "{what}");
                assert!(stderr(&output).contains("already exists"), "{what}");
            } else {
                assert!(output.status.success(), "{what}");
            }
            assert!(tree(folder.path()) == expected, "{what}");
        }
    }
    assert!(kills > 20, "{line}: {kills} kills");
}

#[test]
fn run_that_was_killed_before_any_call_is_completed_by_the_same_command() {
    if !is_traced() {
        return skipped(
            "run_that_was_killed_before_any_call_is_completed_by_the_same_command",
            "strace",
        );
    }
    std::thread::scope(|scope| {
        for line in [
            "convert a.mbox --output new.mbox",
            "convert in --output new",
            "convert a.mbox --output new --output-format maildir",
            "merge a.mbox b.mbox --output new.mbox",
            "merge in a.mbox --output new --output-format maildir",
        ] {
            scope.spawn(move || check(line));
        }
    });
}

#[test]
fn run_that_was_killed_at_its_end_and_then_again_is_completed_by_the_same_command() {
    if !is_traced() {
        return skipped(
            "run_that_was_killed_at_its_end_and_then_again_is_completed_by_the_same_command",
            "strace",
        );
    }
    let line = "convert in --output new";
    let whole = sources();
    assert!(run(&whole, line).status.success());
    let expected = tree(whole.path());
    // The run removes its journal, the tag of the directory and the directory.
    for last in 1.. {
        let folder = sources();
        if is_done_before(&folder, line, ("unlinkat", last)) {
            assert!(last > 3, "{last}");
            break;
        }
        for again in ["write", "fsync", "mkdir"] {
            for time in 1..4 {
                let folder = sources();
                assert!(!is_done_before(&folder, line, ("unlinkat", last)));
                if is_done_before(&folder, line, (again, time)) {
                    break;
                }
                let output = run(&folder, line);
                let what = format!("{last}, {again} {time}: {}", stderr(&output));
                assert!(output.status.success(), "{what}");
                assert!(tree(folder.path()) == expected, "{what}");
            }
        }
    }
}
