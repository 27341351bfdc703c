//! Mail of another format that was appended to a mailbox or a message, as by `cat old.mbox.gz >> Inbox`. It is named, and its bytes
//! stay where they are.

use std::collections::HashMap;
use std::fs;
use std::io::{Cursor, Write as _};
use std::path::Path;
use std::process::Output;

use crate::common::archives::{tar, zip};
use crate::common::programs::embody_in;
use crate::common::reports;

pub(crate) const FROM: &str = "From ann@example.org Mon Jan  6 10:00:00 2020\n";

pub(crate) fn mail(name: &str) -> String {
    format!(
        "From: Ann <ann@example.org>\nTo: bob@example.org\nSubject: {name}\nDate: Mon, 6 Jan 2020 10:00:00 +0000\n\
         Message-ID: <{name}@example.org>\n\nhello {name}\n"
    )
}

pub(crate) fn mbox(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("{FROM}{}\n", mail(name)))
        .collect()
}

pub(crate) fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(plain: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(9));
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn xz(plain: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

/// Compresses data as compress(1) does.
fn compress(plain: &[u8]) -> Vec<u8> {
    const WIDEST: usize = 16;
    let mut table: HashMap<Vec<u8>, usize> = (0..=u8::MAX)
        .map(|byte| (vec![byte], usize::from(byte)))
        .collect();
    let (mut width, mut free, mut begun) = (9, 257, 0);
    let mut bits: Vec<bool> = Vec::new();
    let mut current = Vec::new();
    for &byte in plain {
        let longer = [&current[..], &[byte]].concat();
        if current.is_empty() || table.contains_key(&longer) {
            current = longer;
            continue;
        }
        bits.extend((0..width).map(|bit| table[&current] >> bit & 1 == 1));
        if free < 1 << WIDEST {
            table.insert(longer, free);
            // The codes of one width fill groups of eight codes.
            if free == 1 << width && width < WIDEST {
                let length = (bits.len() - begun).next_multiple_of(8 * width);
                bits.resize(begun + length, false);
                (begun, width) = (bits.len(), width + 1);
            }
            free += 1;
        }
        current = vec![byte];
    }
    bits.extend((0..width).map(|bit| table[&current] >> bit & 1 == 1));
    let byte = |bits: &[bool]| {
        let numbered = bits.iter().enumerate();
        numbered.fold(0, |byte, (at, &bit)| byte | u8::from(bit) << at)
    };
    let codes = bits.chunks(8).map(byte);
    b"\x1f\x9d\x90".iter().copied().chain(codes).collect()
}

/// Returns text in EBCDIC, with line ends as z/OS writes them.
fn ebcdic(text: &str) -> Vec<u8> {
    let byte = |byte: u8| match byte {
        b'\n' => 0x15,
        b' ' => 0x40,
        b'.' => 0x4b,
        b'<' => 0x4c,
        b'+' => 0x4e,
        b'-' => 0x60,
        b',' => 0x6b,
        b'>' => 0x6e,
        b':' => 0x7a,
        b'@' => 0x7c,
        b'a'..=b'i' => byte - b'a' + 0x81,
        b'j'..=b'r' => byte - b'j' + 0x91,
        b's'..=b'z' => byte - b's' + 0xa2,
        b'A'..=b'I' => byte - b'A' + 0xc1,
        b'J'..=b'R' => byte - b'J' + 0xd1,
        b'S'..=b'Z' => byte - b'S' + 0xe2,
        b'0'..=b'9' => byte - b'0' + 0xf0,
        other => panic!("{other} in EBCDIC"),
    };
    text.bytes().map(byte).collect()
}

/// Returns text in code units of `width` bytes, with a byte order mark if `is_marked`.
fn wide(text: &str, width: usize, is_big: bool, is_marked: bool) -> Vec<u8> {
    let mark = if is_marked { "\u{feff}" } else { "" };
    let unit = |character: char| {
        let bytes = (character as u32).to_be_bytes();
        let mut unit = bytes[4 - width..].to_vec();
        if !is_big {
            unit.reverse();
        }
        unit
    };
    [mark, text].concat().chars().flat_map(unit).collect()
}

pub(crate) fn emlx(name: &str) -> String {
    let message = mail(name);
    format!(
        "{:<10}\n{message}<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\">\n<dict>\n<key>flags</key>\n\
         <integer>1</integer>\n</dict>\n</plist>\n",
        message.len()
    )
}

fn msg() -> Vec<u8> {
    let mut file = cfb::CompoundFile::create(Cursor::new(Vec::new())).unwrap();
    file.create_stream("/__properties_version1.0").unwrap();
    file.flush().unwrap();
    file.into_inner().into_inner()
}

/// Returns a part of the name of each format, and data in it.
pub(crate) fn kinds() -> Vec<(&'static str, Vec<u8>)> {
    let old = mbox(&["old", "older"]);
    let plain = old.as_bytes();
    let padded = |start: &[u8], length: usize| {
        let mut bytes = start.to_vec();
        bytes.resize(length, 0);
        bytes
    };
    let lz4_frame = [
        &b"\x04\x22\x4d\x18\x60\x40\x82"[..],
        &(plain.len() as u32 | 1 << 31).to_le_bytes(),
        plain,
        &[0; 4],
    ];
    let block = lz4_flex::block::compress(plain);
    let dovecot = [
        &b"Dovecot-LZ4\x0d\x2a\x9b\xc5\0\x01\0\0"[..],
        &(block.len() as u32).to_be_bytes(),
        &block,
    ];
    let mbx = [
        padded(b"*mbx*\r\n5e1302000000000a\r\n", 2048),
        format!(
            " 6-Jan-2020 10:00:00 +0000,{};000000000001-00000001\r\n",
            mail("old").len()
        )
        .into(),
        mail("old").into(),
    ];
    let babyl = format!(
        "BABYL OPTIONS: -*- rmail -*-\nVersion: 5\nLabels:\nNote:   This is the header of an rmail file.\n\u{1f}\u{c}\n\
         0, unseen,,\n*** EOOH ***\n{}\u{1f}",
        mail("old")
    );
    let mmdf = format!(
        "\u{1}\u{1}\u{1}\u{1}\n{}\u{1}\u{1}\u{1}\u{1}\n",
        mail("old")
    );
    let dbox = format!(
        "2 M1e C5e130200\n\u{1}\u{2}N                  {:016x}\n{}\n\u{1}\u{3}\nR5e130200\nV7b\n\n",
        mail("old").len(),
        mail("old")
    );
    let mut kinds = vec![
        ("gzip", gzip(plain)),
        ("gzip", gzip(&tar(&[("Inbox", b'0', plain)]))),
        ("gzip", gzip(&gzip(plain))),
        ("gzip", gzip(plain)[..60].to_vec()),
        ("bzip2", bzip2(plain)),
        ("(compress)", compress(plain)),
        ("(compress)", compress(&old.repeat(200).into_bytes())),
        ("(compress)", compress(&tar(&[("Inbox", b'0', plain)]))),
        ("EBCDIC", ebcdic(&old)),
        ("EBCDIC", ebcdic(&mail("old"))),
        ("xz", xz(plain)),
        ("zstd", zstd::encode_all(plain, 3).unwrap()),
        ("(lz4)", lz4_frame.concat()),
        ("lz4 of Dovecot", dovecot.concat()),
        ("zip archive", zip(&[("Inbox", plain)])),
        ("tar archive", tar(&[("Inbox", b'0', plain)])),
        (
            "7z archive",
            b"7z\xbc\xaf\x27\x1c\0\x04\x01\x02\x03".to_vec(),
        ),
        ("RAR archive", b"Rar!\x1a\x07\0\xcf\x90\x73".to_vec()),
        ("RAR archive", b"Rar!\x1a\x07\x01\0\x33\x92".to_vec()),
        (
            "Outlook mailbox",
            padded(b"!BDN\x11\x22\x33\x44SM\x17\0", 512),
        ),
        (
            "Outlook Express",
            padded(b"\xcf\xad\x12\xfe\xc5\xfd\x74\x6f\x66\xe3\xd1\x11", 512),
        ),
        ("MBX mailbox", mbx.concat()),
        ("Babyl mailbox", babyl.into()),
        ("MMDF mailbox", mmdf.clone().into()),
        ("MMDF mailbox", mmdf.replace('\n', "\r\n").into()),
        ("dbox", dbox.into()),
        (
            "TNEF",
            padded(
                b"\x78\x9f\x3e\x22\x01\0\x01\x06\x90\x08\0\x04\0\0\0\0\0\x01\0",
                64,
            ),
        ),
        (".msg", msg()),
        (".emlx", emlx("old").into()),
        (".emlx", [emlx("old"), emlx("older")].concat().into()),
    ];
    for is_big in [false, true] {
        for is_marked in [false, true] {
            kinds.push(("UTF-16", wide(&old, 2, is_big, is_marked)));
            kinds.push(("UTF-16", wide(&mail("old"), 2, is_big, is_marked)));
            kinds.push(("UTF-32", wide(&old, 4, is_big, is_marked)));
        }
    }
    kinds
}

/// Returns messages of all kinds of structure. The last two have no final line ending.
pub(crate) fn messages() -> [String; 6] {
    let multipart = "From: a@example.org\nSubject: s\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\ntext\n\
                     --b\nContent-Type: application/pdf\nContent-Transfer-Encoding: base64\n\nJVBERi0xLjQK\n--b--\n";
    let binary = multipart.replace("Encoding: base64", "Encoding: binary");
    let encoded = "From: a@example.org\nSubject: s\nMIME-Version: 1.0\nContent-Type: application/pdf\n\
                   Content-Transfer-Encoding: base64\n\nJVBERi0xLjQK\n";
    [
        mail("kept"),
        multipart.to_owned(),
        binary,
        encoded.to_owned(),
        mail("kept").trim_end().to_owned(),
        multipart.trim_end().to_owned(),
    ]
}

/// Returns whether data of a format are tested after all messages and in all files. The other formats are recognised in the same
/// ways, so each is tested in one of them.
fn is_tested_in_all(format: &str) -> bool {
    ["xz", "MMDF mailbox", ".emlx"].contains(&format)
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

/// Checks that `inspect` names the data in a source with one or two files, and that `convert` copies all bytes.
fn check(place: &Path, (source, file): (&str, &str), format: &str, what: &str) {
    let (status, stdout, stderr) = run(place, &["inspect", "--json", source]);
    assert_eq!(status, 1, "{what}: {stderr}");
    assert!(stderr.contains(format), "{what}: {stderr}");
    assert!(
        stderr.contains("mail in them was not read"),
        "{what}: {stderr}"
    );
    let rows = reports::objects(&stdout);
    let not_read = rows
        .iter()
        .filter(|row| row["outcome"] == "not-read")
        .count();
    assert_eq!(not_read, 1, "{what}: {stdout}");
    // A single message has no survey.
    let survey = rows.iter().find_map(|row| row.get("survey"));
    if let Some(survey) = survey {
        assert_eq!(survey["files"]["not_read"], 1, "{what}: {survey}");
        assert_eq!(survey["files"]["not_mail"], 0, "{what}: {survey}");
    }
    let (status, _, stderr) = run(place, &["convert", source, "--output", "new"]);
    assert_eq!(status, 1, "{what}: {stderr}");
    assert!(stderr.contains(format), "{what}: {stderr}");
    let copy = if source == file {
        place.join("new")
    } else {
        place
            .join("new")
            .join(file.strip_prefix(source).unwrap().trim_start_matches('/'))
    };
    let (before, after) = (fs::read(place.join(file)).unwrap(), fs::read(copy).unwrap());
    assert!(before == after, "{what}: convert changed the file");
}

#[test]
fn mail_of_another_format_after_an_mbox_is_named() {
    for (turn, (format, data)) in kinds().into_iter().enumerate() {
        for (number, message) in messages().iter().enumerate() {
            let ends = [(false, ""), (true, ""), (false, "\n")];
            for (variant, (has_crlf, end)) in ends.into_iter().enumerate() {
                let is_turn = turn % 6 == number && turn / 6 % 3 == variant;
                if !is_turn && !is_tested_in_all(format) {
                    continue;
                }
                let mut host = format!("{}{FROM}{message}{end}", mbox(&["first"]));
                if has_crlf {
                    host = host.replace('\n', "\r\n");
                }
                let temporary = tempfile::tempdir().unwrap();
                let place = temporary.path();
                fs::write(place.join("Inbox"), [host.as_bytes(), &data].concat()).unwrap();
                let what = format!("{format} after message {number}, CRLF {has_crlf}, {end:?}");
                check(place, ("Inbox", "Inbox"), format, &what);
            }
        }
    }
}

#[test]
fn mail_of_another_format_between_messages_is_named() {
    for (format, data) in kinds() {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        let (host, later) = (mbox(&["first"]), mbox(&["later"]));
        let bytes = [host.as_bytes(), &data, b"\n\n", later.as_bytes()].concat();
        fs::write(place.join("Inbox"), bytes).unwrap();
        check(place, ("Inbox", "Inbox"), format, format);
    }
}

#[test]
fn mail_of_another_format_after_a_single_message_is_named() {
    let files = [
        ("x.eml", "x.eml"),
        ("box", "box/cur/1578304800.M1P1.h:2,S"),
        ("box", "box/7"),
    ];
    for (turn, (format, data)) in kinds().into_iter().enumerate() {
        for (number, message) in messages().iter().enumerate() {
            for (variant, (source, file)) in files.into_iter().enumerate() {
                let is_turn = turn % 6 == number && turn / 6 % 3 == variant;
                if !is_turn && !is_tested_in_all(format) {
                    continue;
                }
                let temporary = tempfile::tempdir().unwrap();
                let place = temporary.path();
                if file == "box/7" {
                    fs::create_dir(place.join("box")).unwrap();
                    fs::write(place.join("box/.mh_sequences"), "cur: 7\n").unwrap();
                } else if source == "box" {
                    for part in ["cur", "new", "tmp"] {
                        fs::create_dir_all(place.join("box").join(part)).unwrap();
                    }
                }
                fs::write(place.join(file), [message.as_bytes(), &data].concat()).unwrap();
                let what = format!("{format} after message {number} in {file}");
                check(place, (source, file), format, &what);
            }
        }
    }
}

#[test]
fn mail_of_another_format_after_an_emlx_file_is_named() {
    for (format, data) in kinds() {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        fs::write(
            place.join("1.emlx"),
            [emlx("kept").as_bytes(), &data].concat(),
        )
        .unwrap();
        let (status, _, stderr) = run(place, &["inspect", "1.emlx"]);
        assert_eq!(status, 1, "{format}: {stderr}");
        assert!(stderr.contains(format), "{format}: {stderr}");
    }
}

#[test]
fn every_command_names_mail_of_another_format() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    let old = gzip(mbox(&["old"]).as_bytes());
    let host = mbox(&["first", "last"]);
    fs::write(place.join("Inbox"), [host.as_bytes(), &old].concat()).unwrap();
    fs::write(place.join("copy"), [host.as_bytes(), &old].concat()).unwrap();
    fs::create_dir(place.join("box")).unwrap();
    fs::write(place.join("box/.mh_sequences"), "").unwrap();
    fs::write(place.join("box/1"), [mail("one").as_bytes(), &old].concat()).unwrap();
    fs::write(
        place.join("one.eml"),
        [mail("one").as_bytes(), &old].concat(),
    )
    .unwrap();
    let named = |arguments: &[&str]| {
        let (status, stdout, stderr) = run(place, arguments);
        let said = format!("{stdout}{stderr}");
        assert_eq!(status, 1, "{arguments:?}: {said}");
        assert!(said.contains("gzip"), "{arguments:?}: {said}");
        said
    };
    for source in ["Inbox", "one.eml", "box"] {
        for command in ["convert", "embed", "recover", "restore"] {
            let mut arguments = vec![command, source, "--output", "new"];
            if command == "restore" {
                arguments.extend(["--store", "store"]);
                fs::create_dir_all(place.join("store")).unwrap();
            }
            named(&arguments);
            arguments.push("--dry-run");
            let _ = fs::remove_file(place.join("new"));
            let _ = fs::remove_dir_all(place.join("new"));
            named(&arguments);
            let _ = fs::remove_file(place.join("new"));
            let _ = fs::remove_dir_all(place.join("new"));
        }
        for format in ["mbox", "maildir", "eml"] {
            let to = format!("{source}-{format}");
            named(&[
                "convert",
                source,
                "--output-format",
                format,
                "--output",
                &to,
            ]);
        }
        named(&["inspect", source]);
        named(&["inspect", source, "--json"]);
        let merged = format!("{source}-merged.mbox");
        named(&["merge", source, "--output", &merged]);
        named(&["compare", source, &merged]);
        named(&[
            "detach",
            source,
            "--store",
            "parts",
            "--output",
            &format!("{source}-detached"),
        ]);
    }
    let said = named(&["inspect", "Inbox"]);
    let first = host.len() + 1;
    assert!(said.contains("appended to message 2"), "{said}");
    assert!(said.contains(&format!("tail -c +{first}")), "{said}");
    named(&["convert", "--in-place", "copy"]);
    assert!(fs::read(place.join("copy")).unwrap().ends_with(&old));
    // The advice works: the bytes are a file that is read.
    let bytes = fs::read(place.join("Inbox")).unwrap();
    fs::write(place.join("rest"), &bytes[first - 1..]).unwrap();
    let (status, _, stderr) = run(place, &["convert", "rest", "--output", "rest.mbox"]);
    assert_eq!(status, 0, "{stderr}");
    assert!(
        fs::read_to_string(place.join("rest.mbox"))
            .unwrap()
            .contains("hello old")
    );
}

#[test]
fn mail_of_another_format_from_a_pipe_or_an_archive_is_named() {
    let old = gzip(mbox(&["old"]).as_bytes());
    let inbox = [mbox(&["first", "last"]).as_bytes(), &old].concat();
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    fs::write(place.join("a.zip"), zip(&[("Inbox", &inbox)])).unwrap();
    fs::write(
        place.join("Inbox.zst"),
        zstd::encode_all(&inbox[..], 3).unwrap(),
    )
    .unwrap();
    for (source, output) in [("a.zip", "a.mbox"), ("Inbox.zst", "b.mbox")] {
        let (status, _, stderr) = run(place, &["convert", source, "--output", output]);
        assert_eq!(status, 1, "{stderr}");
        assert!(stderr.contains("gzip"), "{stderr}");
        assert_eq!(fs::read(place.join(output)).unwrap(), inbox, "{source}");
    }
    let mut command = crate::common::programs::embody();
    let output =
        crate::common::programs::fed(command.args(["convert", "-", "--output", "-"]), &inbox);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, inbox);
    assert!(String::from_utf8_lossy(&output.stderr).contains("gzip"));
}

