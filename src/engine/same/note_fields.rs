//! The header fields of a note. Every program writes a fixed set of fields, with values of a fixed form. If a note contains
//! any other field or word, it contains text of the mail, which would be lost if the note were replaced.

use super::fields::is;
use super::fields_of_part::clean;
use crate::engine::external_body::{Claim, ExternalBody, NOTE_FIELD, ReferenceShape};
use crate::engine::forms::thunderbird::{ALTERED_FIELD, URL_FIELD};
use crate::mime::Field;
use crate::mime::date;
use crate::mime::header::unfold;

/// Returns whether the program that left the note writes this field into the header of the note.
pub(super) fn is_of_note(original: &[u8], field: &Field, body: &ExternalBody<'_>) -> bool {
    match body.facts.shape {
        // The header is that of the removed part, which is compared field by field.
        ReferenceShape::Apple | ReferenceShape::YahooGroups => true,
        ReferenceShape::Detached | ReferenceShape::Enclosure => {
            let is_note = field.is(original, NOTE_FIELD);
            is_note && matches!(body.claim, Claim::Note(_)) || is_of_thunderbird(original, field)
        }
        _ => {
            let known = [
                "Content-Type",
                "Content-Disposition",
                "Content-Transfer-Encoding",
                "Content-ID",
                "Content-Location",
                "MIME-Version",
                NOTE_FIELD,
            ];
            known.iter().any(|name| field.is(original, name))
        }
    }
}

/// Returns whether Thunderbird writes this field into the header of a note:
///
/// ```text
/// Content-Type: text/x-moz-deleted; name="Deleted: a.pdf"
/// Content-Transfer-Encoding: 8bit
/// Content-Disposition: inline; filename="Deleted: a.pdf"
/// X-Mozilla-External-Attachment-URL: file:///home/ann/a.pdf
/// X-Mozilla-Altered: AttachmentDeleted; date="Sun Aug 09 18:04:11 2020"
/// ```
pub(super) fn is_of_thunderbird(original: &[u8], field: &Field) -> bool {
    let name = field.name.of(original).trim_ascii();
    let value = unfold(field.value.of(original));
    if is(name, "Content-Type") || is(name, "Content-Disposition") {
        return is_only_named(&value);
    }
    if is(name, "Content-Transfer-Encoding") {
        let known = ["7bit", "8bit", "binary", "base64", "quoted-printable"];
        return known.iter().any(|encoding| is(&value, encoding));
    }
    if is(name, URL_FIELD) {
        return is_url(&value);
    }
    is(name, ALTERED_FIELD) && is_alteration(&value)
}

/// Returns whether a value has no parameters other than the name of a file, in any of its spellings (`name*0*`).
fn is_only_named(value: &[u8]) -> bool {
    clean(value).is_some_and(|clean| {
        clean.parameters.iter().all(|(name, _)| {
            let name = name.split(|byte| *byte == b'*').next().unwrap_or_default();
            is(name, "name") || is(name, "filename")
        })
    })
}

fn is_url(value: &[u8]) -> bool {
    let scheme = value.split(|byte| *byte == b':').next().unwrap_or_default();
    let has_scheme = scheme.len() < value.len() && !scheme.is_empty();
    has_scheme
        && scheme.iter().all(u8::is_ascii_alphanumeric)
        && !value.iter().any(u8::is_ascii_whitespace)
}

/// Returns whether the value says what Thunderbird did with the attachment, and when. embody leaves out the date.
fn is_alteration(value: &[u8]) -> bool {
    let (what, date) = match memchr::memchr(b';', value) {
        Some(at) => value.split_at(at),
        None => (value, &b""[..]),
    };
    let is_known = is(what, "AttachmentDeleted") || is(what, "AttachmentDetached");
    let time = || {
        let quoted = date.strip_prefix(b";")?.trim_ascii_start();
        quoted.strip_prefix(b"date=\"")?.strip_suffix(b"\"")
    };
    is_known && (date.is_empty() || time().is_some_and(date::is_asctime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_that_thunderbird_writes_is_recognised_and_any_other_word_is_not() {
        for (value, expected) in [
            ("AttachmentDeleted; date=\"Sun Aug 09 18:04:11 2020\"", true),
            (
                "AttachmentDetached; date=\"Mon Jan  2 10:00:00 2023\"",
                true,
            ),
            ("AttachmentDetached", true),
            ("AttachmentDeleted; date=\"the code is 4711\"", false),
            (
                "AttachmentDeleted; date=\"Sun Aug 09 18:04:11 2020\"; code=4711",
                false,
            ),
            (
                "AttachmentDeleted; date=\"Sun Aug 09 18:04:11 2020 4711\"",
                false,
            ),
            ("AttachmentDeleted 4711", false),
            ("4711; date=\"Sun Aug 09 18:04:11 2020\"", false),
            ("", false),
        ] {
            assert_eq!(is_alteration(value.as_bytes()), expected, "{value}");
        }
        for (value, expected) in [
            ("file:///C:/a%20b.pdf", true),
            ("https://example.org/a", true),
            ("file:///a.pdf the code is 4711", false),
            ("4711", false),
            (":", false),
        ] {
            assert_eq!(is_url(value.as_bytes()), expected, "{value}");
        }
        for (value, expected) in [
            ("text/x-moz-deleted; name=\"Deleted: a.pdf\"", true),
            ("inline; filename*0*=utf-8''a; filename*1*=b.pdf", true),
            ("text/x-moz-deleted; name=a; code=4711", false),
            ("text/x-moz-deleted (the code is 4711)", false),
        ] {
            assert_eq!(is_only_named(value.as_bytes()), expected, "{value}");
        }
    }
}
