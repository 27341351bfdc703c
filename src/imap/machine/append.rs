//! Starts or resumes a replacement: writes the new message to the folder, finds its UID, and reads its content.

use super::events::{
    AppendContent, CommandRefusal, Conclusion, FoundCopies, LabelReport, MachineCommand,
    MessageAnswer, ReplaceResult,
};
use super::texts::{
    BY_REPLACE, COPY_LEFT, EARLIER, KIN, NO_LABELS, NOT_OURS, NOT_PUT_BACK, NOT_STORED,
    NOT_THE_ORIGINAL, OTHER_BYTES, RENUMBERED, SAME, SEVERAL, SHIFTING, UNREADABLE, WRONG_UID,
};
use super::{Goal, Machine, MachineState, RetryState, Rule, SearchPurpose, altered};
use crate::engine::report::Reason;
use crate::imap::journal::ReplacementStep;

impl Machine {
    pub(super) fn start(&mut self) -> MachineCommand {
        if !self.is_resumed {
            return self.to(MachineState::NotingBegun, MachineCommand::Note);
        }
        let uid = match &self.entry.step {
            ReplacementStep::Begun => {
                return match &self.goal {
                    Goal::LeaveBoth(why) => {
                        let why = why.clone();
                        self.both(Reason::AmbiguousCopy, why)
                    }
                    _ => self.search(AppendContent::New, SearchPurpose::Resumed(None)),
                };
            }
            ReplacementStep::Replacing => {
                return self.look_at(MachineState::LookingResumed(false));
            }
            ReplacementStep::PuttingBack => {
                return self.look_at(MachineState::LookingResumed(false));
            }
            ReplacementStep::Appended(uid)
            | ReplacementStep::Deleting(uid)
            | ReplacementStep::Removing(uid)
            | ReplacementStep::TakingBack(uid, _) => *uid,
        };
        self.copy = uid;
        // The UID in the journal existed before the new message was appended, so the entry is wrong, and both messages
        // are kept.
        if uid == self.entry.uid || uid < self.entry.least {
            self.goal = Goal::LeaveBoth(NOT_OURS.to_owned());
        }
        self.look(false)
    }

    pub(super) fn appended(
        &mut self,
        answer: Result<Option<(u32, u32)>, CommandRefusal>,
    ) -> MachineCommand {
        match answer {
            Ok(Some((uidvalidity, _))) if uidvalidity != self.entry.uidvalidity => {
                if self.is_off(Rule::WrongUid) {
                    return self.both(Reason::ChangedMeanwhile, RENUMBERED);
                }
                self.search(AppendContent::New, SearchPurpose::WrongUid(RENUMBERED))
            }
            Ok(Some((_, uid))) if uid >= self.entry.least && uid != self.entry.uid => {
                self.has_copy(uid)
            }
            Ok(Some((_, uid))) => {
                self.to(MachineState::ReadingEarlier(uid), MachineCommand::Read(uid))
            }
            Ok(None) => self.search(AppendContent::New, SearchPurpose::AfterAppend(None)),
            // The server may have stored the message despite the refusal, so the new message is searched for.
            Err(refusal) => self.search(
                AppendContent::New,
                SearchPurpose::AfterAppend(Some(refusal)),
            ),
        }
    }

    /// Handles an APPENDUID that belonged to another message before. If the message under this UID now has the new
    /// content, the server reassigns UIDs, and nothing in this folder can be deleted safely.
    pub(super) fn earlier_was_read(&mut self, uid: u32, reading: MessageAnswer) -> MachineCommand {
        match reading {
            MessageAnswer::Content { digest, .. } if digest == self.entry.sha256 => {
                self.both(Reason::AmbiguousCopy, SHIFTING)
            }
            MessageAnswer::Unknown(why) => self.doubt(why, RetryState::ReadEarlier(uid)),
            _ => self.search(AppendContent::New, SearchPurpose::WrongUid(EARLIER)),
        }
    }

    pub(super) fn has_copy(&mut self, uid: u32) -> MachineCommand {
        self.copy = uid;
        self.entry.step = ReplacementStep::Appended(uid);
        self.to(MachineState::NotingCopy, MachineCommand::Note)
    }

