//! What the comparison of two copies of a mail needs to know of each, in a few hundred bytes.
//!
//! Two copies have no bytes in common for certain: each went another way ([`transport`](super::transport)), and parts of it may
//! have been detached, scrubbed, deleted or cut off since. A [`MailCopy`] therefore describes the content: the fields that the
//! author wrote, and each part by the digest of its decoded content. A part that a program has replaced by a note is a
//! [`Missing`] part: it contains what the note says about the content.

use std::collections::HashSet;

use base64::Engine as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::fields::{Digests, each_field, is_content};
use super::plain::{Digest, hash};
use super::transport::{
    PlainText, Role, addresses, date_text, field_text, is_kept_by_pipermail, role, subject_text,
    with_addresses_shown,
};
use crate::external_body::{
    Claim, ExternalBody, Followed, Form, LENGTH_FIELD, Reading, SENTENCE, Scrap, divided, name_of,
    scrubbed, text_of_part,
};
use crate::mime::{Header, MediaType, PartId, PartKind, TransferEncoding, Tree, scan};
use crate::policy::{Follow, Policy};
use crate::span::Span;

/// Number of DKIM signatures of one mail that are tried.
const MOST_SIGNATURES: usize = 8;

/// A longer header is compared as it is, so that each copy of such a mail stays.
const LONGEST_HEADER: usize = 1 << 20;

/// A mail as one mailbox has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct MailCopy {
    pub(super) header: CopyHeader,
    /// The parts in the order of the mail, without empty texts and the footers of lists.
    pub(super) items: Vec<Item>,
    /// Digest of the text around the parts of multiparts.
    pub(super) asides: u64,
    /// Whether Mailman made one text of the mail. The text around the parts is gone then.
    pub(super) is_scrubbed: bool,
    /// Whether the end of the mail is missing: a multipart is not closed, or the last part ends within a base64 group.
    pub(super) is_cut: bool,
    /// Whether a signature in the mail proves that its body did not change on the way.
    pub(super) is_signature_intact: bool,
    /// Number of footers that lists added.
    pub(super) footers: u32,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct CopyHeader {
    pub(super) from: u64,
    /// Digests of the addresses in From.
    pub(super) from_addresses: Digests,
    pub(super) date: u64,
    pub(super) subject: u64,
    /// Digests of the addresses in Cc.
    pub(super) copied_to: Digests,
    /// Whether a list sent the copy. Mailman removes from Cc who gets the mail from the list.
    pub(super) is_of_list: bool,
    /// Digests of all other fields of the author.
    pub(super) others: Digests,
    /// Digests of the fields that only the copy of the sender has.
    pub(super) of_sender: Digests,
    /// Digests of the identifiers in In-Reply-To and References.
    pub(super) references: Digests,
    /// Whether the header has only the fields that Pipermail keeps.
    pub(super) is_reduced: bool,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Item {
    Content(Box<Leaf>),
    Missing(Box<Missing>),
    /// An enclosed message.
    Enclosed {
        /// Digest of its header.
        header: u64,
        /// Number of the items after this one that are its parts.
        items: usize,
    },
}

/// A part with its content.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Leaf {
    pub(super) essence: u64,
    pub(super) name: Option<u64>,
    /// Length of the decoded content, in bytes.
    pub(super) size: u64,
    /// Length of the body as it is encoded, with line feeds, in bytes.
    pub(super) encoded: u64,
    /// Digest of the decoded content.
    pub(super) content: Digest,
    /// Digest of a text as it is compared: see [`PlainText`].
    pub(super) text: Option<Digest>,
    /// Digest of the same text with hidden addresses shown.
    pub(super) shown: Option<Digest>,
    /// The length of the content if the mail ends in the part: of the text as it is compared, otherwise of the decoded content.
    pub(super) cut_at: Option<u64>,
    /// Digests of the first bytes, for the lengths that were requested.
    pub(super) prefixes: Vec<(u64, Digest)>,
}

