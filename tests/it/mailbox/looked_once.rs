//! Each file of a source is opened once to find out what it contains, and once more to read its mail. All parts of a run use
//! the same verdict.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::verdicts::gzipped;
use crate::common::programs::{is_traced, skipped, stderr};

const MAIL: &str = "From: a@example.org\nSubject: one\n\nhello\n";

fn mbox() -> String {
    format!("From a@example.org Sat Jan  3 01:05:34 1998\n{MAIL}\n").repeat(3)
}

/// Creates a directory with mail in several forms, and files without mail.
fn make(place: &Path) {
    let folder = place.join("mail");
    fs::create_dir_all(folder.join("below")).unwrap();
    for (name, content) in [
        ("1.eml", MAIL.as_bytes().to_vec()),
        ("2.eml", MAIL.as_bytes().to_vec()),
        ("below/3.eml", MAIL.as_bytes().to_vec()),
        ("list.mbox", mbox().into_bytes()),
        ("list.mbox.gz", gzipped(mbox().as_bytes())),
        ("notes.txt", b"text without a header\n".to_vec()),
        ("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec()),
    ] {
        fs::write(folder.join(name), content).unwrap();
    }
    fs::write(place.join("other.mbox"), mbox()).unwrap();
}

/// Runs the program and returns how often it opened each file of the source.
fn opened(place: &Path, arguments: &[&str]) -> BTreeMap<String, usize> {
    let log = place.join("log");
    let done = Command::new("strace")
        .current_dir(place)
        .args(["-f", "-qq", "-e", "trace=open,openat", "-o"])
        .arg(&log)
        .arg(env!("CARGO_BIN_EXE_embody"))
        .args(arguments)
        .output()
        .unwrap();
    assert!(done.status.success(), "{arguments:?}: {}", stderr(&done));
    let mut counts = BTreeMap::new();
    for line in fs::read_to_string(log).unwrap().lines() {
        let quoted = line.split('"').nth(1).unwrap_or_default();
        let path = quoted.strip_prefix("./").unwrap_or(quoted);
        if path.starts_with("mail/") || path == "other.mbox" {
            *counts.entry(path.to_owned()).or_default() += 1;
        }
    }
    // Directories are opened to list them.
    counts.retain(|path, _| place.join(path).is_file());
    counts
}

#[test]
fn each_file_of_a_source_is_opened_once_to_recognise_it_and_once_to_read_it() {
    if !is_traced() {
        return skipped(
            "each_file_of_a_source_is_opened_once_to_recognise_it",
            "strace",
        );
    }
    for arguments in [
        &["convert", "mail", "--output", "to"][..],
        &["convert", "mail", "--output", "to", "--progress", "always"],
        &["convert", "mail", "other.mbox", "--output", "to"],
        &[
            "convert",
            "mail",
            "--output-format",
            "mbox",
            "--output",
            "to",
        ],
        &[
            "convert",
            "mail",
            "other.mbox",
            "--output-format",
            "maildir",
            "--output",
            "to",
        ],
        &["convert", "mail", "--fetch", "http", "--output", "to"],
        &[
            "convert",
            "mail",
            "--embed",
            "data",
            "--dry-run",
            "--output",
            "to",
        ],
        &["convert", "--in-place", "mail", "other.mbox"],
        &["inspect", "mail"],
        &["inspect", "--html", "page.html", "mail", "other.mbox"],
        &["merge", "mail", "other.mbox", "--output", "to"],
    ] {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        make(place);
        let counts = opened(place, arguments);
        assert!(counts.len() >= 7, "{arguments:?}: {counts:?}");
        for (path, count) in &counts {
            let most = if path.ends_with(".txt") || path.ends_with(".png") {
                1
            } else {
                2
            };
            assert!(*count <= most, "{arguments:?}: {path}: {counts:?}");
        }
    }
}
