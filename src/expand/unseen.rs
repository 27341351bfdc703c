//! What a bound kept from being looked into, and may hold references: it is reported like a reference
//! that is left.

use std::collections::HashSet;

use super::prefilter::Prefilter;
use crate::mime::{PartId, Tree};
use crate::plan::{Plan, opaque_parts};
use crate::report::{Kind, Outcome, Row};

/// One row for each such part that the plan has no item for.
pub(super) fn rows(
    tree: &Tree<'_>,
    plan: &Plan<'_>,
    prefilter: &Prefilter,
    name: &str,
) -> Vec<Row> {
    let mut opaque = opaque_parts(tree).peekable();
    if opaque.peek().is_none() {
        return Vec::new();
    }
    let known: HashSet<PartId> = plan.references.iter().map(|item| item.body.part).collect();
    opaque
        .filter(|(part, span, _)| {
            !known.contains(part) && prefilter.external_bodies(span.of(tree.original))
        })
        .map(|(part, span, refusal)| {
            let number = tree.number(part);
            let mut row = Row::new(name, number, Kind::ExternalBody, Outcome::Left);
            row.bytes = Some(span.len() as u64);
            row.tell_refusal(refusal);
            row
        })
        .collect()
}
