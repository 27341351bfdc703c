//! Verdicts on single files in a directory: each kind of file next to a mailbox that is read.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Output;

use crate::common::archives::{tar, zip};
use crate::common::programs::embody_in;
use crate::common::reports;

fn mail(name: &str) -> String {
    format!(
        "From: Ann <ann@example.org>\nTo: bob@example.org\nSubject: {name}\nDate: Mon, 6 Jan 2020 10:00:00 +0000\n\
         Message-ID: <{name}@example.org>\n\nhello {name}\n"
    )
}

fn mbox(names: &[&str]) -> String {
    let entry = |name: &&str| {
        format!(
            "From ann@example.org Mon Jan  6 10:00:00 2020\n{}\n",
            mail(name)
        )
    };
    names.iter().map(entry).collect()
}

/// Creates an empty Maildir with the name `box`.
fn make_maildir(place: &Path) {
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(place.join("box").join(part)).unwrap();
    }
}

fn run(place: &Path, arguments: &[&str]) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = embody_in(place, arguments);
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (status.code().unwrap(), text(&stdout), text(&stderr))
}

/// Returns the exit status, the numbers of files that were read, that are parts, without mail and not read, and the messages.
fn verdicts(place: &Path, source: &str) -> (i32, [u64; 4], String) {
    let (status, stdout, stderr) = run(place, &["inspect", "--json", source]);
    let survey = reports::objects(&stdout)
        .iter()
        .filter_map(|row| row.get("survey").cloned())
        .next_back()
        .unwrap_or_else(|| panic!("no survey: {stderr}"));
    let counts = ["read", "parts", "not_mail", "not_read"]
        .map(|verdict| survey["files"][verdict].as_u64().unwrap());
    (status, counts, stderr)
}

const TEXT: &[u8] = b"rest of the text\n";
const NOISE: &[u8] = b"\x01\x02\0\x03 noise \x04\0";

#[test]
fn file_next_to_a_mailbox_has_the_verdict_of_its_content_and_is_named_if_it_is_not_read() {
    let letter = "Subject: plan\nThis line is broken\nX-Id: 1\n\nhello\n";
    let lines = "mkdir -p mail\ncd mail\n".repeat(8);
    let script = format!("#!/bin/sh\n{lines}cat <<END\n{}END\n", mbox(&["quoted"]));
    let after_zeros = format!("\0\0\0\0\n{}", mail("zeros"));
    let arj = b"\x60\xea\x2c\0\x22\x0b\x01\x02\x10\0\x02\0\0".as_slice();
    for (name, content, expected, named) in [
        ("a.zip.002", NOISE, [1, 0, 0, 1], "join all parts"),
        ("a.tar.gz.ab", NOISE, [1, 0, 0, 1], "join all parts"),
        ("a.7z.003", NOISE, [1, 0, 0, 1], "join all parts"),
        ("a.z01", NOISE, [1, 0, 0, 1], "join all parts"),
        ("a.r07", NOISE, [1, 0, 0, 1], "join all parts"),
        ("old.mbox.02", TEXT, [1, 0, 0, 1], "join all parts"),
        ("photo.002", NOISE, [1, 0, 1, 0], ""),
        ("page.de", TEXT, [1, 0, 1, 0], ""),
        ("Inbox.mbox.br", NOISE, [1, 0, 0, 1], "decompress the file"),
        ("mail.tar.enc", NOISE, [1, 0, 0, 1], "decrypt the file"),
        ("x.arj", arj, [1, 0, 0, 1], "ARJ"),
        ("x", b"StuffIt!\0\0", [1, 0, 0, 1], "StuffIt"),
        ("x.lrz", b"LRZI\0\x06", [1, 0, 0, 1], "lrzip"),
        ("empty.zip", b"", [1, 0, 0, 1], "get another copy"),
        ("Inbox.mbox.gz", b"", [1, 0, 0, 1], "get another copy"),
        ("empty.html", b"", [1, 0, 1, 0], ""),
        ("Drafts", b"", [2, 0, 0, 0], ""),
        ("Dr. Who", b"", [2, 0, 0, 0], ""),
        ("empty.mbox", b"", [2, 0, 0, 0], ""),
        ("letter", letter.as_bytes(), [1, 0, 0, 1], ".eml"),
        ("letter.eml", letter.as_bytes(), [2, 0, 0, 0], ""),
        ("test.sh", script.as_bytes(), [1, 0, 1, 0], ""),
        ("saved", after_zeros.as_bytes(), [1, 0, 0, 1], "NUL bytes"),
    ] {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        fs::create_dir(place.join("mail")).unwrap();
        fs::write(place.join("mail/Inbox"), mbox(&["kept"])).unwrap();
        fs::write(place.join("mail").join(name), content).unwrap();
        let (status, counts, stderr) = verdicts(place, "mail");
        assert_eq!(counts, expected, "{name}: {stderr}");
        assert_eq!(status, i32::from(expected[3] > 0), "{name}: {stderr}");
        assert_eq!(stderr.contains(name), expected[3] > 0, "{name}: {stderr}");
        assert!(stderr.contains(named), "{name}: {stderr}");
    }
}

