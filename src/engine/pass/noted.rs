//! Replaces notes in texts by the attachments that they name. A mailing list server, such as Mailman, wrote a note in place of
//! each attachment. The text with the notes becomes a multipart of the pieces of the text and the attachments, in order. If the
//! text is a single note, the attachment replaces the text.
//!
//! All edits of one text form a group. The text around the notes stays, except for the lines with which the server separated
//! the notes from the text. If the text is in a multipart/mixed, the pieces become parts of this multipart, so that a later
//! run can replace the notes that this run left.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Filled, PassChange, PassStop, PendingReference, Put, too_deep};
use crate::edit::{Edit, Edits, Group};
use crate::engine::composite;
use crate::engine::content_source::ContentSource;
use crate::engine::external_body::reference::Conversion;
use crate::engine::external_body::{Scrap, TextNote, text_of_part};
use crate::engine::field_names::{field_names, is_among};
use crate::engine::forms::references::{divided, holds_notes};
use crate::engine::lengths::Lengths;
use crate::engine::new_part::{NewPart, PartText, StoredContent, charset_of, place_of};
use crate::engine::part_edits::overlapping;
use crate::engine::plan::PlanItem;
use crate::engine::report::{Detail, Reason, Refusal, Setting};
use crate::engine::substitute::Substitute;
use crate::engine::wrapped::ends_line;
use crate::mime::entity::{self, push_field};
use crate::mime::transfer::with_newlines;
use crate::mime::{Header, MediaType, PartId, media_type};
use crate::span::Span;

const AROUND: usize = 160;

