//! Finds links in HTML (HTML standard §13.2.5, and the attributes with URLs in docs/design.md), decodes them, and
//! replaces them. The properties that are compared with html5gum are in html_links_properties.rs.

use std::time::{Duration, Instant};

use embody::link::html::{HtmlLinks, Syntax, locate, locate_in};
use embody::link::value::LinkRole;

/// Returns the place and the raw text of every link.
fn links(document: &str) -> Vec<(&'static str, &str)> {
    locate(document.as_bytes())
        .links
        .iter()
        .map(|link| (link.place, &document[link.span.start..link.span.end]))
        .collect()
}

fn decoded(document: &str) -> Vec<String> {
    locate(document.as_bytes())
        .links
        .iter()
        .map(|link| String::from_utf8_lossy(&link.decoded(document.as_bytes())).into_owned())
        .collect()
}

/// Returns the document with every link replaced by `url`.
fn written(document: &str, url: &str) -> String {
    let bytes = document.as_bytes();
    let mut out = Vec::new();
    let mut copied = 0;
    for link in locate(bytes).links.to_vec() {
        out.extend_from_slice(&bytes[copied..link.span.start]);
        out.extend(link.encoded(url));
        copied = link.span.end;
    }
    out.extend_from_slice(&bytes[copied..]);
    String::from_utf8(out).expect("both came from strings")
}

#[test]
fn every_attribute_of_the_list_is_found() {
    let rows = [
        ("<a href=x>", "href", LinkRole::Hyperlink),
        ("<link rel=StyleSheet href=x>", "href", LinkRole::StyleSheet),
        ("<link rel=next href=x>", "href", LinkRole::Hyperlink),
        ("<image href=x>", "href", LinkRole::Picture),
        ("<IMG SRC=x>", "src", LinkRole::Picture),
        ("<iframe src=x>", "src", LinkRole::Frame),
        ("<frame src=x>", "src", LinkRole::Frame),
        ("<img srcset=x>", "srcset", LinkRole::Picture),
        ("<link imagesrcset=x>", "imagesrcset", LinkRole::Resource),
        ("<video poster=x>", "poster", LinkRole::Picture),
        ("<object data=x>", "data", LinkRole::Resource),
        ("<form action=x>", "action", LinkRole::Hyperlink),
        ("<button formaction=x>", "formaction", LinkRole::Hyperlink),
        ("<q cite=x>", "cite", LinkRole::Hyperlink),
        ("<td background=x>", "background", LinkRole::Picture),
        ("<img longdesc=x>", "longdesc", LinkRole::Hyperlink),
        ("<img lowsrc=x>", "lowsrc", LinkRole::Picture),
        ("<img dynsrc=x>", "dynsrc", LinkRole::Picture),
        ("<object classid=x>", "classid", LinkRole::Resource),
        ("<object codebase=x>", "codebase", LinkRole::Base),
        ("<object archive=x>", "archive", LinkRole::Resource),
        ("<img usemap=x>", "usemap", LinkRole::Hyperlink),
        ("<head profile=x>", "profile", LinkRole::Hyperlink),
        ("<html manifest=x>", "manifest", LinkRole::Resource),
        ("<a ping=x>", "ping", LinkRole::Hyperlink),
        ("<a xlink:href=x>", "xlink:href", LinkRole::Hyperlink),
        ("<use xlink:href=x>", "xlink:href", LinkRole::Resource),
        (
            "<meta http-equiv=refresh content='1;x'>",
            "content",
            LinkRole::Hyperlink,
        ),
        ("<p style='a:url(x)'>", "url()", LinkRole::Picture),
        ("<style>a{b:url(x)}</style>", "url()", LinkRole::Picture),
        (
            "<style>@import 'x'</style>",
            "@import",
            LinkRole::StyleSheet,
        ),
    ];
    for (document, place, role) in rows {
        let found = locate(document.as_bytes()).links.to_vec();
        assert_eq!(found.len(), 1, "{document}");
        assert_eq!(found[0].place, place, "{document}");
        assert_eq!(found[0].role, role, "{document}");
        assert_eq!(found[0].span.of(document.as_bytes()), b"x", "{document}");
    }
}

