//! Getting the content of all references of one round: in waves, each side by side, rivals one
//! after the other. Content that several references share is held once.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::new_part;
use super::obtain::{self, Answer, Obtained, Octets};
use super::{Barred, Session};
use crate::edit::Edit;
use crate::fetch::{Request, fetch_all};
use crate::mime::{self, PartId, TransferEncoding, Tree};
use crate::plan::{Item, Plan, Step};
use crate::report::{Reason, Refusal};

/// What is known so far of one round's items.
struct Gathering<'g> {
    current: &'g [u8],
    tree: &'g Tree,
    plan: &'g Plan<'g>,
    results: Vec<Option<Result<Obtained, Refusal>>>,
    item_of: HashMap<PartId, usize>,
    copies: HashMap<PartId, Result<Rc<Octets>, Refusal>>,
}

impl Gathering<'_> {
    fn is_settled(&self, index: usize) -> bool {
        matches!(self.results.get(index), None | Some(Some(_)))
    }

    fn settle(&mut self, index: usize, result: Result<Obtained, Refusal>) {
        if let Some(place) = self.results.get_mut(index) {
            *place = Some(result);
        }
    }

    /// The reference that an item's Content-ID names, if it names one.
    fn through(&self, index: usize) -> Option<usize> {
        match &self.plan.items.get(index)?.step {
            Step::Copy(part) => self.item_of.get(part).copied(),
            _ => None,
        }
    }
}

