//! Decides which responses may be stored, which are fresh, and how a stale one is validated (RFC 9111). The crate
//! http-cache-semantics implements these rules.
//!
//! The cache is a shared one in the sense of RFC 9111, because it serves the mail of several users. The crate compares
//! directives case-sensitively and accepts an Age of any size, so the header fields are normalized first. The value of a
//! Set-Cookie field is replaced, but its presence is kept, because it matters for the decision.

use std::time::{Duration, SystemTime};

use http_cache_semantics::{AfterResponse, BeforeRequest, CacheOptions, CachePolicy};
use ureq::http::request::Parts;
use ureq::http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};

use super::entry::KeptAnswer;
use crate::fetch::{ExchangeRequest, MEMENTO_DATETIME, USER_AGENT, field_text, time};

/// Which directives of Cache-Control the cache ignores, of those that forbid storing a response (`no-store` and
/// `private`). The user can allow the cache to ignore them with `--cache-ignore`. The cache of one run ignores all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IgnoredDirectives {
    Nothing,
    NoStore,
    Everything,
}

/// Time for which a 404 or 410 is stored if its header fields do not declare a lifetime.
const GONE: Duration = Duration::from_secs(24 * 60 * 60);

const CONDITIONS: [HeaderName; 2] = [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE];

/// Maximum value of an Age field: ten years, in seconds.
const OLDEST: u64 = 10 * 365 * 24 * 60 * 60;

const PLAIN: [HeaderName; 8] = [
    header::CACHE_CONTROL,
    header::PRAGMA,
    header::VARY,
    header::EXPIRES,
    header::DATE,
    header::AGE,
    header::ETAG,
    header::LAST_MODIFIED,
];

/// Fields whose values can contain characters that are not ASCII: valid UTF-8 in them is kept, and other bytes are
/// percent-encoded. In the fields of [`PLAIN`], bytes that are not ASCII are replaced with `?`.
const TEXT: [HeaderName; 2] = [header::CONTENT_TYPE, header::LOCATION];

pub(super) fn capture_time(headers: &HeaderMap) -> Option<(String, String)> {
    let value = headers.get(MEMENTO_DATETIME)?.to_str().ok()?;
    Some((MEMENTO_DATETIME.to_owned(), value.to_owned()))
}

pub(super) fn is_capture(headers: &[(String, String)]) -> bool {
    headers.iter().any(|(name, _)| name == MEMENTO_DATETIME)
}

pub(super) fn relevant(headers: &HeaderMap, ignoring: IgnoredDirectives) -> Vec<(String, String)> {
    let mut kept = Vec::new();
    for name in PLAIN {
        let values: Vec<String> = headers
            .get_all(&name)
            .iter()
            .map(|value| value.as_bytes().iter().map(|&octet| plain(octet)).collect())
            .collect();
        let Some(first) = values.first() else {
            continue;
        };
        let value = if [header::CACHE_CONTROL, header::PRAGMA, header::VARY].contains(&name) {
            directives(&values.join(", "), &name, ignoring)
        } else if name == header::AGE {
            // RFC 9111 §5.1. An Age that is not a number counts as 0.
            first.trim().parse().unwrap_or(0).min(OLDEST).to_string()
        } else {
            first.clone()
        };
        kept.push((name.as_str().to_owned(), value));
    }
    for name in TEXT {
        if let Some(value) = headers.get(&name) {
            let value = field_text(value.as_bytes()).into_owned();
            kept.push((name.as_str().to_owned(), value));
        }
    }
    if headers.contains_key(header::SET_COOKIE) {
        kept.push((header::SET_COOKIE.as_str().to_owned(), "-".to_owned()));
    }
    kept
}

fn plain(octet: u8) -> char {
    match octet {
        b'\t' | b' '..=b'~' => char::from(octet),
        _ => '?',
    }
}

fn directives(value: &str, name: &HeaderName, ignoring: IgnoredDirectives) -> String {
    let lower = value.to_ascii_lowercase();
    if *name != header::CACHE_CONTROL || ignoring == IgnoredDirectives::Nothing {
        return lower;
    }
    let is_heeded = |directive: &&str| {
        let word = directive.split('=').next().unwrap_or_default().trim();
        !matches!(word, "no-store" | "private")
    };
    let heeded: Vec<&str> = lower.split(',').filter(is_heeded).collect();
    heeded.join(",")
}

pub(super) fn of_request(asked: &ExchangeRequest<'_>) -> Vec<(String, String)> {
    [
        (header::ACCEPT, asked.accept),
        (header::ACCEPT_ENCODING, "gzip"),
        (header::USER_AGENT, USER_AGENT),
    ]
    .map(|(name, value)| (name.as_str().to_owned(), value.to_owned()))
    .into()
}

pub(super) fn header_map(fields: &[(String, String)]) -> HeaderMap {
    let field = |(name, value): &(String, String)| {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_bytes(value.as_bytes()).ok()?))
    };
    fields.iter().filter_map(field).collect()
}

fn request(asked: &ExchangeRequest<'_>, fields: &[(String, String)]) -> Option<Parts> {
    let request = Request::builder()
        .uri(asked.target.request_url())
        .body(())
        .ok()?;
    let (mut parts, ()) = request.into_parts();
    parts.headers = header_map(fields);
    Some(parts)
}

