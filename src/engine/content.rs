//! Content from outside the message. The same type is used from the source that sends it to the edit that inserts it.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use md5::{Digest as _, Md5};

use crate::engine::policy::Policy;
use crate::engine::report::{CopySource, Provenance, Row, rfc3339};
use crate::mime::MediaType;
use crate::mime::entity::sha256;
use crate::mime::transfer::{base64_length, canonical_text};
use crate::span::Newline;

/// Complete content, with the media type and origin that its source declares.
///
/// A clone shares the bytes and everything that was computed from them, also between threads.
#[derive(Clone, Debug)]
pub struct Content {
    bytes: Bytes,
    /// Value of the source's Content-Type field, unparsed. `None` for ftp, files and stores.
    pub media_type: Option<String>,
    /// The source of the content, and the time of the retrieval.
    pub origin: Origin,
    /// Facts that only the part in the mail shows. Set if the content comes from a mail whose origin `compare` proves.
    pub(crate) noted: Option<Arc<NotedDigests>>,
    computed: Arc<ContentDigests>,
}

/// Facts about content that only the header of its part shows. They cannot be recomputed from the body, because a run
/// changes links in documents and line endings in texts when it inserts them.
#[derive(Default, Debug)]
pub(crate) struct NotedDigests {
    /// Hash digits in the file name and in the Content-ID of an embedded style sheet that contains `cid:` URLs.
    pub(crate) identity: Option<(String, String)>,
    /// SHA-256 of the content as the server sent it, from the field X-Embody-Source.
    pub(crate) sha256: Option<String>,
    /// Whether the part has no field X-Embody-Source.
    pub(crate) is_without_source: bool,
}

/// Provenance of content: its source, and when the source sent it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Origin {
    /// The URL of the response that contained the content: after redirects, without fragment and password. Empty for
    /// content that was in the message.
    pub url: Arc<str>,
    /// The kind of source.
    pub from: Provenance,
    /// The status code of the response, for protocols that have one.
    pub status: Option<u16>,
    /// Duration of the retrieval. For a cache hit, the duration of the original retrieval.
    pub elapsed: Duration,
    /// Time at which the source sent the content, or last confirmed that a cached copy is current.
    pub at: Option<SystemTime>,
    /// Time of the original response, if a cached copy was revalidated since then. `at` is the time of the last
    /// revalidation.
    pub first: Option<SystemTime>,
    /// Time at which a web archive captured the content. `None` if the content is from its original source.
    pub captured: Option<SystemTime>,
    /// The part of another mail from which the content was copied ([`Provenance::Copy`]).
    pub copy: Option<Arc<CopiedPart>>,
    /// The id of the WARC record that contains the response (`urn:uuid:...`).
    pub record: Option<Arc<str>>,
}

/// A part of another mail, from which content was taken.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CopiedPart {
    /// The file that contains the mail.
    pub source: String,
    /// Position of the mail in this file, from 1.
    pub index: u64,
    /// The fields of the part that describe the content, without its transfer encoding. Their lines end with CRLF.
    pub fields: Vec<u8>,
    /// Whether the content was checked against the digest or length in the mail, and matches.
    pub is_proved: bool,
}

/// Digests and counts of the bytes, which are computed at most once: thousands of references may share the same content.
#[derive(Default, Debug)]
struct ContentDigests {
    sha256: OnceLock<String>,
    md5: OnceLock<[u8; 16]>,
    canonical_md5: OnceLock<[u8; 16]>,
    carriage_returns: OnceLock<usize>,
}

impl Content {
    /// Creates content that the network returned for `url`, with a duration of zero. For other sources, change
    /// [`Content::origin`].
    pub fn new(url: impl AsRef<str>, media_type: Option<String>, bytes: impl Into<Bytes>) -> Self {
        Self {
            bytes: bytes.into(),
            media_type,
            origin: Origin::new(url.as_ref(), Provenance::Network),
            noted: None,
            computed: Arc::default(),
        }
    }

    /// Creates content that was in the message, or that embody generated.
    pub(crate) fn of_message(bytes: impl Into<Bytes>) -> Self {
        Self {
            origin: Origin::of_message(),
            ..Self::new("", None, bytes)
        }
    }

    /// Returns the bytes, after decompression.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Replaces the bytes. The origin and the media type stay the same.
    #[must_use]
    pub(crate) fn with_bytes(self, bytes: impl Into<Bytes>) -> Self {
        Self {
            bytes: bytes.into(),
            computed: Arc::default(),
            ..self
        }
    }

    /// Overrides the digests. `compare` uses this for placeholder bytes that have the length of the real content, but
    /// not its hash.
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    pub(crate) fn with_digests(self, sha256: String, md5: Option<[u8; 16]>) -> Self {
        let of_md5 = || md5.map_or_else(OnceLock::new, OnceLock::from);
        let computed = ContentDigests {
            sha256: OnceLock::from(sha256),
            md5: of_md5(),
            canonical_md5: of_md5(),
            carriage_returns: OnceLock::new(),
        };
        Self {
            computed: Arc::new(computed),
            ..self
        }
    }

