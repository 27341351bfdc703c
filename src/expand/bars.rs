//! The bounds of a whole message: circles, retrievals, growth.
//!
//! What stands in the message itself is left at once. What came in with content bars the reference
//! that brought it, and the message is tried again without. Where references exceed a bound only
//! together, all that take part are barred: if some were let in first, the others would fit when
//! the program runs once more.

use std::collections::BTreeSet;

use super::gather::too_much_alone;
use super::region::Region;
use super::round::Made;
use super::{Barred, Session};
use crate::link::url;
use crate::plan::{Item, Plan, Step};
use crate::report::{Reason, Refusal};

impl Session<'_> {
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
        &mut self,
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
        let wanted = wanted.len();
        let asking = |item: &Item<'_>| matches!(item.step, Step::Retrieve { .. });
        if wanted <= limit {
            let in_front = plan.items.iter().zip(owners);
            let asking = in_front.filter(|(item, _)| asking(item));
            let numbers: Vec<String> = asking.map(|(item, owner)| number_of(item, owner)).collect();
            self.retrievers.extend(numbers);
            return Ok(());
        }
        let refusal = Refusal::lasting(
            Reason::TooManyFetches,
            format!("the message needs {wanted} retrievals, --max-fetches is {limit}"),
        );
        let mut barred: Barred = std::mem::take(&mut self.retrievers)
            .into_iter()
            .map(|number| (number, refusal.clone()))
            .collect();
        for (item, owner) in plan.items.iter_mut().zip(owners) {
            if asking(item) {
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

    /// Whether anything of the message is to be retrieved.
    pub(super) fn asks(&self) -> bool {
        !self.retrievers.is_empty()
    }

    /// More octets retrieved than the message may gain: nothing that is retrieved is put in,
    /// whichever came first.
    pub(super) fn bar_retrievers(&mut self, refusal: &Refusal) -> Barred {
        self.retrieved.clear();
        std::mem::take(&mut self.retrievers)
            .into_iter()
            .map(|number| (number, refusal.clone()))
            .collect()
    }

    /// More growth than allowed: nothing that makes the message grow is done.
    pub(super) fn bar_growth(
        &mut self,
        plan: &Plan<'_>,
        made: &mut Made,
        owners: &[Option<&Region>],
        before: u64,
    ) -> Result<u64, Barred> {
        let limit = self.policy().limits.growth;
        // What is too large alone is left alone; the others share the limit.
        let together: u64 = made.growths.iter().filter(|&&growth| growth <= limit).sum();
        let fits = before.saturating_add(together) <= limit;
        let mut barred = Barred::new();
        let mut granted = Vec::new();
        let items = plan.items.iter().zip(owners).zip(&made.growths);
        for (index, ((item, owner), &growth)) in items.enumerate() {
            if growth == 0 {
                continue;
            }
            if growth <= limit && fits {
                granted.push(number_of(item, owner));
                continue;
            }
            let refusal = if growth > limit {
                too_much_alone(growth, limit)
            } else {
                too_much_together(before.saturating_add(together), limit)
            };
            match owner {
                Some(region) => {
                    barred.insert(region.owner.clone(), refusal);
                }
                None => {
                    if let Some(group) = made.groups.get_mut(index) {
                        *group = None;
                    }
                    if let Some(result) = made.results.get_mut(index) {
                        *result = Err(refusal);
                    }
                }
            }
        }
        if !fits {
            let refusal = too_much_together(before.saturating_add(together), limit);
            let earlier = std::mem::take(&mut self.growers).into_iter();
            barred.extend(earlier.map(|number| (number, refusal.clone())));
        }
        if !barred.is_empty() {
            return Err(barred);
        }
        self.growers.extend(granted);
        Ok(if fits { together } else { 0 })
    }
}

/// The reference of the original message that an item stands for.
fn number_of(item: &Item<'_>, owner: &Option<&Region>) -> String {
    owner.map_or_else(|| item.number.clone(), |region| region.owner.clone())
}

fn too_much_together(growth: u64, limit: u64) -> Refusal {
    Refusal::lasting(
        Reason::GrowthLimit,
        format!("the message would gain {growth} octets, --max-growth is {limit}"),
    )
}
