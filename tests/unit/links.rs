//! Resolves relative links with the whole filter (docs/design.md, "Links").

use super::common::mail::expander;
use super::common::named::assert_each_names_a_part;
use embody::Policy;
use embody::fetch::Canned;
use embody::fetch::{Fetch, NoFetch};
use embody::policy::{Links, Scheme};
use embody::report::{Kind, Outcome, Reason, Report};
use proptest::prelude::*;

pub(crate) const BASE: &str = "Content-Base: http://www.example.org/a/b/c\n";

pub(crate) fn run_in(
    fetch: impl Fetch + 'static,
    policy: Policy,
    mail: &[u8],
) -> (Vec<u8>, Report) {
    let expander = expander(policy, fetch);
    let expansion = expander.expand(mail, "test").expect("never deferred");
    let output = expansion.output().into_bytes().into_owned();
    assert_each_names_a_part(mail, &output);
    let again = expander.expand(&output, "test").expect("never deferred");
    assert_eq!(
        again.report.links(),
        0,
        "a second run claims to change more"
    );
    assert_eq!(
        again.output().into_bytes().as_ref(),
        output,
        "a second run changes more"
    );
    (output, expansion.report)
}

pub(crate) fn run(mail: &[u8]) -> (Vec<u8>, Report) {
    run_in(NoFetch, Policy::default(), mail)
}

fn html(header: &str, body: &str) -> Vec<u8> {
    format!("MIME-Version: 1.0\n{header}Content-Type: text/html; charset=utf-8\n\n{body}")
        .into_bytes()
}

#[test]
fn relative_links_become_absolute_and_nothing_else_changes() {
    let body = "<p title='x &amp; y'>\n<a href=\"../d?q&amp;r\">caf\u{e9}</a> <img src=e.png alt=f><a href=#top>\n<a href='http://other.example/'>\n";
    let (output, report) = run(&html(BASE, body));
    let expected = "<p title='x &amp; y'>\n<a href=\"http://www.example.org/a/d?q&amp;r\">caf\u{e9}</a> <img src=http://www.example.org/a/b/e.png alt=f><a href=#top>\n<a href='http://other.example/'>\n";
    assert_eq!(
        String::from_utf8_lossy(&output),
        String::from_utf8_lossy(&html(BASE, expected))
    );
    assert_eq!(report.rows.len(), 1);
    let row = &report.rows[0];
    assert_eq!((row.kind, row.outcome), (Kind::Link, Outcome::Rewritten));
    assert_eq!(row.links, Some(2));
    assert!(
        row.detail.contains("Content-Base of part 1"),
        "{}",
        row.detail
    );
}

#[test]
fn a_document_with_nothing_relative_or_without_a_base_is_untouched() {
    for mail in [
        // `d_x` is not a scheme, but resolving the link gives the same text.
        html("Content-Base: odd://e.example/a/\n", "<a href='d_x:y'>"),
        html(
            BASE,
            "<a href=http://x/>x</a><a href='#f'><a href=mailto:a@b><a href=''>",
        ),
        html("", "<a href=x>x</a><img src=y>"),
        html("Content-Base: C:\\mail\\x\n", "<a href=x>"),
        html("Content-Base: relative/\n", "<a href=x>"),
        html("", "<base href=\"/\"><a href=x>"),
        html("", "<base target=x><a href=y>"),
        html("", "<base href=\"javascript:alert(1)\"><a href=y>"),
    ] {
        let (output, report) = run(&mail);
        assert_eq!(output, mail);
        assert!(report.rows.is_empty(), "{:?}", report.rows);
    }
}

#[test]
fn links_keep_changes_nothing() {
    let mail = html(BASE, "<a href=x>x</a>");
    let policy = Policy {
        links: Links::Keep,
        ..Policy::default()
    };
    assert_eq!(run_in(NoFetch, policy, &mail).0, mail);
}

#[test]
fn the_innermost_base_wins_and_a_field_needs_no_blank_after_its_colon() {
    let mail = "Content-Base: http://outer.example/\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\nContent-Location:http://\n part.example/x/\n\n<a href=y>\n--b\nContent-Type: text/html\nContent-Location: sub/\n\n<a href=y>\n--b\nContent-Type: text/html\n\n<base href='http://doc.example/'><a href=y>\n--b\nContent-Type: text/html\n\n<a href=y>\n--b--\n";
    let (output, _) = run(mail.as_bytes());
    let output = String::from_utf8_lossy(&output).into_owned();
    for expected in [
        "<a href=http://part.example/x/y>",
        "<a href=http://outer.example/sub/y>",
        "<a href=http://doc.example/y>",
        "\n\n<a href=http://outer.example/y>",
    ] {
        assert!(output.contains(expected), "{expected} in\n{output}");
    }
}

#[test]
fn part_linked_by_its_content_location_gets_a_content_id_and_a_cid_link() {
    for (header, location) in [
        ("", "pic/i.png"),
        (BASE, "pic/i.png"),
        (BASE, "http://WWW.example.org:80/a/b/pic/i.png"),
    ] {
        let mail = format!(
            "{header}Content-Type: multipart/related; boundary=r\n\n--r\nContent-Type: text/html\n\n<img src=\"pic/i.png\">\n--r\nContent-Type: image/png\nContent-Location: {location}\n\nx\n--r\nContent-Type: image/png\nContent-ID: <two@x>\nContent-Location: other.png\n\ny\n--r--\n"
        );
        let (output, report) = run(mail.as_bytes());
        let output = String::from_utf8_lossy(&output).into_owned();
        let id = output
            .split("Content-ID: <")
            .nth(1)
            .and_then(|rest| rest.split('>').next())
            .expect("an id was added");
        assert!(id.ends_with("@embody.invalid"), "{output}");
        assert!(
            output.contains(&format!("<img src=\"cid:{id}\">")),
            "{output}"
        );
        assert_eq!(report.rows[0].links, Some(1));
    }
}

