//! Parts of responses: reports as JSON, and error descriptions (problems).

use std::io;

use hyper::StatusCode;
use serde_json::value::RawValue;

use super::super::origin::{OriginEntry, RunOrigin, RunStart};
use super::super::report_file::{ReportFields, json};
use super::super::verb::VerbReport;
use super::super::{say, wording};
use crate::engine::parts::guessed;
use crate::error::Error;
use crate::fetch::store::StoreError;
use crate::mailbox::OtherInput;
use crate::serve::{Problem, Verb};

/// Returns a mail with the given `winmail.dat` as its only part.
pub(super) fn wrapped(tnef: &[u8]) -> Vec<u8> {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(tnef);
    let mut mail = b"MIME-Version: 1.0\r\nContent-Type: application/ms-tnef; name=\"winmail.dat\"\r\n\
        Content-Transfer-Encoding: base64\r\nContent-Disposition: attachment; filename=\"winmail.dat\"\r\n\r\n"
        .to_vec();
    for line in text.as_bytes().chunks(76) {
        mail.extend_from_slice(line);
        mail.extend_from_slice(b"\r\n");
    }
    mail
}

pub(super) fn without_store() -> Problem {
    let detail = "this service has no store; start embody serve with --store DIR";
    Problem::new(StatusCode::NOT_FOUND, detail)
}

/// Returns the problem of a mailbox that was sent to a request for one message.
pub(super) fn of_mailbox(verb: Verb) -> Problem {
    let verb = verb.as_str();
    let detail = format!(
        "the body looks like a mailbox with several messages, but /v1/{verb} reads only one message; nothing was changed. Send a mailbox to /v1/messages, and each message of the response to /v1/{verb}. Send a single message without the \"From \" line at its start"
    );
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}

/// Returns the problem of messages in another form that were sent to a request for one message, such as a zip archive.
pub(super) fn of_other(verb: Verb, other: OtherInput) -> Problem {
    let verb = verb.as_str();
    let takes = format!("/v1/{verb} reads only one message");
    let what = match other {
        OtherInput::Compressed(method) => format!("compressed with {}", method.name()),
        OtherInput::Archive => "an archive".to_owned(),
        OtherInput::Pst => "an Outlook mailbox".to_owned(),
        OtherInput::Utf16 => "mail in UTF-16".to_owned(),
        OtherInput::Unread(format) => {
            let detail = format!(
                "{takes}; nothing was changed. The body is {}",
                &*format.detail()
            );
            return Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail);
        }
    };
    let detail = format!(
        "the body is {what}, but {takes}; nothing was changed. Send the body to /v1/messages, and each message of the response to /v1/{verb}"
    );
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}

/// Returns the problem of a body that is not a message. `what` says what the body is.
pub(super) fn of_no_message(verb: Verb, what: &str) -> Problem {
    let verb = verb.as_str();
    let detail = format!(
        "the body is {what}, but /v1/{verb} reads one message; send the message with its header, as it was received"
    );
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}

pub(super) fn failed(error: &Error) -> Problem {
    match error {
        Error::Deferred(why) => {
            let detail = format!("{}; send the request again later", wording::detail(why));
            Problem::passing(StatusCode::SERVICE_UNAVAILABLE, 60, detail)
        }
        error => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, say::error(error)),
    }
}

pub(super) fn of_store(error: &StoreError) -> Problem {
    let detail = error.to_string();
    if error.is_temporary() {
        Problem::passing(StatusCode::SERVICE_UNAVAILABLE, 30, detail)
    } else {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }
}

pub(super) fn line(fields: &ReportFields) -> Vec<u8> {
    let mut line = json(fields).unwrap_or_default();
    line.pop();
    line
}

/// Returns the rows of a report in the format of `--report`.
pub(super) fn rows(said: &VerbReport) -> Vec<Box<RawValue>> {
    let Some(origin) = &said.origin else {
        return Vec::new();
    };
    let time = RunStart::now(None).time;
    let raw = |line: io::Result<Vec<u8>>| {
        let text = String::from_utf8(line.ok()?).ok()?;
        RawValue::from_string(text.trim_end().to_owned()).ok()
    };
    let of_rows =
        wording::rows(&said.report.rows, None).filter_map(|row| raw(entry(&time, origin, row)));
    let listed = said.listed.iter();
    let of_listed = listed.filter_map(|listed| raw(entry(&time, origin, listed)));
    of_rows.chain(of_listed).collect()
}

fn entry<T: serde::Serialize>(time: &str, origin: &RunOrigin, row: T) -> io::Result<Vec<u8>> {
    json(&OriginEntry {
        time,
        origin,
        piece: None,
        row,
    })
}

/// Magic numbers with their offsets and media types. Pictures and PDF are missing here, because `guessed` recognises
/// them.
const STARTS: [(usize, &[u8], &str); 9] = [
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (4, b"ftyp", "video/mp4"),
    (0, b"\x1a\x45\xdf\xa3", "video/webm"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"OggS", "audio/ogg"),
    (0, b"{\\rtf", "application/rtf"),
    (
        0,
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "application/x-ole-storage",
    ),
];

/// Guesses the media type of an object from its first bytes. The mail declared a media type, but the store does not
/// know it.
pub(super) fn media_type(start: &[u8]) -> &'static str {
    let guess = guessed(None, start);
    if guess != "application/octet-stream" {
        return guess;
    }
    let is_of = |(at, bytes, _): &&(usize, &[u8], &str)| {
        start.get(*at..).is_some_and(|rest| rest.starts_with(bytes))
    };
    if let Some((_, _, found)) = STARTS.iter().find(is_of) {
        return found;
    }
    // `start` may end inside a UTF-8 character, which is then left out.
    let text = match str::from_utf8(start) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            let whole = start.get(..error.valid_up_to()).unwrap_or_default();
            str::from_utf8(whole).unwrap_or_default()
        }
        Err(_) => return guess,
    };
    let is_of_text = |symbol: char| !symbol.is_control() || matches!(symbol, '\t' | '\n' | '\r');
    if !text.is_empty() && text.chars().all(is_of_text) {
        "text/plain; charset=utf-8"
    } else {
        guess
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_of_objects_are_found_by_their_first_bytes() {
        for (start, expected) in [
            (&b"%PDF-1.7"[..], "application/pdf"),
            (b"PK\x03\x04rest", "application/zip"),
            (b"\0\0\0\x18ftypmp42", "video/mp4"),
            ("caf\u{e9}\n".as_bytes(), "text/plain; charset=utf-8"),
            (b"cut \xc3", "text/plain; charset=utf-8"),
            (b"", "application/octet-stream"),
            (b"\xc3\x28 not text", "application/octet-stream"),
            (b"a\0b", "application/octet-stream"),
            // HTML must not be served as `text/html`, because a browser would run its scripts.
            (b"<html><script>", "text/plain; charset=utf-8"),
        ] {
            assert_eq!(media_type(start), expected, "{start:?}");
        }
    }
}
