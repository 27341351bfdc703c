//! Finds out whether the end of a mail is missing, and in which part.

use std::collections::BTreeSet;

use crate::mime::{MessageTree, PartId, PartKind, TransferEncoding};
use crate::span::last_line;

/// The place at which a mail is truncated, if its end is missing.
pub(super) struct End {
    /// Whether the mail is truncated.
    pub(super) is_cut: bool,
    /// The part in which the mail is truncated.
    pub(super) within: Option<PartId>,
    /// The multiparts and messages whose end is missing.
    pub(super) open: BTreeSet<PartId>,
}

impl End {
    /// Determines whether a mail is truncated: its last part is in a multipart without a closing boundary line, or is base64
    /// that ends within a group of four symbols. If the mail ends in the header of a part, the rest of the header is unknown,
    /// so the mail is compared as if it were complete.
    pub(super) fn of(tree: &MessageTree<'_>) -> Self {
        let mut end = Self {
            is_cut: false,
            within: None,
            open: BTreeSet::new(),
        };
        let Some(last) = tree.ids().next_back() else {
            return end;
        };
        let part = tree.part(last);
        if part.content != PartKind::Leaf || part.has_stray_lines() {
            return end;
        }
        let has_header = !tree.fields(last).is_empty();
        if has_header && part.separator.is_empty() {
            return end;
        }
        let body = part.body.of(tree.original);
        let is_torn = part.encoding == TransferEncoding::Base64
            && part.span.end == tree.root().span.end
            && is_base64(without_torn_boundary(tree, last, body)) == Some(false);
        let mut is_within = true;
        for above in tree.ancestors(last) {
            match &tree.part(above).content {
                // A multipart with an `overflow` has more parts than the parser reads. It is unknown whether its closing boundary
                // line exists, and a copy counts as cut only if that is certain. The unread bytes are compared as they are.
                PartKind::Multipart(multipart)
                    if multipart.close.is_some() || multipart.overflow.is_some() =>
                {
                    is_within = false;
                }
                PartKind::Multipart(_) => {
                    end.is_cut = true;
                    if is_within {
                        end.within = Some(last);
                    }
                    // All multiparts and messages between this multipart and the last part are inside it. So their ends
                    // are missing, too.
                    let between = tree.ancestors(last).take_while(|it| *it != above);
                    let is_open = |id: &PartId| !matches!(&tree.part(*id).content, PartKind::Multipart(it) if it.close.is_some());
                    end.open.extend(between.filter(is_open));
                    end.open.insert(above);
                }
                _ => {}
            }
        }
        if is_torn {
            end.is_cut = true;
            end.within = Some(last);
            end.open.extend(tree.ancestors(last));
        }
        end
    }
}

/// Returns whether base64 consists of complete groups of four symbols. Returns `None` if the body contains anything other than
/// symbols, white space and padding at its end.
pub(super) fn is_base64(body: &[u8]) -> Option<bool> {
    let mut symbols = 0_u64;
    let mut padding = 0_u64;
    for &byte in body {
        match byte {
            byte if byte.is_ascii_whitespace() => {}
            b'=' => padding += 1,
            byte if padding == 0
                && (byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')) =>
            {
                symbols += 1;
            }
            _ => return None,
        }
    }
    (padding <= 2).then_some((symbols + padding).is_multiple_of(4))
}

/// Removes the beginning of a boundary line from the last part of a mail that is truncated within this line.
pub(super) fn without_torn_boundary<'b>(
    tree: &MessageTree<'_>,
    id: PartId,
    body: &'b [u8],
) -> &'b [u8] {
    let body = body.trim_ascii_end();
    let line = last_line(body);
    let is_torn = line.starts_with(b"-")
        && tree.ancestors(id).any(|id| {
            let boundary = tree.part(id).content.boundary().unwrap_or_default();
            let whole = [b"--", boundary, b"--"].concat();
            whole.starts_with(line)
        });
    if is_torn {
        &body[..body.len() - line.len()]
    } else {
        body
    }
}
