//! `From ` and `>From ` lines at the beginning of a message and among its header fields, and other malformed lines: reading
//! continues, and new fields are written where every program reads them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Output;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::common::programs::{done, embody, embody_in, fed, has_python, stderr};

const QUOTED: &str = ">From - Mon Jan 26 17:20:56 2009\n";

fn with_attachment(front: &str) -> String {
    format!(
        "{front}Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nHello\n--b\n\
         Content-Type: application/pdf; name=a.pdf\nContent-Transfer-Encoding: base64\n\
         Content-Disposition: attachment; filename=a.pdf\n\n{}--b--\n",
        "AAAA\n".repeat(3000)
    )
}

fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        files.insert(name, fs::read_to_string(&path).unwrap());
    }
    files
}

fn maildir(at: &Path, messages: &[(&str, &str)]) {
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(at.join(part)).unwrap();
    }
    for (name, text) in messages {
        fs::write(at.join("cur").join(name), text).unwrap();
    }
}

fn text(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

#[test]
fn attachment_below_a_header_with_a_stray_line_is_detached_and_restored_in_every_format() {
    for stray in [
        QUOTED,
        "From a@b Mon Jan 26 17:20:56 2009\n",
        "no field\n",
        "not a field: x\n",
    ] {
        for front in [
            format!(
                "X-Mozilla-Status: 0011\nX-Mozilla-Keys:   \n{stray}X-Mozilla-Status: 0001\nSubject: s\nMIME-Version: 1.0\n"
            ),
            format!(
                "Return-Path: <nia@example.org>\nSubject: s\nMIME-Version: 1.0\n{stray}X-A: b\n"
            ),
        ] {
            for newline in ["\n", "\r\n"] {
                let mail = with_attachment(&front).replace('\n', newline);
                let folder = tempfile::tempdir().unwrap();
                let at = folder.path();
                fs::write(at.join("one.eml"), &mail).unwrap();
                maildir(&at.join("md"), &[("1.1.h:2,S", &mail)]);
                let is_mbox = !stray.starts_with("From ");
                if is_mbox {
                    let line = format!("From nia@example.org Thu Feb  5 22:34:43 2009{newline}");
                    fs::write(at.join("box"), format!("{line}{mail}{newline}")).unwrap();
                }
                let sources: &[&str] = if is_mbox {
                    &["one.eml", "md", "box"]
                } else {
                    &["one.eml", "md"]
                };
                for source in sources {
                    let read = || match source {
                        &"md" => files(&at.join("md/cur")),
                        _ => BTreeMap::from([(
                            String::new(),
                            fs::read_to_string(at.join(source)).unwrap(),
                        )]),
                    };
                    let before = read();
                    let output = embody_in(
                        at,
                        &[
                            "detach",
                            "--larger-than",
                            "1k",
                            "--store",
                            "store",
                            source,
                            "--in-place",
                        ],
                    );
                    assert!(
                        done(&output, 0).contains("1 attachment moved"),
                        "{source} {front}"
                    );
                    assert_ne!(read(), before);
                    done(
                        &embody_in(at, &["restore", "--store", "store", source, "--in-place"]),
                        0,
                    );
                    assert_eq!(
                        read().values().collect::<Vec<_>>(),
                        before.values().collect::<Vec<_>>()
                    );
                }
            }
        }
    }
}

#[test]
fn reference_below_a_header_with_a_stray_line_is_filled_in() {
    let body = "\n--b\nContent-Type: message/external-body; access-type=URL; URL=\"data:,hi\"\n\n\
                Content-Type: text/plain\n\n\n--b--\n";
    for stray in [QUOTED, "no field\n"] {
        let mail = format!(
            "Subject: s\n{stray}MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n{body}"
        );
        let output = fed(embody().args(["filter", "--mark"]), mail.as_bytes());
        assert!(output.status.success(), "{}", stderr(&output));
        // All programs read the field at this position.
        let front =
            format!("Subject: s\nX-Embody: expanded=1 left=0 links=0\n{stray}MIME-Version: 1.0\n");
        assert!(text(&output).starts_with(&front), "{}", text(&output));
        assert!(text(&output).contains("\nhi\n--b--\n"), "{}", text(&output));
    }
}

#[test]
fn part_whose_own_header_has_a_stray_line_is_expanded_but_not_detached() {
    let part = |fields: &str, body: &str| {
        format!(
            "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n{fields}\n{body}\n--b--\n"
        )
    };
    let reference = "Content-Type: message/external-body; access-type=URL; URL=\"data:,hi\"\n";
    let phantom = "Content-Type: text/plain\n\n";
    let mail = part(&format!("X-A: 1\n>From x\n{reference}"), phantom);
    let output = fed(embody().arg("filter"), mail.as_bytes());
    let wanted = part(
        "X-A: 1\n>From x\nContent-Type: text/plain\nContent-Transfer-Encoding: 7bit\n",
        "hi",
    );
    assert_eq!(text(&output), wanted);

    let file = "X-A: 1\nnot a field\nContent-Type: application/pdf\nContent-Disposition: attachment; filename=a.pdf\nContent-Transfer-Encoding: base64\n";
    let mail = part(file, &"AAAA\n".repeat(3000));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("one.eml"), &mail).unwrap();
    let output = embody_in(
        folder.path(),
        &[
            "detach",
            "--verbose",
            "--larger-than",
            "1k",
            "--store",
            "store",
            "one.eml",
            "--in-place",
        ],
    );
    let said = done(&output, 0);
    assert!(
        said.contains("the header of the part has a line that is not a header field"),
        "{said}"
    );
    assert_eq!(
        fs::read_to_string(folder.path().join("one.eml")).unwrap(),
        mail
    );
}

