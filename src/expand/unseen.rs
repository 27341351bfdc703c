//! What a bound kept from being looked into, and may hold references: it is reported like a reference
//! that is left.

use std::collections::HashSet;

use super::prefilter::Prefilter;
use crate::mime::{PartId, Tree};
use crate::plan::{Plan, opaque_parts};
use crate::report::{Kind, Outcome, Row};

/// One row for each such part that the plan has no item for.
pub(super) fn rows(
    original: &[u8],
    tree: &Tree,
    plan: &Plan<'_>,
    prefilter: &Prefilter,
    name: &str,
) -> Vec<Row> {
    let opaque = opaque_parts(tree);
    if opaque.is_empty() {
        return Vec::new();
    }
    let known: HashSet<PartId> = plan.references.iter().map(|item| item.body.part).collect();
    opaque
        .into_iter()
        .filter(|opaque| !known.contains(&opaque.part))
        .filter(|opaque| prefilter.external_bodies(opaque.span.of(original)))
        .map(|opaque| {
            let mut row = Row::new(name, opaque.number, Kind::ExternalBody, Outcome::Left);
            row.bytes = Some(opaque.span.len() as u64);
            row.tell_refusal(opaque.refusal);
            row
        })
        .collect()
}