#[test]
fn index_is_a_part_of_a_mailbox_and_mail_with_a_similar_name_is_read_or_named() {
    let mork =
        b"// <!-- <mdb:mork:z v=\"1.4\"/> -->\n< <(a=c)> // (f=iso-8859-1)\n  (B8=Inbox)(B9=0)>\n"
            .to_vec();
    let zeros = vec![0; 100];
    let binary = [&b"\0\0\0\x0bTOC1\0\x01\x02"[..], &[0xff; 90]].concat();
    let other = mbox(&["other"]).into_bytes();
    let after_zeros = [&zeros[..], &other].concat();
    // The numbers of files that are read, that are parts, without mail and not read, with the mailbox next to the file.
    for (name, content, expected) in [
        ("Inbox.msf", &mork, [1, 1, 0, 0]),
        ("Inbox.msf", &Vec::new(), [1, 1, 0, 0]),
        ("table_of_contents", &binary, [1, 1, 0, 0]),
        ("table_of_contents", &zeros, [1, 1, 0, 0]),
        ("dovecot.index.cache", &binary, [1, 1, 0, 0]),
        ("maildirsize", &b"1000S\n10 1\n".to_vec(), [1, 1, 0, 0]),
        // The content decides first.
        ("Inbox.msf", &other, [2, 0, 0, 0]),
        ("table_of_contents", &other, [2, 0, 0, 0]),
        ("Inbox.msf", &after_zeros, [1, 0, 0, 1]),
        ("table_of_contents", &after_zeros, [1, 0, 0, 1]),
        // Mailboxes with similar names, which a crash has emptied or damaged.
        ("table_of_contents of 2020", &zeros, [1, 0, 0, 1]),
        ("subscriptions and news", &zeros, [1, 0, 0, 1]),
        ("table_of_contents.mbox", &binary, [1, 0, 0, 1]),
        ("notes", &mork, [1, 0, 1, 0]),
    ] {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        fs::create_dir(place.join("mail")).unwrap();
        fs::write(place.join("mail/Inbox"), mbox(&["kept"])).unwrap();
        fs::write(place.join("mail").join(name), content).unwrap();
        let (status, counts, stderr) = verdicts(place, "mail");
        assert_eq!(counts, expected, "{name}: {stderr}");
        assert_eq!(status, i32::from(expected[3] > 0), "{name}: {stderr}");
    }
}

#[test]
fn empty_file_with_an_index_of_thunderbird_is_a_mailbox() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    fs::create_dir(place.join("mail")).unwrap();
    fs::write(place.join("mail/Inbox"), mbox(&["kept"])).unwrap();
    fs::write(place.join("mail/example.com"), "").unwrap();
    fs::write(place.join("mail/example.com.msf"), "// <!-- <mdb:mork").unwrap();
    let (status, counts, stderr) = verdicts(place, "mail");
    assert_eq!((status, counts), (0, [2, 1, 0, 0]), "{stderr}");
}

#[test]
fn mailbox_among_messages_is_named_and_no_message_is_made_of_it() {
    let several = mbox(&["one", "two"]);
    let message = mail("single");
    let emlx = format!(
        "{}\n{message}<?xml version=\"1.0\"?>\n<plist version=\"1.0\">\n<dict/>\n</plist>\n",
        message.len()
    );
    let mmdf = format!("\u{1}\u{1}\u{1}\u{1}\n{message}\u{1}\u{1}\u{1}\u{1}\n");
    let separated = mbox(&["single"]);
    let article = format!("#! rnews {}\n{message}", message.len());
    let after_zeros = |text: &str| ["\0".repeat(4096), text.to_owned()].concat();
    for (content, named) in [
        (several.as_str(), "among messages"),
        (&emlx, "among messages"),
        (&mmdf, "among messages"),
        (&article.repeat(2), "Usenet news"),
        (&after_zeros(&message), "NUL bytes"),
        (&after_zeros(&several), "NUL bytes"),
        (&after_zeros(""), "NUL bytes"),
        (&separated, ""),
        (&message, ""),
        (&article, ""),
    ] {
        let is_read = named.is_empty();
        for (kept, other) in [
            (
                "box/cur/1578304800.M1P1.h:2,S",
                "box/cur/1578304801.M2P1.h:2,S",
            ),
            ("box/cur/1578304800.M1P1.h:2,S", "box/new/old"),
            ("box/1", "box/2"),
        ] {
            let temporary = tempfile::tempdir().unwrap();
            let place = temporary.path();
            if kept == "box/1" {
                fs::create_dir(place.join("box")).unwrap();
                fs::write(place.join("box/.mh_sequences"), "cur: 1\n").unwrap();
            } else {
                make_maildir(place);
            }
            fs::write(place.join(kept), mail("kept")).unwrap();
            fs::write(place.join(other), content).unwrap();
            let arguments = [
                "convert",
                "box",
                "--output-format",
                "mbox",
                "--output",
                "new",
            ];
            let (status, _, stderr) = run(place, &arguments);
            assert_eq!(status, i32::from(!is_read), "{other}: {stderr}");
            assert!(stderr.contains(named), "{stderr}");
            assert_eq!(stderr.contains(other), !is_read, "{stderr}");
            let new = fs::read_to_string(place.join("new")).unwrap();
            let count = new.matches("\nhello ").count();
            assert_eq!(count, 1 + usize::from(is_read), "{other}: {new}");
            let (status, stdout, stderr) = run(place, &["compare", "box", "new"]);
            assert_eq!(status, i32::from(!is_read), "{stdout}{stderr}");
        }
    }
}

