//! Decides which parts are detached, and why other large parts stay in the message.

use crate::engine::external_body::NOTE_FIELD;
use crate::engine::forms::references;
use crate::engine::policy::{Followed, Policy, ReferenceParse, TypePattern};
use crate::engine::protection::protection;
use crate::engine::report::{Reason, Refusal};
use crate::mime::header::has_control_character;
use crate::mime::media_type::{DEFAULT_TYPE, is_composite};
use crate::mime::{MediaType, MessageTree, PartId, PartKind, ScanLimits};

/// Rules that select the attachments to detach.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Minimum length of a body in bytes, as it is encoded in the mail.
    pub larger_than: u64,
    /// Media types of the attachments that are detached. If the list is empty, all types are detached.
    pub types: Vec<TypePattern>,
    /// True if pictures and other parts that the HTML of the mail shows are also detached.
    pub takes_shown: bool,
}

/// The form of the reference that replaces a detached part.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Stub {
    /// message/external-body with a URL (RFC 2017).
    #[default]
    ExternalBody,
    /// The form in which Thunderbird detaches attachments. Thunderbird shows such a part as a link.
    Thunderbird,
}

/// By default, attachments of at least 100 KiB and of all types are detached, except parts that the HTML of the mail shows.
impl Default for Choice {
    fn default() -> Self {
        Self {
            larger_than: Self::LARGER_THAN,
            types: Vec::new(),
            takes_shown: false,
        }
    }
}

impl Choice {
    /// Default value of [`larger_than`](Self::larger_than), in bytes.
    pub const LARGER_THAN: u64 = 100 << 10;

    /// Minimum length of a body that is detached, in bytes. A reference to a shorter body would be as long as the body itself.
    pub(crate) const LEAST: u64 = 1 << 10;

    /// Decides whether a part is detached. Returns `None` if the part was not chosen, and a refusal if it was chosen but must
    /// stay. `policy` is always the default policy, so signed parts are protected whatever the options are.
    pub(super) fn judge(
        &self,
        tree: &MessageTree<'_>,
        part: PartId,
        policy: &Policy,
        limits: &ScanLimits,
    ) -> Option<Result<(), Refusal>> {
        let entity = tree.part(part);
        let essence = entity.essence.as_str();
        let is_chosen = self.types.is_empty() || self.types.iter().any(|it| it.matches(essence));
        if (entity.body.len() as u64) < self.larger_than.max(Self::LEAST)
            || !is_chosen
            || !is_leaf(tree, part)
        {
            return None;
        }
        // These types are a complete signed or encrypted message (RFC 8551 §3), which a change would break.
        if ["application/pkcs7-mime", "application/x-pkcs7-mime"].contains(&essence) {
            let detail = format!("the part has the type {essence}, which can be encrypted mail");
            return Some(Err(Refusal::lasting(Reason::Encrypted, detail)));
        }
        if is_reference(tree, part, limits) {
            return None;
        }
        let refusal = protection(tree, part, policy).or_else(|| {
            let obstacle = obstacle(tree, part)?;
            Some(Refusal::lasting(Reason::NotRestorable, obstacle))
        });
        Some(refusal.map_or(Ok(()), Err))
    }
}

#[cfg(feature = "cli")]
pub(crate) fn is_attachment(tree: &MessageTree<'_>, part: PartId, limits: &ScanLimits) -> bool {
    is_leaf(tree, part) && !is_reference(tree, part, limits)
}

fn is_leaf(tree: &MessageTree<'_>, part: PartId) -> bool {
    let entity = tree.part(part);
    let essence = entity.essence.as_str();
    let is_text = essence.starts_with("text/") || essence == "application/xhtml+xml";
    let is_shown = is_text && !tree.has_disposition(part, "attachment");
    // Only single parts are detached. A message or a multipart must not be encoded (RFC 2045 §6.4), and can contain
    // parts that were not parsed. Text that is not marked as an attachment is not detached, because mail clients show
    // it.
    entity.content == PartKind::Leaf && !is_composite(essence) && !is_shown
}

fn is_reference(tree: &MessageTree<'_>, part: PartId, limits: &ScanLimits) -> bool {
    references::read(tree, part, &reading(limits)).is_some()
}

pub(super) fn reading(limits: &ScanLimits) -> ReferenceParse {
    ReferenceParse {
        header_limit: limits.header,
        most_notes: 0,
        forms: Followed::none(),
        beside: None,
    }
}

fn obstacle(tree: &MessageTree<'_>, part: PartId) -> Option<&'static str> {
    let entity = tree.part(part);
    let fields = || tree.fields(part).iter(tree.original);
    let is_twice = |name: &&str| fields().filter(|it| it.is(tree.original, name)).count() > 1;
    let mut once = ["Content-Transfer-Encoding", "Content-Type", "Content-MD5"].iter();
    let value = tree.value(part, "Content-Type");
    let is_default = value.is_some_and(|value| MediaType::parse(value).essence == DEFAULT_TYPE);
    Some(if entity.separator.is_empty() {
        "no empty line follows the header of the part"
    } else if entity.has_stray_lines() {
        // For some programs the header ends at this line, so no position in the header is safe for a new field.
        "the header of the part has a line that is not a header field"
    } else if fields().any(|field| field.name.is_empty()) {
        "the header of the part begins with a blank or a tab"
    } else if fields().any(|field| field.is(tree.original, NOTE_FIELD)) {
        "the part already has an X-Embody-Detached field"
    } else if once.any(is_twice) {
        "the header of the part has the same field twice"
    } else if has_control_character(entity.header.of(tree.original)) {
        "the header of the part contains a NUL byte or a CR without LF"
    } else if is_default && entity.essence != DEFAULT_TYPE {
        // Programs read different types from a malformed field, so the part could not be restored for all of them.
        "the Content-Type field of the part is malformed"
    } else if tree.abuts_boundary(part) {
        "the boundary line after the part is not at the beginning of a line"
    } else {
        return None;
    })
}
