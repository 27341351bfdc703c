//! What [`changes`](super::changes) needs to know of a message, in a few hundred bytes.

use std::collections::HashMap;

use percent_encoding::percent_decode;
use serde::{Deserialize, Serialize};

use super::plain::{Digest, hash};
use crate::engine::forms::Opened;
use crate::external_body::{
    Claim, Follow, Followed, Form, Referent, separator_at_end, text_of_part,
};
use crate::ledger::Ledger;
use crate::link::data::DataUrl;
use crate::mime::{Content, PartId, Tree, scan};
use crate::plan::documents::{Documents, Piece};
use crate::plan::{Item as PlannedItem, Plan};
use crate::policy::Policy;

/// A `data:` URL that decodes to more is compared as it is written.
const LARGEST_DATA: u64 = 512 << 20;

/// Fields of a part that embody rewrites or adds where it changes the part.
const REWRITTEN_FIELDS: [&str; 7] = [
    "Content-Transfer-Encoding",
    "Content-MD5",
    "Content-Length",
    "Lines",
    "Content-ID",
    "Content-Location",
    "MIME-Version",
];

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Description {
    key: u64,
    /// Digest of the header fields that embody never changes, in their order.
    pub(super) header: u64,
    /// Parts, headers of enclosed messages and text between parts, in the order of the message.
    pub(super) items: Vec<Item>,
    /// Content-IDs of multiparts and messages that say where they are from.
    pub(super) located: Vec<u64>,
    /// Number of multiparts without a closing boundary line.
    pub(super) unclosed: usize,
    /// Sum of the digests of the fields of parts that do not describe content.
    pub(super) other_fields: u64,
    /// The message after its parts were opened that mail programs cannot read, such as `winmail.dat`.
    pub(super) opened: Option<Box<Self>>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Item {
    /// Text before the first part of a multipart, or after the last one.
    Aside(u64),
    /// The header of an enclosed message.
    Message(u64),
    Part(Box<Part>),
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Part {
    /// The number of the part as IMAP counts, for reports.
    pub(super) number: String,
    pub(super) essence: String,
    /// Length of the decoded content, in bytes.
    pub(super) size: u64,
    /// Digest of the fields that describe the content, without [`REWRITTEN_FIELDS`].
    pub(super) fields: u64,
    /// Digest of the decoded content.
    pub(super) content: Option<Digest>,
    /// Digest of the content with a line feed at the end of each line but the last, if that is different.
    pub(super) text: Option<Digest>,
    /// What is left of a text without the notes in it, piece by piece. Empty if the text has no notes.
    pub(super) pieces: Vec<u64>,
    pub(super) notes: usize,
    pub(super) document: Option<Document>,
    pub(super) reference: Option<Reference>,
    pub(super) id: Option<u64>,
    pub(super) has_location: bool,
}

/// An HTML or CSS document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Document {
    /// Digest of the text around the values of links, with runs of white space as one blank.
    pub(super) frame: Digest,
    pub(super) links: Vec<Link>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Link {
    /// The absolute URL, or the reference itself if there is no base.
    Url(u64),
    /// What a `data:` URL contains.
    Data(Digest),
    /// The Content-ID that a `cid:` URL names.
    Part(u64),
}

/// A part that stands for content that is elsewhere.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Reference {
    /// Digests of the content, if the part proves it (a note of `embody detach`) or contains it (a `data:` URL).
    pub(super) of: Vec<Digest>,
    /// The media type that the content must have, if the part says it.
    pub(super) essence: Option<String>,
    /// Whether `embody detach` left it.
    pub(super) is_note: bool,
    /// One of several references to one object.
    pub(super) is_rival: bool,
}

impl Description {
    /// Describes a message in its [plain form](super::plain::plain).
    pub(crate) fn of(message: &[u8]) -> Self {
        let mut description = Self::of_parts(message);
        let mut policy = Policy {
            follow: Followed::none()
                .with(Follow::Winmail)
                .with(Follow::RtfBody)
                .with(Follow::Uuencode),
            ..Policy::default()
        };
        policy.limits.growth = u64::MAX >> 2;
        let mut ledger = Ledger::new(&policy.limits, message.len());
        let opened = Opened::default().further(message, &policy, &mut ledger, "");
        let opened = opened.made.map(|made| Box::new(Self::of_parts(&made)));
        description.opened = opened;
        description
    }

    fn of_parts(message: &[u8]) -> Self {
        let mut policy = Policy {
            follow: Followed::all(),
            ..Policy::default()
        };
        policy.limits.growth = u64::MAX >> 2;
        let tree = &scan(message, &policy.limits.scan());
        let plan = Plan::of_references(tree, &policy, &policy.reading(), None, message.len());
        let mut planned: HashMap<PartId, Vec<usize>> = HashMap::new();
        for (at, item) in plan.references.iter().enumerate() {
            planned.entry(item.body.part).or_default().push(at);
        }
        let mut describer = Describer {
            tree,
            references: &plan.references,
            planned,
            is_rival: vec![false; plan.references.len()],
            documents: Documents::new(tree, &policy),
            ledger: Ledger::new(&policy.limits, message.len()),
        };
        // The first of several sources stands for all of them.
        for rival in plan.rivals.iter().flat_map(|group| group.iter().skip(1)) {
            if let Some(is_rival) = describer.is_rival.get_mut(*rival) {
                *is_rival = true;
            }
        }
        let mut description = Self {
            key: 0,
            header: 0,
            items: Vec::new(),
            located: Vec::new(),
            unclosed: 0,
            other_fields: 0,
            opened: None,
        };
        let mut until = 0;
        for id in tree.ids() {
            let span = tree.part(id).span;
            // A note that stands for a message or a multipart is read as one, and is none.
            if id == PartId::ROOT || span.start >= until {
                let is_reference = describer.add(id, &mut description);
                until = if is_reference { span.end } else { until };
            }
        }
        let id = tree.value(PartId::ROOT, "Message-ID").and_then(identifier);
        description.key = id.unwrap_or(description.header);
        description
    }

    /// What a message has in common with those that embody makes of it: its Message-ID, or its header if it has none.
    pub(crate) fn key(&self) -> u64 {
        self.key
    }
}

struct Describer<'d> {
    tree: &'d Tree<'d>,
    references: &'d [PlannedItem<'d>],
    planned: HashMap<PartId, Vec<usize>>,
    is_rival: Vec<bool>,
    documents: Documents<'d>,
    ledger: Ledger,
}

