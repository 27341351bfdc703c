//! A run with `--output` that was stopped is continued by the same command: its complete results are kept, and no other
//! file is overwritten (docs/cache.md, "Continue after an interruption").

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::archives::zip;
use crate::common::bounded::finished;
use crate::common::folder::Folder;
use crate::common::mailboxes::Numbers;
use crate::common::programs::{embody, stderr};
use crate::common::pst::{Form, Message, Pst};

fn mail(name: &str, number: usize) -> String {
    let line = "QUJD".repeat(18);
    let body = format!("{line}\n").repeat(20);
    format!(
        "From: a@example.org\nSubject: {name} {number}\nMessage-ID: <{name}{number}@example.org>\nDate: Mon, 2 Jan 2023 10:00:00 +0000\nX-Gmail-Labels: {name},Work/{}\nContent-Type: application/pdf; name=a.pdf\nContent-Disposition: attachment; filename=a.pdf\nContent-Transfer-Encoding: base64\n\n{body}",
        number % 3
    )
}

fn mails(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| mail(name, number)).collect()
}

fn pst(name: &str) -> Vec<u8> {
    let mut pst = Pst::in_memory(Form {
        version: 23,
        encoding: 1,
    });
    for folder in ["Inbox", "Sent", "Work"] {
        let messages: Vec<Message> = (0..20)
            .map(|number| Message::mail(&format!("{name} {folder} {number}"), "text\n"))
            .collect();
        pst.folder(None, folder, &messages);
    }
    pst.bytes()
}

/// Writes a directory of mboxes, a directory of everything else, an archive and a mailbox of Outlook.
fn sources() -> Folder {
    let folder = Folder::new();
    for (name, count) in [("a", 3), ("b", 3), ("c", 300), ("d", 3), ("e", 150)] {
        folder.write_mbox(&format!("boxes/{name}"), &mails(name, count));
    }
    for number in 0..60 {
        let content = mail("m", number);
        folder.write(
            &format!("mixed/Maildir/cur/16{number:08}.a.b:2,S"),
            &content,
        );
        folder.write(&format!("mixed/messages/{number}.eml"), &content);
        folder.write(&format!("mixed/mh/{}", number + 1), &content);
    }
    folder.write("mixed/mh/.mh_sequences", "unseen: 3\n");
    for part in ["new", "tmp"] {
        fs::create_dir(folder.at("mixed/Maildir").join(part)).unwrap();
    }
    folder.write_mbox("mixed/box", &mails("x", 40));
    let boxes = ["a", "c"].map(|name| fs::read(folder.at("boxes").join(name)).unwrap());
    let (one, two) = (pst("one"), pst("two"));
    let both = zip(&[
        ("a.mbox", &boxes[0]),
        ("x.pst", &one),
        ("c.mbox", &boxes[1]),
        ("y.pst", &two),
    ]);
    folder.write("all.zip", &both);
    folder.write("mixed/both.zip", &both);
    folder.write(
        "plain.zip",
        zip(&[("a.mbox", &boxes[0]), ("c.mbox", &boxes[1])]),
    );
    folder.write("o.pst", one);
    folder
}

