//! Access to texts with notes, and to the file names in such notes.

use std::borrow::Cow;

use crate::mime::transfer::{has_boundary, is_eight_bit, with_newlines};
use crate::mime::{MessageTree, PartId};

/// Returns the text of a part as it could be written unencoded: decoded, and with the line endings of the mail. Returns
/// `None` if mail cannot contain the text unencoded (RFC 2045 §2.8), or if the text contains a boundary line of the
/// mail.
pub fn text_of_part<'a>(tree: &MessageTree<'a>, part: PartId) -> Option<Cow<'a, [u8]>> {
    let entity = tree.part(part);
    let body = entity.body.of(tree.original);
    if !entity.encoding.is_encoded() {
        return Some(Cow::Borrowed(body));
    }
    let text = with_newlines(entity.encoding.decode(body)?.into_owned(), tree.newline);
    let can_stand = is_eight_bit(&text) && !has_boundary(&text, &tree.boundaries_around(part));
    can_stand.then_some(Cow::Owned(text))
}

/// Returns the last component of a path, without control characters, so that the name cannot lead to another directory.
pub(in crate::engine) fn file_name_in(name: &str) -> Option<String> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default().trim();
    let name: String = last
        .chars()
        .filter(|letter| !letter.is_control())
        .take(255)
        .collect();
    (!name.chars().all(|letter| letter == '.')).then_some(name)
}

/// Returns the extension of a file name: one to eight letters and digits after the last dot.
pub(in crate::engine) fn extension_of(name: &str) -> Option<&str> {
    let (_, extension) = name.rsplit_once('.')?;
    let is_short = (1..=8).contains(&extension.len());
    let is_one = is_short && extension.bytes().all(|it| it.is_ascii_alphanumeric());
    is_one.then_some(extension)
}
