//! Compares copies of mails, row by row of the table in docs/merge.md.

use base64::Engine as _;
use sha2::{Digest as _, Sha256};

use super::{Difference, MailCopy, Place, copy_key, covers, plain};

const PDF: &[u8] = b"%PDF-1.4 a file of some bytes, and one more line of them\n\0\x01\x02";

fn base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

const FIELDS: &str = "From: Ann B <ann@example.org>\nTo: dev@lists.example.org\nSubject: a test\n\
    Date: Mon, 6 May 2024 10:00:00 +0200\nMessage-ID: <1@example.org>\n";

const LIST: &str = "List-Id: <dev.lists.example.org>\n";

const HEADER: &str = "Content-Type: multipart/mixed; boundary=b\n";

fn attached(encoding: &str, body: &str) -> String {
    format!(
        "Content-Type: application/pdf; name=a.pdf\nContent-Transfer-Encoding: {encoding}\n\n{body}\n"
    )
}

fn parts(fields: &str, text: &str, file: &str) -> String {
    format!("{fields}{HEADER}\n--b\nContent-Type: text/plain\n\n{text}\n--b\n{file}--b--\n")
}

fn whole() -> String {
    parts(FIELDS, "hello\n", &attached("base64", &base64(PDF)))
}

fn text(body: &str) -> String {
    format!("{FIELDS}\n{body}")
}

/// Returns whether the second mail covers the first one, and whether the first one covers the second.
fn relation(one: &str, other: &str) -> [Result<(), Difference>; 2] {
    let [one, other] = [one, other].map(|mail| plain(mail.as_bytes()));
    let places: Vec<Place> = [&one, &other]
        .into_iter()
        .filter_map(|it| MailCopy::of(it, &[]).cut_at())
        .collect();
    let [one, other] = [one, other].map(|it| MailCopy::of(&it, &places));
    [covers(&other, &one), covers(&one, &other)]
}

#[test]
fn copies_that_differ_only_in_transport_cover_each_other() {
    let documented = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/merge.md"));
    let hello = text("hello ann@example.org\nFrom here\nmore\n");
    let line = "_".repeat(47);
    let footer = format!(
        "{line}\ndev mailing list\ndev@lists.example.org\nhttps://lists.example.org/mailman/listinfo/dev\n"
    );
    let quoted = "Content-Transfer-Encoding: quoted-printable\n";
    let encoded = "Content-Transfer-Encoding: base64\n";
    for (row, other) in [
        (
            "fields of servers",
            format!(
                "Received: from a by b; Mon, 6 May 2024 10:00:01 +0200\nReturn-Path: <x@example.org>\nDKIM-Signature: v=1; a=b\nAuthentication-Results: c\n{hello}"
            ),
        ),
        (
            "fields of delivery",
            format!(
                "Delivered-To: me@example.com\nEnvelope-To: me@example.com\nX-Original-To: me@example.com\nX-Spam-Score: 1\n{hello}"
            ),
        ),
        (
            "fields of lists",
            format!(
                "List-Id: <dev.lists.example.org>\nPrecedence: list\nSender: dev-bounces@lists.example.org\nErrors-To: dev-bounces@lists.example.org\nReply-To: dev@lists.example.org\n{hello}"
            ),
        ),
        (
            "fields of mailboxes",
            format!("Status: RO\nX-Mozilla-Status: 0001\nX-Keywords: a\n{hello}"),
        ),
        (
            "tag in the subject",
            format!("{LIST}{}", hello.replace("Subject: ", "Subject: [dev] ")),
        ),
        ("footer of a list", format!("{LIST}{hello}{footer}")),
        (
            "spelling of fields",
            hello
                .replace("Ann B", "=?utf-8?q?Ann?=\n \"B\"")
                .replace("10:00:00 +0200", "08:00:00 +0000 (UTC)"),
        ),
        ("quoting of From", hello.replace("From here", ">>From here")),
        ("line endings", hello.replace('\n', "\r\n")),
        ("line endings", format!("{hello}\n\n")),
        (
            "transfer encoding",
            hello
                .replace("\n\n", &format!("\n{quoted}\n"))
                .replace("hello ann@e", "hello ann=40=\ne"),
        ),
        (
            "transfer encoding",
            hello
                .split_once("\n\n")
                .map(|(header, body)| format!("{header}\n{encoded}\n{}\n", base64(body.as_bytes())))
                .unwrap(),
        ),
    ] {
        assert!(documented.contains(&format!("\n| {row} |")), "{row}");
        assert_eq!(relation(&hello, &other), [Ok(()), Ok(())], "{row}: {other}");
        let [one, other] = [&hello, &other].map(|mail| copy_key(&plain(mail.as_bytes())));
        assert_eq!(one, other, "{row}");
    }
    let part = format!("--b\nContent-Type: text/plain\n\n{footer}\n--b--");
    let with_footer = format!("{LIST}{}", whole().replace("--b--", &part));
    assert_eq!(
        relation(&whole(), &with_footer),
        [Ok(()), Ok(())],
        "footer in a part"
    );
    let html = "Content-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: base64\n\nPGI+aGk8L2I+\n";
    let wrapped = format!(
        "{LIST}{FIELDS}Content-Type: multipart/mixed; boundary=w\n\n--w\n{html}--w\nContent-Type: text/plain\n\n{footer}--w--\n"
    );
    assert_eq!(
        relation(&format!("{FIELDS}{html}"), &wrapped),
        [Ok(()), Ok(())],
        "multipart around a mail and a footer"
    );
    let quoted = parts(
        FIELDS,
        "hello\n",
        &attached(
            "quoted-printable",
            &String::from_utf8_lossy(PDF)
                .replace('\0', "=00")
                .replace('\n', "=0A"),
        ),
    );
    assert_eq!(
        relation(&whole(), &quoted),
        [Ok(()), Ok(())],
        "encoding of a part"
    );
}

