//! Describes the body of a mail as a list of items: its parts, and the starts and ends of the multiparts and messages around
//! them.

mod part;
mod truncation;

use std::collections::{BTreeSet, HashSet};

use self::part::{
    charset_of, decoded, fields_of_part, has_two_names, is_plain_text, is_readable, name_of_part,
    stray_lines,
};
use self::truncation::{End, without_torn_boundary};
use super::fields::each_field;
use super::item::{CutPlace, Item, Leaf, NoteFacts, Spot, Start};
use super::list::Lists;
use super::note::{Notes, description_of};
use super::plain::Digest;
use super::plain_text::{Footers, PlainText};
use super::spelling::with_addresses_shown;
use crate::engine::external_body::{ExternalBody, text_of_part};
use crate::engine::forms::mailman::{divided, scrubbed};
use crate::engine::policy::ReferenceParse;
use crate::mime::{MessageTree, PartId, PartKind, TransferEncoding};
use crate::span::Span;

/// Maximum number of items that are compared one by one if copies are discarded. If a mail has more, it equals only a mail with
/// exactly the same items. A copy of it that lacks a part is then treated as a different mail and is kept. This limits the size
/// of the index of all mails. To fill the missing parts of one mail, all of its items are compared: only a few mails are in
/// memory then, and the limit for the parts of a mail applies.
const MOST_ITEMS: usize = 1000;

/// The body of a mail, as a list of items that can be compared with another copy.
pub(super) struct MailBody {
    pub(super) items: Vec<Item>,
    /// The part that each item describes, in the order of the items. Empty if the mail is compared as a whole.
    pub(super) spots: Vec<Spot>,
    pub(super) footers: Footers,
    pub(super) is_scrubbed: bool,
    pub(super) is_cut: bool,
}

impl MailBody {
    pub(super) fn of(
        tree: &MessageTree<'_>,
        (reading, notes): (&ReferenceParse, Notes),
        lists: &Lists,
        places: &[CutPlace],
    ) -> Self {
        let mut describer = Describer {
            tree,
            lists,
            places,
            notes,
            items: Vec::new(),
            spots: Vec::new(),
            footers: Footers::default(),
            is_scrubbed: false,
            has_bare_last: false,
            end: End::of(tree),
        };
        describer.describe(reading);
        describer.remove_footer_part();
        let mut body = Self {
            items: describer.items,
            spots: describer.spots,
            footers: describer.footers,
            is_scrubbed: describer.is_scrubbed,
            is_cut: describer.end.is_cut,
        };
        if notes == Notes::Known && body.items.len() > MOST_ITEMS {
            body.unite();
        }
        body
    }

    /// Replaces all items with a single one, whose digest is that of all items. So it equals only the item of a mail with
    /// exactly the same items.
    fn unite(&mut self) {
        let all = format!("{:?} {}", self.items, self.is_cut);
        self.items = vec![Item::Content(Box::new(Leaf {
            fields: Digest::default(),
            essence: Digest::default(),
            name: None,
            description: None,
            size: 0,
            encoded: 0,
            content: Digest::of(all.as_bytes()),
            text: None,
            is_exact: false,
            shown: None,
            charset: None,
            has_two_names: false,
            cut_at: None,
            prefixes: Vec::new(),
        }))];
        self.is_cut = false;
        self.spots.clear();
    }
}

struct Describer<'d> {
    tree: &'d MessageTree<'d>,
    lists: &'d Lists,
    places: &'d [CutPlace],
    notes: Notes,
    items: Vec<Item>,
    spots: Vec<Spot>,
    footers: Footers,
    is_scrubbed: bool,
    /// Whether the last part has only the header fields that a mailing list writes for its footer. Only such a part can
    /// be removed as a footer.
    has_bare_last: bool,
    end: End,
}