#[test]
fn other_attributes_and_text_are_no_links() {
    for document in [
        "<p data=x title=x alt=x hrefs=x xhref=x data-src=x>",
        "<a href>",
        "<a href=>",
        "<meta name=refresh content='1;x'><meta content='1;x'>",
        "<script><a href=x></script>",
        "<script><!-- <script> </script> <a href=x> --></script>",
        "<textarea><a href=x></textarea>",
        "<title><a href=x></title>",
        "<xmp><a href=x></xmp>",
        "<iframe><a href=x></iframe>",
        "<noframes><a href=x></noframes>",
        "<plaintext><a href=x></plaintext><a href=x>",
        "<!-- <a href=x> -->",
        "<!--[endif] <a href=x> -->",
        "<![CDATA[ <b> <a href=x> ]]>",
        "</a href=x>",
        "<a href=x",
        "<a href='x",
        "a href=x>",
        "< a href=x>",
        "<p style='/* url(x) */ a: \"url(x)\"'>",
    ] {
        assert_eq!(links(document), [], "{document}");
    }
}

#[test]
fn links_are_found_after_odd_or_malformed_markup() {
    for document in [
        "<script>if (a<b) '</p>'</script ><a href=x>",
        "<script><!-- --></script><a href=x>",
        "<script><!--></script><a href=x>",
        "<style></STYLE/><a href=x>",
        "<!--><a href=x>",
        "<!---><a href=x>",
        "<!-- --!><a href=x>",
        "<!-- ---><a href=x>",
        "<![if !mso]><a href=x><![endif]>",
        "<![CDATA[ ><a href=x>",
        "<?php echo ?><a href=x>",
        "</ ><a href=x>",
        "</p title='>'><a href=x>",
        "<p title='>' =href=y / href = x>",
        "<noscript><a href=x></noscript>",
        "<<a href=x>",
    ] {
        assert_eq!(links(document), [("href", "x")], "{document}");
    }
}

#[test]
fn conditional_comments_hold_markup_one_level_deep() {
    assert_eq!(
        links(
            "<!--[if gte mso 9]><v:fill src=\"a\" /><style>b{c:url(b)}</style><![endif]--><a href=c>\
             <!--[if !mso]><!--><a href=d><!--<![endif]-->"
        ),
        [("src", "a"), ("url()", "b"), ("href", "c"), ("href", "d")]
    );
    // An element that is left open inside the comment has no effect outside of it.
    assert_eq!(
        links("<!--[IF x]><style><a title='-->'<a href=c>"),
        [("href", "c")]
    );
    let document = b"<!--[if x]><base href=a><!--[if y]><a href=b>--><base href=c>";
    let found = locate(document);
    assert_eq!(found.links.to_vec(), []);
    assert!(
        found
            .base_href
            .is_some_and(|base| base.span.of(document) == b"c")
    );
}

#[test]
fn the_first_attribute_of_a_name_counts() {
    assert_eq!(
        links("<a HREF='1' href='2'><a href href=3><img src=4 alt src=5>"),
        [("href", "1"), ("src", "4")]
    );
}

#[test]
fn the_base_is_the_first_that_has_an_href() {
    let base = |document: &'static str| {
        let HtmlLinks {
            links, base_href, ..
        } = locate(document.as_bytes());
        assert_eq!(links.to_vec(), []);
        base_href.map(|base| {
            assert_eq!(base.role, LinkRole::Base);
            String::from_utf8_lossy(&base.decoded(document.as_bytes())).into_owned()
        })
    };
    assert_eq!(base("<base target=x>"), None);
    assert_eq!(base("<base href>"), None);
    assert_eq!(base("<base target=x><base href='/'>"), Some("/".into()));
    assert_eq!(
        base("<base href=' http://a/?b&amp;c '><base href=d>"),
        Some("http://a/?b&c".into())
    );
    assert_eq!(
        base("<base href='javascript:..'>"),
        Some("javascript:..".into())
    );
}

