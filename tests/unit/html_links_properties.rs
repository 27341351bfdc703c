//! Properties of the links that are found in malformed HTML: html5gum finds the same attributes, the spans are in order
//! for any bytes, and new links are read back as they were written.

use super::common::checks::html::{oracle, plain};
use embody::link::html::{Syntax, locate, locate_in};
use embody::link::value::{Grammar, LinkValue};
use proptest::prelude::*;

fn document(with_conditionals: bool) -> impl Strategy<Value = String> {
    let mut pieces = vec![
        "<a href=",
        "<img src='",
        "<q cite=\"",
        "<td background = ",
        "<",
        ">",
        "/",
        "=",
        "'",
        "\"",
        " ",
        "\n",
        "\r\n",
        "\t",
        "\0",
        "<!--",
        "-->",
        "--!>",
        "-",
        "!",
        "<!",
        "<?",
        "</",
        "</a>",
        "<script>",
        "<script ",
        "</script>",
        "<style>",
        "</style>",
        "<title>",
        "</title>",
        "<textarea>",
        "</textarea ",
        "<p ",
        "href",
        "HREF=",
        " src=x",
        "&amp;",
        "&copy",
        "&copy=",
        "&#65",
        "&#x41;",
        "&notit;",
        "&",
        ";",
        "#",
        "x",
        "/y",
        "\u{e9}",
        "\u{1F600}",
        "<b",
        "<xmp>",
        "</xmp>",
        "?",
        "`",
    ];
    if with_conditionals {
        pieces.extend([
            "<!--[if mso]>",
            "<![endif]-->",
            "<![CDATA[",
            "]]>",
            "<img srcset='",
            " 1x, ",
            "<p style=\"",
            "<p style='a:url(",
            "url(",
            "@import ",
            "image-set(",
            "src(",
            ")",
            "(",
            "\\",
            "\\29 ",
            "&quot;",
            "&quot",
            "&#39;",
            "<meta http-equiv=refresh content='1;",
            "url=",
            "<a ping=\"",
            "<base href='",
            ",",
            "{",
            "}",
            "/*",
            "*/",
            "<applet archive=\"",
        ]);
    }
    let piece = prop::sample::select(pieces);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// One start for each context, so that there is always a link to replace.
const FRONTS: [&str; 22] = [
    "<a href='x'>",
    "<a href=\"x&amp;y\">",
    "<a href=x&y>",
    "<a href=x />",
    "<img srcset='x 1x, y'>",
    "<img srcset=x,>",
    "<a ping='x y'>",
    "<applet archive='x, y'>",
    "<meta http-equiv=refresh content='1; url=x'>",
    "<meta http-equiv=refresh content='1; url=\"x\"'>",
    "<meta http-equiv=refresh content=1;x>",
    "<p style='a:url(x)'>",
    "<p style=\"a:url('x')\">",
    "<p style=\"a:url(&quot;x&quot;)\">",
    "<p style=a:url(x)>",
    "<p style=a:url('x')>",
    "<style>a{b:url(x)}</style>",
    "<style>@import 'x';</style>",
    "<svg><style>a{b:url(x&amp;y)}</style>",
    "<svg><style><![CDATA[a{b:url(x&y)}]]></style>",
    "<!--[if x]><style>@import \"x\";</style><![endif]-->",
    "<!--[if x]><a href=x>--><a href=y>",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn html5gum_sees_the_same_attributes(document in document(false)) {
        let ours = plain(&locate(document.as_bytes()).links.to_vec(), document.as_bytes());
        let theirs = oracle(document.as_bytes());
        prop_assert_eq!(ours, theirs);
    }

    #[test]
    fn spans_are_sorted_and_disjoint_whatever_the_bytes(
        mut bytes in document(true).prop_map(String::into_bytes),
        noise in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        for (index, byte) in noise {
            if !bytes.is_empty() {
                let at = index.index(bytes.len());
                bytes[at] = byte;
            }
        }
        for syntax in [Syntax::Html, Syntax::Xhtml] {
            let mut at = 0;
            for link in locate_in(&bytes, syntax).links.to_vec() {
                prop_assert!(at <= link.span.start && link.span.start <= link.span.end);
                at = link.span.end;
                let _ = link.decoded(&bytes);
            }
            prop_assert!(at <= bytes.len());
        }
    }

    #[test]
    fn written_url_is_read_back_unchanged_and_other_links_stay(
        front in prop::sample::select(FRONTS.to_vec()),
        rest in document(true),
        url in r#"[a-z][-!-~é]{0,6}(&(amp|copy|lt|#65|#x4)[;=a]?)?(-->|</style>|\\29|'|")?[-a-z&\\!]?"#,
        which in any::<prop::sample::Index>(),
        syntax in prop::sample::select(vec![Syntax::Html, Syntax::Xhtml]),
    ) {
        let document = [front, &rest].concat();
        let bytes = document.as_bytes();
        let before = locate_in(bytes, syntax).links.to_vec();
        prop_assert!(!before.is_empty());
        let at = which.index(before.len());
        let link = before[at];
        let url = match link.grammar {
            Grammar::Refresh(_) | Grammar::CommaSeparated => {
                url.replace(['"', '\'', ','], "_")
            }
            Grammar::Srcset => url.trim_matches(',').to_string(),
            _ => url,
        };
        let mut after = bytes[..link.span.start].to_vec();
        after.extend(link.encoded(&url));
        after.extend_from_slice(&bytes[link.span.end..]);
        let found = locate_in(&after, syntax).links.to_vec();
        let texts = |links: &[LinkValue], document: &[u8]| -> Vec<String> {
            links
                .iter()
                .map(|link| String::from_utf8_lossy(&link.decoded(document)).into_owned())
                .collect()
        };
        let mut expected = texts(&before, bytes);
        expected[at] = url;
        prop_assert_eq!(texts(&found, &after), expected, "{}", String::from_utf8_lossy(&after));
    }
}
