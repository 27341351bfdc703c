//! The form that documents describe: the parameters of `message/external-body` (RFC 2046 §5.2.3, RFC 2017, RFC 1873).

use std::borrow::Cow;

use percent_encoding::{AsciiSet, percent_encode};

use crate::detail::{QUOTED, excerpt};
use crate::engine::external_body::reference::Facts;
use crate::engine::external_body::reference::{
    ReferenceReader, bad_value, cut_off, deleted, encoded, missing_parameter, missing_url,
    own_identifier, size_of,
};
use crate::engine::external_body::url::read_url;
use crate::engine::external_body::{ExternalBody, ReferenceShape, Referent};
use crate::engine::report::{Kind, Reason, Refusal};
use crate::link::url::all_but;
use crate::mime::encoded_words::decoded_name;
use crate::mime::media_type::Lookup;
use crate::mime::{Header, MediaType, TransferEncoding};

/// Facts about `message/external-body` (RFC 2046 §5.2.3).
static FACTS: Facts = Facts {
    may_be_in_copies: true,
    ..Facts::of_whole_part(ReferenceShape::ExternalBody, Kind::ExternalBody, None)
};

/// Returns the media type of the part, with its parameters.
pub(super) fn media_type<'a>(reader: &ReferenceReader<'a, '_>) -> MediaType<'a> {
    let tree = reader.tree;
    let content_type = tree
        .fields(reader.part)
        .first(tree.original, "Content-Type");
    let value = content_type.map(|field| field.value.of(tree.original));
    let media_type = MediaType::parse(value.unwrap_or_default());
    if content_type.is_some_and(|field| tree.ends_in(&field)) {
        media_type.open_ended()
    } else {
        media_type
    }
}

/// Reads the reference in the parameters of the part.
pub(super) fn reference<'a>(
    reader: &ReferenceReader<'a, '_>,
    media_type: &MediaType<'a>,
) -> ExternalBody<'a> {
    let tree = reader.tree;
    let entity = tree.part(reader.part);
    let phantom = Header::read(tree.original, entity.body, reader.reading.header_limit);
    let phantom_id = phantom
        .fields
        .value(tree.original, "Content-ID")
        .and_then(own_identifier);
    let target = match entity.encoding {
        TransferEncoding::Base64 | TransferEncoding::QuotedPrintable => Err(encoded()),
        _ => target(reader, media_type, phantom_id.as_deref()),
    };
    let mut body = ExternalBody::with(tree, reader.part, &FACTS, target, phantom);
    body.size = size_of(media_type);
    body.expiration = media_type
        .parameter("expiration")
        .map(|value| String::from_utf8_lossy(&value).into_owned());
    body.access_type = text_of(media_type, "access-type");
    body
}

fn target<'a>(
    reader: &ReferenceReader<'a, '_>,
    media_type: &MediaType<'a>,
    phantom_id: Option<&str>,
) -> Result<Referent<'a>, Refusal> {
    let name = text_of(media_type, "access-type");
    if name.is_empty() {
        let detail = "the Content-Type field of the part has no access-type parameter";
        return Err(Refusal::lasting(Reason::NoAccessType, detail));
    }
    match name.to_ascii_uppercase().as_str() {
        "URL" => read_url(looked_up(media_type, "URL")?.ok_or_else(missing_url)?),
        "FTP" | "ANON-FTP" => ftp_url(media_type).map(Referent::Url),
        "LOCAL-FILE" => file_url(media_type).map(Referent::Url),
        "CONTENT-ID" => content_id_target(reader, phantom_id),
        "X-MUTT-DELETED" => Err(deleted()),
        "MAIL-SERVER" | "TFTP" | "AFS" => {
            let place = place_of(media_type);
            let detail = format!(
                "embody does not retrieve content with access-type={name}{place}; no option retrieves it"
            );
            Err(Refusal::lasting(Reason::UnsupportedAccessType, detail))
        }
        _ => {
            let detail = format!("unknown access type: {name}");
            Err(Refusal::lasting(Reason::UnknownAccessType, detail))
        }
    }
}

/// Returns the Content-ID of the part in this message that contains the content. It is in the outer header (RFC 1873), but
/// some programs write it into the phantom header, the header inside the part.
fn content_id_target<'a>(
    reader: &ReferenceReader<'a, '_>,
    phantom_id: Option<&str>,
) -> Result<Referent<'a>, Refusal> {
    let outer = reader
        .tree
        .value(reader.part, "Content-ID")
        .and_then(own_identifier);
    match outer.or_else(|| phantom_id.map(str::to_owned)) {
        Some(content_id) => Ok(Referent::ContentId {
            content_id,
            message_id: None,
        }),
        None => {
            let detail = "the part has access-type=CONTENT-ID, but no Content-ID field that names the content";
            Err(Refusal::lasting(Reason::MissingParameter, detail))
        }
    }
}

/// Returns the parameters that name the place of the content, in brackets, or nothing if there are none.
fn place_of(media_type: &MediaType<'_>) -> String {
    let named = ["server", "site", "directory", "name"].map(|name| {
        let value = text_of(media_type, name);
        // The text before an `@` can contain a password. The server of `mail-server` is a mail address.
        let shown = match name {
            "site" => value.rsplit('@').next().unwrap_or_default(),
            _ => &value,
        };
        (!shown.is_empty()).then(|| format!("{name}={}", excerpt(shown, QUOTED)))
    });
    let named: Vec<String> = named.into_iter().flatten().collect();
    if named.is_empty() {
        return String::new();
    }
    format!(" ({})", named.join(", "))
}

