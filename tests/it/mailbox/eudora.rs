//! Mailboxes of Eudora: how they are divided, what they are converted to, and the files next to them
//! (docs/mailbox-internals.md, "What is mail"). The conversion of their messages is tested in `mail/eudora.rs`.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::common::programs::{done, embody_in};

const OPENING: &str = "From ???@??? Tue May 14 12:00:00 2024\n";

/// Returns three messages, with lines that would be separators or quoted in an mbox. There are no empty lines between them.
fn messages() -> Vec<String> {
    let header = |number: usize| format!("From: ann@example.org\nSubject: {number}\n\n");
    vec![
        header(1) + "one\n",
        header(2)
            + "a\n\nFrom bob@example.org Tue May 14 12:00:00 2024\nSubject: text\n\n>From ???@??? z\n\n",
        header(3) + "From ???@??? here on\nlast",
    ]
}

fn mailbox() -> String {
    let messages = messages();
    messages
        .iter()
        .map(|text| format!("{OPENING}{text}"))
        .collect()
}

/// Returns the text of each message in a directory of messages, in order.
fn files(folder: &Path) -> Vec<String> {
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let read = paths.iter().map(|path| fs::read_to_string(path).unwrap());
    read.collect()
}

#[test]
fn both_kinds_of_mailbox_hold_the_same_messages_whatever_the_window() {
    let crlf = mailbox().replace('\n', "\r\n");
    let long = "x\n".repeat(400_000);
    for (text, newline) in [(crlf, "\r\n"), (mailbox().replace('\n', "\r"), "\n")] {
        let folder = TempDir::new().unwrap();
        let long = long.replace('\n', if newline == "\n" { "\r" } else { newline });
        let opening = OPENING.replace('\n', if newline == "\n" { "\r" } else { newline });
        fs::write(folder.path().join("In.mbx"), &text).unwrap();
        // The mailbox is larger than a window, and lines end at the ends of windows.
        let more = format!("{opening}Subject: long{long}{text}");
        fs::write(folder.path().join("Out.mbx"), more).unwrap();
        let arguments = [
            "convert",
            "In.mbx",
            "--output",
            "eml",
            "--output-format",
            "eml",
        ];
        done(&embody_in(folder.path(), &arguments), 0);
        let expected: Vec<String> = messages()
            .iter()
            .map(|text| text.replace('\n', newline))
            .collect();
        assert_eq!(files(&folder.path().join("eml")), expected);
        let arguments = [
            "convert",
            "Out.mbx",
            "--output",
            "out",
            "--output-format",
            "eml",
        ];
        done(&embody_in(folder.path(), &arguments), 0);
        let out = files(&folder.path().join("out"));
        assert_eq!(out.len(), 4);
        assert_eq!(out[1..], expected);
        assert_eq!(out[0].lines().count(), 400_000);
        assert!(!out[0].replace("\r\n", "\n").contains('\r'));
    }
}

#[test]
fn eudora_mailbox_becomes_an_mbox_that_a_second_run_leaves_unchanged() {
    let folder = TempDir::new().unwrap();
    let run = |arguments: &[&str]| embody_in(folder.path(), arguments);
    fs::write(folder.path().join("In"), mailbox().replace('\n', "\r")).unwrap();
    done(&run(&["convert", "In", "--output", "in.mbox"]), 0);
    let once = fs::read_to_string(folder.path().join("in.mbox")).unwrap();
    let separator = "From ann@example.org Tue May 14 12:00:00 2024\n";
    assert_eq!(once.matches(separator).count(), 3, "{once}");
    assert!(once.starts_with(separator));
    assert!(once.contains("\n>From bob@example.org Tue"), "{once}");
    assert!(once.contains("\n>>From ???@??? z\n"), "{once}");
    assert!(!once.contains('\r') && once.ends_with("\nlast\n\n"));
    done(&run(&["convert", "in.mbox", "--output", "again"]), 0);
    assert_eq!(
        fs::read_to_string(folder.path().join("again")).unwrap(),
        once
    );
    done(&run(&["convert", "in.mbox", "--in-place"]), 0);
    assert_eq!(
        fs::read_to_string(folder.path().join("in.mbox")).unwrap(),
        once
    );
    // With `--format mbox`, the mailbox is read as an mbox.
    fs::write(folder.path().join("said"), mailbox()).unwrap();
    done(
        &run(&[
            "convert", "said", "--format", "mbox", "--output", "as-it-is",
        ]),
        0,
    );
    assert_eq!(
        fs::read_to_string(folder.path().join("as-it-is")).unwrap(),
        mailbox()
    );
}

#[test]
fn in_place_is_refused_before_anything_is_done() {
    let folder = TempDir::new().unwrap();
    let text = mailbox();
    let plain = "From a@b Tue May 14 12:00:00 2024\nSubject: x\n\nx\n";
    fs::write(folder.path().join("In.mbx"), &text).unwrap();
    fs::write(folder.path().join("a.mbox"), plain).unwrap();
    let store = ["--store", "store"];
    for (command, more) in [
        ("convert", &[][..]),
        ("embed", &[]),
        ("detach", &store),
        ("restore", &store),
    ] {
        for source in ["In.mbx", "."] {
            fs::create_dir_all(folder.path().join("store")).unwrap();
            let arguments = [&[command, source, "--in-place"], more].concat();
            let said = done(&embody_in(folder.path(), &arguments), 2);
            assert!(
                said.contains("cannot change a Eudora mailbox in place"),
                "{said}"
            );
            assert!(said.contains("--output"), "{said}");
        }
    }
    // The messages share their attachment files, so the mailbox cannot be divided into ranges.
    for arguments in [
        &["split", "In.mbx"][..],
        &["convert", "In.mbx", "--range", "0-9", "--output", "x"],
    ] {
        done(&embody_in(folder.path(), arguments), 2);
    }
    assert_eq!(
        fs::read_to_string(folder.path().join("In.mbx")).unwrap(),
        text
    );
    assert_eq!(
        fs::read_to_string(folder.path().join("a.mbox")).unwrap(),
        plain
    );
}

