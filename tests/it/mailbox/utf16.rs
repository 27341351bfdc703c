//! Mail that a program saved as UTF-16. Another format gets it decoded, with each text in the charset that its part
//! declares; the same format gets the same bytes.

use std::fs;
use std::path::Path;

use crate::common::archives::zip;
use crate::common::folder::Folder;
use crate::common::programs::stderr;

const SEPARATOR: &str = "From ann@example.org Mon Jan  6 10:00:00 2020\r\n";

#[derive(Clone, Copy)]
struct Form {
    is_big: bool,
    has_mark: bool,
}

const FORMS: [Form; 4] = [
    Form {
        is_big: false,
        has_mark: true,
    },
    Form {
        is_big: false,
        has_mark: false,
    },
    Form {
        is_big: true,
        has_mark: true,
    },
    Form {
        is_big: true,
        has_mark: false,
    },
];

fn utf16(text: &str, form: Form) -> Vec<u8> {
    let mark = if form.has_mark { "\u{feff}" } else { "" };
    [mark, text]
        .concat()
        .encode_utf16()
        .flat_map(|unit| {
            if form.is_big {
                unit.to_be_bytes()
            } else {
                unit.to_le_bytes()
            }
        })
        .collect()
}

fn mail(charset: &str, text: &str) -> String {
    format!(
        "From: Ann <ann@example.org>\nSubject: plan\nDate: Mon, 6 Jan 2020 10:01:00 +0000\nMIME-Version: 1.0\n\
         Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html; charset={charset}\n\
         Content-Transfer-Encoding: 8bit\n\n\
         <img src=\"data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7\">{text}\n\n--b\n\
         Content-Type: application/pdf; name=a.pdf\nContent-Transfer-Encoding: base64\n\
         Content-Disposition: attachment; filename=a.pdf\n\nJVBERi0xLjQK\n--b--\n"
    )
    .replace('\n', "\r\n")
}

