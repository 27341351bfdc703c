//! Line endings of detached parts. A mail that was not converted is restored byte for byte. A mail that a system
//! converted on its way is restored as that system would have converted the original.

use std::sync::Arc;

use proptest::prelude::*;

use super::common::mail::{assert_bytes, crlf};
use super::detach::{Memory, detacher, detacher_with, made, messages, restorer, there_and_back};
use crate::expand::detach::Stub;

/// Returns the mail with LF, as `tr -d '\r'` converts it.
fn lf(mail: &[u8]) -> Vec<u8> {
    mail.iter().copied().filter(|&byte| byte != b'\r').collect()
}

/// Returns a mail with a patch as an attachment. `encoding` is a header field or empty.
fn patch(essence: &str, encoding: &str) -> String {
    let lines = "+line of a patch\n".repeat(80);
    format!(
        "From: a@example.org\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n--B\n\
         {essence}{encoding}Content-Disposition: attachment; filename=a.patch\n\n{lines}\n--B--\n"
    )
}

const TYPES: [&str; 3] = [
    "Content-Type: text/x-patch\n",
    "Content-Type: text/plain; charset=utf-8\n",
    "",
];
const ENCODINGS: [&str; 6] = [
    "",
    "Content-Transfer-Encoding: 7bit\n",
    "Content-Transfer-Encoding: 8bit\n",
    "Content-Transfer-Encoding:\n 8BIT\n (folded)\n",
    "Content-Transfer-Encoding: quoted-printable\n",
    "Content-Transfer-Encoding:\n\tquoted-printable\n",
];

/// Detaches a mail, converts the result, and restores it.
fn converted(mail: &[u8], form: Stub, convert: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let store = Arc::new(Memory::default());
    let detachment = detacher(&store, form).detach(mail, "test").unwrap();
    assert_eq!(detachment.report.detached(), 1, "{:?}", detachment.report);
    let on_its_way = convert(&made(mail, &detachment.edits));
    let restored = restorer(&store).expand(&on_its_way, "test").unwrap();
    assert_eq!(restored.report.restored(), 1, "{:?}", restored.report);
    made(&on_its_way, &restored.edits)
}

#[test]
fn text_comes_back_with_the_line_ends_that_the_mail_has_now() {
    for form in [Stub::ExternalBody, Stub::Thunderbird] {
        for essence in TYPES {
            for encoding in ENCODINGS {
                let mail = patch(essence, encoding);
                let (mail, twin) = (mail.as_bytes(), crlf(mail.as_bytes()));
                assert_bytes(&converted(&twin, form, lf), mail, "CRLF became LF");
                assert_bytes(&converted(mail, form, crlf), &twin, "LF became CRLF");
                for mail in [mail, &twin] {
                    let (_, _, back) = there_and_back(mail, form);
                    assert_bytes(&back, mail, "nobody converted it");
                }
            }
        }
    }
}

/// Content that is not text has no lines to convert. Its SHA-256 and its Content-MD5 define its bytes.
#[test]
fn what_is_no_text_comes_back_with_its_octets() {
    let mail = patch("Content-Type: application/octet-stream\n", ENCODINGS[2]);
    let twin = crlf(mail.as_bytes());
    let back = converted(&twin, Stub::ExternalBody, lf);
    let body = crlf("+line of a patch\n".repeat(80).as_bytes());
    assert!(memchr::memmem::find(&back, &body).is_some());
    // The header of the part, and everything around it, has the line endings of the converted mail.
    assert_bytes(&lf(&back), mail.as_bytes(), "but for its line ends");
}

/// If a body or a header contains both line endings, neither of them is the line ending of the mail.
#[test]
fn mixed_line_ends_come_back_as_they_were() {
    let body = "a line\nanother line\r\n".repeat(60);
    let mail = patch("Content-Type: text/x-patch\n", "");
    let lines = "+line of a patch\n".repeat(80);
    let crlf_in_lf = mail.replace(&lines, &body);
    let header_is_mixed = String::from_utf8(crlf(mail.as_bytes()))
        .unwrap()
        .replace("text/x-patch\r\n", "text/x-patch\n");
    let others = mail.replace(&lines, &lines.replace('\n', "\r\n"));
    for form in [Stub::ExternalBody, Stub::Thunderbird] {
        for mail in [&crlf_in_lf, &header_is_mixed, &others] {
            let (detached, report, back) = there_and_back(mail.as_bytes(), form);
            assert_eq!(report.detached(), 1);
            assert!(detached.len() < mail.len());
            assert_bytes(&back, mail.as_bytes(), "nobody converted it");
        }
    }
    // The note says that the line endings of the body differ from those of the header.
    let back = converted(crlf_in_lf.as_bytes(), Stub::ExternalBody, crlf);
    assert!(memchr::memmem::find(&back, body.as_bytes()).is_some());
}

