//! Facts about each form of references (such as the notes of Mailman or the shortcut files of Exchange) on which
//! planning and editing depend. The directory of a form defines the facts about it.

use super::{ExternalBody, ReferenceShape, TextNote};
use crate::edit::Group;
use crate::engine::content_source::ContentSource;
use crate::engine::new_part::StoredContent;
use crate::engine::policy::{Follow, Policy};
use crate::engine::report::{Kind, Refusal};
use crate::mime::MessageTree;

/// The facts about one form.
#[derive(Debug)]
pub struct Facts {
    pub shape: ReferenceShape,
    /// Kind of the report rows for references of this form.
    pub kind: Kind,
    /// The word of `--follow` that selects the form. `None` if references of this form are always followed. The reader of a
    /// form can select another word for a single reference.
    pub follow: Option<Follow>,
    /// The place in the message at which the content is inserted.
    pub(in crate::engine) insertion: Insertion,
    /// Minimum number of path components that a file of `--attachments` must have in common with the URL of the
    /// reference, counted from the end of the path. `None` if files of `--attachments` are never used for this form.
    pub attachment_components: Option<usize>,
    /// Suffix that the mail program appended to the file name, such as `.url` in `Report.docx.url`.
    pub suffix: Option<&'static str>,
    /// Whether the server can provide the media type that the mail declares. If not, the request contains no media type.
    pub server_knows_type: bool,
    /// Whether the content was once a part of the mail. Other copies of the mail (`--copies`) may then still contain it.
    pub may_be_in_copies: bool,
    /// Whether the part quotes the header that it had before its content was removed. If so, this header is restored, and the
    /// content gets the encoding that the header declares.
    pub quotes_header: bool,
    /// Whether the mail program wrote the Content-Disposition field of the part. The field is then removed with the reference.
    pub wrote_disposition: bool,
    /// Whether the file is shared by a web page: the part can be a page about the file, and the server can return a page in
    /// place of the file. Such parts declare application/octet-stream, which matches every media type, so a page in place of
    /// the file is detected by a check of its own.
    pub has_web_page: bool,
    /// Names of the fields that `embody detach` writes into the header of a part of this form. `embody restore` replaces these
    /// fields by the original ones, which the body quotes. `None` is the same as Content-Type alone.
    pub detach_fields: Option<&'static [&'static str]>,
}

/// The place in the message at which the content of a reference is inserted.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) enum Insertion {
    /// The content replaces the part, with a new header and body.
    Part,
    /// The content becomes the body of the part, whose header stays.
    Body(Refill),
    /// The content becomes a new part in place of a note in a text. The text around the note is kept.
    Note(Conversion),
    /// The content becomes a new attachment of the message. The document that links to it stays unchanged.
    Attachment,
}

/// A function that returns the edits for a part that gets its body back, and true if the result matches a value in the mail,
/// which proves that the content is the original.
pub(in crate::engine) type Refill =
    fn(&MessageTree<'_>, &ExternalBody<'_>, &ContentSource) -> Result<(Group, bool), Refusal>;

/// A function that converts the stored content for a note to the original attachment, and checks its type and size.
pub(in crate::engine) type Conversion =
    fn(&ExternalBody<'_>, &TextNote, ContentSource, &Policy) -> Result<StoredContent, Refusal>;

impl Facts {
    /// Returns the facts about a form in which each reference is a whole part, and whose content is retrieved only from
    /// a server.
    pub const fn of_whole_part(shape: ReferenceShape, kind: Kind, follow: Option<Follow>) -> Self {
        Self {
            shape,
            kind,
            follow,
            insertion: Insertion::Part,
            attachment_components: None,
            suffix: None,
            server_knows_type: true,
            may_be_in_copies: false,
            quotes_header: false,
            wrote_disposition: false,
            has_web_page: false,
            detach_fields: None,
        }
    }

    /// Returns true if the reference is inside a text or a document. The part is then content of the mail, and is kept when the
    /// reference is replaced.
    pub fn is_in_text(&self) -> bool {
        matches!(self.insertion, Insertion::Note(_) | Insertion::Attachment)
    }
}
