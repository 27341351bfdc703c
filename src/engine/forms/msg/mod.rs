//! Opens `.msg` files: an Outlook message that is attached to a mail becomes a message/rfc822 part (MS-OXMSG;
//! docs/outlook.md).
//!
//! The file is removed only if the new message contains everything in it. A damaged file, or one with content that mail cannot
//! contain, stays next to the message, and the row contains the reason. Signed and encrypted parts are not changed.

use std::sync::LazyLock;

use super::marks::{FormMark, Marks, begins};
use super::opening::FormOpener;
use crate::engine::outlook::compose::ItemParts;
use crate::engine::outlook::{msg, source};
use crate::engine::parts::{NewBody, NewLeaf};
use crate::engine::policy::Follow;
use crate::engine::protection::protection;
use crate::engine::report::{Reason, Refusal, Row, Setting};
use crate::mime::{MediaType, MessageTree, PartId, PartKind, entity};

/// Start of a body that contains a compound file, in base64 and without an encoding. Quoted-printable has too many spellings,
/// so such a part is recognised only by its media type.
const STARTS: [&[u8]; 2] = [b"0M8R4KGxGuE", msg::SIGNATURE];

/// Returns byte strings of which at least one occurs in every message with a `.msg` file; see
/// [`ContentForm::marks`](super::ContentForm::marks).
pub(crate) fn marks() -> Vec<FormMark> {
    let declared = FormMark::Word {
        text: b"vnd.ms-outlook",
        anchor: 6,
    };
    STARTS
        .map(FormMark::Line)
        .into_iter()
        .chain([declared])
        .collect()
}

static MARKS: LazyLock<Marks> = LazyLock::new(|| Marks::new(marks()));

/// Returns the position of the first byte string that may belong to a `.msg` file; see
/// [`ContentForm::first`](super::ContentForm::first).
pub(crate) fn first(bytes: &[u8], from: usize) -> Option<usize> {
    MARKS.first(bytes, from)
}

/// Number of levels that an attached message can add to the tree of parts. The limit on the depth of parts, divided by this
/// number, limits how deeply attached messages can be nested.
const LEVELS: usize = 3;
/// Maximum nesting depth of attached messages.
const DEEPEST: usize = 20;

/// Returns true if the part is declared as an Outlook message, or if its name and its first bytes are those of one.
pub(crate) fn is_msg(tree: &MessageTree<'_>, id: PartId) -> bool {
    let part = tree.part(id);
    let is_named = || {
        let name = name_of(tree, id).unwrap_or_default().to_ascii_lowercase();
        name.ends_with(".msg") || name.ends_with(".oft")
    };
    part.content == PartKind::Leaf
        && match part.essence.as_str() {
            "application/vnd.ms-outlook" => true,
            "application/octet-stream" | "application/x-msg" | "application/msoutlook" => {
                is_named() && begins(part, tree.original, &STARTS)
            }
            _ => false,
        }
}

fn name_of(tree: &MessageTree<'_>, id: PartId) -> Option<String> {
    let named = |field: &str, parameter: &str| {
        let value = tree.value(id, field)?;
        MediaType::parse(value).name(parameter).text()
    };
    named("Content-Disposition", "filename").or_else(|| named("Content-Type", "name"))
}

/// Opens a part. Returns `Ok(false)` if it is not an Outlook message, or if an earlier pass has already added its row.
pub(crate) fn open(
    opening: &mut FormOpener<'_>,
    id: PartId,
    row: &mut Row,
) -> Result<bool, Refusal> {
    let (tree, policy) = (opening.tree, opening.policy);
    let part = tree.part(id);
    let body = part.body.of(tree.original);
    opening.ledger.work(body.len())?;
    let Some(bytes) = part.encoding.decode(body) else {
        return Ok(false);
    };
    // `.pst` mailboxes have the same media type as `.msg` files, but do not begin with the signature of a compound
    // file.
    if !bytes.starts_with(msg::SIGNATURE) {
        return Ok(false);
    }
    let digest = entity::sha256(&bytes);
    if opening.handled.has(&digest) {
        return Ok(false);
    }
    if let Some(refusal) = protection(tree, id, policy) {
        return Err(refusal);
    }
    policy.judge_form(Follow::Msg)?;
    row.bytes = Some(bytes.len() as u64);
    // The content of an enclosed message is written once for itself and again as part of each message that contains it, so the
    // size counts twice.
    opening.ledger.work(bytes.len().saturating_mul(2))?;
    let depth = (policy.limits.depth.saturating_sub(part.depth) / LEVELS).min(DEEPEST);
    let message = msg::read(&bytes, depth).map_err(|why| {
        Refusal::lasting(
            Reason::DamagedFile,
            format!("the attached Outlook message cannot be read: {why}"),
        )
    })?;
    policy.judge_type("message/rfc822")?;
    let mut mail = source::mail(&message.item);
    // The last line ending is removed, because the boundary line that follows begins with one.
    if mail.content.ends_with(b"\n") {
        mail.content.pop();
    }
    let mut missing = message.damage;
    missing.extend(mail.missing);
    if tree.ids().count() + 1 > policy.limits.parts {
        let detail = crate::engine::report::Detail::from(
            "with the Outlook message, the mail would have more parts than ",
        );
        return Err(Refusal::lasting(
            Reason::TooManyParts,
            detail.naming(Setting::Parts),
        ));
    }
    let mut leaf = NewLeaf::new("message/rfc822", NewBody::Message(mail.content));
    leaf.is_attachment = true;
    leaf.name = name_of(tree, id).map(|name| {
        let end = name.len().saturating_sub(4);
        let is_known = |suffix: &str| {
            suffix.eq_ignore_ascii_case(".msg") || suffix.eq_ignore_ascii_case(".oft")
        };
        match name.split_at_checked(end) {
            Some((stem, suffix)) if is_known(suffix) && !stem.is_empty() => format!("{stem}.eml"),
            _ => format!("{name}.eml"),
        }
    });
    let contents = ItemParts {
        attachments: vec![leaf],
        ..ItemParts::default()
    };
    let keeps = !missing.is_empty();
    let kept = kept(&missing);
    let already = || format!("embody put the Outlook message into the mail; {kept}");
    let parts = opening.put_contents(id, digest, (contents, keeps), already, row)?;
    row.detail = match parts {
        None => return Ok(false),
        Some(0) => "the mail already contains the message".into(),
        Some(_) => "an Outlook message became an attached mail".into(),
    };
    if keeps {
        row.remark(&kept);
    }
    Ok(true)
}

/// Start of the sentence about what could not be converted, in the detail of a row.
pub(crate) const KEPT: &str = "the .msg file stays attached: ";

fn kept(missing: &[String]) -> String {
    // Maximum number of faults that the report lists for one file. A hostile file can have thousands.
    const MOST: usize = 10;
    let mut said: Vec<String> = missing.iter().take(MOST).cloned().collect();
    let more = missing.len().saturating_sub(MOST);
    if more > 0 {
        said.push(format!("{more} further items"));
    }
    format!("{KEPT}{}", said.join("; "))
}
