//! What a limit of the scanner kept from being looked into.

use crate::mime::{Content, Limit, PartId, Tree};
use crate::report::{Detail, Reason, Refusal, Setting};
use crate::span::Span;

#[cfg(feature = "cli")]
pub fn opaque_details(tree: &Tree<'_>) -> impl Iterator<Item = Detail> {
    opaque_parts(tree).map(|(id, _, refusal)| {
        let number = tree.number(id);
        let place = match number.as_str() {
            "" => "the message",
            number => number,
        };
        Detail::from(format!("{place}: ")).then(refusal.detail)
    })
}

/// The parts that were not looked into, or not to their end, because of a bound; and their bytes that were not.
pub fn opaque_parts(tree: &Tree<'_>) -> impl Iterator<Item = (PartId, Span, Refusal)> {
    tree.ids().filter_map(|id| {
        let part = tree.part(id);
        let (limit, span) = match &part.content {
            Content::Opaque(Limit::HeaderTooLarge) => (Limit::HeaderTooLarge, part.span),
            Content::Opaque(limit) => (*limit, part.body),
            Content::Multipart(multipart) => (multipart.overflow?, multipart.epilogue),
            Content::Leaf | Content::Message => return None,
        };
        let (reason, what, setting) = match limit {
            Limit::TooDeep => (Reason::TooDeep, "is nested too deep", Setting::Depth),
            Limit::TooManyParts => (Reason::TooManyParts, "has too many parts", Setting::Parts),
            Limit::HeaderTooLarge => {
                let what = "has too large a header";
                (Reason::HeaderTooLarge, what, Setting::Header)
            }
        };
        let detail = Detail::from(format!("{what} for "))
            .naming(setting)
            .then(", and was not looked into further");
        Some((id, span, Refusal::lasting(reason, detail)))
    })
}