/// What a note says about the content of the part that it replaces. `None` is what the note does not say.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Missing {
    /// Digest of the decoded content. It alone proves the content.
    pub(super) content: Option<Digest>,
    /// Length of the decoded content, in bytes.
    pub(super) size: Option<u64>,
    /// Length of the encoded body, in bytes (X-Apple-Content-Length).
    pub(super) encoded: Option<u64>,
    pub(super) name: Option<u64>,
    pub(super) essence: Option<u64>,
    pub(super) is_message: bool,
}

impl MailCopy {
    /// Describes a mail in its [plain form](super::plain::plain). `lengths` are those at which cut copies of the mail end
    /// ([`cut_at`](Self::cut_at)): whether such a copy is the start of this one can only be seen with the content at hand.
    pub(crate) fn of(plain: &[u8], lengths: &[u64]) -> Self {
        let policy = Policy {
            follow: Followed::all(),
            ..Policy::default()
        };
        let tree = &scan(plain, &policy.limits.scan());
        let reading = Reading {
            beside: Some(Follow::Apple),
            ..policy.reading()
        };
        let mut describer = Describer {
            tree,
            lengths,
            items: Vec::new(),
            footers: 0,
            is_scrubbed: false,
            cut: cut_part(tree),
        };
        describer.describe(&reading);
        let is_cut = describer.cut.is_some();
        Self {
            header: CopyHeader::of(tree),
            asides: asides(tree),
            items: describer.items,
            is_scrubbed: describer.is_scrubbed,
            footers: describer.footers,
            is_cut,
            is_signature_intact: has_intact_signature(tree),
        }
    }

    /// The length at which this copy ends, if its end is missing.
    pub(crate) fn cut_at(&self) -> Option<u64> {
        match self.items.last()? {
            Item::Content(leaf) => leaf.cut_at,
            Item::Missing(_) | Item::Enclosed { .. } => None,
        }
    }

    /// Whether the end of the mail is missing.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Number of parts that a note replaces.
    pub(crate) fn missing(&self) -> usize {
        let is_missing = |item: &&Item| matches!(item, Item::Missing(_));
        self.items.iter().filter(is_missing).count()
    }

    /// How complete the copy is compared with another one that has the same content, the most complete first: a complete
    /// structure, then an intact signature, then fewer footers of lists. The sender can make a copy worse in this order, but not
    /// better than the original.
    pub(crate) fn rank(&self) -> impl Ord + use<> {
        (self.is_cut, !self.is_signature_intact, self.footers)
    }
}

/// What all copies of a mail have in common: the digest of the Message-ID. Without one, that of From, Date, Subject and the
/// first text.
pub(crate) fn copy_key(plain: &[u8]) -> Digest {
    let header = Header::of_message(plain, LONGEST_HEADER);
    let id = header.fields.value(plain, "Message-ID").map(identifier);
    if let Some(id) = id.filter(|id| !id.is_empty()) {
        return Digest::of(&[b"id ", id.as_slice()].concat());
    }
    let copy = MailCopy::of(plain, &[]);
    let mut words = b"no id ".to_vec();
    let CopyHeader {
        from,
        date,
        subject,
        ..
    } = copy.header;
    for digest in [from, date, subject] {
        words.extend(digest.to_be_bytes());
    }
    let text = copy.items.iter().find_map(|item| match item {
        Item::Content(leaf) => leaf.text,
        Item::Missing(_) | Item::Enclosed { .. } => None,
    });
    words.extend(format!("{text:?}").bytes());
    Digest::of(&words)
}

/// An identifier without `<>` and white space. Archives of lists hide the `@` in it.
fn identifier(value: &[u8]) -> Vec<u8> {
    let value = crate::mime::header::unfold(value);
    let shown = with_addresses_shown(value.trim_ascii());
    let is_kept = |byte: &u8| !byte.is_ascii_whitespace() && !matches!(byte, b'<' | b'>');
    shown.iter().copied().filter(is_kept).collect()
}

