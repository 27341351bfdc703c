//! Links in hostile and malformed documents, resolved with the whole filter. No bytes are lost, and the time is linear.

use super::common::mail::expander;
use std::time::{Duration, Instant};

use embody::Policy;
use embody::fetch::NoFetch;
use embody::report::{Outcome, Reason, Report, Setting};

const BASE: &str = "Content-Base: http://www.example.org/a/b/c\n";

fn run_with(policy: Policy, mail: &[u8]) -> (Vec<u8>, Report) {
    let expander = expander(policy, NoFetch);
    let expansion = expander.expand(mail, "test").expect("never deferred");
    (
        expansion.output().into_bytes().into_owned(),
        expansion.report,
    )
}

fn run(mail: &[u8]) -> (Vec<u8>, Report) {
    run_with(Policy::default(), mail)
}

fn html(header: &str, body: &str) -> Vec<u8> {
    format!("MIME-Version: 1.0\n{header}Content-Type: text/html; charset=utf-8\n\n{body}")
        .into_bytes()
}

/// Compares bytes. A failure shows only a short part of them.
#[track_caller]
fn assert_same(actual: &[u8], expected: &[u8], what: &str) {
    let shown = |bytes: &[u8], from: usize| {
        let to = bytes.len().min(from + 60);
        bytes[from.min(to)..to].escape_ascii().to_string()
    };
    let same = actual
        .iter()
        .zip(expected)
        .take_while(|(one, other)| one == other)
        .count();
    assert!(
        actual == expected,
        "{what}: {} and not {} bytes, at {same} {:?} and not {:?}",
        actual.len(),
        expected.len(),
        shown(actual, same),
        shown(expected, same)
    );
}

/// A name, a document of a given size, and the expected result.
type Hostile = (&'static str, fn(usize) -> String, fn(&str) -> String);

/// Returns the document with `href=x` resolved against the default base.
fn resolved(document: &str) -> String {
    document.replace("href=x", "href=http://www.example.org/a/b/x")
}

fn unchanged(document: &str) -> String {
    document.to_owned()
}

const HOSTILE: &[Hostile] = &[
    (
        "a tag that never ends",
        |size| format!("<a href=x {}", "z ".repeat(size / 2)),
        unchanged,
    ),
    (
        "a value that never ends",
        |size| format!("<a href=x><a href=\"x{}", "y".repeat(size)),
        resolved,
    ),
    (
        "tags that never end",
        |size| "<a href=x ".repeat(size / 10),
        unchanged,
    ),
    (
        "a comment that never ends",
        |size| format!("<a href=x><!-- {}", "<a href=x>".repeat(size / 10)),
        |document| document.replacen("href=x", "href=http://www.example.org/a/b/x", 1),
    ),
    (
        "a style that never ends",
        |size| format!("<a href=x><style>{}", "a{background:url(".repeat(size / 17)),
        resolved,
    ),
    (
        "NULs between tags",
        |size| "\0<a href=x>\0\0".repeat(size / 13),
        resolved,
    ),
    (
        "NULs in a tag",
        |size| format!("<a {} href=x>", "\0 ".repeat(size / 2)),
        resolved,
    ),
    (
        "NULs in a value",
        |size| format!("<a title=\"{}\" href=x>", "\0".repeat(size)),
        resolved,
    ),
    (
        "a long attribute",
        |size| format!("<a title=\"{}\" href=x>", "t".repeat(size)),
        resolved,
    ),
    (
        "a long attribute name",
        |size| format!("<a {} href=x>", "t".repeat(size)),
        resolved,
    ),
    (
        "a long link",
        |size| format!("<a href=http:{}><a href=x>", "x/".repeat(size / 2)),
        |document| resolved(&document.replace("href=http:", "href=http://www.example.org/a/b/")),
    ),
    (
        "many attributes on one tag",
        |size| format!("<a {} href=x>", "z=1 ".repeat(size / 4)),
        resolved,
    ),
    (
        "many links on one tag",
        |size| format!("<a href=x {}>", "href=x ".repeat(size / 7)),
        |document| document.replacen("href=x", "href=http://www.example.org/a/b/x", 1),
    ),
    (
        "many different attributes",
        |size| {
            let names: String = (0..size / 8)
                .map(|number| format!("a{number}=1 "))
                .collect();
            format!("<a {names} href=x>")
        },
        resolved,
    ),
    (
        "many bases",
        |size| "<base href=\"javascript:x\"><a href=x>".repeat(size / 37),
        resolved,
    ),
    (
        "other languages that never end",
        |size| {
            format!(
                "{}<a href=x>",
                "<svg><foreignObject><template>".repeat(size / 30)
            )
        },
        resolved,
    ),
    (
        "ends of languages that never began",
        |size| {
            let ends = "</svg></math></template>".repeat(size / 48);
            format!("{}{ends}<a href=x>", "<math><mi>".repeat(size / 20))
        },
        resolved,
    ),
    (
        "many bases without address",
        |size| format!("{}<a href=x>", "<base target=x>".repeat(size / 15)),
        resolved,
    ),
];

/// All bytes outside of links are unchanged, and the time is linear in the size.
#[test]
fn hostile_documents_lose_nothing_and_take_linear_time() {
    std::thread::scope(|scope| {
        for half in HOSTILE.chunks(HOSTILE.len().div_ceil(2)) {
            scope.spawn(move || {
                for (what, document, expected) in half {
                    let document = document(1 << 19);
                    let mail = html(BASE, &document);
                    let begun = Instant::now();
                    let (output, _) = run(&mail);
                    let took = begun.elapsed();
                    assert_same(&output, &html(BASE, &expected(&document)), what);
                    // Linear work takes a part of a second, and quadratic work would take minutes.
                    assert!(took < Duration::from_secs(30), "{what}: {took:?}");
                }
            });
        }
    });
}

/// Every line must be broken, at one of many blanks.
#[test]
fn many_lines_that_get_too_long_take_time_like_their_number() {
    let line = format!(
        "<p>{}{}\n",
        "<a href=x z z z z>".repeat(30),
        "y".repeat(300)
    );
    for count in [100, 1600] {
        let mail = html(BASE, &line.repeat(count));
        let begun = Instant::now();
        let (output, report) = run(&mail);
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(30), "{took:?}");
        assert_eq!(report.links(), 30 * count as u64);
        let lines = output.split(|&byte| byte == b'\n').map(<[u8]>::len);
        assert!(lines.clone().all(|length| length <= 998));
        assert!(lines.count() > 2 * count);
    }
}

