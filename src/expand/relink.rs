//! The links of documents resolved. Only the bytes of the values change, and what would be false of the
//! documents otherwise: their Content-MD5, lines that became too long.

use super::part_edits::PartEdits;
use super::session::Session;
use crate::edit::{Edit, Edits};
use crate::mime::Tree;
use crate::plan::documents::{Documents, cid_escaped};
use crate::report::{Kind, Outcome, Row};

/// The edits of all links that change, and a row for each document in which something would change, or may not. A document
/// is changed as a whole or left with a reason: what fits is done, in the order of the documents.
pub(super) fn resolved(session: &mut Session<'_>, tree: &Tree<'_>) -> (Edits, Vec<Row>) {
    let mut documents = Documents::new(tree, session.policy());
    let mut edits = PartEdits::new(tree);
    let mut rows = Vec::new();
    for part in tree.ids() {
        let Some(decision) = documents.new_links(part, &mut session.ledger).transpose() else {
            continue;
        };
        let made = decision.and_then(|mut new| {
            let group = std::mem::take(&mut new.edits);
            let growth: i64 = group.iter().map(Edit::growth).sum();
            let identities = new
                .named
                .iter()
                .map(|named| (*named, documents.identity(*named).clone()));
            let identities: Vec<_> = identities.collect();
            let without = identities.iter().filter(|(_, identity)| identity.is_made);
            let named = without.map(|(part, identity)| (*part, identity.content_id.as_str()));
            edits
                .change(group, named)
                .inspect_err(|_| session.ledger.lose(growth))?;
            if cfg!(debug_assertions) {
                let ids = identities.iter().map(|(_, identity)| &identity.content_id);
                let urls: Vec<String> = ids.map(|id| format!("cid:{}", cid_escaped(id))).collect();
                session.note_written(&urls);
            }
            Ok(new)
        });
        let entity = tree.part(part);
        let mut row = Row::new(session.name, tree.number(part), Kind::Link, Outcome::Left);
        row.media_type = Some(entity.essence.clone());
        row.bytes = Some(entity.body.len() as u64);
        match made {
            Ok(new) => new.tell(&mut row),
            Err(refusal) => row.tell_refusal(refusal),
        }
        rows.push(row);
    }
    (edits.finish(), rows)
}
