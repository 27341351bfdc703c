//! Errors as `application/problem+json` (RFC 9457). This is the only file whose messages name options.

use std::io;

use hyper::StatusCode;
use hyper::header::{ALLOW, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use serde::Serialize;

/// An error response. `detail` is a sentence that tells the client what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) detail: String,
    /// Query parameter that is wrong.
    pub(crate) parameter: Option<String>,
    more: ProblemField,
}

/// A field of the response that belongs to the status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ProblemField {
    Nothing,
    /// Time in seconds after which the client may send the request again.
    RetryAfter(u32),
    /// Methods that the path accepts.
    Allow(&'static str),
    Authenticate,
}

#[derive(Serialize)]
struct Json<'p> {
    title: &'p str,
    status: u16,
    detail: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter: Option<&'p str>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            detail: detail.into(),
            parameter: None,
            more: ProblemField::Nothing,
        }
    }

    /// An unknown, forbidden or malformed query parameter.
    pub(crate) fn of_parameter(name: &str, detail: impl Into<String>) -> Self {
        Self {
            parameter: Some(name.to_owned()),
            ..Self::new(StatusCode::BAD_REQUEST, detail)
        }
    }

    /// A temporary problem. The client may send the same request again after `seconds`.
    pub(crate) fn passing(status: StatusCode, seconds: u32, detail: impl Into<String>) -> Self {
        Self {
            more: ProblemField::RetryAfter(seconds),
            ..Self::new(status, detail)
        }
    }

    pub(super) fn unauthorized() -> Self {
        let detail = "send the token of --token-file in the field Authorization: Bearer TOKEN";
        Self {
            more: ProblemField::Authenticate,
            ..Self::new(StatusCode::UNAUTHORIZED, detail)
        }
    }

    pub(super) fn method(allowed: &'static str) -> Self {
        let detail = format!("this path accepts only {allowed}");
        Self {
            more: ProblemField::Allow(allowed),
            ..Self::new(StatusCode::METHOD_NOT_ALLOWED, detail)
        }
    }

    fn too_large(option: &str, at_most: u64) -> Self {
        let detail = format!(
            "the body of the request has more than {at_most} bytes; send less, or start embody serve with a larger {option}"
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    }

    pub(super) fn host() -> Self {
        let detail = "the Host field is not the address of this service; use this address in the URL, or start embody serve with --allow-host-header NAME";
        Self::new(StatusCode::MISDIRECTED_REQUEST, detail)
    }

    /// The queue of waiting requests is full.
    pub(super) fn queue() -> Self {
        let detail =
            "more messages are waiting than --max-queue allows; send the request again later";
        Self::passing(StatusCode::TOO_MANY_REQUESTS, 1, detail)
    }

    pub(super) fn connections(most: usize) -> Self {
        let detail = format!(
            "more than {most} connections are open; send the request again later, or start embody serve with a larger --max-connections"
        );
        Self::passing(StatusCode::SERVICE_UNAVAILABLE, 1, detail)
    }

    pub(super) fn no_object() -> Self {
        let detail = "the store does not have this object; check its name, or the --store with which embody serve was started";
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub(super) fn spool(error: &io::Error) -> Self {
        let detail = format!(
            "cannot write the mailbox to the directory of --spool ({error}); make room there, and send the request again"
        );
        Self::new(StatusCode::INSUFFICIENT_STORAGE, detail)
    }

    pub(super) fn too_large_message(at_most: u64) -> Self {
        Self::too_large("--max-request", at_most)
    }

    pub(super) fn too_large_mailbox(at_most: u64) -> Self {
        Self::too_large("--max-mailbox", at_most)
    }

    /// A bug in embody, such as a panic while a message was processed.
    pub(super) fn defect() -> Self {
        let detail = "a defect of embody; please report it. Nothing was changed";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }

    pub(super) fn stopping() -> Self {
        let detail =
            "embody serve is being stopped; send the request again when it has been started again";
        Self::passing(StatusCode::SERVICE_UNAVAILABLE, 5, detail)
    }

    pub(super) fn json(&self) -> Vec<u8> {
        let title = self.status.canonical_reason().unwrap_or("Error");
        let json = Json {
            title,
            status: self.status.as_u16(),
            detail: &self.detail,
            parameter: self.parameter.as_deref(),
        };
        // Strings and a number can always be written as JSON, so this cannot fail.
        let mut text = serde_json::to_vec(&json).unwrap_or_default();
        text.push(b'\n');
        text
    }

    /// Returns the field of the response that belongs to the status.
    pub(super) fn field(&self) -> Option<(HeaderName, HeaderValue)> {
        match self.more {
            ProblemField::Nothing => None,
            ProblemField::RetryAfter(seconds) => Some((RETRY_AFTER, seconds.into())),
            ProblemField::Allow(methods) => Some((ALLOW, HeaderValue::from_static(methods))),
            ProblemField::Authenticate => {
                Some((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")))
            }
        }
    }
}
