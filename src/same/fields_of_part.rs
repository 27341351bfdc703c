//! The fields that say what a part is, in one spelling.

use super::spelling::{quoted, text};
use crate::mime::header::{Field, Fields, unfold};

/// The fields of a part in one spelling: its type, with charset and the other parameters, its disposition, its identifier, its
/// description and whatever else `counts`, which gets names in lower case. The boundary and what programs add do not count. The
/// order of fields with different names does not count.
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
                // No field says the same as one without parameters.
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

/// The word of a field and its parameters in one spelling, without the boundary, and without `charset=us-ascii`, which a field
/// that is missing says, too. The order of parameters with different names does not count. A value with anything else is
/// returned as it is: some programs find a parameter in it.
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
        bytes.extend_from_slice(&[b";", name.as_slice(), b"=", &value].concat());
    }
    bytes
}

/// A value without anything that a reader could understand in another way.
struct Clean<'v> {
    word: &'v [u8],
    /// Names as they are written (`name*0*`), and values without quotation marks.
    parameters: Vec<(&'v [u8], Vec<u8>)>,
}

/// Reads `word; name=value; name="value"`. Returns `None` if the value has anything else.
fn clean(value: &[u8]) -> Option<Clean<'_>> {
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
            // Nothing between two semicolons, or behind the last one.
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
