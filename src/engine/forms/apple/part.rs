//! Parts whose body Apple Mail stored in a file.
//!
//! Apple Mail sometimes loses the last `-` of a closing boundary line. Then the damaged line is in the body of the last part.

use crate::mime::{MessageTree, PartId, PartKind};
use crate::span::Span;

/// Field with the length of the encoded body in bytes.
pub(crate) const LENGTH_FIELD: &str = "X-Apple-Content-Length";

/// Returns the damaged boundary line in the body of a part, without its line ending. Returns `None` if no line is damaged.
pub(super) fn torn_delimiter(tree: &MessageTree<'_>, part: PartId) -> Option<Span> {
    let above = tree.part(tree.part(part).parent?);
    let PartKind::Multipart(multipart) = &above.content else {
        return None;
    };
    if multipart.close.is_some() || above.children.last() != Some(&part) {
        return None;
    }
    let body = tree.part(part).body;
    let text = body.of(tree.original).trim_ascii_end();
    let line = text
        .strip_suffix(b"-")?
        .strip_suffix(multipart.boundary.as_slice())?;
    let front = line.strip_suffix(b"--")?;
    let is_line = front.is_empty() || front.ends_with(b"\n");
    is_line.then(|| Span::new(body.start + front.len(), body.start + text.len()))
}
