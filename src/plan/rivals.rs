//! Several sources of one object (RFC 2046 §5.1.4 with §5.2.3): external bodies in a multipart/alternative with the
//! same phantom Content-ID or Content-MD5, and for no other reason: an English and a French text have one type. An
//! alternative that also holds a real part offers a choice of formats; nothing in it is a rival.

use std::collections::{BTreeMap, HashMap};

use super::{Item, Step};
use crate::external_body::{Claim, ESSENCE, Form, Scheme};
use crate::mime::{PartId, Tree};

pub(super) fn rivals(tree: &Tree<'_>, items: &[Item<'_>]) -> Vec<Vec<usize>> {
    let is_external = |&child: &PartId| tree.part(child).essence == ESSENCE;
    let offers_one_of_many = |part: PartId| {
        let part = tree.part(part);
        part.essence == "multipart/alternative" && part.children.iter().all(is_external)
    };
    let mut is_choice: HashMap<PartId, bool> = HashMap::new();
    // The first item with a Content-ID or a Content-MD5, which cannot be taken for one another.
    let mut bearers: HashMap<(PartId, &str, &[u8]), usize> = HashMap::new();
    // Disjoint sets: of each item an earlier one of the same object; the item itself if it is the first.
    let mut earlier: Vec<usize> = (0..items.len()).collect();
    for (index, item) in items.iter().enumerate() {
        let Some(parent) = tree.part(item.body.part).parent else {
            continue;
        };
        // Two attachments that were detached may have one content; both come back.
        if item.body.form != Form::ExternalBody || item.body.claim != Claim::None {
            continue;
        }
        let is_choice = is_choice.entry(parent);
        if !*is_choice.or_insert_with(|| offers_one_of_many(parent)) {
            continue;
        }
        let content_id = item.body.content_id.as_deref().map(str::as_bytes);
        for (field, value) in [("id", content_id), ("md5", item.body.content_md5)] {
            let Some(value) = value else { continue };
            let other = *bearers.entry((parent, field, value)).or_insert(index);
            let (one, other) = (first_of(&mut earlier, index), first_of(&mut earlier, other));
            earlier[one.max(other)] = one.min(other);
        }
    }
    // By the first of each.
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for index in 0..items.len() {
        let first = first_of(&mut earlier, index);
        if first != index {
            let members = groups.entry(first).or_insert_with(|| vec![first]);
            members.push(index);
        }
    }
    let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
    for members in &mut groups {
        members.sort_by_key(|&index| items.get(index).map_or(u8::MAX, usefulness));
    }
    groups
}

/// Halving the path keeps long chains cheap.
fn first_of(earlier: &mut [usize], mut index: usize) -> usize {
    while earlier[index] != index {
        earlier[index] = earlier[earlier[index]];
        index = earlier[index];
    }
    index
}

fn usefulness(item: &Item<'_>) -> u8 {
    match &item.step {
        Step::Copy(_) => 0,
        Step::Decode | Step::Read { .. } => 1,
        Step::Retrieve { url, .. } => {
            Scheme::of_url(url).map_or(u8::MAX - 1, |scheme| 2 + scheme.usefulness())
        }
        Step::Leave(_) => u8::MAX,
    }
}
