//! Plans what happens to every reference, and gives the reason for references that stay unchanged.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use super::bases::Bases;
use super::content_id::ContentIds;
use super::{Plan, PlanItem, PlanStep, shown_url};
use crate::engine::Need;
use crate::engine::external_body::file_names::{file_name, short_name};
use crate::engine::external_body::{Claim, ESSENCE, ExternalBody, ReferenceShape, Referent};
use crate::engine::forms::references;
use crate::engine::forms::references::TABLE;
use crate::engine::policy::{Policy, ReferenceParse, Scheme, Target};
use crate::engine::protection::protection;
use crate::engine::report::{Detail, Kind, Reason, Refusal, Setting};
use crate::link::base::Base;
use crate::link::url;
use crate::link::wrapper::{OriginalUrl, unwrapped_link};
use crate::mime::header::SectionEnd;
use crate::mime::{Limit, MessageTree, PartId, PartKind};

const SHOWN_DATA: usize = 48;

impl<'a> Plan<'a> {
    /// Plans the references of a message, or of content to be inserted into one. `reading` selects the forms of references.
    /// `around` is the base at the place of insertion. `room` limits the total length of the URLs that a base makes absolute,
    /// in bytes.
    pub(crate) fn of_references(
        tree: &MessageTree<'a>,
        policy: &Policy,
        reading: &ReferenceParse,
        around: Option<Rc<Base>>,
        room: usize,
    ) -> Self {
        let read = |part| references::read(tree, part, reading);
        let mut bodies: Vec<ExternalBody<'a>> = tree.ids().filter_map(read).collect();
        let is_followed = |body: &&ExternalBody<'_>| {
            let form = body.follow();
            form.is_none_or(|form| policy.follow.contains(form))
        };
        let followed = bodies.iter().filter(is_followed);
        let references: HashSet<PartId> = followed.map(|body| body.part).collect();
        // The remaining references are places inside texts and documents, such as notes and links. Unlike the
        // references above, their parts have content of their own.
        for form in TABLE {
            bodies.extend(form.in_texts(tree, reading, &references));
        }
        bodies.sort_by_key(|body| body.part);
        let mut planner = ReferencePlanner {
            room,
            bases: Bases::within(around),
            tree,
            policy,
            content_ids: ContentIds::read(tree, |part| references.contains(&part)),
        };
        let items = bodies.into_iter().map(|body| planner.item(body));
        let references: Vec<PlanItem<'a>> = items.collect();
        Self {
            rivals: rivals(tree, &references),
            references,
            held: room - planner.room,
        }
    }
}

struct ReferencePlanner<'p> {
    bases: Bases,
    tree: &'p MessageTree<'p>,
    policy: &'p Policy,
    content_ids: ContentIds,
    /// Remaining total length in bytes for absolute URLs. Ten thousand relative references can share one long base URL.
    room: usize,
}

