//! Maildirs that lost their empty directories (git, zip, rsync -m, cloud drives), and those of Thunderbird, which lack `new`.
//! Each subset of directories is tested with each command, and Python reads the result. docs/mailboxes.md, "Maildirs without
//! all of their folders".

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::common::programs::{done, embody_in, has_python, stderr};

fn message(subject: &str) -> String {
    let data = ("QUJD".repeat(19) + "\n").repeat(100);
    format!(
        "From: a@example.org\nSubject: {subject}\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n\
         --b\nContent-Type: message/external-body; access-type=URL; URL=\"data:text/plain,filled%20in\"\n\n\
         Content-Type: text/plain\n\n\
         --b\nContent-Type: application/pdf; name=x.pdf\nContent-Disposition: attachment; filename=x.pdf\n\
         Content-Transfer-Encoding: base64\n\n{data}--b--\n"
    )
}

const PARTS: [&str; 3] = ["cur", "new", "tmp"];

fn subsets() -> Vec<Vec<&'static str>> {
    let has = |number: usize, at: usize| number & (1 << at) != 0;
    let subset = |number| {
        (0..3)
            .filter(|&at| has(number, at))
            .map(|at| PARTS[at])
            .collect()
    };
    (0..8).map(subset).collect()
}

/// Creates two messages in `cur`, one of them in the trash, one in `new`, and one in `tmp` whose delivery was not completed.
fn fill(folder: &Path, parts: &[&str]) {
    for part in parts {
        fs::create_dir_all(folder.join(part)).unwrap();
    }
    for (part, base, flags) in [
        ("cur", "1700000001.M1P1.host", ":2,ST"),
        ("cur", "1700000002.M2P1.host", ":2,FRS"),
        ("new", "1700000003.M3P1.host", ""),
        ("tmp", "1700000004.M4P1.host", ""),
    ] {
        let content = message(&format!("{part}{flags}"));
        let name = format!("{base},S={}{flags}", content.len());
        if parts.contains(&part) {
            fs::write(folder.join(part).join(name), content).unwrap();
        }
    }
}

const LIST: &str = "\
import mailbox, os, shutil, sys
kind, path = sys.argv[1:]
if kind == 'mbox':
    for message in mailbox.mbox(path, create=False):
        print(message['Subject'], ''.join(sorted(message.get_flags())))
    sys.exit()
full = path + '.full'
shutil.copytree(path, full)
for part in ('cur', 'new', 'tmp'):
    os.makedirs(os.path.join(full, part), exist_ok=True)
box = mailbox.Maildir(full, create=False)
for key in sorted(box.keys()):
    message = box.get_message(key)
    size = ',S=%d' % len(box.get_bytes(key))
    right = (size + ':' in box._lookup(key) + ':') or kind == 'plain'
    print(message.get_subdir(), message.get_flags(), message['Subject'], right)
shutil.rmtree(full)
";

