//! Parts that refer to their content → [`ExternalBody`].
//!
//! `message/external-body` (RFC 2046 §5.2.3, RFC 2017, RFC 1873), and other forms, which programs write
//! and no document describes: attachments that Thunderbird detached, enclosures of its feed reader, files
//! it left in a cloud, and the shortcuts that Exchange writes ([`Form`]).
//!
//! Reads what a part refers to and what is declared of the content. Nothing is resolved, allowed or
//! retrieved here; a reference that cannot be followed is an [`Unusable`].
//!
//! Deviations from the documents, because mail has them:
//! * the URL parameter may be unquoted, continued or encoded (RFC 2231), in `<>`, or start with `URL:`;
//! * all white space in it is removed (RFC 2017 §3.1 speaks of blanks between words);
//! * LOCAL-FILE names must be absolute: a relative one depended on the sender's directory, and `~`
//!   on the sender's account.

mod access;
mod detached;
pub mod schemes;
mod shortcut;
mod url;

use std::borrow::Cow;

use crate::mime::header::{self, Front};
use crate::mime::parameters::without_comments;
use crate::mime::{Header, MediaType, PartId, TransferEncoding, Tree};

pub use self::detached::is_reference_field;
pub use self::url::read_url;

/// The media type of external bodies.
pub const ESSENCE: &str = "message/external-body";

/// How a part refers to its content, and so what of it stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// `message/external-body`: the body holds the phantom header.
    ExternalBody,
    /// `X-Mozilla-Altered: AttachmentDetached`: the body quotes the header the part had. That header
    /// comes back; what Thunderbird wrote instead goes.
    Detached,
    /// `X-Mozilla-External-Attachment-URL` on a part with a header of its own, whose body is a note.
    Enclosure,
    /// `X-Mozilla-Cloud-Part`: the same; where the part is a page about the file, header and file name
    /// are the page's.
    CloudFile,
    /// `message/external-body` or a file whose body is an `[InternetShortcut]`.
    Shortcut,
}

/// Which `[InternetShortcut]` files are references: `--shortcuts`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Shortcuts {
    /// Those in a `message/external-body`, as Exchange writes them.
    #[default]
    Exchange,
    /// Attached ones as well (`application/internet-shortcut`).
    All,
}

/// How parts are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// Octets of a phantom or quoted header, and of a shortcut: what is larger is not read.
    pub header_limit: usize,
    /// Which shortcuts are references.
    pub shortcuts: Shortcuts,
}

/// One part that refers to its content.
#[derive(Clone, Debug)]
pub struct ExternalBody<'a> {
    /// The part that holds the reference.
    pub part: PartId,
    /// How it refers.
    pub form: Form,
    /// The access type as written; empty if there is none.
    pub access_type: String,
    /// What is referred to, or why that cannot be said.
    pub target: Result<Target<'a>, Unusable>,
    /// The phantom header: the fields the content would have. For a detached part those that it quotes,
    /// or its own Content-Type if that describes the content.
    pub phantom: Header,
    /// The phantom header's Content-Type, if it has one.
    pub declared: Option<MediaType<'a>>,
    /// The phantom header's Content-MD5 value (RFC 1864), without comments around it.
    pub content_md5: Option<&'a [u8]>,
    /// The phantom header's Content-ID without `<>`; tells rivals from others.
    pub content_id: Option<String>,
    /// The `size` parameter, in octets.
    pub size: Option<u64>,
    /// The `expiration` parameter, as written.
    pub expiration: Option<String>,
    /// The file's name, if no header field has it.
    pub file_name: Option<String>,
}

/// What an external body refers to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target<'a> {
    /// A `data:` URL, as it stands in the parameter: folds and blanks still in it.
    Data(Cow<'a, [u8]>),
    /// A part of the same message.
    ContentId {
        /// The Content-ID, without `<>`.
        content_id: String,
        /// The Message-ID that a `mid:` URL names besides (RFC 2392).
        message_id: Option<String>,
    },
    /// Any other URL, absolute or relative, white space removed.
    Url(String),
}

