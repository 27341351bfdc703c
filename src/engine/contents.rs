//! The content of the references in one message or part. If a reference points to another part, which can be a reference too,
//! this chain is followed. Content that several references share is computed and stored once.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::needs::Found;
use super::obtained;
use super::session::Session;
use super::source_field;
use crate::engine::content_source::{ContentSource, OCTETS};
use crate::engine::external_body::Referent;
use crate::engine::external_body::reference::Insertion;
use crate::engine::plan::{Plan, PlanItem, PlanStep};
use crate::engine::policy::{Policy, Scheme};
use crate::engine::report::{Detail, Reason, Refusal, Retry};
use crate::engine::{Content, Need, Neighbour};
use crate::link::server_url::ServerUrl;
use crate::link::url::masked;
use crate::link::wrapper::OriginalUrl;
use crate::mime::{MessageTree, PartId, TransferEncoding};

pub(super) struct KnownContents<'t> {
    tree: &'t MessageTree<'t>,
    plan: Rc<Plan<'t>>,
    item_of: HashMap<PartId, usize>,
    targets: HashSet<PartId>,
    /// Cache of resolved references: content of references that point to other parts, and of the references in these
    /// parts. The key is the index of the reference in the plan.
    settled: HashMap<usize, Found<ContentSource>>,
    /// Content of parts to which references point.
    copies: HashMap<PartId, Result<ContentSource, Refusal>>,
}

impl<'t> KnownContents<'t> {
    pub(super) fn new(tree: &'t MessageTree<'t>, plan: Rc<Plan<'t>>) -> Self {
        // Maps each part to the reference that it is. A text with notes (lines in place of removed attachments) is left
        // out: it is not a reference itself, so another reference to this part means the text and not the attachment of
        // a note.
        let items = plan
            .references
            .iter()
            .enumerate()
            .filter(|(_, item)| !item.body.stands_in_text());
        let targets = plan.references.iter().filter_map(|item| match item.step {
            PlanStep::Copy(part) => Some(part),
            _ => None,
        });
        Self {
            tree,
            item_of: items.map(|(at, item)| (item.body.part, at)).collect(),
            targets: targets.collect(),
            settled: HashMap::new(),
            copies: HashMap::new(),
            plan,
        }
    }

