//! `embody::view`: what a person sees of a mail.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embody::policy::{Followed, Policy};
use embody::view::{FileFormat, MailFile, MailView, PartRole, ReferenceState};
use embody::{Expander, report::Kind};

use crate::common::pst::{Form, Message, Pst};
use crate::common::tnef::{Properties, Tnef};

fn view(mail: impl AsRef<[u8]>) -> MailView {
    MailView::new(mail.as_ref().to_vec(), SystemTime::now())
}

/// Returns a multipart mail with these parts, each with its header.
fn mixed(parts: &[&str]) -> String {
    multipart("mixed", parts)
}

fn multipart(subtype: &str, parts: &[&str]) -> String {
    let mut mail = format!(
        "From: =?utf-8?q?Ad=C3=A9?= <ada@example.org>\nSubject: =?utf-8?b?w7xi?=\n =?utf-8?b?ZXI=?=\n\
         Date: Tue, 14 May 2024 09:12:03 +0200\nMIME-Version: 1.0\nContent-Type: multipart/{subtype}; boundary=b\n"
    );
    for part in parts {
        write!(mail, "\n--b\n{part}").unwrap();
    }
    mail + "\n--b--\n"
}

const TEXT: &str = "Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\nGr=FC=DFe";
const HTML: &str = "Content-Type: text/html; charset=utf-8\n\n<p>Hello <img src=\"cid:a%40b\">";
const PICTURE: &str = "Content-Type: image/gif\nContent-ID: <a@b>\nContent-Transfer-Encoding: base64\n\n\
    R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";
const REFERENCE: &str = "Content-Type: message/external-body; access-type=URL;\n URL=\"https://www.example.org/a/minutes.txt\"\n\n\
    Content-Type: text/plain\n\n";

#[test]
fn header_fields_are_decoded() {
    let view = view(mixed(&[TEXT]));
    assert_eq!(view.subject(), "über");
    assert_eq!(view.field("from"), "Adé <ada@example.org>");
    assert_eq!(view.date(), Some(1_715_670_723));
    assert_eq!(view.header().len(), 5);
}

#[test]
fn richest_alternative_is_shown_and_its_text_is_kept() {
    for (subtype, parts, html, text) in [
        ("mixed", vec![TEXT], None, Some("Grüße")),
        (
            "alternative",
            vec![TEXT, HTML],
            Some("Hello"),
            Some("Grüße"),
        ),
        (
            "alternative",
            vec![HTML, TEXT],
            Some("Hello"),
            Some("Grüße"),
        ),
        ("related", vec![HTML, PICTURE], Some("Hello"), None),
        (
            "signed",
            vec![TEXT, "Content-Type: application/pgp-signature\n\nx"],
            None,
            Some("Grüße"),
        ),
    ] {
        let view = view(multipart(subtype, &parts));
        let [body] = view.bodies() else {
            panic!("{subtype}: {:?}", view.bodies());
        };
        assert_eq!(body.html.is_some(), html.is_some(), "{subtype}");
        assert!(html.is_none_or(|html| body.html.as_ref().unwrap().contains(html)));
        assert_eq!(body.text.as_deref(), text, "{subtype}");
    }
    // A mailing list adds a footer, which is a second text.
    assert_eq!(view(mixed(&[HTML, TEXT])).bodies().len(), 2);
    let attached = "Content-Type: text/plain\nContent-Disposition: attachment; filename=a.txt\n\nx";
    let view = view(mixed(&[TEXT, attached]));
    assert_eq!(view.bodies().len(), 1);
    assert_eq!(view.parts()[1].role, PartRole::Attachment);
}

