//! Data types for references: [`ExternalBody`] is one reference, with its content or the reason why it can never be
//! followed, and [`Facts`] are what planning and editing need to know about a form of references (such as the notes of
//! Mailman). The directory of a form defines its facts.

use std::borrow::Cow;

use super::note::{BodyNote, Claim};
use crate::edit::Group;
use crate::engine::content_source::ContentSource;
use crate::engine::new_part::StoredContent;
use crate::engine::policy::{Follow, Policy, ReferenceParse};
use crate::engine::report::{Detail, HostedFile, Kind, Reason, Refusal, Setting};
use crate::link::url::with_octets_escaped;
use crate::mime::parameters::without_comments;
use crate::mime::{Header, MediaType, MessageTree, PartId, charset};
use crate::span::{Newline, Span};

pub const ESSENCE: &str = "message/external-body";

/// Form of a reference. It determines which bytes of the part are kept when the content is inserted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReferenceShape {
    /// `message/external-body`. Its body contains the phantom header: the header fields of the external content.
    ExternalBody,
    /// An attachment that Thunderbird detached (`X-Mozilla-Altered: AttachmentDetached`). The body quotes the original
    /// header of the part, which is restored. Thunderbird's own fields are removed.
    Detached,
    /// An enclosure of a news feed: a part with the field `X-Mozilla-External-Attachment-URL`. The header of the part
    /// describes the file, and the body is a sentence that is replaced by the file.
    Enclosure,
    /// A file that Thunderbird uploaded: a part with the field `X-Mozilla-Cloud-Part`. The header of the part describes
    /// the file, unless the body is a web page about the file. In that case, the header describes this page.
    CloudFile,
    /// `message/external-body` whose body is an `[InternetShortcut]` file.
    Shortcut,
    /// An attached `[InternetShortcut]` file.
    AttachedShortcut,
    /// A note in a text: the lines that Mailman left in place of an attachment. Only the note is removed, and the text becomes
    /// a multipart.
    Mailman,
    /// A link to a hosted file in an HTML document. The document stays unchanged, and the file becomes a part of the
    /// mail.
    Hosted,
    /// A text part that the list server Sympa put in place of an attachment which it removed.
    Sympa,
    /// An attachment that an archive of Yahoo Groups contains only as a note: a part whose body is the note.
    YahooGroups,
    /// An attachment that Apple Mail stored in a separate file: a part without a body, with the field
    /// `X-Apple-Content-Length`. The body is restored from the file.
    Apple,
}

pub(crate) struct ReferenceReader<'a, 'r> {
    pub(in crate::engine) tree: &'r MessageTree<'a>,
    pub(in crate::engine) part: PartId,
    pub(in crate::engine) reading: &'r ReferenceParse,
}