/// Returns an index of Eudora for Windows: state and priority of each message.
fn index(text: &str, noted: &[(u8, u8)]) -> Vec<u8> {
    let mut starts: Vec<usize> = text
        .match_indices(OPENING.trim_end())
        .map(|(at, _)| at)
        .collect();
    starts.push(text.len());
    let mut index = vec![0; 104];
    // The entries are in the order of the user, not of the mailbox.
    for (number, (state, priority)) in noted.iter().enumerate().rev() {
        let (start, end) = (starts[number], starts[number + 1]);
        let mut entry = vec![0; 218];
        entry[..4].copy_from_slice(&u32::try_from(start).unwrap().to_le_bytes());
        entry[4..8].copy_from_slice(&u32::try_from(end - start).unwrap().to_le_bytes());
        (entry[12], entry[16]) = (*state, *priority);
        index.extend(entry);
    }
    index
}

#[test]
fn status_in_a_eudora_index_becomes_flags_if_the_index_fits() {
    let folder = TempDir::new().unwrap();
    let run = |arguments: &[&str]| done(&embody_in(folder.path(), arguments), 0);
    let many: String = (0..6)
        .map(|number| format!("{OPENING}Subject: {number}\nStatus: O\n\nx\n"))
        .collect();
    let text = many.replace('\n', "\r\n");
    fs::write(folder.path().join("In.mbx"), &text).unwrap();
    let states = [(0, 3), (1, 3), (2, 1), (3, 5), (4, 2), (7, 3)];
    let index = index(&text, &states);
    fs::write(folder.path().join("In.toc"), &index).unwrap();
    run(&[
        "convert",
        "In.mbx",
        "--output",
        "dir",
        "--output-format",
        "maildir",
    ]);
    let mut names: Vec<String> = ["cur", "new"]
        .iter()
        .flat_map(|part| fs::read_dir(folder.path().join("dir").join(part)).unwrap())
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let letters: Vec<&str> = names
        .iter()
        .map(|name| name.split(":2,").nth(1).unwrap_or("new"))
        .collect();
    assert_eq!(letters, ["new", "S", "FRS", "PS", "FPS", "DS"]);
    run(&["convert", "In.mbx", "--output", "in.mbox"]);
    let mbox = fs::read_to_string(folder.path().join("in.mbox")).unwrap();
    let fields = |name: &str| {
        let of = |line: &str| line.strip_prefix(name).map(|value| value.trim().to_owned());
        mbox.lines().filter_map(of).collect::<Vec<_>>()
    };
    assert_eq!(fields("Status:"), ["RO", "RO", "RO", "RO", "RO"]);
    assert_eq!(fields("X-Status:"), ["AF", "F", "T"]);
    // An incomplete entry, an invalid offset or length, and an index that is a symbolic link.
    let damaged = |at: usize| {
        let mut index = index.clone();
        index[at] ^= 1;
        index
    };
    for index in [
        index[..index.len() - 1].to_vec(),
        damaged(104),
        damaged(108),
        damaged(107),
    ] {
        fs::write(folder.path().join("In.toc"), index).unwrap();
        let said = run(&["convert", "In.mbx", "--output", "x", "--verbose"]);
        assert!(
            said.contains("In.toc: not kept: flags, because the index of Eudora does not match"),
            "{said}"
        );
        assert!(
            fs::read_to_string(folder.path().join("x"))
                .unwrap()
                .contains("Status: O\r\n")
        );
        fs::remove_file(folder.path().join("x")).unwrap();
    }
}

#[test]
fn what_lies_beside_the_mailboxes_of_a_folder_is_no_mail() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let windows = mailbox().replace('\n', "\r\n");
    let mac = mailbox().replace('\n', "\r");
    let mail = "From: x@example.org\nSubject: somebody's file\n\n";
    for (name, text) in [
        ("win/In.mbx", &*windows),
        ("win/Empty.mbx", ""),
        ("win/lmos.dat", ""),
        ("win/eudora.ini", "[Settings]\n"),
        ("win/Old.fol/Old.mbx", &windows),
        ("win/attach/letter.eml", mail),
        ("win/Embedded/letter.eml", mail),
        ("win/spool/x", ""),
        ("mac/Mail Folder/In", &mac),
        ("mac/Mail Folder/Out", ""),
        ("mac/Eudora Settings", ""),
        ("mac/Attachments Folder/letter", mail),
        ("mac/Parts Folder/letter", mail),
        // This directory does not belong to Eudora.
        ("other/attach/letter.eml", mail),
    ] {
        write(name, text);
    }
    let out = TempDir::new().unwrap();
    let to = out.path().join("all").display().to_string();
    done(
        &embody_in(folder.path(), &["convert", ".", "--output", &to]),
        0,
    );
    let mut made = Vec::new();
    let mut folders = vec![out.path().join("all")];
    while let Some(path) = folders.pop() {
        for entry in fs::read_dir(&path).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path())
            } else {
                let name = entry
                    .path()
                    .strip_prefix(out.path().join("all"))
                    .unwrap()
                    .to_owned();
                made.push(name.display().to_string());
            }
        }
    }
    made.sort();
    assert_eq!(
        made,
        [
            "mac/Mail Folder/In.mbox",
            "mac/Mail Folder/Out",
            "other/attach/letter.eml",
            "win/Empty.mbx",
            "win/In.mbox",
            "win/Old.fol/Old.mbox",
        ]
    );
}
