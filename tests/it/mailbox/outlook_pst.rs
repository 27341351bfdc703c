//! `.pst` files of Outlook as sources (docs/outlook.md).

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::maildir::{doveadm, dovecot_says};
use super::thunderbird::PREFERENCES;
use crate::common::archives::{tar, zip};
use crate::common::programs::{embody_in, fed, has_python, program, skipped, stderr};
use crate::common::pst::{Form, Message, Pst, Value, text, time};
use crate::common::thunderbird;

const UNICODE: Form = Form {
    version: 23,
    encoding: 1,
};
const ANSI: Form = Form {
    version: 15,
    encoding: 2,
};

/// Returns a mailbox with flags, nested folders, names that lead to other directories, contacts, and an orphaned message.
fn usual(form: Form) -> Vec<u8> {
    let mut pst = Pst::in_memory(form);
    let categories = Value::Texts(vec!["Red".to_owned(), "Blue".to_owned()]);
    let contact = Message::mail("Carl", "x").with(0x1a, text("IPM.Contact"));
    let replied = Message::mail("replied", "one\nFrom here on\n")
        .with(0x1081, Value::Long(102))
        .with(0x1090, Value::Long(2))
        .with(0x8000, categories);
    let unread = Message::mail("unread", "two\n")
        .with(0x0e07, Value::Long(0))
        .with(0x0e06, time(1_700_000_000));
    let whole = Message::mail("whole", "three\n")
        .with_file("a.bin", &[5; 20_000])
        .with_message(Message::mail("inner", "four\n").with_file("b.txt", b"five"));
    let inbox = pst.folder(None, "Inbox", &[replied, unread, whole]);
    pst.folder(Some(inbox), "../../out", &[Message::mail("a", "b")]);
    pst.folder(Some(inbox), "Case", &[Message::mail("upper", "b")]);
    pst.folder(Some(inbox), "case", &[Message::mail("lower", "b")]);
    pst.folder(None, "Contacts", &[contact.clone(), contact]);
    pst.message(0x9999_9002, &Message::mail("orphan", "two"));
    pst.bytes()
}

fn folder_with(bytes: &[u8]) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("a.pst"), bytes).unwrap();
    folder
}

fn run(folder: &Path, command: &str) -> (i32, String, String) {
    let words: Vec<&str> = command.split(' ').collect();
    let done = embody_in(folder, &words);
    let out = String::from_utf8_lossy(&done.stdout).into_owned();
    (done.status.code().unwrap(), out, stderr(&done))
}

/// Returns the files in a directory, and their content.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        for entry in fs::read_dir(&path).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path)
            } else {
                let name = path.strip_prefix(folder).unwrap();
                files.insert(name.to_str().unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

#[test]
fn pst_becomes_an_mbox_for_each_folder_and_twice_the_same() {
    for form in [UNICODE, ANSI] {
        let folder = folder_with(&usual(form));
        let at = folder.path();
        let (status, _, said) = run(at, "convert a.pst --output one");
        assert_eq!(status, 0, "{said}");
        assert!(said.contains("a.pst/Contacts: skipped: 2 items"), "{said}");
        assert_eq!(run(at, "convert a.pst --output two").0, 0);
        let one = files(&at.join("one"));
        assert!(one == files(&at.join("two")));
        let names: Vec<&str> = one.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "Inbox.mbox",
                "Inbox/Case.mbox",
                "Inbox/_.....out.mbox",
                "Inbox/case (2).mbox",
                "Orphan messages.mbox"
            ]
        );
        let inbox = String::from_utf8_lossy(&one["Inbox.mbox"]).into_owned();
        assert!(
            inbox.starts_with(
                "From bob@example.org Sun Sep 13 12:28:20 2020\nFrom: \"Bob\" <bob@example.org>\n"
            ) && inbox.contains("\nStatus: RO\nX-Status: AF\n\none\n"),
            "{inbox}"
        );
        assert!(inbox.contains("\n>From here on\n"), "{inbox}");
        assert!(inbox.contains("Content-Type: message/rfc822\n"), "{inbox}");
        let other = String::from_utf8_lossy(&one["Inbox/case (2).mbox"]).into_owned();
        assert!(other.contains("Subject: lower\n"), "{other}");
        let (status, _, said) = run(at, "compare a.pst one");
        assert_eq!(status, 0, "{said}");
    }
}

#[test]
fn pst_becomes_maildirs_with_flags_and_dates() {
    let folder = folder_with(&usual(UNICODE));
    let at = folder.path();
    let (status, _, said) = run(at, "convert a.pst --output mail --output-format maildir");
    assert_eq!(status, 0, "{said}");
    let mail = files(&at.join("mail"));
    let names: Vec<&str> = mail
        .keys()
        .map(String::as_str)
        .filter(|it| it.starts_with("Inbox/cur"))
        .collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(
        names[0].starts_with("Inbox/cur/1600000100.00000001.embody,S="),
        "{names:?}"
    );
    assert!(names[0].ends_with(":2,FRS"), "{names:?}");
    assert!(names[1].ends_with(":2,S"), "{names:?}");
    assert!(
        names[2].starts_with("Inbox/cur/1700000000.00000002.embody,S="),
        "{names:?}"
    );
    assert!(names[2].ends_with(":2,"), "{names:?}");
    assert!(mail.keys().any(|it| it.starts_with("Inbox/case (2)/cur/")));
}