    pub(super) fn found(
        &mut self,
        purpose: SearchPurpose,
        found: Result<FoundCopies, String>,
    ) -> MachineCommand {
        let FoundCopies { same: found, kin } = match found {
            Ok(found) => found,
            Err(_) if self.is_off(Rule::Unknown) => FoundCopies::default(),
            Err(why) => return self.doubt(why, RetryState::Search(purpose)),
        };
        let is_copy = !matches!(purpose, SearchPurpose::PutBack(_));
        if let ([_], true) = (found.as_slice(), is_copy) {
            self.copy_digest = Some(self.entry.sha256.clone());
        }
        // After a refusal, the found message may be from another run. Otherwise the server confirmed that it stored the
        // new message, so the only message with its content is ours.
        let is_doubtful = !matches!(
            purpose,
            SearchPurpose::AfterAppend(None) | SearchPurpose::WrongUid(_)
        );
        match (purpose, found.as_slice()) {
            (
                SearchPurpose::AfterAppend(_)
                | SearchPurpose::WrongUid(_)
                | SearchPurpose::Resumed(_)
                | SearchPurpose::ReplaceResumed(true),
                [uid],
            ) => {
                self.is_found = is_doubtful;
                self.has_copy(*uid)
            }
            (SearchPurpose::AfterAppend(None), uids) => {
                let candidates: Vec<u32> = uids.iter().chain(&kin).copied().collect();
                let which = match candidates.as_slice() {
                    [] => String::new(),
                    uids => format!(" (possibly UID {})", listed(uids)),
                };
                self.both(Reason::AmbiguousCopy, format!("{COPY_LEFT}{which}"))
            }
            // The server may have altered the new message, so a new message with the same Message-ID counts, too.
            (
                SearchPurpose::AfterAppend(Some(_))
                | SearchPurpose::WrongUid(_)
                | SearchPurpose::Resumed(_),
                [],
            ) if !kin.is_empty() => {
                let why = format!("{KIN} (UID {})", listed(&kin));
                self.drop_and_end(Conclusion::Settled(ReplaceResult::Both(
                    Reason::AmbiguousCopy,
                    why,
                )))
            }
            (SearchPurpose::WrongUid(why), []) if why == EARLIER => {
                self.left(Reason::AlteredByServer, why)
            }
            (SearchPurpose::WrongUid(why), []) if why == NOT_STORED => {
                if self.is_off(Rule::Elsewhere) {
                    return self.left(Reason::AlteredByServer, why);
                }
                self.both(Reason::AlteredByServer, why)
            }
            (SearchPurpose::WrongUid(why), []) if why == RENUMBERED => {
                self.both(Reason::ChangedMeanwhile, why)
            }
            (SearchPurpose::WrongUid(why), []) => self.both(Reason::AmbiguousCopy, why),
            (SearchPurpose::AfterAppend(Some(refusal)), []) => {
                let CommandRefusal { code, text, .. } = &refusal;
                match code.as_deref() {
                    Some("OVERQUOTA") if self.terms.may_replace => {
                        self.look_at(MachineState::LookingBefore(false, refusal))
                    }
                    Some("OVERQUOTA") => {
                        let text = text.clone();
                        self.left(Reason::QuotaFull, text)
                    }
                    _ => {
                        let text = text.clone();
                        self.left(Reason::ServerRefused, text)
                    }
                }
            }
            (SearchPurpose::Resumed(Some(why)), []) if !self.is_off(Rule::Elsewhere) => {
                self.both(Reason::ChangedMeanwhile, why)
            }
            (SearchPurpose::Resumed(_), []) => self.drop_and_end(Conclusion::Nothing),
            (
                SearchPurpose::AfterAppend(Some(_))
                | SearchPurpose::WrongUid(_)
                | SearchPurpose::Resumed(_)
                | SearchPurpose::ReplaceResumed(true),
                _,
            ) => self.drop_and_end(Conclusion::Settled(ReplaceResult::Both(
                Reason::AmbiguousCopy,
                SEVERAL.to_owned(),
            ))),
            (SearchPurpose::AfterReplace | SearchPurpose::ReplaceResumed(false), [uid]) => {
                let fate = ReplaceResult::Replaced(*uid, Some(BY_REPLACE));
                self.drop_and_end(Conclusion::Settled(fate))
            }
            (SearchPurpose::AfterReplace | SearchPurpose::ReplaceResumed(false), []) => {
                self.begin_put_back()
            }
            (SearchPurpose::AfterReplace | SearchPurpose::ReplaceResumed(false), _) => self
                .drop_and_end(Conclusion::Settled(ReplaceResult::Both(
                    Reason::AmbiguousCopy,
                    SEVERAL.to_owned(),
                ))),
            (SearchPurpose::PutBack(None), []) => self.to(
                MachineState::PuttingBack,
                MachineCommand::Append(AppendContent::Original),
            ),
            (SearchPurpose::PutBack(Some(refusal)), []) => MachineCommand::Give(
                Conclusion::Unknown(format!("{NOT_PUT_BACK} ({})", refusal.text)),
            ),
            (SearchPurpose::PutBack(_), _) => self.is_put_back(),
        }
    }

