//! Reading the content of an answer to its marked end (RFC 9112 §6.3).

use std::io::{self, Read as _};

use ureq::Body;
use ureq::http::{HeaderMap, Response, Version, header};

use super::whole::read_whole;
use crate::fetch::allowance::Allowance;
use crate::policy::Policy;
use crate::report::{Reason, Refusal};

pub(super) fn whole_body(
    policy: &Policy,
    response: Response<Body>,
    allowance: Allowance,
) -> Result<Vec<u8>, Refusal> {
    let chunked = is_chunked(&response)?;
    let gzip = is_gzip(response.headers())?;
    // ureq itself does not tell the length of an empty body.
    let measured = response.headers().contains_key(header::CONTENT_LENGTH);
    if !chunked && !measured {
        return Err(Refusal::lasting(
            Reason::IncompleteBody,
            "the server does not say where the content ends",
        ));
    }
    let length = response.body().content_length();
    let wire = response.into_body().into_with_config().reader();
    let judge = |octets| {
        policy.judge_size(octets)?;
        allowance.remaining().map(|_| ())
    };
    let failed = |why| cut(why, allowance);
    if gzip {
        let content = flate2::read::MultiGzDecoder::new(wire);
        return read_whole(content, 0, judge, failed);
    }
    let length = length.unwrap_or(0);
    policy.judge_size(length)?;
    read_whole(wire, length, judge, failed)
}

pub(super) fn read_to_end(response: Response<Body>, longest: u64, allowance: Allowance) {
    let wire = response.into_body().into_with_config().reader();
    let mut wire = wire.take(longest);
    let mut piece = vec![0; 16 << 10];
    while !allowance.is_over() && wire.read(&mut piece).is_ok_and(|read| read > 0) {}
}

fn is_chunked(response: &Response<Body>) -> Result<bool, Refusal> {
    let mut fields = response.headers().get_all(header::TRANSFER_ENCODING).iter();
    let Some(value) = fields.next() else {
        return Ok(false);
    };
    let refused = |why: &str| Err(Refusal::lasting(Reason::BadResponse, why));
    let value = value.as_bytes().trim_ascii();
    if fields.next().is_some() || !value.eq_ignore_ascii_case(b"chunked") {
        return refused(
            "a Transfer-Encoding that is not one chunked, so that the end is not known",
        );
    }
    if response.version() < Version::HTTP_11 {
        return refused("chunks in an answer of HTTP/1.0, which has none");
    }
    Ok(true)
}

pub(super) fn is_gzip(headers: &HeaderMap) -> Result<bool, Refusal> {
    let mut fields = headers.get_all(header::CONTENT_ENCODING).iter();
    let value = fields.next().map_or(&b""[..], |value| value.as_bytes());
    let refused = |why| Err(Refusal::lasting(Reason::BadResponse, why));
    if fields.next().is_some() {
        return refused("more than one Content-Encoding".to_owned());
    }
    match value.trim_ascii().to_ascii_lowercase().as_slice() {
        b"" | b"identity" => Ok(false),
        b"gzip" | b"x-gzip" => Ok(true),
        other => {
            let other = String::from_utf8_lossy(other);
            refused(format!("content coding {other}, which was not asked for"))
        }
    }
}

fn cut(why: io::Error, allowance: Allowance) -> Refusal {
    if allowance.is_over() {
        return allowance.overrun();
    }
    let what = why.to_string();
    match why.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
            Refusal::lasting(Reason::BadResponse, format!("damaged content: {what}"))
        }
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => allowance.overrun(),
        _ => match why.downcast() {
            Ok(ureq::Error::Timeout(_)) => allowance.overrun(),
            Ok(ureq::Error::Protocol(_)) => Refusal::lasting(Reason::BadResponse, what),
            _ => Refusal::lasting(Reason::IncompleteBody, what),
        },
    }
}
