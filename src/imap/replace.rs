//! One message in the place of another, in the same folder: as IMAP has no way to change a message, a copy is appended and the
//! old one deleted. Nothing is deleted before the copy was read back.
//!
//! The steps, each announced in the journal before it is taken:
//!
//! 1. APPEND the new octets, with the flags, keywords and INTERNALDATE of the old message. The server says the copy's UID.
//! 2. Fetch the copy back: octets, flags and date must be what they should.
//! 3. Read the flags of the old message again, and carry over what somebody changed meanwhile.
//! 4. Mark the old message `\Deleted`, provided that it did not change since (CONDSTORE). Then read its flags once more, and
//!    expunge this UID alone, or move it to the trash: both are sent at once. Flags that changed up to this reading are carried
//!    over to the copy.
//!
//! The copy is taken away again where it does not hold what it should, or where the old message went meanwhile. What is known
//! not to be ours, or not known to be ours, is never deleted.
//!
//! Not closed: the moment in which a server goes from the last reading to the expunging, as no command does both. Flags that
//! another program sets in it are lost. MOVE to a folder of ours, whose copy could be read at leisure, would have the same
//! moment within it: RFC 6851 asks for a copy that is whole, and not that its flags be those of the last instant; Courier has
//! no MOVE, and a folder more would be in the account of each that a kill left half-made.

use std::ops::ControlFlow;
use std::time::Duration;

use super::failure::ImapFailure;
use super::journal::{Journal, Replacement, ReplacementStep};
use super::names::shown;
use super::session::{FlagChange, ImapSession, Metadata, Selected, Stored, Structure};
use crate::disk::Key;
use crate::error::Error;
use crate::report::Reason;

/// How often a message that changes all the time, or that the server does not let go, is tried before it is left.
const ROUNDS: u32 = 8;

/// What is waited before the second try; each time twice as long, 2.5 seconds in all.
const PAUSE: Duration = Duration::from_millis(20);

/// Octets beyond twice those expected that a copy may have. A server that sends more ends the session.
const MORE: usize = 1 << 20;

/// What became of a message that was to be replaced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// The new one has this UID; a remark says what else had to be done.
    Replaced(u32, Option<&'static str>),
    /// It is as it was.
    Left(Reason, String),
}

impl Fate {
    pub(super) fn left(reason: Reason, detail: impl Into<String>) -> Result<Self, ImapFailure> {
        Ok(Self::Left(reason, detail.into()))
    }
}

/// Replaces messages of the folder that is selected.
pub(super) struct Replacing<'r> {
    pub(super) session: &'r mut ImapSession,
    pub(super) journal: &'r Journal,
    pub(super) selected: &'r Selected,
    /// The folder, as the server spells it, to which old messages go; none: they are expunged.
    pub(super) trash: Option<&'r str>,
    /// Whether REPLACE (RFC 8508) may be used where there is no room for both.
    pub(super) by_replace: bool,
}

/// A copy that was appended: its entry in the journal, and its UID.
pub(super) type Copied = (u64, Replacement, u32);

fn no_copy<T>(
    reason: Reason,
    detail: impl Into<String>,
) -> Result<ControlFlow<Fate, T>, ImapFailure> {
    Fate::left(reason, detail).map(ControlFlow::Break)
}

