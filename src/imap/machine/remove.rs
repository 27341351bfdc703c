//! Removes the old message, and then copies its last flags and labels to the new message.

use super::append::listed;
use super::events::{
    CommandRefusal, Conclusion, FoundCopies, LabelReport, MachineCommand, MessageMetadata,
    ReplaceResult, Sight,
};
use super::texts::{
    BOTH_WENT, BOTH_WENT_EARLIER, CARRIED, GONE, GONE_ALTERED, GONE_EARLIER, LAST_UNKNOWN,
    MARK_REMOVED, MOVED, NEW_WENT, NOT_CARRIED, NOT_OURS_ALONE, RENEWED, UNTOLD,
};
use super::{DELETED, DOUBTS, Machine, MachineState, RetryState, Rule, has, is, without};
use crate::engine::report::Reason;
use crate::imap::journal::ReplacementStep;
use crate::imap::session::FlagChange;

impl Machine {
    pub(super) fn note_deleting(&mut self) -> MachineCommand {
        // With a trash folder, no `\Deleted` is set: the next command moves the old message.
        self.entry.step = if self.terms.has_trash {
            ReplacementStep::Removing(self.copy)
        } else {
            ReplacementStep::Deleting(self.copy)
        };
        self.to(MachineState::NotingDeleting, MachineCommand::Note)
    }

    pub(super) fn delete(&mut self) -> MachineCommand {
        (self.is_proven, self.is_untold) = (false, false);
        if self.terms.has_trash {
            self.to(MachineState::Removing, MachineCommand::Remove)
        } else {
            let since = self.modseq;
            self.to(MachineState::Marking, MachineCommand::Mark(since))
        }
    }

    pub(super) fn marked(
        &mut self,
        answer: Result<bool, CommandRefusal>,
        flags: Option<Vec<String>>,
    ) -> MachineCommand {
        match answer {
            Ok(true) => self.round(),
            Ok(false) => {
                self.is_ours = true;
                self.was_there = flags.is_some();
                // UNCHANGEDSINCE lets only one client mark the message, so of several runs only this one can remove it.
                self.is_proven = self.modseq.is_some() && flags.is_some();
                self.last = flags.or(self.last.take());
                // Without this step in the journal, a later run could not tell whether embody or another program removed
                // the old message.
                self.entry.step = ReplacementStep::Removing(self.copy);
                self.to(MachineState::NotingRemoving, MachineCommand::Note)
            }
            Err(refusal) => {
                // The server may have set `\Deleted` despite the refusal. If the old message disappears later, that may
                // be the reason, so the new message must be kept. Another program may also have moved the old message.
                self.is_ours = true;
                self.was_there = true;
                self.is_untold = true;
                self.refused(&refusal)
            }
        }
    }

    pub(super) fn removed(
        &mut self,
        answer: Result<(), CommandRefusal>,
        flags: Option<Vec<String>>,
        labels: Option<Vec<String>>,
        is_told: bool,
        is_proven: bool,
    ) -> MachineCommand {
        self.was_there |= flags.is_some() || is_told;
        self.is_proven |= is_proven;
        self.is_untold = !is_told;
        let flags_are_unknown = flags.is_none();
        if let Some(mut flags) = flags {
            // embody itself set `\Deleted` on the old message, so it must not be copied to the new one.
            if !self.terms.has_trash {
                flags.retain(|flag| !is(flag, DELETED));
            }
            self.last = Some(flags);
        } else if let Some(last) = &mut self.last
            && !self.terms.has_trash
        {
            last.retain(|flag| !is(flag, DELETED));
        }
        self.is_last_unknown = flags_are_unknown || self.terms.is_gmail && labels.is_none();
        self.last_labels = labels;
        self.is_kept = answer.is_ok();
        self.refusal = answer.err();
        self.look_at(MachineState::LookingAfter(false))
    }

