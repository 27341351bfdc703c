//! Malicious references: for each form in `samples/wild/` one that an attacker could write. They are left with the correct
//! reason and in limited time. Text about references is not a reference.

use std::time::Instant;

use crate::common::filter::filter;
use crate::common::mail::{
    assert_bytes, assert_left, crlf, expand, expand_with, with_external_body,
};
use base64::Engine as _;
use embody::policy::{Followed, Policy, Scheme};
use embody::report::Outcome;
use proptest::prelude::*;

const SENTENCE: &str = "You deleted an attachment from this message. The original MIME headers for the attachment were:";

/// Returns a multipart of these parts.
fn mixed(parts: &[&str]) -> Vec<u8> {
    let mut mail =
        "Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b0\n\n".to_owned();
    for part in parts {
        mail.push_str(&format!("--b0\n{part}\n"));
    }
    mail.push_str("--b0--\n");
    mail.into_bytes()
}

fn detached(url: &str, quoted: &str) -> String {
    format!(
        "Content-Type: image/png\nX-Mozilla-External-Attachment-URL: {url}\nX-Mozilla-Altered: AttachmentDetached; date=\"x\"\n\n{SENTENCE}\n{quoted}\n"
    )
}

fn shortcut(url: &str) -> String {
    let text = format!("[InternetShortcut]\r\nURL={url}\r\n");
    let file = base64::engine::general_purpose::STANDARD.encode(text);
    format!(
        "Content-Type: message/external-body; name=\"x.url\"\nContent-Transfer-Encoding: base64\n\n{file}"
    )
}

fn cloud(url: &str) -> String {
    format!(
        "Content-Type: application/octet-stream; name=x\nX-Mozilla-Cloud-Part: cloudFile; url={url}\n\n"
    )
}

/// Returns a policy that allows everything that can be allowed.
fn trusting() -> Policy {
    Policy::default()
        .with_fetch(Scheme::ALL)
        .with_file_roots(["/home/me/Mail".into()])
        .with_follow(Followed::all())
}

#[test]
fn files_outside_the_root_are_left_in_every_shape() {
    let rows = [
        ("file:///etc/passwd", "outside-file-root"),
        ("file:///home/me/Mail/../.ssh/id", "outside-file-root"),
        ("file:///home/me/Mail/%2e%2e/.ssh/id", "outside-file-root"),
        ("file:///home/me/Mailbox", "outside-file-root"),
        ("file:/etc/passwd", "outside-file-root"),
        ("file://localhost/etc/passwd", "outside-file-root"),
        ("file://fileserver/share/x", "unsupported-scheme"),
        ("file:////fileserver/share/x", "outside-file-root"),
        ("file:etc/passwd", "bad-url"),
        ("file:///home/me/Mail/x%00.png", "bad-url"),
        ("http://127.0.0.1/x", "private-address"),
        ("http://[::1]/x", "private-address"),
        ("http://0x7f.1/x", "private-address"),
        ("http://example.org:25/x", "port-not-allowed"),
        ("http://user:secret@example.org/x", "userinfo-not-allowed"),
        ("ftp://example.org/x%0d%0aDELE%20y", "bad-url"),
        ("javascript:alert(1)", "scheme-not-allowed"),
        (
            "mailbox:///home/me/Mail/Inbox?number=1",
            "scheme-not-allowed",
        ),
        ("x.png", "no-base"),
        ("cid:nobody@x", "content-id-not-found"),
        ("", "missing-url"),
    ];
    for (url, reason) in rows {
        for part in [
            detached(url, "Content-Type: image/png\n"),
            cloud(url),
            shortcut(url),
        ] {
            assert_left(trusting(), &mixed(&[&part]), reason);
            assert_left(trusting(), &crlf(&mixed(&[&part])), reason);
        }
    }
}

#[test]
fn names_that_lead_elsewhere_are_left() {
    let rows = [
        (
            "access-type=local-file; name=\"../../etc/passwd\"",
            "outside-file-root",
        ),
        (
            "access-type=local-file; name=\"/etc/passwd\"",
            "outside-file-root",
        ),
        (
            "access-type=local-file; name=\"/home/me/Mail/../../etc/passwd\"",
            "outside-file-root",
        ),
        (
            "access-type=local-file; name=\"~/.ssh/id\"",
            "outside-file-root",
        ),
        (
            "access-type=anon-ftp; name=x; directory=d; site=\"example.org:2121\"",
            "bad-url",
        ),
        (
            "access-type=anon-ftp; name=x; directory=d; site=\"example.org\r\n DELE y\"",
            "bad-url",
        ),
        (
            "access-type=anon-ftp; name=x; directory=d; site=\"u:p@example.org\"",
            "bad-url",
        ),
        (
            "access-type=anon-ftp; name=x; directory=\"a/../..\"; site=example.org",
            "bad-url",
        ),
        (
            "access-type=anon-ftp; name*=us-ascii''x%0d%0aDELE%20y; directory=d; site=example.org",
            "bad-url",
        ),
        (
            "access-type=anon-ftp; name=x; directory=d; site*=us-ascii''example.org%0d%0aDELE",
            "bad-url",
        ),
        (
            "access-type=anon-ftp; name=x; directory=d; site=localhost",
            "private-address",
        ),
        (
            "access-type=anon-ftp; name=x; directory=d; site=\"127.1\"",
            "private-address",
        ),
    ];
    for (parameters, reason) in rows {
        assert_left(trusting(), &with_external_body(parameters, ""), reason);
    }
}