    /// Moves the bytes out and leaves the content empty, so that a large file is not in memory twice. The origin and
    /// the media type are kept.
    pub(crate) fn take_bytes(&mut self) -> Bytes {
        self.computed = Arc::default();
        std::mem::take(&mut self.bytes)
    }

    /// Returns the media type without parameters, or `None` if the source declares no type.
    pub(crate) fn essence(&self) -> Option<String> {
        let declared = self.media_type.as_deref()?;
        Some(MediaType::parse(declared.as_bytes()).essence.into_owned())
    }

    /// Returns the charset that the source declares.
    pub(crate) fn charset(&self) -> Option<String> {
        let declared = self.media_type.as_deref()?;
        let charset = MediaType::parse(declared.as_bytes()).parameter("charset")?;
        String::from_utf8(charset.into_owned()).ok()
    }

    /// Returns the SHA-256 of the bytes, in lower-case hexadecimal digits.
    pub(crate) fn sha256(&self) -> &str {
        self.computed.sha256.get_or_init(|| sha256(&self.bytes))
    }

    /// Returns [`Content::sha256`] for rows and header fields, or `None` for content that was in the message.
    pub(crate) fn sha256_of_source(&self) -> Option<String> {
        (self.origin.from != Provenance::Message).then(|| self.sha256().to_owned())
    }

    /// Returns the MD5 of the bytes.
    pub(crate) fn md5(&self) -> &[u8; 16] {
        let digest = || Md5::digest(&self.bytes).into();
        self.computed.md5.get_or_init(digest)
    }

    /// Returns the MD5 of the bytes as a text with CRLF line endings (RFC 1864 §2).
    pub(crate) fn canonical_md5(&self) -> &[u8; 16] {
        let digest = || Md5::digest(canonical_text(&self.bytes)).into();
        self.computed.canonical_md5.get_or_init(digest)
    }

    /// Lower bound for the length of a body with this content, in bytes. If the bytes must stay `exact`, this is their
    /// length in base64. Otherwise the content may be written as text, in which each CRLF becomes LF.
    pub(crate) fn least_body(&self, exact: bool) -> usize {
        if exact {
            return base64_length(self.len(), Newline::Lf);
        }
        let count = || memchr::memchr_iter(b'\r', &self.bytes).count();
        self.len() - self.computed.carriage_returns.get_or_init(count)
    }

    /// Returns true if `url` itself returned the content, without a redirect.
    pub(crate) fn is_direct(&self, policy: &Policy, url: &str) -> bool {
        let target = policy.judge_url(url);
        target.is_ok_and(|target| target.public_url() == *self.origin.url)
    }

    /// Returns the length of the URL and of the media type, in bytes. Both are read again for each reference to the
    /// content, and a hostile server can make them long, so they count towards the limit of work.
    pub(crate) fn names_length(&self) -> usize {
        self.origin.url.len() + self.media_type.as_ref().map_or(0, String::len)
    }

    /// Writes the source and the duration of the retrieval into a row.
    pub(crate) fn describe(&self, row: &mut Row) {
        self.describe_source(row);
        if self.origin.from != Provenance::Message {
            row.ms = u64::try_from(self.origin.elapsed.as_millis()).ok();
        }
        row.tell_capture();
    }

    /// Writes the source into a row, without the duration. Used for content that was not inserted.
    pub(crate) fn describe_source(&self, row: &mut Row) {
        let origin = &self.origin;
        row.from = origin.from;
        row.final_url = origin.public_url().cloned();
        row.sha256 = self.sha256_of_source();
        row.status = origin.status;
        row.retrieved_at = origin.at.map(rfc3339);
        row.captured_at = origin.captured.map(rfc3339);
        row.record.clone_from(&origin.record);
        row.copy = origin.copy.as_ref().map(|copy| CopySource {
            source: copy.source.clone(),
            index: copy.index,
        });
    }
}

impl Origin {
    fn new(url: &str, from: Provenance) -> Self {
        Self {
            url: url.into(),
            from,
            status: None,
            elapsed: Duration::ZERO,
            at: None,
            first: None,
            captured: None,
            copy: None,
            record: None,
        }
    }

    /// Returns the origin of content that was in the message.
    pub(crate) fn of_message() -> Self {
        Self::new("", Provenance::Message)
    }

    /// Returns the URL for use in reports and header fields. Returns `None` for content from the message, from a copy
    /// of the mail, or from a store, because such content has no URL that is useful to others.
    pub(crate) fn public_url(&self) -> Option<&Arc<str>> {
        let is_private = matches!(
            self.from,
            Provenance::Message | Provenance::Store | Provenance::Copy
        );
        (!is_private).then_some(&self.url)
    }
}
