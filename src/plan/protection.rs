//! What may not be touched because of what it stands in.

use crate::mime::{PartId, Tree};
use crate::policy::{Policy, Protected};
use crate::report::{Reason, Refusal};

pub fn protection(tree: &Tree<'_>, part: PartId, policy: &Policy) -> Option<Refusal> {
    tree.ancestors(part).find_map(|above| {
        let essence = tree.part(above).essence.as_str();
        let refuse = |reason| {
            let number = tree.number(above);
            let place = if number.is_empty() {
                "the message"
            } else {
                &number
            };
            Some(Refusal::lasting(
                reason,
                format!("it is inside {place}, a {essence}"),
            ))
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
