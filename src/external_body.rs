//! `message/external-body` parts → [`ExternalBody`] (RFC 2046 §5.2.3, RFC 2017, RFC 1873).
//!
//! Reads what a part refers to and what its phantom header declares. Nothing is resolved,
//! allowed or retrieved here; a reference that cannot be followed is an [`Unusable`].
//!
//! Deviations from the documents, because mail has them:
//! * the URL parameter may be unquoted, continued or encoded (RFC 2231), in `<>`, or start with `URL:`;
//! * all white space in it is removed (RFC 2017 §3.1 speaks of blanks between words);
//! * LOCAL-FILE names must be absolute: a relative one depended on the sender's directory, and `~`
//!   on the sender's account.

use std::borrow::Cow;

use crate::mime::header::{self, Front, Header};
use crate::mime::media_type::Found;
use crate::mime::{MediaType, PartId, TransferEncoding, Tree};

/// The media type of external bodies.
pub const ESSENCE: &str = "message/external-body";

/// One external body.
#[derive(Clone, Debug)]
pub struct ExternalBody<'a> {
    /// The part that holds the reference.
    pub part: PartId,
    /// The access type as written; empty if there is none.
    pub access_type: String,
    /// What is referred to, or why that cannot be said.
    pub target: Result<Target<'a>, Unusable>,
    /// The phantom header: the fields the content would have.
    pub phantom: Header,
    /// The phantom header's Content-Type, if it has one.
    pub declared: Option<MediaType<'a>>,
    /// The phantom header's Content-MD5 value (RFC 1864), as written.
    pub content_md5: Option<&'a [u8]>,
    /// The phantom header's Content-ID without `<>`; tells rivals from others.
    pub content_id: Option<String>,
    /// The `size` parameter, in octets.
    pub size: Option<u64>,
    /// The `expiration` parameter, as written.
    pub expiration: Option<String>,
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
    /// An access type that is known but cannot be retrieved by a program: its name.
    Unsupported(String),
    /// An access type nobody described: its name.
    Unknown(String),
    /// access-type=URL without URL.
    MissingUrl,
    /// Another parameter is missing: its name, and its RFC 2231 section if only that is missing.
    MissingParameter(&'static str, Option<u32>),
    /// CONTENT-ID without a Content-ID field.
    MissingContentId,
    /// A parameter's value cannot be part of a URL: what is wrong with it.
    BadValue(String),
    /// A LOCAL-FILE name that is not an absolute path.
    RelativeFile(String),
    /// The content was deleted on purpose.
    Deleted,
}

impl<'a> ExternalBody<'a> {
    /// Reads a part; none if it is no external body. `header_limit` bounds the phantom header.
    #[must_use]
    pub fn read(
        original: &'a [u8],
        tree: &Tree,
        part: PartId,
        header_limit: usize,
    ) -> Option<Self> {
        if tree.part(part).essence != ESSENCE {
            return None;
        }
        let media_type = MediaType::parse(tree.value(original, part, "Content-Type")?);
        let body = tree.part(part).body;
        let phantom = Header::read(original, body, Front::Part, header_limit, |_| false);
        let field = |name| {
            header::first(original, &phantom.fields, name).map(|field| field.value.of(original))
        };
        let access_type = media_type
            .parameter("access-type")
            .map(|value| String::from_utf8_lossy(value.trim_ascii()).into_owned())
            .unwrap_or_default();
        let content_id = field("Content-ID")
            .map(identifier)
            .filter(|id| !id.is_empty());
        let target = match tree.part(part).encoding {
            TransferEncoding::Base64 | TransferEncoding::QuotedPrintable => Err(Unusable::Encoded),
            _ => match access_type.to_ascii_lowercase().as_str() {
                "content-id" => content_id_target(original, tree, part, content_id.as_deref()),
                name => target_of(name, &access_type, &media_type),
            },
        };
        Some(Self {
            part,
            target,
            declared: field("Content-Type").map(MediaType::parse),
            content_md5: field("Content-MD5"),
            content_id,
            size: media_type
                .parameter("size")
                .and_then(|value| String::from_utf8_lossy(value.trim_ascii()).parse().ok()),
            expiration: media_type
                .parameter("expiration")
                .map(|value| String::from_utf8_lossy(&value).into_owned()),
            access_type,
            phantom,
        })
    }
}

