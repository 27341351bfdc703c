//! The plan for one message: the parts that are detached, the edits, and the objects that must be stored first.

use std::collections::HashMap;

use super::choice::{Choice, Stub, reading};
use super::part::{StubSettings, content_of, edits};
use crate::edit::{Edit, Edits, Group};
use crate::engine::Mode;
use crate::engine::external_body::file_names::file_name;
use crate::engine::external_body::newline_of;
use crate::engine::forms::references;
use crate::engine::lengths::{Lengths, corrected};
use crate::engine::plan::documents::shown_inline;
use crate::engine::policy::Policy;
use crate::engine::report::{
    Detail, Kind, Outcome, Provenance, Reason, Refusal, Report, Retry, Row,
};
use crate::engine::stub::{relisted, restored};
use crate::key::Key;
use crate::mime::exact::FieldText;
use crate::mime::{self, MessageTree, PartId, ScanLimits, TransferEncoding};
use crate::span::{Newline, Span};

/// Objects that a store did not accept, each with the reason. Their parts stay in the mail.
pub type Refused = HashMap<Key, Refusal>;

/// Decides which attachments are detached from a message, and which references replace them. It has no store.
#[derive(Debug)]
pub struct Planner {
    choice: Choice,
    leaving: StubSettings,
    /// Parts to detach, by part number. `None` if `choice` selects the parts.
    only: Option<HashMap<String, DetachedBefore>>,
    /// True if the mail gets a text that lists the detached attachments. The note in each reference (the field
    /// `X-Embody-Detached`) records this.
    text: bool,
    /// The default policy, which protects signed parts and limits the nesting depth, whatever the options are.
    policy: Policy,
    limits: ScanLimits,
}

/// A part that an earlier run detached.
#[derive(Clone, Debug)]
pub(in crate::engine) struct DetachedBefore {
    pub(in crate::engine) url: String,
    pub(in crate::engine) form: Stub,
    /// Key and MD5 of the real content, if the body of the part is only a placeholder for it (see `StandIn`).
    pub(in crate::engine) stands_for: Option<(Key, Option<[u8; 16]>)>,
}

/// Result of planning one message: the edits, the objects to store first, and the report.
#[derive(Clone, Default, Debug)]
#[non_exhaustive]
pub struct Detachment {
    /// The edits of the message. They may be written only after a store has saved all `objects` durably.
    pub edits: Edits,
    /// Rows of the report, one for each attachment that is large enough to be detached.
    pub report: Report,
    /// The attachment of each row of the report, in the same order.
    pub attachments: Vec<Attachment>,
    /// The content that the edits move out of the message, in document order. Equal contents are listed once for each part.
    pub objects: Vec<Object>,
    /// The first temporary failure of the store, as a sentence. A later run may succeed.
    pub temporary: Option<Detail>,
}

/// Content that is moved out of a message into a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Object {
    /// SHA-256 of the content.
    pub key: Key,
    /// Length of the content in bytes.
    pub length: u64,
    body: Span,
    encoding: TransferEncoding,
    newline: Newline,
}

/// An attachment that is large enough to be detached, with its key in the store if it was detached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attachment {
    /// Length of the encoded body in the mail, in bytes.
    pub octets: u64,
    /// Key of the content in the store, or `None` if the attachment stays in the mail.
    pub key: Option<Key>,
}

/// A part that is detached.
struct DetachedPart {
    part: PartId,
    object: Object,
    group: Group,
    /// Index of the part's row in the report.
    row: usize,
}

impl Object {
    /// Decodes the content of the object again from `message`, which must be the planned message.
    ///
    /// # Errors
    /// Fails if `message` is a different message.
    pub fn content(&self, message: &[u8]) -> Result<Vec<u8>, Refusal> {
        FieldText::read(self.body.of(message), self.encoding, self.newline)
            .map(|(content, _)| content)
            .filter(|content| content.len() as u64 == self.length)
            .ok_or_else(|| {
                not_restorable(
                    "the message is different from the message for which the change was planned",
                )
            })
    }
}

impl Planner {
    /// Creates a planner that replaces attachments by message/external-body parts without a text. `base_url` is the start of
    /// the URL of every object, up to and including the last slash of its path.
    #[must_use]
    pub fn new(choice: Choice, base_url: String, mode: Mode) -> Self {
        let policy = Policy::default();
        let leaving = StubSettings {
            base_url,
            url: None,
            form: Stub::default(),
            mode,
            md5: None,
        };
        Self {
            choice,
            leaving,
            only: None,
            text: false,
            limits: policy.limits.scan(),
            policy,
        }
    }

