//! `winmail.dat` files (TNEF) as sources (docs/outlook.md). `mail/winmail.rs` tests those within a mail.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::common::archives::{tar, zip};
use crate::common::filter::filter;
use crate::common::programs::{embody_in, stderr};
use crate::common::tnef::{self, APPOINTMENT, MESSAGE, Properties, Tnef};

const MAIL: &str = "From: \"Ann\" <ann@example.org>\nTo: \"Bob\" <bob@example.org>\nDate: Tue, 14 Nov 2023 22:13:20 +0000\n\
                    Subject: Minutes\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"";

fn header() -> Properties {
    Properties::new()
        .text(0x37, "Minutes")
        .time(0x39, 1_700_000_000)
        .text(0x0c1a, "Ann")
        .text(0x0c1f, "ann@example.org")
}

fn stream() -> Tnef {
    let bob = Properties::new()
        .long(0x0c15, 1)
        .text(0x3001, "Bob")
        .text(0x3003, "bob@example.org");
    Tnef::new()
        .class("IPM.Microsoft Mail.Note")
        .recipients(&[bob])
        .properties(header().text(0x1000, "See you at noon."))
        .file("plan.txt", b"12:00 lunch\n")
}

fn usual() -> Vec<u8> {
    stream().bytes()
}

fn in_folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

fn run(folder: &Path, command: &str) -> (i32, Vec<u8>, String) {
    let words: Vec<&str> = command.split(' ').collect();
    let done = embody_in(folder, &words);
    let said = stderr(&done);
    (done.status.code().unwrap(), done.stdout, said)
}

/// Runs `filter` on a file with this content.
fn filtered(file: &[u8]) -> (i32, String, String) {
    let folder = in_folder(&[("winmail.dat", file)]);
    let (status, out, said) = run(folder.path(), "filter winmail.dat");
    (status, String::from_utf8_lossy(&out).into_owned(), said)
}

#[test]
fn winmail_dat_becomes_a_mail_in_each_command_that_reads_one() {
    let folder = in_folder(&[("winmail.dat", &usual())]);
    let at = folder.path();
    let (status, expected, said) = run(at, "filter winmail.dat");
    assert_eq!((status, said.as_str()), (0, ""));
    let text = String::from_utf8(expected.clone()).unwrap();
    assert!(text.starts_with(MAIL), "{text}");
    assert!(text.contains("\n\nSee you at noon.\n--"), "{text}");
    assert!(text.contains("filename=\"plan.txt\""), "{text}");
    for (command, result) in [
        ("convert winmail.dat --output a.eml", "a.eml"),
        ("recover winmail.dat --output b.eml", "b.eml"),
        ("embed winmail.dat --output c.eml", "c.eml"),
        ("convert winmail.dat --output -", ""),
    ] {
        let (status, out, said) = run(at, command);
        assert_eq!(status, 0, "{command}: {said}");
        let made = match result {
            "" => out,
            name => fs::read(at.join(name)).unwrap(),
        };
        assert!(
            made == expected,
            "{command}: {}",
            String::from_utf8_lossy(&made)
        );
    }
    let (status, out, said) = run(at, "inspect winmail.dat");
    assert_eq!(status, 0, "{said}");
    let out = String::from_utf8(out).unwrap();
    assert!(
        out.contains("multipart/mixed") && out.contains("text/plain"),
        "{out}"
    );
    let (status, _, said) = run(at, "compare winmail.dat a.eml");
    assert_eq!(status, 0, "{said}");
    let options = "--store store --base-url https://x.example/ --larger-than 1";
    let (status, out, said) = run(at, &format!("detach winmail.dat {options}"));
    assert_eq!(status, 0, "{said}");
    assert!(out.starts_with(MAIL.as_bytes()));
    // The source is unchanged, and is not changed in place.
    let (status, _, said) = run(at, "convert --in-place winmail.dat");
    assert_ne!(status, 0);
    assert!(said.contains("name a new file"), "{said}");
    assert!(fs::read(at.join("winmail.dat")).unwrap() == usual());
}

#[test]
fn winmail_dat_on_standard_input_is_read_like_one_in_a_file() {
    let ran = filter("", &usual());
    assert!(ran.stdout.starts_with(MAIL.as_bytes()));
}

