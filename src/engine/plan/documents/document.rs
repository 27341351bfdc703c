use std::borrow::Cow;
use std::rc::Rc;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252, X_USER_DEFINED};

use super::link_text::{ascii, carried, cleaned, holds_carried, is_data, readable, uncarried};
use crate::engine::report::{Reason, Refusal};
use crate::link::base::Base;
use crate::link::css;
use crate::link::html::{self, OriginalSource, Syntax};
use crate::link::label;
use crate::link::url::with_query_in;
use crate::link::value::{LinkList, LinkValue, Markup};
use crate::mime::charset::{self, Charset};
use crate::mime::{PartId, TransferEncoding};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DocumentLanguage {
    Html(Syntax),
    Css,
}

/// Media types of documents. The prefilter uses the subtypes to find messages that may contain a document.
const TYPES: [(&str, &str, DocumentLanguage); 3] = [
    ("text", "html", DocumentLanguage::Html(Syntax::Html)),
    (
        "application",
        "xhtml+xml",
        DocumentLanguage::Html(Syntax::Xhtml),
    ),
    ("text", "css", DocumentLanguage::Css),
];

pub(crate) fn subtypes() -> impl Iterator<Item = &'static [u8]> {
    TYPES.iter().map(|(_, subtype, _)| subtype.as_bytes())
}

impl DocumentLanguage {
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

pub(super) struct LinkedDocument<'d> {
    pub(super) part: PartId,
    pub(super) language: DocumentLanguage,
    pub(super) octets: &'d [u8],
    /// The document as the parsers read it, with the same length as `octets`. In charsets such as Shift_JIS, a
    /// character of two bytes can contain a byte below 0x80, which could be mistaken for a `<` or a quotation mark.
    /// Such bytes are replaced, so every byte below 0x80 is an ASCII character.
    pub(super) text: Cow<'d, [u8]>,
    pub(super) charset: Option<Charset>,
    /// The charset with which browsers decode the document. `None` if neither the mail nor the document declares a known one.
    pub(super) encoding: Option<&'static Encoding>,
    pub(super) links: LinkList,
    /// The pictures whose `src` was removed and is still in `originalsrc`.
    pub(super) originals: Vec<OriginalSource>,
    pub(super) base_href: Option<LinkValue>,
    pub(super) base: Option<Rc<Base>>,
    /// The multiparts whose parts a link can refer to, the nearest first.
    pub(super) related: Vec<PartId>,
    pub(super) label: Option<Vec<u8>>,
    pub(super) looks_encoded: bool,
}

impl<'d> LinkedDocument<'d> {
    pub(super) fn read(
        part: PartId,
        language: DocumentLanguage,
        octets: &'d [u8],
        (named, label): (Option<Charset>, Option<&[u8]>),
    ) -> Self {
        let mut document = Self {
            part,
            language,
            octets,
            text: Cow::Borrowed(octets),
            charset: named,
            encoding: declared(octets, label),
            links: LinkList::default(),
            originals: Vec::new(),
            base_href: None,
            base: None,
            related: Vec::new(),
            label: None,
            looks_encoded: false,
        };
        if let Some(named) = named {
            document.text = named.without_trail_bytes(octets);
            document.locate();
            document.encoding = document.encoding.or_else(|| document.own_encoding());
            return document;
        }
        document.locate();
        document.encoding = document.encoding.or_else(|| document.own_encoding());
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
            DocumentLanguage::Css => {
                self.links = css::locate(&self.text);
                self.label = label::in_style_sheet(self.octets).map(<[u8]>::to_vec);
            }
            DocumentLanguage::Html(syntax) => {
                let found = html::locate_in(&self.text, syntax);
                self.links = found.links;
                self.originals = found.originals;
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
        // Japanese mail without a label contains this escape sequence. No other text does.
        let shifts = || memchr::memmem::find(self.octets, b"\x1b$").is_some();
        named.or_else(|| shifts().then_some(Charset::Other))
    }

    /// Returns the charset that the document declares for itself. If it declares UTF-16, it means UTF-8, because the label
    /// could not be read in UTF-16 (HTML standard, §13.2.3.2).
    fn own_encoding(&self) -> Option<&'static Encoding> {
        let encoding = Encoding::for_label(self.label.as_deref()?)?;
        Some(match encoding {
            _ if encoding == X_USER_DEFINED => WINDOWS_1252,
            _ => encoding.output_encoding(),
        })
    }

    pub(super) fn base_within(&self, around: Option<Rc<Base>>) -> Option<Rc<Base>> {
        let Some(href) = &self.base_href else {
            return around;
        };
        let characters = || self.characters(href).map(|text| ascii(&text));
        let href = match self.value(href) {
            Some(value) => readable(&value),
            // The bytes of the value cannot be read safely, because in charsets such as Shift_JIS a byte may be half of a
            // two-byte character. So the characters are decoded and then percent-encoded, as in browsers. If they cannot be
            // decoded, the bytes are kept as they are.
            None => characters().unwrap_or_else(|| readable(&href.decoded(&self.text))),
        };
        Base::of_document(around.as_deref(), &href).map(Rc::new)
    }