    pub(super) fn seen_after(&mut self, old: Sight, copy: Sight, is_again: bool) -> MachineCommand {
        let old = match self.known(old) {
            Ok(old) => old,
            Err(why) => return self.doubt(why, RetryState::Look),
        };
        match (old, self.refusal.take()) {
            (None, _) if self.was_there => {
                let copy = match self.known(copy) {
                    Ok(Some(copy)) => copy,
                    // The new message is not listed. Both messages are checked again after a NOOP before it counts as
                    // missing.
                    _ if !is_again => return self.look_at(MachineState::LookingAfter(true)),
                    Ok(None) => return self.both(Reason::ChangedMeanwhile, NEW_WENT),
                    Err(why) => return self.doubt(why, RetryState::Look),
                };
                self.finished_with(&copy)
            }
            // The old message was gone before embody could mark or move it, so another program removed it.
            (None, _) => {
                (self.is_ours, self.was_there) = (false, false);
                let copy = match self.known(copy) {
                    Ok(copy) => copy,
                    Err(why) => return self.doubt(why, RetryState::Look),
                };
                if !is_again {
                    return self.look_at(MachineState::LookingAfter(true));
                }
                self.finish(None, copy)
            }
            (Some(_), Some(refusal)) => self.refused(&refusal),
            (Some(_), None) => self.round(),
        }
    }

    /// Decides about the new message after the old one has disappeared.
    pub(super) fn finish_without_original(
        &mut self,
        copy: Option<MessageMetadata>,
    ) -> MachineCommand {
        let is_by_us = self.was_there;
        let Some(copy) = copy else {
            let is_appended = matches!(self.entry.step, ReplacementStep::Appended(_));
            let is_unread = self.copy_digest.is_none() && !self.is_off(Rule::WrongUid);
            if self.is_resumed && is_appended && is_unread {
                return self.search_again(BOTH_WENT_EARLIER);
            }
            return match (is_by_us, self.is_resumed) {
                // The earlier run removed the old message, and the user removed or moved the new one later.
                (true, true) => self.left(Reason::ChangedMeanwhile, BOTH_WENT),
                (false, true) if matches!(self.entry.step, ReplacementStep::Deleting(_)) => {
                    self.both(Reason::ChangedMeanwhile, BOTH_WENT_EARLIER)
                }
                (_, true) => self.end(Conclusion::Nothing),
                (_, false) => self.both(Reason::ChangedMeanwhile, BOTH_WENT),
            };
        };
        if is_by_us {
            if self.copy_digest.is_none() && !self.is_off(Rule::Digest) {
                return self.read(self.copy);
            }
            let is_whole = self.copy_digest.as_ref() == Some(&self.entry.sha256);
            if !is_whole && !self.is_off(Rule::Digest) {
                return self.both(Reason::AmbiguousCopy, NOT_OURS_ALONE);
            }
            return self.finished_with(&copy);
        }
        if self.is_off(Rule::Absence) && !self.is_resumed {
            self.goal = super::Goal::TakeBack(Some((Reason::ChangedMeanwhile, MOVED.to_owned())));
            return self.remove_copy(Some((Reason::ChangedMeanwhile, MOVED.to_owned())), &copy);
        }
        // The server or another program removed the old message. A deduplicating server may also have given it a new
        // UID, or put the new message in its place. So the new message may be the only one, and is kept.
        let Some(digest) = self.copy_digest.clone() else {
            return self.read(self.copy);
        };
        if digest == self.entry.sha256 {
            self.doubled = Some(if self.is_resumed { GONE_EARLIER } else { GONE });
            return self.finished_with(&copy);
        }
        if Some(&digest) == self.entry.original.as_ref() {
            return self.both(Reason::AlteredByServer, RENEWED);
        }
        if self.is_kin && !self.is_resumed {
            return self.both(Reason::AlteredByServer, GONE_ALTERED);
        }
        self.both(Reason::AmbiguousCopy, NOT_OURS_ALONE)
    }

    /// Sets the last flags of the old message on the new message, after the old message is gone.
    pub(super) fn finished_with(&mut self, copy: &MessageMetadata) -> MachineCommand {
        if self.is_untold && !self.is_off(Rule::Twins) {
            self.doubled = self.doubled.or(Some(UNTOLD));
        }
        if has(&copy.flags, DELETED) && !self.is_resumed {
            // The new message had no `\Deleted` at the last check before the removal. Another program has set it since
            // then, while two equal messages existed. The new one is now the only one, so the flag is removed.
            self.changes = vec![(FlagChange::Remove, vec![DELETED.to_owned()])];
            self.remark = Some(MARK_REMOVED);
        } else {
            self.changes = Vec::new();
        }
        if let Some(last) = self.last.take() {
            // All recorded flags were set on the new message at the last check. If one is missing now, another program
            // has removed it.
            let gained = without(&last, &self.entry.flags);
            let missing = without(&gained, &copy.flags);
            let lost = without(&self.entry.flags, &last);
            let taken: Vec<String> = lost.into_iter().filter(|it| has(&copy.flags, it)).collect();
            if !missing.is_empty() || !taken.is_empty() {
                self.remark = Some(CARRIED);
            }
            self.given.clone_from(&missing);
            self.taken.clone_from(&taken);
            let changes = [(FlagChange::Add, missing), (FlagChange::Remove, taken)];
            self.changes
                .extend(changes.into_iter().filter(|(_, flags)| !flags.is_empty()));
        }
        self.carry_last()
    }

