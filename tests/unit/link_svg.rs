//! SVG pictures that only draw: harmless pictures that are accepted, and hostile ones that are refused.

use embody::link::svg::is_harmless_svg;
use proptest::prelude::*;
use std::time::Instant;

const NAMESPACES: &str =
    "xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\"";

fn svg(content: &str) -> String {
    format!("<svg {NAMESPACES}>{content}</svg>")
}

#[test]
fn svg_without_external_references_or_scripts_is_harmless() {
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

fn with_entities(subset: &str, content: &str) -> String {
    format!("<!DOCTYPE svg [{subset}]>{}", svg(content))
}

#[test]
fn svg_with_entities_of_its_own_is_harmless() {
    let illustrator = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!-- Generator: Adobe Illustrator -->\n\
        <!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" \"http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd\" [\n\
        \t<!ENTITY ns_svg \"http://www.w3.org/2000/svg\">\n\t<!ENTITY ns_ai \"http://ns.adobe.com/AdobeIllustrator/10.0/\">\n]>\n\
        <svg xmlns=\"&ns_svg;\" xmlns:i=\"&ns_ai;\"><switch><foreignObject requiredExtensions=\"&ns_ai;\" x=\"0\" y=\"0\" \
        width=\"1\" height=\"1\"><i:pgfRef xlink:href=\"#pgf\"></i:pgfRef></foreignObject><g i:extraneous=\"self\"/></switch></svg>";
    for document in [
        illustrator.to_owned(),
        with_entities("<!ENTITY x 'y'>", ""),
        with_entities("<!ENTITY r \"red\"><!ENTITY s '&r;'>", "<g fill='&s;'/>"),
        with_entities("<!ENTITY r '<rect/><g>&#38;lt;</g>'>", "<g>&r;&r;</g>"),
        with_entities("<!ENTITY q '\"'><!ENTITY p \"'\">", "<g x='&p;&q;'/>"),
        with_entities(
            "<!ENTITY x ']>'><!-- ]> -->\n<!ELEMENT svg ANY>",
            "<text>&x;</text>",
        ),
        with_entities(
            "<!ENTITY lt '&#38;#60;'><!ENTITY x 'a'><!ENTITY x '<video/>'>",
            "&x;&lt;",
        ),
        with_entities("<!ENTITY a 'red'>", "<style>.b{fill:&a;}</style>"),
    ] {
        assert!(is_harmless_svg(document.as_bytes()), "{document}");
    }
}

#[test]
fn svg_whose_entities_run_something_or_refer_elsewhere_is_not_harmless() {
    for (subset, content) in [
        ("<!ENTITY x '<script>1</script>'>", "&x;"),
        ("<!ENTITY x '&#60;script>1&#60;/script>'>", "&x;"),
        (
            "<!ENTITY x '&#60;script>1&#60;/script>'><!ENTITY y '&x;'>",
            "&y;",
        ),
        ("<!ENTITY x '<image href=\"http://example.org/\"/>'>", ""),
        ("<!ENTITY x '<g onload=\"y()\"/>'>", ""),
        ("<!ENTITY x '<g &#111;nload=\"y()\"/>'>", "&x;"),
        ("<!ENTITY x '<image href=\"http://example.org/\"/>'>", "&x;"),
        ("<!ENTITY x 'http://example.org/'>", "<image href='&x;'/>"),
        (
            "<!ENTITY x 'http:'><!ENTITY y '&x;//example.org/'>",
            "<image href='&y;'/>",
        ),
        ("<!ENTITY x 'rl(http://example.org/)'>", "<g fill='u&x;'/>"),
        (
            "<!ENTITY x 'rl(http://example.org/)'>",
            "<style>a{b:u&x;}</style>",
        ),
        ("<!ENTITY x 'vascript:1'>", "<a href='ja&x;'/>"),
        ("<!ENTITY x 'href'>", "<set attributeName='&x;' to='#'/>"),
        (
            "<!ENTITY x 'xhtml'>",
            "<h:b xmlns:h='http://www.w3.org/1999/&x;'/>",
        ),
        ("<!ENTITY x '<b/>'>", "<style>&x;</style>"),
        ("<!ENTITY x '<b/>'>", "<g y='&x;'/>"),
        ("<!ENTITY x '<b>'>", "&x;</b>"),
        ("<!ENTITY x '</svg><svg>'>", "&x;"),
        ("<!ENTITY x SYSTEM 'http://example.org/'>", ""),
        ("<!ENTITY x PUBLIC 'a' 'http://example.org/'>", ""),
        ("<!ENTITY % x '<!ENTITY y \"z\">'> %x;", "&y;"),
        ("<!ENTITY x '%y;'>", ""),
        ("<!ATTLIST svg onload CDATA 'x()'>", ""),
        ("<!NOTATION x SYSTEM 'y'>", ""),
        ("<!ENTITY x '&x;'>", "&x;"),
        ("<!ENTITY x '&y;'><!ENTITY y '&x;'>", "<g z='&x;'/>"),
        ("<!ENTITY x '<g>&x;</g>'>", "&x;"),
        ("<!ENTITY x 'y'>", "&z;"),
        ("<!ENTITY x 'y", ""),
        ("<!ENTITY x", ""),
    ] {
        let document = with_entities(subset, content);
        assert!(!is_harmless_svg(document.as_bytes()), "{document}");
    }
    for content in [
        "<foreignObject requiredExtensions=''/>",
        "<foreignObject requiredExtensions='x'><b/></foreignObject>",
        "<foreignObject requiredExtensions='x'><i:b><img/></i:b></foreignObject>",
        "<foreignObject requiredExtensions='x'><i:script/></foreignObject>",
        "<foreignObject><i:b/></foreignObject>",
    ] {
        let document = svg(content);
        assert!(!is_harmless_svg(document.as_bytes()), "{document}");
    }
}

/// The "billion laughs" attack: each entity consists of ten times the previous one.
#[test]
fn svg_with_entities_in_entities_is_bounded() {
    for (unit, last) in [("", "ha"), ("", "<g/>"), ("<g/>", "<g/>")] {
        let mut subset = format!("<!ENTITY e0 '{last}'>");
        for number in 1..12 {
            let inner = format!("{unit}&e{};", number - 1).repeat(10);
            subset.push_str(&format!("<!ENTITY e{number} '{inner}'>"));
        }
        let begun = Instant::now();
        for content in ["<text>&e11;</text>", "<g x='&e11;'/>"] {
            assert!(!is_harmless_svg(with_entities(&subset, content).as_bytes()));
        }
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    }
    // Quadratic growth: a long entity is used many times.
    let subset = format!("<!ENTITY x '{}'>", "y".repeat(100_000));
    let document = with_entities(&subset, &"&x;".repeat(100_000));
    assert!(!is_harmless_svg(document.as_bytes()));
}

#[test]
fn svg_with_a_prefix_in_utf_16_or_another_charset_is_read() {
    let prefixed = "<s:svg xmlns:s=\"http://www.w3.org/2000/svg\"><s:style>.a{fill:red}</s:style><s:g class=\"a\"/></s:svg>";
    assert!(is_harmless_svg(prefixed.as_bytes()));
    assert!(!is_harmless_svg(
        prefixed.replace("<s:g", "<s:script").as_bytes()
    ));
    assert!(!is_harmless_svg(
        prefixed.replace("s:svg", "s:g").as_bytes()
    ));
    let wide = |text: &str, big: bool| {
        let unit = |unit: u16| {
            if big {
                unit.to_be_bytes()
            } else {
                unit.to_le_bytes()
            }
        };
        "\u{feff}"
            .encode_utf16()
            .chain(text.encode_utf16())
            .flat_map(unit)
            .collect::<Vec<u8>>()
    };
    let declared = format!("<?xml version='1.0' encoding='UTF-16'?>{}", svg("<g/>"));
    for big in [false, true] {
        for document in [&svg("<g/>"), &declared] {
            assert!(is_harmless_svg(&wide(document, big)), "{document}");
        }
        assert!(!is_harmless_svg(&wide(&svg("<script/>"), big)));
        assert!(!is_harmless_svg(&wide(
            &svg("<image href='http://x/'/>"),
            big
        )));
        let mut odd = wide(&svg(""), big);
        odd.pop();
        assert!(!is_harmless_svg(&odd));
    }
    for (label, is_read) in [
        ("windows-1251", true),
        ("Shift_JIS", true),
        ("GB2312", true),
        ("koi8-r", true),
        ("UTF-7", false),
        ("ISO-2022-JP", false),
        ("UTF-16", false),
        ("x-nobody-knows-it", false),
    ] {
        let document = format!("<?xml version='1.0' encoding='{label}'?>{}", svg(""));
        assert_eq!(is_harmless_svg(document.as_bytes()), is_read, "{label}");
    }
}

#[test]
fn svg_with_marks_of_programs_and_fonts_of_its_own_is_harmless() {
    for document in [
        format!("<?xml version='1.0'?><?foo bar?>{}", svg("")),
        svg("<metadata><?xpacket begin='x' id='y'?><?xpacket end='w'?></metadata>"),
        svg("<style>@font-face{font-family:x;src:url(data:font/woff2;base64,d09GMg==)}</style>"),
        svg("<style>@font-face{src:url(data:application/font-woff;base64,AA==)}</style>"),
    ] {
        assert!(is_harmless_svg(document.as_bytes()), "{document}");
    }
    for document in [
        svg("<?xml-stylesheet href='x'?>"),
        svg("<?a > ?>"),
        svg("<style><?a b?></style>"),
        svg("<style>@font-face{src:url(data:image/svg+xml,x)}</style>"),
        svg("<image href='data:font/woff,x'/>"),
    ] {
        assert!(!is_harmless_svg(document.as_bytes()), "{document}");
    }
}

/// With quadratic work, this test would take minutes.
#[test]
fn judging_hostile_svg_documents_takes_linear_time() {
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

    /// A picture with a reference that makes a browser send a request is refused, in whatever combination of pieces.
    #[test]
    fn generated_svg_with_an_external_reference_is_never_harmless(
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
        // Without this reference, the combination can be harmless or not. With it, the picture is harmful, if it is in
        // a place where markup is read.
        let at = at.index(pieces.len() + 1);
        let (front, rest) = pieces.split_at(at);
        let (front, rest) = (front.concat(), rest.concat());
        let _ = is_harmless_svg(svg(&front).as_bytes());
        let document = svg(&format!("{front}{home}{rest}"));
        // In a comment, an attribute or a style element, the reference is only text.
        let is_text = front.contains("<!--") || front.contains('\'') || front.contains('"')
            || front.contains("<style") || front.contains("<![CDATA[");
        prop_assert!(is_text || !is_harmless_svg(document.as_bytes()), "{document}");
    }

    #[test]
    fn judging_any_octets_as_svg_does_not_panic(octets in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = is_harmless_svg(&octets);
        let _ = is_harmless_svg(&[b"<svg ".as_slice(), &octets].concat());
    }
}
