//! Decides whether a copy of a mail contains everything that another copy contains, so that the other one can be discarded.
//!
//! The comparison is strict in both directions. Every part of the discarded copy must be in the kept one. Every part of the
//! kept copy must be in the discarded one, or be replaced by a note there, or be after its truncated end. A mail with an
//! additional part is a different mail, because anyone can write one with the Message-ID of the original.

use super::copy::{CopyHeader, MailCopy};
use super::item::{Item, Leaf};
use super::note::Notes;

/// Maximum number of different mails with the same Message-ID that are compared with each other. Further mails with it are kept
/// without a comparison: otherwise a million mails with one Message-ID would take quadratic time.
pub(crate) const MOST_COMPARED: usize = 64;

/// The reason why two mails are not copies of one mail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum CoverDifference {
    /// The From, Date or Subject field is different.
    Origin,
    /// Another field that the author wrote is different.
    Fields,
    /// The content of a part is different.
    Part,
    /// One mail has more parts than the other.
    Parts,
    /// The text before, between or after the parts is different.
    Around,
}

impl CoverDifference {
    /// Returns the words for this difference that follow "different" in a summary.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Origin => "From, Date or Subject",
            Self::Fields => "header fields",
            Self::Part => "content of a part",
            Self::Parts => "number of parts",
            Self::Around => "text around the parts",
        }
    }
}

/// Checks that `other` contains everything that `copy` contains. `other` may contain more only where `copy` has a note in place
/// of a part, or after the point at which `copy` is truncated.
///
/// # Errors
/// The first [`CoverDifference`].
pub(crate) fn covers(other: &MailCopy, copy: &MailCopy) -> Result<(), CoverDifference> {
    pairs(other, copy, Notes::Known).map(drop)
}

/// Returns pairs of indexes: an item of `copy` that is a note (a text in place of a missing part), and the item of `other` that
/// has its content. With [`Notes::All`], `other` may also have a note where `copy` has content, because the two copies then
/// complete each other.
///
/// # Errors
/// Returns the first difference if `other` lacks something that `copy` contains, or has something else in its place.
pub(super) fn pairs(
    other: &MailCopy,
    copy: &MailCopy,
    notes: Notes,
) -> Result<Vec<(usize, usize)>, CoverDifference> {
    covers_header(&other.header, &copy.header)?;
    if !copy.footers.agree_with(&other.footers) {
        return Err(CoverDifference::Part);
    }
    // An archive of a mailing list has turned the copy into a single text. The structure of its parts is lost, so the structure
    // of both mails is ignored.
    let is_text = copy.is_scrubbed || copy.header.is_reduced;
    let [own, others] = [copy, other].map(|of| {
        if is_text {
            without_structure(&of.items)
        } else {
            of.items.iter().enumerate().collect()
        }
    });
    let mut rest = others.as_slice();
    let mut filled = Vec::new();
    let completes = notes == Notes::All;
    for (at, item) in own {
        if let Item::Content(leaf) = item
            && leaf.cut_at.is_some()
        {
            // The copy is truncated in this part, so it has no more items. The part in the copy must be the beginning of the
            // part in `other`.
            return match rest.first() {
                Some((_, Item::Content(other))) if is_start_of(leaf, other) => Ok(filled),
                _ => Err(CoverDifference::Part),
            };
        }
        let Some((&(place, first), behind)) = rest.split_first() else {
            return Err(CoverDifference::Parts);
        };
        let is_covered = match (item, first) {
            (Item::Content(leaf), Item::Content(other)) => {
                if is_text {
                    is_shown(leaf, other)
                } else {
                    is_same(leaf, other)
                }
            }
            (Item::Missing(note), Item::Content(other)) => note.is_of(other),
            (Item::Content(leaf), Item::Missing(note)) => completes && note.is_of(leaf),
            (Item::Missing(note), Item::Missing(other)) => {
                note == other || completes && note.agrees_with(other)
            }
            (Item::Missing(note), Item::Start(start)) => {
                let has_fields = match note.fields {
                    Some(fields) => fields == start.fields,
                    None => completes,
                };
                // The note in the copy stands for an enclosed message that `other` still contains. If the note has a digest
                // of the message, this digest cannot be verified, because the description of `other` contains no digest of a
                // whole enclosed message, so the two do not match. If the note has no digest, their fields are compared.
                start.is_message && note.is_message && note.content.is_none() && has_fields
            }
            (Item::Start(start), Item::Start(other)) => {
                if start.fields == other.fields && start.before != other.before && !start.is_message
                {
                    return Err(CoverDifference::Around);
                }
                start == other
            }
            (Item::End(after), Item::End(other)) => {
                if after != other {
                    return Err(CoverDifference::Around);
                }
                true
            }
            (Item::End(_), _) => return Err(CoverDifference::Parts),
            _ => false,
        };
        if !is_covered {
            return Err(CoverDifference::Part);
        }
        rest = match (item, first) {
            (Item::Missing(_), Item::Start(_)) => behind_end(behind),
            _ => behind,
        };
        if let (Item::Missing(_), Item::Content(_) | Item::Start(_)) = (item, first) {
            filled.push((at, place));
        }
    }
    if rest.is_empty() || copy.is_cut {
        Ok(filled)
    } else {
        Err(CoverDifference::Parts)
    }
}

