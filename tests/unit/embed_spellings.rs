//! Pictures whose URL, content or Content-ID is written in a form that browsers read and other programs do not:
//! references in the style of an SVG, blanks and backslashes in URLs, charsets of SVG, and characters that are not
//! allowed in a URI.

use embody::Policy;
use embody::fetch::Canned;
use embody::policy::Embed;
use embody::report::{Kind, Outcome, Reason, Report};

use super::common::mail::assert_bytes;
use super::embed::{cids, gif, html, pictures, policy, run};

/// Answers only this exact URL, with a picture.
fn world(url: &str) -> Canned {
    Canned::new().with(url, Some("image/gif"), gif(9, 9, 1))
}

/// Embeds the only picture of a mail. The request must be for this URL.
#[track_caller]
fn asked(mail: &[u8], url: &str) -> String {
    let world = world(url);
    let (output, report) = run(policy(), &world, mail);
    let all: Vec<String> = world
        .asked()
        .into_iter()
        .map(|request| request.url().to_owned())
        .collect();
    assert_eq!(all, [url], "{}", String::from_utf8_lossy(mail));
    let embeds = report.rows.iter().filter(|row| row.kind == Kind::Embed);
    let outcomes: Vec<Outcome> = embeds.map(|row| row.outcome).collect();
    assert_eq!(outcomes, [Outcome::Expanded], "{:?}", report.rows);
    let text = String::from_utf8(output).unwrap();
    assert_eq!(cids(&text).len(), 1, "{text}");
    text
}

#[test]
fn entities_are_decoded_in_svg_style_and_not_in_html_style() {
    let style = |url: &str| format!(".c{{background:url(\"https://h.example/{url}\")}}");
    for (body, url) in [
        (
            format!("<svg><style>{}</style></svg>", style("x?a=1&amp;b=2")),
            "x?a=1&b=2",
        ),
        (
            format!("<svg><style>{}</style></svg>", style("x?a=1&b=2")),
            "x?a=1&b=2",
        ),
        (
            format!(
                "<svg><g><style type=text/css>{}</style></g></svg>",
                style("x?a=1&ampb=2")
            ),
            "x?a=1&b=2",
        ),
        (
            format!(
                "<svg><style><![CDATA[{}]]></style></svg>",
                style("x?a=1&amp;b=2")
            ),
            "x?a=1&amp;b=2",
        ),
        (
            format!(
                "<math><mi><svg><style>\n<![CDATA[\n{}]]>\n</style></svg>",
                style("x?a&b")
            ),
            "x?a&b",
        ),
        (
            format!("<style>{}</style>", style("x?a=1&amp;b=2")),
            "x?a=1&amp;b=2",
        ),
        (
            format!("<svg></svg><style>{}</style>", style("x?a&amp;b")),
            "x?a&amp;b",
        ),
        (
            format!(
                "<svg><foreignObject><style>{}</style></foreignObject></svg>",
                style("x?a&amp;b")
            ),
            "x?a&amp;b",
        ),
        // An HTML tag ends the SVG.
        (
            format!("<svg><p><style>{}</style>", style("x?a&amp;b")),
            "x?a&amp;b",
        ),
        (
            format!("<svg><style/><style>{}</style></svg>", style("x?a&amp;b")),
            "x?a&b",
        ),
        (
            format!("<svg><title/><style>{}</style></svg>", style("x&#47;y")),
            "x/y",
        ),
    ] {
        let text = asked(html(&body).as_bytes(), &format!("https://h.example/{url}"));
        let id = &cids(&text)[0];
        assert!(text.contains(&format!("url(\"cid:{id}\")")), "{text}");
    }
}

#[test]
fn comments_and_elements_in_the_style_of_an_svg_are_not_style() {
    let url = "url(https://h.example/x)";
    for body in [
        format!("<svg><style><!-- a{{b:{url}}} --></style></svg>"),
        format!("<svg><style>a{{}}</style>a{{b:{url}}}</svg>"),
        format!("<svg><style><a>a{{b:{url}}}</a></style></svg>"),
    ] {
        let mail = html(&body);
        let world = world("https://h.example/x");
        let (output, report) = run(policy(), &world, mail.as_bytes());
        assert_bytes(&output, mail.as_bytes(), &body);
        assert!(report.rows.is_empty() && world.asked().is_empty(), "{body}");
    }
}