/// Returns files with a message and an mbox after it.
fn hosts_of_mbox(message: &str, mbox: &str) -> Vec<(&'static str, Vec<u8>)> {
    let eudora = "From ???@??? Tue May 14 12:00:00 2024";
    let with_crlf = |text: &str| text.replace('\n', "\r\n");
    let of_mac = emlx("kept") + mbox;
    vec![
        ("x.eml", format!("{message}{mbox}").into()),
        ("x.eml", with_crlf(&format!("{message}{mbox}")).into()),
        ("x.eml", format!("{}{mbox}", with_crlf(message)).into()),
        (
            "x.eml",
            format!("{message}{}", mbox.replace('\n', "\r")).into(),
        ),
        ("x.eml", format!("{}{mbox}", message.trim_end()).into()),
        ("x.eml", format!("{message}\n{mbox}").into()),
        ("box/7", format!("{message}{mbox}").into()),
        (
            "box/cur/1578304800.M1P1.h:2,S",
            format!("{message}{mbox}").into(),
        ),
        ("1.emlx", of_mac.clone().into()),
        (
            "MMDF",
            format!("\u{1}\u{1}\u{1}\u{1}\n{message}\u{1}\u{1}\u{1}\u{1}\n{mbox}").into(),
        ),
        (
            "In.mbx",
            format!("{eudora}\r\n{}{mbox}", with_crlf(message)).into(),
        ),
        (
            "In",
            format!("{eudora}\n{message}{mbox}")
                .replace('\n', "\r")
                .into(),
        ),
        (
            "x.zip",
            zip(&[("x.eml", format!("{message}{mbox}").as_bytes())]),
        ),
        ("y.zip", zip(&[("1.emlx", of_mac.as_bytes())])),
        ("x.eml.gz", gzip(format!("{message}{mbox}").as_bytes())),
    ]
}