#[test]
fn quoted_second_separator_hides_no_flags_and_is_dropped_in_a_maildir() {
    let message = |line: &str, status: &str| {
        format!(
            "From news@example.org Fri Apr 11 15:36:11 2025\n{line}X-Mozilla-Status: {status}\n\
             X-Mozilla-Status2: 00000000\nReceived: from mx.example.org\nFrom: news@example.org\nSubject: one\n\nHi\n\n"
        )
    };
    for line in [
        ">From - Sat Apr 12 2025 15:59:28\n",
        ">From - \n>From - Sat Apr 12 2025 15:59:28\n",
        "X-Mozilla-Keys: \n>From - Sat Apr 12 2025 15:59:28\n",
    ] {
        for newline in ["\n", "\r\n"] {
            let folder = tempfile::tempdir().unwrap();
            let at = folder.path();
            let mailbox = message(line, "0007") + &message(line, "0001");
            fs::write(at.join("box"), mailbox.replace('\n', newline)).unwrap();
            done(
                &embody_in(
                    at,
                    &[
                        "convert",
                        "box",
                        "--output-format",
                        "maildir",
                        "--output",
                        "md",
                    ],
                ),
                0,
            );
            let found = files(&at.join("md/cur"));
            let letters: Vec<&str> = found
                .keys()
                .map(|name| name.split("2,").nth(1).unwrap())
                .collect();
            assert_eq!(letters, ["FRS", "S"], "{line}");
            for text in found.values() {
                assert!(text.starts_with("X-Mozilla-"), "{text}");
                assert!(text.ends_with(&format!("{newline}{newline}Hi{newline}")));
            }
        }
    }
}