impl Describer<'_> {
    /// Returns whether the part stands for content that is elsewhere.
    fn add(&mut self, id: PartId, to: &mut Description) -> bool {
        let (tree, part) = (self.tree, self.tree.part(id));
        if tree.is_message(id) {
            let header = self.fields_hash(id, |name| !is_content(name));
            match id == PartId::ROOT {
                true => to.header = header,
                false => to.items.push(Item::Message(header)),
            }
        } else {
            let others = |name: &[u8]| !is_content(name) && !is_of_programs(name);
            to.other_fields = to.other_fields.wrapping_add(self.fields_sum(id, others));
        }
        if part.content != Content::Leaf && tree.value(id, "Content-Location").is_some() {
            let id = tree.value(id, "Content-ID").and_then(identifier);
            to.located.extend(id);
        }
        let planned = self.planned.get(&id).map_or(&[][..], Vec::as_slice);
        let mut items = planned.iter().filter_map(|at| self.references.get(*at));
        let is_reference = items.any(is_whole_part);
        match &part.content {
            Content::Multipart(multipart) if !is_reference => {
                let mut aside = |span: crate::span::Span| {
                    let text = span.of(tree.original).trim_ascii();
                    if !text.is_empty() {
                        to.items.push(Item::Aside(hash(text)));
                    }
                };
                aside(multipart.preamble);
                aside(multipart.epilogue);
                to.unclosed += usize::from(multipart.close.is_none());
            }
            Content::Message if !is_reference => {}
            _ => {
                let part = self.part(id);
                to.items.push(Item::Part(Box::new(part)));
            }
        }
        is_reference
    }

    fn part(&mut self, id: PartId) -> Part {
        let (tree, entity) = (self.tree, self.tree.part(id));
        let body = entity.body.of(tree.original);
        let decoded = entity.encoding.decode(body);
        let content = decoded.as_deref().unwrap_or(body);
        let mut part = Part {
            number: tree.number(id),
            essence: entity.essence.clone(),
            size: content.len() as u64,
            fields: self.fields_hash(id, |name| {
                is_content(name) && !REWRITTEN_FIELDS.iter().any(|it| is(name, it))
            }),
            content: Some(Digest::of(content)),
            text: text_digest(content),
            id: tree.value(id, "Content-ID").and_then(identifier),
            has_location: tree.value(id, "Content-Location").is_some(),
            ..Part::default()
        };
        let planned = self.planned.get(&id).map_or(&[][..], Vec::as_slice);
        let mut notes = Vec::new();
        for &at in planned {
            let Some(item) = self.references.get(at) else {
                continue;
            };
            match &item.body.scrubbed {
                Some(scrubbed) => notes.push(scrubbed.note),
                None if !is_whole_part(item) => part.notes += 1,
                None => {
                    part.reference = Some(Reference {
                        of: objects(item),
                        is_note: matches!(item.body.claim, Claim::Note(_)),
                        essence: item.body.declared.as_ref().map(|it| it.essence.to_string()),
                        is_rival: self.is_rival.get(at).copied().unwrap_or_default(),
                    });
                }
            }
        }
        if !notes.is_empty()
            && let Some(text) = text_of_part(tree, id)
        {
            let origin = match entity.encoding.is_encoded() {
                true => 0,
                false => entity.body.start,
            };
            part.notes += notes.len();
            let mut from = 0;
            let ends = notes.iter().map(|note| {
                let [start, end] = [note.start, note.end].map(|at| at.saturating_sub(origin));
                (start, end)
            });
            for (start, end) in ends.chain([(text.len(), text.len())]) {
                part.pieces.extend(piece(text.get(from..start)));
                from = end;
            }
        } else if entity.essence == "text/plain" {
            part.pieces.extend(piece(Some(content)));
        }
        part.document = self.document(id);
        part
    }

    fn document(&mut self, id: PartId) -> Option<Document> {
        let (mut frame, mut links) = (Vec::new(), Vec::new());
        let mut see = |piece: Piece<'_>| match piece {
            Piece::Text(text) => push_frame(&mut frame, text),
            Piece::Link(url) => {
                frame.push(0);
                links.push(link(&url));
            }
        };
        let is_read = self.documents.is_document(id)
            && self.documents.read(id, &mut self.ledger, &mut see).is_ok();
        is_read.then(|| Document {
            frame: Digest::of(&frame),
            links,
        })
    }

    fn fields_hash(&self, id: PartId, counts: impl Fn(&[u8]) -> bool) -> u64 {
        let mut all = Vec::new();
        self.each_field(id, counts, |field| all.extend_from_slice(field));
        hash(&all)
    }

    fn fields_sum(&self, id: PartId, counts: impl Fn(&[u8]) -> bool) -> u64 {
        let mut sum = 0_u64;
        self.each_field(id, counts, |field| sum = sum.wrapping_add(hash(field)));
        sum
    }

    /// Names in lower case, values with runs of white space as one blank: programs fold fields again.
    fn each_field(&self, id: PartId, counts: impl Fn(&[u8]) -> bool, mut see: impl FnMut(&[u8])) {
        let original = self.tree.original;
        for field in self.tree.fields(id).iter(original) {
            let name = field.name.of(original).trim_ascii();
            if counts(name) {
                let mut bytes = name.to_ascii_lowercase();
                bytes.push(b':');
                let value = field.value.of(original);
                for word in value.split(u8::is_ascii_whitespace) {
                    if !word.is_empty() {
                        bytes.push(b' ');
                        bytes.extend_from_slice(word);
                    }
                }
                bytes.push(b'\n');
                see(&bytes);
            }
        }
    }
}