fn put(place: &Path, name: &str, content: &[u8]) {
    if name.starts_with("box/cur") {
        for part in ["cur", "new", "tmp"] {
            fs::create_dir_all(place.join("box").join(part)).unwrap();
        }
    } else if name.starts_with("box") {
        fs::create_dir(place.join("box")).unwrap();
        fs::write(place.join("box/.mh_sequences"), "cur: 7\n").unwrap();
    }
    fs::write(place.join(name), content).unwrap();
}

#[test]
fn mbox_after_a_single_message_is_named() {
    for message in [mail("kept"), messages()[1].clone()] {
        for mbox in [mbox(&["old"]), mbox(&["old", "older"])] {
            for (name, content) in hosts_of_mbox(&message, &mbox) {
                let temporary = tempfile::tempdir().unwrap();
                let place = temporary.path();
                put(place, name, &content);
                let source = name.split('/').next().unwrap();
                for command in ["inspect", "convert"] {
                    let mut arguments = vec![command, source];
                    if command == "convert" {
                        arguments.extend(["--output", "new"]);
                    }
                    let (status, stdout, stderr) = run(place, &arguments);
                    let what = format!("{command} {name} {content:?}: {stdout}{stderr}");
                    assert_eq!(status, 1, "{what}");
                    assert!(stderr.contains(": an mbox, from byte"), "{what}");
                }
            }
        }
    }
}