#[test]
fn damaged_file_among_messages_in_an_archive_is_named() {
    let article = format!("#! rnews 9\n{}", mail("article"));
    let long = format!("{article}{}\n", "a line of the article\n".repeat(4000));
    let picture = "\u{89}PNG\r\n\u{1a}\n\0\0\0\rIHDR";
    for (content, named) in [
        (["\0".repeat(4096), mail("zeros")].concat(), "NUL bytes"),
        ("\0".repeat(4096), "NUL bytes"),
        (article.repeat(2), "Usenet news"),
        (long.repeat(2), "Usenet news"),
        (picture.to_owned(), "among messages"),
    ] {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        let kept = mail("kept");
        let members = [
            ("box/cur/1578304800.M1P1.h:2,S", kept.as_bytes()),
            ("box/cur/1578304801.M2P1.h:2,S", content.as_bytes()),
        ];
        fs::create_dir(place.join("mail")).unwrap();
        fs::write(place.join("mail/a.zip"), zip(&members)).unwrap();
        let (status, counts, stderr) = verdicts(place, "mail");
        assert_eq!((status, counts[0], counts[3]), (1, 1, 2), "{stderr}");
        assert!(
            stderr.contains(named) && stderr.contains("M2P1"),
            "{stderr}"
        );
    }
}

#[test]
fn outlook_mailbox_in_an_archive_is_counted_once_and_as_it_was_read() {
    let damaged = [&b"!BDN"[..], &[0; 2000]].concat();
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    fs::create_dir(place.join("mail")).unwrap();
    fs::write(place.join("mail/Inbox"), mbox(&["kept"])).unwrap();
    fs::write(place.join("mail/a.zip"), zip(&[("old.pst", &damaged)])).unwrap();
    let (status, counts, stderr) = verdicts(place, "mail");
    assert_eq!((status, counts), (1, [2, 0, 0, 1]), "{stderr}");
    assert!(stderr.contains("mail/a.zip/old.pst"), "{stderr}");
    fs::remove_file(place.join("mail/a.zip")).unwrap();
    let packed = super::verdicts::gzipped(&damaged);
    fs::write(place.join("mail/old.pst.gz"), packed).unwrap();
    let (status, counts, stderr) = verdicts(place, "mail");
    assert_eq!((status, counts), (1, [1, 0, 0, 1]), "{stderr}");
}

#[test]
fn mail_with_the_name_of_a_file_with_keywords_is_named_and_does_not_end_the_run() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    make_maildir(place);
    fs::write(place.join("box/cur/1578304800.M1P1.h:2,S"), mail("one")).unwrap();
    fs::write(place.join("box/dovecot-keywords"), mail("two")).unwrap();
    fs::write(place.join("box/zz.mbox"), mbox(&["three"])).unwrap();
    let (status, _, stderr) = run(place, &["convert", "box", "--output", "new"]);
    assert_eq!(status, 1, "{stderr}");
    assert!(
        stderr.contains("box/dovecot-keywords: a file with mail"),
        "{stderr}"
    );
    let read = |name: &str| fs::read_to_string(place.join("new").join(name)).unwrap();
    assert_eq!(read("dovecot-keywords"), mail("two"));
    assert_eq!(read("zz.mbox"), mbox(&["three"]));
}

/// Checks the verdict on a file next to a mailbox, and what names it if it is not read.
fn check_file(name: &str, content: &[u8], named: Option<&str>) {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    fs::create_dir(place.join("mail")).unwrap();
    fs::write(place.join("mail/Inbox"), mbox(&["kept"])).unwrap();
    fs::write(place.join("mail").join(name), content).unwrap();
    let (status, counts, stderr) = verdicts(place, "mail");
    let expected = match named {
        Some(_) => [1, 0, 0, 1],
        None => [1, 0, 1, 0],
    };
    let start = content[..content.len().min(300)].escape_ascii();
    assert_eq!(counts, expected, "{name} {start}: {stderr}");
    assert_eq!(status, i32::from(named.is_some()), "{name}: {stderr}");
    assert!(
        stderr.contains(named.unwrap_or_default()),
        "{name}: {stderr}"
    );
}

/// Returns members of an archive, and whether each is or may be mail.
fn members() -> Vec<(&'static str, Vec<u8>, bool)> {
    let (message, mailbox) = (mail("packed"), mbox(&["packed"]));
    vec![
        ("1.eml", message.clone().into(), true),
        (
            "x.MBOX.gz",
            super::verdicts::gzipped(mailbox.as_bytes()),
            true,
        ),
        (
            "box/cur/1578304800.M1P1.h:2,S",
            message.clone().into(),
            true,
        ),
        ("inbox/7", message.clone().into(), true),
        ("Mail/Inbox", mailbox.clone().into(), true),
        ("old.mbox", mailbox.into(), true),
        ("setup.ini", message.into(), false),
        (
            "lang/de.msg",
            b"::msgcat::mcset de Yes Ja\n".to_vec(),
            false,
        ),
        ("README", b"From here on, read on.\n".to_vec(), false),
        ("data", vec![7; 5000], false),
    ]
}

