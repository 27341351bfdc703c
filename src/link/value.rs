//! One located link, and many in little memory. The URL of one may stand inside two layers: the markup (character
//! references, quotes) and a grammar within the value (`srcset`, a list, a refresh, CSS). Reading takes both off, writing
//! puts both on.
//!
//! # Bytes and charsets
//!
//! Documents are bytes in an ASCII-compatible charset, and spans are byte-exact in any of them. Bytes of 0x80 and above
//! are carried through in both directions, valid UTF-8 or not; characters outside ASCII that the document *names*
//! (`&eacute;`, CSS `\e9`) read percent-encoded, see [`entity`](super::entity). A URL to be written must therefore be
//! ASCII but for the bytes that came out of [`LinkValue::decoded`].
//!
//! Shift_JIS, GBK, GB18030, Big5 and windows-949 have ASCII second bytes: letters, `@ [ \ ] ^ _ { | } ~` and the grave
//! accent, and digits in GB18030. None of `" ' < > & / =` or white space is among them, so tags, attributes and their
//! spans hold. But a value that contains such a character may be misread (its `\` is no backslash), and so may CSS,
//! where that `\` may hide the end of a string. In those charsets the caller shall search the document [without trail
//! bytes](crate::mime::charset::Charset::without_trail_bytes), and leave values alone whose decoded form is not ASCII.

use serde::Serialize;

use crate::mime::packed;
use crate::span::Span;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkValue {
    /// No quotes, no outer white space, no descriptors.
    pub span: Span,
    pub markup: Markup,
    pub grammar: Grammar,
    /// The attribute's name in lower case; or `url()`, `src()`, `@import`, `image-set()` of CSS, wherever it stands.
    pub place: &'static str,
    pub role: Role,
    /// The `src`, `srcset` or `lowsrc` of a picture that nobody is meant to see, by its own attributes.
    pub hidden: bool,
    pub image_set: ImageSet,
    /// The first link of its start tag: those up to the next one that opens a tag stand in the same. Each link of a
    /// style sheet or a `<style>` element stands alone.
    pub opens_tag: bool,
}

/// What holds a value, and so what may not stand in it bare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Markup {
    StyleSheet,
    /// A `<style>` element of HTML: no character references, ended by `</style`.
    StyleElement,
    /// The text of a `<style>` of XHTML or SVG: its `<` and `&` are markup.
    StyleText,
    StyleSection,
    Attribute {
        quote: Option<u8>,
        /// Every `&` is `&amp;`, and not only where it would read as a reference: the value did so before, or this is XHTML.
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

/// In the order of the alphabet, in which surveys tell them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Resolves others against it: `codebase`, `<base href>`.
    Base,
    /// Sets text in it: `url()` in `@font-face`.
    Font,
    /// Shows it as a document inside the document.
    Frame,
    /// Goes there, or reports to it, when asked to.
    Hyperlink,
    Media,
    Picture,
    /// Loads something else with the document: scripts, icons, subtitles, plug-in data.
    Resource,
    /// Styles the document with it: `@import`, and `<link>` with that relation.
    StyleSheet,
}

/// One may have two octets, `ping="a b c"`, and a [`LinkValue`] has fifty. Packed: for each its distance from the one
/// before, its length, whether it opens a tag, and whether it is of the same kind. Most take two octets.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Links {
    packed: Vec<u8>,
    /// The first link of each kind; a document has few.
    kinds: Vec<LinkValue>,
    last: (usize, usize),
}

impl Links {
    pub fn push(&mut self, link: LinkValue) {
        // What differs most often comes first: this is asked several times for each link.
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
            // A kind is a place, a grammar and a markup: a few hundred at most, whatever the document.
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
        fn what_is_packed_comes_back(
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
                role: Role::Picture,
                hidden,
                image_set: ImageSet::Outside,
                opens_tag,
            }).collect();
            let mut packed = Links::default();
            links.iter().for_each(|&link| packed.push(link));
            prop_assert_eq!(packed.to_vec(), links);
        }
    }

    #[test]
    fn a_link_takes_no_more_than_the_octets_it_stands_in() {
        for unit in ["x ", "#\n"] {
            let document = format!("<a ping='{}'>", unit.repeat(1000));
            let links = crate::link::html::locate(document.as_bytes()).links;
            assert_eq!(links.iter().count(), 1000);
            assert!(links.packed.len() <= document.len());
        }
    }
}