/// Returns the messages that Python finds in a mailbox: directory, flags, subjects, and whether sizes in names are correct.
fn listed(kind: &str, path: &Path) -> Vec<String> {
    let output = Command::new("python3")
        .args(["-c", LIST, kind])
        .arg(path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let mut lines: Vec<String> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    lines
}

const DETACH: &[&str] = &["detach", "--store", "store", "--larger-than", "100"];

#[test]
fn each_subset_of_folders_is_read_alike_by_each_command() {
    if !has_python("each_subset_of_folders", "mailbox", "python3") {
        return;
    }
    for within in ["", "tree/.Work"] {
        for parts in subsets() {
            let is_maildir = parts.contains(&"cur") || parts.contains(&"new");
            for format in ["auto", "maildir"] {
                let folder = TempDir::new().unwrap();
                let place = if within.is_empty() { "box" } else { within };
                let top = place.split('/').next().unwrap();
                let path = folder.path().join(place);
                let fresh = || {
                    fs::remove_dir_all(folder.path().join(top)).ok();
                    fs::create_dir_all(&path).unwrap();
                    fill(&path, &parts);
                };
                let run = |arguments: &[&str], status: i32| {
                    let all = [arguments, &["--format", format]].concat();
                    let output = embody_in(folder.path(), &all);
                    let code = output.status.code();
                    assert_eq!(
                        code,
                        Some(status),
                        "{place} {parts:?} {all:?}\n{}",
                        stderr(&output)
                    );
                };
                fresh();
                if !is_maildir {
                    // A message in `tmp` is treated as a file if the directory does not look like a Maildir.
                    let is_found = format == "auto" && parts == ["tmp"];
                    run(&["inspect", top], i32::from(!is_found));
                    run(&["convert", top, "--output", "out"], i32::from(!is_found));
                    continue;
                }
                let before = listed("maildir", &path);
                let count = parts.iter().map(|part| match *part {
                    "cur" => 2,
                    "new" => 1,
                    _ => 0,
                });
                assert_eq!(before.len(), count.sum::<usize>());
                run(&["inspect", top], 0);
                assert_eq!(listed("maildir", &path), before);

                let out = folder.path().join("out");
                let result = |name: &str| match within {
                    "" => out.clone(),
                    _ => out.join(name),
                };
                run(&["convert", top, "--output", "out"], 0);
                assert_eq!(listed("maildir", &result(".Work")), before, "{parts:?}");
                let made: BTreeSet<_> = fs::read_dir(result(".Work"))
                    .unwrap()
                    .map(|it| it.unwrap().file_name())
                    .collect();
                assert!(
                    PARTS
                        .iter()
                        .all(|part| made.contains(std::ffi::OsStr::new(part)))
                );
                fs::remove_dir_all(&out).unwrap();

                run(
                    &[
                        "convert",
                        top,
                        "--output",
                        "out",
                        "--output-format",
                        "maildir",
                    ],
                    0,
                );
                assert_eq!(listed("maildir", &result(".Work")), before, "{parts:?}");
                fs::remove_dir_all(&out).unwrap();

                run(
                    &["convert", top, "--output", "out", "--output-format", "eml"],
                    0,
                );
                let eml = fs::read_dir(result("Work")).unwrap().count();
                assert_eq!(eml, before.len());
                fs::remove_dir_all(&out).unwrap();

                run(
                    &["convert", top, "--output", "out", "--output-format", "mbox"],
                    0,
                );
                let mbox = listed("mbox", &result("Work.mbox"));
                // Python writes D, F, A, R and O in an mbox for T, F, R, S and `cur` in a Maildir.
                let expected: Vec<&str> = [
                    ("cur", "cur:2,FRS AFOR"),
                    ("cur", "cur:2,ST DOR"),
                    ("new", "new "),
                ]
                .into_iter()
                .filter(|(part, _)| parts.contains(part))
                .map(|(_, line)| line)
                .collect();
                assert_eq!(mbox, expected, "{parts:?}");
                if out.is_dir() {
                    fs::remove_dir_all(&out).unwrap()
                } else {
                    fs::remove_file(&out).unwrap()
                }

                for command in [&["convert"][..], &["embed"], DETACH] {
                    fresh();
                    run(&[command, &["--in-place", top]].concat(), 0);
                    assert_eq!(listed("maildir", &path), before, "{parts:?} {command:?}");
                    let tmp = fs::read_dir(path.join("tmp")).map_or(0, Iterator::count);
                    assert_eq!(tmp, usize::from(parts.contains(&"tmp")));
                    // The directory is created when a message changes.
                    let is_changed = command[0] != "embed";
                    assert!(
                        !is_changed || path.join("tmp").is_dir(),
                        "{parts:?} {command:?}"
                    );
                }
                run(&["restore", "--store", "store", "--in-place", top], 0);
                assert_eq!(listed("maildir", &path), before, "{parts:?}");
                let restored: usize = ["cur", "new"]
                    .iter()
                    .filter_map(|part| fs::read_dir(path.join(part)).ok())
                    .flatten()
                    .filter(|file| {
                        let text = fs::read_to_string(file.as_ref().unwrap().path()).unwrap();
                        text.contains("QUJDQUJD")
                    })
                    .count();
                assert_eq!(restored, before.len());
            }
        }
    }
}

/// Thunderbird uses `cur` and `tmp`, names files by the time, and stores flags in the header.
#[test]
fn maildir_of_thunderbird_is_one_mailbox_with_the_flags_of_its_headers() {
    if !has_python("maildir_of_thunderbird", "mailbox", "python3") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let place = folder.path().join("Local Folders");
    for (path, status) in [
        ("Inbox/cur/1704103201000.eml", "0001"),
        ("Inbox/cur/1704103202000.eml", "0009"),
        ("Inbox.sbd/Work/cur/1704103203000.eml", "0000"),
    ] {
        let path = place.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = format!(
            "X-Mozilla-Status: {status}\nX-Mozilla-Status2: 00000000\nFrom: lea@example.org\nSubject: {status}\n\nBody\n"
        );
        fs::write(path, text).unwrap();
    }
    fs::create_dir(place.join("Inbox/tmp")).unwrap();
    fs::create_dir_all(place.join("Empty/cur")).unwrap();
    fs::create_dir_all(place.join("Empty/tmp")).unwrap();
    for index in ["Inbox.msf", "Inbox.sbd/Work.msf"] {
        fs::write(place.join(index), "// <!-- <mdb:mork:z v=\"1.4\"/> -->\n").unwrap();
    }
    let arguments = [
        "convert",
        "Local Folders",
        "--output-format",
        "mbox",
        "--output",
        "out",
    ];
    done(&embody_in(folder.path(), &arguments), 0);
    let out = folder.path().join("out");
    let texts = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    let inbox = texts("Inbox.mbox");
    assert_eq!(inbox.matches("\nX-Mozilla-Status: ").count(), 2, "{inbox}");
    assert!(inbox.contains("\nX-Mozilla-Status: 0009\n"), "{inbox}");
    assert!(!inbox.contains("\nStatus: "), "{inbox}");
    assert!(texts("Inbox.sbd/Work.mbox").contains("\nX-Mozilla-Status: 0000\n"));
    assert_eq!(texts("Empty.mbox"), "");
    let maildir = folder.path().join("maildir");
    let arguments = [
        "convert",
        "Local Folders/Inbox",
        "--output-format",
        "maildir",
        "--output",
        "maildir",
    ];
    done(&embody_in(folder.path(), &arguments), 0);
    assert_eq!(listed("plain", &maildir).len(), 2);
}

/// A directory with the name `cur` or `new` but without messages is not a Maildir.
#[test]
fn folder_with_other_things_named_cur_or_new_is_no_maildir_and_stays() {
    for (name, files) in [
        ("source", &["cur/main.c", "cur/Makefile"][..]),
        ("deep", &["new/src/1700000000.M1P1.host"]),
        ("mixed", &["cur/1700000000.M1P1.host:2,S", "cur/notes.txt"]),
        ("mbox", &["cur/archive.mbox"]),
        ("partial", &["tmp/1700000000.M1P1.host"]),
        ("saved", &["new/1700000000.eml"]),
        ("mh", &["new/1700000000"]),
    ] {
        let folder = TempDir::new().unwrap();
        let project = folder.path().join(name);
        for file in files {
            let path = project.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = match file {
                file if file.ends_with(".mbox") => {
                    format!("From a@b Mon Mar 12 10:00:00 2007\n{}", message("x"))
                }
                file if file.contains("1700000000") => message("x"),
                _ => "int main(void) { return 0; }\n".to_owned(),
            };
            fs::write(path, text).unwrap();
        }
        fs::write(
            project.join("beside.mbox"),
            "From a@b Mon Mar 12 10:00:00 2007\nSubject: beside\n\nx\n",
        )
        .unwrap();
        let output = embody_in(folder.path(), &["convert", name, "--output", "out"]);
        done(&output, 0);
        let out = folder.path().join("out");
        assert!(out.join("beside.mbox").is_file(), "{name}");
        for part in PARTS {
            let is_made = out.join(part).is_dir();
            let had_mail = files.iter().any(|file| {
                file.starts_with(part) && (file.contains("1700000000") || file.contains("mbox"))
            });
            assert_eq!(is_made, had_mail, "{name}: {part}");
        }
        let others = fs::read_dir(&project).unwrap().count();
        done(
            &embody_in(folder.path(), &["convert", name, "--in-place"]),
            0,
        );
        assert_eq!(fs::read_dir(&project).unwrap().count(), others, "{name}");
    }
}

/// Mail next to the only directory of a Maildir is read, too.
#[test]
fn mailbox_beside_the_only_folder_of_a_maildir_is_read() {
    let folder = TempDir::new().unwrap();
    fill(&folder.path().join("box"), &["cur"]);
    let text = "From a@b Mon Mar 12 10:00:00 2007\nSubject: beside\n\nx\n";
    fs::write(folder.path().join("box/beside.mbox"), text).unwrap();
    fs::write(
        folder.path().join("box/cur/desktop.ini"),
        "[.ShellClassInfo]\n",
    )
    .unwrap();
    let output = embody_in(folder.path(), &["inspect", "box"]);
    let seen = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(seen.contains("3 messages"), "{seen}");
    done(
        &embody_in(folder.path(), &["convert", "box", "--output", "out"]),
        0,
    );
    assert!(folder.path().join("out/beside.mbox").is_file());
}

#[test]
fn empty_message_file_among_others_is_named_and_skipped() {
    for empty in ["3.eml", "3.mht", "0.EML"] {
        let folder = TempDir::new().unwrap();
        let place = folder.path().join("in");
        fs::create_dir(&place).unwrap();
        for number in 1..3 {
            let text = format!("From: a@example.org\nSubject: {number}\n\nx\n");
            fs::write(place.join(format!("{number}.eml")), text).unwrap();
        }
        fs::write(place.join(empty), "").unwrap();
        for (form, is_whole) in [
            ("mbox", true),
            ("maildir", true),
            ("auto", false),
            ("eml", false),
        ] {
            let out = format!("o-{form}{}", if form == "mbox" { ".mbox" } else { "" });
            let arguments = ["convert", "--output-format", form, "--output", &out, "in"];
            let output = embody_in(folder.path(), &arguments);
            assert_eq!(
                output.status.code(),
                Some(0),
                "{empty} {form}\n{}",
                stderr(&output)
            );
            assert!(
                stderr(&output).contains(empty),
                "{empty} {form}\n{}",
                stderr(&output)
            );
            assert!(
                stderr(&output).contains("2 messages"),
                "{}",
                stderr(&output)
            );
            let out = folder.path().join(out);
            match is_whole {
                true if form == "mbox" => {
                    let text = fs::read_to_string(out).unwrap();
                    assert_eq!(text.matches("\nSubject: ").count(), 2);
                }
                true => assert_eq!(fs::read_dir(out.join("new")).unwrap().count(), 2),
                false => assert_eq!(fs::read_dir(out).unwrap().count(), 2),
            }
        }
        for command in [&["inspect", "in"][..], &["convert", "--in-place", "in"]] {
            let output = embody_in(folder.path(), command);
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            assert!(
                stderr(&output).contains(empty),
                "{command:?}\n{}",
                stderr(&output)
            );
        }
        assert!(place.join(empty).is_file());
    }
}

#[test]
fn empty_message_file_alone_is_copied_or_named() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("1.eml"), "").unwrap();
    done(
        &embody_in(folder.path(), &["convert", "1.eml", "--output", "2.eml"]),
        0,
    );
    assert_eq!(fs::read(folder.path().join("2.eml")).unwrap(), b"");
    let arguments = [
        "convert",
        "1.eml",
        "--output-format",
        "mbox",
        "--output",
        "o.mbox",
    ];
    let output = embody_in(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("1.eml: "), "{}", stderr(&output));
    assert_eq!(fs::read(folder.path().join("o.mbox")).unwrap(), b"");
}

