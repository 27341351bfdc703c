//! Opens `winmail.dat`: a TNEF part is replaced by its content (MS-OXTNEF; docs/outlook.md).
//!
//! The part is removed only if the new parts contain everything in it. A damaged file, or one with content that mail cannot
//! contain, stays next to the new parts, and the row contains the reason. Signed and encrypted parts are not changed.

use std::sync::LazyLock;

use super::marks::{FormMark, Marks, begins, ends_word};
use super::opening::FormOpener;
use crate::engine::outlook::compose::{self, ItemParts};
use crate::engine::outlook::tnef;
use crate::engine::parts::NewLeaf;
use crate::engine::policy::{Follow, Policy};
use crate::engine::protection::protection;
use crate::engine::report::{Detail, Reason, Refusal, Row, Setting};
use crate::engine::search_words::{PrefilterWord, word};
use crate::mime::{MessageTree, PartId, PartKind, entity};

/// Start of a body that contains TNEF: in base64, in quoted-printable, and without an encoding. The base64 string ends before
/// the first symbol that depends on further bytes.
const STARTS: [&[u8]; 4] = [b"eJ8+I", b"x=9F>\"", b"x=9f>\"", tnef::SIGNATURE];

/// Returns byte strings of which at least one occurs in every message with a winmail.dat; see
/// [`ContentForm::marks`](super::ContentForm::marks). These are the first bytes of TNEF, and `ms-tnef` from the media type,
/// for bodies that begin differently.
pub(crate) fn marks() -> Vec<FormMark> {
    let declared = FormMark::Word {
        text: b"ms-tnef",
        anchor: 2,
    };
    STARTS
        .map(FormMark::Line)
        .into_iter()
        .chain([declared])
        .collect()
}

/// Word in the media type of the part.
pub(crate) static WORDS: [PrefilterWord; 1] = [MS_TNEF];

const MS_TNEF: PrefilterWord = word("ms-tnef", 2).before(ends_word);

/// Words of the media types that [`is_tnef`] accepts.
pub(crate) static TYPES: [PrefilterWord; 2] = [MS_TNEF, word("octet-stream", 5)];

static MARKS: LazyLock<Marks> = LazyLock::new(|| Marks::new(marks()));

/// Returns the position of the first byte string that may belong to a winmail.dat; see
/// [`ContentForm::first`](super::ContentForm::first).
pub(crate) fn first(bytes: &[u8], from: usize) -> Option<usize> {
    MARKS.first(bytes, from)
}

/// Number of levels that an enclosed item can add to the tree of parts. The limit on the depth of parts, divided by this
/// number, limits how deeply enclosed items can be nested.
const LEVELS: usize = 3;
/// Maximum nesting depth of enclosed items.
const DEEPEST: usize = 20;

/// Returns true if the media type or the first bytes of the part are those of TNEF.
pub(crate) fn is_tnef(tree: &MessageTree<'_>, id: PartId) -> bool {
    let part = tree.part(id);
    let is_declared = matches!(
        part.essence.as_str(),
        "application/ms-tnef" | "application/vnd.ms-tnef"
    );
    part.content == PartKind::Leaf
        && (is_declared
            || part.essence == "application/octet-stream" && begins(part, tree.original, &STARTS))
}