#[test]
fn pst_becomes_folders_of_thunderbird_and_single_messages() {
    let folder = folder_with(&usual(UNICODE));
    let at = folder.path();
    let (status, _, said) = run(at, "convert a.pst --output Old --output-format thunderbird");
    assert_eq!(status, 0, "{said}");
    let tree = files(at);
    for name in [
        "Old/a",
        "Old/a.sbd/Inbox",
        "Old/a.sbd/Inbox.sbd/Case",
        "Old/a.sbd/Orphan messages",
    ] {
        assert!(tree.contains_key(name), "{name}: {:?}", tree.keys());
    }
    let (status, _, said) = run(at, "convert a.pst --output eml --output-format eml");
    assert_eq!(status, 0, "{said}");
    let names: Vec<String> = files(&at.join("eml")).into_keys().collect();
    assert_eq!(names.len(), 7, "{names:?}");
    assert!(
        names.contains(&"Inbox/00000003.eml".to_owned()),
        "{names:?}"
    );
}

#[test]
fn pst_is_inspected_and_never_changed() {
    let bytes = usual(UNICODE);
    let folder = folder_with(&bytes);
    let at = folder.path();
    let (status, out, said) = run(at, "inspect a.pst");
    assert_eq!(status, 0, "{said}");
    assert!(out.contains("7 messages"), "{out}");
    let (status, _, said) = run(at, "convert a.pst --in-place");
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("does not write Outlook files"), "{said}");
    let (status, out, said) = run(at, "filter a.pst");
    assert_ne!(status, 0, "{said}");
    assert!(out.is_empty());
    assert!(said.contains("a mailbox"), "{said}");
    for command in [
        "convert a.pst --output b.pst",
        "convert a.pst --output b.mbox",
        "convert a.pst --output -",
    ] {
        let (status, _, said) = run(at, command);
        assert_eq!(status, 2, "{command}: {said}");
    }
    assert!(fs::read(at.join("a.pst")).unwrap() == bytes);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Converts standard input.
fn piped(folder: &Path, command: &str, input: &[u8]) -> (i32, String, String) {
    let mut embody = crate::common::programs::embody();
    embody.current_dir(folder).args(command.split(' '));
    let done = fed(&mut embody, input);
    let out = String::from_utf8_lossy(&done.stdout).into_owned();
    (done.status.code().unwrap(), out, stderr(&done))
}

/// Adds a directory to the names of files.
fn below(directory: &str, files: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    let named = |(name, bytes): (&String, &Vec<u8>)| (format!("{directory}/{name}"), bytes.clone());
    files.iter().map(named).collect()
}

const MBOX: &[u8] = b"From a@b Thu Jan  1 00:00:00 1970\nSubject: of the mbox\n\ny\n\n";