#[test]
fn zip_archive_after_other_data_is_named_if_it_contains_mail() {
    // The data of a picture contain all bytes, also line feeds.
    let data: Vec<u8> = (0..=255).cycle().take(4096).collect();
    let png = [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], &data].concat();
    let pdf = [
        "%PDF-1.7\n",
        &"1 0 obj\n<< /Type /Page >>\nendobj\n".repeat(10),
    ]
    .concat();
    let stubs: [(&[u8], &str); 9] = [
        (b"MZ", "self-extracting"),
        (b"\x7fELF", "self-extracting"),
        (
            b"#!/bin/sh\ncd\ncd\ncd\ncd\ncd\ncd\ncd\ncd\ncd\ncd\nexec unzip \"$0\"\n",
            "zip archive that contains mail",
        ),
        (&[b'x'; 100], "zip archive that contains mail"),
        (&png, "zip archive that contains mail"),
        (
            b"\xff\xd8\xff\xe0\0\x10JFIF\0",
            "zip archive that contains mail",
        ),
        (b"Cr24\x03\0\0\0", "zip archive that contains mail"),
        (b"SQLite format 3\0", "zip archive that contains mail"),
        (pdf.as_bytes(), "zip archive that contains mail"),
    ];
    for (turn, (member, content, is_mail)) in members().into_iter().enumerate() {
        for (number, (stub, named)) in stubs.into_iter().enumerate() {
            if number != turn % stubs.len() && member != "1.eml" && member != "setup.ini" {
                continue;
            }
            for length in [1000, 160_000] {
                let archive = zip(&[("a.txt", b"text"), (member, &content)]);
                let file = [stub, &vec![0; length], &archive].concat();
                check_file("backup", &file, is_mail.then_some(named));
            }
        }
    }
    let software = zip(&[
        ("META-INF/MANIFEST.MF", b"Manifest-Version: 1.0\n"),
        ("a/B.class", b"\xca\xfe\xba\xbe"),
    ]);
    for stub in [
        &b"#!/bin/bash\nexec java -jar \"$0\"\n"[..],
        b"Cr24\x03\0\0\0",
    ] {
        check_file("run", &[stub, &software].concat(), None);
    }
}

/// Compresses data.
type Compress = fn(&[u8]) -> Vec<u8>;

#[test]
fn shell_script_with_an_archive_is_named_if_it_contains_mail_or_cannot_be_listed() {
    let script = format!(
        "#!/bin/sh\n# Makeself\n{}exit 0\n",
        "echo line\n".repeat(1000)
    );
    let compressions: [Compress; 5] = [
        |plain| plain.to_vec(),
        super::verdicts::gzipped,
        |plain| zstd::encode_all(plain, 3).unwrap(),
        |plain| {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(9));
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        },
        |plain| {
            let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        },
    ];
    let picture = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", &[9; 300_000][..]].concat();
    for (member, content, is_mail) in members() {
        let archive = tar(&[("a.png", b'0', &picture), (member, b'0', &content)]);
        for compress in compressions {
            let file = [script.as_bytes(), &compress(&archive)].concat();
            let named = "a shell script with an archive that contains mail";
            check_file("backup.run", &file, is_mail.then_some(named));
        }
    }
    // The archive is longer than the part that is searched.
    let large = tar(&[("a.bin", b'0', &vec![9; 20 << 20])]);
    for (number, compress) in compressions.into_iter().enumerate() {
        let file = [script.as_bytes(), &compress(&large)].concat();
        let named = "an archive that may contain mail";
        check_file("setup.run", &file, (number > 0).then_some(named));
    }
    check_file(
        "a.sh",
        b"#!/bin/sh\nprintf '\n\x1f\x8b\x08 is gzip'\n",
        None,
    );
}

#[test]
fn archive_after_other_data_within_an_archive_is_named_if_it_contains_mail() {
    let kept = mail("packed");
    let script = |data: &[u8]| [&b"#!/bin/sh\n"[..], &b"cd\n".repeat(20), data].concat();
    for (member, is_mail) in [("1.eml", true), ("setup.ini", false)] {
        let zipped = zip(&[("a.txt", b"text"), (member, kept.as_bytes())]);
        let tarred = tar(&[("a.txt", b'0', b"text"), (member, b'0', kept.as_bytes())]);
        for file in [
            [&b"MZ"[..], &[0; 1000], &zipped].concat(),
            [&[b'x'; 100][..], &zipped].concat(),
            script(&zipped),
            script(&tarred),
            script(&super::verdicts::gzipped(&tarred)),
        ] {
            let temporary = tempfile::tempdir().unwrap();
            let place = temporary.path();
            fs::create_dir(place.join("mail")).unwrap();
            let inbox = mbox(&["kept"]);
            let archive = zip(&[("Inbox", inbox.as_bytes()), ("backup", &file)]);
            fs::write(place.join("mail/a.zip"), archive).unwrap();
            let (status, counts, stderr) = verdicts(place, "mail");
            assert_eq!(status, i32::from(is_mail), "{stderr}");
            // The archive around the file is not read completely, either.
            let expected = if is_mail { [0, 2] } else { [1, 0] };
            assert_eq!(counts[2..], expected, "{stderr}");
        }
    }
}

