//! `detach --files` and `inspect --save-attachments`: attachments as files with names for people.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::common::programs::{done, embody, embody_in, fed, stderr};

fn part(name: &str, content: &[u8]) -> String {
    format!(
        "--b\nContent-Type: application/octet-stream\nContent-Disposition: attachment; {name}\nContent-Transfer-Encoding: base64\n\n{}\n",
        STANDARD.encode(content)
    )
}

fn mail(from: &str, id: &str, parts: &[String]) -> String {
    format!(
        "From: {from}\nMessage-ID: <{id}>\nDate: Sun, 1 Mar 2020 23:30:00 -0500\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nhello\n{}--b--\n",
        parts.concat()
    )
}

fn mbox(mails: &[String]) -> String {
    mails
        .iter()
        .map(|mail| format!("From a@x.example Mon Mar  2 04:30:00 2020\n{mail}\n"))
        .collect()
}

/// Returns the names of the files, without the index.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    names.retain(|name| name != "index.csv");
    names.sort();
    names
}

fn two_mails() -> String {
    let one = mail(
        "Anna Example <anna@x.example>",
        "1@x",
        &[
            part("filename=\"report.pdf\"", b"one"),
            part("filename=\"report.pdf\"", b"two"),
        ],
    );
    let two = mail(
        "Anna Example <anna@x.example>",
        "2@x",
        &[
            part("filename=\"report.pdf\"", b"two"),
            part("filename=\"REPORT.pdf\"", b"three"),
        ],
    );
    mbox(&[one, two])
}

const EXPECTED: [&str; 3] = [
    "2020-03-02 Anna Example - REPORT (3).pdf",
    "2020-03-02 Anna Example - report (2).pdf",
    "2020-03-02 Anna Example - report.pdf",
];

#[test]
fn attachments_are_saved_with_numbers_and_a_second_run_adds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("in.mbox"), two_mails()).unwrap();
    let run = || {
        let output = embody_in(at, &["inspect", "in.mbox", "--save-attachments", "files"]);
        done(&output, 0);
        stderr(&output)
    };
    assert!(run().contains("3 files were written to files, and 0 were already there"));
    assert_eq!(names(&at.join("files")), EXPECTED);
    let read = |name: &str| fs::read(at.join("files").join(name)).unwrap();
    assert_eq!(
        (read(EXPECTED[2]), read(EXPECTED[1])),
        (b"one".to_vec(), b"two".to_vec())
    );
    let index = String::from_utf8(read("index.csv")).unwrap();
    assert_eq!(index.lines().count(), 5, "{index}");
    assert_eq!(
        index.lines().next(),
        Some("mail,source,number,part,name,file,bytes,digest")
    );
    let row = "\"1@x\",\"in.mbox\",\"1\",\"2\",\"report.pdf\",\"2020-03-02 Anna Example - report.pdf\",\"3\",\"7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed\"";
    assert!(index.contains(row), "{index}");
    assert!(run().contains("0 files were written to files, and 3 were already there"));
    assert_eq!(names(&at.join("files")), EXPECTED);
    assert_eq!(read("index.csv"), index.as_bytes());
    assert_eq!(fs::read_to_string(at.join("in.mbox")).unwrap(), two_mails());
}

#[test]
fn existing_files_are_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("in.mbox"), two_mails()).unwrap();
    fs::create_dir(at.join("files")).unwrap();
    fs::write(at.join("files").join(EXPECTED[2]), "another file").unwrap();
    fs::create_dir(at.join("files").join(EXPECTED[1])).unwrap();
    fs::write(at.join("files/index.csv"), "a,b\n").unwrap();
    done(
        &embody_in(at, &["inspect", "in.mbox", "--save-attachments", "files"]),
        0,
    );
    assert_eq!(
        fs::read_to_string(at.join("files").join(EXPECTED[2])).unwrap(),
        "another file"
    );
    assert_eq!(
        fs::read_to_string(at.join("files/index.csv")).unwrap(),
        "a,b\n"
    );
    let all = names(&at.join("files"));
    assert!(
        all.contains(&"index (2).csv".to_owned()) && all.len() == 6,
        "{all:?}"
    );
    let index = fs::read_to_string(at.join("files/index (2).csv")).unwrap();
    assert!(
        index.contains("report (3).pdf") && index.contains("report (4).pdf"),
        "{index}"
    );
}

