//! Getting the content of the references of one entity. What several references share is got and held once.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use url::Url;

use super::needs::{Found, Needs, too_much};
use super::obtained::{self, OCTETS, Obtained};
use super::session::Session;
use super::source_field;
use crate::engine::external_body::{Form, Referent};
use crate::engine::plan::{Item, Plan, Step};
use crate::engine::policy::{Policy, Scheme};
use crate::engine::report::{Detail, Reason, Refusal};
use crate::engine::{Content, Need, Neighbour};
use crate::mime::{PartId, TransferEncoding, Tree};

pub(super) struct Contents<'g> {
    tree: &'g Tree<'g>,
    plan: &'g Plan<'g>,
    item_of: HashMap<PartId, usize>,
    targets: HashSet<PartId>,
    settled: HashMap<usize, Found<Obtained>>,
    copies: HashMap<PartId, Result<Obtained, Refusal>>,
}

impl<'g> Contents<'g> {
    pub(super) fn new(tree: &'g Tree<'g>, plan: &'g Plan<'g>) -> Self {
        let items = plan.references.iter().enumerate();
        // A text with notes is content itself.
        let items = items.filter(|(_, item)| !item.body.stands_in_text());
        let targets = plan.references.iter().filter_map(|item| match item.step {
            Step::Copy(part) => Some(part),
            _ => None,
        });
        Self {
            tree,
            plan,
            item_of: items.map(|(at, item)| (item.body.part, at)).collect(),
            targets: targets.collect(),
            settled: HashMap::new(),
            copies: HashMap::new(),
        }
    }

    /// Follows Content-IDs to the end of the chain, then goes back. Chains may be as long as the message.
    pub(super) fn of(&mut self, session: &mut Session<'_>, index: usize) -> Found<Obtained> {
        let plan = self.plan;
        let mut chain: Vec<(usize, &Item<'_>)> = Vec::new();
        let mut entered = HashSet::new();
        let mut at = index;
        let mut found = loop {
            if let Some(known) = self.settled.get(&at) {
                break known.clone();
            }
            let Some(item) = plan.references.get(at) else {
                break Ok(None);
            };
            let next = match &item.step {
                Step::Copy(part) => self.item_of.get(part).copied(),
                _ => None,
            };
            let Some(next) = next else {
                let found = self.directly(session, item);
                let found = admitted(session, item, found);
                let is_part = !item.body.stands_in_text();
                if is_part && self.targets.contains(&item.body.part) {
                    self.settled.insert(at, found.clone());
                }
                break found;
            };
            if !entered.insert(at) {
                let detail = "the part refers to a Content-ID that leads back to the part itself";
                break Err(Refusal::lasting(Reason::ReferenceLoop, detail));
            }
            chain.push((at, item));
            at = next;
        };
        let end = plan.references.get(at);
        let mut number = end.map_or("", |item| item.number.as_str());
        while let Some((waiting, item)) = chain.pop() {
            found = admitted(session, item, followed(number, found));
            self.settled.insert(waiting, found.clone());
            number = &item.number;
        }
        found
    }

    fn directly(&mut self, session: &mut Session<'_>, item: &Item<'_>) -> Found<Obtained> {
        match &item.step {
            Step::Leave(refusal) => Err(refusal.clone()),
            Step::Decode => obtained::decode(&item.body, session.policy()).map(Some),
            Step::Retrieve(need) => {
                session.retrieve(&[item]);
                let answered = session.answered(item, need);
                if session.is_stopped() {
                    return Ok(None);
                }
                let answered = answered.ok_or_else(|| session.ledger.enough_retrievals())?;
                let Some(answer) = answered? else {
                    return Ok(None);
                };
                // Thousands of parts may refer to one answer: each reads what names it anew.
                session.ledger.work(answer.names_length())?;
                let fields = &item.body.phantom.fields;
                let encoding = fields.value(self.tree.original, "Content-Transfer-Encoding");
                let encoding = TransferEncoding::of(encoding);
                // And each decodes it anew, which makes digests and line ends its own, too.
                if obtained::is_decoded(&item.body, encoding) {
                    session.ledger.work(answer.len() * 3)?;
                }
                let location = location(session.policy(), item, need, &answer);
                let source_field = provenance(session.policy(), item, need, (&answer, &location));
                let obtained = obtained::take(&item.body, &answer, encoding, &location)?;
                Ok(Some(Obtained {
                    source_field,
                    ..obtained
                }))
            }
            Step::Read { folder, name } => match session.context.beside {
                None => Ok(None),
                Some(_) => {
                    let file = Neighbour::Apple {
                        folder: folder.clone(),
                        name: name.clone(),
                    };
                    let answer = session.read(Need::Neighbour(file))?;
                    // Nothing but the mail says what a file is.
                    Ok(answer.map(|answer| Obtained::of(OCTETS, answer)))
                }
            },
            Step::Copy(part) => {
                let tree = self.tree;
                let ledger = &mut session.ledger;
                let copy = self.copies.entry(*part).or_insert_with(|| {
                    ledger.work(tree.part(*part).body.len())?;
                    let octets = obtained::decoded(tree, *part)?;
                    Ok(obtained::copy(tree, *part, octets))
                });
                let copy = copy.clone()?;
                // Each reference writes, encodes and folds what the fields say anew.
                session.ledger.work(tree.part(*part).header.len() * 8)?;
                Ok(Some(copy))
            }
        }
    }
}

/// What `--map` put in place of a URL may be a name of one's own network, and is nobody else's business.
fn location<'a>(
    policy: &Policy,
    item: &Item<'_>,
    need: &Need,
    answer: &'a Content,
) -> Cow<'a, str> {
    let own = item.shown_url.as_deref().unwrap_or_default();
    let is_mapped = matches!(policy.map(own), Cow::Owned(_));
    if !is_mapped || !answer.is_direct(policy, need.url().unwrap_or_default()) {
        return Cow::Borrowed(&answer.origin.url);
    }
    let Ok(mut own) = Url::parse(own) else {
        return Cow::Borrowed("");
    };
    own.set_fragment(None);
    // It is masked, not gone.
    let _ = own.set_password(None);
    Cow::Owned(own.into())
}

