//! Walks through folders: what they pass over, and what they name (docs/mailboxes.md, "Folders").

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Output;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::common::programs::embody;

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = embody();
    command.current_dir(folder).args(arguments);
    command.output().unwrap()
}

#[track_caller]
fn done(output: &Output, status: i32) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{said}");
    said
}

/// A message with an attachment that is an mbox of messages with something to do.
fn message_with_mbox() -> String {
    let inner = "From x@y Mon Jan  1 00:00:00 2024\nFrom: a@b\nSubject: inner\nMIME-Version: 1.0\n\
        Content-Type: message/external-body; access-type=URL; URL=\"data:,x\"\n\n\
        Content-Type: text/plain\n\n\n"
        .repeat(1000);
    format!(
        "From: a@b\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=z\n\n--z\n\
         Content-Type: application/octet-stream; name=x.mbox\n\
         Content-Disposition: attachment\nContent-Transfer-Encoding: base64\n\n{}\n--z--\n",
        lines(&BASE64.encode(inner))
    )
}

fn lines(base64: &str) -> String {
    let lines: Vec<&str> = base64
        .as_bytes()
        .chunks(76)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    lines.join("\n")
}

#[test]
fn a_store_among_the_mail_is_no_mail() {
    for (store, message) in [
        ("mail/store", "mail/1.eml"),
        ("mail/.store", "mail/cur/1"),
        ("mail/store", "mail/new/1"),
        ("mail", "mail/1.eml"),
    ] {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        let original = message_with_mbox();
        if !message.ends_with(".eml") {
            for part in ["cur", "new", "tmp"] {
                fs::create_dir_all(place.join("mail").join(part)).unwrap();
            }
        }
        fs::create_dir_all(place.join(message).parent().unwrap()).unwrap();
        fs::write(place.join(message), &original).unwrap();
        let detach = [
            "detach",
            "--store",
            store,
            "--in-place",
            "--verbose",
            "mail",
        ];
        done(&run(place, &detach), 0);
        assert!(fs::metadata(place.join(message)).unwrap().len() < original.len() as u64 / 2);
        let said = done(
            &run(place, &["convert", "--in-place", "--verbose", "mail"]),
            0,
        );
        assert!(said.contains("of detached attachments"), "{store}: {said}");
        done(&run(place, &detach), 0);
        done(&run(place, &["store", "check", store]), 0);
        let back = run(place, &["restore", "--store", store, message]);
        done(&back, 0);
        assert_eq!(back.stdout, original.as_bytes(), "{store}");
    }
}

#[test]
fn a_store_that_is_named_as_a_source_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    fs::write(place.join("1.eml"), message_with_mbox()).unwrap();
    done(
        &run(place, &["detach", "--store", "s", "--in-place", "1.eml"]),
        0,
    );
    let said = done(&run(place, &["convert", "--in-place", "s"]), 1);
    assert!(said.contains("store"), "{said}");
}

#[test]
fn a_cache_among_the_mail_is_no_mail() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    fs::create_dir(place.join("mail")).unwrap();
    fs::write(place.join("mail/1.eml"), "From: a@b\n\nx\n").unwrap();
    let convert = [
        "convert",
        "--in-place",
        "--verbose",
        "--fetch",
        "http",
        "--cache",
        "mail/cache",
        "mail",
    ];
    done(&run(place, &convert), 0);
    fs::create_dir_all(place.join("mail/cache/bodies/ab/cd")).unwrap();
    let body = place.join("mail/cache/bodies/ab/cd/answer");
    fs::write(&body, message_with_mbox()).unwrap();
    let said = done(
        &run(place, &["convert", "--in-place", "--verbose", "mail"]),
        0,
    );
    assert!(said.contains("mail/cache: skipped: a cache"), "{said}");
    assert!(said.contains("1 messages"), "{said}");
}

#[test]
fn a_folder_of_mail_is_not_taken_for_a_store() {
    let message = "From: a@b\n\nx\n";
    for files in [
        // What is missing, or what lies beside, tells that it is none.
        &["f/.lock", "f/ab/cd/1.eml"][..],
        &["f/.lock", "f/.tmp/x", "f/1.eml", "f/ab/1.eml"],
        &["f/.lock", "f/.tmp/x", "f/ab/1.eml"],
        &["f/.lock", "f/.tmp/x", "f/AB/cd/1.eml"],
        &["f/.tmp/x", "f/ab/cd/1.eml"],
    ] {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        for file in files {
            let path = place.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, if file.ends_with("eml") { message } else { "" }).unwrap();
        }
        let said = done(&run(place, &["convert", "f", "--output", "to"]), 0);
        for file in files.iter().filter(|file| file.ends_with("eml")) {
            let copy = place.join(file.replacen('f', "to", 1));
            assert!(copy.is_file(), "{file}: {said}");
        }
    }
}

