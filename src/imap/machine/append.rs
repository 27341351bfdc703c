//! Starts or resumes a replacement: writes the new message to the folder, finds its UID, and reads its content.

use super::events::{Body, Command, Conclusion, Fate, Labelled, Reading, Refusal};
use super::texts::{
    BY_REPLACE, EARLIER, NO_LABELS, NOT_OURS, NOT_PUT_BACK, NOT_SAID, NOT_STORED, NOT_THE_ORIGINAL,
    OTHER_BYTES, RENUMBERED, SAME, SEVERAL, UNREADABLE,
};
use super::{Again, At, Goal, Machine, Purpose, altered};
use crate::engine::report::Reason;
use crate::imap::journal::ReplacementStep;

impl Machine {
    pub(super) fn start(&mut self) -> Command {
        if !self.is_resumed {
            return self.to(At::NotingBegun, Command::Note);
        }
        let uid = match &self.entry.step {
            ReplacementStep::Begun => {
                return match &self.goal {
                    Goal::LeaveBoth(why) => {
                        let why = why.clone();
                        self.both(Reason::AmbiguousCopy, why)
                    }
                    _ => self.search(Body::New, Purpose::Resumed),
                };
            }
            ReplacementStep::Replacing => {
                return self.look_at(At::LookingResumed(false), false);
            }
            ReplacementStep::PuttingBack => {
                return self.look_at(At::LookingResumed(false), false);
            }
            ReplacementStep::Appended(uid)
            | ReplacementStep::Deleting(uid)
            | ReplacementStep::TakingBack(uid, _) => *uid,
        };
        self.copy = uid;
        // The server assigned this UID before the new message was appended, so it belongs to another message. The
        // journal entry is wrong, and both messages are kept.
        if uid == self.entry.uid || uid < self.entry.least {
            self.goal = Goal::LeaveBoth(NOT_OURS.to_owned());
        }
        self.look(false)
    }

    pub(super) fn appended(&mut self, answer: Result<Option<(u32, u32)>, Refusal>) -> Command {
        match answer {
            Ok(Some((uidvalidity, _))) if uidvalidity != self.entry.uidvalidity => {
                self.both(Reason::ChangedMeanwhile, RENUMBERED)
            }
            Ok(Some((_, uid))) if uid >= self.entry.least && uid != self.entry.uid => {
                self.has_copy(uid)
            }
            Ok(Some(_)) => {
                let refusal = Refusal {
                    command: "APPEND",
                    code: Some("EARLIER".into()),
                    text: EARLIER.into(),
                };
                self.search(Body::New, Purpose::AfterAppend(Some(refusal)))
            }
            Ok(None) => self.search(Body::New, Purpose::AfterAppend(None)),
            // The server may have stored the message despite the refusal, so the new message is searched for.
            Err(refusal) => self.search(Body::New, Purpose::AfterAppend(Some(refusal))),
        }
    }

    pub(super) fn has_copy(&mut self, uid: u32) -> Command {
        self.copy = uid;
        self.entry.step = ReplacementStep::Appended(uid);
        self.to(At::NotingCopy, Command::Note)
    }

