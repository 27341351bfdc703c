//! Notes in the archives of Yahoo Groups: a part that has its header, and a sentence in place of its content.

use base64::Engine as _;

use super::{FIELDS, Place, STANDARD, attachment, whole, with_part};
use crate::common::programs::embody_in;

/// Content whose base64 has one line.
const FILE: &[u8] = b"%PDF-1.4 a file of some bytes";

const NOTE: &str = "[ Attachment content not displayed ]";

/// Returns a part with the note in place of its body.
fn noted(part: &str) -> String {
    let (header, _) = part.split_once("\n\n").unwrap();
    format!("{header}\n\n{NOTE}")
}

/// Returns the part with another name and content.
fn other(name: &str, content: &[u8]) -> String {
    let part = attachment(content);
    part.replace("a.pdf", name)
}

#[test]
fn note_of_yahoo_groups_becomes_the_attachment_of_a_copy_byte_for_byte() {
    let picture = format!(
        "Content-Type: image/png\nContent-ID: <p@example.org>\nContent-Transfer-Encoding: base64\n\n{}",
        STANDARD.encode(b"\x89PNG\r\n\x1a\n and so on")
    );
    let letter = "Content-Type: text/plain; charset=utf-8; name=\"notes.txt\"\n\
        Content-Disposition: attachment; filename=\"notes.txt\"\n\nJust some text\n";
    let mail = "Content-Type: message/rfc822\nContent-Disposition: attachment; filename=old.eml\n\n\
        From: x@example.org\nSubject: old\n\nan older mail\n";
    let nested =
        |part: &str| format!("Content-Type: multipart/related; boundary=c\n\n--c\n{part}\n--c--\n");
    for (what, part, note) in [
        ("attachment", attachment(FILE), noted(&attachment(FILE))),
        (
            "another spelling",
            attachment(FILE),
            noted(&attachment(FILE)).replace(NOTE, "[Attachment content not displayed.]\n"),
        ),
        (
            "no blank before the bracket",
            attachment(FILE),
            noted(&attachment(FILE)).replace(NOTE, "[ Attachment content not displayed]"),
        ),
        ("picture without a name", picture.clone(), noted(&picture)),
        ("text", letter.to_owned(), noted(letter)),
        ("attached mail", mail.to_owned(), noted(mail)),
        (
            "in a multipart",
            nested(&attachment(FILE)),
            nested(&noted(&attachment(FILE))),
        ),
    ] {
        for newline in ["\n", "\r\n"] {
            let [mail, copy] =
                [&note, &part].map(|it| with_part("hello", it).replace('\n', newline));
            let place = Place::with(&mail, &[&copy]);
            let (out, rows) = place.recovered();
            assert_eq!(out, copy, "{what}");
            assert_eq!(rows[0]["kind"], "yahoo-groups", "{what}");
            assert_eq!(rows[0]["from"], "copy", "{what}");
        }
    }
}

#[test]
fn several_notes_of_yahoo_groups_in_a_mail_get_their_own_attachments() {
    let (one, two) = (
        other("one.pdf", b"%PDF-1.4 one"),
        other("two.pdf", b"%PDF-1.4 two"),
    );
    let mail = |one: &str, two: &str| with_part("hello", &format!("{one}\n--b\n{two}"));
    let copy = mail(&one, &two);
    let place = Place::with(&mail(&noted(&one), &noted(&two)), &[&copy]);
    assert_eq!(place.recovered().0, copy);
    // Each copy has one of the attachments.
    let halves = [mail(&one, &noted(&two)), mail(&noted(&one), &two)];
    let place = Place::with(&mail(&noted(&one), &noted(&two)), &[&halves[0], &halves[1]]);
    assert_eq!(place.recovered().0, copy);
}

#[test]
fn mail_that_is_only_a_note_of_yahoo_groups_is_counted_and_stays() {
    // The rest of the mail does not show which copy is the same mail.
    let copy = format!("{FIELDS}{}\n", attachment(FILE));
    let place = Place::with(&format!("{FIELDS}{}\n", noted(&attachment(FILE))), &[&copy]);
    assert_eq!(place.left().0, "not-in-copies");
}

#[test]
fn note_of_yahoo_groups_is_counted_and_stays_without_a_copy() {
    let part = noted(&attachment(FILE));
    let mail = with_part("hello", &part);
    let (reason, row) = Place::with(&mail, &[]).left();
    assert_eq!(reason, "not-in-copies", "{row}");
    let wrong = whole().replace("a.pdf", "b.pdf");
    assert_eq!(Place::with(&mail, &[&wrong]).left().0, "not-in-copies");
    let place = Place::with(&mail, &[]);
    let output = embody_in(place.0.path(), &["inspect", "--json", "in.eml"]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("\"kind\":\"yahoo-groups\""), "{told}");
    place.write(
        "box.mbox",
        format!("From a Mon May  6 10:00:00 2024\n{mail}\n"),
    );
    let output = embody_in(place.0.path(), &["inspect", "box.mbox"]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(
        told.contains("1 attachment that Yahoo Groups removed"),
        "{told}"
    );
}

#[test]
fn text_that_quotes_the_note_of_yahoo_groups_stays() {
    let quoted = format!("> {NOTE}\n\nWhy is it not displayed?");
    for part in [
        "Content-Type: text/plain\n\n".to_owned() + NOTE,
        format!("Content-Type: text/plain; name=a.txt\n\n{quoted}"),
        format!("Content-Type: application/pdf; name=a.pdf\n\n{NOTE}\nmore"),
        "Content-Type: application/pdf; name=a.pdf\nContent-Transfer-Encoding: base64\n\n"
            .to_owned()
            + &STANDARD.encode(NOTE),
    ] {
        let mail = with_part(&quoted, &part);
        let place = Place::with(&mail, &[&whole()]);
        let (out, rows) = place.recovered();
        assert_eq!((out, rows.len()), (mail, 0), "{part}");
    }
}
