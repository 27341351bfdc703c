//! The field `X-Embody-Source` of a part with retrieved content.
//!
//! Promise P4 (docs/design.md) excludes times from the output. This field is the only exception, and only `--provenance` adds
//! it: `X-Embody-Source: <URL>; retrieved=...; sha256=...; status=...; final=<URL>; captured=...; record=<urn:uuid:...>`. It
//! contains the URL in the mail and parameters (RFC 2045 §5.1, RFC 2231 §3). Unknown values are left out.

use crate::engine::Content;
use crate::engine::report::rfc3339;
use crate::link::url::{without_fragment, without_secrets};
use crate::mime::entity::uri;

pub(super) const SOURCE_FIELD: &str = "X-Embody-Source";

const COLUMNS: usize = 76;

/// Returns the field with CRLF line endings. `named` is the URL in the mail, and `last` is the URL after all redirects.
///
/// Returns `None` for content that was in the mail, or that is an object of a store, and if a proof found the part without the
/// field.
pub(super) fn of(content: &Content, named: &str, last: &str) -> Option<Vec<u8>> {
    let source = &content.origin;
    source.public_url()?;
    let noted = content.noted.as_ref();
    if named.is_empty() || noted.is_some_and(|noted| noted.is_without_source) {
        return None;
    }
    let shown = |url: &str| uri(&without_secrets(without_fragment(url)));
    let named = shown(named);
    let last = Some(shown(last)).filter(|last| *last != named && !last.is_empty());
    let bracketed = |text: &str| format!("<{text}>");
    let at = source.first.or(source.at);
    let noted = noted.and_then(|noted| noted.sha256.clone());
    let parameters = [
        ("retrieved", at.map(rfc3339)),
        (
            "sha256",
            Some(noted.unwrap_or_else(|| content.sha256().to_owned())),
        ),
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
        // White space inside the angle brackets has no meaning, as in Content-Location, so a long URL can be folded.
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

/// Appends a parameter, split into several if it is long (RFC 2231 §3). Values contain only URI characters and angle brackets,
/// so nothing needs escaping.
fn push_parameter(field: &mut String, name: &str, value: &str) {
    let is_token = value
        .bytes()
        .all(|it| it.is_ascii_alphanumeric() || b"-._".contains(&it));
    let line = if is_token {
        format!("{name}={value}")
    } else {
        format!("{name}=\"{value}\"")
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
