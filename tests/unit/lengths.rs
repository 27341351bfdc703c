//! Content-Length and Lines of messages, of parts and of inner messages whose bodies change: a right value is updated
//! in the way in which it was counted, and a wrong one is corrected or removed. Also the mark in a message with a large
//! header, because only the start of a large output is assembled to read its header.

use std::fmt::Write as _;

use embody::fetch::Canned;
use embody::mime::{self, MessageTree, PartId, ScanLimits};

use super::common::mail::{assert_bytes, crlf, expanding};
use super::embed::{data, gif, policy};
use crate::engine::Mark;
use crate::engine::policy::Policy;
use crate::expand::Expander;
use crate::fetch::NoFetch;

#[test]
fn lengths_are_correct_and_only_one_mark_is_added_for_any_header_size() {
    let expander = Expander::builder(Policy::default())
        .fetch(NoFetch)
        .mark(Mark::Field)
        .build()
        .unwrap();
    for octets in (65_300..65_700).step_by(3) {
        let long = "x".repeat(octets);
        let fields = "Content-Length: 1\nLines: 1\nX-Embody: expanded=9 left=9 links=9\n";
        let mail = [
            format!("X: {long}\n{fields}").as_bytes(),
            expanding().as_slice(),
        ]
        .concat();
        let expansion = expander.expand(&mail, "-").unwrap();
        let output = String::from_utf8(expansion.output().into_bytes().into_owned()).unwrap();
        let (header, body) = output.split_once("\n\n").unwrap();
        let value = |name: &str| {
            let mut fields = header.lines().filter_map(|line| line.strip_prefix(name));
            let value = fields.next().unwrap().to_owned();
            assert_eq!(fields.next(), None, "{octets}: {name} twice");
            value
        };
        assert_eq!(value("X-Embody: "), "expanded=1 left=0 links=0", "{octets}");
        assert_eq!(
            value("Content-Length: "),
            body.len().to_string(),
            "{octets}"
        );
        let lines = body.matches('\n').count().to_string();
        assert_eq!(value("Lines: "), lines, "{octets}");
    }
}

/// The value of a length field.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Says {
    Body,
    /// The length including the line ending before the next boundary line.
    More,
    Wrong,
}

/// Returns the number for a field. If no line ending follows the body, both ways of counting give the same number.
pub(crate) fn number(tree: &MessageTree<'_>, part: PartId, is_lines: bool, says: Says) -> usize {
    let body = tree.part(part).body;
    let behind = match tree.original.get(body.end..).unwrap_or_default() {
        [b'\n', ..] => 1,
        [b'\r', b'\n', ..] => 2,
        _ => 0,
    };
    let end = match says {
        Says::More => body.end + behind,
        _ => body.end,
    };
    let bytes = &tree.original[body.start..end];
    let count = if is_lines {
        bytes.iter().filter(|&&byte| byte == b'\n').count()
    } else {
        bytes.len()
    };
    count + if says == Says::Wrong { 7 } else { 0 }
}

/// Returns each length field, with its part, whether it is Lines, and its value.
pub(crate) fn fields(mail: &[u8]) -> (MessageTree<'_>, Vec<(PartId, bool, String, embody::Span)>) {
    let tree = mime::scan(mail, &ScanLimits::default());
    let mut all = Vec::new();
    for part in tree.ids() {
        for field in tree.fields(part).iter(mail) {
            let is_lines = field.is(mail, "Lines");
            if is_lines || field.is(mail, "Content-Length") {
                let value = String::from_utf8_lossy(field.value.of(mail).trim_ascii());
                all.push((part, is_lines, value.into_owned(), field.value));
            }
        }
    }
    (tree, all)
}

/// Returns the mail with a number in all length fields.
pub(crate) fn filled(mail: &[u8], says: Says) -> Vec<u8> {
    let mut mail = mail.to_vec();
    // Outer bodies contain the inner fields, so their length changes with the inner numbers.
    for _ in 0..20 {
        let before = mail.clone();
        let (tree, all) = fields(&before);
        for (part, is_lines, _, value) in all.iter().rev() {
            let count = number(&tree, *part, *is_lines, says);
            mail.splice(value.start..value.end, format!(" {count}").into_bytes());
        }
        if mail == before {
            return mail;
        }
    }
    panic!("the numbers do not settle");
}