impl CopyHeader {
    fn of(tree: &Tree<'_>) -> Self {
        let original = tree.original;
        let fields = tree.fields(PartId::ROOT);
        let value = |name| fields.value(original, name).unwrap_or_default();
        let (mut others, mut of_sender, mut references) = (Vec::new(), Vec::new(), Vec::new());
        let recipients: HashSet<String> = ["To", "Cc"]
            .into_iter()
            .flat_map(|name| addresses(value(name)))
            .collect();
        let mut is_reduced = true;
        for field in fields.iter(original) {
            let name = field.name.of(original).trim_ascii().to_ascii_lowercase();
            let value = field.value.of(original);
            let role = role(&name);
            is_reduced &= role == Role::Transport || is_kept_by_pipermail(&name);
            if role == Role::Transport || role == Role::Content {
                continue;
            }
            if matches!(name.as_slice(), b"in-reply-to" | b"references") {
                let ids = value.split(|byte| byte.is_ascii_whitespace() || *byte == b'>');
                let ids = ids.map(identifier).filter(|id| id.contains(&b'@'));
                references.extend(ids.map(|id| hash(&id)));
            }
            // A list sets the address for replies to its own, which is among the recipients.
            let replies_to = || addresses(value);
            if name == b"reply-to" && replies_to().iter().all(|it| recipients.contains(it)) {
                continue;
            }
            let digest = || {
                let text = field_text(value);
                hash(&[name.as_slice(), b":", text.as_bytes()].concat())
            };
            match (role, name.as_slice()) {
                (Role::Sender, _) => of_sender.push(digest()),
                (_, b"from" | b"date" | b"subject" | b"cc") => {}
                _ => others.push(digest()),
            }
        }
        let from = value("From");
        let digests =
            |addresses: Vec<String>| addresses.iter().map(|it| hash(it.as_bytes())).collect();
        Self {
            copied_to: digests(addresses(value("Cc"))),
            is_of_list: fields.first(original, "List-Id").is_some(),
            from: hash(field_text(from).as_bytes()),
            from_addresses: digests(addresses(from)),
            date: hash(date_text(value("Date")).as_bytes()),
            subject: hash(subject_text(value("Subject")).as_bytes()),
            others: others.into_iter().collect(),
            of_sender: of_sender.into_iter().collect(),
            references: references.into_iter().collect(),
            is_reduced,
        }
    }
}

/// The text before the first part of each multipart and after the last one. Programs write a sentence for readers without MIME
/// there.
fn asides(tree: &Tree<'_>) -> u64 {
    let mut all = Vec::new();
    for id in tree.ids() {
        if let PartKind::Multipart(multipart) = &tree.part(id).content {
            for span in [multipart.preamble, multipart.epilogue] {
                let text = PlainText::of(span.of(tree.original)).text;
                if !text.is_empty() && !text.starts_with(b"This is a ") {
                    all.extend(text);
                    all.push(0);
                }
            }
        }
    }
    hash(&all)
}

/// The part in which the mail ends although it is not complete.
fn cut_part(tree: &Tree<'_>) -> Option<PartId> {
    let last = tree.ids().next_back()?;
    let is_open = |id: PartId| match &tree.part(id).content {
        PartKind::Multipart(multipart) => multipart.close.is_none(),
        _ => false,
    };
    let part = tree.part(last);
    let is_torn = part.encoding == TransferEncoding::Base64
        && part.content == PartKind::Leaf
        && complete_groups(part.body.of(tree.original)).is_none();
    let mut around = std::iter::successors(Some(last), |id| tree.part(*id).parent);
    (is_torn || around.any(is_open)).then_some(last)
}

/// Returns `None` if base64 ends within a group of four symbols.
fn complete_groups(body: &[u8]) -> Option<()> {
    let is_symbol = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let symbols = body.iter().filter(is_symbol).count();
    let is_padded = body.trim_ascii_end().ends_with(b"=");
    (symbols % 4 == 0 || is_padded).then_some(())
}

struct Describer<'d> {
    tree: &'d Tree<'d>,
    lengths: &'d [u64],
    items: Vec<Item>,
    footers: u32,
    is_scrubbed: bool,
    cut: Option<PartId>,
}