/// Returns the items after the end of a message or multipart. `items` must begin with the first item inside it.
fn behind_end<'i, 'a>(items: &'i [(usize, &'a Item)]) -> &'i [(usize, &'a Item)] {
    let mut depth = 1;
    for (at, (_, item)) in items.iter().enumerate() {
        match item {
            Item::Start(_) => depth += 1,
            Item::End(_) => depth -= 1,
            Item::Content(_) | Item::Missing(_) => {}
        }
        if depth == 0 {
            return &items[at + 1..];
        }
    }
    &[]
}

/// Returns the items without the starts and ends of multiparts, and without empty texts. Enclosed messages are kept.
fn without_structure(items: &[Item]) -> Vec<(usize, &Item)> {
    let mut kept = Vec::new();
    let mut around = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let is_kept = match item {
            Item::Start(start) => {
                around.push(start.is_message);
                start.is_message
            }
            Item::End(_) => around.pop().unwrap_or(false),
            Item::Content(leaf) => !leaf.is_empty_text(),
            Item::Missing(_) => true,
        };
        if is_kept {
            kept.push((at, item));
        }
    }
    kept
}

fn covers_header(other: &CopyHeader, copy: &CopyHeader) -> Result<(), CoverDifference> {
    let has_subject = copy.subject == other.subject || copy.untagged == other.untagged;
    if copy.date != other.date || !has_subject {
        return Err(CoverDifference::Origin);
    }
    if copy.is_reduced && !other.is_reduced {
        let is_kept = |digest| other.references.contains(digest);
        let is_sender = copy.mailbox.is_some() && copy.mailbox == other.mailbox;
        let has_others = copy.references.iter().all(is_kept) && !other.has_reply_to;
        return match (is_sender, has_others) {
            (false, _) => Err(CoverDifference::Origin),
            (true, false) => Err(CoverDifference::Fields),
            (true, true) => Ok(()),
        };
    }
    if copy.from != other.from {
        return Err(CoverDifference::Origin);
    }
    if copy.copied_to == other.copied_to && copy.others == other.others {
        Ok(())
    } else {
        Err(CoverDifference::Fields)
    }
}

fn is_same(leaf: &Leaf, other: &Leaf) -> bool {
    let is_exact = leaf.is_exact && other.is_exact;
    let is_same_text = !is_exact && leaf.text.is_some() && leaf.text == other.text;
    leaf.fields == other.fields && (leaf.content == other.content || is_same_text)
}

/// Returns whether a text from the archive of a list equals the text of a part. The archive contains only plain text and no
/// media types, so the part must be plain text.
fn is_shown(leaf: &Leaf, other: &Leaf) -> bool {
    match (leaf.shown, other.shown) {
        (Some(one), Some(shown)) => {
            leaf.charset == other.charset && one.iter().any(|digest| shown.contains(digest))
        }
        _ => false,
    }
}

/// Returns whether `leaf`, a part in which its mail is truncated, is the beginning of `other`.
fn is_start_of(leaf: &Leaf, other: &Leaf) -> bool {
    let Some(length) = leaf.cut_at else {
        return false;
    };
    let mut starts = leaf.prefixes.iter().filter(|(of, _)| *of == length);
    leaf.fields == other.fields && starts.any(|start| other.prefixes.contains(start))
}