#[test]
fn message_that_begins_with_its_separator_gets_no_second_one_in_an_mbox() {
    let fields = "X-Mozilla-Status: 0001\nFrom: lea@example.org\nSubject: m1\nDate: Mon, 1 Jan 2024 10:00:00 +0000\n";
    let whole = "From lea@example.org Mon Jan  1 10:00:00 2024";
    for (line, separator) in [
        (whole.to_owned(), whole),
        (format!(">{whole}"), whole),
        // Dovecot does not read a date after the year, so the line is rewritten.
        ("From - Mon Jan 01 2024 10:00:00".to_owned(), whole),
        ("From - Mon Jan  1 10:00:00 AM 2024".to_owned(), whole),
        (
            ">From - \n>From lea@example.org Mon Jan  1 10:00:00 2024".to_owned(),
            "",
        ),
    ] {
        for newline in ["\n", "\r\n"] {
            let mail = format!("{line}\n{fields}\naGVsbG8=\n").replace('\n', newline);
            let folder = tempfile::tempdir().unwrap();
            let at = folder.path();
            maildir(&at.join("md"), &[("1704103200.M1P1.h:2,FS", &mail)]);
            fs::create_dir(at.join("mh")).unwrap();
            fs::write(at.join("mh/1"), &mail).unwrap();
            fs::write(at.join("mh/.mh_sequences"), "").unwrap();
            for source in ["md", "mh"] {
                let output = format!("{source}.mbox");
                done(
                    &embody_in(
                        at,
                        &[
                            "convert",
                            source,
                            "--output-format",
                            "mbox",
                            "--output",
                            &output,
                        ],
                    ),
                    0,
                );
                let mbox = fs::read_to_string(at.join(output)).unwrap();
                let lines = mbox
                    .lines()
                    .filter(|line| line.contains("From ") && !line.contains("from"))
                    .count();
                assert_eq!(lines, 1, "{mbox}");
                if !separator.is_empty() {
                    assert!(mbox.starts_with(separator), "{mbox}");
                }
                let (header, body) = mbox.split_once(&format!("{newline}{newline}")).unwrap();
                assert_eq!(body, format!("aGVsbG8={newline}{newline}"));
                if source == "md" {
                    assert!(header.contains("Status: R"), "{mbox}");
                    assert!(header.contains("X-Mozilla-Status: 0005"), "{mbox}");
                }
            }
        }
    }
}

#[test]
fn flags_of_a_maildir_are_written_where_python_sees_them() {
    let test = "flags_of_a_maildir_are_written_where_python_sees_them";
    if !has_python(test, "mailbox", "python3") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (number, mail) in [
        "From a@x Thu Jan  1 00:00:00 1970\nFrom: a@b\nSubject: x\nContent-Transfer-Encoding: base64\n\naGVsbG8=\n",
        "From: a@b\nSubject: x\nno field\nTo: c\n\naGVsbG8=\n",
        "From: a@b\nSubject: x\nFrom a@x Thu Jan  1 00:00:00 1970\nTo: c\n\naGVsbG8=\n",
        "From: a@b\nSubject: x\n>From a@x Thu Jan  1 00:00:00 1970\nStatus: O\nTo: c\n\naGVsbG8=\n",
        "From: a@b\nSubject: x\naGVsbG8=\n",
    ]
    .iter()
    .enumerate()
    {
        for newline in ["\n", "\r\n"] {
            let name = format!("{number}{}", newline.len());
            maildir(&at.join(&name), &[("1577872800.1.h:2,FS", &mail.replace('\n', newline))]);
            let output = format!("{name}.mbox");
            done(&embody_in(at, &["convert", &name, "--output-format", "mbox", "--output", &output]), 0);
        }
    }
    const CHECK: &str = "import glob, mailbox\n\
        boxes = sorted(glob.glob('*.mbox'))\n\
        for path in boxes:\n\
        \x20   (message,) = mailbox.mbox(path)\n\
        \x20   assert message.get_all('Status') == ['RO'], (path, message.as_string())\n\
        \x20   assert message.get_all('X-Status') == ['F'], (path, message.as_string())\n\
        \x20   assert message['Subject'] == 'x' and message.as_string().rstrip().endswith('aGVsbG8='), path\n\
        print(len(boxes))";
    let output = std::process::Command::new("python3")
        .args(["-c", CHECK])
        .current_dir(at)
        .output()
        .unwrap();
    assert_eq!(text(&output).trim(), "10", "{}", stderr(&output));
}