#[test]
fn text_is_decoded_from_its_charset_whether_declared_or_not() {
    for (header, body, expected) in [
        (
            "Content-Type: text/plain; charset=koi8-r",
            &b"\xf0\xd2\xc9"[..],
            "При",
        ),
        ("Content-Type: text/plain", "Prägung".as_bytes(), "Prägung"),
        ("Content-Type: text/plain", b"Pr\xe4gung", "Prägung"),
        (
            "Content-Type: text/plain; charset=us-ascii",
            "Prägung".as_bytes(),
            "Prägung",
        ),
        (
            "Content-Type: text/plain; charset=nonsense",
            "Prägung".as_bytes(),
            "Prägung",
        ),
        (
            "Content-Type: text/plain; charset=utf-8",
            b"a\xffb",
            "a\u{fffd}b",
        ),
        (
            "Content-Type: text/html",
            b"<meta charset=iso-8859-2>\xb1",
            "<meta charset=iso-8859-2>ą",
        ),
        (
            "Content-Type: text/html",
            b"<meta charset=utf-16>\xe4",
            "<meta charset=utf-16>ä",
        ),
    ] {
        let mail = [
            header.as_bytes(),
            b"\nMIME-Version: 1.0\nSubject: x\n\n",
            body,
        ]
        .concat();
        let view = view(mail);
        let body = &view.bodies()[0];
        let shown = body.html.as_ref().or(body.text.as_ref()).unwrap();
        assert_eq!(shown, expected, "{header}");
    }
}

#[test]
fn parts_have_names_types_sizes_and_content() {
    let inner = mixed(&[TEXT, PICTURE])
        .replace("boundary=b", "boundary=inner")
        .replace("--b", "--inner");
    let (_, rest) = inner.split_once("Date:").unwrap();
    let inner = format!("Content-Type: message/rfc822\n\nSubject: in/ner\nDate:{rest}");
    let named = "Content-Type: application/pdf; name=\"=?utf-8?q?a=2Fb=E2=80=AEfdp=2Eexe?=\"\nContent-Disposition: attachment\n\n%PDF-";
    let view = view(multipart("mixed", &[HTML, PICTURE, named, &inner]));
    let parts = view.parts();
    assert_eq!(parts[0].role, PartRole::Body);
    let picture = &parts[1];
    assert_eq!((picture.role, picture.size), (PartRole::Picture, 42));
    assert_eq!(
        (picture.name.as_str(), picture.content_id.as_deref()),
        ("part-2.gif", Some("a@b"))
    );
    assert!(view.content(1).unwrap().starts_with(b"GIF89a"));
    // A name cannot contain a path, and cannot hide its suffix.
    assert_eq!(parts[2].name, "a_b_fdp.exe");
    let message = &parts[3];
    assert_eq!(message.role, PartRole::Message);
    assert_eq!(message.name, "in_ner.eml");
    assert!(parts[4..].iter().all(|part| part.inside == Some(3)));
    assert_eq!(parts.len(), 6);
    let inner = MailView::new(view.content(3).unwrap(), SystemTime::now());
    assert_eq!(inner.subject(), "in/ner");
    assert_eq!(inner.parts().len(), 2);
    assert_eq!(view.content(6), None);
}

#[test]
fn content_in_forms_that_few_programs_show_is_in_the_list_of_parts() {
    let tnef = Tnef::new().class("IPM.Note").file("note.txt", b"hello");
    let winmail = format!(
        "Content-Type: application/ms-tnef; name=winmail.dat\nContent-Transfer-Encoding: base64\n\n{}",
        STANDARD.encode(tnef.bytes())
    );
    let data = "Content-Type: text/html\n\n<img src=\"data:image/gif;base64,R0lGODlhCAAIAIAAAP8AAAAAACH5BAAAAAAALAAAAAAIAAgAAAIHhI+py+1dADs=\">";
    let uuencoded =
        "Content-Type: text/plain\n\nSee it.\n\nbegin 644 note.txt\n%:&5L;&\\`\n`\nend\n";
    for (part, kind, name) in [
        (winmail.as_str(), Kind::Tnef, Some("note.txt")),
        (data, Kind::Embed, None),
        (uuencoded, Kind::Uuencode, Some("note.txt")),
    ] {
        let view = view(mixed(&[part]));
        let mut references = view.references().iter();
        let Some(found) = references.find(|it| it.kind == kind) else {
            panic!("{kind:?}: {:?}", view.references());
        };
        assert_eq!(
            found.state,
            ReferenceState::Included,
            "{kind:?}: {}",
            found.explanation
        );
        let is_file = |part: &&embody::view::PartView| part.role != PartRole::Body;
        let files: Vec<_> = view.parts().iter().filter(is_file).collect();
        assert!(!files.is_empty(), "{kind:?}: {:?}", view.parts());
        assert!(
            name.is_none_or(|name| files.iter().any(|part| part.name == name)),
            "{files:?}"
        );
    }
}

