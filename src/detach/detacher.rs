//! Detaches from messages, one after the other or many at a time.

use std::collections::HashMap;
use std::sync::Mutex;

use super::choice::{Settings, reading};
use super::part::{content_of, edits};
use crate::edit::{Edit, Edits, Group};
use crate::engine::plan::documents::shown_inline;
use crate::error::{Error, unpoisoned};
use crate::expand::refusal_of;
use crate::external_body::{ExternalBody, relisted, restored};
use crate::lengths::{Lengths, corrected};
use crate::mime::{self, PartId, ScanLimits, Tree};
use crate::policy::{OnFailure, Policy};
use crate::report::{Detail, Kind, Outcome, Provenance, Reason, Refusal, Report, Retry, Row};
use crate::span::Span;
use crate::store::Key;

/// Moves attachments into a store.
#[derive(Debug)]
pub struct Detacher {
    settings: Settings,
    /// No option changes the default policy, which protects parts and says how deep they are looked for.
    policy: Policy,
    limits: ScanLimits,
    foreseen: Option<Mutex<HashMap<Key, u64>>>,
}

/// What became of one message.
#[derive(Clone, Default, Debug)]
pub struct Detachment {
    /// The edits of the message.
    pub edits: Edits,
    /// A row for each attachment that is large enough.
    pub report: Report,
    /// The attachment that each row is about.
    pub attachments: Vec<Attachment>,
}

/// An attachment that is large enough to leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attachment {
    /// Octets of its body in the mail.
    pub octets: u64,
    /// Its key in the store; none if it stays.
    pub key: Option<Key>,
}

struct Left {
    part: PartId,
    key: Key,
    group: Group,
    row: usize,
}

impl Detacher {
    /// A detacher with these settings.
    pub fn new(settings: Settings) -> Self {
        let policy = Policy::default();
        Self {
            settings,
            limits: policy.limits.scan(),
            policy,
            foreseen: Some(Mutex::default()),
        }
    }

    #[cfg(feature = "cli")]
    pub(crate) fn without_memory(self) -> Self {
        Self {
            foreseen: None,
            ..self
        }
    }

    /// The number of objects that a dry run would store, and their octets.
    pub fn foreseen(&self) -> (u64, u64) {
        let Some(foreseen) = &self.foreseen else {
            return (0, 0);
        };
        let foreseen = unpoisoned(foreseen.lock());
        (foreseen.len() as u64, foreseen.values().sum())
    }

    /// Where in whole messages the first byte is that [`Detacher::detach`] might care about: in a stretch that is long
    /// enough for what leaves, and holds no line that may begin another message.
    ///
    /// Base64 has no such line, and a body in another encoding that has one would not come back from every mailbox.
    pub fn first_touch(&self, bytes: &[u8]) -> Option<usize> {
        let least = usize::try_from(self.settings.choice.larger_than).unwrap_or(usize::MAX);
        let mut from = 0;
        let long = |from: usize, to: usize| to - from >= least;
        for at in memchr::memmem::find_iter(bytes, b"\nFrom ") {
            if long(from, at) {
                return Some(from);
            }
            from = at + 1;
        }
        (long(from, bytes.len()) && from < bytes.len()).then_some(from)
    }

    /// Detaches what may leave the message that the report calls `name`. Without a store the edits are those that would
    /// be made, and the rows say so.
    ///
    /// # Errors
    /// [`Error::Deferred`] if the store failed for a while only and the settings say to try later.
    pub fn detach(&self, message: &[u8], name: &str) -> Result<Detachment, Error> {
        if (message.len() as u64) < self.settings.choice.larger_than {
            return Ok(Detachment::default());
        }
        let tree = mime::scan(message, &self.limits);
        let mut run = Run {
            detacher: self,
            tree: &tree,
            name,
            detachment: Detachment::default(),
            left: Vec::new(),
            temporary: None,
        };
        run.parts();
        let edits = run.edits();
        let mut detachment = run.detachment;
        detachment.report.gained = edits.iter().map(Edit::growth).sum();
        detachment.edits = edits;
        if self.settings.store.is_none() {
            detachment.report = detachment.report.would();
        }
        match run.temporary {
            Some(detail) if self.settings.on_failure == OnFailure::Defer => {
                Err(Error::Deferred(detail))
            }
            _ => Ok(detachment),
        }
    }

