//! Notes in place of parts, and copies that Pipermail reduced to four header fields.

use sha2::{Digest as _, Sha256};

use super::super::CoverDifference;
use super::{FIELDS, PDF, assert_others, attached, base64, mixed, parts, relation, text, whole};

#[test]
fn part_that_a_note_replaces_is_covered_by_its_content_and_by_nothing_else() {
    let digest = format!("{:x}", Sha256::digest(PDF));
    let note = |fields: &str, text: &str| parts(FIELDS, "hello\n", &format!("{fields}\n{text}\n"));
    let quoted =
        "Content-Type: application/pdf;\n name=\"a.pdf\"\nContent-Transfer-Encoding: base64\n";
    let length = base64(PDF).len() + 1;
    let detached = format!(
        "Content-Type: message/external-body; access-type=URL;\n URL=\"https://example.org/o/{digest}\"\n\nContent-Type: application/pdf; name=a.pdf\nX-Embody-Detached: sha256={digest};\n size={}; encoding=base64; line=76\n",
        PDF.len()
    );
    let mutt = format!(
        "Content-Type: message/external-body; access-type=x-mutt-deleted;\n expiration=\"Mon, 6 May 2024 10:00:00 +0200\"; length={}\n\n{quoted}",
        PDF.len()
    );
    let scrubbed = |size: usize| {
        // Mailman names the directory of an attachment with the first four and the last four digits of the SHA-1 of the
        // Message-ID.
        let hash = "50f524a0";
        format!(
            "{FIELDS}\nhello\n-------------- next part --------------\nA non-text attachment was scrubbed...\nName: a.pdf\nType: application/pdf\nSize: {size} bytes\nDesc: not available\nURL: <http://lists.example.org/pipermail/dev/attachments/20240506/{hash}/attachment.pdf>\n"
        )
    };
    let notes = [
        ("detached", note(detached.trim_end(), "")),
        (
            "deleted in Thunderbird",
            note(
                "Content-Type: text/x-moz-deleted; name=\"Deleted: a.pdf\"\nX-Mozilla-Altered: AttachmentDeleted; date=\"Mon May 06 10:00:00 2024\"\n",
                &format!(
                    "You deleted an attachment from this message. The original MIME headers for the attachment were:\n{quoted}"
                ),
            ),
        ),
        (
            "detached in Thunderbird",
            note(
                "Content-Type: text/plain;\n name=\"a.pdf\"\nX-Mozilla-External-Attachment-URL: file:///home/a/a.pdf\nX-Mozilla-Altered: AttachmentDetached; date=\"Mon May 06 10:00:00 2024\"\n",
                &format!(
                    "You deleted an attachment from this message. The original MIME headers for the attachment were:\n{quoted}"
                ),
            ),
        ),
        ("deleted in mutt", note(mutt.trim_end(), "")),
        (
            "partial in Apple Mail",
            note(
                &format!(
                    "Content-Type: application/pdf; name=a.pdf\nContent-Transfer-Encoding: base64\nX-Apple-Content-Length: {length}\n"
                ),
                "",
            ),
        ),
        ("scrubbed", scrubbed(PDF.len())),
    ];
    for (row, copy) in &notes {
        let [there, back] = relation(copy, &whole());
        assert_eq!(there, Ok(()), "{row}: {copy}");
        assert!(back.is_err(), "{row}");
        let others = [
            ("content", attached("base64", &base64(b"%PDF-1.4 forged"))),
            (
                "type",
                attached("base64", &base64(PDF)).replace("pdf;", "zip;"),
            ),
            (
                "name",
                attached("base64", &base64(PDF)).replace("a.pdf", "b.pdf"),
            ),
        ];
        for (what, file) in others {
            // A note of Thunderbird or mutt contains no digest, so a file with different content is still accepted. A note of
            // embody (`detached`) contains a digest, so only the content matters.
            let is_unproved =
                what == "content" && (row.contains("Thunderbird") || row.contains("mutt"));
            if is_unproved || *row == "detached" && what != "content" {
                continue;
            }
            let other = parts(FIELDS, "hello\n", &file);
            assert!(relation(copy, &other)[0].is_err(), "{row}: other {what}");
        }
        let more = whole().replace("--b--", "--b\n\nand more\n--b--");
        assert_eq!(
            relation(copy, &more)[0],
            Err(CoverDifference::Parts),
            "{row}"
        );
    }
    assert!(relation(&scrubbed(PDF.len() + 1), &whole())[0].is_err());
    // Two things must not matter: a line of hyphens in the text, which only looks like a separator of Mailman, and text around
    // the parts, which Mailman does not keep.
    let lines = "hello\n\n---------- a title ----------\n\nmore\n";
    let titled = scrubbed(PDF.len()).replace("hello\n", lines);
    let around = whole()
        .replace("hello\n", lines)
        .replace("b\n\n--b\n", "b\n\nA signed mail.\n--b\n");
    assert_eq!(relation(&titled, &around)[0], Ok(()));
}

