//! Parses notes: the text that a program leaves in a mail in place of a part that it removed.
//!
//! If a copy of the mail has the part and another one has only the note, the copy with the note is discarded. So a note is
//! accepted only if it consists of the program's own words: any other word in it would be lost.

use super::fields::is_of_notes;
use super::fields_of_part::fields_of;
use super::item::{Leaf, NoteFacts};
use super::note_fields::{is_of_note, is_of_thunderbird};
use super::plain::Digest;
use super::spelling::text;
use crate::engine::external_body::{Claim, ExternalBody, ReferenceShape, Scrap, name_of};
use crate::engine::forms::apple::LENGTH_FIELD;
use crate::engine::forms::references;
use crate::engine::forms::thunderbird::SENTENCE;
use crate::engine::policy::ReferenceParse;
use crate::mime::header::{Field, Fields};
use crate::mime::{Header, MediaType, MessageTree, PartId, PartKind};
use crate::span::{Span, starts_like};

/// Maximum length of a note in bytes. A longer text cannot consist only of the words of the program.
const LONGEST_NOTE: usize = 4096;

/// Selects which texts are accepted as notes of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Notes {
    /// Only notes that consist of the known words of their program. A copy with such a note can be discarded if another copy
    /// has the part, because no other text is lost.
    Known,
    /// All notes that embody can replace with the content. They may be in any language and have unknown fields, because no copy
    /// is discarded and all other words of the mail stay.
    All,
}

impl NoteFacts {
    /// Parses the part `id` as a note. Returns `None` if the part is not a note.
    pub(super) fn of_part(
        tree: &MessageTree<'_>,
        id: PartId,
        (reading, notes): (&ReferenceParse, Notes),
    ) -> Option<Self> {
        let part = tree.part(id);
        if matches!(part.content, PartKind::Multipart(_)) || part.has_stray_lines() {
            return None;
        }
        let original = tree.original;
        let own = tree.fields(id);
        let body = references::read(tree, id, reading)?;
        // The header of the part must contain only fields of the note. Any other field would be lost with the note.
        let is_known = |field: Field| is_of_note(original, &field, &body);
        if notes == Notes::Known && !own.iter(original).all(is_known) {
            return None;
        }
        let mut missing = Self {
            note: Digest::of(part.span.of(original)),
            ..Self::default()
        };
        // The header of the part that was removed. Each program keeps it in a different place.
        let header = match body.facts.shape {
            ReferenceShape::Apple => {
                let length = tree.value(id, LENGTH_FIELD)?.trim_ascii();
                missing.encoded = Some(str::from_utf8(length).ok()?.parse().ok()?);
                is_blank(tree, id).then(|| own.clone())?
            }
            ReferenceShape::Detached | ReferenceShape::Enclosure => {
                let header = quoted(tree, id)?;
                // An attachment that was detached before it was deleted has fields of Thunderbird here, too. They are not
                // compared below, so they must not contain anything else.
                let is_known = |field: Field| {
                    !is_of_notes(field.name.of(original)) || is_of_thunderbird(original, &field)
                };
                if notes == Notes::Known && !header.iter(original).all(is_known) {
                    return None;
                }
                header
            }
            // The note is the body of the part, which has the header of the removed part.
            ReferenceShape::YahooGroups => own.clone(),
            ReferenceShape::Sympa if notes == Notes::All => return missing.with_name(&body),
            ReferenceShape::ExternalBody if notes == Notes::All && is_described(&body) => {
                return missing
                    .with_description(&body, name_of(original, &body.phantom.fields).text());
            }
            ReferenceShape::ExternalBody => {
                let is_deleted = body.access_type.eq_ignore_ascii_case("x-mutt-deleted");
                missing.content = match &body.claim {
                    Claim::Note(note) => Some(Digest::of_hex(&note.sha256)?),
                    Claim::None | Claim::Unreadable => None,
                };
                let behind = Span::new(body.phantom.body_start(), part.body.end);
                let is_alone = behind.of(original).trim_ascii().is_empty();
                if !is_alone
                    || !is_deleted && missing.content.is_none()
                    || part.body.len() > LONGEST_NOTE
                    || body.phantom.agreed_end != body.phantom.span.end
                {
                    return None;
                }
                body.phantom.fields.clone()
            }
            _ => return None,
        };
        let value = header.value(original, "Content-Type")?;
        let name = name_of(original, &header).text();
        // A note with neither a name nor a digest does not identify the removed part: it would match any part. A picture in
        // HTML can have only a Content-ID.
        let has_id = || {
            body.facts.shape == ReferenceShape::YahooGroups
                && header.value(original, "Content-ID").is_some()
        };
        if name.is_none() && missing.content.is_none() && !has_id() {
            return None;
        }
        let essence = MediaType::parse(value).essence;
        // The part with Thunderbird's note has the name of the removed part in its own header, after `Deleted: `. If this name
        // differs from the name in the quoted header, the part is not such a note.
        let own_name = name_of(original, own).text();
        let is_its =
            |own: &str| name.as_deref() == Some(own.strip_prefix("Deleted: ").unwrap_or(own));
        if !own_name.as_deref().is_none_or(is_its) {
            return None;
        }
        // A name that only Content-Type has would be lost with the note.
        let name_of_type = || {
            let value = own.value(original, "Content-Type")?;
            MediaType::parse(value).name("name").text()
        };
        let is_of_program = matches!(
            body.facts.shape,
            ReferenceShape::Detached | ReferenceShape::Enclosure
        );
        if is_of_program && !name_of_type().as_deref().is_none_or(is_its) {
            return None;
        }
        let counts = |name: &[u8]| !is_of_notes(name) && name != b"content-transfer-encoding";
        missing.fields = Some(Digest::of(&fields_of(
            (original, &header),
            &essence,
            counts,
        )));
        missing.is_message = essence.starts_with("message/");
        Some(missing)
    }

