//! `--embed-kinds style`: style sheets of `<link>` and `@import`, and the pictures that they display, become parts of
//! the mail.

use embody::fetch::Canned;
use embody::policy::Scheme;
use embody::report::{Outcome, Reason};
use embody::{Policy, Report};

use super::common::mail::{assert_bytes, expander};
use super::embed::{OPTIONS, cids, data, gif, html, pictures, policy, run, with_urls};

fn styles() -> Policy {
    let mut policy = policy();
    policy.embed.styles = true;
    policy
}

fn css(world: Canned, url: &str, text: &str) -> Canned {
    world.with(url, Some("text/css; charset=utf-8"), text)
}

fn world() -> Canned {
    let mut world = Canned::new();
    for number in 0..9 {
        let url = format!("https://h.example/{number}");
        world = world.with(&url, Some("image/gif"), gif(9, 9, number));
    }
    world
}

fn asked(world: &Canned) -> Vec<String> {
    let mut asked: Vec<String> = world
        .asked()
        .into_iter()
        .map(|asked| asked.url().to_owned())
        .collect();
    asked.sort();
    asked.dedup();
    asked
}

/// Returns the style sheets of a mail by Content-ID, as text.
fn sheets(output: &[u8]) -> Vec<(String, String)> {
    let text = |octets: Vec<u8>| String::from_utf8_lossy(&octets).into_owned();
    pictures(output)
        .into_iter()
        .map(|(id, octets)| (id, text(octets)))
        .filter(|(_, text)| !text.starts_with("GIF"))
        .collect()
}

fn left(report: &Report) -> Vec<Reason> {
    report.rows.iter().filter_map(|row| row.reason).collect()
}

const LINK: &str = "<link rel=stylesheet href='https://h.example/style/a.css'>";

#[test]
fn choices_of_image_set_in_a_style_sheet_are_removed_if_not_embedded() {
    for (options, expected) in OPTIONS {
        let named = |text: &str| text.replace("H/", "https://h.example/");
        let sheet = format!("b {{ background: image-set({}) }}", named(options));
        let world = css(world(), "https://h.example/style/a.css", &sheet);
        let (output, _) = run(styles(), &world, html(LINK).as_bytes());
        let numbered = format!("b {{ background: image-set({}) }}", named(expected));
        let expected = with_urls(&numbered, &output);
        assert_eq!(sheets(&output)[0].1, expected, "{options}");
    }
}

#[test]
fn a_style_sheet_is_a_part_and_its_pictures_are_parts() {
    let world = css(
        world(),
        "https://h.example/style/a.css",
        "b { background: url(../1) } i { background: url(\"gone\"), url(//h.example/2#x) }\n\
         @font-face { src: url(font.woff) } u { filter: url(#here) }",
    );
    let (output, report) = run(styles(), &world, html(LINK).as_bytes());
    let sheets = sheets(&output);
    let (id, text) = &sheets[0];
    assert_eq!(sheets.len(), 1);
    let ids = cids(text);
    assert_eq!(pictures(&output)[&ids[0]], gif(9, 9, 1));
    assert_eq!(pictures(&output)[&ids[1]], gif(9, 9, 2));
    let expected = format!(
        "b {{ background: url(cid:{}) }} i {{ background: url(\"https://h.example/style/gone\"), url(cid:{}) }}\n\
         @font-face {{ src: url(https://h.example/style/font.woff) }} u {{ filter: url(#here) }}",
        ids[0], ids[1]
    );
    assert_bytes(text.as_bytes(), expected.as_bytes(), "the style sheet");
    let whole = String::from_utf8(output).unwrap();
    assert!(
        whole.contains(&format!("<link rel=stylesheet href='cid:{id}'>")),
        "{whole}"
    );
    assert!(
        whole.contains("Content-Type: text/css; charset=\"utf-8\"\n"),
        "{whole}"
    );
    assert!(
        whole.contains(".css\"\nContent-Location: https://h.example/style/a.css\n"),
        "{whole}"
    );
    let urls: Vec<&str> = report
        .rows
        .iter()
        .map(|row| row.url.as_deref().unwrap())
        .collect();
    assert_eq!(
        urls,
        [
            "https://h.example/style/a.css",
            "https://h.example/1",
            "https://h.example/style/gone",
            "https://h.example/2"
        ]
    );
    assert_eq!(left(&report), [Reason::HttpStatus]);
}

