//! RFC 1873: message/external-body with the access type CONTENT-ID, and `cid:` URLs (RFC 2392).

use crate::common::mail::{assert_bytes, assert_left, expand};
use embody::Policy;

const PICTURE: &str = "Content-Type: image/png\nContent-ID: <p@example.org>\nContent-Transfer-Encoding: base64\n\niVBORw0KGgo=";

fn mail_of(parts: &[&str]) -> Vec<u8> {
    let mut mail = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n".to_owned();
    for part in parts {
        mail.push_str("\n--b\n");
        mail.push_str(part);
    }
    mail.push_str("\n--b--\n");
    mail.into_bytes()
}

const REFERENCE: &str =
    "Content-Type: message/external-body; access-type=CONTENT-ID\nContent-ID: <p@example.org>\n\n";

#[test]
fn the_outer_content_id_names_the_other_part_that_bears_it() {
    for parts in [[PICTURE, REFERENCE], [REFERENCE, PICTURE]] {
        let (output, report) = expand(&mail_of(&parts));
        assert_eq!(report.expanded(), 1);
        let text = String::from_utf8(output).unwrap();
        assert_eq!(text.matches("\n\niVBORw0KGgo=\n--b").count(), 2, "{text}");
        assert_eq!(text.matches("Content-ID: <p@example.org>").count(), 2);
        assert!(!text.contains("external-body"));
    }
}

#[test]
fn text_copied_as_octets_does_not_depend_on_how_the_mail_is_stored() {
    let text = "Content-Type: text/plain\nContent-ID: <p@example.org>\n\none\ntwo\n";
    let reference = [REFERENCE, "Content-Type: application/octet-stream\n\n"].concat();
    let mail = String::from_utf8(mail_of(&[text, &reference])).unwrap();
    for mail in [mail.replace('\n', "\r\n"), mail] {
        let (output, report) = expand(mail.as_bytes());
        assert_eq!(report.expanded(), 1, "{report:?}");
        let output = String::from_utf8(output).unwrap();
        assert!(output.contains("b25lDQp0d28NCg=="), "{output}");
    }
}

#[test]
fn several_references_with_one_id_all_find_the_content() {
    let (output, report) = expand(&mail_of(&[REFERENCE, REFERENCE, PICTURE]));
    assert_eq!(report.expanded(), 2, "{report:?}");
    let text = String::from_utf8(output).unwrap();
    assert_eq!(text.matches("iVBORw0KGgo=").count(), 3);
}

#[test]
fn content_id_only_in_the_inner_header_is_the_reference() {
    let reference = "Content-Type: message/external-body; access-type=content-id\n\n\
                     Content-Type: image/png\nContent-ID: <p@example.org>\n";
    let (_, report) = expand(&mail_of(&[PICTURE, reference]));
    assert_eq!(report.expanded(), 1, "{report:?}");
}

#[test]
fn a_cid_url_is_unescaped_and_compared_with_case() {
    let found =
        "Content-Type: message/external-body; access-type=URL; URL=\"cid:p%40example.org\"\n\n";
    let (_, report) = expand(&mail_of(&[PICTURE, found]));
    assert_eq!(report.expanded(), 1, "{report:?}");
    let other =
        "Content-Type: message/external-body; access-type=URL; URL=\"cid:P@example.org\"\n\n";
    let mail = mail_of(&[PICTURE, other]);
    assert_left(Policy::default(), &mail, "content-id-not-found");
}

#[test]
fn a_reference_through_another_external_body_gets_its_content() {
    let source = "Content-ID: <p@example.org>\n\
                  Content-Type: message/external-body; access-type=URL; URL=\"data:image/png;base64,iVBORw0KGgo=\"\n\n\
                  Content-Type: image/png\n";
    for parts in [[source, REFERENCE], [REFERENCE, source]] {
        let (output, report) = expand(&mail_of(&parts));
        assert_eq!(report.expanded(), 2, "{report:?}");
        let text = String::from_utf8(output).unwrap();
        assert_eq!(text.matches("\n\niVBORw0KGgo=\n--b").count(), 2, "{text}");
    }
}

#[test]
fn an_id_that_no_other_part_bears_leaves_the_part() {
    assert_left(
        Policy::default(),
        &mail_of(&[REFERENCE]),
        "content-id-not-found",
    );
    let without = "Content-Type: message/external-body; access-type=content-id\n\n";
    assert_left(Policy::default(), &mail_of(&[without]), "missing-parameter");
}

#[test]
fn references_in_a_circle_leave_their_parts() {
    let one = "Content-ID: <one@x>\nContent-Type: message/external-body; access-type=URL; URL=\"cid:two@x\"\n\n";
    let two = "Content-ID: <two@x>\nContent-Type: message/external-body; access-type=URL; URL=\"cid:one@x\"\n\n";
    let own = "Content-ID: <own@x>\nContent-Type: message/external-body; access-type=URL; URL=\"cid:own@x\"\n\n";
    let mail = mail_of(&[one, two, own]);
    assert_left(Policy::default(), &mail, "reference-loop");
}

