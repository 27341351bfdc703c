//! Sets of digests of header fields, and the fields that programs write into notes.

use super::plain::Digest;
use crate::mime::header::Fields;

/// A set of digests, sorted.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Digests(Vec<Digest>);

impl Digests {
    pub(super) fn contains(&self, digest: Digest) -> bool {
        self.0.binary_search(&digest).is_ok()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Digest> {
        self.0.iter().copied()
    }
}

impl FromIterator<Digest> for Digests {
    fn from_iter<I: IntoIterator<Item = Digest>>(digests: I) -> Self {
        let mut digests: Vec<Digest> = digests.into_iter().collect();
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
