//! Compares the old and the new message, and copies the flags and labels of the old message to the new one: the steps before
//! the old message is removed.

use super::events::{
    AppendContent, Conclusion, LabelReport, MachineCommand, MessageMetadata, MessageStart,
    ReplaceResult, Sight,
};
use super::texts::{
    CARRIED, COPY_MARKED, COPY_WENT, COPY_WENT_EARLIER, LABELS, MARKED, MARKED_STAYS, NO_DATE,
    NO_LABELS, NO_SIZE, NOT_OURS, NOT_STORED, NOT_THE_ORIGINAL, OTHER_BYTES, OTHER_DATE, RESTLESS,
    STAYS_MARKED,
};
use super::{
    DELETED, DOUBTS, Goal, Machine, MachineState, ROUNDS, RetryState, Rule, SearchPurpose, has,
    is_same, why_altered, without,
};
use crate::engine::report::Reason;
use crate::imap::journal::ReplacementStep;
use crate::imap::session::{FlagChange, InternalDate};

impl Machine {
    pub(super) fn seen(&mut self, old: Sight, copy: Sight, is_again: bool) -> MachineCommand {
        let (old, copy) = match (self.known(old), self.known(copy)) {
            (Ok(old), Ok(copy)) => (old, copy),
            (Err(why), _) | (_, Err(why)) => return self.doubt(why, RetryState::Look),
        };
        // Some servers briefly hide a message while neighbouring messages are being expunged, so a missing message is checked
        // again.
        if (old.is_none() || copy.is_none()) && !is_again {
            return self.look(true);
        }
        match self.goal.clone() {
            Goal::Finish => self.finish(old, copy),
            Goal::TakeBack(why) => self.take_back(why, old, copy),
            Goal::LeaveBoth(why) => self.leave_both(why, old.as_ref()),
        }
    }

    pub(super) fn known(&self, sight: Sight) -> Result<Option<MessageMetadata>, String> {
        match sight {
            Sight::Present(seen) => Ok(Some(seen)),
            Sight::Absent => Ok(None),
            Sight::Unknown(_) if self.is_off(Rule::Unknown) => Ok(None),
            Sight::Unknown(why) => Err(why),
        }
    }

    /// Removes the `\Deleted` that embody set from the old message.
    pub(super) fn unmark(&mut self) -> MachineCommand {
        // The old message still exists, so the removal that the journal announces did not happen. If the message is
        // missing later, another program removed it.
        if let ReplacementStep::Removing(copy) = self.entry.step {
            self.entry.step = ReplacementStep::Deleting(copy);
            return self.to(MachineState::NotingUnmark, MachineCommand::Note);
        }
        self.rounds += 1;
        if self.rounds > ROUNDS * 2 {
            return MachineCommand::Give(Conclusion::Unknown(STAYS_MARKED.to_owned()));
        }
        self.to(
            MachineState::Unmarking,
            MachineCommand::Store(self.entry.uid, FlagChange::Remove, vec![DELETED.to_owned()]),
        )
    }

