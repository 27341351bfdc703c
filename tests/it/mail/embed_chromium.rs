//! `samples/embed/every-place.in.eml` has a picture of a unique color at every place that embody supports. The pictures are
//! embedded from a local server. Then Chromium opens the mail as `.mhtml`, shows each picture, and sends no requests to the
//! server.
//!
//! Some places are not shown by Chromium, and are only checked with the scanner of embody: `lowsrc`, `dynsrc`, hidden elements,
//! cursors, and conditional comments.

use std::fs;
use std::io::Write as _;

use mail_parser::{MessageParser, PartType};

use crate::common::browser::{Pixel, chromium, page, png};
use crate::common::filter::filter;
use crate::common::mail::{crlf, samples_folder};
use crate::common::raw::{self, Raw};

/// Number of places that are shown, in rows of ten.
const SHOWN: usize = 50;
/// A place whose picture is the same as the first one.
const AGAIN: usize = 50;
/// The background of the page.
const BODY: usize = 51;
/// Places that Chromium does not show.
const NOT_SHOWN: [&str; 11] = [
    "low",
    "dynamic",
    "hidden",
    "cursor",
    "outlook-style",
    "vml-fill",
    "vml-imagedata",
    "vml-image",
    "outlook-background",
    "outlook-attribute",
    "outlook-img",
];

fn colour(number: usize) -> Pixel {
    let channel = |value: usize| u8::try_from(24 + value).unwrap();
    [
        channel(number * 5 % 9 * 25),
        channel(number / 9 * 25),
        channel(number * 7 % 11 * 20),
    ]
}

fn bmp([red, green, blue]: Pixel) -> Vec<u8> {
    let mut octets = b"BM".to_vec();
    for number in [
        54 + 1200_u32,
        0,
        54,
        40,
        20,
        20,
        1 | 24 << 16,
        0,
        1200,
        0,
        0,
        0,
        0,
    ] {
        octets.extend(number.to_le_bytes());
    }
    octets.extend([blue, green, red].repeat(400));
    octets
}

fn svg([red, green, blue]: Pixel) -> String {
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' width='20' height='20'>\
         <rect width='20' height='20' fill='rgb({red},{green},{blue})'/></svg>"
    )
}

fn answer(path: &str) -> Option<Vec<u8>> {
    let name = path.trim_start_matches('/').split('?').next()?;
    let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
    let named = NOT_SHOWN.iter().position(|known| *known == stem);
    let number = stem.parse().ok().or(named.map(|at| BODY + 1 + at))?;
    let colour = colour(number);
    Some(match extension {
        "svg" => raw::ok("image/svg+xml", svg(colour).as_bytes()),
        // The declared type is wrong, but the bytes show the format.
        "bmp" => raw::ok("image/png", &bmp(colour)),
        _ => raw::ok("image/png", &png(colour)),
    })
}

/// Returns the decoded HTML of a mail.
fn document(mail: &[u8]) -> Vec<u8> {
    let message = MessageParser::default().parse(mail).unwrap();
    let html = message.parts.iter().find_map(|part| match &part.body {
        PartType::Html(text) => Some(text.as_bytes().to_vec()),
        _ => None,
    });
    html.unwrap()
}

fn server() -> Raw {
    Raw::http(|path, stream| {
        let gone = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all(&answer(path).unwrap_or(gone.to_vec()));
    })
}

fn before() -> Vec<u8> {
    crlf(&fs::read(samples_folder().join("embed/every-place.in.eml")).unwrap())
}

fn embedded(server: &Raw, mail: &[u8]) -> Vec<u8> {
    embedded_with(server, mail, "")
}

fn embedded_with(server: &Raw, mail: &[u8], more: &str) -> Vec<u8> {
    let port = server.address.port();
    let options = format!(
        "--fetch http --allow-net 127.0.0.0/8 --allow-port {port} --embed data,remote --trackers fetch \
         --max-fetches 100 {more} --map http://pictures.example/={}",
        server.url("/")
    );
    let ran = filter(&options, mail);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.stdout
}

#[test]
fn browser_shows_every_embedded_picture_without_a_request() {
    let Some(chromium) = chromium("browser_shows_every_embedded_picture_without_a_request") else {
        return;
    };
    let server = server();
    let before = before();
    let after = embedded(&server, &before);
    let asked = server.heads().len();
    assert!(asked > SHOWN, "{asked}");
    // Every host leads to the port of the test server, whatever port the URL contains.
    let hosts = format!(
        "MAP pictures.example:80 {}, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        server.address
    );

    let picture = page(&chromium, "mhtml", "embedded", &after, &hosts);
    let missing: Vec<usize> = (1..=SHOWN)
        .filter(|&number| {
            let (left, top) = ((number - 1) % 10 * 32 + 8, (number - 1) / 10 * 32 + 8);
            let expected = colour(if number == AGAIN { 1 } else { number });
            let rows = &picture.0[top..top + 20];
            let pixels = rows.iter().flat_map(|row| &row[left..left + 20]);
            let there = pixels.filter(|pixel| **pixel == expected).count();
            there < 300
        })
        .collect();
    assert!(missing.is_empty(), "not shown: {missing:?}");
    assert_eq!(picture.0[2][2], colour(BODY));
    // If only the HTML is saved, the page has no pictures, but sends no requests, either.
    page(&chromium, "html", "the document", &document(&after), &hosts);
    assert_eq!(server.heads().len(), asked, "{:?}", server.heads().last());

    // The control: the original page sends requests.
    page(&chromium, "html", "as it came", &document(&before), &hosts);
    let asked_by_chromium = server.heads().len() - asked;
    assert!(asked_by_chromium > SHOWN / 2, "{asked_by_chromium}");
}

