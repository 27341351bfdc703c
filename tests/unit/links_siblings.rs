//! The parts of a multipart/related to which a link may refer: the part must contain its content, be in the same
//! message, and have a Content-ID that no other part has (RFC 2557 §5, RFC 2392).

use std::time::{Duration, Instant};

use super::common::mail::{assert_bytes, crlf, expander};
use super::links::{BASE, run};
use embody::Policy;
use embody::fetch::NoFetch;
use embody::policy::Followed;

/// Returns a multipart/related with an HTML document and further parts.
fn related(header: &str, body: &str, parts: &[&str]) -> String {
    let parts: String = parts.iter().map(|part| format!("\n--r\n{part}")).collect();
    format!(
        "{header}Content-Type: multipart/related; boundary=r\n\n--r\nContent-Type: text/html\n\n{body}{parts}\n--r--\n"
    )
}

const PICTURE: &str = "Content-Type: image/gif\nContent-Location: a.gif\n";

#[track_caller]
fn assert_becomes(before: &str, after: &str) {
    for twin in [|bytes: &[u8]| bytes.to_vec(), crlf] {
        let (output, _) = run(&twin(before.as_bytes()));
        assert_bytes(&output, &twin(after.as_bytes()), before);
    }
}

#[test]
fn a_part_that_refers_elsewhere_and_was_left_is_no_sibling() {
    for reference in [
        "Content-Type: message/external-body; access-type=URL;\n URL=\"http://h.example/a.gif\"\nContent-Location: a.gif\n\nContent-Type: image/gif\n",
        "Content-Type: message/external-body; access-type=mail-server; server=\"x@h.example\"\nContent-Location: a.gif\nContent-ID: <a@x>\n\nContent-Type: image/gif\n",
        "Content-Type: image/gif\nContent-Location: a.gif\nX-Mozilla-External-Attachment-URL: http://h.example/a.gif\nX-Mozilla-Altered: AttachmentDetached\n\nYou deleted an attachment from this message. The original MIME headers for the attachment were:\nContent-Type: image/gif\n",
        "Content-Type: image/gif\nContent-Location: a.gif\nX-Mozilla-External-Attachment-URL: http://h.example/a.gif\n\nThis is an enclosure.\n",
        "Content-Type: text/x-moz-deleted\nContent-Location: a.gif\n\n\n",
        "Content-Type: image/gif\nContent-Location: a.gif\nX-Mozilla-Cloud-Part: cloudFile; url=http://h.example/a.gif\n\n",
        "Content-Type: message/external-body; name=\"a.url\"\nContent-Transfer-Encoding: base64\nContent-Location: a.gif\n\nW0ludGVybmV0U2hvcnRjdXRdDQpVUkw9aHR0cDovL2guZXhhbXBsZS9hLmdpZg0K\n",
    ] {
        // With a base, the link becomes absolute, and mail programs display the picture on the web.
        assert_becomes(
            &related(BASE, "<img src=\"a.gif\">", &[reference]),
            &related(
                BASE,
                "<img src=\"http://www.example.org/a/b/a.gif\">",
                &[reference],
            ),
        );
        let alone = related("", "<img src=\"a.gif\">", &[reference]);
        assert_becomes(&alone, &alone);
    }
}

#[test]
fn an_attached_shortcut_is_a_sibling_unless_it_is_a_reference() {
    let file = "Content-Type: application/internet-shortcut\nContent-Location: a.url\nContent-ID: <a@x>\n\n[InternetShortcut]\nURL=http://h.example/a\n";
    let mail = |link: &str| related(BASE, &format!("<a href={link}>"), &[file]);
    let (output, _) = run(mail("a.url").as_bytes());
    assert_bytes(&output, mail("cid:a@x").as_bytes(), "a file like others");
    let policy = Policy {
        follow: Followed::all(),
        ..Policy::default()
    };
    let expander = expander(policy, NoFetch);
    let before = mail("a.url");
    let expansion = expander.expand(before.as_bytes(), "test").unwrap();
    assert_bytes(
        &expansion.output().into_bytes(),
        mail("http://www.example.org/a/b/a.url").as_bytes(),
        "--follow shortcuts",
    );
}

#[test]
fn an_external_body_that_was_put_in_is_a_sibling() {
    let mail = related(
        "",
        "<img src=a.gif>",
        &[
            "Content-Type: message/external-body; access-type=URL; URL=\"data:image/gif,x\"\nContent-Location: a.gif\n\nContent-Type: image/gif\nContent-ID: <a@x>\n",
        ],
    );
    let (output, report) = run(mail.as_bytes());
    let output = String::from_utf8_lossy(&output);
    assert!(output.contains("<img src=cid:a@x>"), "{output}");
    assert_eq!((report.expanded(), report.links()), (1, 1));
}