#[test]
fn without_the_kind_style_sheets_stay() {
    let world = css(
        world(),
        "https://h.example/style/a.css",
        "b { background: url(/1) }",
    );
    let mail = html(LINK);
    let (output, report) = run(policy(), &world, mail.as_bytes());
    assert_bytes(&output, mail.as_bytes(), "not retrieved");
    assert!(report.rows.is_empty() && world.asked().is_empty());
}

#[test]
fn css_imports_are_embedded_even_if_the_style_sheets_import_each_other() {
    let world = css(
        css(
            css(
                world(),
                "https://h.example/style/a.css",
                "@import 'b.css'; a { background: url(/1) }",
            ),
            "https://h.example/style/b.css",
            "@import url(c.css) screen; b { background: url(/2) }",
        ),
        "https://h.example/style/c.css",
        "@import \"a.css\"; c { background: url(/1) }",
    );
    let mail = html(&format!(
        "<style>@import url(https://h.example/style/b.css);</style>{LINK}"
    ));
    let (output, report) = run(styles(), &world, mail.as_bytes());
    assert!(left(&report).is_empty(), "{report:?}");
    let sheets = sheets(&output);
    assert_eq!(sheets.len(), 3, "{sheets:?}");
    let of = |rule: &str| sheets.iter().find(|(_, text)| text.contains(rule)).unwrap();
    let (a, b, c) = (of("a {"), of("b {"), of("c {"));
    assert!(a.1.starts_with(&format!("@import 'cid:{}';", b.0)), "{a:?}");
    assert!(
        b.1.starts_with(&format!("@import url(cid:{}) screen;", c.0)),
        "{b:?}"
    );
    assert!(
        c.1.starts_with(&format!("@import \"cid:{}\";", a.0)),
        "{c:?}"
    );
    let text = String::from_utf8(output.clone()).unwrap();
    assert!(
        text.contains(&format!("@import url(cid:{});", b.0)),
        "{text}"
    );
    assert_eq!(text.matches("Content-Type: image/gif").count(), 2);
    assert_eq!(asked(&world).len(), 5);
}

#[test]
fn a_chain_of_imports_is_bounded() {
    let mut world = Canned::new();
    for number in 0..20 {
        let text = format!("@import '{}'; p {{ top: {number}px }}", number + 1);
        world = css(world, &format!("https://h.example/{number}"), &text);
    }
    let mail = html("<link rel=stylesheet href=https://h.example/0>");
    let mut policy = styles();
    policy.limits.depth = 5;
    // Another run can continue: it starts at the style sheets that are already parts.
    let expansion = expander(policy, world.clone())
        .expand(mail.as_bytes(), "test")
        .unwrap();
    let report = &expansion.report;
    let output = expansion.output().into_bytes().into_owned();
    assert_eq!(left(report), [Reason::TooDeep]);
    assert_eq!(sheets(&output).len(), 5);
    assert_eq!(asked(&world).len(), 5);
    let mut policy = styles();
    policy.limits.fetches = 3;
    let (output, report) = run(policy, &world, mail.as_bytes());
    assert_eq!(
        (left(&report), sheets(&output).len()),
        (vec![Reason::TooManyFetches], 3)
    );
}

#[test]
fn retrieved_content_that_is_no_css_is_not_embedded() {
    let world = Canned::new()
        .with(
            "https://h.example/html",
            Some("text/css"),
            " <!-- x --> <html><p>sign in",
        )
        .with(
            "https://h.example/plain",
            Some("text/plain"),
            "p { color: red }",
        )
        .with("https://h.example/unnamed", None, "p { color: red }")
        .with("https://h.example/picture", Some("text/css"), gif(9, 9, 1))
        .with(
            "https://h.example/utf16",
            Some("text/css; charset=utf-16"),
            "p { color: red }",
        )
        .with(
            "https://h.example/good",
            Some("Text/CSS"),
            "p { color: red }",
        );
    let names = ["html", "plain", "unnamed", "picture", "utf16", "good"];
    let body: String = names
        .iter()
        .map(|name| format!("<link rel='stylesheet' href='https://h.example/{name}'>\n"))
        .collect();
    let (output, report) = run(styles(), &world, html(&body).as_bytes());
    let [mismatch, charset] = [Reason::TypeMismatch, Reason::CharsetNotSupported];
    assert_eq!(
        left(&report),
        [mismatch, mismatch, mismatch, mismatch, charset]
    );
    let text = String::from_utf8(output).unwrap();
    assert_eq!(text.matches("href='cid:").count(), 1, "{text}");
    // A changed style sheet would not have this digest. A link that is not to a style sheet is not changed either.
    let body = "<link rel=stylesheet integrity=sha256-x href='https://h.example/good'><link rel=icon href='https://h.example/good'>";
    let mail = html(body);
    let (output, _) = run(styles(), &world, mail.as_bytes());
    assert_bytes(&output, mail.as_bytes(), body);
}

