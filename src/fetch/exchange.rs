//! The types for one request to an http server and its response. Redirects are followed by the caller (`system::http`). A cache
//! of responses ([`ResponseCache`]) gets each request before it is sent. It returns a stored response, or sends the request, with
//! additional header fields if a stored response must be validated.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use ureq::http::{HeaderMap, HeaderName, HeaderValue, header};

use super::allowance::{FetchFailure, RequestAllowance};
use crate::engine::Content;
use crate::engine::policy::{Host, Target, TypePattern};
use crate::engine::report::{Provenance, Refusal};
use crate::mime::date;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ExchangeRequest<'a> {
    pub(crate) target: &'a Target,
    pub(crate) accept: &'a str,
    pub(crate) how: FetchMethod,
    pub(crate) whose: RequestPurpose,
    pub(crate) more: &'a [(HeaderName, HeaderValue)],
    /// Whether this URL, or a URL that redirected to it, contains a user name or password. The response may be private to that
    /// user, so it must not be stored in the shared cache.
    pub(crate) is_personal: bool,
    pub(crate) allowance: RequestAllowance,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequestPurpose {
    Source,
    Archive,
    Index,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FetchMethod {
    Whole,
    Unread,
    Head,
}

#[derive(Clone, Debug)]
pub(crate) struct FetchResponse {
    pub(crate) status: u16,
    /// Time when the server sent this response, or last confirmed it, in seconds since 1970. It is read from the clock only
    /// once, so that a report about the first retrieval and one about the stored response name the same time.
    pub(crate) at: u64,
    pub(crate) headers: HeaderMap,
    /// Content, decompressed. Empty unless [`is_success`] and the whole content was requested ([`FetchMethod::Whole`]).
    pub(crate) body: Bytes,
    pub(crate) source: ResponseSource,
    pub(crate) recorded: Option<RecordedExchange>,
}

impl FetchResponse {
    /// Returns the content of the response. `target` is the URL that was requested last.
    pub(crate) fn into_content(self, target: &Target) -> Content {
        let media_type = text(&self.headers, &header::CONTENT_TYPE);
        let mut content = Content::new(target.public_url(), media_type, self.body);
        let origin = &mut content.origin;
        origin.status = Some(self.status);
        origin.at = Some(time(self.at));
        origin.record = self.recorded.map(|recorded| recorded.id.into());
        if let ResponseSource::Kept { first } = self.source {
            origin.from = Provenance::Cache;
            origin.first = Some(time(first));
        }
        content
    }
}

/// Returns the current time in seconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Converts seconds since 1970 to a [`SystemTime`].
pub(crate) fn time(seconds: u64) -> SystemTime {
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

pub(crate) fn text(headers: &HeaderMap, name: &header::HeaderName) -> Option<String> {
    // `to_str` accepts only ASCII, but many servers send a Location field in raw UTF-8 or in Latin-1.
    let value = field_text(headers.get(name)?.as_bytes());
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Decodes the value of a field. If it is not UTF-8, its bytes that are not ASCII are percent-encoded, as curl and Chromium do
/// for a Location: the server then receives the bytes that it sent.
pub(crate) fn field_text(value: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(value) => Cow::Borrowed(value),
        Err(_) => Cow::Owned(value.iter().fold(String::new(), |mut text, octet| {
            match octet {
                0x80.. => text.push_str(&format!("%{octet:02X}")),
                _ => text.push(char::from(*octet)),
            }
            text
        })),
    }
}

#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum ResponseSource {
    /// The response came directly from a server with these addresses. The policy has allowed all of them.
    #[serde(rename = "addresses")]
    Server(Vec<IpAddr>),
    #[serde(rename = "proxy")]
    Proxy,
    /// The response came from the cache. `first` is the time when the server sent it, in seconds since 1970.
    #[serde(skip)]
    Kept { first: u64 },
}

impl ResponseSource {
    /// Returns whether the response was sent in this run.
    pub(crate) fn is_server(&self) -> bool {
        !matches!(self, Self::Kept { .. })
    }
}

#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct RecordedExchange {
    pub(crate) id: String,
    pub(crate) url: String,
    pub(crate) date: String,
    pub(crate) payload: String,
}

/// Whether a response has the requested content. A proxy that has changed the content sends 203 (RFC 9110 §15.3.4).
pub(crate) fn is_success(status: u16) -> bool {
    matches!(status, 200 | 203)
}

pub(crate) fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

pub(crate) fn is_temporary(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..=599)
}

/// Name of the field with the time of a capture in a web archive (RFC 7089 §2.1.1).
pub(crate) const MEMENTO_DATETIME: &str = "memento-datetime";

/// Returns the time at which the archive captured the content of this response, in seconds since 1970. Returns `None` for a
/// page of the archive itself, such as an error page, because it has no Memento-Datetime field.
pub(crate) fn captured(headers: &HeaderMap) -> Option<i64> {
    let value = headers.get(MEMENTO_DATETIME)?.to_str().ok()?;
    date::seconds(value.as_bytes()).filter(|seconds| *seconds > 0)
}

pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns the pause that a Retry-After field requests: a number of seconds, or the time until a date (RFC 9110 §10.2.3).
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let seconds = u64::try_from(date::seconds(value.as_bytes())?).ok()?;
    let until = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
    until.duration_since(SystemTime::now()).ok()
}

/// Returns whether the media type of a response may be the requested one. A missing type and a type that means "any data" match
/// every type.
pub(crate) fn agrees(accept: &str, named: Option<&str>) -> bool {
    let essence = named
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let says_nothing =
        |essence: &str| !essence.contains('/') || essence == "application/octet-stream";
    if accept == "*/*" || says_nothing(&accept.to_ascii_lowercase()) || says_nothing(&essence) {
        return true;
    }
    accept
        .parse()
        .map_or(true, |wanted: TypePattern| wanted.matches(&essence))
}

pub(crate) type Ask<'a> = &'a dyn Fn(&ExchangeRequest<'_>) -> Result<FetchResponse, FetchFailure>;

pub(crate) trait ResponseCache: Send + Sync + fmt::Debug {
    /// Returns a response from the cache, or the response that `ask` gets from the server. A redirect is returned like any
    /// other response: following it is the task of the caller.
    fn answer(
        &self,
        asked: &ExchangeRequest<'_>,
        ask: Ask<'_>,
    ) -> Result<FetchResponse, FetchFailure>;

    fn may_ask(&self, host: &Host, port: u16) -> Result<(), Refusal>;

    fn store_unresponsive(&self, host: &Host, port: u16, failed: &FetchFailure);
}