impl Replacing<'_> {
    /// Appends `new`, which is to be in the place of a message, for [`Self::verified`]; `least` is the smallest UID that a new
    /// message of the folder may get. `turn` waits until it may be appended. A fate says that there is no copy to verify.
    ///
    /// # Errors
    /// What ends the session, or the run. Then the journal says how far this one came.
    pub(super) fn append(
        &mut self,
        old: &Metadata,
        original: &[u8],
        new: &[u8],
        least: u32,
        turn: impl FnOnce() -> Result<(), ImapFailure>,
    ) -> Result<ControlFlow<Fate, Copied>, ImapFailure> {
        if let Some(flag) = self.cannot_hold(&old.flags) {
            let detail = format!("the folder takes no new keyword, and not {flag}");
            return no_copy(Reason::FlagsNotKept, detail);
        }
        let mut replacement = Replacement {
            folder: self.selected.folder.clone(),
            uidvalidity: self.selected.uidvalidity,
            uid: old.uid,
            least: least.max(old.uid.saturating_add(1)),
            sha256: Key::of(new).to_string(),
            size: new.len() as u64,
            flags: old.flags.clone(),
            date: (old.internal_date.text.clone(), old.internal_date.seconds),
            step: ReplacementStep::Begun,
        };
        let id = self.journal.begin(replacement.clone())?;
        turn()?;
        let folder = &self.selected.folder;
        let appended = self
            .session
            .append(folder, &old.flags, &old.internal_date, new);
        let copy = match appended {
            Err(ImapFailure::Refused { code, text, .. }) => {
                self.journal.end(id)?;
                let is_full = code.as_deref() == Some("OVERQUOTA");
                if is_full && self.by_replace && self.session.has("REPLACE") {
                    let fate = self.by_replace(replacement, original, new)?;
                    return Ok(ControlFlow::Break(fate));
                }
                return match is_full {
                    true => no_copy(Reason::QuotaFull, text),
                    false => no_copy(Reason::ServerRefused, text),
                };
            }
            other => other?,
        };
        let uid = match copy {
            Some((uidvalidity, uid)) if uidvalidity == replacement.uidvalidity => uid,
            Some(_) => {
                self.journal.end(id)?;
                let detail = "the folder was made anew meanwhile; the copy is in the new one";
                return no_copy(Reason::ChangedMeanwhile, detail);
            }
            None => {
                self.session.noop()?;
                match self.copies(&replacement)?.as_slice() {
                    [uid] => *uid,
                    _ => {
                        self.journal.end(id)?;
                        let detail = "the server does not say which message is the copy";
                        return no_copy(Reason::AmbiguousCopy, detail);
                    }
                }
            }
        };
        if uid < replacement.least {
            self.journal.end(id)?;
            let detail = "the server names a message that was there before";
            return no_copy(Reason::AlteredByServer, detail);
        }
        replacement.step = ReplacementStep::Appended(uid);
        self.journal.note(id, replacement.clone())?;
        // Some servers show a session its own messages only when it asks.
        self.session.noop_with_next();
        Ok(ControlFlow::Continue((id, replacement, uid)))
    }

    /// Goes on if the copy holds what it should; `is_marked`: the old message may bear our `\Deleted`. A server that refuses a
    /// step has the copy taken away again.
    pub(super) fn verified(
        &mut self,
        id: u64,
        replacement: Replacement,
        uid: u32,
        is_marked: bool,
    ) -> Result<Fate, ImapFailure> {
        let old = replacement.uid;
        match self.compared(id, replacement, uid, is_marked) {
            Err(ImapFailure::Refused { command, text, .. }) => {
                let why = format!("the server refuses {command}: {text}");
                match self.metadata(old)? {
                    Some(found) if has(&found.flags, DELETED) => {
                        self.mark(old, FlagChange::Remove, None)?;
                    }
                    Some(_) => {}
                    None => {
                        self.journal.end(id)?;
                        let why = format!("{why}; the message went meanwhile, and its copy stays");
                        return Fate::left(Reason::ServerRefused, why);
                    }
                }
                self.take_back(id, uid, Reason::ServerRefused, &why)
            }
            other => other,
        }
    }

    fn compared(
        &mut self,
        id: u64,
        replacement: Replacement,
        uid: u32,
        is_marked: bool,
    ) -> Result<Fate, ImapFailure> {
        if self.session.has(GMAIL) && !self.is_new_at_gmail(&replacement, uid)? {
            self.journal.end(id)?;
            let detail = "the server took the copy for a message that it has already";
            return Fate::left(Reason::AlteredByServer, detail);
        }
        let mut holds = self.holds(&replacement, uid)?;
        if holds.is_none() && !self.is_gone(uid)? {
            holds = self.holds(&replacement, uid)?;
        }
        let why = match holds {
            Some(true) => return self.finish(id, replacement, uid, is_marked),
            Some(false) => "the server stored other bytes than it was given",
            None => "the server said that it stored the copy, and did not",
        };
        if is_marked {
            self.mark(replacement.uid, FlagChange::Remove, None)?;
        }
        self.take_back(id, uid, Reason::AlteredByServer, why)
    }

    /// The copy has the right octets: carries over what changed, and deletes the old message.
    fn finish(
        &mut self,
        id: u64,
        mut replacement: Replacement,
        uid: u32,
        mut is_marked: bool,
    ) -> Result<Fate, ImapFailure> {
        let mut remark = None;
        let mut is_kept = false;
        for round in 0..ROUNDS {
            // As long as it bears our mark, another program may expunge it: then nobody waits.
            if round > 0 && !is_marked {
                std::thread::sleep(PAUSE * (1 << (round - 1)));
            }
            let (old, copy) = self.both(replacement.uid, uid)?;
            let old = match old {
                Some(old) => old,
                // Another program expunged it for us.
                None if is_marked => return self.done(id, uid, remark),
                None if self.is_gone(replacement.uid)? => {
                    return self.take_back(id, uid, Reason::ChangedMeanwhile, MOVED);
                }
                None => continue,
            };
            if has(&old.flags, DELETED) {
                if !is_marked {
                    let why = "another program marked it as deleted meanwhile";
                    return self.take_back(id, uid, Reason::ChangedMeanwhile, why);
                }
                // Ours: nobody may expunge it before all is compared once more.
                self.mark(replacement.uid, FlagChange::Remove, None)?;
                is_marked = false;
                continue;
            }
            let Some(copy) = copy else {
                if !self.is_gone(uid)? {
                    continue;
                }
                let why = "the copy went while it was looked at";
                return self.take_back(id, uid, Reason::ChangedMeanwhile, why);
            };
            if copy.internal_date.seconds != replacement.date.1 {
                let why = "the server gave the copy another date";
                return self.take_back(id, uid, Reason::AlteredByServer, why);
            }
            if !is_same(&old.flags, &replacement.flags) {
                remark = Some(CARRIED);
            }
            if let Some(flag) = self.carry_over(&mut replacement, &old.flags, &copy)? {
                let why = format!("the server does not keep {flag} on the copy");
                return self.take_back(id, uid, Reason::FlagsNotKept, &why);
            }
            if self.session.has(GMAIL) && !self.carry_labels(replacement.uid, uid)? {
                let why = "the server does not keep the labels on the copy";
                return self.take_back(id, uid, Reason::FlagsNotKept, why);
            }
            replacement.step = ReplacementStep::Deleting(uid);
            self.journal.note(id, replacement.clone())?;
            let removal = self
                .session
                .remove(replacement.uid, old.modseq, self.trash)?;
            is_marked = match removal.stored {
                Stored::Gone if self.is_gone(replacement.uid)? => {
                    return self.take_back(id, uid, Reason::ChangedMeanwhile, MOVED);
                }
                // It may bear our mark.
                Stored::Gone => {
                    is_marked = self.trash.is_none();
                    continue;
                }
                Stored::Modified => false,
                Stored::Done => self.trash.is_none(),
            };
            if self.metadata(replacement.uid)?.is_some() {
                is_kept = removal.stored == Stored::Done;
                continue;
            }
            let Some(mut last) = removal.flags else {
                match is_marked || self.trash.is_some() {
                    // It went behind the last reading.
                    true => return self.done(id, uid, remark),
                    false => return self.take_back(id, uid, Reason::ChangedMeanwhile, MOVED),
                }
            };
            // A mark that another program set, and that took the message away with it, is the copy's now.
            if is_marked {
                last.retain(|flag| !is(flag, DELETED));
            }
            if !is_same(&last, &replacement.flags) {
                remark = match self.carry_over(&mut replacement, &last, &copy) {
                    Ok(None) => Some(CARRIED),
                    // The message is gone, and its copy is what there is.
                    Ok(Some(_)) | Err(ImapFailure::Refused { .. }) => Some(NOT_CARRIED),
                    Err(why) => return Err(why),
                };
            }
            return self.done(id, uid, remark);
        }
        if is_marked {
            self.mark(replacement.uid, FlagChange::Remove, None)?;
        }
        let (reason, why) = if is_kept {
            let why = "the server says that it removed the message, and keeps it";
            (Reason::ServerRefused, why)
        } else {
            let why = "another program changes its flags all the time";
            (Reason::ChangedMeanwhile, why)
        };
        self.take_back(id, uid, reason, why)
    }

    fn done(
        &mut self,
        id: u64,
        uid: u32,
        remark: Option<&'static str>,
    ) -> Result<Fate, ImapFailure> {
        self.journal.end(id)?;
        Ok(Fate::Replaced(uid, remark))
    }

    /// Removes the copy, which is surely ours. The old message is there, or another program took it away.
    fn take_back(
        &mut self,
        id: u64,
        uid: u32,
        reason: Reason,
        why: &str,
    ) -> Result<Fate, ImapFailure> {
        if self.metadata(uid)?.is_some() {
            let removed = match self.trash.filter(|_| self.session.has(GMAIL)) {
                // There, expunging takes a label away and no message.
                Some(trash) => self.session.uid_move(uid, trash).map(drop),
                None => self
                    .mark(uid, FlagChange::Add, None)
                    .and_then(|_| self.session.uid_expunge(uid)),
            };
            match removed {
                // One message more for each that follows would be no good.
                Err(ImapFailure::Refused { text, .. }) => {
                    let folder = shown(&self.selected.folder);
                    let what = format!(
                        "{why}; the copy of a message (UID {uid}) stays in {folder}, because the server refuses to delete it: {text}"
                    );
                    let error = Error::cannot_write(&folder)(std::io::Error::other(what));
                    return Err(ImapFailure::Run(error));
                }
                other => other?,
            }
        }
        self.journal.end(id)?;
        Fate::left(reason, why)
    }

    /// Whether a message has the octets that the copy should have; none if there is no such message.
    pub(super) fn holds(
        &mut self,
        replacement: &Replacement,
        uid: u32,
    ) -> Result<Option<bool>, ImapFailure> {
        let size = usize::try_from(replacement.size).unwrap_or(usize::MAX);
        let most = size.saturating_mul(2).saturating_add(MORE);
        match self.session.fetch_body(uid, replacement.size, most) {
            Ok(octets) => {
                Ok(octets.map(|octets| Key::of(&octets).to_string() == replacement.sha256))
            }
            Err(ImapFailure::TooLarge(_)) => Ok(Some(false)),
            Err(failure) => Err(failure),
        }
    }

    /// Whether a message is surely not there any more. Some servers do not see one for a moment while its neighbours go.
    fn is_gone(&mut self, uid: u32) -> Result<bool, ImapFailure> {
        self.session.noop()?;
        Ok(self.metadata(uid)?.is_none())
    }

    pub(super) fn metadata(&mut self, uid: u32) -> Result<Option<Metadata>, ImapFailure> {
        Ok(self.both(uid, uid)?.0)
    }

    pub(super) fn both(
        &mut self,
        old: u32,
        copy: u32,
    ) -> Result<(Option<Metadata>, Option<Metadata>), ImapFailure> {
        let uids = [old.min(copy), old.max(copy)];
        let uids = if old == copy { &uids[..1] } else { &uids };
        let mut found = (None, None);
        let mut each = |metadata: Metadata| {
            if metadata.uid == old {
                found.0 = Some(metadata);
            } else if metadata.uid == copy {
                found.1 = Some(metadata);
            }
            Ok(())
        };
        self.session
            .fetch_metadata(uids, Structure::NotWanted, &mut each)?;
        Ok(found)
    }

    pub(super) fn mark(
        &mut self,
        uid: u32,
        change: FlagChange,
        unchanged_since: Option<u64>,
    ) -> Result<Stored, ImapFailure> {
        let deleted = [DELETED.to_owned()];
        self.session
            .store_flags(uid, change, &deleted, unchanged_since)
    }

    /// Gives the copy the flags of the old message, and takes from it those that the old one lost; what somebody set on the
    /// copy itself stays. A flag that the server does not keep is given back.
    fn carry_over(
        &mut self,
        replacement: &mut Replacement,
        now: &[String],
        copy: &Metadata,
    ) -> Result<Option<String>, ImapFailure> {
        let before = std::mem::replace(&mut replacement.flags, now.to_vec());
        let missing = without(now, &copy.flags);
        let lost = without(&before, now);
        for (change, flags) in [(FlagChange::Add, &missing), (FlagChange::Remove, &lost)] {
            if !flags.is_empty() {
                self.session.store_flags(copy.uid, change, flags, None)?;
            }
        }
        if missing.is_empty() {
            return Ok(None);
        }
        let kept = self.metadata(copy.uid)?.map(|copy| copy.flags);
        let not_kept = without(now, &kept.unwrap_or_default());
        Ok(not_kept.into_iter().next())
    }

    /// A flag that the folder cannot hold for ever (RFC 3501 §7.1, PERMANENTFLAGS). Servers that do not say it can hold all.
    fn cannot_hold<'f>(&self, flags: &'f [String]) -> Option<&'f String> {
        let permanent = &self.selected.permanent_flags;
        let takes_new = permanent.is_empty() || has(permanent, "\\*");
        flags.iter().find(|flag| {
            let is_keyword = !flag.starts_with('\\');
            !has(permanent, flag) && !(takes_new && (is_keyword || permanent.is_empty()))
        })
    }
}

pub(super) const DELETED: &str = "\\Deleted";

/// Gmail's extensions.
pub(super) const GMAIL: &str = "X-GM-EXT-1";

const MOVED: &str = "another program moved or deleted it meanwhile";

const NOT_CARRIED: &str =
    "its flags changed at the last moment, and the server does not keep all of them on the copy";

const CARRIED: &str = "its flags changed meanwhile, and were carried over";

fn is(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

pub(super) fn has(flags: &[String], name: &str) -> bool {
    flags.iter().any(|flag| is(flag, name))
}

/// Those that are not among the others.
pub(super) fn without(flags: &[String], others: &[String]) -> Vec<String> {
    let left = flags.iter().filter(|flag| !has(others, flag));
    left.cloned().collect()
}

fn is_same(flags: &[String], others: &[String]) -> bool {
    without(flags, others).is_empty() && without(others, flags).is_empty()
}