/// Returns messages that end before their last boundary line.
fn unclosed() -> Vec<String> {
    let head = "From: a@example.org\nSubject: s\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n";
    let text = format!("{head}\n--b\n\ntext\n");
    let inner = "Content-Type: multipart/alternative; boundary=i\n\n--i\n\ntext\n--i\nContent-Type: text/html\n\n<p>text\n";
    let base64 = "Content-Transfer-Encoding: base64\n\nJVBERi0xLjQK\n";
    [
        "",
        "--b\nContent-Type: text/plain\n\n",
        "--b\nContent-Type: text/plain; name=notes.txt\n\nnotes\n",
        "--b\nContent-Type: text/x-diff; name=a.patch\n\n--- a\n+++ b\n",
        &format!("--b\nContent-Type: application/pdf; name=a.pdf\n{base64}"),
        "--b\nContent-Type: message/rfc822\n\nFrom: c@example.org\nSubject: inner\n\ninner\n",
        "--b\nContent-Type: text/pl\n",
        &format!("--b\n{inner}"),
        &format!("--b\n{inner}--i--\n"),
    ]
    .iter()
    .map(|rest| format!("{text}{rest}"))
    .chain([
        head.to_owned(),
        format!("{head}\n"),
        format!("{head}\n--b\n"),
    ])
    .collect()
}

