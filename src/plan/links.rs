//! What becomes of the links of the documents of a message (docs/design.md, "Links"): an item for each document in
//! which something would change, or may not.

use std::collections::{BTreeMap, BTreeSet};

use super::documents::Documents;
use super::documents::new_links::{NewLinks, unclear};
use crate::edit::Group;
use crate::ledger::Ledger;
use crate::link::url::masked;
use crate::mime::{PartId, Tree};
use crate::policy::Policy;
use crate::report::{Kind, Outcome, Refusal, Row};

/// The links of one document.
#[derive(Clone, Debug)]
pub struct DocumentLinks {
    number: String,
    essence: String,
    /// Octets of the document as it is encoded.
    octets: usize,
    /// What becomes of them, or why they are left.
    decision: Result<NewLinks, Refusal>,
}

/// Plans the links of every document, in their order; and which parts are to get which Content-ID for that.
pub(super) fn links(
    original: &[u8],
    tree: &Tree,
    policy: &Policy,
    ledger: &mut Ledger,
) -> (Vec<DocumentLinks>, BTreeMap<PartId, String>) {
    let mut documents = Documents::new(original, tree, policy);
    let mut links = Vec::new();
    let mut content_ids = BTreeMap::new();
    for part in tree.ids() {
        let Some(decision) = documents.new_links(part, ledger) else {
            continue;
        };
        for named in decision.iter().flat_map(|new| &new.named) {
            let identity = documents.identity(*named);
            if identity.is_made {
                content_ids.insert(*named, identity.content_id.clone());
            }
        }
        links.push(DocumentLinks {
            number: tree.number(part),
            essence: tree.part(part).essence.clone(),
            octets: tree.part(part).body.len(),
            decision,
        });
    }
    (links, content_ids)
}

impl DocumentLinks {
    /// The edits of the document, and the parts that it is pointed at; none if it is left.
    #[must_use]
    pub fn edits(&mut self) -> Option<(Group, BTreeSet<PartId>)> {
        let new = self.decision.as_mut().ok()?;
        Some((
            std::mem::take(&mut new.edits),
            std::mem::take(&mut new.named),
        ))
    }

    /// Leaves the document after all.
    pub fn leave(&mut self, refusal: Refusal) {
        self.decision = Err(refusal);
    }

    /// What the report says of them if the document is changed.
    #[must_use]
    pub fn row(&self, message: &str) -> Row {
        let mut row = Row::new(message, self.number.clone(), Kind::Link, Outcome::Left);
        row.media_type = Some(self.essence.clone());
        row.bytes = Some(self.octets as u64);
        match &self.decision {
            Ok(new) => {
                row.outcome = Outcome::Rewritten;
                row.links = Some(new.absolute + new.to_parts);
                let base = new.base.as_ref();
                let base = base.filter(|base| !base.is_within_message()).map_or_else(
                    String::new,
                    |base| {
                        row.url = Some(masked(&base.url).into_owned());
                        format!(", base from {}", base.origin)
                    },
                );
                row.detail = format!(
                    "{} links made absolute, {} pointed at parts{base}",
                    new.absolute, new.to_parts
                )
                .into();
                if new.unclear > 0 {
                    row.remark(&unclear(new.unclear));
                }
                if let Some(digest) = new.digest {
                    row.remark(digest);
                }
            }
            Err(refusal) => row.tell_refusal(refusal.clone()),
        }
        row
    }
}