    /// Checks that the server stored the new message in addition to the old one. Gmail stores equal messages only once, and
    /// may return the UID of an existing message.
    pub(super) fn identify(&mut self) -> MachineCommand {
        match self.terms.is_gmail && !self.is_resumed {
            true => self.to(MachineState::Identifying, MachineCommand::Labels(self.copy)),
            false if self.copy_digest.is_some() => self.look(false),
            false => self.read(self.copy),
        }
    }

    pub(super) fn identified(
        &mut self,
        old: Option<LabelReport>,
        copy: Option<LabelReport>,
    ) -> MachineCommand {
        match (old, copy) {
            (Some(old), Some(copy)) if old.message_id == copy.message_id => {
                self.left(Reason::AlteredByServer, SAME)
            }
            (Some(_), Some(_)) => self.read(self.copy),
            // The response with the labels also contains the number that Gmail gives to each message (X-GM-MSGID).
            // Without the numbers of both messages, it is unknown whether Gmail stored the new message or only returned
            // the old one. So the labels are requested again after a pause.
            _ => self.doubt(NO_LABELS.to_owned(), RetryState::Identify),
        }
    }

    pub(super) fn read(&mut self, uid: u32) -> MachineCommand {
        self.to(MachineState::Reading(uid), MachineCommand::Read(uid))
    }

    pub(super) fn was_read(&mut self, uid: u32, reading: MessageAnswer) -> MachineCommand {
        match reading {
            MessageAnswer::Content { digest, .. } if uid == self.entry.uid => {
                if self.entry.original.as_deref() != Some(&digest) {
                    self.goal = Goal::LeaveBoth(NOT_THE_ORIGINAL.to_owned());
                }
                self.is_original_read = true;
                self.look(false)
            }
            MessageAnswer::Content { digest, is_kin } => {
                let is_whole = digest == self.entry.sha256;
                if !is_whole && !self.is_resumed && !is_kin && !self.is_off(Rule::WrongUid) {
                    return self.search(AppendContent::New, SearchPurpose::WrongUid(WRONG_UID));
                }
                self.copy_digest = Some(digest);
                self.is_kin = is_kin;
                if !is_whole && self.goal == Goal::Finish && !self.is_resumed {
                    self.goal = altered(OTHER_BYTES);
                }
                self.look(false)
            }
            MessageAnswer::Nothing => self.look_after_nothing(),
            MessageAnswer::Unknown(_) if self.is_off(Rule::Unknown) => self.look_after_nothing(),
            MessageAnswer::Unknown(why) => self.doubt(why, RetryState::Look),
        }
    }

    /// Handles a message that was returned without content: it may be gone, or the server lists it but cannot read it.
    pub(super) fn look_after_nothing(&mut self) -> MachineCommand {
        if self.is_off(Rule::Unknown) {
            self.goal = altered(NOT_STORED);
            self.end(Conclusion::Settled(ReplaceResult::Left(
                Reason::AlteredByServer,
                NOT_STORED.to_owned(),
            )))
        } else {
            self.doubt(UNREADABLE.to_owned(), RetryState::Look)
        }
    }
}

/// Formats UIDs for a text.
pub(super) fn listed(uids: &[u32]) -> String {
    let uids: Vec<String> = uids.iter().map(u32::to_string).collect();
    uids.join(", ")
}
