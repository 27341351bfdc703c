//! Inserts new parts in the place of a part that mail programs cannot read.
//!
//! The text of the mail stays. HTML becomes an alternative to this text. Everything else replaces the part, or is inserted
//! before it if the part stays.

use super::known::{KnownParts, made_id};
use super::placing::FormInserter;
use crate::edit::Group;
use crate::engine::outlook::compose::ItemParts;
use crate::engine::parts::{NewBody, NewLeaf};
use crate::engine::report::Refusal;
use crate::mime::charset;
use crate::mime::{MediaType, MessageTree, PartId, PartKind};

/// Returns the texts of the message that contains `part`, except attachments, empty texts and `part` itself.
fn own_texts(tree: &MessageTree<'_>, part: PartId) -> Vec<PartId> {
    let message = tree.message_of(part);
    let is_text = |id: &PartId| {
        let text = tree.part(*id);
        *id != part
            && text.content == PartKind::Leaf
            && matches!(text.essence.as_str(), "text/plain" | "text/html")
            && !tree.has_disposition(*id, "attachment")
            && tree.message_of(*id) == message
            && !text.body.of(tree.original).trim_ascii().is_empty()
    };
    tree.ids().filter(is_text).collect()
}

/// Returns true if the mail has a text other than the part.
pub(super) fn has_text(tree: &MessageTree<'_>, part: PartId) -> bool {
    !own_texts(tree, part).is_empty()
}

/// Returns the words of a text, separated by single blanks, so that texts are compared without regard to white space.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn says_the_same(tree: &MessageTree<'_>, texts: &[PartId], leaf: &NewLeaf<'_>) -> bool {
    let wanted = words(&String::from_utf8_lossy(leaf.bytes()));
    texts.iter().any(|id| {
        let part = tree.part(*id);
        let body = part.body.of(tree.original);
        let Some(bytes) = part.encoding.decode(body) else {
            return false;
        };
        let value = tree.value(*id, "Content-Type").unwrap_or_default();
        let charset = MediaType::parse(value).parameter("charset");
        let label = charset.as_deref().unwrap_or(b"us-ascii");
        let text = charset::decode_lossily(label, &bytes)
            .unwrap_or_else(|| String::from_utf8_lossy(&bytes));
        words(&text).contains(&wanted)
    })
}

/// The edits that insert the content of a part into the message.
pub(super) struct InsertionEdits {
    pub edits: Group,
    /// Number of new parts.
    pub parts: usize,
    /// The text of the mail to which an alternative was added. `None` if the new parts are separate.
    pub host: Option<PartId>,
}

/// Inserts `contents` in the place of `part`. If `keeps` is true, the part stays, and the new parts are inserted before it.
///
/// # Errors
/// Returns [`Reason::BoundaryCollision`] if a new part contains a boundary line of the message.
pub(super) fn place(
    tree: &MessageTree<'_>,
    part: PartId,
    mut contents: ItemParts<'_>,
    known: &KnownParts,
    keeps: bool,
) -> Result<InsertionEdits, Refusal> {
    let texts = own_texts(tree, part);
    let has_html = contents.html.is_some();
    let is_new = |leaf: &NewLeaf<'_>| !known.has(leaf, keeps);
    for text in [
        &mut contents.text,
        &mut contents.html,
        &mut contents.calendar,
    ] {
        *text = text.take().filter(is_new);
    }
    contents.report = contents.report.take_if(|report| is_new(&report.leaf));
    contents.pictures.retain(is_new);
    contents.attachments.retain(is_new);
    if !texts.is_empty() {
        contents.rtf_text = None;
        // New HTML makes the existing text its alternative, so the new text is not needed. Without new HTML, the new
        // text is inserted only if its words differ from those of the existing texts.
        contents.text = contents
            .text
            .take_if(|text| !has_html && !says_the_same(tree, &texts, text));
    }
    if texts.iter().any(|id| tree.part(*id).essence == "text/html")
        && let Some(html) = contents.html.take()
    {
        contents
            .attachments
            .insert(0, html.attached("message.html"));
        contents.attachments.append(&mut contents.pictures);
    }
    if keeps {
        identify(&mut contents);
    }
    let parts = contents.leaves().count() + usize::from(contents.rtf_text.is_some());
    let mut placing = FormInserter {
        tree,
        part,
        keeps,
        around: tree.boundaries(),
        host: None,
    };
    let edits = placing.edits(contents, &texts)?;
    Ok(InsertionEdits {
        edits,
        parts,
        host: placing.host,
    })
}

fn identify(contents: &mut ItemParts<'_>) {
    let texts = [&mut contents.text, &mut contents.html];
    let leaves = texts.into_iter().flatten();
    for leaf in leaves.chain(&mut contents.attachments) {
        let may_change = match &leaf.body {
            NewBody::Text(_) | NewBody::Message(_) => true,
            NewBody::Bytes(_) => leaf.essence.starts_with("text/"),
            NewBody::Entity(_) => false,
        };
        if may_change && leaf.content_id.is_none() {
            leaf.content_id = Some(made_id(leaf));
        }
    }
}
