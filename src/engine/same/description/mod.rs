//! Describes a message in a few hundred bytes, for [`changes`](super::changes).

mod describer;

use super::fields::Digests;
use super::plain::Digest;
use crate::engine::external_body::{Follow, Followed};
use crate::engine::forms::Opened;
use crate::engine::ledger::Ledger;
use crate::engine::policy::Policy;

#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Description {
    key: u64,
    /// Digest of the header fields that embody never changes, in their order.
    pub(super) header: u64,
    /// Parts, headers of enclosed messages and text between parts, in the order of the message.
    pub(super) items: Vec<Item>,
    /// Content-IDs of multiparts and messages that have a Content-Location. Embody can change a link with this location to a
    /// `cid:` link with the Content-ID.
    pub(super) located: Vec<u64>,
    /// Number of multiparts without a closing boundary line. If the new message has more of them than the old one, it
    /// was truncated.
    pub(super) unclosed: usize,
    /// Sum of the digests of the header fields of parts that do not describe the content. If embody changed nothing but
    /// links, these fields must be the same.
    pub(super) other_fields: u64,
    /// Description of the message after unpacking parts that mail clients cannot read, such as `winmail.dat`.
    pub(super) opened: Option<Box<Self>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Item {
    /// Text before the first part of a multipart, or after the last one.
    Aside(u64),
    /// The header of an enclosed message.
    Message(u64),
    Part(Box<Part>),
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Part {
    /// Number of the part as in IMAP, for reports.
    pub(super) number: String,
    pub(super) essence: String,
    /// Length of the decoded content, in bytes.
    pub(super) size: u64,
    /// One digest of all fields that describe the content, except `REWRITTEN_FIELDS`. embody changes the
    /// `REWRITTEN_FIELDS` when it changes the content, so they are no evidence of an unwanted change.
    pub(super) fields: u64,
    /// One digest for each field that describes the content, except Content-Type, whose digests are in `media_type`.
    /// With separate digests, each field can be looked for in another part.
    pub(super) content_fields: Digests,
    /// Digests of two fields that embody adds when it inserts external content: Content-Disposition and Content-Base.
    pub(super) added_fields: Digests,
    /// Digests of fields that neither describe the content nor were written by a program. Empty for a message, whose fields are
    /// in [`Description::header`].
    pub(super) other_fields: Digests,
    pub(super) media_type: Digests,
    /// Digest of the decoded content.
    pub(super) content: Option<Digest>,
    /// Digest of the content after its line endings are converted to line feeds and removed at its end. `None` if this changes
    /// nothing, so that the digest would be that in `content`.
    pub(super) text: Option<Digest>,
    /// Digests of the pieces into which Eudora notes divide the text. Empty if the text contains no notes.
    pub(super) pieces: Vec<u64>,
    pub(super) notes: usize,
    /// Whether this is a message as Eudora stores it: a single text with marked texts and with notes that name the attached
    /// files.
    pub(super) is_flattened: bool,
    /// Number of files that the header of a Eudora message names. If embody inserts such a file, it leaves no trace that
    /// connects the new part with the header, so only their number is checked.
    pub(super) files_of_header: usize,
    pub(super) document: Option<Document>,
    pub(super) reference: Option<Reference>,
    pub(super) id: Option<u64>,
    pub(super) has_location: bool,
}

/// An HTML or CSS document, divided into links and the text around them.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Document {
    /// Digest of the document without the URLs of its links, and with each run of white space reduced to one space.
    pub(super) frame: Digest,
    pub(super) links: Vec<Link>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Link {
    /// Digest of the absolute URL. If the document has no base URL, the digest of the URL as it is written.
    Url(u64),
    /// Digest of the content of a `data:` URL, and of its media type.
    Data(Digest, u64),
    /// Digest of the Content-ID in a `cid:` URL.
    Part(u64),
}

/// A part that refers to content outside the message.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Reference {
    /// Digests of the external content, as far as the part determines it: its hash in a note of `embody detach`, or the bytes
    /// in a `data:` URL. Otherwise empty.
    pub(super) of: Vec<Digest>,
    /// Media type of the content, if the part declares it.
    pub(super) essence: Option<String>,
    /// Media type with its parameters, from the phantom header: the header of the content inside a message/external-body part.
    pub(super) media_type: Digests,
    /// Fields that are kept when the content is inserted. They come from two headers: the phantom header (the header inside the
    /// part), and the header of the part itself.
    pub(super) fields: Digests,
    /// Whether the part is a note of `embody detach`.
    pub(super) is_note: bool,
    /// Whether an earlier reference of the message is an alternative source of the same content. The content is then inserted
    /// for the earlier reference, and none for this reference.
    pub(super) is_rival: bool,
}

impl Description {
    /// Describes a message in its [plain form](super::plain::plain).
    pub(crate) fn of(message: &[u8]) -> Self {
        let mut description = Self::of_parts(message);
        let mut policy = Policy {
            follow: Followed::none()
                .with(Follow::Winmail)
                .with(Follow::RtfBody)
                .with(Follow::Msg)
                .with(Follow::Uuencode),
            ..Policy::default()
        };
        policy.limits.growth = u64::MAX >> 2;
        let mut ledger = Ledger::new(&policy.limits, message.len());
        let opened = Opened::default().further(message, &policy, &mut ledger, "");
        description.opened = opened.made.map(|made| Box::new(Self::of_parts(&made)));
        description
    }

    /// Returns a key that the message shares with each version that embody makes of it: the Message-ID, or the header if there
    /// is no Message-ID.
    pub(crate) fn key(&self) -> u64 {
        self.key
    }
}
