//! Reads the body of a response and decides whether it is complete (RFC 9112 §6.3): the response marks its end, or the content
//! itself does, as pictures do.

use std::io::{self, Read};

use ureq::Body;
use ureq::http::{HeaderMap, Response, Version, header};

use super::whole::read_whole;
use crate::engine::policy::Policy;
use crate::engine::report::{Reason, Refusal};
use crate::fetch::allowance::RequestAllowance;
use crate::fetch::coding::CodingMethod;
use crate::mime::picture_end;

pub(super) fn whole_body(
    policy: &Policy,
    response: Response<Body>,
    allowance: RequestAllowance,
) -> Result<Vec<u8>, Refusal> {
    let chunked = is_chunked(&response)?;
    let coding = coding(response.headers())?;
    let media_type = response.headers().get(header::CONTENT_TYPE).cloned();
    // ureq reports no length for an empty body, so the presence of Content-Length is tested here. A body of length 0 is
    // then known to be complete.
    let measured = response.headers().contains_key(header::CONTENT_LENGTH);
    let length = response.body().content_length().unwrap_or(0);
    let wire = response.into_body().into_with_config().reader();
    let judge = |octets| {
        policy.judge_size(octets)?;
        allowance.remaining().map(|_| ())
    };
    let failed = |why| cut(why, allowance);
    let content = if chunked || measured {
        let expected = if coding.is_compressed() { 0 } else { length };
        policy.judge_size(expected)?;
        read_whole(coding.decoder(wire), expected, judge, failed)?
    } else {
        let mut content = coding.decoder(CloseDelimitedBody(wire));
        let mut first = Vec::new();
        let most = picture_end::FIRST_BYTES as u64;
        let read = content.by_ref().take(most).read_to_end(&mut first);
        read.map_err(failed)?;
        // The first bytes show whether the format marks its own end. If not, the rest, which may be long, is not read.
        if !picture_end::may_end_itself(&first) {
            return Err(unmarked());
        }
        let content = read_whole(first.chain(content), 0, judge, failed)?;
        if !picture_end::ends_itself(&content) {
            return Err(unmarked());
        }
        content
    };
    let unproven = |why| Refusal::lasting(Reason::BadResponse, why);
    let media_type = media_type.as_ref().map(|value| value.as_bytes());
    coding.check(&content, media_type).map_err(unproven)?;
    Ok(content)
}

fn unmarked() -> Refusal {
    let detail = "the server did not send the length of the content, and the content itself does not show whether it is complete";
    Refusal::lasting(Reason::IncompleteBody, detail)
}

/// A body that ends when the connection is closed. Over TLS, many servers close the connection without the close_notify alert,
/// which rustls reports as an error. Here it counts as the end of the body: the caller accepts only content that marks its own
/// end.
struct CloseDelimitedBody<R>(R);

impl<R: Read> Read for CloseDelimitedBody<R> {
    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        match self.0.read(output) {
            Err(why) if why.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            read => read,
        }
    }
}

pub(super) fn read_to_end(response: Response<Body>, longest: u64, allowance: RequestAllowance) {
    let mut wire = response
        .into_body()
        .into_with_config()
        .reader()
        .take(longest);
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
            "the server sent a Transfer-Encoding other than chunked, so it is not known where the content ends",
        );
    }
    if response.version() < Version::HTTP_11 {
        return refused(
            "the server sent a chunked response with HTTP/1.0, which does not allow it",
        );
    }
    Ok(true)
}

pub(super) fn coding(headers: &HeaderMap) -> Result<CodingMethod, Refusal> {
    let values = headers.get_all(header::CONTENT_ENCODING).iter();
    let coding = CodingMethod::of(values.map(|value| value.as_bytes()));
    coding.map_err(|why| Refusal::lasting(Reason::BadResponse, why))
}

fn cut(why: io::Error, allowance: RequestAllowance) -> Refusal {
    if allowance.is_over() {
        return allowance.overrun();
    }
    let what = why.to_string();
    match why.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => Refusal::lasting(
            Reason::BadResponse,
            format!("the content of the response is damaged: {what}"),
        ),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => allowance.overrun(),
        _ => match why.downcast() {
            Ok(ureq::Error::Timeout(_)) => allowance.overrun(),
            Ok(ureq::Error::Protocol(_)) => Refusal::lasting(Reason::BadResponse, what),
            _ => Refusal::lasting(Reason::IncompleteBody, what),
        },
    }
}
