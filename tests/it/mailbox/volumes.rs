//! Exports in several archives, such as a Google Takeout of mail and files: some of the archives contain no mail.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::common::archives::{tar, zip};
use crate::common::mail::expanding;
use crate::common::programs::{embody_in, stderr};

fn mbox(number: usize) -> Vec<u8> {
    let separator = format!("From a@b Sat Jan  3 01:05:34 1996\nMessage-ID: <{number}@v>\n");
    [separator.as_bytes(), &expanding(), b"\n"].concat()
}

/// Members of an archive that are not mail, as a Takeout has them.
const FILES: [(&str, &[u8]); 3] = [
    ("Takeout/archive_browser.html", b"<html><p>x</p></html>"),
    ("Takeout/Drive/photo.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
    ("Takeout/Drive/note.txt", b"text\n"),
];

fn as_tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let members: Vec<_> = members
        .iter()
        .map(|(name, content)| (*name, b'0', *content))
        .collect();
    tar(&members)
}

/// Returns a directory with two archives with mail and two without mail.
fn volumes() -> TempDir {
    let folder = TempDir::new().unwrap();
    let (one, two) = (mbox(1), mbox(2));
    for (name, archive) in [
        (
            "t-001.zip",
            zip(&[("Takeout/Mail/All mail.mbox", &one), FILES[0]]),
        ),
        (
            "t-002.zip",
            zip(&[("Takeout/Mail/Work.mbox", &two), FILES[2]]),
        ),
        ("t-003.zip", zip(&FILES)),
        ("t-004.tar", as_tar(&FILES)),
    ] {
        fs::write(folder.path().join(name), archive).unwrap();
    }
    folder
}

/// Runs a command, and returns its status and everything that it wrote.
fn run(folder: &Path, line: &str) -> (Option<i32>, String) {
    let arguments: Vec<&str> = line.split(' ').collect();
    let output = embody_in(folder, &arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), text + &stderr(&output))
}

const COMMANDS: [&str; 7] = [
    "inspect",
    "inspect --json",
    "inspect --duplicates",
    "convert --output converted",
    "recover --output recovered",
    "detach --store store --output small",
    "merge --output merged.mbox",
];

#[test]
fn volume_without_mail_is_named_and_the_run_is_complete() {
    for command in COMMANDS {
        let folder = volumes();
        let line = format!("{command} t-003.zip t-001.zip t-004.tar");
        let (status, said) = run(folder.path(), &line);
        assert_eq!(status, Some(0), "{line}: {said}");
        for name in ["t-003.zip", "t-004.tar"] {
            let named = format!("{name}: this archive contains no mail\n");
            assert!(said.contains(&named), "{line}: {said}");
            assert!(!said.contains(&format!("embody recover {name}")), "{said}");
            assert!(!said.contains(&format!("compare {name}")), "{line}: {said}");
            assert!(
                !said.contains(&format!("--merged {name}")),
                "{line}: {said}"
            );
        }
        for wrong in [
            "could not be read",
            "no mbox",
            "not read",
            "missing or incomplete",
        ] {
            assert!(!said.contains(wrong), "{line}: {said}");
        }
        let results = match command {
            "convert --output converted" => "converted",
            "recover --output recovered" => "recovered",
            _ => continue,
        };
        let mut names = fs::read_dir(folder.path().join(results)).unwrap();
        assert_eq!(names.next().unwrap().unwrap().file_name(), "t-001.mbox");
        assert!(names.next().is_none(), "{line}");
    }
}

#[test]
fn merge_checks_only_the_volumes_with_mail() {
    let folder = volumes();
    let line = "merge --output merged.mbox t-003.zip t-001.zip t-002.zip";
    let (status, said) = run(folder.path(), line);
    assert_eq!(status, Some(0), "{said}");
    for name in ["t-001.zip", "t-002.zip"] {
        let command = format!("compare --merged {name} merged.mbox");
        assert!(said.contains(&format!("embody {command}\n")), "{said}");
        let (compared, result) = run(folder.path(), &command);
        assert_eq!(compared, Some(0), "{result}");
    }
    assert!(said.contains("2 mails in the result"), "{said}");
}