pub struct ExternalBody<'a> {
    pub part: PartId,
    /// The facts about the form of the reference.
    pub facts: &'static Facts,
    pub access_type: String,
    pub target: Result<Referent<'a>, Refusal>,
    /// Header of the external content: usually the phantom header, which is the header inside the part. For a part that
    /// Thunderbird detached, it is the header quoted in the body, or the part's own Content-Type if that describes the
    /// content.
    pub phantom: Header,
    pub declared: Option<MediaType<'a>>,
    /// Content-MD5 in the phantom header, the header inside the part (RFC 1864), without comments.
    pub content_md5: Option<&'a [u8]>,
    /// Content-ID in the phantom header, the header inside the part, without `<>`. References with the same id are alternative
    /// sources for one attachment.
    pub content_id: Option<String>,
    pub size: Option<u64>,
    pub expiration: Option<String>,
    pub file_name: Option<String>,
    pub claim: Claim,
    /// The word of `--follow` that selects this reference. `None` if it is always followed.
    pub selected_by: Option<Follow>,
    /// The note in a text that refers to the content. A part with several notes has one `ExternalBody` for each note.
    pub text_note: Option<TextNote>,
    /// The linked file on a server, as the mail describes it.
    pub linked: Option<Box<HostedFile>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Referent<'a> {
    /// A `data:` URL as the parameter contains it, with folds and blanks.
    Data(Cow<'a, [u8]>),
    ContentId {
        content_id: String,
        /// Message-ID, if the reference is a `mid:` URL with both a Message-ID and a Content-ID (RFC 2392).
        message_id: Option<String>,
    },
    /// An absolute or relative URL without white space.
    Url(String),
    /// A file next to the mailbox that contains the message.
    Beside {
        /// Name of the subdirectory that contains the file. In Apple Mail, it is the number of the part.
        folder: String,
        /// Name of the file according to the mail. The file on the disk can have another name.
        name: Option<String>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scrap {
    File,
    Html,
    Message,
    /// A text without a declared charset. Mailman cannot join such text with the other texts, so it stored the text as
    /// a file.
    Text,
    Removed,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextNote {
    /// Position of Mailman's note with its line endings, in the message or in the decoded text of the part.
    pub note: Span,
    pub scrap: Scrap,
    pub stored_name: String,
    pub description: Option<String>,
    /// Size in bytes of an enclosed message that Mailman removed, as its note states it. Mailman counted the message
    /// before it escaped the message as HTML, and included the `From ` line before the header.
    pub message_size: Option<u64>,
    pub is_in_digest: bool,
}

/// The facts about one form.
#[derive(Debug)]
pub struct Facts {
    pub shape: ReferenceShape,
    /// Kind of the report rows for references of this form.
    pub kind: Kind,
    /// Word of `--follow` that selects the form. `None` if references of this form are always followed. The parser of
    /// the form can override it for a single reference.
    pub follow: Option<Follow>,
    /// Where in the message the content is inserted.
    pub(in crate::engine) insertion: Insertion,
    /// Minimum number of trailing path components in which a file of `--attachments` must match the URL of the
    /// reference. `None` if files of `--attachments` are never used for this form.
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
    /// Whether a web page can take the place of the file: the part itself can be a page about the file, or the server
    /// can return such a page. Parts of this form declare application/octet-stream, which matches any media type, so a
    /// separate check detects the page.
    pub has_web_page: bool,
    /// Names of the fields that `embody detach` writes into the header of a part of this form. `embody restore` replaces these
    /// fields by the original ones, which the body quotes. `None` is the same as Content-Type alone.
    pub detach_fields: Option<&'static [&'static str]>,
}

/// Where in the message the content of a reference is inserted.
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

/// Function that returns the edits for putting a body back into its part. The boolean is true if a value in the mail
/// (such as a length) confirms that the content is the original.
pub(in crate::engine) type Refill =
    fn(&MessageTree<'_>, &ExternalBody<'_>, &ContentSource) -> Result<(Group, bool), Refusal>;

/// A function that converts the stored content for a note to the original attachment, and checks its type and size.
pub(in crate::engine) type Conversion =
    fn(&ExternalBody<'_>, &TextNote, ContentSource, &Policy) -> Result<StoredContent, Refusal>;

impl Facts {
    /// Returns the facts for the usual kind of form: each reference is a whole part, and its content is retrieved only
    /// from a server.
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

    /// Whether the reference is only a place in a text or document. The part itself is then content of the mail, and is
    /// kept.
    pub fn is_in_text(&self) -> bool {
        matches!(self.insertion, Insertion::Note(_) | Insertion::Attachment)
    }
}

impl<'a> ExternalBody<'a> {
    pub(in crate::engine) fn bare(
        tree: &MessageTree<'a>,
        part: PartId,
        facts: &'static Facts,
        target: Result<Referent<'a>, Refusal>,
    ) -> Self {
        let phantom = Header::none_at(tree.part(part).body.start);
        Self::with(tree, part, facts, target, phantom)
    }

    pub(in crate::engine) fn with(
        tree: &MessageTree<'a>,
        part: PartId,
        facts: &'static Facts,
        target: Result<Referent<'a>, Refusal>,
        phantom: Header,
    ) -> Self {
        let field = |name| phantom.fields.value(tree.original, name);
        Self {
            part,
            facts,
            access_type: String::new(),
            target,
            declared: field("Content-Type").map(MediaType::parse),
            content_md5: field("Content-MD5").map(without_comments),
            content_id: field("Content-ID").and_then(own_identifier),
            size: None,
            expiration: None,
            file_name: None,
            claim: Claim::None,
            selected_by: facts.follow,
            text_note: None,
            linked: None,
            phantom,
        }
    }

    /// Returns the `--follow` word that selects the reference. `None` for `message/external-body` and for attachments
    /// that embody detached, which are always followed.
    pub fn follow(&self) -> Option<Follow> {
        match self.claim {
            Claim::None => self.selected_by,
            Claim::Note(_) | Claim::Unreadable => None,
        }
    }

    /// Whether the stored content is still encoded with the Content-Transfer-Encoding of the phantom header (RFC 2046
    /// §5.2.3). Content from a URL is not, and neither are the files that Thunderbird saves.
    pub fn describes_stored_octets(&self) -> bool {
        self.facts.shape == ReferenceShape::ExternalBody
            && !self.access_type.eq_ignore_ascii_case("url")
    }

    pub fn note(&self) -> Option<&BodyNote> {
        match &self.claim {
            Claim::Note(note) => Some(note),
            Claim::None | Claim::Unreadable => None,
        }
    }

    /// Whether the reference is only a place in a text or document. The part is then content of the mail and must not
    /// be removed.
    pub fn stands_in_text(&self) -> bool {
        self.facts.is_in_text()
    }

    /// Returns the suffix that a mail program appended to the file name. For a file in cloud storage, this is `.html`,
    /// and only if the part is a web page about the file.
    pub fn suffix(&self) -> Option<&'static str> {
        let suffix = self.facts.suffix;
        suffix.filter(|_| !self.facts.has_web_page || self.is_page_about_it())
    }

    /// Returns true if the part is a web page about the file. Its header then describes the page and not the file.
    pub fn is_page_about_it(&self) -> bool {
        self.facts.has_web_page && self.declared.is_none()
    }
}

/// Returns the line ending after the header of a part.
pub fn newline_of(tree: &MessageTree<'_>, part: PartId) -> Newline {
    Newline::of_first_line(tree.part(part).separator.of(tree.original))
}

pub(in crate::engine) fn size_of(media_type: &MediaType<'_>) -> Option<u64> {
    number(media_type.parameter("size")?.trim_ascii())
}

/// Reads a decimal number. A number that is too large becomes the largest possible one, which exceeds every limit.
pub(in crate::engine) fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    Some(digits.parse().unwrap_or(u64::MAX))
}

/// Returns an id without `<>`, without text before and after them, and without white space.
pub fn identifier(value: &[u8]) -> String {
    let mut text = with_octets_escaped(within_brackets(value)).into_owned();
    text.retain(|symbol| !symbol.is_whitespace());
    text
}

pub fn own_identifier(value: &[u8]) -> Option<String> {
    Some(identifier(value)).filter(|id| !id.is_empty())
}

fn within_brackets(value: &[u8]) -> &[u8] {
    let (open, close) = (memchr::memchr(b'<', value), memchr::memrchr(b'>', value));
    let inner = open
        .zip(close)
        .and_then(|(open, close)| value.get(open + 1..close));
    inner.unwrap_or(value)
}

/// Returns true if an id contains white space. Some programs remove the white space and others do not, so no `cid:` URL works
/// for all of them.
pub fn holds_blank(value: &[u8]) -> bool {
    let mut id = within_brackets(value.trim_ascii()).iter();
    id.any(u8::is_ascii_whitespace)
}

pub(in crate::engine) fn missing_url() -> Refusal {
    Refusal::lasting(Reason::MissingUrl, "the reference has no URL")
}

/// Returns the refusal for a missing parameter. `section` is the number of a missing section of a long parameter (RFC 2231),
/// as in `name*1`.
pub(in crate::engine) fn missing_parameter(name: &str, section: Option<u32>) -> Refusal {
    let what = match section {
        None => format!("the parameter '{name}' is missing"),
        Some(section) => format!("the section {name}*{section} is missing"),
    };
    Refusal::lasting(Reason::MissingParameter, what)
}

/// Returns the refusal for a URL whose end was lost. Such a URL must not be used: a truncated `data:` URL looks
/// complete, and would give truncated content.
pub(in crate::engine) fn cut_off(name: &str) -> Refusal {
    bad_value(format!(
        "the parameter '{name}' is incomplete: the closing quote or the text after the parameter was lost in transit"
    ))
}

pub(in crate::engine) fn bad_value(what: impl Into<Detail>) -> Refusal {
    Refusal::lasting(Reason::BadUrl, what)
}

/// Returns the refusal for a file name that cannot be decoded. The reference must stay in the mail, because its bytes are the
/// only record of the name.
pub(in crate::engine) fn undecodable_name(label: Option<&[u8]>) -> Refusal {
    let detail = match label {
        Some(label) => {
            let label = String::from_utf8_lossy(label.trim_ascii()).to_ascii_lowercase();
            format!("the name of the file cannot be decoded from the charset {label}")
        }
        None => "the name of the file is not UTF-8, and no charset is declared".to_owned(),
    };
    Refusal::lasting(Reason::CharsetNotSupported, detail)
}

/// Returns the charset that a part declares.
pub(in crate::engine) fn declared_charset<'a>(
    tree: &MessageTree<'a>,
    part: PartId,
) -> Option<Cow<'a, [u8]>> {
    let label = MediaType::parse(tree.value(part, "Content-Type")?).parameter("charset")?;
    (!label.trim_ascii().is_empty()).then_some(label)
}