#[test]
fn a_srcset_gives_its_urls_without_descriptors() {
    assert_eq!(
        links("<img srcset=' ,a.png 1x, b,c.png 2x,data:,x 3w (,) 4h,,d, e,&#32;f&#44; g'>"),
        [
            ("srcset", "a.png"),
            ("srcset", "b,c.png"),
            ("srcset", "data:,x"),
            ("srcset", "d"),
            ("srcset", "e"),
            ("srcset", "f"),
            ("srcset", "g"),
        ]
    );
}

#[test]
fn a_refresh_gives_the_url_that_browsers_go_to() {
    for (content, url) in [
        ("5; url=x", Some("x")),
        ("5;URL = 'x' y", Some("x")),
        ("5, \"x y\"z", Some("x y")),
        ("0.5 x y ", Some("x y")),
        (".; urlx", Some("urlx")),
        ("5;url x", Some("url x")),
        ("5; url='x", Some("x")),
        ("5; &#117;rl=&quot;x&quot;", Some("x")),
        ("5", None),
        ("5;", None),
        ("5x", None),
        ("url=x", None),
        ("", None),
    ] {
        // Double quotes inside would end the attribute, so they are written as character references.
        let document = format!(
            "<meta content=\"{}\" HTTP-EQUIV=Refresh>",
            content.replace('"', "&quot;")
        );
        let found = decoded(&document);
        assert_eq!(
            found,
            url.map(String::from).into_iter().collect::<Vec<_>>(),
            "{content}"
        );
    }
}

#[test]
fn each_url_in_a_list_attribute_is_found() {
    assert_eq!(
        links("<a ping=' a  b,c '><object archive='d e'><applet archive='f, g,h'>"),
        [
            ("ping", "a"),
            ("ping", "b,c"),
            ("archive", "d"),
            ("archive", "e"),
            ("archive", "f"),
            ("archive", "g"),
            ("archive", "h"),
        ]
    );
}

#[test]
fn urls_relative_to_a_codebase_are_ignored() {
    assert_eq!(
        links("<object data=a codebase=b classid=c><object data=d>"),
        [("codebase", "b"), ("data", "d")]
    );
}

