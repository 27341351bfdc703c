//! Computes the description of a message: of its parts, references, documents and links.

use std::collections::HashMap;

use percent_encoding::percent_decode;

use super::super::fields::{
    Digests, describes_content, each_field, is, is_added, is_content, is_of_programs,
};
use super::super::plain::{Digest, hash};
use super::super::texts::{EudoraTexts, MOST_PIECES, piece, text_digest};
use super::{Description, Document, Item, Link, Part, Reference};
use crate::engine::external_body::{Claim, ExternalBody, Followed, Referent, text_of_part};
use crate::engine::field_names::{field_names, is_among};
use crate::engine::forms::eudora::notes::EudoraNote;
use crate::engine::ledger::Ledger;
use crate::engine::plan::documents::{Documents, Piece};
use crate::engine::plan::{Item as PlannedItem, Plan};
use crate::engine::policy::Policy;
use crate::link::data::DataUrl;
use crate::mime::header::Fields;
use crate::mime::{PartId, PartKind, Tree, scan};
use crate::span::Span;

/// Maximum decoded size of a `data:` URL in bytes. The URL of larger content is compared as text.
const LARGEST_DATA: u64 = 512 << 20;

/// Media types that embody gives to texts that Eudora marked as HTML or as rich text (`<x-html>`, `<x-rich>`).
const MARKED_BY_EUDORA: [&str; 2] = ["text/html", "text/enriched"];

impl Description {
    pub(super) fn of_parts(message: &[u8]) -> Self {
        let mut policy = Policy {
            follow: Followed::all(),
            ..Policy::default()
        };
        policy.limits.growth = u64::MAX >> 2;
        let tree = &scan(message, &policy.limits.scan());
        // Some mail programs store attachments in files next to the mailbox. Parts that refer to such a file are read as
        // references, too, because embody may have inserted the file.
        let reading = policy.reading().with_parts_in_files();
        let plan = Plan::of_references(tree, &policy, &reading, None, message.len());
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
        // Several references can be alternative sources of one content. Only the first is replaced with the content; the others
        // are marked as rivals.
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
        if let Some(part) = describer.flattened() {
            description.header = describer.fields_hash(PartId::ROOT, |name| !is_content(name));
            description.items.push(Item::Part(Box::new(part)));
            return description.with_key(tree);
        }
        let mut until = 0;
        for id in tree.ids() {
            let span = tree.part(id).span;
            // A note (the text that a program left in place of a part) is described as one part, even if it replaces a message
            // or a multipart. So the parts inside it are skipped.
            if id == PartId::ROOT || span.start >= until {
                let is_reference = describer.add(id, &mut description);
                until = if is_reference { span.end } else { until };
            }
        }
        description.with_key(tree)
    }