fn messages(maildir: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = ["cur", "new"]
        .iter()
        .flat_map(|part| fs::read_dir(maildir.join(part)).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort_by_key(|path| path.file_name().unwrap().to_owned());
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Writes the mail as a file, an mbox, a Maildir and an MH folder, and returns the names of the sources.
fn written(folder: &Folder, mail: &str, form: Form) -> [&'static str; 4] {
    let one = utf16(mail, form);
    folder.write("one.eml", &one);
    let mbox = [SEPARATOR, mail, "\r\n", SEPARATOR, mail, "\r\n"].concat();
    folder.write("box", utf16(&mbox, form));
    folder.write("md/cur/1.1.h:2,S", &one);
    folder.write("md/new/.keep", "");
    folder.write("mh/1", &one);
    folder.write("mh/.mh_sequences", "");
    ["one.eml", "box", "md", "mh"]
}

#[test]
fn mail_in_utf16_is_decoded_for_another_format_and_copied_to_the_same_one() {
    for form in FORMS {
        for (charset, text, octets) in [
            ("us-ascii", "x", b"x".as_slice()),
            ("utf-8", "\u{4e2d}\u{20ac}", "\u{4e2d}\u{20ac}".as_bytes()),
            ("iso-8859-2", "\u{159}", b"\xf8"),
            ("windows-1252", "\u{20ac}\u{e9}", b"\x80\xe9"),
        ] {
            let folder = Folder::new();
            let (mail, marker) = (mail(charset, text), mail(charset, "MARKER"));
            let (before, behind) = marker.split_once("MARKER").unwrap();
            let plain = [before.as_bytes(), octets, behind.as_bytes()].concat();
            for source in written(&folder, &mail, form) {
                let output = folder.output(&format!("inspect {source}"));
                let seen = String::from_utf8(output.stdout).unwrap();
                if source == "one.eml" {
                    assert!(seen.contains("application/pdf"), "{source}: {seen}");
                }
                let target = match source {
                    "md" => "mbox",
                    _ => "maildir",
                };
                folder.run(&format!(
                    "convert --output-format {target} {source} --output out"
                ));
                let found = match source {
                    "md" => vec![fs::read(folder.at("out")).unwrap()],
                    _ => messages(&folder.at("out")),
                };
                assert_eq!(found.len(), if source == "box" { 2 } else { 1 }, "{source}");
                for found in found {
                    let content = match source {
                        "md" => {
                            let start = memchr::memchr(b'\n', &found).unwrap() + 1;
                            assert!(found[start..].windows(octets.len()).any(|it| it == octets));
                            continue;
                        }
                        _ => found,
                    };
                    assert!(
                        content == plain,
                        "{source} {charset}: {}",
                        content.escape_ascii()
                    );
                }
                folder.run(&format!("compare {source} out"));
                let out = folder.at("out");
                let _ = fs::remove_file(&out).or_else(|_| fs::remove_dir_all(&out));
                folder.run(&format!("convert {source} --output same"));
                let file = match source {
                    "md" => "/cur/1.1.h:2,S",
                    "mh" => "/1",
                    _ => "",
                };
                let [old, new] = [source, "same"].map(|name| folder.at(&format!("{name}{file}")));
                assert!(fs::read(old).unwrap() == fs::read(new).unwrap(), "{source}");
                let same = folder.at("same");
                let _ = fs::remove_file(&same).or_else(|_| fs::remove_dir_all(&same));
            }
        }
    }
}

#[test]
fn file_in_utf16_that_should_change_is_copied_and_named_and_in_place_it_stays() {
    let folder = Folder::new();
    for source in written(&folder, &mail("us-ascii", ""), FORMS[0]) {
        let file = match source {
            "md" => "/cur/1.1.h:2,S",
            "mh" => "/1",
            _ => "",
        };
        let path = folder.at(&format!("{source}{file}"));
        let before = fs::read(&path).unwrap();
        for line in [
            format!("convert --embed data {source} --output same-{source}"),
            format!("convert --embed data --in-place {source}"),
        ] {
            let output = folder.output(&line);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{line}: {said}");
            assert!(
                said.contains("UTF-16") && said.contains("--output-format"),
                "{line}: {said}"
            );
            assert!(fs::read(&path).unwrap() == before, "{line}");
        }
        let copy = folder.at(&format!("same-{source}{file}"));
        assert!(fs::read(copy).unwrap() == before, "{source}");
    }
}

#[test]
fn text_that_its_declared_charset_cannot_encode_is_named_and_other_messages_are_written() {
    let folder = Folder::new();
    let (bad, good) = (mail("iso-8859-1", "\u{4e2d}"), mail("iso-8859-1", "\u{e9}"));
    folder.write("one.eml", utf16(&bad, FORMS[0]));
    let mbox = [SEPARATOR, &bad, "\r\n", SEPARATOR, &good, "\r\n"].concat();
    folder.write("box", utf16(&mbox, FORMS[0]));
    for (source, count) in [("one.eml", 0), ("box", 1)] {
        let output = folder.output(&format!(
            "convert --output-format maildir {source} --output md"
        ));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{source}: {said}");
        assert!(
            said.contains("iso-8859-1") && said.contains(source),
            "{said}"
        );
        assert!(said.contains("convert the file to UTF-8"), "{said}");
        if count > 0 {
            assert_eq!(messages(&folder.at("md")).len(), count);
        }
    }
}

#[test]
fn damaged_utf16_is_named_and_other_files_are_no_mail() {
    let whole = mail("us-ascii", "x");
    let lone = [utf16(&whole, FORMS[0]), b"\x00\xd8x\0".to_vec()].concat();
    let odd = [utf16(&whole, FORMS[0]), b"x".to_vec()].concat();
    let appended = [
        utf16(&[SEPARATOR, &whole, "\r\n"].concat(), FORMS[0]),
        [SEPARATOR, &whole].concat().into_bytes(),
    ]
    .concat();
    for (name, file) in [("lone.eml", lone), ("odd.eml", odd), ("box", appended)] {
        let folder = Folder::new();
        folder.write(name, &file);
        let output = folder.output(&format!(
            "convert --output-format maildir {name} --output md"
        ));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(
            said.contains("UTF-16") && said.contains(name),
            "{name}: {said}"
        );
    }
    for (file, is_named) in [
        (utf16("Dear all,\r\n", FORMS[0]), false),
        (b"M\0Z\0\x90\0\x03\0\0\0".to_vec(), false),
        (
            b"\xff\xfe\0\0F\0\0\0r\0\0\0o\0\0\0m\0\0\0:\0\0\0a\0\0\0\n\0\0\0".to_vec(),
            true,
        ),
    ] {
        let folder = Folder::new();
        folder.write("file", &file);
        let output = folder.output("convert file --output out");
        assert_ne!(output.status.code(), Some(0));
        assert_eq!(
            stderr(&output).contains("UTF-32"),
            is_named,
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn mail_in_utf16_in_an_archive_or_a_compressed_file_is_named() {
    let folder = Folder::new();
    let mbox = [SEPARATOR, &mail("us-ascii", "x"), "\r\n"].concat();
    let other = mbox.as_bytes();
    let wide = utf16(&mbox, FORMS[0]);
    folder.write("a.zip", zip(&[("plain", other), ("wide", &wide)]));
    let output = folder.output("convert a.zip --output out");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("UTF-16"), "{}", stderr(&output));
}

#[test]
fn mail_in_an_encoding_that_is_not_read_makes_a_directory_end_with_status_1() {
    let folder = Folder::new();
    let text = mail("us-ascii", "x");
    folder.write("all/one.eml", &text);
    let units = text.bytes().flat_map(|byte| [byte, 0, 0, 0]);
    folder.write("all/two.eml", units.collect::<Vec<u8>>());
    folder.write(
        "all/three",
        [
            b"#! rnews 10\n",
            text.as_bytes(),
            b"#! rnews 10\n",
            text.as_bytes(),
        ]
        .concat(),
    );
    for line in [
        "convert all --output same",
        "inspect all",
        "compare all same",
    ] {
        let output = folder.output(line);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{line}: {said}");
        // compare names the first file only.
        let is_compare = line.starts_with("compare");
        assert!(said.contains("Usenet"), "{line}: {said}");
        assert!(is_compare || said.contains("UTF-32"), "{line}: {said}");
    }
}