/// Returns all files of a directory or a file, with their relative paths. Directories are listed without content.
fn tree(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![path.to_owned()];
    while let Some(next) = left.pop() {
        let relative = next.strip_prefix(path).unwrap().to_owned();
        if next.is_dir() {
            left.extend(
                fs::read_dir(&next)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            found.insert(relative, Vec::new());
        } else if next.exists() {
            found.insert(relative, fs::read(next).unwrap());
        }
    }
    found
}

fn command(folder: &Folder, line: &str) -> Command {
    let mut command = embody();
    command
        .current_dir(folder.path())
        .args(line.split_whitespace())
        .args(["--quiet", "--output", "out"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

fn visible(folder: &Folder) -> usize {
    let entries = fs::read_dir(folder.at("out")).into_iter().flatten();
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    names
        .filter(|name| !name.to_string_lossy().starts_with('.'))
        .count()
}

/// Commands whose output is a directory, and one whose output is a file.
const LINES: [&str; 14] = [
    "convert boxes",
    "convert boxes/a boxes/c boxes/e",
    "convert --output-format maildir boxes",
    "convert --output-format eml boxes",
    "convert --output-format thunderbird boxes",
    "convert --by-label boxes",
    "convert mixed",
    "convert --output-format mbox mixed",
    "detach --larger-than 1k --store store boxes",
    "recover --offline mixed",
    "convert all.zip",
    "convert --output-format maildir all.zip",
    "convert --output-format eml o.pst",
    "convert plain.zip",
];

fn remove(folder: &Folder) {
    let _ = fs::remove_dir_all(folder.at("out"));
    let _ = fs::remove_file(folder.at("out"));
}

/// Returns the names next to the output that a complete run does not leave.
fn left_beside(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains("embody")).collect()
}

/// Starts the command, and stops it when a number of results is visible, or after a time.
fn stopped(
    folder: &Folder,
    line: &str,
    stop: impl Fn(&Child),
    (count, time): (usize, Duration),
) -> bool {
    let mut child = command(folder, line).spawn().unwrap();
    let begun = Instant::now();
    while visible(folder) < count && begun.elapsed() < time && child.try_wait().unwrap().is_none() {
        sleep(Duration::from_micros(100));
    }
    stop(&child);
    finished(child).status.code() != Some(0)
}

#[test]
fn stopped_run_is_continued_by_the_same_command_in_every_format() {
    let folder = sources();
    let mut numbers = Numbers(5);
    let mut stops = 0;
    for line in LINES {
        let begun = Instant::now();
        let done = command(&folder, line).output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{line}: {}", stderr(&done));
        let takes = begun.elapsed();
        let (expected, count) = (tree(&folder.at("out")), visible(&folder));
        assert_eq!(left_beside(&folder), [] as [&str; 0], "{line}");
        for signal in [Signal::KILL, Signal::INT, Signal::TERM] {
            remove(&folder);
            // A run that has ended already cannot be stopped.
            let stop = |child: &Child| {
                let _ = kill_process(Pid::from_child(child), signal);
            };
            // The run is stopped once or twice.
            for _ in 0..=numbers.below(2) {
                let results = usize::try_from(numbers.below(count as u64 + 1)).unwrap();
                let share = u32::try_from(numbers.below(90) + 5).unwrap();
                let time = takes * share / 100;
                let is_stopped = stopped(&folder, line, stop, (results.max(1), time));
                stops += usize::from(is_stopped);
                if !is_stopped || left_beside(&folder).is_empty() && folder.at("out").exists() {
                    // The run was complete before it was stopped.
                    remove(&folder);
                }
            }
            let again = command(&folder, line).output().unwrap();
            let said = stderr(&again);
            assert_eq!(again.status.code(), Some(0), "{line}, {signal:?}: {said}");
            let made = tree(&folder.at("out"));
            let names: Vec<_> = made.keys().collect();
            assert_eq!(
                names,
                expected.keys().collect::<Vec<_>>(),
                "{line}, {signal:?}"
            );
            assert!(made == expected, "{line}, {signal:?}");
            assert_eq!(left_beside(&folder), [] as [&str; 0], "{line}, {signal:?}");
        }
        remove(&folder);
    }
    // On a slow machine, a run may be complete before it is stopped.
    assert!(stops > 30, "{stops}");
}

/// Stops a run over `boxes` after it has written `a` and `b`, because a directory is in the way of `d`.
fn fail(folder: &Folder) -> String {
    remove(folder);
    let _ = fs::remove_dir_all(folder.at("out.embody-resume"));
    fs::create_dir_all(folder.at("out/d")).unwrap();
    let done = command(folder, "convert boxes").output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", stderr(&done));
    fs::remove_dir(folder.at("out/d")).unwrap();
    stderr(&done)
}

#[test]
fn mailbox_with_the_mailboxes_of_its_subfolders_is_kept_by_the_next_run() {
    let folder = Folder::new();
    for (name, count) in [
        ("a.mbox", 3),
        ("a/b.mbox", 2),
        ("a/b/c.mbox", 2),
        ("z.mbox", 1),
    ] {
        folder.write_mbox(&format!("in/{name}"), &mails(name, count));
    }
    for form in ["maildir", "eml", "mh"] {
        let line = format!("convert --output-format {form} in");
        let done = command(&folder, &line).output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{line}: {}", stderr(&done));
        let expected = tree(&folder.at("out"));
        remove(&folder);
        // The run ends at the last mailbox, because another file is in the way.
        folder.write("out/z/other", "of the user");
        for _ in 0..2 {
            let done = command(&folder, &line).output().unwrap();
            assert_eq!(done.status.code(), Some(1), "{line}: {}", stderr(&done));
        }
        fs::remove_dir_all(folder.at("out/z")).unwrap();
        // A killed run leaves an empty directory and a temporary one in a mailbox.
        fs::create_dir_all(folder.at("out/a/d")).unwrap();
        folder.write("out/a/.embody-host-1-2-x/1", "part of a mail");
        let again = command(&folder, &line).output().unwrap();
        assert_eq!(again.status.code(), Some(0), "{line}: {}", stderr(&again));
        fs::remove_dir_all(folder.at("out/a/.embody-host-1-2-x")).unwrap();
        fs::remove_dir(folder.at("out/a/d")).unwrap();
        assert!(tree(&folder.at("out")) == expected, "{line}");
        assert_eq!(left_beside(&folder), [] as [&str; 0], "{line}");
        remove(&folder);
    }
}

#[test]
fn file_that_the_stopped_run_did_not_write_like_this_is_protected() {
    let folder = sources();
    let said = fail(&folder);
    let advice = "run the same command again to continue; out.embody-resume lists the files that are complete";
    assert!(said.contains(advice), "{said}");
    type Change<'c> = (&'c str, &'c str, Box<dyn Fn() + 'c>);
    let write = |name: &str, content: &str| fs::write(folder.at(name), content).unwrap();
    let changes: Vec<Change<'_>> = vec![
        (
            "another file",
            "",
            Box::new(|| write("out/a", "somebody's")),
        ),
        (
            "a longer file",
            "",
            Box::new(|| {
                let longer =
                    folder.read("out/a") + "From b@example.org Mon Jan  2 10:00:00 2023\n\n";
                write("out/a", &longer);
            }),
        ),
        (
            "a truncated file",
            "",
            Box::new(|| write("out/a", &folder.read("out/a")[..100])),
        ),
        (
            "a new source",
            "",
            Box::new(|| write("boxes/a", &folder.read("boxes/b"))),
        ),
        ("another option", "--links keep", Box::new(|| {})),
        (
            "a file of another program",
            "",
            Box::new(|| write("out/e", "somebody's")),
        ),
    ];
    for (what, more, change) in changes {
        let source = folder.read("boxes/a");
        fail(&folder);
        change();
        let before = tree(&folder.at("out"));
        let line = format!("convert {more} boxes");
        let done = command(&folder, &line).output().unwrap();
        let said = stderr(&done);
        assert_eq!(done.status.code(), Some(1), "{what}: {said}");
        assert!(said.contains("the file already exists"), "{what}: {said}");
        assert!(
            said.contains("remove the file, or choose another name"),
            "{what}: {said}"
        );
        for (name, content) in before.iter().filter(|(name, _)| name.as_os_str() != "") {
            assert!(
                fs::read(folder.at("out").join(name)).unwrap() == *content,
                "{what}: {}",
                name.display()
            );
        }
        write("boxes/a", &source);
    }
    // A missing file is written again, and the rest is kept.
    fail(&folder);
    fs::remove_file(folder.at("out/a")).unwrap();
    let done = folder.run("convert boxes --output out --quiet");
    assert!(done.is_empty(), "{done}");
    let names: Vec<PathBuf> = tree(&folder.at("out")).into_keys().collect();
    assert_eq!(names, ["", "a", "b", "c", "d", "e"].map(PathBuf::from));
}

#[test]
fn continued_run_says_what_it_continues_and_no_resume_keeps_nothing() {
    let folder = sources();
    fail(&folder);
    let said = folder.run("convert boxes --output out");
    assert!(
        said.starts_with(
            "embody: continuing an earlier run, which is recorded in out.embody-resume\n"
        ),
        "{said}"
    );
    assert!(
        said.contains("3 files were written by the previous run"),
        "{said}"
    );
    for verb in ["convert", "detach --store store", "recover --offline"] {
        remove(&folder);
        fs::create_dir_all(folder.at("out/d")).unwrap();
        let done = command(&folder, &format!("{verb} --no-resume boxes"))
            .output()
            .unwrap();
        assert_eq!(done.status.code(), Some(1), "{}", stderr(&done));
        assert_eq!(left_beside(&folder), [] as [&str; 0], "{verb}");
    }
}

#[test]
fn directory_that_lost_its_tag_in_a_crash_is_still_the_one_of_the_run() {
    let folder = sources();
    for content in ["", "x"] {
        fail(&folder);
        folder.write("out.embody-resume/CACHEDIR.TAG", content);
        let done = command(&folder, "convert boxes").output().unwrap();
        let expected = if content.is_empty() { 0 } else { 1 };
        assert_eq!(done.status.code(), Some(expected), "{}", stderr(&done));
    }
}

#[test]
fn search_for_mail_skips_the_record_of_a_stopped_run() {
    let folder = sources();
    fail(&folder);
    let said = folder.run("inspect --json .");
    assert!(!said.contains("embody-resume/"), "{said}");
    // The record is inside the output if the directory around it cannot be written.
    fs::rename(
        folder.at("out.embody-resume"),
        folder.at("boxes/.embody-resume"),
    )
    .unwrap();
    let said = folder.run("convert boxes --output other");
    assert!(!said.contains("embody-resume"), "{said}");
    assert!(!folder.at("other/.embody-resume").exists());
}

#[test]
fn complete_run_that_is_repeated_says_that_its_result_exists_and_leaves_no_journal() {
    let folder = sources();
    let forms = ["", "mbox", "maildir", "eml", "mh", "thunderbird"];
    let places = ["Maildir", "mh", "messages", "box"].map(|it| format!("mixed/{it}"));
    for form in forms {
        for source in places
            .iter()
            .map(String::as_str)
            .chain(["mixed", "plain.zip"])
        {
            let option = if form.is_empty() {
                String::new()
            } else {
                format!("--output-format {form}")
            };
            let line = format!("convert {option} {source}");
            let done = command(&folder, &line).output().unwrap();
            assert!(done.status.success(), "{line}: {}", stderr(&done));
            let complete = tree(&folder.at("out"));
            for _ in 0..2 {
                let done = command(&folder, &line).output().unwrap();
                let said = stderr(&done);
                assert_eq!(done.status.code(), Some(1), "{line}: {said}");
                assert!(said.contains("already exists"), "{line}: {said}");
                assert!(said.contains("choose another name"), "{line}: {said}");
                assert!(!said.contains("same command again"), "{line}: {said}");
                assert_eq!(left_beside(&folder), [] as [&str; 0], "{line}");
                assert!(tree(&folder.at("out")) == complete, "{line}");
            }
            remove(&folder);
        }
    }
}