/// With a format of files, the messages of a Maildir are files like others: each is read, or named.
#[test]
fn messages_of_a_maildir_are_read_or_named_if_the_option_format_selects_files() {
    let folder = TempDir::new().unwrap();
    let source = folder.path().join("source");
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(source.join("box").join(part)).unwrap();
    }
    let mail = "From: a@example.org\nSubject: 1\n\ntext\n";
    fs::write(source.join("box/cur/1.a:2,S"), mail).unwrap();
    fs::write(source.join("box/new/2.a"), mail).unwrap();
    let mbox = format!("From a@b Sat Jan  3 01:05:34 2015\n{mail}\n");
    fs::write(source.join("lists"), &mbox).unwrap();
    fs::write(source.join("3.eml"), mail).unwrap();
    for (format, status) in [("mbox", 1), ("eml", 0), ("mmdf", 1)] {
        for verb in ["convert", "embed", "inspect"] {
            let output = folder.path().join(format!("{verb}-{format}"));
            let mut arguments = vec![verb, "source", "--format", format];
            let target = output.display().to_string();
            if verb == "inspect" {
                arguments.push("--json");
            } else {
                arguments.extend(["--output", target.as_str()]);
            }
            let done = embody_in(folder.path(), &arguments);
            let said = stderr(&done);
            assert_eq!(done.status.code(), Some(status), "{verb} {format}: {said}");
            if status == 0 {
                assert!(
                    verb == "inspect" || said.contains("4 messages read"),
                    "{verb}: {said}"
                );
            } else {
                for name in ["1.a:2,S", "2.a"] {
                    assert!(said.contains(name), "{verb} {format}: {name} in {said}");
                }
            }
        }
    }
}
