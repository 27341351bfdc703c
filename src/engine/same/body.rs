//! Describes the body of a mail as a list of items: its parts, and the starts and ends of the multiparts and messages around
//! them.

use std::collections::{BTreeSet, HashSet};

use base64::Engine as _;

use super::fields::{each_field, is_of_programs};
use super::fields_of_part::fields_of;
use super::item::{Item, Leaf, Missing, Place, Spot, Start};
use super::list::{Footers, Lists, PlainText};
use super::note::{Notes, description_of};
use super::plain::{Digest, hash};
use super::spelling::with_addresses_shown;
use super::transport::{Role, role};
use crate::engine::external_body::{ExternalBody, Reading, name_of, text_of_part};
use crate::engine::forms::mailman::{divided, scrubbed};
use crate::mime::charset::Charset;
use crate::mime::{MediaType, PartId, PartKind, TransferEncoding, Tree};
use crate::span::{Span, last_line};

/// Maximum number of items that are compared one by one. If a mail has more, it equals only a mail with exactly the same items.
/// A copy of it that lacks a part is then treated as a different mail and is kept.
const MOST_ITEMS: usize = 1000;

/// The body of a mail, as a list of items that can be compared with another copy.
pub(super) struct Body {
    pub(super) items: Vec<Item>,
    /// The part that each item describes, in the order of the items. Empty if the mail is compared as a whole.
    pub(super) spots: Vec<Spot>,
    pub(super) footers: Footers,
    pub(super) is_scrubbed: bool,
    pub(super) is_cut: bool,
}

impl Body {
    pub(super) fn of(
        tree: &Tree<'_>,
        (reading, notes): (&Reading, Notes),
        lists: &Lists,
        places: &[Place],
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
        if body.items.len() > MOST_ITEMS {
            body.unite();
        }
        body
    }

