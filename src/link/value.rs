//! One located link: where its URL stands, how it is wrapped there, how to read it, and what to
//! write in its place.
//!
//! A URL may stand inside two layers: the markup (character references, quotes) and a grammar
//! within the value (`srcset`, a list, a refresh, CSS). Reading takes both off, writing puts both
//! on. Nothing here resolves a URL or changes a document.
//!
//! # Bytes and charsets
//!
//! Documents are bytes in an ASCII-compatible charset, and spans are byte-exact in any of them.
//! Bytes of 0x80 and above are carried through in both directions, valid UTF-8 or not; characters
//! outside ASCII that the document *names* (`&eacute;`, CSS `\e9`) read percent-encoded, see
//! [`entity`]. A URL to be written must therefore be ASCII but for the bytes that
//! came out of [`LinkValue::decoded`].
//!
//! Shift_JIS, GBK, GB18030, Big5 and windows-949 are ASCII-compatible but have ASCII second bytes:
//! letters, `@ [ \ ] ^ _ { | } ~` and the grave accent, and digits in GB18030. None of `" ' < > & / =` or white space
//! is among them, so tags, attributes and their spans hold. What does not hold is a value that
//! contains such a character (its `\` is no backslash), and CSS, where that `\` may hide the end
//! of a string. In those charsets the caller shall search the document
//! [without trail bytes](crate::mime::Charset::without_trail_bytes), and leave values alone whose decoded
//! form is not ASCII.

use std::borrow::Cow;

use percent_encoding::percent_encode_byte;

use super::css;
use super::entity::{self, Ampersand, Delimiter};
use super::srcset::is_blank;
use crate::span::Span;

/// A URL in a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkValue {
    /// The raw bytes of the URL in the document: no quotes, no outer white space, no descriptors.
    pub span: Span,
    /// How it is wrapped there.
    pub context: Context,
    /// What it is for.
    pub usage: Usage,
    /// Whether it is the first link of its start tag: those up to the next one that opens a tag stand
    /// in the same. Each link of a style sheet or a `<style>` element stands alone.
    pub opens_tag: bool,
}

/// The layers around a URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context {
    /// What holds the value.
    pub markup: Markup,
    /// The grammar within the value.
    pub grammar: Grammar,
}

/// What holds a value, and so what may not stand in it bare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Markup {
    /// A style sheet of its own.
    StyleSheet,
    /// A `<style>` element of HTML: no character references, ended by `</style`.
    StyleElement,
    /// A `<style>` element of XHTML, whose `<` and `&` are markup.
    XhtmlStyleElement,
    /// An attribute value; how it is delimited, and how its ampersands are written.
    Attribute(Delimiter, Ampersand),
}

/// The grammar of the text that a URL is part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grammar {
    /// The whole value is the URL.
    Url,
    /// A candidate of a `srcset`.
    Srcset,
    /// A member of a list separated by white space.
    SpaceSeparated,
    /// A member of a list separated by commas.
    CommaSeparated,
    /// The URL of a refresh, with the quote around it.
    Refresh(Option<Quote>),
    /// CSS `url(...)` without quotes.
    CssUrl,
    /// A CSS string.
    CssString(Quote),
}

/// A quote within a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quote {
    /// `"`
    Double,
    /// `'`
    Single,
}

impl Quote {
    /// The quote itself.
    #[must_use]
    pub fn byte(self) -> u8 {
        match self {
            Self::Double => b'"',
            Self::Single => b'\'',
        }
    }
}

/// What a URL is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// The attribute's name in lower case, or `url()`, `src()`, `@import`, `image-set()` in CSS
    /// (of a style attribute, a style element or a style sheet).
    pub place: &'static str,
    /// What a reader does with it.
    pub role: Role,
    /// Whether it is the `src`, `srcset` or `lowsrc` of a picture that nobody is meant to see: declared
    /// at most three by three pixels, or hidden, by its own attributes. See [`html`](super::html).
    pub hidden: bool,
}

