//! Disks that fail while a mailbox is read: the mailbox is unchanged and reported, and the others are converted
//! (docs/mailbox-internals.md, "What is mail").

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::programs::{embody, is_traced, skipped, stderr};

/// Returns mail that is larger than a window, and then a message with a reference. Several such mailboxes are larger than all
/// windows.
fn mbox() -> Vec<u8> {
    let plain = format!(
        "From a@b Mon Jan  1 00:00:00 2024\nSubject: plain\n\n{}\n",
        "text\n".repeat(20_000)
    );
    let to_do = "From a@b Mon Jan  1 00:00:00 2024\nSubject: x\nMIME-Version: 1.0\n\
        Content-Type: message/external-body; access-type=URL; URL=\"data:,x\"\n\n\
        Content-Type: text/plain\n\n\n";
    [&plain.repeat(3), to_do, &plain].concat().into_bytes()
}

fn zipped(octets: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    encoder.write_all(octets).unwrap();
    encoder.finish().unwrap()
}

/// Returns everything in a directory: names and contents.
fn all(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<_> = entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect();
    all.sort();
    all
}

/// Runs the program while calls that read `file` fail in each thread, from the given call on.
fn failing(place: &Path, file: &str, (call, from): (&str, usize), arguments: &[&str]) -> Output {
    let file = place.canonicalize().unwrap().join(file);
    let mut command = Command::new("strace");
    command
        .current_dir(place)
        .args([
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            &format!("trace={call}"),
        ])
        .args(["-e", &format!("inject={call}:error=EIO:when={from}+")])
        .arg("-P")
        .arg(file)
        .arg(env!("CARGO_BIN_EXE_embody"))
        .args(arguments);
    command.output().unwrap()
}

#[test]
fn a_mailbox_that_cannot_be_read_to_its_end_is_left_and_named_and_the_others_are_done() {
    const TEST: &str = "a_mailbox_that_cannot_be_read_to_its_end_is_left";
    if !is_traced() {
        return skipped(TEST, "strace");
    }
    let mailbox = String::from_utf8(mbox()).unwrap();
    let single = &mailbox[mailbox.find("Subject: x").unwrap()..];
    for (file, content, call, step) in [
        ("b.mbox", mbox(), "pread64", 1),
        ("b.mbox.gz", zipped(&mbox()), "pread64", 1),
        // The same for a file whose beginning is first read in many small steps.
        ("b.eml", single.as_bytes().to_vec(), "read", 5),
    ] {
        let named = format!("mail/{file}");
        for arguments in [
            &["convert", "--in-place", "mail"][..],
            &["convert", "mail", "--output", "to"],
            &["convert", "--in-place", &named, "mail/c.mbox"],
            &["convert", "--in-place", "--fetch", "http", "mail"],
        ] {
            for (failures, from) in (1..).step_by(step).enumerate() {
                let temporary = tempfile::tempdir().unwrap();
                let place = temporary.path();
                fs::create_dir(place.join("mail")).unwrap();
                for (name, content) in [(file, &content), ("c.mbox", &mbox())] {
                    fs::write(place.join("mail").join(name), content).unwrap();
                }
                let before = all(&place.join("mail"));
                let output = failing(place, &named, (call, from), arguments);
                let said = stderr(&output);
                let what = format!("{arguments:?} from {from}: {said}");
                let in_place = arguments.contains(&"--in-place");
                let after = all(&place.join(if in_place { "mail" } else { "to" }));
                if output.status.success() {
                    assert!(failures > 1, "{what}");
                    break;
                }
                assert_eq!(output.status.code(), Some(1), "{what}");
                assert!(said.contains(&named), "{what}");
                assert!(said.contains("Input/output error"), "{what}");
                assert!(said.contains(" read, "), "{what}");
                assert!(!said.contains(".embody-"), "{what}");
                for (name, old) in before {
                    let new = after.iter().find(|(other, _)| *other == name);
                    match new {
                        Some((_, new)) if name == file => {
                            assert!(in_place && *new == old, "{what}")
                        }
                        Some((_, new)) => assert!(*new != old, "{name}: {what}"),
                        None => assert!(name == file && !in_place, "{name}: {what}"),
                    }
                }
                assert_eq!(after.len(), if in_place { 2 } else { 1 }, "{what}");
            }
        }
    }
}

#[test]
fn failed_write_names_the_path_that_the_user_gave() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    fs::write(place.join("a.mbox"), mbox()).unwrap();
    // A directory in which no file can be created.
    for to in ["/proc/a.mbox", "/proc/a.mbox.gz"] {
        let mut command = embody();
        command.args(["convert", "a.mbox", "--output", to]);
        let output = command.current_dir(place).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("cannot write {to}: ")), "{said}");
        assert!(!said.contains(".embody-"), "{said}");
    }
    let mut command = embody();
    command.args(["inspect", "a.mbox", "--html", "/proc/page.html"]);
    let output = command.current_dir(place).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write /proc/page.html: "), "{said}");
    assert!(!said.contains(".embody-"), "{said}");
}
