//! Copies of one mail that cover each other: they differ only in transport, or one of them is incomplete.

use super::super::{CoverDifference, copy_key, plain};
use super::{FIELDS, LIST, PDF, attached, base64, parts, relation, text, whole};

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
        (
            "spelling of fields",
            hello
                .replace("Ann B", "'Ann B'")
                .replace("10:00:00 +0200", "08:00:00 GMT"),
        ),
        (
            "spelling of fields",
            hello
                .replace("Ann B", "\"'Ann B'\"")
                .replace("10:00:00 +0200", "04:00:00 EDT"),
        ),
        (
            "spelling of fields",
            hello.replace("10:00:00 +0200", "08:00 Z (UTC)"),
        ),
        (
            "spelling of fields",
            hello
                .replace("a test", "a  test")
                .replace("Mon, 6 May 2024", "Tue, 6 May 24"),
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
        assert_eq!(
            relation(&prefix, &text(longer))[0],
            Err(CoverDifference::Part)
        );
    }
    let one = format!(
        "{FIELDS}Content-Type: image/png\nContent-Transfer-Encoding: base64\n\n{}\n",
        base64(PDF)
    );
    let torn = one.trim_end().get(..one.len() - 20).unwrap();
    assert_eq!(relation(torn, &one), [Ok(()), Err(CoverDifference::Part)]);
}