    /// Returns the content of a reference. It may refer to a part that is itself a reference, and so on. Such a chain can be
    /// as long as the message, so it is followed in a loop and not by recursion.
    pub(super) fn of(&mut self, session: &mut Session<'_>, index: usize) -> Found<ContentSource> {
        let plan = Rc::clone(&self.plan);
        let mut chain: Vec<(usize, &PlanItem<'_>)> = Vec::new();
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
                PlanStep::Copy(part) => self.item_of.get(part).copied(),
                _ => None,
            };
            let Some(next) = next else {
                let direct = self.directly(session, item);
                let found = admitted(session, item, direct);
                let is_part = !item.body.stands_in_text();
                if is_part && self.targets.contains(&item.body.part) {
                    self.settled.entry(at).or_insert_with(|| found.clone());
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
            self.settled.entry(waiting).or_insert_with(|| found.clone());
            number = &item.number;
        }
        found
    }

    fn directly(&mut self, session: &mut Session<'_>, item: &PlanItem<'_>) -> Found<ContentSource> {
        session.find_copies(&[item]);
        if session.is_stopped() {
            return Ok(None);
        }
        if let Some(Ok(content)) = session.copy_of(item) {
            session.ledger.work(content.names_length())?;
            return Ok(Some(ContentSource::of_copy(content)));
        }
        match &item.step {
            PlanStep::Leave(refusal) => Err(refusal.clone()),
            PlanStep::Decode => obtained::decode(&item.body, session.policy()).map(Some),
            PlanStep::Retrieve(need) => {
                session.retrieve(&[item]);
                let answered = session.answered(item, need);
                if session.is_stopped() {
                    return Ok(None);
                }
                let answered = answered
                    .ok_or_else(|| session.ledger.enough_retrievals())?
                    .map_err(|refusal| obtained::or_expired(refusal, &item.body, session.context));
                let taken = answered.and_then(|answer| self.taken(session, item, need, answer));
                let Some(original) = &item.original else {
                    return taken;
                };
                if original.0 == *need {
                    return Ok(taken?.map(|obtained| of_wrapped(obtained, &original.1)));
                }
                // A link-wrapping server can return a page of its own instead of the content. If the response does not
                // fit the description in the mail, the unwrapped original is requested.
                match admitted(session, item, taken.clone()) {
                    Err(refusal) if !refusal.reason.is_bound() => {
                        self.of_original(session, item, original, refusal)
                    }
                    _ => taken,
                }
            }
            PlanStep::Read { folder, name } => match session.context.beside {
                None => Ok(None),
                Some(_) => {
                    let file = Neighbour::OfMessage {
                        folder: folder.clone(),
                        name: name.clone(),
                    };
                    let answer = session.read(Need::Neighbour(file))?;
                    // A file has no declared media type, so the type for unknown bytes is used. The real type is
                    // declared only in the mail.
                    Ok(answer.map(|answer| ContentSource::of(OCTETS, answer)))
                }
            },
            PlanStep::Copy(part) => {
                let tree = self.tree;
                let copy = match self.copies.get(part) {
                    Some(known) => known.clone(),
                    None => {
                        let work = session.ledger.work(tree.part(*part).body.len());
                        let octets = work.and_then(|()| obtained::decoded(tree, *part));
                        let copy = octets.map(|octets| obtained::copy(tree, *part, octets));
                        self.copies.insert(*part, copy.clone());
                        copy
                    }
                }?;
                // Each reference writes, encodes and folds the header fields of the part again, so this counts as work,
                // which is limited.
                session.ledger.work(tree.part(*part).header.len() * 8)?;
                Ok(Some(copy))
            }
        }
    }

    /// Returns the content of the original of a wrapped URL. `refusal` is the reason why the wrapped URL returned no content.
    fn of_original(
        &self,
        session: &mut Session<'_>,
        item: &PlanItem<'_>,
        (need, unwrapped): &(Need, OriginalUrl),
        refusal: Refusal,
    ) -> Found<ContentSource> {
        session.ask([need.clone()]);
        if session.is_stopped() {
            return Ok(None);
        }
        let answered = match session.retrieved.get(need).cloned() {
            Some(answered) => answered,
            None => Err(session.ledger.enough_retrievals()),
        };
        let taken = answered.and_then(|answer| self.taken(session, item, need, answer));
        let url = masked(&unwrapped.original);
        match taken {
            Ok(obtained) => Ok(obtained.map(|obtained| of_wrapped(obtained, unwrapped))),
            Err(other) => Err(Refusal {
                retry: if other.retry == Retry::Later {
                    Retry::Later
                } else {
                    refusal.retry
                },
                detail: refusal
                    .detail
                    .then(format!("; the original URL {url} failed too: "))
                    .then(other.detail),
                ..refusal
            }),
        }
    }

    /// Turns the response to a request into the content of the reference.
    fn taken(
        &self,
        session: &mut Session<'_>,
        item: &PlanItem<'_>,
        need: &Need,
        answer: Option<Content>,
    ) -> Found<ContentSource> {
        let Some(answer) = answer else {
            return Ok(None);
        };
        // Thousands of parts can share one response, and each part reads its URL and media type again, so reading them
        // counts as work.
        session.ledger.work(answer.names_length())?;
        let fields = &item.body.phantom.fields;
        let encoding =
            TransferEncoding::of(fields.value(self.tree.original, "Content-Transfer-Encoding"));
        // Each reference to the response decodes the content again, and computes its digests and line endings
        // again, so this counts as work, which is limited.
        if obtained::is_decoded(&item.body, encoding) {
            session.ledger.work(answer.len() * 3)?;
        }
        let location = location(session.policy(), item, need, &answer);
        let source_field = provenance(session.policy(), item, need, (&answer, &location));
        let obtained = obtained::take(&item.body, &answer, encoding, &location)?;
        Ok(Some(ContentSource {
            source_field,
            ..obtained
        }))
    }
}

/// Adds the remark that the content is from the original of a wrapped URL.
fn of_wrapped(mut obtained: ContentSource, unwrapped: &OriginalUrl) -> ContentSource {
    let (url, service) = (masked(&unwrapped.original), unwrapped.service);
    let note =
        format!("the content is from {url}, the original of the link that {service} wrapped");
    obtained.notes.push(note);
    obtained
}

/// Returns the URL under which the message records the content. If `--map` rewrote the URL of the request, this is the
/// URL before the rewriting: the rewritten one can be private, such as a host name of the local network.
fn location<'a>(
    policy: &Policy,
    item: &PlanItem<'_>,
    need: &Need,
    answer: &'a Content,
) -> Cow<'a, str> {
    let own = match &item.original {
        Some((original, unwrapped)) if original == need => &unwrapped.original,
        _ => item.shown_url.as_deref().unwrap_or_default(),
    };
    let is_mapped = matches!(policy.map(own), Cow::Owned(_));
    if !is_mapped || !answer.is_direct(policy, need.url().unwrap_or_default()) {
        return Cow::Borrowed(&answer.origin.url);
    }
    let Ok(own) = ServerUrl::parse(own) else {
        return Cow::Borrowed("");
    };
    // `own` contains a mask instead of the password. A URL with the mask would be wrong, so the mask is removed.
    Cow::Owned(own.without_fragment().without_password().into())
}