#[test]
fn mbox_after_a_message_without_its_last_boundary_line_is_named() {
    let old = mbox(&["old"]);
    for (turn, message) in unclosed().into_iter().enumerate() {
        // The mbox can contain a complete copy of the message.
        let copy = format!(
            "{FROM}Date: Mon, 6 Jan 2020 10:00:00 +0000\n{}\n",
            messages()[1]
        );
        for mbox in [old.clone(), copy.clone(), format!("{old}{copy}")] {
            let hosts = hosts_of_mbox(&message, &mbox);
            let count = hosts.len();
            for (number, (name, content)) in hosts.into_iter().enumerate() {
                // In a file of Apple Mail, the mbox follows the property list.
                if number != 0 && number != turn % count || name == "1.emlx" || name == "y.zip" {
                    continue;
                }
                let temporary = tempfile::tempdir().unwrap();
                put(temporary.path(), name, &content);
                let source = name.split('/').next().unwrap();
                let (status, stdout, stderr) = run(temporary.path(), &["inspect", source]);
                let what = format!("{name} {}: {stdout}{stderr}", content.escape_ascii());
                assert_eq!(status, 1, "{what}");
                assert!(stderr.contains(": an mbox, from byte"), "{what}");
            }
        }
    }
}

#[test]
fn mail_without_a_separator_is_named_after_a_multipart_and_after_base64() {
    let old = format!(
        "Return-Path: <a@example.org>\nReceived: from a by b;\n\tMon, 6 Jan 2020 10:00:00 +0000\n{}",
        mail("old")
    );
    let text = mail("kept");
    for (message, is_named) in messages()
        .iter()
        .zip([false, true, true, true, false, true])
    {
        for end in ["", "\n"] {
            for old in [&old, &mail("old")] {
                let content = format!("{message}{end}{old}");
                let temporary = tempfile::tempdir().unwrap();
                fs::write(temporary.path().join("x.eml"), &content).unwrap();
                let (status, stdout, stderr) = run(temporary.path(), &["inspect", "x.eml"]);
                let what = format!("{content}: {stdout}{stderr}");
                // A MIME parser does not read a boundary line that other text follows in the same line.
                let is_named = is_named && (message.ends_with('\n') || end == "\n");
                assert_eq!(status, i32::from(is_named), "{what}");
                let first = message.len() + end.len();
                let named = format!("appended to the message: a message, from byte {first} on");
                assert_eq!(stderr.contains(&named), is_named, "{what}");
            }
        }
    }
    let part = format!(
        "From: a@example.org\nSubject: s\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\n{old}\n--b\n\
         Content-Type: message/rfc822\n\n{old}\n--b--\n"
    );
    let plain = format!(
        "From: a@example.org\nSubject: s\nContent-Transfer-Encoding: base64\n\nhello Bob,\n\n{old}"
    );
    let footer = format!("{}\nFrom: the list\nList: x\n\n", messages()[1]);
    for content in [part, plain, footer, format!("{text}> {text}")] {
        let temporary = tempfile::tempdir().unwrap();
        fs::write(temporary.path().join("x.eml"), &content).unwrap();
        let (status, stdout, stderr) = run(temporary.path(), &["inspect", "x.eml"]);
        assert_eq!(status, 0, "{content}: {stdout}{stderr}");
    }
}

