//! The result in a browser: the aggregates of `samples/mhtml` are filtered, saved with CRLF as `.mhtml`, and opened in
//! Chromium. The color of the enclosed picture must be at the position of the picture.
//!
//! Chromium's support of RFC 2557 is incomplete, so it shows no picture of most samples before they are filtered. These samples
//! are the control. Samples that Chromium cannot show even then are not tested: an aggregate inside a multipart/mixed, a
//! document inside a multipart/alternative, and a link with a fragment.

use std::collections::BTreeMap;

use crate::common::browser::{Picture, Pixel, chromium, shown, told};
use crate::common::filter::filter;
use crate::common::mail::{crlf, mail_parser_leaves, mhtml_samples};

/// Samples, and the top edges of their pictures, which are all at the left edge.
const SHOWN: &[(&str, &[usize])] = &[
    ("absolute-location", &[8]),
    ("base-of-the-message", &[8]),
    ("base-of-the-part", &[8]),
    ("base64", &[16]),
    ("content-id", &[8]),
    ("equal-locations", &[8, 104, 200]),
    ("folded-location", &[8, 104, 200]),
    ("nested", &[8]),
    ("nested-nearest-first", &[8]),
    ("quoted-printable", &[8]),
    ("relative-with-base", &[8, 104, 200]),
    ("relative-without-base", &[8]),
    ("style-sheet", &[8]),
];

/// Samples whose picture is not shown before they are filtered.
const CONTROLS: &[&str] = &["relative-with-base", "quoted-printable", "style-sheet"];

/// Left edge, width and height of a picture, in pixels.
const LEFT: usize = 8;
const SIDE: usize = 80;
/// Returns the number of pixels with this color in the square whose top edge is at `top`.
fn count_at(picture: &Picture, colour: Pixel, top: usize) -> usize {
    picture.0[top..top + SIDE]
        .iter()
        .flat_map(|row| &row[LEFT..LEFT + SIDE])
        .filter(|&&it| it == colour)
        .count()
}

/// Returns the color of the enclosed picture, which has a single one.
fn colour(message: &[u8]) -> Pixel {
    let leaves = mail_parser_leaves(message);
    let enclosed = leaves.iter().find(|leaf| leaf.essence == "image/png");
    let octets = std::io::Cursor::new(&enclosed.unwrap().octets);
    let picture = Picture::decode(png::Decoder::new(octets));
    let colour = picture.0[0][0];
    assert!(colour != [255; 3] && picture.0.iter().flatten().all(|&it| it == colour));
    colour
}

/// Returns a sample before and after filtering, both with CRLF: with LF, Chromium shows an empty page.
fn sample(name: &str) -> (Vec<u8>, Vec<u8>) {
    let samples = mhtml_samples();
    let sample = samples
        .iter()
        .find(|sample| sample.name == format!("{name}.in.eml"));
    let before = crlf(&sample.unwrap().before);
    let filtered = filter("", &before);
    assert_eq!(filtered.code, Some(0), "{}", filtered.stderr);
    (before, filtered.stdout)
}

#[test]
fn a_browser_shows_the_enclosed_pictures_where_they_stand() {
    let Some(chromium) = chromium("a_browser_shows_the_enclosed_pictures_where_they_stand") else {
        return;
    };
    let messages: BTreeMap<String, Vec<u8>> = SHOWN
        .iter()
        .map(|(name, _)| ((*name).to_owned(), sample(name).1))
        .collect();
    let colours: BTreeMap<String, Pixel> = messages
        .iter()
        .map(|(name, message)| (name.clone(), colour(message)))
        .collect();
    let pictures = shown(&chromium, messages);
    for (name, tops) in SHOWN {
        let (picture, colour) = (&pictures[*name], colours[*name]);
        for &top in *tops {
            // Some text covers the background of the style sheet.
            let there = count_at(picture, colour, top);
            assert!(
                there > SIDE * SIDE * 9 / 10,
                "{name}: {there} pixels at {top}"
            );
        }
        let all = picture.count(colour);
        assert!(
            all <= SIDE * SIDE * tops.len(),
            "{name}: {all} pixels for {tops:?}"
        );
    }
}