impl Session<'_> {
    /// One result per item; rivals behind the first success stay [`untried`].
    pub(super) fn obtain_all(
        &mut self,
        current: &[u8],
        tree: &Tree,
        plan: &Plan<'_>,
    ) -> Result<Vec<Result<Obtained, Refusal>>, Barred> {
        let numbered = plan.items.iter().enumerate();
        let mut gathering = Gathering {
            current,
            tree,
            plan,
            results: vec![None; plan.items.len()],
            item_of: numbered.map(|(at, item)| (item.body.part, at)).collect(),
            copies: HashMap::new(),
        };
        let in_group: BTreeSet<usize> = plan.rivals.iter().flatten().copied().collect();
        let mut wave: Vec<usize> = (0..plan.items.len())
            .filter(|index| !in_group.contains(index))
            .collect();
        let mut turns: Vec<std::slice::Iter<'_, usize>> =
            plan.rivals.iter().map(|members| members.iter()).collect();
        wave.extend(turns.iter_mut().filter_map(|turn| turn.next().copied()));
        while !wave.is_empty() {
            self.retrieve(plan, &wave);
            for &index in &wave {
                self.obtain(&mut gathering, index);
                // Once everything that asks is barred, the rest of the message goes on.
                if let Some(refusal) = self.budget.overdrawn().filter(|_| self.asks()) {
                    return Err(self.bar_retrievers(&refusal));
                }
                if in_group.contains(&index) {
                    self.try_on(&mut gathering, index);
                }
            }
            wave.clear();
            for (members, turn) in plan.rivals.iter().zip(&mut turns) {
                let won = members
                    .iter()
                    .any(|&index| matches!(gathering.results.get(index), Some(Some(Ok(_)))));
                if !won {
                    wave.extend(turn.next());
                }
            }
        }
        Ok(gathering
            .results
            .into_iter()
            .map(|result| result.unwrap_or_else(|| Err(untried())))
            .collect())
    }

    /// Retrieves, side by side, what these items need and nobody asked for yet.
    fn retrieve(&mut self, plan: &Plan<'_>, wave: &[usize]) {
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
        let answers = fetch_all(
            self.expander.world,
            &requests,
            self.policy().limits.in_flight,
            &self.budget,
        );
        for (request, answer) in requests.into_iter().zip(answers) {
            self.retrieved
                .insert((request.url, request.accept), answer.map(Answer::from));
        }
    }

    /// Settles one item, following Content-IDs through other external bodies: first to the end of
    /// the chain, then back. Chains may be as long as the message.
    fn obtain(&mut self, gathering: &mut Gathering<'_>, index: usize) {
        let mut chain = Vec::new();
        let mut entered = HashSet::new();
        let mut at = index;
        while !gathering.is_settled(at) {
            let Some(next) = gathering.through(at) else {
                let result = self.directly(gathering, at);
                self.admit(gathering, at, result);
                break;
            };
            if !entered.insert(at) {
                let refusal =
                    Refusal::lasting(Reason::ReferenceLoop, "its Content-ID leads back to itself");
                gathering.settle(at, Err(refusal));
                break;
            }
            chain.push(at);
            at = next;
        }
        while let Some(waiting) = chain.pop() {
            if !gathering.is_settled(waiting) {
                let result = followed(gathering, at);
                self.admit(gathering, waiting, result);
            }
            at = waiting;
        }
    }

    fn admit(
        &self,
        gathering: &mut Gathering<'_>,
        index: usize,
        result: Result<Obtained, Refusal>,
    ) {
        if let Some(item) = gathering.plan.items.get(index) {
            let admitted =
                result.and_then(|obtained| obtain::admit(obtained, &item.body, self.policy()));
            gathering.settle(index, admitted);
        }
    }

    /// The content of an item that does not go through another one.
    fn directly(
        &mut self,
        gathering: &mut Gathering<'_>,
        index: usize,
    ) -> Result<Obtained, Refusal> {
        let plan = gathering.plan;
        let Some(item) = plan.items.get(index) else {
            return Err(untried());
        };
        match &item.step {
            Step::Leave(refusal) => Err(refusal.clone()),
            Step::Decode => obtain::decode(&item.body, self.policy()),
            Step::Retrieve { url, accept } => {
                // A later rival may be needed before its turn.
                self.retrieve(plan, &[index]);
                self.retrieval(gathering.current, item, url, accept.as_ref())
            }
            Step::Copy(part) => {
                let (current, tree) = (gathering.current, gathering.tree);
                let octets = gathering
                    .copies
                    .entry(*part)
                    .or_insert_with(|| obtain::decoded(current, tree, *part))
                    .clone()?;
                Ok(obtain::copy(current, tree, *part, octets))
            }
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
        let answer = answer.as_ref().map_err(Clone::clone)?;
        obtain::take(&item.body, answer, encoding)
    }

    /// A rival has not won before it is known to fit: else the next one would never be tried, but
    /// would be when the program runs once more.
    fn try_on(&self, gathering: &mut Gathering<'_>, index: usize) {
        let Some(item) = gathering.plan.items.get(index) else {
            return;
        };
        let Some(Some(Ok(obtained))) = gathering.results.get(index) else {
            return;
        };
        let made = new_part::edits(
            gathering.current,
            gathering.tree,
            &item.body,
            obtained.clone(),
        );
        let limit = self.policy().limits.growth;
        let refusal = match made {
            Err(refusal) => refusal,
            Ok((group, _)) => {
                let growth = Edit::growth_of(&group);
                if growth <= limit {
                    return;
                }
                too_much_alone(growth, limit)
            }
        };
        gathering.settle(index, Err(refusal));
    }
}

/// What an item gets that goes through the settled item at `other`.
fn followed(gathering: &Gathering<'_>, other: usize) -> Result<Obtained, Refusal> {
    let number = gathering
        .plan
        .items
        .get(other)
        .map_or("", |item| item.number.as_str());
    match gathering.results.get(other) {
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
                root_detail(&refusal.detail)
            ),
            duration: refusal.duration,
        }),
        _ => Err(untried()),
    }
}

/// A chain of references names its end only.
fn root_detail(detail: &str) -> &str {
    match detail.split_once("was left: ") {
        Some((front, root)) if front.starts_with("part ") => root,
        _ => detail,
    }
}

/// The refusal of what is too large whatever else the message gains.
pub(super) fn too_much_alone(growth: u64, limit: u64) -> Refusal {
    Refusal::lasting(
        Reason::GrowthLimit,
        format!("it would add {growth} octets, --max-growth is {limit}"),
    )
}

/// The result of a rival that another one made unnecessary.
pub(super) fn untried() -> Refusal {
    Refusal::lasting(Reason::RivalExpanded, "it was not needed")
}
