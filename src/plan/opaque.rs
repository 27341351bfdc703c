//! What a limit of the scanner kept from being looked into.

use crate::mime::{Content, Limit, PartId, Tree};
use crate::report::{Detail, Reason, Refusal, Setting};
use crate::span::Span;

/// A part that was not looked into, or not to its end, because of a bound.
#[derive(Clone, Debug)]
pub struct OpaquePart {
    pub part: PartId,
    /// Its number; empty for the message itself.
    pub number: String,
    /// The bytes that were not looked into.
    pub span: Span,
    pub refusal: Refusal,
}

#[cfg(feature = "cli")]
impl OpaquePart {
    #[must_use]
    pub fn detail(&self) -> Detail {
        let place = match self.number.as_str() {
            "" => "the message",
            number => number,
        };
        Detail::from(format!("{place}: ")).then(self.refusal.detail.clone())
    }
}

#[must_use]
pub fn opaque_parts(tree: &Tree) -> Vec<OpaquePart> {
    tree.ids()
        .filter_map(|id| {
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
            Some(OpaquePart {
                part: id,
                number: tree.number(id),
                span,
                refusal: Refusal::lasting(reason, detail),
            })
        })
        .collect()
}