fn objects(item: &PlannedItem<'_>) -> Vec<Digest> {
    if let Claim::Note(note) = &item.body.claim {
        return Digest::of_hex(&note.sha256).into_iter().collect();
    }
    let Ok(Referent::Data(url)) = &item.body.target else {
        return Vec::new();
    };
    let content = DataUrl::parse(url).and_then(|data| data.decode(LARGEST_DATA));
    let content = content.unwrap_or_default();
    std::iter::once(Digest::of(&content))
        .chain(text_digest(&content))
        .collect()
}

/// A text with a note of Mailman's in it stays; so does a document that names a file of a cloud.
fn is_whole_part(item: &PlannedItem<'_>) -> bool {
    item.body.scrubbed.is_none() && !matches!(item.body.form, Form::Hosted(_))
}

fn is(name: &[u8], other: &str) -> bool {
    name.eq_ignore_ascii_case(other.as_bytes())
}

/// Whether a field describes content, so that embody may change it in a message header.
fn is_content(name: &[u8]) -> bool {
    let start = name.get(..b"content-".len()).unwrap_or_default();
    start.eq_ignore_ascii_case(b"content-") || is(name, "MIME-Version") || is(name, "Lines")
}

/// Whether a field of a part is a note of Thunderbird's, Apple Mail's or embody's own, which is removed with what it refers to.
fn is_of_programs(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    [&b"x-mozilla-"[..], b"x-embody", b"x-apple-"]
        .iter()
        .any(|start| name.starts_with(start))
}

