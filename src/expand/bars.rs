//! The bounds of a whole message: circles, retrievals, growth.
//!
//! What stands in the message itself is left at once. What came in with content bars the reference
//! that brought it, and the message is tried again without. Where memory is at stake, nothing of
//! the kind is followed at all, whichever reference came first.

use std::collections::BTreeSet;

use super::new_part::Inside;
use super::obtain::Obtained;
use super::region::Region;
use super::{Barred, Need, Session};
use crate::edit::{Edit, Group};
use crate::link::url;
use crate::plan::{Plan, Step};
use crate::report::{Reason, Refusal};

impl Session<'_> {
    /// Keeps in mind which references of the original message this round follows.
    pub(super) fn remember_followed(&mut self, plan: &Plan<'_>, owners: &[Option<&Region>]) {
        for (item, owner) in plan.items.iter().zip(owners) {
            let need = match item.step {
                Step::Leave(_) => continue,
                Step::Decode | Step::Copy(_) => Need::Message,
                Step::Retrieve { .. } => Need::World,
            };
            let number = owner.map_or(&item.number, |region| &region.owner);
            let known = self.followed.entry(number.clone()).or_insert(need);
            *known = need.max(*known);
        }
    }

    /// All references that were followed and need this much, or more.
    pub(super) fn bar_followed(&self, least: Need, refusal: &Refusal) -> Barred {
        self.followed
            .iter()
            .filter(|&(_, &need)| need >= least)
            .map(|(number, _)| (number.clone(), refusal.clone()))
            .collect()
    }

    /// A URL that leads to content that refers to the same URL again: the reference of the
    /// original message where the circle is entered is left.
    pub(super) fn bar_circles(
        &self,
        plan: &Plan<'_>,
        owners: &[Option<&Region>],
    ) -> Result<(), Barred> {
        let mut barred = Barred::new();
        for (item, owner) in plan.items.iter().zip(owners) {
            if let (Step::Retrieve { url, .. }, Some(region)) = (&item.step, owner)
                && region.trail.iter().any(|before| before == url)
            {
                let detail = format!("{} leads back to itself", url::masked(url));
                barred.insert(
                    region.owner.clone(),
                    Refusal::lasting(Reason::ReferenceLoop, detail),
                );
            }
        }
        if barred.is_empty() {
            Ok(())
        } else {
            Err(barred)
        }
    }

    /// More different retrievals than allowed: none is made.
    pub(super) fn bar_fetches(
        &self,
        plan: &mut Plan<'_>,
        owners: &[Option<&Region>],
    ) -> Result<(), Barred> {
        let wanted: BTreeSet<(&str, Option<&str>)> = plan
            .items
            .iter()
            .filter_map(|item| match &item.step {
                Step::Retrieve { url, accept } => Some((url.as_str(), accept.as_deref())),
                _ => None,
            })
            .chain(
                self.retrieved
                    .keys()
                    .map(|(url, accept)| (url.as_str(), accept.as_deref())),
            )
            .collect();
        let limit = self.policy().limits.fetches as usize;
        if wanted.len() <= limit {
            return Ok(());
        }
        let refusal = Refusal::lasting(
            Reason::TooManyFetches,
            format!(
                "the message needs {} retrievals, --max-fetches is {limit}",
                wanted.len()
            ),
        );
        drop(wanted);
        let mut barred = Barred::new();
        for (item, owner) in plan.items.iter_mut().zip(owners) {
            if matches!(item.step, Step::Retrieve { .. }) {
                match owner {
                    Some(region) => {
                        barred.insert(region.owner.clone(), refusal.clone());
                    }
                    None => item.step = Step::Leave(refusal.clone()),
                }
            }
        }
        if barred.is_empty() {
            Ok(())
        } else {
            Err(barred)
        }
    }

    /// More growth than allowed: nothing that makes the message grow is done.
    pub(super) fn bar_growth(
        &self,
        groups: &mut [Option<(Group, Inside)>],
        results: &mut [Result<Obtained, Refusal>],
        owners: &[Option<&Region>],
        before: u64,
    ) -> Result<u64, Barred> {
        let limit = self.policy().limits.growth;
        let growths: Vec<u64> = groups
            .iter()
            .map(|group| {
                let gained = |(group, _): &(Group, Inside)| {
                    group.iter().map(Edit::growth).sum::<i64>().max(0) as u64
                };
                group.as_ref().map_or(0, gained)
            })
            .collect();
        // What is too large alone is left alone; the others share the limit.
        let total: u64 = growths.iter().filter(|&&growth| growth <= limit).sum();
        let mut barred = Barred::new();
        let mut granted = 0;
        for (index, &growth) in growths.iter().enumerate() {
            if growth <= limit && before + total <= limit {
                granted += growth;
                continue;
            }
            if growth == 0 {
                continue;
            }
            let refusal = Refusal::lasting(
                Reason::GrowthLimit,
                if growth > limit {
                    format!("it would add {growth} octets, --max-growth is {limit}")
                } else {
                    format!(
                        "the message would gain {} octets, --max-growth is {limit}",
                        before + total
                    )
                },
            );
            match owners.get(index).copied().flatten() {
                Some(region) => {
                    barred.insert(region.owner.clone(), refusal);
                }
                None => {
                    if let (Some(group), Some(result)) =
                        (groups.get_mut(index), results.get_mut(index))
                    {
                        *group = None;
                        *result = Err(refusal);
                    }
                }
            }
        }
        if barred.is_empty() {
            Ok(granted)
        } else {
            Err(barred)
        }
    }
}
