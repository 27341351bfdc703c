//! The body, encoding and header of a changed document: lines, digests, attachments, and bodies whose encoding is not
//! the declared one.

use super::common::mail::{assert_bytes, crlf};
use super::links::{BASE, quoted_printable, run, run_in};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embody::Policy;
use embody::fetch::Canned;
use embody::mime::{self, ScanLimits};
use embody::policy::Scheme;
use embody::report::{Outcome, Reason};
use md5::{Digest as _, Md5};
use proptest::prelude::*;

const BODY: &str = "<a href=\"x\">caf\u{e9}</a>\n";
const RESOLVED: &str = "<a href=\"http://www.example.org/a/b/x\">caf\u{e9}</a>\n";

fn html(fields: &str, body: &str) -> Vec<u8> {
    format!("MIME-Version: 1.0\n{BASE}Content-Type: text/html; charset=utf-8\n{fields}\n{body}")
        .into_bytes()
}

fn encoded(encoding: &str, text: &str) -> String {
    match encoding {
        "base64" => STANDARD.encode(text) + "\n",
        "quoted-printable" => String::from_utf8(quoted_printable(text.as_bytes(), "\n")).unwrap(),
        _ => text.to_owned(),
    }
}

/// Returns the first document of a mail, decoded.
fn document(mail: &[u8]) -> String {
    let tree = mime::scan(mail, &ScanLimits::default());
    let part = tree
        .ids()
        .find(|&part| tree.part(part).essence == "text/html")
        .map(|part| tree.part(part))
        .unwrap();
    let octets = part.encoding.decode(part.body.of(mail)).unwrap();
    String::from_utf8_lossy(&octets).into_owned()
}

#[test]
fn html_in_an_attached_file_is_not_changed() {
    for disposition in [
        "attachment",
        "Attachment; filename=x.html",
        " ATTACHMENT\n ;filename=x.html",
        "attachment (a page); filename=x.html",
    ] {
        for encoding in ["8bit", "quoted-printable", "base64"] {
            let file = format!(
                "Content-Type: text/html\nContent-Transfer-Encoding: {encoding}\nContent-Disposition: {disposition}\n\n{}",
                encoded(encoding, "<base href=\"http://h/\"><a href=x>")
            );
            for mail in [
                format!("MIME-Version: 1.0\n{BASE}{file}"),
                format!("{BASE}Content-Type: multipart/mixed; boundary=m\n\n--m\n{file}\n--m--\n"),
                format!(
                    "{BASE}Content-Type: multipart/related; boundary=r\n\n--r\nContent-Type: multipart/mixed; boundary=m\n\n--m\n{file}\n--m--\n\n--r--\n"
                ),
            ] {
                let (output, report) = run(mail.as_bytes());
                assert_bytes(&output, mail.as_bytes(), disposition);
                assert!(report.rows.is_empty(), "{:?}", report.rows);
            }
            // Some programs declare all parts of a multipart/related as attachments.
            let mail = format!(
                "{BASE}Content-Type: multipart/related; boundary=r\n\n--r\n{file}\n--r--\n"
            );
            let (output, _) = run(mail.as_bytes());
            assert_eq!(
                document(&output),
                "<base href=\"http://h/\"><a href=http://h/x>"
            );
        }
    }
    for disposition in ["inline; filename=attachment.html", "x-attachment", ""] {
        let field = format!("Content-Disposition: {disposition}\n");
        let (output, _) = run(&html(&field, BODY));
        assert_bytes(&output, &html(&field, RESOLVED), disposition);
    }
}

/// Returns the digest of a text in canonical form, before any encoding (RFC 1864 §2).
fn digest(text: &str) -> String {
    STANDARD.encode(Md5::digest(crlf(text.as_bytes())))
}

