//! What an earlier session, or an earlier run, left half-made.
//!
//! A copy whose UID the server said is ours. One whose UID never came is known by its octets, its date and that it is newer than
//! the journal's line; if several messages are so, none of them is touched. Nothing is removed here unless the old message is
//! there: a person may have seen both, and deleted one.

use super::failure::ImapFailure;
use super::journal::{Replacement, ReplacementStep};
use super::replace::{DELETED, Fate, Replacing, has};
use super::session::{FlagChange, Structure};
use crate::report::Reason;

impl Replacing<'_> {
    /// Goes on with a replacement of an earlier session, or takes it back. None: there is nothing more to do about it.
    pub(super) fn resume(
        &mut self,
        id: u64,
        mut replacement: Replacement,
    ) -> Result<Option<Fate>, ImapFailure> {
        let old = self.metadata(replacement.uid)?;
        let uid = match replacement.step {
            ReplacementStep::Appended(uid) | ReplacementStep::Deleting(uid) => uid,
            ReplacementStep::Begun => match self.copies(&replacement)?.as_slice() {
                [] => {
                    self.journal.end(id)?;
                    return Ok(None);
                }
                [uid] => *uid,
                _ => {
                    self.journal.end(id)?;
                    let detail =
                        "several messages may be the copy that an earlier run made; all stay";
                    return Fate::left(Reason::AmbiguousCopy, detail).map(Some);
                }
            },
        };
        let is_marked = matches!(replacement.step, ReplacementStep::Deleting(_));
        let copy = self.metadata(uid)?;
        match (old, copy) {
            // Whoever removed the old one may have looked at both: the copy stays.
            (None, copy) => {
                self.journal.end(id)?;
                Ok(copy.map(|copy| match is_marked {
                    true => Fate::Replaced(copy.uid, Some(FINISHED)),
                    false => Fate::Left(Reason::ChangedMeanwhile, REMOVED.to_owned()),
                }))
            }
            (Some(old), None) => {
                if is_marked && has(&old.flags, DELETED) {
                    self.mark(replacement.uid, FlagChange::Remove, None)?;
                }
                self.journal.end(id)?;
                Ok(None)
            }
            (Some(_), Some(_)) => {
                if replacement.step == ReplacementStep::Begun {
                    replacement.step = ReplacementStep::Appended(uid);
                    self.journal.note(id, replacement.clone())?;
                }
                let fate = self.verified(id, replacement, uid, is_marked)?;
                Ok(Some(match fate {
                    Fate::Replaced(uid, None) => Fate::Replaced(uid, Some(FINISHED)),
                    other => other,
                }))
            }
        }
    }

    /// Messages that may be the copy of a replacement whose UID nobody knows: with the octets and date, and new enough.
    pub(super) fn copies(&mut self, replacement: &Replacement) -> Result<Vec<u32>, ImapFailure> {
        let least = replacement.least;
        let found = self.session.search(&format!("UID {least}:*"))?;
        // `*` is the last message, whatever its UID.
        let found: Vec<u32> = found.into_iter().filter(|uid| *uid >= least).collect();
        let mut likely = Vec::new();
        self.session
            .fetch_metadata(&found, Structure::NotWanted, &mut |metadata| {
                let is_likely = metadata.size == replacement.size
                    && metadata.internal_date.seconds == replacement.date.1
                    && !has(&metadata.flags, DELETED);
                if is_likely {
                    likely.push(metadata.uid);
                }
                Ok(())
            })?;
        let mut copies = Vec::new();
        for uid in likely {
            let is_other = self.journal.is_known_copy(replacement, uid);
            if !is_other && self.holds(replacement, uid)? == Some(true) {
                copies.push(uid);
            }
        }
        Ok(copies)
    }
}

const FINISHED: &str = "what an earlier session left half-made was finished";

const REMOVED: &str = "another program removed it after the copy was made, which stays";