impl ReferencePlanner<'_> {
    fn item<'a>(&mut self, body: ExternalBody<'a>) -> PlanItem<'a> {
        let (shown_url, step) = self.step(&body);
        let original = self.original(&body);
        // If the policy refuses the wrapped URL, only the original is requested.
        let step = step.or_else(|refusal| match &original {
            Some((need, _)) if refuses_url(&refusal) => {
                self.judge_declared(&body)?;
                Ok(PlanStep::Retrieve(need.clone()))
            }
            _ => Err(refusal),
        });
        PlanItem {
            number: self.tree.number(body.part),
            name: self.name(&body),
            kind: match body.claim {
                Claim::None => body.facts.kind,
                Claim::Note(_) | Claim::Unreadable => Kind::Attachment,
            },
            shown_url: shown_url.or_else(|| Some(body.linked.as_ref()?.link.clone())),
            step: self.judge(&body).and(step).unwrap_or_else(PlanStep::Leave),
            original,
            copy: None,
            body,
        }
    }

    /// Returns the file name of the content, as the reference or its part states it.
    fn name(&self, body: &ExternalBody<'_>) -> Option<String> {
        let linked = || body.linked.as_ref()?.name.clone();
        let beside = || match &body.target {
            Ok(Referent::Beside { name, .. }) => name.clone(),
            _ => None,
        };
        // A text can contain many notes, so its own name is not the name of an attachment.
        let in_header = || {
            let is_whole = body.text_note.is_none();
            let fields = [&body.phantom.fields, self.tree.fields(body.part)];
            let mut names = fields.into_iter().filter(|_| is_whole);
            names.find_map(|fields| file_name(self.tree.original, fields))
        };
        let name = body.file_name.clone().or_else(linked).or_else(beside);
        name.map(|name| short_name(&name)).or_else(in_header)
    }

    fn judge(&self, body: &ExternalBody<'_>) -> Result<(), Refusal> {
        if let Some(refusal) = protection(self.tree, body.part, self.policy) {
            return Err(refusal);
        }
        if let Some(form) = body.follow() {
            // No option retrieves deleted content, not even `--follow`.
            self.policy
                .judge_form(form)
                .map_err(|refusal| match &body.target {
                    Err(deleted) if deleted.reason == Reason::Deleted => deleted.clone(),
                    _ => refusal,
                })?;
        }
        let content = &self.tree.part(body.part).content;
        if *content == PartKind::Opaque(Limit::HeaderTooLarge)
            || body.phantom.end == SectionEnd::TooLarge
        {
            // The header is longer than `--max-header`, so the URL, the type or the digest may be incomplete, and the
            // reference is refused.
            let detail = Detail::from(
                "one of the two headers of the message/external-body part is larger than ",
            )
            .naming(Setting::Header);
            return Err(Refusal::lasting(Reason::HeaderTooLarge, detail));
        }
        if body.claim == Claim::Unreadable {
            // The note of `embody detach` (X-Embody-Detached) was changed and is unreadable, so `embody restore` could
            // not recreate the exact original. The reference is left unchanged.
            let detail =
                "the X-Embody-Detached field of the part does not have the form that embody writes";
            return Err(Refusal::lasting(Reason::BadNote, detail));
        }
        Ok(())
    }

    fn step(&mut self, body: &ExternalBody<'_>) -> (Option<String>, Result<PlanStep, Refusal>) {
        let (shown, step) = match &body.target {
            // A server does not send a file for an online document, such as one of Google Docs. The program of `--resolver`
            // may be able to export it as a file.
            Err(refusal) if refusal.reason == Reason::OnlineDocument => {
                let link = body.linked.as_ref().map(|linked| linked.link.clone());
                let step = question(self.policy, body)
                    .map(PlanStep::Retrieve)
                    .ok_or_else(|| refusal.clone());
                (link.unwrap_or_default(), step)
            }
            Err(refusal) => return (None, Err(refusal.clone())),
            Ok(Referent::Beside { folder, name }) => {
                let (folder, name) = (folder.clone(), name.clone());
                let allowed = self.judge_declared(body);
                return (None, allowed.map(|()| PlanStep::Read { folder, name }));
            }
            Ok(Referent::Data(url)) => (shorten(url), Ok(PlanStep::Decode)),
            Ok(Referent::ContentId {
                content_id: id,
                message_id: message,
            }) => {
                let cites_itself = body.access_type.eq_ignore_ascii_case("content-id");
                let (tree, ids) = (self.tree, &mut self.content_ids);
                let target = ids.target(tree, body.part, id, message.as_deref(), cites_itself);
                (format!("cid:{id}"), target.map(PlanStep::Copy))
            }
            Ok(Referent::Url(reference)) => self.retrieve(body, reference),
        };
        let allowed = self.judge_declared(body);
        (Some(shown), step.and_then(|step| allowed.map(|()| step)))
    }

    fn judge_declared(&self, body: &ExternalBody<'_>) -> Result<(), Refusal> {
        let declared = body.declared.as_ref().map(|declared| &declared.essence);
        declared.map_or(Ok(()), |essence| self.policy.judge_type(essence))
    }

    fn retrieve(
        &mut self,
        body: &ExternalBody<'_>,
        reference: &str,
    ) -> (String, Result<PlanStep, Refusal>) {
        let absolute = match self.absolute(body.part, reference) {
            Ok(absolute) => absolute,
            Err(refusal) => return (shown_url(reference), Err(refusal)),
        };
        let shown = shown_url(&absolute);
        let mapped = self.policy.map(&absolute).into_owned();
        // References with the same URL and media type share one retrieval. Everything that the server does not see is
        // removed for the comparison: the fragment, and the media type unless it is sent in an HTTP request.
        let asked = url::without_fragment(&mapped);
        let components = components_in_attachments(self.policy, body);
        let allowed = match components {
            Some(_) => Ok(()),
            None => self.policy.judge_url(&mapped).map(drop),
        };
        let is_http = Scheme::of_url(&mapped).is_some_and(Scheme::is_http);
        let step = allowed.and_then(|()| {
            self.policy.judge_size(body.size.unwrap_or(0))?;
            let is_asked = is_http && body.facts.server_knows_type;
            let declared = body.declared.as_ref().filter(|_| is_asked);
            let accept = declared.map(|declared| declared.essence.to_string());
            let url = asked.to_owned();
            Ok(PlanStep::Retrieve(match components {
                Some(components) => Need::Attachment {
                    url,
                    accept,
                    components,
                },
                None => Need::Url { url, accept },
            }))
        });
        // The resolver program sends its own requests, so it may be used even if the policy does not allow embody to use the
        // network.
        let step = step.or_else(|refusal| match refusal.reason {
            Reason::SchemeNotAllowed => {
                self.policy.judge_size(body.size.unwrap_or(0))?;
                let question = question(self.policy, body);
                question.map(PlanStep::Retrieve).ok_or(refusal)
            }
            _ => Err(refusal),
        });
        (shown, step)
    }

    /// Returns the request for the unwrapped original of a URL, if the policy allows it. Detached attachments have
    /// none: their hash identifies the object in the store.
    fn original(&self, body: &ExternalBody<'_>) -> Option<(Need, OriginalUrl)> {
        let Ok(Referent::Url(reference)) = &body.target else {
            return None;
        };
        if body.claim != Claim::None {
            return None;
        }
        let unwrapped = unwrapped_link(reference)?;
        let mapped = self.policy.map(&unwrapped.original);
        self.policy.judge_url(&mapped).ok()?;
        let accept = body
            .declared
            .as_ref()
            .filter(|_| body.facts.server_knows_type)
            .map(|declared| declared.essence.to_string());
        let need = Need::of_url(url::without_fragment(&mapped), accept.as_deref());
        Some((need, unwrapped))
    }

    fn absolute(&mut self, part: PartId, reference: &str) -> Result<String, Refusal> {
        if !url::UrlReference::split(reference).is_relative() {
            return Ok(reference.to_owned());
        }
        let base = self.bases.of(self.tree, part);
        let Some(base) = base.filter(|base| !base.is_within_message()) else {
            let masked = url::masked(reference);
            let detail = format!(
                "the URL '{masked}' is relative, and no Content-Base or Content-Location field applies to it"
            );
            return Err(Refusal::lasting(Reason::NoBase, detail));
        };
        let Some(room) = self.room.checked_sub(base.url.len().saturating_mul(2)) else {
            let detail = "the absolute URLs of all references would together be much longer than the message and would need too much memory";
            return Err(Refusal::lasting(Reason::TooMuchWork, detail));
        };
        self.room = room;
        url::resolve(&base.url, reference).map_err(|problem| {
            let (masked, base) = (url::masked(reference), shown_url(&base.url));
            let detail = format!("the relative URL '{masked}' cannot be resolved against the base URL {base}: {problem}");
            Refusal::lasting(Reason::BadUrl, detail)
        })
    }
}

