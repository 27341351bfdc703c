//! What a limit of the scanner kept from being looked into.

use std::fmt;

use crate::mime::{Content, Limit, PartId, Tree};
use crate::report::{Reason, Refusal};
use crate::span::Span;

/// A part that was not looked into, or not to its end, because of a bound.
#[derive(Clone, Debug)]
pub struct OpaquePart {
    /// The part.
    pub part: PartId,
    /// Its number; empty for the message itself.
    pub number: String,
    /// What was not looked into.
    pub span: Span,
    /// The bound.
    pub refusal: Refusal,
}

impl fmt::Display for OpaquePart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.number.as_str() {
            "" => "the message",
            number => number,
        };
        write!(formatter, "{place}: {}", self.refusal.detail)
    }
}

/// The parts that were not looked into because of a bound.
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
            let (reason, what, option) = match limit {
                Limit::TooDeep => (Reason::TooDeep, "is nested too deep", "--max-depth"),
                Limit::TooManyParts => (Reason::TooManyParts, "has too many parts", "--max-parts"),
                Limit::HeaderTooLarge => (
                    Reason::HeaderTooLarge,
                    "has too large a header",
                    "--max-header",
                ),
            };
            let detail = format!("{what} and was not looked into further; {option} is the limit");
            Some(OpaquePart {
                part: id,
                number: tree.number(id),
                span,
                refusal: Refusal::lasting(reason, detail),
            })
        })
        .collect()
}