#[test]
fn character_references_are_read_by_the_attribute_rules() {
    for (raw, text) in [
        ("?a&amp;b", "?a&b"),
        ("?a&copy=1&copyx&copy;&copy", "?a&copy=1&copyx%C2%A9%C2%A9"),
        ("?a&notit;&notin;", "?a&notit;%E2%88%89"),
        (
            "&#x41;&#66 &#0;&#x110000;&#128;&#xD800;",
            "AB %EF%BF%BD%EF%BF%BD%E2%82%AC%EF%BF%BD",
        ),
        ("&;&#;&#x;&", "&;&#;&#x;&"),
        ("&fjlig;&Tab;x", "fj\tx"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("\u{e9}&eacute;", "\u{e9}%C3%A9"),
    ] {
        assert_eq!(decoded(&format!("<a href='{raw}'>")), [text], "{raw}");
    }
}

#[test]
fn styles_in_attributes_are_css_within_character_references() {
    assert_eq!(
        decoded("<p style=\"a:url(&quot;x\\29&amp;y&quot;);b:u&#114;l&lpar;z)\">"),
        ["x)&y", "z"]
    );
    assert_eq!(
        links("<p style=\"a:url(&quot;x&amp;y&quot;);b:u&#114;l&lpar;z)\">"),
        [("url()", "x&amp;y"), ("url()", "z")]
    );
}

#[test]
fn new_values_change_as_little_as_possible() {
    for (before, url, after) in [
        ("<a href='x'>", "h?a&b", "<a href='h?a&b'>"),
        ("<a href='x'>", "h?a&lt=1&lt", "<a href='h?a&lt=1&amp;lt'>"),
        ("<a href='x&amp;y'>", "h?a&b", "<a href='h?a&amp;b'>"),
        ("<a href='x&y'>", "h?a&b", "<a href='h?a&b'>"),
        ("<a href='x'>", "a'\"b", "<a href='a&#39;\"b'>"),
        ("<a href=\"x\">", "a'\"b", "<a href=\"a'&quot;b\">"),
        ("<a href=x>", "a'=>b", "<a href=a&#39;=&gt;b>"),
        ("<a href=x >", "", "<a href=\"\" >"),
        ("<a href=' x '>", "y", "<a href=' y '>"),
        (
            "<img srcset='x 2x, z'>",
            "a,b",
            "<img srcset='a,b 2x, a,b'>",
        ),
        ("<img srcset='x'>", "a,", "<img srcset='a%2C'>"),
        (
            "<p style='a:url(x)'>",
            "a'(b",
            "<p style='a:url(a\\&#39;\\(b)'>",
        ),
        (
            "<style>a:url('x')</style>",
            "'</style>",
            "<style>a:url('\\'\\3c /style>')</style>",
        ),
        (
            "<!--[if x]><a href=x>--><b>",
            "-->--",
            "<!--[if x]><a href=--&gt;-&#45;>--><b>",
        ),
    ] {
        assert_eq!(written(before, url), after, "{before}");
    }
}

#[test]
fn a_reference_without_semicolon_keeps_its_neighbour() {
    // Before `http:`, `&quot` would no longer be read as a quotation mark.
    assert_eq!(links("<p style='a:url(&quot/x&quot)'>"), []);
    assert_eq!(links("<p style='a:url(&quot;/x&quot)'>"), [("url()", "/x")]);
}

#[test]
fn xhtml_knows_empty_elements_and_stays_well_formed() {
    let document = b"<title/><script src='s'/><a href='x'/><style>a{b:url(y) url(z&amp;z)}</style>";
    assert_eq!(locate(document).links.to_vec(), []);
    let found = locate_in(document, Syntax::Xhtml).links.to_vec();
    let raw: Vec<_> = found.iter().map(|link| link.span.of(document)).collect();
    assert_eq!(raw, [&b"s"[..], b"x", b"y", b"z&amp;z"]);
    assert_eq!(&*found[3].decoded(document), b"z&z");
    assert_eq!(found[1].encoded("a&b<"), b"a&amp;b&lt;");
    assert_eq!(found[2].encoded("a&b<"), b"a\\26 b\\3c ");
}

#[test]
fn non_ascii_bytes_in_a_link_are_read_and_written_unchanged() {
    let document = b"\xE9<p title='\xFC'><a href='caf\xE9?\xFF'>\xC3";
    let found = locate(document).links.to_vec();
    assert_eq!(found.len(), 1);
    assert_eq!(&*found[0].decoded(document), b"caf\xE9?\xFF");
    assert_eq!(found[0].encoded(b"/caf\xE9"), b"/caf\xE9");
}

/// Returns the shortest time of three runs.
fn time(document: &[u8]) -> Duration {
    (0..3)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(locate(document));
            start.elapsed()
        })
        .min()
        .unwrap_or_default()
}

#[test]
fn hostile_documents_take_linear_time() {
    let attributes: String = (0..13_000).map(|n| format!(" a{n}=1 href=x")).collect();
    let pieces: [(&str, &str, &str); 26] = [
        ("", "<", ""),
        ("", "<!--", ""),
        ("", "<![CDATA[", ""),
        ("", "<![CDATA[>", ""),
        ("", "<!--[if x]>", ""),
        ("", "<!--[if x]>-->", ""),
        ("", "<!--[if x", "-->"),
        ("", "<a href='", ""),
        ("", "<style>", ""),
        ("<style>", "url(", "</style>"),
        ("<style>", "</styl", ""),
        ("<style>url(", "\\", ""),
        ("<style>", "/*\\", ""),
        ("<style>", "url(\"\n", ""),
        ("<script>", "<!--<script>", ""),
        ("<a ", &attributes, ">"),
        ("<a href='", "&amp;&#1;&a", "'>"),
        ("<img srcset='", "a&amp;,( ,", "'>"),
        ("<img srcset='", "a&amp; 1x,", "'>"),
        ("<p style='", "url(&quot;", "'>"),
        ("<a href='", "\0", "'>"),
        ("<img src=x style='", "display:/*", "'>"),
        ("<img src=x style='", "/**/", "'>"),
        ("<img src=x style='", "width:1;", "'>"),
        ("<img src=x width='", "1", "'>"),
        ("", "</a <a href=\"", ""),
    ];
    for (before, piece, after) in pieces {
        let document = |bytes: usize| {
            let middle = piece.repeat(bytes / piece.len() + 1);
            [before, &middle, after].concat().into_bytes()
        };
        // Linear work takes milliseconds, and quadratic work would take many minutes.
        let took = time(&document(1_200_000));
        assert!(took < Duration::from_secs(30), "{piece:.20}: {took:?}");
    }
}

