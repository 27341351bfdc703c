//! Collects doubts about saved messages: shorter than announced, without flags, or an error text instead of the
//! message.

use std::collections::HashSet;

use super::exchange::FEW_WRONG;
use super::session::Metadata;
use super::substitute::is_substitute;
use crate::engine::policy::Limits;
use crate::mime;

/// Saved messages that may be incomplete or without flags, for the report.
#[derive(Default)]
pub(super) struct Doubts {
    /// UIDs of messages whose metadata the server did not return. `untold_given` has those whose content arrived
    /// nevertheless: they are saved without flags, which is reported.
    pub(super) untold: HashSet<u32>,
    pub(super) untold_given: Vec<u32>,
    pub(super) short: Vec<ShortMessage>,
    /// UIDs of messages for which the server sent an error text instead.
    pub(super) substitutes: Vec<u32>,
    /// Whether the UID of a saved message now belongs to another message. The server was probably restored from a
    /// backup, so all saved messages must be compared.
    pub(super) is_restored: bool,
    /// Number of messages with exactly the announced size. `wrong` counts complete messages with another size. Together
    /// they show whether the announced sizes can be trusted.
    exact: u64,
    wrong: u64,
}

/// A message that is shorter than the server announced.
pub(super) struct ShortMessage {
    pub(super) uid: u32,
    /// Announced size (RFC822.SIZE) in bytes.
    pub(super) size: u64,
    /// Number of bytes that the server sent.
    pub(super) given: u64,
    /// Whether the MIME structure shows that the message is complete.
    pub(super) is_closed: bool,
}

impl Doubts {
    pub(super) fn judge(&mut self, about: &Metadata, content: &[u8]) {
        if self.untold.contains(&about.uid) {
            self.untold_given.push(about.uid);
        }
        if is_substitute(content, about.size) {
            self.substitutes.push(about.uid);
            return;
        }
        let given = content.len() as u64;
        // A size of 0 means that the server did not return the size.
        if about.size == 0 || about.size == given {
            self.exact += u64::from(about.size > 0);
            return;
        }
        let is_longer = given > about.size;
        let is_closed = is_longer || is_closed(content);
        self.wrong += u64::from(is_closed);
        if !is_longer {
            self.short.push(ShortMessage {
                uid: about.uid,
                size: about.size,
                given,
                is_closed,
            });
        }
    }

    /// Adds the doubts of another connection about messages of the same folder.
    pub(super) fn add(&mut self, other: Self) {
        self.untold.extend(other.untold);
        self.untold_given.extend(other.untold_given);
        self.short.extend(other.short);
        self.substitutes.extend(other.substitutes);
        self.is_restored |= other.is_restored;
        self.exact += other.exact;
        self.wrong += other.wrong;
    }

    /// Compares the announced size of a message with the size of the saved message. The comparison shows whether the
    /// announced sizes of the folder can be trusted.
    pub(super) fn remember(&mut self, about: &Metadata, saved: Option<u64>) {
        match saved {
            Some(saved) if about.size > 0 && saved != about.size => self.wrong += 1,
            Some(_) => self.exact += 1,
            None => {}
        }
    }

    /// Returns whether the announced sizes are unreliable. Exchange, for example, computes them from a different form of the
    /// message.
    pub(super) fn sizes_are_wrong(&self) -> bool {
        self.wrong >= FEW_WRONG && self.wrong > self.exact
    }
}

/// Returns whether a message is a multipart with its closing boundary line. Such a message is complete, because mail clients
/// ignore the text after this line.
fn is_closed(message: &[u8]) -> bool {
    let tree = mime::scan(message, &Limits::default().scan());
    let root = tree.ids().next().map(|id| tree.part(id));
    root.is_some_and(|root| match &root.content {
        mime::PartKind::Multipart(multipart) => multipart.close.is_some(),
        _ => false,
    })
}
