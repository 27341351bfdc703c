//! Content-MD5 fields (RFC 1864) of parts that embedding changes: the new value matches the new bytes, or the field is
//! removed. The picture is embedded in any case.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embody::Policy;
use embody::fetch::Canned;
use embody::mime::{self, PartKind, ScanLimits};
use embody::report::Outcome;
use md5::{Digest as _, Md5};

use super::common::mail::{assert_bytes, crlf, expand_with};
use super::embed::{cids, data, gif, pictures, policy, run};

pub(super) fn md5(octets: &[u8]) -> String {
    STANDARD.encode(Md5::digest(octets))
}

/// Checks that each Content-MD5 of the mail is right, and belongs to a part without inner parts.
#[track_caller]
pub(super) fn assert_digests(mail: &[u8], expected: usize) {
    let tree = mime::scan(mail, &ScanLimits::default());
    let mut found = 0;
    for part in tree.ids() {
        let entity = tree.part(part);
        let fields = tree.fields(part).iter(mail);
        for field in fields.filter(|field| field.is(mail, "Content-MD5")) {
            found += 1;
            assert_eq!(entity.content, PartKind::Leaf, "{}", mail.escape_ascii());
            let octets = entity.encoding.decode(entity.body.of(mail)).unwrap();
            let value = String::from_utf8_lossy(field.value.of(mail)).into_owned();
            let allowed = [md5(&octets), md5(&crlf(&octets))];
            let written = value.split('(').next().unwrap_or_default();
            let is_true = allowed.iter().any(|md5| md5 == written.trim());
            assert!(is_true, "{value} in {}", mail.escape_ascii());
        }
    }
    assert_eq!(found, expected, "{}", mail.escape_ascii());
}

/// Returns the mail with its pictures. Everything must be embedded, and each `cid:` URL must name a picture.
#[track_caller]
fn embedded(mail: &str, expected: &[u8]) -> Vec<Vec<u8>> {
    let world = Canned::new().with("https://a.example/1.png", Some("image/gif"), gif(9, 9, 1));
    let mut outputs = Vec::new();
    for mail in [mail.as_bytes().to_vec(), crlf(mail.as_bytes())] {
        let (output, report) = run(policy(), &world, &mail);
        let left = |row: &&embody::report::Row| row.outcome == Outcome::Left;
        assert_eq!(report.rows.iter().filter(left).count(), 0, "{report:?}");
        let text = String::from_utf8_lossy(&output).into_owned();
        let (cids, pictures) = (cids(&text), pictures(&output));
        assert!(!cids.is_empty(), "{text}");
        for cid in cids {
            assert_eq!(
                pictures.get(&cid).map(Vec::as_slice),
                Some(expected),
                "{text}"
            );
        }
        outputs.push(output);
    }
    outputs
}

const REMOTE: &str = "<p><img src=\"https://a.example/1.png\">\n";

fn body() -> String {
    format!("<img src=\"{}\">\n", data(&gif(9, 9, 1)))
}

/// Returns digests of a document: right for the bytes, right for the lines, and wrong.
fn digests(body: &str) -> [(String, usize); 3] {
    [
        (md5(body.as_bytes()), 1),
        (md5(&crlf(body.as_bytes())), 1),
        (STANDARD.encode([0; 16]), 0),
    ]
}

#[test]
fn the_digest_of_a_message_that_is_only_html_moves_with_its_document() {
    for body in [body(), REMOTE.to_owned()] {
        for (digest, kept) in digests(&body) {
            for fields in [
                format!("Content-Type: text/html\nContent-MD5: {digest}\n"),
                format!("Content-MD5: {digest}\nContent-Type: text/html\n"),
                format!(
                    "Content-MD5: {digest} (of it)\nContent-MD5: x\nContent-Type: text/html\nContent-ID: <root@x>\n"
                ),
            ] {
                let mail = format!("From: a@b\n{fields}MIME-Version: 1.0\n\n{body}");
                for (output, is_crlf) in embedded(&mail, &gif(9, 9, 1)).iter().zip([false, true]) {
                    // A digest of the bytes is wrong for other line endings.
                    let was_true = kept == 1 && (!is_crlf || digest == md5(&crlf(body.as_bytes())));
                    assert_digests(output, usize::from(was_true));
                    let tree = mime::scan(output, &ScanLimits::default());
                    assert_eq!(tree.root().essence, "multipart/related");
                    assert!(tree.value(mime::PartId::ROOT, "Content-MD5").is_none());
                }
            }
        }
    }
}

