//! Every picture that Chromium shows is embedded, unless it runs a script or refers to other resources. `picture_formats.txt`
//! contains a small file of each format and its variants, made with Pillow, ImageMagick and by hand. Its columns: name, whether
//! Chromium 156 shows it, whether it is embedded, and its bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::common::browser::{chromium, natural_widths};
use crate::common::filter::filter;

struct Row {
    name: &'static str,
    is_shown: bool,
    is_embedded: bool,
    base64: &'static str,
}

impl Row {
    fn url(&self) -> String {
        let essence = if self.name.ends_with(".svg") {
            "image/svg+xml"
        } else {
            // The declared type may be wrong; the bytes show the format.
            "image/png"
        };
        format!("data:{essence};base64,{}", self.base64)
    }
}

/// Pictures that Chromium shows and embody leaves: they run or load something, or declare something that could.
const REFUSED: [&str; 10] = [
    "svg-attlist.svg",
    "svg-emptyscript.svg",
    "svg-enc-UTF-7.svg",
    "svg-ent-ext.svg",
    "svg-ent-param.svg",
    "svg-foreign.svg",
    "svg-import.svg",
    "svg-link.svg",
    "svg-script.svg",
    "svg-xmlstyle.svg",
];

fn rows() -> Vec<Row> {
    let lines = include_str!("picture_formats.txt").lines();
    lines
        .map(|line| {
            let mut words = line.split(' ');
            let mut word = || words.next().unwrap();
            Row {
                name: word(),
                is_shown: word() == "shown",
                is_embedded: word() == "embedded",
                base64: word(),
            }
        })
        .collect()
}

