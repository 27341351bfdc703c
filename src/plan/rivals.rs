//! Several sources of one object (RFC 2046 §5.1.4 with §5.2.3).
//!
//! External bodies in a multipart/alternative are one object if they have the same phantom
//! Content-ID or the same Content-MD5, and for no other reason: an English and a French text have
//! one type. An alternative that also holds a real part offers a choice of formats; nothing in it is
//! a rival.

use std::collections::HashMap;

use super::{Item, Step};
use crate::external_body::{Claim, ESSENCE, Form, Scheme};
use crate::mime::{PartId, Tree};

/// Items (by their position) that offer one object, in the order in which they are tried.
pub(super) fn rivals(tree: &Tree, items: &[Item<'_>]) -> Vec<Vec<usize>> {
    let mut is_choice: HashMap<PartId, bool> = HashMap::new();
    let mut bearers: HashMap<(PartId, Sign<'_>), usize> = HashMap::new();
    let mut objects = Objects::of(items.len());
    for (index, item) in items.iter().enumerate() {
        let Some(parent) = tree.part(item.body.part).parent else {
            continue;
        };
        // Two attachments that were detached may have one content; both come back.
        let choice = item.body.form == Form::ExternalBody
            && item.body.claim == Claim::None
            && *is_choice
                .entry(parent)
                .or_insert_with(|| offers_one_of_many(tree, parent));
        if !choice {
            continue;
        }
        let content_id = item.body.content_id.as_deref().map(Sign::ContentId);
        let content_md5 = item.body.content_md5.map(Sign::ContentMd5);
        for sign in content_id.into_iter().chain(content_md5) {
            let first = *bearers.entry((parent, sign)).or_insert(index);
            objects.join(first, index);
        }
    }
    let mut groups: HashMap<usize, Vec<usize>> = HashMap::new();
    for index in 0..items.len() {
        groups
            .entry(objects.first_of(index))
            .or_default()
            .push(index);
    }
    let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
    groups.retain(|members| members.len() > 1);
    groups.sort_unstable();
    for members in &mut groups {
        members.sort_by_key(|&index| items.get(index).map_or(u8::MAX, usefulness));
    }
    groups
}

/// What two external bodies have in common if they are one object.
#[derive(PartialEq, Eq, Hash)]
enum Sign<'a> {
    ContentId(&'a str),
    ContentMd5(&'a [u8]),
}

/// Which items are one object: disjoint sets.
struct Objects {
    /// An earlier item of the same object; the item itself if it is the first.
    earlier: Vec<usize>,
}

impl Objects {
    fn of(items: usize) -> Self {
        Self {
            earlier: (0..items).collect(),
        }
    }

    fn first_of(&mut self, index: usize) -> usize {
        let mut at = index;
        while let Some(&earlier) = self.earlier.get(at)
            && earlier != at
        {
            // Halving the path keeps long chains cheap.
            let further = self.earlier.get(earlier).copied().unwrap_or(earlier);
            if let Some(slot) = self.earlier.get_mut(at) {
                *slot = further;
            }
            at = further;
        }
        at
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.first_of(one), self.first_of(other));
        if let Some(slot) = self.earlier.get_mut(one.max(other)) {
            *slot = one.min(other);
        }
    }
}

fn offers_one_of_many(tree: &Tree, part: PartId) -> bool {
    let alternative = tree.part(part);
    let is_external = |&child: &PartId| tree.part(child).essence == ESSENCE;
    alternative.essence == "multipart/alternative" && alternative.children.iter().all(is_external)
}

/// In which order rivals are tried: what is surest and nearest first.
fn usefulness(item: &Item<'_>) -> u8 {
    match &item.step {
        Step::Copy(_) => 0,
        Step::Decode => 1,
        Step::Retrieve { url, .. } => {
            Scheme::of_url(url).map_or(u8::MAX - 1, |scheme| 2 + scheme.usefulness())
        }
        Step::Leave(_) => u8::MAX,
    }
}
