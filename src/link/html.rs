//! Finds URLs in HTML (docs/design.md, "Links"): in attributes, `<meta http-equiv=refresh>`, `style` attributes and
//! `<style>` elements, also inside conditional comments. The URLs are not checked. Any input is accepted. The time is
//! linear in the length of the document, the memory is linear in the number of links, and no recursion depends on the
//! input.
//!
//! # Which attributes are links, and differences from browsers
//!
//! * The name of an attribute is sufficient, on any element. Exceptions: `data` is a link only on `<object>`, `content`
//!   only on `<meta http-equiv=refresh>`, and `href` of `<base>` is the base and not a link.
//! * Only the tag itself determines whether a link is a picture and whether it is hidden. VML counts outside of
//!   conditional comments as well, and `srcset` of a `<source>` always counts as a picture. Hiding by style sheets and
//!   outer elements is not detected. If one attribute hides a picture and another one does not, it counts as hidden.
//! * If an attribute is repeated, the first one counts. A tag that is cut off by the end of the document is ignored.
//! * On `<object>` and `<applet>`, `codebase` is the base of `classid`, `data` and `archive`. If there is a `codebase`,
//!   it is a link and the other three are not, so that programs that support `codebase` still find the same files.
//!   `archive` is a list separated by commas on `<applet>`, and by spaces elsewhere.
//! * The content of `<script>`, `<textarea>`, `<title>`, `<xmp>`, `<iframe>`, `<noembed>`, `<noframes>` and
//!   `<plaintext>`, of plain comments and of CDATA is ignored. `<noscript>` contains markup.
//! * The content of a conditional comment is separate markup: elements that are open at its end are closed there, a
//!   comment in it is a plain comment, and a `<base>` in it is neither a base nor a link.
//! * A URL directly after a character reference without `;` (`url(&quot/x&quot)`) is not reported, because a new URL in
//!   its place could become part of the reference. A URL in a `<style>` of XHTML or SVG is not reported if a comment or
//!   a CDATA section begins or ends in it.

use std::mem::take;

use super::css;
use super::entity::{self, Offsets, Within};
use super::hidden;
use super::label;
use super::names::{Element, Name, Raw};
use super::srcset::{candidates, members, refresh};
use super::tags::{Attribute, TagEvent, Tags, text_of};
use super::value::{Grammar, ImageSet, LinkList, LinkRole, LinkValue, Markup};
use crate::span::{Span, starts_like};

pub use super::names::Syntax;

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HtmlLinks {
    /// Links in the order of the document. Their spans do not overlap.
    pub links: LinkList,
    /// The `href` of the first `<base>` that has one. It may be empty or relative, or have a scheme that cannot be a base.
    pub base_href: Option<LinkValue>,
    pub charset: Option<Vec<u8>>,
    /// Pictures that Outlook on the web hid, in document order: `src` was removed, and the URL is in `originalsrc`.
    pub originals: Vec<OriginalSource>,
    /// Whether an attribute has a value such as `3D"x"`. The document is then probably quoted-printable text that was
    /// not decoded (`src=3D"x"`).
    pub looks_encoded: bool,
}

/// A picture that Outlook on the web hid: `<img originalsrc="cid:...">` without a `src`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OriginalSource {
    /// The `cid:` URL in `originalsrc`.
    pub url: Vec<u8>,
    /// Bytes to replace so that the picture is shown again: an empty `src`, if it precedes, and the name `originalsrc`.
    pub range: Span,
    pub replacement: Vec<u8>,
}

/// Maximum number of pictures without `src` in one document. Further ones are left.
const MOST_ORIGINALS: usize = 1_000;

#[cfg(any(test, feature = "internals"))]
pub fn locate(document: &[u8]) -> HtmlLinks {
    locate_in(document, Syntax::Html)
}

pub fn locate_in(document: &[u8], syntax: Syntax) -> HtmlLinks {
    let mut locator = Locator {
        document,
        syntax,
        found: HtmlLinks::default(),
        opens_tag: false,
        hidden: false,
    };
    let mut tags = Tags::new(document, Span::new(0, document.len()), syntax);
    while let Some(event) = tags.next() {
        match event {
            TagEvent::Conditional(content) => {
                let mut inner = Tags::new(document, content, syntax);
                while let Some(event) = inner.next() {
                    match event {
                        TagEvent::Start(Element::Base) | TagEvent::Conditional(_) => {}
                        _ => locator.event(event, &inner.attributes),
                    }
                }
            }
            _ => locator.event(event, &tags.attributes),
        }
    }
    locator.found
}

