//! The items of which the comparison of two bodies consists.

use serde::{Deserialize, Serialize};

use super::plain::Digest;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Item {
    Content(Box<Leaf>),
    Missing(Box<Missing>),
    Start(Start),
    /// With the digest of the text behind the last part of a multipart.
    End(u64),
}

/// The start of a multipart or of an enclosed message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Start {
    /// Digest of the [fields](super::body::fields_of_part) of the part.
    pub(super) fields: u64,
    /// Digest of the text before the first part of a multipart, or of the header of a message.
    pub(super) before: u64,
    pub(super) essence: u64,
    pub(super) name: Option<u64>,
    pub(super) is_message: bool,
}

/// A part with its content.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Leaf {
    /// Digest of the [fields](super::body::fields_of_part) of the part.
    pub(super) fields: u64,
    pub(super) essence: u64,
    pub(super) name: Option<u64>,
    /// Digest of the Content-Description.
    pub(super) description: Option<u64>,
    /// Length of the decoded content, in bytes.
    pub(super) size: u64,
    /// Length of the body as it is encoded, with line feeds, in bytes.
    pub(super) encoded: u64,
    /// Digest of the decoded content.
    pub(super) content: Digest,
    /// Digest of a text as it is compared, without the footers of lists: see [`PlainText`](super::list::PlainText).
    pub(super) text: Option<Digest>,
    /// Digests of a [plain](super::body::is_plain_text) text with hidden addresses shown, with and without the footers of lists.
    pub(super) shown: Option<[Digest; 2]>,
    /// Digest of the charset of a text that is not ASCII.
    pub(super) charset: Option<u64>,
    /// Whether Content-Type and Content-Disposition give the part different names.
    pub(super) has_two_names: bool,
    /// The length of the content if the mail ends in the part: of the whole text, otherwise of the decoded content.
    pub(super) cut_at: Option<u64>,
    /// Digests of the first bytes, for the lengths that were requested for this item, and for `cut_at`.
    pub(super) prefixes: Vec<(u64, Digest)>,
}

impl Leaf {
    /// Whether the part is a text with no word and without a name.
    pub(super) fn is_empty_text(&self) -> bool {
        self.shown.is_some() && self.text == Some(Digest::of(b""))
    }
}

/// Where a cut copy ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Place {
    /// The item in which it ends.
    pub(super) item: usize,
    /// Length of the content of the item, in bytes.
    pub(super) length: u64,
}

/// Facts in the note that replaces a part. A field is `None` if the note lacks the fact.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Missing {
    /// Digest of the note with its header. Notes of different words are different parts.
    pub(super) note: u64,
    /// Digest of the decoded content.
    pub(super) content: Option<Digest>,
    /// Digest of the fields of the part that was replaced. Mailman does not note them.
    pub(super) fields: Option<u64>,
    /// Length of the decoded content, in bytes.
    pub(super) size: Option<u64>,
    /// Length of the encoded body, in bytes (X-Apple-Content-Length).
    pub(super) encoded: Option<u64>,
    pub(super) name: Option<u64>,
    pub(super) essence: Option<u64>,
    /// Digest of the Content-Description.
    pub(super) description: Option<u64>,
    pub(super) is_message: bool,
}
