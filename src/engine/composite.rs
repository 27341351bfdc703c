//! Checks whether a multipart or a message can replace a reference.
//!
//! Such content must not be encoded (RFC 2045 §6.4), so it must fit as it is: it must contain no boundary line of a multipart
//! around it, no 8-bit bytes that the parts around it do not declare, and no line ending that only some programs recognise.

use crate::engine::report::{Reason, Refusal};
use crate::mime::header::has_control_character;
use crate::mime::transfer::{TransferEncoder, has_boundary, has_long_line};
use crate::mime::{self, MessageTree, PartId, PartKind, ScanLimits, TransferEncoding};

pub(super) fn refused(detail: &str) -> Refusal {
    Refusal::lasting(Reason::UnfitComposite, detail)
}

/// Returns the content if it can be inserted without encoding it, otherwise the reason why it cannot. For a multipart,
/// `header` is the Content-Type field, which names the boundary of its parts. For a message, `header` is empty, because
/// the message has its own header.
pub(super) fn fit(
    tree: &MessageTree<'_>,
    part: PartId,
    header: &[u8],
    body: Vec<u8>,
    boundaries: &[&[u8]],
) -> Result<TransferEncoder, Refusal> {
    let collides = |detail: &str| Refusal::lasting(Reason::BoundaryCollision, detail);
    if has_control_character(&body) {
        let detail = "the content contains a NUL byte or a CR without LF";
        return Err(Refusal::lasting(Reason::ControlCharacter, detail));
    }
    if has_long_line(&body) {
        return Err(refused("a line of the content is longer than 998 bytes"));
    }
    let encoding = if body.is_ascii() {
        TransferEncoding::SevenBit
    } else {
        TransferEncoding::EightBit
    };
    let allows = |around: PartId| allows(tree.part(around).encoding, TransferEncoding::EightBit);
    if encoding == TransferEncoding::EightBit && !tree.ancestors(part).all(allows) {
        let detail = "the content has 8-bit bytes, but the part that contains the content is declared as 7bit";
        return Err(refused(detail));
    }
    if has_boundary(&body, boundaries) {
        let detail = "a line of the content is also a boundary line of the message";
        return Err(collides(detail));
    }
    if !header.is_empty() || !boundaries.is_empty() {
        let entity = [header, &body].concat();
        let tree = mime::scan(&entity, &ScanLimits::default());
        let multipart = &tree.part(PartId::ROOT).content;
        let has_parts =
            matches!(multipart, PartKind::Multipart(multipart) if !multipart.delimiters.is_empty());
        // If a multipart in the content lacks its last boundary line, programs search for this boundary also after the
        // content. Many programs compare only the start of a line. So no boundary around the content may begin with a
        // boundary in it.
        let inner = tree.boundaries();
        let takes_in = |around: &&[u8]| inner.iter().any(|inner| around.starts_with(inner));
        if boundaries.iter().any(takes_in) {
            let detail = "a boundary of the message begins with a boundary in the content, so the parts of the message after the content could be read as parts of the content";
            return Err(collides(detail));
        }
        if !header.is_empty() && !has_parts {
            let detail = "the content is a multipart without boundary lines";
            return Err(refused(detail));
        }
    }
    Ok(TransferEncoder { encoding, body })
}

/// Returns true if a part with the encoding `declared` may contain a part with the encoding `used` (RFC 2045 §6.2).
pub(super) fn allows(declared: TransferEncoding, used: TransferEncoding) -> bool {
    use TransferEncoding::{Binary, EightBit, SevenBit};
    match declared {
        EightBit => matches!(used, SevenBit | EightBit),
        Binary => matches!(used, SevenBit | EightBit | Binary),
        _ => declared == used,
    }
}
