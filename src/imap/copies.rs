//! Finds the messages of a replacement by their content: the new message if the server did not report its UID, and other
//! copies of it.

use std::collections::BTreeMap;

use super::command::sequence_set;
use super::failure::ImapFailure;
use super::fetch::message_id;
use super::journal::{OpenReplacement, Replacement};
use super::machine::{AppendContent, FoundCopies, MessageAnswer};
use super::replace::{MessageReplacer, ReplaceWork, start};
use crate::key::Key;

/// Margin in bytes for reading a message back: twice its expected size plus this margin is accepted. If the server
/// sends more, the session ends.
const MORE: usize = 1 << 20;

/// Maximum number of messages of the same size that are read in order to find other copies of a message.
const MOST_TWINS: usize = 16;

const UNREADABLE: &str = "the server sent a response that cannot be read";

/// Error text of a search that is repeated after a pause.
const UNPLACED: &str =
    "another connection of this run has written an equal message whose UID is not known yet";

/// UIDs of the old and of the new message of a replacement, found by their content. Each list can have several entries,
/// because a folder can contain equal messages.
pub(super) struct FoundMessages {
    pub(super) old: Vec<u32>,
    pub(super) new: Vec<u32>,
}

impl MessageReplacer<'_> {
    /// Reads a complete message, and stores its first bytes, by which a later check detects that its UID belongs to
    /// another message.
    pub(super) fn read(
        &mut self,
        uid: u32,
        entry: &Replacement,
        work: &mut ReplaceWork<'_>,
    ) -> Result<MessageAnswer, ImapFailure> {
        let size = if uid == entry.uid {
            entry.original_size
        } else {
            entry.size
        };
        let content = match self.content(uid, size)? {
            Ok(Some(content)) => content,
            Ok(None) => return Ok(MessageAnswer::Nothing),
            Err(why) => return Ok(MessageAnswer::Unknown(why)),
        };
        let is_kin = match &work.message_id {
            Some(id) => message_id(&content).as_ref() == Some(id),
            // Without a Message-ID, the new message can only be recognised by its body.
            None => !work.new.is_empty() && body(&content) == body(work.new),
        };
        // For the old message, the stored bytes must stay those of the content from which the new message was made.
        if uid != entry.uid || !work.starts.contains_key(&uid) {
            work.was_read(uid, &content);
        }
        work.add_references(uid, &content);
        Ok(MessageAnswer::Content {
            digest: Key::of(&content).to_string(),
            is_kin,
        })
    }

    /// Reads a complete message. Returns `None` if the server returns no content. If the server refused a command while the
    /// message was read, or sent an unreadable response, a missing message counts as unknown, because it may still exist. The
    /// inner error is the reason.
    fn content(
        &mut self,
        uid: u32,
        size: u64,
    ) -> Result<Result<Option<Vec<u8>>, String>, ImapFailure> {
        let most = usize::try_from(size)
            .unwrap_or(usize::MAX)
            .saturating_mul(2)
            .saturating_add(MORE);
        let (before, odd) = (self.session.refusals().0, self.session.odd());
        let content = match self.session.fetch_body(uid, size, most) {
            // A message that is longer than the wanted one is a different message. Empty content stands for it, because
            // it matches no message.
            Err(ImapFailure::TooLarge(_)) => return Ok(Ok(Some(Vec::new()))),
            Err(ImapFailure::Refused { .. }) => None,
            Err(ImapFailure::Unreadable(why)) => return Ok(Err(why.to_owned())),
            content => content?,
        };
        let (after, said) = self.session.refusals();
        Ok(match content {
            Some(content) => Ok(Some(content)),
            None if after > before => Err(said.to_owned()),
            None if self.session.odd() > odd => Err(UNREADABLE.to_owned()),
            None => Ok(None),
        })
    }

    /// Finds a message that embody appended if the server did not return its UID. Returns the UIDs of all messages with
    /// the same content, except those that existed before the run. The inner error is the reason why the server did not
    /// allow the search.
    pub(super) fn copies(
        &mut self,
        entry: &Replacement,
        body: AppendContent,
        work: &mut ReplaceWork<'_>,
    ) -> Result<Result<FoundCopies, String>, ImapFailure> {
        let (wanted, size) = match body {
            AppendContent::New => (Some(&entry.sha256), Some(entry.size)),
            AppendContent::Original => (entry.original.as_ref(), None),
        };
        let criteria = format!("UID {}:* UNDELETED", entry.least);
        let new = match self.found(&criteria)? {
            Ok(found) => found,
            Err(why) => return Ok(Err(why)),
        };
        // `N:*` always includes the last message of the folder, even if its UID is smaller than `N`, so such a UID is
        // removed.
        let is_new = |uid: &u32| *uid >= entry.least && !self.journal.is_known_copy(entry, *uid);
        let new: Vec<u32> = new.into_iter().filter(is_new).collect();
        let same = match self.equal(&new, wanted, size, entry, work)? {
            Ok(same) => same,
            Err(why) => return Ok(Err(why)),
        };
        let kin = if same.is_empty() && body == AppendContent::New {
            self.kin(entry, &new, work)?
        } else {
            Vec::new()
        };
        Ok(Ok(FoundCopies { same, kin }))
    }

    /// Finds messages with the same content as the new message `copy` in the whole folder, and new messages with the same
    /// Message-ID. Messages that this run wrote for other messages are not among them.
    pub(super) fn twins(
        &mut self,
        entry: &Replacement,
        copy: u32,
        with_kin: bool,
        work: &mut ReplaceWork<'_>,
    ) -> Result<Result<FoundCopies, String>, ImapFailure> {
        let size = entry.size;
        let criteria = format!(
            "UNDELETED LARGER {} SMALLER {}",
            size.saturating_sub(1),
            size.saturating_add(1)
        );
        let all = match self.found(&criteria)? {
            Ok(found) => found,
            Err(why) => return Ok(Err(why)),
        };
        let new = if with_kin {
            match self.found(&format!("UID {}:* UNDELETED", entry.least))? {
                Ok(found) => found,
                Err(why) => return Ok(Err(why)),
            }
        } else {
            Vec::new()
        };
        let journal = self.journal;
        let is_other =
            |uid: &u32| *uid != copy && *uid != entry.uid && !journal.is_known_copy(entry, *uid);
        let all: Vec<u32> = all.into_iter().filter(is_other).collect();
        let is_new = |uid: &u32| *uid >= entry.least && is_other(uid);
        let mut new: Vec<u32> = new.into_iter().filter(is_new).collect();
        let mut same = match self.equal(&all, Some(&entry.sha256), Some(size), entry, work)? {
            Ok(same) => same,
            Err(why) => return Ok(Err(why)),
        };
        new.retain(|uid| !same.contains(uid));
        let mut kin = self.kin(entry, &new, work)?;
        // A message whose Message-ID the server did not send may have been removed after the search, for example by another
        // connection of this run that took its new message back.
        if !kin.is_empty()
            && let Ok(there) = self.found(&format!("UID {} UNDELETED", sequence_set(&kin)))?
        {
            kin.retain(|uid| there.contains(uid));
            // Or it has just arrived: pymap finds such a message before it sends its fields. The search reported it, so now
            // the server sends them.
            kin = self.kin(entry, &kin, work)?;
        }
        // Another connection of this run may have just appended one of these messages. The journal is checked for
        // replacements without a recorded UID first. A UID that is recorded between the two checks is then found by the
        // second one.
        let (has_unplaced, has_begun) = (
            self.journal.has_unplaced_copy(entry),
            self.journal.has_begun_others(entry),
        );
        let is_unknown = |uid: &u32| !journal.is_known_copy(entry, *uid);
        same.retain(is_unknown);
        kin.retain(is_unknown);
        if has_unplaced && !same.is_empty() || has_begun && !kin.is_empty() {
            return Ok(Err(UNPLACED.to_owned()));
        }
        Ok(Ok(FoundCopies { same, kin }))
    }

    /// Finds the old and the new message of a replacement in a folder whose UIDs have changed, even if they are
    /// marked as `\Deleted`. The inner error is the reason why the server did not allow the search.
    pub(super) fn both_by_content(
        &mut self,
        entry: &Replacement,
    ) -> Result<Result<FoundMessages, String>, ImapFailure> {
        let mut all = Vec::new();
        let contents = [
            (entry.original.as_ref(), entry.original_size),
            (Some(&entry.sha256), entry.size),
        ];
        for (digest, size) in contents {
            let (least, most) = (size.saturating_sub(1), size.saturating_add(1));
            let uids = match self.found(&format!("LARGER {least} SMALLER {most}"))? {
                Ok(uids) => uids,
                Err(why) => return Ok(Err(why)),
            };
            let work = &mut ReplaceWork::empty(0);
            match self.equal(&uids, digest, Some(size), entry, work)? {
                Ok(same) => all.push(same),
                Err(why) => return Ok(Err(why)),
            }
        }
        let new = all.pop().unwrap_or_default();
        let old = all.pop().unwrap_or_default();
        Ok(Ok(FoundMessages { old, new }))
    }

    /// Returns whether the server has both messages of a replacement, with the content that the journal lists. The journal
    /// then belongs to this account, even if it was written under another name of the server.
    pub(super) fn has_both(&mut self, open: &OpenReplacement) -> Result<bool, ImapFailure> {
        let entry = &open.replacement;
        let mut work = ReplaceWork::empty(open.id);
        let mut is = |run: &mut Self, uid, wanted: Option<&String>| {
            let reading = run.read(uid, entry, &mut work)?;
            let is_it =
                matches!(&reading, MessageAnswer::Content { digest, .. } if Some(digest) == wanted);
            Ok::<_, ImapFailure>(is_it)
        };
        if entry.original.is_none() || !is(self, entry.uid, entry.original.as_ref())? {
            return Ok(false);
        }
        match entry.step.copy() {
            Some(uid) => is(self, uid, Some(&entry.sha256)),
            None => {
                let found =
                    self.copies(entry, AppendContent::New, &mut ReplaceWork::empty(open.id))?;
                Ok(found.is_ok_and(|found| !found.same.is_empty()))
            }
        }
    }

    /// Sends SEARCH. The inner error is the reason why the server did not allow the search, or why its result is unknown.
    fn found(&mut self, criteria: &str) -> Result<Result<Vec<u32>, String>, ImapFailure> {
        self.session.noop_with_next();
        Ok(match self.session.search(criteria) {
            Err(ImapFailure::Refused { text, .. }) => Err(text),
            Err(ImapFailure::Unreadable(why)) => Err(why.to_owned()),
            found => Ok(found?),
        })
    }

    /// Returns the messages whose content has this digest. If a size is given, only messages of this size are read.
    fn equal(
        &mut self,
        uids: &[u32],
        digest: Option<&String>,
        wanted: Option<u64>,
        entry: &Replacement,
        work: &mut ReplaceWork<'_>,
    ) -> Result<Result<Vec<u32>, String>, ImapFailure> {
        if uids.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let before = self.session.refusals().0;
        let sizes = match self.session.fetch_sizes(uids) {
            Err(ImapFailure::Refused { text, .. }) => return Ok(Err(text)),
            sizes => sizes?,
        };
        let (after, said) = self.session.refusals();
        if after > before {
            return Ok(Err(said.to_owned()));
        }
        let sizes: BTreeMap<u32, u64> = sizes.into_iter().collect();
        // Only messages of the expected size are read and compared. A message of unknown size could also be the new
        // message, so it is read as well.
        let is_likely = |uid: &u32| {
            let size = sizes.get(uid);
            wanted.is_none() || size.is_none_or(|size| wanted == Some(*size))
        };
        let mut same = Vec::new();
        // The newest messages are the most likely ones.
        let likely = uids.iter().rev().copied().filter(is_likely);
        for uid in likely.take(MOST_TWINS) {
            let size = sizes.get(&uid).copied().unwrap_or(entry.size);
            match self.content(uid, size)? {
                Ok(Some(content)) if Some(&Key::of(&content).to_string()) == digest => {
                    work.starts.insert(uid, start(&content));
                    work.add_references(uid, &content);
                    same.push(uid);
                }
                Ok(_) => {}
                Err(why) => return Ok(Err(why)),
            }
        }
        same.reverse();
        Ok(Ok(same))
    }

    /// Returns the messages with the same Message-ID as the old one. A message whose Message-ID the server does not
    /// send is included, because it may be the same.
    fn kin(
        &mut self,
        entry: &Replacement,
        uids: &[u32],
        work: &mut ReplaceWork<'_>,
    ) -> Result<Vec<u32>, ImapFailure> {
        if uids.is_empty() {
            return Ok(Vec::new());
        }
        let fetched = |done| match done {
            Err(ImapFailure::Refused { .. }) => Ok(BTreeMap::new()),
            done => done,
        };
        if work.message_id.is_none() && work.new.is_empty() {
            let mut of_old = fetched(self.session.message_ids(&[entry.uid]))?;
            work.message_id = of_old.remove(&entry.uid).filter(|id| !id.is_empty());
        }
        let wanted = work.message_id.clone().unwrap_or_default();
        let ids = fetched(self.session.message_ids(uids))?;
        // If other connections of this run are replacing messages, a message without a known Message-ID may be theirs.
        let is_alone = !self.journal.has_begun_others(entry);
        let is_kin = |uid: &u32| ids.get(uid).map_or(is_alone, |id| *id == wanted);
        Ok(uids.iter().copied().filter(is_kin).collect())
    }
}

/// Returns the text of a message, without its header.
fn body(message: &[u8]) -> &[u8] {
    let end = memchr::memmem::find(message, b"\r\n\r\n");
    end.and_then(|at| message.get(at..)).unwrap_or_default()
}