fn identifier(value: &[u8]) -> Option<u64> {
    let id = value.trim_ascii();
    let id = id.strip_prefix(b"<").unwrap_or(id);
    let id = id.strip_suffix(b">").unwrap_or(id).trim_ascii();
    (!id.is_empty()).then(|| hash(id))
}

fn link(url: &str) -> Link {
    let scheme = |name: &str| {
        let (start, behind) = url.split_at_checked(name.len())?;
        start.eq_ignore_ascii_case(name).then_some(behind)
    };
    if let Some(id) = scheme("cid:") {
        // A place in the part is no other part.
        let id = id.split('#').next().unwrap_or_default();
        let id: Vec<u8> = percent_decode(id.as_bytes()).collect();
        return Link::Part(hash(id.trim_ascii()));
    }
    let decoded = scheme("data:")
        .and_then(|_| DataUrl::parse(url.as_bytes()).ok())
        .and_then(|data| data.decode(LARGEST_DATA).ok());
    match decoded {
        Some(content) => Link::Data(Digest::of(&content)),
        None => Link::Url(hash(url.as_bytes())),
    }
}

/// The digest of a text with a line feed at the end of each line but the last. Returns `None` if that is the content itself.
fn text_digest(content: &[u8]) -> Option<Digest> {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let ends = content.last().is_some_and(is_end);
    if !ends && memchr::memchr(b'\r', content).is_none() {
        return None;
    }
    let length = content.iter().rposition(|byte| !is_end(byte));
    let content = content.get(..length.map_or(0, |last| last + 1))?;
    let mut text = Vec::with_capacity(content.len());
    for (at, byte) in content.iter().enumerate() {
        match byte {
            b'\r' if content.get(at + 1) == Some(&b'\n') => {}
            b'\r' => text.push(b'\n'),
            byte => text.push(*byte),
        }
    }
    Some(Digest::of(&text))
}

/// Texts that embody divides get other line ends at their edges. Returns `None` for an empty text.
fn piece(text: Option<&[u8]>) -> Option<u64> {
    let mut words = Vec::new();
    for line in text?.split(|byte| matches!(byte, b'\r' | b'\n')) {
        let line = line.trim_ascii_end();
        // A note takes the separator before it along, which may follow the text in the same line.
        let line = separator_at_end(line).map_or(line, |at| line.get(..at).unwrap_or(line));
        if !line.is_empty() {
            words.extend_from_slice(line);
            words.push(b'\n');
        }
    }
    (!words.is_empty()).then(|| hash(&words))
}

fn push_frame(frame: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        match byte.is_ascii_whitespace() {
            true if frame.last() == Some(&b' ') => {}
            true => frame.push(b' '),
            false => frame.push(byte),
        }
    }
}
