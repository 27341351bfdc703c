//! Replaces a message with the command REPLACE (RFC 8508), for which the quota needs no room for both messages. The server
//! removes the old message itself, so the old message is kept in a file until the new one was read.

use super::events::{
    AppendContent, CommandRefusal, Conclusion, MachineCommand, MessageAnswer, ReplaceResult, Sight,
};
use super::texts::{
    BY_REPLACE, KEPT_FILE, MOVED, NOT_PUT_BACK, NOT_SAID, NOT_THE_ORIGINAL, PUT_BACK, UNREADABLE,
};
use super::{DELETED, Goal, Machine, MachineState, RetryState, SearchPurpose, has};
use crate::engine::report::Reason;
use crate::imap::journal::ReplacementStep;

impl Machine {
    pub(super) fn seen_before(
        &mut self,
        old: Sight,
        is_again: bool,
        why: CommandRefusal,
    ) -> MachineCommand {
        match self.known(old) {
            // The UID of the old message must still denote it, because REPLACE removes the message at once.
            Ok(Some(old)) if !self.is_original(&old) => {
                self.left(Reason::ChangedMeanwhile, NOT_THE_ORIGINAL)
            }
            Ok(Some(old)) if !has(&old.flags, DELETED) => {
                self.entry.flags = old.flags;
                self.entry.step = ReplacementStep::Replacing;
                self.to(MachineState::Keeping(why), MachineCommand::Keep)
            }
            Ok(None) if !is_again => self.look_at(MachineState::LookingBefore(true, why)),
            Ok(_) => self.left(Reason::ChangedMeanwhile, MOVED),
            Err(_) => self.left(Reason::QuotaFull, why.text),
        }
    }

    pub(super) fn replaced(
        &mut self,
        answer: Result<Option<(u32, u32)>, CommandRefusal>,
    ) -> MachineCommand {
        match answer {
            Ok(Some((uidvalidity, uid)))
                if uidvalidity == self.entry.uidvalidity && uid >= self.entry.least =>
            {
                self.to(
                    MachineState::ReadingReplaced(uid),
                    MachineCommand::Read(uid),
                )
            }
            Ok(_) => self.search(AppendContent::New, SearchPurpose::AfterReplace),
            Err(refusal) => self.look_at(MachineState::LookingAgain(true, refusal)),
        }
    }

    /// Handles a refused REPLACE: the old message should still exist, unless the server executed the command despite
    /// the refusal.
    pub(super) fn seen_again(
        &mut self,
        old: Sight,
        is_again: bool,
        why: CommandRefusal,
    ) -> MachineCommand {
        match self.known(old) {
            Ok(Some(_)) => {
                let fate = ReplaceResult::Left(Reason::QuotaFull, why.text);
                self.drop_and_end(Conclusion::Settled(fate))
            }
            Ok(None) if is_again => self.search(AppendContent::New, SearchPurpose::AfterReplace),
            _ => self.doubt(why.said(), RetryState::LookResumed),
        }
    }

    pub(super) fn replaced_read(&mut self, uid: u32, reading: MessageAnswer) -> MachineCommand {
        match reading {
            MessageAnswer::Content { digest, .. } if digest == self.entry.sha256 => {
                let fate = ReplaceResult::Replaced(uid, Some(BY_REPLACE));
                self.drop_and_end(Conclusion::Settled(fate))
            }
            MessageAnswer::Content { is_kin: true, .. } => self.begin_put_back(),
            // The server reported a wrong UID.
            MessageAnswer::Content { .. } => {
                self.search(AppendContent::New, SearchPurpose::AfterReplace)
            }
            MessageAnswer::Nothing => {
                self.doubt(UNREADABLE.to_owned(), RetryState::ReadReplaced(uid))
            }
            MessageAnswer::Unknown(why) => self.doubt(why, RetryState::ReadReplaced(uid)),
        }
    }

    pub(super) fn seen_resumed(&mut self, old: Sight, is_again: bool) -> MachineCommand {
        let old = match self.known(old) {
            Ok(old) => old,
            Err(why) => return self.doubt(why, RetryState::LookResumed),
        };
        if let Goal::LeaveBoth(why) = &self.goal {
            let why = format!("{why}; {KEPT_FILE}");
            return self.both(Reason::AmbiguousCopy, why);
        }
        match (old, &self.entry.step) {
            (None, _) if !is_again => self.look_at(MachineState::LookingResumed(true)),
            (Some(_), ReplacementStep::PuttingBack) => self.drop_and_end(Conclusion::Nothing),
            (None, ReplacementStep::PuttingBack) => {
                self.search(AppendContent::Original, SearchPurpose::PutBack(None))
            }
            (Some(_), _) => self.search(AppendContent::New, SearchPurpose::ReplaceResumed(true)),
            (None, _) => self.search(AppendContent::New, SearchPurpose::ReplaceResumed(false)),
        }
    }

    pub(super) fn begin_put_back(&mut self) -> MachineCommand {
        self.entry.step = ReplacementStep::PuttingBack;
        self.to(MachineState::NotingPutBack, MachineCommand::Note)
    }

    pub(super) fn put_back(
        &mut self,
        answer: Result<Option<(u32, u32)>, CommandRefusal>,
    ) -> MachineCommand {
        match answer {
            Ok(Some((uidvalidity, uid)))
                if uidvalidity == self.entry.uidvalidity && uid >= self.entry.least =>
            {
                self.to(MachineState::ReadingPutBack(uid), MachineCommand::Read(uid))
            }
            Ok(_) => {
                let refusal = CommandRefusal {
                    command: "APPEND",
                    code: None,
                    text: NOT_SAID.to_owned(),
                };
                self.search(
                    AppendContent::Original,
                    SearchPurpose::PutBack(Some(refusal)),
                )
            }
            Err(refusal) => self.search(
                AppendContent::Original,
                SearchPurpose::PutBack(Some(refusal)),
            ),
        }
    }

    pub(super) fn put_back_read(&mut self, uid: u32, reading: MessageAnswer) -> MachineCommand {
        match reading {
            MessageAnswer::Content { digest, .. }
                if Some(&digest) == self.entry.original.as_ref() =>
            {
                self.is_put_back()
            }
            // The server altered the old message when it was appended again. Another attempt would append one more
            // message, so the machine stops here and keeps the file with the old message.
            MessageAnswer::Content { .. } => self.both(Reason::AlteredByServer, NOT_PUT_BACK),
            MessageAnswer::Nothing => {
                self.doubt(UNREADABLE.to_owned(), RetryState::ReadPutBack(uid))
            }
            MessageAnswer::Unknown(why) => self.doubt(why, RetryState::ReadPutBack(uid)),
        }
    }

    pub(super) fn is_put_back(&mut self) -> MachineCommand {
        let fate = ReplaceResult::Both(Reason::AlteredByServer, PUT_BACK.to_owned());
        self.drop_and_end(Conclusion::Settled(fate))
    }

    /// Removes the file with the old message, if it exists, and then ends the replacement with the conclusion.
    pub(super) fn drop_and_end(&mut self, conclusion: Conclusion) -> MachineCommand {
        match self.entry.step {
            ReplacementStep::Replacing | ReplacementStep::PuttingBack => {
                self.to(MachineState::Dropping(conclusion), MachineCommand::Drop)
            }
            // The file with the old message is written before the journal records the step `Replacing`. So it may exist
            // even if the journal still contains the step `Begun`.
            ReplacementStep::Begun if self.is_resumed => {
                self.to(MachineState::Dropping(conclusion), MachineCommand::Drop)
            }
            _ => self.end(conclusion),
        }
    }
}