/// Runs the program with a symbolic link, and with a map, that lead out of the root.
#[test]
fn symlink_and_url_map_cannot_leave_the_file_root() {
    let folder = tempfile::tempdir().unwrap();
    let (root, secret) = (folder.path().join("root"), folder.path().join("secret"));
    std::fs::create_dir(&root).unwrap();
    std::fs::write(&secret, "secret").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&secret, root.join("link")).unwrap();
    let options = format!(
        "--fetch file --file-root {root} --map file:///C:/Mail/=file://{root}/ --map file:///C:/Other/=file://{secret}/../",
        root = root.display(),
        secret = secret.display(),
    );
    for (url, reason) in [
        (
            format!("file://{}/link", root.display()),
            "outside-file-root",
        ),
        ("file:///C:/Mail/link".to_owned(), "outside-file-root"),
        ("file:///C:/Mail/../secret".to_owned(), "outside-file-root"),
        ("file:///C:/Other/secret".to_owned(), "outside-file-root"),
        ("file:///C:/Mail/missing".to_owned(), "file-not-readable"),
        (format!("file://{}", root.display()), "not-a-regular-file"),
        ("file:///c:/Mail/x".to_owned(), "outside-file-root"),
    ] {
        for part in [detached(&url, ""), shortcut(&url)] {
            let before = mixed(&[&part]);
            filter(&options, &before).leaves(&before, &[reason]);
        }
    }
}

#[test]
fn reference_to_itself_or_in_a_loop_is_left() {
    let reference = |own: &str, other: &str| {
        format!(
            "Content-ID: <{own}>\nContent-Type: message/external-body; access-type=URL; URL=\"cid:{other}\"\n\n"
        )
    };
    let named = |own: &str, part: String| format!("Content-ID: <{own}>\n{part}");
    let quoting = detached("cid:a@x", "Content-Type: image/png\n");
    let rows: [Vec<String>; 6] = [
        vec![reference("a@x", "a@x")],
        vec![reference("a@x", "b@x"), reference("b@x", "a@x")],
        vec![named("a@x", quoting.clone())],
        vec![
            named("a@x", shortcut("cid:b@x")),
            named("b@x", cloud("cid:a@x")),
        ],
        vec![named("b@x", quoting.clone()), reference("a@x", "b@x")],
        vec![
            "Content-ID: <a@x>\nContent-Type: multipart/mixed; boundary=b1\n\n--b1\n".to_owned()
                + &shortcut("cid:a@x")
                + "\n--b1--",
        ],
    ];
    for parts in rows {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        assert_left(Policy::default(), &mixed(&parts), "reference-loop");
    }
}

#[test]
fn deleted_attachment_is_not_used_to_fill_another_part() {
    let deleted = format!(
        "Content-ID: <a@x>\nContent-Type: text/x-moz-deleted\nX-Mozilla-Altered: AttachmentDeleted; date=\"x\"\n\n{SENTENCE}\nContent-Type: text/plain\n"
    );
    let before = mixed(&[
        &deleted,
        "Content-Type: message/external-body; access-type=URL; URL=\"cid:a@x\"\n\n",
    ]);
    assert_left(Policy::default(), &before, "deleted");
    let altered_only = mixed(&["X-Mozilla-Altered: AttachmentDetached; date=\"x\"\n\nnote"]);
    assert_left(Policy::default(), &altered_only, "missing-url");
}

