//! Finds parts that must not be changed: parts of reports, signed and encrypted parts, and parts that were not parsed because
//! of a limit.

use crate::engine::policy::{Policy, Protected};
use crate::engine::report::{Detail, Reason, Refusal, Setting};
use crate::mime::{Limit, MessageTree, PartId, PartKind};
use crate::span::Span;

pub(crate) fn protection(tree: &MessageTree<'_>, part: PartId, policy: &Policy) -> Option<Refusal> {
    tree.ancestors(part).find_map(|above| {
        let essence = tree.part(above).essence.as_str();
        let refuse = |reason| {
            let number = tree.number(above);
            let detail = if number.is_empty() {
                format!("the message is a {essence}, so its parts are not changed")
            } else {
                format!("the part is inside part {number}, which is a {essence}")
            };
            Some(Refusal::lasting(reason, detail))
        };
        match essence {
            "multipart/report" => refuse(Reason::InsideReport),
            _ if policy.protected == Protected::Rewrite => None,
            "multipart/signed" => refuse(Reason::Signed),
            "multipart/encrypted" => refuse(Reason::Encrypted),
            _ => None,
        }
    })
}

fn place(tree: &MessageTree<'_>, part: PartId) -> String {
    let number = tree.number(part);
    if number.is_empty() {
        "the message".to_owned()
    } else {
        number
    }
}

#[cfg(feature = "cli")]
pub(crate) fn opaque_details(tree: &MessageTree<'_>) -> impl Iterator<Item = Detail> {
    opaque_parts(tree)
        .map(|(id, _, refusal)| Detail::from(format!("{}: ", place(tree, id))).then(refusal.detail))
}

pub(crate) fn opaque_parts(
    tree: &MessageTree<'_>,
) -> impl Iterator<Item = (PartId, Span, Refusal)> {
    tree.ids().filter_map(|id| {
        let part = tree.part(id);
        let (limit, span) = match &part.content {
            PartKind::Opaque(Limit::HeaderTooLarge) => (Limit::HeaderTooLarge, part.span),
            PartKind::Opaque(limit) => (*limit, part.body),
            PartKind::Multipart(multipart) => (multipart.overflow?, multipart.epilogue),
            PartKind::Leaf | PartKind::Message => return None,
        };
        let (reason, what, setting) = match limit {
            Limit::TooDeep => (
                Reason::TooDeep,
                "the part is nested too deep",
                Setting::Depth,
            ),
            Limit::TooManyParts => (
                Reason::TooManyParts,
                "the part contains too many parts",
                Setting::Parts,
            ),
            Limit::HeaderTooLarge => {
                let what = "the part has too large a header";
                (Reason::HeaderTooLarge, what, Setting::Header)
            }
        };
        let detail = Detail::from(format!("{what} for "))
            .naming(setting)
            .then(", so embody did not examine the content of the part");
        Some((id, span, Refusal::lasting(reason, detail)))
    })
}