/// Returns the X-Embody-Source field, or `None` if parts get no such field. A detached attachment gets none, because its hash
/// proves that the content is the original one.
fn provenance(
    policy: &Policy,
    item: &PlanItem<'_>,
    need: &Need,
    (answer, location): (&Content, &str),
) -> Option<Rc<[u8]>> {
    if !policy.provenance || item.body.note().is_some() {
        return None;
    }
    let shown = item.shown_url.as_deref()?;
    // The report shortens long URLs, so the complete URL is taken from the reference.
    let named = match &item.body.target {
        Ok(Referent::Url(whole)) if whole.len() > shown.len() => whole,
        _ => shown,
    };
    // The path of a local file is private, so the part gets only the file name that the mail already contains.
    let has_server = Scheme::of_url(location).is_some_and(Scheme::has_server);
    let is_original = item
        .original
        .as_ref()
        .is_some_and(|(original, _)| original == need);
    let is_direct = || answer.is_direct(policy, need.url().unwrap_or_default());
    let last = if has_server && (is_original || !is_direct()) {
        location
    } else {
        named
    };
    source_field::of(answer, named, last).map(Rc::from)
}

fn admitted(
    session: &Session<'_>,
    item: &PlanItem<'_>,
    found: Found<ContentSource>,
) -> Found<ContentSource> {
    let Some(obtained) = found? else {
        return Ok(None);
    };
    // The content for a note in a text is converted to the original attachment later. Its media type is known and checked
    // only then, so only its size is checked here.
    if matches!(item.body.facts.insertion, Insertion::Note(_)) {
        session.policy().judge_size(obtained.content.len() as u64)?;
        return Ok(Some(obtained));
    }
    obtained::admit(obtained, &item.body, session.policy(), session.context).map(Some)
}

/// Start of the reason for a reference whose target part was not changed: "the reference leads to part 2, which was not
/// changed: ".
const BEFORE_NUMBER: &str = "the reference leads to part ";
const AFTER_NUMBER: &str = ", which was not changed: ";

fn followed(number: &str, found: Found<ContentSource>) -> Found<ContentSource> {
    let found = found.map_err(|refusal| Refusal {
        detail: Detail::from(format!("{BEFORE_NUMBER}{number}{AFTER_NUMBER}"))
            .then(root_detail(&refusal.detail)),
        ..refusal
    })?;
    Ok(found.map(|obtained| ContentSource {
        source_type: Some(obtained.essence.clone()),
        location: None,
        ..obtained
    }))
}

/// Removes the prefix that [`followed`] adds. In a chain of references, the prefix would be added once for each
/// reference, although only the last reason matters, and the time would grow quadratically with the length of the
/// chain.
fn root_detail(detail: &Detail) -> Detail {
    detail
        .strip_prefix(BEFORE_NUMBER)
        .and_then(|rest| rest.split_once(AFTER_NUMBER))
        .map_or_else(
            || detail.clone(),
            |(_, root)| detail.behind(detail.len() - root.len()),
        )
}