impl Describer<'_> {
    fn describe(&mut self, reading: &Reading) {
        let tree = self.tree;
        let notes = scrubbed(tree, reading, &HashSet::new());
        let mut notes = notes.iter().peekable();
        // Enclosed messages: the place of the item, and the end of the message.
        let mut enclosed: Vec<(usize, usize)> = Vec::new();
        let mut until = 0;
        for id in tree.ids() {
            let part = tree.part(id);
            while let Some((at, _)) = enclosed.pop_if(|(_, end)| part.span.start >= *end) {
                self.close(at);
            }
            // A note about a message or a multipart is read as one.
            if id != PartId::ROOT && part.span.start < until {
                continue;
            }
            if tree.is_message(id) && id != PartId::ROOT {
                // The part around the message has its type; the message is its only child.
                let mut all = Vec::new();
                let mut see = |field: &[u8]| all.extend_from_slice(field);
                each_field(
                    tree.original,
                    tree.fields(id),
                    |name| !is_content(name),
                    &mut see,
                );
                enclosed.push((self.items.len(), part.span.end));
                self.items.push(Item::Enclosed {
                    header: hash(&all),
                    items: 0,
                });
            }
            let mut of_part = Vec::new();
            while let Some(note) = notes.next_if(|note| note.part == id) {
                of_part.push(note);
            }
            if let Some(missing) = self.missing(id, reading) {
                self.items.push(Item::Missing(Box::new(missing)));
                until = part.span.end;
                continue;
            }
            match &part.content {
                PartKind::Multipart(_) | PartKind::Message => {}
                PartKind::Leaf | PartKind::Opaque(_) => self.leaf(id, &of_part),
            }
        }
        while let Some((at, _)) = enclosed.pop() {
            self.close(at);
        }
    }

    fn close(&mut self, at: usize) {
        let count = self.items.len() - at - 1;
        if let Some(Item::Enclosed { items, .. }) = self.items.get_mut(at) {
            *items = count;
        }
    }

    fn leaf(&mut self, id: PartId, notes: &[&ExternalBody<'_>]) {
        let tree = self.tree;
        let part = tree.part(id);
        let body = part.body.of(tree.original);
        if !notes.is_empty()
            && let Some(text) = text_of_part(tree, id)
        {
            let origin = match part.encoding.is_encoded() {
                true => 0,
                false => part.body.start,
            };
            let spans = notes.iter().map(|note| {
                let note = note.scrubbed.as_ref().map(|it| it.note);
                let note = note.unwrap_or(Span::empty_at(origin));
                let [start, end] = [note.start, note.end].map(|at| at.saturating_sub(origin));
                (Span::new(start, end), true)
            });
            let spans: Vec<(Span, bool)> = spans.collect();
            self.is_scrubbed = true;
            for (note, span) in divided(&text, Span::new(0, text.len()), &spans) {
                let note = note.and_then(|at| notes.get(at));
                match note.and_then(|note| Some((note, note.scrubbed.as_ref()?))) {
                    Some((note, scrubbed)) => {
                        let missing = of_mailman(note, scrubbed.scrap);
                        self.items.push(Item::Missing(Box::new(missing)));
                    }
                    None => {
                        let mut leaf = self.described(span.of(&text), true, false);
                        leaf.essence = hash(b"text/plain");
                        self.push(leaf);
                    }
                }
            }
            return;
        }
        let is_cut = self.cut == Some(id);
        let body = match is_cut {
            true => without_torn_boundary(tree, id, body),
            false => body,
        };
        let content = match part.encoding.decode(body) {
            Some(content) => content,
            None if is_cut => decoded_start(body).into(),
            None => body.into(),
        };
        let name = name_of(tree.original, tree.fields(id)).text();
        let mut leaf = self.described(&content, part.essence.starts_with("text/"), is_cut);
        if is_cut && part.separator.is_empty() {
            // The mail ends in the header of the part.
            leaf.cut_at = Some(0);
        }
        leaf.essence = hash(part.essence.as_bytes());
        leaf.name = name.map(|name| hash(name.as_bytes()));
        leaf.encoded = body.len() as u64;
        self.push(leaf);
    }

    /// A part that is empty, or only a footer, is no part of the mail.
    fn push(&mut self, leaf: Leaf) {
        let is_empty = leaf.text == Some(Digest::of(b"")) && leaf.name.is_none();
        if !is_empty || leaf.cut_at.is_some() {
            self.items.push(Item::Content(Box::new(leaf)));
        }
    }

    fn described(&mut self, content: &[u8], is_text: bool, is_cut: bool) -> Leaf {
        let plain = is_text.then(|| PlainText::of(content));
        self.footers += plain.as_ref().map_or(0, |plain| plain.footers);
        let compared = plain
            .as_ref()
            .map_or(content, |plain| plain.text.as_slice());
        let prefix = |length: &u64| {
            let end = usize::try_from(*length).ok()?;
            Some((*length, Digest::of(compared.get(..end)?)))
        };
        Leaf {
            essence: 0,
            name: None,
            size: content.len() as u64,
            encoded: 0,
            content: Digest::of(content),
            text: plain.as_ref().map(|plain| Digest::of(&plain.text)),
            shown: plain
                .as_ref()
                .map(|plain| Digest::of(&with_addresses_shown(&plain.text))),
            cut_at: is_cut.then_some(compared.len() as u64),
            prefixes: self.lengths.iter().filter_map(prefix).collect(),
        }
    }

    fn missing(&self, id: PartId, reading: &Reading) -> Option<Missing> {
        let tree = self.tree;
        let body = ExternalBody::read(tree, id, reading)?;
        let named = |fields| name_of(tree.original, fields).text();
        let own = || named(tree.fields(id));
        if let Claim::Note(note) = &body.claim {
            return Some(Missing {
                content: Digest::of_hex(&note.sha256),
                ..Missing::default()
            });
        }
        let essence = body.declared.as_ref().map(|it| it.essence.to_string());
        let (essence, name) = match body.form {
            Form::Apple => {
                let length = tree.value(id, LENGTH_FIELD)?.trim_ascii();
                let length = str::from_utf8(length).ok()?.parse().ok()?;
                return Some(Missing {
                    encoded: Some(length),
                    essence: essence.map(|it| hash(it.as_bytes())),
                    name: own().map(|it| hash(it.as_bytes())),
                    ..Missing::default()
                });
            }
            Form::Detached => match self.quoted(id) {
                Some(quoted) => quoted,
                None => (essence, named(&body.phantom.fields)),
            },
            Form::Enclosure => (essence, own()),
            Form::Sympa => (None, body.file_name.clone()),
            Form::ExternalBody if body.access_type.eq_ignore_ascii_case("x-mutt-deleted") => {
                (essence, named(&body.phantom.fields))
            }
            _ => return None,
        };
        Some(Missing {
            size: body.size,
            is_message: essence
                .as_deref()
                .is_some_and(|it| it.starts_with("message/")),
            essence: known_essence(essence.as_deref()),
            name: name.map(|it| hash(it.as_bytes())),
            ..Missing::default()
        })
    }

    /// Type and name in the header that Thunderbird quotes in a part whose attachment was deleted.
    fn quoted(&self, id: PartId) -> Option<(Option<String>, Option<String>)> {
        let original = self.tree.original;
        let body = self.tree.part(id).body;
        let at = memchr::memmem::find(body.of(original), SENTENCE)?;
        let start = body.start + at + SENTENCE.len();
        let rest = Span::new(start, body.end).of(original);
        let blank = rest.len() - rest.trim_ascii_start().len();
        let header = Header::read(original, Span::new(start + blank, body.end), LONGEST_HEADER);
        let value = header.fields.value(original, "Content-Type")?;
        let essence = MediaType::parse(value).essence.to_string();
        Some((Some(essence), name_of(original, &header.fields).text()))
    }
}

