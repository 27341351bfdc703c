//! A simple parser for start tags, end tags and text. It is used to recognise the attributes, ids and classes with
//! which mail programs mark HTML that they write in place of an attachment. Comments are skipped, including the content
//! of conditional comments.

use std::borrow::Cow;

use memchr::{memchr, memmem};

use super::entity::{self, Within};
use super::html::Syntax;
use super::tags::{TagEvent, Tags};
use crate::span::{Span, split_while};

#[derive(Clone, Copy, Debug)]
pub enum MarkupToken<'d> {
    Start(StartTag<'d>),
    /// An end tag: its name as it is written.
    End(&'d [u8]),
    /// Text with undecoded character references. The content of `<script>` and similar elements also counts as text.
    Text(&'d [u8]),
}

#[derive(Clone, Copy, Debug)]
pub struct StartTag<'d> {
    pub name: &'d [u8],
    /// Rest of the tag after its name, up to and including the `>`.
    attributes: &'d [u8],
}

impl<'d> StartTag<'d> {
    /// Returns the value of the first attribute with this name (in any case), with decoded character references.
    pub fn value(&self, name: &str) -> Option<Cow<'d, [u8]>> {
        let tag = self.attributes;
        let mut tags = Tags::new(tag, Span::new(0, tag.len()), Syntax::Html);
        loop {
            tags.skip_until(|byte| !is_end(byte));
            let (found, value) = tags.name_and_value(false)?;
            if found.of(tag).eq_ignore_ascii_case(name.as_bytes()) {
                let value = value.map_or(&[][..], |(value, _)| value.of(tag));
                return Some(entity::shown(value, Within::Attribute));
            }
        }
    }
}

fn is_end(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b'/'
}

/// Returns the text for display: character references are decoded, and each run of white space becomes one space. The
/// document must be UTF-8. Other bytes become U+FFFD.
pub fn text_of(raw: &[u8]) -> String {
    let octets = entity::shown(raw, Within::Text);
    let text = String::from_utf8_lossy(&octets);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub fn tokens<'d>(document: &'d [u8], mut see: impl FnMut(MarkupToken<'d>)) {
    let mut tags = Tags::new(document, Span::new(0, document.len()), Syntax::Html);
    let mut at = 0;
    while let Some(event) = tags.next() {
        let TagEvent::Start(_) = event else { continue };
        let tag = tags.tag();
        between(Span::new(at, tag.start - 1).of(document), &mut see);
        at = tag.end;
        let inside = tag.of(document);
        let ends = |&byte: &u8| is_end(byte) || byte == b'>';
        let length = inside.iter().position(ends).unwrap_or(inside.len());
        let (name, attributes) = inside.split_at(length);
        see(MarkupToken::Start(StartTag { name, attributes }));
    }
    between(&document[at..], &mut see);
}

fn between<'d>(mut rest: &'d [u8], see: &mut impl FnMut(MarkupToken<'d>)) {
    while let Some(start) = memchr(b'<', rest) {
        let (text, behind) = rest.split_at(start);
        if !text.is_empty() {
            see(MarkupToken::Text(text));
        }
        let end = if behind.starts_with(b"<!--") {
            memmem::find(behind, b"-->").map(|at| at + 3)
        } else {
            memchr(b'>', behind).map(|at| at + 1)
        };
        let (tag, behind) = behind.split_at(end.unwrap_or(behind.len()));
        if let Some(name) = tag.strip_prefix(b"</") {
            let (name, _) = split_while(name, u8::is_ascii_alphanumeric);
            see(MarkupToken::End(name));
        }
        rest = behind;
    }
    if !rest.is_empty() {
        see(MarkupToken::Text(rest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_text_and_values_are_those_of_the_document() {
        let document = "x &amp; y<P Id=a b = 'c &eacute;\n>' b=no d/>\
            z<!-- <a> </a> --><!--[if mso]><i>no</i><![endif]--></p >\
            <a href=\"?a=b&amp;c\"  =e>caf\u{e9}&nbsp; <b>!</b></a";
        let mut seen = Vec::new();
        tokens(document.as_bytes(), |token| {
            seen.push(match token {
                MarkupToken::Text(text) => text_of(text),
                MarkupToken::End(name) => format!("/{}", String::from_utf8_lossy(name)),
                MarkupToken::Start(tag) => {
                    let value = |name| tag.value(name).map(|it| text_of(&it));
                    let values = ["id", "B", "d", "href", "=e"].map(value);
                    format!("{} {values:?}", String::from_utf8_lossy(tag.name))
                }
            });
        });
        let expected = [
            "x & y",
            r#"P [Some("a"), Some("c é >"), Some(""), None, None]"#,
            "z",
            "/p",
            r#"a [None, None, None, Some("?a=b&c"), Some("")]"#,
            "café",
            "b [None, None, None, None, None]",
            "!",
            "/b",
            "/a",
        ];
        assert_eq!(seen, expected);
        assert_eq!(text_of(b"caf\xe9"), "caf\u{fffd}");
    }
}