/// In SVG and MathML, `<base>` is not the HTML element, and a template does not belong to the page (HTML standard
/// §13.2.6.5).
#[test]
fn a_base_in_svg_math_or_template_is_none() {
    let base = |document: &str| {
        locate(document.as_bytes())
            .base_href
            .map(|link| document[link.span.start..link.span.end].to_owned())
    };
    for (hidden, note) in [
        ("<svg><base href=no></svg>", "svg"),
        ("<SVG><g><base href='no'/></g></SVG>", "in upper case"),
        ("<math><mrow><base href=no></math>", "math"),
        ("<template><base href=no></template>", "template"),
        ("<template><p><base href=no></p></template>", "deeper"),
        (
            "<svg><template><base href=no></template></svg>",
            "svg:template",
        ),
        (
            "<svg><foreignObject><svg><base href=no></svg></foreignObject></svg>",
            "twice",
        ),
        (
            "<svg><svg></svg><base href=no></svg>",
            "the inner one is closed",
        ),
        (
            "<template><template></template><base href=no></template>",
            "so is this",
        ),
        (
            "<svg><foreignObject></svg><template><base href=no></template></foreignObject></svg>",
            "a stray end tag",
        ),
    ] {
        for after in ["", "<p><base href=yes>"] {
            let document = format!("{hidden}{after}<a href=x>");
            let expected = (!after.is_empty()).then(|| "yes".to_owned());
            assert_eq!(base(&document), expected, "{note}: {document}");
            // A base that is ignored is not a link either.
            assert_eq!(
                locate(document.as_bytes()).links.to_vec().len(),
                1,
                "{note}"
            );
        }
    }
    for shown in [
        "<svg/><base href=yes>",
        "<svg></svg><base href=yes>",
        "<svg><p><base href=yes></p></svg>",
        "<svg><foreignObject><base href=yes></foreignObject></svg>",
        "<svg><desc><base href=yes></desc></svg>",
        "<math><mtext><base href=yes></mtext></math>",
        "</svg></math></template><base href=yes>",
        "<svg><foreignObject></foreignObject></svg><base href=yes>",
        "<template><svg></template><base href=yes>",
        "<title><svg></title><base href=yes>",
    ] {
        assert_eq!(base(shown).as_deref(), Some("yes"), "{shown}");
    }
    // In XML, a template can be empty, and no HTML tag ends an SVG element.
    for (document, expected) in [
        ("<template/><base href='yes'/>", Some("yes")),
        ("<svg><p><base href='no'/></p></svg>", None),
    ] {
        let found = locate_in(document.as_bytes(), Syntax::Xhtml)
            .base_href
            .map(|link| &document[link.span.start..link.span.end]);
        assert_eq!(found, expected, "{document}");
    }
}

/// A quoted URL begins with a line ending of two bytes. Neither of them may stay before the new URL.
#[test]
fn span_of_a_url_includes_both_bytes_of_a_leading_crlf() {
    let document = b"<meta http-equiv=refresh content='1;&quot;\r\nx&quot;'>";
    let links = locate(document).links.to_vec();
    assert_eq!(links[0].decoded(document), b"\nx".as_slice());
    assert_eq!(links[0].span.of(document), b"\r\nx");
}