#[test]
fn picture_of_each_format_is_embedded_as_the_table_says() {
    let rows = rows();
    assert!(rows.len() > 150);
    let images: String = rows
        .iter()
        .map(|row| format!("<p><img src=\"{}\"></p>\n", row.url()))
        .collect();
    let mail = format!("MIME-Version: 1.0\nContent-Type: text/html\n\n{images}");
    let ran = filter("--embed data", mail.as_bytes());
    let output = String::from_utf8(ran.stdout).unwrap();
    let sources: Vec<&str> = output.split("src=\"").skip(1).collect();
    assert_eq!(sources.len(), rows.len());
    let wrong: Vec<&str> = rows
        .iter()
        .zip(sources)
        .filter(|(row, source)| source.starts_with("cid:") != row.is_embedded)
        .map(|(row, _)| row.name)
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn picture_that_chromium_shows_is_embedded_or_dangerous() {
    let left: Vec<&str> = rows()
        .iter()
        .filter(|row| row.is_shown && !row.is_embedded)
        .map(|row| row.name)
        .collect();
    assert_eq!(left, REFUSED);
}

#[test]
fn picture_of_each_format_is_shown_by_chromium_as_the_table_says() {
    let Some(chromium) = chromium("picture_of_each_format_is_shown_by_chromium_as_the_table_says")
    else {
        return;
    };
    let rows = rows();
    let urls: Vec<String> = rows.iter().map(Row::url).collect();
    let widths = natural_widths(&chromium, &urls);
    let wrong: Vec<&str> = rows
        .iter()
        .zip(widths)
        .filter(|(row, width)| (*width > 0) != row.is_shown)
        .map(|(row, _)| row.name)
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    // The bytes in the table are valid base64.
    assert!(rows.iter().all(|row| STANDARD.decode(row.base64).is_ok()));
}

/// Returns the reason for which a picture with these bytes is left, or `None` if it is embedded.
fn reason(essence: &str, bytes: &[u8]) -> Option<String> {
    let url = format!("data:{essence};base64,{}", STANDARD.encode(bytes));
    let mail = format!("MIME-Version: 1.0\nContent-Type: text/html\n\n<img src=\"{url}\">\n");
    let ran = filter("--embed data", mail.as_bytes());
    let reason = ran.column("reason").first().cloned().unwrap_or_default();
    (!matches!(&*reason, "" | "-")).then_some(reason)
}

#[test]
fn jpeg_xl_and_jpeg_2000_are_embedded_and_metafiles_are_named() {
    let container = |name: &[u8; 4], brand: &[u8; 4]| {
        let start = [b"\0\0\0\x0c", &name[..], b"\r\n\x87\n\0\0\0\x14ftyp"].concat();
        let codestream: &[u8; 4] = if name == b"JXL " { b"jxlc" } else { b"jp2c" };
        [
            &start[..],
            brand,
            b"\0\0\0\0",
            brand,
            b"\0\0\0\x0c",
            codestream,
            b"\0\0\0\0",
        ]
        .concat()
    };
    for (essence, bytes) in [
        (
            "image/jxl",
            b"\xff\n\xfa\x1f\x41\x91\x08\x06\x01\0\0\0".to_vec(),
        ),
        ("image/jxl", container(b"JXL ", b"jxl ")),
        ("image/jp2", container(b"jP  ", b"jp2 ")),
        ("image/jpx", container(b"jP  ", b"jpx ")),
        (
            "image/j2c",
            b"\xff\x4f\xff\x51\0\x29\0\0\0\0\0\x01".to_vec(),
        ),
    ] {
        assert_eq!(reason(essence, &bytes), None, "{essence}");
    }
    let emf = [&b"\x01\0\0\0\x6c\0\0\0"[..], &[0; 32], b" EMF\0\0\x01\0"].concat();
    for (essence, bytes) in [
        ("image/x-wmf", &b"\xd7\xcd\xc6\x9a\0\0\0\0"[..]),
        ("image/wmf", b"\x01\0\x09\0\0\x03\x20\0\0\0"),
        ("image/emf", &emf),
        ("application/octet-stream", &emf),
    ] {
        assert_eq!(
            reason(essence, bytes).as_deref(),
            Some("not-an-image"),
            "{essence}"
        );
    }
    let page = reason("image/png", b"<!DOCTYPE html><p>sign in");
    assert_eq!(page.as_deref(), Some("type-mismatch"));
    let script = reason("image/jxl", b"\xff\nalert(document.cookie)");
    assert_eq!(script.as_deref(), Some("type-mismatch"));
}

#[test]
fn picture_without_an_image_is_left_and_a_truncated_one_is_embedded() {
    let gif = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01";
    let jpeg =
        b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0x\xff\xff\xc0\0\x0b\x08\0\x01";
    for (essence, bytes, image) in [("image/gif", &gif[..], 28), ("image/jpeg", &jpeg[..], 24)] {
        for end in 13..bytes.len() {
            let left = (end < image).then_some("not-an-image");
            assert_eq!(
                reason(essence, &bytes[..end]).as_deref(),
                left,
                "{essence} {end}"
            );
        }
    }
    for (essence, bytes) in [
        ("image/gif", &b"GIF89a=1;alert(1)"[..]),
        ("image/gif", b"GIF87a/*\0\0*/=1;alert(',')"),
        ("image/gif", b"GIF89a\x01\0\x01\0\0\0\0;"),
        (
            "image/jpeg",
            b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xd9",
        ),
        (
            "image/png",
            b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x40\0\0\0\x40\x08\x02\0\0\0\0\0\0\0\0\0\0\0IEND\xaeB`\x82",
        ),
        (
            "image/png",
            b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x40\0\0\0\x40\x08\x02\0\0\0\0\0\0\0",
        ),
        ("image/jxl", b"\0\0\0\x0cJXL \r\n\x87\n"),
        (
            "image/avif",
            b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf",
        ),
        ("image/webp", b"RIFF\x18\0\0\0WEBPalert(1)/*xxxxxxxx*/"),
        (
            "image/webp",
            b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0\x2b\x01\0\xc7\0\0",
        ),
    ] {
        let reason = reason(essence, bytes);
        assert_eq!(
            reason.as_deref(),
            Some("not-an-image"),
            "{}",
            bytes.escape_ascii()
        );
    }
}

#[test]
fn part_whose_location_is_the_same_url_for_a_browser_is_used_without_a_request() {
    let picture = "Content-Transfer-Encoding: base64\n\nR0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==";
    for (link, location, is_equal) in [
        ("http://h.example/a b.gif", "http://h.example/a b.gif", true),
        (
            "http://h.example/a%20b.gif",
            "http://h.example/a b.gif",
            true,
        ),
        (
            "http://h.example/a b.gif",
            "http://h.example/a%20b.gif",
            true,
        ),
        (
            "http://h.example/x/../a.gif",
            "http://h.example/a.gif",
            true,
        ),
        (
            "http://h.example/a.gif",
            "HTTP://H.example:80/./x/%2e%2e/a.gif",
            true,
        ),
        (
            "http://h.example/caf\u{e9}.gif?\u{e9}",
            "http://h.example/caf%C3%A9.gif?%C3%A9",
            true,
        ),
        ("my pic.gif", "my pic.gif", true),
        ("my%20pic.gif", "my pic.gif", true),
        ("http://h.example/a.gif", "http://h.example/A.gif", false),
        (
            "http://h.example/ab.gif",
            "http://h.example/x/ab.gif",
            false,
        ),
    ] {
        for html in [
            format!("<img src=\"{link}\">"),
            format!("<p style=\"background: url('{link}')\">x"),
        ] {
            let mail = format!(
                "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=x\n\n--x\nContent-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n{html}\n--x\nContent-Type: image/gif\nContent-Location: {location}\n{picture}\n--x--\n"
            );
            let ran = filter(
                "--embed remote --fetch http --deny-host h.example",
                mail.as_bytes(),
            );
            let output = String::from_utf8(ran.stdout).unwrap();
            assert_eq!(
                output.contains("cid:"),
                is_equal,
                "{link} {location}: {output}"
            );
            assert_eq!(output.matches("Content-Type: image/gif").count(), 1);
        }
    }
}