impl Describer<'_> {
    fn describe(&mut self, reading: &ReferenceParse) {
        let tree = self.tree;
        let all_notes = scrubbed(tree, reading, &HashSet::new());
        let mut notes = all_notes.iter().peekable();
        // The multiparts and messages that contain the current part, the innermost last.
        let mut around: Vec<PartId> = Vec::new();
        let mut until = 0;
        for id in tree.ids() {
            let part = tree.part(id);
            while let Some(inner) =
                around.pop_if(|inner| !tree.ancestors(id).any(|it| it == *inner))
            {
                self.close(inner);
            }
            let mut of_part = Vec::new();
            while let Some(note) = notes.next_if(|note| note.part == id) {
                of_part.push(note);
            }
            // A note (the text that a program left in place of a part) is one item, even if it replaces a message or a
            // multipart. So the parts inside it are skipped.
            if id != PartId::ROOT && part.span.start < until {
                continue;
            }
            let is_last = self.end.within == Some(id);
            let is_message = part.content == PartKind::Message;
            if !is_last && let Some(missing) = NoteFacts::of_part(tree, id, (reading, self.notes)) {
                self.push(Item::Missing(Box::new(missing)), (id, 0));
                until = part.span.end;
            } else if is_message || matches!(part.content, PartKind::Multipart(_)) {
                let start = self.start(id);
                self.push(Item::Start(start), (id, 0));
                if is_message && self.notes == Notes::All {
                    let content = part.body.of(tree.original);
                    if let Some(spot) = self.spots.last_mut() {
                        spot.message = Some(Digest::of(content.trim_ascii_end()));
                    }
                }
                around.push(id);
            } else {
                self.leaf(id, &of_part);
            }
        }
        while let Some(inner) = around.pop() {
            self.close(inner);
        }
    }

    fn push(&mut self, item: Item, (part, note): (PartId, usize)) {
        self.items.push(item);
        self.spots.push(Spot {
            part,
            note,
            message: None,
        });
    }

    fn start(&self, id: PartId) -> Start {
        let tree = self.tree;
        let part = tree.part(id);
        let before = match &part.content {
            PartKind::Multipart(multipart) => self.aside(multipart.preamble),
            _ => {
                let mut header = Vec::new();
                if let Some(message) = part.children.first() {
                    let mut see = |field: &[u8]| header.extend_from_slice(field);
                    each_field(tree.original, tree.fields(*message), |_| true, &mut see);
                    header.extend(stray_lines(tree, *message));
                }
                Digest::of(&header)
            }
        };
        Start {
            fields: fields_of_part(tree, id, false),
            before,
            essence: Digest::of(part.essence.as_bytes()),
            name: name_of_part(tree, id),
            is_message: part.content == PartKind::Message,
        }
    }

    fn close(&mut self, id: PartId) {
        if self.end.open.contains(&id) {
            return;
        }
        let behind = match &self.tree.part(id).content {
            PartKind::Multipart(multipart) if multipart.overflow.is_some() => {
                Digest::of(multipart.epilogue.of(self.tree.original))
            }
            PartKind::Multipart(multipart) => self.aside(multipart.epilogue),
            _ => Digest::default(),
        };
        self.push(Item::End(behind), (id, 0));
    }

    /// Returns the digest of a text before or after the parts of a multipart.
    fn aside(&self, span: Span) -> Digest {
        let text = PlainText::of(span.of(self.tree.original), &Lists::default());
        Digest::of(&text.whole)
    }

    fn leaf(&mut self, id: PartId, notes: &[&ExternalBody<'_>]) {
        let tree = self.tree;
        let part = tree.part(id);
        let body = part.body.of(tree.original);
        // Mailman's archive turns a whole mail into a single text, with notes in place of its attachments. So a text
        // that is only one of several parts does not come from this archive.
        let may_be_scrubbed = id == PartId::ROOT && !notes.is_empty() && is_plain_text(tree, id);
        if may_be_scrubbed && self.scrubbed_leaf(id, notes) {
            return;
        }
        let is_cut = self.end.within == Some(id);
        let body = if is_cut {
            without_torn_boundary(tree, id, body)
        } else {
            body
        };
        let decoded = decoded(tree, id, body, is_cut);
        let content = decoded.as_deref().unwrap_or(body);
        let is_text = part.essence.starts_with("text/") && is_readable(tree, id);
        let is_plain = is_plain_text(tree, id);
        let lists = if is_plain {
            self.lists
        } else {
            &Lists::default()
        };
        let plain = is_text.then(|| {
            if is_plain {
                PlainText::of(content, lists)
            } else {
                PlainText::of_file(content)
            }
        });
        if let Some(plain) = &plain {
            self.footers.extend(&plain.footers);
        }
        let compared = plain
            .as_ref()
            .map_or(content, |plain| plain.whole.as_slice());
        let prefix = |length: u64| {
            let end = usize::try_from(length).ok()?;
            Some((length, Digest::of(compared.get(..end)?)))
        };
        let places = self
            .places
            .iter()
            .filter(|place| place.item == self.items.len());
        let cut_at = is_cut.then_some(compared.len() as u64);
        let name = name_of_part(tree, id);
        let is_file =
            is_text && !is_plain && (name.is_some() || tree.has_disposition(id, "attachment"));
        let lengths: BTreeSet<u64> = places.map(|place| place.length).chain(cut_at).collect();
        let leaf = Leaf {
            fields: fields_of_part(tree, id, decoded.is_none()),
            essence: Digest::of(part.essence.as_bytes()),
            name,
            description: description_of(tree.original, tree.fields(id)),
            size: content.len() as u64,
            encoded: body.len() as u64,
            content: Digest::of(content),
            text: plain.as_ref().map(|plain| Digest::of(plain.own())),
            is_exact: is_file && part.encoding == TransferEncoding::Base64,
            shown: plain.as_ref().filter(|_| is_plain).map(shown),
            charset: charset_of(tree, id, content),
            has_two_names: has_two_names(tree, id),
            cut_at,
            prefixes: lengths.into_iter().filter_map(prefix).collect(),
        };
        self.push(Item::Content(Box::new(leaf)), (id, 0));
        // A mailing list writes only these fields into the header of its footer part. A part with other fields is not such a
        // footer.
        let mut names = tree.fields(id).iter(tree.original);
        self.has_bare_last = !part.has_stray_lines()
            && names.all(|field| {
                let declares = [
                    "Content-Type",
                    "Content-Disposition",
                    "Content-Transfer-Encoding",
                    "MIME-Version",
                ];
                declares.iter().any(|name| field.is(tree.original, name))
            });
    }

    /// Adds the items of a text into which Mailman turned several parts: texts, and notes in place of the other parts. Adds
    /// nothing and returns `false` if a note contains other words than those of Mailman.
    fn scrubbed_leaf(&mut self, id: PartId, notes: &[&ExternalBody<'_>]) -> bool {
        let tree = self.tree;
        let part = tree.part(id);
        let Some(text) = text_of_part(tree, id) else {
            return false;
        };
        let origin = if part.encoding.is_encoded() {
            0
        } else {
            part.body.start
        };
        let spans: Vec<Span> = notes
            .iter()
            .map(|note| {
                let span = note
                    .text_note
                    .as_ref()
                    .map_or(Span::empty_at(origin), |it| it.note);
                let [start, end] = [span.start, span.end].map(|at| at.saturating_sub(origin));
                Span::new(start, end)
            })
            .collect();
        let missing = notes
            .iter()
            .zip(&spans)
            .map(|(note, span)| NoteFacts::of_mailman(note, span.of(&text), self.notes));
        let Some(missing) = missing.collect::<Option<Vec<NoteFacts>>>() else {
            return false;
        };
        let cuts: Vec<(Span, bool)> = spans.into_iter().map(|span| (span, true)).collect();
        for (note, span) in divided(&text, Span::new(0, text.len()), &cuts) {
            if let Some((at, missing)) = note.and_then(|at| Some((at, missing.get(at)?))) {
                self.push(Item::Missing(Box::new(missing.clone())), (id, at));
                continue;
            }
            let content = span.of(&text);
            let plain = PlainText::of(content, self.lists);
            self.footers.extend(&plain.footers);
            if plain.own().is_empty() {
                continue;
            }
            let leaf = Leaf {
                fields: Digest::default(),
                essence: Digest::of(b"text/plain"),
                name: None,
                description: None,
                size: content.len() as u64,
                encoded: content.len() as u64,
                content: Digest::of(content),
                text: Some(Digest::of(plain.own())),
                is_exact: false,
                shown: Some(shown(&plain)),
                charset: charset_of(tree, id, content),
                has_two_names: false,
                cut_at: None,
                prefixes: Vec::new(),
            };
            self.push(Item::Content(Box::new(leaf)), (id, 0));
        }
        self.is_scrubbed = true;
        true
    }

    /// Removes the footer of a mailing list if it is a part. A list adds such a part if it cannot append the footer to the
    /// text. If the mail was not a multipart before, the list also added a multipart, which is removed, too.
    fn remove_footer_part(&mut self) {
        let is_mixed = self.tree.root().essence == "multipart/mixed";
        let [
            Item::Start(start),
            ..,
            Item::Content(last),
            Item::End(behind),
        ] = self.items.as_slice()
        else {
            return;
        };
        let nothing = Digest::of(b"");
        let has_words = last
            .shown
            .is_some_and(|[whole, _]| whole != Digest::of(b""));
        let is_only_footer = last.is_empty_text() && has_words && self.has_bare_last;
        if !is_mixed || !is_only_footer || last.cut_at.is_some() {
            return;
        }
        // A multipart that a list added has no parameter except the boundary, and no text before and after its parts.
        let is_bare =
            start.before == nothing && *behind == nothing && start.fields == start.essence;
        let footer = self.items.len() - 2;
        self.items.remove(footer);
        self.spots.remove(footer);
        // Counts the parts of the multipart, without the parts inside them. If only one is left, the list may have added the
        // multipart.
        let (mut depth, mut count) = (0, 0);
        for item in &self.items {
            match item {
                Item::Start(_) => depth += 1,
                Item::End(_) => depth -= 1,
                Item::Content(_) | Item::Missing(_) => {}
            }
            let is_part = match item {
                Item::Start(_) => depth == 2,
                Item::End(_) => false,
                Item::Content(_) | Item::Missing(_) => depth == 1,
            };
            count += usize::from(is_part);
        }
        if count == 1 && is_bare {
            self.items.remove(0);
            self.items.pop();
            self.spots.remove(0);
            self.spots.pop();
        }
    }
}

fn shown(plain: &PlainText) -> [Digest; 2] {
    [plain.whole.as_slice(), plain.own()].map(|text| Digest::of(&with_addresses_shown(text)))
}
