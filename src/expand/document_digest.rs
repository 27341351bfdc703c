//! Content-MD5 of a document whose links change (RFC 1864): computed anew if it was right, removed if not.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};

use crate::edit::{Edit, Group};
use crate::mime::transfer::canonical_text;
use crate::mime::{Field, PartId, Tree};
use crate::span::Span;

const FIELD: &str = "Content-MD5";

/// What became of the field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Digest {
    /// It was right, and is.
    Computed,
    /// It was wrong.
    Removed,
}

impl Digest {
    /// For the detail of a row.
    pub(super) fn note(self) -> &'static str {
        match self {
            Self::Computed => "Content-MD5 was computed anew",
            Self::Removed => "Content-MD5, which was wrong, was removed",
        }
    }
}

/// What becomes of a part's digest when its octets change; none if it has none.
pub(super) fn renewed(
    original: &[u8],
    tree: &Tree,
    part: PartId,
    before: &[u8],
    after: impl FnOnce() -> Vec<u8>,
) -> Option<(Digest, Group)> {
    let fields: Vec<Field> = fields(original, tree, part).collect();
    let (first, others) = fields.split_first()?;
    let is_text = tree.part(part).essence.starts_with("text/");
    let digest_of = |octets: &[u8], is_text: bool| {
        let digest = match is_text {
            true => Md5::digest(canonical_text(octets)),
            false => Md5::digest(octets),
        };
        STANDARD.encode(digest)
    };
    let value = value_of(original, first);
    let mut written = value.of(original).to_vec();
    written.retain(|byte| !byte.is_ascii_whitespace());
    // The canonical form is the right one; many programs hash the octets.
    let was_right = written == digest_of(before, false).as_bytes()
        || (is_text && written == digest_of(before, true).as_bytes());
    if !was_right {
        return Some((Digest::Removed, removed(&fields)));
    }
    let mut group = removed(others);
    group.insert(0, Edit::replace(value, digest_of(&after(), is_text)));
    Some((Digest::Computed, group))
}

fn fields<'t>(
    original: &'t [u8],
    tree: &'t Tree,
    part: PartId,
) -> impl Iterator<Item = Field> + 't {
    tree.fields(part)
        .iter(original)
        .filter(move |field| field.is(original, FIELD))
}

fn removed(fields: &[Field]) -> Group {
    let removal = |field: &Field| Edit::remove(field.whole);
    fields.iter().map(removal).collect()
}

/// The field's value without what stands around it: white space, a comment behind it.
fn value_of(original: &[u8], field: &Field) -> Span {
    let value = field.value.of(original);
    let value = value.split(|&byte| byte == b'(').next().unwrap_or_default();
    let start = field.value.start + value.len() - value.trim_ascii_start().len();
    Span::new(start, start + value.trim_ascii().len())
}
