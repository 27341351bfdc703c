//! What the HTML of a message refers to, by the hashes that Eudora notes.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use percent_encoding::percent_decode;

use super::flattened::Flattened;
use super::token::token;
use crate::external_body::{Wrapper, hash};
use crate::link::html::{Syntax, locate_in};

/// Referred to parts, by their hashes: the text in which each stands; and a Content-ID, or the URL of a Content-Location.
pub(super) type Referred = HashMap<u32, Link>;
type Link = (usize, Result<String, String>);

pub(super) fn links(flattened: &Flattened<'_>) -> Referred {
    let hashes = flattened
        .notes()
        .flat_map(|note| [note.hashes.0, note.hashes.1]);
    let wanted: HashSet<u32> = hashes.collect();
    let mut links = HashMap::new();
    let html = flattened
        .texts()
        .filter(|(_, text)| text.wrapper == Some(Wrapper::Html));
    for (text, html) in html {
        let document = html.span.of(flattened.message);
        for link in locate_in(document, Syntax::Html).links.iter() {
            let url = link.decoded(document);
            let start = url.get(..4).unwrap_or_default();
            let is_id = start.eq_ignore_ascii_case(b"cid:");
            let text_of: Cow<'_, [u8]> = match is_id {
                true => percent_decode(url.get(4..).unwrap_or_default()).into(),
                false => url,
            };
            let hash = hash(&text_of);
            if !wanted.contains(&hash) {
                continue;
            }
            let content_id = match is_id {
                true => token(&text_of, b"<>()\"\\,;:").map(Ok),
                false => token(&text_of, b"<>\"").map(Err),
            };
            if let Some(content_id) = content_id {
                links.entry(hash).or_insert((text, content_id));
            }
        }
    }
    links
}

/// The link that has one of the hashes. It means one part.
pub(super) fn take(links: &mut Referred, (content_id, location): (u32, u32)) -> Option<Link> {
    let is = |hash: u32, by_id: bool| {
        let link = links.get(&hash).filter(|_| hash > 1);
        link.is_some_and(|(_, content_id)| content_id.is_ok() == by_id)
    };
    let hash = match is(content_id, true) {
        true => content_id,
        false => Some(location).filter(|&hash| is(hash, false))?,
    };
    links.remove(&hash)
}
