//! Parameters of `message/external-body` → [`Referent`], one way for each access type (RFC 2046 §5.2.3,
//! RFC 2017, RFC 1873).

use percent_encoding::{AsciiSet, percent_encode};

use super::reference::Reader;
use super::unusable::{bad_value, cut_off, deleted, missing_parameter, missing_url};
use super::url::read_url;
use super::{Referent, identifier};
use crate::link::url::all_but;
use crate::mime::MediaType;
use crate::mime::media_type::Lookup;
use crate::report::{Reason, Refusal};

impl<'a> Reader<'a, '_> {
    pub(super) fn target(
        &self,
        media_type: &MediaType<'a>,
        phantom_id: Option<&str>,
    ) -> Result<Referent<'a>, Refusal> {
        let name = name_of(media_type);
        if name.is_empty() {
            let detail = "the part has no access-type parameter";
            return Err(Refusal::lasting(Reason::NoAccessType, detail));
        }
        match name.to_ascii_uppercase().as_str() {
            "URL" => match media_type.look_up("url") {
                Lookup::Whole(value) => read_url(value),
                Lookup::CutOff(_) => Err(cut_off("URL")),
                Lookup::None => Err(missing_url()),
                Lookup::SectionMissing(section) => Err(missing_parameter("URL", Some(section))),
            },
            "FTP" | "ANON-FTP" => ftp_url(media_type).map(Referent::Url),
            "LOCAL-FILE" => file_url(media_type).map(Referent::Url),
            "CONTENT-ID" => self.content_id_target(phantom_id),
            "X-MUTT-DELETED" => Err(deleted()),
            "MAIL-SERVER" | "TFTP" | "AFS" => {
                let detail = format!("access-type={name} is not retrieved");
                Err(Refusal::lasting(Reason::UnsupportedAccessType, detail))
            }
            _ => {
                let detail = format!("unknown access type: {name}");
                Err(Refusal::lasting(Reason::UnknownAccessType, detail))
            }
        }
    }

    /// RFC 1873: the outer part's id is the reference. Some writers put it into the phantom header.
    fn content_id_target(&self, phantom_id: Option<&str>) -> Result<Referent<'a>, Refusal> {
        let outer = self.tree.value(self.part, "Content-ID");
        let outer = outer.map(identifier).filter(|id| !id.is_empty());
        match outer.or_else(|| phantom_id.map(str::to_owned)) {
            Some(content_id) => Ok(Referent::ContentId {
                content_id,
                message_id: None,
            }),
            None => Err(Refusal::lasting(
                Reason::MissingParameter,
                "access-type=CONTENT-ID, but the part has no Content-ID",
            )),
        }
    }
}

pub(super) fn name_of(media_type: &MediaType<'_>) -> String {
    media_type
        .parameter("access-type")
        .map(|value| String::from_utf8_lossy(value.trim_ascii()).into_owned())
        .unwrap_or_default()
}

/// FTP and ANON-FTP as a URL: `ftp://site/directory/name;type=a` (RFC 2046 §5.2.3.2, RFC 1738 §3.2).
fn ftp_url(media_type: &MediaType<'_>) -> Result<String, Refusal> {
    let site = required(media_type, "site")?;
    let site = String::from_utf8_lossy(&site);
    // RFC 2046 §5.2.3.2: the directory may be left out.
    let directory = match media_type.look_up("directory") {
        Lookup::None => Vec::new(),
        _ => required(media_type, "directory")?,
    };
    let name = required(media_type, "name")?;
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if !site.bytes().all(is_host) {
        // The text in front of an @ may be a password.
        let host = site.rsplit('@').next().unwrap_or_default();
        return Err(bad_value(format!(
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
            return Err(bad_value(format!(
                "the transfer mode '{other}' is not supported"
            )));
        }
    };
    let mut url = format!("ftp://{site}");
    let segments = directory.split(|&octet| octet == b'/');
    let segments = segments.filter(|segment| !segment.is_empty());
    for segment in segments.chain([name.as_slice()]) {
        url.push('/');
        url.push_str(&escaped_segment(segment)?);
    }
    url.push_str(kind);
    Ok(url)
}

/// LOCAL-FILE as a URL: `file:///absolute/path` (RFC 2046 §5.2.3.4).
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
        if segment == b".." {
            url.push_str("..");
        } else {
            url.push_str(&escaped_segment(segment)?);
        }
    }
    Ok(url)
}

fn required(media_type: &MediaType<'_>, name: &'static str) -> Result<Vec<u8>, Refusal> {
    match media_type.look_up(name) {
        Lookup::Whole(value) => {
            let octets = value.trim_ascii();
            if octets.is_empty() {
                return Err(missing_parameter(name, None));
            }
            Ok(octets.to_vec())
        }
        Lookup::CutOff(_) => Err(cut_off(name)),
        Lookup::None => Err(missing_parameter(name, None)),
        Lookup::SectionMissing(section) => Err(missing_parameter(name, Some(section))),
    }
}

/// All but RFC 3986 `unreserved`, `sub-delims` without `;`, `:` and `@`.
const SEGMENT: AsciiSet = all_but(b"-._~!$&'()*+,=:@");

/// One path segment, [`SEGMENT`] escaped, and octets that are not ASCII as they are. Control characters would be
/// commands on an FTP connection.
fn escaped_segment(segment: &[u8]) -> Result<String, Refusal> {
    let text = String::from_utf8_lossy(segment);
    if text.chars().any(char::is_control) {
        return Err(bad_value("a file name holds control characters"));
    }
    if segment == b".." || segment == b"." {
        return Err(bad_value(format!("'{text}' is not a file name")));
    }
    Ok(percent_encode(segment, &SEGMENT).to_string())
}