#[test]
fn copy_in_a_monthly_text_is_covered_by_the_mail() {
    let mail = "From: Ann B <ann@example.org>\nTo: dev@lists.example.org\nCc: x@example.org\nSubject: [dev] a test\n\
        Date: Mon, 6 May 2024 10:00:00 +0200\nMessage-ID: <1@example.org>\nReferences: <0@example.org> <2@example.org>\n\
        MIME-Version: 1.0\nUser-Agent: mutt\nContent-Type: text/plain; charset=utf-8\n\nhello c@example.org\n";
    let text = "From: ann at example.org (Ann B)\nDate: Mon, 6 May 2024 10:00:00 +0200\nSubject: [dev] a\n\ttest\n\
        In-Reply-To: <2@example.org>\nReferences: <0@example.org>\n\t<2@example.org>\nMessage-ID: <1@example.org>\n\nhello c at example.org\n";
    let [there, back] = relation(text, mail);
    assert_eq!(there, Ok(()));
    assert!(back.is_err());
    for (from, to) in [
        ("hello", "bye"),
        ("ann at", "bob at"),
        ("<0@", "<3@"),
        ("a\n\ttest", "another"),
    ] {
        let other = text.replacen(from, to, 1);
        assert!(relation(&other, mail)[0].is_err(), "{to}");
    }
}

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
                "Content-Type: text/x-moz-deleted; name=\"Deleted: a.pdf\"\nX-Mozilla-Altered: AttachmentDeleted; date=\"Mon May 06\"\n",
                &format!(
                    "You deleted an attachment from this message. The original MIME headers for the attachment were:\n{quoted}"
                ),
            ),
        ),
        (
            "detached in Thunderbird",
            note(
                "Content-Type: text/plain;\n name=\"a.pdf\"\nX-Mozilla-External-Attachment-URL: file:///home/a/a.pdf\nX-Mozilla-Altered: AttachmentDetached; date=\"Mon May 06\"\n",
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
        assert_eq!(relation(copy, &more)[0], Err(Difference::Parts), "{row}");
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
fn copy_that_is_visibly_cut_is_covered_and_a_mere_prefix_is_not() {
    let whole = whole();
    let start = whole.find(&base64(PDF)).unwrap();
    let mut seen = 0;
    for length in start + 1..whole.len() - 6 {
        let cut = whole.get(..length).unwrap();
        assert_eq!(relation(cut, &whole)[0], Ok(()), "{length}: {cut}");
        seen += usize::from(relation(cut, &whole)[1].is_err());
    }
    // A mail that is truncated in the header of a part is not recognized as truncated, because the missing fields are unknown.
    // So it is not covered.
    for length in start - 60..start - 2 {
        let cut = whole.get(..length).unwrap();
        assert!(relation(cut, &whole)[0].is_err(), "{length}: {cut}");
    }
    assert!(seen > 40, "{seen}");
    let cut = whole.get(..start + 24).unwrap();
    let other = whole.replace("JVBERi0xLjQg", "JVBERi0xLjUg");
    assert!(
        relation(cut, &other)[0].is_err(),
        "other content before the cut"
    );
    let prefix = text("hello\n");
    for longer in ["hello\nmore\n", "hello, you\n"] {
        assert_eq!(relation(&prefix, &text(longer))[0], Err(Difference::Part));
    }
    let one = format!(
        "{FIELDS}Content-Type: image/png\nContent-Transfer-Encoding: base64\n\n{}\n",
        base64(PDF)
    );
    let torn = one.trim_end().get(..one.len() - 20).unwrap();
    assert_eq!(relation(torn, &one), [Ok(()), Err(Difference::Part)]);
}

#[test]
fn forged_mail_is_another_mail() {
    let original = whole();
    for (what, forged) in [
        ("another text", original.replace("hello", "pay")),
        (
            "another file",
            parts(
                FIELDS,
                "hello\n",
                &attached("base64", &base64(b"%PDF-1.4 x")),
            ),
        ),
        (
            "an additional part",
            original.replace("--b--", "--b\n\npay\n--b--"),
        ),
        ("a missing part", text("hello\n")),
        ("another sender", original.replace("ann@", "eve@")),
        (
            "another name of the sender",
            original.replace("Ann B", "The boss"),
        ),
        ("another date", original.replace("10:00:00", "10:00:01")),
        ("another subject", original.replace("a test", "a trap")),
        (
            "another recipient",
            original.replace("To: dev@", "To: all@"),
        ),
        (
            "a field for replies",
            format!("Reply-To: eve@example.net\n{original}"),
        ),
        (
            "another type",
            original.replace("application/pdf", "text/html"),
        ),
        ("another name", original.replace("a.pdf", "a.exe")),
        (
            "text around the parts",
            original.replace("b\n\n--b\n", "b\n\npay\n--b\n"),
        ),
        (
            "a footer with a link",
            original.replace(
                "hello",
                &format!(
                    "hello\n{}\ndev mailing list\nhttps://example.net/",
                    "_".repeat(47)
                ),
            ),
        ),
    ] {
        assert_ne!(forged, original, "{what}");
        let [there, back] = relation(&original, &forged);
        assert!(
            there.is_err() && back.is_err(),
            "{what}: {there:?} {back:?}"
        );
    }
    let copied = |to: &str| format!("Cc: {to}\n{original}");
    assert_eq!(
        relation(
            &copied("a@example.org, B <b@example.org>"),
            &copied("\"B\" <b@example.org>,a@example.org")
        ),
        [Ok(()), Ok(())]
    );
}

/// Asserts that the two mails of each case are different mails, in both directions.
fn assert_others(cases: &[(&str, String, String)]) {
    for (what, one, other) in cases {
        assert_ne!(one, other, "{what}");
        let [there, back] = relation(one, other);
        assert!(
            there.is_err() && back.is_err(),
            "{what}: {there:?} {back:?}\n{one}\n{other}"
        );
    }
}

fn mixed(kind: &str, body: &str) -> String {
    format!("{FIELDS}Content-Type: multipart/{kind}; boundary=b\n\n{body}")
}

const LINE: &str = "________________________________________";

#[test]
fn mail_with_other_words_around_its_parts_is_another_mail() {
    let part = "--b\n\nx\n";
    assert_others(&[
        (
            "no part",
            mixed("mixed", "The code is 4711.\n"),
            mixed("mixed", "--b\n\nforged\n--b--\n"),
        ),
        (
            "no part in both",
            mixed("mixed", "The code is 4711.\n"),
            mixed("mixed", "other\n"),
        ),
        (
            "no part and a text",
            mixed("mixed", "The code is 4711.\n"),
            text("forged\n"),
        ),
        (
            "before the first part",
            mixed("mixed", &format!("4711\n{part}")),
            mixed("mixed", &format!("{part}--b\n\nforged\n--b--\n")),
        ),
        (
            "sentence before the first part",
            mixed("mixed", &format!("This is a secret: 4711\n{part}--b--\n")),
            mixed("mixed", &format!("{part}--b--\n")),
        ),
        (
            "behind the last part",
            mixed("mixed", &format!("{part}--b--\n4711\n")),
            mixed("mixed", &format!("{part}--b--\n")),
        ),
        (
            "behind torn base64",
            mixed(
                "mixed",
                "--b\nContent-Transfer-Encoding: base64\n\nSGVsbG8\n--b--\n4711\n",
            ),
            mixed(
                "mixed",
                "--b\nContent-Transfer-Encoding: base64\n\nSGVsbG8=\n--b--\n",
            ),
        ),
    ]);
}

#[test]
fn mail_with_another_structure_is_another_mail() {
    let two = "--b\nContent-Type: text/plain\n\nDo not sign!\n--b\nContent-Type: text/html\n\n<p>contract</p>\n--b--\n";
    let one = "--b\nContent-Type: text/plain\n\nhello\n";
    let message = "--b\nContent-Type: message/rfc822\n\nFrom: Bob <bob@x>\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\noffer\n";
    let picture = |id: &str, content: &str| {
        format!(
            "--b\nContent-Type: image/png\nContent-ID: <{id}>\nContent-Transfer-Encoding: base64\n\n{content}\n"
        )
    };
    let html = "--b\nContent-Type: text/html\n\n<img src=cid:yes> wins, <img src=cid:no> loses\n";
    assert_others(&[
        (
            "alternatives",
            mixed("mixed", two),
            mixed("alternative", two),
        ),
        (
            "empty alternative",
            mixed("alternative", &format!("{one}--b--\n")),
            mixed(
                "alternative",
                &format!("{one}--b\nContent-Type: text/html\n\n\n--b--\n"),
            ),
        ),
        (
            "footer in HTML",
            format!("{LIST}{}", mixed("alternative", &format!("{one}--b--\n"))),
            format!(
                "{LIST}{}",
                mixed(
                    "alternative",
                    &format!(
                        "{one}--b\nContent-Type: text/html\n\n{LINE}\ndev mailing list\n--b--\n"
                    )
                )
            ),
        ),
        (
            "one text and a multipart",
            text("hello\n"),
            mixed("mixed", &format!("{one}--b--\n")),
        ),
        (
            "part in an enclosed message",
            mixed("mixed", &format!("{message}--c--\n--b\n\nI agree\n--b--\n")),
            mixed("mixed", &format!("{message}--c\n\nI agree\n--c--\n--b--\n")),
        ),
        (
            "identifiers of pictures",
            mixed(
                "related",
                &format!(
                    "{html}{}{}--b--\n",
                    picture("yes", "AAAA"),
                    picture("no", "BBBB")
                ),
            ),
            mixed(
                "related",
                &format!(
                    "{html}{}{}--b--\n",
                    picture("no", "AAAA"),
                    picture("yes", "BBBB")
                ),
            ),
        ),
    ]);
}

#[test]
fn mail_with_other_fields_of_a_part_is_another_mail() {
    let part = |fields: &str, body: &str| format!("{FIELDS}{fields}\n{body}\n");
    let binary = |body: &str| {
        part(
            "Content-Type: application/octet-stream\nContent-Transfer-Encoding: binary\n",
            body,
        )
    };
    let plainly = "Content-Type: text/plain\n";
    assert_others(&[
        (
            "charset",
            part("Content-Type: text/plain; charset=iso-8859-1\n", "+AGEAYg-"),
            part("Content-Type: text/plain; charset=utf-7\n", "+AGEAYg-"),
        ),
        (
            "UTF-16",
            part(
                "Content-Type: text/plain; charset=utf-16be\nContent-Transfer-Encoding: base64\n",
                &base64(b"\r\x05"),
            ),
            part(
                "Content-Type: text/plain; charset=utf-16be\nContent-Transfer-Encoding: base64\n",
                &base64(b"\n\x05"),
            ),
        ),
        (
            "flowed text",
            part(plainly, "pay 1 \n00"),
            part(
                "Content-Type: text/plain; format=flowed; delsp=yes\n",
                "pay 1 \n00",
            ),
        ),
        (
            "disposition",
            part("Content-Disposition: inline\n", "x"),
            part("Content-Disposition: attachment\n", "x"),
        ),
        (
            "second name",
            part("Content-Type: application/pdf; name=a.pdf\n", "x"),
            part(
                "Content-Type: application/pdf; name=a.exe\nContent-Disposition: attachment; filename=a.pdf\n",
                "x",
            ),
        ),
        (
            "second type",
            part(plainly, "<b>x"),
            part(&format!("{plainly}Content-Type: text/html\n"), "<b>x"),
        ),
        (
            "second encoding",
            part("Content-Transfer-Encoding: 8bit\n", "SGVsbG8="),
            part(
                "Content-Transfer-Encoding: 8bit\nContent-Transfer-Encoding: base64\n",
                "SGVsbG8=",
            ),
        ),
        (
            "description",
            part(plainly, "x"),
            part(&format!("{plainly}Content-Description: pay\n"), "x"),
        ),
        ("carriage return", binary("A\rB"), binary("A\nB")),
        (
            "end of torn base64",
            part("Content-Transfer-Encoding: base64\n", "SGVsbG8"),
            part("Content-Transfer-Encoding: base64\n", "SGVsZm9v"),
        ),
        (
            "blanks at the end of a file",
            part(
                "Content-Type: text/csv; name=a\nContent-Transfer-Encoding: base64\n",
                &base64(b"a,\t"),
            ),
            part(
                "Content-Type: text/csv; name=a\nContent-Transfer-Encoding: base64\n",
                &base64(b"a,"),
            ),
        ),
        (
            "text behind base64",
            part("Content-Transfer-Encoding: base64\n", "SGVsbG8="),
            part(
                "Content-Transfer-Encoding: base64\n",
                "SGVsbG8=\nREAL 4711 code",
            ),
        ),
    ]);
}

#[test]
fn mail_with_other_fields_of_the_author_is_another_mail() {
    let mail = text("hello\n");
    let with = |field: &str| format!("{field}\n{mail}");
    let behind = |field: &str| mail.replace("\n\n", &format!("\n{field}\n\n"));
    let of = |from: &str, to: &str| mail.replace(from, to);
    let colon = of("From:", "From :");
    assert_others(&[
        (
            "second From",
            mail.clone(),
            behind("From: Eve <eve@example.net>"),
        ),
        (
            "second Subject",
            mail.clone(),
            behind("Subject: you are fired"),
        ),
        (
            "second Date",
            mail.clone(),
            behind("Date: Sat, 1 Jan 2011 10:00:00 +0000"),
        ),
        (
            "second Message-ID",
            mail.clone(),
            behind("Message-ID: <2@example.org>"),
        ),
        (
            "From with a blank",
            mail.clone(),
            behind("From : Eve <eve@example.net>"),
        ),
        (
            "other From with a blank",
            colon.clone(),
            colon.replace("Ann B <ann@", "Eve <eve@"),
        ),
        ("Cc", mail.clone(), with("Cc: eve@example.net")),
        ("Bcc", mail.clone(), with("Bcc: eve@example.net")),
        ("Reply-To", mail.clone(), with("Reply-To: eve@example.net")),
        (
            "Reply-To without an address",
            mail.clone(),
            with("Reply-To: nobody"),
        ),
        (
            "Reply-To to a recipient that is no list",
            with("Cc: eve@example.net"),
            format!("Cc: eve@example.net\nReply-To: eve@example.net\n{mail}"),
        ),
        ("Sender", mail.clone(), with("Sender: eve@example.net")),
        (
            "Resent-From",
            mail.clone(),
            with("Resent-From: eve@example.net"),
        ),
        (
            "tag that is not the list's",
            mail.clone(),
            of("Subject: ", "Subject: [URGENT: pay] "),
        ),
        (
            "tag of an unknown list",
            mail.clone(),
            format!(
                "List-Id: <pay.lists.example.org>\n{}",
                of("Subject: ", "Subject: [pay] ")
            ),
        ),
        (
            "parts of a series",
            of("a test", "[part 1 of 2] a test"),
            of("a test", "[part 2 of 2] a test"),
        ),
        (
            "name that looks like two",
            of("Ann B", "\"Ann, eve@example.net\""),
            of("Ann B", "Ann, eve@example.net"),
        ),
        (
            "name that looks like an address",
            of("Ann B <ann@example.org>", "Ann <ann@good>"),
            of(
                "Ann B <ann@example.org>",
                "=?utf-8?q?Ann_=3Cann=40good=3E?=",
            ),
        ),
        (
            "Cc that a list removed",
            format!("{LIST}{mail}"),
            format!("{LIST}{}", with("Cc: eve@example.net")),
        ),
    ]);
}

#[test]
fn footer_with_other_words_or_of_another_list_is_text() {
    let hello = text("hello\n");
    let footer = |words: &str| format!("{LIST}{}", text(&format!("hello\n{LINE}\n{words}\n")));
    let attached = |words: &str| {
        let csv = format!("Content-Type: text/plain; name=a.csv\n\n1;2\n{words}");
        format!("{LIST}{FIELDS}{csv}")
    };
    let mut cases = Vec::new();
    for words in [
        "dev@ Please pay 1000 EUR to account 7. mailing list",
        "Please-pay-to-account-7 mailing list",
        "dev mailing list\nhttps://evil.example/dev",
        "dev mailing list\nhttps://lists.example.org/pay/account7",
        "other mailing list",
    ] {
        cases.push((words, hello.clone(), footer(words)));
        cases.push((words, format!("{LIST}{hello}"), footer(words)));
    }
    cases.push((
        "no list",
        hello.clone(),
        text(&format!("hello\n{LINE}\ndev mailing list\n")),
    ));
    cases.push((
        "attachment",
        attached(""),
        attached(&format!("{LINE}\ndev mailing list\n")),
    ));
    assert_others(&cases);
    // The link in each of these footers leads to a host that is not the host of the list. Only the List-Subscribe field of the
    // same mail confirms the link, and an attacker can write this field. One such footer is ignored. If two copies have
    // such footers with different hosts, one of the footers may be forged, so the copies are different mails.
    let claimed = |host: &str| {
        let field = format!("List-Subscribe: <https://{host}/listinfo/dev>\n");
        format!(
            "{field}{}",
            footer(&format!("dev mailing list\nhttps://{host}/listinfo/dev"))
        )
    };
    let (one, other) = (claimed("a.example"), claimed("evil.example"));
    assert_eq!(relation(&hello, &one), [Ok(()), Ok(())]);
    let [hello, copy] = [&hello, &other].map(|mail| MailCopy::of(&plain(mail.as_bytes()), &[]));
    assert!(hello.rank() < copy.rank());
    assert_others(&[("two footers", one, other)]);
}

#[test]
fn note_with_other_words_is_a_part_of_its_own() {
    let sentence = "You deleted an attachment from this message. The original MIME headers for the attachment were:";
    let deleted = "X-Mozilla-Altered: AttachmentDeleted; date=\"Mon May 06\"\n";
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
    assert_eq!(relation(&of_external(""), &whole)[0], Ok(()));
    assert_others(&[
        ("a body", note(&moz, "The code is 4711."), whole.clone()),
        (
            "words behind the note",
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
            "text behind a detached part",
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

#[test]
fn mail_with_bytes_that_are_no_characters_is_compared_by_them() {
    let header = |field: &[u8]| [field, FIELDS.as_bytes(), b"\nhello\n"].concat();
    for (one, other) in [
        (
            &b"Comments: \xf0\xd2\xc9\n"[..],
            &b"Comments: \xf5\xe4\xc1\n"[..],
        ),
        (
            b"Subject: =?utf-8?q?a?= \xf0\n",
            b"Subject: =?utf-8?q?a?= \xf1\n",
        ),
        (
            b"Keywords: =?big5?q?=A1=20?=\n",
            b"Keywords: =?big5?q?=A2=20?=\n",
        ),
    ] {
        let [one, other] = [one, other].map(|field| MailCopy::of(&plain(&header(field)), &[]));
        assert!(covers(&one, &other).is_err());
        assert_eq!(covers(&one, &one), Ok(()));
    }
}

#[test]
fn mail_with_other_lines_in_a_header_is_another_mail() {
    let mail = text("hello\n");
    let inside = |line: &str| {
        mixed(
            "mixed",
            &format!("--b\nContent-Type: message/rfc822\n\nSubject: a\n{line}To: b\n\nx\n--b--\n"),
        )
    };
    let part = |line: &str| {
        mixed(
            "mixed",
            &format!("--b\nContent-Type: text/plain\n{line}Content-ID: <a@b>\n\nx\n--b--\n"),
        )
    };
    assert_others(&[
        (
            "stray line",
            mail.clone(),
            mail.replace("To: ", "the code is 4711\nTo: "),
        ),
        ("stray line in a part", part(""), part("the code is 4711\n")),
        (
            "stray line in a message",
            inside(""),
            inside("the code is 4711\n"),
        ),
        (
            "separator in a part",
            part(""),
            part(">From the code is 4711\n"),
        ),
        (
            "carriage return",
            mail.clone(),
            mail.replace("To: ", "X-a: b\rReply-To: eve@example.net\nTo: "),
        ),
        (
            "quoted From field",
            mail.replace("From:", "From :"),
            mail.replace("From:", ">From :"),
        ),
        (
            "order of recipients",
            format!("To: a@b\n{mail}"),
            mail.replace("Subject:", "To: a@b\nSubject:"),
        ),
        (
            "date with more words",
            mail.clone(),
            mail.replace("+0200", "+0200 the code is 4711"),
        ),
        (
            "zone without a name",
            mail.clone(),
            mail.replace("+0200", "CEST"),
        ),
    ]);
    let part = |fields: &str| format!("{FIELDS}{fields}\naGVsbG8=\n");
    let pairs = [
        (
            "Content-Type: a/b; name=a.pdf; name=a.exe",
            "Content-Type: a/b; name=a.exe; name=a.pdf",
        ),
        (
            "Content-Type: a/b\nContent-Type: a/c",
            "Content-Type: a/c\nContent-Type: a/b",
        ),
        (
            "Content-Transfer-Encoding: base64\nContent-Transfer-Encoding: 8bit",
            "Content-Transfer-Encoding: 8bit\nContent-Transfer-Encoding: base64",
        ),
        (
            "Content-Type: text/html; charset=utf-8",
            "Content-Type: text/html\nContent-Type: text/html; charset=utf-8",
        ),
        ("Content-Type: a/b", "Content-Type: a/b name=a.exe"),
        (
            "Content-Type: text/plain",
            "Content-Type: text/plain charset=utf-7",
        ),
        (
            "Content-Disposition: attachment",
            "Content-Disposition: attachment filename=a.exe",
        ),
        (
            "Content-Type: a/b; name=\"a\"",
            "Content-Type: a/b; name=\"a\"NEW",
        ),
        ("Content-Type: text/plain", "Content-Type: x"),
        (
            "Content-Disposition: inline",
            "Content-Disposition:\nContent-Disposition: inline",
        ),
    ];
    for (one, other) in pairs {
        assert_others(&[(one, part(&format!("{one}\n")), part(&format!("{other}\n")))]);
    }
    for (one, other) in [
        (
            "Content-Type: A/B; Name=\"a\"; x=1;",
            "Content-Type: a/b;\n\tx=1; name=a",
        ),
        ("Content-Type: text/plain; charset=us-ascii", ""),
    ] {
        let field = |it: &str| {
            if it.is_empty() {
                String::new()
            } else {
                format!("{it}\n")
            }
        };
        assert_eq!(
            relation(&part(&field(one)), &part(&field(other))),
            [Ok(()), Ok(())],
            "{one}"
        );
    }
    let encoded = |bytes: &[u8]| {
        part("Content-Type: text/csv; name=a\nContent-Transfer-Encoding: base64\n")
            .replace("aGVsbG8=", &base64(bytes))
    };
    assert_others(&[
        (
            "quoted From in base64",
            encoded(b"a\n>From b"),
            encoded(b"a\nFrom b"),
        ),
        (
            "carriage return in base64",
            encoded(b"a\rb"),
            encoded(b"a\nb"),
        ),
    ]);
}

#[test]
fn parts_behind_the_limit_are_compared() {
    let many = |end: &str| {
        mixed(
            "mixed",
            &format!("{}{end}--b--\n", "--b\n\nx\n".repeat(10_001)),
        )
    };
    assert_others(&[
        (
            "another part",
            many("--b\n\nORIGINAL\n"),
            many("--b\n\nFORGED\n"),
        ),
        ("a missing part", many("--b\n\nORIGINAL\n"), many("")),
    ]);
}

#[test]
fn forger_cannot_call_a_recipient_a_list() {
    let mail = format!(
        "Cc: Bob <bob@example.org>, carol@example.org\n{}",
        text("hello\n")
    );
    let claimed = |field: &str| format!("List-Post: <mailto:carol@example.org>\n{field}\n{mail}");
    assert_others(&[
        (
            "Reply-To",
            mail.clone(),
            claimed("Reply-To: Ann <carol@example.org>"),
        ),
        (
            "Reply-To without a name",
            mail.clone(),
            claimed("Reply-To: carol@example.org"),
        ),
        (
            "Sender",
            mail.clone(),
            claimed("Sender: The boss <carol-owner@example.org>"),
        ),
    ]);
}

#[test]
fn mail_of_many_parts_is_compared_as_a_whole() {
    let many =
        |count: usize, end: &str| mixed("mixed", &format!("{}{end}", "--b\n\nx\n".repeat(count)));
    let received = |mail: &str| format!("Received: x\n{mail}");
    let mail = many(2000, "--b--\n");
    assert_eq!(relation(&mail, &received(&mail)), [Ok(()), Ok(())]);
    assert_others(&[
        ("another part", mail.clone(), many(2001, "--b--\n")),
        ("a cut", mail, many(1500, "")),
    ]);
}

#[test]
fn mail_without_message_id_is_known_by_its_header_and_text() {
    let bare = |mail: String| mail.replace("Message-ID: <1@example.org>\n", "");
    let key = |mail: &str| copy_key(&plain(mail.as_bytes()));
    let mail = bare(whole());
    assert_eq!(key(&mail), key(&format!("Received: x\n{mail}")));
    for other in [
        whole(),
        mail.replace("hello", "bye"),
        mail.replace("a test", "b"),
    ] {
        assert_ne!(key(&mail), key(&other), "{other}");
    }
    let hidden = whole().replace("<1@example.org>", "<1 at example.org>");
    assert_eq!(key(&whole()), key(&hidden));
}