/// Returns the number of path components, from the end, that a file of `--attachments` must have in common with the URL of
/// `body`. Returns `None` if such a file cannot be the content.
fn components_in_attachments(policy: &Policy, body: &ExternalBody<'_>) -> Option<usize> {
    if cfg!(not(any(feature = "file", feature = "view")))
        || policy.attachments.is_empty()
        || body.claim != Claim::None
    {
        return None;
    }
    body.facts.attachment_components
}

/// Returns the question for the program of `--resolver` about a file in cloud storage, if the policy allows requests to the
/// server.
pub(crate) fn question(policy: &Policy, body: &ExternalBody<'_>) -> Option<Need> {
    let linked = body.linked.as_deref()?;
    if policy.resolver.is_empty() {
        return None;
    }
    let url = linked.original.as_ref().unwrap_or(&linked.link);
    let scheme = Scheme::of_url(url).filter(|scheme| scheme.is_http())?;
    policy
        .judge_server(&Target::parse(scheme, url).ok()?)
        .ok()?;
    Some(Need::Question {
        provider: linked.provider,
        name: linked.name.clone().filter(|name| !name.is_empty()),
        url: url.clone(),
    })
}

/// Whether a refusal is about the URL, and not about its content.
fn refuses_url(refusal: &Refusal) -> bool {
    matches!(
        refusal.reason,
        Reason::SchemeNotAllowed
            | Reason::HostNotAllowed
            | Reason::PrivateAddress
            | Reason::PortNotAllowed
    )
}