/// None if parts bear none. What embody detached comes back as it was: a hash proves that it is the sender's.
fn provenance(
    policy: &Policy,
    item: &Item<'_>,
    need: &Need,
    (answer, location): (&Content, &str),
) -> Option<Rc<[u8]>> {
    if !policy.provenance || item.body.note().is_some() {
        return None;
    }
    let shown = item.shown_url.as_deref()?;
    // Of a long one, a row has the start only.
    let named = match &item.body.target {
        Ok(Referent::Url(whole)) if whole.len() > shown.len() => whole,
        _ => shown,
    };
    // Of a file, only the mail's own name is everybody's.
    let has_server = Scheme::of_url(location).is_some_and(Scheme::has_server);
    let last = match has_server && !answer.is_direct(policy, need.url().unwrap_or_default()) {
        true => location,
        false => named,
    };
    source_field::of(answer, named, last).map(Rc::from)
}

fn admitted(session: &Session<'_>, item: &Item<'_>, found: Found<Obtained>) -> Found<Obtained> {
    let Some(obtained) = found? else {
        return Ok(None);
    };
    // What was stored is not yet what it was.
    if item.body.form == Form::Scrubbed {
        session.policy().judge_size(obtained.content.len() as u64)?;
        return Ok(Some(obtained));
    }
    obtained::admit(obtained, &item.body, session.policy(), session.context).map(Some)
}

fn followed(number: &str, found: Found<Obtained>) -> Found<Obtained> {
    let found = found.map_err(|refusal| Refusal {
        detail: Detail::from(format!(
            "the reference leads to part {number}, which was not changed: "
        ))
        .then(root_detail(&refusal.detail)),
        ..refusal
    })?;
    Ok(found.map(|obtained| Obtained {
        source_type: Some(obtained.essence.clone()),
        location: None,
        ..obtained
    }))
}