#[test]
fn references_are_sorted_into_what_a_person_can_do() {
    let html = "Content-Type: text/html\n\n<img src=\"https://www.example.org/a.png\">\
        <img width=1 height=1 src=\"https://www.example.org/t.gif?id=1\"><a href=\"https://www.example.org/\">x</a>";
    let detached = "Content-Type: application/pdf; name=\"a.pdf\"\nContent-Disposition: attachment; filename=a.pdf\n\
        X-Mozilla-External-Attachment-URL: file:///C:/Users/ada/a.pdf\n\
        X-Mozilla-Altered: AttachmentDetached; date=\"Tue May 14 09:12:03 2024\"\n\nYou deleted an attachment from this message. The original MIME headers for the attachment were:\nContent-Type: application/pdf; name=\"a.pdf\"\n";
    let no_type = "Content-Type: message/external-body; access-type=x-nothing\n\nContent-Type: text/plain\n\n";
    let view = view(mixed(&[html, REFERENCE, detached, no_type]));
    let found: Vec<_> = view
        .references()
        .iter()
        .map(|it| (it.kind, it.state, it.can_fill))
        .collect();
    for expected in [
        (Kind::Embed, ReferenceState::Remote, true),
        (Kind::Embed, ReferenceState::Tracker, false),
        (Kind::ExternalBody, ReferenceState::Missing, true),
        (Kind::Detached, ReferenceState::Missing, true),
        (Kind::ExternalBody, ReferenceState::Kept, false),
    ] {
        assert!(
            found.contains(&expected),
            "{expected:?} is not in {found:?}"
        );
    }
    // The words are for a person: no options, and no marks of the code.
    for reference in view.references() {
        assert!(
            !reference.explanation.contains("--"),
            "{}",
            reference.explanation
        );
        assert!(
            !reference.explanation.contains('\u{1}'),
            "{}",
            reference.explanation
        );
        assert!(
            reference.explanation.ends_with('.'),
            "{}",
            reference.explanation
        );
    }
    let named = |name: &str| {
        view.references()
            .iter()
            .any(|it| it.name.as_deref() == Some(name))
    };
    assert!(named("minutes.txt") && named("a.pdf") && named("a.png"));
}

#[test]
fn chosen_file_fills_its_reference_and_no_other() {
    let other = REFERENCE.replace("minutes", "other");
    let mail = mixed(&[TEXT, REFERENCE, &other]);
    let mut view = view(&mail);
    assert_eq!(view.references().len(), 2);
    view.fill(0, "Milk, bread.\n", Some("text/plain")).unwrap();
    let states: Vec<_> = view.references().iter().map(|it| it.state).collect();
    assert_eq!(states, [ReferenceState::Filled, ReferenceState::Missing]);
    let roles: Vec<_> = view.parts().iter().map(|it| it.role).collect();
    assert_eq!(roles[..1], [PartRole::Body]);
    assert_eq!(roles[roles.len() - 1], PartRole::Note);
    let repaired = String::from_utf8(view.repaired()).unwrap();
    assert!(repaired.contains("Milk, bread."), "{repaired}");
    assert_eq!(repaired.matches("message/external-body").count(), 1);
    assert!(repaired.contains("/a/other.txt"));
    assert_eq!(&view.original()[..], mail.as_bytes());
    view.fill(1, "Wine.", None).unwrap();
    let repaired = String::from_utf8(view.repaired()).unwrap();
    assert!(repaired.contains("Milk, bread.") && repaired.contains("Wine."));
    assert!(view.fill(0, "x", None).is_err() && view.fill(9, "x", None).is_err());
}

