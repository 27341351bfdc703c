//! Links that a mail filter or a mail program wrapped in a URL of its own server: Microsoft SafeLinks, Proofpoint, the
//! picture proxies of Gmail and Yahoo, and similar services. The table lists each service, and how the original URL is read
//! from the wrapped one. This module performs no I/O and decides nothing about requests: an original URL must be judged like
//! any other URL of the mail.

mod in_text;
mod layer;
mod proofpoint;

use std::borrow::Cow;
use std::fmt::Write as _;

pub(crate) use self::in_text::{WrappedInText, each_url, wrapped_between_tags, wrapped_in_text};
use self::layer::{WrappedLayer, parameter, percent_decoded};
use super::url::UrlReference;
use crate::span::front;

/// Maximum number of services that wrapped the same link one after another. A mail that several companies forwarded has two or
/// three layers.
const MOST_LAYERS: usize = 8;

/// Maximum length of a wrapped URL, in bytes. Each layer of it is decoded, and no service writes longer ones.
const LONGEST: usize = 64 << 10;

/// A link whose URL contains the original URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OriginalUrl {
    /// The service that wrapped the link last.
    pub service: &'static str,
    /// The original URL: http, https or ftp, in ASCII, without blanks and control characters. It is not itself wrapped.
    pub original: String,
}