#[test]
fn note_with_other_words_is_a_part_of_its_own() {
    let sentence = "You deleted an attachment from this message. The original MIME headers for the attachment were:";
    let deleted = "X-Mozilla-Altered: AttachmentDeleted; date=\"Mon May 06 10:00:00 2024\"\n";
    let quoted = "Content-Type: application/pdf;\n name=\"a.pdf\"\n";
    let note = |fields: &str, body: &str| parts(FIELDS, "hello\n", &format!("{fields}\n{body}\n"));
    let moz = format!("Content-Type: text/x-moz-deleted; name=a.pdf\n{deleted}");
    let digest = format!("{:x}", Sha256::digest(PDF));
    let external = |behind: &str| {
        format!(
            "Content-Type: message/external-body; access-type=URL;\n URL=\"https://example.org/o/{digest}\"\n\nContent-Type: application/pdf; name=a.pdf\nX-Embody-Detached: sha256={digest};\n size={}; encoding=base64; line=76\n\n{behind}",
            PDF.len()
        )
    };
    let of_external = |behind: &str| parts(FIELDS, "hello\n", &format!("{}\n", external(behind)));
    let whole = whole();
    let good = note(&moz, &format!("{sentence}\n{quoted}"));
    assert_eq!(relation(&good, &whole)[0], Ok(()));
    // Gmail adds a field to each attachment. The field must not prevent a match.
    let of_gmail = |mail: &str| {
        mail.replace("a.pdf\"\n", "a.pdf\"\nX-Attachment-Id: f_1\n")
            .replace("a.pdf\nContent-T", "a.pdf\nX-Attachment-Id: f_1\nContent-T")
    };
    assert_eq!(relation(&of_gmail(&good), &of_gmail(&whole))[0], Ok(()));
    // The attachment was first detached, and deleted later.
    let twice = note(
        &moz,
        &format!(
            "{sentence}\n{quoted}X-Mozilla-External-Attachment-URL: file:///a/a.pdf\nX-Mozilla-Altered: AttachmentDetached; date=\"Mon May 06 10:00:00 2024\""
        ),
    );
    assert_eq!(relation(&twice, &whole)[0], Ok(()));
    assert_eq!(relation(&of_external(""), &whole)[0], Ok(()));
    assert_others(&[
        ("a body", note(&moz, "The code is 4711."), whole.clone()),
        (
            "words after the note",
            note(&moz, &format!("{sentence}\n{quoted}\nThe code is 4711.")),
            whole.clone(),
        ),
        (
            "words before the note",
            note(&moz, &format!("4711\n{sentence}\n{quoted}")),
            whole.clone(),
        ),
        (
            "a field in the note",
            note(&moz, &format!("{sentence}\n{quoted}Subject: 4711")),
            whole.clone(),
        ),
        (
            "a description",
            note(
                &format!("{moz}Content-Description: 4711\n"),
                &format!("{sentence}\n{quoted}"),
            ),
            whole.clone(),
        ),
        (
            "another name in Content-Type",
            note(
                &format!(
                    "Content-Type: text/x-moz-deleted; name=\"Deleted: 4711\"\nContent-Disposition: inline; filename=\"Deleted: a.pdf\"\n{deleted}"
                ),
                &format!("{sentence}\n{quoted}"),
            ),
            whole.clone(),
        ),
        (
            "text after a detached part",
            of_external("The code is 4711."),
            whole.clone(),
        ),
        (
            "the mail itself",
            format!(
                "{FIELDS}{deleted}Content-Type: application/pdf; name=a.pdf\n\nThe code is 4711.\n"
            ),
            format!("{FIELDS}{}", attached("base64", &base64(PDF))),
        ),
        (
            "a multipart",
            note(
                &format!("{deleted}Content-Type: multipart/mixed; boundary=c\n"),
                "--c\n\n4711\n--c--",
            ),
            whole.clone(),
        ),
        (
            "a field of the note",
            note(
                &format!("{moz}Comments: 4711\n"),
                &format!("{sentence}\n{quoted}"),
            ),
            whole.clone(),
        ),
        (
            "a field with the start of Thunderbird's fields",
            note(
                &format!("{moz}X-Mozilla-Secret: 4711\n"),
                &format!("{sentence}\n{quoted}"),
            ),
            whole.clone(),
        ),
        (
            "such a field in the quoted header",
            note(&moz, &format!("{sentence}\n{quoted}X-Mozilla-Secret: 4711")),
            whole.clone(),
        ),
        (
            "words in a field of Thunderbird",
            note(
                &moz.replace("2024\"", "2024\"; code=4711"),
                &format!("{sentence}\n{quoted}"),
            ),
            whole.clone(),
        ),
        (
            "words in such a field in the quoted header",
            note(
                &moz,
                &format!("{sentence}\n{quoted}X-Mozilla-Altered: 4711"),
            ),
            whole.clone(),
        ),
        (
            "a parameter in the note",
            note(
                &moz.replace("name=a.pdf", "name=a.pdf; code=4711"),
                &format!("{sentence}\n{quoted}"),
            ),
            whole.clone(),
        ),
        (
            "an identifier that Thunderbird does not write",
            note(
                &format!("{moz}Content-ID: <4711>\n"),
                &format!("{sentence}\n{quoted}"),
            ),
            whole.clone(),
        ),
        (
            "a field with the start of embody's fields",
            of_external("").replace(
                "\n\nContent-Type",
                "\nX-Embody-Secret: 4711\n\nContent-Type",
            ),
            whole.clone(),
        ),
        (
            "a field of a part with the start of Thunderbird's fields",
            whole.replace("name=a.pdf\n", "name=a.pdf\nX-Mozilla-Secret: 4711\n"),
            whole.clone(),
        ),
        (
            "another name in the note",
            note(
                &moz.replace("name=a.pdf", "name=\"the code is 4711\""),
                &format!("{sentence}\n{quoted}"),
            ),
            whole.clone(),
        ),
        (
            "another type",
            of_external(""),
            whole.replace("application/pdf", "text/html"),
        ),
        (
            "another second name",
            of_external(""),
            whole.replace(
                "name=a.pdf\n",
                "name=a.pdf\nContent-Disposition: attachment; filename=a.exe\n",
            ),
        ),
        (
            "a note without a name",
            note(
                &moz,
                &format!("{sentence}\nContent-Type: application/octet-stream\n"),
            ),
            parts(
                FIELDS,
                "hello\n",
                "Content-Type: application/octet-stream\n\n<b>pay</b>\n",
            ),
        ),
        (
            "two notes",
            note(&moz, &format!("{sentence}\n{quoted}")),
            note(
                &moz,
                &format!("{sentence}\n{}", quoted.replace("a.pdf", "b.pdf")),
            ),
        ),
    ]);
    let scrubbed = |sentence: &str, host: &str, more: &str| {
        format!(
            "{FIELDS}\nhello\n-------------- next part --------------\n{sentence}\nName: a.pdf\nType: application/pdf\nSize: {} bytes\nDesc: {more}\nURL: <http://{host}/pipermail/dev/attachments/20240506/50f524a0/attachment.pdf>\n",
            PDF.len()
        )
    };
    let known = "A non-text attachment was scrubbed...";
    let body = |mail: &str| mail.split_once("\n\n").unwrap().1.to_owned();
    let good = scrubbed(known, "a.example", "not available");
    assert_eq!(relation(&good, &whole)[0], Ok(()));
    assert_others(&[
        (
            "another sentence",
            scrubbed(
                "Pay to account 7. It was scrubbed...",
                "a.example",
                "not available",
            ),
            whole.clone(),
        ),
        (
            "a description",
            scrubbed(known, "a.example", "The code is 4711"),
            whole.clone(),
        ),
        (
            "a multipart that has a note",
            mixed("mixed", &format!("4711\n--b\n\n{}--b--\n", body(&good))),
            mixed("mixed", &format!("--b\n\n{}--b--\n", body(&good))),
        ),
        (
            "two hosts",
            good,
            scrubbed(known, "evil.example", "not available"),
        ),
    ]);
}