#[test]
fn mail_after_a_separator_with_a_tab_is_named_after_a_bare_cr_and_in_a_counted_body() {
    let with_cr = |text: &str| text.replace('\n', "\r");
    let old = mbox(&["old"]).replace("From ann", "From\tann");
    let body = format!("text\n{old}");
    let counted = format!(
        "{FROM}From: a@example.org\nSubject: s\nContent-Length: {}\n\n{body}\n",
        body.len()
    );
    let first = format!("{FROM}From: a@example.org\nSubject: s\nContent-Length: 5\n\ntext\n\n");
    for content in [
        format!("{}{}", mbox(&["first"]), with_cr(&old)),
        format!("{}{}{}", mbox(&["first"]), with_cr(&old), mbox(&["last"])),
        format!(
            "{}{}",
            mbox(&["first"]).trim_end(),
            with_cr(&format!("\n{old}"))
        ),
        with_cr(&format!("{}{old}", mbox(&["first"]))),
        format!("{first}{counted}{first}"),
        with_cr(&format!("{first}{counted}{first}")),
    ] {
        let temporary = tempfile::tempdir().unwrap();
        fs::write(temporary.path().join("Inbox"), &content).unwrap();
        let (status, stdout, stderr) = run(temporary.path(), &["inspect", "Inbox"]);
        let what = format!("{}: {stdout}{stderr}", content.escape_default());
        assert_eq!(status, 1, "{what}");
        assert!(stderr.contains("a tab instead of the space"), "{what}");
    }
}