fn target_of<'a>(
    name: &str,
    written: &str,
    media_type: &MediaType<'a>,
) -> Result<Target<'a>, Unusable> {
    match name {
        "url" => match media_type.look_up("url") {
            Found::Whole(value) => read_url(value),
            Found::None => Err(Unusable::MissingUrl),
            Found::SectionMissing(section) => Err(Unusable::MissingParameter("URL", Some(section))),
        },
        "ftp" | "anon-ftp" => ftp_url(media_type).map(Target::Url),
        "local-file" => file_url(media_type).map(Target::Url),
        "" => Err(Unusable::NoAccessType),
        "x-mutt-deleted" => Err(Unusable::Deleted),
        "mail-server" | "tftp" | "afs" => Err(Unusable::Unsupported(written.to_owned())),
        _ => Err(Unusable::Unknown(written.to_owned())),
    }
}

/// RFC 1873: the outer part's id is the reference. Some writers put it into the phantom header.
fn content_id_target<'a>(
    original: &'a [u8],
    tree: &Tree,
    part: PartId,
    phantom_id: Option<&str>,
) -> Result<Target<'a>, Unusable> {
    let outer = tree
        .value(original, part, "Content-ID")
        .map(identifier)
        .filter(|id| !id.is_empty());
    match outer.or_else(|| phantom_id.map(str::to_owned)) {
        Some(content_id) => Ok(Target::ContentId {
            content_id,
            message_id: None,
        }),
        None => Err(Unusable::MissingContentId),
    }
}

/// Reads a URL as it stands in a parameter or a field.
///
/// # Errors
/// [`Unusable::MissingUrl`] when nothing is left without the white space, and
/// [`Unusable::BadValue`] for octets that no URL may have.
pub fn read_url(value: Cow<'_, [u8]>) -> Result<Target<'_>, Unusable> {
    if starts_with_scheme(&value, b"data:") {
        return Ok(Target::Data(unwrap_data(value)));
    }
    let written = String::from_utf8_lossy(&value);
    let text = crate::link::url::from_parameter(&written).into_owned();
    if text.is_empty() {
        return Err(Unusable::MissingUrl);
    }
    if let Some(control) = text.chars().find(|symbol| symbol.is_control()) {
        return Err(Unusable::BadValue(format!(
            "the URL holds the control character U+{:04X}",
            u32::from(control)
        )));
    }
    if let Some(content_id) = strip_scheme(&text, "cid:") {
        return Ok(Target::ContentId {
            content_id: percent_decoded(content_id),
            message_id: None,
        });
    }
    if let Some(both) = strip_scheme(&text, "mid:") {
        return match both.split_once('/') {
            Some((message_id, content_id)) => Ok(Target::ContentId {
                content_id: percent_decoded(content_id),
                message_id: Some(percent_decoded(message_id)),
            }),
            None => Err(Unusable::BadValue(
                "the mid: URL names a whole message, not a part of this one".to_owned(),
            )),
        };
    }
    Ok(Target::Url(text))
}

/// Whether a folded value starts with this scheme, past white space, `<` and `URL:`.
fn starts_with_scheme(value: &[u8], scheme: &[u8]) -> bool {
    let mut start = value
        .iter()
        .copied()
        .filter(|byte| !byte.is_ascii_whitespace())
        .skip_while(|&byte| byte == b'<')
        .map(|byte| byte.to_ascii_lowercase())
        .take(16)
        .collect::<Vec<_>>();
    if start.starts_with(b"url:") {
        start.drain(..4);
    }
    start.starts_with(scheme)
}

/// A `data:` URL without the `<>` and `URL:` around it (the draft, appendix E); folds stay.
fn unwrap_data(value: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let Some(start) = memchr::memchr2(b'd', b'D', &value) else {
        return value;
    };
    // A bare URL may end in `>`; one behind `<` has to.
    let wrapped = value
        .get(..start)
        .is_some_and(|front| front.contains(&b'<'));
    let end = match value.trim_ascii_end() {
        [inner @ .., b'>'] if wrapped => inner.len(),
        whole => whole.len(),
    };
    match value {
        Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(start..end).unwrap_or_default()),
        Cow::Owned(mut bytes) => {
            bytes.truncate(end);
            bytes.drain(..start);
            Cow::Owned(bytes)
        }
    }
}