#[test]
fn inspect_counts_an_empty_message_as_other_commands_do() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    make_maildir(place);
    fs::write(place.join("box/cur/1578304800.M1P1.h:2,S"), mail("one")).unwrap();
    fs::write(place.join("box/cur/1578304801.M2P1.h:2,S"), "").unwrap();
    let arguments = [
        "convert",
        "box",
        "--output-format",
        "mbox",
        "--output",
        "new",
    ];
    assert_eq!(run(place, &arguments).0, 0);
    for source in ["box", "new"] {
        let (status, stdout, stderr) = run(place, &["inspect", "--json", source]);
        let rows = reports::objects(&stdout);
        let survey = &rows.last().unwrap()["survey"];
        assert_eq!(
            (status, &survey["messages"]),
            (0, &2.into()),
            "{source}: {stderr}"
        );
    }
}

#[test]
fn mail_after_nul_bytes_or_an_end_of_file_mark_in_an_mbox_is_named() {
    for mark in ["\0".repeat(4096), "\0".to_owned(), "\u{1a}".to_owned()] {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        let mails = [mbox(&["one"]), mbox(&["two", "three"])].join(&mark);
        fs::create_dir(place.join("mail")).unwrap();
        fs::write(place.join("mail/Inbox"), mails).unwrap();
        let arguments = [
            "convert",
            "mail",
            "--output-format",
            "maildir",
            "--output",
            "new",
        ];
        let (status, _, stderr) = run(place, &arguments);
        assert_eq!(status, 1, "{stderr}");
        assert!(
            stderr.contains("follows other bytes on the same line"),
            "{stderr}"
        );
        let (status, stdout, stderr) = run(place, &["compare", "mail", "new"]);
        assert_eq!(status, 1, "{stdout}{stderr}");
    }
}

#[test]
fn folder_with_a_number_as_its_name_does_not_meet_a_message_of_an_mh_folder() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    fs::create_dir_all(place.join("mail/Archive")).unwrap();
    fs::write(
        place.join("mail/Archive.mbox"),
        mbox(&["one", "two", "three"]),
    )
    .unwrap();
    fs::write(place.join("mail/Archive/2.mbox"), mbox(&["old"])).unwrap();
    fs::write(place.join("mail/zz.mbox"), mbox(&["last"])).unwrap();
    let arguments = [
        "convert",
        "mail",
        "--output-format",
        "mh",
        "--output",
        "new",
    ];
    let (status, _, stderr) = run(place, &arguments);
    assert_eq!(status, 0, "{stderr}");
    let (status, stdout, stderr) = run(place, &["compare", "mail", "new"]);
    assert_eq!(status, 0, "{stdout}{stderr}");
    assert!(
        stdout.contains("5 ") || stderr.contains("5 "),
        "{stdout}{stderr}"
    );
}

#[test]
fn folder_of_thunderbird_with_the_name_of_an_archive_is_no_damaged_archive() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    fs::create_dir_all(place.join("mail/old.zip")).unwrap();
    fs::write(place.join("mail/old.zip/Inbox"), mbox(&["one"])).unwrap();
    let arguments = [
        "convert",
        "mail",
        "--output-format",
        "thunderbird",
        "--output",
        "new",
    ];
    let (status, _, stderr) = run(place, &arguments);
    assert_eq!(status, 0, "{stderr}");
    let result = ["new.sbd", "new"]
        .into_iter()
        .find(|name| place.join(name).is_dir());
    let (status, stdout, stderr) = run(place, &["compare", "mail", result.unwrap()]);
    assert_eq!(status, 0, "{stdout}{stderr}");
}

#[test]
fn mail_after_the_property_list_of_an_emlx_file_is_named() {
    let message = mail("one");
    let list = "<?xml version=\"1.0\"?>\n<plist version=\"1.0\">\n<dict/>\n</plist>\n";
    let emlx = format!("{}\n{message}{list}", message.len());
    for (behind, is_named) in [
        (mail("two"), true),
        (format!("\n{}", mbox(&["two"])), true),
        ("\n\n".to_owned(), false),
    ] {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        fs::create_dir(place.join("mail")).unwrap();
        fs::write(place.join("mail/1.emlx"), [emlx.as_str(), &behind].concat()).unwrap();
        let (status, _, stderr) = verdicts(place, "mail");
        assert_eq!(status, i32::from(is_named), "{behind}: {stderr}");
        assert_eq!(stderr.contains("1.emlx: "), is_named, "{stderr}");
    }
}

#[test]
fn merge_into_the_name_of_an_mbox_writes_an_mbox_whatever_the_sources_are() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    fs::create_dir_all(place.join("in/box/cur")).unwrap();
    fs::create_dir_all(place.join("in/box/new")).unwrap();
    fs::write(place.join("in/box/cur/1.M1P1.h:2,S"), mail("one")).unwrap();
    fs::write(place.join("in/old.mbox"), mbox(&["two"])).unwrap();
    for (sources, output, mails) in [
        (&["in/box"][..], "1.mbox", "1 mail "),
        (&["in/box", "in/old.mbox"], "2.mbox", "2 mails "),
        (&["in/old.mbox", "in/box"], "3.mbox.gz", "2 mails "),
        (&["in"], "4.mbox", "2 mails "),
    ] {
        let arguments = [&["merge"], sources, &["--output", output]].concat();
        let (status, _, stderr) = run(place, &arguments);
        assert_eq!(status, 0, "{output}: {stderr}");
        assert!(place.join(output).is_file(), "{output}: {stderr}");
        assert!(stderr.contains(mails), "{output}: {stderr}");
    }
}