const HTML: &str = "Content-Type: text/html\nContent-Length:\nLines:\n";
const BASE: &str = "Content-Base: https://a.example/very/long/path/\n";
const LINK: &str = "<a href=\"x\">y</a>\n";
const TOP: &str = "From: a@b\nMIME-Version: 1.0\n";

fn shown() -> String {
    format!("<p><img src=\"{}\">\n", data(&gif(9, 9, 1)))
}

/// Returns mails in which something changes, by their name.
fn mails() -> Vec<(String, String)> {
    let remote = "<p><img src=\"https://a.example/1.png\">\n";
    let reference = |url: &str, more: &str| {
        format!(
            "Content-Type: message/external-body; access-type=URL; URL=\"{url}\"\n{more}\nContent-Type: text/plain\n\n"
        )
    };
    let lengths = "Content-Length:\nLines:\n";
    let mixed = |base: &str, parts: &[String]| {
        let mut mail = format!("{TOP}{lengths}Content-Type: multipart/mixed; boundary=B\n{base}\n");
        for part in parts {
            write!(mail, "--B\n{part}").unwrap();
        }
        mail + "--B--\n"
    };
    let forwarded = |inner: &str| format!("Content-Type: message/rfc822\n{lengths}\n{inner}");
    let document = |text: &str| format!("{HTML}\n{text}");
    let inner = |text: &str| format!("From: c@d\nMIME-Version: 1.0\n{BASE}{HTML}\n{text}");
    let quoted = format!(
        "Content-Type: text/html\nContent-Transfer-Encoding: quoted-printable\n{lengths}\n{}",
        LINK.replace('=', "=3D")
    );
    let sheet = format!("Content-Type: text/css\n{lengths}\na {{ background: url(x) }}\n");
    let related = format!(
        "Content-Type: multipart/related; boundary=R\n{lengths}\n--R\n{}--R\n{sheet}--R--\n",
        document("<p>\n")
    );
    let brought = "data:message/rfc822,Content-Length:%203%0ALines:%201%0A\
        Content-Type:%20multipart/mixed;%20boundary=c%0A%0A--c%0A%0Aone%0A--c--%0A";
    let one = |text: &str| format!("{TOP}{BASE}{HTML}\n{text}");
    [
        ("a link of a part", mixed(BASE, &[document(LINK)])),
        ("a quoted-printable part", mixed(BASE, &[quoted])),
        ("a style sheet", mixed(BASE, &[related])),
        ("one of two parts", mixed(BASE, &[document(LINK), document("<p>\n")])),
        ("a picture of a part", mixed("", &[document(&shown())])),
        ("a picture that is asked for", mixed("", &[document(remote)])),
        (
            "pictures of two parts",
            mixed("", &[document(remote), document(&shown())]),
        ),
        ("a link of a message", one(LINK)),
        ("a picture of a message", one(remote)),
        (
            "a link in a message in a message",
            format!("{TOP}{}", forwarded(&inner(LINK))),
        ),
        (
            "a picture in a message in a message",
            format!("{TOP}{}", forwarded(&inner(remote))),
        ),
        (
            "a message in a message in a message",
            mixed("", &[forwarded(&format!("{TOP}{}", forwarded(&inner(LINK))))]),
        ),
        (
            "a message in a digest",
            format!(
                "{TOP}{lengths}Content-Type: multipart/digest; boundary=D\n\n--D\n{lengths}\n{}--D--\n",
                inner(remote)
            ),
        ),
        (
            "a message that is a reference",
            format!("{TOP}{lengths}{}", reference("data:,hi%0Athere%0A", "")),
        ),
        (
            "a part that is a reference",
            mixed("", &[reference("data:,hi%0Athere%0A", lengths), document(remote)]),
        ),
        (
            "a reference in a message in a message",
            format!(
                "{TOP}{}",
                forwarded(&mixed("", &[reference("https://a.example/text", lengths)]))
            ),
        ),
        (
            "a message that comes",
            mixed("", &[reference(brought, lengths).replace("text/plain", "message/rfc822")]),
        ),
    ]
    .map(|(name, mail)| (name.to_owned(), mail))
    .into()
}

fn embedding() -> Expander {
    let world = Canned::new()
        .with("https://a.example/1.png", Some("image/gif"), gif(9, 9, 2))
        .with("https://a.example/text", Some("text/plain"), "one\ntwo\n");
    let builder = Expander::builder(policy()).fetch(world);
    builder.build().unwrap()
}

