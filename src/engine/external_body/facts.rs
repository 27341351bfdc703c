//! Properties of each form of references, which planning and editing need. The directory of each form contains its values.

use crate::engine::report::Kind;

/// The facts about one form.
#[derive(Debug)]
pub struct Facts {
    /// Kind of the report rows for references of this form.
    pub kind: Kind,
    /// Whether the reference is inside a text. The text is then content of the mail and is kept when the reference is replaced.
    pub is_in_text: bool,
    /// Number of path components, from the end, that a file of `--attachments` must have in common with the URL of the
    /// reference. `None` if no such file may be the content.
    pub attachment_components: Option<usize>,
    /// Suffix that the mail program appended to the file name, such as `.url` in `Report.docx.url`.
    pub suffix: Option<&'static str>,
    /// Whether the server can provide the media type that the mail declares. If not, the request contains no media type.
    pub server_knows_type: bool,
}

impl Facts {
    /// Returns the facts about a form whose references are whole parts and whose content is retrieved only from a server.
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
