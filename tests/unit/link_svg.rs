//! SVG pictures that do nothing else: what is let through, and what a hostile one tries.

use embody::link::svg::is_harmless_svg;
use proptest::prelude::*;
use std::time::Instant;

const NAMESPACES: &str =
    "xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\"";

fn svg(content: &str) -> String {
    format!("<svg {NAMESPACES}>{content}</svg>")
}

#[test]
fn a_picture_and_nothing_else_is_harmless() {
    let documents = [
        svg(""),
        format!(
            "\u{feff}<?xml version='1.0' encoding='UTF-8' standalone=\"no\"?>\n<!-- made by hand -->\n{}\n",
            svg("<g/>")
        ),
        format!(
            "<!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" \"http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd\">{}",
            svg("<path d='M0 0'/>")
        ),
        svg(
            "<defs><linearGradient id='g'><stop offset='0'/></linearGradient></defs>\
             <rect fill='url(#g)' style=\"stroke:url('#g')\" width='1'/><use xlink:href='#g' href=\"#g\"/>",
        ),
        svg(
            "<style type='text/css'>.a{fill:#fff}.b{fill:url(#g)}</style><style><![CDATA[ .a > .b {} ]]></style>",
        ),
        svg(
            "<image href='data:image/png;base64,AA=='/><image xlink:href='data:image/JPEG;base64,AA=='/>",
        ),
        svg("<title>one &amp; two &#8212; &#x2014; \u{e9}</title><text>Turn on, on = off</text>"),
        svg(
            "<metadata><rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>\
             <rdf:Description rdf:about='http://example.org/'/></rdf:RDF></metadata>",
        ),
        svg(
            "<animate attributeName='fill' values='red;blue' begin='0s' /><set attributeName='x' to='1'/>",
        ),
        "<svg></svg >".to_owned(),
    ];
    for document in documents {
        assert!(is_harmless_svg(document.as_bytes()), "{document}");
    }
}

#[test]
fn whatever_runs_or_calls_home_is_not_harmless() {
    for content in [
        "<script>1</script>",
        "<SCRIPT/>",
        "<x:script xmlns:x='http://www.w3.org/2000/svg'/>",
        "<!-- <script> -->",
        "<g onload='x()'/>",
        "<g ONCLICK = 'x()'/>",
        "<g\nonbegin='x()'/>",
        "<foreignObject/>",
        "<iframe src='#'/>",
        "<h:img xmlns:h='http://www.w3.org/1999/xhtml' src='#'/>",
        "<h:b xmlns:h='http://www.w3.org/1999/&#120;html'/>",
        "<a href='javascript:x()'/>",
        "<a href='https://example.org/'/>",
        "<a xlink:href='&#106;avascript:x()'/>",
        "<a x:href=' # ' y='java&#10;script:1'/>",
        "<image href='http://example.org/x.png'/>",
        "<image xlink:href='//example.org/x.png'/>",
        "<image href='x.png'/>",
        "<image href='&#104;ttp://example.org/'/>",
        "<image href='data:image/svg+xml,x'/>",
        "<image href='data:text/html,x'/>",
        "<use href='x.svg#y'/>",
        "<g xml:base='http://example.org/'/>",
        "<g fill='url(http://example.org/)'/>",
        "<g fill='URL( \"x.svg#y\" )'/>",
        "<g style='fill:url(//example.org/)'/>",
        "<g style='fill:u\\72l(//example.org/)'/>",
        "<g style='background:image-set(\"x\" 1x)'/>",
        "<style>a{b:url(x.png)}</style>",
        "<style>@import 'x';</style>",
        "<style>&#64;import 'x';</style>",
        "<style>a{b:u<!-- -->rl(x.png)}</style>",
        "<style>a{b:<!-- url(x) -->}</style>",
        "<style><![CDATA[a{b:url(x.png)}]]></style>",
        "<style>a{b:u<![CDATA[rl(x.png)]]>}</style>",
        "<style><![CDATA[</style><b/>]]></style>",
        "<style></g>a{b:url(x)}",
        "<style/>",
        "<set attributeName='href' to='#'/>",
        "<set attributeName='xlink:href' to='#'/>",
        "<set attributeName='onclick' to='x'/>",
        "<animate attributeName='fill' values='red;url(http://example.org/)'/>",
        "<video src='#'/>",
        "<?xml-stylesheet href='x'?>",
        "<?php x ?>",
        "<!--><b/>-->",
        "<!-- -- -->",
        "<![CDATA[x]]>",
        "<g x=y/>",
        "<g x='<'/>",
        "<g x='1'y='2'/>",
        "<text>&nbsp;</text>",
        "<text>&x;</text>",
        "<g>",
        "</g>",
        "<g",
        "\0",
    ] {
        let document = svg(content);
        assert!(!is_harmless_svg(document.as_bytes()), "{document}");
    }
    let whole = svg("");
    for document in [
        String::new(),
        "x".to_owned(),
        format!("{whole}x"),
        format!("{whole}{whole}"),
        format!("<html>{whole}</html>"),
        format!("<!DOCTYPE svg [<!ENTITY x 'y'>]>{whole}"),
        format!("<!DOCTYPE svg [<!ATTLIST svg x CDATA 'y'>]>{whole}"),
        format!("<!DOCTYPE svg SYSTEM 'x.dtd'>{whole}"),
        format!("<!DOCTYPE svg PUBLIC 'x' 'http://example.org/x.dtd'>{whole}"),
        format!("<?xml version='1.0' encoding='UTF-7'?>{whole}"),
        format!("<?xml-stylesheet href='x'?>{whole}"),
        whole.replace("</svg>", ""),
        whole.replace("svg", "SVG"),
    ] {
        assert!(!is_harmless_svg(document.as_bytes()), "{document}");
    }
    let wide: Vec<u8> = whole.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(!is_harmless_svg(&wide));
}

