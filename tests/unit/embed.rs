//! `--embed` adds the pictures that HTML displays to the mail. These tests cover the shapes of mails, order, limits and
//! hostile content, through the library and with prepared responses.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embody::fetch::Canned;
use embody::mime::{self, ScanLimits};
use embody::policy::{Embed, Scheme, Trackers};
use embody::report::{Kind, Outcome, Reason, Refusal};
use embody::{Policy, Report};

use super::common::checks::scan::spans;
use super::common::mail::{self, Leaf, assert_bytes, expander};
use super::common::named::assert_each_names_a_part;

/// Returns a GIF of this size. Different numbers give different pictures.
pub(crate) fn gif(width: u8, height: u8, number: u8) -> Vec<u8> {
    let mut gif = b"GIF89a".to_vec();
    gif.extend([width, 0, height, 0, 0x80, 0, 0, number, 0, 0, 255, 255, 255]);
    gif.extend(b",\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;");
    gif
}

pub(crate) fn data(octets: &[u8]) -> String {
    format!("data:image/gif;base64,{}", STANDARD.encode(octets))
}

pub(crate) fn policy() -> Policy {
    let mut policy = Policy {
        embed: Embed {
            data: true,
            remote: true,
            pictures: true,
            ..Embed::default()
        },
        ..Policy::default()
    };
    policy.fetch = [Scheme::Http, Scheme::Https].into();
    policy
}

fn world() -> Canned {
    let mut world = Canned::new();
    for number in 0..9 {
        let url = format!("https://h.example/{number}");
        world = world.with(&url, Some("image/gif"), gif(9, 9, number));
    }
    world
}

pub(crate) fn run(policy: Policy, world: &Canned, mail: &[u8]) -> (Vec<u8>, Report) {
    let expander = expander(policy, world.clone());
    let expansion = expander.expand(mail, "test").unwrap();
    let output = expansion.output().into_bytes().into_owned();
    assert_each_names_a_part(mail, &output);
    let again = expander.expand(&output, "test").unwrap();
    if !expansion
        .report
        .rows
        .iter()
        .any(|row| row.reason.is_some_and(embody::report::Reason::is_bound))
    {
        assert_bytes(&again.output().into_bytes(), &output, "twice is once");
    }
    let tree = mime::scan(&output, &ScanLimits::default());
    assert_eq!(spans(&tree).last().map_or(0, |tile| tile.end), output.len());
    (output, expansion.report)
}

fn embedded(mail: &str) -> (String, Report) {
    let (output, report) = run(policy(), &world(), mail.as_bytes());
    (String::from_utf8(output).unwrap(), report)
}

/// Returns the bodies of all parts with a Content-ID, by their Content-ID.
pub(crate) fn pictures(output: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let tree = mime::scan(output, &ScanLimits::default());
    tree.ids()
        .filter_map(|part| {
            let value = tree.value(part, "Content-ID")?;
            let id = String::from_utf8_lossy(value)
                .trim()
                .trim_matches(['<', '>'])
                .to_owned();
            let entity = tree.part(part);
            let octets = entity.encoding.decode(entity.body.of(output))?.into_owned();
            Some((id, octets))
        })
        .collect()
}

pub(crate) fn cids(text: &str) -> Vec<String> {
    let ends = |symbol: char| {
        matches!(
            symbol,
            '"' | '\'' | ')' | '>' | ' ' | ',' | '&' | '\r' | '\n'
        )
    };
    text.match_indices("cid:")
        .map(|(at, _)| {
            let url = text[at + 4..].split(ends).next().unwrap_or_default();
            url.replace("%40", "@")
        })
        .collect()
}

/// Checks that every `cid:` URL of the mail names a part with one of these pictures.
#[track_caller]
fn assert_shows(output: &[u8], expected: &[&[u8]]) {
    let text = String::from_utf8_lossy(output).into_owned();
    let pictures = pictures(output);
    let shown: Vec<&[u8]> = cids(&text)
        .iter()
        .map(|id| {
            pictures
                .get(id)
                .unwrap_or_else(|| panic!("{id} in\n{text}"))
                .as_slice()
        })
        .collect();
    assert_eq!(shown, expected, "{text}");
}

const HTML: &str = "Subject: s\nMIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n";

pub(crate) fn html(body: &str) -> String {
    format!("{HTML}\n{body}\n")
}