    /// Returns the value of a link. Returns `None` if one of its bytes may be half of a two-byte character (as in
    /// Shift_JIS), because the link could then be misread.
    pub(super) fn value(&self, link: &LinkValue) -> Option<Cow<'_, [u8]>> {
        let is_whole = link.span.of(&self.text) == link.span.of(self.octets);
        let value = is_whole.then(|| link.decoded(&self.text))?;
        let may_have_trail_bytes = self.charset.is_some_and(Charset::has_trail_bytes);
        (!may_have_trail_bytes || value.is_ascii()).then_some(value)
    }

    /// Returns the reference as browsers read it, if it differs from the [value](Self::value) because the document is not
    /// UTF-8. Browsers decode the bytes with the charset of the document, and encode a query in this charset again (URL
    /// Standard §4.4). Chromium uses UTF-8 for the query in a style attribute.
    ///
    /// Returns `None` if nothing differs, if no charset is declared, or if bytes are not valid in it.
    pub(super) fn characters(&self, link: &LinkValue) -> Option<String> {
        let encoding = self.encoding.filter(|encoding| *encoding != UTF_8)?;
        let raw = link.span.of(self.octets);
        if raw.is_ascii() && memchr::memchr2(b'&', b'\\', raw).is_none() {
            return None;
        }
        let text = encoding.decode_without_bom_handling_and_without_replacement(raw)?;
        let url = cleaned(link.characters(&text).trim_ascii().as_bytes()).into_owned();
        if url.is_ascii() || is_data(&url) {
            return None;
        }
        let is_style_attribute = link.is_css() && matches!(link.markup, Markup::Attribute { .. });
        let written = if is_style_attribute {
            url.clone()
        } else {
            with_query_in(url.clone(), encoding)
        };
        // The bytes of the link can be ASCII although its characters are not, because it contains a character reference such as
        // `&eacute;`. Browsers encode this character as UTF-8 in the path and in the charset of the document in the query. So
        // such a link differs from its value only if the query contains the character.
        (!raw.is_ascii() || written != url).then_some(written)
    }

    /// Returns an absolute URL in which the bytes of a `<base href>` that are not UTF-8 are decoded with the charset of the
    /// document.
    pub(super) fn of_base(&self, absolute: String) -> String {
        let is_carried = holds_carried(&absolute);
        let encoding = self.encoding.filter(|_| is_carried);
        let written = encoding.and_then(|encoding| uncarried(&absolute, encoding));
        written.unwrap_or(absolute)
    }

    /// Returns the value of a link that contains bytes that may be half of a two-byte character (as in Shift_JIS). The
    /// value shows whether the link is relative, but it is not exact: all bytes that are not ASCII are kept as they
    /// are.
    pub(super) fn unclear(&self, link: &LinkValue) -> String {
        let text = carried(&link.decoded(&self.text));
        text.replace(['\t', '\n', '\r'], "")
    }

    pub(super) fn refusal(&self, encoding: TransferEncoding) -> Option<Refusal> {
        if self.looks_encoded {
            let encoding = encoding.as_str();
            let detail = format!(
                "the value of an HTML attribute begins with 3D, as in quoted-printable text, but the declared encoding is {encoding}"
            );
            return Some(Refusal::lasting(Reason::LooksEncoded, detail));
        }
        if self.charset == Some(Charset::Other) {
            let label = self.label.as_deref().unwrap_or(b"a charset of escapes");
            return Some(unsupported(label));
        }
        let base_href = self.base_href.as_ref()?;
        let why = "the <base href> of the document is not ASCII, and embody cannot decode the charset of the document safely";
        let is_clear = self.value(base_href).is_some() || self.characters(base_href).is_some();
        (!is_clear).then(|| Refusal::lasting(Reason::CharsetNotSupported, why))
    }
}

/// Returns the encoding of the byte order mark, or otherwise the encoding that the mail declares. If one of the two exists, the
/// label inside the document is ignored.
fn declared(octets: &[u8], label: Option<&[u8]>) -> Option<&'static Encoding> {
    let of_bom = Encoding::for_bom(octets).map(|(encoding, _)| encoding);
    of_bom.or_else(|| charset::encoding_of(label?))
}

pub(super) fn unsupported(label: &[u8]) -> Refusal {
    let label = String::from_utf8_lossy(label.trim_ascii()).to_ascii_lowercase();
    let detail = format!("embody cannot change links in a document with the charset {label}");
    Refusal::lasting(Reason::CharsetNotSupported, detail)
}