    fn with_key(mut self, tree: &Tree<'_>) -> Self {
        let id = tree.value(PartId::ROOT, "Message-ID").and_then(identifier);
        self.key = id.unwrap_or(self.header);
        self
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
    /// Adds a part to the description. Returns whether the part refers to content outside the message.
    fn add(&mut self, id: PartId, to: &mut Description) -> bool {
        let (tree, part) = (self.tree, self.tree.part(id));
        if tree.is_message(id) {
            let header = self.fields_hash(id, |name| !is_content(name));
            if id == PartId::ROOT {
                to.header = header
            } else {
                to.items.push(Item::Message(header))
            }
        } else {
            let others = |name: &[u8]| !is_content(name) && !is_of_programs(name);
            to.other_fields = to.other_fields.wrapping_add(self.fields_sum(id, others));
        }
        if part.content != PartKind::Leaf && tree.value(id, "Content-Location").is_some() {
            let id = tree.value(id, "Content-ID").and_then(identifier);
            to.located.extend(id);
        }
        let planned = self.planned.get(&id).map_or(&[][..], Vec::as_slice);
        let mut items = planned.iter().filter_map(|at| self.references.get(*at));
        let is_reference = items.any(is_whole_part);
        match &part.content {
            PartKind::Multipart(multipart) if !is_reference => {
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
            PartKind::Message if !is_reference => {}
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
            fields: self.fields_hash(id, describes_content),
            content_fields: self.content_fields(tree.fields(id), |_| true),
            added_fields: self.content_fields(tree.fields(id), is_added),
            other_fields: self.other_fields(id, tree.fields(id)),
            media_type: Digests::of_media_type(tree.value(id, "Content-Type")),
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
            match &item.body.text_note {
                Some(note) => notes.push(note.note),
                None if !is_whole_part(item) => part.notes += 1,
                None => {
                    let is_rival = self.is_rival.get(at).copied().unwrap_or_default();
                    part.reference = Some(self.reference(&item.body, is_rival));
                }
            }
        }
        if !notes.is_empty()
            && let Some(text) = text_of_part(tree, id)
        {
            let origin = if entity.encoding.is_encoded() {
                0
            } else {
                entity.body.start
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
            let texts = EudoraTexts::of(content, Span::new(0, content.len()));
            part.pieces = texts.pieces;
            part.notes += texts.notes;
        } else if MARKED_BY_EUDORA.contains(&entity.essence.as_str()) {
            part.pieces.extend(piece(Some(content)));
        }
        part.document = self.document(id);
        part
    }

    /// Describes a Eudora message: a single text with marked texts and notes. Returns `None` for any other message.
    fn flattened(&self) -> Option<Part> {
        let root = self.tree.part(PartId::ROOT);
        let is_whole = match &root.content {
            PartKind::Leaf => root.essence.starts_with("text/"),
            PartKind::Multipart(_) => self.tree.ids().count() == 1,
            PartKind::Message | PartKind::Opaque(_) => false,
        };
        let message = self.tree.original;
        let body = Span::new(root.body.start, message.len());
        let content = body.of(message);
        let texts = EudoraTexts::of(message, body);
        let files =
            EudoraNote::of_header(message, self.tree.fields(PartId::ROOT), MOST_PIECES).len();
        let was_multipart = root.content != PartKind::Leaf;
        let is_flattened = was_multipart || texts.notes > 0 || texts.is_marked || files > 0;
        (is_whole && is_flattened).then(|| Part {
            essence: root.essence.clone(),
            size: content.len() as u64,
            fields: self.fields_hash(PartId::ROOT, describes_content),
            content: Some(Digest::of(content)),
            text: text_digest(content),
            pieces: texts.pieces,
            notes: texts.notes,
            is_flattened: true,
            files_of_header: files,
            ..Part::default()
        })
    }

    fn reference(&self, body: &ExternalBody<'_>, is_rival: bool) -> Reference {
        let (tree, phantom) = (self.tree, &body.phantom.fields);
        let original = tree.original;
        let names = field_names(original, phantom.iter(original));
        let around = |name: &[u8]| {
            // Only fields of the part that stay when the content is inserted are compared. The name and the disposition
            // of the part may be replaced with those of the content.
            describes_content(name)
                && !is(name, "Content-Type")
                && !is(name, "Content-Disposition")
                && !is_among(&names, name)
        };
        let mut fields = Vec::new();
        let mut see = |field: &[u8]| fields.push(hash(field));
        each_field(original, tree.fields(body.part), around, &mut see);
        fields.extend(self.content_fields(phantom, |_| true).iter());
        for others in [phantom, tree.fields(body.part)] {
            fields.extend(self.other_fields(body.part, others).iter());
        }
        Reference {
            of: objects(body),
            is_note: matches!(body.claim, Claim::Note(_)),
            essence: body.declared.as_ref().map(|it| it.essence.to_string()),
            media_type: Digests::of_media_type(phantom.value(original, "Content-Type")),
            fields: fields.into_iter().collect(),
            is_rival,
        }
    }

    fn content_fields(&self, fields: &Fields, is_wanted: fn(&[u8]) -> bool) -> Digests {
        let counts =
            |name: &[u8]| describes_content(name) && !is(name, "Content-Type") && is_wanted(name);
        let mut digests = Vec::new();
        each_field(self.tree.original, fields, counts, &mut |field| {
            digests.push(hash(field))
        });
        digests.into_iter().collect()
    }

    /// Returns the digests of those fields in `fields` that do not describe content. `fields` is the header of the part, or the
    /// phantom header with the fields of the external content.
    fn other_fields(&self, id: PartId, fields: &Fields) -> Digests {
        let mut digests = Vec::new();
        if !self.tree.is_message(id) {
            let counts = |name: &[u8]| !is_content(name) && !is_of_programs(name);
            each_field(self.tree.original, fields, counts, &mut |field| {
                digests.push(hash(field))
            });
        }
        digests.into_iter().collect()
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
        let mut see = |field: &[u8]| all.extend_from_slice(field);
        each_field(self.tree.original, self.tree.fields(id), counts, &mut see);
        hash(&all)
    }

    fn fields_sum(&self, id: PartId, counts: impl Fn(&[u8]) -> bool) -> u64 {
        let mut sum = 0_u64;
        let mut see = |field: &[u8]| sum = sum.wrapping_add(hash(field));
        each_field(self.tree.original, self.tree.fields(id), counts, &mut see);
        sum
    }
}

fn objects(body: &ExternalBody<'_>) -> Vec<Digest> {
    if let Claim::Note(note) = &body.claim {
        return Digest::of_hex(&note.sha256).into_iter().collect();
    }
    let Ok(Referent::Data(url)) = &body.target else {
        return Vec::new();
    };
    let content = DataUrl::parse(url)
        .and_then(|data| data.decode(LARGEST_DATA))
        .unwrap_or_default();
    std::iter::once(Digest::of(&content))
        .chain(text_digest(&content))
        .collect()
}

/// Returns whether the whole part is replaced with the content of the reference. A text with a Mailman note, and a document
/// with a link to a file in cloud storage, are kept when the content is inserted.
fn is_whole_part(item: &PlannedItem<'_>) -> bool {
    !item.body.stands_in_text()
}

fn identifier(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii();
    let after = value.strip_prefix(b"<").unwrap_or(value);
    let id = after.strip_suffix(b">").unwrap_or(after).trim_ascii();
    (!id.is_empty()).then(|| hash(id))
}

fn link(url: &str) -> Link {
    let scheme = |name: &str| {
        let (start, behind) = url.split_at_checked(name.len())?;
        start.eq_ignore_ascii_case(name).then_some(behind)
    };
    if let Some(id) = scheme("cid:") {
        // The text after `#` in a `cid:` URL is a place inside the part, so it is not part of the Content-ID.
        let escaped = id.split('#').next().unwrap_or_default();
        let decoded: Vec<u8> = percent_decode(escaped.as_bytes()).collect();
        return Link::Part(hash(decoded.trim_ascii()));
    }
    let decoded = scheme("data:")
        .and_then(|_| DataUrl::parse(url.as_bytes()).ok())
        .and_then(|data| Some((data.decode(LARGEST_DATA).ok()?, data.media_type())));
    match decoded {
        Some((content, media_type)) => {
            let parameters: String = media_type
                .parameters
                .iter()
                .map(|(name, value)| format!(";{name}={value}"))
                .collect();
            let written = media_type.essence.clone() + &parameters;
            Link::Data(Digest::of(&content), hash(written.as_bytes()))
        }
        None => Link::Url(hash(url.as_bytes())),
    }
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
