//! Shortens the update of a large backup with modification sequences (CONDSTORE, RFC 7162): only messages that changed
//! since the last update are requested.
//!
//! After a complete update, the state of the folder is recorded next to its name: UIDVALIDITY, UIDNEXT, HIGHESTMODSEQ,
//! and a digest of the file names. The next update is shortened only if the files are the same, and if neither UIDNEXT
//! nor HIGHESTMODSEQ fell. A server that was restored from a snapshot gives the highest UIDs again, so the newest saved
//! messages are always compared. If one of them is different, all are compared.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::command::ImapCommand;
use super::failure::ImapFailure;
use super::fetch::{items, uid};
use super::session::{ImapSession, SelectResponse};

/// Number of the newest saved messages that are always compared.
pub(super) const COMPARED: usize = 1000;

/// State of a folder after a complete update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FolderState {
    uidvalidity: u32,
    uidnext: u32,
    highest_modseq: u64,
    /// Digest of the names of all files of the backup.
    digest: u64,
}

impl FolderState {
    /// Returns the state to record. `None` if the server does not support modification sequences in this folder.
    pub(super) fn of(selected: &SelectResponse, digest: u64) -> Option<Self> {
        Some(Self {
            uidvalidity: selected.uidvalidity,
            uidnext: Some(selected.uidnext).filter(|uidnext| *uidnext > 0)?,
            highest_modseq: selected.highest_modseq?,
            digest,
        })
    }

    /// Parses a recorded state.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let state = Self {
            uidvalidity: words.next()?.parse().ok()?,
            uidnext: words.next()?.parse().ok()?,
            highest_modseq: words.next()?.parse().ok()?,
            digest: words.next()?.parse().ok()?,
        };
        words.next().is_none().then_some(state)
    }

    pub(super) fn text(&self) -> String {
        format!(
            "{} {} {} {}",
            self.uidvalidity, self.uidnext, self.highest_modseq, self.digest
        )
    }

    /// Returns the recorded HIGHESTMODSEQ, if the files are unchanged and the current state of the folder can have
    /// followed from the recorded one.
    pub(super) fn modseq_before(&self, now: &Self) -> Option<u64> {
        let is_later = self.uidvalidity == now.uidvalidity
            && self.digest == now.digest
            && self.uidnext <= now.uidnext
            && self.highest_modseq <= now.highest_modseq;
        is_later.then_some(self.highest_modseq)
    }
}

/// Returns a digest of names that does not depend on their order.
pub(super) fn digest<'n>(names: impl Iterator<Item = &'n String>) -> u64 {
    names.fold(0, |sum: u64, name| {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        sum.wrapping_add(hasher.finish())
    })
}

impl ImapSession {
    /// Returns the UIDs of messages that are new or whose flags changed since this modification sequence. `None` if the
    /// server's answer cannot be relied on.
    pub(super) fn changed_since(
        &mut self,
        modseq: u64,
    ) -> Result<Option<HashSet<u32>>, ImapFailure> {
        let odd = self.exchange.odd();
        let mut changed = HashSet::new();
        let mut lacks_uid = false;
        let text = format!("UID FETCH 1:* (UID FLAGS) (CHANGEDSINCE {modseq})");
        let done = self
            .exchange
            .run(ImapCommand::new("FETCH", &text), &mut |read| {
                let Some(items) = items(read)? else {
                    return Ok(false);
                };
                let uid = uid(&items);
                lacks_uid |= uid.is_none();
                changed.extend(uid);
                Ok(true)
            });
        match done {
            Ok(_) if !lacks_uid && self.exchange.odd() == odd => Ok(Some(changed)),
            Ok(_) | Err(ImapFailure::Refused { .. } | ImapFailure::Unreadable(_)) => Ok(None),
            Err(why) => Err(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn update_is_shortened_only_if_no_number_fell_and_the_files_are_the_same() {
        let state = |uidvalidity, uidnext, highest_modseq, digest| FolderState {
            uidvalidity,
            uidnext,
            highest_modseq,
            digest,
        };
        let before = state(7, 100, 50, 1);
        assert_eq!(FolderState::read(&before.text()), Some(before.clone()));
        for (now, modseq) in [
            (state(7, 100, 50, 1), Some(50)),
            (state(7, 101, 60, 1), Some(50)),
            (state(7, 99, 60, 1), None),
            (state(7, 101, 49, 1), None),
            (state(8, 101, 60, 1), None),
            (state(7, 101, 60, 2), None),
        ] {
            assert_eq!(before.modseq_before(&now), modseq, "{now:?}");
        }
        for wrong in ["", "7", "7 1 2", "7 1 2 x", "7 1 2 3 4", "-7 1 2 3"] {
            assert_eq!(FolderState::read(wrong), None, "{wrong}");
        }
        let names = ["a".to_owned(), "b".to_owned()];
        assert_eq!(digest(names.iter()), digest(names.iter().rev()));
        assert_ne!(digest(names.iter()), digest(names[..1].iter()));
    }
}
