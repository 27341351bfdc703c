//! The facts about a form of references that the plan and the edits need. Each form states them in its own directory.

use crate::engine::report::Kind;

/// The facts about one form.
#[derive(Debug)]
pub struct Facts {
    /// Kind of the rows of the report.
    pub kind: Kind,
    /// Whether the reference is inside a text, so that the part itself is content as well and stays in the mail.
    pub is_in_text: bool,
    /// Number of path components, from the end, that a file of `--attachments` must have in common with the URL of the
    /// reference. `None` if no such file may be the content.
    pub attachment_components: Option<usize>,
    /// Suffix that the program added to the file name, as in `Report.docx.url`.
    pub suffix: Option<&'static str>,
    /// Whether servers know the media type that the mail declares. If not, a request does not ask for this type.
    pub server_knows_type: bool,
}

impl Facts {
    /// The facts about a form that replaces the whole part, and whose content comes from a server alone.
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
