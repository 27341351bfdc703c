//! Multiparts and messages as content are put into the mail without an encoding (RFC 2045 §6.4), or not at all. The result must
//! never be interpreted differently by other programs.

use crate::common::mail::{
    assert_bytes, assert_left, expand, expand_with, expander, second_part, with_external_body,
    with_url,
};
use embody::fetch::Canned;
use embody::policy::{Links, Scheme};
use embody::{Policy, Report};

fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

fn message(url_type: &str, content: &str) -> Vec<u8> {
    with_url(&format!("data:{url_type},{}", escaped(content)), "")
}

fn retrieved(world: &Canned, mail: &[u8]) -> (Vec<u8>, Report) {
    let policy = Policy::default().with_fetch(Scheme::ALL);
    let expander = expander(policy, world.clone());
    let expansion = expander.expand(mail, "test").unwrap();
    (
        expansion.output().into_bytes().into_owned(),
        expansion.report,
    )
}

#[test]
fn a_composite_that_would_be_a_broken_entity_is_left() {
    let long = format!("Subject: s\n\n{}\n", "y".repeat(999));
    for (media_type, content, reason) in [
        ("multipart/mixed", "--q\n\nx\n--q--", "unfit-composite"),
        (
            "multipart/mixed;boundary=q",
            "no line of it",
            "unfit-composite",
        ),
        ("message/rfc822", "Subject: s\n\ncafé\n", "unfit-composite"),
        ("message/rfc822", &long, "unfit-composite"),
        (
            "message/external-body",
            "Content-Type: text/plain\n\n",
            "unfit-composite",
        ),
        (
            "message/rfc822",
            "Subject: s\n\na\0b\n",
            "control-character",
        ),
        (
            "multipart/mixed;boundary=q",
            "--q\n\na\r--b0--\rb\n--q--\n",
            "control-character",
        ),
        (
            "message/rfc822",
            "Subject: s\n\n--b0\n",
            "boundary-collision",
        ),
    ] {
        assert_left(Policy::default(), &message(media_type, content), reason);
    }
}

#[test]
fn eight_bit_content_comes_in_where_everything_around_is_labelled_so() {
    let mail = String::from_utf8(message("message/rfc822", "Subject: s\n\ncafé\n")).unwrap();
    let label = "Content-Transfer-Encoding: 8bit\nMIME-Version: 1.0\n";
    let mail = mail.replace("MIME-Version: 1.0\n", label);
    let (output, report) = expand(mail.as_bytes());
    assert_eq!(report.expanded(), 1, "{report:?}");
    let expected =
        "Content-Type: message/rfc822\nContent-Transfer-Encoding: 8bit\n\nSubject: s\n\ncafé\n";
    assert_eq!(second_part(&output), expected);
}

#[test]
fn an_external_body_that_a_server_sends_is_left() {
    let phantom = "Content-Type: message/external-body\n";
    let mail = with_url("http://h.example/eb", phantom);
    let media_type = "message/external-body; access-type=URL; URL=\"data:,deep\"";
    let world = Canned::new().with(
        "http://h.example/eb",
        Some(media_type),
        "Content-Type: text/plain\n\n",
    );
    let (output, report) = retrieved(&world, &mail);
    assert_bytes(&output, &mail, "an external body");
    assert_eq!(report.rows[0].reason.unwrap().as_str(), "unfit-composite");
}

/// `a\rFrom: boss@...` is a single field for embody, and two fields for Python's email.
#[test]
fn part_is_unchanged_if_its_phantom_field_has_a_control_character() {
    for field in [
        "Content-X: a\rFrom: boss@example.org",
        "X: a\0b",
        "X:\r b",
        "X: a\r\r",
    ] {
        let phantom = format!("Content-Type: text/plain\n{field}\n");
        assert_left(
            Policy::default(),
            &with_url("data:,hi", &phantom),
            "control-character",
        );
    }
    // A field that is not copied does no harm.
    let whole = b"MIME-Version: 1.0\nContent-Type: message/external-body; access-type=URL; URL=\"data:,hi\"\n\n\
        Content-Type: text/plain\nSubject: a\rb\n\n";
    assert_eq!(expand(whole).1.expanded(), 1);
}

/// These fields would describe the length of another body, or whether another person read the mail.
#[test]
fn no_length_or_status_comes_along_with_a_phantom_header() {
    let phantom =
        "Content-Type: text/plain\nContent-Length: 99999\nLines: 9\nStatus: RO\nX-Status: A\n";
    let whole = format!(
        "Subject: s\nMIME-Version: 1.0\nContent-Type: message/external-body; access-type=URL; URL=\"data:,hi\"\n\n{phantom}\n"
    );
    let (output, _) = expand(whole.as_bytes());
    let expected = "Subject: s\nMIME-Version: 1.0\nContent-Type: text/plain\nContent-Transfer-Encoding: 7bit\n\nhi";
    assert_bytes(&output, expected.as_bytes(), "a message");
    let part = second_part(&expand(&with_url("data:,hi", phantom)).0);
    assert!(
        !part.contains("Length") && !part.contains("Lines"),
        "{part}"
    );
}

