//! `--report FILE` appends to a file, but never to a file with mail.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::process::{Output, Stdio};

use crate::common::mail::{assert_bytes, expanding};
use crate::common::programs::{embody, stderr};
use crate::common::reports;
use tempfile::TempDir;

/// Creates a mailbox, a Maildir, a message and an object of a store, each with the same message.
fn house() -> TempDir {
    let house = tempfile::tempdir().unwrap();
    let at = |name: &str| house.path().join(name);
    let message = expanding();
    let mbox = [b"From a@b Sat Jan  3 01:05:34 1996\n", &*message, b"\n"].concat();
    fs::write(at("in.mbox"), &mbox).unwrap();
    fs::write(at("in.eml"), &message).unwrap();
    for folder in ["md/cur", "md/new", "md/tmp", "mh", "out", "store"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    fs::write(at("md/cur/1.a.b:2,S"), &message).unwrap();
    fs::write(at("mh/.mh_sequences"), "").unwrap();
    fs::write(at("mh/1"), &message).unwrap();
    fs::write(at("out/in.eml"), "").unwrap();
    fs::hard_link(at("in.mbox"), at("other.name")).unwrap();
    symlink(at("md/cur/1.a.b:2,S"), at("link")).unwrap();
    house
}

/// Returns the content of every file in a directory.
fn all(house: &TempDir) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![house.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path)
            } else {
                found.push((path.display().to_string(), fs::read(&path).unwrap()))
            }
        }
    }
    found.sort();
    found
}

fn run(house: &TempDir, line: &str) -> Output {
    embody()
        .args(line.split(' '))
        .current_dir(house.path())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn a_report_that_is_mail_is_bad_usage() {
    let house = house();
    let before = all(&house);
    for (line, word) in [
        ("convert in.mbox --in-place --report in.mbox", "source"),
        (
            "convert in.mbox --in-place --dry-run --report in.mbox",
            "source",
        ),
        ("convert in.mbox --output x --report other.name", "source"),
        ("convert in.mbox --output x --report x", "output"),
        ("convert in.mbox --output x --report ./x", "output"),
        (
            "convert in.mbox in.eml --output out --report out/in.eml",
            "output",
        ),
        (
            "convert in.mbox in.eml --output out --report out/in.mbox",
            "output",
        ),
        ("convert md --in-place --report md/cur/1.a.b:2,S", "message"),
        ("convert md --in-place --report link", "message"),
        ("convert . --output x --report link", "message"),
        ("convert md --in-place --report md/new/2.a.b", "message"),
        ("convert mh --in-place --report mh/2", "message"),
        (
            "detach --store store in.mbox --in-place --report in.mbox",
            "source",
        ),
        (
            "restore --store store in.mbox --dry-run --in-place --report in.mbox",
            "source",
        ),
        // Every line of a report is a row for a reference.
        ("convert in.mbox --output x --report in.eml", "not a report"),
    ] {
        let ran = run(&house, line);
        assert_eq!(ran.status.code(), Some(2), "{line}: {}", stderr(&ran));
        assert!(
            stderr(&ran).contains("--report"),
            "{line}: {}",
            stderr(&ran)
        );
        assert!(stderr(&ran).contains(word), "{line}: {}", stderr(&ran));
        assert!(all(&house) == before, "{line}");
    }
}

#[test]
fn filter_whose_report_file_is_a_mail_file_delays_the_mail() {
    let house = house();
    let at = |name: &str| house.path().join(name);
    let before = all(&house);
    for line in [
        "filter in.eml --report in.eml",
        "filter --report in.eml",
        "filter - --report in.eml",
        "detach --store store --report in.eml",
        "restore --store store --report in.eml",
        "filter md/cur/1.a.b:2,S --report in.mbox",
    ] {
        let ran = embody()
            .args(line.split(' '))
            .current_dir(house.path())
            .stdin(File::open(at("in.eml")).unwrap())
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(75), "{line}: {}", stderr(&ran));
        assert!(
            stderr(&ran).contains("--report"),
            "{line}: {}",
            stderr(&ran)
        );
        assert!(ran.stdout.is_empty());
        assert!(all(&house) == before, "{line}");
    }
    // Otherwise the rows would be written after the mail, to the same output.
    let ran = embody()
        .args(["filter", "in.eml", "--report", "new"])
        .current_dir(house.path())
        .stdout(File::create(at("new")).unwrap())
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(75), "{}", stderr(&ran));
    assert_eq!(fs::read(at("new")).unwrap(), b"");
}

/// A killed run or a full disk may leave an incomplete line. The next row begins on a new line.
#[test]
fn a_row_begins_its_own_line_behind_a_torn_one() {
    let torn = "{\"time\":\"x\"";
    let house = house();
    let report = house.path().join("rows");
    for line in [
        "convert in.mbox --output - --report rows",
        "filter in.eml --report rows",
        "convert md mh --output out --dry-run --report rows",
    ] {
        for (before, expected) in [
            (torn.to_owned(), format!("{torn}\n")),
            (format!("{torn}\n"), format!("{torn}\n")),
            (String::new(), String::new()),
        ] {
            fs::write(&report, before).unwrap();
            let ran = run(&house, line);
            assert_eq!(ran.status.code(), Some(0), "{line}: {}", stderr(&ran));
            let rows = fs::read_to_string(&report).unwrap();
            let new = rows.strip_prefix(&expected).expect("what was there stays");
            assert!(new.ends_with("}\n"), "{new}");
            for row in new.lines() {
                reports::object(row);
            }
        }
    }
    // A run without rows writes nothing.
    fs::write(&report, torn).unwrap();
    fs::write(house.path().join("plain.eml"), "Subject: x\n\nx\n").unwrap();
    let ran = run(&house, "convert plain.eml --output - --report rows");
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    assert_eq!(fs::read_to_string(&report).unwrap(), torn);
}

#[test]
fn rows_are_appended_to_a_report() {
    let house = house();
    let report = house.path().join("rows");
    File::create(&report).unwrap();
    for lines in 1..=3 {
        let ran = run(&house, "convert md mh --output out --dry-run --report rows");
        assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
        let rows = fs::read_to_string(&report).unwrap();
        assert_eq!(rows.lines().count(), 2 * lines);
    }
    // The report and the mail may both be written to /dev/null.

    let ran = embody()
        .args(["filter", "in.eml", "--report", "/dev/null"])
        .current_dir(house.path())
        .stdin(Stdio::null())
        .stdout(File::options().write(true).open("/dev/null").unwrap())
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    assert_bytes(
        &fs::read(house.path().join("in.eml")).unwrap(),
        &expanding(),
        "source",
    );
}
