//! Computes digests of header fields, and classifies the fields that embody changes.

use super::plain::hash;
use crate::mime::MediaType;
use crate::mime::header::Fields;
use crate::span::starts_like;

/// Maximum number of parameters of a media type that are compared. It limits the memory for a hostile mail.
const MOST_PARAMETERS: usize = 64;

/// Fields that embody rewrites or adds if it changes the content of the part.
const REWRITTEN_FIELDS: [&str; 7] = [
    "Content-Transfer-Encoding",
    "Content-MD5",
    "Content-Length",
    "Lines",
    "Content-ID",
    "Content-Location",
    "MIME-Version",
];

/// A set of digests, sorted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Digests(Vec<u64>);

impl Digests {
    pub(super) fn contains(&self, digest: u64) -> bool {
        self.0.binary_search(&digest).is_ok()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.iter().copied()
    }

    /// Returns the digests of the media type and of each of its parameters.
    pub(super) fn of_media_type(value: Option<&[u8]>) -> Self {
        let Some(value) = value else {
            return Self::default();
        };
        let media_type = MediaType::parse(value);
        let parameters = media_type.decoded_parameters(MOST_PARAMETERS);
        let assignments = parameters
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let all = std::iter::once(media_type.essence.to_string()).chain(assignments);
        all.map(|text| hash(text.as_bytes())).collect()
    }
}

impl FromIterator<u64> for Digests {
    fn from_iter<I: IntoIterator<Item = u64>>(digests: I) -> Self {
        let mut digests: Vec<u64> = digests.into_iter().collect();
        digests.sort_unstable();
        digests.dedup();
        Self(digests)
    }
}

/// Calls `see` with each field for which `counts` returns true. The name is in lower case, and white space in the value is
/// reduced to single spaces, because programs fold fields differently.
pub(super) fn each_field(
    original: &[u8],
    fields: &Fields,
    counts: impl Fn(&[u8]) -> bool,
    see: &mut dyn FnMut(&[u8]),
) {
    for field in fields.iter(original) {
        let name = field.name.of(original).trim_ascii();
        if counts(name) {
            let mut bytes = name.to_ascii_lowercase();
            bytes.push(b':');
            let value = field.value.of(original);
            for word in value.split(u8::is_ascii_whitespace) {
                if !word.is_empty() {
                    bytes.push(b' ');
                    bytes.extend_from_slice(word);
                }
            }
            bytes.push(b'\n');
            see(&bytes);
        }
    }
}

pub(super) fn is(name: &[u8], other: &str) -> bool {
    name.eq_ignore_ascii_case(other.as_bytes())
}

/// Returns whether a field describes content. Embody may change such a field even in the header of a whole message.
pub(super) fn is_content(name: &[u8]) -> bool {
    starts_like(name, b"content-") || is(name, "MIME-Version") || is(name, "Lines")
}

/// Returns whether a field describes content and is not changed by embody when the content changes.
pub(super) fn describes_content(name: &[u8]) -> bool {
    is_content(name) && !REWRITTEN_FIELDS.iter().any(|it| is(name, it))
}

pub(super) fn is_added(name: &[u8]) -> bool {
    is(name, "Content-Disposition") || is(name, "Content-Base")
}

/// Returns whether a field of a part was written by Thunderbird, Apple Mail or embody, as a note that the content is stored
/// elsewhere. When the content is put back, the field is removed.
pub(super) fn is_of_programs(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    [&b"x-mozilla-"[..], b"x-embody", b"x-apple-"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Fields that Thunderbird, Apple Mail and embody write into the header of a part, in lower case.
const FIELDS_OF_NOTES: [&[u8]; 7] = [
    b"x-apple-content-length",
    b"x-embody",
    b"x-embody-detached",
    b"x-embody-source",
    b"x-mozilla-altered",
    b"x-mozilla-cloud-part",
    b"x-mozilla-external-attachment-url",
];

/// Returns whether a field of a part is one of those fields that programs write into a note, or that are left of a note.
/// Copies of a mail can differ in them.
pub(super) fn is_of_notes(name: &[u8]) -> bool {
    FIELDS_OF_NOTES
        .iter()
        .any(|it| name.eq_ignore_ascii_case(it))
}
