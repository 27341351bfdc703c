//! Requests for objects of the store: detached attachments.

use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH, IF_RANGE, RANGE,
};
use hyper::http::request::Parts;

use super::backend::ObjectContent;
use super::body::{RequestBody, Response, refusal};
use super::message::{DIGEST, of_hash};
use super::problem::Problem;
use super::shared::ServeState;
use crate::key::Key;

pub(super) async fn answer(
    shared: &Arc<ServeState>,
    name: &str,
    parts: &Parts,
) -> Result<Response, Problem> {
    let key = Key::parse(name).ok_or_else(|| {
        let detail = "the name of an object is its SHA-256, in 64 hexadecimal digits in lower case; use the name at the end of the URL in the mail";
        Problem::new(StatusCode::BAD_REQUEST, detail)
    })?;
    let place = shared.workers.place().ok_or_else(Problem::queue)?;
    let sharing = Arc::clone(shared);
    let found = shared
        .workers
        .run(place, move || sharing.backend.object(&key))
        .await;
    let (content, kind) = found
        .unwrap_or_else(|| Err(Problem::defect()))?
        .ok_or_else(Problem::no_object)?;
    let tag = format!("\"{key}\"");
    let length = match &content {
        ObjectContent::Memory(bytes) => bytes.len() as u64,
        ObjectContent::File(_, length) => *length,
    };
    let (status, body, range) = if is_known(&parts.headers, &tag) {
        (StatusCode::NOT_MODIFIED, RequestBody::of(""), None)
    } else {
        match requested(&parts.headers, &tag, length) {
            ObjectRequest::Whole => (StatusCode::OK, of(content, 0..length)?, None),
            ObjectRequest::Part(range) => {
                let field = format!("bytes {}-{}/{length}", range.start, range.end - 1);
                let body = of(content, range)?;
                (StatusCode::PARTIAL_CONTENT, body, Some(field))
            }
            ObjectRequest::Beyond => {
                let field = format!("bytes */{length}");
                let detail =
                    format!("the object has only {length} bytes; request a range within them");
                let problem = Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, detail);
                let mut response = refusal(&problem);
                set(response.headers_mut(), CONTENT_RANGE, &field);
                return Ok(response);
            }
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let fields = response.headers_mut();
    set(fields, ETAG, &tag);
    set(fields, ACCEPT_RANGES, "bytes");
    // The content of an object never changes, but only clients with the token may have it.
    set(
        fields,
        CACHE_CONTROL,
        "private, max-age=31536000, immutable",
    );
    if status != StatusCode::NOT_MODIFIED {
        set(fields, CONTENT_TYPE, kind);
        // The sender of the mail determined the content, so a browser must not display it as a page of this service.
        set(fields, CONTENT_DISPOSITION, "attachment");
        set(fields, DIGEST, &of_hash(&key.to_bytes()));
    }
    if let Some(range) = range {
        set(fields, CONTENT_RANGE, &range);
    }
    Ok(response)
}

fn set(fields: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        fields.insert(name, value);
    }
}

fn of(content: ObjectContent, range: Range<u64>) -> Result<RequestBody, Problem> {
    match content {
        ObjectContent::Memory(bytes) => {
            let within = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
            let (start, end) = (within(range.start), within(range.end));
            Ok(RequestBody::of(Bytes::from(bytes).slice(start..end)))
        }
        ObjectContent::File(file, _) => of_file(file, range).map_err(|error| {
            let detail = format!("the store cannot be read ({error}); check its disk");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
        }),
    }
}

fn of_file(mut file: File, range: Range<u64>) -> std::io::Result<RequestBody> {
    file.seek(SeekFrom::Start(range.start))?;
    Ok(RequestBody::File {
        file,
        left: range.end - range.start,
    })
}

/// Returns whether the client already has the object (RFC 9110 §13.1.2).
fn is_known(fields: &HeaderMap, tag: &str) -> bool {
    let values = fields.get_all(IF_NONE_MATCH).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    let mut tags = texts.flat_map(|text| text.split(',')).map(str::trim);
    tags.any(|it| it == "*" || it.strip_prefix("W/").unwrap_or(it) == tag)
}

#[derive(PartialEq, Eq, Debug)]
enum ObjectRequest {
    Whole,
    Part(Range<u64>),
    Beyond,
}

/// Returns the requested range of bytes (RFC 9110 §14). Several ranges, other units and malformed ranges are ignored, as
/// the standard allows.
fn requested(fields: &HeaderMap, tag: &str, length: u64) -> ObjectRequest {
    let mut values = fields.get_all(RANGE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return ObjectRequest::Whole;
    };
    if fields
        .get(IF_RANGE)
        .is_some_and(|it| it.as_bytes() != tag.as_bytes())
    {
        return ObjectRequest::Whole;
    }
    let text = value.to_str().unwrap_or_default().trim();
    let Some((unit, range)) = text.split_once('=') else {
        return ObjectRequest::Whole;
    };
    let Some((first, last)) = range
        .split_once('-')
        .filter(|_| unit.eq_ignore_ascii_case("bytes"))
    else {
        return ObjectRequest::Whole;
    };
    let number = |text: &str| {
        let digits = text.trim();
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().unwrap_or(u64::MAX))
    };
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => part(first, last.saturating_add(1), length),
        (Some(first), None) if last.trim().is_empty() => part(first, length, length),
        (None, Some(suffix)) if first.trim().is_empty() => part(
            length.saturating_sub(suffix),
            if suffix == 0 { 0 } else { length },
            length,
        ),
        _ => ObjectRequest::Whole,
    }
}

fn part(start: u64, end: u64, length: u64) -> ObjectRequest {
    let end = end.min(length);
    if start < end {
        ObjectRequest::Part(start..end)
    } else {
        ObjectRequest::Beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_rfc_9110() {
        let of = |value: &str| {
            let mut fields = HeaderMap::new();
            fields.insert(RANGE, value.parse().unwrap());
            requested(&fields, "\"x\"", 10)
        };
        for (value, expected) in [
            ("bytes=0-3", ObjectRequest::Part(0..4)),
            ("bytes=0-0", ObjectRequest::Part(0..1)),
            ("bytes=4-", ObjectRequest::Part(4..10)),
            ("bytes=-3", ObjectRequest::Part(7..10)),
            ("bytes=-30", ObjectRequest::Part(0..10)),
            (
                "BYTES=9-99999999999999999999999",
                ObjectRequest::Part(9..10),
            ),
            ("bytes=10-", ObjectRequest::Beyond),
            ("bytes=-0", ObjectRequest::Beyond),
            ("bytes=99999999999999999999999-", ObjectRequest::Beyond),
            ("bytes=3-2", ObjectRequest::Whole),
            ("bytes=0-1,3-4", ObjectRequest::Whole),
            ("bytes=", ObjectRequest::Whole),
            ("bytes=-", ObjectRequest::Whole),
            ("bytes=+1-2", ObjectRequest::Whole),
            ("lines=0-1", ObjectRequest::Whole),
        ] {
            assert_eq!(of(value), expected, "{value}");
        }
    }
}