#[test]
fn a_digest_that_was_right_is_right_afterwards() {
    for encoding in ["8bit", "quoted-printable", "base64"] {
        for twin in [|bytes: &[u8]| bytes.to_vec(), crlf] {
            let fields = |text: &str| {
                format!(
                    "Content-MD5:  {}\nContent-Transfer-Encoding: {encoding}\n",
                    digest(text)
                )
            };
            let mail = html(&fields(BODY), &encoded(encoding, BODY));
            let (output, report) = run(&twin(&mail));
            // Only the necessary bytes are different.
            let before = twin(&html(&fields(RESOLVED), ""));
            assert_bytes(&output[..before.len()], &before, encoding);
            assert_eq!(document(&output).replace('\r', ""), RESOLVED);
            let detail = &report.rows[0].detail;
            assert!(detail.contains("Content-MD5 was recomputed"), "{detail}");
        }
    }
    // The digest of the bytes without conversion, which many programs compute.
    let octets = STANDARD.encode(Md5::digest(BODY));
    let (output, _) = run(&html(&format!("Content-MD5: {octets}\n"), BODY));
    let fields = format!("Content-MD5: {}\n", digest(RESOLVED));
    assert_bytes(&output, &html(&fields, RESOLVED), "octets");
}

#[test]
fn a_digest_that_was_wrong_goes_and_that_is_said() {
    for wrong in [digest("other"), "nonsense".to_owned(), String::new()] {
        let mail = html(&format!("Content-MD5: {wrong}\nSubject: s\n"), BODY);
        let (output, report) = run(&mail);
        assert_bytes(&output, &html("Subject: s\n", RESOLVED), "a wrong digest");
        let detail = &report.rows[0].detail;
        assert!(
            detail.contains("the wrong Content-MD5 field of the part was removed"),
            "{detail}"
        );
    }
    // If nothing changes, there is no row.
    let mail = html("Content-MD5: nonsense\n", "<a href=http://h/>");
    assert_bytes(&run(&mail).0, &mail, "no change");
    // RFC 1864 forbids Content-MD5 on an entity that contains other entities.
    let outer = |field: &str, link: &str| {
        format!(
            "{BASE}{field}Content-Type: multipart/mixed; boundary=m\n\n--m\nContent-Type: text/html\n\n<a href={link}>\n--m\nContent-Type: text/html\n\n<a href={link}>\n--m--\n"
        )
    };
    let (output, _) = run(outer("Content-MD5: AAAA\n", "x").as_bytes());
    assert_bytes(
        &output,
        outer("", "http://www.example.org/a/b/x").as_bytes(),
        "outer",
    );
}

#[test]
fn digest_of_a_retrieved_document_covers_its_final_text() {
    let world = Canned::new().with(
        "https://www.example.org/dir/html",
        Some("text/html; charset=utf-8"),
        BODY.as_bytes().to_vec(),
    );
    let policy = Policy {
        fetch: [Scheme::Https].into(),
        ..Policy::default()
    };
    let mail = format!(
        "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/external-body; access-type=URL;\n URL=\"https://www.example.org/dir/html\"\n\nContent-Type: text/html; charset=utf-8\nContent-MD5: {}\n\n--b--\n",
        digest(BODY)
    );
    let (output, report) = run_in(world, policy, mail.as_bytes());
    assert_eq!((report.expanded(), report.links()), (1, 1));
    let text = document(&output);
    assert!(text.contains("https://www.example.org/dir/x"), "{text}");
    let field = format!("Content-MD5: {}\n", digest(&text));
    assert!(String::from_utf8_lossy(&output).contains(&field), "{field}");
}

fn longest_line(mail: &[u8]) -> usize {
    let lines = mail.split(|&byte| byte == b'\n');
    let length = |line: &[u8]| line.strip_suffix(b"\r").unwrap_or(line).len();
    lines.map(length).max().unwrap_or_default()
}

