//! Opens `rtf-body.rtf`: RTF that readpst and Emailchemy attach instead of the HTML or text that it encapsulates.
//!
//! If the RTF encapsulates HTML or text, this replaces it. Other RTF stays an attachment. If the mail has no text, the text of
//! the RTF also becomes its body.

use std::sync::LazyLock;

use super::marks::{FormMark, Marks};
use super::opening::FormOpener;
use super::place::has_text;
use crate::engine::outlook::compose::ItemParts;
use crate::engine::outlook::rtf::{self, RtfDamage, RtfOrigin, RtfText};
use crate::engine::parts::NewLeaf;
use crate::engine::policy::Follow;
use crate::engine::protection::protection;
use crate::engine::report::{Refusal, Row};
use crate::mime::{MediaType, MessageTree, PartId, PartKind, entity};

/// Name that readpst and Emailchemy give to the RTF body of a mail.
pub(crate) const NAME: &[u8] = b"rtf-body.rtf";

const TYPES: [&str; 3] = ["application/rtf", "text/rtf", "text/richtext"];

/// File suffixes and media type endings of RTF, each in the upper-case and lower-case spellings that programs write.
const WORDS: [&[u8]; 5] = [b".rtf", b".RTF", b"/rtf", b"/RTF", b"/richtext"];

/// Returns byte strings of which at least one occurs in every message with an RTF file; see
/// [`ContentForm::marks`](super::ContentForm::marks).
pub(crate) fn marks() -> Vec<FormMark> {
    WORDS.map(FormMark::Text).to_vec()
}

static MARKS: LazyLock<Marks> = LazyLock::new(|| Marks::new(marks()));

/// Returns the position of the first byte string that may belong to an RTF file; see
/// [`ContentForm::first`](super::ContentForm::first).
pub(crate) fn first(bytes: &[u8], from: usize) -> Option<usize> {
    MARKS.first(bytes, from)
}

pub(crate) fn is_rtf(tree: &MessageTree<'_>, id: PartId) -> bool {
    let part = tree.part(id);
    let named = |field: &str, parameter: &str| {
        let value = tree.value(id, field)?;
        MediaType::parse(value).name(parameter).text()
    };
    let name = named("Content-Disposition", "filename")
        .or_else(|| named("Content-Type", "name"))
        .unwrap_or_default()
        .to_ascii_lowercase();
    let is_type = TYPES.contains(&part.essence.as_str())
        || part.essence == "application/octet-stream" && name.ends_with(".rtf");
    let is_body = name.as_bytes() == NAME || !tree.has_disposition(id, "attachment");
    part.content == PartKind::Leaf && is_type && is_body
}

/// Opens a part. Returns `Ok(false)` if the RTF is an ordinary attachment, or if an earlier pass has already added its row.
pub(crate) fn open(
    opening: &mut FormOpener<'_>,
    id: PartId,
    row: &mut Row,
) -> Result<bool, Refusal> {
    let tree = opening.tree;
    let part = tree.part(id);
    let body = part.body.of(tree.original);
    opening.ledger.work(body.len())?;
    let Some(bytes) = part.encoding.decode(body) else {
        return Ok(false);
    };
    let digest = entity::sha256(&bytes);
    if opening.handled.has(&digest) {
        return Ok(false);
    }
    opening.ledger.work(bytes.len().saturating_mul(2))?;
    let Some(rtf) = rtf::read(&bytes) else {
        return Ok(false);
    };
    let keeps = rtf.source == RtfOrigin::Rtf || rtf.damage.is_some();
    if rtf.source == RtfOrigin::Rtf && (has_text(tree, id) || rtf.text.trim().is_empty()) {
        return Ok(false);
    }
    if let Some(refusal) = protection(tree, id, opening.policy) {
        return Err(refusal);
    }
    opening.policy.judge_form(Follow::RtfBody)?;
    row.bytes = Some(bytes.len() as u64);
    let (what, damage) = (what(&rtf), damage(&rtf));
    let already =
        || format!("embody put everything that could be read from the RTF into the mail{damage}");
    let parts = opening.put_contents(id, digest, (contents(rtf), keeps), already, row)?;
    row.detail = match parts {
        None => return Ok(false),
        Some(0) => "the mail already contains the text from which the RTF was made".into(),
        Some(_) => format!("{what}{damage}").into(),
    };
    Ok(true)
}

fn what(rtf: &RtfText) -> &'static str {
    match rtf.source {
        RtfOrigin::Html => "Outlook stored this HTML as RTF; embody converted it back to HTML",
        RtfOrigin::Text => {
            "Outlook stored this text as RTF; embody converted it back to plain text"
        }
        RtfOrigin::Rtf => {
            "the mail had no text: the text of the RTF is now the text of the mail, and the RTF stays attached"
        }
    }
}

fn damage(rtf: &RtfText) -> &'static str {
    match rtf.damage {
        None => "",
        Some(RtfDamage::Charset) => {
            "; the RTF stays attached, because it contains characters that do not exist in the declared charset"
        }
        Some(_) => "; the RTF stays attached, because the end of the RTF is missing",
    }
}

fn contents(rtf: RtfText) -> ItemParts<'static> {
    let mut contents = ItemParts::default();
    let leaf = |essence, text: String| Some(NewLeaf::text(essence, text));
    match rtf.source {
        RtfOrigin::Html => contents.html = leaf("text/html", rtf.text),
        RtfOrigin::Text => contents.text = leaf("text/plain", rtf.text),
        RtfOrigin::Rtf => contents.rtf_text = leaf("text/plain", rtf.text),
    }
    contents
}
