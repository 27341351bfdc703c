//! Content-MD5 of a document whose links change (RFC 1864): computed anew if it was right, removed if not.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};

use crate::edit::{Edit, Group};
use crate::mime::{Field, PartId, Tree};

/// Line ends of a text count as CRLF. Bytes come piece by piece: a copy in canonical form would be another document.
fn md5(is_text: bool, pieces: impl FnOnce(&mut dyn FnMut(&[u8]))) -> String {
    let mut md5 = Md5::new();
    let mut last = 0;
    pieces(&mut |octets| {
        let mut rest = octets;
        while is_text && let Some(at) = memchr::memchr(b'\n', rest) {
            let (line, behind) = rest.split_at(at);
            md5.update(line);
            if line.last().copied().unwrap_or(last) != b'\r' {
                md5.update(b"\r");
            }
            md5.update(b"\n");
            last = b'\n';
            rest = behind.get(1..).unwrap_or_default();
        }
        md5.update(rest);
        last = rest.last().copied().unwrap_or(last);
    });
    STANDARD.encode(md5.finalize())
}

pub(super) fn renewed(
    tree: &Tree<'_>,
    part: PartId,
    before: &[u8],
    after: impl FnOnce(&mut dyn FnMut(&[u8])),
) -> Option<(&'static str, Group)> {
    let fields = tree.fields(part).iter(tree.original);
    let is_digest = |field: &Field| field.is(tree.original, "Content-MD5");
    let fields: Vec<Field> = fields.filter(is_digest).collect();
    let (first, others) = fields.split_first()?;
    let is_text = tree.part(part).essence.starts_with("text/");
    let mut value = first.value;
    // A comment may stand behind it.
    if let Some(length) = memchr::memchr(b'(', value.of(tree.original)) {
        value.end = value.start + length;
    }
    let value = value.trimmed(tree.original);
    let mut written = value.of(tree.original).to_vec();
    written.retain(|byte| !byte.is_ascii_whitespace());
    // The canonical form is the right one; many programs hash the bytes as they are.
    let is_of = |is_text| written == md5(is_text, |update| update(before)).as_bytes();
    if !is_of(false) && !is_of(is_text) {
        let remark = "Content-MD5, which was wrong, was removed";
        return Some((remark, removed(&fields)));
    }
    let mut group = removed(others);
    group.insert(0, Edit::replace(value, md5(is_text, after)));
    Some(("Content-MD5 was computed anew", group))
}

fn removed(fields: &[Field]) -> Group {
    let removal = |field: &Field| Edit::remove(field.whole);
    fields.iter().map(removal).collect()
}