#[test]
fn pst_that_is_compressed_or_comes_from_a_pipe_gives_the_same_mail_as_the_file() {
    let bytes = usual(UNICODE);
    let folder = folder_with(&bytes);
    let at = folder.path();
    fs::write(at.join("b.pst.gz"), gzip(&bytes)).unwrap();
    for (format, options) in [
        ("mbox", ""),
        ("maildir", " --output-format maildir"),
        ("eml", " --output-format eml"),
        ("thunderbird", " --output-format thunderbird"),
    ] {
        let mut results = Vec::new();
        for (source, input) in [
            ("a.pst", &b""[..]),
            ("b.pst.gz", b""),
            ("-", &bytes),
            ("-", &gzip(&bytes)),
        ] {
            let result = format!("{format}{}", results.len());
            let command = format!("convert {source} --output {result}{options}");
            let (status, _, said) = piped(at, &command, input);
            assert_eq!(status, 0, "{command}: {said}");
            assert!(said.contains("7 messages read"), "{command}: {said}");
            assert!(said.contains("Contacts: skipped: 2 items"), "{said}");
            // The topmost folder of Thunderbird has the name of the source.
            let files = files(&at.join(&result)).into_iter();
            let renamed = |name: String| match name.strip_prefix("b.sbd/") {
                Some(rest) => format!("a.sbd/{rest}"),
                None => name,
            };
            let files: BTreeMap<_, _> = files
                .map(|(name, bytes)| (renamed(name), bytes))
                .filter(|(_, bytes)| format != "thunderbird" || !bytes.is_empty())
                .collect();
            results.push(files);
        }
        let first = &results[0];
        assert!(!first.is_empty());
        for (number, other) in results.iter().enumerate() {
            let names = || other.keys().collect::<Vec<_>>();
            let is_pipe = number > 1;
            let is_same = if format == "thunderbird" && is_pipe {
                first.values().eq(other.values())
            } else {
                first == other
            };
            assert!(is_same, "{format} {number}: {:?}", names());
        }
    }
    for source in ["b.pst.gz", "-"] {
        let (status, out, said) = piped(at, &format!("inspect {source}"), &bytes);
        assert_eq!(status, 0, "{said}");
        assert!(out.contains("7 messages"), "{out}");
    }
    let (status, _, said) = run(at, "compare b.pst.gz mbox0");
    assert_eq!(status, 0, "{said}");
    let (status, _, said) = run(
        at,
        "merge b.pst.gz mbox0 --output one.mbox --output-format mbox --flat",
    );
    assert_eq!(status, 0, "{said}");
    let (status, _, said) = run(at, "convert b.pst.gz --output dry --dry-run");
    assert_eq!(status, 0, "{said}");
    assert!(
        said.contains("7 messages") && !at.join("dry").exists(),
        "{said}"
    );
    for command in [
        "convert b.pst.gz --in-place",
        "convert b.pst.gz --output b.mbox",
        "convert b.pst.gz --output -",
    ] {
        let (status, _, said) = run(at, command);
        assert_eq!(status, 2, "{command}: {said}");
    }
    let (status, _, said) = piped(at, "convert - --output b.mbox", &bytes);
    assert_eq!(status, 2, "{said}");
    let (status, _, said) = piped(at, "convert - --output small --max-expanded 10k", &bytes);
    assert_eq!(status, 1, "{said}");
    assert!(
        said.contains("--max-expanded") && !at.join("small").exists(),
        "{said}"
    );
    fs::create_dir(at.join("in")).unwrap();
    fs::rename(at.join("b.pst.gz"), at.join("in/b.pst.gz")).unwrap();
    fs::write(at.join("in/x.mbox"), MBOX).unwrap();
    // In a directory, the mailbox becomes a directory with its name.
    let (status, _, said) = run(at, "convert in --output from-in");
    assert_eq!(status, 0, "{said}");
    assert!(at.join("from-in/b/Inbox.mbox").exists(), "{said}");
}