/// A type that says nothing about the content is not compared.
fn known_essence(essence: Option<&str>) -> Option<u64> {
    let known = essence.filter(|it| *it != "application/octet-stream");
    known.map(|it| hash(it.as_bytes()))
}

fn of_mailman(note: &ExternalBody<'_>, scrap: Scrap) -> Missing {
    let essence = note.declared.as_ref().map(|it| it.essence.to_string());
    Missing {
        size: note.size,
        name: note.file_name.as_ref().map(|name| hash(name.as_bytes())),
        essence: known_essence(essence.as_deref()),
        is_message: scrap == Scrap::Message,
        ..Missing::default()
    }
}

/// A mail that ends within a boundary line has a piece of that line in its last part.
fn without_torn_boundary<'b>(tree: &Tree<'_>, id: PartId, body: &'b [u8]) -> &'b [u8] {
    let body = body.trim_ascii_end();
    let start = memchr::memrchr(b'\n', body).map_or(0, |at| at + 1);
    let line = body.get(start..).unwrap_or_default();
    let mut around = std::iter::successors(Some(id), |id| tree.part(*id).parent);
    let is_torn = line.starts_with(b"-")
        && around.any(|id| {
            let boundary = tree.part(id).content.boundary().unwrap_or_default();
            let whole = [b"--", boundary, b"--"].concat();
            whole.starts_with(line)
        });
    match is_torn {
        true => body.get(..start).unwrap_or_default(),
        false => body,
    }
}

