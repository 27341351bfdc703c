//! What a part refers to, and why that cannot be followed, whatever the policy.

use std::borrow::Cow;

use super::follow::{Follow, Followed};
use super::note::{Claim, Note};
use crate::engine::report::{Detail, HostedFile, Reason, Refusal, Setting};
use crate::link::url::with_octets_escaped;
use crate::mime::charset;
use crate::mime::parameters::without_comments;
use crate::mime::{Header, MediaType, PartId, Tree};
use crate::span::Span;

pub const ESSENCE: &str = "message/external-body";

/// It decides what of the part stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// `message/external-body`: the body holds the phantom header.
    ExternalBody,
    /// `X-Mozilla-Altered: AttachmentDetached`: the header that the body quotes comes back; what Thunderbird wrote goes.
    Detached,
    /// `X-Mozilla-External-Attachment-URL` on a part with a header of its own, whose body is a note.
    Enclosure,
    /// `X-Mozilla-Cloud-Part`: the same; a page about the file has the page's header and file name.
    CloudFile,
    /// `message/external-body` whose body is an `[InternetShortcut]`.
    Shortcut,
    /// Such a file, attached.
    AttachedShortcut,
    /// A note of Mailman's in a text: it alone goes, and the text becomes a multipart.
    Scrubbed,
    /// A link in a document: all of that stays, and the file becomes a part of the mail.
    Hosted(Follow),
    /// A note of Sympa's in a part of its own.
    Sympa,
    /// `X-Apple-Content-Length` on a part without a body: it is a file of Apple's Mail, and comes back.
    Apple,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// Octets of a phantom or quoted header, and of a shortcut.
    pub header_limit: usize,
    /// In one message: notes behind those are not read.
    pub most_notes: usize,
    pub forms: Followed,
    /// Read because of where the message lies.
    pub beside: Option<Follow>,
}

pub(super) struct Reader<'a, 'r> {
    pub(super) tree: &'r Tree<'a>,
    pub(super) part: PartId,
    pub(super) reading: &'r Reading,
}

