//! Matches each part of the old message with a part of the new message.

use std::collections::{HashMap, HashSet};

use super::super::description::{Description, Document, Item, Link, Part, Reference};
use super::super::plain::Digest;
use super::outcome::{Altered, Changes};
use crate::mime::media_type;

/// The transparent picture that `--trackers blank` inserts in place of any tracking picture. So a link to it is
/// accepted, whatever URL the old message has.
use crate::engine::BLANK_PICTURE;

pub(super) struct Comparison<'c> {
    new: &'c [Item],
    /// Index of the first item of the new message that was not yet matched.
    at: usize,
    parts_by_id: HashMap<u64, &'c Part>,
    /// For each content, the index of the last item with it. If this index was passed already, no search for the content is
    /// needed.
    last: HashMap<Digest, usize>,
    /// Items of the new message to which no item of the old message corresponds. They must be content that embody
    /// inserted.
    extra: Vec<&'c Item>,
    /// Content-IDs of multiparts and messages that have a Content-Location. A URL in the old message may have become a `cid:`
    /// link to one of them.
    located: HashSet<u64>,
    linked: HashSet<u64>,
    /// References of the old message whose content should be in the new one.
    filled: Vec<Part>,
    /// Whether a document of the old message links to files in cloud storage. The links stay when the files are inserted, so
    /// nothing in the new message shows which parts are these files.
    has_hosted: bool,
    /// Number of references whose content embody inserted. The items in `extra` must be at least as many.
    expected: usize,
    /// Number of Eudora files that may be among the items in `extra`, because the header of the old message names them.
    files_of_header: usize,
    pub(super) changes: Changes,
}

impl<'c> Comparison<'c> {
    pub(super) fn of(new: &'c Description) -> Self {
        let (mut parts_by_id, mut last) = (HashMap::new(), HashMap::new());
        for (at, item) in new.items.iter().enumerate() {
            if let Item::Part(part) = item {
                if let Some(id) = part.id {
                    parts_by_id.entry(id).or_insert(&**part);
                }
                for digest in contents(part) {
                    last.insert(digest, at);
                }
            }
        }
        Self {
            new: &new.items,
            at: 0,
            parts_by_id,
            last,
            extra: Vec::new(),
            located: new.located.iter().copied().collect(),
            linked: HashSet::new(),
            filled: Vec::new(),
            has_hosted: false,
            expected: 0,
            files_of_header: 0,
            changes: Changes::default(),
        }
    }

    pub(super) fn find(&mut self, old: &Item) -> Result<(), Altered> {
        let Item::Part(part) = old else {
            let rest = self.new.iter().skip(self.at);
            let place = rest.clone().position(|new| new == old);
            return self.pass(place).ok_or(Altered::Around);
        };
        self.has_hosted |= part.notes > 0 && part.document.is_some();
        if let Some(reference) = &part.reference {
            let mut objects = contents(part).chain(reference.of.iter().copied());
            if objects.any(|it| self.may_stand(it)) && self.find_part(part)? {
                return Ok(());
            }
            if !reference.is_rival {
                self.changes.filled += 1;
                self.expected += 1;
                self.filled.push((**part).clone());
            }
            return Ok(());
        }
        let may_stand = part.notes == 0 || contents(part).any(|it| self.may_stand(it));
        if may_stand && self.find_part(part)? || self.find_pieces(part) {
            return Ok(());
        }
        Err(altered(part))
    }

    /// Returns whether this content can still be found in the new message, among the items that are not matched yet.
    fn may_stand(&self, content: Digest) -> bool {
        self.last.get(&content).is_some_and(|last| *last >= self.at)
    }

    /// Marks an item of the new message as matched. `place` counts from the first item that is not matched. The items
    /// before it have no counterpart in the old message, so they are added to `extra`.
    fn pass(&mut self, place: Option<usize>) -> Option<()> {
        let end = self.at + place?;
        self.extra.extend(self.new.get(self.at..end)?);
        self.at = end + 1;
        Some(())
    }

    fn find_part(&mut self, old: &Part) -> Result<bool, Altered> {
        let mut trouble = None;
        for (place, item) in self.new.iter().skip(self.at).enumerate() {
            let Item::Part(new) = item else { continue };
            match self.compare(old, new) {
                Ok(Some(changes)) => {
                    self.changes.add(changes);
                    self.pass(Some(place));
                    return Ok(true);
                }
                Ok(None) => {}
                Err(altered) => {
                    trouble.get_or_insert(altered);
                }
            }
        }
        trouble.map_or(Ok(false), Err)
    }