#[test]
fn length_field_of_a_changed_body_is_corrected_or_removed() {
    let expander = embedding();
    for (name, mail) in mails() {
        for newline in ["\n", "\r\n"] {
            let mail = match newline {
                "\n" => mail.clone().into_bytes(),
                _ => crlf(mail.as_bytes()),
            };
            for says in [Says::Body, Says::More, Says::Wrong] {
                let mail = filled(&mail, says);
                let expansion = expander.expand(&mail, "-").unwrap();
                let output = expansion.output().into_bytes().into_owned();
                let text = String::from_utf8_lossy(&output);
                assert_ne!(output, mail, "{name}: {:?}", expansion.report.rows);
                let (tree, before) = fields(&mail);
                let (tree_after, after) = fields(&output);
                if says == Says::Wrong {
                    // Fields of parts that did not change, or that are in retrieved content, stay as they were.
                    let stay = ["one of two parts", "a message that comes", "a style sheet"];
                    let few = if stay.contains(&name.as_str()) { 5 } else { 2 };
                    assert!(after.len() <= few, "{name}: {text}");
                } else {
                    // The fields of the reference's own body are removed, and retrieved content can contain further
                    // fields.
                    let gone = match name.as_str() {
                        "a part that is a reference" | "a reference in a message in a message" => 2,
                        _ => 0,
                    };
                    assert_eq!(before.len(), after.len() + gone, "{name}: {text}");
                }
                for (part, is_lines, value, _) in &after {
                    let of_message = *part == PartId::ROOT;
                    let wanted = match says {
                        Says::Wrong if of_message => Says::Body,
                        Says::Wrong => continue,
                        _ if name == "a message that comes" && !of_message => continue,
                        says => says,
                    };
                    let count = number(&tree_after, *part, *is_lines, wanted);
                    assert_eq!(*value, count.to_string(), "{name}, {says:?}: {text}");
                }
                assert!(tree.ids().count() <= tree_after.ids().count());
                let again = expander.expand(&output, "-").unwrap();
                assert_bytes(&again.output().into_bytes(), &output, "twice is once");
            }
        }
    }
}

/// The length field of a body that does not change is kept, even if it is wrong.
#[test]
fn a_wrong_length_of_what_does_not_change_stays() {
    let mail = format!(
        "{TOP}{BASE}Content-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: text/html\n\n{LINK}--B\n\
         Content-Type: text/plain\nContent-Length: 99\nLines: many\n\nx\n--B--\n"
    );
    let expansion = embedding().expand(mail.as_bytes(), "-").unwrap();
    let output = String::from_utf8(expansion.output().into_bytes().into_owned()).unwrap();
    let link = "https://a.example/very/long/path/x";
    assert_eq!(
        output,
        mail.replace("href=\"x\"", &format!("href=\"{link}\""))
    );
}

/// The length fields inside a retrieved message are as right as in its source, and are updated after each change inside
/// the message.
#[test]
fn length_fields_inside_inserted_messages_are_corrected_after_later_edits() {
    let inner = filled(
        format!(
            "Subject: s\nContent-Length:\nLines:\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=i\n\n--i\n\
             Content-Type: message/external-body; access-type=URL; URL=\"data:,hi%0Athere\"\nContent-Length:\n\n\
             Content-Type: text/plain\n\n--i\n{HTML}\n{LINK}--i--\n"
        )
        .as_bytes(),
        Says::Body,
    );
    let world = Canned::new().with("https://a.example/m", Some("message/rfc822"), inner);
    let expander = Expander::builder(policy()).fetch(world).build().unwrap();
    let mail = format!(
        "{TOP}Content-Length: 4\nContent-Type: multipart/mixed; boundary=B\n\n--B\n\
         Content-Type: message/external-body; access-type=URL; URL=\"https://a.example/m\"\n\n\
         Content-Type: message/rfc822\n\n--B--\n"
    );
    let expansion = expander.expand(mail.as_bytes(), "-").unwrap();
    let output = expansion.output().into_bytes().into_owned();
    let text = String::from_utf8_lossy(&output);
    assert!(text.contains("https://a.example/x"), "{text}");
    let (tree, all) = fields(&output);
    assert_eq!(all.len(), 5, "{text}");
    for (part, is_lines, value, _) in all {
        let count = number(&tree, part, is_lines, Says::Body);
        assert_eq!(value, count.to_string(), "{text}");
    }
}