#[test]
fn mail_with_a_patch_or_an_mbox_is_not_named() {
    let old = mbox(&["old"]);
    let patch = format!(
        "From 1f2e3d4c Mon Sep 17 00:00:00 2001\n{}---\n x | 1 +\n",
        mail("patch")
    );
    let quoted: String = old.lines().map(|line| format!("> {line}\n")).collect();
    let attached = |fields: &str| {
        format!(
            "From: a@example.org\nSubject: s\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\ntext\n\
             --b\n{fields}\n{old}--b--\n"
        )
    };
    for message in [
        format!("{}{patch}", mail("kept")),
        format!("{}\n{quoted}", mail("kept")),
        attached("Content-Type: text/plain\n"),
        attached("Content-Type: application/mbox\n"),
        attached("Content-Type: text/plain; name=old.mbox\nContent-Disposition: attachment\n"),
        attached("Content-Type: message/rfc822\n"),
        attached("Content-Type: text/x-mbox; name=old.mbox\n").replace("--b--\n", ""),
        attached("Content-Type: text/x-mbox\n").replace("--b--\n", ""),
        attached("Content-Type: application/mbox\n").replace("--b--\n", ""),
        attached("Content-Type: application/octet-stream\n\nx").replace("--b--\n", ""),
        attached("Content-Type: text/plain; name=old.mbox\n").replace("--b--\n", ""),
        attached("Content-Type: message/rfc822\n").replace("--b--\n", ""),
    ] {
        for name in ["x.eml", "box/7", "box/cur/1578304800.M1P1.h:2,S"] {
            let temporary = tempfile::tempdir().unwrap();
            put(temporary.path(), name, message.as_bytes());
            let source = name.split('/').next().unwrap();
            let (status, stdout, stderr) = run(temporary.path(), &["inspect", source]);
            assert_eq!(status, 0, "{name}: {stdout}{stderr}\n{message}");
        }
    }
    // In an mbox, a message whose length is given by Content-Length can contain a separator.
    let body = format!("text\n{old}");
    let counted = format!(
        "{FROM}From: a@example.org\nSubject: s\nContent-Length: {}\n\n{body}\n{}",
        body.len(),
        mbox(&["last"])
    );
    let temporary = tempfile::tempdir().unwrap();
    fs::write(temporary.path().join("Inbox"), counted).unwrap();
    let (status, stdout, stderr) = run(temporary.path(), &["inspect", "Inbox"]);
    assert_eq!(status, 0, "{stdout}{stderr}");
}