/// Decodes text. Returns `None` if the bytes are not valid in the charset. Without a declared charset, as in Pipermail's
/// archives of mailing lists, text is accepted if it is UTF-8 or looks like Western European.
pub(in crate::engine) fn text_in<'t>(
    label: Option<&[u8]>,
    octets: &'t [u8],
) -> Option<Cow<'t, str>> {
    match label.filter(|label| !charset::is_utf16_label(label)) {
        Some(label) => charset::decode(label, octets),
        None => charset::decode_undeclared(octets).or_else(|| charset::decode_western(octets)),
    }
}

pub(in crate::engine) fn encoded() -> Refusal {
    let detail = "the part has a Content-Transfer-Encoding, which RFC 2046 does not allow for a part that refers to external content";
    Refusal::lasting(Reason::EncodedReference, detail)
}

pub(in crate::engine) fn deleted() -> Refusal {
    let detail = "the attachment was deleted; there is nothing to retrieve";
    Refusal::lasting(Reason::Deleted, detail)
}

/// Truncates the list to the limit plus one. The extra reference is refused, so that its row in the report says that
/// the limit was exceeded.
pub(in crate::engine) fn limit_notes(bodies: &mut Vec<ExternalBody<'_>>, reading: &ReferenceParse) {
    bodies.truncate(reading.most_notes.saturating_add(1));
    if let Some(last) = bodies.get_mut(reading.most_notes) {
        let detail = Detail::from(
            "this reference and the references after it are not followed, because the message has more references than ",
        )
        .naming(Setting::Parts)
        .then(" allows");
        last.target = Err(Refusal::lasting(Reason::TooManyParts, detail));
    }
}

/// Returns the refusal for a part that contains other content than the reference. Replacing the part would lose it.
pub(in crate::engine) fn own_content(what: &str) -> Refusal {
    let detail =
        format!("the part contains a reference, and replacing the part would lose content: {what}");
    Refusal::lasting(Reason::UnsupportedAccessType, detail)
}
