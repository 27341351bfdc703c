//! Mails that differ in text, parts or header fields, or are forged, are never copies of each other.

use super::super::{Digest, MailCopy, covers, plain};
use super::{
    FIELDS, LINE, LIST, assert_others, attached, base64, mixed, parts, relation, text, whole,
};

#[test]
fn parameter_inside_the_quoted_value_of_another_one_is_no_parameter() {
    let typed = |fields: &str| parts(FIELDS, "hello\n", &format!("{fields}\n\nx\n"));
    let text = |value: &str| format!("{FIELDS}Content-Type: text/plain; {value}\n\n\u{e4}\n");
    assert_others(&[
        (
            "a size in a name",
            typed("Content-Disposition: attachment; filename=\"a;size=3\""),
            typed("Content-Disposition: attachment; filename=a; size=3"),
        ),
        (
            "a name in a name",
            typed("Content-Type: image/png; name=\"a;z=1:b\""),
            typed("Content-Type: image/png; name=a; z=\"1:b\""),
        ),
        (
            "a charset in a value",
            text("a=\"b;charset=koi8-r\""),
            text("a=b; charset=koi8-r"),
        ),
        (
            "an escaped quotation mark",
            text("a=\"b\\\";c=d\""),
            text("a=\"b\"; c=\"d\""),
        ),
    ]);
    for (one, other) in [
        ("a=\"b\"; c=d", "c=\"d\" ;\n a=b"),
        ("a=b;; c=d;", "A=b; C=d"),
    ] {
        assert_eq!(relation(&text(one), &text(other)), [Ok(()), Ok(())]);
    }
}

#[test]
fn date_in_another_zone_is_another_date() {
    let mail = text("hello\n").replace("10:00:00 +0200", "10:00:00 GMT");
    for zone in ["EST", "CET", "J", "", "-0100"] {
        let other = mail.replace("GMT", zone);
        assert_others(&[(zone, mail.clone(), other)]);
    }
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
            "after the last part",
            mixed("mixed", &format!("{part}--b--\n4711\n")),
            mixed("mixed", &format!("{part}--b--\n")),
        ),
        (
            "after torn base64",
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
            "text after base64",
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
            with("Reply-To: undisclosed"),
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
            "quoted From field next to another one",
            mail.clone(),
            format!(">From : Eve <eve@example.net>\n{mail}"),
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
        (
            "line endings of a file in base64",
            encoded(b"a,b\r\n"),
            encoded(b"a,b\n"),
        ),
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
fn texts_whose_hashes_begin_with_the_same_64_bits_are_different_texts() {
    // A sender can find such texts in some minutes.
    let texts = ["loafndfpbjodahmd", "ephhbjgjjihoccag"];
    for text in texts {
        assert_eq!(Digest::of(text.as_bytes()).half(), 0xcb0c_981c_f174_d9e1);
    }
    let [preamble, epilogue] = ["--b\n", "--b--\n"].map(|line| {
        texts.map(|text| {
            let mail = whole();
            let (before, after) = mail.split_once(line).unwrap();
            match line {
                "--b\n" => format!("{before}{text}\n{line}{after}"),
                _ => format!("{before}{line}{text}\n{after}"),
            }
        })
    });
    for (what, [one, other]) in [("preamble", preamble), ("epilogue", epilogue)] {
        assert_eq!(relation(&one, &one), [Ok(()), Ok(())], "{what}");
        assert_others(&[(what, one, other)]);
    }
}
