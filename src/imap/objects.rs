//! Checks that the store contains the detached attachments of a new message, before an interrupted replacement is
//! finished and the old message, which contains the attachments themselves, is deleted.

use std::collections::BTreeSet;

use super::journal::Replacement;
use super::replace::{MessageReplacer, ReplaceWork};
use crate::fetch::store::layers::Layers;
use crate::fetch::store::uses::references;
use crate::key::Key;

/// Maximum size of an object that is read, in bytes.
const LARGEST: u64 = 4 << 30;

const ADVICE: &str =
    "both messages are kept; run embody detach again with the store of the interrupted run";

impl ReplaceWork<'_> {
    /// Remembers the detached attachments to which a message refers that was written in an earlier session.
    pub(super) fn add_references(&mut self, uid: u32, content: &[u8]) {
        if self.new.is_empty() {
            self.references.insert(uid, references_in(content));
        }
    }
}

impl MessageReplacer<'_> {
    /// Checks that the store contains each attachment to which the new message `copy` refers. References that the old
    /// message also has are not checked, because the replacement does not remove their content.
    ///
    /// # Errors
    /// An attachment is missing or damaged, or the run has no store. The text names the messages and tells the user
    /// what to do.
    pub(super) fn check_objects(
        &self,
        entry: &Replacement,
        copy: u32,
        work: &ReplaceWork<'_>,
    ) -> Result<(), String> {
        let of = |uid: u32| work.references.get(&uid);
        let Some(new) = of(copy) else {
            return Err(format!(
                "the new message (UID {copy}) was not read, so its attachments in the store could not be checked; both messages are kept"
            ));
        };
        let old = of(entry.uid).cloned().unwrap_or_default();
        let detached: Vec<&Key> = new.difference(&old).collect();
        let count = match detached.len() {
            0 => return Ok(()),
            1 => "an attachment".to_owned(),
            count => format!("{count} attachments"),
        };
        let refers = format!("the new message (UID {copy}) refers to {count} in a store");
        let Some(store) = self.objects else {
            return Err(format!("{refers}, but this run has no store; {ADVICE}"));
        };
        for key in detached {
            let why = match store.get(key, LARGEST) {
                Ok(Some(_)) => continue,
                Ok(None) => format!("the store of this run does not contain {key}"),
                Err(why) => format!("the store of this run cannot read {key}: {why}"),
            };
            return Err(format!("{refers}, but {why}; {ADVICE}"));
        }
        Ok(())
    }
}

/// Returns the attachments to which a message refers, also in messages that are attached to it and encoded.
fn references_in(content: &[u8]) -> BTreeSet<Key> {
    let mut found = BTreeSet::new();
    let mut visit = |window: &[u8]| {
        references(window, &mut |key, _| {
            found.insert(key);
        })
    };
    let mut layers = Layers::default();
    layers.push(content, &mut visit);
    layers.finish(&mut visit);
    found
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;

    use super::*;

    #[test]
    fn references_in_attached_and_encoded_messages_are_found() {
        let key = Key::of(b"abc");
        let note = format!("X-Embody-Detached: sha256={key};\r\n size=3; encoding=identity\r\n");
        let encoded = BASE64_STANDARD.encode(format!("Subject: inner\r\n{note}\r\n"));
        for text in [note, encoded] {
            let content = format!("Subject: outer\r\n\r\n{text}\r\n");
            assert_eq!(references_in(content.as_bytes()), [key].into(), "{content}");
        }
        assert!(references_in(b"Subject: none\r\n\r\n").is_empty());
    }
}