/// A part with a reference is only replaced if no other content is lost.
#[test]
fn a_part_with_more_in_it_than_a_note_is_left() {
    let url = "data:image/png;base64,AAAA";
    let field = format!("X-Mozilla-External-Attachment-URL: {url}");
    let long = "A line that somebody wrote.\n".repeat(200);
    let rows = [
        format!("Content-Type: text/plain\n{field}\n\n{long}"),
        format!("Content-Type: text/plain\nContent-Transfer-Encoding: base64\n{field}\n\nAAAA"),
        format!("Content-Type: multipart/mixed; boundary=b1\n{field}\n\n--b1\n\nx\n--b1--"),
        format!("Content-Type: message/rfc822\n{field}\n\nSubject: x\n\nx"),
        detached(url, "Content-Type: image/png\n\nand a word more"),
        format!("{}Content-Type: image/png\n\n word", detached(url, "")),
        format!("Content-Type: text/html\nX-Mozilla-Cloud-Part: cloudFile; url={url}\n\n{long}"),
    ];
    for part in rows {
        assert_left(
            Policy::default(),
            &mixed(&[&part]),
            "unsupported-access-type",
        );
    }
    for whole in [
        format!("Subject: x\nContent-Type: text/plain\n{field}\n\nHello.\n"),
        format!(
            "Subject: x\n{field}\nContent-Type: multipart/mixed; boundary=b1\n\n--b1\n\nx\n--b1--\n"
        ),
    ] {
        assert_left(
            Policy::default(),
            whole.as_bytes(),
            "unsupported-access-type",
        );
    }
}

/// Fields that turn a part into a reference are never copied together with content: otherwise a second run would follow them.
#[test]
fn fields_that_make_a_part_a_reference_are_not_copied_with_content() {
    let evil = "Content-Type: image/png\nX-Mozilla-External-Attachment-URL: data:,again\nX-Mozilla-Cloud-Part: cloudFile; url=data:,again\n";
    let parts = [
        detached("data:,x", evil),
        format!(
            "Content-Type: message/external-body; access-type=URL; URL=\"data:,x\"\nX-Mozilla-External-Attachment-URL: data:,again\n\n{evil}"
        ),
        format!(
            "Content-Type: message/external-body; access-type=URL; URL=\"data:;base64,{}\"\n\nContent-Type: application/internet-shortcut\n",
            base64::engine::general_purpose::STANDARD
                .encode("[InternetShortcut]\nURL=data:,last\n")
        ),
    ];
    let encoded =
        base64::engine::general_purpose::STANDARD.encode("[InternetShortcut]\nURL=data:,last\n");
    let nested = format!(
        "Content-Type: message/external-body; access-type=URL; URL=\"data:;base64,{encoded}\"\n\nContent-Type: message/external-body; name=x.url\n"
    );
    assert_left(trusting(), &mixed(&[&nested]), "unfit-composite");
    for part in parts {
        let before = mixed(&[&part]);
        let (once, report) = expand_with(trusting(), &before);
        assert!(report.expanded() > 0, "{report:?}");
        let shown = String::from_utf8(once.clone()).unwrap();
        assert!(
            !shown.contains("X-Mozilla") && !shown.contains("Shortcut"),
            "{shown}"
        );
        let (twice, report) = expand_with(trusting(), &once);
        assert_bytes(&twice, &once, &part);
        assert!(report.rows.is_empty(), "{report:?}");
    }
}

