//! One request to one http server, and its answer, whatever its status: what redirects are followed over. A [`Disk`] sees
//! all of them. It answers itself, or asks, with more header fields.

use std::fmt;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use ureq::http::{HeaderMap, HeaderName, HeaderValue, header};

use super::allowance::Allowance;
use super::failed::Failed;
use super::request::Retrieved;
use crate::mime::date;
use crate::policy::{Host, Target, TypePattern};
use crate::report::{Provenance, Refusal};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// Judged.
    pub(crate) target: &'a Target,
    pub(crate) accept: &'a str,
    pub(crate) how: How,
    pub(crate) whose: Whose,
    pub(crate) more: &'a [(HeaderName, HeaderValue)],
    /// Whether a URL with a user name or password led here: the answer is not everybody's.
    pub(crate) is_personal: bool,
    pub(crate) allowance: Allowance,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Whose {
    /// The one that the mail names.
    Source,
    /// An archive, for what it captured.
    Archive,
    /// An archive, for what captures it has.
    Index,
}

/// What is wanted of the content of a 200.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum How {
    /// GET; all of it.
    Whole,
    /// GET; none of it.
    Unread,
    Head,
}

/// An answer of whatever status.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// The content of a 200 that was asked for with [`How::Whole`], decompressed; empty otherwise.
    pub(crate) body: Bytes,
    pub(crate) source: Source,
    pub(crate) recorded: Option<Recorded>,
}

impl Answer {
    pub(crate) fn retrieved(self, target: &Target) -> Retrieved {
        let media_type = text(&self.headers, &header::CONTENT_TYPE);
        let mut retrieved = Retrieved::new(target.public_url(), media_type, self.body);
        retrieved.status = Some(self.status);
        retrieved.at = Some(SystemTime::now());
        retrieved.record = self.recorded.map(|recorded| recorded.id.into());
        if let Source::Kept { at, first } = self.source {
            let time = |at| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(at));
            retrieved.from = Provenance::Cache;
            retrieved.at = time(at);
            retrieved.first = time(first);
        }
        retrieved
    }
}

pub(crate) fn text(headers: &HeaderMap, name: &header::HeaderName) -> Option<String> {
    // Not to_str(): a Location in raw UTF-8 is common, and no reason to give up.
    let value = std::str::from_utf8(headers.get(name)?.as_bytes()).ok()?;
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Where an answer comes from; a cache writes it down.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Source {
    /// The server; one of these addresses, all of which were judged.
    #[serde(rename = "addresses")]
    Server(Vec<IpAddr>),
    /// The server behind `--proxy`, which alone looked up its addresses.
    #[serde(rename = "proxy")]
    Proxy,
    /// The cache; when the server gave or last confirmed it, and when it gave it, in seconds since 1970.
    #[serde(skip)]
    Kept { at: u64, first: u64 },
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Recorded {
    /// `urn:uuid:...`.
    pub(crate) id: String,
    pub(crate) url: String,
    /// When it was recorded, as in RFC 3339.
    pub(crate) date: String,
    /// The digest of the payload.
    pub(crate) payload: String,
}

pub(crate) fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

pub(crate) fn is_temporary(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..=599)
}

/// What says that an archive captured an answer, and when (RFC 7089 §2.1.1).
pub(crate) const MEMENTO_DATETIME: &str = "memento-datetime";

/// When an archive captured an answer, whose status is that of the source then; none for one of its own.
pub(crate) fn captured(headers: &HeaderMap) -> Option<i64> {
    let value = headers.get(MEMENTO_DATETIME)?.to_str().ok()?;
    date::seconds(value.as_bytes()).filter(|seconds| *seconds > 0)
}

pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// The pause that Retry-After asks for (RFC 9110 §10.2.3): seconds, or a date.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = Duration::from_secs(u64::try_from(date::seconds(value.as_bytes())?).ok()?);
    let until = SystemTime::UNIX_EPOCH.checked_add(until)?;
    until.duration_since(SystemTime::now()).ok()
}

/// Whether a type may be the wanted one; where nothing is said, it may.
pub(crate) fn agrees(accept: &str, named: Option<&str>) -> bool {
    let mut pieces = named.unwrap_or_default().split(';');
    let essence = pieces
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

pub(crate) type Ask<'a> = &'a dyn Fn(&Asked<'_>) -> Result<Answer, Failed>;

/// Keeps answers from run to run, in front of servers.
pub(crate) trait Disk: Send + Sync + fmt::Debug {
    /// The answer to one request: what is kept, or what `ask` gives. A redirect is an answer, and is not followed.
    fn answer(&self, asked: &Asked<'_>, ask: Ask<'_>) -> Result<Answer, Failed>;

    /// Whether another protocol may ask a server now.
    fn may_ask(&self, host: &Host, port: u16) -> Result<(), Refusal>;

    /// Tells that another protocol found nobody there.
    fn found_nobody(&self, host: &Host, port: u16, failed: &Failed);
}
