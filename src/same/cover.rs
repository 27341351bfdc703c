//! Whether one copy of a mail has everything that another copy has.
//!
//! The relation is strict in both directions: every part of the copy must be in the other one, and every part of the other one
//! must be explained by a part of the copy, by a note in it, or by its missing end. A mail with an additional part is another
//! mail: anyone can write one with the Message-ID of the original.

use super::copy::{CopyHeader, Item, Leaf, MailCopy, Missing};

/// Why two mails are not copies of one mail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Difference {
    /// From, Date or Subject.
    Origin,
    /// Another field that the author wrote.
    Fields,
    /// The content of a part.
    Part,
    /// One of them has more parts.
    Parts,
    /// The text around the parts.
    Around,
}

impl Difference {
    /// The words for summaries: "different ...".
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

/// Says whether `other` has everything that `copy` has, and nothing else.
///
/// # Errors
/// The first [`Difference`].
pub(crate) fn covers(other: &MailCopy, copy: &MailCopy) -> Result<(), Difference> {
    let is_reduced = covers_header(&other.header, &copy.header)?;
    let has_asides = !is_reduced && !copy.is_cut && !copy.is_scrubbed;
    if has_asides && copy.asides != other.asides {
        return Err(Difference::Around);
    }
    let mut rest = other.items.as_slice();
    for item in &copy.items {
        if let Item::Content(leaf) = item
            && leaf.cut_at.is_some()
        {
            // Nothing is known of the parts after it.
            return is_start_of(leaf, rest.first());
        }
        let Some((first, behind)) = rest.split_first() else {
            return Err(Difference::Parts);
        };
        let taken = match (item, first) {
            (Item::Content(leaf), Item::Content(other)) if is_same(leaf, other, is_reduced) => 0,
            (Item::Missing(note), Item::Missing(other)) if note == other => 0,
            (Item::Missing(note), Item::Content(other)) if is_of(note, other) => 0,
            (Item::Missing(note), Item::Enclosed { items, .. }) if note.is_message => *items,
            (Item::Enclosed { header: one, .. }, Item::Enclosed { header: two, .. })
                if one == two =>
            {
                0
            }
            _ => return Err(Difference::Part),
        };
        rest = behind.get(taken..).unwrap_or_default();
    }
    match rest.is_empty() || copy.is_cut {
        true => Ok(()),
        false => Err(Difference::Parts),
    }
}

/// Returns whether the headers are compared only by the fields that Pipermail keeps.
fn covers_header(other: &CopyHeader, copy: &CopyHeader) -> Result<bool, Difference> {
    if copy.date != other.date || copy.subject != other.subject {
        return Err(Difference::Origin);
    }
    if copy.is_reduced {
        let is_kept = |digest| other.references.contains(digest);
        return match copy.from_addresses == other.from_addresses {
            false => Err(Difference::Origin),
            true if copy.references.iter().all(is_kept) => Ok(true),
            true => Err(Difference::Fields),
        };
    }
    let is_kept = |digest| other.of_sender.contains(digest);
    if copy.from != other.from {
        return Err(Difference::Origin);
    }
    let is_copied_to = |digest| other.copied_to.contains(digest);
    let has_recipients = copy.copied_to == other.copied_to
        || copy.is_of_list && (other.is_of_list || copy.copied_to.iter().all(is_copied_to));
    let has_others = copy.others == other.others && copy.of_sender.iter().all(is_kept);
    match has_recipients && has_others {
        true => Ok(false),
        false => Err(Difference::Fields),
    }
}

/// The copies of Pipermail declare no type, and show addresses in other words.
fn is_same(leaf: &Leaf, other: &Leaf, is_reduced: bool) -> bool {
    let is_declared = leaf.essence == other.essence && leaf.name == other.name;
    let is_same_text = leaf.text.is_some() && leaf.text == other.text;
    let is_shown_text = leaf.shown.is_some() && leaf.shown == other.shown;
    match leaf.content == other.content || is_same_text {
        true => is_declared || is_reduced && is_same_text,
        false => is_reduced && is_shown_text,
    }
}

/// Whether a part that the end of the mail cut off is the start of `other`. A part whose header was cut off says nothing.
fn is_start_of(leaf: &Leaf, other: Option<&Item>) -> Result<(), Difference> {
    let is_start = |other: &Leaf, length: u64| {
        let digest = match leaf.text {
            Some(text) => text,
            None => leaf.content,
        };
        let is_declared = leaf.essence == other.essence && leaf.name == other.name;
        is_declared && other.prefixes.contains(&(length, digest))
    };
    match (leaf.cut_at, other) {
        (Some(0), _) => Ok(()),
        (Some(length), Some(Item::Content(other))) if is_start(other, length) => Ok(()),
        _ => Err(Difference::Part),
    }
}

/// Whether a part is the content that a note stands for.
fn is_of(note: &Missing, leaf: &Leaf) -> bool {
    if let Some(content) = note.content {
        return content == leaf.content;
    }
    let is_name = note.name.is_none() || leaf.name.is_none() || note.name == leaf.name;
    let is_length = note
        .encoded
        .is_none_or(|length| length == leaf.encoded || length == leaf.encoded + 1);
    is_name
        && is_length
        && note.size.is_none_or(|size| size == leaf.size)
        && note.essence.is_none_or(|essence| essence == leaf.essence)
}