/// Why a part's reference cannot be followed, whatever the policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unusable {
    /// The part is base64 or quoted-printable encoded (RFC 2046 §5.2.3 forbids that).
    Encoded,
    /// No `access-type` parameter.
    NoAccessType,
    /// An access type that is known but not retrieved by: its name.
    Unsupported(String),
    /// An unknown access type: its name.
    Unknown(String),
    /// access-type=URL, or a detached part, without a URL.
    MissingUrl,
    /// Another parameter is missing: its name, and its RFC 2231 section if only that is missing.
    MissingParameter(&'static str, Option<u32>),
    /// CONTENT-ID without a Content-ID field.
    MissingContentId,
    /// A parameter's value cannot be part of a URL: what is wrong with it.
    BadValue(String),
    /// A parameter's or a field's value was cut off: its name. What is left of a `data:` URL would
    /// read as a whole one.
    CutOff(&'static str),
    /// A LOCAL-FILE name that is not an absolute path.
    RelativeFile(String),
    /// The attachment was deleted.
    Deleted,
    /// The part refers elsewhere, but holds more than a note, which would be lost: what it holds.
    OwnContent(&'static str),
}

impl<'a> ExternalBody<'a> {
    /// Reads a part; none if it does not refer elsewhere.
    #[must_use]
    pub fn read(original: &'a [u8], tree: &Tree, part: PartId, reading: &Reading) -> Option<Self> {
        if tree.part(part).essence == ESSENCE {
            let content_type = header::first(original, tree.fields(part), "Content-Type");
            let value = content_type.map(|field| field.value.of(original));
            let mut media_type = MediaType::parse(value.unwrap_or_default());
            if content_type.is_some_and(|field| tree.ends_in(&field)) {
                media_type = media_type.open_ended();
            }
            return shortcut::of_exchange(original, tree, part, &media_type, reading)
                .or_else(|| Self::of_document(original, tree, part, &media_type, reading));
        }
        detached::read(original, tree, part, reading)
            .or_else(|| shortcut::of_file(original, tree, part, reading))
    }

    /// A `message/external-body` as RFC 2046 has it.
    fn of_document(
        original: &'a [u8],
        tree: &Tree,
        part: PartId,
        media_type: &MediaType<'a>,
        reading: &Reading,
    ) -> Option<Self> {
        let body = tree.part(part).body;
        let phantom = Header::read(original, body, Front::Part, reading.header_limit, |_| false);
        let phantom_id = header::first(original, &phantom.fields, "Content-ID")
            .map(|field| identifier(field.value.of(original)))
            .filter(|id| !id.is_empty());
        let target = match tree.part(part).encoding {
            TransferEncoding::Base64 | TransferEncoding::QuotedPrintable => Err(Unusable::Encoded),
            _ => access::target_of(original, tree, part, media_type, phantom_id.as_deref()),
        };
        let mut body = Self::with(original, part, Form::ExternalBody, target, phantom);
        body.size = size_of(media_type);
        body.expiration = media_type
            .parameter("expiration")
            .map(|value| String::from_utf8_lossy(&value).into_owned());
        body.access_type = access::name_of(media_type);
        Some(body)
    }

    /// A reference with what its phantom header declares.
    fn with(
        original: &'a [u8],
        part: PartId,
        form: Form,
        target: Result<Target<'a>, Unusable>,
        phantom: Header,
    ) -> Self {
        let field = |name| {
            header::first(original, &phantom.fields, name).map(|field| field.value.of(original))
        };
        Self {
            part,
            form,
            access_type: String::new(),
            target,
            declared: field("Content-Type").map(MediaType::parse),
            content_md5: field("Content-MD5").map(without_comments),
            content_id: field("Content-ID")
                .map(identifier)
                .filter(|id| !id.is_empty()),
            size: None,
            expiration: None,
            file_name: None,
            phantom,
        }
    }

    /// Whether the phantom header's Content-Transfer-Encoding is that of the octets where they are
    /// kept (RFC 2046 §5.2.3). URLs have none, and Thunderbird decodes what it saves.
    #[must_use]
    pub fn describes_stored_octets(&self) -> bool {
        self.form == Form::ExternalBody && !self.access_type.eq_ignore_ascii_case("url")
    }

    /// Whether the part's header describes a page about the content, so that nothing declares the content.
    #[must_use]
    pub fn is_page_about_it(&self) -> bool {
        self.form == Form::CloudFile && self.declared.is_none()
    }

    /// The suffix that the part's file name has in addition: `Report.docx.url`, `Report.docx.html`.
    #[must_use]
    pub fn suffix(&self) -> Option<&'static str> {
        match self.form {
            Form::Shortcut => Some(".url"),
            Form::CloudFile if self.is_page_about_it() => Some(".html"),
            _ => None,
        }
    }
}

/// The `size` parameter, in octets.
fn size_of(media_type: &MediaType<'_>) -> Option<u64> {
    let value = media_type.parameter("size")?;
    String::from_utf8_lossy(value.trim_ascii()).parse().ok()
}

/// A Content-ID or Message-ID value without its `<>`, comments in front, and white space.
#[must_use]
pub fn identifier(value: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(value)
        .chars()
        .filter(|symbol| !symbol.is_whitespace())
        .collect();
    match (text.find('<'), text.rfind('>')) {
        (Some(open), Some(close)) if open < close => text
            .get(open + 1..close)
            .map(str::to_owned)
            .unwrap_or_default(),
        _ => text,
    }
}