#[test]
fn mail_that_declares_or_describes_data_is_not_named() {
    let old = mbox(&["old"]);
    let packed = gzip(old.as_bytes());
    let part = |fields: &str, data: &[u8]| {
        let head = format!(
            "From: a@example.org\nSubject: s\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\ntext\n\
             --b\n{fields}\n"
        );
        [head.as_bytes(), data, b"\n--b--\n"].concat()
    };
    let single = |fields: &str, data: &[u8]| {
        let head = format!("From: a@example.org\nSubject: s\nMIME-Version: 1.0\n{fields}\n");
        [head.as_bytes(), data].concat()
    };
    let text = "A gzip file begins with 1f 8b 08, a bzip2 file with BZh91AY&SY, a zip file with PK\\x03\\x04,\n\
                an MBX mailbox with *mbx*\nand a Babyl mailbox with\nBABYL OPTIONS: -*- rmail -*-\nVersion: 5\n\
                An Outlook mailbox begins with !BDN, a RAR archive with Rar! and a tar archive has ustar at 257.\n\
                12\nSubject: x\n\n<?xml version=\"1.0\"?>\n<plist version=\"1.0\">\n</plist>\n";
    let mut document = zip(&[
        ("[Content_Types].xml", b"<Types/>"),
        ("word/document.xml", b"<w/>"),
    ]);
    document.extend_from_slice(b"\n");
    let picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\x01\0\0";
    let yenc = [
        &b"=ybegin line=128 size=300 name=x.bin\n"[..],
        &[0x1f, 0x8b, 0x08, 0x2a, 0x01, 0x02],
        b"\n=yend size=300\n",
    ];
    let japanese = single(
        "Content-Type: text/plain; charset=ISO-2022-JP\n",
        b"\x1b$B%a\x1b(B PK\x03 \x1f\x8b\n",
    );
    for message in [
        part("Content-Type: application/gzip\nContent-Transfer-Encoding: binary\n", &packed),
        part("Content-Type: application/x-gzip\n", &packed),
        part("Content-Type: application/octet-stream\nContent-Transfer-Encoding: 8bit\n", &wide(&old, 2, false, true)),
        part("Content-Type: text/plain; name=\"old.mbox.gz\"\nContent-Transfer-Encoding: 8bit\n", &packed),
        part("Content-Type: text/plain; charset=UTF-16\nContent-Transfer-Encoding: binary\n", &wide(&old, 2, false, true)),
        part("Content-Type: message/rfc822\n", &part("Content-Type: application/zip\n", &zip(&[("Inbox", old.as_bytes())]))),
        single("Content-Type: application/gzip\nContent-Transfer-Encoding: binary\n", &packed),
        single("", text.as_bytes()),
        single("", &gzip(picture)),
        single("", &bzip2(b"notes of a meeting\n")),
        single("", &compress(b"notes of a meeting, which is not a mail\n")),
        single("", &ebcdic("notes of a meeting, which is not a mail\n")),
        single("", &document),
        single("", picture),
        single("", &yenc.concat()),
        single("", b"-----BEGIN PGP MESSAGE-----\n\n\x85\x01\x0c\x03\0\x01\x02\n-----END PGP MESSAGE-----\n"),
        single("", b"NULs: \0\0\0\0 \0 and \x01\x01\x01\x01 in a text\n\x01\x01\x01\x01\n"),
        single("", b"An info file.\n\x1f\nFile: x\n\x1f\x0c\n"),
        japanese,
    ] {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        let shown = message.escape_ascii().to_string();
        fs::write(place.join("x.eml"), &message).unwrap();
        let entry = [FROM.as_bytes(), &message, b"\n\n"].concat();
        fs::write(place.join("Inbox"), [&entry[..], &entry, mbox(&["last"]).as_bytes()].concat()).unwrap();
        for source in ["x.eml", "Inbox"] {
            let (status, stdout, stderr) = run(place, &["inspect", source]);
            assert_eq!(status, 0, "{source}: {stdout}{stderr}\n{shown}");
            assert!(!stderr.contains("another format"), "{source}: {stderr}\n{shown}");
        }
    }
}

#[test]
fn separator_that_was_quoted_several_times_is_read_before_a_mail_and_named_after_it() {
    for quotes in [">", ">>", ">>>"] {
        for sender in ["-", "ann@example.org"] {
            let separator = format!("{quotes}From {sender} Mon Jan  6 10:00:00 2020\n");
            let one = format!("{separator}{}", mail("one"));
            let two = format!("{one}\n{separator}{}", mail("two"));
            let temporary = tempfile::tempdir().unwrap();
            let place = temporary.path();
            for part in ["cur", "new"] {
                fs::create_dir_all(place.join("md").join(part)).unwrap();
            }
            for (source, file) in [
                ("x", "x"),
                ("x.eml", "x.eml"),
                ("md", "md/cur/1578304801.M1P1.h:2,S"),
            ] {
                put(place, file, one.as_bytes());
                let arguments = [
                    "convert",
                    source,
                    "--output-format",
                    "mh",
                    "--output",
                    "new",
                ];
                let (status, _, said) = run(place, &arguments);
                assert_eq!(status, 0, "{said}");
                let written = fs::read_to_string(place.join("new/1")).unwrap();
                assert!(written.starts_with("From: Ann"), "{source}: {written}");
                fs::remove_dir_all(place.join("new")).unwrap();
                put(place, file, two.as_bytes());
                let (status, _, said) = run(place, &["inspect", source]);
                assert_eq!(status, 1, "{said}");
                assert!(
                    said.contains("an mbox whose separators are quoted"),
                    "{said}"
                );
                assert!(
                    said.contains(&format!("from byte {} on", one.len() + 1)),
                    "{said}"
                );
            }
            // The advice is right.
            put(place, "x", two.as_bytes());
            let script = "s/^>+(From .* [0-9]+:[0-9]{2})/\\1/";
            let new = std::process::Command::new("sed")
                .args(["-E", script])
                .arg(place.join("x"))
                .output()
                .unwrap();
            put(place, "new.mbox", &new.stdout);
            let (status, text, _) = run(place, &["inspect", "new.mbox"]);
            assert_eq!(status, 0);
            assert!(text.contains("2 messages"), "{text}");
            put(
                place,
                "a.zip",
                &zip(&[
                    ("box", mbox(&["three"]).as_bytes()),
                    ("x.eml", two.as_bytes()),
                ]),
            );
            let (status, _, said) = run(place, &["inspect", "a.zip"]);
            assert_eq!(status, 1, "{said}");
            assert_eq!(
                said.matches("whose separators are quoted").count(),
                1,
                "{said}"
            );
        }
    }
}
