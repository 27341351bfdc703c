//! Detaches the attachments that a run detached before, so that every byte of the references is compared.

use std::collections::{HashMap, HashSet, VecDeque};

use super::made::ResultParts;
use super::outcome::{Budget, Changes};
use super::variant::Variant;
use crate::engine::Mode;
use crate::engine::detach::{Choice, DetachedBefore, Planner, Refused, Stub};
use crate::engine::external_body::{ReferenceShape, Referent, Scrap, name_of, newline_of};
use crate::engine::forms::references;
use crate::engine::guide::{StandIn, StandInFacts, StandIns, noted_pages};
use crate::engine::policy::Policy;
use crate::key::Key;
use crate::mime::exact::{EditManner, FieldText};
use crate::mime::{self, MessageTree, PartId, PartKind};
use crate::span::Newline;

/// A reference that a run left in the place of an attachment.
#[derive(Clone, Debug)]
struct DetachNote {
    number: String,
    key: Key,
    url: String,
    form: Stub,
    /// Type, length and MD5 of the content, and its encoding in the mail, as the reference says.
    essence: String,
    length: usize,
    md5: Option<[u8; 16]>,
    manner: EditManner,
    newline: Newline,
    charset: Option<String>,
    /// File name of the content, decoded.
    name: Option<String>,
}

/// The references that the new mail has and the old one has not.
#[derive(Clone, Debug)]
pub(super) struct DetachNotes(Vec<DetachNote>);

