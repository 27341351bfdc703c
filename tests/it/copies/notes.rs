//! Notes of Thunderbird, mutt, Apple Mail, Sympa and `embody detach`, and external bodies with a digest or a size.

use std::fs;

use base64::Engine as _;
use md5::{Digest as _, Md5};

use super::{FIELDS, PDF, Place, STANDARD, attachment, deleted, samples, whole, with_part};

/// What fills a note in the place of [`attachment`]: its header, and the content.
#[track_caller]
fn assert_is_attached(out: &str) {
    let octets = STANDARD.encode(PDF);
    assert!(out.contains(&octets[..60]), "{out}");
    assert!(
        out.contains("Content-Type: application/pdf; name=a.pdf"),
        "{out}"
    );
    assert!(
        !out.contains("You deleted") && !out.contains("external-body"),
        "{out}"
    );
}

#[test]
fn attachment_that_thunderbird_deleted_comes_back_with_its_header() {
    let place = Place::with(&with_part("hello", &deleted()), &[&whole()]);
    let (out, row) = place.filled();
    assert_is_attached(&out);
    assert_eq!(row["kind"], "detached");
    assert!(
        !out.contains("X-Mozilla") && !out.contains("Deleted: "),
        "{out}"
    );
}

#[test]
fn attachment_that_thunderbird_detached_comes_from_a_copy_before_its_file() {
    let detached = deleted()
        .replace(
            "text/x-moz-deleted; name=\"Deleted: a.pdf\"",
            "application/pdf; name=\"a.pdf\"",
        )
        .replace("Deleted: a.pdf", "a.pdf")
        .replace("AttachmentDeleted", "AttachmentDetached")
        .replace(
            "X-Mozilla-Altered",
            "X-Mozilla-External-Attachment-URL: file:///home/ann/a.pdf\nX-Mozilla-Altered",
        );
    let place = Place::with(&with_part("hello", &detached), &[&whole()]);
    fs::create_dir(place.path("files")).unwrap();
    place.write("files/a.pdf", "another file");
    let line = "recover --offline in.eml --attachments files --copies mail --output out.eml --report rows.jsonl";
    place.run(line, 0);
    assert_eq!(place.rows()[0]["from"], "copy");
    assert_is_attached(&place.read("out.eml"));
    fs::remove_file(place.path("out.eml")).unwrap();
    let line = line.replace(" --copies mail", "");
    place.run(&line, 0);
    assert!(
        place
            .read("out.eml")
            .contains(&STANDARD.encode("another file"))
    );
}

#[test]
fn attachment_that_mutt_deleted_comes_back() {
    let deleted = format!(
        "Content-Type: message/external-body; access-type=x-mutt-deleted;\n\
         \texpiration=\"Mon, 6 May 2024 11:00:00 +0200\"; length=88\n\n{}",
        attachment(PDF).split_once("\n\n").unwrap().0
    );
    let place = Place::with(&with_part("hello", &format!("{deleted}\n")), &[&whole()]);
    let (out, _) = place.filled();
    assert_is_attached(&out);
    let (reason, _) = Place::with(&with_part("hello", &format!("{deleted}\n")), &[]).left();
    assert_eq!(reason, "not-in-copies");
}

#[test]
fn external_body_is_filled_from_any_mail_by_md5_and_from_its_own_by_size() {
    let md5 = STANDARD.encode(Md5::digest(PDF));
    let external = |more: &str, fields: &str| {
        let part = format!(
            "Content-Type: message/external-body; access-type=URL;\n URL=\"https://files.example.org/a.pdf\"{more}\n\n\
             Content-Type: application/pdf; name=a.pdf\n{fields}"
        );
        with_part("hello", &part)
    };
    let by_md5 = external("", &format!("Content-MD5: {md5}\n"));
    let other = whole()
        .replace("1@example", "2@example")
        .replace("hello", "another mail");
    let (out, row) = Place::with(&by_md5, &[&other]).filled();
    assert!(out.contains(&STANDARD.encode(PDF)[..60]), "{out}");
    assert_eq!(row["proved"], true);
    // The same digest with a false size proves nothing.
    let mail = external("; size=7", &format!("Content-MD5: {md5}\n"));
    let (reason, _) = Place::with(&mail, &[&other]).left();
    assert_eq!(reason, "offline");
    let by_size = external(&format!("; size={}", PDF.len()), "");
    let (out, row) = Place::with(&by_size, &[&whole()]).filled();
    assert!(out.contains(&STANDARD.encode(PDF)[..60]), "{out}");
    assert_eq!(row["proved"], true);
    for (mail, copy) in [
        (by_size.as_str(), other.as_str()),
        // Nothing proves the content.
        (&external("", ""), &whole()),
        (&external("; size=7", ""), &whole()),
    ] {
        let (reason, _) = Place::with(mail, &[copy]).left();
        assert_eq!(reason, "offline", "{mail}");
    }
}

