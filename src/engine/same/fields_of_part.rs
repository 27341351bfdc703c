//! Normalizes the header fields of a part, so that different spellings of the same fields are equal.

use super::spelling::{quoted, text};
use crate::mime::header::{Field, Fields, unfold};

/// Returns the normalized fields of a part: the media type with its parameters, and all other fields for which `counts` returns
/// true. `counts` gets names in lower case. The boundary is left out, and the order of fields with different names is ignored.
pub(super) fn fields_of(
    (original, fields): (&[u8], &Fields),
    essence: &str,
    counts: impl Fn(&[u8]) -> bool,
) -> Vec<u8> {
    let lower = |field: &Field| field.name.of(original).trim_ascii().to_ascii_lowercase();
    let types = fields
        .iter(original)
        .filter(|field| lower(field) == b"content-type");
    let has_one_type = types.count() == 1;
    let mut all: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for field in fields.iter(original) {
        let name = lower(&field);
        if matches!(name.as_slice(), b"content-md5" | b"mime-version") || !counts(&name) {
            continue;
        }
        let value = field.value.of(original);
        let value = match name.as_slice() {
            b"content-type" => {
                let spelled = parameters(value);
                // The result begins with the media type in any case. So a Content-Type field without parameters adds
                // nothing and is left out. A part with this field then equals a part that has the same type by default.
                if has_one_type && spelled == essence.as_bytes() {
                    continue;
                }
                spelled
            }
            b"content-disposition" => parameters(value),
            _ => text(value),
        };
        all.push((name, value));
    }
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut bytes = essence.as_bytes().to_vec();
    for (name, value) in all {
        bytes.extend_from_slice(&[b"\n", name.as_slice(), b":", &value].concat());
    }
    bytes
}

/// Returns the value of a field with parameters in normalized form. The boundary is left out, and so is `charset=us-ascii`,
/// which is the default. The order of parameters with different names is ignored. A value with any other syntax is returned
/// unchanged, because programs interpret it differently.
fn parameters(value: &[u8]) -> Vec<u8> {
    let value = unfold(value);
    let Some(clean) = clean(&value) else {
        return [b"\0", value.as_slice()].concat();
    };
    let mut all: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for (name, value) in clean.parameters {
        let name = name.to_ascii_lowercase();
        let value = match name.as_slice() {
            b"boundary" => continue,
            b"charset" => value.to_ascii_lowercase(),
            _ => value,
        };
        if name == b"charset" && value == b"us-ascii" {
            continue;
        }
        all.push((name, value));
    }
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut bytes = clean.word.to_ascii_lowercase();
    for (name, value) in all {
        // A value can contain the text of another parameter (`filename="a;size=3"`), so its length is part of the result.
        let length = value.len().to_string();
        bytes.extend_from_slice(&[b";", name.as_slice(), b"=", length.as_bytes(), b":"].concat());
        bytes.extend_from_slice(&value);
    }
    bytes
}

/// The parsed value of a field, if its syntax is so simple that every program interprets it in the same way.
pub(super) struct Clean<'v> {
    word: &'v [u8],
    /// Names of parameters as they are written, such as `name*0*`, and values without quotation marks.
    pub(super) parameters: Vec<(&'v [u8], Vec<u8>)>,
}

/// Parses `word; name=value; name="value"`. Returns `None` if the value contains anything else.
pub(super) fn clean(value: &[u8]) -> Option<Clean<'_>> {
    let is_of_word = |byte: &u8| byte.is_ascii_graphic() && !b"()<>@,;:\\\"[]?=".contains(byte);
    let word_at = |text: &[u8]| text.iter().take_while(|byte| is_of_word(byte)).count();
    let (word, mut rest) = value.split_at(word_at(value));
    let slashes = word.iter().filter(|byte| **byte == b'/').count();
    let mut parameters = Vec::new();
    if word.is_empty() || slashes > 1 {
        return None;
    }
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Some(Clean { word, parameters });
        }
        rest = rest.strip_prefix(b";")?.trim_ascii_start();
        let (name, behind) = rest.split_at(word_at(rest));
        if name.is_empty() {
            // An empty parameter, between two semicolons or after the last one, is ignored.
            continue;
        }
        let behind = behind.strip_prefix(b"=")?;
        let (value, behind) = match behind.first() {
            Some(b'"') => quoted(behind)?,
            _ => {
                let (value, behind) = behind.split_at(word_at(behind));
                (value.to_vec(), behind)
            }
        };
        parameters.push((name, value));
        rest = behind;
    }
}
