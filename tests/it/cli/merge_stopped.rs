//! A merge that is stopped or killed writes no result, and the same command continues and writes what an uninterrupted run
//! writes.
#![cfg(target_os = "linux")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::merge::{base64, tree};
use crate::common::folder::Folder;
use crate::common::programs::{embody, signalled, stderr};
use crate::common::reports;

const LINE: &str = "merge a.mbox b.mbox --output all.mbox";

/// Returns a directory with two mailboxes of more than 16 MB each, and their merged result from an uninterrupted run.
fn large() -> (Folder, Vec<u8>) {
    let folder = Folder::new();
    folder.write_mbox("a.mbox", &mails(0..20));
    folder.write_mbox("b.mbox", &mails(10..30));
    folder.run("merge a.mbox b.mbox --output expected.mbox");
    let expected = fs::read(folder.at("expected.mbox")).unwrap();
    fs::remove_file(folder.at("expected.mbox")).unwrap();
    assert_eq!(names(&folder), ["a.mbox", "b.mbox"]);
    (folder, expected)
}

/// Returns mails of 930 KB with these numbers, up to 44. They are made once, because that takes a second.
fn mails(numbers: std::ops::Range<usize>) -> Vec<String> {
    static ALL: OnceLock<Vec<String>> = OnceLock::new();
    let mail = |number: usize| {
        let byte = |at: usize| (at.wrapping_mul(0x9e37_79b9) >> 7) as u8 ^ number as u8;
        let content: Vec<u8> = (0..700_000).map(byte).collect();
        format!(
            "From: a@example.org\nSubject: {number}\nDate: Mon, {} May 2024 10:00:00 +0200\n\
             Message-ID: <{number}@example.org>\nX-Keywords: w{number}\n\n{}\n",
            1 + number % 28,
            base64(&content)
        )
    };
    ALL.get_or_init(|| (0..=44).map(mail).collect())[numbers].to_vec()
}

fn names(folder: &Folder) -> Vec<String> {
    names_in(folder.path())
}

fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn saved(folder: &Folder) -> Option<PathBuf> {
    let name = names(folder)
        .into_iter()
        .find(|name| name.starts_with(".embody-merge-"));
    name.map(|name| folder.at(&name))
}

/// Returns the number of sources that the state says were read completely, and the number of mailboxes of the next one.
fn read(folder: &Folder) -> (usize, u64) {
    let state = saved(folder)
        .and_then(|saved| fs::read(saved.join("state")).ok())
        .and_then(|state| serde_json::from_slice::<Value>(&state).ok());
    let Some(state) = state else { return (0, 0) };
    let sources = state["sources"].as_array().unwrap();
    let mailboxes = sources
        .last()
        .and_then(|source| source["mailboxes"].as_u64());
    (
        sources.len() - usize::from(mailboxes.is_some()),
        mailboxes.unwrap_or(0),
    )
}

fn sources_read(folder: &Folder) -> usize {
    read(folder).0
}

fn started(folder: &Folder, line: &str) -> Child {
    let mut command = embody();
    command
        .current_dir(folder.path())
        .args(line.split_whitespace());
    command.stderr(Stdio::piped()).spawn().unwrap()
}

/// Starts a run, and sends it a signal when it has read this number of sources. Returns its standard error.
fn stopped(folder: &Folder, line: &str, count: usize, signal: &str) -> String {
    stopped_after(folder, line, (count, 0), signal)
}