#[test]
fn a_line_that_would_be_too_long_is_broken_between_attributes() {
    let link = |n: usize| format!("<a class=c{n:02} href=\"p{n:02}.html\" title=t>{n:02}</a> ");
    let body: String = (0..20).map(link).collect();
    assert!(body.len() < 998);
    for label in [
        "",
        "Content-Transfer-Encoding: 7bit\n",
        "Content-Transfer-Encoding: 8bit\n",
    ] {
        for twin in [|bytes: &[u8]| bytes.to_vec(), crlf] {
            let mail = twin(&html(label, &format!("<p>\n{body}\n</p>\n")));
            let (output, report) = run(&mail);
            assert_eq!(report.links(), 20);
            assert!(longest_line(&output) <= 998);
            // A line ending may only replace a blank.
            let text = document(&output).replace('\r', "");
            assert_eq!(text.matches('\n').count(), 4);
            let expected = body.replace("href=\"", "href=\"http://www.example.org/a/b/");
            assert_eq!(
                text.replace('\n', " ").trim(),
                format!("<p> {expected} </p>")
            );
            for part in text.split('\n').skip(2).take(1) {
                let attribute = part.starts_with("class=")
                    || part.starts_with("href=")
                    || part.starts_with("title=");
                assert!(attribute, "{part}");
            }
        }
    }
}

#[test]
fn a_line_that_cannot_be_broken_leaves_the_document() {
    for body in [
        // The only blank is already a line ending.
        format!("{}<a\nhref=\"x\">{}\n", "x".repeat(900), "y".repeat(985)),
        format!("<style>a{{background:url(x)}}{}</style>", "x".repeat(950)),
        // Even after a line break before the attribute, the rest of the line is too long.
        format!("<a href=x>{}\n", "y".repeat(980)),
        // Blanks in other tags must not be changed.
        format!(
            "<a title=t>{}<a\nhref=x>{}\n",
            "y".repeat(10),
            "y".repeat(980)
        ),
    ] {
        let mail = html("", &body);
        assert!(longest_line(&mail) <= 998);
        let (output, report) = run(&mail);
        assert_bytes(&output, &mail, &body);
        assert_eq!(report.rows.len(), 1);
        assert_eq!(report.rows[0].outcome, Outcome::Left);
        assert_eq!(report.rows[0].reason, Some(Reason::LineTooLong));
    }
}

#[test]
fn no_line_begins_like_a_separator_because_of_us() {
    for attribute in ["From", "--b", ".", ".x=y"] {
        let body = format!("{}<a {attribute} href=x>", "x".repeat(960));
        let mail = html("", &body);
        let (output, _) = run(&mail);
        let text = document(&output);
        assert!(text.contains("\nhref="), "{text}");
        assert!(!text.contains(&format!("\n{attribute}")), "{text}");
    }
}