    /// Compares a part of the old message with a part of the new one. Returns `None` if they are unrelated, so that the search
    /// for the old part continues.
    fn compare(&mut self, old: &Part, new: &Part) -> Result<Option<Changes>, Altered> {
        if old.is_flattened && !(new.is_flattened && old.fields == new.fields) {
            // Embody divides a Eudora message into its texts and files. If only one text results, the content is unchanged
            // and only its type becomes text/plain.
            let is_text = new.is_flattened && new.essence == "text/plain";
            let is_only_type = is_text && old.content == new.content;
            return Ok(is_only_type.then_some(Changes {
                unmarked: 1,
                ..Changes::default()
            }));
        }
        let is_same = old.content == new.content || contents(old).any(|it| is_content(new, it));
        let changes = match (&old.reference, &new.reference) {
            (None, Some(reference)) if contents(old).any(|it| reference.of.contains(&it)) => {
                Changes {
                    detached: 1,
                    ..Changes::default()
                }
            }
            (Some(reference), None) if reference.of.iter().any(|it| is_content(new, *it)) => {
                if !has_fields_of(reference, new) {
                    return Err(Altered::PartFields {
                        number: old.number.clone(),
                    });
                }
                Changes {
                    restored: usize::from(reference.is_note),
                    filled: usize::from(!reference.is_note),
                    ..Changes::default()
                }
            }
            _ if is_same && old.fields == new.fields && old.other_fields == new.other_fields => {
                // The part is unchanged. This is also the case for a document with links to files in cloud storage: the files
                // are inserted as separate parts.
                return Ok(Some(Changes::default()));
            }
            // References often have equal bodies, so an equal body does not prove that this is the same reference. If the
            // fields differ, the search continues.
            (Some(_), _) if is_same => return Ok(None),
            _ if is_same => {
                return Err(Altered::PartFields {
                    number: old.number.clone(),
                });
            }
            _ => {
                let (Some(old_document), Some(new_document)) = (&old.document, &new.document)
                else {
                    return Ok(None);
                };
                if old.fields != new.fields || old_document.frame != new_document.frame {
                    return Ok(None);
                }
                let changes = self.compare_links(old_document, new_document);
                return changes.map(Some).ok_or_else(|| Altered::Link {
                    number: old.number.clone(),
                });
            }
        };
        Ok(Some(changes))
    }

    fn compare_links(&mut self, old: &Document, new: &Document) -> Option<Changes> {
        let mut changes = Changes::default();
        if old.links.len() != new.links.len() {
            return None;
        }
        for (old, new) in old.links.iter().zip(&new.links) {
            match (old, new) {
                _ if old == new => {}
                (Link::Url(_), Link::Part(id)) if self.located.contains(id) => {
                    changes.embedded += 1;
                }
                (_, Link::Part(id)) => {
                    let part = self.parts_by_id.get(id)?;
                    let is_blank = part.content == Some(Digest::of(BLANK_PICTURE));
                    let is_meant = match old {
                        Link::Data(content, _) => is_content(part, *content),
                        Link::Url(_) => part.has_location,
                        Link::Part(_) => false,
                    };
                    (is_meant || is_blank).then_some(())?;
                    self.linked.insert(*id);
                    changes.embedded += 1;
                }
                _ => return None,
            }
        }
        // The documents differ although no link was embedded, so a relative link was made absolute.
        if changes.embedded == 0 {
            changes.resolved = 1;
        }
        Some(changes)
    }

    /// Compares the pieces into which notes divide a text. If the content of a note was inserted, the new message has the text
    /// before and after the note as separate parts.
    fn find_pieces(&mut self, old: &Part) -> bool {
        if old.notes == 0 && !old.is_flattened {
            return false;
        }
        let mut wanted = old.pieces.as_slice();
        let mut notes_left = 0;
        let (before, extra) = (self.at, self.extra.len());
        let mut at = self.at;
        while !wanted.is_empty() {
            match self.new.get(at) {
                Some(Item::Part(new)) if !(new.pieces.is_empty() || new.is_flattened) => {
                    match wanted.strip_prefix(new.pieces.as_slice()) {
                        Some(rest) => {
                            (wanted, notes_left) = (rest, notes_left + new.notes);
                        }
                        None => self.extra.extend(self.new.get(at)),
                    }
                }
                Some(item) => self.extra.push(item),
                None => {
                    self.at = before;
                    self.extra.truncate(extra);
                    return false;
                }
            }
            at += 1;
        }
        self.at = at;
        let filled = old.notes.saturating_sub(notes_left);
        self.changes.filled += filled;
        self.expected += filled;
        self.files_of_header += old.files_of_header;
        if old.is_flattened {
            self.changes.unmarked = 1;
        }
        filled > 0 || old.is_flattened
    }