impl DetachNotes {
    pub(super) fn added(old: &MessageTree<'_>, new: &[u8], policy: &Policy) -> Self {
        let field = b"X-Embody-Detached";
        if memchr::memmem::find(new, field).is_none() {
            return Self(Vec::new());
        }
        let mut known: HashMap<Key, usize> = HashMap::new();
        for note in notes(old, policy) {
            *known.entry(note.key).or_default() += 1;
        }
        let tree = mime::scan(new, &policy.limits.scan());
        let mut added = notes(&tree, policy);
        added.retain(|note| match known.get_mut(&note.key) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        });
        Self(added)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns contents in place of those that none of `mails` contains, because only the store has them. Returns none if they
    /// are too large. The first one of `mails` is the old mail.
    pub(super) fn stand_ins(&self, mails: &[&MessageTree<'_>], budget: &mut Budget) -> StandIns {
        let policy = Variant::default().policy();
        let mut pages = mails
            .first()
            .map_or_else(Vec::new, |old| noted_pages(old, &policy));
        let known: HashSet<Key> = mails
            .iter()
            .flat_map(|tree| tree.ids().filter_map(|part| key_of(tree, part)))
            .collect();
        let mut stand_ins: Vec<StandIn> = Vec::new();
        for note in &self.0 {
            if known.contains(&note.key) || stand_ins.iter().any(|it| it.key == note.key) {
                continue;
            }
            if budget.hold(note.length).is_none() {
                return StandIns::default();
            }
            // A page has the name that it has on the server only if its original could not be restored.
            let is_page = |page: &(String, Scrap)| note.name.as_ref() == Some(&page.0);
            let found = pages
                .iter()
                .position(is_page)
                .filter(|_| note.essence == "text/html");
            let facts = StandInFacts {
                essence: note.essence.clone(),
                charset: note.charset.clone(),
                length: note.length,
                manner: note.manner,
                newline: note.newline,
                page: found.map(|at| pages.remove(at).1),
            };
            stand_ins.push(StandIn::new(note.key, note.md5, &facts));
        }
        stand_ins.into()
    }

    /// Returns the mail after detaching the parts of these references: first with a text that lists them, then without it.
    pub(super) fn detach(
        &self,
        mail: &[u8],
        stand_ins: &StandIns,
        budget: &mut Budget,
    ) -> Vec<ResultParts> {
        let policy = Policy::default();
        let tree = mime::scan(mail, &policy.limits.scan());
        let Some(parts) = self.parts_of(&tree, stand_ins) else {
            return Vec::new();
        };
        let detached = parts.len();
        let choice = Choice {
            larger_than: 0,
            types: Vec::new(),
            takes_shown: true,
        };
        let plan = |text: bool| {
            budget.take(mail.len())?;
            let planner = Planner::new(choice.clone(), String::new(), Mode::Run)
                .leaving(Stub::default(), text)
                .only(parts.clone());
            let detachment = planner.plan(mail, "", &Refused::new());
            Some(ResultParts {
                mail: detachment.edits.splice(mail).into_bytes().into_owned(),
                changes: Changes {
                    detached,
                    ..Changes::default()
                },
                inserted: Vec::new(),
            })
        };
        [false, true].into_iter().filter_map(plan).collect()
    }

    /// Returns the parts of the mail that these references replaced, by their number. A part with the number of its reference
    /// is preferred. Returns `None` if the mail does not contain the content of a reference.
    fn parts_of(
        &self,
        tree: &MessageTree<'_>,
        stand_ins: &StandIns,
    ) -> Option<HashMap<String, DetachedBefore>> {
        let standing: HashMap<Key, &StandIn> = stand_ins
            .iter()
            .map(|stand_in| (Key::of(stand_in.bytes()), stand_in))
            .collect();
        let before = |note: &DetachNote| DetachedBefore {
            url: note.url.clone(),
            form: note.form,
            stands_for: stand_ins
                .iter()
                .find(|stand_in| stand_in.key == note.key)
                .map(|stand_in| (stand_in.key, stand_in.md5)),
        };
        let mut contents: HashMap<Key, VecDeque<String>> = HashMap::new();
        for part in tree.ids() {
            if let Some(key) = key_of(tree, part) {
                let stands_for = standing.get(&key).map(|stand_in| stand_in.key);
                contents
                    .entry(stands_for.unwrap_or(key))
                    .or_default()
                    .push_back(tree.number(part));
            }
        }
        let mut parts = HashMap::new();
        let mut rest = Vec::new();
        for note in &self.0 {
            let numbers = contents.get_mut(&note.key)?;
            match numbers.iter().position(|number| *number == note.number) {
                Some(at) => {
                    numbers.remove(at);
                    parts.insert(note.number.clone(), before(note));
                }
                None => rest.push(note),
            }
        }
        for note in rest {
            let number = contents.get_mut(&note.key)?.pop_front()?;
            parts.insert(number, before(note));
        }
        Some(parts)
    }
}

/// Returns the name in a store of the content of a part. Returns `None` for a part that cannot be detached.
fn key_of(tree: &MessageTree<'_>, part: PartId) -> Option<Key> {
    let entity = tree.part(part);
    if entity.content != PartKind::Leaf {
        return None;
    }
    let body = entity.body.of(tree.original);
    let (octets, _) = FieldText::read(body, entity.encoding, newline_of(tree, part))?;
    Some(Key::of(&octets))
}

/// Returns true if the mail `new` contains the SHA-256 of a part.
pub(super) fn is_noted(tree: &MessageTree<'_>, part: PartId, new: &[u8]) -> bool {
    key_of(tree, part)
        .is_some_and(|key| memchr::memmem::find(new, key.to_string().as_bytes()).is_some())
}

fn notes(tree: &MessageTree<'_>, policy: &Policy) -> Vec<DetachNote> {
    let reading = policy.reading();
    let note = |part| {
        let body = references::read(tree, part, &reading)?;
        let key = Key::parse(&body.note()?.sha256)?;
        let Ok(Referent::Url(url)) = &body.target else {
            return None;
        };
        // The name of an object is its hash. A reference to another object was not written by a run.
        if !url.ends_with(&key.to_string()) {
            return None;
        }
        let declared = body.declared.as_ref();
        let length = body.note()?.size.map(|size| size as u64).or(body.size);
        Some(DetachNote {
            number: tree.number(part),
            key,
            url: url.clone(),
            essence: declared.map_or_else(String::new, |it| it.essence.to_ascii_lowercase()),
            length: usize::try_from(length.unwrap_or_default()).ok()?,
            md5: body.content_md5.and_then(md5),
            manner: body.note()?.wording.manner,
            newline: body.note()?.wording.newline,
            charset: declared
                .and_then(|it| it.parameter("charset"))
                .map(|charset| {
                    let name = String::from_utf8_lossy(&charset);
                    name.to_ascii_lowercase()
                }),
            name: name_of(tree.original, &body.phantom.fields).text(),
            form: match body.facts.shape {
                ReferenceShape::ExternalBody => Stub::ExternalBody,
                _ => Stub::Thunderbird,
            },
        })
    };
    tree.ids().filter_map(note).collect()
}

fn md5(value: &[u8]) -> Option<[u8; 16]> {
    use base64::Engine as _;

    let decoded = base64::engine::general_purpose::STANDARD.decode(value.trim_ascii());
    decoded.ok()?.try_into().ok()
}