fn text_of(media_type: &MediaType<'_>, name: &str) -> String {
    let value = media_type.parameter(name).unwrap_or_default();
    String::from_utf8_lossy(value.trim_ascii()).into_owned()
}

/// Returns the URL `ftp://site/directory/name;type=a` (RFC 2046 §5.2.3.2, RFC 1738 §3.2).
fn ftp_url(media_type: &MediaType<'_>) -> Result<String, Refusal> {
    let site_octets = required(media_type, "site")?;
    let site = String::from_utf8_lossy(&site_octets);
    // The parameter `directory` is optional (RFC 2046 §5.2.3.2). Without it, the file is in the directory in which an
    // FTP session starts.
    let directory = match looked_up(media_type, "directory")? {
        None => Vec::new(),
        Some(_) => required(media_type, "directory")?,
    };
    let name = required(media_type, "name")?;
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if !site.bytes().all(is_host) {
        // The text before an `@` can contain a password, so it is not shown.
        let host = site.rsplit('@').next().unwrap_or_default();
        let detail = format!("the parameter 'site' names '{host}', which is not a host name");
        return Err(bad_value(detail));
    }
    let mode = text_of(media_type, "mode").to_ascii_lowercase();
    let kind = match mode.as_str() {
        "" => "",
        "ascii" => ";type=a",
        // `local8` is a file of 8-bit bytes. FTP transfers such a file byte for byte in image mode, `;type=i` (RFC 959
        // §3.1.1.4).
        "image" | "binary" | "local8" => ";type=i",
        other => {
            let detail = format!("the transfer mode '{other}' is not supported");
            return Err(bad_value(detail));
        }
    };
    let mut url = format!("ftp://{site}");
    let directories = directory
        .split(|&octet| octet == b'/')
        .filter(|segment| !segment.is_empty());
    for segment in directories.chain([name.as_slice()]) {
        url.push('/');
        url.push_str(&escaped_segment(segment)?);
    }
    url.push_str(kind);
    Ok(url)
}

/// Returns the URL `file:///absolute/path` (RFC 2046 §5.2.3.4).
fn file_url(media_type: &MediaType<'_>) -> Result<String, Refusal> {
    let name = required(media_type, "name")?;
    let Some(path) = name.strip_prefix(b"/") else {
        let name = String::from_utf8_lossy(&name);
        let detail = format!("'{name}' is not an absolute path");
        return Err(Refusal::lasting(Reason::OutsideFileRoot, detail));
    };
    let mut url = "file://".to_owned();
    for segment in path.split(|&octet| octet == b'/') {
        url.push('/');
        match segment {
            b".." => url.push_str(".."),
            _ => url.push_str(&escaped_segment(segment)?),
        }
    }
    Ok(url)
}

fn required(media_type: &MediaType<'_>, name: &str) -> Result<Vec<u8>, Refusal> {
    let value = looked_up(media_type, name)?.unwrap_or_default();
    match value.trim_ascii() {
        [] => Err(missing_parameter(name, None)),
        // Programs write non-ASCII parameters as encoded words (`=?`) or in ISO-2022-JP (with the escape byte 0x1b). No
        // real path looks like this, so the value is decoded.
        value if value.starts_with(b"=?") || value.contains(&0x1b) => match decoded_name(value) {
            Some(text) => Ok(text.into_bytes()),
            None => Err(undecodable(name)),
        },
        value => Ok(value.to_vec()),
    }
}

fn undecodable(parameter: &str) -> Refusal {
    bad_value(format!(
        "the parameter '{parameter}' cannot be decoded from its charset"
    ))
}

fn looked_up<'a>(media_type: &MediaType<'a>, name: &str) -> Result<Option<Cow<'a, [u8]>>, Refusal> {
    match media_type.look_up(name) {
        Lookup::None => Ok(None),
        Lookup::Whole(value) => Ok(Some(value)),
        Lookup::CutOff(_) => Err(cut_off(name)),
        Lookup::SectionMissing(section) => Err(missing_parameter(name, Some(section))),
        Lookup::Undecodable(_) => Err(undecodable(name)),
    }
}

/// Characters that are percent-encoded in a component of a path: all except those that RFC 3986 allows there. The
/// semicolon is also encoded, because it begins a parameter such as `;type=i` in an FTP URL.
const SEGMENT: AsciiSet = all_but(b"-._~!$&'()*+,=:@");

/// Percent-encodes one component of a path. The charset of a name that is not ASCII is unknown, so each of its bytes is
/// encoded as it is. Control characters are refused, because they could be commands on an FTP connection.
fn escaped_segment(segment: &[u8]) -> Result<String, Refusal> {
    let text = String::from_utf8_lossy(segment);
    if text.chars().any(char::is_control) {
        return Err(bad_value("the file name contains control characters"));
    }
    if segment == b".." || segment == b"." {
        return Err(bad_value(format!("'{text}' is not a file name")));
    }
    Ok(percent_encode(segment, &SEGMENT).to_string())
}