    pub(super) fn found(&mut self, purpose: Purpose, found: Result<Vec<u32>, String>) -> Command {
        let found = match found {
            Ok(found) => found,
            Err(_) if self.is_without_unknown() => Vec::new(),
            Err(why) => return self.doubt(why, Again::Search(purpose)),
        };
        let is_copy = !matches!(purpose, Purpose::PutBack(_));
        if let ([_], true) = (found.as_slice(), is_copy) {
            self.copy_digest = Some(self.entry.sha256.clone());
        }
        match (purpose, found.as_slice()) {
            (Purpose::AfterAppend(_) | Purpose::Resumed | Purpose::ReplaceResumed(true), [uid]) => {
                self.has_copy(*uid)
            }
            (Purpose::AfterAppend(None), _) => self.both(Reason::AmbiguousCopy, NOT_SAID),
            (Purpose::AfterAppend(Some(refusal)), []) => {
                let Refusal { code, text, .. } = &refusal;
                match code.as_deref() {
                    Some("EARLIER") => {
                        let text = text.clone();
                        self.left(Reason::AlteredByServer, text)
                    }
                    Some("OVERQUOTA") if self.terms.may_replace => {
                        self.look_at(At::LookingBefore(false, refusal), false)
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
            (Purpose::Resumed, []) => self.drop_and_end(Conclusion::Nothing),
            (
                Purpose::AfterAppend(Some(_)) | Purpose::Resumed | Purpose::ReplaceResumed(true),
                _,
            ) => self.drop_and_end(Conclusion::Settled(Fate::Both(
                Reason::AmbiguousCopy,
                SEVERAL.to_owned(),
            ))),
            (Purpose::AfterReplace | Purpose::ReplaceResumed(false), [uid]) => {
                let fate = Fate::Replaced(*uid, Some(BY_REPLACE));
                self.drop_and_end(Conclusion::Settled(fate))
            }
            (Purpose::AfterReplace | Purpose::ReplaceResumed(false), []) => self.begin_put_back(),
            (Purpose::AfterReplace | Purpose::ReplaceResumed(false), _) => self.drop_and_end(
                Conclusion::Settled(Fate::Both(Reason::AmbiguousCopy, SEVERAL.to_owned())),
            ),
            (Purpose::PutBack(None), []) => {
                self.to(At::PuttingBack, Command::Append(Body::Original))
            }
            (Purpose::PutBack(Some(refusal)), []) => Command::Give(Conclusion::Unknown(format!(
                "{NOT_PUT_BACK} ({})",
                refusal.text
            ))),
            (Purpose::PutBack(_), _) => self.is_put_back(),
        }
    }

    /// Checks that the server stored the new message in addition to the old one. Gmail stores equal messages only once, and
    /// may return the UID of an existing message.
    pub(super) fn identify(&mut self) -> Command {
        match self.terms.is_gmail && !self.is_resumed {
            true => self.to(At::Identifying, Command::Labels(self.copy)),
            false if self.copy_digest.is_some() => self.look(false),
            false => self.read(self.copy),
        }
    }

    pub(super) fn identified(&mut self, old: Option<Labelled>, copy: Option<Labelled>) -> Command {
        match (old, copy) {
            (Some(old), Some(copy)) if old.message_id == copy.message_id => {
                self.left(Reason::AlteredByServer, SAME)
            }
            (Some(_), Some(_)) => self.read(self.copy),
            // The response with the labels also contains the number that Gmail gives to each message (X-GM-MSGID).
            // Without the numbers of both messages, it is unknown whether Gmail stored the new message or only returned
            // the old one. So the labels are requested again after a pause.
            _ => self.doubt(NO_LABELS.to_owned(), Again::Identify),
        }
    }

    pub(super) fn read(&mut self, uid: u32) -> Command {
        self.to(At::Reading(uid), Command::Read(uid))
    }

    pub(super) fn was_read(&mut self, uid: u32, reading: Reading) -> Command {
        match reading {
            Reading::Digest(digest) if uid == self.entry.uid => {
                if self.entry.original.as_deref() != Some(&digest) {
                    self.goal = Goal::LeaveBoth(NOT_THE_ORIGINAL.to_owned());
                }
                self.is_original = true;
                self.look(false)
            }
            Reading::Digest(digest) => {
                let is_whole = digest == self.entry.sha256;
                self.copy_digest = Some(digest);
                if !is_whole && self.goal == Goal::Finish && !self.is_resumed {
                    self.goal = altered(OTHER_BYTES);
                }
                self.look(false)
            }
            Reading::Nothing => self.look_after_nothing(),
            Reading::Unknown(_) if self.is_without_unknown() => self.look_after_nothing(),
            Reading::Unknown(why) => self.doubt(why, Again::Look),
        }
    }

    /// Handles a message whose content the server did not return. Either the message no longer exists, or the
    /// server lists it but cannot read it.
    pub(super) fn look_after_nothing(&mut self) -> Command {
        if self.is_without_unknown() {
            self.goal = altered(NOT_STORED);
            self.end(Conclusion::Settled(Fate::Left(
                Reason::AlteredByServer,
                NOT_STORED.to_owned(),
            )))
        } else {
            self.doubt(UNREADABLE.to_owned(), Again::Look)
        }
    }
}
