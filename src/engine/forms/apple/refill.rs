//! Puts the body that Apple Mail stored in a file back into its part. The body is encoded as the part's header
//! declares. Apple Mail recorded the length of the original body; if it shows where lines were broken, they are broken
//! there again. Only the field with the length is removed; everything else in the part stays unchanged.

use super::part::{LENGTH_FIELD, torn_delimiter};
use crate::edit::{Edit, Group};
use crate::engine::composite::{self, allows};
use crate::engine::content_source::ContentSource;
use crate::engine::external_body::ExternalBody;
use crate::engine::report::Refusal;
use crate::mime::exact::FieldText;
use crate::mime::media_type::is_ascii_compatible;
use crate::mime::transfer::{
    TransferEncoder, encode_base64, encode_by_words, encode_like, encode_text,
};
use crate::mime::{MessageTree, PartId, TransferEncoding};
use crate::span::{Newline, Span};

/// Returns the edits that insert the body. The second value is true if the content has the length that the mail notes.
pub(super) fn refilled(
    tree: &MessageTree<'_>,
    body: &ExternalBody<'_>,
    obtained: &ContentSource,
) -> Result<(Group, bool), Refusal> {
    let (encoded, proved) = encoded_again(tree, body, obtained)?;
    Ok((with_body(tree, body.part, encoded), proved))
}

fn encoded_again(
    tree: &MessageTree<'_>,
    body: &ExternalBody<'_>,
    obtained: &ContentSource,
) -> Result<(TransferEncoder, bool), Refusal> {
    let (id, newline) = (body.part, tree.newline);
    let declared = tree.part(id).encoding;
    let octets = obtained.content.bytes();
    let noted = tree
        .value(id, LENGTH_FIELD)
        .and_then(|value| std::str::from_utf8(value.trim_ascii()).ok()?.parse().ok());
    let in_base64 = || {
        let wording = noted.and_then(|noted| FieldText::of_base64(octets.len(), noted, newline));
        let body = wording.and_then(|wording| wording.write(octets));
        let encoding = TransferEncoding::Base64;
        body.map(|body| TransferEncoder { encoding, body })
    };
    let again = |encoded| (encoded, true);
    if declared == TransferEncoding::Base64 {
        let plainly = || (encode_base64(octets, newline), false);
        return Ok(in_base64().map_or_else(plainly, again));
    }
    let boundaries = tree.boundaries_around(id);
    let named = body.declared.as_ref();
    let charset = named.and_then(|it| it.parameter("charset"));
    let is_compatible = |charset: &[u8]| is_ascii_compatible(&String::from_utf8_lossy(charset));
    let is_text =
        obtained.essence.starts_with("text/") && charset.as_deref().is_none_or(is_compatible);
    if declared == TransferEncoding::QuotedPrintable && is_text {
        let (encoded, proved) = fitted(encode_by_words(octets, newline), noted, newline);
        if proved {
            return Ok((encoded, true));
        }
    }
    let encoded = match encode_like(declared, octets, is_text, newline, &boundaries) {
        Some(encoded) => encoded,
        None if obtained.essence.starts_with("message/") => {
            composite::fit(tree, id, b"", octets.to_vec(), &boundaries)?
        }
        None => match in_base64() {
            Some(encoded) => return Ok(again(encoded)),
            None if is_text => encode_text(octets.to_vec(), newline, &boundaries),
            None => encode_base64(octets, newline),
        },
    };
    Ok(fitted(encoded, noted, newline))
}

fn with_body(tree: &MessageTree<'_>, id: PartId, encoded: TransferEncoder) -> Group {
    let newline = tree.newline.bytes();
    let part = tree.part(id);
    let mut group = Group::new();
    let encoding = encoded.encoding.as_str();
    let field = [b"Content-Transfer-Encoding: ", encoding.as_bytes(), newline].concat();
    // True as soon as the header declares an encoding that is right for the body. A part without such a field is 7bit.
    let mut is_said = allows(part.encoding, encoded.encoding);
    let mut ends_line = true;
    for own in tree.fields(id).iter(tree.original) {
        let is_encoding = own.is(tree.original, "Content-Transfer-Encoding");
        let edit = match is_encoding && !allows(part.encoding, encoded.encoding) {
            true if !is_said => Edit::replace(own.whole, field.clone()),
            false if !own.is(tree.original, LENGTH_FIELD) => {
                ends_line = own.whole.of(tree.original).ends_with(b"\n");
                continue;
            }
            _ => Edit::remove(own.whole),
        };
        is_said |= is_encoding;
        group.push(edit);
    }
    let mut front = Vec::new();
    if !ends_line {
        front.extend_from_slice(newline);
    }
    if !is_said {
        front.extend_from_slice(&field);
    }
    match part.separator.of(tree.original) {
        [] => front.extend_from_slice(newline),
        separator => front.extend_from_slice(separator),
    }
    let mut body = encoded.body;
    let torn = torn_delimiter(tree, id);
    let is_last = part.span.end >= tree.original.len();
    let wants_end = match torn {
        Some(_) => true,
        None if is_last => !body.ends_with(b"\n"),
        None => tree.abuts_boundary(id),
    };
    if !body.is_empty() && wants_end {
        body.extend_from_slice(newline);
    }
    if let Some(torn) = torn {
        body.extend_from_slice(torn.of(tree.original));
        body.push(b'-');
        body.extend_from_slice(Span::new(torn.end, part.body.end).of(tree.original));
    }
    let place = Span::new(part.header.end, part.body.end);
    group.extend([
        Edit::insert(part.header.end, front),
        Edit::replace(place, body),
    ]);
    group
}

/// Adds or removes one line ending at the end if this makes the length right. Apple Mail may have counted the line ending
/// before the boundary as part of the body, or stored it with the content. A line ending counts as one byte. The second value
/// is true if the length is right.
fn fitted(
    mut encoded: TransferEncoder,
    noted: Option<u64>,
    newline: Newline,
) -> (TransferEncoder, bool) {
    let body = &mut encoded.body;
    let crlf = memchr::memmem::find_iter(body, b"\r\n").count();
    let length = (body.len() - crlf) as u64;
    let is_noted = |length| noted == Some(length);
    let proved = if is_noted(length + 1) {
        body.extend_from_slice(newline.bytes());
        true
    } else if length > 0 && is_noted(length - 1) && body.ends_with(newline.bytes()) {
        body.truncate(body.len() - newline.bytes().len());
        true
    } else {
        is_noted(length)
    };
    (encoded, proved)
}