#[test]
fn links_in_the_style_of_xhtml_are_resolved_with_their_references() {
    let mail = |url: &str| {
        format!(
            "MIME-Version: 1.0\nContent-Base: https://b.example/\nContent-Type: application/xhtml+xml\n\n\
             <html><style>a{{b:url(\"{url}\")}}</style><style><![CDATA[a{{b:url(\"{url}\")}}]]></style></html>\n"
        )
    };
    let keep = Policy::default();
    let (output, _) = run(keep, &Canned::new(), mail("x?a&amp;b").as_bytes());
    let text = String::from_utf8(output).unwrap();
    // CSS escapes the ampersand, so that it has no meaning in XML.
    assert!(
        text.contains("<style>a{b:url(\"https://b.example/x?a\\26 b\")}"),
        "{text}"
    );
    assert!(
        text.contains("[a{b:url(\"https://b.example/x?a\\26 amp;b\")}]"),
        "{text}"
    );
}

#[test]
fn a_url_is_asked_for_as_browsers_do_with_a_base_and_without() {
    for (written, url) in [
        ("https://h.example/a b.png", "https://h.example/a%20b.png"),
        ("https:\\\\h.example\\c.png", "https://h.example/c.png"),
        ("https:/h.example/d.png", "https://h.example/d.png"),
        ("https:h.example/e.png", "https://h.example/e.png"),
        (
            "https:////h.example//f.png?a b\\c",
            "https://h.example//f.png?a%20b\\c",
        ),
        ("//h.example/g h.png", "https://h.example/g%20h.png"),
        ("\\\\h.example\\i\\j.png", "https://h.example/i/j.png"),
        ("///h.example/k.png", "https://h.example/k.png"),
        (
            "  https://h.example/l\n m.png ",
            "https://h.example/l%20m.png",
        ),
    ] {
        asked(html(&format!("<img src=\"{written}\">")).as_bytes(), url);
        let style = format!(
            "<p style='background:url(\"{}\")'>",
            written.replace('\\', "\\\\").replace('\n', "")
        );
        asked(html(&style).as_bytes(), url);
        let with_base = html(&format!(
            "<base href='http://other.example/x/'><img src=\"{written}\">"
        ));
        asked(with_base.as_bytes(), url);
    }
    let based = |written: &str| {
        html(&format!(
            "<base href=https://h.example/x/y><img src=\"{written}\">"
        ))
    };
    for (written, url) in [
        ("a b.png", "https://h.example/x/a%20b.png"),
        ("https:/d.png", "https://h.example/d.png"),
        ("https:d.png", "https://h.example/x/d.png"),
        ("\\e.png", "https://h.example/e.png"),
        ("f\\g.png", "https://h.example/x/f/g.png"),
    ] {
        asked(based(written).as_bytes(), url);
    }
}

#[test]
fn a_url_without_a_host_is_left_with_a_reason() {
    for written in [
        "https://",
        "https:",
        "https://a b/c",
        "https:\\\\",
        "http://h\\x01/",
    ] {
        let mail = html(&format!("<img src=\"{written}\">"));
        let (output, report) = run(policy(), &Canned::new(), mail.as_bytes());
        assert_bytes(&output, mail.as_bytes(), written);
        let reasons: Vec<_> = report.rows.iter().map(|row| row.reason).collect();
        assert!(
            reasons.len() == 1 && reasons[0].is_some(),
            "{written}: {reasons:?}"
        );
    }
}

#[test]
fn written_content_location_contains_only_uri_characters() {
    let written = "https://h.example/a|b^c`d{e}&quot;f<g>\u{e9} h%20i%zz";
    let url = "https://h.example/a|b^c`d{e}\"f<g>\u{e9}%20h%20i%zz";
    let text = asked(html(&format!("<img src=\"{written}\">")).as_bytes(), url);
    let behind = text.split_once("Content-Location:").unwrap().1;
    let folded = behind.split_once("Content-Transfer-Encoding").unwrap().0;
    let location: String = folded.split_whitespace().collect();
    assert_eq!(
        location,
        "https://h.example/a%7Cb%5Ec%60d%7Be%7D%22f%3Cg%3E%C3%A9%20h%20i%zz"
    );
    // The same for a part that is filled in.
    let reference = "Content-Type: message/external-body; access-type=URL; URL=\"https://h.example/a|b\"\n\nContent-Type: image/gif\n\n";
    let (output, _) = run(
        policy(),
        &world("https://h.example/a|b"),
        reference.as_bytes(),
    );
    let text = String::from_utf8(output).unwrap();
    assert!(
        text.contains("Content-Location: https://h.example/a%7Cb\n"),
        "{text}"
    );
}