/// Returns the offsets of spaces in tags that may be replaced with line endings, to shorten long lines. Only tags that
/// contain one of `values` (the ascending offsets of link values) are considered. The new line begins with the name of
/// an attribute, so it cannot be mistaken for a boundary line or for the separator line of a mailbox.
pub fn blanks_in_tags<'d>(
    document: &'d [u8],
    syntax: Syntax,
    values: impl Iterator<Item = usize> + 'd,
) -> impl Iterator<Item = usize> + 'd {
    let whole = Span::new(0, document.len());
    let mut outer = Tags::with_blanks(document, whole, syntax);
    let mut inner: Option<Tags<'d>> = None;
    let mut values = values.peekable();
    let (mut wanted, mut seen) = (false, 0);
    std::iter::from_fn(move || {
        loop {
            let tags = inner.as_mut().unwrap_or(&mut outer);
            while wanted && let Some(at) = tags.blank(seen) {
                seen += 1;
                if may_break(document, at) {
                    return Some(at);
                }
            }
            let event = tags.next();
            if let Some(TagEvent::Start(_)) = event {
                let tag = tags.tag();
                while values.next_if(|&value| value < tag.start).is_some() {}
                wanted = values.peek().is_some_and(|&value| value < tag.end);
                seen = 0;
                continue;
            }
            wanted = false;
            match event {
                Some(TagEvent::Conditional(content)) if inner.is_none() => {
                    inner = Some(Tags::with_blanks(document, content, syntax));
                }
                None if inner.is_none() => return None,
                None => inner = None,
                Some(_) => {}
            }
        }
    })
}

/// Returns whether the space at this offset may become a line ending: the name of an attribute must follow, and the new
/// line must not begin with `From `.
fn may_break(document: &[u8], at: usize) -> bool {
    match &document[at..] {
        [b' ' | b'\t', behind @ ..] => {
            behind.first().is_some_and(u8::is_ascii_alphabetic) && !behind.starts_with(b"From ")
        }
        _ => false,
    }
}

struct Locator<'a> {
    document: &'a [u8],
    syntax: Syntax,
    found: HtmlLinks,
    opens_tag: bool,
    hidden: bool,
}

impl Locator<'_> {
    fn event(&mut self, event: TagEvent, attributes: &[Attribute]) {
        match event {
            TagEvent::Start(element) => {
                if element == Element::Meta && self.found.charset.is_none() {
                    self.found.charset = charset(self.document, attributes);
                }
                self.opens_tag = true;
                let is_picture = matches!(
                    element,
                    Element::Img | Element::Image | Element::Input | Element::VmlImage
                );
                self.hidden = is_picture && hidden::is_declared(self.document, attributes);
                for attribute in attributes {
                    self.found.looks_encoded |= looks_encoded(self.document, attribute);
                    self.attribute(element, attribute, attributes);
                }
                if element == Element::Img && self.found.originals.len() < MOST_ORIGINALS {
                    let original = original_source(self.document, attributes);
                    self.found.originals.extend(original);
                }
            }
            TagEvent::Style(content, markup) => self.style_element(content, markup),
            TagEvent::Conditional(_) => {}
        }
    }

    fn attribute(&mut self, element: Element, attribute: &Attribute, all: &[Attribute]) {
        if attribute.name == Name::Style {
            return self.style_attribute(attribute);
        }
        let Some((grammar, role)) = link_kind(self.document, element, attribute.name, all) else {
            return;
        };
        let markup = self.markup(attribute);
        let hidden = self.hidden
            && role == LinkRole::Picture
            && matches!(attribute.name, Name::Src | Name::Srcset | Name::Lowsrc);
        let link = |span, grammar, opens_tag| LinkValue {
            span,
            markup,
            grammar,
            place: attribute.name.as_str(),
            role,
            hidden,
            image_set: ImageSet::Outside,
            opens_tag,
        };
        let raw = attribute.value.of(self.document);
        if grammar == Grammar::Url {
            // White space around the URL is not part of the span. White space that is written as a character reference
            // is part of it, because the value is not decoded here.
            let span = match attribute.value.trimmed(self.document) {
                blank if blank.is_empty() => Span::empty_at(attribute.value.start),
                span => span,
            };
            if element == Element::Base {
                self.found
                    .base_href
                    .get_or_insert(link(span, grammar, true));
            } else {
                let opens_tag = take(&mut self.opens_tag);
                self.found.links.push(link(span, grammar, opens_tag));
            }
            return;
        }
        let text = entity::split_text(raw, Within::Attribute);
        let mut offsets = Offsets::new(raw, Within::Attribute);
        let (links, opens_tag) = (&mut self.found.links, &mut self.opens_tag);
        let mut push = |range: std::ops::Range<usize>, grammar| {
            if let Some(span) = offsets.raw_span(range) {
                let span = span.shifted(attribute.value.start);
                links.push(link(span, grammar, take(opens_tag)));
            }
        };
        match grammar {
            Grammar::Srcset => candidates(&text, |range| push(range, grammar)),
            Grammar::Refresh(_) => {
                if let Some((range, quote)) = refresh(&text) {
                    push(range, Grammar::Refresh(quote));
                }
            }
            _ => {
                let commas = grammar == Grammar::CommaSeparated;
                members(&text, commas, |range| push(range, grammar));
            }
        }
    }

    fn style_attribute(&mut self, attribute: &Attribute) {
        let raw = attribute.value.of(self.document);
        // Most `style` attributes contain no link, and scanning them would waste time. A link needs a function such as
        // `url(...)`, so a value without a `(` contains no link. The `(` can also be written as a character reference
        // such as `&#40;`, so values with a `&` are scanned, too.
        if memchr::memchr2(b'(', b'&', raw).is_none() {
            return;
        }
        let markup = self.markup(attribute);
        let (links, opens_tag) = (&mut self.found.links, &mut self.opens_tag);
        style_text(self.document, attribute.value, markup, |mut link| {
            link.opens_tag = take(opens_tag);
            links.push(link);
        });
    }

    fn style_element(&mut self, content: Span, markup: Markup) {
        let links = &mut self.found.links;
        if markup == Markup::StyleText {
            style_text(self.document, content, markup, |link| links.push(link));
            return;
        }
        css::scan(content.of(self.document), markup, |mut link| {
            link.span = link.span.shifted(content.start);
            links.push(link);
        });
    }

    fn markup(&self, attribute: &Attribute) -> Markup {
        let value = attribute.value.of(self.document);
        Markup::Attribute {
            quote: attribute.quote,
            escapes_ampersands: self.syntax == Syntax::Xhtml || entity::escapes_ampersands(value),
        }
    }
}