#[test]
fn winmail_dat_with_any_name_is_read_in_directories_archives_and_compressed() {
    let one = usual();
    let gzip = {
        use std::io::Write as _;
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&one).unwrap();
        packed.finish().unwrap()
    };
    let other = b"From: c@d\nSubject: other\n\nx\n".as_slice();
    let folder = in_folder(&[
        ("in/winmail.dat", &one),
        ("in/other.eml", other),
        ("in/sub/ATT00001", &one),
        ("winmail.dat.gz", &gzip),
        (
            "a.zip",
            &zip(&[("mail/winmail.dat", &one), ("mail/other.eml", other)]),
        ),
        ("a.tar", &tar(&[("winmail (1).dat", b'0', &one)])),
    ]);
    let at = folder.path();
    for (source, count) in [("in", 2), ("winmail.dat.gz", 1), ("a.zip", 1), ("a.tar", 1)] {
        // A result with the suffix of a compression would be compressed.
        let name = source.replace('.', "-");
        let command = format!("convert {source} --output new-{name} --output-format mbox");
        let (status, _, said) = run(at, &command);
        assert_eq!(status, 0, "{source}: {said}");
        let mut made = String::new();
        let result = at.join(format!("new-{name}"));
        let files = if result.is_dir() {
            fs::read_dir(&result)
                .unwrap()
                .map(|it| it.unwrap().path())
                .collect()
        } else {
            vec![result]
        };
        for file in files {
            made += &fs::read_to_string(file).unwrap();
        }
        assert_eq!(
            made.matches("\nSubject: Minutes\n").count(),
            count,
            "{source}: {made}"
        );
        let (status, out, said) = run(at, &format!("inspect {source}"));
        assert_eq!(status, 0, "{source}: {said}");
        assert!(!out.is_empty());
    }
    let (status, _, said) = run(at, "convert in --output files --output-format eml");
    assert_eq!(status, 0, "{said}");
    assert!(at.join("files/winmail.eml").exists());
}

#[test]
fn what_a_winmail_dat_lacks_or_mail_cannot_contain_is_named() {
    let whole = usual();
    let mut wrong_sum = whole.clone();
    let last = wrong_sum.len() - 1;
    wrong_sum[last] ^= 1;
    let contact = Tnef::new()
        .class("IPM.Contact")
        .properties(header().text(0x1000, "x"))
        .bytes();
    let cut_in_file = whole.len() - 40;
    let headless = Tnef::new().properties(header()).bytes();
    let unknown_rtf = Tnef::new()
        .properties(header().binary(0x1009, b"\x20\0\0\0\x20\0\0\0ABCD\0\0\0\0something"))
        .bytes();
    let cases: &[(&str, &[u8], &str)] = &[
        (
            "cut in the attachment",
            &whole[..cut_in_file],
            "the end of the file is missing",
        ),
        (
            "cut in the properties",
            &whole[..300],
            "the end of the file is missing",
        ),
        (
            "wrong checksum",
            &wrong_sum,
            "a checksum in the file is wrong",
        ),
        (
            "contact",
            &contact,
            "everything except the text and the attachments, because the item of the class \"ipm.contact\"",
        ),
        (
            "no content",
            &headless,
            "embody found no text and no attachment",
        ),
        (
            "unknown RTF",
            &unknown_rtf,
            "the RTF body, which has an unknown compression",
        ),
    ];
    for (name, file, expected) in cases {
        let (status, out, said) = filtered(file);
        assert_eq!(status, 0, "{name}: {said}");
        assert!(said.contains(expected), "{name}: {said}");
        assert!(out.contains("\nSubject: Minutes\n"), "{name}: {out}");
        let folder = in_folder(&[("winmail.dat", file)]);
        let (status, _, said) = run(folder.path(), "convert winmail.dat --output a.eml");
        assert_eq!(status, 1, "{name}: {said}");
        assert!(said.contains(expected), "{name}: {said}");
        assert!(folder.path().join("a.eml").exists(), "{name}");
    }
}

#[test]
fn file_named_winmail_dat_without_a_mail_is_named_with_status_1() {
    for (name, file) in [
        ("only the signature", tnef::SIGNATURE.as_slice()),
        ("cut in the first attribute", &usual()[..14]),
        ("empty", b""),
        ("no TNEF", &[1; 200]),
    ] {
        let folder = in_folder(&[("in/winmail.dat", file), ("in/a.eml", b"From: a@b\n\nx\n")]);
        let at = folder.path();
        let (status, _, said) = run(at, "convert in --output out");
        assert_eq!(status, 1, "{name}: {said}");
        assert!(said.contains("winmail.dat"), "{name}: {said}");
        let (status, _, said) = run(at, "convert in/winmail.dat --output a.eml");
        assert_ne!(status, 0, "{name}: {said}");
        assert!(
            said.contains("another copy") || said.contains("undamaged copy"),
            "{name}: {said}"
        );
    }
}