const SVG: &str = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><title>%E9</title><text y='9'>%E9</text></svg>";

#[test]
fn the_charset_of_an_svg_is_kept() {
    for (parameters, kept) in [
        (";charset=iso-8859-1", Some("iso-8859-1")),
        (";charset=\"Windows-1252\"", Some("Windows-1252")),
        (";charset=KOI8-R;x=y", Some("KOI8-R")),
        (";charset=utf-8", None),
        (";charset=nobody-knows-it", None),
        ("", None),
    ] {
        let escaped = parameters.replace('"', "&quot;");
        let mail = html(&format!("<img src=\"data:image/svg+xml{escaped},{SVG}\">"));
        let (output, report) = run(policy(), &Canned::new(), mail.as_bytes());
        assert_eq!(
            report.rows[0].outcome,
            Outcome::Expanded,
            "{parameters}: {:?}",
            report.rows
        );
        let text = String::from_utf8(output).unwrap();
        let field = match kept {
            Some(charset) => format!("Content-Type: image/svg+xml; charset=\"{charset}\"\n"),
            None => "Content-Type: image/svg+xml\n".to_owned(),
        };
        assert!(text.contains(&field), "{parameters}: {text}");
        // The same for a response of a server.
        let world = Canned::new().with(
            "https://h.example/x",
            Some(&format!("image/svg+xml{parameters}")),
            SVG.replace("%E9", "e"),
        );
        let mail = html("<img src=https://h.example/x>");
        let text = String::from_utf8(run(policy(), &world, mail.as_bytes()).0).unwrap();
        assert!(text.contains(&field), "{parameters}: {text}");
    }
}

#[test]
fn an_svg_in_a_charset_that_may_hide_markup_is_left() {
    for charset in [
        "utf-16",
        "utf-7",
        "iso-2022-jp",
        "shift_jis",
        "gb18030",
        "big5",
        "hz-gb-2312",
    ] {
        let mail = html(&format!(
            "<img src=\"data:image/svg+xml;charset={charset},{SVG}\">"
        ));
        let (output, report) = run(policy(), &Canned::new(), mail.as_bytes());
        assert_bytes(&output, mail.as_bytes(), charset);
        assert_eq!(
            report.rows[0].reason,
            Some(Reason::CharsetNotSupported),
            "{charset}"
        );
    }
}

#[test]
fn equal_bytes_in_two_charsets_are_two_pictures() {
    let one = |charset: &str| format!("<img src=\"data:image/svg+xml;charset={charset},{SVG}\">");
    let mail = html(&[one("iso-8859-1"), one("koi8-r"), one("iso-8859-1")].concat());
    let (output, _) = run(policy(), &Canned::new(), mail.as_bytes());
    assert_eq!(pictures(&output).len(), 2);
}

/// The type of the reference contains no charset, but the type of the source does.
#[test]
fn the_charset_of_an_svg_that_is_put_in_is_kept() {
    for url in [
        "data:image/svg+xml;charset=iso-8859-1,%E9",
        "https://h.example/x",
    ] {
        let reference = format!(
            "Content-Type: message/external-body; access-type=URL; URL=\"{url}\"\n\nContent-Type: image/svg+xml\n\n"
        );
        let world = Canned::new().with(
            "https://h.example/x",
            Some("image/svg+xml; charset=iso-8859-1"),
            b"\xe9".as_slice(),
        );
        let (output, _) = run(policy(), &world, reference.as_bytes());
        let text = String::from_utf8(output).unwrap();
        let field = "Content-Type: image/svg+xml;\n charset=\"iso-8859-1\"\n";
        assert!(text.contains(field), "{url}: {text}");
    }
}

const BASE: &str = "MIME-Version: 1.0\nContent-Base: https://h.example/d/\n";

fn octets(charset: &str, body: &[u8]) -> Vec<u8> {
    [
        BASE.as_bytes(),
        b"Content-Type: text/html",
        charset.as_bytes(),
        b"\n\n",
        body,
    ]
    .concat()
}

fn rows(report: &Report) -> Vec<(Kind, Outcome, Option<Reason>)> {
    report
        .rows
        .iter()
        .map(|row| (row.kind, row.outcome, row.reason))
        .collect()
}