/// Returns the picture of an `<img>` that has an `originalsrc` with a `cid:` URL, and no `src` or an empty one.
fn original_source(document: &[u8], attributes: &[Attribute]) -> Option<OriginalSource> {
    let find = |name| attributes.iter().find(|attribute| attribute.name == name);
    let original = find(Name::Originalsrc)?;
    let value = original.value.trimmed(document);
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"'<>`".contains(byte);
    if !starts_like(value.of(document), b"cid:") || !value.of(document).iter().all(is_plain) {
        return None;
    }
    let name = name_of(document, original)?;
    let (range, replacement) = match find(Name::Src) {
        _ if find(Name::Srcset).is_some() => return None,
        None => (name, b"src".to_vec()),
        Some(src) if !src.value.trimmed(document).is_empty() => return None,
        // The first attribute of a name wins, so an empty `src` after the new one has no effect.
        Some(src) if src.value.start > original.value.end => (name, b"src".to_vec()),
        Some(src) => {
            let end = src.value.end + usize::from(src.quote.is_some());
            let between = document.get(end..name.start)?.trim_ascii_start();
            let replaced = Span::new(name_of(document, src)?.start, name.end);
            (replaced, [between, b"src"].concat())
        }
    };
    Some(OriginalSource {
        url: entity::text(value.of(document), Within::Attribute).into_owned(),
        range,
        replacement,
    })
}

/// Returns the span of the name of an attribute, which precedes its value.
fn name_of(document: &[u8], attribute: &Attribute) -> Option<Span> {
    let quote = usize::from(attribute.quote.is_some());
    let end = attribute.value.start.checked_sub(quote)?;
    let before = document
        .get(..end)?
        .trim_ascii_end()
        .strip_suffix(b"=")?
        .trim_ascii_end();
    let start = before.len().checked_sub(attribute.name.as_str().len())?;
    let is_name = before[start..].eq_ignore_ascii_case(attribute.name.as_str().as_bytes());
    is_name.then(|| Span::new(start, before.len()))
}

fn style_text(document: &[u8], within: Span, markup: Markup, mut push: impl FnMut(LinkValue)) {
    let around = match markup {
        Markup::StyleText => Within::Text,
        _ => Within::Attribute,
    };
    let raw = within.of(document);
    let text = entity::split_text(raw, around);
    let mut offsets = Offsets::new(raw, around);
    // Whether the previous option of an `image-set()` was skipped because it cannot be rewritten. The first option marks
    // the start of a set: without it, the options of two sets would count as one set. So if the first option is skipped,
    // the next one is marked as the first.
    let mut is_skipped = false;
    css::scan(&text, markup, |mut link| {
        if is_skipped && link.image_set == ImageSet::Further {
            link.image_set = ImageSet::First;
        }
        let span = offsets.raw_span(link.span.start..link.span.end);
        is_skipped = span.is_none();
        if let Some(span) = span {
            link.span = span.shifted(within.start);
            push(link);
        }
    });
}

