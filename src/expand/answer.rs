//! What came from a source: its octets, shared by all references to it, and what is said of them.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use md5::{Digest as _, Md5};

use crate::fetch::Retrieved;
use crate::mime::MediaType;
use crate::mime::entity::sha256;
use crate::mime::transfer::{base64_length, canonical_text};
use crate::report::{Provenance, Row, rfc3339};

/// Content that many references may share: thousands of them to one part must cost neither its
/// size nor the time of its digest thousands of times.
#[derive(Debug)]
pub(super) struct Octets {
    bytes: Bytes,
    digest: OnceCell<[u8; 16]>,
    canonical_digest: OnceCell<[u8; 16]>,
    /// Shared by all messages of a run that get the same answer.
    key: Arc<OnceLock<String>>,
    carriage_returns: OnceCell<usize>,
}

impl Octets {
    pub(super) fn shared(bytes: impl Into<Bytes>) -> Rc<Self> {
        Self::with_key(bytes.into(), Arc::default())
    }

    fn with_key(bytes: Bytes, key: Arc<OnceLock<String>>) -> Rc<Self> {
        Rc::new(Self {
            bytes,
            digest: OnceCell::new(),
            canonical_digest: OnceCell::new(),
            key,
            carriage_returns: OnceCell::new(),
        })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The octets a body has at least that holds these: text may lose CRs, what is `exact` goes as base64.
    pub(super) fn least_body(&self, exact: bool) -> usize {
        if exact {
            return base64_length(self.len());
        }
        let count = || memchr::memchr_iter(b'\r', &self.bytes).count();
        self.len() - self.carriage_returns.get_or_init(count)
    }

    /// The bytes for keeps; copied only if somebody else holds them as well.
    pub(super) fn into_vec(shared: Rc<Self>) -> Vec<u8> {
        Rc::try_unwrap(shared)
            .map_or_else(|held| held.bytes.clone(), |octets| octets.bytes)
            .into()
    }

    /// MD5.
    pub(super) fn digest(&self) -> &[u8; 16] {
        self.digest.get_or_init(|| Md5::digest(&self.bytes).into())
    }

    /// SHA-256 in hexadecimal digits.
    pub(super) fn key(&self) -> &str {
        self.key.get_or_init(|| sha256(&self.bytes))
    }

    /// Of the text with CRLF line ends.
    pub(super) fn canonical_digest(&self) -> &[u8; 16] {
        self.canonical_digest
            .get_or_init(|| Md5::digest(canonical_text(&self.bytes)).into())
    }
}

/// An answer of the world, its octets shared.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) url: Arc<str>,
    pub(super) media_type: Option<String>,
    pub(super) octets: Rc<Octets>,
    pub(super) came: Came,
}

impl Answer {
    pub(super) fn len(&self) -> usize {
        self.octets.len()
    }

    pub(super) fn octets(&self) -> Rc<Octets> {
        Rc::clone(&self.octets)
    }

    /// `type/subtype` as the source names it.
    pub(super) fn essence(&self) -> Option<String> {
        let named = self.media_type.as_deref()?;
        Some(MediaType::parse(named.as_bytes()).essence.into_owned())
    }

    pub(super) fn charset(&self) -> Option<String> {
        let named = self.media_type.as_deref()?;
        let charset = MediaType::parse(named.as_bytes()).parameter("charset")?;
        String::from_utf8(charset.into_owned()).ok()
    }

    /// The URL of who gave it, after redirects.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn sha256(&self) -> Option<String> {
        self.came.sha256(&self.octets)
    }

    /// The octets of what is said about the content: its URL and its type.
    pub(super) fn names_length(&self) -> usize {
        self.url.len() + self.media_type.as_ref().map_or(0, String::len)
    }
}

impl From<Retrieved> for Answer {
    fn from(retrieved: Retrieved) -> Self {
        let url: Arc<str> = retrieved.url.into();
        // The name of an object in a store is ours, and no URL.
        let has_url = retrieved.from != Provenance::Store;
        Self {
            came: Came {
                from: retrieved.from,
                url: has_url.then(|| Arc::clone(&url)),
                status: retrieved.status,
                at: retrieved.at,
                first: retrieved.first,
                elapsed: Some(retrieved.elapsed),
                captured: retrieved.captured,
                record: retrieved.record,
            },
            url,
            media_type: retrieved.media_type,
            octets: Octets::with_key(retrieved.body, retrieved.sha256),
        }
    }
}

/// How content came, as rows tell it.
#[derive(Clone, Default, Debug)]
pub(super) struct Came {
    from: Provenance,
    /// The URL that gave it, after redirects.
    url: Option<Arc<str>>,
    status: Option<u16>,
    at: Option<SystemTime>,
    /// When it was given, if it was only confirmed since.
    first: Option<SystemTime>,
    elapsed: Option<Duration>,
    captured: Option<SystemTime>,
    record: Option<Arc<str>>,
}

impl Came {
    pub(super) fn in_message() -> Self {
        Self {
            from: Provenance::Message,
            ..Self::default()
        }
    }

    /// Whether it was in no mail, and in no store of ours.
    pub(super) fn is_from_elsewhere(&self) -> bool {
        self.url.is_some()
    }

    pub(super) fn status(&self) -> Option<u16> {
        self.status
    }

    /// When its source gave it first, when an archive captured it, and where it is recorded.
    pub(super) fn moments(&self) -> (Option<SystemTime>, Option<SystemTime>, Option<String>) {
        let record = self.record.as_deref().map(str::to_owned);
        (self.first.or(self.at), self.captured, record)
    }

    /// The hash of what was retrieved; what is in the message has none in rows.
    pub(super) fn sha256(&self, octets: &Octets) -> Option<String> {
        self.elapsed.map(|_| octets.key().to_owned())
    }

    /// Tells how content of this hash came, whether it was put in or not.
    pub(super) fn tell(&self, sha256: Option<String>, row: &mut Row) {
        row.from = self.from;
        row.status = self.status;
        row.final_url.clone_from(&self.url);
        row.retrieved_at = self.at.map(rfc3339);
        row.captured_at = self.captured.map(rfc3339);
        row.record.clone_from(&self.record);
        row.sha256 = sha256;
    }

    /// Tells it of what was put in.
    pub(super) fn tell_of_content(&self, sha256: Option<String>, row: &mut Row) {
        self.tell(sha256, row);
        let elapsed = self.elapsed.map(|elapsed| elapsed.as_millis());
        row.ms = elapsed.and_then(|elapsed| u64::try_from(elapsed).ok());
        row.tell_capture();
    }
}