#[test]
fn conditional_comments_contain_no_remote_picture_after_embed() {
    let server = server();
    let before = before();
    let after = embedded(&server, &before);
    let had = String::from_utf8(document(&before)).unwrap();
    for name in NOT_SHOWN {
        let url = format!("http://pictures.example/{name}");
        assert!(had.contains(&url), "{name}");
    }
    let html = String::from_utf8(document(&after)).unwrap();
    assert!(!html.contains("//pictures.example"), "{html}");
    assert!(html.matches("cid:").count() > SHOWN + NOT_SHOWN.len());
    assert_eq!(embedded(&server, &after), after, "twice is once");
}

/// Style sheets that import each other in a cycle, and a `srcset` whose candidates are missing.
#[test]
fn imported_style_sheets_are_embedded_and_shown_without_a_request() {
    let name = "imported_style_sheets_are_embedded_and_shown_without_a_request";
    let Some(chromium) = chromium(name) else {
        return;
    };
    let server = Raw::http(|path, stream| {
        let style = match path {
            "/style/a.css" => "@import 'b.css'; .a { background: url(../1) }",
            "/style/b.css" => "@import url(a.css); .b { background: url(/2) }",
            "/style/c.css" => ".c { background: url('../3') }",
            _ => "",
        };
        let gone = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let answer = match style {
            "" => answer(path).unwrap_or(gone.to_vec()),
            style => raw::ok("text/css", style.as_bytes()),
        };
        let _ = stream.write_all(&answer);
    });
    let mail = crlf(
        b"MIME-Version: 1.0\nContent-Type: text/html\n\n<!DOCTYPE html>\n\
        <link rel=stylesheet href=\"http://pictures.example/style/a.css\">\n\
        <style>@import 'http://pictures.example/style/c.css'; body { margin: 0 } i, b { display: block; height: 20px }</style>\n\
        <i class=a></i><i class=b></i><i class=c></i>\n\
        <b><img sizes=40px src=\"http://pictures.example/4\" srcset=\"http://pictures.example/gone 320w, http://pictures.example/gone 640w\"></b>\n",
    );
    let after = embedded_with(&server, &mail, "--embed-kinds image,style");
    let asked = server.heads().len();
    let hosts = format!(
        "MAP pictures.example:80 {}, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        server.address
    );
    let picture = page(&chromium, "mhtml", name, &after, &hosts);
    for (row, number) in [(10, 1), (30, 2), (50, 3)] {
        assert_eq!(picture.0[row][200], colour(number), "{number}");
    }
    // The picture has the width in `sizes`, because the width in the `srcset` is correct.
    let there = picture.0[70]
        .iter()
        .filter(|pixel| **pixel == colour(4))
        .count();
    assert_eq!(there, 40);
    assert_eq!(server.heads().len(), asked, "{:?}", server.heads().last());
    assert_eq!(
        embedded_with(&server, &after, "--embed-kinds image,style"),
        after,
        "twice is once"
    );
}

/// Chromium does not show a part of an SVG by a `cid:` URL, so embody leaves such links unchanged.
#[test]
fn a_browser_finds_no_part_of_an_svg_by_cid() {
    let name = "a_browser_finds_no_part_of_an_svg_by_cid";
    let Some(chromium) = chromium(name) else {
        return;
    };
    let mail = crlf(
        b"From: <Saved by Blink>\nMIME-Version: 1.0\nContent-Type: multipart/related; type=\"text/html\"; boundary=\"r\"\n\n\
        --r\nContent-Type: text/html\n\n<!DOCTYPE html>\n\
        <style>body { margin: 0 } img { display: block; width: 40px; height: 40px }</style>\n\
        <img src=\"cid:x@b#part\"><img src=\"cid:x@b\">\n\
        --r\nContent-Type: image/svg+xml\nContent-ID: <x@b>\nContent-Location: http://pictures.example/x.svg\n\n\
        <svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 20 20\"><view id=\"part\" viewBox=\"100 0 20 20\"/>\
        <rect width=\"20\" height=\"20\" fill=\"#ff0000\"/><rect x=\"100\" width=\"20\" height=\"20\" fill=\"#0000ff\"/></svg>\n\
        --r--\n",
    );
    let picture = page(&chromium, "mhtml", name, &mail, "MAP * ~NOTFOUND");
    let pixels = picture.0[..40].iter().flat_map(|row| &row[..40]);
    assert!(pixels.clone().all(|pixel| *pixel != [0, 0, 255]));
    assert_eq!(picture.0[60][20], [255, 0, 0]);
    let before = String::from_utf8(mail)
        .unwrap()
        .replace("cid:x@b#part", "http://pictures.example/x.svg#part");
    let mail = before.into_bytes();
    let embedded = filter("--embed data", &mail).stdout;
    assert_eq!(embedded, mail, "{}", String::from_utf8_lossy(&embedded));
}