fn shorten(url: &[u8]) -> String {
    let written = url.iter().filter(|byte| !byte.is_ascii_whitespace());
    let start: Vec<u8> = written.take(SHOWN_DATA + 1).copied().collect();
    let text: String = String::from_utf8_lossy(&start)
        .chars()
        .take(SHOWN_DATA)
        .collect();
    if start.len() > SHOWN_DATA {
        format!("{text}... ({} bytes)", url.len())
    } else {
        text
    }
}

/// Finds references that are several sources of one attachment (RFC 2046 §5.1.4 with §5.2.3): message/external-body parts in a
/// multipart/alternative that declare the same Content-ID or Content-MD5 for the content. The same media type is not enough,
/// because an English and a French text have the same type. A multipart/alternative that also contains other parts is
/// skipped: it offers several formats of one text.
fn rivals(tree: &MessageTree<'_>, items: &[PlanItem<'_>]) -> Vec<Vec<usize>> {
    let is_external = |&child: &PartId| tree.part(child).essence == ESSENCE;
    let offers_one_of_many = |part: PartId| {
        let part = tree.part(part);
        part.essence == "multipart/alternative" && part.children.iter().all(is_external)
    };
    let mut is_choice: HashMap<PartId, bool> = HashMap::new();
    // First reference with each Content-ID or Content-MD5. The field name is part of the key, so an id cannot match a
    // digest.
    let mut bearers: HashMap<(PartId, &str, &[u8]), usize> = HashMap::new();
    // For each reference, the index of an earlier reference to the same attachment, or otherwise its own index.
    // Following these indexes leads to the first reference of each set (a union-find structure).
    let mut earlier: Vec<usize> = (0..items.len()).collect();
    for (index, item) in items.iter().enumerate() {
        let Some(parent) = tree.part(item.body.part).parent else {
            continue;
        };
        // Attachments that embody detached are never sources of one attachment, even if their content is the same: each of them
        // is restored in its own part.
        if item.body.facts.shape != ReferenceShape::ExternalBody || item.body.claim != Claim::None {
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
    // Sets with more than one reference, by the index of their first reference.
    let mut sets: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for index in 0..items.len() {
        let first = first_of(&mut earlier, index);
        if first != index {
            let members = sets.entry(first).or_insert_with(|| vec![first]);
            members.push(index);
        }
    }
    let mut groups: Vec<Vec<usize>> = sets.into_values().collect();
    for members in &mut groups {
        members.sort_by_key(|&index| items.get(index).map_or(u8::MAX, usefulness));
    }
    groups
}

/// Returns the index of the first reference in the set of `index`. Each call also shortens the path to it, so that long
/// chains stay fast.
fn first_of(earlier: &mut [usize], mut index: usize) -> usize {
    while earlier[index] != index {
        earlier[index] = earlier[earlier[index]];
        index = earlier[index];
    }
    index
}

fn usefulness(item: &PlanItem<'_>) -> u8 {
    match &item.step {
        PlanStep::Copy(_) => 0,
        PlanStep::Decode | PlanStep::Read { .. } => 1,
        PlanStep::Retrieve(Need::Url { url, .. }) => {
            Scheme::of_url(url).map_or(u8::MAX - 1, |scheme| 2 + scheme.usefulness())
        }
        PlanStep::Retrieve(_) => u8::MAX - 1,
        PlanStep::Leave(_) => u8::MAX,
    }
}