/// Opens a part. Returns `Ok(false)` if an earlier pass has already added its row.
pub(crate) fn open(
    opening: &mut FormOpener<'_>,
    id: PartId,
    row: &mut Row,
) -> Result<bool, Refusal> {
    let (tree, policy) = (opening.tree, opening.policy);
    if let Some(refusal) = protection(tree, id, policy) {
        return Err(refusal);
    }
    policy.judge_form(Follow::Winmail)?;
    let part = tree.part(id);
    let body = part.body.of(tree.original);
    opening.ledger.work(body.len())?;
    let bytes = part.encoding.decode(body).ok_or_else(|| {
        let detail = "the transfer encoding of winmail.dat is damaged or not supported";
        Refusal::lasting(Reason::UndecodableBody, detail)
    })?;
    row.bytes = Some(bytes.len() as u64);
    let digest = entity::sha256(&bytes);
    if opening.handled.has(&digest) {
        return Ok(false);
    }
    // The content of an enclosed item is written once for itself and again as part of each item that contains it, so the size
    // counts twice.
    opening.ledger.work(bytes.len().saturating_mul(2))?;
    let depth = (policy.limits.depth.saturating_sub(part.depth) / LEVELS).min(DEEPEST);
    let stream = tnef::read(&bytes, depth);
    let mut contents = compose::of(&stream.item);
    for leaves in [&mut contents.pictures, &mut contents.attachments] {
        contents.unmapped.extend(refused(policy, leaves));
    }
    let keeps = !contents.unmapped.is_empty() || !stream.damage.is_empty();
    let told = told(&contents, &stream.damage);
    let had = contents.leaves().count() + usize::from(contents.rtf_text.is_some());
    // A file without any content may be truncated, so it is kept even if it shows no damage.
    if had == 0 {
        let reason = if stream.damage.iter().all(|it| it.is_unknown()) {
            Reason::NoCounterpart
        } else {
            Reason::DamagedFile
        };
        return Err(Refusal::lasting(reason, told.kept));
    }
    if tree.ids().count() + had > policy.limits.parts {
        let detail = Detail::from(
            "with the content of winmail.dat, the message would have more parts than ",
        )
        .naming(Setting::Parts);
        return Err(Refusal::lasting(Reason::TooManyParts, detail));
    }
    let already = || {
        let what = "embody put everything that could be read from winmail.dat into the mail";
        format!("{what}; {}", told.kept)
    };
    let parts = opening.put_contents(id, digest, (contents, keeps), already, row)?;
    row.detail = match parts {
        None => return Ok(false),
        Some(0) => "the mail already contains everything in winmail.dat".into(),
        Some(_) => told.content.into(),
    };
    if keeps {
        row.remark(&told.kept);
    }
    if !told.properties.is_empty() {
        row.remark(&told.properties);
    }
    Ok(true)
}

/// Removes parts whose type the policy does not allow. Returns a sentence about each of them for the report.
fn refused(policy: &Policy, leaves: &mut Vec<NewLeaf<'_>>) -> Vec<String> {
    let mut refused = Vec::new();
    leaves.retain(|leaf| match policy.judge_type(&leaf.essence) {
        Ok(()) => true,
        Err(refusal) => {
            let name = leaf.name.as_deref().unwrap_or("without a name");
            refused.push(format!("attachment {name}: {}", refusal.detail));
            false
        }
    });
    refused
}

/// Start of the sentence about what could not be extracted, in the detail of a row.
pub(crate) const KEPT: &str = "winmail.dat is kept: ";

/// Sentences about a TNEF file, for its row in the report.
struct TnefSentences {
    content: String,
    kept: String,
    properties: String,
}

fn told(contents: &ItemParts<'_>, damage: &[tnef::TnefDamage]) -> TnefSentences {
    let texts = [
        (contents.text.is_some(), "text"),
        (contents.html.is_some(), "HTML"),
        (contents.calendar.is_some(), "a calendar"),
        (contents.report.is_some(), "a report"),
    ];
    let mut words: Vec<String> = texts
        .into_iter()
        .filter(|(is_there, _)| *is_there)
        .map(|(_, name)| name.to_owned())
        .collect();
    let counted = |count: usize, name: &str| match count {
        0 => None,
        1 => Some(format!("1 {name}")),
        _ => Some(format!("{count} {name}s")),
    };
    words.extend(counted(contents.pictures.len(), "picture"));
    words.extend(counted(contents.attachments.len(), "attachment"));
    let content = if words.is_empty() {
        "winmail.dat contained nothing".to_owned()
    } else {
        format!("winmail.dat contained {}", words.join(", "))
    };
    let mut kept: Vec<String> = damage.iter().map(|it| it.what().to_owned()).collect();
    // Maximum number of faults that the report lists for one file. A hostile file can have thousands.
    const MOST: usize = 10;
    kept.extend(contents.unmapped.iter().take(MOST).cloned());
    let more = contents.unmapped.len().saturating_sub(MOST);
    kept.extend(counted(more, "further item"));
    if kept.is_empty() && words.is_empty() {
        kept.push("embody found no text and no attachment in the file".to_owned());
    }
    let properties = match contents.properties.as_slice() {
        [] => String::new(),
        names => format!("mail has no field for: {}", names.join(", ")),
    };
    TnefSentences {
        content,
        kept: format!("{KEPT}{}", kept.join("; ")),
        properties,
    }
}