fn strip_scheme<'u>(url: &'u str, scheme: &str) -> Option<&'u str> {
    let head = url.get(..scheme.len())?;
    head.eq_ignore_ascii_case(scheme)
        .then(|| url.get(scheme.len()..))
        .flatten()
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

fn percent_decoded(text: &str) -> String {
    let digit = |byte: Option<&u8>| byte.and_then(|&byte| char::from(byte).to_digit(16));
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match (byte, digit(bytes.get(at + 1)), digit(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high << 4 | low) as u8);
                at += 3;
            }
            _ => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// FTP and ANON-FTP as a URL: `ftp://site/directory/name;type=a` (RFC 2046 §5.2.3.2, RFC 1738 §3.2).
fn ftp_url(media_type: &MediaType<'_>) -> Result<String, Unusable> {
    let site = required(media_type, "site")?;
    let directory = required(media_type, "directory")?;
    let name = required(media_type, "name")?;
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if !site.bytes().all(is_host) {
        // What stands in front of an @ may be a password.
        let host = site.rsplit('@').next().unwrap_or_default();
        return Err(Unusable::BadValue(format!(
            "the site of '{host}' is not a host name"
        )));
    }
    let mode = media_type
        .parameter("mode")
        .map(|value| String::from_utf8_lossy(value.trim_ascii()).to_ascii_lowercase())
        .unwrap_or_default();
    let kind = match mode.as_str() {
        "" => "",
        "ascii" => ";type=a",
        "image" | "binary" => ";type=i",
        // A file of 8-bit bytes is an image of itself (RFC 959 §3.1.1.4).
        "local8" => ";type=i",
        other => {
            return Err(Unusable::BadValue(format!(
                "the transfer mode '{other}' is not supported"
            )));
        }
    };
    let mut url = format!("ftp://{site}");
    let segments = directory.split('/').filter(|segment| !segment.is_empty());
    for segment in segments.chain([name.as_str()]) {
        url.push('/');
        url.push_str(&escaped_segment(segment)?);
    }
    url.push_str(kind);
    Ok(url)
}

/// LOCAL-FILE as a URL: `file:///absolute/path` (RFC 2046 §5.2.3.4).
fn file_url(media_type: &MediaType<'_>) -> Result<String, Unusable> {
    let name = required(media_type, "name")?;
    let Some(path) = name.strip_prefix('/') else {
        return Err(Unusable::RelativeFile(name));
    };
    let mut url = "file://".to_owned();
    for segment in path.split('/') {
        url.push('/');
        if segment == ".." {
            url.push_str(segment);
        } else {
            url.push_str(&escaped_segment(segment)?);
        }
    }
    Ok(url)
}

fn required(media_type: &MediaType<'_>, name: &'static str) -> Result<String, Unusable> {
    match media_type.look_up(name) {
        Found::Whole(value) => {
            let text = String::from_utf8_lossy(value.trim_ascii()).into_owned();
            if text.is_empty() {
                return Err(Unusable::MissingParameter(name, None));
            }
            Ok(text)
        }
        Found::None => Err(Unusable::MissingParameter(name, None)),
        Found::SectionMissing(section) => Err(Unusable::MissingParameter(name, Some(section))),
    }
}

/// One path segment with everything escaped that is not RFC 3986 `unreserved`, `sub-delims`
/// without `;`, `:` or `@`. Control characters would be commands on an FTP connection.
fn escaped_segment(segment: &str) -> Result<String, Unusable> {
    if segment.chars().any(char::is_control) {
        return Err(Unusable::BadValue(
            "a file name holds control characters".to_owned(),
        ));
    }
    if segment == ".." || segment == "." {
        return Err(Unusable::BadValue(format!(
            "'{segment}' is not a file name"
        )));
    }
    let mut escaped = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,=:@".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    Ok(escaped)
}
