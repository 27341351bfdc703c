//! The links of a plan made edits. Only the bytes of the values change, and what would be false of the
//! documents otherwise: their Content-MD5, lines that became too long.

use crate::edit::{Edit, Edits};
use crate::mime::Tree;
use crate::plan::Plan;

/// The edits of all links that `plan` changes.
pub(super) fn edits(tree: &Tree, plan: &mut Plan<'_>) -> Edits {
    let mut edits = Edits::new();
    for links in &mut plan.links {
        if let Some(group) = links.edits() {
            // Documents are different parts: their edits cannot meet.
            let _ = edits.add(group);
        }
    }
    let fields = plan.content_ids.iter().map(|(part, content_id)| {
        let newline = tree.newline.bytes();
        let field = [b"Content-ID: <", content_id.as_bytes(), b">", newline].concat();
        Edit::insert(tree.part(*part).header.end, field)
    });
    // The ends of headers, in no body: these cannot meet the others either.
    let _ = edits.add(fields.collect());
    edits
}
