//! The relation of copies, row by row of the table in docs/merge.md.

use base64::Engine as _;
use sha2::{Digest as _, Sha256};

use super::{Difference, MailCopy, copy_key, covers, plain};

const PDF: &[u8] = b"%PDF-1.4 a file of some bytes, and one more line of them\n\0\x01\x02";

fn base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

const FIELDS: &str = "From: Ann B <ann@example.org>\nTo: dev@lists.example.org\nSubject: a test\n\
    Date: Mon, 6 May 2024 10:00:00 +0200\nMessage-ID: <1@example.org>\n";

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

/// Whether the second mail covers the first one, and the other way round.
fn relation(one: &str, other: &str) -> [Result<(), Difference>; 2] {
    let [one, other] = [one, other].map(|mail| plain(mail.as_bytes()));
    let lengths = [&one, &other].map(|it| MailCopy::of(it, &[]).cut_at());
    let lengths: Vec<u64> = lengths.into_iter().flatten().collect();
    let [one, other] = [one, other].map(|it| MailCopy::of(&it, &lengths));
    [covers(&other, &one), covers(&one, &other)]
}

#[test]
fn copies_that_differ_only_by_their_way_are_equal() {
    let documented = include_str!("../../docs/merge.md");
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
            hello.replace("Subject: ", "Subject: [dev] "),
        ),
        ("footer of a list", format!("{hello}{footer}")),
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
    let wrapped = whole().replace("--b--", &part);
    assert_eq!(
        relation(&whole(), &wrapped),
        [Ok(()), Ok(())],
        "footer in a part"
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
        // The start and the end of the SHA-1 of the Message-ID.
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
            // A note of Thunderbird or mutt says nothing about the content; the digest says everything.
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
    // A line of hyphens in the text is no separator, and Mailman does not keep the text around the parts.
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
    for length in start - 20..whole.len() - 6 {
        let cut = whole.get(..length).unwrap();
        assert_eq!(relation(cut, &whole)[0], Ok(()), "{length}: {cut}");
        seen += usize::from(relation(cut, &whole)[1].is_err());
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
    // A list may remove its subscribers from Cc, and nothing else does.
    let copied = |to: &str| format!("Cc: {to}\n{original}");
    let of_list = |to: &str| format!("List-Id: <dev.lists.example.org>\n{}", copied(to));
    let (all, one) = ("a@example.org, b@example.org", "b@example.org");
    assert_eq!(
        relation(&of_list(one), &copied(all)),
        [Ok(()), Err(Difference::Fields)]
    );
    assert_eq!(
        relation(&of_list(one), &of_list("a@example.org")),
        [Ok(()), Ok(())]
    );
    assert_eq!(
        relation(&copied(all), &copied("b@example.org,a@example.org")),
        [Ok(()), Ok(())]
    );
    assert_eq!(
        relation(&copied(one), &copied(all))[0],
        Err(Difference::Fields)
    );
    assert_eq!(
        relation(&of_list("c@example.org"), &copied(all))[0],
        Err(Difference::Fields)
    );
    // Only the copy of the sender says who else got the mail.
    let sent = format!("Bcc: boss@example.org\n{original}");
    assert_eq!(
        relation(&original, &sent),
        [Ok(()), Err(Difference::Fields)]
    );
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

#[test]
fn copy_whose_signature_holds_is_preferred() {
    let body = "hello  there \n\n";
    let digest = |canonical: &[u8]| base64(&Sha256::digest(canonical));
    let signed = |form: &str, digest: &str, body: &str| {
        let field = format!("DKIM-Signature: v=1; a=rsa-sha256; c={form};\n bh={digest}; b=AAAA\n");
        MailCopy::of(&plain(format!("{field}{FIELDS}\n{body}").as_bytes()), &[])
    };
    let simple = digest(b"hello  there \r\n");
    let relaxed = digest(b"hello there\r\n");
    for (form, digest) in [
        ("simple/simple", &simple),
        ("relaxed/relaxed", &relaxed),
        ("relaxed", &simple),
    ] {
        let intact = signed(form, digest, body);
        let broken = signed(form, digest, "hello  there  you\n");
        assert!(intact.is_signature_intact, "{form}");
        assert!(!broken.is_signature_intact, "{form}");
        assert!(intact.rank() < broken.rank());
    }
}