#[test]
fn refusal_of_an_output_name_offers_an_mbox_only_where_one_can_be_made() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    fs::create_dir_all(place.join("one/cur")).unwrap();
    fs::create_dir_all(place.join("one/new")).unwrap();
    fs::write(place.join("one/cur/1.M1P1.h:2,S"), mail("one")).unwrap();
    fs::create_dir(place.join("all")).unwrap();
    fs::write(place.join("all/Inbox"), mbox(&["two"])).unwrap();
    fs::write(place.join("all/Sent"), mbox(&["three"])).unwrap();
    for (source, offers) in [("one", true), ("all", false)] {
        let (status, _, stderr) = run(place, &["convert", source, "--output", "new.mbox"]);
        assert_eq!(status, 2, "{stderr}");
        let is_offered = stderr.contains("--output-format mbox");
        assert_eq!(is_offered, offers, "{stderr}");
    }
}

#[test]
fn summaries_count_files_that_were_not_read_or_are_ignored_once_and_alike() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    for source in ["mail", "copy"].map(|name| place.join(name)) {
        fs::create_dir(&source).unwrap();
        fs::write(source.join("Inbox"), mbox(&["kept"])).unwrap();
        fs::write(source.join("notes.txt"), "no mail\n").unwrap();
        fs::write(source.join("old.7z"), b"7z\xbc\xaf\x27\x1c\0\x04").unwrap();
        fs::write(source.join("bad.zip"), &zip(&[("Inbox", b"x")])[..30]).unwrap();
    }
    let not_read = "4 files: 1 read, 1 without mail, 2 not read.";
    for arguments in [
        &["convert", "mail", "--output", "new"][..],
        &["merge", "mail", "--output", "merged"],
        &["inspect", "mail"],
        &["inspect", "--duplicates", "mail"],
        &["compare", "mail", "copy"],
    ] {
        let (status, stdout, stderr) = run(place, arguments);
        let text = format!("{stdout}{stderr}");
        assert_eq!(status, 1, "{text}");
        assert!(text.contains(not_read), "{arguments:?}: {text}");
        assert!(!text.contains("notes.txt"), "{arguments:?}: {text}");
        assert!(!text.contains("1 file or message"), "{arguments:?}: {text}");
    }
    for arguments in [
        &["merge", "mail", "--output", "merged 3", "--json"][..],
        &["inspect", "--duplicates", "--json", "mail"],
        &["inspect", "--json", "mail"],
        &["compare", "--json", "mail", "copy"],
    ] {
        let (_, stdout, _) = run(place, arguments);
        let named: std::collections::BTreeSet<String> = reports::objects(&stdout)
            .iter()
            .filter(|row| row["outcome"] == "not-read")
            .map(|row| row["source"].as_str().unwrap().to_owned())
            .filter(|path| !path.starts_with("copy/"))
            .collect();
        assert_eq!(
            named.into_iter().collect::<Vec<_>>(),
            ["mail/bad.zip", "mail/old.7z"],
            "{arguments:?}: {stdout}"
        );
    }
    let ignored = "4 files: 1 read, 1 without mail, 2 ignored.";
    for arguments in [
        &["convert", "mail", "--output", "new 2"][..],
        &["merge", "mail", "--output", "merged 2"],
        &["inspect", "mail"],
        &["compare", "mail", "copy"],
    ] {
        let options = ["--ignore", "*.7z", "--ignore", "*.zip"];
        let (status, stdout, stderr) = run(place, &[arguments, &options].concat());
        let text = format!("{stdout}{stderr}");
        assert_eq!(status, 0, "{text}");
        assert!(text.contains(ignored), "{arguments:?}: {text}");
    }
}

#[cfg(unix)]
#[test]
fn directory_of_a_maildir_that_cannot_be_read_is_named_and_counted_once() {
    use std::os::unix::fs::PermissionsExt as _;

    use crate::common::ordinary::{OrdinaryUser, USER};

    let Some(user) = OrdinaryUser::new("directory of a Maildir that cannot be read") else {
        return;
    };
    for (name, content) in [
        ("box/cur/1578304800.M1P1.h:2,S", mail("kept")),
        ("box/new/1578304801.M2P1.h", mail("closed")),
    ] {
        user.write(&user.at(name), content, (USER, USER), 0o600);
    }
    let closed = user.at("box/new");
    // The directory belongs to root if root runs the tests.
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(user.at("box/cur"), fs::Permissions::from_mode(0o755)).unwrap();
    for line in [
        "inspect box",
        "convert box --output new",
        "convert box --output-format mbox --output new.mbox",
    ] {
        let stderr = user.run(line, 1);
        let named = stderr.matches("box/new: cannot be read").count();
        assert_eq!(named, 1, "{stderr}");
        let has_counts = stderr.contains("2 files: 1 read, 1 not read.");
        assert!(has_counts || line.starts_with("inspect"), "{stderr}");
    }
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
}

