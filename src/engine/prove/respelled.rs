//! Pictures that another program embedded, in the spelling of embody.
//!
//! Other programs embed pictures with other ids, in another order of the fields, and with another boundary. This is not
//! content, so such parts are written again as embody writes them, before the mail is proved. Only parts without any other
//! field are accepted, so that nothing is lost here.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::edit::{Edit, Edits};
use crate::engine::guide::{DIGITS, DOMAIN, digest_of_part, digits_of};
use crate::engine::policy::Policy;
use crate::mime::entity::{folded_url, push_field, sha256};
use crate::mime::picture::sniff;
use crate::mime::transfer::append_base64;
use crate::mime::{self, MediaType, MessageTree, PartId, PartKind, TransferEncoding};
use crate::span::{Newline, Span, until};

/// Fields that embody writes for a picture.
const FIELDS: [&str; 5] = [
    "Content-Type",
    "Content-ID",
    "Content-Disposition",
    "Content-Location",
    "Content-Transfer-Encoding",
];

/// Returns the mail with the pictures that are not in `old` as embody writes them. Returns `None` if there are no such
/// pictures, if no link displays one of them, or if anything else about them is different.
pub(super) fn respelled(old: &MessageTree<'_>, new: &[u8]) -> Option<Vec<u8>> {
    let tree = mime::scan(new, &Policy::default().limits.scan());
    let known: HashSet<u64> = old.ids().map(|part| digest_of_part(old, part)).collect();
    let mut edits = Vec::new();
    let mut ids: Vec<(Vec<u8>, String)> = Vec::new();
    let mut containers: Vec<PartId> = Vec::new();
    for part in tree.ids() {
        let Some(id) = foreign_id(&tree, part) else {
            continue;
        };
        if known.contains(&digest_of_part(&tree, part)) {
            continue;
        }
        let (own, text) = picture(&tree, part)?;
        let entity = tree.part(part);
        let span = Span::new(entity.header.start, entity.body.end);
        edits.push(Edit::replace(span, text));
        ids.push((id, own));
        containers.extend(entity.parent.filter(|parent| !containers.contains(parent)));
    }
    if ids.is_empty() {
        return None;
    }
    let mut linked: HashSet<&[u8]> = HashSet::new();
    for part in tree.ids() {
        let entity = tree.part(part);
        if entity.essence != "text/html" || entity.encoding.is_encoded() {
            continue;
        }
        for (id, own) in &ids {
            let link = [b"cid:", id.as_slice()].concat();
            let body = entity.body.of(new);
            for at in memchr::memmem::find_iter(body, &link) {
                let start = entity.body.start + at + b"cid:".len();
                let end = start + id.len();
                let next = new.get(end).copied().unwrap_or(b'"');
                if matches!(next, b'"' | b'\'' | b')' | b'>' | b'&' | b',')
                    || next.is_ascii_whitespace()
                {
                    edits.push(Edit::replace(Span::new(start, end), own.clone()));
                    linked.insert(id.as_slice());
                }
            }
        }
    }
    // A link with the id that embody gives the picture would only display it after this change.
    let is_dangling = |own: &String| {
        memchr::memmem::find(new, [b"cid:", own.as_bytes()].concat().as_slice()).is_some()
    };
    if ids
        .iter()
        .any(|(id, own)| !linked.contains(id.as_slice()) || is_dangling(own))
    {
        return None;
    }
    for (number, container) in containers.into_iter().enumerate() {
        edits.extend(new_container(&tree, old, container, number)?);
    }
    let edits = Edits::of(edits).ok()?;
    Some(edits.splice(new).into_bytes().into_owned())
}

/// Returns the Content-ID of a picture with a URL, if embody did not write it.
fn foreign_id(tree: &MessageTree<'_>, part: PartId) -> Option<Vec<u8>> {
    let entity = tree.part(part);
    let is_picture = entity.content == PartKind::Leaf
        && entity.essence.starts_with("image/")
        && entity.encoding == TransferEncoding::Base64;
    tree.value(part, "Content-Location")
        .filter(|_| is_picture)?;
    let bracketed = tree.value(part, "Content-ID")?.trim_ascii();
    let id = bracketed.strip_prefix(b"<")?.strip_suffix(b">")?;
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"%\"'<>&".contains(byte);
    let is_foreign = digits_of(std::str::from_utf8(id).ok()?).is_none();
    (is_foreign && !id.is_empty() && id.iter().all(is_plain)).then(|| id.to_vec())
}

