//! The header, the texts and the parts of one mail.

use std::fmt::Write as _;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embody::report::Kind;
use embody::view::{MailFile, MailView, PartRole, ReferenceState};

use super::{HTML, PICTURE, TEXT, mixed, multipart, view};
use crate::common::tnef::{Properties, Tnef, compressed};

#[test]
fn header_fields_are_decoded() {
    let view = view(mixed(&[TEXT]));
    assert_eq!(view.subject(), "über");
    assert_eq!(view.field("from"), "Adé <ada@example.org>");
    assert_eq!(view.date(), Some(1_715_670_723));
    assert_eq!(view.header().len(), 5);
}

#[test]
fn raw_bytes_in_a_header_are_decoded_like_the_text() {
    let koi8 = "Content-Type: text/plain; charset=koi8-r";
    let parts = format!("Content-Type: multipart/mixed; boundary=b\n\n--b\n{koi8}\n\nx\n--b--\n");
    for (rest, subject, expected) in [
        ("", &b"Gr\xfc\xdfe"[..], "Grüße"),
        ("", "Grüße".as_bytes(), "Grüße"),
        (
            "Content-Type: text/plain; charset=us-ascii",
            b"Gr\xfc\xdfe",
            "Grüße",
        ),
        (koi8, b"\xf0\xd2\xc9", "При"),
        (&parts, b"\xf0\xd2\xc9", "При"),
        (koi8, b"=?utf-8?q?=C3=BC?= \xf0\xd2\xc9", "ü При"),
    ] {
        let mail = [b"Subject: ", subject, b"\n", rest.as_bytes(), b"\n\nx\n"].concat();
        assert_eq!(view(&mail).subject(), expected, "{rest}");
        // The list knows only the header of the mail.
        if !rest.contains("--b") {
            let file = MailFile::open(mail, "a.eml").unwrap();
            assert_eq!(file.summary(0).unwrap().subject, expected, "{rest}");
        }
    }
}

#[test]
fn multipart_without_a_boundary_line_shows_its_body() {
    for (body, html, text) in [
        (
            "See the files.\n\nAttachment Converted: \"C:\\a.png\"\n",
            false,
            true,
        ),
        ("\n<x-html>\n<p>Hi</p>\n</x-html>\n", true, false),
    ] {
        let view = view(format!(
            "Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=gone\n\n{body}"
        ));
        let [shown] = view.bodies() else {
            panic!("{body}: {:?}", view.bodies());
        };
        assert_eq!((shown.html.is_some(), shown.text.is_some()), (html, text));
        let content = shown.html.as_ref().or(shown.text.as_ref()).unwrap();
        assert!(content.contains(body.trim()), "{content}");
    }
    assert!(view(multipart("mixed", &[])).bodies().is_empty());
}

#[test]
fn richest_alternative_is_shown_and_its_text_is_kept() {
    for (subtype, parts, html, text) in [
        ("mixed", vec![TEXT], None, Some("Grüße")),
        (
            "alternative",
            vec![TEXT, HTML],
            Some("Hello"),
            Some("Grüße"),
        ),
        (
            "alternative",
            vec![HTML, TEXT],
            Some("Hello"),
            Some("Grüße"),
        ),
        ("related", vec![HTML, PICTURE], Some("Hello"), None),
        (
            "signed",
            vec![TEXT, "Content-Type: application/pgp-signature\n\nx"],
            None,
            Some("Grüße"),
        ),
    ] {
        let view = view(multipart(subtype, &parts));
        let [body] = view.bodies() else {
            panic!("{subtype}: {:?}", view.bodies());
        };
        assert_eq!(body.html.is_some(), html.is_some(), "{subtype}");
        assert!(html.is_none_or(|html| body.html.as_ref().unwrap().contains(html)));
        assert_eq!(body.text.as_deref(), text, "{subtype}");
    }
    // A mailing list adds a footer, which is a second text.
    assert_eq!(view(mixed(&[HTML, TEXT])).bodies().len(), 2);
    let attached = "Content-Type: text/plain\nContent-Disposition: attachment; filename=a.txt\n\nx";
    let view = view(mixed(&[TEXT, attached]));
    assert_eq!(view.bodies().len(), 1);
    assert_eq!(view.parts()[1].role, PartRole::Attachment);
}