#[test]
fn sources_that_all_lack_mail_are_an_error() {
    for command in COMMANDS {
        let folder = volumes();
        let (status, said) = run(folder.path(), &format!("{command} t-003.zip t-004.tar"));
        assert_eq!(status, Some(1), "{command}: {said}");
        assert!(
            said.contains("no source contains mail"),
            "{command}: {said}"
        );
        assert!(!folder.path().join("merged.mbox").exists());
        let alone = volumes();
        let (status_of_one, error) = run(alone.path(), &format!("{command} t-003.zip"));
        assert_eq!(status_of_one, Some(1), "{command}: {error}");
        assert!(
            error.contains("t-003.zip: the archive contains no mbox"),
            "{command}: {error}"
        );
    }
}

#[test]
fn mail_that_is_not_read_in_a_volume_without_other_mail_is_trouble() {
    let mmdf: &[u8] = b"\x01\x01\x01\x01\nSubject: x\n\nx\n\x01\x01\x01\x01\n";
    for command in COMMANDS {
        let folder = volumes();
        let archive = zip(&[FILES[1], ("Takeout/Mail/old", mmdf)]);
        fs::write(folder.path().join("t-005.zip"), archive).unwrap();
        let (status, said) = run(folder.path(), &format!("{command} t-001.zip t-005.zip"));
        assert_eq!(status, Some(1), "{command}: {said}");
        assert!(said.contains("Takeout/Mail/old"), "{command}: {said}");
        assert!(!said.contains("contains no mail\n"), "{command}: {said}");
    }
}

#[test]
fn inspect_of_several_archives_recommends_one_command_for_all() {
    let folder = volumes();
    let (status, said) = run(folder.path(), "inspect t-001.zip t-003.zip t-002.zip");
    assert_eq!(status, Some(0), "{said}");
    let (_, steps) = said.split_once("Next step: ").unwrap();
    let commands: Vec<&str> = steps
        .lines()
        .filter_map(|line| line.strip_prefix("  embody "))
        .collect();
    assert_eq!(
        commands,
        ["recover t-001.zip t-002.zip --output recovered"],
        "{said}"
    );
    let (recovered, result) = run(folder.path(), commands[0]);
    assert_eq!(recovered, Some(0), "{result}");
    for name in ["t-001.zip", "t-002.zip"] {
        let (compared, proof) = run(folder.path(), &format!("compare {name} recovered"));
        assert_eq!(compared, Some(0), "{proof}");
    }
    // Two results with the same name cannot be in one directory.
    fs::create_dir(folder.path().join("old")).unwrap();
    fs::copy(
        folder.path().join("t-001.zip"),
        folder.path().join("old/t-001.zip"),
    )
    .unwrap();
    let (_, both) = run(folder.path(), "inspect t-001.zip old/t-001.zip");
    for line in [
        "  embody recover t-001.zip --output t-001-recovered.mbox\n",
        "  embody recover old/t-001.zip --output t-001-recovered-2.mbox\n",
    ] {
        assert!(both.contains(line), "{both}");
    }
    // A source with the name of the result is not overwritten.
    let (_, named) = run(folder.path(), "inspect t-001.zip recovered");
    assert!(named.contains("--output recovered-2\n"), "{named}");
}

#[test]
fn inspect_of_several_mailboxes_with_pictures_recommends_one_flow() {
    let folder = TempDir::new().unwrap();
    for name in ["one", "two"] {
        let mail = "Subject: x\nMIME-Version: 1.0\nContent-Type: text/html\n\n<img src=https://a.example/1.png>\n\n";
        let text = format!("From a@b Sat Jan  3 01:05:34 1996\n{mail}");
        let both = [text.as_bytes(), &mbox(3)].concat();
        fs::write(folder.path().join(format!("{name}.mbox")), both).unwrap();
    }
    let (status, said) = run(folder.path(), "inspect one.mbox two.mbox");
    assert_eq!(status, Some(0), "{said}");
    let flow = "  embody recover one.mbox two.mbox --output recovered\n  embody embed recovered --output embedded\n  embody compare one.mbox embedded\n  embody compare two.mbox embedded\n";
    assert!(said.ends_with(flow), "{said}");
}