    pub(super) fn carry_last(&mut self) -> MachineCommand {
        match self.changes.pop() {
            Some((change, flags)) => self.to(
                MachineState::CarryingLast,
                MachineCommand::Store(self.copy, change, flags),
            ),
            None if self.given.is_empty() && self.taken.is_empty() => self.finished(),
            None => self.look_at(MachineState::CheckingLast),
        }
    }

    pub(super) fn checked_last(&mut self, copy: &Sight) -> MachineCommand {
        let is_kept = match copy {
            Sight::Present(copy) => {
                let is_left = self.taken.iter().any(|flag| has(&copy.flags, flag));
                without(&self.given, &copy.flags).is_empty() && !is_left
            }
            _ => false,
        };
        if !is_kept {
            self.remark = Some(NOT_CARRIED);
        }
        self.given.clear();
        self.taken.clear();
        self.finished()
    }

    /// Searches for the new message of another run, which may have replaced the same message at the same time.
    pub(super) fn find_twins(&mut self) -> MachineCommand {
        // If only this run can have removed the old message, a new message with the same Message-ID is a different
        // mail, for example another copy from a mailing list.
        let (copy, with_kin) = (self.copy, !self.is_proven);
        self.to(
            MachineState::FindingTwins,
            MachineCommand::FindTwins { copy, with_kin },
        )
    }

    pub(super) fn found_twins(&mut self, found: Result<FoundCopies, String>) -> MachineCommand {
        self.is_checked = true;
        let FoundCopies { mut same, kin } = match found {
            Ok(found) => found,
            Err(why) if self.doubts < DOUBTS => {
                self.is_checked = false;
                return self.doubt(why, RetryState::FindTwins);
            }
            // The server cannot search.
            Err(_) => FoundCopies::default(),
        };
        same.extend(kin);
        if !same.is_empty() {
            same.push(self.copy);
            same.sort_unstable();
            let why = format!(
                "the message now exists more than once (UID {}), probably because another run of embody replaced it, too; compare these messages and delete all but one",
                listed(&same)
            );
            return self.doubled(why);
        }
        self.finished()
    }

    pub(super) fn finished(&mut self) -> MachineCommand {
        if let Some(last) = &self.last_labels {
            let missing = without(last, &self.entry.labels);
            let taken = without(&self.entry.labels, last);
            let changes = [(FlagChange::Add, missing), (FlagChange::Remove, taken)];
            self.changes = changes
                .into_iter()
                .filter(|(_, labels)| !labels.is_empty())
                .collect();
            if !self.changes.is_empty() {
                if self.remark != Some(NOT_CARRIED) {
                    self.remark = Some(CARRIED);
                }
                return self.label_last();
            }
        }
        if !self.is_checked && !self.is_off(Rule::Twins) {
            return self.find_twins();
        }
        if self.is_last_unknown {
            self.remark = Some(LAST_UNKNOWN);
        }
        if let Some(why) = self.doubled {
            let remark = self.remark.map(|remark| format!("; {remark}"));
            return self.doubled(format!("{why}{}", remark.unwrap_or_default()));
        }
        let fate = ReplaceResult::Replaced(self.copy, self.remark);
        self.end(Conclusion::Settled(fate))
    }

    pub(super) fn label_last(&mut self) -> MachineCommand {
        match self.changes.pop() {
            Some((change, labels)) => self.to(
                MachineState::LabellingLast,
                MachineCommand::StoreLabels(self.copy, change, labels),
            ),
            None => self.to(
                MachineState::CheckingLabels,
                MachineCommand::Labels(self.copy),
            ),
        }
    }

    pub(super) fn checked_labels(&mut self, copy: Option<LabelReport>) -> MachineCommand {
        let wanted = self.last_labels.take().unwrap_or_default();
        let is_kept = copy.is_some_and(|copy| {
            let lost = without(&self.entry.labels, &wanted);
            let is_left = lost.iter().any(|label| has(&copy.labels, label));
            without(&wanted, &copy.labels).is_empty() && !is_left
        });
        if !is_kept {
            self.remark = Some(NOT_CARRIED);
        }
        self.finished()
    }
}
