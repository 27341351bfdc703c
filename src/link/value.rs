//! One located link. Its URL may stand inside two layers: the markup (character references, quotes) and a grammar
//! within the value (`srcset`, a list, a refresh, CSS). Reading takes both off, writing puts both on.
//!
//! # Bytes and charsets
//!
//! Documents are bytes in an ASCII-compatible charset, and spans are byte-exact in any of them.
//! Bytes of 0x80 and above are carried through in both directions, valid UTF-8 or not; characters
//! outside ASCII that the document *names* (`&eacute;`, CSS `\e9`) read percent-encoded, see
//! [`entity`](super::entity). A URL to be written must therefore be ASCII but for the bytes that
//! came out of [`LinkValue::decoded`].
//!
//! Shift_JIS, GBK, GB18030, Big5 and windows-949 have ASCII second bytes: letters, `@ [ \ ] ^ _ { | } ~` and the grave
//! accent, and digits in GB18030. None of `" ' < > & / =` or white space is among them, so tags, attributes and their
//! spans hold. But a value that contains such a character may be misread (its `\` is no backslash), and so may CSS,
//! where that `\` may hide the end of a string. In those charsets the caller shall search the document
//! [without trail bytes](crate::mime::charset::Charset::without_trail_bytes), and leave values alone whose decoded
//! form is not ASCII.

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

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    Picture,
    Media,
    /// Sets text in it: `url()` in `@font-face`.
    Font,
    /// Styles the document with it: `@import`, and `<link>` with that relation.
    StyleSheet,
    /// Loads something else with the document: scripts, icons, subtitles, plug-in data.
    Resource,
    /// Shows it as a document inside the document.
    Frame,
    /// Goes there, or reports to it, when asked to.
    Hyperlink,
    /// Resolves others against it: `codebase`, `<base href>`.
    Base,
}
