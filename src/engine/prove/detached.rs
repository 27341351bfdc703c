//! Detaches the attachments that a run detached before, so that every byte of the references is compared.

use std::collections::{HashMap, VecDeque};

use super::made::ResultParts;
use super::outcome::{Budget, Changes};
use crate::engine::Mode;
use crate::engine::detach::{Choice, Planner, Refused, Stub};
use crate::engine::external_body::{ReferenceShape, Referent, newline_of};
use crate::engine::forms::references;
use crate::engine::policy::Policy;
use crate::key::Key;
use crate::mime::exact::FieldText;
use crate::mime::{self, MessageTree, PartId, PartKind};

/// A reference that a run left in the place of an attachment.
#[derive(Clone, Debug)]
struct DetachNote {
    number: String,
    key: Key,
    url: String,
    form: Stub,
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

    /// Returns the mail after detaching the parts of these references: first with a text that lists them, then without it.
    pub(super) fn detach(&self, mail: &[u8], budget: &mut Budget) -> Vec<ResultParts> {
        let policy = Policy::default();
        let tree = mime::scan(mail, &policy.limits.scan());
        let Some(parts) = self.parts_of(&tree) else {
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
    fn parts_of(&self, tree: &MessageTree<'_>) -> Option<HashMap<String, (String, Stub)>> {
        let mut contents: HashMap<Key, VecDeque<String>> = HashMap::new();
        for part in tree.ids() {
            if let Some(key) = key_of(tree, part) {
                contents
                    .entry(key)
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
                    parts.insert(note.number.clone(), (note.url.clone(), note.form));
                }
                None => rest.push(note),
            }
        }
        for note in rest {
            let number = contents.get_mut(&note.key)?.pop_front()?;
            parts.insert(number, (note.url.clone(), note.form));
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
        Some(DetachNote {
            number: tree.number(part),
            key,
            url: url.clone(),
            form: match body.facts.shape {
                ReferenceShape::ExternalBody => Stub::ExternalBody,
                _ => Stub::Thunderbird,
            },
        })
    };
    tree.ids().filter_map(note).collect()
}