#[test]
fn psts_in_an_archive_become_directories_next_to_the_mbox_of_the_archive() {
    let bytes = usual(UNICODE);
    let folder = folder_with(&bytes);
    let at = folder.path();
    assert_eq!(run(at, "convert a.pst --output plain").0, 0);
    let plain = files(&at.join("plain"));
    let members: [(&str, &[u8]); 5] = [
        ("mail/a.pst", &bytes),
        ("mail/x.mbox", MBOX),
        ("../A.pst", &bytes),
        ("notes.txt", b"Dear all,\nthis is a text\n"),
        ("/old/backup.pst", &bytes),
    ];
    let only: Vec<(&str, &[u8])> = members
        .into_iter()
        .step_by(2)
        .filter(|it| it.0.ends_with("pst"))
        .collect();
    let as_tar = |members: &[(&'static str, &[u8])]| {
        let members: Vec<(&str, u8, &[u8])> = members.iter().map(|it| (it.0, b'0', it.1)).collect();
        tar(&members)
    };
    let mut expected = below("a", &plain);
    expected.extend(below("A (2)", &plain));
    expected.extend(below("backup (2)", &plain));
    let mut with_mbox = expected.clone();
    with_mbox.insert("backup.mbox".to_owned(), MBOX.to_vec());
    for (name, content) in [
        ("backup.zip", zip(&members)),
        ("backup.tar", as_tar(&members)),
        ("backup.tar.gz", gzip(&as_tar(&members))),
        ("only/backup.zip", zip(&only)),
        ("only/backup.tgz", gzip(&as_tar(&only))),
    ] {
        let is_only = name.starts_with("only");
        let expected = if is_only { &expected } else { &with_mbox };
        let messages = if is_only {
            "21 messages"
        } else {
            "22 messages"
        };
        let output = name.replace(['/', '.'], "-");
        fs::create_dir_all(at.join("only")).unwrap();
        fs::write(at.join(name), &content).unwrap();
        let (status, _, said) = run(at, &format!("convert {name} --output {output}"));
        assert_eq!(status, 0, "{name}: {said}");
        assert!(said.contains(messages), "{name}: {said}");
        let contacts = format!("{name}/mail/a.pst/Contacts: skipped: 2 items");
        assert!(said.contains(&contacts), "{name}: {said}");
        let found = files(&at.join(&output));
        assert!(found == *expected, "{name}: {:?}", found.keys());
        let (status, _, said) = run(at, &format!("compare {name} {output}"));
        assert_eq!(status, 0, "{name}: {said}");
        let (status, out, said) = run(at, &format!("inspect {name}"));
        assert_eq!(status, 0, "{name}: {said}");
        assert!(out.contains(messages), "{name}: {out}");
        let command =
            format!("merge {name} {output} --output {output}.mbox --output-format mbox --flat");
        let (status, _, said) = run(at, &command);
        assert_eq!(status, 0, "{name}: {said}");
        let (status, _, said) = run(at, &format!("compare --merged {output} {output}.mbox"));
        assert_eq!(status, 0, "{name}: {said}");
        // The folders are known before the messages are read, unless the archive is compressed as a whole.
        let (status, _, said) = run(at, &format!("merge {name} --output {output}-merged"));
        assert_eq!(status, 0, "{name}: {said}");
        let merged = at.join(format!("{output}-merged"));
        assert_eq!(merged.is_dir(), !name.ends_with("gz"), "{name}");
        let command = format!("compare --merged {name} {output}-merged");
        let (status, _, said) = run(at, &command);
        assert_eq!(status, 0, "{name}: {said}");
        let (status, _, said) = run(at, &format!("convert {name} --output dry --dry-run"));
        assert_eq!(status, 0, "{name}: {said}");
        assert!(
            said.contains(messages) && !at.join("dry").exists(),
            "{said}"
        );
        if !name.ends_with("zip") {
            let (status, _, said) =
                piped(at, &format!("convert - --output {output}-piped"), &content);
            assert_eq!(status, 0, "{name}: {said}");
            let found = files(&at.join(format!("{output}-piped")));
            assert_eq!(found.len(), expected.len(), "{name}: {:?}", found.keys());
        }
        for format in ["maildir", "eml", "thunderbird"] {
            let target = format!("{output}-{format}");
            let command = format!("convert {name} --output {target} --output-format {format}");
            let (status, _, said) = run(at, &command);
            assert_eq!(status, 0, "{command}: {said}");
            let (status, _, said) = run(at, &format!("compare {name} {target}"));
            assert_eq!(status, 0, "{command}: {said}");
        }
    }
}

#[test]
fn archive_with_psts_and_rewritten_mboxes_becomes_a_directory() {
    let bytes = usual(UNICODE);
    let folder = folder_with(&bytes);
    let at = folder.path();
    let members: [(&str, &[u8]); 2] = [("mail/a.pst", &bytes), ("mail/x.mbox", MBOX)];
    fs::write(at.join("backup.zip"), zip(&members)).unwrap();
    assert_eq!(run(at, "convert backup.zip --output plain").0, 0);
    let plain = files(&at.join("plain"));
    assert!(plain.contains_key("backup.mbox"));
    for options in [
        "--skip-deleted",
        "--output-format mboxo",
        "--output-format mboxcl2",
    ] {
        let output = options.replace([' ', '-'], "");
        let command = format!("convert backup.zip --output {output} {options}");
        let (status, _, said) = run(at, &command);
        assert_eq!(status, 0, "{options}: {said}");
        let found = files(&at.join(&output));
        assert!(found.keys().eq(plain.keys()), "{options}: {found:?}");
        let (status, _, said) = run(at, &format!("compare backup.zip {output}"));
        assert_eq!(status, 0, "{options}: {said}");
    }
}

#[test]
fn psts_in_an_archive_that_cannot_be_written_or_read_are_named() {
    let bytes = usual(UNICODE);
    let folder = folder_with(&bytes);
    let at = folder.path();
    let members: [(&str, &[u8]); 3] = [
        ("a.pst", &bytes),
        ("x.mbox", MBOX),
        ("b.pst", &bytes[..600]),
    ];
    fs::write(at.join("backup.zip"), zip(&members)).unwrap();
    for output in ["one.mbox", "-"] {
        let (status, out, said) = run(at, &format!("convert backup.zip --output {output}"));
        assert_eq!(status, 1, "{said}");
        let why = "backup.zip/a.pst: this Outlook mailbox was not read";
        assert!(said.contains(why), "{said}");
        if output == "-" {
            assert!(out.as_bytes() == MBOX, "{out}");
        }
    }
    assert!(fs::read(at.join("one.mbox")).unwrap() == MBOX);
    let (status, _, said) = run(at, "convert backup.zip --output mail");
    assert_eq!(status, 1, "{said}");
    assert!(
        said.contains("backup.zip/b.pst: the file has no index"),
        "{said}"
    );
    assert!(fs::read(at.join("mail/backup.mbox")).unwrap() == MBOX);
    assert!(at.join("mail/a/Inbox.mbox").exists());
    // A second run overwrites nothing, and does not treat existing files as its own results.
    let (status, _, said) = run(at, "convert backup.zip --output mail");
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("name a new directory"), "{said}");

    // A truncated archive: all messages except the last one before the damage are complete.
    let two = [MBOX, MBOX].concat();
    let tarred = gzip(&tar(&[("x.mbox", b'0', &two), ("a.pst", b'0', &bytes)]));
    fs::write(at.join("cut.tgz"), &tarred[..tarred.len() - 2000]).unwrap();
    let (status, _, said) = run(at, "convert cut.tgz --output cut");
    assert_eq!(status, 1, "{said}");
    let cut = fs::read(at.join("cut/cut.mbox")).expect(&said);
    assert!(cut == MBOX, "{said}");

    let mut command = crate::common::programs::embody();
    command.current_dir(at).env("TMPDIR", "/nonexistent/place");
    let done = command
        .args(["convert", "backup.zip", "--output", "no"])
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(1));
    let said = stderr(&done);
    assert!(said.contains("cannot write /nonexistent/place"), "{said}");
    assert!(!at.join("no").exists());
}