#[test]
fn detach_writes_files_from_the_store_and_from_mail_on_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let content = vec![b'x'; 3_000];
    let one = mail(
        "anna@x.example",
        "1@x",
        &[
            part("filename=\"big.bin\"", &content),
            part("filename=\"small.bin\"", b"small"),
        ],
    );
    fs::write(at.join("in.mbox"), mbox(std::slice::from_ref(&one))).unwrap();
    let options = [
        "--store",
        "store",
        "--files",
        "files",
        "--larger-than",
        "1k",
    ];
    let arguments = [&["detach", "in.mbox", "--output", "out.mbox"][..], &options].concat();
    let output = embody_in(at, &arguments);
    done(&output, 0);
    assert!(
        stderr(&output).contains("1 file was written to files"),
        "{}",
        stderr(&output)
    );
    assert_eq!(
        names(&at.join("files")),
        ["2020-03-02 anna@x.example - big.bin"]
    );
    assert_eq!(
        fs::read(at.join("files/2020-03-02 anna@x.example - big.bin")).unwrap(),
        content
    );
    // The files are independent of the store.
    fs::write(
        at.join("files/2020-03-02 anna@x.example - big.bin"),
        "changed",
    )
    .unwrap();
    done(
        &embody_in(
            at,
            &[
                "restore",
                "-q",
                "--store",
                "store",
                "out.mbox",
                "--output",
                "back.mbox",
            ],
        ),
        0,
    );
    assert_eq!(
        fs::read(at.join("back.mbox")).unwrap(),
        fs::read(at.join("in.mbox")).unwrap()
    );
    let mut filter = embody();
    filter.current_dir(at).args([
        "detach",
        "-q",
        "--store",
        "store",
        "--files",
        "piped",
        "--larger-than",
        "1k",
    ]);
    let output = fed(&mut filter, one.as_bytes());
    done(&output, 0);
    assert!(String::from_utf8_lossy(&output.stdout).contains("message/external-body"));
    assert_eq!(
        names(&at.join("piped")),
        ["2020-03-02 anna@x.example - big.bin"]
    );
    let arguments = [
        &["detach", "in.mbox", "--dry-run", "--output", "none.mbox"][..],
        &options[..2],
        &["--files", "not"],
    ]
    .concat();
    done(&embody_in(at, &arguments), 0);
    assert!(!at.join("not").exists());
}

#[test]
fn hostile_names_stay_in_the_directory_and_are_valid_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let long = "x".repeat(300);
    let hostile = [
        "filename=\"../../evil.sh\"".to_owned(),
        "filename=\"..\"".to_owned(),
        "filename=CON".to_owned(),
        "filename=\"nul.txt\"".to_owned(),
        "filename*=utf-8''a%00b%0Ac%1b.txt".to_owned(),
        "filename*=utf-8''%E2%80%AEfdp.exe".to_owned(),
        "filename=\"trailing. . \"".to_owned(),
        format!("filename=\"{long}.pdf\""),
        "filename=\"C:\\\\temp\\\\x|y?.txt\"".to_owned(),
        "filename=\"/etc/passwd\"".to_owned(),
        "filename=\"=cmd|' /C calc'!A0\"".to_owned(),
        "filename=\"\"".to_owned(),
    ];
    let parts: Vec<String> = hostile
        .iter()
        .enumerate()
        .map(|(number, name)| part(name, format!("content {number}").as_bytes()))
        .collect();
    let text = mail("\"=1+1\" <../../x@x.example>", "=2+2", &parts);
    fs::write(at.join("in.eml"), text).unwrap();
    fs::create_dir(at.join("deep")).unwrap();
    done(
        &embody_in(
            at,
            &["inspect", "in.eml", "--save-attachments", "deep/files"],
        ),
        0,
    );
    let found = names(&at.join("deep/files"));
    assert_eq!(found.len(), hostile.len(), "{found:?}");
    assert_eq!(names(&at.join("deep")), ["files"]);
    for name in &found {
        assert!(
            name.starts_with("2020-03-02 ") && name.len() <= 200,
            "{name}"
        );
        assert!(
            !name.contains(['/', '\\', ':', '*', '?', '"', '<', '>', '|', '\u{202e}'])
                && !name.chars().any(char::is_control),
            "{name}"
        );
        assert!(!name.ends_with(['.', ' ']), "{name}");
    }
    let index = fs::read_to_string(at.join("deep/files/index.csv")).unwrap();
    assert_eq!(index.lines().count(), 1 + hostile.len());
    assert!(
        index.contains("\"'=2+2\"") && index.contains("\"'=cmd|' /C calc'!A0\""),
        "{index}"
    );
    assert!(
        !index.contains(",\"=") && !index.starts_with("\"="),
        "{index}"
    );
}

#[test]
fn attachment_that_cannot_be_decoded_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let damaged = part("filename=x.bin", b"xyz").replace("eHl6", "e@l6=x=");
    fs::write(
        at.join("in.eml"),
        mail(
            "a@x.example",
            "1@x",
            &[damaged, part("filename=y.bin", b"y")],
        ),
    )
    .unwrap();
    let output = embody_in(at, &["inspect", "in.eml", "--save-attachments", "files"]);
    done(&output, 1);
    assert!(
        stderr(&output)
            .contains("1 attachment could not be written: part 2: the base64 encoding is damaged"),
        "{}",
        stderr(&output)
    );
    assert_eq!(names(&at.join("files")).len(), 1);
}