/// Quadratic work would take minutes.
#[test]
fn hostile_documents_take_seconds() {
    let start = Instant::now();
    for (front, piece) in [
        ("<g ", "on"),
        ("<g ", " on"),
        ("<g ", "x='' "),
        ("<g x='", "url("),
        ("<g x='", "&amp;"),
        ("<style>", "<!---->"),
        ("<style>", "<![CDATA[]]>"),
        ("", "<g>"),
        ("", "<!--"),
        ("", "<g/>"),
        ("", "&"),
    ] {
        let document = svg(&format!("{front}{}", piece.repeat(1_000_000 / piece.len())));
        assert!(!is_harmless_svg(document.as_bytes()) || piece == "<g/>");
    }
    assert!(start.elapsed().as_secs() < 60);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// What calls home in a browser's eyes is refused, however it is put together.
    #[test]
    fn no_mixture_with_a_reference_to_the_outside_is_harmless(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "<g>", "</g>", "<g ", "/>", ">", "<style>", "</style>", "<![CDATA[", "]]>", "<!--", "-->",
            "x='", "'", "\"", "url(", ")", "#a", "&amp;", "&#35;", "href='#a'", " ", "a{b:", "}", ";",
            "<image href='#a'/>", "\\", "(",
        ]), 0..16),
        home in prop::sample::select(vec![
            "<image href='http://example.org/'/>", "<g fill='url(http://example.org/)'/>",
            "<style>a{b:url(http://example.org/)}</style>", "<script/>", "<g onclick='x'/>",
        ]),
        at in any::<prop::sample::Index>(),
    ) {
        // Without it the mixture may be anything; with it where markup is read it is harmful.
        let at = at.index(pieces.len() + 1);
        let (front, rest) = pieces.split_at(at);
        let (front, rest) = (front.concat(), rest.concat());
        let _ = is_harmless_svg(svg(&front).as_bytes());
        let document = svg(&format!("{front}{home}{rest}"));
        // In a comment, an attribute or a style element it is text.
        let is_text = front.contains("<!--") || front.contains('\'') || front.contains('"')
            || front.contains("<style") || front.contains("<![CDATA[");
        prop_assert!(is_text || !is_harmless_svg(document.as_bytes()), "{document}");
    }

    #[test]
    fn any_octets_get_an_answer(octets in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = is_harmless_svg(&octets);
        let _ = is_harmless_svg(&[b"<svg ".as_slice(), &octets].concat());
    }
}