#[test]
fn length_and_digest_fields_of_a_changed_body_are_corrected_or_removed() {
    let reference = "Content-Type: message/external-body; access-type=URL; URL=\"data:,hi\"";
    let mail = format!(
        "Content-Length: 5\nLines: 1\nMIME-Version: 1.0\nContent-MD5: AAAA\nContent-Type: multipart/mixed; boundary=o\n\n--o\n\
         Content-Type: message/rfc822\nContent-Length: 7\n\n\
         Subject: s\nLines: 3\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\
         {reference}\nContent-Length: 55\nContent-MD5: AAAA\nLines: 2\n\nContent-Type: text/plain\n\n\
         --b\nContent-MD5: BBBB\nLines: 4\n\nanother\n--b--\n--o--\n"
    );
    let (output, report) = expand(mail.as_bytes());
    assert_eq!(report.expanded(), 1);
    let text = String::from_utf8(output).unwrap();
    let (header, body) = text.split_once("\n\n").unwrap();
    let expected = format!(
        "Content-Length: {}\nLines: {}\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=o",
        body.len(),
        body.matches('\n').count()
    );
    assert_eq!(header, expected);
    let expected = "--o\nContent-Type: message/rfc822\n\nSubject: s\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\
        Content-Type: text/plain\nContent-Transfer-Encoding: 7bit\n\nhi\n\
        --b\nContent-MD5: BBBB\nLines: 4\n\nanother\n--b--\n--o--\n";
    assert_eq!(body, expected);
    // If nothing changes, no field is corrected.
    let unchanged = mail.replace("data:,hi", "data:");
    assert_bytes(
        &expand(unchanged.as_bytes()).0,
        unchanged.as_bytes(),
        "left",
    );
}

#[test]
fn charset_of_the_mail_wins_and_a_different_one_of_the_content_is_reported() {
    let mail = with_url(
        "data:text/plain;charset=koi8-r,%D4",
        "Content-Type: text/plain; charset=windows-1251\n",
    );
    let (output, report) = expand(&mail);
    assert!(second_part(&output).starts_with("Content-Type: text/plain; charset=windows-1251\n"));
    let detail = &report.rows[0].detail;
    assert!(
        detail.contains("koi8-r") && detail.contains("windows-1251"),
        "{detail}"
    );
    let same = with_url(
        "data:text/plain;charset=KOI8-R,%D4",
        "Content-Type: text/plain; charset=koi8-r\n",
    );
    assert!(!expand(&same).1.rows[0].detail.contains("charset"));
}

/// A relative Content-Location has a meaning only together with its base URL.
#[test]
fn content_with_a_relative_location_keeps_the_base_of_its_retrieval() {
    let mail = with_url(
        "http://h.example/dir/html",
        "Content-Type: text/html\nContent-Location: sub/page.html\n",
    );
    let world = Canned::new().with(
        "http://h.example/dir/html",
        Some("text/html"),
        "<a href=x><img src='//cdn/y'>",
    );
    let (output, _) = retrieved(&world, &mail);
    let text = String::from_utf8(output.clone()).unwrap();
    assert!(
        text.contains("<a href=http://h.example/dir/sub/x>"),
        "{text}"
    );
    assert!(text.contains("<img src='http://cdn/y'>"), "{text}");
    assert_bytes(&retrieved(&world, &output).0, &output, "twice is once");
}

fn letter(url: &str) -> String {
    format!("Subject: s\nContent-Type: message/external-body; access-type=URL; URL=\"{url}\"\n\n\n")
}

#[test]
fn reference_that_closes_a_loop_is_left_in_every_run() {
    let one = "http://h.example/one";
    let world = Canned::new()
        .with(one, Some("message/rfc822"), letter("http://h.example/two"))
        .with("http://h.example/two", Some("message/rfc822"), letter(one));
    let mail = with_url(one, "Content-Type: message/rfc822\n");
    let (output, report) = retrieved(&world, &mail);
    assert_eq!(report.expanded(), 2, "{report:?}");
    assert_eq!(report.rows[2].reason.unwrap().as_str(), "reference-loop");
    // The inner reference requests no media type.
    assert_eq!(world.asked().len(), 3);
    let (again, report) = retrieved(&world, &output);
    assert_bytes(&again, &output, "twice is once");
    assert_eq!(report.rows.len(), 1, "{report:?}");
}

/// The mail does not record from which file content came, so no part of the cycle is filled.
#[test]
fn loop_of_files_is_left_at_the_first_reference() {
    let (one, two) = ("file:///a/one", "file:///a/two");
    let letter = |url| {
        let letter = letter(url);
        format!(
            "{}Content-Type: message/rfc822\n\n",
            letter.trim_end_matches('\n').to_owned() + "\n\n"
        )
    };
    let world = Canned::new()
        .with(one, None, letter(two))
        .with(two, None, letter(one))
        .with("file:///a/into", None, letter(one));
    let policy = Policy::default()
        .with_fetch(Scheme::ALL)
        .with_file_roots(["/a".into()])
        .with_links(Links::Keep);
    let expander = expander(policy, world);
    for (url, expanded) in [(one, 0), ("file:///a/into", 1)] {
        let mail = with_external_body(
            &format!("access-type=URL; URL=\"{url}\""),
            "Content-Type: message/rfc822\n",
        );
        let once = expander.expand(&mail, "test").unwrap();
        assert_eq!(once.report.expanded(), expanded, "{:?}", once.report);
        let output = once.output().into_bytes().into_owned();
        let twice = expander.expand(&output, "test").unwrap();
        assert_bytes(&twice.output().into_bytes(), &output, url);
    }
}

#[test]
fn nested_content_counts_against_the_depth() {
    let mut content = letter("data:,end");
    for _ in 0..4 {
        content = letter(&format!("data:message/rfc822,{}", escaped(&content)));
    }
    let mail = with_url(&format!("data:message/rfc822,{}", escaped(&content)), "");
    let depths: Vec<usize> = (1..8)
        .map(|depth| {
            let mut policy = Policy::default();
            policy = policy.map_limits(|limits| limits.with_depth(depth));
            expand_with(policy, &mail).1.expanded()
        })
        .collect();
    assert!(depths.is_sorted(), "{depths:?}");
    assert_eq!((depths[0], depths[6]), (0, 6), "{depths:?}");
}
