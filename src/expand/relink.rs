//! The links of a plan made edits. Only the bytes of the values change, and what would be false of the
//! documents otherwise: their Content-MD5, lines that became too long, what is said of a body around them.

use super::lengths;
use crate::edit::{Edit, Edits};
use crate::mime::Tree;
use crate::plan::Plan;

/// The edits of all links that `plan` changes.
pub(super) fn edits(original: &[u8], tree: &Tree, plan: &mut Plan<'_>) -> Edits {
    let mut edits = Edits::new();
    let mut changed = Vec::new();
    for links in &mut plan.links {
        if let Some(group) = links.edits() {
            changed.push(links.part);
            // Documents are different parts: their edits cannot meet.
            let _ = edits.add(group);
        }
    }
    let mut around = lengths::untrue_around(original, tree, changed.into_iter(), true);
    around.extend(plan.content_ids.iter().map(|(part, content_id)| {
        let newline = tree.newline.bytes();
        let field = [b"Content-ID: <", content_id.as_bytes(), b">", newline].concat();
        Edit::insert(tree.part(*part).header.end, field)
    }));
    // Fields and the ends of headers, in no body: these cannot meet the others either.
    let _ = edits.add(around);
    edits
}