/// What a reader does with a link.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// Shows it as a picture.
    Picture,
    /// Plays it: audio and video.
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

impl LinkValue {
    /// The URL as a parser reads it: character references and CSS escapes decoded, nothing
    /// resolved or percent-decoded. `document` must be the one that was searched.
    #[must_use]
    pub fn decoded<'a>(&self, document: &'a [u8]) -> Cow<'a, [u8]> {
        let raw = self.span.of(document);
        let text = match self.context.markup {
            Markup::Attribute(..) => entity::text(raw),
            Markup::StyleSheet | Markup::StyleElement | Markup::XhtmlStyleElement => {
                Cow::Borrowed(raw)
            }
        };
        match self.context.grammar {
            Grammar::CssUrl | Grammar::CssString(_) => match text {
                Cow::Borrowed(bytes) => css::unescape(bytes),
                Cow::Owned(bytes) => Cow::Owned(css::unescape(&bytes).into_owned()),
            },
            _ => text,
        }
    }

    /// The bytes to put at the span so that a parser reads `url` there.
    ///
    /// For a URL without white space and NUL, reading gives exactly `url` back, with these
    /// exceptions, where the grammar has no escape and percent-encoding stands in for it: outer
    /// commas in `srcset`; commas in a comma-separated list; the quote around the URL of a
    /// refresh, or a first `"`, `'`, `,`, `;` in one that has none. White space is percent-encoded
    /// where it separates. An empty `url` cannot be a list member or candidate and writes nothing.
    #[must_use]
    pub fn encoded(&self, url: impl AsRef<[u8]>) -> Vec<u8> {
        let url = url.as_ref();
        let text = match self.context.grammar {
            Grammar::Url => Cow::Borrowed(url),
            Grammar::Srcset => srcset_url(url),
            Grammar::SpaceSeparated => percent_encoded(url, |_, byte| is_blank(byte)),
            Grammar::CommaSeparated => {
                percent_encoded(url, |_, byte| is_blank(byte) || byte == b',')
            }
            Grammar::Refresh(Some(quote)) => percent_encoded(url, |_, byte| byte == quote.byte()),
            Grammar::Refresh(None) => percent_encoded(url, |at, byte| {
                at == 0 && matches!(byte, b'"' | b'\'' | b',' | b';')
            }),
            Grammar::CssUrl => Cow::Owned(css::escape_url(url, self.context.markup)),
            Grammar::CssString(quote) => {
                Cow::Owned(css::escape_string(url, quote, self.context.markup))
            }
        };
        match self.context.markup {
            // Without quotes, what follows would be taken for the value.
            Markup::Attribute(Delimiter::None, _)
                if text.is_empty() && self.context.grammar == Grammar::Url =>
            {
                b"\"\"".to_vec()
            }
            Markup::Attribute(delimiter, ampersand) => entity::encode(&text, delimiter, ampersand),
            Markup::StyleSheet | Markup::StyleElement | Markup::XhtmlStyleElement => {
                text.into_owned()
            }
        }
    }
}

fn srcset_url(url: &[u8]) -> Cow<'_, [u8]> {
    let comma = |byte: &&u8| **byte == b',';
    let leading = url.iter().take_while(comma).count();
    let trailing = url.iter().rev().take_while(comma).count();
    percent_encoded(url, |at, byte| {
        is_blank(byte) || byte == b',' && (at < leading || at >= url.len() - trailing)
    })
}

fn percent_encoded(url: &[u8], must: impl Fn(usize, u8) -> bool) -> Cow<'_, [u8]> {
    if !url.iter().enumerate().any(|(at, &byte)| must(at, byte)) {
        return Cow::Borrowed(url);
    }
    let mut out = Vec::with_capacity(url.len() + 8);
    for (at, &byte) in url.iter().enumerate() {
        if must(at, byte) {
            out.extend_from_slice(percent_encode_byte(byte).as_bytes());
        } else {
            out.push(byte);
        }
    }
    Cow::Owned(out)
}