#[test]
fn a_hundred_thousand_attributes_and_a_megabyte_in_one_lose_nothing() {
    for document in [
        format!("<a {} href=x>", "z=1 ".repeat(100_000)),
        format!("<a title=\"{}\" href=x>", "t".repeat(1 << 20)),
    ] {
        let (output, report) = run(&html(BASE, &document));
        assert_same(&output, &html(BASE, &resolved(&document)), "attributes");
        assert_eq!(report.links(), 1);
    }
}

/// Invalid bases are skipped, and the next outer base is used. Without any base, nothing changes.
#[test]
fn invalid_base_urls_are_skipped() {
    for (header, body) in [
        ("", "<base href=\"/\"><a href=x>"),
        ("", "<base target=x><a href=x>"),
        ("", "<base href=\"javascript:alert(1)\"><a href=x>"),
        ("Content-Base: C:\\mail\\x\n", "<a href=x>"),
        ("Content-Base: c:/mail/x\n", "<a href=x>"),
        ("Content-Location: C:\\mail\\x\n", "<a href=x>"),
    ] {
        let mail = html(header, body);
        let (output, report) = run(&mail);
        assert_same(&output, &mail, body);
        assert!(report.rows.is_empty(), "{:?}", report.rows);
        // An outer entity has a valid base. A relative `<base href>` is resolved against it.
        let inner = String::from_utf8(mail).expect("text");
        let around = |part: &str| {
            format!("{BASE}Content-Type: multipart/mixed; boundary=m\n\n--m\n{part}\n--m--\n")
                .into_bytes()
        };
        let link = if body.contains("href=\"/\"") {
            "href=http://www.example.org/x"
        } else {
            "href=http://www.example.org/a/b/x"
        };
        let (output, report) = run(&around(&inner));
        assert_same(&output, &around(&inner.replace("href=x", link)), body);
        assert_eq!(report.links(), 1, "{body}");
    }
}

