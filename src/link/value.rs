//! A link in a document, and a compact list of links. The URL of a link can be inside two layers: the markup
//! (character references and quotes), and a grammar within the value (`srcset`, a list, a refresh, CSS). Reading the
//! URL removes both layers, and writing a new one adds them again.
//!
//! # Bytes and charsets
//!
//! Documents are bytes in an ASCII-compatible charset, and spans are exact in all of these charsets. Bytes from 0x80
//! are copied unchanged when reading and writing, even if they are not valid UTF-8. A character outside ASCII that a
//! reference or an escape stands for (`&eacute;`, CSS `\e9`) is read as percent-encoded UTF-8, see
//! [`entity`](super::entity). A new URL must therefore be ASCII, except for bytes that [`LinkValue::decoded`]
//! returned.
//!
//! In Shift_JIS, GBK, GB18030, Big5 and windows-949, the second byte of a character can be ASCII: a letter, one of `@
//! [ \ ] ^ _ { | } ~`, the grave accent, or (in GB18030) a digit. It is never `" ' < > & / =` or white space, so the
//! spans of tags and attributes are correct. But a value with such a character can be misread, because a `\` in it is
//! not a backslash. In CSS, such a `\` can even hide the end of a string. In these charsets, the caller must search
//! the document [without trail bytes](crate::mime::charset::Charset::without_trail_bytes), and must not change values
//! whose decoded form is not ASCII.

use crate::mime::packed;
use crate::span::Span;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkValue {
    /// Span of the URL. Quotes, white space around the URL, and descriptors such as `2x` in a `srcset` are not part of
    /// it.
    pub span: Span,
    pub markup: Markup,
    pub grammar: Grammar,
    /// Name of the attribute in lower case. In CSS it is `url()`, `src()`, `@import` or `image-set()`, also in a
    /// `style` attribute.
    pub place: &'static str,
    pub role: LinkRole,
    /// Whether the picture in the `src`, `srcset` or `lowsrc` is hidden by attributes of the same tag.
    pub hidden: bool,
    pub image_set: ImageSet,
    /// Whether this is the first link of its start tag. The following links without `opens_tag` are in the same tag. In
    /// a style sheet or a `<style>` element, this is `true` for each link.
    pub opens_tag: bool,
}

/// The markup around a value. It determines which characters of a new URL must be escaped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Markup {
    StyleSheet,
    /// Content of a `<style>` element in HTML. Character references have no meaning in it, and it ends at `</style`.
    StyleElement,
    /// Text of a `<style>` in XHTML or SVG, where `<` and `&` are markup.
    StyleText,
    StyleSection,
    Attribute {
        quote: Option<u8>,
        /// Whether every `&` in a new value is written as `&amp;`. Otherwise only an `&` that would begin a reference
        /// is escaped. This is true in XHTML, and if the old value contained `&amp;`.
        escapes_ampersands: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grammar {
    Url,
    Srcset,
    SpaceSeparated,
    CommaSeparated,
    Refresh(Option<u8>),
    CssUrl,
    CssString(u8),
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ImageSet {
    #[default]
    Outside,
    First,
    Further,
}

/// Purpose of the content that a link refers to. The variants are in alphabetical order, because `survey` lists them in
/// this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkRole {
    /// Base for other URLs: `codebase`, or `<base href>`.
    Base,
    /// Font for text: `url()` in `@font-face`.
    Font,
    /// Document that is displayed inside the document.
    Frame,
    /// Target of a click, or address to which the browser sends a report.
    Hyperlink,
    Media,
    Picture,
    /// Other resource that is loaded with the document: scripts, icons, subtitles, data of plug-ins.
    Resource,
    /// Style sheet: `@import`, and `<link rel=stylesheet>`.
    StyleSheet,
}

/// Compact list of links. A [`LinkValue`] takes fifty bytes of memory, but two bytes of a document can be a link
/// (`ping="a b c"`). A list of [`LinkValue`] could therefore exhaust the memory. This list stores only the distance
/// from the previous link, the length, and the differences from it. This takes two bytes for most links.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LinkList {
    packed: Vec<u8>,
    /// First link of each kind. Links of one kind differ only in their span and in `opens_tag`. A document contains few
    /// kinds.
    kinds: Vec<LinkValue>,
    last: (usize, usize),
}

impl LinkList {
    pub fn push(&mut self, link: LinkValue) {
        // Each link may be compared with many kinds. The fields that differ most often are compared first, so that most
        // comparisons end early.
        let is_alike = |known: &LinkValue| {
            known.role == link.role
                && known.grammar == link.grammar
                && known.hidden == link.hidden
                && known.image_set == link.image_set
                && known.markup == link.markup
                && known.place == link.place
        };
        let (last_kind, last_end) = self.last;
        let is_same = self.kinds.get(last_kind).is_some_and(is_alike);
        let distance = link.span.start.wrapping_sub(last_end) as u64;
        let length = (link.span.len() as u64) << 2;
        let flags = u64::from(link.opens_tag) << 1 | u64::from(!is_same);
        packed::write(&mut self.packed, distance);
        packed::write(&mut self.packed, length | flags);
        let mut index = last_kind;
        if !is_same {
            // The link is of another kind than the previous one. At most a few hundred kinds are possible, so a linear
            // search for the kind is fast enough.
            let known = self.kinds.iter().position(is_alike);
            index = known.unwrap_or_else(|| {
                self.kinds.push(link);
                self.kinds.len() - 1
            });
            packed::write(&mut self.packed, index as u64);
        }
        self.last = (index, link.span.end);
    }

    pub fn iter(&self) -> impl Iterator<Item = LinkValue> + Clone + '_ {
        let mut packed = self.packed.as_slice();
        let (mut kind, mut end) = (0, 0_usize);
        std::iter::from_fn(move || {
            let start = end.wrapping_add(packed::read(&mut packed)? as usize);
            let length = packed::read(&mut packed)?;
            if length & 1 == 1 {
                kind = packed::read(&mut packed)? as usize;
            }
            let &link = self.kinds.get(kind)?;
            end = start + (length >> 2) as usize;
            Some(LinkValue {
                span: Span::new(start, end),
                opens_tag: length & 2 == 2,
                ..link
            })
        })
    }

    #[cfg(any(test, feature = "internals"))]
    pub fn to_vec(&self) -> Vec<LinkValue> {
        self.iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn unpacked_links_equal_the_packed_ones(
            links in prop::collection::vec(
                (0..1_usize << 40, 0..1_usize << 20, 0..3_usize, any::<bool>(), any::<bool>()), 0..40,
            ),
        ) {
            let grammars = [Grammar::Url, Grammar::Srcset, Grammar::CssUrl];
            let links: Vec<LinkValue> = links.into_iter().map(|(start, length, kind, hidden, opens_tag)| LinkValue {
                span: Span::new(start, start + length),
                markup: Markup::StyleSheet,
                grammar: grammars[kind],
                place: "src",
                role: LinkRole::Picture,
                hidden,
                image_set: ImageSet::Outside,
                opens_tag,
            }).collect();
            let mut packed = LinkList::default();
            links.iter().for_each(|&link| packed.push(link));
            prop_assert_eq!(packed.to_vec(), links);
        }
    }

    #[test]
    fn packed_links_need_no_more_memory_than_their_source_text() {
        for unit in ["x ", "#\n"] {
            let document = format!("<a ping='{}'>", unit.repeat(1000));
            let links = crate::link::html::locate(document.as_bytes()).links;
            assert_eq!(links.iter().count(), 1000);
            assert!(links.packed.len() <= document.len());
        }
    }
}