    /// Replaces all items with a single one, whose digest is that of all items. So it equals only the item of a mail with
    /// exactly the same items.
    fn unite(&mut self) {
        let all = format!("{:?} {}", self.items, self.is_cut);
        self.items = vec![Item::Content(Box::new(Leaf {
            fields: 0,
            essence: 0,
            name: None,
            description: None,
            size: 0,
            encoded: 0,
            content: Digest::of(all.as_bytes()),
            text: None,
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

/// The place at which a mail is truncated, if its end is missing.
struct End {
    /// Whether the mail is truncated.
    is_cut: bool,
    /// The part in which the mail is truncated.
    within: Option<PartId>,
    /// The multiparts and messages whose end is missing.
    open: BTreeSet<PartId>,
}

impl End {
    /// Determines whether a mail is truncated: its last part is in a multipart without a closing boundary line, or is base64
    /// that ends within a group of four symbols. If the mail ends in the header of a part, the rest of the header is unknown,
    /// so the mail is compared as if it were complete.
    fn of(tree: &Tree<'_>) -> Self {
        let mut end = Self {
            is_cut: false,
            within: None,
            open: BTreeSet::new(),
        };
        let Some(last) = tree.ids().next_back() else {
            return end;
        };
        let part = tree.part(last);
        if part.content != PartKind::Leaf || part.has_stray_lines() {
            return end;
        }
        let has_header = !tree.fields(last).is_empty();
        if has_header && part.separator.is_empty() {
            return end;
        }
        let body = part.body.of(tree.original);
        let is_torn = part.encoding == TransferEncoding::Base64
            && part.span.end == tree.root().span.end
            && is_base64(without_torn_boundary(tree, last, body)) == Some(false);
        let mut is_within = true;
        for above in tree.ancestors(last) {
            match &tree.part(above).content {
                // A multipart with an `overflow` has more parts than the parser reads. It is unknown whether its closing boundary
                // line exists, and a copy counts as cut only if that is certain. The unread bytes are compared as they are.
                PartKind::Multipart(multipart)
                    if multipart.close.is_some() || multipart.overflow.is_some() =>
                {
                    is_within = false;
                }
                PartKind::Multipart(_) => {
                    end.is_cut = true;
                    if is_within {
                        end.within = Some(last);
                    }
                    // All multiparts and messages between this multipart and the last part are inside it. So their ends
                    // are missing, too.
                    let between = tree.ancestors(last).take_while(|it| *it != above);
                    let is_open = |id: &PartId| !matches!(&tree.part(*id).content, PartKind::Multipart(it) if it.close.is_some());
                    end.open.extend(between.filter(is_open));
                    end.open.insert(above);
                }
                _ => {}
            }
        }
        if is_torn {
            end.is_cut = true;
            end.within = Some(last);
            end.open.extend(tree.ancestors(last));
        }
        end
    }
}

struct Describer<'d> {
    tree: &'d Tree<'d>,
    lists: &'d Lists,
    places: &'d [Place],
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
    fn describe(&mut self, reading: &Reading) {
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
            if !is_last && let Some(missing) = Missing::of_part(tree, id, (reading, self.notes)) {
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
                hash(&header)
            }
        };
        Start {
            fields: fields_of_part(tree, id, false),
            before,
            essence: hash(part.essence.as_bytes()),
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
                hash(multipart.epilogue.of(self.tree.original))
            }
            PartKind::Multipart(multipart) => self.aside(multipart.epilogue),
            _ => 0,
        };
        self.push(Item::End(behind), (id, 0));
    }

    /// Returns the digest of a text before or after the parts of a multipart.
    fn aside(&self, span: Span) -> u64 {
        let text = PlainText::of(span.of(self.tree.original), &Lists::default());
        hash(&text.whole)
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
        let lengths: BTreeSet<u64> = places.map(|place| place.length).chain(cut_at).collect();
        let leaf = Leaf {
            fields: fields_of_part(tree, id, decoded.is_none()),
            essence: hash(part.essence.as_bytes()),
            name: name_of_part(tree, id),
            description: description_of(tree.original, tree.fields(id)),
            size: content.len() as u64,
            encoded: body.len() as u64,
            content: Digest::of(content),
            text: plain.as_ref().map(|plain| Digest::of(plain.own())),
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
            .map(|(note, span)| Missing::of_mailman(note, span.of(&text), self.notes));
        let Some(missing) = missing.collect::<Option<Vec<Missing>>>() else {
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
                fields: 0,
                essence: hash(b"text/plain"),
                name: None,
                description: None,
                size: content.len() as u64,
                encoded: content.len() as u64,
                content: Digest::of(content),
                text: Some(Digest::of(plain.own())),
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
        let nothing = hash(b"");
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

fn name_of_part(tree: &Tree<'_>, id: PartId) -> Option<u64> {
    let name = name_of(tree.original, tree.fields(id)).text();
    name.map(|name| hash(name.as_bytes()))
}

/// Returns the digest of the charset of a text, if the text has characters other than ASCII. Archives of lists declare no
/// charset and use UTF-8, so a missing charset counts as UTF-8.
fn charset_of(tree: &Tree<'_>, id: PartId, content: &[u8]) -> Option<u64> {
    let value = tree.value(id, "Content-Type").unwrap_or_default();
    let media_type = MediaType::parse(value);
    let label = media_type.parameter("charset").unwrap_or(b"utf-8".into());
    (!content.is_ascii()).then(|| hash(&label.to_ascii_lowercase()))
}

/// Returns whether Content-Type and Content-Disposition contain different names.
fn has_two_names(tree: &Tree<'_>, id: PartId) -> bool {
    let named = |field: &str, parameter: &str| {
        let value = tree.value(id, field)?;
        MediaType::parse(value).name(parameter).text()
    };
    let names = [
        named("Content-Type", "name"),
        named("Content-Disposition", "filename"),
    ];
    matches!(names, [Some(one), Some(other)] if one != other)
}

/// Returns whether ASCII characters and line feeds in the bytes of a text mean these characters. In UTF-16 and UTF-7 they may
/// not, so such a text is compared as bytes.
fn is_readable(tree: &Tree<'_>, id: PartId) -> bool {
    let value = tree.value(id, "Content-Type").unwrap_or_default();
    match MediaType::parse(value).parameter("charset") {
        None => true,
        Some(label) => matches!(
            Charset::of_label(&label),
            Some(Charset::Superset | Charset::ShiftJis | Charset::DoubleByte)
        ),
    }
}

/// Returns whether a part is plain text that is shown in the mail, and not an attachment. Mailing lists append footers only to
/// such parts, and only such parts are in the monthly text of Mailman.
fn is_plain_text(tree: &Tree<'_>, id: PartId) -> bool {
    let value = tree.value(id, "Content-Type").unwrap_or_default();
    let removes_blanks = MediaType::parse(value).parameter("delsp").is_some();
    let disposition = tree.disposition(id);
    tree.part(id).essence == "text/plain"
        && tree.part(id).content == PartKind::Leaf
        && name_of_part(tree, id).is_none()
        && (disposition.is_empty() || disposition.eq_ignore_ascii_case(b"inline"))
        && is_readable(tree, id)
        && !removes_blanks
}

/// Returns the digest of the header fields that describe a part ([`fields_of`]). `with_encoding` includes the transfer
/// encoding, for a part that is compared in its encoded form.
fn fields_of_part(tree: &Tree<'_>, id: PartId, with_encoding: bool) -> u64 {
    let part = tree.part(id);
    let counts = |name: &[u8]| match name {
        b"content-transfer-encoding" => with_encoding,
        // For an enclosed message, only the fields that describe its content count. Its other fields are compared as its
        // header.
        _ if tree.is_message(id) => role(name) == Role::Content,
        _ => !is_of_programs(name),
    };
    let mut fields = fields_of((tree.original, tree.fields(id)), &part.essence, counts);
    if !tree.is_message(id) {
        fields.extend(stray_lines(tree, id));
    }
    hash(&fields)
}

/// Returns the whole header of a part if it contains malformed lines, because programs interpret the fields after them
/// differently.
fn stray_lines(tree: &Tree<'_>, id: PartId) -> Vec<u8> {
    let part = tree.part(id);
    if part.has_stray_lines() || !part.envelope.is_empty() {
        [
            part.envelope.of(tree.original),
            part.header.of(tree.original),
        ]
        .concat()
    } else {
        Vec::new()
    }
}

/// Decodes the body of a part. Returns `None` if it must be compared undecoded: several fields declare an encoding, or the body
/// is not valid in its encoding.
fn decoded(tree: &Tree<'_>, id: PartId, body: &[u8], is_cut: bool) -> Option<Vec<u8>> {
    let original = tree.original;
    let encodings = tree
        .fields(id)
        .iter(original)
        .filter(|field| field.is(original, "Content-Transfer-Encoding"));
    if encodings.count() > 1 {
        return None;
    }
    match tree.part(id).encoding {
        TransferEncoding::Unknown => None,
        TransferEncoding::Base64 => match is_base64(body)? {
            true => Some(tree.part(id).encoding.decode(body)?.into_owned()),
            false if is_cut => Some(decoded_start(body)),
            false => None,
        },
        TransferEncoding::QuotedPrintable if is_cut => {
            // If the mail is truncated within an escape sequence, the incomplete sequence is removed.
            let near = body.len().saturating_sub(2);
            let sign = memchr::memrchr(b'=', body).filter(|at| *at >= near);
            let whole = &body[..sign.unwrap_or(body.len())];
            Some(tree.part(id).encoding.decode(whole)?.into_owned())
        }
        encoding => Some(encoding.decode(body)?.into_owned()),
    }
}

/// Returns whether base64 consists of complete groups of four symbols. Returns `None` if the body contains anything other than
/// symbols, white space and padding at its end.
fn is_base64(body: &[u8]) -> Option<bool> {
    let mut symbols = 0_u64;
    let mut padding = 0_u64;
    for &byte in body {
        match byte {
            byte if byte.is_ascii_whitespace() => {}
            b'=' => padding += 1,
            byte if padding == 0
                && (byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')) =>
            {
                symbols += 1;
            }
            _ => return None,
        }
    }
    (padding <= 2).then_some((symbols + padding).is_multiple_of(4))
}

/// Decodes base64 up to its last complete byte.
fn decoded_start(body: &[u8]) -> Vec<u8> {
    let is_symbol = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut symbols: Vec<u8> = body.iter().copied().filter(is_symbol).collect();
    if symbols.len() % 4 == 1 {
        symbols.pop();
    }
    let config = base64::engine::GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent);
    let engine = base64::engine::GeneralPurpose::new(&base64::alphabet::STANDARD, config);
    engine.decode(&symbols).unwrap_or_default()
}

/// Removes the beginning of a boundary line from the last part of a mail that is truncated within this line.
fn without_torn_boundary<'b>(tree: &Tree<'_>, id: PartId, body: &'b [u8]) -> &'b [u8] {
    let body = body.trim_ascii_end();
    let line = last_line(body);
    let is_torn = line.starts_with(b"-")
        && tree.ancestors(id).any(|id| {
            let boundary = tree.part(id).content.boundary().unwrap_or_default();
            let whole = [b"--", boundary, b"--"].concat();
            whole.starts_with(line)
        });
    if is_torn {
        &body[..body.len() - line.len()]
    } else {
        body
    }
}