#[test]
fn chosen_file_that_contradicts_the_mail_is_refused_and_nothing_changes() {
    let digest = "Content-Type: text/plain\nContent-MD5: 1B2M2Y8AsgTpgAmY7PhCfg==\n\n";
    let part = REFERENCE.replace("Content-Type: text/plain\n\n", digest);
    let mut view = view(mixed(&[&part]));
    let before = (view.references().to_vec(), view.repaired());
    let why = view.fill(0, "not empty", None).unwrap_err().to_string();
    assert!(why.contains("Content-MD5") || why.contains("MD5"), "{why}");
    assert_eq!((view.references().to_vec(), view.repaired()), before);
    view.fill(0, "", None).unwrap();
}

#[test]
fn chosen_picture_replaces_the_picture_on_the_web() {
    let html = "Content-Type: text/html\n\n<p><img src=\"https://www.example.org/a.gif\"><img src=\"https://www.example.org/b.gif\">";
    let gif = b"GIF89a\x08\0\x08\0\x80\0\0\xff\0\0\0\0\0!\xf9\x04\0\0\0\0\0,\0\0\0\0\x08\0\x08\0\0\x02\x07\x84\x8f\xa9\xcb\xed\x5d\0;";
    let mut view = view(mixed(&[html]));
    view.fill(0, &gif[..], Some("image/gif")).unwrap();
    let repaired = String::from_utf8(view.repaired()).unwrap();
    assert!(
        repaired.contains("cid:") && repaired.contains("https://www.example.org/b.gif"),
        "{repaired}"
    );
    assert!(
        view.parts()
            .iter()
            .any(|part| part.role == PartRole::Picture)
    );
    assert!(view.fill(1, "no picture", Some("image/gif")).is_err());
}

/// Returns the result of `embody filter --follow all`, without its program.
fn filtered(mail: &[u8]) -> Vec<u8> {
    let policy = Policy::default().with_follow(Followed::all());
    let expander = Expander::new(policy).unwrap();
    let expansion = expander.expand(mail, "1").unwrap();
    expansion.output().into_bytes().into_owned()
}

#[test]
fn repaired_mail_without_chosen_files_is_that_of_the_program() {
    let mut changed = 0;
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|suffix| suffix == "eml") {
                let mail = fs::read(&path).unwrap();
                let view = view(&mail);
                let words = format!("{:?}", view.references());
                assert!(!words.contains("\\u{1}"), "{}: {words}", path.display());
                let repaired = view.repaired();
                assert!(repaired == filtered(&mail), "{}", path.display());
                changed += usize::from(repaired != mail);
            }
        }
    }
    assert!(changed > 20, "{changed}");
}

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

/// A hostile mail costs linear time: nothing is read for each pair of parts, pictures or references.
#[test]
fn mail_with_thousands_of_parts_and_references_is_shown() {
    let mut html = "Content-Type: text/html\n\n".to_owned();
    for index in 0..3000 {
        writeln!(
            html,
            "<img src=\"cid:{index}@b\"><img src=\"https://www.example.org/{index}.gif\">"
        )
        .unwrap();
    }
    let pictures: Vec<String> = (0..3000)
        .map(|index| PICTURE.replace("<a@b>", &format!("<{index}@b>")))
        .collect();
    let mut parts = vec![html.as_str()];
    parts.extend(pictures.iter().map(String::as_str));
    let view = view(multipart("related", &parts));
    assert_eq!(view.parts().len(), 3001);
    assert!(
        view.parts()[1..]
            .iter()
            .all(|part| part.role == PartRole::Picture)
    );
    let remote = |state| {
        view.references()
            .iter()
            .filter(|it| it.state == state)
            .count()
    };
    assert_eq!(remote(ReferenceState::Remote), 3000);
}