pub struct ExternalBody<'a> {
    pub part: PartId,
    pub form: Form,
    pub access_type: String,
    pub target: Result<Referent<'a>, Refusal>,
    /// A detached part has the fields that it quotes, or its own Content-Type if that describes the content.
    pub phantom: Header,
    pub declared: Option<MediaType<'a>>,
    /// Of the phantom header (RFC 1864), without comments around it.
    pub content_md5: Option<&'a [u8]>,
    /// Of the phantom header, without `<>`; tells rivals from others.
    pub content_id: Option<String>,
    pub size: Option<u64>,
    pub expiration: Option<String>,
    pub file_name: Option<String>,
    pub claim: Claim,
    /// Mailman's note. Several may stand in one part.
    pub scrubbed: Option<Scrubbed>,
    pub hosted: Option<Box<HostedFile>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Referent<'a> {
    /// As it stands in the parameter: folds and blanks still in it.
    Data(Cow<'a, [u8]>),
    ContentId {
        content_id: String,
        /// A `mid:` URL names it besides (RFC 2392).
        message_id: Option<String>,
    },
    /// Absolute or relative, white space removed.
    Url(String),
    /// A file beside the mailbox that the message lies in.
    Beside {
        /// Of Apple's Mail, the number of the part.
        folder: String,
        /// What the mail calls the file; some are called otherwise there.
        name: Option<String>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scrap {
    File,
    Html,
    Message,
    /// Without a charset.
    Text,
    Removed,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scrubbed {
    /// With the ends of its lines: in the message, or in the text that its encoding stands for.
    pub note: Span,
    pub scrap: Scrap,
    pub stored_name: String,
    pub description: Option<String>,
    /// Before it was escaped, with a line in front.
    pub message_size: Option<u64>,
    pub is_in_digest: bool,
}

impl<'a> ExternalBody<'a> {
    pub(super) fn bare(
        tree: &Tree<'a>,
        part: PartId,
        form: Form,
        target: Result<Referent<'a>, Refusal>,
    ) -> Self {
        let phantom = Header::none_at(tree.part(part).body.start);
        Self::with(tree, part, form, target, phantom)
    }

    pub(super) fn with(
        tree: &Tree<'a>,
        part: PartId,
        form: Form,
        target: Result<Referent<'a>, Refusal>,
        phantom: Header,
    ) -> Self {
        let field = |name| phantom.fields.value(tree.original, name);
        Self {
            part,
            form,
            access_type: String::new(),
            target,
            declared: field("Content-Type").map(MediaType::parse),
            content_md5: field("Content-MD5").map(without_comments),
            content_id: field("Content-ID").and_then(own_identifier),
            size: None,
            expiration: None,
            file_name: None,
            claim: Claim::None,
            scrubbed: None,
            hosted: None,
            phantom,
        }
    }

    /// None for what the documents describe, and for what embody detached.
    pub fn follow(&self) -> Option<Follow> {
        match self.form {
            _ if self.claim != Claim::None => None,
            Form::ExternalBody => None,
            Form::Detached | Form::Enclosure | Form::CloudFile => Some(Follow::Thunderbird),
            Form::Shortcut => Some(Follow::Exchange),
            Form::AttachedShortcut => Some(Follow::Shortcuts),
            Form::Apple => Some(Follow::Apple),
            Form::Scrubbed => Some(match &self.scrubbed {
                Some(scrubbed) if scrubbed.is_in_digest => Follow::MailmanDigests,
                _ => Follow::Mailman,
            }),
            Form::Hosted(form) => Some(form),
            Form::Sympa => Some(Follow::Sympa),
        }
    }

    /// The part that holds it is content itself.
    pub fn stands_in_text(&self) -> bool {
        matches!(self.form, Form::Scrubbed | Form::Hosted(_))
    }

    /// The phantom header's Content-Transfer-Encoding is that of the octets where they are kept (RFC 2046 §5.2.3). URLs
    /// have none, and Thunderbird decodes what it saves.
    pub fn describes_stored_octets(&self) -> bool {
        self.form == Form::ExternalBody && !self.access_type.eq_ignore_ascii_case("url")
    }

    pub fn note(&self) -> Option<&Note> {
        match &self.claim {
            Claim::Note(note) => Some(note),
            Claim::None | Claim::Unreadable => None,
        }
    }

    pub fn is_page_about_it(&self) -> bool {
        self.form == Form::CloudFile && self.declared.is_none()
    }

    /// `Report.docx.url`, `Report.docx.html`.
    pub fn suffix(&self) -> Option<&'static str> {
        match self.form {
            Form::Shortcut | Form::AttachedShortcut => Some(".url"),
            Form::CloudFile if self.is_page_about_it() => Some(".html"),
            _ => None,
        }
    }
}

pub(super) fn size_of(media_type: &MediaType<'_>) -> Option<u64> {
    number(media_type.parameter("size")?.trim_ascii())
}

/// A larger number than can be held is above every limit.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    Some(digits.parse().unwrap_or(u64::MAX))
}

/// The largest number stands for a size that no number says.
pub fn size_in_words(octets: u64) -> String {
    let more = if octets == u64::MAX { " or more" } else { "" };
    format!("{octets} bytes{more}")
}

/// Without `<>`, comments in front, and white space.
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

/// Some readers take white space out of an identifier and others do not, so that no `cid:` URL means it for all of them.
pub fn holds_blank(value: &[u8]) -> bool {
    let mut id = within_brackets(value.trim_ascii()).iter();
    id.any(u8::is_ascii_whitespace)
}

pub(super) fn missing_url() -> Refusal {
    Refusal::lasting(Reason::MissingUrl, "the reference has no URL")
}

/// Or one of its RFC 2231 sections is: `name*1`.
pub(super) fn missing_parameter(name: &str, section: Option<u32>) -> Refusal {
    let what = match section {
        None => format!("the parameter '{name}' is missing"),
        Some(section) => format!("the section {name}*{section} is missing"),
    };
    Refusal::lasting(Reason::MissingParameter, what)
}

/// What is left of a `data:` URL would read as a whole one.
pub(super) fn cut_off(name: &str) -> Refusal {
    bad_value(format!(
        "the parameter '{name}' is incomplete: its closing quote or the text after it was lost in transit"
    ))
}

pub(super) fn bad_value(what: impl Into<Detail>) -> Refusal {
    Refusal::lasting(Reason::BadUrl, what)
}

/// The reference goes when its content comes, and with it the bytes of a name that no part has otherwise.
pub(super) fn undecodable_name(label: Option<&[u8]>) -> Refusal {
    let detail = match label {
        Some(label) => {
            let label = String::from_utf8_lossy(label.trim_ascii()).to_ascii_lowercase();
            format!("the name of the file cannot be decoded from the charset {label}")
        }
        None => "the name of the file is not UTF-8, and no charset is declared".to_owned(),
    };
    Refusal::lasting(Reason::CharsetNotSupported, detail)
}

/// The charset that a part declares.
pub(super) fn declared_charset<'a>(tree: &Tree<'a>, part: PartId) -> Option<Cow<'a, [u8]>> {
    let label = MediaType::parse(tree.value(part, "Content-Type")?).parameter("charset")?;
    (!label.trim_ascii().is_empty()).then_some(label)
}

/// `None` if the octets are not text in the charset. Where none is declared, UTF-8 and text that is Western by its letters
/// are read: Pipermail's archives of lists declare no charset.
pub(super) fn text_in<'t>(label: Option<&[u8]>, octets: &'t [u8]) -> Option<Cow<'t, str>> {
    match label.filter(|label| !charset::is_utf16_label(label)) {
        Some(label) => charset::decode(label, octets),
        None => charset::decode_undeclared(octets).or_else(|| charset::decode_western(octets)),
    }
}

pub(super) fn encoded() -> Refusal {
    let detail = "the part has a Content-Transfer-Encoding, which RFC 2046 does not allow for a part that refers to external content";
    Refusal::lasting(Reason::EncodedReference, detail)
}

pub(super) fn deleted() -> Refusal {
    let detail = "the attachment was deleted; there is nothing to retrieve";
    Refusal::lasting(Reason::Deleted, detail)
}

/// Of more notes than are read, one stays to say so.
pub(super) fn limit_notes(bodies: &mut Vec<ExternalBody<'_>>, reading: &Reading) {
    bodies.truncate(reading.most_notes.saturating_add(1));
    if let Some(last) = bodies.get_mut(reading.most_notes) {
        let detail = Detail::from(
            "this reference and the references after it are not followed, because they exceed ",
        )
        .naming(Setting::Parts);
        last.target = Err(Refusal::lasting(Reason::TooManyParts, detail));
    }
}

/// The content would be lost.
pub(super) fn own_content(what: &str) -> Refusal {
    let detail = format!("the part is a reference, but {what}");
    Refusal::lasting(Reason::UnsupportedAccessType, detail)
}
