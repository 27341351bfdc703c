//! Opens uuencoded files in texts: the line `begin 644 name`, lines of data, and `end` become an attachment in the same place.
//! [`encoded_part`] opens parts whose transfer encoding is `x-uuencode`.
//!
//! Only a block that is complete and decodes without an error is replaced. Quoted text and signed parts are not changed. A name
//! that cannot be decoded is never written: its file stays in the text.

mod block;
pub(crate) mod encoded_part;
mod name;

use std::sync::LazyLock;

use self::block::{BEGIN, blocks};
use super::marks::{FormMark, Marks};
use super::opening::FormOpener;
use crate::edit::{Edit, Group};
use crate::engine::parts::{self, NewLeaf, NewMimePart, delimiter, guessed};
use crate::engine::policy::Follow;
use crate::engine::protection::protection;
use crate::engine::report::{Detail, Reason, Refusal, Row, Setting};
use crate::mime::header::unfold;
use crate::mime::transfer::{encode_base64, encode_like, with_newlines};
use crate::mime::{MediaType, MessageTree, PartId, PartKind, TransferEncoding, entity, media_type};
use crate::span::{Newline, Span};

/// The word with which a block begins: as it is, also in quoted-printable, and in base64. Base64 encodes groups of three bytes,
/// so there is one string for each position of the word in a group.
const WORDS: [&[u8]; 4] = [b"begin", b"YmVnaW4", b"JlZ2lu", b"iZWdpb"];

/// Returns byte strings of which at least one occurs in every message with a uuencoded file; see
/// [`ContentForm::marks`](super::ContentForm::marks).
pub(crate) fn marks() -> Vec<FormMark> {
    WORDS.map(FormMark::Text).to_vec()
}

static MARKS: LazyLock<Marks> = LazyLock::new(|| Marks::new(marks()));

/// Returns the position of the first byte string that may belong to a uuencoded file; see
/// [`ContentForm::first`](super::ContentForm::first).
pub(crate) fn first(bytes: &[u8], from: usize) -> Option<usize> {
    MARKS.first(bytes, from)
}

/// Returns true if a part may contain a uuencoded file, in its text or by its transfer encoding.
pub(crate) fn is_uuencoded(tree: &MessageTree<'_>, id: PartId) -> bool {
    let part = tree.part(id);
    encoded_part::is_encoded_part(tree, id)
        || part.content == PartKind::Leaf
            && part.essence == "text/plain"
            && !tree.has_disposition(id, "attachment")
}