/// Returns the starts of files that are no messages.
fn files_without_mail() -> [Vec<u8>; 9] {
    let noise: Vec<u8> = (0..600_u32)
        .map(|number| (number * 97 % 251) as u8)
        .collect();
    let with = |start: &[u8]| [start, &noise].concat();
    [
        with(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
        with(b"\xff\xd8\xff\xe0\0\x10JFIF\0From: x\nSubject: y\n"),
        with(b"GIF89a\x01\0\x01\0"),
        with(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n"),
        with(b"RIFF\x24\0\0\0WEBPVP8 "),
        with(b"\0\0\0\x18ftypmp42"),
        with(b"\x7fELF\x02\x01\x01"),
        with(b"SQLite format 3\0"),
        vec![0; 4096],
    ]
}

#[test]
fn file_without_mail_among_messages_is_named_and_not_read_as_a_message() {
    for content in files_without_mail() {
        for other in ["cur/1578304801.M2P1.h:2,S", "new/photo.png", "2"] {
            let temporary = tempfile::tempdir().unwrap();
            let place = temporary.path();
            let kept = if other == "2" {
                fs::create_dir(place.join("box")).unwrap();
                fs::write(place.join("box/.mh_sequences"), "").unwrap();
                "1"
            } else {
                make_maildir(place);
                "cur/1578304800.M1P1.h:2,S"
            };
            fs::write(place.join("box").join(kept), mail("kept")).unwrap();
            fs::write(place.join("box").join(other), &content).unwrap();
            let shown = content[..12].escape_ascii().to_string();
            let (status, counts, stderr) = verdicts(place, "box");
            assert_eq!(
                (status, counts[0], counts[3]),
                (1, 1, 1),
                "{shown}: {stderr}"
            );
            let arguments = [
                "convert",
                "box",
                "--output-format",
                "mbox",
                "--output",
                "new.mbox",
            ];
            let (status, _, stderr) = run(place, &arguments);
            assert_eq!(status, 1, "{shown}: {stderr}");
            let written = fs::read_to_string(place.join("new.mbox")).unwrap();
            assert_eq!(
                written.matches("\nMessage-ID: ").count(),
                1,
                "{shown}: {written}"
            );
            assert_eq!(
                written.matches("\nFrom MAILER").count(),
                0,
                "{shown}: {written}"
            );
        }
    }
}

/// Returns the number before the first "messages" or "message" in a text.
fn messages_in(text: &str) -> u64 {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().position(|word| word.starts_with("message"));
    words[at.unwrap_or_else(|| panic!("{text}")) - 1]
        .parse()
        .unwrap()
}

#[test]
fn file_that_is_not_a_message_counts_as_none_in_every_text() {
    let pegasus = [&b"Inbox\0"[..], &[0; 122], mail("pegasus").as_bytes()].concat();
    let mut contents = files_without_mail().to_vec();
    contents.push(zip(&[("x.eml", mail("packed").as_bytes())]));
    contents.push(pegasus);
    // A compressed message that is damaged.
    contents.push(b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xff\xff\xff".to_vec());
    for content in contents {
        for other in ["cur/1578304801.M2P1.h:2,S", "2"] {
            let temporary = tempfile::tempdir().unwrap();
            let place = temporary.path();
            let kept = if other == "2" {
                fs::create_dir(place.join("box")).unwrap();
                fs::write(place.join("box/.mh_sequences"), "").unwrap();
                "1"
            } else {
                make_maildir(place);
                "cur/1578304800.M1P1.h:2,S"
            };
            fs::write(place.join("box").join(kept), mail("kept")).unwrap();
            fs::write(place.join("box").join(other), &content).unwrap();
            let shown = content[..12].escape_ascii().to_string();
            let (_, text, _) = run(place, &["inspect", "box"]);
            assert_eq!(messages_in(&text), 1, "{shown}: {text}");
            for arguments in [
                &["convert", "box", "--output", "copy"][..],
                &[
                    "convert",
                    "box",
                    "--output-format",
                    "maildir",
                    "--output",
                    "md",
                ],
                &[
                    "convert",
                    "box",
                    "--output-format",
                    "mbox",
                    "--output",
                    "new",
                ],
                &["convert", "--in-place", "box"],
            ] {
                let (status, _, said) = run(place, arguments);
                assert_eq!(status, 1, "{shown}: {said}");
                let summary = said.lines().find(|line| line.contains(" read, "));
                let line = summary.unwrap_or_else(|| panic!("{said}"));
                let read = line.trim_start_matches("embody: ");
                assert_eq!(messages_in(read), 1, "{arguments:?} {shown}: {said}");
            }
        }
    }
}

#[test]
fn emlx_file_without_the_end_of_its_message_counts_as_no_message() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    fs::create_dir(place.join("box")).unwrap();
    fs::write(place.join("box/1.emlx"), format!("20\n{}", mail("cut"))).unwrap();
    for format in [
        &["--output-format", "mbox"][..],
        &["--output-format", "eml"],
        &[],
    ] {
        let arguments = [&["convert", "box"], format, &["--output", "new"]].concat();
        let (status, _, said) = run(place, &arguments);
        assert_eq!(status, 1, "{arguments:?}: {said}");
        assert!(said.contains("0 messages read"), "{arguments:?}: {said}");
        let _ = fs::remove_file(place.join("new"));
        let _ = fs::remove_dir_all(place.join("new"));
    }
    let (_, text, _) = run(place, &["inspect", "box"]);
    assert!(text.contains("0 messages"), "{text}");
}

#[test]
fn apple_double_file_is_a_part_only_with_its_name() {
    let content = b"\0\x05\x16\x07\0\x02\0\0Mac OS X        \0\x02\0\0\0\x09";
    for (name, expected) in [
        ("._a.mbox", (0, [1, 1, 0, 0])),
        (".AppleDouble/a.mbox", (0, [1, 1, 0, 0])),
        ("__MACOSX/a.mbox", (0, [1, 1, 0, 0])),
        ("a", (0, [1, 0, 1, 0])),
        ("a.jpg", (0, [1, 0, 1, 0])),
        ("b.mbox", (1, [1, 0, 0, 1])),
        ("b.eml", (1, [1, 0, 0, 1])),
    ] {
        for is_archive in [false, true] {
            let temporary = tempfile::tempdir().unwrap();
            let place = temporary.path();
            let path = place.join("box").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let kept = mbox(&["kept"]);
            let source = if is_archive {
                let members = [("kept.mbox", kept.as_bytes()), (name, &content[..])];
                fs::write(place.join("box.zip"), zip(&members)).unwrap();
                "box.zip"
            } else {
                fs::write(place.join("box/kept.mbox"), &kept).unwrap();
                fs::write(path, content).unwrap();
                "box"
            };
            let (status, mut counts, said) = verdicts(place, source);
            // The archive itself is a file, too.
            (counts[0], counts[3]) = (counts[0].min(1), counts[3].min(1));
            assert_eq!((status, counts), expected, "{source} {name}: {said}");
        }
    }
}

#[test]
fn mail_with_an_odd_start_among_messages_is_read() {
    for content in [
        format!("\r\n\n{}", mail("odd")),
        format!("\u{feff}{}", mail("odd")),
        format!("+OK 120 octets\r\n{}", mail("odd")),
        format!("\u{1}\u{2}\n{}", mail("odd")),
        format!("X-Raw: \u{1}\u{2}\0\n{}", mail("odd")),
        format!("{}\0\0\u{1}\n", mail("odd")),
        "no header at all\nodd\n".to_owned(),
    ] {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        make_maildir(place);
        fs::write(place.join("box/cur/1578304800.M1P1.h:2,S"), &content).unwrap();
        let (status, counts, stderr) = verdicts(place, "box");
        assert_eq!((status, counts), (0, [1, 0, 0, 0]), "{content:?}: {stderr}");
    }
}

#[test]
fn message_file_that_begins_with_zeros_is_named() {
    for (content, said) in [
        (vec![0; 10], "NUL bytes"),
        (vec![0; 5000], "NUL bytes"),
        (
            [&[0; 40][..], mail("zeros").as_bytes()].concat(),
            "NUL bytes",
        ),
        ([&[0; 40][..], b"rest of a text\n"].concat(), "damaged"),
    ] {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        fs::create_dir(place.join("mail")).unwrap();
        fs::write(place.join("mail/kept.eml"), mail("kept")).unwrap();
        fs::write(place.join("mail/x.eml"), &content).unwrap();
        let (status, counts, stderr) = verdicts(place, "mail");
        assert_eq!((status, counts), (1, [1, 0, 0, 1]), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
        let (status, _, stderr) = run(place, &["inspect", "mail/x.eml"]);
        assert_eq!(status, 1, "{stderr}");
    }
}

#[test]
fn empty_mailbox_with_an_index_that_lists_messages_is_named() {
    let entry = |length: u32| {
        let mut entry = vec![0; 218];
        entry[4..8].copy_from_slice(&length.to_le_bytes());
        entry
    };
    let head = vec![1; 104];
    let full = [&head[..], &entry(400), &entry(500)].concat();
    for (name, index, content, is_named) in [
        ("In.mbx", "In.toc", full.clone(), true),
        ("In.mbx", "In.TOC", full.clone(), true),
        ("In.mbx", "In.toc", head.clone(), false),
        ("In.mbx", "In.toc", [&head[..], b"other"].concat(), false),
        ("In.mbx", "In.toc", [&head[..], &entry(0)].concat(), false),
        (
            "In",
            "In.msf",
            b"// <!-- <mdb:mork:z v=\"1.4\"/> -->".to_vec(),
            false,
        ),
    ] {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        fs::create_dir(place.join("mail")).unwrap();
        fs::write(place.join("mail/kept.eml"), mail("kept")).unwrap();
        fs::write(place.join("mail").join(name), "").unwrap();
        fs::write(place.join("mail").join(index), &content).unwrap();
        let (status, counts, stderr) = verdicts(place, "mail");
        assert_eq!(status, i32::from(is_named), "{index}: {stderr}");
        assert_eq!(counts[3], u64::from(is_named), "{index}: {stderr}");
        assert_eq!(stderr.contains("lists messages"), is_named, "{stderr}");
    }
}

#[test]
fn inspect_of_nothing_finds_no_mail() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    for name in ["empty.mbox", "empty.eml"] {
        fs::write(place.join(name), "").unwrap();
        let (status, stdout, stderr) = run(place, &["inspect", name]);
        assert_eq!(status, 0, "{stderr}");
        assert!(stdout.contains("There is no mail here."), "{stdout}");
    }
    let mut command = crate::common::programs::embody();
    let output = crate::common::programs::fed(command.arg("inspect"), b"");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("There is no mail here."), "{stdout}");
}
