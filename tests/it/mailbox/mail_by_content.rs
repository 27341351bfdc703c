//! Mail that only its content shows: in files with the name of a file in which a program keeps its state, with a first header
//! field that is longer than the bytes that show the format, and in documents that are zip archives.

use std::fs;
use std::path::Path;

use crate::common::archives::{tar, zip};
use crate::common::programs::{embody_in, stderr};
use crate::common::reports;

fn mail(name: &str) -> String {
    format!(
        "From: Ann <ann@example.org>\nTo: bob@example.org\nSubject: {name}\nDate: Mon, 6 Jan 2020 10:00:00 +0000\n\
         Message-ID: <{name}@example.org>\n\nhello {name}\n"
    )
}

fn mbox(name: &str) -> String {
    format!(
        "From ann@example.org Mon Jan  6 10:00:00 2020\n{}\n",
        mail(name)
    )
}

/// Returns the exit status, the numbers of files that were read, that are parts, without mail and not read, the number of
/// messages, and standard error.
fn verdicts(place: &Path, source: &str) -> (i32, [u64; 4], u64, String) {
    let output = embody_in(place, &["inspect", "--json", source]);
    let said = stderr(&output);
    let json = String::from_utf8(output.stdout).unwrap();
    let rows = reports::objects(&json);
    let found = rows.iter().rev().find_map(|row| row.get("survey"));
    let survey = found.unwrap_or_else(|| panic!("no survey: {said}"));
    let counts = ["read", "parts", "not_mail", "not_read"]
        .map(|verdict| survey["files"][verdict].as_u64().unwrap());
    let messages = survey["messages"].as_u64().unwrap();
    (output.status.code().unwrap(), counts, messages, said)
}

#[test]
fn file_with_the_name_of_a_state_file_is_read_or_named_if_it_contains_mail() {
    let (one, box_) = (mail("one"), mbox("one"));
    let ini = "[.ShellClassInfo]\r\nIconResource=x\r\n";
    for (folder, name, content, expected) in [
        // A plain directory.
        ("plain", "desktop.ini", one.as_str(), [2, 0, 0, 0]),
        ("plain", "Thumbs.db", &box_, [2, 0, 0, 0]),
        ("plain", "x.embody-resume", &one, [2, 0, 0, 0]),
        ("plain", ".embody-x", &one, [1, 0, 0, 1]),
        // The file makes the directory an MH folder.
        ("plain", ".overview", &box_, [1, 0, 0, 1]),
        (
            "plain",
            ".embody-host-77-00c0ffee-aB3xY9",
            &one,
            [1, 1, 0, 0],
        ),
        ("plain", "desktop.ini", ini, [1, 1, 0, 0]),
        ("plain", ".embody-x", "lock\n", [1, 1, 0, 0]),
        ("plain", "desktop.ini", "", [1, 1, 0, 0]),
        // A directory of a run that was stopped, and one that only has its name.
        ("plain/x.embody-resume", "1.eml", &one, [2, 0, 0, 0]),
        (
            "plain/.embody-host-77-00c0ffee-aB3xY9",
            "1.eml",
            &one,
            [1, 1, 0, 0],
        ),
        // Next to the messages of a Maildir.
        ("md/cur", "desktop.ini", &one, [1, 0, 0, 1]),
        ("md/new", ".hidden", &one, [1, 0, 0, 1]),
        ("md/cur", ".keep", "", [1, 1, 0, 0]),
        ("md/cur", ".keep", "x\n", [1, 1, 0, 0]),
        ("md/cur", ".nfs000000000000a1b2", &one, [1, 1, 0, 0]),
        ("md/tmp", "1578304801.M1P1.h", &one, [1, 1, 0, 0]),
        // In an MH folder.
        ("mh", ".overview", &one, [1, 1, 0, 1]),
        ("mh", ".xmhcache", &box_, [1, 1, 0, 1]),
        ("mh", "desktop.ini", &one, [2, 1, 0, 0]),
        ("mh", ".mh_sequences", "from: 1-3\ncur: 1\n", [1, 1, 0, 0]),
        ("mh", ".mh_sequences", &one, [1, 0, 0, 1]),
        ("mh", ",2", &one, [1, 2, 0, 0]),
        // An index next to its mailbox.
        ("plain", "Inbox.imap", &one, [1, 0, 0, 1]),
    ] {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        let source = folder.split('/').next().unwrap();
        match source {
            "plain" => {
                fs::create_dir(place.join("plain")).unwrap();
                fs::write(place.join("plain/Inbox.mbox"), mbox("kept")).unwrap();
            }
            "md" => {
                for part in ["cur", "new", "tmp"] {
                    fs::create_dir_all(place.join("md").join(part)).unwrap();
                }
                fs::write(place.join("md/cur/1578304800.M1P1.h:2,S"), mail("kept")).unwrap();
            }
            _ => {
                fs::create_dir(place.join("mh")).unwrap();
                fs::write(place.join("mh/.mh_sequences"), "cur: 1\n").unwrap();
                fs::write(place.join("mh/1"), mail("kept")).unwrap();
            }
        }
        fs::create_dir_all(place.join(folder)).unwrap();
        fs::write(place.join(folder).join(name), content).unwrap();
        let (status, counts, messages, said) = verdicts(place, source);
        let what = format!("{folder}/{name} {content:?}: {said}");
        assert_eq!(counts, expected, "{what}");
        assert_eq!(status, i32::from(expected[3] > 0), "{what}");
        assert_eq!(messages, expected[0], "{what}");
        assert_eq!(said.contains(name), expected[3] > 0, "{what}");
        assert_eq!(said.contains("rename"), expected[3] > 0, "{what}");
    }
}

