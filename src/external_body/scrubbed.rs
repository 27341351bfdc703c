//! What a note of Mailman's says of what it stands for.

use crate::span::Span;

/// What a note is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scrap {
    /// An attachment: its type, and its size, are in the note.
    File,
    /// HTML, stored as it was or escaped.
    Html,
    /// An embedded message, stored escaped.
    Message,
    /// Text without a charset.
    Text,
    /// HTML that was not stored.
    Removed,
}

/// What a note in a text says that a header does not say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scrubbed {
    /// The lines of the note, with their ends: in the message, or in the text that its encoding stands for.
    pub note: Span,
    /// What was taken out.
    pub scrap: Scrap,
    /// The last component of the URL.
    pub stored_name: String,
    /// What the attachment was described as.
    pub description: Option<String>,
    /// Octets of a message before it was escaped, with a line in front.
    pub message_size: Option<u64>,
    /// Whether the note is that of a mail in a digest.
    pub is_in_digest: bool,
}
