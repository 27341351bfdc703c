//! Tree + Policy → [`Plan`]: what would be done with every reference, and why not with the others; [`documents`] has the links.
//!
//! No I/O. A link may mean content that a reference brings, so links are looked at in the message as the references have left it.

mod bases;
mod content_id;
pub(crate) mod documents;
mod item;
mod opaque;
mod protection;
mod references;
mod rivals;

pub use self::bases::Bases;
pub use self::item::{Item, Step};
#[cfg(feature = "cli")]
pub use self::opaque::opaque_details;
pub use self::opaque::opaque_parts;
pub use self::protection::protection;
use crate::mime::Tree;

#[derive(Clone, Debug)]
pub struct Plan<'a> {
    pub references: Vec<Item<'a>>,
    /// References (by their position in `references`) that offer the same object in one
    /// multipart/alternative, in the order in which they are tried.
    pub rivals: Vec<Vec<usize>>,
    /// Bytes of the URLs that a base made absolute, as they were counted.
    pub held: usize,
}

impl Plan<'_> {
    /// Takes out what stands in texts: of content that is to be put into a message they are none of its own.
    pub fn leave_notes(&mut self, tree: &Tree<'_>) {
        if self
            .references
            .iter()
            .any(|item| item.body.stands_in_text())
        {
            self.references.retain(|item| !item.body.stands_in_text());
            self.rivals = rivals::rivals(tree, &self.references);
        }
    }
}
