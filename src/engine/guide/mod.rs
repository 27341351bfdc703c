//! Takes the answers and choices of a run from another mail: the result of an earlier run that is to be proved
//! (docs/compare.md).
//!
//! A run with a guide retrieves nothing. Where an earlier run inserted content, the guide returns this content. Where it left
//! a reference or a link, the guide refuses the content. The guide need not be right: a wrong answer gives other bytes than
//! those of the mail, and then nothing is proved. So the guide may trust names and positions in untrusted mail.

mod documents;
mod facts;
mod later;
mod line_endings;
mod names;
mod part;
mod references;
mod source;
mod stand_in;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

pub(super) use self::documents::PictureChoice;
pub(super) use self::facts::{Guide, LaterParts};
use self::line_endings::LineEndingSearch;
pub(super) use self::names::{DIGITS, DOMAIN, digits_of, not_in_mail};
pub(super) use self::part::GuidePart;
pub(super) use self::references::noted_pages;
pub(super) use self::stand_in::{StandIn, StandInFacts, StandIns};
use super::ledger::Ledger;
use super::policy::Policy;
use super::text_lines::unquoted_text;
use crate::mime::{self, MessageTree, PartId, PartKind};

impl Guide {
    /// Creates a guide from `new`, the result of a run over `old`. Parts that are already in `old` are never used as
    /// content for references.
    pub(super) fn of(old: &MessageTree<'_>, new: &[u8], policy: &Policy) -> Arc<Self> {
        Self::standing(old, new, policy, &StandIns::default())
    }

    /// Creates a guide from a result that may contain these placeholders.
    pub(super) fn standing(
        old: &MessageTree<'_>,
        new: &[u8],
        policy: &Policy,
        stand_ins: &StandIns,
    ) -> Arc<Self> {
        Arc::new(Self::read(old, new, policy, stand_ins))
    }

    /// Creates a guide for the first of several successive runs. Later ones added the parts `later`.
    pub(super) fn earlier(
        old: &MessageTree<'_>,
        new: &[u8],
        policy: &Policy,
        (later, stand_ins): (LaterParts, &StandIns),
    ) -> Arc<Self> {
        Arc::new(Self {
            later: Some(later),
            ..Self::read(old, new, policy, stand_ins)
        })
    }

    fn read(old: &MessageTree<'_>, new: &[u8], policy: &Policy, stand_ins: &StandIns) -> Self {
        let limits = policy.limits.scan();
        let mut known: HashMap<u64, usize> = HashMap::new();
        for part in old.ids() {
            *known.entry(digest_of_part(old, part)).or_default() += 1;
        }
        let shared = Bytes::copy_from_slice(new);
        let tree = mime::scan(new, &limits);
        let mut parts = Vec::new();
        let mut by_id: HashMap<String, Vec<usize>> = HashMap::new();
        for part in tree.ids() {
            let of_old = known.get_mut(&digest_of_part(&tree, part));
            let is_new = match of_old {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    false
                }
                _ => true,
            };
            let read = GuidePart::read(&tree, part, &shared, is_new);
            read.stand_in(stand_ins);
            if let Some(content_id) = &read.content_id {
                let bearers = by_id.entry(content_id.clone()).or_default();
                bearers.push(parts.len());
            }
            parts.push(read);
        }
        let mut ledger = Ledger::new(&policy.limits, new.len());
        Self {
            documents: documents::of_mail(&tree, policy, &mut ledger),
            references: references::left_in(&tree, policy, &mut ledger),
            parts,
            by_id,
            later: None,
            line_endings: LineEndingSearch::default(),
            stand_ins: Arc::clone(stand_ins),
            mail: shared,
            #[cfg(feature = "cli")]
            contents: OnceLock::new(),
        }
    }
}

/// Returns a digest of the content of a part, which is independent of its transfer encoding, of line endings, and of the
/// quoting of `From ` lines. It only selects candidates, so it need not be collision-resistant.
pub(super) fn digest_of_part(tree: &MessageTree<'_>, part: PartId) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};

    let entity = tree.part(part);
    let body = entity.body.of(tree.original);
    let mut hasher = DefaultHasher::new();
    entity.essence.hash(&mut hasher);
    match entity.content {
        PartKind::Leaf => {
            let decoded = entity.encoding.decode(body);
            let octets = decoded.as_deref().unwrap_or(body);
            if entity.essence.starts_with("text/") || entity.essence.starts_with("message/") {
                unquoted_text(octets).trim_ascii_end().hash(&mut hasher);
            } else {
                octets.hash(&mut hasher);
            }
        }
        _ => unquoted_text(body).trim_ascii_end().hash(&mut hasher),
    }
    hasher.finish()
}