#[test]
fn style_sheet_in_a_data_url_becomes_a_part_unless_its_urls_are_relative() {
    let url = "data:text/css,b%20{background:url(https://h.example/1)}";
    let body = format!(
        "<link rel=stylesheet href=\"{url}\"><link rel=stylesheet href='data:text/css,p{{top:url(x)}}'>\
         <link rel=stylesheet href='data:text/html,x'>"
    );
    let (output, report) = run(styles(), &world(), html(&body).as_bytes());
    assert_eq!(left(&report), [Reason::NoBase, Reason::TypeMismatch]);
    let sheets = sheets(&output);
    let id = cids(&sheets[0].1)[0].clone();
    assert_eq!(sheets[0].1, format!("b {{background:url(cid:{id})}}"));
    assert_eq!(pictures(&output)[&id], gif(9, 9, 1));
}

#[test]
fn style_sheets_of_the_mail_come_first_and_may_import() {
    let mail = format!(
        "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=r\n\n--r\nContent-Type: text/html\n\n{LINK}\n--r\n\
         Content-Type: text/css\nContent-ID: <mine@x>\nContent-Location: https://h.example/style/a.css\n\n\
         @import 'b.css'; b {{ background: url(/1) }}\n--r--\n"
    );
    let world = css(
        world(),
        "https://h.example/style/b.css",
        "@import 'https://h.example/style/a.css'; c { background: url(../2) }",
    );
    let (output, report) = run(styles(), &world, mail.as_bytes());
    assert!(left(&report).is_empty(), "{report:?}");
    let text = String::from_utf8(output.clone()).unwrap();
    assert!(text.contains("href='cid:mine@x'"), "{text}");
    assert!(text.contains("\n@import 'cid:"), "{text}");
    let sheets = sheets(&output);
    assert_eq!(sheets.len(), 2, "{sheets:?}");
    let b = sheets
        .iter()
        .find(|(_, text)| text.contains("c {"))
        .unwrap();
    assert!(b.1.starts_with("@import 'cid:mine@x';"), "{b:?}");
    assert_eq!(asked(&world).len(), 3);
}

#[test]
fn equal_style_sheets_are_one_part_and_different_bases_make_two() {
    let same = "b { background: url(1) }";
    let world = css(
        css(
            css(world(), "https://h.example/a.css", same),
            "https://h.example/b.css",
            same,
        ),
        "https://h.example/style/c.css",
        same,
    );
    let body = "<link rel=stylesheet href=https://h.example/a.css><link rel=stylesheet href=https://h.example/b.css>\
                <link rel=stylesheet href=https://h.example/style/c.css>";
    let (output, _) = run(styles(), &world, html(body).as_bytes());
    assert_eq!(sheets(&output).len(), 2);
    let text = String::from_utf8(output).unwrap();
    let ids = cids(&text);
    assert!(ids[0] == ids[1] && ids[1] != ids[2], "{text}");
}

#[test]
fn style_sheet_beyond_the_growth_limit_is_embedded_by_a_later_run() {
    let large = format!("b {{ background: url(/1) }} /* {} */", "x".repeat(5_000));
    let world = css(world(), "https://h.example/style/a.css", &large);
    let mail = html(&format!("{LINK}<img src='{}'>", data(&gif(9, 9, 3))));
    let mut policy = styles();
    policy.limits.growth = 2_000;
    let (output, report) = run(policy, &world, mail.as_bytes());
    assert_eq!(left(&report), [Reason::GrowthLimit]);
    assert!(sheets(&output).is_empty());
    let (output, report) = run(styles(), &world, &output);
    assert!(
        report
            .rows
            .iter()
            .all(|row| row.outcome == Outcome::Expanded),
        "{report:?}"
    );
    assert_eq!(sheets(&output).len(), 1);
}

