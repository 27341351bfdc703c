//! Tracks which parts were already opened (replaced by their content), in an earlier pass or in the current one, so that
//! no part is opened twice.

use std::collections::HashSet;

use crate::mime::PartId;

/// Parts of one form, such as winmail.dat, that must not be opened in the current pass.
#[derive(Default, Debug)]
pub(crate) struct HandledParts {
    /// Digests of parts that an earlier pass opened and left in the message.
    kept: HashSet<String>,
    /// Digests of parts that the current pass opened. A part with the same digest waits for the next pass: by then the message
    /// contains the content, and it is not added twice.
    opened: HashSet<String>,
    /// Texts to which the current pass added HTML as an alternative. A second alternative for the same text must wait for the
    /// next pass, because the edits of both would overlap.
    hosts: HashSet<PartId>,
}

impl HandledParts {
    /// Returns true if a part with this digest was opened, in the current pass or in an earlier one.
    pub(crate) fn has(&self, digest: &str) -> bool {
        self.kept.contains(digest) || self.opened.contains(digest)
    }

    /// Returns true if the current pass already added an HTML alternative to the text `host`. The caller must then
    /// leave its part to the next pass, because the edits of both parts would overlap.
    pub(crate) fn waits_for(&self, host: Option<PartId>) -> bool {
        host.is_some_and(|host| self.hosts.contains(&host))
    }

    pub(crate) fn add(&mut self, digest: String, host: Option<PartId>, keeps: bool) {
        self.hosts.extend(host);
        if keeps {
            self.kept.insert(digest)
        } else {
            self.opened.insert(digest)
        };
    }

    /// Ends a pass. The next pass scans the changed message, so only the parts that stay are remembered.
    pub(crate) fn end_pass(&mut self) {
        self.opened.clear();
        self.hosts.clear();
    }
}
