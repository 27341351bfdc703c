//! Which parts that are missing in a mail another copy of it contains.
//!
//! A part is taken only from a copy that [`covers`](super::covers) the mail: a mail with the same Message-ID alone proves nothing,
//! because anyone can write one.

use super::copy::MailCopy;
use super::cover::{Difference, pairs};
use super::item::{Item, Spot};
use super::note::Notes;
use super::plain::Digest;
use crate::engine::external_body::Reading;
use crate::mime::{PartId, ScanLimits, scan};

/// A mail, and where its parts are. Notes of all forms and in all languages count, because they are replaced, and nothing else is.
pub(crate) struct Described {
    copy: MailCopy,
    spots: Vec<Spot>,
    /// The number of the part of each item with a note, as IMAP counts. Empty for other items.
    numbers: Vec<String>,
}

/// Content in a copy for a note in a mail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Filling {
    /// Number of the part with the note, as IMAP counts.
    pub(crate) number: String,
    /// Number of the note in the text of the part, from 0.
    pub(crate) note: usize,
    /// The part of the copy that has the content.
    pub(crate) part: PartId,
    /// Digest of the content. Footers of lists do not count in it.
    pub(crate) content: Digest,
    /// Whether the note says how long the content is.
    pub(crate) is_measured: bool,
}

impl Described {
    /// Describes a mail in its [plain form](super::plain::plain).
    pub(crate) fn of(plain: &[u8], reading: &Reading, limits: &ScanLimits) -> Self {
        let tree = scan(plain, limits);
        let (copy, spots) = MailCopy::described(&tree, (reading, Notes::All), &[]);
        let numbers = copy
            .items
            .iter()
            .zip(&spots)
            .map(|(item, spot)| match item {
                Item::Missing(_) => tree.number(spot.part),
                _ => String::new(),
            });
        let numbers = numbers.collect();
        Self {
            copy,
            spots,
            numbers,
        }
    }

    /// Whether a part of the mail is missing.
    pub(crate) fn lacks_part(&self) -> bool {
        self.copy.missing() > 0
    }

    /// Copies with a complete structure and without the footers of lists come first.
    pub(crate) fn rank(&self) -> impl Ord + use<> {
        self.copy.rank()
    }

    /// Approximate size in memory, in bytes.
    pub(crate) fn weight(&self) -> usize {
        const ITEM: usize = 400;
        ITEM * (self.copy.items.len() + 1)
    }
}

/// Returns what `other` has in place of the notes in `mail`.
///
/// # Errors
/// The first difference, if `other` is not a copy of the mail.
pub(crate) fn fillings(other: &Described, mail: &Described) -> Result<Vec<Filling>, Difference> {
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
        Some(Filling {
            number: mail.numbers.get(note)?.clone(),
            note: mail.spots.get(note)?.note,
            part: spot.part,
            content,
            is_measured: missing.measures(),
        })
    });
    Ok(fillings.collect())
}
