//! Files with mail: their formats and their lists of mails.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embody::view::{FileFormat, MailFile, MailView, PartRole, ReferenceState};

use crate::common::pst::{Form, Message, Pst};
use crate::common::tnef::{Properties, Tnef, usual};

const ONE: &str = "From: a@example.org\nSubject: one\n\nfirst\n";
const TWO: &str = "From: b@example.org\nSubject: two\n\nsecond\n";

#[test]
fn formats_are_recognised_and_their_messages_listed() {
    let mbox = format!(
        "From a@b Mon Jan  6 10:00:00 2020\n{ONE}\n>From here\n\nFrom a@b Mon Jan  6 10:00:00 2020\n{TWO}\n"
    );
    let mmdf = format!(
        "\x01\x01\x01\x01\n{ONE}\x01\x01\x01\x01\n\x01\x01\x01\x01\n{TWO}\x01\x01\x01\x01\n"
    );
    let eudora = format!(
        "From ???@??? Mon Jan  6 10:00:00 2020\r{}From ???@??? Mon Jan  6 10:00:00 2020\r{}",
        ONE.replace('\n', "\r"),
        TWO.replace('\n', "\r")
    );
    let emlx = format!("{}\n{ONE}<?xml version=\"1.0\"?>\n<plist/>\n", ONE.len());
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(mbox.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    for (name, bytes, format, subjects) in [
        ("a.eml", ONE.as_bytes(), FileFormat::Eml, &["one"][..]),
        ("a", ONE.as_bytes(), FileFormat::Eml, &["one"]),
        ("a.emlx", emlx.as_bytes(), FileFormat::Eml, &["one"]),
        ("a.mbox", mbox.as_bytes(), FileFormat::Mbox, &["one", "two"]),
        ("a.mbox.gz", &packed, FileFormat::Mbox, &["one", "two"]),
        ("Inbox", mmdf.as_bytes(), FileFormat::Mbox, &["one", "two"]),
        ("In", eudora.as_bytes(), FileFormat::Mbox, &["one", "two"]),
        ("a.mbox", b"", FileFormat::Mbox, &[]),
    ] {
        let file = MailFile::open(bytes.to_vec(), name).unwrap();
        assert_eq!(file.format(), format, "{name}");
        assert_eq!(
            (file.len(), file.is_empty()),
            (subjects.len(), subjects.is_empty()),
            "{name}"
        );
        for (index, subject) in subjects.iter().enumerate() {
            assert_eq!(file.summary(index).unwrap().subject, *subject, "{name}");
            let view = file.mail(index, SystemTime::now()).unwrap();
            assert_eq!(view.subject(), *subject, "{name}");
            let text = view.bodies()[0].text.clone().unwrap();
            assert!(
                text.starts_with(["first", "second"][index]),
                "{name}: {text:?}"
            );
            // The quoting of the mailbox is removed.
            assert!(!text.contains(">From"), "{name}: {text:?}");
        }
        assert!(file.summary(subjects.len()).is_none());
        assert!(file.mail(subjects.len(), SystemTime::now()).is_err());
    }
}

#[test]
fn files_of_outlook_become_mails_with_their_attachments() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mailbox/outlook");
    let simple = fs::read(folder.join("simple.msg")).unwrap();
    let embedded = fs::read(folder.join("embedded.msg")).unwrap();
    let item = Tnef::new()
        .class("IPM.Note")
        .properties(Properties::new().text(0x37, "minutes"));
    let tnef = item.file("note.txt", b"hello").bytes();
    for (name, bytes, format, subject) in [
        ("simple.msg", simple, FileFormat::Msg, "BitDaddys Software"),
        ("winmail.dat", tnef, FileFormat::Tnef, "minutes"),
    ] {
        let file = MailFile::open(bytes, name).unwrap();
        assert_eq!((file.format(), file.len()), (format, 1), "{name}");
        assert_eq!(file.summary(0).unwrap().subject, subject, "{name}");
        let view = file.mail(0, SystemTime::now()).unwrap();
        assert_eq!(view.subject(), subject, "{name}");
        let has_note = view
            .parts()
            .iter()
            .any(|part| part.name == "note.txt" && part.size == 5);
        assert_eq!(
            has_note,
            format == FileFormat::Tnef,
            "{name}: {:?}",
            view.parts()
        );
    }
    let file = MailFile::open(embedded, "embedded.msg").unwrap();
    let view = file.mail(0, SystemTime::now()).unwrap();
    assert!(
        view.parts()
            .iter()
            .any(|part| part.role == PartRole::Message),
        "{:?}",
        view.parts()
    );
}

#[test]
fn mailbox_of_outlook_lists_its_items_with_their_folders() {
    let mut pst = Pst::in_memory(Form {
        version: 23,
        encoding: 1,
    });
    pst.folder(
        None,
        "Inbox",
        &[
            Message::mail("one", "first"),
            Message::mail("two", "second"),
        ],
    );
    pst.folder(
        None,
        "Sent",
        &[Message::mail("three", "third").with_file("a.txt", b"hello")],
    );
    let file = MailFile::open(pst.bytes(), "archive.pst").unwrap();
    assert_eq!((file.format(), file.len()), (FileFormat::Pst, 3));
    let found: Vec<_> = (0..3)
        .map(|index| {
            let summary = file.summary(index).unwrap();
            let view = file.mail(index, SystemTime::now()).unwrap();
            assert_eq!(view.subject(), summary.subject);
            (
                summary.folder.last().cloned().unwrap(),
                summary.subject,
                view.parts().len(),
            )
        })
        .collect();
    let expected = [
        ("Inbox", "one", 1),
        ("Inbox", "two", 1),
        ("Sent", "three", 2),
    ];
    assert_eq!(
        found,
        expected.map(|(folder, subject, parts)| (folder.to_owned(), subject.to_owned(), parts))
    );
    assert!(file.summary(3).is_none() && file.mail(3, SystemTime::now()).is_err());
}