#[test]
fn a_message_that_is_only_html_becomes_a_related_and_its_fields_move() {
    let one = gif(9, 9, 1);
    let mail = format!(
        "From: a@b\nContent-Type: text/html;\n charset=utf-8\nX-Other:  kept\nContent-Transfer-Encoding: 8bit\nMIME-Version: 1.0\nContent-Language: de\n\n<p>\u{e4}<img src=\"{}\"></p>\n",
        data(&one)
    );
    let (output, report) = embedded(&mail);
    assert_eq!(report.rows.len(), 1, "{report:?}");
    assert_eq!(
        (report.rows[0].kind, report.rows[0].outcome),
        (Kind::Embed, Outcome::Expanded)
    );
    let boundary = output
        .split("boundary=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let id = &cids(&output)[0];
    let name = id.split('@').next().unwrap();
    let expected = format!(
        "From: a@b\nContent-Type: multipart/related; type=\"text/html\";\n boundary=\"{boundary}\"\nContent-Transfer-Encoding: 8bit\n\
         X-Other:  kept\nMIME-Version: 1.0\n\n--{boundary}\nContent-Type: text/html;\n charset=utf-8\nContent-Transfer-Encoding: 8bit\nContent-Language: de\n\n\
         <p>\u{e4}<img src=\"cid:{id}\"></p>\n\n--{boundary}\nContent-Type: image/gif\nContent-ID: <{id}>\n\
         Content-Disposition: inline; filename=\"{name}.gif\"\nContent-Transfer-Encoding: base64\n\n{}\n--{boundary}--\n",
        STANDARD.encode(&one)
    );
    assert_bytes(output.as_bytes(), expected.as_bytes(), "only HTML");
}

#[test]
fn every_mime_structure_gets_its_pictures_and_keeps_other_octets() {
    let (one, two) = (gif(9, 9, 1), gif(9, 9, 2));
    let body = format!(
        "<img src=\"{}\"><img src=\"https://h.example/2\">",
        data(&one)
    );
    let part = format!("Content-Type: text/html\n\n{body}");
    let quoted = format!(
        "Content-Type: text/html\nContent-Transfer-Encoding: quoted-printable\n\n{}",
        body.replace('=', "=3D")
    );
    let base64 = format!(
        "Content-Type: text/html\nContent-Transfer-Encoding: base64\n\n{}",
        STANDARD.encode(&body)
    );
    let plain = "Content-Type: text/plain\n\nplain";
    let multi = |kind: &str, boundary: &str, parts: &[&str]| {
        let parts: String = parts
            .iter()
            .map(|part| format!("--{boundary}\n{part}\n"))
            .collect();
        format!(
            "Content-Type: multipart/{kind}; boundary={boundary}\n\npreamble\n{parts}--{boundary}--\nepilogue\n"
        )
    };
    let forwarded =
        format!("Content-Type: message/rfc822\n\nSubject: inner\nMIME-Version: 1.0\n{part}");
    let related = multi(
        "related",
        "r",
        &[&part, "Content-Type: image/png\nContent-ID: <o@x>\n\nx"],
    );
    let alternative = multi("alternative", "a", &[plain, &part]);
    for (name, shape) in [
        ("html alone", part.clone()),
        ("alternative", alternative.clone()),
        (
            "mixed(alternative)",
            multi("mixed", "m", &[&alternative, plain]),
        ),
        ("related", related.clone()),
        (
            "related(alternative)",
            multi("related", "r", &[&alternative, plain]),
        ),
        ("mixed(message)", multi("mixed", "m", &[plain, &forwarded])),
        ("quoted-printable", multi("mixed", "m", &[&quoted, plain])),
        ("base64", multi("mixed", "m", &[&base64, plain])),
        ("two documents", multi("mixed", "m", &[&part, &part])),
    ] {
        let mail = format!("Subject: s\nMIME-Version: 1.0\n{shape}");
        for message in [mail.clone().into_bytes(), mail::crlf(mail.as_bytes())] {
            let (output, report) = run(policy(), &world(), &message);
            let rows = if name == "two documents" { 4 } else { 2 };
            assert_eq!(report.rows.len(), rows, "{name}: {report:?}");
            assert!(
                report
                    .rows
                    .iter()
                    .all(|row| row.outcome == Outcome::Expanded),
                "{name}: {report:?}"
            );
            let found = pictures(&output);
            assert!(found.values().any(|octets| *octets == one), "{name}");
            assert!(found.values().any(|octets| *octets == two), "{name}");
            if name == "quoted-printable" || name == "base64" {
                continue;
            }
            let expected: Vec<&[u8]> = [one.as_slice(), &two].repeat(rows / 2);
            assert_shows(&output, &expected);
            // Without the inserted parts, only the values of URLs may differ.
            let text = String::from_utf8(output.clone()).unwrap();
            for line in String::from_utf8(message.clone()).unwrap().lines() {
                let line = line
                    .replace(&data(&one), "")
                    .replace("https://h.example/2", "");
                for piece in line.split("\"\"") {
                    assert!(text.contains(piece), "{name}: {piece}");
                }
            }
            if let Some(read) = mail::python_leaves(&[output]) {
                let is_one = |leaf: &Leaf| leaf.octets == one;
                // Each document has its own part, in its own multipart/related.
                let parts = read[0].iter().filter(|leaf| is_one(leaf)).count();
                assert_eq!(parts, rows / 2, "{name}");
            }
        }
    }
}

#[test]
fn equal_octets_are_one_part_and_each_url_is_asked_once() {
    let same = gif(9, 9, 1);
    let body = format!(
        "<img src='{}'><img src='https://h.example/1'><img src='https://h.example/1'><td background='https://h.example/1#x'>",
        data(&same)
    );
    let world = world();
    let (output, report) = run(policy(), &world, html(&body).as_bytes());
    let text = String::from_utf8(output.clone()).unwrap();
    assert_eq!(text.matches("Content-Type: image/gif").count(), 1, "{text}");
    assert_shows(&output, &[same.as_slice(); 4]);
    assert_eq!(report.rows.len(), 2, "{report:?}");
    // Of equal pictures, the first one determines the source. A data: URL gives no Content-Location.
    assert!(!text.contains("Content-Location"), "{text}");
}

#[test]
fn blanks_in_a_data_url_are_data() {
    let svg =
        "<svg xmlns='http://www.w3.org/2000/svg' width='9'><rect width='9' height='9'/></svg>";
    let mail = html(&format!(
        "<b style=\"background: url(&quot; data:image/svg+xml,{svg} &quot;)\"></b>"
    ));
    let (output, _) = embedded(&mail);
    assert_shows(output.as_bytes(), &[svg.as_bytes()]);
}

#[test]
fn picture_already_in_the_mail_is_referenced_without_a_request() {
    let one = STANDARD.encode(gif(9, 9, 1));
    let mail = format!(
        "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=r\n\n--r\nContent-Type: text/html\n\n\
         <img src='https://h.example/here'><a href='https://h.example/here'>click</a>\n--r\n\
         Content-Type: image/gif\nContent-Location: https://h.example/here\nContent-Transfer-Encoding: base64\n\n{one}\n--r--\n"
    );
    let world = world();
    let (output, report) = run(policy(), &world, mail.as_bytes());
    assert!(world.asked().is_empty());
    assert_shows(&output, &[&gif(9, 9, 1)]);
    let text = String::from_utf8(output).unwrap();
    assert!(text.contains("<a href='https://h.example/here'>"), "{text}");
    assert_eq!(
        report.rows[0].detail,
        "the link leads to part 2 of the mail"
    );
}

#[test]
fn without_a_place_for_new_parts_only_existing_parts_are_referenced() {
    // The multipart has no closing boundary line, so there is no place for a new part.
    let mail = format!(
        "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=b\n\n--b\nContent-Type: text/html\n\n\
         <img src=\"https://h.example/1\"><img src=\"{}\"><img src=\"https://h.example/there.gif\">\n\
         --b\nContent-Type: image/gif\nContent-ID: <there@b>\nContent-Location: https://h.example/there.gif\n\
         Content-Transfer-Encoding: base64\n\nR0lGODlh\n",
        data(&gif(9, 9, 1))
    );
    let world = world();
    let (output, report) = run(policy(), &world, mail.as_bytes());
    assert!(world.asked().is_empty(), "{:?}", world.asked());
    let expected = mail.replace("https://h.example/there.gif\">", "cid:there@b\">");
    assert_bytes(&output, expected.as_bytes(), "only what is there");
    let rows: Vec<_> = report
        .rows
        .iter()
        .map(|row| (row.outcome, row.reason))
        .collect();
    let left = (Outcome::Left, Some(Reason::IncompleteBody));
    assert_eq!(rows, [left, left, (Outcome::Expanded, None)]);
}

#[test]
fn trackers_are_left_blanked_or_fetched() {
    let body = "<img src='https://h.example/1' width=1 height=1><img src='https://h.example/2'>\
                <img src='https://h.example/3' style='display: none'><img src='https://h.example/t'>";
    let mail = html(body);
    let with = |trackers| {
        let world = world().with("https://h.example/t", Some("image/gif"), gif(1, 1, 0));
        let mut policy = policy();
        policy.embed.trackers = trackers;
        let (output, report) = run(policy, &world, mail.as_bytes());
        let mut asked: Vec<String> = world
            .asked()
            .into_iter()
            .map(|asked| asked.url().to_owned())
            .collect();
        asked.sort();
        asked.dedup();
        let outcomes: Vec<_> = report
            .rows
            .iter()
            .map(|row| row.reason.map_or("shown", |reason| reason.as_str()))
            .map(str::to_owned)
            .collect();
        (String::from_utf8(output).unwrap(), asked.len(), outcomes)
    };
    let (output, asked, outcomes) = with(Trackers::Leave);
    assert_eq!(outcomes, ["tracker", "shown", "tracker", "tracker"]);
    assert_eq!((asked, cids(&output).len()), (2, 1));
    let (output, asked, outcomes) = with(Trackers::Blank);
    assert_eq!(outcomes, ["shown"; 4]);
    let ids = cids(&output);
    assert_eq!((asked, ids.len()), (2, 4));
    assert!(ids[0] == ids[2] && ids[2] == ids[3] && ids[0] != ids[1]);
    let (output, asked, outcomes) = with(Trackers::Fetch);
    assert_eq!(outcomes, ["shown"; 4]);
    assert_eq!((asked, cids(&output).len()), (4, 4));
}

#[test]
fn tracker_with_invalid_octets_in_its_url_is_recognised() {
    let mail = [
        html("<img src='https://h.example/1?").as_bytes(),
        b"\xff' width=1 height=1>",
    ]
    .concat();
    for (trackers, reason) in [
        (Trackers::Leave, Some(Reason::Tracker)),
        (Trackers::Blank, None),
        // The URL of the request is unknown.
        (Trackers::Fetch, Some(Reason::BadUrl)),
    ] {
        let mut policy = policy();
        policy.embed.trackers = trackers;
        let world = world();
        let (output, report) = run(policy, &world, &mail);
        let reasons: Vec<_> = report.rows.iter().map(|row| row.reason).collect();
        assert_eq!(reasons, [reason]);
        assert!(world.asked().is_empty());
        let calls_home = memchr::memmem::find(&output, b"https://h.example/1?").is_some();
        assert_eq!(calls_home, trackers != Trackers::Blank);
    }
}

#[test]
fn picture_type_is_detected_from_its_octets() {
    let world = Canned::new()
        .with(
            "https://h.example/page",
            Some("image/png"),
            "<html><p>sign in</p></html>",
        )
        .with("https://h.example/text", Some("text/plain"), "hello")
        .with("https://h.example/named", Some("text/plain"), gif(9, 9, 1))
        .with(
            "https://h.example/svg",
            Some("image/svg+xml"),
            "<svg xmlns='http://www.w3.org/2000/svg'><circle r='1'/></svg>",
        )
        .with(
            "https://h.example/evil",
            Some("image/svg+xml"),
            "<svg onload='x()'/>",
        );
    let names = ["page", "text", "named", "svg", "evil"];
    let body: String = names
        .iter()
        .map(|name| format!("<img src='https://h.example/{name}'>"))
        .collect();
    let (output, report) = run(policy(), &world, html(&body).as_bytes());
    let reasons: Vec<_> = report
        .rows
        .iter()
        .map(|row| row.reason.map(|reason| reason.as_str()))
        .collect();
    assert_eq!(
        reasons,
        [
            Some("type-mismatch"),
            Some("not-an-image"),
            None,
            None,
            Some("not-an-image")
        ]
    );
    let text = String::from_utf8(output).unwrap();
    assert!(
        text.contains("Content-Type: image/gif\n")
            && text.contains("Content-Type: image/svg+xml\n")
    );
    assert!(
        text.contains(".gif\"\nContent-Location: https://h.example/named\n"),
        "{text}"
    );
}

#[test]
fn srcset_candidate_that_is_not_embedded_is_removed() {
    let g = "https://h.example/gone";
    for (srcset, expected) in [
        // A candidate that is embedded stays with its descriptor. `src` is also a candidate.
        (format!("https://h.example/2 2x, {g} 3x"), "<2> 2x"),
        (format!("{g} 2x, https://h.example/2 3x"), "<2> 3x"),
        (
            format!(" {g}?a, {g} 1.5x ,https://h.example/2 2x,{g} 4x, {g} 5x "),
            " <2> 2x ",
        ),
        (
            format!("https://h.example/2 20w, {g} 2000w, {g}?x 40w 50h"),
            "<2> 20w",
        ),
        // If no candidate is available, the picture of `src` is used, which is nine pixels wide.
        (format!("{g} 2x"), "<1>"),
        (g.to_owned(), "<1>"),
        (format!("{g} 1x, {g} 2x"), "<1>"),
        (format!("{g} 320w, {g} 640w"), "<1> 9w"),
        // A candidate that is not understood keeps its descriptor.
        (
            format!("https://h.example/2 2x, {g} (x) 3x"),
            "<2> 2x, <1> (x) 3x",
        ),
        (
            format!("https://h.example/2 2x, {g} &#51;x"),
            "<2> 2x, <1> &#51;x",
        ),
    ] {
        for [before, after] in [
            ["src='https://h.example/1' ", ""],
            ["", " src='https://h.example/1'"],
        ] {
            let body = format!("<img {before}srcset=\"{srcset}\"{after} alt=x>");
            let (output, report) = embedded(&html(&body));
            let pictures = pictures(output.as_bytes());
            let url = |number: u8| {
                let octets = gif(9, 9, number);
                pictures
                    .iter()
                    .find(|known| *known.1 == octets)
                    .map(|known| format!("cid:{}", known.0))
            };
            let expected = expected
                .replace("<1>", &url(1).unwrap())
                .replace("<2>", &url(2).unwrap_or_default());
            assert!(
                output.contains(&format!("srcset=\"{expected}\"")),
                "{srcset}: {expected}\n{output}"
            );
            assert!(!output.contains(g), "{output}");
            let left = report
                .rows
                .iter()
                .filter(|row| row.outcome == Outcome::Left);
            assert!(left.count() > 0, "{report:?}");
        }
    }
    // If `src` is not embedded, only the embedded candidates stay.
    for (srcset, expected) in [
        (format!("{g} 1x, https://h.example/2 2x"), "<2> 2x"),
        (
            format!("https://h.example/2 20w, {g} 2000w, https://h.example/1 90w"),
            "<2> 20w, <1> 90w",
        ),
        (
            format!("{g} (x) 1x, https://h.example/2 2x"),
            "<2> (x) 1x, <2> 2x",
        ),
    ] {
        for front in [
            "<picture><source ",
            "<img ",
            "<img src='https://h.example/lost' ",
        ] {
            let body = format!("{front}srcset=\"{srcset}\">");
            let (output, _) = embedded(&html(&body));
            let expected = with_urls(expected, output.as_bytes());
            assert!(
                output.contains(&format!("{front}srcset=\"{expected}\">")),
                "{srcset}: {expected}\n{output}"
            );
        }
    }
    // No picture takes its place.
    let mail = html(&format!("<img srcset='{g} 1x'>"));
    assert_bytes(embedded(&mail).0.as_bytes(), mail.as_bytes(), "no src");
}

/// Replaces the numbers of pictures (nine by nine pixels) by their Content-IDs.
pub(super) fn with_urls(text: &str, output: &[u8]) -> String {
    let mut text = text.to_owned();
    for (id, octets) in pictures(output) {
        for number in 1..=9 {
            if octets == gif(9, 9, number) {
                text = text.replace(&format!("<{number}>"), &format!("cid:{id}"));
            }
        }
    }
    text
}

/// Options of an `image-set()` of which some are missing, and the expected result. If a part of it is not understood,
/// all options refer to an embedded picture.
pub(super) const OPTIONS: [(&str, &str); 13] = [
    ("'H/2' 1x, 'H/gone' 2x", "'<2>' 1x"),
    ("'H/gone' 1x, 'H/2' 2x", "'<2>' 2x"),
    ("url(H/gone) 1x,url( H/2 ) 2x", "url( <2> ) 2x"),
    ("URL('H/2') 1x, 'H/gone'  2x ", "URL('<2>') 1x "),
    (
        "'H/gone' type('image/avif') 1x, 'H/2', url(H/gone?b) 2x, 'H/1' 192dpi, 'H/gone' 3x",
        "'<2>', '<1>' 192dpi",
    ),
    (
        " 'H/gone', 'H/gone'2x , 'H/2' calc(1x + 1x) ",
        " '<2>' calc(1x + 1x) ",
    ),
    (
        "'H/2' 1x, 'H/gone' 2x, linear-gradient(red, blue)",
        "'<2>' 1x, linear-gradient(red, blue)",
    ),
    (
        "linear-gradient(red, blue), 'H/gone' 2x, 'H/2' 1x",
        "linear-gradient(red, blue), '<2>' 1x",
    ),
    (
        "'H/2' 1x), image-set('H/1' 1x, 'H/gone' 2x",
        "'<2>' 1x), image-set('<1>' 1x",
    ),
    // If all pictures of a set are missing, the set does not change.
    (
        "'H/2' 1x), image-set('H/gone' 1x, 'H/gone' 2x",
        "'<2>' 1x), image-set('H/gone' 1x, 'H/gone' 2x",
    ),
    ("'H/2' 1x, none, 'H/gone' 2x", "'<2>' 1x, none, '<2>' 2x"),
    (
        "'H/2' 1x, /* two */ 'H/gone' 2x",
        "'<2>' 1x, /* two */ '<2>' 2x",
    ),
    ("'H/2' 1x, 'H/gone' 2x \\31 x", "'<2>' 1x, '<2>' 2x \\31 x"),
];

#[test]
fn image_set_choice_that_is_not_embedded_is_removed() {
    for (options, expected) in OPTIONS {
        for (front, behind) in [
            ("<style>b { background: image-set(", ") }</style>"),
            ("<b style=\"background: -webkit-image-set(", ")\">x</b>"),
            (
                "<img src='https://h.example/3' style=\"background: image-set(",
                ")\">",
            ),
        ] {
            let named = |text: &str| text.replace("H/", "https://h.example/");
            let body = format!("{front}{}{behind}", named(options));
            let (output, _) = embedded(&html(&body));
            let front = front.replace("https://h.example/3", "<3>");
            let numbered = format!("{front}{}{behind}", named(expected));
            let expected = with_urls(&numbered, output.as_bytes());
            assert!(
                output.contains(&expected),
                "{options}: {expected}\n{output}"
            );
        }
    }
    // Also for quotation marks written as character references.
    let body = "<i style='background:image-set(&quot;https://h.example/gone&quot; 1x,&quot;https://h.example/2&quot; 2x)'>";
    let (output, _) = embedded(&html(body));
    assert!(!output.contains("https://h.example/gone"), "{output}");
}

#[test]
fn size_that_was_not_requested_keeps_its_url() {
    let far = "https://other.example/big.png";
    let plain = "http://h.example/2";
    let near = "https://h.example/1";
    let first = data(&gif(9, 9, 1));
    let busy = Refusal::temporary(Reason::HttpStatus, "status 503");
    let of = |change: fn(&mut Policy)| {
        let mut policy = policy();
        change(&mut policy);
        policy
    };
    // A policy, the size that is embedded, and the URL that must not be requested.
    let mut cases: Vec<(&str, Policy, &str, &str)> = vec![
        (
            "--embed data",
            of(|it| it.embed.remote = false),
            &first,
            far,
        ),
        (
            "--fetch https",
            of(|it| it.fetch = [Scheme::Https].into()),
            near,
            plain,
        ),
        (
            "--allow-host",
            policy().with_allow_hosts(["h.example".parse().unwrap()]),
            near,
            far,
        ),
        (
            "--deny-host",
            policy().with_deny_hosts(["other.example".parse().unwrap()]),
            near,
            far,
        ),
        (
            "--max-fetches",
            of(|it| it.limits.fetches = 1),
            near,
            "https://h.example/2",
        ),
        (
            "--max-body",
            of(|it| it.limits.body = 200),
            near,
            "https://h.example/large",
        ),
        (
            "a server that does not respond",
            policy(),
            near,
            "https://h.example/busy",
        ),
    ];
    for (what, policy, size, url) in cases.drain(..) {
        for body in [
            format!("<img srcset=\"{size} 1x, {url} 2x\">"),
            format!("<img srcset=\"{size} 10w, {url} 20w\" sizes=40px>"),
            format!("<img src=\"{size}\" srcset=\"{url} 2x\">"),
            format!(
                "<picture><source srcset=\"{size} 1x, {url} 2x\"><img src=\"{size}\"></picture>"
            ),
            format!("<style>a{{background:image-set(url({size}) 1x, url({url}) 2x)}}</style>"),
            format!("<p style=\"background:-webkit-image-set(url({size}) 1x, '{url}' 2x)\">"),
        ] {
            let world = world()
                .with(
                    "https://h.example/large",
                    Some("image/gif"),
                    &*[gif(9, 9, 7), vec![0; 500]].concat(),
                )
                .failing("https://h.example/busy", busy.clone());
            let (output, _) = run(policy.clone(), &world, html(&body).as_bytes());
            let output = String::from_utf8(output).unwrap();
            assert!(output.contains("cid:"), "{what}: {output}");
            assert!(output.contains(url), "{what}: {body}\n{output}");
        }
    }
}

#[test]
fn meaningless_fragment_is_dropped_and_svg_fragment_url_is_left() {
    let svg = "<svg xmlns='http://www.w3.org/2000/svg'><view id='part' viewBox='9 9 9 9'/></svg>";
    let world = world().with("https://h.example/x.svg", Some("image/svg+xml"), svg);
    let sibling = |essence: &str, name: &str, body: &str| {
        format!(
            "--r\nContent-Type: {essence}\nContent-Location: https://h.example/{name}\nContent-ID: <{name}>\n\n{body}\n"
        )
    };
    let urls = [
        "https://h.example/1#x",
        "https://h.example/x.svg",
        "https://h.example/x.svg#",
        "https://h.example/x.svg#part",
        "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'/%3E#part",
        "https://h.example/here.gif#x",
        "https://h.example/here.svg",
        "https://h.example/here.svg#part",
    ];
    let body: String = urls.map(|url| format!("<img src=\"{url}\">")).concat();
    let mail = format!(
        "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=r\n\n--r\nContent-Type: text/html\n\n{body}<img src=\"here.gif#x\">\n{}{}--r--\n",
        sibling("image/gif", "here.gif", "GIF89a"),
        sibling("image/svg+xml", "here.svg", svg),
    );
    let (output, report) = run(policy(), &world, mail.as_bytes());
    let output = String::from_utf8(output).unwrap();
    let pictures = pictures(output.as_bytes());
    let id = |octets: &[u8]| pictures.iter().find(|known| known.1 == octets).unwrap().0;
    let (gif, drawn) = (id(&gif(9, 9, 1)), id(svg.as_bytes()));
    let expected = [
        format!("cid:{gif}"),
        format!("cid:{drawn}"),
        format!("cid:{drawn}"),
        urls[3].to_owned(),
        urls[4].to_owned(),
        "cid:here.gif".to_owned(),
        "cid:here.svg".to_owned(),
        urls[7].to_owned(),
    ];
    for expected in expected {
        assert!(
            output.contains(&format!("<img src=\"{expected}\">")),
            "{expected}: {output}"
        );
    }
    let left: Vec<_> = report
        .rows
        .iter()
        .filter(|row| row.outcome == Outcome::Left)
        .collect();
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(
        left.iter()
            .all(|row| row.reason == Some(Reason::NotAnImage))
    );
}

#[test]
fn a_host_without_a_scheme_is_asked_by_https_and_else_by_http() {
    for (schemes, url) in [
        ([Scheme::Https].as_slice(), "https://h.example/x"),
        (&[Scheme::Http], "http://h.example/x"),
        (&[Scheme::Http, Scheme::Https], "https://h.example/x"),
    ] {
        let world = Canned::new().with(url, Some("image/gif"), gif(9, 9, 1));
        let mut policy = policy();
        policy.fetch = schemes.iter().copied().collect();
        let (output, _) = run(policy, &world, html("<img src=//h.example/x>").as_bytes());
        assert_shows(&output, &[&gif(9, 9, 1)]);
    }
}

#[test]
fn what_may_not_be_asked_or_does_not_fit_keeps_its_url() {
    let body: String = (0..9)
        .map(|number| format!("<img src='https://h.example/{number}'>"))
        .collect();
    let mail = html(&body);
    let reasons = |change: &dyn Fn(&mut Policy)| {
        let mut policy = policy();
        change(&mut policy);
        let (output, report) = run(policy, &world(), mail.as_bytes());
        let left: Vec<String> = report
            .rows
            .iter()
            .filter_map(|row| Some(row.reason?.as_str().to_owned()))
            .collect();
        assert_eq!(
            cids(&String::from_utf8(output).unwrap()).len(),
            9 - left.len()
        );
        left
    };
    assert_eq!(
        reasons(&|policy| policy.fetch.clear()),
        ["scheme-not-allowed"; 9]
    );
    assert_eq!(
        reasons(&|policy| policy.limits.fetches = 4),
        ["too-many-fetches"; 5]
    );
    let growth = reasons(&|policy| policy.limits.growth = 1_500);
    assert!(
        (1..9).contains(&growth.len()) && growth.iter().all(|word| word == "growth-limit"),
        "{growth:?}"
    );
    let message = reasons(&|policy| policy.limits.message = Some(2_000));
    assert!(
        (1..9).contains(&message.len()) && message.iter().all(|word| word == "message-limit"),
        "{message:?}"
    );
    assert!(reasons(&|policy| policy.limits.message = Some(20_000)).is_empty());
}

/// An attacker knows which picture will be embedded, and adds another picture with its Content-ID.
#[test]
fn a_planted_part_with_our_form_of_content_id_is_not_taken_for_ours() {
    let one = gif(9, 9, 1);
    let (output, _) = embedded(&html(&format!("<img src='{}'>", data(&one))));
    let id = cids(&output)[0].clone();
    let planted = format!(
        "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=r\n\n--r\nContent-Type: text/html\n\n<img src='{}'>\n--r\n\
         Content-Type: image/gif\nContent-ID: <{id}>\n\nGIF89a, but another\n--r--\n",
        data(&one)
    );
    let (output, _) = embedded(&planted);
    assert_shows(output.as_bytes(), &[&one]);
    assert_ne!(cids(&output)[0], id);
}

#[test]
fn signed_mail_and_links_that_are_no_pictures_are_unchanged() {
    let one = data(&gif(9, 9, 1));
    let part = format!("Content-Type: text/html\n\n<img src='{one}'>");
    let signed = format!(
        "MIME-Version: 1.0\nContent-Type: multipart/signed; boundary=s\n\n--s\n{part}\n--s\nContent-Type: application/pgp-signature\n\nx\n--s--\n"
    );
    let (output, report) = embedded(&signed);
    assert_bytes(output.as_bytes(), signed.as_bytes(), "signed");
    assert_eq!(report.rows[0].reason.unwrap().as_str(), "signed");
    for body in [
        "<script src='https://h.example/1'></script><iframe src='https://h.example/1'></iframe>",
        "<a href='https://h.example/1'>x</a><img data-src='https://h.example/1'>",
        "<style>@font-face{src:url(https://h.example/1)}</style><audio src='https://h.example/1'>",
    ] {
        let mail = html(body);
        let (output, report) = embedded(&mail);
        assert_bytes(output.as_bytes(), mail.as_bytes(), body);
        assert!(report.rows.is_empty(), "{report:?}");
    }
}

#[test]
fn nobody_is_asked_for_what_a_document_shows_that_must_stay_as_it_is() {
    let body = "<img src='https://h.example/1'><link rel=stylesheet href='https://h.example/s'>";
    let document = format!("Content-Type: text/html\n\n{body}");
    let inside = |essence: &str| {
        format!(
            "MIME-Version: 1.0\nContent-Type: {essence}; boundary=s\n\n--s\n{document}\n--s\n\nx\n--s--\n"
        )
    };
    let alone = |fields: &str, more: &str| format!("MIME-Version: 1.0\n{fields}\n\n{body}{more}\n");
    for (mail, reason) in [
        (inside("multipart/signed"), Reason::Signed),
        (inside("multipart/encrypted"), Reason::Encrypted),
        (inside("multipart/report"), Reason::InsideReport),
        (
            alone("Content-Type: text/html; charset=utf-16", ""),
            Reason::CharsetNotSupported,
        ),
        (
            alone(
                "Content-Type: text/html",
                "<a href=3D\"https://h.example/2\">x</a>",
            ),
            Reason::LooksEncoded,
        ),
    ] {
        let mut policy = policy();
        policy.embed.styles = true;
        let world = world();
        let expander = expander(policy.clone(), world.clone());
        let forecast = expander.forecast(mail.as_bytes(), "test");
        let (output, report) = run(policy, &world, mail.as_bytes());
        assert!(world.asked().is_empty(), "{reason:?}: {:?}", world.asked());
        assert_bytes(&output, mail.as_bytes(), "it stays");
        assert!(!report.rows.is_empty(), "{reason:?}");
        for row in &report.rows {
            assert_eq!((row.outcome, row.reason), (Outcome::Left, Some(reason)));
        }
        let forecasts: Vec<_> = forecast.rows.iter().map(|row| row.reason).collect();
        let reasons: Vec<_> = report.rows.iter().map(|row| row.reason).collect();
        assert_eq!(forecasts, reasons);
    }
}

#[test]
fn links_of_a_signed_document_stay_and_another_document_is_still_embedded() {
    let mail = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=m\n\n--m\n\
         Content-Type: text/html\n\n<img src='https://h.example/1'><a href=3D\"https://h.example/2\">x</a>\n--m\n\
         Content-Type: multipart/signed; boundary=s\n\n--s\nContent-Type: multipart/related; boundary=r\n\n--r\n\
         Content-Type: text/html\n\n<img src='https://h.example/here'>\n--r\nContent-Type: image/gif\n\
         Content-Location: https://h.example/here\n\nGIF89a\n--r--\n--s\n\nx\n--s--\n--m\n\
         Content-Type: text/html\n\n<img src='https://h.example/1'>\n--m--\n";
    let world = world();
    let (output, report) = run(policy(), &world, mail.as_bytes());
    let asked: Vec<_> = world
        .asked()
        .into_iter()
        .map(|one| one.url().to_owned())
        .collect();
    assert_eq!(asked, ["https://h.example/1"]);
    assert_shows(&output, &[&gif(9, 9, 1)]);
    let text = String::from_utf8(output).unwrap();
    assert!(
        text.contains("<img src='https://h.example/here'>"),
        "{text}"
    );
    let rows: Vec<_> = report
        .rows
        .iter()
        .map(|row| (row.part.as_str(), row.reason))
        .collect();
    assert_eq!(
        rows,
        [
            ("1", Some(Reason::LooksEncoded)),
            ("2.1.1", Some(Reason::Signed)),
            ("3", None)
        ]
    );
}

#[test]
fn a_forecast_says_what_would_be_asked_and_asks_nobody() {
    let body = format!(
        "<img src='https://h.example/1'><img src='{}'><img src='https://h.example/2' width=1 height=1>",
        data(&gif(9, 9, 1))
    );
    let world = world();
    let expander = expander(policy(), world.clone());
    let report = expander.forecast(html(&body).as_bytes(), "test");
    let outcomes: Vec<_> = report.rows.iter().map(|row| row.outcome).collect();
    assert_eq!(
        outcomes,
        [Outcome::WouldFetch, Outcome::WouldExpand, Outcome::Left]
    );
    assert!(world.asked().is_empty());
}

#[test]
fn thousands_of_pictures_and_broken_ones_take_linear_time() {
    let body: String = (0..3_000_u32)
        .map(|number| {
            let mut octets = gif(9, 9, 1);
            octets.extend(number.to_be_bytes());
            match number % 3 {
                0 => format!("<img src='{}'>\n", data(&octets)),
                1 => "<img src='data:image/gif;base64,*'>\n".to_owned(),
                _ => "<img src='data:text/html,x'>\n".to_owned(),
            }
        })
        .collect();
    let (output, report) = embedded(&html(&body));
    assert_eq!(cids(&output).len(), 1_000);
    assert_eq!(
        report
            .rows
            .iter()
            .filter(|row| row.outcome == Outcome::Expanded)
            .count(),
        1_000
    );
}

#[test]
fn places_that_would_take_much_more_than_the_mail_are_left_and_told_of_in_one_row() {
    let count = 20_000;
    let body: String = (0..count)
        .map(|at| format!("<img src=data:,{at:x}>"))
        .collect();
    let mail = format!("Content-Type: text/html\n\n{body}\n");
    let (output, report) = run(policy(), &world(), mail.as_bytes());
    assert_bytes(&output, mail.as_bytes(), "none of them is a picture");
    let last = report.rows.last().unwrap();
    assert_eq!(
        last.reason.map(|reason| reason.as_str()),
        Some("too-much-work")
    );
    let told = report.rows.len() - 1;
    assert!((4_000..count).contains(&told), "{told} rows");
    assert!(
        last.detail
            .starts_with(&format!("{} further links to pictures", count - told)),
        "{}",
        last.detail
    );
}

#[test]
fn embed_makes_no_more_parts_than_the_part_limit() {
    let body: String = (0..9)
        .map(|at| format!("<img src={}>", data(&gif(9, 9, at))))
        .collect();
    let mail = format!("Content-Type: text/html\n\n{body}\n");
    let mut policy = policy();
    policy.limits.parts = 8;
    let (output, report) = run(policy, &world(), mail.as_bytes());
    let limits = ScanLimits {
        parts: 8,
        ..ScanLimits::default()
    };
    let tree = mime::scan(&output, &limits);
    let whole = mime::scan(&output, &ScanLimits::default());
    assert_eq!(
        tree.ids().count(),
        whole.ids().count(),
        "nothing stands behind the limit"
    );
    let outcome = |outcome| {
        report
            .rows
            .iter()
            .filter(|row| row.outcome == outcome)
            .count()
    };
    assert!(outcome(Outcome::Expanded) > 0);
    let left: Vec<&str> = report
        .rows
        .iter()
        .filter_map(|row| Some(row.reason?.as_str()))
        .collect();
    assert_eq!(left.len() + outcome(Outcome::Expanded), 9);
    assert!(
        left.iter().all(|reason| *reason == "too-many-parts") && !left.is_empty(),
        "{left:?}"
    );
}

#[test]
fn a_work_budget_that_ends_before_the_documents_is_a_row() {
    let mut policy = policy();
    policy.limits.work = 0;
    policy.limits.growth = 10;
    let mail = format!(
        "Content-Type: text/html\n\n<img src={}>\n",
        data(&gif(9, 9, 1))
    );
    let (output, report) = run(policy, &world(), mail.as_bytes());
    assert_bytes(&output, mail.as_bytes(), "nothing is embedded");
    let row = report
        .rows
        .iter()
        .find(|row| row.kind == Kind::Embed)
        .unwrap();
    assert_eq!(
        row.reason.map(|reason| reason.as_str()),
        Some("too-much-work")
    );
}
