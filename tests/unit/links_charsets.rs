//! Links in documents in every charset. Bytes that are not characters of the charset are never changed.
//!
//! In Shift_JIS, Big5, GBK and windows-949, the second byte of a character can be `\`, which would become `/` in a
//! link. The labels are those of the Encoding Standard and of mail.

use super::common::mail::assert_bytes;
use super::links::{BASE, run};
use std::borrow::Cow;

use embody::report::{Outcome, Reason};

fn mail(charset: &str, body: &[u8]) -> Vec<u8> {
    let parameter = match charset {
        "" => String::new(),
        label => format!("; charset={label}"),
    };
    let header = format!(
        "MIME-Version: 1.0\n{BASE}Content-Type: text/html{parameter}\nContent-Transfer-Encoding: 8bit\n\n"
    );
    [header.as_bytes(), body].concat()
}

/// Links with `images`, `display` and a directory in Shift_JIS, whose characters have `\` or a letter as their second
/// byte, and the expected results. In the last but one, a katakana of one byte is before a `\`.
const TRAILING: &[(&[u8], &str)] = &[
    (
        b"<img src=\"\x95\\.gif\">",
        "<img src=\"http://www.example.org/a/b/%E8%A1%A8.gif\">",
    ),
    (
        b"<a href=\"\x94\\\x97\xcd.html\">",
        "<a href=\"http://www.example.org/a/b/%E8%83%BD%E5%8A%9B.html\">",
    ),
    (
        b"<img srcset=\"\x95\\.gif 2x\">",
        "<img srcset=\"http://www.example.org/a/b/%E8%A1%A8.gif 2x\">",
    ),
    (
        b"<a href=\"\x81A/\xa5\\x\">",
        "<a href=\"http://www.example.org/a/b/%E3%80%81/%EF%BD%A5/x\">",
    ),
    (
        b"<p style=\"background:url('\x95\\.gif')\">",
        "<p style=\"background:url('http://www.example.org/a/b/%E8%A1%A8.gif')\">",
    ),
];

const TRAIL_BYTE_LABELS: &[&str] = &[
    "Shift_JIS",
    "csShiftJIS",
    "MS_Kanji",
    "windows-31j",
    "x-sjis",
    "CP932",
    "ms932",
    "\"shift_jis\"",
    "big5",
    "cn-big5",
    "Big5-HKSCS",
    "csBig5",
    "cp950",
    "x-x-big5",
    "gbk",
    "GB2312",
    "GB_2312-80",
    "csGB2312",
    "chinese",
    "gb18030",
    "cp936",
    "ms936",
    "euc-kr",
    "ks_c_5601-1987",
    "KS_C_5601-1989",
    "korean",
    "windows-949",
    "cp949",
    "uhc",
];

/// Bytes that are not characters of the charset cannot be escaped, so the link is not changed.
#[test]
fn link_with_a_broken_character_is_not_touched() {
    for label in TRAIL_BYTE_LABELS {
        for body in [
            b"<img src=\"\xff\\.gif\">".as_slice(),
            b"<a href=\"\x81\">",
            b"<img srcset=\"\xff\\.gif 2x\">",
            b"<p style=\"background:url('\xff\\.gif')\">",
        ] {
            // Next to it is a link that is all ASCII.
            let before = [body, b"<a href=\"q\\r\">"].concat();
            let after = [body, b"<a href=\"http://www.example.org/a/b/q/r\">"].concat();
            let (output, _) = run(&mail(label, &before));
            assert_bytes(&output, &mail(label, &after), label);
        }
    }
}

/// The Content-Location of a part can contain the same bytes as the document.
#[test]
fn link_with_trail_bytes_is_unchanged_unless_it_names_a_located_part() {
    let aggregate = |link: &[u8]| {
        [
            b"MIME-Version: 1.0\nContent-Base: http://www.example.org/a/b/c\n\
              Content-Type: multipart/related; boundary=b\n\n--b\n\
              Content-Type: text/html; charset=shift_jis\nContent-Transfer-Encoding: 8bit\n\n<img src=\""
                .as_slice(),
            link,
            b"\">\n--b\nContent-Type: image/gif\nContent-ID: <1@x>\n\
              Content-Location: %E8%A1%A8.gif\n\nGIF89a\n--b--\n",
        ]
        .concat()
    };
    let (output, _) = run(&aggregate(b"\x95\\.gif"));
    assert_bytes(&output, &aggregate(b"cid:1@x"), "the picture");
    let other = aggregate(b"\x8e\xa6\x95\\.gif");
    assert_bytes(&run(&other).0, &other, "another picture");
}