    /// Completes the description of a note that contains only the name of a file. Returns `None` if there is no name.
    fn with_name(self, body: &ExternalBody<'_>) -> Option<Self> {
        let name = body.file_name.as_ref()?;
        Some(Self {
            name: Some(Digest::of(name.as_bytes())),
            ..self
        })
    }

    /// Completes the description of a note with the size, the name and the media type of the removed content, as far as the note
    /// contains them.
    fn with_description(self, body: &ExternalBody<'_>, name: Option<String>) -> Option<Self> {
        let essence = body.declared.as_ref().map(|it| it.essence.to_string());
        Some(Self {
            size: body.size,
            name: name.map(|name| Digest::of(name.as_bytes())),
            essence: known_essence(essence.as_deref()),
            ..self
        })
    }

    /// Parses a Mailman note in a text. `text` is the text of this note alone. Returns `None` if [`Notes::Known`] is
    /// required and the note has other words than those of Mailman.
    pub(super) fn of_mailman(body: &ExternalBody<'_>, text: &[u8], notes: Notes) -> Option<Self> {
        let scrubbed = body.text_note.as_ref()?;
        let is_known = match notes {
            Notes::Known => {
                let kinds = [Scrap::File, Scrap::Html, Scrap::Text];
                kinds.contains(&scrubbed.scrap) && is_note_of_mailman(text)
            }
            Notes::All => true,
        };
        if !is_known || scrubbed.is_in_digest {
            return None;
        }
        let essence = body.declared.as_ref().map(|it| it.essence.to_string());
        Some(Self {
            note: Digest::of(text.trim_ascii()),
            size: body.size,
            name: body
                .file_name
                .as_ref()
                .map(|name| Digest::of(name.as_bytes())),
            essence: known_essence(essence.as_deref()),
            description: scrubbed
                .description
                .as_ref()
                .map(|it| Digest::of(it.as_bytes())),
            is_message: scrubbed.scrap == Scrap::Message,
            ..Self::default()
        })
    }

    /// Returns true if the note contains the length or the digest of the removed content, so that a match can be verified.
    pub(super) fn measures(&self) -> bool {
        self.content.is_some() || self.encoded.is_some() || self.size.is_some()
    }