/// A service, the hosts of its URLs, and the function that reads the original URL.
struct LinkService {
    name: &'static str,
    hosts: &'static [HostRule],
    read: fn(&UrlReference<'_>) -> WrappedLayer,
}

enum HostRule {
    Exactly(&'static str),
    /// The host itself, and all hosts below it.
    Below(&'static str),
    /// `google.` and a top-level domain, with or without `www.`: `www.google.co.uk`.
    Google,
}

const SERVICES: [LinkService; 8] = [
    LinkService {
        name: "safelinks",
        hosts: &[
            HostRule::Below("safelinks.protection.outlook.com"),
            HostRule::Below("safelinks.protection.office365.us"),
            HostRule::Below("safelinks.protection.partner.outlook.cn"),
            HostRule::Exactly("statics.teams.cdn.office.net"),
        ],
        read: |url| parameter(url, &["url"], percent_decoded),
    },
    LinkService {
        name: "proofpoint",
        hosts: &[
            HostRule::Exactly("urldefense.proofpoint.com"),
            HostRule::Exactly("urldefense.com"),
            HostRule::Exactly("urldefense.us"),
        ],
        read: proofpoint::layer,
    },
    LinkService {
        name: "gmail-proxy",
        hosts: &[HostRule::Below("googleusercontent.com")],
        read: |url| match url.fragment {
            _ if !["/proxy/", "/meips/"]
                .iter()
                .any(|way| url.path.starts_with(way)) =>
            {
                WrappedLayer::Token
            }
            Some(original) => WrappedLayer::Original(original.as_bytes().to_vec()),
            None => WrappedLayer::Token,
        },
    },
    LinkService {
        name: "yahoo",
        hosts: &[
            HostRule::Exactly("ecp.yusercontent.com"),
            HostRule::Exactly("ec.yimg.com"),
        ],
        read: |url| parameter(url, &["url"], percent_decoded),
    },
    LinkService {
        name: "yahoo",
        hosts: &[
            HostRule::Below("rd.yahoo.com"),
            HostRule::Below("rds.yahoo.com"),
            HostRule::Below("lrd.yahoo.com"),
        ],
        read: |url| match url.path.split_once("/*") {
            Some((_, rest)) => {
                let query = url
                    .query
                    .map(|query| format!("?{query}"))
                    .unwrap_or_default();
                match rest.strip_prefix('*') {
                    Some(encoded) => WrappedLayer::Original(percent_decoded(encoded)),
                    None => WrappedLayer::Original(format!("{rest}{query}").into_bytes()),
                }
            }
            None => WrappedLayer::Token,
        },
    },
    LinkService {
        name: "mimecast",
        hosts: &[
            HostRule::Below("mimecast.com"),
            HostRule::Below("mimecastprotect.com"),
            HostRule::Below("mimecast-offshore.com"),
        ],
        read: |url| parameter(url, &["url", "u"], percent_decoded),
    },
    LinkService {
        name: "barracuda",
        hosts: &[HostRule::Below("linkprotect.cudasvc.com")],
        read: |url| parameter(url, &["a"], percent_decoded),
    },
    LinkService {
        name: "google",
        hosts: &[HostRule::Google],
        read: |url| match url.path {
            "/url" | "/url/" => parameter(url, &["q", "url"], percent_decoded),
            _ => WrappedLayer::Token,
        },
    },
];

/// Words of which every URL of the services contains at least one, for a search in a text.
const NEEDLES: [&[u8]; 9] = [
    b"safelinks",
    b"urldefense",
    b"googleusercontent",
    b"ecp.yusercontent",
    b"ec.yimg.com",
    b"rd.yahoo.com",
    b"mimecast",
    b"cudasvc",
    b"google.",
];

/// Returns the original of a wrapped link. Returns `None` if the link is not wrapped, if the original is not in the
/// URL, or if a layer contains anything but an http, https or ftp URL.
pub(crate) fn unwrapped_link(url: &str) -> Option<OriginalUrl> {
    let mut current = Cow::Borrowed(url);
    let mut service = None;
    for _ in 0..=MOST_LAYERS {
        match layer(&current) {
            None | Some((_, WrappedLayer::Token)) => {
                let original = current.into_owned();
                return service.map(|service| OriginalUrl { service, original });
            }
            Some((_, WrappedLayer::Unclear)) => return None,
            Some((name, WrappedLayer::Original(octets))) => {
                service.get_or_insert(name);
                current = Cow::Owned(web_url(&octets)?);
            }
        }
    }
    None
}

/// Returns true if a text may contain a wrapped link.
pub(crate) fn may_hold_wrapped(text: &[u8]) -> bool {
    NEEDLES
        .iter()
        .any(|needle| memchr::memmem::find(text, needle).is_some())
        || memchr::memchr_iter(b':', text).any(|at| {
            let before = at.checked_sub(1).and_then(|at| text.get(at));
            let is_scheme = before.is_some_and(|byte| b"pPsS".contains(byte));
            // The host may be in upper case. Such a URL is rare, so the slow comparison is done only for URLs.
            let host = front(text.get(at..).unwrap_or_default(), 80);
            is_scheme && host.starts_with(b"://") && host.iter().any(u8::is_ascii_uppercase) && {
                let lower = host.to_ascii_lowercase();
                NEEDLES
                    .iter()
                    .any(|needle| memchr::memmem::find(&lower, needle).is_some())
            }
        })
}

fn layer(url: &str) -> Option<(&'static str, WrappedLayer)> {
    if url.len() > LONGEST {
        return None;
    }
    let reference = UrlReference::split(url);
    let is_http = reference.has_scheme("http") || reference.has_scheme("https");
    let site = reference.site().filter(|_| is_http)?;
    let is_usual_port = site
        .port
        .is_none_or(|port| ["", "80", "443"].contains(&port));
    if site.userinfo.is_some() || !is_usual_port {
        return None;
    }
    let host = site.host.to_ascii_lowercase();
    let service = SERVICES
        .iter()
        .find(|service| service.hosts.iter().any(|rule| rule.matches(&host)))?;
    Some((service.name, (service.read)(&reference)))
}

impl HostRule {
    fn matches(&self, host: &str) -> bool {
        match self {
            Self::Exactly(name) => host == *name,
            Self::Below(name) => host
                .strip_suffix(name)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.')),
            Self::Google => {
                let name = host.strip_prefix("www.").unwrap_or(host);
                let domain = name.strip_prefix("google.").unwrap_or_default();
                let country =
                    |part: &str| part.len() == 2 && part.bytes().all(|it| it.is_ascii_lowercase());
                match domain.split_once('.') {
                    None => domain == "com" || domain == "cat" || country(domain),
                    Some((kind, rest)) => ["co", "com"].contains(&kind) && country(rest),
                }
            }
        }
    }
}

/// Returns an original URL as it may be written into a document or a text, or `None` if it is not a URL of a server. A
/// control character means that the URL was made to deceive. Blanks, quotation marks, angle brackets and all bytes that are not
/// ASCII are percent-encoded, as browsers do when they request the URL.
fn web_url(octets: &[u8]) -> Option<String> {
    let octets = octets.trim_ascii();
    let colon = memchr::memchr(b':', octets)?;
    let (scheme, rest) = octets.split_at(colon);
    let is_of_server = ["http", "https", "ftp"]
        .iter()
        .any(|name| scheme.eq_ignore_ascii_case(name.as_bytes()));
    // Some programs reduce two slashes to one.
    let rest = rest
        .strip_prefix(b"://")
        .or_else(|| rest.strip_prefix(b":/"))?;
    let has_host = rest
        .first()
        .is_some_and(|&byte| byte.is_ascii_alphanumeric() || byte == b'[' || byte >= 0x80);
    if !is_of_server || !has_host || octets.iter().any(u8::is_ascii_control) {
        return None;
    }
    let host = rest
        .split(|byte| b"/?#\\".contains(byte))
        .next()
        .unwrap_or_default();
    if host.iter().any(|byte| b" \"<>".contains(byte)) {
        return None;
    }
    let mut url = String::with_capacity(octets.len() + 2);
    url.push_str(std::str::from_utf8(scheme).ok()?);
    url.push_str("://");
    for &byte in rest {
        if byte.is_ascii_graphic() && !b"\"<>`\\".contains(&byte) {
            url.push(char::from(byte));
        } else {
            let _ = write!(url, "%{byte:02X}");
        }
    }
    (url.len() <= LONGEST).then_some(url)
}

#[cfg(test)]
mod tests;
