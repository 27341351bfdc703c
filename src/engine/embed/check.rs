//! Decodes `data:` URLs, and checks whether a content may be embedded: its size, its type and its charset.

use std::borrow::Cow;

use crate::detail::{QUOTED, excerpt};
use crate::engine::obtained::not_decoded;
use crate::engine::policy::Policy;
use crate::engine::report::{Reason, Refusal};
use crate::link::data::DataUrl;
use crate::link::label as link_label;
use crate::link::svg::is_harmless_svg;
use crate::link::value::LinkRole;
use crate::mime::charset::Charset;
use crate::mime::media_type::is_markup;
use crate::mime::picture::{self, FileType};
use crate::mime::picture_end;

pub(super) const SVG: &str = "image/svg+xml";

const LABEL: usize = 40;

pub(crate) const PAGE_INSTEAD: &str = "the server sent a web page instead of the picture";

pub(super) fn decoded(
    url: &str,
    policy: &Policy,
) -> Result<(Vec<u8>, String, Option<String>), Refusal> {
    let url = spaces_kept(url);
    let parsed = DataUrl::parse(url.as_bytes()).map_err(not_decoded)?;
    let media_type = parsed.media_type();
    let octets = parsed.decode(policy.limits.body).map_err(not_decoded)?;
    let label = label(media_type.parameter("charset"));
    Ok((octets, media_type.essence, label))
}

/// Percent-encodes the blanks in the data of a `data:` URL, because browsers treat them as data. [`DataUrl`] removes unencoded
/// blanks, because it also reads URLs from folded header parameters.
fn spaces_kept(url: &str) -> Cow<'_, str> {
    let trimmed = url.trim_matches(|symbol: char| symbol <= ' ');
    match trimmed.split_once(',') {
        Some((front, data)) if memchr::memchr(b' ', data.as_bytes()).is_some() => {
            Cow::Owned(format!("{front},{}", data.replace(' ', "%20")))
        }
        _ => Cow::Borrowed(url),
    }
}

pub(super) fn admitted(
    octets: &[u8],
    declared: Option<&str>,
    role: Option<LinkRole>,
    policy: &Policy,
) -> Result<FileType, Refusal> {
    policy.judge_size(octets.len() as u64)?;
    let is_wanted = |wanted: LinkRole| role.is_none_or(|role| role == wanted);
    let fonts = policy.embed.fonts && is_wanted(LinkRole::Font);
    let media = policy.embed.media && is_wanted(LinkRole::Media);
    let found = picture::sniff(octets)
        .or_else(|| picture::sniff_font(octets).filter(|_| fonts))
        .or_else(|| picture::sniff_media(octets).filter(|_| media));
    let Some(kind) = found else {
        if let Some(format) = picture::sniff_metafile(octets) {
            let detail = format!(
                "the content is a Windows metafile ({format}), which only Office and Outlook show"
            );
            return Err(Refusal::lasting(Reason::NotAnImage, detail));
        }
        // A `data:` URL has a role here, and no server.
        if role.is_none() && is_markup(octets) {
            let reason = match declared {
                Some(declared) if declared.starts_with("image/") => Reason::TypeMismatch,
                _ => Reason::NotAnImage,
            };
            return Err(Refusal::lasting(reason, PAGE_INSTEAD));
        }
        return Err(match declared {
            Some(declared) if declared.starts_with("image/") => {
                let declared = excerpt(declared, QUOTED);
                let detail = format!(
                    "the content is declared as {declared}, but the bytes are of a different type"
                );
                Refusal::lasting(Reason::TypeMismatch, detail)
            }
            _ => {
                let detail = "the content is not a picture in a known format";
                Refusal::lasting(Reason::NotAnImage, detail)
            }
        });
    };
    if !picture_end::has_image(octets) {
        let detail = format!(
            "the content begins like {}, but contains no image",
            kind.essence
        );
        return Err(Refusal::lasting(Reason::NotAnImage, detail));
    }
    if kind.essence == SVG && !is_harmless_svg(octets) {
        let detail = "the SVG contains scripts, event handlers or references to other files";
        return Err(Refusal::lasting(Reason::NotAnImage, detail));
    }
    policy.judge_type(kind.essence)?;
    Ok(kind)
}

/// Returns the charset that the source declared for an SVG, or `None` if the SVG needs no declaration. A charset that is not a
/// superset of ASCII is refused: its bytes can be other markup than the markup that was checked, and could be harmful.
pub(super) fn charset(
    kind: &FileType,
    octets: &[u8],
    (declared, label): (&str, Option<String>),
) -> Result<Option<String>, Refusal> {
    let Some(label) = label.filter(|_| kind.essence == SVG && declared == SVG) else {
        return Ok(None);
    };
    let is_utf_8 = label.eq_ignore_ascii_case("utf-8") || label.eq_ignore_ascii_case("utf8");
    match Charset::of_label(label.as_bytes()) {
        // XML without an encoding declaration is UTF-8 by default, so the charset parameter is not needed.
        _ if is_utf_8 && link_label::in_xml_declaration(octets).is_none() => Ok(None),
        None => Ok(None),
        Some(Charset::Superset) => Ok(Some(label)),
        Some(_) => {
            let detail =
                format!("the SVG has the charset {label}, which is not a superset of ASCII");
            Err(Refusal::lasting(Reason::CharsetNotSupported, detail))
        }
    }
}

pub(super) fn label(named: Option<&str>) -> Option<String> {
    let named = named?.trim();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:+".contains(&byte);
    let is_label = !named.is_empty() && named.len() <= LABEL && named.bytes().all(is_name);
    is_label.then(|| named.to_owned())
}

/// Returns the refusal for a URL that shows only a part of an SVG. Browsers do not find a `cid:` URL with a fragment, and
/// without the fragment they would show another picture.
pub(super) fn part_of_svg() -> Refusal {
    let detail = "the URL selects a part of an SVG by its fragment (#...), and browsers do not support cid: URLs with a fragment";
    Refusal::lasting(Reason::NotAnImage, detail)
}
