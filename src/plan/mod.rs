//! Tree + Policy → [`Plan`]: what would be done with every reference and with the links of every document, and why
//! not with the others.
//!
//! No I/O. The plan cannot know whether a retrieval will succeed or what it will bring;
//! [`expand`](crate::expand) finds out. A link may mean content that a reference brings, so links are planned
//! over the message as the references have left it.

mod bases;
mod content_id;
pub(crate) mod documents;
mod item;
mod links;
mod opaque;
mod protection;
mod references;
mod rivals;

use std::collections::BTreeMap;
use std::rc::Rc;

pub use self::bases::Bases;
pub use self::item::{Item, Step};
use self::links::DocumentLinks;
pub use self::opaque::opaque_parts;
pub use self::protection::protection;
use crate::ledger::Ledger;
use crate::link::base::Base;
use crate::mime::{PartId, Tree};
use crate::policy::Policy;

/// What would be done with one message.
#[derive(Clone, Debug, Default)]
pub struct Plan<'a> {
    /// One per reference, in the order of the message.
    pub references: Vec<Item<'a>>,
    /// References (by their position in `references`) that offer the same object in one
    /// multipart/alternative, in the order in which they are tried.
    pub rivals: Vec<Vec<usize>>,
    /// Octets of the URLs that a base made absolute, as they were counted.
    pub held: usize,
    /// One per document whose links would change, or are left, in the order of the message.
    pub links: Vec<DocumentLinks>,
    /// The Content-IDs that parts are to get because links mean them.
    pub content_ids: BTreeMap<PartId, String>,
}

impl<'a> Plan<'a> {
    /// Plans the references of one message, or of content that is to be put into one. `around` is the base that
    /// holds where the content is put. `room` is how many octets the URLs may have that a base makes absolute.
    #[must_use]
    pub fn of_references(
        original: &'a [u8],
        tree: &Tree,
        policy: &Policy,
        around: Option<Rc<Base>>,
        room: usize,
    ) -> Self {
        let (references, held) = references::references(original, tree, policy, around, room);
        Self {
            rivals: rivals::rivals(tree, &references),
            references,
            held,
            ..Self::default()
        }
    }

    /// Takes out the notes of texts: of content that is to be put into a message they are none of its own.
    pub fn leave_notes(&mut self, tree: &Tree) {
        if self
            .references
            .iter()
            .any(|item| item.body.scrubbed.is_some())
        {
            self.references.retain(|item| item.body.scrubbed.is_none());
            self.rivals = rivals::rivals(tree, &self.references);
        }
    }

    /// Plans the links of every document, in their order: what fits is done, the others are left.
    #[must_use]
    pub fn of_links(original: &[u8], tree: &Tree, policy: &Policy, ledger: &mut Ledger) -> Self {
        let (links, content_ids) = links::links(original, tree, policy, ledger);
        Self {
            links,
            content_ids,
            ..Self::default()
        }
    }
}
