//! Requests with one message.

use std::sync::Arc;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use sha2::{Digest as _, Sha256};

use super::accept::accepts;
use super::backend::{BackendResult, Verb};
use super::body::{BodyReader, RequestBody, Response};
use super::problem::Problem;
use super::shared::ServeState;
use crate::key::Key;

const CHANGED: HeaderName = HeaderName::from_static("embody-changed");
const LEFT: HeaderName = HeaderName::from_static("embody-left");
pub(super) const DIGEST: HeaderName = HeaderName::from_static("repr-digest");

/// Maximum number of bytes that are allocated before they arrive.
const RESERVED: u64 = 1 << 20;

pub(super) async fn answer(
    shared: &Arc<ServeState>,
    (verb, parameters): (Verb, Vec<(String, String)>),
    parts: &Parts,
    body: &mut Incoming,
) -> Result<Response, Problem> {
    check_encoding(&parts.headers)?;
    let mut reading = BodyReader::new(body, Problem::too_large_message, shared.limits.max_request);
    reading.check_announced()?;
    // The slot is taken before the body is read, so that the number of slots also limits the memory for messages.
    let place = shared.workers.place().ok_or_else(Problem::queue)?;
    let mut message = Vec::with_capacity(reading.announced().min(RESERVED) as usize);
    while let Some(bytes) = reading.next().await? {
        message.extend_from_slice(&bytes);
    }
    let is_multipart = accepts(parts, "multipart/mixed");
    let sharing = Arc::clone(shared);
    let work = move || {
        let begun = Instant::now();
        let done = sharing.backend.process(verb, &parameters, message);
        sharing.counters.processed(verb, &done, begun.elapsed());
        done.map(|processed| response(processed, is_multipart))
    };
    let done = shared.workers.run(place, work).await;
    done.unwrap_or_else(|| Err(Problem::defect()))
}

/// Refuses a compressed message. It is not recognisable as mail, so it would be returned unchanged, without any sign of
/// the mistake.
fn check_encoding(fields: &HeaderMap) -> Result<(), Problem> {
    let is_plain = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if fields.get_all(CONTENT_ENCODING).iter().all(is_plain) {
        return Ok(());
    }
    let detail = "a message must not be compressed; send it without the field Content-Encoding";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
}

fn response(processed: BackendResult, is_multipart: bool) -> Response {
    let (mail, is_changed, left, report) = match processed {
        BackendResult::Report(report) => return of("application/json", report),
        BackendResult::Mail {
            mail,
            is_changed,
            left,
            report,
        } => (mail, is_changed, left, report),
    };
    let mut response = if is_multipart {
        let (boundary, body) = multipart(&report, &mail);
        of(&format!("multipart/mixed; boundary={boundary}"), body)
    } else {
        of("message/rfc822", mail)
    };
    let fields = response.headers_mut();
    fields.insert(CHANGED, u64::from(is_changed).into());
    fields.insert(LEFT, left.into());
    response
}

fn of(kind: &str, body: Vec<u8>) -> Response {
    let digest = digest(&body);
    let mut response = Response::new(RequestBody::of(body));
    let fields: &mut HeaderMap = response.headers_mut();
    if let Ok(kind) = HeaderValue::from_str(kind) {
        fields.insert(CONTENT_TYPE, kind);
    }
    if let Ok(digest) = HeaderValue::from_str(&digest) {
        fields.insert(DIGEST, digest);
    }
    response
}

/// Returns the value of Repr-Digest (RFC 9530).
fn digest(body: &[u8]) -> String {
    of_hash(&Sha256::digest(body))
}

pub(super) fn of_hash(hash: &[u8]) -> String {
    format!("sha-256=:{}:", STANDARD.encode(hash))
}

/// Returns the boundary and the body of a multipart with the report and the mail. The boundary is derived from the
/// content, and does not occur in it.
fn multipart(report: &[u8], mail: &[u8]) -> (String, Vec<u8>) {
    let mut boundary = format!("embody-{}", Key::of(mail));
    while [report, mail]
        .iter()
        .any(|part| memchr::memmem::find(part, boundary.as_bytes()).is_some())
    {
        boundary = format!("embody-{}", Key::of(boundary.as_bytes()));
    }
    let mut body = Vec::with_capacity(report.len() + mail.len() + 512);
    let mut push = |text: &[u8]| body.extend_from_slice(text);
    push(format!("--{boundary}\r\nContent-Type: application/json\r\n\r\n").as_bytes());
    push(report);
    let digest = digest(mail);
    push(
        format!(
            "\r\n--{boundary}\r\nContent-Type: message/rfc822\r\nRepr-Digest: {digest}\r\n\r\n"
        )
        .as_bytes(),
    );
    push(mail);
    push(format!("\r\n--{boundary}--\r\n").as_bytes());
    (boundary, body)
}