    pub(super) fn finish(&mut self) -> Result<(), Altered> {
        self.extra.extend(&self.new[self.at..]);
        // Inserted content can itself be a message, a multipart, or a document with pictures. So there can be more additional
        // items than references, and only their minimum number is checked.
        if self.expected > 0 {
            return if self.expected <= self.extra.len() {
                self.check_filled()
            } else {
                Err(Altered::Around)
            };
        }
        let extra: Vec<&Part> = self
            .extra
            .iter()
            .map(|item| match item {
                Item::Part(part) => Some(&**part),
                Item::Aside(_) | Item::Message(_) => None,
            })
            .collect::<Option<_>>()
            .ok_or(Altered::More)?;
        for part in &extra {
            // An additional part can be an embedded style sheet. The pictures to which it links were embedded with it, so they
            // are expected, too.
            let links = part.document.iter().flat_map(|document| &document.links);
            self.linked.extend(links.filter_map(|link| match link {
                Link::Part(id) => Some(*id),
                Link::Url(_) | Link::Data(..) => None,
            }));
        }
        for part in extra {
            if part.id.is_some_and(|id| self.linked.contains(&id)) {
                continue;
            }
            if self.files_of_header > 0 {
                self.files_of_header -= 1;
                self.changes.filled += 1;
                continue;
            }
            if self.has_hosted && part.has_location {
                self.changes.filled += 1;
                continue;
            }
            return Err(Altered::More);
        }
        Ok(())
    }
}

impl Comparison<'_> {
    /// Checks that the new message contains the content of each reference, as far as the reference describes it. Each reference
    /// needs a part of its own, in the order of the references. If the content is a message or a multipart, it cannot be
    /// checked.
    fn check_filled(&self) -> Result<(), Altered> {
        let is_whole = |item: &&Item| !matches!(item, Item::Part(_));
        let has_composite = self.extra.iter().any(is_whole);
        let mut parts = self.extra.iter().filter_map(|item| match item {
            Item::Part(part) => Some(&**part),
            Item::Message(_) | Item::Aside(_) => None,
        });
        for old in &self.filled {
            let Some(reference) = &old.reference else {
                continue;
            };
            let essence = reference.essence.as_deref();
            if essence.is_some_and(media_type::is_composite) {
                if has_composite || !self.extra.is_empty() {
                    continue;
                }
                return Err(altered(old));
            }
            let mut rest = parts.clone();
            match rest.find(|new| is_filled(reference, new)) {
                Some(_) => parts = rest,
                None if has_composite && reference.of.is_empty() => {}
                None => return Err(altered(old)),
            }
        }
        Ok(())
    }
}

/// Returns whether a part can be the content of a reference.
fn is_filled(reference: &Reference, new: &Part) -> bool {
    let is_content_of = |it: &Digest| is_content(new, *it);
    new.reference.is_none()
        && (reference.of.is_empty() || reference.of.iter().any(is_content_of))
        && match reference.essence.as_deref() {
            None | Some("application/octet-stream") => true,
            Some(essence) => essence == new.essence,
        }
        && has_fields_of(reference, new)
}

/// Returns whether an inserted part has the right fields: all fields of the reference that are kept, and otherwise only fields
/// that embody adds.
fn has_fields_of(reference: &Reference, new: &Part) -> bool {
    let is_there = |it| new.content_fields.contains(it) || new.other_fields.contains(it);
    let is_known = |it| reference.fields.contains(it) || new.added_fields.contains(it);
    let mut new_fields = new.content_fields.iter().chain(new.other_fields.iter());
    reference.fields.iter().all(is_there)
        && new_fields.all(is_known)
        && (reference.media_type.iter()).all(|it| new.media_type.contains(it))
}

fn altered(part: &Part) -> Altered {
    Altered::Part {
        number: part.number.clone(),
        essence: part.essence.clone(),
        size: part.size,
    }
}

/// Returns the digests of the content of a part, with its line endings as they are and converted to line feeds. Content in a
/// store or in another copy can have either form.
fn contents(part: &Part) -> impl Iterator<Item = Digest> {
    [part.content, part.text].into_iter().flatten()
}

fn is_content(part: &Part, digest: Digest) -> bool {
    contents(part).any(|it| it == digest)
}