/// Opens a text or an encoded part. Returns `Ok(false)` if it contains no block.
pub(crate) fn open(
    opening: &mut FormOpener<'_>,
    id: PartId,
    row: &mut Row,
) -> Result<bool, Refusal> {
    if encoded_part::is_encoded_part(opening.tree, id) {
        return encoded_part::open(opening, id, row);
    }
    let (tree, policy) = (opening.tree, opening.policy);
    let part = tree.part(id);
    let body = part.body.of(tree.original);
    // An unencoded text without the start of a block is skipped. An encoded one must be decoded before this can be tested.
    let is_plain = !part.encoding.is_encoded();
    if is_plain && memchr::memmem::find(body, BEGIN).is_none() {
        return Ok(false);
    }
    opening.ledger.work(body.len())?;
    let Some(text) = part.encoding.decode(body) else {
        return Ok(false);
    };
    if memchr::memmem::find(&text, BEGIN).is_none() {
        return Ok(false);
    }
    opening.ledger.work(text.len().saturating_mul(2))?;
    let mut blocks = blocks(&text);
    blocks.retain(|block| !block.bytes.is_empty());
    if blocks.is_empty() {
        return Ok(false);
    }
    row.bytes = Some(blocks.iter().map(|block| block.bytes.len() as u64).sum());
    if let Some(refusal) = protection(tree, id, policy) {
        return Err(refusal);
    }
    policy.judge_form(Follow::Uuencode)?;
    if tree.ids().count() + blocks.len() * 2 > policy.limits.parts {
        let detail = Detail::from(
            "with the uuencoded files as parts, the message would have more parts than ",
        )
        .naming(Setting::Parts);
        return Err(Refusal::lasting(Reason::TooManyParts, detail));
    }
    let charset = charset_of(tree, id);
    let mut files: Vec<(Span, NewLeaf<'_>)> = Vec::new();
    for block in blocks {
        // A file whose name cannot be decoded stays in the text. The next pass reports it in a row of its own.
        let Some(name) = name::decoded(block.name.of(&text), charset.as_deref()) else {
            continue;
        };
        policy.judge_type(guessed(Some(&name), &block.bytes))?;
        files.push((block.span, NewLeaf::file(&name, block.bytes)));
    }
    if files.is_empty() {
        return Err(name::refused());
    }
    let names: Vec<String> = files.iter().filter_map(|(_, it)| it.name.clone()).collect();
    let group = divided(tree, id, &text, files);
    opening.put(group, row)?;
    const MOST: usize = 10;
    let more = names.len().saturating_sub(MOST);
    let mut detail = names
        .iter()
        .take(MOST)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if more > 0 {
        detail.push_str(&format!(" and {more} more"));
    }
    row.detail = format!("the text contained {detail}").into();
    Ok(true)
}

/// Returns the charset that a part declares for its text.
fn charset_of(tree: &MessageTree<'_>, id: PartId) -> Option<Vec<u8>> {
    let declared = MediaType::parse(tree.value(id, "Content-Type")?);
    Some(declared.parameter("charset")?.into_owned())
}

/// Creates the edits that divide a text into the uuencoded files and the pieces of text before, between and after them.
/// The pieces keep the type and the encoding of the text.
fn divided(
    tree: &MessageTree<'_>,
    id: PartId,
    text: &[u8],
    files: Vec<(Span, NewLeaf<'_>)>,
) -> Group {
    let part = tree.part(id);
    let newline = tree.newline;
    let around = tree.boundaries();
    let mut parts: Vec<NewMimePart<'_>> = Vec::new();
    let fields = texts_fields(tree, id);
    let push_text = |parts: &mut Vec<NewMimePart<'_>>, piece: &[u8]| {
        if piece.trim_ascii().is_empty() {
            return;
        }
        let body = encoded(part.encoding, piece, newline);
        parts.push(NewMimePart::Raw([&fields, newline.bytes(), &body].concat()));
    };
    let mut at = 0;
    for (span, leaf) in files {
        push_text(&mut parts, &text[at..span.start]);
        at = span.end;
        parts.push(NewMimePart::Leaf(leaf));
    }
    push_text(&mut parts, &text[at..]);
    let above = part.parent.map(|above| tree.part(above));
    let boundary = above.and_then(|above| match above.essence.as_str() {
        "multipart/mixed" => above.content.boundary(),
        _ => None,
    });
    let end = newline.bytes();
    if let Some(boundary) = boundary {
        let line = [end, b"--", boundary, end].concat();
        let written: Vec<Vec<u8>> = parts.iter().map(|it| it.write(newline, &around)).collect();
        let mut new = written.join(line.as_slice());
        if tree.abuts_boundary(id) {
            new.extend_from_slice(end);
        }
        return vec![Edit::replace(part.span, new)];
    }
    let written: Vec<Vec<u8>> = parts.iter().map(|it| it.write(newline, &around)).collect();
    let content = written.concat();
    let boundary = parts::boundary(&content, newline, &around);
    drop(content);
    let parameters = [("boundary".to_owned(), boundary.clone())];
    let mut header = media_type::write("multipart/mixed", &parameters);
    if !part.encoding.is_encoded() && !text.is_ascii() {
        entity::push_field(
            &mut header,
            "Content-Transfer-Encoding",
            "8bit",
            Newline::CrLf,
        );
    }
    let mut header = with_newlines(header, newline);
    let mut body = Vec::new();
    for piece in written {
        body.extend_from_slice(&delimiter(&boundary, "", newline));
        body.extend_from_slice(&piece);
        body.extend_from_slice(end);
    }
    body.extend_from_slice(&delimiter(&boundary, "--", newline));
    if !part.body.of(tree.original).ends_with(b"\n") && !tree.abuts_boundary(id) {
        body.truncate(body.len() - end.len());
    }
    let mut group = Group::new();
    let mut place = None;
    let fields = tree.fields(id);
    for field in fields
        .iter(tree.original)
        .filter(|it| describes(it, tree.original))
    {
        match place {
            None => place = Some(field.whole),
            Some(_) => group.push(Edit::remove(field.whole)),
        }
    }
    if tree.is_message(id) && fields.first(tree.original, "MIME-Version").is_none() {
        let version = [b"MIME-Version: 1.0", end].concat();
        header.splice(..0, version);
    }
    group.push(Edit::replace(
        place.unwrap_or(Span::empty_at(part.agreed_end)),
        header,
    ));
    if part.separator.is_empty() {
        group.push(Edit::insert(part.agreed_end, end));
    }
    group.push(Edit::replace(part.body, body));
    group
}

fn describes(field: &crate::mime::Field, original: &[u8]) -> bool {
    let names = [
        "Content-Type",
        "Content-Transfer-Encoding",
        "Content-Disposition",
    ];
    names.iter().any(|name| field.is(original, name))
}

/// Returns the Content-Type and Content-Transfer-Encoding fields for the pieces of text before, between and after the
/// uuencoded files. Content-Disposition is left out, because it describes the whole original part.
fn texts_fields(tree: &MessageTree<'_>, id: PartId) -> Vec<u8> {
    let mut fields = Vec::new();
    for field in tree.fields(id).iter(tree.original) {
        let is_type = field.is(tree.original, "Content-Type");
        let is_encoding = field.is(tree.original, "Content-Transfer-Encoding");
        if (is_type || is_encoding)
            && !unfold(field.value.of(tree.original))
                .trim_ascii()
                .is_empty()
        {
            fields.extend_from_slice(field.whole.of(tree.original));
            if !fields.ends_with(b"\n") {
                fields.extend_from_slice(tree.newline.bytes());
            }
        }
    }
    fields
}

/// Encodes one piece of the text before, between or after the uuencoded files. Its last line ending is removed, because
/// the boundary line that follows begins with a line ending.
fn encoded(encoding: TransferEncoding, piece: &[u8], newline: Newline) -> Vec<u8> {
    let without_lf = piece.strip_suffix(b"\n").unwrap_or(piece);
    let text = without_lf.strip_suffix(b"\r").unwrap_or(without_lf);
    match encoding {
        TransferEncoding::Base64 => encode_base64(text, newline).body,
        TransferEncoding::QuotedPrintable => {
            let encoded = encode_like(encoding, text, true, newline, &[]);
            encoded.map_or_else(Vec::new, |encoded| encoded.body)
        }
        _ => text.to_vec(),
    }
}