#[test]
fn bare_equals_sign_in_quoted_printable_loses_no_following_text() {
    let mail = |body: &str| {
        format!(
            "{BASE}Content-Type: text/html\nContent-Transfer-Encoding: quoted-printable\n\n{body}"
        )
    };
    let (output, _) = run(mail("<a href=\"x?y=\">t</a>=\n\n<a href=x>\n").as_bytes());
    let expected = "<a href=\"http://www.example.org/a/b/x?y=3D\">t</a>=\n\n<a href=http://www.example.org/a/b/x>\n";
    assert_eq!(String::from_utf8_lossy(&output), mail(expected));
}

#[test]
fn charsets_that_are_not_ascii_are_left_with_a_reason() {
    for charset in ["utf-16", "UTF-7", "iso-2022-jp"] {
        let mail = format!("{BASE}Content-Type: text/html; charset={charset}\n\n<a href=x>");
        let (output, report) = run(mail.as_bytes());
        assert_eq!(output, mail.as_bytes());
        assert_eq!(report.rows[0].reason, Some(Reason::CharsetNotSupported));
    }
}

#[test]
fn signed_documents_are_left() {
    let mail = format!(
        "{BASE}Content-Type: multipart/signed; boundary=s\n\n--s\nContent-Type: text/html\n\n<a href=x>\n--s\nContent-Type: application/pgp-signature\n\nx\n--s--\n"
    );
    let (output, report) = run(mail.as_bytes());
    assert_eq!(output, mail.as_bytes());
    assert_eq!(report.rows[0].reason, Some(Reason::Signed));
}

#[test]
fn retrieved_html_has_its_retrieval_url_as_base() {
    let world = Canned::new().with(
        "https://www.example.org/d/page",
        Some("text/html"),
        b"<img src=i.png>".to_vec(),
    );
    let policy = Policy {
        fetch: [Scheme::Https].into(),
        ..Policy::default()
    };
    let mail = b"Content-Base: https://www.example.org/d/\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/external-body; access-type=URL; URL=\"page\"\n\nContent-Type: text/html\n\n--b--\n";
    let (output, report) = run_in(world.clone(), policy, mail);
    let output = String::from_utf8_lossy(&output).into_owned();
    assert!(
        output.contains("<img src=https://www.example.org/d/i.png>"),
        "{output}"
    );
    assert!(
        output.contains("Content-Location: https://www.example.org/d/page\n"),
        "{output}"
    );
    assert_eq!((report.expanded(), report.links()), (1, 1));
}

/// Encodes a text in quoted-printable as some programs do, with every character escaped that may be escaped.
pub(crate) fn quoted_printable(text: &[u8], newline: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut column = 0;
    for &byte in text {
        if byte == b'\n' {
            out.extend_from_slice(newline.as_bytes());
            column = 0;
            continue;
        }
        if column > 60 {
            out.extend_from_slice(format!("={newline}").as_bytes());
            column = 0;
        }
        if byte.is_ascii_alphanumeric() {
            out.push(byte);
            column += 1;
        } else {
            out.extend_from_slice(format!("={byte:02X}").as_bytes());
            column += 3;
        }
    }
    out
}

fn body_of(mail: &[u8]) -> Vec<u8> {
    let parsed = mail_parser::MessageParser::default()
        .parse(mail)
        .expect("a message");
    parsed.parts[0].contents().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_encoding_and_line_ending_gives_the_same_document(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just("<a href=\"x/y?z=1&amp;w\">"), Just("text caf\u{e9} = "), Just("\n"),
                Just("<img src='../i.png' srcset='a.png 1x, b.png 2x'>"), Just("<a href=#f>"),
                Just("<p style=\"background:url(q.png)\">"), Just("<!-- <a href=no> -->"),
                Just("<a href=http://abs.example/>"), Just("<a href=unquoted>"),
            ],
            0..12,
        ),
    ) {
        let text = pieces.concat();
        let (identity, _) = run(&html(BASE, &text));
        let expected = body_of(&identity);
        let header = |encoding: &str| format!("MIME-Version: 1.0\n{BASE}Content-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: {encoding}\n\n");
        for newline in ["\n", "\r\n"] {
            let crlf = |mail: Vec<u8>| match newline {
                "\n" => mail,
                _ => String::from_utf8(mail).expect("text").replace('\n', "\r\n").into_bytes(),
            };
            let plain = run(&crlf(html(BASE, &text))).0;
            prop_assert_eq!(&plain, &crlf(identity.clone()));
            let printable = quoted_printable(text.as_bytes(), newline);
            let mail = [crlf(header("quoted-printable").into_bytes()), printable].concat();
            let decoded = String::from_utf8(body_of(&run(&mail).0)).expect("text");
            prop_assert_eq!(decoded.replace("\r\n", "\n").into_bytes(), expected.clone());
            let encoded = base64_simd::STANDARD.encode_to_string(text.as_bytes());
            let mail = [crlf(header("base64").into_bytes()), encoded.into_bytes()].concat();
            prop_assert_eq!(body_of(&run(&mail).0), expected.clone());
        }
    }
}
