//! Finds the parts of the new mail that were added by later runs than the one that is repeated.

use std::collections::{HashMap, HashSet};

use super::facts::{Guide, LaterParts};
use super::names::{digits_of, ordinal_of};
use super::part::GuidePart;
use crate::mime::PartId;
use crate::mime::entity::uri;

impl Guide {
    /// Returns the parts that later runs added. Returns `None` if one run can have added all parts.
    ///
    /// A part without a URL has the content of a `data:` URL, or a server sent the same content in the same run. `has_twins` is
    /// true for the second case: then all such parts with this content are from one run.
    pub(in crate::engine) fn later_parts(&self, has_twins: bool) -> Option<LaterParts> {
        let mut later = LaterParts {
            first: self.first_of_later_run(),
            others: HashSet::new(),
        };
        for same in self.same_contents() {
            let url = |at: &usize| self.parts.get(*at).and_then(|it| it.location.as_deref());
            // One run gives the same URL to all parts with one content, or none.
            let of_first = same.first().and_then(url);
            let others = same.iter().filter(|at| url(at) != of_first);
            later.others.extend(others);
            let mut twins = same.iter().filter(|at| url(at).is_none());
            if has_twins && twins.clone().any(|at| later.contain(*at)) {
                later.others.extend(&mut twins);
            }
        }
        self.add_following(&mut later);
        (later.first.is_some() || !later.others.is_empty()).then_some(later)
    }

    /// Adds the new parts after later ones in the same multipart: each run adds its parts at the end.
    fn add_following(&self, later: &mut LaterParts) {
        let mut ends: HashSet<PartId> = HashSet::new();
        for (at, part) in self.parts.iter().enumerate() {
            let is_embedded = part.content_id.as_deref().and_then(digits_of).is_some();
            let Some(parent) = part.parent.filter(|_| part.is_new && is_embedded) else {
                continue;
            };
            if later.contain(at) {
                ends.insert(parent);
            } else if ends.contains(&parent) {
                later.others.insert(at);
            }
        }
    }

    /// Returns the new parts with an id of embody in groups with equal content, in the order in which their ids were made.
    fn same_contents(&self) -> Vec<Vec<usize>> {
        let mut groups: HashMap<&str, Vec<(u32, usize)>> = HashMap::new();
        for (at, part) in self.parts.iter().enumerate().filter(|(_, it)| it.is_new) {
            let content_id = part.content_id.as_deref().unwrap_or_default();
            if let Some(digits) = digits_of(content_id) {
                let group = groups.entry(digits).or_default();
                group.push((ordinal_of(content_id), at));
            }
        }
        let groups = groups.into_values().map(|mut group| {
            group.sort_unstable();
            group.into_iter().map(|(_, at)| at).collect()
        });
        groups.collect()
    }

    /// Returns the index of the first part that a second run added. One run adds pictures in the order of their
    /// links, so a part that breaks this order belongs to a later run. If all pictures are in order, a linked file after them
    /// also shows a second run. Returns `None` if the order is that of a single run.
    fn first_of_later_run(&self) -> Option<usize> {
        let mut seen = HashSet::new();
        let parts: Vec<usize> = self
            .linked_parts()
            .filter(|&part| {
                let is_picture = |it: &GuidePart| it.is_new && it.essence != "text/css";
                self.parts.get(part).is_some_and(is_picture) && seen.insert(part)
            })
            .collect();
        let first = [first_out_of_order(&parts), self.first_file_of_later_run()];
        // A linked file that a run adds after it has embedded pictures has a multipart of its own around the document.
        let after_pictures = || {
            let next = parts.iter().max()? + 1;
            let added = self.parts.get(next)?;
            (added.is_new && added.location.is_some()).then_some(next)
        };
        first.into_iter().flatten().min().or_else(after_pictures)
    }

    /// Returns the index of the first linked file that a later run added: one run adds these files in the order of their links.
    fn first_file_of_later_run(&self) -> Option<usize> {
        let mut files: HashMap<&str, usize> = HashMap::new();
        for (at, part) in self.parts.iter().enumerate() {
            let is_embedded = part.content_id.as_deref().and_then(digits_of).is_some();
            if let Some(location) = part
                .location
                .as_deref()
                .filter(|_| part.is_new && !is_embedded)
            {
                files.entry(location).or_insert(at);
            }
        }
        if files.len() < 2 {
            return None;
        }
        let mut seen = HashSet::new();
        let links = self.documents.iter().flat_map(|document| &document.links);
        let linked = links.filter_map(|link| {
            let url = uri(std::str::from_utf8(&link.value).ok()?);
            files.get(&*url).copied().filter(|at| seen.insert(*at))
        });
        first_out_of_order(&linked.collect::<Vec<_>>())
    }

    /// Returns whether several links lead to a new part with a URL. An earlier run can have added the part for one of these links,
    /// and a later run can have found it for another link.
    pub(in crate::engine) fn has_shared_parts(&self) -> bool {
        let mut seen = HashSet::new();
        self.linked_parts().any(|part| {
            let has_url = |it: &GuidePart| it.is_new && it.location.is_some();
            !seen.insert(part) && self.parts.get(part).is_some_and(has_url)
        })
    }
}

/// Returns the least of the indexes that are before a smaller one.
fn first_out_of_order(indexes: &[usize]) -> Option<usize> {
    let mut least = usize::MAX;
    let mut first = None;
    for &index in indexes.iter().rev() {
        if index > least {
            first = Some(first.map_or(index, |first: usize| first.min(index)));
        }
        least = least.min(index);
    }
    first
}