#[test]
fn lines_without_a_length_limit_are_not_wrapped() {
    // The line was already too long; binary bodies have no lines; encoded bodies have other lines.
    let already = "z".repeat(1_000);
    let short = "z".repeat(960);
    for (encoding, text) in [
        ("8bit", &already),
        ("binary", &short),
        ("base64", &short),
        ("quoted-printable", &short),
    ] {
        let body = |link: &str| format!("<p>{text}<a href=\"{link}\">{text}</a>\n");
        let fields = format!("Content-Transfer-Encoding: {encoding}\n");
        let (output, report) = run(&html(&fields, &encoded(encoding, &body("x"))));
        assert_eq!(report.links(), 1, "{encoding}");
        assert_eq!(
            document(&output),
            body("http://www.example.org/a/b/x"),
            "{encoding}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// For any document, no line becomes too long, and the result equals the one in an encoding without lines, apart
    /// from blanks that became line endings.
    #[test]
    fn no_line_is_ever_made_too_long(
        pieces in proptest::collection::vec(
            prop_oneof![
                "[a-z]{1,200}", Just(" <a href=x>".to_owned()), Just("<img alt='' src=\"y z\" title=\"t u\">".to_owned()),
                Just("\n".to_owned()), Just("<style>a{background:url(q)}</style>".to_owned()),
                Just("<a\thref=\"v\nw\" x>".to_owned()), Just("<!--[if mso]><b title=a background=b><![endif]-->".to_owned()),
            ],
            0..40,
        ),
        crlf_twin: bool,
    ) {
        let body = pieces.concat();
        let twin = |mail: Vec<u8>| if crlf_twin { crlf(&mail) } else { mail };
        let seven = twin(html("Content-Transfer-Encoding: 7bit\n", &body));
        let (output, report) = run(&seven);
        prop_assert!(longest_line(&seven) > 998 || longest_line(&output) <= 998);
        let binary = twin(html("Content-Transfer-Encoding: binary\n", &body));
        let (expected, _) = run(&binary);
        let is_left = report.rows.iter().any(|row| row.reason == Some(Reason::LineTooLong));
        if is_left {
            prop_assert_eq!(&output, &seven);
        } else {
            let unbroken = |mail: &[u8]| document(mail).replace(['\r', '\n', '\t'], " ").replace("  ", " ");
            prop_assert_eq!(unbroken(&output), unbroken(&expected));
        }
    }
}

#[test]
fn blank_lines_behind_a_base64_body_stay() {
    let fields = "Content-Transfer-Encoding: base64\n";
    let body = |link: &str| format!("{}<a href=\"{link}\">text</a>\n", "text ".repeat(40));
    let (before, after) = (body("x"), body("http://www.example.org/a/b/x"));
    let lines = |text: &str| {
        let symbols = STANDARD.encode(text).into_bytes();
        let lines: Vec<&[u8]> = symbols.chunks(76).collect();
        String::from_utf8(lines.join(&b"\n"[..])).unwrap()
    };
    for twin in [|bytes: &[u8]| bytes.to_vec(), crlf] {
        for tail in ["", "\n", "\n\n\n\n", "\n \t\n\n  ", "\n--\n"] {
            let mail = |text: &str| twin(&html(fields, &(lines(text) + tail)));
            assert_bytes(&run(&mail(&before)).0, &mail(&after), tail);
        }
    }
}

/// In a body that is not decoded, `src=3D"..."` is already a broken link. embody must not change it.
#[test]
fn a_body_that_is_encoded_otherwise_than_labelled_is_left() {
    let plain = "<base target=_top><img alt=\"a\" src=\"http://h.example/a.gif\"><a class=c href=\"x.html\">x</a><p style=\"background:url(y.gif)\">";
    let body = plain.replace('=', "=3D");
    for (label, body) in [
        ("", body.clone()),
        ("Content-Transfer-Encoding: 7bit\n", body.clone()),
        ("Content-Transfer-Encoding: 8bit\n", body.clone()),
        ("Content-Transfer-Encoding: binary\n", body.clone()),
        ("", "<img srcset=3D\"a.gif 2x\">".to_owned()),
        ("", "<a href=3D'x'>".to_owned()),
        ("", "<a href=3Dx.html>".to_owned()),
        ("", "<base href=3D\"http://h/\"><a href=x>".to_owned()),
        (
            "",
            "<!--[if mso]><img src=3D\"a.gif\"><![endif]-->".to_owned(),
        ),
        // The body is encoded twice.
        (
            "Content-Transfer-Encoding: base64\n",
            encoded("base64", &body),
        ),
        (
            "Content-Transfer-Encoding: quoted-printable\n",
            encoded("quoted-printable", &body),
        ),
    ] {
        for twin in [|bytes: &[u8]| bytes.to_vec(), crlf] {
            let mail = twin(&html(label, &body));
            let (output, report) = run(&mail);
            assert_bytes(&output, &mail, &body);
            assert_eq!(report.rows.len(), 1, "{body}");
            assert_eq!(report.rows[0].outcome, Outcome::Left);
            assert_eq!(report.rows[0].reason, Some(Reason::LooksEncoded));
        }
    }
    // A file name that begins with `3D` is in quotation marks, or `3D` is in the middle of a URL.
    for value in ["\"3D.html\"", "page?view=3D", "'a=3D\"'"] {
        let (_, report) = run(&html("", &format!("<a href={value}>")));
        assert_eq!(report.links(), 1, "{value}");
    }
    // Nothing would change, so there is no row.
    let mail = html("", "<img width=3D\"4\" alt=3D\"x\">");
    assert!(run(&mail).1.rows.is_empty());
}
