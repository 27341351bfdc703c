//! Properties of a single part: its name, charset, header fields and decoded content.

use base64::Engine as _;

use super::super::fields::is_of_notes;
use super::super::fields_of_part::fields_of;
use super::super::plain::Digest;
use super::super::transport::{Role, role};
use super::truncation::is_base64;
use crate::engine::external_body::name_of;
use crate::mime::charset::Charset;
use crate::mime::{MediaType, MessageTree, PartId, PartKind, TransferEncoding};

pub(super) fn name_of_part(tree: &MessageTree<'_>, id: PartId) -> Option<Digest> {
    let name = name_of(tree.original, tree.fields(id)).text();
    name.map(|name| Digest::of(name.as_bytes()))
}

/// Returns the digest of the charset of a text, if the text has characters other than ASCII. Archives of lists declare no
/// charset and use UTF-8, so a missing charset counts as UTF-8.
pub(super) fn charset_of(tree: &MessageTree<'_>, id: PartId, content: &[u8]) -> Option<Digest> {
    let value = tree.value(id, "Content-Type").unwrap_or_default();
    let media_type = MediaType::parse(value);
    let label = media_type.parameter("charset").unwrap_or(b"utf-8".into());
    (!content.is_ascii()).then(|| Digest::of(&label.to_ascii_lowercase()))
}

/// Returns whether Content-Type and Content-Disposition contain different file names. Mail programs differ in which of the two
/// names they use.
pub(super) fn has_two_names(tree: &MessageTree<'_>, id: PartId) -> bool {
    let named = |field: &str, parameter: &str| {
        let value = tree.value(id, field)?;
        MediaType::parse(value).name(parameter).text()
    };
    let names = [
        named("Content-Type", "name"),
        named("Content-Disposition", "filename"),
    ];
    matches!(names, [Some(one), Some(other)] if one != other)
}

/// Returns whether ASCII characters and line feeds in the bytes of a text mean these characters. In UTF-16 and UTF-7 they may
/// not, so such a text is compared as bytes.
pub(super) fn is_readable(tree: &MessageTree<'_>, id: PartId) -> bool {
    let value = tree.value(id, "Content-Type").unwrap_or_default();
    match MediaType::parse(value).parameter("charset") {
        None => true,
        Some(label) => matches!(
            Charset::of_label(&label),
            Some(Charset::Superset | Charset::ShiftJis | Charset::DoubleByte)
        ),
    }
}

/// Returns whether a part is plain text that is shown in the mail, and not an attachment. Mailing lists append footers only to
/// such parts, and only such parts are in the monthly text of Mailman.
pub(super) fn is_plain_text(tree: &MessageTree<'_>, id: PartId) -> bool {
    let value = tree.value(id, "Content-Type").unwrap_or_default();
    let removes_blanks = MediaType::parse(value).parameter("delsp").is_some();
    let disposition = tree.disposition(id);
    tree.part(id).essence == "text/plain"
        && tree.part(id).content == PartKind::Leaf
        && name_of_part(tree, id).is_none()
        && (disposition.is_empty() || disposition.eq_ignore_ascii_case(b"inline"))
        && is_readable(tree, id)
        && !removes_blanks
}

/// Returns the digest of the header fields that describe a part ([`fields_of`]). `with_encoding` includes the transfer
/// encoding, for a part that is compared in its encoded form.
pub(super) fn fields_of_part(tree: &MessageTree<'_>, id: PartId, with_encoding: bool) -> Digest {
    let part = tree.part(id);
    let counts = |name: &[u8]| match name {
        b"content-transfer-encoding" => with_encoding,
        // For an enclosed message, only the fields that describe its content count. Its other fields are compared as its
        // header.
        _ if tree.is_message(id) => role(name) == Role::Content,
        _ => !is_of_notes(name),
    };
    let mut fields = fields_of((tree.original, tree.fields(id)), &part.essence, counts);
    if !tree.is_message(id) {
        fields.extend(stray_lines(tree, id));
    }
    Digest::of(&fields)
}

/// Returns the whole header of a part if it contains malformed lines, because programs interpret the fields after them
/// differently.
pub(super) fn stray_lines(tree: &MessageTree<'_>, id: PartId) -> Vec<u8> {
    let part = tree.part(id);
    if part.has_stray_lines() || !part.envelope.is_empty() {
        [
            part.envelope.of(tree.original),
            part.header.of(tree.original),
        ]
        .concat()
    } else {
        Vec::new()
    }
}

/// Decodes the body of a part. Returns `None` if it must be compared undecoded: several fields declare an encoding, or the body
/// is not valid in its encoding.
pub(super) fn decoded(
    tree: &MessageTree<'_>,
    id: PartId,
    body: &[u8],
    is_cut: bool,
) -> Option<Vec<u8>> {
    let original = tree.original;
    let encodings = tree
        .fields(id)
        .iter(original)
        .filter(|field| field.is(original, "Content-Transfer-Encoding"));
    if encodings.count() > 1 {
        return None;
    }
    match tree.part(id).encoding {
        TransferEncoding::Unknown => None,
        TransferEncoding::Base64 => match is_base64(body)? {
            true => Some(tree.part(id).encoding.decode(body)?.into_owned()),
            false if is_cut => Some(decoded_start(body)),
            false => None,
        },
        TransferEncoding::QuotedPrintable if is_cut => {
            // If the mail is truncated within an escape sequence, the incomplete sequence is removed.
            let near = body.len().saturating_sub(2);
            let sign = memchr::memrchr(b'=', body).filter(|at| *at >= near);
            let whole = &body[..sign.unwrap_or(body.len())];
            Some(tree.part(id).encoding.decode(whole)?.into_owned())
        }
        encoding => Some(encoding.decode(body)?.into_owned()),
    }
}

/// Decodes base64 up to its last complete byte.
fn decoded_start(body: &[u8]) -> Vec<u8> {
    let is_symbol = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut symbols: Vec<u8> = body.iter().copied().filter(is_symbol).collect();
    if symbols.len() % 4 == 1 {
        symbols.pop();
    }
    let config = base64::engine::GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent);
    let engine = base64::engine::GeneralPurpose::new(&base64::alphabet::STANDARD, config);
    engine.decode(&symbols).unwrap_or_default()
}