#[test]
fn all_kinds_of_items_become_mail() {
    let start = 1_700_000_000;
    let meeting = Tnef::new()
        .class("IPM.Microsoft Schedule.MtgReq")
        .properties(
            header()
                .text(0x1000, "Agenda")
                .named_time(APPOINTMENT, 0x820d, start)
                .named_time(APPOINTMENT, 0x820e, start + 3600),
        )
        .bytes();
    const COMMON: [u8; 16] = *b"\x08\x20\x06\0\0\0\0\0\xc0\0\0\0\0\0\0\x46";
    let voting = Tnef::new()
        .class("IPM.Note")
        .properties(header().text(0x1000, "Yes or no?").named_binary(
            COMMON,
            0x8520,
            b"\x02\x01\x02\0\0\0verbs",
        ))
        .bytes();
    let html = Tnef::new()
        .class("IPM.Note")
        .properties(header().binary(
            0x1009,
            &tnef::compressed(tnef::from_html("<p>Hello <b>you</b>").as_bytes()),
        ))
        .bytes();
    let inner = Tnef::new()
        .class("IPM.Note")
        .properties(Properties::new().text(0x37, "Inner").text(0x1000, "inside"))
        .file("deep.txt", b"deep")
        .bytes();
    let nested = stream()
        .attachment(
            None,
            Properties::new()
                .long(0x3705, 5)
                .text(0x3001, "Inner")
                .object(0x3701, MESSAGE, &inner),
        )
        .bytes();
    // "привет" in Windows-1251, in the subject, the text and the name of an attachment.
    let hello = b"\xef\xf0\xe8\xe2\xe5\xf2";
    let mut russian = Tnef::new().class("IPM.Note").bytes();
    let page = russian
        .windows(4)
        .position(|it| it == [0xe4, 4, 0, 0])
        .unwrap();
    russian[page..page + 2].copy_from_slice(&1251_u16.to_le_bytes());
    let sum: u16 = russian[page..page + 8]
        .iter()
        .map(|byte| u16::from(*byte))
        .sum();
    russian[page + 8..page + 10].copy_from_slice(&sum.to_le_bytes());
    let rest = Tnef::new()
        .properties(Properties::new().narrow(0x37, hello).narrow(0x1000, hello))
        .attachment(
            Some(b"x"),
            Properties::new().narrow(0x3707, &[hello, &b".txt"[..]].concat()),
        )
        .bytes();
    let empty = Tnef::new().bytes().len();
    russian.extend_from_slice(&rest[empty..]);
    let cases: &[(&str, &[u8], &[&str])] = &[
        (
            "meeting",
            &meeting,
            &[
                "text/calendar; method=\"REQUEST\"",
                "DTSTART:20231114T221320Z",
            ],
        ),
        ("voting", &voting, &["Yes or no?"]),
        (
            "HTML in RTF",
            &html,
            &["Content-Type: text/html", "<p>Hello <b>you</b>"],
        ),
        (
            "nested",
            &nested,
            &["message/rfc822", "Subject: Inner", "deep.txt", "plan.txt"],
        ),
        (
            "code page",
            &russian,
            &[
                "=?utf-8?B?0L/RgNC40LLQtdGC?=",
                "UTF-8''%D0%BF%D1%80%D0%B8%D0%B2%D0%B5%D1%82.txt",
            ],
        ),
        (
            "report",
            &tnef::delivery_report(),
            &["multipart/report", "message/delivery-status"],
        ),
    ];
    for (name, file, expected) in cases {
        let (status, out, said) = filtered(file);
        assert_eq!((status, said.as_str()), (0, ""), "{name}");
        for part in *expected {
            assert!(out.contains(part), "{name}: {part} is not in {out}");
        }
    }
}

#[test]
fn winmail_dat_is_not_read_in_another_format_that_was_requested() {
    let folder = in_folder(&[("winmail.dat", &usual())]);
    let at = folder.path();
    for format in ["mbox", "mmdf"] {
        let (status, _, said) = run(
            at,
            &format!("convert --format {format} winmail.dat --output x"),
        );
        assert_ne!(status, 0, "{format}: {said}");
        assert!(!at.join("x").exists());
    }
    let (status, _, said) = run(at, "convert --format eml winmail.dat --output a.eml");
    assert_eq!(status, 0, "{said}");
    assert!(
        fs::read(at.join("a.eml"))
            .unwrap()
            .starts_with(MAIL.as_bytes())
    );
}