    pub(super) fn finish(
        &mut self,
        old: Option<MessageMetadata>,
        copy: Option<MessageMetadata>,
    ) -> MachineCommand {
        let Some(old) = old else {
            return self.finish_without_original(copy);
        };
        if has(&old.flags, DELETED) {
            if self.is_ours {
                // This is embody's own `\Deleted` from an earlier attempt. It is removed before the messages are
                // compared again, so that no other program expunges the old message before the comparison.
                return self.unmark();
            }
            if self.is_resumed || self.is_found {
                // After an interrupted session, the user may have seen both messages and marked the old one
                // deliberately, so the new one is kept. It is also kept if another run may have written it and is now
                // removing the old message.
                return self.left(Reason::ChangedMeanwhile, MARKED_STAYS);
            }
            // The mark may be from another run, which takes this new message for its own and will remove the old one.
            if copy.is_some() {
                return self.both(Reason::ChangedMeanwhile, MARKED_STAYS);
            }
            let why = (Reason::ChangedMeanwhile, MARKED.to_owned());
            return self.turn_back(Some(why), Some(old), copy);
        }
        // The `\Deleted` that embody had set is gone, so any later `\Deleted` was set by another program.
        (self.is_ours, self.was_there) = (false, false);
        if !self.is_original(&old) {
            return self.both(Reason::AmbiguousCopy, NOT_THE_ORIGINAL);
        }
        let Some(copy) = copy else {
            // The UID of the new message may be wrong: the server reported it, and it was never verified, not even by
            // the earlier session that wrote it into the journal.
            if self.copy_digest.is_none() && !self.is_off(Rule::WrongUid) {
                match (self.is_resumed, &self.entry.step) {
                    (false, _) => {
                        return self
                            .search(AppendContent::New, SearchPurpose::WrongUid(NOT_STORED));
                    }
                    (true, ReplacementStep::Appended(_)) => {
                        return self.search_again(COPY_WENT_EARLIER);
                    }
                    _ => {}
                }
            }
            return self.copy_went();
        };
        if has(&copy.flags, DELETED) && !self.is_off(Rule::MarkedCopy) {
            let why = (Reason::ChangedMeanwhile, COPY_MARKED.to_owned());
            return self.turn_back(Some(why), Some(old), Some(copy));
        }
        if !self.is_copy(&copy) {
            return self.both(Reason::AmbiguousCopy, NOT_OURS);
        }
        match &self.copy_digest {
            None if !(self.is_resumed && self.is_off(Rule::Digest)) => return self.read(self.copy),
            Some(digest) if *digest != self.entry.sha256 => {
                return if self.is_resumed {
                    self.both(Reason::AmbiguousCopy, NOT_OURS)
                } else {
                    self.turn_back(why_altered(OTHER_BYTES), Some(old), Some(copy))
                };
            }
            _ => {}
        }
        if !self.is_original_read && !self.is_off(Rule::Digest) {
            if self.entry.original.is_some() {
                return self.read(self.entry.uid);
            }
            // A journal of version 0.3.0 does not contain the digest of the old message, so only the date can identify
            // it. If the date matches, the new message is removed, and the old message can be replaced again. Otherwise
            // both messages are kept.
            return if old.date.as_ref().is_some_and(|date| self.is_date(date)) {
                self.turn_back(None, Some(old), Some(copy))
            } else {
                self.both(Reason::AmbiguousCopy, NOT_THE_ORIGINAL)
            };
        }
        if !self.is_stored && !self.is_off(Rule::Objects) {
            let command = MachineCommand::CheckObjects { copy: self.copy };
            return self.to(MachineState::CheckingObjects, command);
        }
        if (old.date.is_none() || old.size.is_none()) && !self.is_off(Rule::Identity) {
            if self.doubts >= DOUBTS {
                let why = Some((Reason::ServerRefused, NO_SIZE.to_owned()));
                return self.turn_back(why, Some(old), Some(copy));
            }
            return self.doubt(NO_SIZE.to_owned(), RetryState::Look);
        }
        match &copy.date {
            None if self.doubts >= DOUBTS => {
                return self.turn_back(why_altered(NO_DATE), Some(old), Some(copy));
            }
            None => return self.doubt(NO_DATE.to_owned(), RetryState::Look),
            Some(date) if !self.is_date(date) => {
                return self.turn_back(why_altered(OTHER_DATE), Some(old), Some(copy));
            }
            Some(_) => {}
        }
        self.bring_flags(&old, &copy)
    }

    /// Continues if the store contains the detached attachments of the new message. Otherwise the old message may be the
    /// only place that still has them: both messages are kept, and the journal keeps the entry, so that a later run can
    /// finish the replacement with the right store.
    pub(super) fn checked_objects(&mut self, answer: Result<(), String>) -> MachineCommand {
        match answer {
            Ok(()) => {
                self.is_stored = true;
                self.look(false)
            }
            Err(why) => {
                let fate = ReplaceResult::Both(Reason::StoreFailed, why);
                MachineCommand::Give(Conclusion::Settled(fate))
            }
        }
    }

    /// Searches for the new message of an earlier session, whose UID in the journal does not exist. The server may have
    /// reported a wrong UID, which that session did not verify. `why` is the report if the search finds nothing.
    pub(super) fn search_again(&mut self, why: &'static str) -> MachineCommand {
        self.search(AppendContent::New, SearchPurpose::Resumed(Some(why)))
    }

    /// Ends the replacement because the new message is no longer in the folder. Another program may have moved it
    /// elsewhere, so the user is told that the message may exist twice.
    pub(super) fn copy_went(&mut self) -> MachineCommand {
        let (reason, why) = match (self.is_resumed, self.copy_digest.is_some()) {
            (true, _) => (Reason::ChangedMeanwhile, COPY_WENT_EARLIER),
            (_, true) => (Reason::ChangedMeanwhile, COPY_WENT),
            (_, false) => (Reason::AlteredByServer, NOT_STORED),
        };
        match (self.is_off(Rule::Elsewhere), self.is_resumed) {
            (true, true) => self.end(Conclusion::Nothing),
            (true, false) => self.left(reason, why),
            (false, _) => self.both(reason, why),
        }
    }

    /// Returns whether the UID of the old message can still belong to the message that was read: size, date and first
    /// bytes did not change. Some servers change UIDs when messages are added or removed.
    pub(super) fn is_original(&self, old: &MessageMetadata) -> bool {
        // A journal of version 0.3.0 does not contain the size of the old message.
        let has_size = self.entry.original.is_some();
        let is_size = |size: &u64| !has_size || *size == self.entry.original_size;
        let is_same = old.start != MessageStart::Different
            && old.size.as_ref().is_none_or(is_size)
            && old.date.as_ref().is_none_or(|date| self.is_date(date));
        is_same || self.is_off(Rule::Identity)
    }