#[test]
fn text_is_decoded_from_its_charset_whether_declared_or_not() {
    for (header, body, expected) in [
        (
            "Content-Type: text/plain; charset=koi8-r",
            &b"\xf0\xd2\xc9"[..],
            "При",
        ),
        ("Content-Type: text/plain", "Prägung".as_bytes(), "Prägung"),
        ("Content-Type: text/plain", b"Pr\xe4gung", "Prägung"),
        (
            "Content-Type: text/plain; charset=us-ascii",
            "Prägung".as_bytes(),
            "Prägung",
        ),
        (
            "Content-Type: text/plain; charset=nonsense",
            "Prägung".as_bytes(),
            "Prägung",
        ),
        (
            "Content-Type: text/plain; charset=utf-8",
            b"a\xffb",
            "a\u{fffd}b",
        ),
        (
            "Content-Type: text/html",
            b"<meta charset=iso-8859-2>\xb1",
            "<meta charset=iso-8859-2>ą",
        ),
        (
            "Content-Type: text/html",
            b"<meta charset=utf-16>\xe4",
            "<meta charset=utf-16>ä",
        ),
    ] {
        let mail = [
            header.as_bytes(),
            b"\nMIME-Version: 1.0\nSubject: x\n\n",
            body,
        ]
        .concat();
        let view = view(mail);
        let body = &view.bodies()[0];
        let shown = body.html.as_ref().or(body.text.as_ref()).unwrap();
        assert_eq!(shown, expected, "{header}");
    }
}

#[test]
fn parts_have_names_types_sizes_and_content() {
    let inner = mixed(&[TEXT, PICTURE])
        .replace("boundary=b", "boundary=inner")
        .replace("--b", "--inner");
    let (_, rest) = inner.split_once("Date:").unwrap();
    let inner = format!("Content-Type: message/rfc822\n\nSubject: in/ner\nDate:{rest}");
    let named = "Content-Type: application/pdf; name=\"=?utf-8?q?a=2Fb=E2=80=AEfdp=2Eexe?=\"\nContent-Disposition: attachment\n\n%PDF-";
    let view = view(multipart("mixed", &[HTML, PICTURE, named, &inner]));
    let parts = view.parts();
    assert_eq!(parts[0].role, PartRole::Body);
    let picture = &parts[1];
    assert_eq!((picture.role, picture.size), (PartRole::Picture, 42));
    assert_eq!(
        (picture.name.as_str(), picture.content_id.as_deref()),
        ("part-2.gif", Some("a@b"))
    );
    assert!(view.content(1).unwrap().starts_with(b"GIF89a"));
    // A name cannot contain a path, and cannot hide its suffix.
    assert_eq!(parts[2].name, "a_b_fdp.exe");
    let message = &parts[3];
    assert_eq!(message.role, PartRole::Message);
    assert_eq!(message.name, "in_ner.eml");
    assert!(parts[4..].iter().all(|part| part.inside == Some(3)));
    assert_eq!(parts.len(), 6);
    let inner = MailView::new(view.content(3).unwrap(), SystemTime::now());
    assert_eq!(inner.subject(), "in/ner");
    assert_eq!(inner.parts().len(), 2);
    assert_eq!(view.content(6), None);
}

