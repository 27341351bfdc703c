//! The items into which the body of a mail is divided for the comparison: parts, notes in place of parts, and the starts and
//! ends of multiparts and messages.

use super::plain::Digest;
use crate::mime::PartId;

#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(super) enum Item {
    Content(Box<Leaf>),
    Missing(Box<NoteFacts>),
    Start(Start),
    /// The end of a multipart or message. The value is the digest of the text after the last part of a multipart.
    End(Digest),
}

/// The position of an item in its mail: the part, and the note in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Spot {
    pub(super) part: PartId,
    /// Number of the note among the notes in the text of the part, from 0. It is 0 if the whole part is the note.
    pub(super) note: usize,
    /// Digest of the whole content of an enclosed message. It identifies the content that replaces the note, if the
    /// message is missing in another copy.
    pub(super) message: Option<Digest>,
}

/// Marks the place in the list of items at which a multipart or an enclosed message begins. Two mails with the same
/// texts, but another structure, differ in these marks.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Start {
    /// Digest of the [fields](super::body::fields_of_part) of the part.
    pub(super) fields: Digest,
    /// Digest of the text before the first part of a multipart, or of the header of a message.
    pub(super) before: Digest,
    pub(super) essence: Digest,
    pub(super) name: Option<Digest>,
    pub(super) is_message: bool,
}

/// A part with its content.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Leaf {
    /// Digest of the [fields](super::body::fields_of_part) of the part.
    pub(super) fields: Digest,
    pub(super) essence: Digest,
    pub(super) name: Option<Digest>,
    /// Digest of the Content-Description.
    pub(super) description: Option<Digest>,
    /// Length of the decoded content, in bytes.
    pub(super) size: u64,
    /// Length of the encoded body with LF as line ending, in bytes. A note of Apple Mail contains this length of the
    /// removed part.
    pub(super) encoded: u64,
    /// Digest of the decoded content.
    pub(super) content: Digest,
    /// Digest of a text without the footers of mailing lists. [`PlainText`](super::plain_text::PlainText) describes its form.
    pub(super) text: Option<Digest>,
    /// Whether `content` is the exact content of an attached text file: base64 protects its line endings. In other encodings,
    /// servers and mailboxes change them.
    pub(super) is_exact: bool,
    /// Two digests of a [plain](super::body::is_plain_text) text, with and without the footers of mailing lists. Addresses such
    /// as `ann at example.org`, as archives write them, are replaced with real addresses first.
    pub(super) shown: Option<[Digest; 2]>,
    /// Digest of the charset of a text. `None` if the text is ASCII, so that its charset does not matter.
    pub(super) charset: Option<Digest>,
    /// Whether Content-Type and Content-Disposition contain different names. Programs disagree about which one is the
    /// name of the part. A note of Mailman contains only a name, so it does not match such a part.
    pub(super) has_two_names: bool,
    /// Length in bytes of the incomplete content, if the mail is truncated in this part. For a text, it is the length of the
    /// normalized text; otherwise that of the decoded content.
    pub(super) cut_at: Option<u64>,
    /// Digests of the start of the content, each with the number of bytes that it covers. They are compared with truncated
    /// copies, which end after one of these lengths. The lengths are those of the known truncated copies, and `cut_at`.
    pub(super) prefixes: Vec<(u64, Digest)>,
}

impl Leaf {
    /// Returns whether the part is a text without any words and has no name.
    pub(super) fn is_empty_text(&self) -> bool {
        self.shown.is_some() && self.text == Some(Digest::of(b""))
    }
}

/// The position at which a truncated copy of a mail ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct CutPlace {
    /// Index of the last item.
    pub(super) item: usize,
    /// Number of bytes of the item's content that the truncated copy contains.
    pub(super) length: u64,
}

/// The facts in a note that a program left in place of a removed part. A field is `None` if the note does not contain the fact.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct NoteFacts {
    /// Digest of the whole part that is the note. Two notes with different words count as different parts.
    pub(super) note: Digest,
    /// Digest of the decoded content.
    pub(super) content: Option<Digest>,
    /// Digest of the header fields of the removed part. `None` for a Mailman note, which does not contain them.
    pub(super) fields: Option<Digest>,
    /// Length of the decoded content, in bytes.
    pub(super) size: Option<u64>,
    /// Length of the encoded body, in bytes (X-Apple-Content-Length).
    pub(super) encoded: Option<u64>,
    pub(super) name: Option<Digest>,
    pub(super) essence: Option<Digest>,
    /// Digest of the Content-Description.
    pub(super) description: Option<Digest>,
    pub(super) is_message: bool,
}