/// In this charset, `\` may be the second half of a character, so it is unknown whether the link is relative.
#[test]
fn a_link_of_which_a_byte_may_be_half_a_character_is_left_with_a_row() {
    let left = |kind, reason| (kind, Outcome::Left, Some(reason));
    for charset in ["; charset=x-nobody-knows-it", "; charset=us-ascii", ""] {
        let mail = octets(charset, b"<img src=\"caf\x95\\.png\">");
        let (output, report) = run(policy(), &Canned::new(), &mail);
        assert_bytes(&output, &mail, charset);
        let (embed, link) = (
            left(Kind::Embed, Reason::BadUrl),
            left(Kind::Link, Reason::CharsetNotSupported),
        );
        assert_eq!(rows(&report), [embed, link], "{charset}");
        // A link with a scheme has the same meaning in any charset.
        let mail = octets(
            charset,
            b"<a href=\"https://h.example/\x95\\.png\"><img src=\"https://h.example/\x95\\.png\">",
        );
        let (output, report) = run(policy(), &Canned::new(), &mail);
        assert_bytes(&output, &mail, charset);
        assert_eq!(rows(&report), [embed], "{charset}");
    }
    // Bytes that are not characters, next to links that are resolved.
    let mail = octets(
        "; charset=shift_jis",
        b"<a href=\"x\"><a href=\"\xff\\\"><a href=\"\x95\xffy\">",
    );
    let (output, report) = run(policy(), &Canned::new(), &mail);
    let after = octets(
        "; charset=shift_jis",
        b"<a href=\"https://h.example/d/x\"><a href=\"\xff\\\"><a href=\"\x95\xffy\">",
    );
    assert_bytes(&output, &after, "beside");
    assert_eq!(rows(&report), [(Kind::Link, Outcome::Rewritten, None)]);
    assert!(
        report.rows[0]
            .detail
            .contains("2 relative links were not changed"),
        "{:?}",
        report.rows[0]
    );
}

#[test]
fn a_picture_whose_url_is_not_all_text_is_left_with_a_row_that_shows_its_octets() {
    for (body, url) in [
        (
            b"<img src='caf\xe9.png'>".as_slice(),
            "https://h.example/d/caf%E9.png",
        ),
        (
            b"<img src='https://h.example/caf\xe9.png'>",
            "https://h.example/caf%E9.png",
        ),
        (
            b"<img src='//h.example/caf\xe9.png'>",
            "https://h.example/caf%E9.png",
        ),
    ] {
        let (_, report) = run(policy(), &Canned::new(), &octets("", body));
        let row = &report.rows[0];
        assert_eq!((row.kind, row.reason), (Kind::Embed, Some(Reason::BadUrl)));
        assert_eq!(row.url.as_deref(), Some(url));
    }
    // The content of the data: URL would change.
    let svg = [
        b"<img src=\"data:image/svg+xml,".as_slice(),
        SVG.replace("%E9", "x").as_bytes(),
        b"\xe9\">",
    ]
    .concat();
    let mail = octets("; charset=iso-8859-1", &svg);
    let (output, report) = run(policy(), &Canned::new(), &mail);
    assert_bytes(&output, &mail, "data");
    assert_eq!(
        rows(&report),
        [(Kind::Embed, Outcome::Left, Some(Reason::BadUrl))]
    );
}

#[test]
fn a_part_whose_content_id_holds_a_blank_is_not_named() {
    for (id, is_named) in [
        ("<a@b>", true),
        (" <a@b> ", true),
        ("<a b@c>", false),
        ("<a\n b@c>", false),
        ("< a@b>", false),
        ("a b", false),
    ] {
        let mail = format!(
            "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=q\nContent-Base: https://h.example/\n\n--q\n\
             Content-Type: text/html\n\n<img src=p.gif><a href=p.gif>\n--q\nContent-Type: image/gif\nContent-ID: {id}\n\
             Content-Location: p.gif\n\nGIF89a\n--q--\n"
        );
        let keep = Policy {
            embed: Embed::default(),
            ..policy()
        };
        for policy in [policy(), keep] {
            let (output, _) = run(policy, &Canned::new(), mail.as_bytes());
            let text = String::from_utf8(output).unwrap();
            let named = text.matches("cid:a@b").count();
            assert_eq!(named > 0, is_named, "{id}: {text}");
            assert_eq!(text.contains("cid:"), is_named, "{id}: {text}");
        }
    }
}