#[test]
fn messages_of_outlook_in_an_archive_become_messages_of_the_mbox() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let msg = fs::read("tests/it/mailbox/outlook/simple.msg").unwrap();
    fs::write(at.join("a.zip"), zip(&[("a.msg", &msg), ("x.mbox", MBOX)])).unwrap();
    let (status, _, said) = run(at, "convert a.zip --output one.mbox");
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("2 messages read"), "{said}");
    assert_eq!(
        run(at, "convert a.zip --output-format eml --output two").0,
        0
    );
    let alone = "convert tests/it/mailbox/outlook/simple.msg --output";
    let converted = at.join("alone.eml");
    let done = crate::common::programs::embody()
        .args(alone.split(' '))
        .arg(&converted)
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let in_archive = fs::read_to_string(at.join("two/00000001.eml")).unwrap();
    // The flags of the message are in a Status field, because an mbox cannot store them in another way.
    let plain = in_archive.replace("Status: RO\n", "");
    assert_eq!(plain, fs::read_to_string(converted).unwrap());
}

#[test]
fn pst_without_items_is_read_whole() {
    let mut pst = Pst::in_memory(UNICODE);
    pst.folder(None, "Inbox", &[]);
    let bytes = pst.bytes();
    let folder = folder_with(&bytes);
    let at = folder.path();
    fs::write(at.join("b.zip"), zip(&[("b.pst", &bytes)])).unwrap();
    for source in ["a.pst", "b.zip"] {
        let (status, _, said) = run(at, &format!("convert {source} --output mail"));
        assert_eq!(status, 0, "{source}: {said}");
        assert!(said.contains("0 messages read"), "{source}: {said}");
        let (status, _, said) = run(at, &format!("inspect {source}"));
        assert_eq!(status, 0, "{source}: {said}");
    }
}

#[test]
fn pst_of_an_unknown_version_is_refused_by_name() {
    let mut bytes = usual(UNICODE);
    bytes[10] = 36;
    let folder = folder_with(&bytes);
    let (status, _, said) = run(folder.path(), "convert a.pst --output x");
    assert_ne!(status, 0);
    assert!(
        said.contains("OST file of Outlook 2013 or later (version 36)"),
        "{said}"
    );
    assert!(!folder.path().join("x").exists());
}

#[test]
fn loss_is_named_by_folder_and_subject_and_the_rest_is_written() {
    let mut bytes = usual(UNICODE);
    // A byte that occurs often in the file: the encoding of the 5 in the large attachment.
    let at = bytes
        .windows(2000)
        .position(|it| it.iter().all(|byte| *byte == it[0] && *byte != 0))
        .unwrap();
    bytes[at + 100] ^= 0x55;
    let folder = folder_with(&bytes);
    let (status, _, said) = run(folder.path(), "convert a.pst --output mail");
    assert_eq!(status, 1, "{said}");
    assert!(
        said.contains("a.pst/Inbox: message 3, \"whole\": a data block has a wrong checksum"),
        "{said}"
    );
    let inbox = fs::read_to_string(folder.path().join("mail/Inbox.mbox")).unwrap();
    assert_eq!(
        inbox
            .lines()
            .filter(|it| it.starts_with("From bob"))
            .count(),
        3
    );
}

#[test]
fn pst_within_a_folder_is_found_with_the_others() {
    let folder = folder_with(&usual(UNICODE));
    let at = folder.path();
    fs::create_dir(at.join("in")).unwrap();
    fs::rename(at.join("a.pst"), at.join("in/a.pst")).unwrap();
    fs::write(
        at.join("in/b.mbox"),
        "From a@b Thu Jan  1 00:00:00 1970\nSubject: x\n\ny\n",
    )
    .unwrap();
    fs::write(at.join("in/c.pst"), &usual(UNICODE)[..600]).unwrap();
    let (status, _, said) = run(at, "convert in --output out");
    assert_eq!(status, 1, "{said}");
    assert!(
        said.contains("in/c.pst: the file has no index of items that can be read"),
        "{said}"
    );
    let names: Vec<String> = files(&at.join("out")).into_keys().collect();
    assert!(names.contains(&"a/Inbox.mbox".to_owned()), "{names:?}");
    assert!(names.contains(&"b.mbox".to_owned()), "{names:?}");
}