#[test]
fn a_forwarded_messages_links_do_not_mean_parts_of_the_mail_around_it() {
    let forwarded = |link: &str, around: &str| {
        format!(
            "Content-Type: message/rfc822\n\nFrom: x@y.example\n{around}Content-Type: text/html\n\n<img src=\"{link}\">"
        )
    };
    let picture = format!("{PICTURE}Content-ID: <a@x>\n\nGIF");
    let mail = |outer: &str, inner: &str, around: &str| {
        related(
            "",
            &format!("<img src=\"{outer}\">"),
            &[&picture, &forwarded(inner, around)],
        )
    };
    assert_becomes(&mail("a.gif", "a.gif", ""), &mail("cid:a@x", "a.gif", ""));
    assert_becomes(
        &mail("a.gif", "a.gif", BASE),
        &mail("cid:a@x", "http://www.example.org/a/b/a.gif", BASE),
    );
}

/// A mail program displays one of the two parts with this Content-ID, and it is unknown which one.
#[test]
fn a_content_id_that_two_parts_bear_is_no_target() {
    let picture = |location: &str, id: &str| {
        format!("Content-Type: image/gif\nContent-Location: {location}\nContent-ID: {id}\n\nGIF")
    };
    let (first, second) = (picture("a.gif", "<same@x>"), picture("b.gif", " <same@x> "));
    let own = picture("c.gif", "<own@x>");
    let links = "<img src=\"a.gif\"><img src=\"b.gif\"><img src=\"c.gif\">";
    let after = "<img src=\"a.gif\"><img src=\"b.gif\"><img src=\"cid:own@x\">";
    let parts = [first.as_str(), &second, &own];
    assert_becomes(&related("", links, &parts), &related("", after, &parts));
    // The other part with this Content-ID is elsewhere in the message and has no Content-Location.
    let mail = |link: &str| {
        let inner = related(
            "",
            &format!("<img src={link}>"),
            &[&picture("a.gif", "<same@x>")],
        );
        format!(
            "{BASE}Content-Type: multipart/mixed; boundary=m\n\n--m\n{inner}\n--m\nContent-Type: image/gif\nContent-ID: <same@x>\n\nother\n--m--\n"
        )
    };
    assert_becomes(&mail("a.gif"), &mail("http://www.example.org/a/b/a.gif"));
    // Another message may use the same Content-ID again, because links refer to parts of their own message.
    let twice = |link: &str| {
        let one = related(
            "",
            &format!("<img src={link}>"),
            &[&picture("a.gif", "<same@x>")],
        );
        format!("Content-Type: multipart/digest; boundary=d\n\n--d\n\n{one}\n--d\n\n{one}\n--d--\n")
    };
    assert_becomes(&twice("a.gif"), &twice("cid:same@x"));
}

/// The author of a mail can compute the Content-ID that embody would create.
#[test]
fn an_id_that_is_made_is_borne_by_no_other_part() {
    let mail = |other: &str| {
        related(
            "",
            "<img src=a.gif>",
            &[
                &format!("{PICTURE}\nGIF"),
                &format!("Content-Type: image/gif\nContent-ID: <{other}>\n\nother"),
            ],
        )
    };
    let made = |mail: &str| {
        let (output, _) = run(mail.as_bytes());
        let output = String::from_utf8(output).unwrap();
        let id = output.split("src=cid:").nth(1).unwrap().split('>').next();
        id.unwrap().to_owned()
    };
    let first = made(&mail("other@x"));
    let second = made(&mail(&first));
    assert_ne!(first, second);
    assert_ne!(made(&mail(&second)), second);
}

/// Ten thousand parts without a Content-ID, with one link to each.
#[test]
fn many_siblings_take_time_like_their_number() {
    let took = |count: usize| {
        let links: String = (0..count).map(|n| format!("<img src={n}.gif>")).collect();
        let written: Vec<String> = (0..count)
            .map(|n| format!("Content-Type: image/gif\nContent-Location: {n}.gif\n\nx"))
            .collect();
        let parts: Vec<&str> = written.iter().map(String::as_str).collect();
        let mail = related("", &links, &parts);
        let expander = expander(Policy::default(), NoFetch);
        let begun = Instant::now();
        let expansion = expander.expand(mail.as_bytes(), "test").unwrap();
        assert_eq!(expansion.report.links(), count as u64);
        begun.elapsed()
    };
    // With eight times the parts, quadratic work would take 64 times as long. On a busy machine a single measurement
    // can be slow, but not all of them.
    let mut times = Vec::new();
    let is_linear = (0..5).any(|_| {
        let (few, many) = (took(1_200), took(9_600));
        times.push((few, many));
        many < few * 24 + Duration::from_millis(100)
    });
    assert!(is_linear, "{times:?}");
}
