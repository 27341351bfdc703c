//! Names of HTML elements and attributes that are relevant for links. They are compared without regard to case.

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Syntax {
    #[default]
    Html,
    /// XHTML (application/xhtml+xml): `<title/>` is an empty element, and new attribute values must be well-formed
    /// XML. Names are compared without regard to case, as in HTML.
    Xhtml,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Element {
    Area,
    Anchor,
    Applet,
    AudioVideo,
    Base,
    Frame,
    /// `<image>` and `<feImage>`. They are elements of SVG, but are recognised in the whole document.
    Image,
    Img,
    Input,
    Link,
    Meta,
    Object,
    Raw(Raw),
    /// `<svg>`, `<math>` and `<template>`. A `<base>` inside them does not apply to the document: see
    /// [`scopes`](super::scopes).
    Scope,
    Source,
    /// `<v:fill>` and `<v:imagedata>` of VML, the vector graphics in HTML of Microsoft Office.
    VmlFill,
    VmlImage,
    Other,
}

/// Elements whose content is not markup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Raw {
    Style,
    Script,
    /// `<iframe>`. Its content is not markup, and its `src` refers to a document that is displayed in it.
    Iframe,
    Text(&'static [u8]),
    Plain,
}

macro_rules! names {
    ($($variant:ident $text:literal)+) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum Name { $(#[doc = $text] $variant),+ }

        impl Name {
            pub(super) fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            #[allow(non_upper_case_globals)] // named after the variants
            fn of(lower_case: &[u8]) -> Option<Self> {
                $(const $variant: &[u8] = $text.as_bytes();)+
                match lower_case {
                    $($variant => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

names! {
    Action "action" Archive "archive" Background "background" Cite "cite" Classid "classid"
    Charset "charset" Codebase "codebase" Content "content" Data "data" Dynsrc "dynsrc" Formaction "formaction"
    Height "height" Hidden "hidden" Href "href" HttpEquiv "http-equiv" Imagesrcset "imagesrcset" Integrity "integrity"
    Longdesc "longdesc"    Lowsrc "lowsrc" Manifest "manifest" Originalsrc "originalsrc" Ping "ping" Poster "poster" Profile "profile" Rel "rel"
    Src "src" Srcset "srcset" Style "style" Type "type" Usemap "usemap"
    Width "width" XlinkHref "xlink:href"
}

/// Length of `annotation-xml`, the longest relevant name, in bytes.
pub(super) const LONGEST_NAME: usize = 14;

pub(super) fn attribute_name(name: &[u8]) -> Option<Name> {
    let mut buffer = [0; LONGEST_NAME];
    Name::of(lower_case(name, &mut buffer)?)
}

pub(super) fn element(name: &[u8]) -> Element {
    match name {
        b"a" => Element::Anchor,
        b"area" => Element::Area,
        b"applet" => Element::Applet,
        b"audio" | b"video" => Element::AudioVideo,
        b"base" => Element::Base,
        b"frame" => Element::Frame,
        b"image" | b"feimage" => Element::Image,
        b"img" => Element::Img,
        b"input" => Element::Input,
        b"link" => Element::Link,
        b"meta" => Element::Meta,
        b"object" => Element::Object,
        b"style" => Element::Raw(Raw::Style),
        b"script" => Element::Raw(Raw::Script),
        b"iframe" => Element::Raw(Raw::Iframe),
        b"textarea" => Element::Raw(Raw::Text(b"textarea")),
        b"title" => Element::Raw(Raw::Text(b"title")),
        b"xmp" => Element::Raw(Raw::Text(b"xmp")),
        b"noembed" => Element::Raw(Raw::Text(b"noembed")),
        b"noframes" => Element::Raw(Raw::Text(b"noframes")),
        b"plaintext" => Element::Raw(Raw::Plain),
        b"svg" | b"math" | b"template" => Element::Scope,
        b"source" => Element::Source,
        b"v:fill" | b"v:imagedata" => Element::VmlFill,
        b"v:image" => Element::VmlImage,
        _ => Element::Other,
    }
}

pub(super) fn lower_case<'b>(name: &[u8], buffer: &'b mut [u8; LONGEST_NAME]) -> Option<&'b [u8]> {
    let lower = buffer.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    Some(lower)
}
