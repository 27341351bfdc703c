//! What a note of Mailman's says of what it stands for.

use crate::span::Span;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scrap {
    /// An attachment: its type, and its size, are in the note.
    File,
    Html,
    Message,
    /// Text without a charset.
    Text,
    Removed,
}

/// What a note in a text says that a header does not say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scrubbed {
    /// The lines of the note, with their ends: in the message, or in the text that its encoding stands for.
    pub note: Span,
    pub scrap: Scrap,
    pub stored_name: String,
    pub description: Option<String>,
    /// Octets of a message before it was escaped, with a line in front.
    pub message_size: Option<u64>,
    pub is_in_digest: bool,
}
