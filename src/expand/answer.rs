//! What came from a source: its octets, shared by all references to it, and what is said of them.
//!
//! P4 says that no clock stands in the output; the field of a part that came in, which has to be asked for, is the
//! exception:
//! `X-Embody-Source: <URL>; retrieved=...; sha256=...; status=...; final=<URL>; captured=...; record=<urn:uuid:...>`:
//! the URL that the mail named, and parameters (RFC 2045 §5.1, RFC 2231 §3). What is not known is left out.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use md5::{Digest as _, Md5};

use crate::fetch::Retrieved;
use crate::link::url::{without_fragment, without_secrets};
use crate::mime::MediaType;
use crate::mime::entity::{sha256, uri};
use crate::mime::transfer::{base64_length, canonical_text};
use crate::policy::Policy;
use crate::report::{Provenance, Row, rfc3339};
use crate::span::Newline;

/// Thousands of references to one part must cost neither its size nor the time of its digest thousands of times.
#[derive(Default, Debug)]
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
            key,
            ..Self::default()
        })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// At least: text may lose CRs, what is `exact` goes as base64.
    pub(super) fn least_body(&self, exact: bool) -> usize {
        if exact {
            return base64_length(self.len(), Newline::Lf);
        }
        let count = || memchr::memchr_iter(b'\r', &self.bytes).count();
        self.len() - self.carriage_returns.get_or_init(count)
    }

    /// Copies only if somebody else holds the bytes as well.
    pub(super) fn into_vec(shared: Rc<Self>) -> Vec<u8> {
        Rc::try_unwrap(shared)
            .map_or_else(|held| held.bytes.clone(), |octets| octets.bytes)
            .into()
    }

    pub(super) fn digest(&self) -> &[u8; 16] {
        self.digest.get_or_init(|| Md5::digest(&self.bytes).into())
    }

    pub(super) fn key(&self) -> &str {
        self.key.get_or_init(|| sha256(&self.bytes))
    }

    /// Of the text with CRLF line ends.
    pub(super) fn canonical_digest(&self) -> &[u8; 16] {
        self.canonical_digest
            .get_or_init(|| Md5::digest(canonical_text(&self.bytes)).into())
    }
}

#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) url: Arc<str>,
    pub(super) media_type: Option<String>,
    pub(super) octets: Rc<Octets>,
    pub(super) came: Came,
}

impl Answer {
    pub(super) fn essence(&self) -> Option<String> {
        let named = self.media_type.as_deref()?;
        Some(MediaType::parse(named.as_bytes()).essence.into_owned())
    }

    pub(super) fn charset(&self) -> Option<String> {
        let named = self.media_type.as_deref()?;
        let charset = MediaType::parse(named.as_bytes()).parameter("charset")?;
        String::from_utf8(charset.into_owned()).ok()
    }

    pub(super) fn sha256(&self) -> Option<String> {
        self.came.sha256(&self.octets)
    }

    pub(super) fn is_direct(&self, policy: &Policy, url: &str) -> bool {
        let target = policy.judge_url(url);
        target.is_ok_and(|target| target.public_url() == *self.url)
    }

    pub(super) fn names_length(&self) -> usize {
        self.url.len() + self.media_type.as_ref().map_or(0, String::len)
    }
}

impl From<Retrieved> for Answer {
    fn from(mut retrieved: Retrieved) -> Self {
        let url: Arc<str> = std::mem::take(&mut retrieved.url).into();
        let body = std::mem::take(&mut retrieved.body);
        // The name of an object in a store is ours, and no URL.
        let has_url = retrieved.from != Provenance::Store;
        Self {
            octets: Octets::with_key(body, Arc::clone(&retrieved.sha256)),
            media_type: retrieved.media_type.take(),
            came: Came {
                url: has_url.then(|| Arc::clone(&url)),
                source: Some(Rc::new(retrieved)),
            },
            url,
        }
    }
}

/// By default it was in the mail.
#[derive(Clone, Default, Debug)]
pub(super) struct Came {
    /// None of what was in the mail, or in a store of ours.
    url: Option<Arc<str>>,
    /// What is said of it. URL, type and body were taken out.
    source: Option<Rc<Retrieved>>,
}

