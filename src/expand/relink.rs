//! The links of a plan made edits. Only the bytes of the values change, and what would be false of the
//! documents otherwise: their Content-MD5, lines that became too long.

use super::part_edits::PartEdits;
use super::session::Session;
use crate::edit::{Edit, Edits};
use crate::external_body::identifier;
use crate::mime::{PartId, Tree};
use crate::plan::Plan;
use crate::plan::documents::cid_escaped;

/// The edits of all links that `plan` changes. A document whose edits cannot be made is left, with a reason.
pub(super) fn edits(
    session: &mut Session<'_>,
    original: &[u8],
    tree: &Tree,
    plan: &mut Plan<'_>,
) -> Edits {
    let mut edits = PartEdits::new(tree);
    for links in &mut plan.links {
        let Some((group, named)) = links.edits() else {
            continue;
        };
        let growth: i64 = group.iter().map(Edit::growth).sum();
        let content_id = |part: &PartId| plan.content_ids.get(part).map(String::as_str);
        let new = named
            .iter()
            .filter_map(|part| Some((*part, content_id(part)?)));
        if let Err(refusal) = edits.change(group, new) {
            session.ledger.lose(growth);
            links.leave(refusal);
            continue;
        }
        if cfg!(debug_assertions) {
            let written = |part| tree.value(original, part, "Content-ID").map(identifier);
            let ids = named.iter().filter_map(|part| {
                let new = content_id(part).map(str::to_owned);
                new.or_else(|| written(*part))
            });
            let urls: Vec<String> = ids.map(|id| format!("cid:{}", cid_escaped(&id))).collect();
            session.note_written(&urls);
        }
    }
    edits.finish()
}