fn link_kind(
    document: &[u8],
    element: Element,
    name: Name,
    all: &[Attribute],
) -> Option<(Grammar, LinkRole)> {
    use Element::{
        Anchor, Applet, Area, AudioVideo, Frame, Image, Img, Input, Link, Object, Source,
    };

    let has = |name| all.iter().any(|attribute| attribute.name == name);
    let value = |name| text_of(document, all, name).unwrap_or_default();
    let is_image = || {
        value(Name::Type)
            .trim_ascii()
            .eq_ignore_ascii_case(b"image")
    };
    let refreshes = || value(Name::HttpEquiv).eq_ignore_ascii_case(b"refresh");
    let role = match (name, element) {
        (Name::Classid | Name::Data | Name::Archive, Object | Applet) if has(Name::Codebase) => {
            return None;
        }
        (Name::Href, Element::Base) | (Name::Codebase, _) => LinkRole::Base,
        // A style sheet with an `integrity` digest is not embedded: it gets the role `Resource`, whose content is never
        // embedded. The embedded copy can differ from the original, and browsers reject a style sheet that does not match
        // the digest.
        (Name::Href, Link) if has(Name::Integrity) => LinkRole::Resource,
        (Name::Href, Link) if is_related(document, all, &[b"stylesheet"]) => LinkRole::StyleSheet,
        (Name::Href, Link) if !is_related(document, all, &LOADING) => LinkRole::Hyperlink,
        (Name::Href, Area) | (Name::Href | Name::XlinkHref, Anchor) => LinkRole::Hyperlink,
        (Name::Src, Frame | Element::Raw(Raw::Iframe)) => LinkRole::Frame,
        (Name::Src, Input) if is_image() => LinkRole::Picture,
        (Name::Href | Name::XlinkHref | Name::Src, Image)
        | (Name::Src, Img | Element::VmlFill | Element::VmlImage)
        | (Name::Srcset, Img | Image | Source)
        | (Name::Background | Name::Dynsrc | Name::Lowsrc | Name::Poster, _) => LinkRole::Picture,
        (Name::Src, AudioVideo | Source) => LinkRole::Media,
        (Name::Href | Name::XlinkHref | Name::Src, _)
        | (Name::Data, Object)
        | (Name::Archive | Name::Classid | Name::Manifest, _)
        | (Name::Srcset | Name::Imagesrcset, _) => LinkRole::Resource,
        (Name::Action | Name::Cite | Name::Formaction | Name::Longdesc | Name::Usemap, _)
        | (Name::Ping | Name::Profile, _) => LinkRole::Hyperlink,
        (Name::Content, Element::Meta) if refreshes() => LinkRole::Hyperlink,
        _ => return None,
    };
    let grammar = match name {
        Name::Srcset | Name::Imagesrcset => Grammar::Srcset,
        Name::Archive if element == Applet => Grammar::CommaSeparated,
        Name::Archive | Name::Ping | Name::Profile => Grammar::SpaceSeparated,
        Name::Content => Grammar::Refresh(None),
        _ => Grammar::Url,
    };
    Some((grammar, role))
}

/// Returns the charset that a `<meta>` element declares (HTML standard §4.2.5.4).
fn charset(document: &[u8], all: &[Attribute]) -> Option<Vec<u8>> {
    let value = |name| text_of(document, all, name);
    if let Some(label) = value(Name::Charset) {
        return Some(label.into_owned());
    }
    let declares = value(Name::HttpEquiv)?.eq_ignore_ascii_case(b"content-type");
    let content = value(Name::Content).filter(|_| declares)?;
    label::in_content(&content).map(<[u8]>::to_vec)
}

/// Returns whether an attribute has the value `3D"x"` or `3Dx` without quotes. The sender then wrote quoted-printable,
/// in which `=` is `=3D`, but the mail does not declare this encoding.
fn looks_encoded(document: &[u8], attribute: &Attribute) -> bool {
    // For attributes that do not contain a URL, a value such as `3D` in `width=3D` may be meant, so it proves nothing.
    let holds_url = !matches!(
        attribute.name,
        Name::Height | Name::Hidden | Name::Type | Name::Width
    );
    let value = attribute.value.of(document);
    holds_url && attribute.quote.is_none() && starts_like(value, b"3D")
}

/// Values of `rel` with which a `<link>` loads a resource other than a style sheet. With all other values, the `<link>`
/// is a hyperlink.
const LOADING: [&[u8]; 7] = [
    b"icon",
    b"apple-touch-icon",
    b"mask-icon",
    b"preload",
    b"modulepreload",
    b"prefetch",
    b"manifest",
];

fn is_related(document: &[u8], all: &[Attribute], relations: &[&[u8]]) -> bool {
    let is_known = |word: &[u8]| relations.iter().any(|it| word.eq_ignore_ascii_case(it));
    text_of(document, all, Name::Rel)
        .is_some_and(|value| value.split(u8::is_ascii_whitespace).any(is_known))
}
