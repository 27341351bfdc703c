//! The field of a part that came in: which URL the mail named, when its source gave it, and what the octets were. P4 says that no clock stands
//! in the output; this field, which has to be asked for, is the exception.
//!
//! `X-Embody-Source: <URL>; retrieved=...; sha256=...; status=...; final=<URL>; captured=...; record=<urn:uuid:...>`: a URL, and parameters
//! (RFC 2045 §5.1, RFC 2231 §3). What is not known is left out.

use super::answer::Came;
use crate::link::url::{without_fragment, without_secrets};
use crate::mime::entity::uri;
use crate::report::rfc3339;

/// The header field that says where a part came from.
pub(super) const SOURCE_FIELD: &str = "X-Embody-Source";

/// Octets of a line, its indent included.
const COLUMNS: usize = 76;

impl Came {
    /// The field of what came for this URL, where redirects led to `last`; lines end with CRLF. None for what was in the mail, or is an
    /// object of a store of ours.
    pub(super) fn source_field(&self, named: &str, last: &str, sha256: &str) -> Option<Vec<u8>> {
        if !self.is_from_elsewhere() || named.is_empty() {
            return None;
        }
        let shown = |url: &str| uri(&without_secrets(without_fragment(url)));
        let named = shown(named);
        let last = Some(shown(last)).filter(|last| *last != named && !last.is_empty());
        let bracketed = |text: String| format!("<{text}>");
        let (at, captured, record) = self.moments();
        let parameters = [
            ("retrieved", at.map(rfc3339)),
            ("sha256", Some(sha256.to_owned())),
            ("status", self.status().map(|status| status.to_string())),
            ("final", last.map(bracketed)),
            ("captured", captured.map(rfc3339)),
            ("record", record.map(bracketed)),
        ];
        let mut field = format!("{SOURCE_FIELD}:");
        let url = bracketed(named);
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

/// A parameter, in pieces if it is long. Its value is characters of URIs and brackets, so nothing in it is to be escaped.
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

/// ASCII in pieces, each a line.
fn push_pieces(field: &mut String, text: &str, room: usize, line: impl Fn(usize, &str) -> String) {
    for (number, piece) in text.as_bytes().chunks(room).enumerate() {
        field.push_str("\r\n ");
        field.push_str(&line(number, &String::from_utf8_lossy(piece)));
    }
}