/// Messages in `.eml` files of programs that copy each message out of an mbox with its separator.
#[test]
fn folder_of_eml_files_that_begin_with_separators_is_messages_in_every_command() {
    let fields = "From: lea@example.org\nSubject: m\nMIME-Version: 1.0\n";
    let reference = "Content-Type: message/external-body; access-type=URL; URL=\"data:,hi\"\n\n\
                     Content-Type: text/plain\n\n\n";
    let large = with_attachment(fields);
    let referring = format!("{fields}{reference}");
    let lines = [
        "From lea@example.org Mon Jan  1 10:00:00 2024\n",
        "From - Mon Jan 01 2024 10:00:00\nX-Mozilla-Status: 0001\n",
        "From \n",
        "",
    ];
    for newline in ["\n", "\r\n"] {
        for packed in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let at = folder.path();
            fs::create_dir_all(at.join("eml/2024/1")).unwrap();
            let mut expected = BTreeMap::new();
            for (number, line) in lines.iter().enumerate() {
                let place = if number == 0 { "2024/1/0" } else { "" };
                let message = if number == 1 { &referring } else { &large };
                let mail = format!("{line}{message}").replace('\n', newline);
                let name = match place {
                    "" => format!("eml/{number}.eml"),
                    place => format!("eml/{place}.eml"),
                };
                expected.insert(name.clone(), mail.clone());
                if !packed {
                    fs::write(at.join(name), mail).unwrap()
                } else {
                    fs::write(at.join(format!("{name}.gz")), gzip(mail.as_bytes())).unwrap()
                }
            }
            let run = |args: &[&str]| done(&embody_in(at, args), 0);
            let survey = embody_in(at, &["inspect", "eml"]);
            assert!(text(&survey).contains("4 messages"), "{}", text(&survey));
            // The messages of a directory form a mailbox, with one separator each.
            run(&[
                "convert",
                "eml",
                "--output-format",
                "mbox",
                "--output",
                "boxes",
            ]);
            for (name, messages) in [("INBOX", 3), ("2024/1", 1)] {
                let mbox = fs::read_to_string(at.join(format!("boxes/{name}.mbox"))).unwrap();
                assert_eq!(mbox.matches("From ").count(), messages, "{mbox}");
                assert_eq!(
                    mbox.matches("From lea@example.org ").count(),
                    messages,
                    "{mbox}"
                );
            }
            if packed {
                continue;
            }
            run(&["convert", "eml", "--links", "keep", "--output", "same"]);
            let read = |name: &str| fs::read_to_string(at.join(name)).unwrap();
            let new = read("same/1.eml");
            assert!(new.starts_with(&lines[1].replace('\n', newline)), "{new}");
            assert!(
                new.ends_with("hi") || new.trim_end().ends_with("hi"),
                "{new}"
            );
            assert_eq!(read("same/2024/1/0.eml"), expected["eml/2024/1/0.eml"]);
            let detach = [
                "detach",
                "--larger-than",
                "1k",
                "--store",
                "store",
                "eml",
                "--in-place",
            ];
            assert!(run(&detach).contains("3 attachments moved"));
            assert!(read("eml/2.eml").starts_with(&format!("From {newline}From: lea@")));
            run(&["restore", "--store", "store", "eml", "--in-place"]);
            for (name, mail) in &expected {
                assert_eq!(&read(name), mail);
            }
        }
    }
}

#[test]
fn eml_file_with_a_second_message_is_a_mailbox_and_one_without_is_a_message() {
    let mail = "From lea@example.org Mon Jan  1 10:00:00 2024\nFrom: a@b\nSubject: s\n\n>From here\nFrom there on\n";
    let two = format!("{mail}\n{mail}");
    let late = format!("{mail}{}\n{mail}", "text\n".repeat(300_000));
    for (name, text, messages) in [
        ("one.eml", mail, 1),
        ("two.eml", &two, 2),
        ("late.eml", &late, 2),
        ("ONE.EML", mail, 1),
        ("one.mbox", mail, 1),
        ("one", mail, 1),
    ] {
        for packed in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let at = folder.path();
            let source = if !packed {
                name.to_owned()
            } else {
                format!("{name}.gz")
            };
            if !packed {
                fs::write(at.join(&source), text).unwrap()
            } else {
                fs::write(at.join(&source), gzip(text.as_bytes())).unwrap()
            }
            let args = [
                "convert",
                &source,
                "--output-format",
                "maildir",
                "--output",
                "md",
            ];
            done(&embody_in(at, &args), 0);
            let found = files(&at.join("md/new"));
            assert_eq!(found.len(), messages, "{source}");
            let first = found.values().next().unwrap();
            assert!(first.starts_with("From: a@b"), "{source}: {first}");
            // The separator contains the time at which the message arrived.
            assert!(
                found.keys().next().unwrap().starts_with("1704103200."),
                "{source}"
            );
            // In a single message, nothing is quoted.
            let is_message = messages == 1 && name.to_lowercase().ends_with(".eml");
            assert_eq!(first.contains("\n>From here"), is_message, "{source}");
        }
    }
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}
