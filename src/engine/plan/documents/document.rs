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
    /// The document as the parsers see it, with the same length as `octets`. In charsets such as Shift_JIS, the second
    /// byte of a character can look like a `<` or a quotation mark, so such bytes are masked: every byte below 0x80 in
    /// this text is an ASCII character.
    pub(super) text: Cow<'d, [u8]>,
    pub(super) charset: Option<Charset>,
    /// The charset with which browsers decode the document. `None` if neither the mail nor the document declares a known one.
    pub(super) encoding: Option<&'static Encoding>,
    pub(super) links: LinkList,
    /// Pictures that Outlook hid: their `src` was removed, and the URL is in `originalsrc`.
    pub(super) originals: Vec<OriginalSource>,
    pub(super) base_href: Option<LinkValue>,
    pub(super) base: Option<Rc<Base>>,
    /// Multiparts to whose parts a link of the document can refer, innermost first.
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
        // Unlabelled Japanese mail (ISO-2022-JP) contains this escape sequence, and no other text does.
        let shifts = || memchr::memmem::find(self.octets, b"\x1b$").is_some();
        named.or_else(|| shifts().then_some(Charset::Other))
    }

    /// Returns the charset that the document declares for itself. A UTF-16 label means UTF-8 here: it was read as
    /// ASCII, so the document cannot be UTF-16 (HTML standard, §13.2.3.2).
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
            // The raw bytes may be misread, because a byte can be the second half of a Shift_JIS character. As in
            // browsers, the characters are decoded and percent-encoded. If decoding fails, the bytes are kept.
            None => characters().unwrap_or_else(|| readable(&href.decoded(&self.text))),
        };
        Base::of_document(around.as_deref(), &href).map(Rc::new)
    }

    /// Returns the value of a link, or `None` if it cannot be read byte by byte: in charsets such as Shift_JIS, a byte
    /// may be the second half of a character.
    pub(super) fn value(&self, link: &LinkValue) -> Option<Cow<'_, [u8]>> {
        let is_whole = link.span.of(&self.text) == link.span.of(self.octets);
        let value = is_whole.then(|| link.decoded(&self.text))?;
        let may_have_trail_bytes = self.charset.is_some_and(Charset::has_trail_bytes);
        (!may_have_trail_bytes || value.is_ascii()).then_some(value)
    }

    /// Returns the URL of the link as a browser requests it, if the charset of the document makes it differ from the
    /// [value](Self::value). Browsers decode the document, and encode the query of a URL in the charset of the document
    /// again (URL Standard §4.4). Chromium uses UTF-8 for the query in a style attribute.
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
        // Even an ASCII link can contain other characters as references, such as `&eacute;`. Browsers encode such a
        // character as UTF-8 in the path, but in the charset of the document in the query. So only a reference in the
        // query makes a difference.
        (!raw.is_ascii() || written != url).then_some(written)
    }

    /// Returns an absolute URL in which non-UTF-8 bytes of a `<base href>` are decoded with the charset of the
    /// document.
    pub(super) fn of_base(&self, absolute: String) -> String {
        let is_carried = holds_carried(&absolute);
        let encoding = self.encoding.filter(|_| is_carried);
        let written = encoding.and_then(|encoding| uncarried(&absolute, encoding));
        written.unwrap_or(absolute)
    }

    /// Returns an approximate value of a link that cannot be read byte by byte, because a byte may be the second half
    /// of a Shift_JIS character. It is good enough to tell whether the link is relative: non-ASCII bytes are kept as
    /// they are.
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