/// A chain of references names its end only.
fn root_detail(detail: &Detail) -> Detail {
    match detail.split_once("was not changed: ") {
        Some((front, root)) if front.starts_with("part ") => {
            detail.behind(detail.len() - root.len())
        }
        _ => detail.clone(),
    }
}

impl Session<'_> {
    /// Returns the content of a file next to the mailbox. It counts as no retrieval: no server is asked, and the mail cannot
    /// name it twice.
    pub(super) fn read(&mut self, file: Need) -> Found<Content> {
        match (self.answers.get(&file), &self.last) {
            (Some(found), _) => found.clone(),
            (None, Some(refusal)) => Err(refusal.clone()),
            (None, None) => {
                self.lack(vec![file]);
                Ok(None)
            }
        }
    }

    /// Looks for the files of these items next to the mailbox. If one is missing, the round is stopped.
    pub(super) fn read_beside(&mut self, items: &[&Item<'_>]) {
        if self.context.beside.is_none() || self.last.is_some() {
            return;
        }
        let files = items.iter().filter_map(|item| match &item.step {
            Step::Read { folder, name } => Some(Need::Neighbour(Neighbour::Apple {
                folder: folder.clone(),
                name: name.clone(),
            })),
            _ => None,
        });
        let missing = files.filter(|file| self.answers.get(file).is_none());
        let missing: Vec<Need> = missing.collect();
        self.lack(missing);
    }

    /// Stops the round, if `missing` has any need in it and no need before stopped the round already.
    pub(super) fn lack(&mut self, missing: Vec<Need>) {
        if !missing.is_empty() {
            let room = self.ledger.room_for_bodies();
            self.needs.get_or_insert(Needs {
                batch: missing,
                room,
            });
        }
    }

    pub(super) fn retrieve(&mut self, items: &[&Item<'_>]) {
        self.ask(items.iter().filter_map(|item| match &item.step {
            Step::Retrieve(need) => Some(need.clone()),
            _ => None,
        }));
    }

    /// Looks up the answers for a batch of needs, each once in a round. If one is missing, the round is stopped.
    ///
    /// Needs beyond the limit on retrievals have no answer afterwards.
    pub(super) fn ask(&mut self, wanted: impl IntoIterator<Item = Need>) {
        let mut batch: Vec<Need> = Vec::new();
        for need in wanted {
            if self.retrieved.contains_key(&need) {
                continue;
            }
            // A need beyond the limit is not remembered: there may be ten thousand of them.
            if self.ledger.retrieve().is_ok() {
                // A program may have an answer that it was not asked for.
                if !self.is_left_open(&need) || self.answers.get(&need).is_some() {
                    batch.push(need.clone());
                }
                self.retrieved.insert(need, Ok(None));
            }
        }
        let room = self.ledger.room_for_bodies();
        if self.last.is_none() {
            let missing = batch.iter();
            let missing = missing.filter(|need| self.answers.get(need).is_none());
            let missing: Vec<Need> = missing.cloned().collect();
            if !missing.is_empty() {
                self.lack(missing);
                return;
            }
        }
        let mut left = Some(room);
        for need in batch {
            let found = match (self.answers.get(&need), &self.last) {
                (Some(found), _) => found.clone(),
                (None, Some(refusal)) => Err(refusal.clone()),
                (None, None) => continue,
            };
            let octets = match &found {
                Ok(Some(answer)) => answer.len() as u64,
                _ => 0,
            };
            left = left.and_then(|left| left.checked_sub(octets));
            let found = match left {
                Some(_) => found,
                None => Err(too_much(room)),
            };
            if let Ok(Some(answer)) = &found {
                self.ledger.hold(answer.len());
            }
            self.retrieved.insert(need, found);
        }
    }
}