#[test]
fn mail_with_a_very_long_first_field_is_read_in_every_place() {
    for field in [
        "X-Spam-Report",
        "References",
        "Cc",
        "ARC-Seal",
        "DKIM-Signature",
    ] {
        for value in [
            format!(" {}\n", "x".repeat(80 << 10)),
            format!(" <a@b>\n{}", "\t<0123456789@example.org>\n".repeat(4000)),
        ] {
            let long = format!("{field}:{value}{}", mail("long"));
            let banner = format!("+OK 1234 octets\n{long}");
            for content in [&long, &banner] {
                let temporary = tempfile::tempdir().unwrap();
                let place = temporary.path();
                fs::create_dir(place.join("mail")).unwrap();
                fs::write(place.join("mail/letter"), content).unwrap();
                fs::write(
                    place.join("mail/a.zip"),
                    zip(&[("letter", content.as_bytes())]),
                )
                .unwrap();
                fs::write(
                    place.join("mail/b.tar"),
                    tar(&[("letter", b'0', content.as_bytes())]),
                )
                .unwrap();
                let (status, counts, messages, said) = verdicts(place, "mail");
                let what = format!("{field}: {said}");
                assert_eq!((status, counts), (0, [5, 0, 0, 0]), "{what}");
                assert_eq!(messages, 3, "{what}");
            }
        }
    }
}

#[test]
fn long_text_without_the_header_of_a_mail_is_no_mail() {
    for text in [
        format!("{{\"From\":\"{}\"}}", "x".repeat(80 << 10)),
        format!("body: {{{}}}", "margin:0;".repeat(10_000)),
        format!("data:image/png;base64,{}", "QUJD".repeat(20_000)),
        "key: value\n".repeat(8000),
        format!("\n\nx-y: {}", "z".repeat(80 << 10)).replace("x-y", "color"),
    ] {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        fs::create_dir(place.join("mail")).unwrap();
        fs::write(place.join("mail/Inbox"), mbox("kept")).unwrap();
        fs::write(place.join("mail/other"), &text).unwrap();
        let (status, counts, _, said) = verdicts(place, "mail");
        assert_eq!((status, counts), (0, [1, 0, 1, 0]), "{said}");
    }
}

#[test]
fn mail_in_a_document_is_read_also_in_another_archive() {
    let message = mail("inside");
    let types: (&str, &[u8]) = ("[Content_Types].xml", b"<Types/>");
    let with_mail = zip(&[types, ("word/embeddings/x.eml", message.as_bytes())]);
    let without = zip(&[types, ("word/document.xml", b"<document/>")]);
    let kept = mbox("kept");
    for name in ["letter.docx", "letter.jar", "letter.bin", "letter.odt"] {
        for (document, messages) in [(&with_mail, 2), (&without, 1)] {
            for depth in 0..4 {
                let temporary = tempfile::tempdir().unwrap();
                let place = temporary.path();
                let mut archive = zip(&[("Inbox", kept.as_bytes()), (name, document)]);
                for _ in 1..depth {
                    archive = zip(&[("inner.zip", &archive)]);
                }
                fs::create_dir(place.join("mail")).unwrap();
                if depth == 0 {
                    fs::write(place.join("mail/Inbox"), &kept).unwrap();
                    fs::write(place.join("mail").join(name), document).unwrap();
                } else {
                    fs::write(place.join("mail/outer.zip"), &archive).unwrap();
                }
                let (status, counts, found, said) = verdicts(place, "mail");
                let what = format!("{name}, depth {depth}: {said}");
                // Archives are read down to the third level. The document is one, if it contains mail.
                let is_too_deep = depth == 3 && messages == 2;
                assert_eq!(status, i32::from(is_too_deep), "{what}");
                // The archive counts, too.
                assert_eq!(counts[3], 2 * u64::from(is_too_deep), "{what}");
                assert_eq!(found, messages - u64::from(is_too_deep), "{what}");
                assert_eq!(said.contains(name), is_too_deep, "{what}");
            }
        }
    }
}

#[test]
fn mailbox_in_tmp_of_a_maildir_is_named_and_a_directory_there_is_read() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    for folder in ["m/cur", "m/new", "m/tmp/saved"] {
        fs::create_dir_all(place.join(folder)).unwrap();
    }
    for (name, content) in [
        ("m/cur/1.M.h:2,S", mail("one")),
        ("m/tmp/2.M.h", mail("undelivered")),
        ("m/tmp/old.mbox", mbox("old")),
        ("m/tmp/saved/x.mbox", mbox("x")),
        ("m/tmp/saved/y.eml", mail("y")),
    ] {
        fs::write(place.join(name), content).unwrap();
    }
    let (status, counts, messages, said) = verdicts(place, "m");
    assert_eq!((status, counts, messages), (1, [3, 1, 0, 1], 3), "{said}");
    assert!(said.contains("m/tmp/old.mbox"), "{said}");
}