impl Came {
    /// What is in the message has no hash in rows.
    pub(super) fn sha256(&self, octets: &Octets) -> Option<String> {
        self.source.as_ref().map(|_| octets.key().to_owned())
    }

    pub(super) fn tell(&self, sha256: Option<String>, row: &mut Row) {
        row.from = Provenance::Message;
        row.final_url.clone_from(&self.url);
        row.sha256 = sha256;
        if let Some(source) = &self.source {
            row.from = source.from;
            row.status = source.status;
            row.retrieved_at = source.at.map(rfc3339);
            row.captured_at = source.captured.map(rfc3339);
            row.record.clone_from(&source.record);
        }
    }

    pub(super) fn tell_of_content(&self, sha256: Option<String>, row: &mut Row) {
        self.tell(sha256, row);
        let elapsed = self
            .source
            .as_ref()
            .map(|source| source.elapsed.as_millis());
        row.ms = elapsed.and_then(|elapsed| u64::try_from(elapsed).ok());
        row.tell_capture();
    }
}

pub(super) const SOURCE_FIELD: &str = "X-Embody-Source";

const COLUMNS: usize = 76;

impl Came {
    /// Redirects led to `last`; lines end with CRLF. None for what was in the mail, or is an object of a store of ours.
    pub(super) fn source_field(&self, named: &str, last: &str, sha256: &str) -> Option<Vec<u8>> {
        let source = self.source.as_ref().filter(|_| self.url.is_some())?;
        if named.is_empty() {
            return None;
        }
        let shown = |url: &str| uri(&without_secrets(without_fragment(url)));
        let named = shown(named);
        let last = Some(shown(last)).filter(|last| *last != named && !last.is_empty());
        let bracketed = |text: &str| format!("<{text}>");
        let at = source.first.or(source.at);
        let parameters = [
            ("retrieved", at.map(rfc3339)),
            ("sha256", Some(sha256.to_owned())),
            ("status", source.status.map(|status| status.to_string())),
            ("final", last.as_deref().map(bracketed)),
            ("captured", source.captured.map(rfc3339)),
            ("record", source.record.as_deref().map(bracketed)),
        ];
        let mut field = format!("{SOURCE_FIELD}:");
        let url = bracketed(&named);
        if url.len() < COLUMNS - field.len() {
            field.push(' ');
            field.push_str(&url);
        } else {
            // White space within the brackets means nothing, as in a Content-Location.
            push_pieces(&mut field, &url, COLUMNS - 1, |_, piece| piece.to_owned());
        }
        for (name, value) in parameters {
            if let Some(value) = value {
                field.push(';');
                push_parameter(&mut field, name, &value);
            }
        }
        field.push_str("\r\n");
        Some(field.into_bytes())
    }
}

/// In pieces if it is long. The value is characters of URIs and brackets: nothing in it is to be escaped.
fn push_parameter(field: &mut String, name: &str, value: &str) {
    let is_token = value
        .bytes()
        .all(|it| it.is_ascii_alphanumeric() || b"-._".contains(&it));
    let line = match is_token {
        true => format!("{name}={value}"),
        false => format!("{name}=\"{value}\""),
    };
    if line.len() < COLUMNS - 1 {
        field.push_str("\r\n ");
        field.push_str(&line);
        return;
    }
    let room = COLUMNS - name.len() - "*123456=\"\"; ".len();
    let last = value.len().div_ceil(room) - 1;
    push_pieces(field, value, room, |number, piece| {
        let end = if number == last { "" } else { ";" };
        format!("{name}*{number}=\"{piece}\"{end}")
    });
}

fn push_pieces(field: &mut String, text: &str, room: usize, line: impl Fn(usize, &str) -> String) {
    for (number, piece) in text.as_bytes().chunks(room).enumerate() {
        field.push_str("\r\n ");
        field.push_str(&line(number, &String::from_utf8_lossy(piece)));
    }
}
