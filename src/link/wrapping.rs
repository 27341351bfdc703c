//! Takes the layers around a URL off and puts them on ([`LinkValue`]).

use std::borrow::Cow;

use percent_encoding::percent_encode_byte;

use super::css_escape;
use super::entity::{self, Within};
use super::srcset::is_blank;
use super::value::{Grammar, LinkValue, Markup};

impl LinkValue {
    /// As a parser reads it: nothing is resolved or percent-decoded. `document` must be the one that was searched.
    pub fn decoded<'a>(&self, document: &'a [u8]) -> Cow<'a, [u8]> {
        let raw = self.span.of(document);
        let text = match self.markup {
            Markup::Attribute { .. } => entity::text(raw, Within::Attribute),
            Markup::StyleText => entity::text(raw, Within::Text),
            Markup::StyleSheet | Markup::StyleElement | Markup::StyleSection => Cow::Borrowed(raw),
        };
        match self.grammar {
            Grammar::CssUrl | Grammar::CssString(_) => match text {
                Cow::Borrowed(bytes) => css_escape::unescape(bytes),
                Cow::Owned(bytes) => Cow::Owned(css_escape::unescape(&bytes).into_owned()),
            },
            _ => text,
        }
    }

    /// A parser reads `url` back, if that holds no white space and NUL, but where the grammar has no escape and
    /// percent-encoding stands in for it. An empty `url` cannot be a list member or candidate and writes nothing.
    pub fn encoded(&self, url: impl AsRef<[u8]>) -> Vec<u8> {
        let url = url.as_ref();
        let text = match self.grammar {
            Grammar::Url => Cow::Borrowed(url),
            Grammar::Srcset => srcset_url(url),
            Grammar::SpaceSeparated => percent_encoded(url, |_, byte| is_blank(byte)),
            Grammar::CommaSeparated => {
                percent_encoded(url, |_, byte| is_blank(byte) || byte == b',')
            }
            Grammar::Refresh(Some(quote)) => percent_encoded(url, |_, byte| byte == quote),
            Grammar::Refresh(None) => percent_encoded(url, |at, byte| {
                at == 0 && matches!(byte, b'"' | b'\'' | b',' | b';')
            }),
            Grammar::CssUrl => css_escape::escape(url, self.markup, b"\"'()").into(),
            Grammar::CssString(quote) => css_escape::escape(url, self.markup, &[quote]).into(),
        };
        match self.markup {
            // Without quotes, what follows would be taken for the value.
            Markup::Attribute { quote: None, .. }
                if text.is_empty() && self.grammar == Grammar::Url =>
            {
                b"\"\"".to_vec()
            }
            Markup::Attribute {
                quote,
                escapes_ampersands,
            } => entity::encode(&text, quote, escapes_ampersands),
            _ => text.into_owned(),
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
    let written = url.iter().enumerate().flat_map(|(at, byte)| {
        if must(at, *byte) {
            percent_encode_byte(*byte).as_bytes()
        } else {
            std::slice::from_ref(byte)
        }
    });
    Cow::Owned(written.copied().collect())
}