#[test]
fn content_in_forms_that_few_programs_show_is_in_the_list_of_parts() {
    let tnef = Tnef::new().class("IPM.Note").file("note.txt", b"hello");
    let winmail = format!(
        "Content-Type: application/ms-tnef; name=winmail.dat\nContent-Transfer-Encoding: base64\n\n{}",
        STANDARD.encode(tnef.bytes())
    );
    let data = "Content-Type: text/html\n\n<img src=\"data:image/gif;base64,R0lGODlhCAAIAIAAAP8AAAAAACH5BAAAAAAALAAAAAAIAAgAAAIHhI+py+1dADs=\">";
    let uuencoded =
        "Content-Type: text/plain\n\nSee it.\n\nbegin 644 note.txt\n%:&5L;&\\`\n`\nend\n";
    for (part, kind, name) in [
        (winmail.as_str(), Kind::Tnef, Some("note.txt")),
        (data, Kind::Embed, None),
        (uuencoded, Kind::Uuencode, Some("note.txt")),
    ] {
        let view = view(mixed(&[part]));
        let mut references = view.references().iter();
        let Some(found) = references.find(|it| it.kind == kind) else {
            panic!("{kind:?}: {:?}", view.references());
        };
        assert_eq!(
            found.state,
            ReferenceState::Included,
            "{kind:?}: {}",
            found.explanation
        );
        let is_file = |part: &&embody::view::PartView| part.role != PartRole::Body;
        let files: Vec<_> = view.parts().iter().filter(is_file).collect();
        assert!(!files.is_empty(), "{kind:?}: {:?}", view.parts());
        assert!(
            name.is_none_or(|name| files.iter().any(|part| part.name == name)),
            "{files:?}"
        );
    }
}

/// A hostile mail costs linear time: nothing is read for each pair of parts, pictures or references.
#[test]
fn mail_with_thousands_of_parts_and_references_is_shown() {
    let mut html = "Content-Type: text/html\n\n".to_owned();
    for index in 0..3000 {
        writeln!(
            html,
            "<img src=\"cid:{index}@b\"><img src=\"https://www.example.org/{index}.gif\">"
        )
        .unwrap();
    }
    let pictures: Vec<String> = (0..3000)
        .map(|index| PICTURE.replace("<a@b>", &format!("<{index}@b>")))
        .collect();
    let mut parts = vec![html.as_str()];
    parts.extend(pictures.iter().map(String::as_str));
    let view = view(multipart("related", &parts));
    assert_eq!(view.parts().len(), 3001);
    assert!(
        view.parts()[1..]
            .iter()
            .all(|part| part.role == PartRole::Picture)
    );
    let remote = |state| {
        view.references()
            .iter()
            .filter(|it| it.state == state)
            .count()
    };
    assert_eq!(remote(ReferenceState::Remote), 3000);
}

/// Returns the start of a message of the Cryptographic Message Syntax, in base64.
fn cms(content_type: &[u8]) -> String {
    let start = [
        b"\x30\x80\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01",
        content_type,
    ];
    STANDARD.encode([&start.concat(), &b"\xa0\x80\x30\x80\x02\x01\x00"[..]].concat())
}