impl PendingReference<'_, '_, '_> {
    /// Creates the new part for a note in a text. `convert` converts the stored content to the original attachment.
    pub(super) fn noted(
        &mut self,
        item: &PlanItem<'_>,
        convert: Conversion,
        obtained: ContentSource,
    ) -> Result<Put, PassStop> {
        let part = item.body.part;
        let Some(note) = &item.body.text_note else {
            return Err(too_many_parts(0).into());
        };
        // The content is escaped again, encoded and compared, so four times its length counts as work.
        let octets = obtained.content.len();
        self.session.ledger.work(octets.saturating_mul(4))?;
        self.open_text(part)?;
        let policy = self.session.policy();
        let mut stored = match obtained.content.origin.copy.clone() {
            Some(copy) => StoredContent::of_copy(&copy, obtained, policy)?,
            None => convert(&item.body, note, obtained, policy)?,
        };
        let mut told = self.told(item, &stored.obtained);
        let is_message = stored.obtained.essence == "message/rfc822";
        let (body, inside) = if !is_message {
            Default::default()
        } else {
            let obtained = stored.obtained.clone();
            let mut substitute = Substitute::prepare(self.tree, &item.body, obtained)?;
            self.composite(item, &mut substitute)?
        };
        told.add(inside);
        let Some(text) = self.progress.texts.get(&part) else {
            return Err(too_many_parts(0).into());
        };
        let number = text
            .notes
            .partition_point(|other| other.start < note.note.start);
        let mut boundaries = self.tree.boundaries_around(part);
        boundaries.push(&text.boundary);
        let encoded = if is_message {
            composite::fit(self.tree, part, &[], body, &boundaries)?
        } else {
            let behind = text.behind.get(&number).copied();
            let body = (self.tree.original, self.tree.part(part).body);
            let (_, within) = place_of(text.decoded.as_ref(), body);
            // Base64 is unaffected by empty lines after it, so it is used if empty lines of the text remain after the
            // attachment. Otherwise they would become part of its content.
            let is_followed = behind.is_some_and(|behind| {
                !behind.is_empty() && (text.is_whole || !text.is_nested || behind.end != within.end)
            });
            let octets = stored.obtained.content.bytes();
            let is_noted = stored.name.is_none()
                && stored.obtained.essence == "text/plain"
                && holds_notes(self.tree, octets);
            if is_noted {
                // The content is a text with Mailman notes of its own. A later run would change it if it were text of
                // the mail. So it gets a file name, and becomes an attachment, in which notes are not searched for.
                stored.name = Some(note.stored_name.clone());
                stored.fields = None;
            }
            stored.encode(is_followed, self.tree.newline, &boundaries)
        };
        let is_first = !self.progress.filled.contains_key(&part);
        let overhead = if is_first { text.overhead } else { 0 };
        let mut new = stored.written(encoded, self.tree.newline);
        new.number = number;
        new.growth = new.len() as i64 - note.note.len() as i64 + overhead;
        told.waits |= self.session.may_refer(&stored.obtained);
        Ok((PassChange::Filled(part, new), told))
    }

    fn open_text(&mut self, part: PartId) -> Result<(), Refusal> {
        if self.progress.texts.contains_key(&part) {
            return Ok(());
        }
        let entity = self.tree.part(part);
        self.session
            .ledger
            .work(entity.body.len().saturating_mul(3))?;
        if entity.depth >= self.place.limits.depth {
            return Err(too_deep());
        }
        let items = self.progress.plan.references.iter();
        let of_part = items.filter(|item| item.body.part == part);
        let own: Vec<&TextNote> = of_part
            .filter_map(|item| item.body.text_note.as_ref())
            .collect();
        let notes = own.iter().map(|own| own.note).collect();
        let has_copy = |note: &TextNote| {
            let mut items = self.progress.plan.references.iter();
            let is_its = |item: &&PlanItem<'_>| {
                let own = item.body.text_note.as_ref();
                item.body.part == part && own.is_some_and(|own| own.note == note.note)
            };
            let item = items.find(is_its);
            item.is_some_and(|item| self.session.has_copy(item))
        };
        let all: Vec<_> = own
            .iter()
            .map(|own| {
                let is_filled = own.scrap != Scrap::Removed || has_copy(own);
                (own.note, is_filled)
            })
            .collect();
        let decoded = match text_of_part(self.tree, part) {
            Some(Cow::Owned(decoded)) => Some(decoded),
            _ => None,
        };
        let body = (self.tree.original, entity.body);
        let (octets, within) = place_of(decoded.as_ref(), body);
        let pieces = divided(octets, within, &all);
        let most = self.place.limits.parts;
        if self.tree.ids().count() + pieces.len() > most {
            return Err(too_many_parts(most));
        }
        let around = self.tree.boundaries_around(part);
        let above = entity.parent.map(|above| self.tree.part(above));
        let mixed = above.filter(|above| above.essence == "multipart/mixed");
        let own = mixed.and_then(|mixed| mixed.content.boundary());
        let boundary = match own {
            Some(boundary) => boundary.to_vec(),
            None => {
                let octets = within.of(octets);
                entity::boundary(octets, octets, &around).into_bytes()
            }
        };
        let field = self.tree.value(part, "Content-Type");
        let fields = field.map_or(0, <[u8]>::len);
        let overhead = pieces.len() * (boundary.len() + fields + AROUND);
        let behind = pieces
            .iter()
            .filter_map(|&(number, behind)| Some((number?, behind)));
        let text = PartText {
            part,
            notes,
            boundary,
            is_nested: own.is_none(),
            behind: behind.collect(),
            is_whole: pieces.len() == 1,
            overhead: overhead as i64,
            decoded,
        };
        self.progress.texts.insert(part, text);
        Ok(())
    }

    pub(super) fn put_filled(&mut self) {
        let texts = std::mem::take(&mut self.progress.texts);
        // Last text first: removing the report rows of one text must not shift the row positions of the texts before
        // it.
        let filled = std::mem::take(&mut self.progress.filled).into_iter().rev();
        let (divided, extended): (Vec<_>, Vec<_>) =
            filled.partition(|(part, _)| texts.contains_key(part));
        for (part, parts) in extended.into_iter().chain(divided) {
            let group = match texts.get(&part) {
                Some(text) => self.divide(text, &parts),
                None => Ok(self.extended(part, &parts)),
            };
            let counted: i64 = parts.iter().map(|(new, _)| new.growth).sum();
            let changed = group.and_then(|group| {
                let growth: i64 = group.iter().map(Edit::growth).sum();
                self.progress.edits.change(group, []).map(|()| growth)
            });
            match changed {
                Ok(growth) => {
                    self.session.ledger.lose(counted - growth);
                    self.progress.lengths = Lengths::Corrected;
                }
                Err(refusal) => {
                    self.session.ledger.lose(counted);
                    for (_, rows) in parts.into_iter().rev() {
                        self.progress
                            .pass
                            .report
                            .rows
                            .drain(rows.start + 1..rows.end);
                        if let Some(row) = self.progress.pass.report.rows.get_mut(rows.start) {
                            row.tell_refusal(refusal.clone());
                        }
                    }
                }
            }
        }
    }

    fn divide(&self, text: &PartText, parts: &Filled) -> Result<Group, Refusal> {
        let (mut group, in_text) = self.divided(text, parts);
        match &text.decoded {
            None => group.extend(in_text),
            Some(decoded) => {
                let edits = Edits::of(in_text).map_err(overlapping)?;
                let new = edits.splice(decoded).into_bytes();
                group.push(Edit::replace(self.tree.part(text.part).body, new));
            }
        }
        Ok(group)
    }

    fn divided(&self, text: &PartText, parts: &Filled) -> (Group, Group) {
        let body = (self.tree.original, self.tree.part(text.part).body);
        let (source, part) = place_of(text.decoded.as_ref(), body);
        let newline = self.tree.newline.bytes();
        let filled: HashMap<usize, &NewPart> =
            parts.iter().map(|(new, _)| (new.number, new)).collect();
        let notes: Vec<(Span, bool)> = text
            .notes
            .iter()
            .enumerate()
            .map(|(number, note)| (*note, filled.contains_key(&number)))
            .collect();
        let pieces = divided(source, part, &notes);
        let new_of = |number: &usize| filled.get(number).copied();
        if let [(Some(number), behind)] = pieces.as_slice()
            && let Some(new) = new_of(number)
        {
            let mut body = [&new.body, behind.of(source)].concat();
            // A line ending is added in two cases only, because it would otherwise change the content: if a boundary
            // line follows directly, which must begin on a line of its own, and for base64 at the end of the mail,
            // which mail programs end with a line ending.
            let has_end = body.is_empty() || body.ends_with(b"\n");
            let wants_end = new.is_base64 && ends_line(self.tree, text.part);
            if !has_end && (wants_end || self.tree.abuts_boundary(text.part)) {
                body.extend_from_slice(newline);
            }
            let group = self.header_edits(text.part, new.fields.clone());
            return (group, vec![Edit::replace(part, body)]);
        }
        let delimiter_line = [b"--", text.boundary.as_slice(), newline].concat();
        let delimiter = [newline, &delimiter_line].concat();
        // The pieces keep the Content-Type and the encoding of the original text. If no charset is declared, it is
        // guessed from the bytes (RFC 1428).
        let value = self.tree.value(text.part, "Content-Type");
        let is_declared =
            value.is_some_and(|value| MediaType::parse(value).parameter("charset").is_some());
        let charset = charset_of(part.of(source)).filter(|_| !is_declared);
        let encoding = self
            .tree
            .value(text.part, "Content-Transfer-Encoding")
            .filter(|_| text.decoded.is_none());
        let fields_of = |octets: &[u8]| {
            let is_ascii = octets.is_ascii();
            let value = value.unwrap_or(b" text/plain");
            let mut fields = [b"Content-Type:", value].concat();
            if let Some(charset) = charset.filter(|_| !is_ascii) {
                fields.extend([b"; charset=", charset.as_bytes()].concat());
            }
            fields.extend_from_slice(newline);
            let encoding = encoding.or((!is_ascii).then_some(b" 8bit".as_slice()));
            if let Some(encoding) = encoding {
                fields.extend([b"Content-Transfer-Encoding:", encoding, newline].concat());
            }
            fields
        };
        let (mut group, mut in_body) = (Group::new(), Group::new());
        let (mut at, mut new) = (part.start, Vec::new());
        let mut is_ascii = true;
        // Empty lines at the very end of the text. In a new multipart, they are written after the closing boundary
        // line, so that they do not become part of an attachment.
        let mut epilogue = Span::empty_at(part.end);
        for (index, piece) in pieces.iter().enumerate() {
            let is_first = index == 0;
            let has_header = is_first && !text.is_nested;
            if !has_header {
                new.extend_from_slice(if is_first {
                    &delimiter_line
                } else {
                    &delimiter
                });
            }
            match piece {
                (None, span) => {
                    let octets = span.of(source);
                    is_ascii &= octets.is_ascii();
                    if !has_header {
                        new.extend([&fields_of(octets), newline].concat());
                    } else if text.decoded.is_some() {
                        group.extend(self.header_edits(text.part, fields_of(octets)));
                    }
                    let before = Span::new(at, span.start);
                    in_body.push(Edit::replace(before, std::mem::take(&mut new)));
                    at = span.end;
                }
                (Some(number), behind) => {
                    let Some(filled) = new_of(number) else {
                        continue;
                    };
                    is_ascii &= filled.body.is_ascii();
                    if has_header {
                        group.extend(self.header_edits(text.part, filled.fields.clone()));
                        new.extend_from_slice(&filled.body);
                    } else {
                        filled.append_to(&mut new, newline);
                    }
                    if text.is_nested && behind.end == part.end {
                        epilogue = *behind;
                    } else {
                        new.extend_from_slice(behind.of(source));
                    }
                }
            }
        }
        if text.is_nested {
            new.extend_from_slice(delimiter.strip_suffix(newline).unwrap_or_default());
            new.extend_from_slice(b"--");
            if !epilogue.is_empty() || ends_line(self.tree, text.part) {
                new.extend_from_slice(newline);
            }
            new.extend_from_slice(epilogue.of(source));
            let boundary = String::from_utf8_lossy(&text.boundary).into_owned();
            let field = media_type::write("multipart/mixed", &[("boundary".to_owned(), boundary)]);
            let mut fields = with_newlines(field, self.tree.newline);
            if !is_ascii {
                let name = "Content-Transfer-Encoding";
                push_field(&mut fields, name, "8bit", self.tree.newline);
            }
            group.extend(self.header_edits(text.part, fields));
        } else if at < part.end && self.tree.abuts_boundary(text.part) {
            new.extend_from_slice(newline);
        }
        in_body.push(Edit::replace(Span::new(at, part.end), new));
        in_body.retain(|edit| !(edit.span.is_empty() && edit.replacement.is_empty()));
        (group, in_body)
    }

    fn header_edits(&self, part: PartId, mut new: Vec<u8>) -> Group {
        let newline = self.tree.newline.bytes();
        let own = self.tree.fields(part);
        let written = new.clone();
        let header = Header::read(&written, Span::new(0, written.len()), usize::MAX);
        let names = field_names(&written, header.fields.iter(&written));
        if self.tree.is_message(part) && own.first(self.tree.original, "MIME-Version").is_none() {
            new.splice(..0, [b"MIME-Version: 1.0", newline].concat());
        }
        let mut new = Some(new);
        let mut group = Group::new();
        for field in own.iter(self.tree.original) {
            let is = |name| field.is(self.tree.original, name);
            if is("Content-Type")
                && let Some(new) = new.take()
            {
                group.push(Edit::replace(field.whole, new));
            } else if is("Content-Type")
                || is("Content-Transfer-Encoding")
                || is("Content-MD5")
                || is_among(&names, field.name.of(self.tree.original))
            {
                group.push(Edit::remove(field.whole));
            }
        }
        group.extend(new.map(|new| Edit::insert(self.tree.part(part).agreed_end, new)));
        group
    }
}

pub(super) fn too_many_parts(most: usize) -> Refusal {
    let detail =
        Detail::from("the message would be split into more parts than ").naming(Setting::Parts);
    Refusal::lasting(Reason::TooManyParts, detail.then(format!(", {most}")))
}
