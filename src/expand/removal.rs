//! What goes when a part goes.

use crate::mime::{Content, PartId, Tree};
use crate::span::Span;

/// What goes when a part goes: the part and the boundary line in front of it, as far as it has not
/// gone with the part before (`removed_to`).
pub(super) fn removal(tree: &Tree<'_>, part: PartId, removed_to: usize) -> Span {
    let ordinal = tree.part(part).ordinal;
    let end = tree.part(part).span.end;
    let delimiters = tree
        .part(part)
        .parent
        .map(|parent| &tree.part(parent).content);
    let Some(Content::Multipart(multipart)) = delimiters else {
        return Span::empty_at(end);
    };
    let Some(delimiter) = multipart.delimiters.get(ordinal) else {
        return Span::empty_at(end);
    };
    let free_break = |at: usize| match tree.original.get(at..) {
        Some([b'\r', b'\n', ..]) => 2,
        Some([b'\n', ..]) => 1,
        _ => 0,
    };
    // One line break must be left where one was, and none where none was: what stands in front may
    // need it, or a header have it already. A boundary line behind another part's header has none of
    // its own, and of several parts that go only the first had one.
    let start = delimiter.start.max(removed_to);
    let own_break = if start == delimiter.start {
        free_break(start)
    } else {
        0
    };
    if own_break > 0 && tree.abuts_boundary(part) {
        return Span::new(start + own_break, end);
    }
    let behind = if own_break > 0 { 0 } else { free_break(end) };
    Span::new(start, end + behind)
}
