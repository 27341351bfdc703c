//! Recognises content that the message already contains.

use std::collections::HashSet;

use sha2::{Digest as _, Sha256};

use crate::engine::parts::{NewBody, NewLeaf};
use crate::mime::header::unfold;
use crate::mime::transfer::with_newlines;
use crate::mime::{MediaType, MessageTree, PartId, PartKind, entity};
use crate::span::Newline;

type Digest = [u8; 32];

/// Digests and ids of everything in a message, to recognise content that the message already contains.
pub(super) struct KnownParts {
    digests: HashSet<Digest>,
    ids: HashSet<Vec<u8>>,
}

impl KnownParts {
    pub(super) fn of(tree: &MessageTree<'_>) -> Self {
        let mut known = Self {
            digests: HashSet::new(),
            ids: HashSet::new(),
        };
        for id in tree.ids() {
            if let Some(value) = tree.value(id, "Content-ID") {
                let unfolded = unfold(value);
                let content_id = unfolded.trim_ascii();
                let opened = content_id.strip_prefix(b"<").unwrap_or(content_id);
                let bare = opened.strip_suffix(b">").unwrap_or(opened);
                known.ids.insert(bare.to_vec());
            }
            let part = tree.part(id);
            let body = part.body.of(tree.original);
            match &part.content {
                PartKind::Message => {
                    known.digests.insert(text_digest(body));
                }
                PartKind::Multipart(_) if part.essence == "multipart/signed" => {
                    known
                        .digests
                        .insert(text_digest(part.span.of(tree.original)));
                }
                PartKind::Leaf => {
                    let Some(bytes) = part.encoding.decode(body) else {
                        continue;
                    };
                    known
                        .digests
                        .insert(digest(&bytes, name_of(tree, id).as_deref()));
                    // Line endings make no difference for texts. Parts of the type `message/*`, such as delivery reports, are
                    // text, too.
                    if part.essence.starts_with("text/") || part.essence.starts_with("message/") {
                        known.digests.insert(text_digest(&bytes));
                    }
                }
                PartKind::Multipart(_) | PartKind::Opaque(_) => {}
            }
        }
        known
    }

    /// Returns true if the message already contains the content. Equal bytes prove this. A Content-ID does not, because the
    /// sender can forge it; it is accepted only if the opened part stays in the message, so that nothing can be lost.
    pub(super) fn has(&self, leaf: &NewLeaf<'_>, stays: bool) -> bool {
        if stays && self.ids.contains(made_id(leaf).as_bytes()) {
            return true;
        }
        let digest = match &leaf.body {
            NewBody::Bytes(bytes) => digest(bytes, leaf.name.as_deref()),
            NewBody::Text(bytes) | NewBody::Entity(bytes) => text_digest(bytes),
            NewBody::Message(bytes) => text_digest(bytes),
        };
        self.digests.contains(&digest)
    }
}

/// Returns the digest of a file. For an empty file it includes the name, because empty files with different names are
/// different.
fn digest(bytes: &[u8], name: Option<&str>) -> Digest {
    match (bytes, name) {
        ([], Some(name)) => Sha256::digest(["empty: ", name].concat()).into(),
        _ => Sha256::digest(bytes).into(),
    }
}

/// Returns the digest of a text. The kind of line endings, and line endings at the end, make no difference.
fn text_digest(text: &[u8]) -> Digest {
    let normalized = with_newlines(text.to_vec(), Newline::Lf);
    let mut lines = normalized.as_slice();
    while let [before @ .., b'\n'] = lines {
        lines = before;
    }
    Sha256::digest([b"text: ", lines].concat()).into()
}

fn name_of(tree: &MessageTree<'_>, id: PartId) -> Option<String> {
    let value = tree.value(id, "Content-Disposition")?;
    MediaType::parse(value).name("filename").text()
}

/// Returns a Content-ID that contains the hash of a document. If links in the document are changed later, its bytes no
/// longer match the hash, but a later run still recognises the document by this id.
pub(super) fn made_id(leaf: &NewLeaf<'_>) -> String {
    let hash = entity::sha256(leaf.bytes());
    format!("{hash:.32}@embody.invalid")
}
