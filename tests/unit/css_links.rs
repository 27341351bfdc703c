//! Finds URLs in style sheets (CSS Syntax Level 3 §4.3). The results are compared with those of cssparser.

use super::common::checks::css::{bad_url_ends_early, comparable, oracle};
use embody::link::css::locate;
use proptest::prelude::*;

fn links(css: &str) -> Vec<(&'static str, String)> {
    locate(css.as_bytes())
        .to_vec()
        .iter()
        .map(|link| {
            let url = link.decoded(css.as_bytes());
            (link.place, String::from_utf8_lossy(&url).into_owned())
        })
        .collect()
}

#[test]
fn urls_are_found_where_css_has_them() {
    for (css, expected) in [
        ("a{b:url(x)}", vec![("url()", "x")]),
        ("a{b:URL( 'x' )}", vec![("url()", "x")]),
        ("a{b:u\\72l(\tx\n)}", vec![("url()", "x")]),
        ("a{b:url(x", vec![("url()", "x")]),
        ("a{b:url(\"x", vec![("url()", "x")]),
        ("a{b:url(\"x\" foo)}", vec![("url()", "x")]),
        ("a{b:src('x') }", vec![("src()", "x")]),
        ("@import 'x' print;", vec![("@import", "x")]),
        ("@IMPORT/**/url(x) 'y';", vec![("@import", "x")]),
        ("@import url('x');", vec![("@import", "x")]),
        ("<!-- @import 'x'; -->", vec![("@import", "x")]),
        (
            "a{b:image-set('x' 1x, url(y) type('image/png') 2x)} 'z'",
            vec![("image-set()", "x"), ("url()", "y")],
        ),
        (
            "@namespace url(n);a{b:-webkit-image-set(\"x\" 1x)}",
            vec![("image-set()", "x")],
        ),
        ("a{b:url(\\(\\29  )}", vec![("url()", "()")]),
        ("a{b:url('a\\\nb')}", vec![("url()", "ab")]),
        ("url(x \\\\)url(y)", vec![("url()", "y")]),
    ] {
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(place, url)| (place, url.to_string()))
            .collect();
        assert_eq!(links(css), expected, "{css}");
    }
}

#[test]
fn what_only_looks_like_a_url_is_left() {
    for css in [
        "/* url(x) */",
        "'url(x)'",
        "xurl(x)",
        "1url(x)",
        "#url(x)",
        "@url(x)",
        "url (x)",
        "url(x y)",
        "url(x'y)",
        "url(a(b)c)",
        // An escaped bracket does not end a bad URL, although cssparser sometimes ends it there.
        "url(x \\)url(y)",
        "url(x y\\)url(z)",
        "url(x\n\\)src('y')",
        "url('x\n')",
        "@namespace p url(x);",
        "@namespace 'x';",
        "@charset 'x';",
        "@import x 'y'",
        "content: 'x'",
    ] {
        assert_eq!(links(css), [], "{css}");
    }
}

#[test]
fn new_urls_are_escaped_for_their_place() {
    for (css, url, expected) in [
        ("url(x)", "a b)'", "url(a\\20 b\\)\\')"),
        ("url('x')", "a b)'\"", "url('a\\20 b)\\'\"')"),
        ("url(\"x\")", "a\\\"", "url(\"a\\\\\\\"\")"),
        ("@import \"x\"", "</style>", "@import \"</style>\""),
    ] {
        let found = locate(css.as_bytes()).to_vec();
        assert_eq!(found.len(), 1);
        let mut out = css.as_bytes().to_vec();
        out.splice(
            found[0].span.start..found[0].span.end,
            found[0].encoded(url),
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

#[test]
fn a_style_sheet_in_any_charset_keeps_its_bytes() {
    let css = b"a\xE9{b:url(\xE9.png)}";
    let found = locate(css).to_vec();
    assert_eq!(found.len(), 1);
    assert_eq!(&*found[0].decoded(css), b"\xE9.png");
}

fn style_sheet() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "url(", "URL(", "u\\72l(", "src(", "(", ")", "'", "\"", "\\", "\\29 ", "\\\n", "\\e9", "x",
        "y.png", " ", "\n", "\r\n", "\x0C", "/*", "*/", "/", "{", "}", ";", ":", "#", "@", "1",
        "1e", "+", "-", ".", "--", "-->", "<!--", "\u{e9}", "\0", "e", "_", ",", "%", "[", "]",
        "\x7F",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn cssparser_sees_the_same_urls(css in style_sheet()) {
        prop_assume!(!bad_url_ends_early(css.as_bytes()));
        // The test reads all blocks of cssparser, so a wrong closing bracket hides no token.
        let ours: Vec<_> = links(&css).into_iter().map(|(_, url)| url).collect();
        let theirs: Vec<_> = oracle(&css)
            .iter()
            .map(|url| comparable(url.as_bytes()))
            .collect();
        let ours: Vec<_> = ours.iter().map(|url| comparable(url.as_bytes())).collect();
        prop_assert_eq!(ours, theirs);
    }

    #[test]
    fn spans_are_sorted_and_disjoint_whatever_the_bytes(bytes in prop::collection::vec(
        prop::sample::select(b"url(src)'\"\\/*@import{};- \n\xE9\xFF1#".to_vec()), 0..80)) {
        let mut at = 0;
        for link in locate(&bytes).to_vec() {
            prop_assert!(at <= link.span.start && link.span.start <= link.span.end);
            at = link.span.end;
        }
        prop_assert!(at <= bytes.len());
    }
}
