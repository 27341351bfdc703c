//! Relative links in HTML and CSS made to work (docs/design.md, "Links"): all documents of a message, the
//! bounds they share, and what is said of each.
//!
//! What becomes of one document's links is [`relink`](super::relink)'s, which parts they may mean
//! [`siblings`](super::siblings)'. Only the bytes of the values change, and what would be false of the
//! document otherwise: its Content-MD5, lines that became too long.

use std::collections::BTreeSet;

use super::ledger::Ledger;
use super::lengths;
use super::relink::{Relinker, Rewriting};
use super::state::State;
use crate::edit::{Edit, Edits};
use crate::link::url::masked;
use crate::mime::{PartId, Tree};
use crate::policy::Policy;
use crate::report::{Detail, Kind, Refusal, Row};

/// Edits and rows for all documents of a message.
#[derive(Debug, Default)]
pub(super) struct Documents {
    pub(super) edits: Edits,
    pub(super) rows: Vec<Row<State>>,
}

/// Works on every document of a message, in their order: what fits is done, the others are left.
pub(super) fn rewrite(
    original: &[u8],
    tree: &Tree,
    policy: &Policy,
    name: &str,
    ledger: &mut Ledger,
) -> Documents {
    let mut relinker = Relinker::new(original, tree, policy, ledger);
    let mut documents = Documents::default();
    let mut named: BTreeSet<PartId> = BTreeSet::new();
    let mut changed: Vec<PartId> = Vec::new();
    for part in tree.ids() {
        let Some(outcome) = relinker.document(part) else {
            continue;
        };
        let outcome = outcome.map(|(rewriting, group)| {
            named.extend(&rewriting.named);
            changed.push(part);
            // Documents are different parts: their edits cannot meet.
            let _ = documents.edits.add(group);
            rewriting
        });
        documents.rows.push(row(tree, part, name, outcome));
    }
    let mut around = lengths::untrue_around(original, tree, changed.into_iter(), true);
    around.extend(named.into_iter().map(|part| {
        let identity = relinker.identity(part);
        let field = [
            b"Content-ID: <",
            identity.content_id.as_bytes(),
            b">",
            tree.newline.bytes(),
        ]
        .concat();
        Edit::insert(tree.part(part).header.end, field)
    }));
    // Fields and the ends of headers, in no body: these cannot meet the others either.
    let _ = documents.edits.add(around);
    documents
}

fn row(tree: &Tree, part: PartId, name: &str, outcome: Result<Rewriting, Refusal>) -> Row<State> {
    let mut row = Row {
        message: name.to_owned(),
        part: tree.number(part),
        kind: Kind::Link,
        url: None,
        outcome: State::Left,
        reason: None,
        detail: Detail::default(),
        media_type: Some(tree.part(part).essence.clone()),
        bytes: Some(tree.part(part).body.len() as u64),
        ms: None,
        links: None,
        archive: None,
    };
    match outcome {
        Ok(rewriting) => {
            row.outcome = State::Rewritten;
            row.links = Some(rewriting.absolute + rewriting.to_parts);
            let base = rewriting
                .base
                .filter(|base| !base.is_within_message())
                .map_or_else(String::new, |base| {
                    row.url = Some(masked(&base.url).into_owned());
                    format!(", base from {}", base.origin)
                });
            row.detail = format!(
                "{} links made absolute, {} pointed at parts{base}",
                rewriting.absolute, rewriting.to_parts
            )
            .into();
            if let Some(digest) = rewriting.digest {
                row.remark(digest.note());
            }
        }
        Err(refusal) => {
            row.reason = Some(refusal.reason);
            row.detail = refusal.detail;
        }
    }
    row
}
