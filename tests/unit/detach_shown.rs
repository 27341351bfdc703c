//! Parts that the mail displays stay in it: parts to which its documents refer, and inline pictures next to HTML. An
//! option detaches them too.

use std::sync::Arc;

use super::common::mail::{assert_bytes, crlf};
use super::detach::{Memory, base64, made, restorer, settings};
use super::embed::{data, gif};
use crate::engine::policy::{Embed, Policy};
use crate::engine::report::{Outcome, Reason};
use crate::expand::Expander;
use crate::expand::detach::{Choice, Detacher, Stub};

fn detacher(store: &Arc<Memory>, choice: Choice) -> Detacher {
    Detacher::new(crate::expand::detach::Settings {
        choice,
        ..settings(store, Stub::ExternalBody, false)
    })
}

fn choice(takes_shown: bool) -> Choice {
    Choice {
        larger_than: 2000,
        types: Vec::new(),
        takes_shown,
    }
}

/// Returns the numbers of the parts that are detached, and of those that stay because the mail displays them.
fn fates(mail: &str) -> (Vec<String>, Vec<String>) {
    let store = Arc::new(Memory::default());
    let detached = detacher(&store, choice(false));
    let detachment = detached.detach(mail.as_bytes(), "test").unwrap();
    let (mut leave, mut stay) = (Vec::new(), Vec::new());
    for row in detachment.report.rows {
        match row.reason {
            None => leave.push(row.part),
            Some(Reason::ShownInline) => {
                assert_eq!(row.outcome, Outcome::Left);
                assert!(row.bytes.is_some_and(|octets| octets > 0));
                stay.push(row.part);
            }
            other => panic!("{other:?}: {mail}"),
        }
    }
    // With the option, all of them are detached, and can be restored.
    let store = Arc::new(Memory::default());
    let all = detacher(&store, choice(true))
        .detach(mail.as_bytes(), "test")
        .unwrap();
    assert_eq!(all.report.detached(), leave.len() + stay.len(), "{mail}");
    let without = made(mail.as_bytes(), &all.edits);
    let restored = restorer(&store).expand(&without, "test").unwrap();
    assert_bytes(
        &made(&without, &restored.edits),
        mail.as_bytes(),
        "there and back",
    );
    (leave, stay)
}

/// Returns a picture with these fields.
fn picture(fields: &str) -> String {
    format!(
        "Content-Type: image/png\nContent-Transfer-Encoding: base64\n{fields}\n{}\n",
        base64(3000, 76, "\n")
    )
}

fn multipart(kind: &str, boundary: &str, parts: &[String]) -> String {
    let parts: String = parts
        .iter()
        .map(|part| format!("--{boundary}\n{part}\n"))
        .collect();
    format!("Content-Type: multipart/{kind}; boundary={boundary}\n\n{parts}--{boundary}--\n")
}

fn html(text: &str) -> String {
    format!("Content-Type: text/html; charset=utf-8\n\n{text}")
}

#[track_caller]
fn assert_fates(mail: &str, leave: &[&str], stay: &[&str]) {
    let (left, stayed) = fates(mail);
    assert_eq!((left, stayed), (owned(leave), owned(stay)), "{mail}");
    let twin = String::from_utf8(crlf(mail.as_bytes())).unwrap();
    let (left, stayed) = fates(&twin);
    assert_eq!((left, stayed), (owned(leave), owned(stay)), "the twin");
}

fn owned(numbers: &[&str]) -> Vec<String> {
    numbers.iter().map(ToString::to_string).collect()
}

#[test]
fn a_part_that_a_document_names_by_its_content_id_stays() {
    for text in [
        "<img src=\"cid:a@b\">",
        "<IMG SRC='CID:a%40b'>",
        "<img srcset=\"x.png 1x, cid:a@b 2x\">",
        "<td background=cid:a@b>",
        "<p style=\"background: url(cid:a@b)\">",
        "<style>p { background: url('cid:a@b') }</style>",
        "<!--[if mso]><v:fill src=\"cid:a@b\"/><![endif]-->",
        "<img src=\"&#99;id:a@b\">",
        "<a href=\"cid:A@B\">the file</a>",
        "<img src=\"mid:m@x/a@b\">",
    ] {
        let mail = multipart(
            "related",
            "r",
            &[
                html(text),
                picture("Content-ID: <a@b>\n"),
                picture("Content-ID: <c@d>\n"),
            ],
        );
        assert_fates(&mail, &["3"], &["2"]);
    }
}

#[test]
fn a_part_that_a_document_names_by_its_location_stays() {
    for (fields, text) in [
        ("Content-Location: a/b.png\n", "<img src=\"a/b.png\">"),
        (
            "Content-Location: http://h.example/b.png\n",
            "<img src=\"http://H.example:80/b.png#x\">",
        ),
        (
            "Content-Base: http://h.example/x/\nContent-Location: b.png\n",
            "<base href=\"http://h.example/y/\"><img src=\"../x/b.png\">",
        ),
    ] {
        let mail = multipart("related", "r", &[html(text), picture(fields), picture("")]);
        assert_fates(&mail, &["3"], &["2"]);
    }
}