#[test]
fn texts_that_need_a_key_or_another_program_have_a_protection() {
    let enveloped = cms(b"\x07\x03");
    let signed = cms(b"\x07\x02");
    let coded = "Content-Transfer-Encoding: base64\n\n";
    let smime = |parameters: &str, content: &str| {
        format!("Content-Type: application/pkcs7-mime{parameters}\n{coded}{content}")
    };
    let armor = "-----BEGIN PGP MESSAGE-----\n\nhQEMA\n-----END PGP MESSAGE-----\n";
    let pgp = "Content-Type: application/pgp-encrypted\n\nVersion: 1\n";
    let encrypted = format!("Content-Type: application/octet-stream\n\n{armor}");
    let plain = |text: &str| format!("Content-Type: text/plain\n\n{text}");
    for (subtype, parts, expected) in [
        ("mixed", vec![plain("Hello.")], None),
        // The content decides. Outlook writes no smime-type, and some servers replace the type of the part.
        ("mixed", vec![smime("", &enveloped)], Some("smime")),
        (
            "mixed",
            vec![smime("; smime-type=signed-data", &enveloped)],
            Some("smime"),
        ),
        (
            "mixed",
            vec![smime("; smime-type=enveloped-data", "AAAA")],
            Some("smime"),
        ),
        (
            "mixed",
            vec![smime("; smime-type=signed-data", &signed)],
            Some("smime-signed"),
        ),
        (
            "mixed",
            vec![smime("; smime-type=certs-only", "AAAA")],
            None,
        ),
        (
            "mixed",
            vec![format!(
                "Content-Type: application/octet-stream; name=smime.P7M\n{coded}{enveloped}"
            )],
            Some("smime"),
        ),
        (
            "mixed",
            vec![format!(
                "Content-Type: application/octet-stream; name=x.bin\n{coded}{enveloped}"
            )],
            None,
        ),
        (
            "encrypted",
            vec![pgp.to_owned(), encrypted.clone()],
            Some("openpgp"),
        ),
        (
            "mixed",
            vec![pgp.to_owned(), encrypted.clone()],
            Some("openpgp"),
        ),
        ("mixed", vec![plain(armor)], Some("openpgp")),
        (
            "mixed",
            vec![format!("Content-Type: text/html\n\n<pre>{armor}</pre>")],
            Some("openpgp"),
        ),
        (
            "mixed",
            vec![plain("Lines of -----BEGIN PGP MESSAGE----- are long.")],
            None,
        ),
        (
            "mixed",
            vec![
                "Content-Type: application/x-microsoft-rpmsg-message; name=message.rpmsg\n\nx"
                    .to_owned(),
            ],
            Some("rights"),
        ),
        // A mail inside the mail has a protection of its own.
        (
            "mixed",
            vec![
                plain("See it."),
                format!("Content-Type: message/rfc822\n\n{}", smime("", &enveloped)),
            ],
            None,
        ),
    ] {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let view = view(multipart(subtype, &parts));
        let is_control =
            |part: &&embody::view::PartView| part.media_type == "application/pgp-encrypted";
        assert!(
            view.parts()
                .iter()
                .filter(is_control)
                .all(|part| part.role == PartRole::Note)
        );
        let found = view.protection().map(|it| it.as_str());
        assert_eq!(found, expected, "{subtype} {parts:?}");
    }
}

#[test]
fn rtf_body_of_outlook_is_the_text_and_no_attachment() {
    let rtf = |name: &str, media_type: &str| {
        format!(
            "Content-Type: {media_type}; name=\"{name}\"\nContent-Disposition: attachment; filename=\"{name}\"\n\n{{\\rtf1 Hi}}"
        )
    };
    for (name, media_type, expected) in [
        ("message.rtf", "application/rtf", PartRole::RichText),
        ("message.rtf", "text/rtf", PartRole::RichText),
        ("letter.rtf", "application/rtf", PartRole::Attachment),
        (
            "message.rtf",
            "application/octet-stream",
            PartRole::Attachment,
        ),
    ] {
        let view = view(mixed(&[TEXT, &rtf(name, media_type)]));
        assert_eq!(view.parts()[1].role, expected, "{name} {media_type}");
    }
    // The same body in a winmail.dat, in which it is a property and not a file.
    let rtf = compressed(br"{\rtf1\ansi {\b Hello} there\par}");
    let properties = Properties::new().binary(0x1009, &rtf);
    let tnef = Tnef::new().class("IPM.Note").properties(properties).bytes();
    let file = MailFile::open(tnef, "winmail.dat").unwrap();
    let view = file.mail(0, SystemTime::now()).unwrap();
    let roles: Vec<_> = view.parts().iter().map(|part| part.role).collect();
    assert_eq!(roles, [PartRole::Body, PartRole::RichText]);
    assert!(
        view.bodies()[0]
            .text
            .as_ref()
            .unwrap()
            .contains("Hello there")
    );
}
