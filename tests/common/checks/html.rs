//! Checks the links in HTML and XHTML: for any bytes, their spans are in order; new links are read back as they were
//! written; and the tokens of the crate html5gum contain the same attributes.

use embody::internals::link::html::{Syntax, locate, locate_in};
use embody::internals::link::value::{Grammar, LinkValue};
use memchr::memmem;

use super::css::{in_order, read_back};

/// Attributes that contain only a URL, in every element.
const PLAIN: [&str; 4] = ["href", "src", "cite", "background"];

/// Checks a document, which can be any bytes.
pub fn check(data: &[u8]) {
    let html = locate(data).links.to_vec();
    in_order(&html, data);
    in_order(&locate_in(data, Syntax::Xhtml).links.to_vec(), data);
    read_back(&html, data, |document| locate(document).links.to_vec());
    // embody differs from the tokenizer here on purpose (link/tags.rs): it reads the markup in conditional comments and
    // `<noscript>`, and `<![CDATA[` ends at `]]>`.
    let text = data.to_ascii_lowercase();
    let departs: [&[u8]; 3] = [b"<!--[if", b"<noscript", b"<![cdata["];
    if departs
        .iter()
        .any(|word| memmem::find(&text, word).is_some())
    {
        return;
    }
    assert_eq!(
        plain(&html, data),
        oracle(data),
        "\"{}\"",
        data.escape_ascii()
    );
}

/// Returns the name and the value of each plain URL attribute that embody finds.
pub fn plain(links: &[LinkValue], document: &[u8]) -> Vec<(String, Vec<u8>)> {
    links
        .iter()
        .filter(|link| link.grammar == Grammar::Url && PLAIN.contains(&link.place))
        .map(|link| {
            let value = comparable(&link.decoded(document));
            (link.place.to_owned(), value)
        })
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

/// Returns the name and the value of each plain URL attribute that html5gum finds.
pub fn oracle(document: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut emitter = html5gum::DefaultEmitter::<usize>::new_with_span();
    emitter.naively_switch_states(true);
    let mut found = Vec::new();
    for token in html5gum::Tokenizer::new_with_emitter(document, emitter) {
        let Ok(html5gum::Token::StartTag(tag)) = token else {
            continue;
        };
        let mut here: Vec<_> = tag
            .attributes
            .iter()
            .filter(|(name, _)| {
                PLAIN
                    .iter()
                    .any(|plain| plain.as_bytes() == name.as_slice())
                    && *tag.name != b"base"[..]
            })
            .map(|(name, value)| {
                (
                    value.span.start,
                    String::from_utf8_lossy(name).into_owned(),
                    comparable(value),
                )
            })
            .filter(|(_, _, value)| !value.is_empty())
            .collect();
        here.sort();
        found.extend(here.into_iter().map(|(_, name, value)| (name, value)));
    }
    found
}

/// Returns a value without outer blanks, with its non-ASCII bytes percent-encoded, so that both results can be
/// compared.
pub fn comparable(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for &byte in value.trim_ascii() {
        if byte.is_ascii() {
            out.push(byte);
        } else {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    out
}