    /// Returns whether the UID of the new message can still belong to the message that was read.
    pub(super) fn is_copy(&self, copy: &MessageMetadata) -> bool {
        copy.start != MessageStart::Different || self.is_off(Rule::Identity)
    }

    pub(super) fn is_date(&self, date: &InternalDate) -> bool {
        self.entry.internal_date().is_same(date)
    }

    /// Sets the flags of the old message on the new message, and removes those that the old message has lost. Other flags that
    /// another program set on the new message are kept.
    pub(super) fn bring_flags(
        &mut self,
        old: &MessageMetadata,
        copy: &MessageMetadata,
    ) -> MachineCommand {
        let missing = without(&old.flags, &copy.flags);
        if let Some(flag) = missing.iter().find(|flag| has(&self.given, flag)) {
            let text = format!("the server does not store the flag {flag} on the new message");
            let why = Some((Reason::FlagsNotKept, text));
            return self.turn_back(why, Some(old.clone()), Some(copy.clone()));
        }
        let lost = without(&self.entry.flags, &old.flags);
        let taken: Vec<String> = lost.into_iter().filter(|it| has(&copy.flags, it)).collect();
        if !is_same(&old.flags, &self.entry.flags) {
            self.remark = Some(CARRIED);
        }
        if missing.is_empty() && taken.is_empty() {
            self.given.clear();
            self.entry.flags = old.flags.clone();
            self.last = Some(old.flags.clone());
            self.modseq = old.modseq;
            return if self.terms.is_gmail && !self.is_labelled {
                self.label()
            } else {
                self.is_labelled = false;
                self.note_deleting()
            };
        }
        self.rounds += 1;
        if self.rounds >= ROUNDS {
            let why = Some((Reason::ChangedMeanwhile, RESTLESS.to_owned()));
            return self.turn_back(why, Some(old.clone()), Some(copy.clone()));
        }
        self.given.clone_from(&missing);
        self.changes = [
            (FlagChange::Add, missing.clone()),
            (FlagChange::Remove, taken),
        ]
        .into_iter()
        .filter(|(_, flags)| !flags.is_empty())
        .collect();
        // The flags are recorded before they are set. If the old message loses one of them later, embody knows that it
        // set this flag itself and may remove it from the new message.
        self.entry.flags.extend(missing);
        self.to(MachineState::NotingFlags, MachineCommand::Note)
    }

    pub(super) fn carry(&mut self) -> MachineCommand {
        match self.changes.pop() {
            Some((change, flags)) => self.to(
                MachineState::Carrying,
                MachineCommand::Store(self.copy, change, flags),
            ),
            None => self.look(false),
        }
    }

    pub(super) fn label(&mut self) -> MachineCommand {
        self.to(MachineState::Labelling, MachineCommand::Labels(self.copy))
    }

    pub(super) fn labelled(
        &mut self,
        old: Option<LabelReport>,
        copy: Option<LabelReport>,
    ) -> MachineCommand {
        let (Some(old), Some(copy)) = (old, copy) else {
            if self.is_off(Rule::Unknown) {
                return self.note_deleting();
            }
            return self.doubt(NO_LABELS.to_owned(), RetryState::Label);
        };
        let missing = without(&old.labels, &copy.labels);
        let lost = without(&self.entry.labels, &old.labels);
        let taken: Vec<String> = lost
            .into_iter()
            .filter(|it| has(&copy.labels, it))
            .collect();
        if missing.is_empty() && taken.is_empty() {
            self.entry.labels = old.labels;
            self.is_labelled = true;
            return self.look(false);
        }
        let is_given = |given: &Vec<String>| missing.iter().any(|label| has(given, label));
        if self.given_labels.as_ref().is_some_and(is_given) {
            self.goal = Goal::TakeBack(Some((Reason::FlagsNotKept, LABELS.to_owned())));
            return self.look(false);
        }
        self.rounds += 1;
        if self.rounds >= ROUNDS {
            self.goal = Goal::TakeBack(Some((Reason::ChangedMeanwhile, RESTLESS.to_owned())));
            return self.look(false);
        }
        self.given_labels = Some(missing.clone());
        self.entry.labels.extend(missing.clone());
        self.changes = [(FlagChange::Add, missing), (FlagChange::Remove, taken)]
            .into_iter()
            .filter(|(_, labels)| !labels.is_empty())
            .collect();
        self.to(MachineState::NotingLabels, MachineCommand::Note)
    }

    pub(super) fn store_labels(&mut self, at: MachineState) -> MachineCommand {
        match self.changes.pop() {
            Some((change, labels)) => {
                self.to(at, MachineCommand::StoreLabels(self.copy, change, labels))
            }
            None => self.label(),
        }
    }
}