/// Tests each character whose second byte looks like ASCII, in a path and in a query. The results are compared with the
/// `url` crate.
#[test]
fn link_with_trail_bytes_becomes_the_url_that_browsers_request() {
    let base = url::Url::parse("http://www.example.org/a/b/c").unwrap();
    for label in ["shift_jis", "gbk", "gb18030", "big5", "euc-kr"] {
        let encoding = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap();
        let encoded: &dyn Fn(&str) -> Cow<'_, [u8]> =
            &|text| Cow::Owned(encoding.encode(text).0.into_owned());
        let mut body = Vec::new();
        let mut expected = Vec::new();
        for (lead, trail) in
            (0x81..=0xfe_u8).flat_map(|lead| (0x30..=0x7e_u8).map(move |it| (lead, it)))
        {
            let octets = [lead, trail];
            let decoded = encoding.decode_without_bom_handling_and_without_replacement(&octets);
            // Other pairs are two characters, and in Big5 some characters have several encodings.
            let Some(text) = decoded.filter(|text| !text.ends_with(char::from(trail))) else {
                continue;
            };
            if encoding.encode(&text).0 != octets.as_slice() {
                continue;
            }
            for link in [
                [&octets, b".gif".as_slice()].concat(),
                [b"../x", &octets[..], b"/y?q=", &octets, b"&r#", &octets].concat(),
            ] {
                body.extend([b"<img src=\"".as_slice(), &link, b"\">\n"].concat());
                let link = encoding.decode(&link).0;
                let options = url::Url::options()
                    .base_url(Some(&base))
                    .encoding_override(Some(encoded));
                expected.push(options.parse(&link).unwrap());
            }
        }
        assert!(expected.len() > 2000, "{label}: {}", expected.len());
        let (output, report) = run(&mail(label, &body));
        assert_eq!(report.links(), expected.len() as u64, "{label}");
        let output = String::from_utf8(output).expect("it is ASCII");
        let lines = output.lines().filter_map(|line| {
            let link = line.strip_prefix("<img src=\"")?;
            link.strip_suffix("\">")
        });
        let links: Vec<url::Url> = lines
            .map(|link| url::Url::parse(&link.replace("&amp;", "&")).unwrap())
            .collect();
        for (link, expected) in links.iter().zip(&expected) {
            assert_eq!(link, expected, "{label}");
        }
        assert_eq!(links.len(), expected.len(), "{label}");
    }
}

#[test]
fn charset_declared_only_in_the_document_is_used() {
    for meta in [
        "<meta charset=Shift_JIS>",
        "<META CHARSET=' csShiftJIS '>",
        "<meta http-equiv=\"Content-Type\" content=\"text/html; charset=Shift_JIS\">",
        "<meta content='text/html;charset=\"x-sjis\"' http-equiv=content-type>",
        "<head><title>\u{8868}</title><meta http-equiv=content-type content=text/html;charset=x-sjis>",
    ] {
        for (before, after) in TRAILING {
            for charset in ["", "us-ascii", "x-nobody-knows-it"] {
                let document =
                    |body: &[u8], link: &str| [meta.as_bytes(), body, link.as_bytes()].concat();
                let (output, _) = run(&mail(charset, &document(before, "<a href=x>")));
                let after = document(after.as_bytes(), "<a href=http://www.example.org/a/b/x>");
                assert_bytes(&output, &mail(charset, &after), meta);
            }
        }
    }
    // The charset in the header of the part has precedence over the charset in the document.
    let body = b"<meta charset=Shift_JIS><img src=\"\xe9\\x\">";
    let (output, _) = run(&mail("iso-8859-1", body));
    let after = b"<meta charset=Shift_JIS><img src=\"http://www.example.org/a/b/\xe9/x\">";
    assert_bytes(&output, &mail("iso-8859-1", after), "iso-8859-1");
}

#[test]
fn charsets_of_css_and_xhtml_are_read_from_their_own_declarations() {
    let header = format!("MIME-Version: 1.0\n{BASE}");
    let xhtml = |picture: &[u8], link: &[u8]| {
        [header.as_bytes(), b"Content-Type: application/xhtml+xml\n\n<?xml version=\"1.0\" encoding='Shift_JIS'?><img src=\"", picture, b"\"/><a href=\"", link, b"\"/>"].concat()
    };
    let (output, _) = run(&xhtml(b"\xc3\xa9\x95\\.gif", b"x"));
    let picture = b"http://www.example.org/a/b/%EF%BE%83%EF%BD%A9%E8%A1%A8.gif";
    let after = xhtml(picture, b"http://www.example.org/a/b/x");
    assert_bytes(&output, &after, "XHTML");
    let css = |picture: &[u8], link: &[u8]| {
        [
            header.as_bytes(),
            b"Content-Type: text/css\n\n@charset \"big5\"; a{content:\"\xa5\\\";background:url(\"",
            picture,
            b"\")} b{background:url(\"",
            link,
            b"\")}",
        ]
        .concat()
    };
    let (output, _) = run(&css(b"\xa5\\.gif", b"x"));
    let picture = b"http://www.example.org/a/b/%E5%8A%9F.gif";
    let after = css(picture, b"http://www.example.org/a/b/x");
    assert_bytes(&output, &after, "CSS");
}