/// Returns the id and the part that embody writes for a picture.
fn picture(tree: &MessageTree<'_>, part: PartId) -> Option<(String, Vec<u8>)> {
    let entity = tree.part(part);
    let mail = tree.original;
    let fields: Vec<_> = tree.fields(part).iter(mail).collect();
    let is_known = |name: &str| fields.iter().filter(|field| field.is(mail, name)).count() <= 1;
    if !FIELDS.iter().all(|&name| is_known(name))
        || !fields
            .iter()
            .all(|field| FIELDS.iter().any(|name| field.is(mail, name)))
    {
        return None;
    }
    let plain = |name, allowed: &str| {
        let Some(value) = tree.value(part, name) else {
            return true;
        };
        let parameters = MediaType::parse(value).decoded_parameters(8);
        parameters.iter().all(|(name, _)| name == allowed)
    };
    let is_inline = tree.value(part, "Content-Disposition").is_none_or(|value| {
        let word = until(b';', value).trim_ascii();
        word.eq_ignore_ascii_case(b"inline")
    });
    if !plain("Content-Type", "name") || !plain("Content-Disposition", "filename") || !is_inline {
        return None;
    }
    let body = entity.body.of(mail);
    let octets = entity.encoding.decode(body)?;
    // Base64 may be in lines of any length, but nothing else may be hidden in it.
    let mut bare = body.to_vec();
    bare.retain(|byte| !byte.is_ascii_whitespace());
    if bare != STANDARD.encode(&octets).as_bytes() {
        return None;
    }
    let kind = sniff(&octets).filter(|kind| kind.essence == entity.essence)?;
    let hash = sha256(&octets);
    let digits = hash.get(..DIGITS)?;
    let id = format!("{digits}{DOMAIN}");
    let mut url = String::from_utf8_lossy(tree.value(part, "Content-Location")?).into_owned();
    url.retain(|symbol| !symbol.is_whitespace());
    let newline = Newline::Lf;
    let mut text = Vec::new();
    push_field(&mut text, "Content-Type", kind.essence, newline);
    push_field(&mut text, "Content-ID", &format!("<{id}>"), newline);
    let disposition = format!("inline; filename=\"{digits}.{}\"", kind.extension);
    push_field(&mut text, "Content-Disposition", &disposition, newline);
    text.extend(folded_url("Content-Location", &url, newline));
    push_field(&mut text, "Content-Transfer-Encoding", "base64", newline);
    text.push(b'\n');
    append_base64(&octets, newline, &mut text);
    Some((id, text))
}

/// Returns the edits that give a multipart which is not in `old` the header and the boundary of embody.
fn new_container(
    tree: &MessageTree<'_>,
    old: &MessageTree<'_>,
    part: PartId,
    number: usize,
) -> Option<Vec<Edit>> {
    let PartKind::Multipart(multipart) = &tree.part(part).content else {
        return None;
    };
    if old.boundaries().contains(&multipart.boundary.as_slice()) {
        return Some(Vec::new());
    }
    let first = tree
        .ids()
        .find(|&child| tree.part(child).parent == Some(part))?;
    let field = tree.fields(part).first(tree.original, "Content-Type")?;
    let parameters = MediaType::parse(field.value.of(tree.original)).decoded_parameters(8);
    let is_known = |(name, _): &(String, String)| matches!(&**name, "boundary" | "type");
    if tree.part(part).essence != "multipart/related" || !parameters.iter().all(is_known) {
        return None;
    }
    let boundary = format!("=_embody_{:024x}", u64::MAX - number as u64);
    let value = format!(
        " multipart/related; type=\"{}\";\n boundary=\"{boundary}\"",
        tree.part(first).essence
    );
    let mut edits = vec![Edit::replace(field.value, value)];
    for line in multipart.delimiters.iter().chain(&multipart.close) {
        let marked = [b"--", multipart.boundary.as_slice()].concat();
        let at = memchr::memmem::find(line.of(tree.original), &marked)?;
        let start = line.start + at + b"--".len();
        let end = start + multipart.boundary.len();
        edits.push(Edit::replace(Span::new(start, end), boundary.clone()));
    }
    Some(edits)
}
