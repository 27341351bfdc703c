//! The role of a link for `--embed`: pictures, media, fonts and style sheets in all places where mail has them,
//! pictures that are hidden or tiny, and links in the same tag.

use embody::link::html::{Syntax, locate, locate_in};
use embody::link::value::LinkRole;
use embody::link::{css, value::LinkValue};
use proptest::prelude::*;

fn found(document: &str) -> Vec<LinkValue> {
    locate(document.as_bytes()).links.to_vec()
}

/// Returns the raw text and the role of every link.
fn roles(document: &str) -> Vec<(&str, LinkRole)> {
    found(document)
        .iter()
        .map(|link| (&document[link.span.start..link.span.end], link.role))
        .collect()
}

/// Returns the texts of hidden links.
fn hidden(document: &str) -> Vec<&str> {
    found(document)
        .iter()
        .filter(|link| link.hidden)
        .map(|link| &document[link.span.start..link.span.end])
        .collect()
}

const PICTURES: [&str; 24] = [
    "<img src=x>",
    "<img srcset='x 2x'>",
    "<image src=x>",
    "<picture><source srcset='x 1x'></picture>",
    "<input type=image src=x>",
    "<input src=x type=' Image '>",
    "<body background=x>",
    "<table background=x>",
    "<v:rect background=x>",
    "<video poster=x>",
    "<svg><image href=x /></svg>",
    "<svg><image xlink:href=x /></svg>",
    "<svg><feImage href=x /></svg>",
    "<img lowsrc=x>",
    "<img dynsrc=x>",
    "<v:fill type=frame src=x />",
    "<v:imagedata src=x />",
    "<V:IMAGE src=x />",
    "<p style='background:url(x)'>",
    "<p style='background:image-set(\"x\" 1x)'>",
    "<p style='background:image-set(url(x) 1x)'>",
    "<style>@media print{a{b:url(x)}}</style>",
    "<style>@font-face{font-family:a}b{c:url(x)}</style>",
    "<style>@font-face;b{c:url(x)}</style>",
];

#[test]
fn pictures_are_told_from_what_else_is_loaded() {
    for document in PICTURES {
        assert_eq!(roles(document), [("x", LinkRole::Picture)], "{document}");
    }
    for (document, role) in [
        ("<audio src=x>", LinkRole::Media),
        ("<video src=x>", LinkRole::Media),
        ("<source src=x>", LinkRole::Media),
        ("<track src=x>", LinkRole::Resource),
        ("<input src=x>", LinkRole::Resource),
        ("<input type=text src=x>", LinkRole::Resource),
        ("<embed src=x>", LinkRole::Resource),
        ("<script src=x></script>", LinkRole::Resource),
        ("<iframe src=x></iframe>", LinkRole::Frame),
        ("<object data=x>", LinkRole::Resource),
        ("<svg><use href=x /></svg>", LinkRole::Resource),
        ("<svg><a href=x></svg>", LinkRole::Hyperlink),
        ("<v:shape href=x>", LinkRole::Resource),
        ("<link rel='preload' href=x>", LinkRole::Resource),
        ("<link rel='shortcut icon' href=x>", LinkRole::Resource),
        (
            "<link rel='alternate StyleSheet' href=x>",
            LinkRole::StyleSheet,
        ),
        ("<link rel=canonical href=x>", LinkRole::Hyperlink),
        ("<link rel=preload imagesrcset=x>", LinkRole::Resource),
        ("<style>@import url(x);</style>", LinkRole::StyleSheet),
        ("<style>@font-face{src:url(x)}</style>", LinkRole::Font),
        (
            "<style>@FONT-FACE/**/{a:b;c{}src:url(x)}</style>",
            LinkRole::Font,
        ),
        (
            "<style>@media screen{@font-face{src:src('x')}}</style>",
            LinkRole::Font,
        ),
    ] {
        assert_eq!(roles(document), [("x", role)], "{document}");
    }
    assert_eq!(roles("<img data-src=x>"), []);
}

#[test]
fn conditional_comments_are_searched_like_other_markup() {
    for document in PICTURES {
        let inside = format!("<!--[if gte mso 9]>{document}<![endif]-->");
        assert_eq!(roles(&inside), [("x", LinkRole::Picture)], "{inside}");
    }
    assert_eq!(
        hidden("<!--[if mso]><v:image src=x style='width:.75pt;height:.75pt' /><![endif]-->"),
        ["x"]
    );
}

#[test]
fn style_sheets_know_fonts_and_imports() {
    let sheet =
        b"@import 'a'; @font-face { src: url(b), url('c') format('woff'); } d { e: url(f) }";
    let roles: Vec<_> = css::locate(sheet).iter().map(|link| link.role).collect();
    assert_eq!(
        roles,
        [
            LinkRole::StyleSheet,
            LinkRole::Font,
            LinkRole::Font,
            LinkRole::Picture
        ]
    );
    assert!(css::locate(sheet).iter().all(|link| link.opens_tag));
}

