//! MH folders: one file per message, with a number as its name (docs/mailbox-internals.md, "What is mail").

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::common::mailboxes::{Expand, Look, in_place, to};
use crate::common::programs::{embody, program, skipped, stderr};

const NEW: Expand = Expand("what was\nfetched\n\nFrom far away at 10:00");
const SEQUENCES: &str = "cur: 2\nunseen: 1 10\n";

fn message(number: u32, body: &str) -> String {
    format!("From: a@example.org\nSubject: {number}\n\n{body}\n")
}

/// Returns every file in a directory by its name, except those in the range from `from` to `to`.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_file() {
            files.push((name, fs::read(path).unwrap()));
        }
    }
    files.sort();
    files
}

/// Creates the messages 1, 2 and 10, a removed one, flags, an index, and a nested folder.
fn folder() -> (TempDir, PathBuf) {
    let place = TempDir::new().unwrap();
    let inbox = place.path().join("inbox");
    fs::create_dir_all(inbox.join("lists")).unwrap();
    let quoted = "From here on\n\nFrom a@b Thu Jan  1 00:00:00 1970\nSubject: text";
    for (name, text) in [
        ("1", message(1, "EXPAND-ME")),
        ("2", message(2, quoted)),
        (
            "10",
            format!(
                "From a@b Thu Jan  1 00:00:00 1970\n{}",
                message(10, "EXPAND-ME")
            ),
        ),
        (",3", message(3, "EXPAND-ME")),
        (".mh_sequences", SEQUENCES.to_owned()),
        (".xmhcache", "   1  01/06 Ann  EXPAND-ME\n".to_owned()),
        ("notes", message(5, "EXPAND-ME")),
        ("lists/7", message(7, "EXPAND-ME")),
        ("lists/.mh_sequences", String::new()),
    ] {
        fs::write(inbox.join(name), text).unwrap();
    }
    (place, inbox)
}

#[test]
fn messages_change_and_nothing_beside_them_does() {
    let (_place, inbox) = folder();
    let before = files(&inbox);
    let modified = SystemTime::now() - Duration::from_secs(100_000);
    let first = inbox.join("1");
    let file = fs::File::options().append(true).open(&first).unwrap();
    file.set_modified(modified).unwrap();
    fs::set_permissions(&first, Permissions::from_mode(0o640)).unwrap();
    in_place(&inbox, &Look).unwrap();
    assert_eq!(files(&inbox), before);

    let summary = in_place(&inbox, &NEW).unwrap();
    // The file `notes` is a message next to the messages of the folder.
    assert_eq!((summary.mailboxes, summary.messages), (3, 5));
    assert_eq!((summary.changed, summary.skipped_files), (4, 3));
    // A message that was removed.
    assert_eq!(summary.set_aside, 1);
    let changed = |text: &[u8]| {
        String::from_utf8_lossy(text)
            .replace("EXPAND-ME", NEW.0)
            .into_bytes()
    };
    let is_message = |name: &str| name == "notes" || name.parse::<u32>().is_ok();
    let expected: Vec<_> = before
        .into_iter()
        .map(|(name, text)| {
            if is_message(&name) {
                (name, changed(&text))
            } else {
                (name, text)
            }
        })
        .collect();
    assert_eq!(files(&inbox), expected);
    assert_eq!(
        fs::read(inbox.join("lists/7")).unwrap(),
        changed(message(7, "EXPAND-ME").as_bytes())
    );
    let metadata = fs::metadata(&first).unwrap();
    assert_eq!(metadata.modified().unwrap(), modified);
    assert_eq!(metadata.permissions().mode() & 0o777, 0o640);
}

#[test]
fn the_result_is_an_mh_folder_with_the_same_numbers_and_flags() {
    let (place, inbox) = folder();
    let out = place.path().join("out");
    let summary = to(&inbox, &out, &NEW).unwrap();
    assert_eq!((summary.messages, summary.changed), (5, 4));
    let names: Vec<_> = files(&out).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [".mh_sequences", "1", "10", "2", "notes"]);
    assert_eq!(
        fs::read_to_string(out.join(".mh_sequences")).unwrap(),
        SEQUENCES
    );
    assert_eq!(
        fs::read_to_string(out.join("1")).unwrap(),
        message(1, NEW.0)
    );
    assert_eq!(
        fs::read(out.join("2")).unwrap(),
        fs::read(inbox.join("2")).unwrap()
    );
    assert_eq!(
        fs::read_to_string(out.join("lists/7")).unwrap(),
        message(7, NEW.0)
    );
}

#[test]
fn format_option_makes_an_unrecognised_folder_an_mh_folder() {
    let place = TempDir::new().unwrap();
    for (name, text) in [
        ("1", "From a@b Thu Jan  1 00:00:00 1970\nSubject: 1\n\nx\n"),
        ("x.eml", "Subject: 2\n\n"),
    ] {
        fs::write(place.path().join(name), text).unwrap();
    }
    let said = |format: &str| {
        let output = embody()
            .args(["inspect", "--verbose"])
            .arg(place.path())
            .output()
            .unwrap();
        let converted = embody()
            .args(["convert", "--in-place", "--verbose", "--format", format])
            .arg(place.path())
            .output()
            .unwrap();
        assert!(output.status.success());
        assert_eq!(converted.status.success(), format == "auto");
        stderr(&converted)
    };
    assert!(
        said("mh").contains("x.eml: a file with mail that was not read because of --format"),
        "{}",
        said("mh")
    );
    assert!(!said("auto").contains("skipped"), "{}", said("auto"));
    let refused = embody()
        .args([
            "convert",
            "--in-place",
            "--backup",
            ".old",
            "--format",
            "mh",
        ])
        .arg(place.path())
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("an MH folder"),
        "{}",
        stderr(&refused)
    );
    fs::remove_file(place.path().join("1")).unwrap();
    let refused = embody()
        .args(["convert", "--in-place", "--format", "mh"])
        .arg(place.path())
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("no file name is a number"));
}