    fn put(&self, octets: &[u8]) -> Result<Key, Refusal> {
        match &self.settings.store {
            Some(store) => store.put(octets).map_err(|error| refusal_of(&error)),
            None => {
                let key = Key::of(octets);
                if let Some(foreseen) = &self.foreseen {
                    let mut foreseen = unpoisoned(foreseen.lock());
                    foreseen.insert(key, octets.len() as u64);
                }
                Ok(key)
            }
        }
    }
}

struct Run<'r> {
    detacher: &'r Detacher,
    tree: &'r Tree<'r>,
    name: &'r str,
    detachment: Detachment,
    left: Vec<Left>,
    temporary: Option<Detail>,
}

impl Run<'_> {
    /// The parts that documents show are found once, and only where something would leave.
    fn parts(&mut self) {
        let (choice, policy) = (&self.detacher.settings.choice, &self.detacher.policy);
        let limits = &self.detacher.limits;
        let mut verdicts = Vec::new();
        for part in self.tree.ids() {
            let verdict = choice.judge(self.tree, part, policy, limits);
            verdicts.extend(verdict.map(|verdict| (part, verdict)));
        }
        let leaving: Vec<PartId> = verdicts
            .iter()
            .filter(|(_, verdict)| verdict.is_ok() && !choice.takes_shown)
            .map(|&(part, _)| part)
            .collect();
        let mut shown = shown_inline(self.tree, policy, &leaving);
        for (part, verdict) in verdicts {
            let decided = match (verdict, shown.remove(&part)) {
                (Err(refusal), _) => Err(refusal),
                (Ok(()), Some(why)) => {
                    let why = why.words(self.tree);
                    Err(Refusal::lasting(Reason::ShownInline, why))
                }
                (Ok(()), None) => self.leave(part),
            };
            self.part(part, decided);
        }
    }

    /// Its content is gone by then: of many attachments one is held at a time.
    fn part(&mut self, part: PartId, decided: Result<(Key, usize, Group), Refusal>) {
        let settings = &self.detacher.settings;
        let entity = self.tree.part(part);
        self.detachment.attachments.push(Attachment {
            octets: entity.body.len() as u64,
            key: decided.as_ref().ok().map(|(key, ..)| *key),
        });
        let number = self.tree.number(part);
        let mut row = Row::new(self.name, number, Kind::Attachment, Outcome::Left);
        row.media_type = Some(entity.essence.clone());
        match decided {
            Ok((key, octets, group)) => {
                let gain: i64 = group.iter().map(Edit::growth).sum();
                let is_done = settings.store.is_some();
                row.outcome = Outcome::Detached;
                let verb = if is_done { "were" } else { "would be" };
                row.detail = format!(
                    "{} bytes {verb} moved out of the mail",
                    gain.saturating_neg()
                )
                .into();
                row.url = Some(settings.url_of(&key));
                row.from = Provenance::Message;
                row.sha256 = Some(key.to_string());
                row.bytes = Some(octets as u64);
                self.left.push(Left {
                    part,
                    key,
                    group,
                    row: self.detachment.report.rows.len(),
                });
            }
            Err(refusal) => {
                let is_shown = refusal.reason == Reason::ShownInline;
                refuse(&mut row, refusal, &mut self.temporary);
                if is_shown {
                    let content = entity.encoding.decode(entity.body.of(self.tree.original));
                    row.bytes = content.map(|octets| octets.len() as u64);
                }
            }
        }
        self.detachment.report.rows.push(row);
    }

    fn leave(&self, part: PartId) -> Result<(Key, usize, Group), Refusal> {
        let content = content_of(self.tree, part).map_err(not_restorable)?;
        let (octets, _) = &content;
        let key = self.detacher.put(octets)?;
        let settings = &self.detacher.settings;
        let group = edits(settings, self.tree, part, &key, &content);
        Ok((key, octets.len(), group.map_err(not_restorable)?))
    }

    fn edits(&mut self) -> Edits {
        let refusal = match self.checked() {
            Ok(edits) => return edits,
            Err(refusal) => refusal,
        };
        for left in &self.left {
            if let Some(row) = self.detachment.report.rows.get_mut(left.row) {
                refuse(row, refusal.clone(), &mut self.temporary);
            }
            if let Some(attachment) = self.detachment.attachments.get_mut(left.row) {
                attachment.key = None;
            }
        }
        Edits::new()
    }

    fn checked(&self) -> Result<Edits, Refusal> {
        if self.left.is_empty() {
            return Ok(Edits::new());
        }
        // Parts are disjoint.
        let edits = Edits::of(self.left.iter().flat_map(|left| left.group.clone()));
        let edits = edits.map_err(|_| {
            not_restorable("two of its parts overlap, so restore could not put them back")
        })?;
        let output = edits.splice(self.tree.original).into_bytes();
        let text = self.judge(&output)?;
        drop(output);
        let edits = edits.then(self.tree.original.len(), text);
        let limits = &self.detacher.limits;
        let (edits, is_reversible) = corrected(self.tree, edits, Lengths::Reversible, limits);
        if !is_reversible {
            let detail = "with the change, the wrong Content-Length or Lines field of the message would happen to be right, and restore would not set the old value again";
            return Err(not_restorable(detail));
        }
        if let Some(store) = &self.detacher.settings.store {
            let keys: Vec<Key> = self.left.iter().map(|left| left.key).collect();
            store.flush(&keys).map_err(|error| refusal_of(&error))?;
        }
        Ok(edits)
    }

    /// Nothing leaves that would not come back: the output is read as a restorer will, and its headers are compared.
    fn judge(&self, output: &[u8]) -> Result<Edits, Refusal> {
        let limits = &self.detacher.limits;
        let tree = mime::scan(output, limits);
        let reading = reading(limits);
        if tree.ids().count() != self.tree.ids().count() {
            return Err(not_restorable(
                "after the change, the message would be split into different parts",
            ));
        }
        for part in self.left.iter().map(|left| left.part) {
            let body = ExternalBody::read(&tree, part, &reading);
            let note = body.as_ref().and_then(|body| Some((body, body.note()?)));
            let Some((body, note)) = note else {
                return Err(not_restorable(
                    "after the change, a part would not be recognized as a detached attachment",
                ));
            };
            let edits = restored(&tree, body, note, Vec::new()).map_err(not_restorable)?;
            let before = self.tree.part(part);
            let before = Span::new(before.header.start, before.body.start).of(self.tree.original);
            if header_after(&tree, part, edits) != Some(before.to_vec()) {
                return Err(not_restorable(
                    "restore would not be able to put back the header of a part exactly",
                ));
            }
        }
        let new = self.detacher.settings.text;
        Ok(Edits::from(relisted(self.tree, &tree, &reading, new)))
    }
}

fn refuse(row: &mut Row, refusal: Refusal, temporary: &mut Option<Detail>) {
    (row.url, row.bytes) = (None, None);
    if refusal.retry == Retry::Later {
        temporary.get_or_insert(row.waiting_for(&refusal.detail));
    }
    row.tell_refusal(refusal);
}

fn not_restorable(detail: &str) -> Refusal {
    Refusal::lasting(Reason::NotRestorable, detail)
}

fn header_after(tree: &Tree<'_>, part: PartId, group: Group) -> Option<Vec<u8>> {
    let part = tree.part(part);
    let front = part.header.start;
    let within = Span::new(front, part.body.end).of(tree.original);
    let shifted = group.into_iter().map(|edit| {
        let start = edit.span.start.checked_sub(front)?;
        let span = Span::new(start, start + edit.span.len());
        Some(Edit { span, ..edit })
    });
    let edits = Edits::of(shifted.collect::<Option<Group>>()?).ok()?;
    Some(edits.splice(within).into_bytes().into_owned())
}
