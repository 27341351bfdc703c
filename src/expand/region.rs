//! Which bytes of a half-done message came in with which reference's content.

use super::round::Composite;
use crate::edit::{Edit, Edits};
use crate::mime::{Tree, header};
use crate::plan::{Plan, Step};
use crate::span::Span;

/// A stretch of the current text that came in with content, and the reference of the original
/// message that brought it.
#[derive(Clone)]
pub(super) struct Region {
    pub(super) span: Span,
    pub(super) owner: String,
    /// URLs that led here, outermost first.
    pub(super) trail: Vec<String>,
}

/// Which region each item stands in, the innermost one.
pub(super) fn owners_of<'r>(
    current: &[u8],
    tree: &Tree,
    plan: &Plan<'_>,
    regions: &'r [Region],
) -> Vec<Option<&'r Region>> {
    plan.items
        .iter()
        .map(|item| {
            // Neither the whole header is surely inside, for content may bring a header along with
            // the part's, nor the body: a header that ends with the content takes the line break
            // behind it. Some field that says what the part is must have come with the content.
            let part = item.body.part;
            let named = header::first(current, tree.fields(part), "Content-Type")
                .map_or(tree.part(part).body, |field| field.name);
            // Later rounds stand in front, and lie inside earlier ones.
            regions.iter().find(|region| region.span.contains(named))
        })
        .collect()
}

/// Where composite content stands in the output, and what brought it; new regions first.
pub(super) fn regions_after(
    edits: &Edits,
    composites: &[Composite],
    plan: &Plan<'_>,
    owners: &[Option<&Region>],
    before: &[Region],
) -> Vec<Region> {
    let moved = |at: usize, counts: fn(&Edit, usize) -> bool| {
        let growth: i64 = edits
            .as_slice()
            .iter()
            .take_while(|edit| counts(edit, at))
            .map(Edit::growth)
            .sum();
        usize::try_from(at as i64 + growth).unwrap_or_default()
    };
    let after = |span: Span| {
        Span::new(
            moved(span.start, |edit, at| {
                edit.span.end <= at && edit.span.start < at
            }),
            moved(span.end, |edit, at| edit.span.end <= at),
        )
    };
    let new = composites.iter().filter_map(|composite| {
        let item = plan.items.get(composite.item)?;
        let owner = owners.get(composite.item).copied().flatten();
        let mut trail = owner.map(|region| region.trail.clone()).unwrap_or_default();
        if let Step::Retrieve { url, .. } = &item.step {
            trail.push(url.clone());
        }
        Some(Region {
            span: after(composite.reach),
            owner: owner.map_or_else(|| item.number.clone(), |region| region.owner.clone()),
            trail,
        })
    });
    let old = before.iter().map(|region| Region {
        span: after(region.span),
        ..region.clone()
    });
    new.chain(old).collect()
}