#[test]
fn all_fields_of_the_document_move_and_a_wrong_digest_does_not() {
    let mail = "From: a@b\nSubject: x\nMIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n\
        Content-Transfer-Encoding: 8bit\nContent-Disposition: inline\nContent-Language: de\nContent-ID: <root@x>\n\
        Content-Description: foo\nContent-MD5: xxx\nContent-Length: 40\nLines: 1\nX-Foo: bar\n\n\
        <p>\u{e9}<img src=\"https://a.example/1.png\">\n";
    let output = String::from_utf8(embedded(mail, &gif(9, 9, 1)).remove(0)).unwrap();
    let inner = output.split("\n--").nth(1).unwrap();
    for field in [
        "Content-Type: text/html; charset=utf-8\n",
        "Content-Transfer-Encoding: 8bit\nContent-Disposition: inline\n",
        "Content-Language: de\nContent-ID: <root@x>\nContent-Description: foo\n\n<p>",
    ] {
        assert!(inner.contains(field), "{output}");
    }
    assert!(!output.contains("Content-MD5"), "{output}");
}

#[test]
fn digests_of_a_nested_message_are_corrected_or_removed() {
    for body in [body(), REMOTE.to_owned()] {
        for (digest, kept) in digests(&body) {
            let inner = format!(
                "From: c@d\nMIME-Version: 1.0\nContent-Type: text/html\nContent-MD5: {digest}\n\n{body}"
            );
            let mixed = format!(
                "Content-Type: multipart/mixed; boundary=m\nContent-MD5: {digest}\n\n--m\nContent-Type: message/rfc822\n\
                 Content-MD5: {digest}\n\n{inner}\n--m--\n"
            );
            for mail in [
                format!(
                    "From: a@b\nMIME-Version: 1.0\nContent-Type: message/rfc822\nContent-MD5: {digest}\n\n{inner}"
                ),
                format!("From: a@b\nMIME-Version: 1.0\n{mixed}"),
                format!(
                    "From: a@b\nMIME-Version: 1.0\nContent-Type: message/rfc822\n\nMIME-Version: 1.0\n{mixed}"
                ),
            ] {
                let outputs = embedded(&mail, &gif(9, 9, 1));
                assert_digests(&outputs[0], kept);
            }
        }
    }
}

#[test]
fn a_part_of_a_multipart_keeps_its_digest_beside_it() {
    let body = body();
    for (digest, kept) in digests(&body) {
        for kind in ["mixed", "alternative", "related"] {
            let mail = format!(
                "From: a@b\nMIME-Version: 1.0\nContent-Type: multipart/{kind}; boundary=m\nContent-MD5: x\n\n--m\n\
                 Content-Type: text/html\nContent-MD5: {digest}\n\n{body}\n--m--\n"
            );
            assert_digests(&embedded(&mail, &gif(9, 9, 1))[0], kept);
        }
    }
}

/// The phantom header contains the field, which matches the retrieved content. Embedding then changes the content.
#[test]
fn a_document_that_came_in_is_changed_with_its_digest() {
    let html = format!("<img src=\"{}\">", data(&gif(9, 9, 1)));
    let reference = format!(
        "Content-Type: message/external-body; access-type=URL; URL=\"data:text/html;base64,{}\"\n\n\
         Content-Type: text/html\nContent-MD5: {}\n\n",
        STANDARD.encode(&html),
        md5(html.as_bytes())
    );
    for mail in [
        format!("From: a@b\n{reference}"),
        format!(
            "From: a@b\nMIME-Version: 1.0\nContent-Type: message/rfc822\n\nFrom: c@d\n{reference}"
        ),
        format!(
            "From: a@b\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=m\n\n--m\n{reference}\n--m--\n"
        ),
    ] {
        for output in embedded(&mail, &gif(9, 9, 1)) {
            assert_digests(&output, 1);
        }
    }
}

/// Two steps change the document: the picture is embedded, and then a link is resolved.
#[test]
fn link_next_to_a_picture_is_resolved_and_the_digest_covers_both_changes() {
    let body = format!("<a href=\"x\">y</a>{}", body());
    let mail = format!(
        "From: a@b\nMIME-Version: 1.0\nContent-Base: https://a.example/long/\nContent-Type: text/html\nContent-MD5: {}\n\n{body}",
        md5(&crlf(body.as_bytes()))
    );
    for output in embedded(&mail, &gif(9, 9, 1)) {
        assert_digests(&output, 1);
        let text = String::from_utf8_lossy(&output).into_owned();
        assert!(text.contains("https://a.example/long/x"), "{text}");
    }
}

/// Only links are changed. The digests of the outer bodies are removed if they become wrong.
#[test]
fn links_in_a_message_in_a_message_leave_no_false_digest() {
    let body = "<a href=\"x\">y</a>\n";
    for (digest, kept) in digests(body) {
        let mail = format!(
            "From: a@b\nMIME-Version: 1.0\nContent-Type: message/rfc822\nContent-MD5: {digest}\n\nFrom: c@d\n\
             MIME-Version: 1.0\nContent-Type: text/html\nContent-Base: https://a.example/\nContent-MD5: {digest}\n\n{body}"
        );
        let (output, _) = expand_with(Policy::default(), mail.as_bytes());
        assert_digests(&output, kept);
        assert!(String::from_utf8_lossy(&output).contains("https://a.example/x"));
        let (again, _) = expand_with(Policy::default(), &output);
        assert_bytes(&again, &output, "twice is once");
    }
}
