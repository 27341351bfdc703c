//! Gives up a replacement: removes the new message and keeps the old one, or keeps both messages.

use super::events::{CommandRefusal, Conclusion, MachineCommand, MessageMetadata, ReplaceResult};
use super::texts::{
    COPY_UNTOLD, KEEPS_COPY, MARKED_STAYS, NOT_OURS, NOT_THE_ORIGINAL, STAYS_MARKED, TAKEN_BACK,
    TWICE,
};
use super::{
    BACK_OFF, DELETED, Goal, Machine, MachineState, REMOVALS, ROUNDS, RetryState, Rule, has,
};
use crate::engine::report::Reason;
use crate::imap::journal::ReplacementStep;
use crate::imap::session::FlagChange;

impl Machine {
    /// Gives up the replacement: the goal is now to remove the new message.
    pub(super) fn turn_back(
        &mut self,
        why: Option<(Reason, String)>,
        old: Option<MessageMetadata>,
        copy: Option<MessageMetadata>,
    ) -> MachineCommand {
        self.goal = Goal::TakeBack(why.clone());
        self.take_back(why, old, copy)
    }

    pub(super) fn take_back(
        &mut self,
        why: Option<(Reason, String)>,
        old: Option<MessageMetadata>,
        copy: Option<MessageMetadata>,
    ) -> MachineCommand {
        let is_marked = copy.as_ref().is_some_and(|copy| has(&copy.flags, DELETED));
        let is_by_us = matches!(self.entry.step, ReplacementStep::TakingBack(..));
        let old = match old {
            // The old message is gone: because of embody's `\Deleted`, or because the server or another program removed
            // it. The new message may be the only one, and is kept.
            None => {
                if self.is_resumed && is_marked && is_by_us {
                    return self.unmark_copy();
                }
                self.goal = Goal::Finish;
                return self.finish_without_original(copy);
            }
            Some(old) if self.is_ours && has(&old.flags, DELETED) => return self.unmark(),
            Some(old) if has(&old.flags, DELETED) && (self.is_resumed || copy.is_some()) => {
                // The old message was marked after both messages were there: by the user on purpose, or by another run
                // that takes this new message for its own. Either way, the new message is kept.
                return match copy {
                    Some(_) if is_marked && is_by_us => self.unmark_copy(),
                    Some(_) if self.is_resumed => self.left(Reason::ChangedMeanwhile, MARKED_STAYS),
                    Some(_) => self.both(Reason::ChangedMeanwhile, MARKED_STAYS),
                    None => self.end(Conclusion::Nothing),
                };
            }
            Some(old) => old,
        };
        (self.is_ours, self.was_there) = (false, false);
        if !self.is_original(&old) {
            return self.both(Reason::AmbiguousCopy, NOT_THE_ORIGINAL);
        }
        match copy {
            Some(copy) => self.remove_copy(why, &copy),
            // The new message disappeared without a command of embody.
            None if self.removals == 0 && !is_by_us && !has(&old.flags, DELETED) => {
                self.copy_went()
            }
            None if self.removals > 0 && !self.is_copy_told && !self.is_off(Rule::Elsewhere) => {
                let (reason, why) =
                    why.unwrap_or_else(|| (Reason::ChangedMeanwhile, TAKEN_BACK.to_owned()));
                self.both(reason, format!("{why}; {COPY_UNTOLD}"))
            }
            None => self.end(match why {
                Some((reason, why)) => Conclusion::Settled(ReplaceResult::Left(reason, why)),
                None => Conclusion::Nothing,
            }),
        }
    }