/// Starts a run, and sends it a signal when it has read this number of sources, and of mailboxes of the next one.
fn stopped_after(folder: &Folder, line: &str, count: (usize, u64), signal: &str) -> String {
    let child = started(folder, line);
    let begun = Instant::now();
    while read(folder) < count {
        assert!(
            begun.elapsed() < Duration::from_secs(100),
            "the run reads no source"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    signalled(child.id(), signal);
    let output = child.wait_with_output().unwrap();
    assert_ne!(
        output.status.code(),
        Some(0),
        "the run was not stopped: {}",
        stderr(&output)
    );
    assert!(!folder.at("all.mbox").exists());
    stderr(&output)
}

#[track_caller]
fn assert_done(folder: &Folder, said: &str, expected: &[u8], count: usize) {
    let line = format!("continuing a stopped run that has read {count} of 2 sources");
    assert_eq!(said.contains(&line), count > 0, "{said}");
    assert!(
        said.contains("40 messages in 2 sources, 30 mails in the result"),
        "{said}"
    );
    assert!(fs::read(folder.at("all.mbox")).unwrap() == expected);
    assert_eq!(names(folder), ["a.mbox", "all.mbox", "b.mbox"]);
    fs::remove_file(folder.at("all.mbox")).unwrap();
}

#[test]
fn killed_merge_continues_and_writes_the_same_bytes_as_an_uninterrupted_one() {
    let (folder, expected) = large();
    // The first pass reads the sources, and the second pass compares the mails and writes the result.
    for count in [1, 2] {
        stopped(&folder, LINE, count, "KILL");
        assert!(saved(&folder).is_some());
        let said = folder.run(LINE);
        assert_done(&folder, &said, &expected, count);
    }
    // A run that was killed before the first source was read, and one that was killed twice.
    let mut child = started(&folder, LINE);
    while saved(&folder).is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(sources_read(&folder), 0);
    stopped(&folder, LINE, 1, "KILL");
    stopped(&folder, LINE, 2, "KILL");
    let said = folder.run(LINE);
    assert_done(&folder, &said, &expected, 2);
}

#[test]
fn merge_that_a_signal_stops_names_what_it_keeps_and_continues() {
    let (folder, expected) = large();
    let said = stopped(&folder, LINE, 1, "TERM");
    let kept = saved(&folder).unwrap();
    let name = kept.file_name().unwrap().to_str().unwrap();
    assert!(
        said.contains("stopped by a signal; no result was written") && said.contains(name),
        "{said}"
    );
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&kept), 0o700);
    for name in ["spool", "records", "state", "lock"] {
        assert_eq!(mode(&kept.join(name)), 0o600, "{name}");
    }
    // Another order is only a different second pass. A dry run does not use the messages, and does not remove them.
    folder.run(&format!("{LINE} --dry-run"));
    let said = folder.run(&format!("{LINE} --order date"));
    assert_done(&folder, &said, &expected, 1);
}

