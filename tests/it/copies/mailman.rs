//! Notes of Mailman: the proof with generated mails, languages, and notes that say less.

use std::path::Path;
use std::process::Command;

use super::{PDF, Place, STANDARD};
use crate::common::programs::{embody_in, has_python, stderr};
use base64::Engine as _;

/// Mails of eight kinds, several of each.
const COUNT: usize = 48;

#[test]
fn every_part_of_scrubbed_mails_comes_back_from_the_originals() {
    if !has_python("every_part_of_scrubbed_mails", "email", "python3") {
        return;
    }
    let place = Place::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/copies/scrub.py");
    let python = |words: &[&str]| {
        let mut command = Command::new("python3");
        command.arg(&script).args(words).current_dir(place.0.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    python(&["make", ".", &COUNT.to_string()]);
    for scrubbed in ["delivered.mbox", "monthly.mbox"] {
        let result = format!("whole-{scrubbed}");
        let line = format!("recover --offline {scrubbed} --copies original.mbox --output {result}");
        let said = place.run(&line, 0);
        let words = format!("{COUNT} messages read, {COUNT} changed.");
        assert!(said.contains(&words), "{said}");
        let compared = python(&["compare", "original.mbox", &result]);
        assert!(compared.ends_with(" parts, 0 different\n"), "{compared}");
        // A second run changes nothing.
        let line = format!("recover --offline {result} --copies original.mbox --output again.mbox");
        place.run(&line, 0);
        assert_eq!(place.read("again.mbox"), place.read(&result));
        std::fs::remove_file(place.path("again.mbox")).unwrap();
    }
}

/// The first and last digits of the SHA-1 of the Message-ID `<1.team@mail.example.org>`.
const HASH: &str = "5a579ce7";

const FIELDS: &str = "From: Ann Example <ann@example.org>\nTo: team@mail.example.org\n\
    Date: Tue, 14 May 2024 12:00:01 +0200\nSubject: a mail\nMessage-ID: <1.team@mail.example.org>\n\
    MIME-Version: 1.0\n";

const SEPARATOR: &str = "-------------- next part --------------\n";

pub(super) fn scrubbed(notes: &[&str]) -> String {
    let notes: Vec<String> = notes
        .iter()
        .map(|note| {
            let url =
                format!("http://lists.example.org/pipermail/team/attachments/20240514/{HASH}/");
            note.replace("URL/", &url)
        })
        .collect();
    format!(
        "{FIELDS}Content-Type: text/plain\n\nhello\n{SEPARATOR}{}",
        notes.join(SEPARATOR)
    )
}

pub(super) fn original(parts: &[&str]) -> String {
    let parts: String = parts.iter().map(|part| format!("--b\n{part}\n")).collect();
    format!(
        "{FIELDS}Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nhello\n{parts}--b--\n"
    )
}

pub(super) fn pdf(name: &str, content: &[u8]) -> String {
    format!(
        "Content-Type: application/pdf; name=\"{name}\"\nContent-Transfer-Encoding: base64\n\n{}",
        STANDARD.encode(content)
    )
}

pub(super) fn note(name: &str, size: usize) -> String {
    format!(
        "A non-text attachment was scrubbed...\nName: {name}\nType: application/pdf\nSize: {size} bytes\nDesc: not available\nURL: <URL/attachment.pdf>\n"
    )
}

#[test]
fn note_in_another_language_is_filled() {
    let note = format!(
        "Ein Dateianhang mit Bin\u{e4}rdaten wurde abgetrennt...\nDateiname   : a.pdf\nDateityp    : application/pdf\n\
         Dateigr\u{f6}\u{df}e  : {} bytes\nBeschreibung: nicht verf\u{fc}gbar\nURL         : <URL/attachment.pdf>\n",
        PDF.len()
    );
    let place = Place::with(&scrubbed(&[&note]), &[&original(&[&pdf("a.pdf", PDF)])]);
    let (out, row) = place.filled();
    assert!(
        out.contains("Content-Type: application/pdf; name=\"a.pdf\""),
        "{out}"
    );
    assert_eq!(row["proved"], true);
    assert_eq!(row["copy"]["index"], 1);
    assert!(
        row["copy"]["source"]
            .as_str()
            .unwrap()
            .ends_with("/mail/1.eml"),
        "{row}"
    );
}

#[test]
fn html_that_mailman_removed_comes_back_with_its_charset() {
    let html = "Content-Type: text/html; charset=windows-1252\nContent-Transfer-Encoding: quoted-printable\n\n<p>=80 5</p>";
    let mail = scrubbed(&["HTML attachment scrubbed and removed\n"]);
    let place = Place::with(&mail, &[&original(&[html])]);
    let (out, row) = place.filled();
    assert!(out.contains("text/html; charset=windows-1252"), "{out}");
    assert!(out.contains("<p>=80 5</p>"), "{out}");
    assert_eq!(
        row.get("proved"),
        None,
        "the note says nothing of the content"
    );
    let (reason, detail) = Place::with(&mail, &[]).left();
    assert_eq!(reason, "not-in-copies");
    assert!(
        detail.contains("no other copy of this mail is in --copies")
            || detail.contains("no other copy"),
        "{detail}"
    );
}

#[test]
fn file_with_another_name_size_or_type_than_in_the_note_is_not_used() {
    let mail = scrubbed(&[&note("a.pdf", PDF.len())]);
    Place::with(&mail, &[&original(&[&pdf("a.pdf", PDF)])]).filled();
    for other in [
        pdf("b.pdf", PDF),
        pdf("a.pdf", &PDF[1..]),
        pdf("a.pdf", PDF).replace("application/pdf", "application/zip"),
    ] {
        let (reason, _) = Place::with(&mail, &[&original(&[&other])]).left();
        assert_eq!(reason, "offline", "{other}");
    }
}

#[test]
fn notes_are_filled_in_their_order_and_those_without_a_copy_stay() {
    let two = [
        note("a.pdf", PDF.len()),
        note("b.pdf", 3).replace("attachment.pdf", "attachment-0001.pdf"),
    ];
    let mail = scrubbed(&two.each_ref().map(String::as_str));
    let both = original(&[&pdf("a.pdf", PDF), &pdf("b.pdf", b"abc")]);
    let (out, rows) = Place::with(&mail, &[&both]).recovered();
    let order = [
        out.find(&STANDARD.encode(PDF)[..60]),
        out.find(&STANDARD.encode("abc")),
    ];
    assert!(order[0].is_some() && order[0] < order[1], "{out}");
    assert!(rows.iter().all(|row| row["outcome"] == "expanded"));
    // A copy of which Thunderbird deleted the second file.
    let deleted = "Content-Type: text/x-moz-deleted; name=\"Deleted: b.pdf\"\nX-Mozilla-Altered: AttachmentDeleted; date=\"x\"\n\n\
        You deleted an attachment from this message. The original MIME headers for the attachment were:\n\
        Content-Type: application/pdf; name=\"b.pdf\"\nContent-Transfer-Encoding: base64\n";
    let part = original(&[&pdf("a.pdf", PDF), deleted]);
    let place = Place::with(&mail, &[&part]);
    let (out, rows) = place.recovered();
    let outcomes: Vec<&str> = rows
        .iter()
        .map(|row| row["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["expanded", "left"], "{rows:#?}");
    assert!(out.contains("Name: b.pdf"), "{out}");
}

#[test]
fn copy_is_used_in_a_dry_run_and_in_inspect_in_the_same_way() {
    let place = Place::with(
        &scrubbed(&[&note("a.pdf", PDF.len())]),
        &[&original(&[&pdf("a.pdf", PDF)])],
    );
    place.run(
        "recover --offline in.eml --copies mail --output out.eml --dry-run --report rows.jsonl",
        0,
    );
    let rows = place.rows();
    assert_eq!(rows[0]["outcome"], "would-expand", "{rows:#?}");
    let words = [
        "inspect", "--follow", "mailman", "--json", "--copies", "mail", "in.eml",
    ];
    let output = embody_in(place.0.path(), &words);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("\"outcome\":\"would-expand\"") && text.contains("\"from\":\"copy\""),
        "{text}"
    );
}