#[test]
fn a_picture_that_its_own_tag_hides_is_hidden() {
    for attributes in [
        "width=1 height=1",
        "WIDTH='3' HEIGHT=\" 3px \"",
        "width=0 height=0.5",
        "width='&#49;' height=1",
        "height=1 style='width:1px'",
        "width=600 height=400 style='width:1PX ; height: 1px!important'",
        "style='width:0;height:0'",
        "style='width:2.25pt;height:1'",
        "style='width:600px;width:1px;height:1px'",
        "style='height:1px;width:1px ! important;width:600px'",
        "style='display:none'",
        "style='DISPLAY : None'",
        "style='display/* */:/**/none/*'",
        "style='/*display:block;*/display:none'",
        "style='a:\";display:block\";display:none'",
        "style='a:url(;);display:none;'",
        "style='display:none!IMPORTANT;display:block'",
        "style='display:none;display:3'",
        "style='d\\69splay:none'",
        "style='display&colon;none'",
        "style=display:none",
        "style='visibility: hidden'",
        "style='opacity:0'",
        "style='opacity:.0'",
        "style='opacity:0%'",
        "style='mso-hide:all'",
        "hidden",
        "hidden=''",
        "hidden=until-found",
    ] {
        for tag in ["img", "input type=image", "v:image", "IMG\n"] {
            let document = format!("<{tag} src=x {attributes}><{tag} {attributes} src=x>");
            assert_eq!(hidden(&document), ["x", "x"], "{document}");
        }
    }
}

#[test]
fn a_picture_that_may_be_seen_is_not_hidden() {
    for attributes in [
        "",
        "width=1",
        "height=1",
        "width=600 height=1",
        "width=4 height=3",
        "width=1% height=1%",
        "width=x height=1",
        "width height",
        "width=1 height=1 style='width:100%'",
        "width=1 height=1 style='height:auto'",
        "width=1 height=1 style='width:20px;height:20px'",
        "style='width:1px'",
        "style='width:1em;height:1em'",
        "style='width:3pt;height:3pt'",
        "style='width:-1px;height:1px'",
        "style='max-width:1px;line-height:1px'",
        "style='display:none;display:block'",
        "style='display:block!important;display:none'",
        "style='/*display:none*/'",
        "style='dis/**/play:none'",
        "style='x:\";display:none\"'",
        "style='x:(;display:none)'",
        "style='x-display:none'",
        "style='display:none-such'",
        "style='opacity:0.01'",
        "style='visibility:visible'",
        "data-hidden title=hidden",
        "style",
    ] {
        let document = format!("<img src=x {attributes}>");
        assert_eq!(hidden(&document), [] as [&str; 0], "{document}");
    }
}

#[test]
fn only_the_picture_of_the_tag_is_hidden() {
    assert_eq!(
        hidden(
            "<img hidden src=a srcset='b, c 2x' lowsrc=d dynsrc=e longdesc=f usemap=g background=h \
             style='background:url(i)'>"
        ),
        ["a", "b", "c", "d"]
    );
    for document in [
        "<td hidden background=x>",
        "<video hidden src=x poster=x>",
        "<input hidden src=x>",
        "<a hidden href=x>",
        "<img hidden><img src=x>",
        "<p hidden><img src=x>",
        "<v:fill hidden src=x>",
    ] {
        assert_eq!(hidden(document), [] as [&str; 0], "{document}");
    }
}

#[test]
fn widths_are_no_sign_of_quoted_printable() {
    assert!(locate(b"<img src=3D\"x\">").looks_encoded);
    assert!(!locate(b"<ol type=3D width=3D height=3d>").looks_encoded);
}

#[test]
fn first_link_of_each_tag_is_marked_as_opening_the_tag() {
    let opening = |document: &'static str| -> Vec<(&str, bool)> {
        found(document)
            .iter()
            .map(|link| (&document[link.span.start..link.span.end], link.opens_tag))
            .collect()
    };
    assert_eq!(
        opening(
            "<img src=a srcset='b, c' style='x:url(d) url(e)'><p style='x:url(f) url(g)' cite=h>\
             <style>i{j:url(k) url(l)}</style><a ping='m n'><br><a href=o>\
             <!--[if x]><td background=p style='q:url(r)'><img src=s><![endif]-->"
        ),
        [
            ("a", true),
            ("b", false),
            ("c", false),
            ("d", false),
            ("e", false),
            ("f", true),
            ("g", false),
            ("h", false),
            ("k", true),
            ("l", true),
            ("m", true),
            ("n", false),
            ("o", true),
            ("p", true),
            ("r", false),
            ("s", true),
        ]
    );
}

proptest! {
    #[test]
    fn the_last_important_declaration_wins_over_any_in_front(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "display", ":", ";", "none", "block", "!important", "/*", "*/", "\"", "(", ")", "\\",
            " ", "width:1px", "height:", "1", "px", "&quot;", "&", "\u{e9}", "\n",
        ]), 0..20),
    ) {
        let style = pieces.concat();
        // A line ending closes strings, and 20 pieces open at most 20 parentheses.
        let closed = format!("{style}\n{};display:none!important", ")".repeat(20));
        let after = format!("<img src=x style='{closed}'>");
        let may_hide_it = closed.contains('\\') || closed.contains("/*");
        prop_assert!(may_hide_it || hidden(&after) == ["x"], "{after}");
        for syntax in [Syntax::Html, Syntax::Xhtml] {
            let links = locate_in(after.as_bytes(), syntax).links;
            prop_assert_eq!(links.iter().filter(|link| link.opens_tag).count(), 1);
        }
    }
}