#[test]
fn stopped_merge_of_other_sources_or_with_other_options_is_not_continued() {
    let (folder, expected) = large();
    let content = fs::read(folder.at("a.mbox")).unwrap();
    let changed = |what: &str| match what {
        "time" => {
            let file = fs::File::options()
                .write(true)
                .open(folder.at("a.mbox"))
                .unwrap();
            file.set_modified(std::time::SystemTime::UNIX_EPOCH)
                .unwrap();
        }
        "inode" => {
            fs::write(folder.at("new"), &content).unwrap();
            fs::rename(folder.at("new"), folder.at("a.mbox")).unwrap();
        }
        _ => {}
    };
    for (what, line) in [
        ("time", LINE.to_owned()),
        ("inode", LINE.to_owned()),
        (
            "options",
            format!("{LINE} --output-format mbox --max-expanded 1G"),
        ),
        ("format", format!("{LINE} --format mbox")),
    ] {
        stopped(&folder, LINE, 1, "KILL");
        changed(what);
        let said = folder.run(&line);
        assert_done(&folder, &said, &expected, 0);
    }
    // Another command overwrites the messages, so the first one must not use them either.
    stopped(&folder, LINE, 1, "KILL");
    let mut child = started(&folder, &format!("{LINE} --format mbox"));
    let begun = Instant::now();
    while sources_read(&folder) > 0 && begun.elapsed() < Duration::from_secs(100) {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let said = folder.run(LINE);
    assert_done(&folder, &said, &expected, 0);
    // The mail of a source that has changed is not in the result.
    stopped(&folder, LINE, 2, "KILL");
    folder.write_mbox("b.mbox", &mails(10..29));
    folder.run(LINE);
    let text = folder.read("all.mbox");
    assert!(text.contains("<28@example.org>") && !text.contains("<29@example.org>"));
}

#[test]
fn merge_of_one_directory_continues_after_the_last_mailbox_that_was_read() {
    let folder = Folder::new();
    for (name, numbers) in [
        ("A", 0..20),
        ("B", 10..30),
        ("C.sbd/D", 25..45),
        ("E", 0..45),
    ] {
        folder.write_mbox(&format!("mail/{name}"), &mails(numbers));
    }
    folder.write("mail/notes.txt", "no mail\n");
    let line = "merge mail --output all";
    folder.run("merge mail --output expected");
    let expected = tree(&folder.at("expected"));
    assert_eq!(expected.len(), 4);
    stopped_after(&folder, line, (0, 1), "KILL");
    let said = folder.run(line);
    assert!(said.contains("has read 0 of 1 source and "), "{said}");
    assert!(said.contains(" of the next one"), "{said}");
    assert!(
        said.contains("105 messages in 1 source, 45 mails in the result"),
        "{said}"
    );
    assert!(tree(&folder.at("all")) == expected);
    assert_eq!(saved(&folder), None);
}

#[test]
fn saved_messages_of_an_unresumable_merge_are_removed_by_another_merge() {
    let (folder, _) = large();
    let small = "merge a.mbox --output small.mbox";
    // A run that was killed before it had read a source.
    let mut child = started(&folder, LINE);
    while saved(&folder).is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((saved(&folder).is_some(), sources_read(&folder)), (true, 0));
    folder.run(small);
    assert_eq!(saved(&folder), None);
    fs::remove_file(folder.at("small.mbox")).unwrap();
    // A run that can be continued, until the system is started again.
    stopped(&folder, LINE, 1, "KILL");
    folder.run(small);
    let kept = saved(&folder).unwrap();
    fs::remove_file(folder.at("small.mbox")).unwrap();
    let state = fs::read_to_string(kept.join("state")).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert!(state.contains(boot.trim()), "{state}");
    fs::write(kept.join("state"), state.replace(boot.trim(), "another")).unwrap();
    folder.run(small);
    assert_eq!(saved(&folder), None);
}

#[test]
fn messages_that_another_user_could_have_written_or_that_are_in_use_are_not_used() {
    let (folder, expected) = large();
    stopped(&folder, LINE, 1, "KILL");
    let kept = saved(&folder).unwrap();
    fs::set_permissions(&kept, Permissions::from_mode(0o755)).unwrap();
    let said = folder.run(LINE);
    assert!(!said.contains("continuing"), "{said}");
    assert!(fs::read(folder.at("all.mbox")).unwrap() == expected);
    assert!(kept.exists());
    fs::remove_file(folder.at("all.mbox")).unwrap();

    // A link to the directory.
    fs::set_permissions(&kept, Permissions::from_mode(0o700)).unwrap();
    fs::rename(&kept, folder.at("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", &kept).unwrap();
    let said = folder.run(LINE);
    assert!(!said.contains("continuing"), "{said}");
    assert!(fs::read(folder.at("all.mbox")).unwrap() == expected);
    fs::remove_file(folder.at("all.mbox")).unwrap();
    fs::remove_file(&kept).unwrap();
    fs::rename(folder.at("elsewhere"), &kept).unwrap();

    // A run with the same result at the same time.
    let before = tree_of(&kept);
    let lock = fs::File::open(kept.join("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let said = folder.run(LINE);
    assert!(!said.contains("continuing"), "{said}");
    assert!(fs::read(folder.at("all.mbox")).unwrap() == expected);
    assert_eq!(tree_of(&kept), before);
    fs::remove_file(folder.at("all.mbox")).unwrap();
    drop(lock);

    // Files that are shorter than the state says.
    let spool = fs::File::options()
        .write(true)
        .open(kept.join("spool"))
        .unwrap();
    spool.set_len(1000).unwrap();
    let said = folder.run(LINE);
    assert_done(&folder, &said, &expected, 0);
}

/// Starts a run, and kills it as soon as a file or directory with this name exists.
fn killed_at_its_end(folder: &Folder, line: &str, result: &str) {
    for _ in 0..20 {
        let mut child = started(folder, line);
        let is_there = || folder.at(result).symlink_metadata().is_ok();
        while !is_there() && child.try_wait().unwrap().is_none() {}
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_there(), "the run failed");
        let left = names_in(folder.at(result).parent().unwrap());
        if left.iter().any(|name| name.starts_with(".embody-merge-")) {
            return;
        }
        // The run ended before it was killed.
        remove_result(folder, result);
    }
    panic!("no run was killed in time");
}

fn remove_result(folder: &Folder, result: &str) {
    for name in [result, &format!("{result}.sbd")] {
        let path = folder.at(name);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else if path.exists() {
            fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn merge_that_was_killed_after_its_result_appeared_is_complete_for_the_same_command() {
    let (folder, expected) = large();
    let said_at_first = folder.run(LINE);
    fs::remove_file(folder.at("all.mbox")).unwrap();
    killed_at_its_end(&folder, LINE, "all.mbox");
    // Other options and other sources are another command, which does not use the result.
    for other in [
        format!("{LINE} --order first"),
        format!("{LINE} --format mbox"),
        "merge a.mbox --output all.mbox".to_owned(),
    ] {
        let refused = folder.output(&other);
        assert_eq!(refused.status.code(), Some(1), "{other}");
        assert!(stderr(&refused).contains("already exists"), "{other}");
        assert!(saved(&folder).is_some(), "{other}");
    }
    let said = folder.run(LINE);
    assert!(said.contains("all.mbox is complete"), "{said}");
    assert!(said.ends_with(&said_at_first), "{said}, {said_at_first}");
    assert_eq!(names(&folder), ["a.mbox", "all.mbox", "b.mbox"]);
    assert!(fs::read(folder.at("all.mbox")).unwrap() == expected);
    // A second run finds a finished result of no stopped run.
    assert_eq!(folder.output(LINE).status.code(), Some(1));
}

#[test]
fn result_that_is_not_from_the_killed_merge_stays_protected() {
    let (folder, _) = large();
    for what in ["appended", "replaced", "source"] {
        killed_at_its_end(&folder, LINE, "all.mbox");
        let target = folder.at("all.mbox");
        match what {
            "appended" => {
                let text = fs::read(&target).unwrap();
                fs::write(&target, [text.as_slice(), b"new mail"].concat()).unwrap();
            }
            "replaced" => {
                fs::write(folder.at("other"), "other mail").unwrap();
                fs::rename(folder.at("other"), &target).unwrap();
            }
            _ => {
                folder.write_mbox("b.mbox", &mails(10..31));
            }
        }
        let before = fs::read(&target).unwrap();
        let refused = folder.output(LINE);
        assert_eq!(refused.status.code(), Some(1), "{what}");
        assert!(stderr(&refused).contains("already exists"), "{what}");
        assert!(fs::read(&target).unwrap() == before, "{what}");
        fs::remove_file(&target).unwrap();
        folder.run(LINE);
        assert_eq!(names(&folder), ["a.mbox", "all.mbox", "b.mbox"], "{what}");
        fs::remove_file(&target).unwrap();
    }
}

#[test]
fn killed_merge_into_a_directory_is_complete_for_the_same_command() {
    let (folder, _) = large();
    fs::create_dir(folder.at("mail")).unwrap();
    for name in ["a.mbox", "b.mbox"] {
        fs::rename(folder.at(name), folder.at("mail").join(name)).unwrap();
    }
    for (line, result) in [
        ("merge mail --output all", "all"),
        (
            "merge mail --flat --output-format maildir --output all",
            "all",
        ),
        ("merge mail --output-format thunderbird --output all", "all"),
        // The result is in the directory of the source.
        (
            "merge mail --flat --output-format maildir --output mail/all",
            "mail/all",
        ),
    ] {
        killed_at_its_end(&folder, line, result);
        let before = tree(&folder.at(result));
        folder.run(line);
        assert!(tree(&folder.at(result)) == before, "{line}");
        let left = names_in(folder.at(result).parent().unwrap());
        assert!(
            !left.iter().any(|name| name.starts_with(".embody")),
            "{line}: {left:?}"
        );
        remove_result(&folder, result);
    }
}

fn tree_of(path: &Path) -> Vec<(PathBuf, u64)> {
    let entries = fs::read_dir(path).unwrap().map(|entry| {
        let entry = entry.unwrap();
        (entry.path(), entry.metadata().unwrap().len())
    });
    let mut entries: Vec<_> = entries.collect();
    entries.sort();
    entries
}

#[test]
fn folders_flags_and_lines_about_a_source_survive_a_stopped_merge() {
    let folder = Folder::new();
    folder.write_mbox("a/Work.sbd/2023", &mails(0..10));
    folder.write_mbox("a/Lists", &mails(5..20));
    folder.write("a/notes.txt", "no mail\n");
    folder.write_mbox("b/Lists", &mails(15..30));
    folder.write_mbox("b/Other", &mails(28..40));
    let line = "merge a b --output";
    folder.run(&format!("{line} expected"));
    stopped(&folder, &format!("{line} all"), 1, "TERM");
    let said = folder.run(&format!("{line} all"));
    assert!(said.contains("has read 1 of 2 sources"), "{said}");
    assert!(said.contains("5 files: 4 read, 1 without mail"), "{said}");
    let expected = tree(&folder.at("expected"));
    assert_eq!(expected.len(), 3);
    assert!(tree(&folder.at("all")) == expected);
    assert_eq!(saved(&folder), None);
}

#[test]
fn continued_merge_lists_in_json_what_the_stopped_run_could_not_read() {
    let (folder, _) = large();
    let mut bytes = fs::read(folder.at("a.mbox")).unwrap();
    bytes.extend_from_slice(b"7z\xbc\xaf\x27\x1c\0\x04");
    folder.write("a.mbox", bytes);
    let line = format!("{LINE} --json");
    stopped(&folder, &line, 1, "KILL");
    let output = folder.output(&line);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("continuing a stopped run"));
    let rows = reports::objects(&output.stdout);
    let not_read = rows.iter().filter(|row| row["outcome"] == "not-read");
    let sources: Vec<&str> = not_read.filter_map(|row| row["source"].as_str()).collect();
    assert_eq!(sources, ["a.mbox"]);
}
