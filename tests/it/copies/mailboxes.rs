//! The mailboxes of copies: all kinds, the source itself, and those that cannot be read.

use std::fs;
use std::io::Write as _;

use base64::Engine as _;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::{PDF, Place, STANDARD, deleted, whole, with_part};
use crate::common::archives::{tar, zip};
use crate::common::programs::{embody, fed};

fn incomplete() -> String {
    with_part("hello", &deleted())
}

fn mbox(mails: &[&str]) -> String {
    mails
        .iter()
        .map(|mail| format!("From ann@example.org Mon May  6 10:00:00 2024\n{mail}\n"))
        .collect()
}

fn other(number: usize) -> String {
    with_part("other", "Content-Type: text/plain\n\nx")
        .replace("1@example", &format!("x{number}@example"))
}

#[test]
fn copy_is_found_in_each_kind_of_mailbox() {
    let several = mbox(&[&other(1), &other(2), &whole(), &other(3)]);
    let place = Place::with(&incomplete(), &[]);
    place.write("a.mbox", &several);
    place.write("crlf.mbox", several.replace('\n', "\r\n"));
    let mut gz = GzEncoder::new(Vec::new(), Compression::default());
    gz.write_all(several.as_bytes()).unwrap();
    let gz = gz.finish().unwrap();
    place.write("a.mbox.gz", &gz);
    place.write(
        "a.zip",
        zip(&[("Takeout/Mail/All.mbox", several.as_bytes())]),
    );
    place.write("a.tar", tar(&[("mail/a.mbox", b'0', several.as_bytes())]));
    place.write("one.eml", whole());
    for (folder, name, content) in [
        ("Maildir", "Maildir/cur/1.a:2,S", whole().into_bytes()),
        ("Maildir", "Maildir/cur/2.a:2,S", other(4).into_bytes()),
        ("tree", "tree/deep/in/a.mbox", several.clone().into_bytes()),
        ("packed", "packed/a.mbox.gz", gz),
    ] {
        let path = place.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::create_dir_all(
            place
                .path(folder)
                .join(if folder == "Maildir" { "new" } else { "." }),
        )
        .unwrap();
        fs::write(path, content).unwrap();
    }
    for (mailbox, index) in [
        ("a.mbox", 3),
        ("crlf.mbox", 3),
        ("a.mbox.gz", 3),
        ("a.zip", 3),
        ("a.tar", 3),
        ("one.eml", 1),
        ("Maildir", 1),
        ("tree", 3),
        ("packed", 3),
    ] {
        let line = format!(
            "recover --offline in.eml --copies {mailbox} --output out.eml --report rows.jsonl"
        );
        place.run(&line, 0);
        let row = &place.rows()[0];
        assert_eq!(
            (&row["from"], &row["copy"]["index"]),
            (&"copy".into(), &index.into()),
            "{mailbox}: {row:#}"
        );
        assert!(
            place.read("out.eml").contains(&STANDARD.encode(PDF)[..60]),
            "{mailbox}"
        );
        for name in ["out.eml", "rows.jsonl"] {
            fs::remove_file(place.path(name)).unwrap();
        }
    }
}

#[test]
fn mbox_that_is_source_and_copies_is_filled_in_place_and_beside() {
    let place = Place::new();
    place.write("a.mbox", mbox(&[&incomplete(), &other(1), &whole()]));
    place.run(
        "recover --offline a.mbox --copies a.mbox --output b.mbox",
        0,
    );
    let beside = place.read("b.mbox");
    assert_eq!(beside.matches(&STANDARD.encode(PDF)[..60]).count(), 2);
    assert!(!beside.contains("You deleted"));
    place.run("recover --offline --in-place a.mbox --copies a.mbox", 0);
    assert_eq!(place.read("a.mbox"), beside);
    place.run("recover --offline --in-place a.mbox --copies a.mbox", 0);
    assert_eq!(place.read("a.mbox"), beside);
}

#[test]
fn directory_of_mailboxes_completes_itself_in_place() {
    let place = Place::new();
    fs::create_dir(place.path("mail")).unwrap();
    let with_id = |mail: String, number: usize| {
        mail.replace("1@example.org", &format!("{number}@example.org"))
    };
    let one: Vec<String> = (0..4)
        .map(|it| with_id(if it % 2 == 0 { incomplete() } else { whole() }, it))
        .collect();
    let two: Vec<String> = (0..4)
        .map(|it| with_id(if it % 2 == 1 { incomplete() } else { whole() }, it))
        .collect();
    for (name, mails) in [("mail/a.mbox", &one), ("mail/b.mbox", &two)] {
        let mails: Vec<&str> = mails.iter().map(String::as_str).collect();
        place.write(name, mbox(&mails));
    }
    place.run("recover --offline --in-place mail --copies mail", 0);
    for name in ["mail/a.mbox", "mail/b.mbox"] {
        let text = place.read(name);
        assert!(!text.contains("You deleted"), "{name}: {text}");
        assert_eq!(
            text.matches(&STANDARD.encode(PDF)[..60]).count(),
            4,
            "{name}"
        );
    }
}

#[test]
fn mailbox_that_cannot_be_read_ends_the_run_before_it_begins() {
    let place = Place::with(&incomplete(), &[&whole()]);
    place.write("picture.png", b"\x89PNG\r\n\x1a\n and so on");
    for (mailbox, words, status) in [
        ("missing.mbox", "missing.mbox", 1),
        ("picture.png", "picture.png", 1),
        ("-", "cannot read standard input", 2),
        (
            "imaps://ann@mail.example.org/",
            "download the mail with embody convert",
            2,
        ),
    ] {
        let line =
            format!("recover --offline in.eml --copies mail --copies {mailbox} --output out.eml");
        let said = place.run(&line, status);
        assert!(said.contains(words), "{said}");
        assert!(!place.path("out.eml").exists(), "{mailbox}");
        let mut filter = embody();
        filter
            .current_dir(place.0.path())
            .args(["filter", "--copies", mailbox]);
        let output = fed(&mut filter, incomplete().as_bytes());
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(75), 0),
            "{mailbox}"
        );
    }
}

#[test]
fn damaged_file_among_the_copies_is_named_and_the_run_goes_on() {
    let place = Place::with(&incomplete(), &[&whole()]);
    let mut gz = GzEncoder::new(Vec::new(), Compression::default());
    let mails: String = (0..200).map(|number| mbox(&[&other(number)])).collect();
    gz.write_all(mails.as_bytes()).unwrap();
    let gz = gz.finish().unwrap();
    place.write("mail/b.mbox.gz", &gz[..gz.len() / 2]);
    let said = place.run("recover --offline in.eml --copies mail --output out.eml", 1);
    assert!(said.contains("b.mbox.gz"), "{said}");
    assert!(place.read("out.eml").contains(&STANDARD.encode(PDF)[..60]));
}

#[test]
fn filter_takes_parts_from_copies() {
    let place = Place::with(&incomplete(), &[&whole()]);
    let mut filter = embody();
    filter
        .current_dir(place.0.path())
        .args(["filter", "--copies", "mail"]);
    let output = fed(&mut filter, incomplete().as_bytes());
    assert_eq!(output.status.code(), Some(0));
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.contains(&STANDARD.encode(PDF)[..60]), "{out}");
}
