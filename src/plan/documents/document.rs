use std::borrow::Cow;
use std::rc::Rc;

use super::link_text::{carried, readable};
use crate::link::base::Base;
use crate::link::css;
use crate::link::html::{self, Syntax};
use crate::link::label;
use crate::link::value::{LinkValue, Links};
use crate::mime::charset::{self, Charset};
use crate::mime::{PartId, TransferEncoding};
use crate::report::{Reason, Refusal};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Html(Syntax),
    Css,
}

/// The subtypes also tell messages that may have a document.
const TYPES: [(&str, &str, Language); 3] = [
    ("text", "html", Language::Html(Syntax::Html)),
    ("application", "xhtml+xml", Language::Html(Syntax::Xhtml)),
    ("text", "css", Language::Css),
];

pub(crate) fn subtypes() -> impl Iterator<Item = &'static [u8]> {
    TYPES.iter().map(|(_, subtype, _)| subtype.as_bytes())
}

impl Language {
    pub(super) fn of(essence: &str) -> Option<Self> {
        let essence = essence.split_once('/')?;
        let is_of = |(main, subtype, _): &&(&str, &str, Self)| (*main, *subtype) == essence;
        TYPES.iter().find(is_of).map(|(_, _, language)| *language)
    }

    pub(super) fn markup(self) -> Option<Syntax> {
        match self {
            Self::Html(syntax) => Some(syntax),
            Self::Css => None,
        }
    }
}

pub(super) struct Document<'d> {
    pub(super) part: PartId,
    pub(super) language: Language,
    pub(super) octets: &'d [u8],
    /// As long as `octets`; all that looks like ASCII in it is ASCII.
    pub(super) text: Cow<'d, [u8]>,
    pub(super) charset: Option<Charset>,
    pub(super) links: Links,
    pub(super) base_href: Option<LinkValue>,
    pub(super) base: Option<Rc<Base>>,
    /// A link may mean a part in one of them; the nearest first.
    pub(super) related: Vec<PartId>,
    pub(super) label: Option<Vec<u8>>,
    pub(super) looks_encoded: bool,
}

impl<'d> Document<'d> {
    pub(super) fn read(
        part: PartId,
        language: Language,
        octets: &'d [u8],
        named: Option<Charset>,
    ) -> Self {
        let mut document = Self {
            part,
            language,
            octets,
            text: Cow::Borrowed(octets),
            charset: named,
            links: Links::default(),
            base_href: None,
            base: None,
            related: Vec::new(),
            label: None,
            looks_encoded: false,
        };
        if let Some(named) = named {
            document.text = named.without_trail_bytes(octets);
            document.locate();
            return document;
        }
        document.locate();
        document.charset = document.own_charset();
        document.text = match document.charset {
            Some(charset) => charset.without_trail_bytes(octets),
            None => charset::without_doubtful_bytes(octets),
        };
        if let Cow::Owned(_) = document.text {
            document.locate();
        }
        document
    }

    fn locate(&mut self) {
        match self.language {
            Language::Css => {
                self.links = css::locate(&self.text);
                self.label = label::in_style_sheet(self.octets).map(<[u8]>::to_vec);
            }
            Language::Html(syntax) => {
                let found = html::locate_in(&self.text, syntax);
                self.links = found.links;
                self.base_href = found.base_href;
                self.looks_encoded = found.looks_encoded;
                let declared = || label::in_xml_declaration(self.octets).map(<[u8]>::to_vec);
                self.label = match syntax {
                    Syntax::Xhtml => declared().or(found.charset),
                    Syntax::Html => found.charset,
                };
            }
        }
    }

    fn own_charset(&self) -> Option<Charset> {
        if self.octets.starts_with(b"\xef\xbb\xbf") {
            return Some(Charset::Superset);
        }
        let named = self.label.as_deref().and_then(Charset::of_readable_label);
        // Japanese mail without a label; no other text has this escape.
        let shifts = || memchr::memmem::find(self.octets, b"\x1b$").is_some();
        named.or_else(|| shifts().then_some(Charset::Other))
    }

    pub(super) fn base_within(&self, around: Option<Rc<Base>>) -> Option<Rc<Base>> {
        let Some(href) = &self.base_href else {
            return around;
        };
        let href = readable(&href.decoded(&self.text));
        Base::of_document(around.as_deref(), &href).map(Rc::new)
    }

    /// None: a byte of it may be half a character.
    pub(super) fn value(&self, link: &LinkValue) -> Option<Cow<'_, [u8]>> {
        let is_whole = link.span.of(&self.text) == link.span.of(self.octets);
        let value = is_whole.then(|| link.decoded(&self.text))?;
        let may_have_trail_bytes = self.charset.is_some_and(Charset::has_trail_bytes);
        (!may_have_trail_bytes || value.is_ascii()).then_some(value)
    }

    /// A byte may be half a character: all that is no ASCII is carried through.
    pub(super) fn unclear(&self, link: &LinkValue) -> String {
        let text = carried(&link.decoded(&self.text));
        text.replace(['\t', '\n', '\r'], "")
    }

    pub(super) fn refusal(&self, encoding: TransferEncoding) -> Option<Refusal> {
        if self.looks_encoded {
            let encoding = encoding.as_str();
            let detail =
                format!("an attribute begins with 3D, as in quoted-printable, beneath {encoding}");
            return Some(Refusal::lasting(Reason::LooksEncoded, detail));
        }
        if self.charset == Some(Charset::Other) {
            let label = self.label.as_deref().unwrap_or(b"a charset of escapes");
            return Some(unsupported(label));
        }
        let base_href = self.base_href.as_ref()?;
        let why =
            "its <base href> is not ASCII, and in its charset a byte may be half of a character";
        let is_clear = self.value(base_href).is_some();
        (!is_clear).then(|| Refusal::lasting(Reason::CharsetNotSupported, why))
    }
}

pub(super) fn unsupported(label: &[u8]) -> Refusal {
    let label = String::from_utf8_lossy(label.trim_ascii()).to_ascii_lowercase();
    let detail = format!("links in the charset {label} are not supported");
    Refusal::lasting(Reason::CharsetNotSupported, detail)
}