fn seen_by_python(folder: &Path) -> String {
    let code = "\
import mailbox, sys
box = mailbox.MH(sys.argv[1], create=False)
for key in box.keys():
    message = box[key]
    print(key, message['Subject'], sorted(message.get_sequences()), repr(message.get_payload()))
";
    let output = Command::new("python3")
        .args(["-c", code])
        .arg(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn python_writes_what_is_read_and_reads_what_was_written() {
    if program("python3").is_none() {
        return skipped("mh", "python3");
    }
    let place = TempDir::new().unwrap();
    let inbox = place.path().join("inbox");
    let code = "\
import mailbox, sys
box = mailbox.MH(sys.argv[1])
for number in range(1, 31):
    message = mailbox.MHMessage('From: a@example.org\\nSubject: %d\\n\\n%s\\n' % (number, 'EXPAND-ME' if number % 3 == 0 else 'x'))
    if number % 2:
        message.add_sequence('unseen')
    box.add(message)
box.remove(7)
";
    let made = Command::new("python3")
        .args(["-c", code])
        .arg(&inbox)
        .status();
    assert!(made.unwrap().success());
    let before = seen_by_python(&inbox);
    assert_eq!(before.lines().count(), 29);
    let expected = before.replace("EXPAND-ME", "what was\\nfetched");
    let out = place.path().join("out");
    let new = Expand("what was\nfetched");
    assert_eq!(to(&inbox, &out, &new).unwrap().changed, 10);
    assert_eq!(seen_by_python(&out), expected);
    assert_eq!(in_place(&inbox, &new).unwrap().changed, 10);
    assert_eq!(seen_by_python(&inbox), expected);
}

#[test]
fn nmh_lists_and_shows_what_was_written() {
    let Some(scan) = nmh("scan") else {
        return skipped("mh", "nmh's scan");
    };
    let (place, inbox) = folder();
    fs::write(
        place.path().join("profile"),
        format!("Path: {}\n", place.path().display()),
    )
    .unwrap();
    let run = |program: &Path, arguments: &[&str]| {
        let output = Command::new(program)
            .env("HOME", place.path())
            .env("MH", place.path().join("profile"))
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let format = "%(msg) %{subject} %(unseen)";
    let list = || run(&scan, &["+inbox", "-format", format]);
    let before = list();
    assert_eq!(before.lines().count(), 3, "{before}");
    in_place(&inbox, &NEW).unwrap();
    assert_eq!(list(), before);
    let show = nmh("mhl").map(|_| ()).and_then(|()| nmh("show"));
    if let Some(show) = show {
        let shown = run(&show, &["+inbox", "1", "-noshowproc"]);
        assert!(shown.contains("From far away at 10:00"), "{shown}");
    }
}

/// Returns the path of a program of nmh, which is in a directory of its own on Debian.
fn nmh(name: &str) -> Option<PathBuf> {
    let place = Path::new("/usr/bin/mh").join(name);
    place.is_file().then_some(place).or_else(|| program(name))
}

#[test]
fn what_detach_moves_restore_puts_back() {
    let place = TempDir::new().unwrap();
    let inbox = place.path().join("inbox");
    fs::create_dir(&inbox).unwrap();
    let text = format!(
        "From: a@example.org\nSubject: 1\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nx\n--b\n\
         Content-Type: application/pdf; name=x.pdf\nContent-Disposition: attachment; filename=x.pdf\n\
         Content-Transfer-Encoding: base64\n\n{}--b--\n",
        "JVBERi0xLjQKJVBERi0xLjQKJVBERi0xLjQKJVBERi0xLjQKJVBERi0xLjQKJVBERi0xLjQKJVBE\n".repeat(40)
    );
    fs::write(inbox.join("3"), &text).unwrap();
    fs::write(inbox.join(".mh_sequences"), "unseen: 3\n").unwrap();
    let run = |arguments: &[&str]| {
        let output = embody()
            .args(arguments)
            .args(["--store", "store"])
            .current_dir(place.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    };
    run(&["detach", "--larger-than", "1K", "--in-place", "inbox"]);
    let detached = fs::read_to_string(inbox.join("3")).unwrap();
    assert!(detached.contains("X-Embody-Detached"), "{detached}");
    let gc = embody()
        .args(["store", "gc", "store", "inbox"])
        .current_dir(place.path())
        .output()
        .unwrap();
    assert!(gc.status.success(), "{}", stderr(&gc));
    run(&["restore", "--in-place", "inbox"]);
    assert_eq!(fs::read_to_string(inbox.join("3")).unwrap(), text);
    assert_eq!(files(&inbox).len(), 2);
}
