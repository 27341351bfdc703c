//! Getting the content of all references of one round: in waves, each side by side, rivals one
//! after the other.
//!
//! Many references may mean one body. What they hold together is bounded here, before it is
//! encoded, by what the message may gain.

use std::collections::BTreeSet;

use super::obtain::{self, Obtained};
use super::{Barred, Need, Session};
use crate::external_body::ESSENCE;
use crate::fetch::{Request, fetch_all};
use crate::mime::{self, PartId, TransferEncoding, Tree};
use crate::plan::{Item, Plan, Step};
use crate::report::{Reason, Refusal};

impl Session<'_> {
    /// One result per item; rivals behind the first success stay [`untried`]. What has to be barred,
    /// if the items together hold, or retrieve, more octets than the message may gain.
    pub(super) fn obtain_all(
        &mut self,
        current: &[u8],
        tree: &Tree,
        plan: &Plan<'_>,
    ) -> Result<Vec<Result<Obtained, Refusal>>, Barred> {
        self.held = 0;
        let mut results: Vec<Option<Result<Obtained, Refusal>>> = vec![None; plan.items.len()];
        let in_group: BTreeSet<usize> = plan.rivals.iter().flatten().copied().collect();
        let mut wave: Vec<usize> = (0..plan.items.len())
            .filter(|index| !in_group.contains(index))
            .collect();
        let mut turns: Vec<std::slice::Iter<'_, usize>> =
            plan.rivals.iter().map(|members| members.iter()).collect();
        wave.extend(turns.iter_mut().filter_map(|turn| turn.next().copied()));
        while !wave.is_empty() {
            self.retrieve_wave(plan, &wave)?;
            for &index in &wave {
                self.obtain_one(current, tree, plan, index, &mut results, &mut Vec::new());
                if let Some(refusal) = self.holds_too_much(current) {
                    return Err(self.bar_followed(Need::Message, &refusal));
                }
            }
            wave.clear();
            for (members, turn) in plan.rivals.iter().zip(&mut turns) {
                let won = members
                    .iter()
                    .any(|&index| matches!(results.get(index), Some(Some(Ok(_)))));
                if !won {
                    wave.extend(turn.next());
                }
            }
        }
        Ok(results
            .into_iter()
            .map(|result| result.unwrap_or_else(|| Err(untried())))
            .collect())
    }

    /// More than can be put in, whatever it replaces.
    fn holds_too_much(&self, current: &[u8]) -> Option<Refusal> {
        let limit = self.policy().limits.growth;
        (self.held > limit.saturating_add(current.len() as u64)).then(|| {
            Refusal::lasting(
                Reason::GrowthLimit,
                format!("the message would gain more octets than --max-growth, which is {limit}"),
            )
        })
    }

    /// Retrieves, side by side, what a wave needs and nobody asked for yet.
    fn retrieve_wave(&mut self, plan: &Plan<'_>, wave: &[usize]) -> Result<(), Barred> {
        let mut seen = BTreeSet::new();
        let requests: Vec<Request> = wave
            .iter()
            .filter_map(|&index| match &plan.items.get(index)?.step {
                Step::Retrieve { url, accept } => {
                    let key = (url.clone(), accept.clone());
                    (!self.retrieved.contains_key(&key) && seen.insert(key)).then(|| Request {
                        url: url.clone(),
                        accept: accept.clone(),
                        deadline: self.deadline,
                    })
                }
                _ => None,
            })
            .collect();
        if requests.is_empty() {
            return Ok(());
        }
        let answers = fetch_all(
            self.expander.world,
            &requests,
            self.policy().limits.in_flight,
            &self.budget,
        );
        if let Some(refusal) = self.budget.overdrawn() {
            // It stays so: nothing is retrieved for this message any more.
            self.retrieved.clear();
            return Err(self.bar_followed(Need::World, &refusal));
        }
        for (request, answer) in requests.into_iter().zip(answers) {
            self.retrieved.insert((request.url, request.accept), answer);
        }
        Ok(())
    }

    /// Obtains the content of one item, following Content-IDs through other external bodies.
    fn obtain_one(
        &mut self,
        current: &[u8],
        tree: &Tree,
        plan: &Plan<'_>,
        index: usize,
        results: &mut [Option<Result<Obtained, Refusal>>],
        visiting: &mut Vec<usize>,
    ) {
        let Some(item) = plan.items.get(index) else {
            return;
        };
        if !matches!(results.get(index), Some(None)) {
            return;
        }
        let policy = self.policy();
        let result = match &item.step {
            Step::Leave(refusal) => Err(refusal.clone()),
            _ if self.holds_too_much(current).is_some() => Err(untried()),
            Step::Decode => obtain::decode(&item.body, policy),
            Step::Retrieve { url, accept } => self.retrieval(current, item, url, accept.as_ref()),
            Step::Copy(part) if tree.part(*part).essence == ESSENCE => {
                self.through(current, tree, plan, (index, *part), results, visiting)
            }
            Step::Copy(part) => obtain::copy(current, tree, *part),
        };
        let policy = self.policy();
        let result = result.and_then(|obtained| obtain::admit(obtained, &item.body, policy));
        if let Ok(obtained) = &result {
            // Line ends of text may become shorter, nothing else does.
            let is_text = obtained.essence.starts_with("text/");
            self.held += obtained.octets.len() as u64 / if is_text { 2 } else { 1 };
        }
        if let Some(place) = results.get_mut(index) {
            *place = Some(result);
        }
    }

    fn retrieval(
        &self,
        current: &[u8],
        item: &Item<'_>,
        url: &str,
        accept: Option<&String>,
    ) -> Result<Obtained, Refusal> {
        let key = (url.to_owned(), accept.cloned());
        let Some(answer) = self.retrieved.get(&key) else {
            return Err(untried());
        };
        let encoding = TransferEncoding::of(
            mime::header::first(
                current,
                &item.body.phantom.fields,
                "Content-Transfer-Encoding",
            )
            .map(|field| field.value.of(current)),
        );
        obtain::take(&item.body, answer.clone()?, encoding)
    }

    /// A Content-ID that names another external body stands for that one's content.
    fn through(
        &mut self,
        current: &[u8],
        tree: &Tree,
        plan: &Plan<'_>,
        (index, part): (usize, PartId),
        results: &mut [Option<Result<Obtained, Refusal>>],
        visiting: &mut Vec<usize>,
    ) -> Result<Obtained, Refusal> {
        let number = tree.number(part);
        let Some(other) = plan.items.iter().position(|item| item.body.part == part) else {
            return Err(untried());
        };
        visiting.push(index);
        if visiting.contains(&other) {
            return Err(Refusal::lasting(
                Reason::ReferenceLoop,
                format!("part {number} refers back to this one"),
            ));
        }
        if visiting.len() > self.policy().limits.depth {
            return Err(Refusal::lasting(
                Reason::TooDeep,
                "the chain of Content-IDs is longer than --max-depth",
            ));
        }
        self.obtain_one(current, tree, plan, other, results, visiting);
        match results.get(other) {
            Some(Some(Ok(obtained))) => {
                let mut obtained = obtained.clone();
                obtained.source_type = Some(obtained.essence.clone());
                obtained.location = None;
                Ok(obtained)
            }
            Some(Some(Err(refusal))) => Err(Refusal {
                reason: refusal.reason,
                detail: format!(
                    "part {number}, which it refers to, was left: {}",
                    refusal.detail
                ),
                duration: refusal.duration,
            }),
            _ => Err(untried()),
        }
    }
}

/// The result of a rival that another one made unnecessary.
pub(super) fn untried() -> Refusal {
    Refusal::lasting(Reason::RivalExpanded, "it was not needed")
}