/// readpst reads the files of the generator, so their format is confirmed by an independent program.
#[test]
fn readpst_finds_the_same_messages_and_attachments() {
    let Some(readpst) = program("readpst") else {
        skipped("readpst_finds_the_same_messages_and_attachments", "readpst");
        return;
    };
    for form in [
        UNICODE,
        Form {
            version: 14,
            encoding: 0,
        },
    ] {
        let folder = folder_with(&usual(form));
        let at = folder.path();
        fs::create_dir(at.join("other")).unwrap();
        let done = Command::new(&readpst)
            .args(["-r", "-q", "-o", "other", "a.pst"])
            .current_dir(at)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", stderr(&done));
        assert_eq!(run(at, "convert a.pst --output own").0, 0);
        let count = |files: &BTreeMap<String, Vec<u8>>| -> usize {
            let mailboxes = files.iter().filter(|(name, _)| name.ends_with("mbox"));
            let texts = mailboxes.map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned());
            texts
                .map(|text| text.lines().filter(|it| it.starts_with("From ")).count())
                .sum()
        };
        let (other, own) = (files(&at.join("other")), files(&at.join("own")));
        // readpst does not find the orphaned message.
        assert!(count(&own) >= count(&other), "{:?}", other.keys());
        assert!(count(&other) >= 5, "{form:?}: {:?}", other.keys());
        let all = |files: &BTreeMap<String, Vec<u8>>| -> String {
            files
                .values()
                .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
                .collect()
        };
        let attachment = "BQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUF";
        assert!(all(&other).contains(attachment) && all(&own).contains(attachment));
        assert!(all(&own).contains("Zml2ZQ=="));
    }
}

/// Folders of `usual` with the names that `convert` gives them, and their number of messages.
const FOLDERS: [(&str, u64); 5] = [
    ("Inbox", 3),
    ("Inbox/Case", 1),
    ("Inbox/_.....out", 1),
    ("Inbox/case (2)", 1),
    ("Orphan messages", 1),
];

#[test]
fn dovecot_finds_the_folders_and_messages_of_a_pst() {
    if program("doveadm").is_none() {
        skipped("dovecot_finds_the_folders_and_messages_of_a_pst", "doveadm");
        return;
    }
    let folder = folder_with(&usual(UNICODE));
    let at = folder.path();
    let (status, _, said) = run(at, "convert a.pst --output md --output-format maildir");
    assert_eq!(status, 0, "{said}");
    // A separate namespace: Dovecot treats the name INBOX as case-insensitive, and it is not one of these folders.
    let namespaces = |location: &str| {
        format!(
            "mail_location = maildir:{}\nnamespace inbox {{\n  inbox = yes\n  separator = /\n}}\n\
             namespace pst {{\n  prefix = pst/\n  separator = /\n  location = {location}\n}}\n",
            at.join("empty").display()
        )
    };
    let location = format!("maildir:{}:LAYOUT=fs", at.join("md").display());
    let arguments = ["-f", "tab", "mailbox", "status", "messages", "pst/*"];
    let said = doveadm(at, &namespaces(&location), &arguments).unwrap();
    let mut counted: Vec<(&str, u64)> = said
        .iter()
        .filter_map(|line| line.strip_prefix("pst/")?.split_once('\t'))
        .map(|(name, count)| (name, count.parse().unwrap()))
        .collect();
    counted.sort();
    assert_eq!(counted, FOLDERS);
    let arguments = [
        "fetch",
        "flags date.received.unixtime",
        "mailbox",
        "pst/Inbox",
        "all",
    ];
    let said = doveadm(at, &namespaces(&location), &arguments)
        .unwrap()
        .join("\n");
    assert!(said.contains("\\Answered \\Flagged \\Seen"), "{said}");
    assert!(
        said.contains("1600000100") && said.contains("1700000000"),
        "{said}"
    );

    // The text of the messages, their keywords, and what is attached.
    let bodies = |location: &str, mailbox: &str| {
        let arguments = [
            "fetch",
            "hdr.subject hdr.keywords body",
            "mailbox",
            mailbox,
            "all",
        ];
        doveadm(at, &namespaces(location), &arguments)
            .unwrap()
            .join("\n")
    };
    let shown = |said: &str| {
        for part in [
            "hdr.keywords: Red, Blue",
            "one",
            "From here on",
            "Content-Type: message/rfc822",
            "Subject: inner",
            "Zml2ZQ==",
        ] {
            assert!(
                said.lines().any(|line| line.ends_with(part)),
                "{part}: {said}"
            );
        }
    };
    shown(&bodies(&location, "pst/Inbox"));

    let (status, _, said) = run(at, "convert a.pst --output mboxes");
    assert_eq!(status, 0, "{said}");
    for (name, count) in FOLDERS {
        let path = at.join("mboxes").join(format!("{name}.mbox"));
        let location = format!(
            "mbox:{}:INBOX={}",
            at.join("empty").display(),
            path.display()
        );
        let said = dovecot_says(at, &location, "hdr.subject flags body").unwrap();
        let subjects = said.iter().filter(|line| line.starts_with("hdr.subject:"));
        assert_eq!(subjects.count() as u64, count, "{name}: {said:?}");
        if name != "Inbox" {
            continue;
        }
        let flags: Vec<&str> = said
            .iter()
            .filter_map(|line| line.strip_prefix("flags: "))
            .collect();
        assert_eq!(flags.len(), 3, "{said:?}");
        for (flags, expected) in
            flags
                .iter()
                .zip([&["\\Answered", "\\Flagged", "\\Seen"][..], &[], &["\\Seen"]])
        {
            // New mail is recent to Dovecot.
            let mut flags: Vec<&str> = flags.split(' ').filter(|it| *it != "\\Recent").collect();
            flags.retain(|flag| !flag.is_empty());
            assert_eq!(flags, expected, "{said:?}");
        }
        let location = location.clone();
        let arguments = [
            "fetch",
            "hdr.subject hdr.keywords body",
            "mailbox",
            "INBOX",
            "all",
        ];
        let mail = format!("mail_location = {location}\n");
        shown(&doveadm(at, &mail, &arguments).unwrap().join("\n"));
    }
}