fn response(status: u16, fields: &[(String, String)]) -> Option<Response<()>> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).ok()?;
    *response.headers_mut() = header_map(fields);
    Some(response)
}

fn policy(
    asked: &ExchangeRequest<'_>,
    fields: &[(String, String)],
    (status, headers): (u16, &[(String, String)]),
    at: SystemTime,
) -> Option<CachePolicy> {
    let (request, response) = (request(asked, fields)?, response(status, headers)?);
    let options = CacheOptions::default();
    Some(CachePolicy::new_options(&request, &response, at, options))
}

fn of_kept(kept: &KeptAnswer, asked: &ExchangeRequest<'_>) -> Option<CachePolicy> {
    let answer = (kept.status, kept.headers.as_slice());
    policy(asked, &kept.asked, answer, time(kept.at))
}

pub(super) fn may_be_kept(
    status: u16,
    asked: &ExchangeRequest<'_>,
    headers: &[(String, String)],
) -> bool {
    let now = SystemTime::now();
    let policy = policy(asked, &of_request(asked), (status, headers), now);
    policy.is_some_and(|policy| policy.is_storable())
}

/// Returns how long a 404 or 410 is stored: its explicit freshness, at most a day.
pub(super) fn gone_for(
    status: u16,
    asked: &ExchangeRequest<'_>,
    headers: &[(String, String)],
) -> Option<Duration> {
    let now = SystemTime::now();
    let policy = policy(asked, &of_request(asked), (status, headers), now)
        .filter(CachePolicy::is_storable)?;
    let words = ["max-age", "s-maxage", "no-cache"];
    let says_so = headers.iter().any(|(name, value)| match name.as_str() {
        "expires" | "pragma" => true,
        "cache-control" => words.iter().any(|word| value.contains(word)),
        _ => false,
    });
    let lifetime = if says_so {
        policy.time_to_live(now).min(GONE)
    } else {
        GONE
    };
    Some(lifetime).filter(|lifetime| !lifetime.is_zero())
}

/// Returns the header fields for validating a stored response, or `None` if it is still fresh. The fields are empty if
/// the response cannot be validated or does not match this request.
pub(super) fn conditions(
    kept: &KeptAnswer,
    asked: &ExchangeRequest<'_>,
) -> Option<Vec<(HeaderName, HeaderValue)>> {
    let now = SystemTime::now();
    let request = request(asked, &of_request(asked));
    let (Some(policy), Some(request)) = (of_kept(kept, asked), request) else {
        return Some(Vec::new());
    };
    let (headers, names) = match policy.before_request(&request, now) {
        // If the clock was set back, the stored response seems to come from the future. Its age is unknown, so it is validated.
        BeforeRequest::Fresh(_) if time(kept.at) <= now => return None,
        BeforeRequest::Fresh(_) => {
            let validators = [header::ETAG, header::LAST_MODIFIED];
            (header_map(&kept.headers), validators)
        }
        BeforeRequest::Stale { matches: false, .. } => return Some(Vec::new()),
        BeforeRequest::Stale { request, .. } => (request.headers, CONDITIONS),
    };
    let condition = |(name, from)| Some((name, headers.get(from)?.clone()));
    let conditions = CONDITIONS.into_iter().zip(names);
    Some(conditions.filter_map(condition).collect())
}

/// Returns the header fields of a stored response that a 304 has confirmed (RFC 9111 §4.3.4). Returns `None` if the 304 belongs
/// to a different response.
pub(super) fn refreshed(
    kept: &KeptAnswer,
    asked: &ExchangeRequest<'_>,
    not_modified: &[(String, String)],
) -> Option<Vec<(String, String)>> {
    // A 304 may omit Last-Modified (RFC 9110 §15.4.5). The crate http-cache-semantics would conclude that the 304
    // belongs to a different response, so the stored ETag and Last-Modified fields are added to it.
    let is_validator = |(name, _): &&(String, String)| name == "etag" || name == "last-modified";
    let mut not_modified = not_modified.to_vec();
    if !not_modified.iter().any(|field| is_validator(&field)) {
        not_modified.extend(kept.headers.iter().filter(is_validator).cloned());
    }
    let request = request(asked, &of_request(asked))?;
    let response = response(304, &not_modified)?;
    let after = of_kept(kept, asked)?.after_response(&request, &response, SystemTime::now());
    if let AfterResponse::Modified(..) = after {
        return None;
    }
    // The crate http-cache-semantics drops fields of the 304 that the stored response lacks. These fields are added
    // here, because a 304 may be the first response that contains `no-store`.
    let is_of_body = |name: &str| TEXT.iter().any(|of_body| of_body == name);
    let is_new = |name: &String| not_modified.iter().any(|(other, _)| other == name);
    let stays = |name: &String| is_of_body(name) || (!is_new(name) && name != "age");
    let old = kept.headers.iter().filter(|(name, _)| stays(name));
    let new = not_modified.iter().filter(|(name, _)| !is_of_body(name));
    Some(old.chain(new).cloned().collect())
}
