//! Checks that each new `cid:` URL names exactly one part, in a place where mail programs find it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use percent_encoding::percent_decode_str;

use crate::engine::external_body::identifier;
use crate::mime::{MessageTree, PartId, PartKind, ScanLimits};

/// Finds the `cid:` URLs in the documents of a message that was created from `original`. URLs that `original` already
/// contains are not checked.
///
/// # Panics
/// If one names no part, or two, or one that is not in a multipart/related around its document.
#[track_caller]
pub fn assert_each_names_a_part(original: &[u8], message: &[u8]) {
    let limits = &ScanLimits::default();
    let original_tree = crate::mime::scan(original, limits);
    let before: HashSet<String> = documents(&original_tree)
        .flat_map(|(_, octets)| urls(&octets).collect::<Vec<_>>())
        .collect();
    let tree = crate::mime::scan(message, limits);
    let mut bearers: HashMap<(PartId, String), Vec<PartId>> = HashMap::new();
    for part in tree.ids() {
        if let Some(value) = tree.value(part, "Content-ID") {
            let key = (tree.message_of(part), identifier(value));
            bearers.entry(key).or_default().push(part);
        }
    }
    for (document, octets) in documents(&tree) {
        for url in urls(&octets) {
            if before.contains(&url) {
                continue;
            }
            let content_id = percent_decode_str(url.get(4..).unwrap_or_default())
                .decode_utf8_lossy()
                .into_owned();
            let key = (tree.message_of(document), content_id);
            let named = bearers.get(&key).map_or(&[] as &[PartId], Vec::as_slice);
            assert!(
                matches!(named, [part] if is_found(&tree, document, *part)),
                "{url} in part {} names {} parts: {}",
                tree.number(document),
                named.len(),
                message.escape_ascii()
            );
        }
    }
}

/// Returns the decoded HTML and CSS documents of a message.
fn documents<'m>(tree: &'m MessageTree<'m>) -> impl Iterator<Item = (PartId, Cow<'m, [u8]>)> {
    let is_document = |part: &PartId| {
        let entity = tree.part(*part);
        let mut ends = ["html", "css"].into_iter();
        entity.content == PartKind::Leaf && ends.any(|end| entity.essence.ends_with(end))
    };
    tree.ids().filter(is_document).map(|part| {
        let entity = tree.part(part);
        let octets = entity.encoding.decode(entity.body.of(tree.original));
        (part, octets.unwrap_or_default())
    })
}

/// Returns whether a part is in a multipart/related around a document, and not in another branch of a
/// multipart/alternative.
fn is_found(tree: &MessageTree<'_>, document: PartId, part: PartId) -> bool {
    let related = |part: &PartId| tree.part(*part).essence == "multipart/related";
    let nearest = tree.ancestors(part).find(related);
    nearest.is_some_and(|nearest| tree.ancestors(document).any(|above| above == nearest))
        && !tree.are_alternatives(document, part)
}

/// Returns the `cid:` URLs that look like those of embody.
fn urls(document: &[u8]) -> impl Iterator<Item = String> {
    let is_end = |&byte: &u8| byte.is_ascii_whitespace() || b"\"'()<>,#".contains(&byte);
    memchr::memmem::find_iter(document, "cid:").map(move |at| {
        let rest = document.get(at..).unwrap_or_default();
        let end = rest.iter().position(is_end);
        let octets = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        let url = String::from_utf8_lossy(octets).replace("&amp;", "&");
        url.split("&quot;").next().unwrap_or_default().to_owned()
    })
}
