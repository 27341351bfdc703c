//! Facts about each form of references (such as the notes of Mailman or the shortcut files of Exchange) on which
//! planning and editing depend. The directory of a form defines the facts about it.

use crate::engine::report::Kind;

/// The facts about one form.
#[derive(Debug)]
pub struct Facts {
    /// Kind of the report rows for references of this form.
    pub kind: Kind,
    /// Whether the reference is inside a text. The text is then content of the mail and is kept when the reference is replaced.
    pub is_in_text: bool,
    /// Minimum number of path components that a file of `--attachments` must have in common with the URL of the
    /// reference, counted from the end of the path. `None` if files of `--attachments` are never used for this form.
    pub attachment_components: Option<usize>,
    /// Suffix that the mail program appended to the file name, such as `.url` in `Report.docx.url`.
    pub suffix: Option<&'static str>,
    /// Whether the server can provide the media type that the mail declares. If not, the request contains no media type.
    pub server_knows_type: bool,
}

impl Facts {
    /// Returns the facts about a form in which each reference is a whole part, and whose content is retrieved only from
    /// a server.
    pub const fn of_whole_part(kind: Kind) -> Self {
        Self {
            kind,
            is_in_text: false,
            attachment_components: None,
            suffix: None,
            server_knows_type: true,
        }
    }
}