/// Notes of version 0.1.1 do not contain the line endings of plain text.
#[test]
fn note_of_version_0_1_1_under_mixed_line_ends_restores_the_stored_octets() {
    let mail = crlf(patch("Content-Type: text/x-patch\n", "").as_bytes());
    let store = Arc::new(Memory::default());
    let detachment = detacher(&store, Stub::ExternalBody)
        .detach(&mail, "test")
        .unwrap();
    let detached = String::from_utf8(made(&mail, &detachment.edits)).unwrap();
    assert!(!detached.contains("newline="), "{detached}");
    // If only a part of the header was converted, the line ending of the mail is unknown.
    let half = detached.replacen("x-patch\r\n", "x-patch\n", 1);
    let restored = restorer(&store).expand(half.as_bytes(), "test").unwrap();
    let back = made(half.as_bytes(), &restored.edits);
    let expected = String::from_utf8(mail)
        .unwrap()
        .replacen("x-patch\r\n", "x-patch\n", 1);
    assert_bytes(&back, expected.as_bytes(), "the stored octets");
}

#[test]
fn the_text_about_attachments_goes_with_the_last_of_them_in_a_mail_that_was_converted() {
    let mail = patch(
        "Content-Type: text/x-patch\n",
        "Content-Transfer-Encoding: 7bit\n",
    );
    let twin = crlf(mail.as_bytes());
    let store = Arc::new(Memory::default());
    let detacher = detacher_with(&store, Stub::ExternalBody, true);
    let detachment = detacher.detach(&twin, "test").unwrap();
    let on_its_way = lf(&made(&twin, &detachment.edits));
    assert!(memchr::memmem::find(&on_its_way, b"were moved to").is_some());
    let restored = restorer(&store).expand(&on_its_way, "test").unwrap();
    assert_bytes(
        &made(&on_its_way, &restored.edits),
        mail.as_bytes(),
        "all back",
    );
}

/// Returns the mail with one of the two line endings in each line.
fn with_ends(mail: &str, ends: &[bool]) -> Vec<u8> {
    let mut ends = ends.iter().cycle();
    let mut made = Vec::new();
    for byte in mail.bytes() {
        if byte == b'\n' && ends.next() == Some(&true) {
            made.push(b'\r');
        }
        made.push(byte);
    }
    made
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_mix_of_line_ends_comes_back(
        message in messages(), ends in prop::collection::vec(prop::bool::weighted(0.2), 1..200), thunderbird: bool,
    ) {
        let mail = with_ends(&message, &ends);
        let form = if thunderbird { Stub::Thunderbird } else { Stub::ExternalBody };
        let (_, report, back) = there_and_back(&mail, form);
        prop_assert_eq!(mail.escape_ascii().to_string(), back.escape_ascii().to_string(), "{:?}", report.rows);
    }

    #[test]
    fn line_end_conversion_before_restore_equals_conversion_of_the_original(message in messages(), to_crlf: bool, thunderbird: bool) {
        // Types are changed to text, because other content keeps its bytes. Both line endings in one mail would make
        // the expected result ambiguous. The length fields are renamed, because a converting system would count again.
        let message = message
            .replace('\r', "")
            .replace("application/", "text/")
            .replace("image/", "text/x-")
            .replace("Content-Length:", "X-Length:")
            .replace("Lines:", "X-Lines:");
        let convert = |mail: &[u8]| if to_crlf { crlf(mail) } else { lf(mail) };
        let mail = if to_crlf { message.into_bytes() } else { crlf(message.as_bytes()) };
        let form = if thunderbird { Stub::Thunderbird } else { Stub::ExternalBody };
        let store = Arc::new(Memory::default());
        let detachment = detacher(&store, form).detach(&mail, "test").unwrap();
        let on_its_way = convert(&made(&mail, &detachment.edits));
        let restored = restorer(&store).expand(&on_its_way, "test").unwrap();
        let back = made(&on_its_way, &restored.edits);
        prop_assert_eq!(back.escape_ascii().to_string(), convert(&mail).escape_ascii().to_string());
    }
}