#[test]
fn browser_shows_no_picture_that_is_unfiltered_unreferenced_or_damaged() {
    let test = "browser_shows_no_picture_that_is_unfiltered_unreferenced_or_damaged";
    let Some(chromium) = chromium(test) else {
        return;
    };
    let mut messages: BTreeMap<String, Vec<u8>> = CONTROLS
        .iter()
        .map(|name| (format!("{name}, as it came"), sample(name).0))
        .collect();
    let (_, filtered) = sample("relative-without-base");
    let colour = colour(&filtered);
    let text = String::from_utf8(filtered).unwrap();
    for (what, from, to) in [
        ("another Content-ID", "Content-ID: <", "Content-ID: <x"),
        ("a damaged picture", "iVBORw0KGgo", "AAAAAAAAAAA"),
    ] {
        assert!(text.contains(from), "{text}");
        messages.insert(what.to_owned(), text.replace(from, to).into_bytes());
    }
    for (name, picture) in shown(&chromium, messages) {
        assert_eq!(picture.count(colour), 0, "{name}");
    }
}

/// Relative links in each double-byte charset have the same meaning in the result as with the base before.
#[test]
fn relative_links_in_double_byte_charsets_mean_the_same_to_a_browser() {
    let Some(chromium) =
        chromium("relative_links_in_double_byte_charsets_mean_the_same_to_a_browser")
    else {
        return;
    };
    const LINKS: &str = "JSON.stringify([...document.querySelectorAll('a,img,p.x')].map(it => \
        it.href || it.src || getComputedStyle(it).backgroundImage))";
    // Characters whose second byte is that of a backslash, a bar, a brace or an accent, and digits in GB18030.
    for (charset, characters) in [
        (
            "shift_jis",
            [b"\x95\\".as_slice(), b"\x83|", b"\x94{", b"\x83`"],
        ),
        ("gbk", [b"\x81\\", b"\x81|", b"\x81{", b"\x81`"]),
        (
            "gb18030",
            [b"\x81\\", b"\x81|", b"\x81\x30\x84\x36", b"\xd6\xd0"],
        ),
        ("big5", [b"\xa5\\", b"\xa5|", b"\xa5{", b"\xa4@"]),
        ("euc-kr", [b"\x81a", b"\x81z", b"\xb0\xa1", b"\x8cz"]),
        (
            "euc-jp",
            [b"\xc9\xbd", b"\xbc\xa8", b"\x8e\xb1", b"\xa4\xa2"],
        ),
    ] {
        let mut body = Vec::new();
        for octets in characters {
            for (front, middle, behind) in [
                ("<a href=\"", ".html?q=", "&amp;r=&eacute;#top\">x</a>"),
                ("<img src='x/../", "/y?", "'>"),
                ("<a href=", "?", ">x</a>"),
                ("<a href=\"\\d\\", "/..\\e?a\\b", "\">x</a>"),
                ("<a href=\"?", "=", "\">x</a>"),
                ("<p class=x style=\"background:url('", "?", "')\">"),
            ] {
                body.extend(
                    [
                        front.as_bytes(),
                        octets,
                        middle.as_bytes(),
                        octets,
                        behind.as_bytes(),
                        b"\n",
                    ]
                    .concat(),
                );
            }
            let class = octets
                .iter()
                .map(|byte| format!("c{byte:x}"))
                .collect::<String>();
            let style = [
                b"<style>.".as_slice(),
                class.as_bytes(),
                b"{background:url(\"",
                octets,
                b"?",
                octets,
                b"\")}</style><p class=\"x ",
                class.as_bytes(),
                b"\">\n",
            ];
            body.extend(style.concat());
        }
        let header = format!(
            "MIME-Version: 1.0\nContent-Base: http://www.example.org/a/b/c\n\
             Content-Type: text/html; charset={charset}\nContent-Transfer-Encoding: 8bit\n\n"
        );
        let filtered = filter("", &[header.as_bytes(), &body].concat());
        assert_eq!(filtered.code, Some(0), "{}", filtered.stderr);
        let (_, document) = filtered.stdout.split_at(header.len());
        let page = |base: &str, document: &[u8]| {
            let start = format!("<!DOCTYPE html><meta charset={charset}>{base}\n");
            told(&chromium, &[start.as_bytes(), document].concat(), LINKS)
        };
        let before = page("<base href=\"http://www.example.org/a/b/c\">", &body);
        let after = page("", document);
        let links = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        for (after, before) in links(&after).iter().zip(links(&before)) {
            assert_eq!(*after, before, "{charset}");
        }
        assert_eq!(links(&after).len(), links(&before).len(), "{charset}");
        assert_eq!(
            links(&after).len(),
            characters.len() * 7,
            "{charset}: {after}"
        );
        assert!(!after.contains("file:"), "{charset}: {after}");
        assert!(charset == "euc-jp" || document.is_ascii(), "{charset}");
    }
}
