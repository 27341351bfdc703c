//! Relative links in HTML and CSS made to work (the contract's §5): all documents of a message, the
//! bounds they share, and what is said of each.
//!
//! What becomes of one document's links is [`relink`](super::relink)'s, which parts they may mean
//! [`siblings`](super::siblings)'. Only the bytes of the values change, and what would be false of the
//! document otherwise: its Content-MD5, lines that became too long.

use std::collections::HashSet;

use super::document_digest;
use super::relink::{Relinker, Rewriting, Rewritten};
use crate::edit::{Edit, Edits, Group};
use crate::link::url::masked;
use crate::mime::{PartId, Tree};
use crate::policy::Policy;
use crate::report::{Kind, Outcome, Reason, Refusal, Row};

/// Edits and rows for all documents of a message.
#[derive(Debug, Default)]
pub(super) struct Documents {
    pub(super) edits: Edits,
    pub(super) rows: Vec<Row>,
    /// What the message gains, in octets.
    pub(super) growth: u64,
}

/// Works on every document of a message.
///
/// `room` is how many octets the message may gain; beyond, no document is touched.
pub(super) fn rewrite(
    original: &[u8],
    tree: &Tree,
    policy: &Policy,
    name: &str,
    room: u64,
) -> Documents {
    let mut relinker = Relinker::new(original, tree, policy, room);
    let over = Refusal::lasting(
        Reason::GrowthLimit,
        format!(
            "absolute links would add more than --max-growth, {}",
            policy.limits.growth
        ),
    );
    let mut outcomes: Vec<(PartId, Rewritten)> = Vec::new();
    let mut total = 0;
    for part in tree.ids() {
        let Some(mut outcome) = relinker.document(part) else {
            continue;
        };
        let within = total <= room;
        total += growth_of(&outcome);
        if total > room {
            // No document that gains anything is touched. What was made is dropped at once: each of
            // many documents may be as large as all may be together.
            let before = if within {
                outcomes.as_mut_slice()
            } else {
                &mut []
            };
            let made = before.iter_mut().map(|(_, outcome)| outcome);
            for outcome in made.chain([&mut outcome]) {
                if growth_of(outcome) > 0 {
                    *outcome = Err(over.clone());
                }
            }
        }
        outcomes.push((part, outcome));
    }
    if let Err(refusal) = relinker.worked(0) {
        // None of them: else a second run, which has less to do, would go on where this one ended.
        for (_, outcome) in &mut outcomes {
            *outcome = Err(refusal.clone());
        }
    }
    let mut documents = Documents::default();
    let mut named: Vec<PartId> = Vec::new();
    let mut above: HashSet<PartId> = HashSet::new();
    let mut around = Group::new();
    for (part, outcome) in outcomes {
        let outcome = outcome.map(|(rewriting, group)| {
            documents.growth += gained(&group);
            named.extend(&rewriting.named);
            // What holds several documents is looked at once.
            for holder in tree.ancestors(part) {
                if !above.insert(holder) {
                    break;
                }
                around.extend(document_digest::removed_from(original, tree, holder));
            }
            // Documents are different parts: their edits cannot meet.
            let _ = documents.edits.add(group);
            rewriting
        });
        documents.rows.push(row(tree, part, name, outcome));
    }
    named.sort_unstable();
    named.dedup();
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

/// What the message would gain by a document, in octets.
fn growth_of(outcome: &Rewritten) -> u64 {
    outcome.as_ref().map_or(0, |(_, group)| gained(group))
}

fn gained(group: &Group) -> u64 {
    group.iter().map(Edit::growth).sum::<i64>().max(0) as u64
}

fn row(tree: &Tree, part: PartId, name: &str, outcome: Result<Rewriting, Refusal>) -> Row {
    let mut row = Row {
        message: name.to_owned(),
        part: tree.number(part),
        kind: Kind::Link,
        url: None,
        outcome: Outcome::Left,
        reason: None,
        detail: String::new(),
        media_type: Some(tree.part(part).essence.clone()),
        bytes: Some(tree.part(part).body.len() as u64),
        ms: None,
        links: None,
    };
    match outcome {
        Ok(rewriting) => {
            row.outcome = Outcome::Rewritten;
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
            );
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