#[test]
fn detached_attachment_comes_back_byte_for_byte_from_this_mail_and_from_any_other() {
    let original = fs::read_to_string(samples().join("detach/attachment.in.eml")).unwrap();
    let place = Place::with(&original, &[]);
    place.run(
        "detach --quiet --store store --larger-than 100 in.eml --output light.eml",
        0,
    );
    let light = place.read("light.eml");
    assert!(light.contains("X-Embody-Detached"), "{light}");
    let (_, part) = original
        .split_once("--=_mixed\nContent-Type: application")
        .unwrap();
    let other = with_part(
        "quite another mail",
        &format!("Content-Type: application{part}"),
    )
    .replace("--=_mixed--", "");
    for copy in [&original, &other] {
        let place = Place::with(&light, &[copy]);
        let (out, row) = place.filled();
        assert_eq!(out, original);
        assert_eq!(
            (&row["outcome"], &row["proved"]),
            (&"restored".into(), &true.into())
        );
    }
    let forged = original.replace("1Ju7lFmOOA1", "2Ju7lFmOOA1");
    let (reason, detail) = Place::with(&light, &[&forged]).left();
    assert_eq!(reason, "scheme-not-allowed");
    assert!(detail.contains("no mail with this content"), "{detail}");
}

#[test]
fn detached_text_is_found_whatever_line_ends_its_copy_has() {
    let text = "Content-Type: text/x-diff; name=a.diff\nContent-Disposition: attachment\n\n"
        .to_owned()
        + &"+ a line of a patch\n".repeat(200);
    let original = with_part("hello", &text);
    let place = Place::with(&original, &[]);
    place.run(
        "detach --quiet --store store --larger-than 100 in.eml --output light.eml",
        0,
    );
    let light = place.read("light.eml");
    assert!(light.contains("X-Embody-Detached"), "{light}");
    let crlf = original.replace('\n', "\r\n");
    for copy in [&original, &crlf] {
        assert_eq!(Place::with(&light, &[copy]).filled().0, original);
    }
}

#[test]
fn part_of_apple_mail_comes_from_a_copy_if_its_file_is_missing() {
    let octets = [PDF, PDF].concat();
    let encoded = STANDARD.encode(&octets);
    let lines: Vec<&str> = encoded
        .as_bytes()
        .chunks(76)
        .map(|it| std::str::from_utf8(it).unwrap())
        .collect();
    let body = format!("{}\n", lines.join("\n"));
    let header = "Content-Disposition: attachment;\n\tfilename=a.pdf\nContent-Type: application/pdf;\n\tname=a.pdf\n\
        Content-Transfer-Encoding: base64\n";
    let stub = with_part(
        "hello",
        &format!("{header}X-Apple-Content-Length: {}\n\n", body.len()),
    );
    let original = with_part("hello", &format!("{header}\n{}", body.trim_end()));
    let emlx = format!(
        "{:<10}\n{stub}<?xml version=\"1.0\"?><plist version=\"1.0\"><dict/></plist>\n",
        stub.len()
    );
    let place = Place::with("", &[&original]);
    fs::create_dir_all(place.path("Data/Messages")).unwrap();
    place.write("Data/Messages/7.partial.emlx", &emlx);
    let line = "recover --offline Data/Messages/7.partial.emlx --copies mail --output out.emlx --report rows.jsonl";
    place.run(line, 0);
    let row = &place.rows()[0];
    assert_eq!(
        (&row["kind"], &row["from"], &row["proved"]),
        (&"apple".into(), &"copy".into(), &true.into()),
        "{row:#}"
    );
    let out = place.read("out.emlx");
    assert!(
        out.contains(&body) && !out.contains("X-Apple-Content-Length"),
        "{out}"
    );
    // The file next to the mailbox comes first.
    fs::create_dir_all(place.path("Data/Attachments/7/2")).unwrap();
    place.write("Data/Attachments/7/2/a.pdf", &octets);
    fs::remove_file(place.path("out.emlx")).unwrap();
    fs::remove_file(place.path("rows.jsonl")).unwrap();
    place.run(line, 0);
    assert_eq!(place.rows()[0]["from"], "file");
    // A length that does not fit is another attachment.
    let other = original.replace(&lines[0][..40], &lines[0][..20]);
    fs::remove_dir_all(place.path("Data/Attachments")).unwrap();
    fs::remove_file(place.path("out.emlx")).unwrap();
    fs::remove_file(place.path("rows.jsonl")).unwrap();
    place.write("mail/1.eml", &other);
    place.run(line, 0);
    assert_eq!(place.rows()[0]["reason"], "file-not-readable");
}

#[test]
fn attachment_that_sympa_keeps_comes_from_a_copy() {
    let note = "Content-Type: text/plain; charset=utf-8; format=flowed\nContent-Disposition: inline\n\n\
        The a.pdf file that was initially attached to this message has been stored on the server:\n\
        https://lists.example.org/sympa/attach/dev/20240506/a.pdf\n";
    let place = Place::with(&with_part("hello", note), &[&whole()]);
    let (out, row) = place.filled();
    assert!(out.contains(&STANDARD.encode(PDF)[..60]), "{out}");
    assert_eq!(row["kind"], "hosted");
    let other = whole().replace("a.pdf", "b.pdf");
    let (reason, _) = Place::with(&with_part("hello", note), &[&other]).left();
    assert_eq!(reason, "offline");
}

#[test]
fn signed_part_stays_as_it_is() {
    let mail = format!(
        "{FIELDS}Content-Type: multipart/signed; boundary=b; protocol=\"application/pgp-signature\"\n\n--b\n{}--b\n\
         Content-Type: application/pgp-signature\n\nx\n--b--\n",
        deleted()
    );
    let (reason, _) = Place::with(&mail, &[&whole()]).left();
    assert_eq!(reason, "signed");
}