#[test]
fn a_style_sheet_refers_as_html_does_and_any_place_of_the_mail_counts() {
    let sheet =
        "Content-Type: text/css\nContent-ID: <s@b>\n\np { background: url(cid:a@b) }".to_owned();
    let page = html("<link rel=stylesheet href=\"cid:s@b\">");
    let mail = multipart(
        "related",
        "r",
        &[page.clone(), sheet, picture("Content-ID: <a@b>\n")],
    );
    assert_fates(&mail, &[], &["3"]);
    // Outside of the multipart/related, where mail programs also find it; and in base64 and quoted-printable.
    for page in [
        html("<img src=\"cid:a@b\">"),
        "Content-Type: text/html\nContent-Transfer-Encoding: quoted-printable\n\n<img src=3D\"ci=\nd:a@b\">".to_owned(),
        "Content-Type: text/html\nContent-Transfer-Encoding: base64\n\nPGltZyBzcmM9ImNpZDphQGIiPg==".to_owned(),
    ] {
        let text = "Content-Type: text/plain\n\ntext".to_owned();
        let alternative = multipart("alternative", "a", &[text, page]);
        let parts = [alternative, picture("Content-ID: <a@b>\n"), picture("")];
        assert_fates(&multipart("mixed", "m", &parts), &["3"], &["2"]);
    }
}

#[test]
fn a_document_that_cannot_be_read_may_refer_to_whatever_has_a_name() {
    let utf16: String = "Content-Type: text/html; charset=utf-16\nContent-Transfer-Encoding: base64\n\n//48AGkAbQBnAD4A".into();
    let unlabelled: String =
        "Content-Type: text/html\nContent-Transfer-Encoding: base64\n\n//48AGkAbQBnAD4A".into();
    let damaged: String =
        "Content-Type: text/html\nContent-Transfer-Encoding: base64\n\nPGltZ*".into();
    let not_labelled = html("<img src=3D\"cid:a@b\">");
    for page in [utf16, unlabelled, damaged, not_labelled] {
        let parts = [
            page,
            picture("Content-ID: <x@y>\n"),
            picture("Content-Location: b.png\n"),
            picture(""),
        ];
        assert_fates(&multipart("mixed", "m", &parts), &["4"], &["2", "3"]);
    }
}

#[test]
fn an_inline_picture_beside_html_stays_and_one_beside_text_leaves() {
    let inline = picture("Content-Disposition: INLINE; filename=a.png\n");
    let attached = picture("Content-Disposition: attachment; filename=a.png\n");
    let pdf = inline.replace("image/png", "application/pdf");
    let parts = [html("<p>"), inline.clone(), attached.clone(), pdf];
    assert_fates(&multipart("mixed", "m", &parts), &["3", "4"], &["2"]);
    let text = "Content-Type: text/plain\n\ntext".to_owned();
    let parts = [text, inline.clone(), attached];
    assert_fates(&multipart("mixed", "m", &parts), &["2", "3"], &[]);
    // Attached HTML displays nothing, and HTML in an inner message displays nothing of the outer one.
    let file = "Content-Type: text/html\nContent-Disposition: attachment\n\n<p>".to_owned();
    let forwarded = format!("Content-Type: message/rfc822\n\n{}", html("<p>"));
    let parts = [file, forwarded, inline];
    assert_fates(&multipart("mixed", "m", &parts), &["3"], &[]);
}

#[test]
fn selecting_a_type_does_not_detach_displayed_parts() {
    let parts = [
        html("<img src=\"cid:a@b\">"),
        picture("Content-ID: <a@b>\n"),
        picture(""),
    ];
    let mail = multipart("related", "r", &parts);
    let store = Arc::new(Memory::default());
    let of_type = Choice {
        types: vec!["image/*".parse().unwrap()],
        ..choice(false)
    };
    let detachment = detacher(&store, of_type)
        .detach(mail.as_bytes(), "test")
        .unwrap();
    assert_eq!(detachment.report.detached(), 1);
}

#[test]
fn what_embed_put_in_is_not_taken_out() {
    let url = data(&[gif(9, 9, 1), vec![0; 2000]].concat());
    let mail = html(&format!(
        "<img src=\"{url}\"><p style=\"background: url({url})\">"
    ));
    let policy = Policy {
        embed: Embed {
            data: true,
            ..Embed::default()
        },
        ..Policy::default()
    };
    let expander = Expander::builder(policy).build().unwrap();
    let expansion = expander.expand(mail.as_bytes(), "test").unwrap();
    let embedded = made(mail.as_bytes(), &expansion.edits);
    assert!(expansion.report.expanded() > 0, "{:?}", expansion.report);
    let store = Arc::new(Memory::default());
    let all = Choice {
        larger_than: 0,
        ..choice(false)
    };
    let detachment = detacher(&store, all).detach(&embedded, "test").unwrap();
    assert!(detachment.edits.is_empty(), "{:?}", detachment.report);
    assert!(
        detachment
            .report
            .rows
            .iter()
            .any(|row| row.reason == Some(Reason::ShownInline)),
        "{:?}",
        detachment.report
    );
}