/// A `\` that is half of a character escapes no quotation mark, so the link after it is found.
#[test]
fn a_trail_byte_in_a_style_sheet_escapes_nothing() {
    let style = |link: &[u8]| {
        [
            b"<style>a{content:\"\x95\\\"}/* \x95\\*/ b{background:url(\"",
            link,
            b"\")}</style>".as_slice(),
        ]
        .concat()
    };
    let (output, report) = run(&mail("shift_jis", &style(b"x")));
    let after = style(b"http://www.example.org/a/b/x");
    assert_bytes(&output, &mail("shift_jis", &after), "a style element");
    assert_eq!(report.links(), 1);
}

/// Without a declared charset, UTF-8 is recognised by its byte sequences. In other text, a `\` after a byte above 127
/// can be half of a character.
#[test]
fn without_a_charset_links_with_ambiguous_bytes_are_unchanged() {
    let (output, _) = run(&mail("", "<a href=\"\u{e9}\\x\">".as_bytes()));
    let after = "<a href=\"http://www.example.org/a/b/\u{e9}/x\">".as_bytes();
    assert_bytes(&output, &mail("", after), "UTF-8");
    let (output, _) = run(&mail("", b"<a href=\"caf\xe9.html\">"));
    let after = b"<a href=\"http://www.example.org/a/b/caf\xe9.html\">";
    assert_bytes(&output, &mail("", after), "no backslash");
    for label in ["", "x-nobody-knows-it"] {
        let unclear = mail(label, b"<a href=\"\x95\\.gif\">");
        assert_bytes(&run(&unclear).0, &unclear, "unclear");
    }
}

/// The bytes of the document's own `<base href>` can be copied into its links.
#[test]
fn a_base_in_the_documents_charset_is_carried_into_its_links() {
    let body = |link: &[u8]| {
        [
            b"<base href=\"http://h/caf\xe9/\"><a href=\"".as_slice(),
            link,
            b"\">",
        ]
        .concat()
    };
    let (output, _) = run(&mail("iso-8859-1", &body(b"x")));
    let after = mail("iso-8859-1", &body(b"http://h/caf\xe9/x"));
    assert_bytes(&output, &after, "Latin-1");
    let japanese = |link: &[u8]| {
        let body = [
            b"<base href=\"http://h/\x95\\/\"><a href=".as_slice(),
            link,
            b">",
        ];
        mail("shift_jis", &body.concat())
    };
    let (output, _) = run(&japanese(b"x"));
    assert_bytes(&output, &japanese(b"http://h/%E8%A1%A8/x"), "Shift_JIS");
    let unclear = mail("shift_jis", b"<base href=\"http://h/\x95\"><a href=x>");
    let (output, report) = run(&unclear);
    assert_bytes(&output, &unclear, "Shift_JIS");
    assert_eq!(report.rows[0].reason, Some(Reason::CharsetNotSupported));
}

#[test]
fn a_document_that_is_no_superset_of_ascii_is_left_with_a_reason() {
    for (charset, body) in [
        (
            "",
            b"<meta charset=iso-2022-jp><a href=x>\x1b$B%=\\\x1b(B</a>".as_slice(),
        ),
        ("", b"<a href=x>\x1b$B%=\\\x1b(B</a>"),
        ("csISO2022KR", b"<a href=x>"),
        ("hz-gb-2312", b"<a href=x>"),
        ("unicode-1-1-utf-7", b"<a href=x>"),
        ("ucs-2", b"<a href=x>"),
        ("johab", b"<a href=x>"),
        ("IBM1047", b"<a href=x>"),
    ] {
        let mail = mail(charset, body);
        let (output, report) = run(&mail);
        assert_bytes(&output, &mail, charset);
        assert_eq!(report.rows.len(), 1, "{charset}");
        assert_eq!(report.rows[0].outcome, Outcome::Left);
        assert_eq!(report.rows[0].reason, Some(Reason::CharsetNotSupported));
    }
    // The tag could be read, so the document is not in UTF-16 (HTML standard §13.2.3.2).
    let body = |link: &str| format!("<meta charset=utf-16><a href={link}>").into_bytes();
    let (output, _) = run(&mail("", &body("x")));
    assert_bytes(
        &output,
        &mail("", &body("http://www.example.org/a/b/x")),
        "UTF-16",
    );
}
