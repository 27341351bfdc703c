//! The result of a run, and the contents that it inserted.

use std::collections::HashSet;

use super::outcome::{Changes, Proof};

/// A mail that a run made of the old mail, and what the run did.
#[derive(Clone, Default)]
pub(super) struct ResultParts {
    pub(super) mail: Vec<u8>,
    pub(super) changes: Changes,
    /// Contents that are not in the old mail.
    pub(super) inserted: Vec<InsertedPart>,
}

/// Content that a run inserted and that no digest in the old mail proves.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct InsertedPart {
    pub(super) sha256: String,
    /// MD5 of the content and of its canonical form, in base64, as the old mail may note them.
    pub(super) md5: [String; 2],
}

impl ResultParts {
    pub(super) fn then(mut self, next: Self) -> Self {
        self.changes.add(next.changes);
        self.inserted.extend(next.inserted);
        self.mail = next.mail;
        self
    }

    pub(super) fn into_proof(self, old: &[u8]) -> Proof {
        let is_noted = |inserted: &InsertedPart| {
            let mut noted = inserted.md5.iter();
            noted.any(|md5| memchr::memmem::find(old, md5.as_bytes()).is_some())
        };
        let unchecked: HashSet<InsertedPart> = self.inserted.into_iter().collect();
        Proof {
            changes: self.changes,
            unchecked: unchecked.iter().filter(|it| !is_noted(it)).count(),
        }
    }
}