#[test]
fn nested_and_outer_message_each_get_their_own_style_sheet() {
    let world = css(
        world(),
        "https://h.example/style/a.css",
        "b { background: url(/1) }",
    );
    let part = format!("Content-Type: text/html\n\n{LINK}\n");
    let inner = format!("Content-Type: message/rfc822\n\nMIME-Version: 1.0\n{part}");
    let mail = format!(
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=m\n\n--m\n{part}\n--m\n{inner}\n--m--\n"
    );
    let (output, report) = run(styles(), &world, mail.as_bytes());
    assert!(left(&report).is_empty(), "{report:?}");
    let text = String::from_utf8(output).unwrap();
    assert_eq!(text.matches("Content-Type: text/css").count(), 2, "{text}");
    assert_eq!(text.matches("Content-Type: image/gif").count(), 2, "{text}");
}

#[test]
fn http_is_tried_where_https_failed_and_only_for_a_reference_without_a_scheme() {
    let world = Canned::new()
        .with("http://h.example/x", Some("image/gif"), gif(9, 9, 1))
        .with("http://h.example/s", Some("text/css"), "b { top: 0 }");
    let mut policy = styles();
    let body = "<img src='https://h.example/x'><img src='//h.example/x'><link rel=stylesheet href='//h.example/s'>\
                <img src='//h.example/gone'>";
    let (output, report) = run(policy.clone(), &world, html(body).as_bytes());
    let text = String::from_utf8(output.clone()).unwrap();
    assert!(
        text.contains("<img src='https://h.example/x'><img src='cid:"),
        "{text}"
    );
    assert!(
        text.contains("href='cid:") && text.contains("src='//h.example/gone'"),
        "{text}"
    );
    assert!(
        text.contains("Content-Location: http://h.example/x\n"),
        "{text}"
    );
    assert_eq!(left(&report), [Reason::HttpStatus; 2]);
    assert_eq!(pictures(&output).len(), 2);
    policy.fetch = [Scheme::Https].into();
    let world = world.clone();
    let (_, report) = run(policy, &world, html(body).as_bytes());
    // If only https is allowed, each of these is refused, in every spelling.
    assert_eq!(left(&report).len(), 3);
}

/// Returns the largest number of times that the same Content-ID is in a mail.
fn most_alike(output: &[u8]) -> usize {
    let text = String::from_utf8_lossy(output).into_owned();
    let ids = text.lines().filter(|line| line.starts_with("Content-ID:"));
    let mut counts = std::collections::BTreeMap::new();
    for id in ids {
        *counts.entry(id.to_owned()).or_insert(0) += 1;
    }
    counts.into_values().max().unwrap_or_default()
}

#[test]
fn equal_octets_of_two_charsets_or_two_kinds_have_two_ids() {
    let mut policy = styles();
    policy.embed.fonts = true;
    let link = |url: &str| format!("<link rel=stylesheet href=\"{url}\">");
    let both = "wOFFp%7B%7D";
    for (body, parts) in [
        (
            link("data:text/css;charset=utf-8,p{color:red}")
                + &link("data:text/css;charset=iso-8859-1,p{color:red}")
                + &link("data:text/css,p{color:red}")
                + &link("data:text/css;charset=utf-8,p{color:red}"),
            3,
        ),
        (
            link(&format!("data:text/css,{both}"))
                + &format!("<style>@font-face {{ src: url(data:font/woff,{both}) }}</style>"),
            2,
        ),
    ] {
        let (output, report) = run(policy.clone(), &world(), html(&body).as_bytes());
        assert_eq!(left(&report), [], "{body}");
        assert_eq!(
            most_alike(&output),
            1,
            "{}",
            String::from_utf8_lossy(&output)
        );
        assert_eq!(pictures(&output).len(), parts, "{body}");
        // Each link refers to the part for its own charset and kind.
        let text = String::from_utf8(output.clone()).unwrap();
        for id in cids(&text) {
            assert!(text.contains(&format!("<{id}>")), "{text}");
        }
        assert_eq!(
            cids(&text)
                .into_iter()
                .collect::<std::collections::BTreeSet<_>>()
                .len(),
            parts
        );
    }
}
