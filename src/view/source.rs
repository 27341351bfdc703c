//! The content of a part.

use std::borrow::Cow;

use crate::mime::encoded_words::decoded_text;
use crate::mime::header::unfold;
use crate::mime::{MediaType, MessageTree, Part, PartId, PartKind, TransferEncoding};
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

/// Returns the charset that a Content-Type field declares.
pub(super) fn declared_charset(content_type: &[u8]) -> Option<Vec<u8>> {
    let declared = MediaType::parse(content_type).parameter("charset")?;
    Some(declared.into_owned())
}

/// Decodes the value of a header field for display. Old mail contains raw bytes, usually in the charset of its text
/// (`label`). If this fails, windows-1252 is used, as for the text.
pub(super) fn field_text(value: &[u8], label: Option<&[u8]>) -> String {
    let unfolded = unfold(value);
    let mut text = decoded_text(&unfolded, label);
    if text.contains(char::REPLACEMENT_CHARACTER) {
        text = decoded_text(&unfolded, Some(b"windows-1252"));
    }
    text.trim().to_owned()
}