    /// Returns true if two notes can replace the same part: no fact that both notes contain is different.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        fn agree<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
            one.is_none() || other.is_none() || one == other
        }
        self.is_message == other.is_message
            && agree(self.content, other.content)
            && agree(self.fields, other.fields)
            && agree(self.size, other.size)
            && agree(self.encoded, other.encoded)
            && agree(self.name, other.name)
            && agree(self.essence, other.essence)
    }

    /// Returns true if `leaf` can be the content that the note replaces: it agrees with every fact in the note.
    pub(super) fn is_of(&self, leaf: &Leaf) -> bool {
        let is_length = |length| length == leaf.encoded || length == leaf.encoded + 1;
        let is_declared = match self.fields {
            Some(fields) => fields == leaf.fields,
            None => {
                !self.is_message
                    && !leaf.has_two_names
                    && (self.name.is_none() || self.name == leaf.name)
                    && (self.description.is_none() || self.description == leaf.description)
                    && self.essence.is_none_or(|essence| essence == leaf.essence)
            }
        };
        is_declared
            && self.content.is_none_or(|content| content == leaf.content)
            && self.encoded.is_none_or(is_length)
            && self.size.is_none_or(|size| size == leaf.size)
    }
}

/// Returns true if an external body contains the size of its content, and is neither a note of `embody detach` nor one of mutt,
/// which contain more facts.
fn is_described(body: &ExternalBody<'_>) -> bool {
    body.size.is_some()
        && body.claim == Claim::None
        && !body.access_type.eq_ignore_ascii_case("x-mutt-deleted")
}

/// Returns the digest of the Content-Description field, or `None` if there is no such field.
pub(super) fn description_of(original: &[u8], fields: &Fields) -> Option<Digest> {
    let value = fields.value(original, "Content-Description")?;
    Some(Digest::of(&text(value)))
}

/// Returns whether a part has an empty body, apart from white space.
fn is_blank(tree: &MessageTree<'_>, id: PartId) -> bool {
    let body = tree.part(id).body.of(tree.original);
    body.trim_ascii().is_empty()
}

/// Returns the header that Thunderbird quotes in the note. Returns `None` if the part contains anything else.
fn quoted(tree: &MessageTree<'_>, id: PartId) -> Option<Fields> {
    let original = tree.original;
    let body = tree.part(id).body;
    let text = body.of(original);
    let blank_before = text.len() - text.trim_ascii_start().len();
    let after = text.trim_ascii().strip_prefix(SENTENCE)?;
    let blank_after = after.len() - after.trim_ascii_start().len();
    let start = body.start + blank_before + SENTENCE.len() + blank_after;
    let header = Header::read(original, Span::new(start, body.end), LONGEST_NOTE);
    let behind = Span::new(header.span.end, body.end).of(original);
    let is_all = body.len() <= LONGEST_NOTE
        && behind.trim_ascii().is_empty()
        && header.agreed_end == header.span.end;
    is_all.then_some(header.fields)
}

/// Returns the digest of a media type. Returns `None` for `application/octet-stream`: it says nothing about the content, so it
/// is not compared.
fn known_essence(essence: Option<&str>) -> Option<Digest> {
    let known = essence.filter(|it| *it != "application/octet-stream");
    known.map(|it| Digest::of(it.as_bytes()))
}

/// The sentences of Mailman in English. A note in another language is not recognized, so a copy with such a note is kept.
const SENTENCES: [&[u8]; 3] = [
    b"A non-text attachment was scrubbed...",
    b"An HTML attachment was scrubbed...",
    b"An embedded and charset-unspecified text was scrubbed...",
];

/// Returns whether a text consists of a sentence of Mailman and the fields below it, each at most once.
fn is_note_of_mailman(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let is_sentence = lines.next().is_some_and(|line| SENTENCES.contains(&line));
    let mut known: Vec<&[u8]> = vec![b"Name: ", b"Type: ", b"Size: ", b"Desc: ", b"URL: "];
    is_sentence
        && text.len() <= LONGEST_NOTE
        && lines.all(|line| {
            let at = known.iter().position(|name| starts_like(line, name));
            at.map(|at| known.remove(at)).is_some()
        })
}