/// A message of an mbox with something to do.
fn of_mbox(number: u32) -> String {
    format!(
        "From a@b Mon Jan  1 00:00:00 2024\nSubject: {number}\nMIME-Version: 1.0\n\
         Content-Type: message/external-body; access-type=URL; URL=\"data:,x\"\n\n\
         Content-Type: text/plain\n\n\n"
    )
}

fn zipped(octets: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(octets).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn no_message_is_left_out_for_an_odd_header() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    fs::create_dir(place.join("mail")).unwrap();
    let odd = [
        (
            "a.eml",
            b"From: a@b\nSubject: x\n>From a@b Mon Jan  1 00:00:00 2024\nTo: c@d\n\nhello\n"
                .to_vec(),
        ),
        (
            "b.eml",
            b"\xef\xbb\xbfFrom: a@b\nSubject: x\n\nhello\n".to_vec(),
        ),
        ("c.EML", b"Fr\xffm a@b\n\nhello\n".to_vec()),
        ("d.eml", b"\n\nhello\n".to_vec()),
        ("e.eml", vec![0; 100]),
        ("f.eml.gz", zipped(b"Fr\xffm a@b\n\nhello\n")),
        (
            "g",
            b"From: a@b\nS\xffbject: x\nTo: c@d\n\nhello\n".to_vec(),
        ),
        ("h", b"\n\nFrom: a@b\nTo: c@d\n\nhello\n".to_vec()),
    ];
    for (name, content) in &odd {
        fs::write(place.join("mail").join(name), content).unwrap();
    }
    fs::write(place.join("mail/notes.txt"), "Dear all,\nSubject: x\n").unwrap();
    let said = done(&run(place, &["convert", "mail", "--output", "to"]), 0);
    assert!(said.contains("8 messages"), "{said}");
    assert!(said.contains("1 files hold no mail"), "{said}");
    done(&run(place, &["convert", "--in-place", "mail"]), 0);
    for (name, content) in &odd {
        assert_eq!(
            &fs::read(place.join("mail").join(name)).unwrap(),
            content,
            "{name}"
        );
        if !name.ends_with("gz") {
            assert_eq!(
                &fs::read(place.join("to").join(name)).unwrap(),
                content,
                "{name}"
            );
        }
        let named = format!("mail/{name}");
        done(
            &run(place, &["convert", &named, "--output", "/dev/null"]),
            0,
        );
    }
}

#[test]
fn a_byte_order_mark_stays_in_front_of_an_mbox() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    fs::create_dir(place.join("mail")).unwrap();
    let messages = [of_mbox(1), of_mbox(2)].join("\n");
    fs::write(place.join("plain"), &messages).unwrap();
    done(&run(place, &["convert", "--in-place", "plain"]), 0);
    let read = |path: &str| fs::read_to_string(place.join(path)).unwrap();
    let expected = format!("\u{feff}{}", read("plain"));
    assert!(!expected.contains("external-body"), "{expected}");
    fs::write(place.join("mail/box"), format!("\u{feff}{messages}")).unwrap();
    let said = done(&run(place, &["convert", "mail", "--output", "to"]), 0);
    assert!(said.contains("2 messages"), "{said}");
    assert_eq!(read("to/box"), expected);
    done(
        &run(place, &["convert", "mail/box", "--output", "alone"]),
        0,
    );
    assert_eq!(read("alone"), expected);
    let ranges = run(place, &["split", "--size", "100", "mail/box"]);
    done(&ranges, 0);
    let mut joined = Vec::new();
    for line in String::from_utf8(ranges.stdout).unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let range = format!("{}-{}", line["from"], line["to"]);
        let piece = ["convert", "--range", &range, "mail/box", "--output", "-"];
        let piece = run(place, &piece);
        done(&piece, 0);
        joined.extend(piece.stdout);
    }
    assert_eq!(String::from_utf8(joined).unwrap(), expected);
    done(&run(place, &["convert", "--in-place", "mail"]), 0);
    assert_eq!(read("mail/box"), expected);
}
