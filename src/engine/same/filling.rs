//! Finds the parts that are missing in a mail and that another copy of the mail contains.
//!
//! A part is taken only from a copy that [`covers`](super::covers) the mail. The same Message-ID alone proves nothing, because
//! anyone can write a mail with it.

use super::copy::MailCopy;
use super::cover::{CoverDifference, pairs};
use super::item::{Item, Spot};
use super::note::Notes;
use super::plain::Digest;
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