    /// Removes the new message. Before that, reads the content of both messages, unless this session has already read
    /// it.
    pub(super) fn remove_copy(
        &mut self,
        why: Option<(Reason, String)>,
        copy: &MessageMetadata,
    ) -> MachineCommand {
        if !self.is_copy(copy) {
            return self.both(Reason::AmbiguousCopy, NOT_OURS);
        }
        let Some(digest) = self.copy_digest.clone() else {
            return self.read(self.copy);
        };
        let is_known = if self.is_resumed {
            self.is_vouched(&digest)
        } else {
            digest == self.entry.sha256 || self.is_kin || self.is_off(Rule::WrongUid)
        };
        if !is_known || self.is_found {
            return self.both(Reason::AmbiguousCopy, NOT_OURS);
        }
        // The server may list the old message under a second UID, and removing one may remove both.
        if Some(&digest) == self.entry.original.as_ref() && !self.is_off(Rule::Absence) {
            return self.both(Reason::AlteredByServer, TWICE);
        }
        let has_digest = self.entry.original.is_some();
        if !self.is_original_read && has_digest && !self.is_off(Rule::Digest) {
            return self.read(self.entry.uid);
        }
        if self.removals >= REMOVALS {
            let text = self.refusal.as_ref().map_or(KEEPS_COPY, |it| &it.text);
            let why = why.map_or(TAKEN_BACK.to_owned(), |(_, why)| why);
            let what = format!(
                "{why}; the message now exists twice, because the server did not delete the new copy (UID {}): {text}",
                self.copy
            );
            return MachineCommand::Give(Conclusion::Stuck(what));
        }
        self.removals += 1;
        let step = ReplacementStep::TakingBack(self.copy, digest);
        if self.entry.step != step {
            self.entry.step = step;
            return self.to(MachineState::NotingTakeBack, MachineCommand::Note);
        }
        // If the new message already has `\Deleted`, it is expunged at once. Otherwise the flag is set first.
        if has(&copy.flags, DELETED) {
            self.to(
                MachineState::TakingAway,
                MachineCommand::TakeAway(self.copy),
            )
        } else {
            self.mark_copy()
        }
    }

    /// Whether the journal vouches for the new message: only if its digest is in the journal, a resumed replacement may
    /// delete it.
    pub(super) fn is_vouched(&self, digest: &str) -> bool {
        let noted = match &self.entry.step {
            ReplacementStep::TakingBack(_, noted) => Some(noted.as_str()),
            _ => None,
        };
        digest == self.entry.sha256 || noted == Some(digest)
    }

    pub(super) fn mark_copy(&mut self) -> MachineCommand {
        // At Gmail, expunging only removes a label. The new message is moved to the trash instead, and needs no
        // `\Deleted` for that.
        if self.terms.is_gmail {
            return self.to(
                MachineState::TakingAway,
                MachineCommand::TakeAway(self.copy),
            );
        }
        let flags = vec![DELETED.to_owned()];
        let command = MachineCommand::Store(self.copy, FlagChange::Add, flags);
        self.to(MachineState::MarkingCopy, command)
    }

    pub(super) fn unmark_copy(&mut self) -> MachineCommand {
        self.rounds += 1;
        if self.rounds > ROUNDS * 2 {
            return MachineCommand::Give(Conclusion::Unknown(STAYS_MARKED.to_owned()));
        }
        let flags = vec![DELETED.to_owned()];
        let command = MachineCommand::Store(self.copy, FlagChange::Remove, flags);
        self.to(MachineState::UnmarkingCopy, command)
    }

    /// Waits and checks again after the server refused to delete the new message.
    pub(super) fn not_taken(&mut self, refusal: CommandRefusal) -> MachineCommand {
        self.refusal = Some(refusal);
        let pause = BACK_OFF << (2 * self.removals.saturating_sub(1));
        self.to(
            MachineState::Resting(RetryState::Look),
            MachineCommand::Rest(pause),
        )
    }

    /// Keeps both messages, but first removes the `\Deleted` that embody set from the old message.
    pub(super) fn leave_both(
        &mut self,
        why: String,
        old: Option<&MessageMetadata>,
    ) -> MachineCommand {
        match old {
            Some(old) if self.is_ours && has(&old.flags, DELETED) => self.unmark(),
            _ => self.both(Reason::AmbiguousCopy, why),
        }
    }
}
