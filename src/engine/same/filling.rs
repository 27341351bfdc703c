//! Finds the parts that are missing in a mail and that another copy of the mail contains.
//!
//! A part is taken only from a copy that [`covers`](super::covers) the mail. The same Message-ID alone proves nothing, because
//! anyone can write a mail with it.

use std::collections::HashMap;

use super::copy::MailCopy;
use super::cover::{CoverDifference, pairs};
use super::item::{Item, NoteFacts, Spot};
use super::note::Notes;
use super::plain::{Digest, plain};
use crate::engine::external_body::ExternalBody;
use crate::engine::policy::ReferenceParse;
use crate::mime::{PartId, ScanLimits, scan};

/// A description of a mail, with the positions of its parts and notes (texts in place of missing parts). Notes of all programs
/// and in all languages are recognized: filling only replaces the note, so no other text can be lost.
pub(crate) struct NoteDescription {
    copy: MailCopy,
    spots: Vec<Spot>,
    /// For each item, the number of the part that contains the note, as in IMAP. Empty for an item that is not a note.
    numbers: Vec<String>,
}

/// A match between a note in a mail (a text in place of a missing part) and the content in another copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NoteMatch {
    /// Number of the part that contains the note, as in IMAP.
    pub(crate) number: String,
    /// Number of the note among the notes in this part, from 0.
    pub(crate) note: usize,
    /// The part of the copy that contains the content.
    pub(crate) part: PartId,
    /// Digest of the content, without the footers of mailing lists.
    pub(crate) content: Digest,
    /// Whether the note contains the length or the digest of the content, so that the match is certain.
    pub(crate) is_measured: bool,
}

impl NoteDescription {
    /// Describes a mail in its [plain form](super::plain::plain).
    pub(crate) fn of(plain: &[u8], reading: &ReferenceParse, limits: &ScanLimits) -> Self {
        let tree = scan(plain, limits);
        let (copy, spots) = MailCopy::described(&tree, (reading, Notes::All), &[]);
        let numbers = copy
            .items
            .iter()
            .zip(&spots)
            .map(|(item, spot)| match item {
                Item::Missing(_) => tree.number(spot.part),
                _ => String::new(),
            })
            .collect();
        Self {
            copy,
            spots,
            numbers,
        }
    }

    /// Returns true if a part of the mail is missing.
    pub(crate) fn lacks_part(&self) -> bool {
        self.copy.missing() > 0
    }

    /// Returns a key that sorts copies. The smallest key is that of the best copy, with a complete structure and without
    /// footers of mailing lists.
    pub(crate) fn rank(&self) -> impl Ord + use<> {
        self.copy.rank()
    }

    /// Returns the approximate memory of the description, in bytes, for the limit of a cache.
    pub(crate) fn weight(&self) -> usize {
        const ITEM: usize = 400;
        ITEM * (self.copy.items.len() + 1)
    }
}

/// Returns the content that `other` has for each note in `mail` (a text in place of a missing part).
///
/// # Errors
/// Returns the first difference if `other` is not a copy of the mail.
pub(crate) fn fillings(
    other: &NoteDescription,
    mail: &NoteDescription,
) -> Result<Vec<NoteMatch>, CoverDifference> {
    let pairs = pairs(&other.copy, &mail.copy, Notes::All)?;
    let fillings = pairs.into_iter().filter_map(|(note, content)| {
        let Item::Missing(missing) = mail.copy.items.get(note)? else {
            return None;
        };
        let spot = other.spots.get(content)?;
        let content = match other.copy.items.get(content)? {
            Item::Content(leaf) => leaf.text.unwrap_or(leaf.content),
            Item::Start(_) => spot.message?,
            Item::Missing(_) | Item::End(_) => return None,
        };
        Some(NoteMatch {
            number: mail.numbers.get(note)?.clone(),
            note: mail.spots.get(note)?.note,
            part: spot.part,
            content,
            is_measured: missing.measures(),
        })
    });
    Ok(fillings.collect())
}

/// Descriptions of the parts of a mail, by the numbers of the parts.
#[derive(Debug)]
pub(crate) struct ContentFacts(HashMap<String, Item>);

impl ContentFacts {
    pub(crate) fn of(mail: &[u8], reading: &ReferenceParse, limits: &ScanLimits) -> Self {
        let plain = plain(mail);
        let tree = scan(&plain, limits);
        let (copy, spots) = MailCopy::described(&tree, (reading, Notes::All), &[]);
        let parts = copy.items.into_iter().zip(&spots);
        let numbered = parts.filter(|(item, _)| matches!(item, Item::Content(_) | Item::Start(_)));
        Self(
            numbered
                .map(|(item, spot)| (tree.number(spot.part), item))
                .collect(),
        )
    }

    /// Returns whether the content of a part can be a copy of what a note in a text stands for: it has the name, the type
    /// and the size in the note.
    pub(crate) fn can_fill(&self, number: &str, note: &ExternalBody<'_>) -> bool {
        /// Maximum difference of the size of a text. The line ending at its end can be part of it, or not.
        const LINE_ENDING: u64 = 2;

        let Some(facts) = NoteFacts::of_mailman(note, b"", Notes::All) else {
            return false;
        };
        match self.0.get(number) {
            Some(Item::Content(leaf)) => {
                let mut leaf = leaf.clone();
                let near = facts
                    .size
                    .filter(|size| leaf.text.is_some() && size.abs_diff(leaf.size) <= LINE_ENDING);
                leaf.size = near.unwrap_or(leaf.size);
                // A text with notes of its own gets the name that the file has on the server.
                let stored = note
                    .text_note
                    .as_ref()
                    .map(|note| note.stored_name.as_bytes());
                if leaf.name.is_some() && leaf.name == stored.map(Digest::of) {
                    leaf.name = facts.name;
                }
                facts.is_of(&leaf)
            }
            Some(Item::Start(start)) => start.is_message && facts.is_message,
            _ => false,
        }
    }
}