#[test]
fn saved_message_with_a_separator_is_one_mail() {
    let saved = format!("From a@b Mon Jan  6 10:00:00 2020\n{ONE}");
    let file = MailFile::open(saved.clone(), "saved.eml").unwrap();
    assert_eq!((file.format(), file.len()), (FileFormat::Eml, 1));
    assert_eq!(file.mail(0, SystemTime::now()).unwrap().subject(), "one");
    let two = format!("{saved}\nFrom a@b Mon Jan  6 10:00:00 2020\n{TWO}");
    assert_eq!(MailFile::open(two, "saved.eml").unwrap().len(), 2);
}

#[test]
fn file_without_mail_is_refused_with_its_name() {
    for (name, bytes, expected) in [
        ("a.txt", &b"Dear all,\nhello\n"[..], "not a mail"),
        (
            "a.png",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01",
            "not a mail",
        ),
        (
            "a.zip",
            b"PK\x03\x04\x14\0\0\0\x08\0\0\0!\0\0\0\0\0\0\0\0\0\0\0\0\0\x06\0\0\0in.box",
            "archive",
        ),
        ("a.db", b"SQLite format 3\0", "SQLite"),
        (
            "a.msg",
            &include_bytes!("../../mailbox/outlook/simple.msg")[..300],
            "damaged Outlook file",
        ),
    ] {
        let why = MailFile::open(bytes.to_vec(), name)
            .unwrap_err()
            .to_string();
        assert!(why.contains(expected), "{name}: {why}");
        assert!(!why.contains("--"), "{name}: {why}");
    }
}

/// The mails of a mailbox are those that `convert` writes to a directory of `.eml` files.
#[test]
fn mails_of_a_mailbox_have_the_bytes_that_convert_writes() {
    let counted = format!("From a@b Mon Jan  6 10:00:00 2020\nContent-Length: 30\n{ONE}")
        + "\nFrom a@b Mon Jan  6 10:00:00 2020\n"
        + TWO;
    let odd = "From a\nSubject: x\n\nFrom here on\n\nFrom b@c Mon Jan  6 10:00:00 2020\n>From d@e Mon Jan  6 10:00:00 2020\nTo: x\nSubject: y\n\n>From z\n>>From z\n";
    let cut = "\n\nFrom a@b Mon Jan  6 10:00:00 2020\r\nSubject: x\r\n\r\nx";
    let mac = "From a@b Mon Jan  6 10:00:00 2020\rSubject: x\rTo: y\r\rx\r\rFrom a@b Mon Jan  6 10:00:00 2020\rSubject: z\rTo: y\r\rx\r";
    let mmdf = format!(
        "\x01\x01\x01\x01\n{ONE}>From z\n\x01\x01\x01\x01\n\x01\x01\x01\x01\n{TWO}\x01\x01\x01\x01\n"
    );
    for mbox in [counted.as_str(), odd, cut, mac, &mmdf] {
        let folder = tempfile::tempdir().unwrap();
        let (path, result) = (folder.path().join("a.mbox"), folder.path().join("out"));
        fs::write(&path, mbox).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_embody"))
            .args(["convert", "--quiet", "--output-format", "eml"])
            .arg(&path)
            .arg("--output")
            .arg(&result)
            .output()
            .unwrap();
        assert!(output.status.success(), "{mbox:?} {output:?}");
        let mut names: Vec<_> = fs::read_dir(&result)
            .unwrap()
            .map(|it| it.unwrap().path())
            .collect();
        names.sort();
        let file = MailFile::open(mbox.as_bytes().to_vec(), "a.mbox").unwrap();
        assert_eq!(file.len(), names.len(), "{mbox:?}");
        for (index, name) in names.iter().enumerate() {
            let view = file.mail(index, SystemTime::now()).unwrap();
            let expected = fs::read_to_string(name).unwrap();
            assert_eq!(
                String::from_utf8_lossy(view.original()),
                expected,
                "{mbox:?}"
            );
        }
    }
}

/// The mail of a damaged file is shown, with a note about each thing that it may lack.
#[test]
fn damage_of_a_file_of_outlook_is_in_the_notes_of_its_mail() {
    let whole = usual();
    let mail = |bytes: &[u8]| {
        let file = MailFile::open(bytes.to_vec(), "winmail.dat")?;
        file.mail(0, SystemTime::now())
    };
    assert!(mail(&whole).unwrap().notes().is_empty());
    let mut damaged = 0;
    for length in (whole.len() / 2..whole.len()).step_by(50) {
        let Ok(view) = mail(&whole[..length]) else {
            continue;
        };
        let says = |note: &String| note.contains("get an undamaged copy of the file");
        assert!(
            view.notes().iter().any(says),
            "{length}: {:?}",
            view.notes()
        );
        damaged += 1;
    }
    assert!(damaged > 3, "{damaged}");
    // The same file in a mail stays attached, with a reference that names the damage.
    let encoded = STANDARD.encode(&whole[..whole.len() - 20]);
    let mail = format!(
        "MIME-Version: 1.0\nContent-Type: application/ms-tnef; name=winmail.dat\nContent-Transfer-Encoding: base64\n\n{encoded}\n"
    );
    let view = MailView::new(mail, SystemTime::now());
    let states: Vec<_> = view.references().iter().map(|it| it.state).collect();
    assert_eq!(states, [ReferenceState::Kept], "{:?}", view.references());
    let why = &view.references()[0].explanation;
    assert!(
        why.contains("could be read: the end of the file is missing"),
        "{why}"
    );
}
