//! File names of parts, from their header fields.

use crate::mime::MediaType;
use crate::mime::header::Fields;
use crate::mime::media_type::NamedType;

/// Maximum number of characters of a name.
const LONGEST_NAME: usize = 100;
/// Maximum number of characters of a suffix, including its dot. A longer text after the last dot is the end of a sentence.
const LONGEST_SUFFIX: usize = 16;

/// Returns the name of a part, without control characters and limited in length. Returns `None` if the name cannot be decoded.
pub(crate) fn file_name(original: &[u8], fields: &Fields) -> Option<String> {
    let name = name_of(original, fields).text()?;
    Some(short_name(&name))
}

/// Truncates a name to the maximum length. The suffix is kept, because it decides which program opens the file.
pub(crate) fn short_name(name: &str) -> String {
    if name.chars().count() <= LONGEST_NAME {
        return name.to_owned();
    }
    let (stem, suffix) = name.rsplit_once('.').unwrap_or((name, ""));
    let length = suffix.chars().count() + 1;
    if suffix.is_empty() || length > LONGEST_SUFFIX {
        return name.chars().take(LONGEST_NAME).collect();
    }
    let mut short: String = stem.chars().take(LONGEST_NAME - length).collect();
    short.push('.');
    short.push_str(suffix);
    short
}

/// Returns the name of a part for display. A name that cannot be decoded is returned as it is written.
pub(crate) fn shown_name(original: &[u8], fields: &Fields) -> Option<String> {
    let name = match name_of(original, fields) {
        NamedType::None => return None,
        NamedType::Text(name) | NamedType::Undecodable(name) => name,
    };
    Some(short_name(&name))
}

/// Returns the name of a part. A name that can be decoded is preferred to one that cannot.
pub(crate) fn name_of(original: &[u8], fields: &Fields) -> NamedType {
    let named = |field, parameter| {
        let Some(value) = fields.value(original, field) else {
            return NamedType::None;
        };
        let clean = |name: String| {
            let name: String = name.chars().filter(|symbol| !symbol.is_control()).collect();
            Some(name).filter(|name| !name.trim().is_empty())
        };
        match MediaType::parse(value).name(parameter) {
            NamedType::Text(name) => clean(name).map_or(NamedType::None, NamedType::Text),
            NamedType::Undecodable(name) => {
                clean(name).map_or(NamedType::None, NamedType::Undecodable)
            }
            NamedType::None => NamedType::None,
        }
    };
    let names = [
        named("Content-Disposition", "filename"),
        named("Content-Type", "name"),
    ];
    let is_text = |name: &&NamedType| matches!(name, NamedType::Text(_));
    let is_any = |name: &&NamedType| **name != NamedType::None;
    let best = names.iter().find(is_text).or(names.iter().find(is_any));
    best.cloned().unwrap_or(NamedType::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_name_is_cut_before_its_suffix() {
        let whole = format!("{}.pdf", "é".repeat(96));
        assert_eq!(short_name(&whole), whole);
        let long = format!("{}.pdf", "é".repeat(97));
        assert_eq!(short_name(&long), whole);
        for (name, end) in [
            (format!("{}.tar.gz", "a".repeat(200)), "a.gz"),
            (
                format!("{}. A sentence without a suffix", "a".repeat(200)),
                "aa",
            ),
            (format!("{}.", "a".repeat(200)), "aa"),
            (format!(".{}", "a".repeat(200)), "aa"),
            ("a".repeat(200), "aa"),
        ] {
            let short = short_name(&name);
            assert_eq!(short.chars().count(), LONGEST_NAME, "{name}");
            assert!(short.ends_with(end), "{short}");
        }
    }
}