/// `Content-Location:x` without a blank, in all places where a program could miss it.
#[test]
fn a_field_needs_no_blank_after_its_colon() {
    for field in [
        "Content-Location:http://www.example.org/a/b/c",
        "Content-Base:http://www.example.org/a/b/c",
        "CONTENT-LOCATION:\n http://www.example.org/a/b/c",
        "Content-Location :http://www.example.org/a/b/c",
    ] {
        let header = format!("{field}\n");
        let (output, _) = run(&html(&header, "<a href=x>"));
        assert_same(&output, &html(&header, &resolved("<a href=x>")), field);
    }
    let related = |link: &str, id: &str| {
        format!("Content-Type: multipart/related; boundary=r\n\n--r\nContent-Type: text/html\n\n<img src={link}>\n--r\nContent-Type:image/png\nContent-ID:<i@x>\nContent-Location:x{id}\n\nx\n--r--\n").into_bytes()
    };
    let (output, _) = run(&related("x", ""));
    assert_same(&output, &related("cid:i@x", ""), "Content-Location:x");
}

/// Information about a part is computed once, and not for each link to it.
#[test]
fn many_links_to_one_large_part_take_time_like_the_part() {
    let links = "<img src=i>".repeat(10_000);
    let body = "x".repeat(10 << 20);
    let fields = "X: y\n".repeat(1 << 20);
    for sibling in [
        format!("Content-Location: i\n\n{body}"),
        format!("Content-Location: i\n{fields}Content-ID: <one@x>\n\nx"),
    ] {
        let mail = format!(
            "Content-Type: multipart/related; boundary=r\n\n--r\nContent-Type: text/html\n\n{links}\n--r\n{sibling}\n--r--\n"
        );
        let expander = expander(Policy::default(), NoFetch);
        let begun = Instant::now();
        let expansion = expander
            .expand(mail.as_bytes(), "test")
            .expect("never deferred");
        let took = begun.elapsed();
        assert_eq!(expansion.report.rows[0].links, Some(10_000));
        assert!(took < Duration::from_secs(20), "{took:?}");
    }
}

#[test]
fn a_long_base_times_many_links_is_bounded() {
    let header = format!("Content-Base: http://x/{}/\n", "p".repeat(8_000));
    let mail = html(&header, &"<a href=y>".repeat(20_000));
    let mut policy = Policy::default();
    policy.limits.growth = 5_000_000;
    let (output, report) = run_with(policy, &mail);
    assert_eq!(output, mail);
    assert_eq!(report.rows[0].reason, Some(Reason::GrowthLimit));
    let detail = &report.rows[0].detail;
    assert!(detail.settings().eq([Setting::Growth]), "{detail}");
    let words = "would make the message grow by more than the limit of growth";
    assert!(detail.contains(words), "{detail}");
}

/// For links that do not become longer, the long base must not be read each time.
#[test]
fn many_short_links_under_a_long_base_are_left_at_the_work_limit() {
    let long = "p/".repeat(1 << 17);
    let links = "<a href=/y>".repeat(10_000);
    let climbing = format!("<a href={}y>", "../".repeat(200)).repeat(1_000);
    let absolute = "<a href=http://z/y>".repeat(10_000);
    // The work limit is proportional to the allowed growth.
    let policy = || {
        let mut policy = Policy::default();
        policy.limits.growth = 50_000;
        policy
    };
    for (what, header, body) in [
        (
            "short links",
            String::new(),
            format!("<base href=http://x/{long}>{links}"),
        ),
        (
            "links upwards",
            String::new(),
            format!("<base href=http://x/{long}>{climbing}"),
        ),
        (
            "absolute links",
            String::new(),
            format!("<base href=http://x/{long}>{absolute}<a href=y>"),
        ),
        (
            "a field",
            format!("Content-Base: http://x/{}\n", &long[..8_000]),
            links.clone(),
        ),
    ] {
        let mail = html(&header, &body);
        let begun = Instant::now();
        let (output, report) = run_with(policy(), &mail);
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(10), "{what}: {took:?}");
        assert_eq!(report.rows.len(), 1, "{what}");
        assert_same(&output, &mail, what);
        for row in &report.rows {
            assert_eq!(row.outcome, Outcome::Left, "{what}");
            assert!(row.reason.is_some_and(Reason::is_bound), "{what}");
        }
    }
}
