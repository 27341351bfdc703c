//! Parts whose transfer encoding is `x-uuencode`, which mail programs before MIME used. No standard defines this encoding, so
//! the part gets base64 with the same content. Its type and its name stay.

use super::block::blocks;
use super::name;
use crate::edit::Edit;
use crate::engine::forms::opening::FormOpener;
use crate::engine::policy::Follow;
use crate::engine::protection::protection;
use crate::engine::report::{Reason, Refusal, Row};
use crate::mime::transfer::{encode_base64, first_word, with_newlines};
use crate::mime::{Field, MediaType, MessageTree, PartId, PartKind, entity, media_type};
use crate::span::Newline;

const FIELD: &str = "Content-Transfer-Encoding";

/// Names of the encoding, without punctuation.
const NAMES: [&[u8]; 6] = [b"uuencode", b"xuuencode", b"uue", b"xuue", b"uu", b"xuu"];

/// Returns true if the transfer encoding of a part is `x-uuencode`, in any spelling.
pub(crate) fn is_encoded_part(tree: &MessageTree<'_>, id: PartId) -> bool {
    let is_its = |value: &[u8]| NAMES.contains(&first_word(value).as_slice());
    tree.part(id).content == PartKind::Leaf && tree.value(id, FIELD).is_some_and(is_its)
}

/// Replaces the encoding of a part by base64.
///
/// # Errors
/// Returns [`Reason::UndecodableBody`] if the body is not one complete uuencoded file.
pub(crate) fn open(
    opening: &mut FormOpener<'_>,
    id: PartId,
    row: &mut Row,
) -> Result<bool, Refusal> {
    let (tree, policy) = (opening.tree, opening.policy);
    let part = tree.part(id);
    let body = part.body.of(tree.original);
    if let Some(refusal) = protection(tree, id, policy) {
        return Err(refusal);
    }
    policy.judge_form(Follow::Uuencode)?;
    opening.ledger.work(body.len().saturating_mul(2))?;
    let mut blocks = blocks(body);
    let block = match (blocks.pop(), blocks.is_empty()) {
        (Some(block), true) => block,
        (None, _) => return Err(refused("is damaged: the body contains no complete file")),
        (Some(_), false) => return Err(refused("has several files")),
    };
    let before = body.get(..block.span.start).unwrap_or_default();
    let after = body.get(block.span.end..).unwrap_or_default();
    let is_alone = before.trim_ascii().is_empty() && after.trim_ascii().is_empty();
    if !is_alone {
        return Err(refused("has text before or after the file"));
    }
    row.bytes = Some(block.bytes.len() as u64);
    let newline = tree.newline;
    let fields = tree.fields(id);
    let is_its = |field: &Field| field.is(tree.original, FIELD);
    let mut its = fields.iter(tree.original).filter(is_its);
    let Some(field) = its.next() else {
        return Ok(false);
    };
    let mut header = Vec::new();
    entity::push_field(&mut header, FIELD, "base64", Newline::CrLf);
    // The `begin` line, which is removed, contained the file name. The header must keep it.
    let has_disposition = tree.value(id, "Content-Disposition").is_some();
    let declared = MediaType::parse(tree.value(id, "Content-Type").unwrap_or_default());
    if !has_disposition && declared.parameter("name").is_none() {
        let charset = declared.parameter("charset");
        let name =
            name::decoded(block.name.of(body), charset.as_deref()).ok_or_else(name::refused)?;
        header.extend_from_slice(b"Content-Disposition: attachment");
        header.extend(media_type::write_more(&[("filename".to_owned(), name)]));
        header.extend_from_slice(b"\r\n");
    }
    let mut group = vec![Edit::replace(field.whole, with_newlines(header, newline))];
    group.extend(its.map(|field| Edit::remove(field.whole)));
    let mut new = encode_base64(&block.bytes, newline).body;
    if body.ends_with(b"\n") {
        new.extend_from_slice(newline.bytes());
    }
    group.push(Edit::replace(part.body, new));
    opening.put(group, row)?;
    row.detail = "the part was uuencoded, and is now encoded in base64".into();
    Ok(true)
}

fn refused(what: &str) -> Refusal {
    let detail = format!("the body of the uuencoded part {what}");
    Refusal::lasting(Reason::UndecodableBody, detail)
}
