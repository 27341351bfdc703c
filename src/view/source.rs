//! The content of a part.

use std::borrow::Cow;

use crate::mime::{MessageTree, Part, PartId, PartKind, TransferEncoding};
use crate::span::Span;

/// Position of a part's content, so that it can be decoded later without scanning the mail again.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartSource {
    body: Span,
    encoding: TransferEncoding,
}

impl PartSource {
    pub(super) fn of(part: &Part) -> Self {
        let encoding = match part.content {
            // The body of an enclosed mail is never encoded.
            PartKind::Message => TransferEncoding::EightBit,
            _ => part.encoding,
        };
        Self {
            body: part.body,
            encoding,
        }
    }

    /// Returns the decoded content. If it cannot be decoded, returns the encoded bytes, so that the user can at least
    /// save them.
    pub(super) fn content(self, mail: &[u8]) -> Cow<'_, [u8]> {
        let body = self.body.of(mail);
        self.encoding.decode(body).unwrap_or(Cow::Borrowed(body))
    }
}

/// Returns the decoded content of a part.
pub(super) fn decoded<'t>(tree: &MessageTree<'t>, id: PartId) -> Cow<'t, [u8]> {
    PartSource::of(tree.part(id)).content(tree.original)
}

/// Returns whether a part is declared to be an attachment, so that its text is not shown.
pub(super) fn is_attached(tree: &MessageTree<'_>, id: PartId) -> bool {
    tree.has_disposition(id, "attachment")
}