#[test]
fn thunderbird_shows_the_folders_and_messages_of_a_pst() {
    let test = "thunderbird_shows_the_folders_and_messages_of_a_pst";
    if !thunderbird::is_installed(test, "EMBODY_REQUIRE_THUNDERBIRD") {
        return;
    }
    let folder = folder_with(&usual(UNICODE));
    let at = folder.path();
    let (status, _, said) = run(at, "convert a.pst --output new --output-format thunderbird");
    assert_eq!(status, 0, "{said}");
    let local = at.join("profile/Mail/Local Folders");
    fs::create_dir_all(local.parent().unwrap()).unwrap();
    fs::rename(at.join("new"), &local).unwrap();
    // Mboxes can be opened as they are, too.
    let (status, _, said) = run(at, "convert a.pst --output mboxes");
    assert_eq!(status, 0, "{said}");
    fs::copy(at.join("mboxes/Inbox.mbox"), local.join("plain")).unwrap();
    let program = thunderbird::installed(at, PREFERENCES, include_str!("thunderbird.js"));
    let (rows, errors) = thunderbird::said(&program, at);
    let folders: BTreeMap<&str, (u64, u64)> = rows
        .iter()
        .filter_map(|row| {
            let count = |name: &str| row[name].as_u64();
            Some((row["folder"].as_str()?, (count("mails")?, count("unread")?)))
        })
        .collect();
    let expected = BTreeMap::from([
        ("a", (0, 0)),
        // Contacts only.
        ("a/Contacts", (0, 0)),
        ("a/Inbox", (3, 1)),
        ("a/Inbox/Case", (1, 0)),
        ("a/Inbox/_.....out", (1, 0)),
        ("a/Inbox/case (2)", (1, 0)),
        ("a/Orphan messages", (1, 0)),
        ("plain", (3, 0)),
        // Its own.
        ("Trash", (0, 0)),
        ("Unsent Messages", (0, 0)),
    ]);
    assert_eq!(folders, expected, "{rows:?}: {errors}");
    // Read 1, replied 2, starred 4. Attachments are 0x10000000.
    for (folder, flags) in [
        ("a/Inbox", [("replied", 7), ("unread", 0), ("whole", 1)]),
        // Of an mbox that is not its own, Thunderbird takes old mail as read, and reads no other flags.
        ("plain", [("replied", 1), ("unread", 1), ("whole", 1)]),
    ] {
        for (subject, flags) in flags {
            let mut found = rows
                .iter()
                .filter(|row| row["in"] == folder && row["subject"] == subject);
            let row = found
                .next()
                .unwrap_or_else(|| panic!("{folder} {subject}: {rows:?}"));
            assert_eq!(row["flags"].as_u64().unwrap() & 0xffff, flags, "{row}");
            let text = row["text"].as_str().unwrap().replace('\r', "");
            match subject {
                "replied" => assert_eq!(text.replace(">From", "From"), "one\nFrom here on"),
                "unread" => assert_eq!(text, "two"),
                _ => assert!(
                    text.contains("Subject: inner") && text.contains("Zml2ZQ=="),
                    "{text}"
                ),
            }
        }
    }
    let (status, out, said) = run(at, "compare a.pst mboxes");
    assert_eq!(status, 0, "{out}{said}");
}