#[test]
fn mail_with_the_four_fields_of_pipermail_is_a_mail_unless_its_address_is_hidden() {
    let mail = text("see <a href=x>y</a>\n").replace("To: dev@lists.example.org\n", "");
    let other = mail.replace(
        "From: Ann B",
        "To: bob@example.org\nReply-To: eve@example.net\nFrom: Ann B",
    );
    assert_others(&[("an address that is shown", mail.clone(), other)]);
    let monthly = mail.replace("Ann B <ann@example.org>", "ann at example.org (Ann B)");
    assert_eq!(relation(&monthly, &mail)[0], Ok(()));
    let declared = |fields: &str| mail.replace("\n\n", &format!("\n{fields}\n\n"));
    assert_eq!(
        relation(
            &monthly,
            &declared("Content-Type: text/plain; charset=utf-8")
        )[0],
        Ok(())
    );
    for (what, other) in [
        ("another name", mail.replace("Ann B", "The boss")),
        (
            "an address for replies",
            declared("Reply-To: eve@example.net"),
        ),
        ("HTML", declared("Content-Type: text/html")),
        (
            "a file",
            declared("Content-Type: text/plain; name=evil.hta"),
        ),
        ("an attachment", declared("Content-Disposition: attachment")),
        ("UTF-7", declared("Content-Type: text/plain; charset=utf-7")),
        (
            "removed blanks",
            declared("Content-Type: text/plain; format=flowed; delsp=yes"),
        ),
    ] {
        assert!(relation(&monthly, &other)[0].is_err(), "{what}");
    }
}