/// Decodes base64 up to the last complete group.
fn decoded_start(body: &[u8]) -> Vec<u8> {
    let is_symbol = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut symbols: Vec<u8> = body.iter().copied().filter(is_symbol).collect();
    symbols.truncate(symbols.len() / 4 * 4);
    let engine = base64::engine::general_purpose::STANDARD_NO_PAD;
    engine.decode(&symbols).unwrap_or_default()
}

/// Whether a DKIM signature contains the digest of the body. The signature itself needs a key from the network and is not
/// verified: the copies that are compared have the same content, and only one with its original bytes has this digest.
fn has_intact_signature(tree: &Tree<'_>) -> bool {
    let original = tree.original;
    let body = original.get(tree.root().body.start..).unwrap_or_default();
    let fields = tree.fields(PartId::ROOT);
    let signatures = fields
        .iter(original)
        .filter(|field| field.is(original, "DKIM-Signature"));
    signatures.take(MOST_SIGNATURES).any(|field| {
        let value: String = String::from_utf8_lossy(field.value.of(original))
            .split_whitespace()
            .collect();
        let tag = |name: &str| {
            let mut tags = value.split(';').filter_map(|tag| tag.split_once('='));
            tags.find(|(tag, _)| *tag == name).map(|(_, value)| value)
        };
        let is_sha256 = tag("a").is_some_and(|algorithm| algorithm.ends_with("-sha256"));
        let form = tag("c").and_then(|form| form.split_once('/'));
        let is_relaxed = form.is_some_and(|(_, body)| body == "relaxed");
        let digest = || Sha256::digest(canonical_body(body, is_relaxed));
        // With a length, the signature covers only the start of the body.
        is_sha256
            && tag("l").is_none()
            && tag("bh").is_some_and(|expected| {
                base64::engine::general_purpose::STANDARD.encode(digest()) == expected
            })
    })
}

/// The body as DKIM signs it (RFC 6376 section 3.4).
fn canonical_body(body: &[u8], is_relaxed: bool) -> Vec<u8> {
    let mut canonical = Vec::with_capacity(body.len() + body.len() / 16);
    let mut end = 0;
    for line in body.split(|byte| *byte == b'\n') {
        let start = canonical.len();
        if is_relaxed {
            let mut is_blank = false;
            for &byte in line.trim_ascii_end() {
                match byte {
                    b' ' | b'\t' => is_blank = true,
                    byte => {
                        if std::mem::take(&mut is_blank) {
                            canonical.push(b' ');
                        }
                        canonical.push(byte);
                    }
                }
            }
        } else {
            canonical.extend_from_slice(line);
        }
        let is_empty = canonical.len() == start;
        canonical.extend_from_slice(b"\r\n");
        if !is_empty {
            end = canonical.len();
        }
    }
    canonical.truncate(end);
    if canonical.is_empty() && !is_relaxed {
        canonical.extend_from_slice(b"\r\n");
    }
    canonical
}
