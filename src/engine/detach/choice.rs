//! Which parts leave, and why others that are as large stay.

use crate::engine::plan::protection;
use crate::external_body::{ExternalBody, Followed, NOTE_FIELD, Reading};
use crate::mime::header::has_control_character;
use crate::mime::media_type::{DEFAULT_TYPE, is_composite};
use crate::mime::{MediaType, PartId, PartKind, ScanLimits, Tree};
use crate::policy::{Policy, TypePattern};
use crate::report::{Reason, Refusal};

/// The reference to a body with fewer octets would be as large.
const LEAST: usize = 1 << 10;

/// Which attachments leave the mail.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Octets of a body in the mail, as it is encoded, from which on it leaves.
    pub larger_than: u64,
    /// Only these types; empty for all.
    pub types: Vec<TypePattern>,
    /// Whether what documents of the mail show leaves as well.
    pub takes_shown: bool,
}

/// The form of the reference in the place of a part that is detached.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Stub {
    /// message/external-body with a URL (RFC 2017).
    #[default]
    ExternalBody,
    /// As Thunderbird detaches, which shows a link.
    Thunderbird,
}

/// Attachments of 100 KiB and more, of all types, that documents of the mail do not show.
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
    /// The default of [`larger_than`](Self::larger_than).
    pub const LARGER_THAN: u64 = 100 << 10;

    /// `policy` is the default one, whatever the options: it protects parts.
    pub(super) fn judge(
        &self,
        tree: &Tree<'_>,
        part: PartId,
        policy: &Policy,
        limits: &ScanLimits,
    ) -> Option<Result<(), Refusal>> {
        let entity = tree.part(part);
        let essence = entity.essence.as_str();
        let is_chosen = self.types.is_empty() || self.types.iter().any(|it| it.matches(essence));
        if (entity.body.len() as u64) < self.larger_than
            || entity.body.len() < LEAST
            || !is_chosen
            || !is_leaf(tree, part)
        {
            return None;
        }
        // Signed or encrypted mail in one part (RFC 8551 §3).
        if ["application/pkcs7-mime", "application/x-pkcs7-mime"].contains(&essence) {
            let detail = format!("it is {essence}");
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
pub(crate) fn is_attachment(tree: &Tree<'_>, part: PartId, limits: &ScanLimits) -> bool {
    is_leaf(tree, part) && !is_reference(tree, part, limits)
}

fn is_leaf(tree: &Tree<'_>, part: PartId) -> bool {
    let entity = tree.part(part);
    let essence = entity.essence.as_str();
    let is_text = essence.starts_with("text/") || essence == "application/xhtml+xml";
    let is_shown = is_text && !tree.has_disposition(part, "attachment");
    // Composites may have parts that were not taken apart, and may stand under no encoding (RFC 2045 §6.4).
    entity.content == PartKind::Leaf && !is_composite(essence) && !is_shown
}

fn is_reference(tree: &Tree<'_>, part: PartId, limits: &ScanLimits) -> bool {
    ExternalBody::read(tree, part, &reading(limits)).is_some()
}

pub(super) fn reading(limits: &ScanLimits) -> Reading {
    Reading {
        header_limit: limits.header,
        most_notes: 0,
        forms: Followed::none(),
        beside: None,
    }
}

fn obstacle(tree: &Tree<'_>, part: PartId) -> Option<&'static str> {
    let entity = tree.part(part);
    let fields = || tree.fields(part).iter(tree.original);
    let is_twice = |name: &&str| fields().filter(|it| it.is(tree.original, name)).count() > 1;
    let mut once = ["Content-Transfer-Encoding", "Content-Type", "Content-MD5"].iter();
    let value = tree.value(part, "Content-Type");
    let is_default = value.is_some_and(|value| MediaType::parse(value).essence == DEFAULT_TYPE);
    Some(if entity.separator.is_empty() {
        "no empty line follows the header of the part"
    } else if entity.has_stray_lines() {
        // Some readers see the end of the header there, so there is no place that suits all of them.
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
        // Some readers go by another type than we do where a field is damaged.
        "the Content-Type field of the part is malformed"
    } else if tree.abuts_boundary(part) {
        "the boundary line after the part is not at the beginning of a line"
    } else {
        return None;
    })
}