    /// Sets the form of the references, and whether a text lists the detached attachments.
    #[must_use]
    pub fn leaving(mut self, form: Stub, text: bool) -> Self {
        self.leaving.form = form;
        self.text = text;
        self
    }

    /// Detaches exactly these parts. `compare` uses this to repeat what an earlier run did.
    #[must_use]
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    pub(in crate::engine) fn only(mut self, parts: HashMap<String, DetachedBefore>) -> Self {
        self.only = Some(parts);
        self
    }

    /// Returns a position before which no plan changes anything, or `None` if no plan changes anything in `bytes`, which
    /// contain complete messages. A caller can skip the bytes before this position without parsing them.
    ///
    /// Only bodies of at least the minimum size are detached, and a detached body contains no line that begins with
    /// `From `: in an mbox, such a line can begin another message, so the body could not be restored. Base64 never contains
    /// such a line. So the position is the start of the first stretch that has the minimum size and contains no such line.
    pub fn first_touch(&self, bytes: &[u8]) -> Option<usize> {
        let least = usize::try_from(self.choice.larger_than).unwrap_or(usize::MAX);
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

    /// Plans one message. `name` is the name of the message in the report. Parts whose content is in `refused` are not
    /// detached.
    ///
    /// The same arguments always give the same plan.
    pub fn plan(&self, message: &[u8], name: &str, refused: &Refused) -> Detachment {
        if self.is_too_small(message) {
            return Detachment::default();
        }
        self.plan_parts(&mime::scan(message, &self.limits), name, refused)
    }

    /// Plans one message as [`plan`](Self::plan) does. `tree` is the parsed message, and `limits` are the limits that
    /// its parser had. The message is parsed again only if the planner has other limits.
    #[cfg(feature = "cli")]
    pub(crate) fn plan_parsed(
        &self,
        (tree, limits): (&MessageTree<'_>, &ScanLimits),
        name: &str,
        refused: &Refused,
    ) -> Detachment {
        if *limits != self.limits || self.is_too_small(tree.original) {
            return self.plan(tree.original, name, refused);
        }
        self.plan_parts(tree, name, refused)
    }

    /// Returns true if the message is smaller than the minimum size of attachments that are detached. Such a message contains
    /// no attachment to detach, so it need not be parsed.
    fn is_too_small(&self, message: &[u8]) -> bool {
        (message.len() as u64) < self.choice.larger_than
    }

    fn plan_parts(&self, tree: &MessageTree<'_>, name: &str, refused: &Refused) -> Detachment {
        let mut run = DetachPass {
            planner: self,
            refused,
            tree,
            name,
            detachment: Detachment::default(),
            left: Vec::new(),
        };
        run.parts();
        let edits = run.edits();
        let mut detachment = run.detachment;
        detachment.report.gained = edits.iter().map(Edit::growth).sum();
        detachment.edits = edits;
        detachment
    }
}

struct DetachPass<'r> {
    planner: &'r Planner,
    refused: &'r Refused,
    tree: &'r MessageTree<'r>,
    name: &'r str,
    detachment: Detachment,
    left: Vec<DetachedPart>,
}

impl DetachPass<'_> {
    /// Decides about each part. Finding the parts that documents show is slow, so it is done only if a part would be detached.
    fn parts(&mut self) {
        let (choice, policy) = (&self.planner.choice, &self.planner.policy);
        let limits = &self.planner.limits;
        let mut verdicts = Vec::new();
        let only = self.planner.only.as_ref();
        for part in self.tree.ids() {
            if only.is_some_and(|only| !only.contains_key(&self.tree.number(part))) {
                continue;
            }
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

    fn part(&mut self, part: PartId, decided: Result<(Object, Group), Refusal>) {
        let leaving = &self.planner.leaving;
        let entity = self.tree.part(part);
        self.detachment.attachments.push(Attachment {
            octets: entity.body.len() as u64,
            key: decided.as_ref().ok().map(|(object, _)| object.key),
        });
        let number = self.tree.number(part);
        let mut row = Row::new(self.name, number, Kind::Attachment, Outcome::Left);
        row.name = file_name(self.tree.original, self.tree.fields(part));
        row.media_type = Some(entity.essence.clone());
        match decided {
            Ok((object, group)) => {
                let gain: i64 = group.iter().map(Edit::growth).sum();
                row.outcome = Outcome::Detached;
                let verb = if leaving.mode.writes() {
                    "were"
                } else {
                    "would be"
                };
                row.detail = format!(
                    "{} bytes {verb} moved out of the mail",
                    gain.saturating_neg()
                )
                .into();
                row.url = Some(leaving.url_of(&object.key));
                row.from = Provenance::Message;
                row.sha256 = Some(object.key.to_string());
                row.bytes = Some(object.length);
                self.left.push(DetachedPart {
                    part,
                    object,
                    group,
                    row: self.detachment.report.rows.len(),
                });
            }
            Err(refusal) => {
                let is_shown = refusal.reason == Reason::ShownInline;
                refuse(&mut row, refusal, &mut self.detachment.temporary);
                if is_shown {
                    let content = entity.encoding.decode(entity.body.of(self.tree.original));
                    row.bytes = content.map(|octets| octets.len() as u64);
                }
            }
        }
        self.detachment.report.rows.push(row);
    }

    /// Creates the object and the edits for one part. The decoded content is dropped at the end, so that only the content of
    /// one attachment is in memory at a time.
    fn leave(&self, part: PartId) -> Result<(Object, Group), Refusal> {
        let content = content_of(self.tree, part).map_err(not_restorable)?;
        let (octets, _) = &content;
        let number = self.tree.number(part);
        let only = self.planner.only.as_ref().and_then(|it| it.get(&number));
        let stands_for = only.and_then(|before| before.stands_for);
        let key = stands_for.map_or_else(|| Key::of(octets), |(key, _)| key);
        if let Some(refusal) = self.refused.get(&key) {
            return Err(refusal.clone());
        }
        let entity = self.tree.part(part);
        let object = Object {
            key,
            length: octets.len() as u64,
            body: entity.body,
            encoding: entity.encoding,
            newline: newline_of(self.tree, part),
        };
        let as_before = only.map(|before| StubSettings {
            base_url: String::new(),
            url: Some(before.url.clone()),
            form: before.form,
            mode: self.planner.leaving.mode,
            md5: stands_for.and_then(|(_, md5)| md5),
        });
        let leaving = as_before.as_ref().unwrap_or(&self.planner.leaving);
        let group = edits(leaving, self.tree, part, &key, &content);
        Ok((object, group.map_err(not_restorable)?))
    }

    fn edits(&mut self) -> Edits {
        let refusal = match self.checked() {
            Ok(edits) => {
                let objects = self.left.iter().map(|left| left.object);
                self.detachment.objects = objects.collect();
                return edits;
            }
            Err(refusal) => refusal,
        };
        for left in &self.left {
            if let Some(row) = self.detachment.report.rows.get_mut(left.row) {
                refuse(row, refusal.clone(), &mut self.detachment.temporary);
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
        // The parts are disjoint, so their edits can be combined.
        let edits =
            Edits::of(self.left.iter().flat_map(|left| left.group.clone())).map_err(|_| {
                not_restorable(
                    "two parts of the message overlap, so restore could not put the parts back",
                )
            })?;
        let output = edits.splice(self.tree.original).into_bytes();
        let text = self.judge(&output)?;
        drop(output);
        let edits = edits.then(self.tree.original.len(), text);
        let limits = &self.planner.limits;
        let (edits, is_reversible) = corrected(self.tree, edits, Lengths::Reversible, limits);
        if !is_reversible {
            let detail = "the Content-Length or Lines field of the message has a wrong value, which would be right after the change; restore would not write the wrong value again";
            return Err(not_restorable(detail));
        }
        Ok(edits)
    }

    /// Checks that every detached part can be restored: reads the output in the same way as `restore`, and compares the
    /// headers.
    fn judge(&self, output: &[u8]) -> Result<Edits, Refusal> {
        let limits = &self.planner.limits;
        let tree = mime::scan(output, limits);
        let reading = reading(limits);
        if tree.ids().count() != self.tree.ids().count() {
            return Err(not_restorable(
                "after the change, the message would be split into different parts",
            ));
        }
        for part in self.left.iter().map(|left| left.part) {
            let body = references::read(&tree, part, &reading);
            let note = body.as_ref().and_then(|body| Some((body, body.note()?)));
            let Some((body, note)) = note else {
                return Err(not_restorable(
                    "after the change, a part would not be recognized as a detached attachment",
                ));
            };
            let edits = restored(&tree, body, note, Vec::new()).map_err(not_restorable)?;
            let own = self.tree.part(part);
            let before = Span::new(own.header.start, own.body.start).of(self.tree.original);
            if header_after(&tree, part, edits) != Some(before.to_vec()) {
                return Err(not_restorable(
                    "restore would not be able to put back the header of a part exactly",
                ));
            }
        }
        let new = self.planner.text;
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

fn header_after(tree: &MessageTree<'_>, part: PartId, group: Group) -> Option<Vec<u8>> {
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
