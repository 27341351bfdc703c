//! Parts that wait for the next pass, or that an earlier pass handled.

use std::collections::HashSet;

use crate::mime::PartId;

/// Parts of one form that need not, or must not, be opened now.
#[derive(Default, Debug)]
pub struct Handled {
    /// Digests of parts that an earlier pass opened and that stay.
    kept: HashSet<String>,
    /// Digests of parts that this pass opened. What an equal part contains is in the mail in the next pass.
    opened: HashSet<String>,
    /// Texts that got an alternative in this pass. A second one would be put into the middle of the first one.
    hosts: HashSet<PartId>,
}

impl Handled {
    /// Whether a part waits for the next pass, or was handled in an earlier one.
    pub fn has(&self, digest: &str) -> bool {
        self.kept.contains(digest) || self.opened.contains(digest)
    }

    /// Whether the text has an alternative of this pass, so that the part waits for the next one.
    pub fn waits_for(&self, host: Option<PartId>) -> bool {
        host.is_some_and(|host| self.hosts.contains(&host))
    }

    pub fn add(&mut self, digest: String, host: Option<PartId>, keeps: bool) {
        self.hosts.extend(host);
        match keeps {
            true => self.kept.insert(digest),
            false => self.opened.insert(digest),
        };
    }

    /// The next pass sees what this one made.
    pub fn end_pass(&mut self) {
        self.opened.clear();
        self.hosts.clear();
    }
}
