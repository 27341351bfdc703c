//! Whether one copy of a mail has everything that another copy has.
//!
//! The relation is strict in both directions: every part of the copy must be in the other one, and every part of the other one
//! must be explained by a part of the copy, by a note in it, or by its missing end. A mail with an additional part is another
//! mail: anyone can write one with the Message-ID of the original.

use super::copy::{CopyHeader, MailCopy};
use super::item::{Item, Leaf};

/// Different mails with one Message-ID that are compared with each other. The others are kept as they are, so that a million
/// mails with one Message-ID take linear time.
pub(crate) const MOST_COMPARED: usize = 64;

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
    covers_header(&other.header, &copy.header)?;
    if !copy.footers.agree_with(&other.footers) {
        return Err(Difference::Part);
    }
    // A list or its archive made one text of the mail: nothing is left of the structure.
    let is_text = copy.is_scrubbed || copy.header.is_reduced;
    let [own, others] = [copy, other].map(|of| match is_text {
        true => without_structure(&of.items),
        false => of.items.iter().collect(),
    });
    let mut rest = others.as_slice();
    for item in own {
        if let Item::Content(leaf) = item
            && leaf.cut_at.is_some()
        {
            // The copy has no content after this part.
            return match rest.first() {
                Some(Item::Content(other)) if is_start_of(leaf, other) => Ok(()),
                _ => Err(Difference::Part),
            };
        }
        let Some((&first, behind)) = rest.split_first() else {
            return Err(Difference::Parts);
        };
        let is_covered = match (item, first) {
            (Item::Content(leaf), Item::Content(other)) => match is_text {
                true => is_shown(leaf, other),
                false => is_same(leaf, other),
            },
            (Item::Missing(note), Item::Content(other)) => note.is_of(other),
            (Item::Missing(note), Item::Missing(other)) => note == other,
            (Item::Missing(note), Item::Start(start)) => {
                // The digest of a message is not at hand.
                start.is_message
                    && note.is_message
                    && note.content.is_none()
                    && note.fields == Some(start.fields)
            }
            (Item::Start(start), Item::Start(other)) => {
                if start.fields == other.fields && start.before != other.before && !start.is_message
                {
                    return Err(Difference::Around);
                }
                start == other
            }
            (Item::End(after), Item::End(other)) => {
                if after != other {
                    return Err(Difference::Around);
                }
                true
            }
            (Item::End(_), _) => return Err(Difference::Parts),
            _ => false,
        };
        if !is_covered {
            return Err(Difference::Part);
        }
        rest = match (item, first) {
            (Item::Missing(_), Item::Start(_)) => behind_end(behind),
            _ => behind,
        };
    }
    match rest.is_empty() || copy.is_cut {
        true => Ok(()),
        false => Err(Difference::Parts),
    }
}

/// The items behind the end of a message whose start was the item before `items`.
fn behind_end<'i, 'a>(items: &'i [&'a Item]) -> &'i [&'a Item] {
    let mut depth = 1;
    for (at, item) in items.iter().enumerate() {
        match item {
            Item::Start(_) => depth += 1,
            Item::End(_) => depth -= 1,
            Item::Content(_) | Item::Missing(_) => {}
        }
        if depth == 0 {
            return items.get(at + 1..).unwrap_or_default();
        }
    }
    &[]
}

/// The parts without the multiparts around them, and without empty texts. Messages stay messages.
fn without_structure(items: &[Item]) -> Vec<&Item> {
    let mut kept = Vec::new();
    let mut around = Vec::new();
    for item in items {
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
            kept.push(item);
        }
    }
    kept
}

fn covers_header(other: &CopyHeader, copy: &CopyHeader) -> Result<(), Difference> {
    let has_subject = copy.subject == other.subject || copy.untagged == other.untagged;
    if copy.date != other.date || !has_subject {
        return Err(Difference::Origin);
    }
    if copy.is_reduced && !other.is_reduced {
        let is_kept = |digest| other.references.contains(digest);
        let is_sender = copy.mailbox.is_some() && copy.mailbox == other.mailbox;
        let has_others = copy.references.iter().all(is_kept) && !other.has_reply_to;
        return match (is_sender, has_others) {
            (false, _) => Err(Difference::Origin),
            (true, false) => Err(Difference::Fields),
            (true, true) => Ok(()),
        };
    }
    if copy.from != other.from {
        return Err(Difference::Origin);
    }
    match copy.copied_to == other.copied_to && copy.others == other.others {
        true => Ok(()),
        false => Err(Difference::Fields),
    }
}

fn is_same(leaf: &Leaf, other: &Leaf) -> bool {
    let is_same_text = leaf.text.is_some() && leaf.text == other.text;
    leaf.fields == other.fields && (leaf.content == other.content || is_same_text)
}

/// Whether a text that a list made of the mail is the text of a part. The list does not keep how the part was declared, so the
/// part must be a plain text.
fn is_shown(leaf: &Leaf, other: &Leaf) -> bool {
    match (leaf.shown, other.shown) {
        (Some(one), Some(shown)) => {
            leaf.charset == other.charset && one.iter().any(|digest| shown.contains(digest))
        }
        _ => false,
    }
}

/// Whether a part that the end of the mail cut off is the start of `other`.
fn is_start_of(leaf: &Leaf, other: &Leaf) -> bool {
    let Some(length) = leaf.cut_at else {
        return false;
    };
    let mut starts = leaf.prefixes.iter().filter(|(of, _)| *of == length);
    leaf.fields == other.fields && starts.any(|start| other.prefixes.contains(start))
}
