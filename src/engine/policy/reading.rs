//! The settings for reading references: which kinds are read, and how much of a part.

use super::{Follow, Followed};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReferenceParse {
    /// Maximum length in bytes of a phantom header (the header inside an external-body part), of a header that Thunderbird
    /// quotes, or of a shortcut file.
    pub header_limit: usize,
    /// Maximum number of notes (texts in place of attachments) that are read in one message.
    pub most_notes: usize,
    pub forms: Followed,
    /// The kind of reference that can occur only in this kind of mailbox, such as references to the attachment files of
    /// Apple Mail. `None` if the mailbox has no such files.
    pub beside: Option<Follow>,
}