#[test]
fn a_long_chain_of_ids_neither_overflows_nor_grows() {
    let links: Vec<String> = (0..300)
        .map(|at| {
            format!(
                "Content-ID: <{at}@x>\nContent-Type: message/external-body; access-type=URL; \
                 URL=\"cid:{}@x\"\n\n",
                at + 1
            )
        })
        .collect();
    let mut parts: Vec<&str> = links.iter().map(String::as_str).collect();
    let last = "Content-ID: <300@x>\n\nend";
    parts.push(last);
    let mail = mail_of(&parts);
    let (output, _) = expand(&mail);
    let (again, _) = expand(&output);
    assert_bytes(&again, &output, "twice is once");
}

#[test]
fn the_reason_in_a_chain_names_the_next_part_and_the_last_reason_once() {
    let links = [1, 2, 3].map(|at| {
        format!(
            "Content-ID: <{at}@x>\nContent-Type: message/external-body; access-type=URL; \
             URL=\"cid:{}@x\"\n\n",
            at + 1
        )
    });
    let (_, report) = expand(&mail_of(&links.each_ref().map(String::as_str)));
    let last = "no other part of the message has the Content-ID <4@x>";
    let details: Vec<String> = report
        .rows
        .iter()
        .map(|row| row.detail.to_string())
        .collect();
    assert_eq!(
        details,
        [
            format!("the reference leads to part 2, which was not changed: {last}"),
            format!("the reference leads to part 3, which was not changed: {last}"),
            last.to_owned(),
        ]
    );
}

#[test]
fn a_mid_url_of_this_message_is_a_content_id_and_of_another_is_not() {
    let reference =
        "Content-Type: message/external-body; access-type=URL; URL=\"mid:m@x/p@example.org\"\n\n";
    let mut mail = b"Message-ID: <m@x>\n".to_vec();
    mail.extend(mail_of(&[PICTURE, reference]));
    assert_eq!(expand(&mail).1.expanded(), 1);
    assert_left(
        Policy::default(),
        &mail_of(&[PICTURE, reference]),
        "content-id-not-found",
    );
}

/// The messages of a digest contain the same Content-ID.
#[test]
fn an_id_means_the_part_of_the_nearest_message_and_then_outwards() {
    let inner = |own: &str| {
        format!(
            "Content-Type: message/rfc822\n\nSubject: inner\nMIME-Version: 1.0\n\
             Content-Type: multipart/mixed; boundary=in\n\n--in\n{own}\n--in\n{REFERENCE}\n--in--\n"
        )
    };
    let text = |text: &str| format!("Content-ID: <p@example.org>\n\n{text}");
    let parts = [
        inner(&text("of one")),
        inner(&text("of two")),
        inner("\nof nobody"),
        text("around"),
        REFERENCE.to_owned(),
    ];
    let (output, report) = expand(&mail_of(&parts.each_ref().map(String::as_str)));
    assert_eq!(report.expanded(), 4, "{report:?}");
    let text = String::from_utf8(output).unwrap();
    for (content, times) in [
        ("of one", 2),
        ("of two", 2),
        ("of nobody", 1),
        ("around", 3),
    ] {
        assert_eq!(text.matches(content).count(), times, "{content}: {text}");
    }
}

#[test]
fn the_id_of_a_part_in_a_forwarded_message_means_nothing_outside_of_it() {
    let forwarded =
        format!("Content-Type: message/rfc822\n\nSubject: x\nMIME-Version: 1.0\n{PICTURE}");
    let mail = mail_of(&[&forwarded, REFERENCE]);
    // The header of the picture belongs to the inner message.
    assert_left(Policy::default(), &mail, "content-id-not-found");
}

#[test]
fn content_id_that_two_parts_share_is_not_resolved() {
    let other = PICTURE.replace("image/png", "image/gif");
    let mail = mail_of(&[PICTURE, &other, REFERENCE]);
    assert_left(Policy::default(), &mail, "content-id-not-found");
}

/// Filled content may contain the Content-ID to which another reference refers, before or after it.
#[test]
fn inserted_content_can_be_referenced_and_can_reference_outer_parts() {
    let letter = "Content-Type: message/external-body; access-type=URL; URL=\"data:multipart/mixed;boundary=in,\
        --in%0AContent-ID:%20%3Cp@example.org%3E%0A%0Afrom%20inside%0A\
        --in%0AContent-Type:%20message/external-body;%20access-type=URL;%20URL=%22cid:o@example.org%22%0A%0A%0A--in--\"\n\n";
    let outside = "Content-ID: <o@example.org>\n\nfrom outside";
    let (output, report) = expand(&mail_of(&[REFERENCE, letter, outside]));
    assert_eq!(report.expanded(), 3, "{report:?}");
    let text = String::from_utf8(output.clone()).unwrap();
    assert_eq!(text.matches("from inside").count(), 2, "{text}");
    assert_eq!(text.matches("from outside").count(), 2, "{text}");
    assert_bytes(&expand(&output).0, &output, "twice is once");
}