#[test]
fn many_parts_that_name_each_other_cost_linear_time() {
    let mut parts = Vec::new();
    for index in 0..3000 {
        let next = (index + 1) % 3000;
        parts.push(format!(
            "Content-ID: <{index}@x>\n{}",
            shortcut(&format!("cid:{next}@x"))
        ));
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let quoted = "Content-Type: image/png\n\n".repeat(100_000);
    let strays = "Content-Type: x\n\n".repeat(100_000);
    let begun = Instant::now();
    assert_left(Policy::default(), &mixed(&parts), "reference-loop");
    let (_, report) = expand(&mixed(&[&detached("data:,x", &quoted)]));
    assert_eq!(report.rows.len(), 1);
    let (output, report) = expand(&mixed(&[&format!("X-Mozilla-Foo: x\n\n{strays}")]));
    assert_eq!(output, mixed(&[&format!("X-Mozilla-Foo: x\n\n{strays}")]));
    assert!(report.rows.is_empty());
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

/// A multipart/alternative with a real part offers a choice of formats, so its references are not alternatives for the same
/// content.
#[test]
fn external_body_next_to_a_real_alternative_is_never_removed() {
    let alternative = |second: &str, third: &str| {
        format!(
            "MIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=b0\n\n--b0\nContent-Type: text/plain\n\nreal\n--b0\n{second}\n--b0\n{third}\n--b0--\n"
        )
        .into_bytes()
    };
    let external = |url: &str, id: &str| {
        format!(
            "Content-Type: message/external-body; access-type=URL; URL=\"{url}\"\n\nContent-Type: text/plain\n{id}"
        )
    };
    let filled = |text: &str, id: &str| {
        format!("Content-Type: text/plain\n{id}Content-Transfer-Encoding: 7bit\n\n{text}")
    };
    for id in ["", "Content-ID: <same@x>\n"] {
        let before = alternative(&external("data:,one", id), &external("data:,two", id));
        let (output, report) = expand(&before);
        assert_bytes(
            &output,
            &alternative(&filled("one", id), &filled("two", id)),
            id,
        );
        assert_eq!(report.expanded(), 2);

        let before = alternative(&external("https://h/x", id), &external("data:,two", id));
        let (output, report) = expand(&before);
        let after = alternative(&external("https://h/x", id), &filled("two", id));
        assert_bytes(&output, &after, id);
        let outcomes: Vec<_> = report.rows.iter().map(|row| row.outcome).collect();
        assert_eq!(outcomes, [Outcome::Left, Outcome::Expanded]);
    }
    // These forms do not show that they refer to the same content, so they are not treated as alternatives.
    let two = alternative(&shortcut("data:,one"), &shortcut("data:,two"));
    let (output, report) = expand(&two);
    assert_eq!(report.expanded(), 2, "{report:?}");
    let text = String::from_utf8(output).unwrap();
    assert!(text.contains("one") && text.contains("two"), "{text}");
}

/// Text that shows references to readers, in every way in which mail contains text.
#[test]
fn what_only_talks_about_references_is_never_touched() {
    let part = detached("data:,x", "Content-Type: image/png\n");
    let external = "Content-Type: message/external-body; access-type=URL; URL=\"data:,x\"\n\nContent-Type: text/plain\n";
    let quoted = |text: &str| {
        text.lines()
            .map(|line| format!("> {line}\n"))
            .collect::<String>()
    };
    let dashed = format!("- --b0\n- {}- --b0--\n", external.replace("\n--", "\n- --"));
    let base64 = base64::engine::general_purpose::STANDARD.encode(mixed(&[&part, external]));
    let texts = [
        format!("Content-Type: text/plain\n\n{external}"),
        format!("\n{external}"),
        format!("\nlook:\n\n{part}"),
        format!("Content-Type: text/plain\n\n{}", quoted(&part)),
        format!("Content-Type: text/plain\n\n-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n{dashed}"),
        format!("Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n{base64}"),
        format!("Content-Type: application/octet-stream\nContent-Transfer-Encoding: base64\n\n{base64}"),
        format!("Content-Type: text/rfc822-headers\n\n{external}"),
        format!("Content-Type: message/partial; id=x; number=1\n\n{external}"),
        format!("Content-Type: text/plain\n\n{SENTENCE}\nContent-Type: image/png\n"),
        format!("Content-Type: text/plain\n\nX-Mozilla-External-Attachment-URL: data:,x\n\n{SENTENCE}\nContent-Type: image/png\n"),
        "Content-Type: text/plain\nSubject: message/external-body; access-type=URL; URL=\"data:,x\"\n\nx".to_owned(),
        "Content-Type: application/internet-shortcut\n\n[InternetShortcut]\nURL=data:,x\n".to_owned(),
    ];
    for text in &texts {
        for before in [mixed(&[text]), crlf(&mixed(&[text]))] {
            let (output, report) = expand(&before);
            assert_bytes(&output, &before, text);
            assert!(report.rows.is_empty(), "{text}: {report:?}");
        }
    }
    // The same in the header of a message, where a list of fields is text.
    let whole = format!(
        "Subject: x\n\n{}",
        part.trim_start_matches("Content-Type: image/png\n")
    );
    let (output, report) = expand(whole.as_bytes());
    assert_bytes(&output, whole.as_bytes(), "whole");
    assert!(report.rows.is_empty(), "{report:?}");
}

proptest! {
    #[test]
    fn second_run_over_random_reference_words_changes_nothing(words in prop::collection::vec(prop::sample::select(vec![
        "X-Mozilla-External-Attachment-URL: ", "x-mozilla-altered: AttachmentDetached; date=\"x\"\n", "X-Mozilla-Altered: AttachmentDeleted",
        "X-Mozilla-Cloud-Part: cloudFile; url=", "data:,x", "data:text/html,<a href=y>", "cid:a@x", "\n", "\r\n", "\n\n", "--b\n", "--b--\n",
        "Content-Type: multipart/mixed; boundary=b\n\n", "Content-Type: image/png\n", "Content-Type: message/rfc822\n", "Content-Type: text/html; name=x.html\n",
        "Content-Disposition: attachment; filename=x.html\n", "Content-ID: <a@x>\n", "Content-Transfer-Encoding: quoted-printable\n", "Content-Transfer-Encoding: base64\n",
        "You deleted an attachment from this message. The original MIME headers for the attachment were:\n", " ", "AAAA",
        "Content-Type: message/external-body; name=x.url\n\n", "Content-Type: application/internet-shortcut\n\n", "[InternetShortcut]\nURL=", "\u{e4}",
    ]), 0..40)) {
        let front = "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: image/png\n";
        let message = format!("{front}{}", words.concat()).into_bytes();
        let (once, _) = expand_with(trusting(), &message);
        let (twice, _) = expand_with(trusting(), &once);
        prop_assert_eq!(String::from_utf8(once), String::from_utf8(twice));
    }
}