#[test]
fn python_finds_the_folders_and_messages_of_a_pst() {
    let test = "python_finds_the_folders_and_messages_of_a_pst";
    if !has_python(test, "mailbox", "python3") {
        return;
    }
    let folder = folder_with(&usual(UNICODE));
    let at = folder.path();
    for format in ["mbox", "maildir", "thunderbird"] {
        let command = format!("convert a.pst --output {format} --output-format {format}");
        let (status, _, said) = run(at, &command);
        assert_eq!(status, 0, "{said}");
    }
    // Every message is read completely, and each part is decoded.
    let code = "import mailbox, sys\n\
        for path in sys.argv[1:]:\n\
        \x20   whole = mailbox.Maildir(path, create=False) if path.startswith('maildir') else mailbox.mbox(path, create=False)\n\
        \x20   parts = [part.get_payload(decode=True) for message in whole for part in message.walk() if not part.is_multipart()]\n\
        \x20   print(len(whole), sum(map(len, parts)))\n";
    let mut outputs = Vec::new();
    for format in ["mbox", "maildir", "thunderbird"] {
        let paths = FOLDERS.map(|(name, _)| match format {
            "mbox" => format!("mbox/{name}.mbox"),
            "thunderbird" => format!("thunderbird/a.sbd/{}", name.replace("Inbox/", "Inbox.sbd/")),
            _ => format!("maildir/{name}"),
        });
        let output = Command::new("python3")
            .args(["-c", code])
            .args(paths)
            .current_dir(at)
            .output()
            .unwrap();
        assert!(output.status.success(), "{format}: {}", stderr(&output));
        outputs.push(String::from_utf8(output.stdout).unwrap());
    }
    let counts: Vec<u64> = outputs[0]
        .lines()
        .map(|line| line.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(counts, FOLDERS.map(|(_, count)| count));
    // The attachments in the Inbox.
    assert!(outputs[1].starts_with("3 20"), "{outputs:?}");
    assert_eq!(outputs[1].lines().count(), FOLDERS.len());
    for (of_mbox, of_other) in outputs[0]
        .lines()
        .zip(outputs[1].lines().chain(outputs[2].lines()))
    {
        assert_eq!(of_mbox.split(' ').next(), of_other.split(' ').next());
    }
}

#[test]
fn mail_above_four_gigabytes_is_read() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let mut pst = Pst::new(fs::File::create(at.join("a.pst")).unwrap(), UNICODE);
    pst.folder(None, "Below", &[Message::mail("below", "x\n")]);
    // A hole in the file takes no space on the disk.
    pst.skip_to(5 << 30);
    let whole = Message::mail("above", "x\n").with_file("a.bin", &[5; 20_000]);
    pst.folder(None, "Above", &[whole]);
    pst.finish();
    assert!(fs::metadata(at.join("a.pst")).unwrap().len() > 5 << 30);
    let (status, _, said) = run(at, "convert a.pst --output mail");
    assert_eq!(status, 0, "{said}");
    let mail = files(&at.join("mail"));
    let above = String::from_utf8_lossy(&mail["Above.mbox"]).into_owned();
    assert!(
        above.contains("Subject: above\n") && above.contains("BQUFBQUF"),
        "{above}"
    );
    assert!(mail.contains_key("Below.mbox"));
}

/// Not a test: writes small mailboxes of each version, which `tests/peers/outlook-damage` damages.
#[test]
#[ignore = "writes files to the directory in EMBODY_PST"]
fn write_small_psts() {
    let folder = std::env::var_os("EMBODY_PST").expect("the path of a directory");
    for (version, encoding) in [(14, 0), (14, 1), (15, 2), (23, 0), (23, 1), (23, 2)] {
        let name = format!("version-{version}-encoding-{encoding}.pst");
        let bytes = usual(Form { version, encoding });
        fs::write(Path::new(&folder).join(name), bytes).unwrap();
    }
}

/// Not a test: writes a mailbox of 40 folders with 1000 messages of 25 kB each, to measure the speed of programs. The
/// variable EMBODY_PST_FOLDERS sets the number of folders: 170 are more than 4 GB.
#[test]
#[ignore = "writes a file of 1 GB to the path in EMBODY_PST"]
fn write_a_large_pst() {
    let path = std::env::var_os("EMBODY_PST").expect("the path of the new file");
    let folders = std::env::var("EMBODY_PST_FOLDERS").map_or(40, |it| it.parse().unwrap());
    let file = std::io::BufWriter::with_capacity(1 << 20, fs::File::create(path).unwrap());
    let mut pst = Pst::new(file, UNICODE);
    let mut random = 1_u64;
    for folder in 0..folders {
        let messages: Vec<Message> = (0..1000)
            .map(|number| {
                let content: Vec<u8> = (0..24_000)
                    .map(|_| {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        random as u8
                    })
                    .collect();
                Message::mail(&format!("{folder} {number}"), "text\n").with_file("a.bin", &content)
            })
            .collect();
        pst.folder(None, &format!("Folder {folder}"), &messages);
    }
    pst.finish();
}
