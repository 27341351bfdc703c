//! State machine for the replacement of one message. Its core is a pure function: a state and an event produce the next state
//! and one command. The new message is appended to the folder, and the old message is deleted afterwards.
//!
//! [`super::replace`] executes the commands on a server and returns their results as events. The tests in `model.rs` execute
//! them in a simulated folder, with every fault and every action of a second client at every step. Both use this function, so
//! the tests check the code that runs in production.
//!
//! This file has the states and the table of their transitions. The steps are in `append` (write the new message and verify
//! it), `compare` (check both messages and copy the flags), `remove` (remove the old message), `take_back` (remove the new
//! message instead) and `by_replace` (the command REPLACE). `events` has the commands and their results, `texts` the reports.
//!
//! The rules, in descending order of priority:
//!
//! 1. If a command is refused or a response is incomplete, the state of the message is *unknown*, not *absent*. The command is
//!    repeated. If the state stays unknown, the machine gives up ([`Conclusion::Unknown`]), and the journal keeps the entry for
//!    the next session.
//! 2. A message is absent only if two FETCH commands with a NOOP between them end with OK and do not list it.
//! 3. A message is deleted only if its content was read in this session and its SHA-256 is that of this run or of the journal,
//!    and if size, date, flags and first bytes of its UID were still the same in the last command before `\Deleted`.
//! 4. The old message is deleted only while the new message exists, is complete, and does not have `\Deleted`. The new message
//!    is deleted only while the old message exists with its content and without `\Deleted`. If the old message is gone
//!    or marked, the new message stays.
//! 5. An altered message is taken for the new message only if it has the same Message-ID. The UID in an APPENDUID response
//!    may be wrong.
//! 6. After the old message was removed, other messages with the same content or the same Message-ID show that another run
//!    replaced the message, too. They are reported and kept.
//! 7. If the new message left the folder, another program may have moved it to another folder. This is reported.
//! 8. A resumed replacement deletes the old message only if the store contains each detached attachment to which the
//!    new message refers. Otherwise both messages are kept, and the journal keeps the entry.
//! 9. If a resumed replacement finds any other state, both messages are kept and reported.

mod append;
mod by_replace;
mod compare;
mod events;
mod remove;
mod take_back;
mod texts;

pub(crate) use events::ReplaceResult;
pub(super) use events::{
    AppendContent, CommandRefusal, Conclusion, FoundCopies, LabelReport, MachineCommand,
    MachineEvent, MessageAnswer, MessageMetadata, MessageStart, Sight,
};
use texts::{FINISHED, KEPT, NOT_CARRIED, RESTLESS};

use super::journal::{Replacement, ReplacementStep};
use super::session::FlagChange;
use crate::engine::report::Reason;

/// Maximum number of attempts for a message that other programs keep changing, or that the server does not remove.
const ROUNDS: u32 = 8;

/// Maximum number of repetitions of commands that were refused or whose result is unknown. After that, the machine
/// gives up, and the journal keeps the entry for another session.
const DOUBTS: u32 = 3;

/// Maximum number of attempts to delete a new message. If the server refuses them all, the run ends.
const REMOVALS: u32 = 3;

/// Pause before the second attempt, in milliseconds. Each further pause is twice as long; their sum is 2.5 seconds.
const PAUSE: u64 = 20;

/// Pause before a refused command is repeated, in milliseconds. Each further pause is four times as long.
const BACK_OFF: u64 = 50;

pub(super) const DELETED: &str = "\\Deleted";

/// Features that the server supports and the options allow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct ServerTerms {
    /// Whether the server supports the labels of Gmail.
    pub(super) is_gmail: bool,
    /// Whether old messages are moved to the trash folder instead of being expunged.
    pub(super) has_trash: bool,
    /// Whether REPLACE (RFC 8508) may be used if the quota has no room for both messages.
    pub(super) may_replace: bool,
    /// A rule that the machine does not apply. The tests use this to verify that they would detect the absence of the
    /// rule.
    #[cfg(test)]
    pub(super) without: Option<Rule>,
}

/// Rules of the machine. If one of these rules were missing, mail would be lost or duplicated; the tests switch
/// off one rule at a time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Rule {
    /// If the new message has `\Deleted`, the new message is removed and the old message is kept.
    MarkedCopy,
    /// Before a resumed replacement deletes a message, it reads both messages and compares their digests with the
    /// journal.
    Digest,
    /// If a command is refused, it is unknown whether a message exists: a refusal does not show that the message is
    /// absent.
    Unknown,
    /// If the old message is gone, the new message is kept. The server may have removed the old message itself, because
    /// it takes messages with the same Message-ID for the same message.
    Absence,
    /// If size, date or first bytes under the UID of a message changed, the UID belongs to a different message.
    Identity,
    /// If the UID of the new message belongs to a message with another Message-ID or does not exist, the new message is
    /// searched for. Only a message with the same Message-ID can be the new message, altered by the server.
    WrongUid,
    /// After the old message was removed, the new message of another run is searched for.
    Twins,
    /// If the new message left the folder, it may be in another one, so this is reported.
    Elsewhere,
    /// Before a resumed replacement deletes the old message, the store must contain the detached attachments of the new
    /// message. It may have been lost since the earlier run.
    Objects,
    /// If a command fails and the session can continue, the replacement in the journal is resumed. It is not begun
    /// afresh, which would append another new message.
    #[cfg(test)]
    Resume,
}

/// Goal that the next steps of a replacement work towards: finish it, undo it, or keep both messages.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Goal {
    Finish,
    /// Remove the new message, and report this reason. `None` in a resumed replacement: nothing is reported, and the
    /// message can be replaced again.
    TakeBack(Option<(Reason, String)>),
    /// Keep both messages, for this reason.
    LeaveBoth(String),
}

/// Reason for a search.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum SearchPurpose {
    /// APPEND returned no UID of the new message, or was refused. A server may have stored the message despite the refusal.
    AfterAppend(Option<CommandRefusal>),
    /// The reported UID of the new message does not exist, or belongs to another message. Contains the text for the
    /// report.
    WrongUid(&'static str),
    /// An earlier session appended the new message, or may have done so. If the journal has its UID, contains the
    /// report for the case that no such message exists.
    Resumed(Option<&'static str>),
    AfterReplace,
    /// An earlier session may have sent REPLACE. The value is true if the old message still exists.
    ReplaceResumed(bool),
    PutBack(Option<CommandRefusal>),
}

/// State of the machine: the command whose result is expected.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum MachineState {
    Start,
    NotingBegun,
    Appending,
    Searching(SearchPurpose),
    NotingCopy,
    Identifying,
    ReadingEarlier(u32),
    Reading(u32),
    Looking(bool),
    CheckingObjects,
    NotingUnmark,
    Unmarking,
    NotingFlags,
    Carrying,
    Labelling,
    NotingLabels,
    Storing,
    NotingDeleting,
    Marking,
    NotingRemoving,
    Removing,
    LookingAfter(bool),
    CarryingLast,
    CheckingLast,
    LabellingLast,
    CheckingLabels,
    FindingTwins,
    NotingTakeBack,
    MarkingCopy,
    UnmarkingCopy,
    TakingAway,
    LookingBefore(bool, CommandRefusal),
    Keeping(CommandRefusal),
    NotingReplace(CommandRefusal),
    Replacing,
    LookingAgain(bool, CommandRefusal),
    ReadingReplaced(u32),
    LookingResumed(bool),
    NotingPutBack,
    PuttingBack,
    ReadingPutBack(u32),
    Dropping(Conclusion),
    Ending(Conclusion),
    Resting(RetryState),
    Over,
}

/// Where to continue after a pause, usually by repeating a check or a command.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum RetryState {
    Look,
    Search(SearchPurpose),
    Identify,
    Label,
    FindTwins,
    ReadEarlier(u32),
    ReadReplaced(u32),
    ReadPutBack(u32),
    LookResumed,
}

/// State of one replacement.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Machine {
    terms: ServerTerms,
    /// Journal entry of the replacement, as it is on disk or as the next [`MachineCommand::Note`] writes it.
    entry: Replacement,
    at: MachineState,
    goal: Goal,
    /// Whether an earlier session began the replacement. Its messages are then read and compared again before one is
    /// deleted.
    is_resumed: bool,
    /// UID of the new message. 0 as long as the UID is unknown.
    copy: u32,
    /// Digest of the new message, if it was read in this session.
    copy_digest: Option<String>,
    /// Whether the new message was found only by its content. It may be from another run, so it is never removed.
    is_found: bool,
    /// Whether the message under the UID of the new message has the right Message-ID.
    is_kin: bool,
    /// Whether the old message was read in this session and has the expected content, so that it may be deleted.
    is_original_read: bool,
    /// Whether the store contains the detached attachments of the new message. A new run has just stored them.
    is_stored: bool,
    /// Whether a `\Deleted` on the old message may be embody's own. Only then embody may remove it.
    is_ours: bool,
    /// Whether the old message was still in the folder, as far as known, when embody marked or removed it. If the
    /// message is missing later, its removal may have been caused by embody.
    was_there: bool,
    /// Whether only this run can have removed the old message: the server set `\Deleted` with UNCHANGEDSINCE (RFC 7162,
    /// section 3.1.3), or confirmed the move of this UID.
    is_proven: bool,
    /// Whether the removal of the old message was not confirmed by the server. Another run may have removed it, and may
    /// have written a new message of its own.
    is_untold: bool,
    /// Whether the server confirmed the removal of the new message. Otherwise another program may have moved it to
    /// another folder.
    is_copy_told: bool,
    /// Whether the search for other copies is done.
    is_checked: bool,
    /// Whether the labels of both messages matched at the last check. Flags, size and date are then checked again,
    /// because that check must be the last command before the removal.
    is_labelled: bool,
    /// Why the message may exist twice, if the old message was removed by the server or by another program.
    doubled: Option<&'static str>,
    /// Whether the server answered OK to the removal of the old message. If it did and the message still exists later,
    /// the server did not refuse the removal: it needs more time, or keeps the message.
    is_kept: bool,
    /// Modification sequence of the old message at the last check. With it, the server marks the old message as deleted
    /// only if the message has not changed since.
    modseq: Option<u64>,
    /// Flag changes that must still be made to the new message.
    changes: Vec<(FlagChange, Vec<String>)>,
    /// Flags that were set on the new message. If they are missing at the next check, the server does not store them.
    given: Vec<String>,
    /// Flags that were removed from the new message after the old message was gone, because the old message had lost
    /// them. The last check verifies that the server has removed them.
    taken: Vec<String>,
    /// Labels that were set on the new message. If they are missing at the next check, the server does not store them.
    given_labels: Option<Vec<String>>,
    /// Last known flags of the old message. They are set on the new message after the old message is gone.
    /// `last_labels` contains the labels.
    last: Option<Vec<String>>,
    last_labels: Option<Vec<String>>,
    /// Whether `last` and `last_labels` may be out of date, because the server did not return the flags or labels
    /// immediately before it removed the old message.
    is_last_unknown: bool,
    remark: Option<&'static str>,
    refusal: Option<CommandRefusal>,
    rounds: u32,
    doubts: u32,
    removals: u32,
}

impl Machine {
    /// Starts the replacement of a message that was read in this session.
    pub(super) fn new(terms: ServerTerms, entry: Replacement) -> Self {
        Self {
            terms,
            entry,
            at: MachineState::Start,
            goal: Goal::Finish,
            is_resumed: false,
            copy: 0,
            copy_digest: None,
            is_found: false,
            is_kin: false,
            is_original_read: true,
            is_stored: true,
            is_ours: false,
            was_there: false,
            is_proven: false,
            is_untold: false,
            is_copy_told: false,
            is_checked: false,
            is_labelled: false,
            doubled: None,
            is_kept: false,
            modseq: None,
            changes: Vec::new(),
            given: Vec::new(),
            taken: Vec::new(),
            given_labels: None,
            last: None,
            last_labels: None,
            is_last_unknown: false,
            remark: None,
            refusal: None,
            rounds: 0,
            doubts: 0,
            removals: 0,
        }
    }

    /// Resumes a replacement from a journal entry. `doubt` is the reason why the entry cannot be trusted, if any.
    pub(super) fn resumed(terms: ServerTerms, entry: Replacement, doubt: Option<String>) -> Self {
        let is_removing = matches!(entry.step, ReplacementStep::Removing(_));
        let is_deleting = is_removing || matches!(entry.step, ReplacementStep::Deleting(_));
        let goal = match (doubt, &entry.step) {
            (Some(why), _) => Goal::LeaveBoth(why),
            (None, ReplacementStep::TakingBack(..)) => Goal::TakeBack(None),
            _ => Goal::Finish,
        };
        Self {
            goal,
            is_resumed: true,
            is_original_read: false,
            is_stored: false,
            // With a trash folder, embody moves the old message instead of marking it, so any `\Deleted` is another
            // program's.
            is_ours: is_deleting && !terms.has_trash,
            was_there: is_removing,
            remark: Some(FINISHED),
            ..Self::new(terms, entry)
        }
    }

    /// Returns the journal entry of the replacement, which [`MachineCommand::Note`] must write to the journal.
    pub(super) fn entry(&self) -> &Replacement {
        &self.entry
    }

    /// Returns the next state and the command to execute.
    pub(super) fn next(mut self, event: MachineEvent) -> (Self, MachineCommand) {
        let at = std::mem::replace(&mut self.at, MachineState::Over);
        let command = self.step(at, event);
        (self, command)
    }

    fn step(&mut self, at: MachineState, event: MachineEvent) -> MachineCommand {
        match (at, event) {
            (MachineState::Start, MachineEvent::Begin) => self.start(),
            (MachineState::NotingBegun, MachineEvent::Done) => self.to(
                MachineState::Appending,
                MachineCommand::Append(AppendContent::New),
            ),
            (MachineState::Appending, MachineEvent::Appended(answer)) => self.appended(answer),
            (MachineState::Searching(purpose), MachineEvent::Found(found)) => {
                self.found(purpose, found)
            }
            (MachineState::NotingCopy, MachineEvent::Done) => self.identify(),
            (MachineState::ReadingEarlier(uid), MachineEvent::Read(reading)) => {
                self.earlier_was_read(uid, reading)
            }
            (MachineState::Identifying, MachineEvent::Labels(old, copy)) => {
                self.identified(old, copy)
            }
            (MachineState::Reading(uid), MachineEvent::Read(reading)) => {
                self.was_read(uid, reading)
            }
            (MachineState::Looking(is_again), MachineEvent::Seen(old, copy)) => {
                self.seen(old, copy, is_again)
            }
            (MachineState::CheckingObjects, MachineEvent::Checked(answer)) => {
                self.checked_objects(answer)
            }
            (
                MachineState::Unmarking | MachineState::UnmarkingCopy,
                MachineEvent::Answered(answer),
            ) => match answer {
                Ok(()) => self.look(false),
                Err(refusal) => self.doubt(refusal.said(), RetryState::Look),
            },
            (MachineState::NotingFlags, MachineEvent::Done) => self.carry(),
            (MachineState::Carrying, MachineEvent::Answered(answer)) => match answer {
                Ok(()) => self.carry(),
                Err(refusal) => self.refused(&refusal),
            },
            (MachineState::Labelling, MachineEvent::Labels(old, copy)) => self.labelled(old, copy),
            (MachineState::NotingLabels, MachineEvent::Done) => {
                self.store_labels(MachineState::Storing)
            }
            (MachineState::Storing, MachineEvent::Answered(answer)) => match answer {
                Ok(()) => self.label(),
                Err(refusal) => self.refused(&refusal),
            },
            (MachineState::NotingDeleting, MachineEvent::Done) => self.delete(),
            (MachineState::NotingRemoving, MachineEvent::Done) => {
                self.to(MachineState::Removing, MachineCommand::Remove)
            }
            (MachineState::NotingUnmark, MachineEvent::Done) => self.look(false),
            (MachineState::Marking, MachineEvent::Marked { answer, flags }) => {
                self.marked(answer, flags)
            }
            (
                MachineState::Removing,
                MachineEvent::Removed {
                    answer,
                    flags,
                    labels,
                    is_told,
                    is_proven,
                },
            ) => self.removed(answer, flags, labels, is_told, is_proven),
            (MachineState::LookingAfter(is_again), MachineEvent::Seen(old, copy)) => {
                self.seen_after(old, copy, is_again)
            }
            (MachineState::CarryingLast, MachineEvent::Answered(answer)) => {
                if answer.is_err() {
                    self.remark = Some(NOT_CARRIED);
                }
                self.carry_last()
            }
            (MachineState::CheckingLast, MachineEvent::Seen(_, copy)) => self.checked_last(&copy),
            (MachineState::LabellingLast, MachineEvent::Answered(answer)) => {
                if answer.is_err() {
                    self.remark = Some(NOT_CARRIED);
                }
                self.label_last()
            }
            (MachineState::CheckingLabels, MachineEvent::Labels(_, copy)) => {
                self.checked_labels(copy)
            }
            (MachineState::FindingTwins, MachineEvent::Found(found)) => self.found_twins(found),
            (MachineState::NotingTakeBack, MachineEvent::Done) => self.mark_copy(),
            (MachineState::MarkingCopy, MachineEvent::Answered(answer)) => match answer {
                Ok(()) => self.to(
                    MachineState::TakingAway,
                    MachineCommand::TakeAway(self.copy),
                ),
                Err(refusal) => self.not_taken(refusal),
            },
            (MachineState::TakingAway, MachineEvent::TakenAway { answer, is_told }) => {
                self.is_copy_told |= is_told;
                match answer {
                    Ok(()) => self.look(false),
                    Err(refusal) => self.not_taken(refusal),
                }
            }
            (MachineState::LookingBefore(is_again, why), MachineEvent::Seen(old, _)) => {
                self.seen_before(old, is_again, why)
            }
            (MachineState::Keeping(why), MachineEvent::Done) => {
                self.to(MachineState::NotingReplace(why), MachineCommand::Note)
            }
            (MachineState::NotingReplace(_), MachineEvent::Done) => {
                self.to(MachineState::Replacing, MachineCommand::Replace)
            }
            (MachineState::Replacing, MachineEvent::Appended(answer)) => self.replaced(answer),
            (MachineState::LookingAgain(is_again, why), MachineEvent::Seen(old, _)) => {
                self.seen_again(old, is_again, why)
            }
            (MachineState::ReadingReplaced(uid), MachineEvent::Read(reading)) => {
                self.replaced_read(uid, reading)
            }
            (MachineState::LookingResumed(is_again), MachineEvent::Seen(old, _)) => {
                self.seen_resumed(old, is_again)
            }
            (MachineState::NotingPutBack, MachineEvent::Done) => self.to(
                MachineState::PuttingBack,
                MachineCommand::Append(AppendContent::Original),
            ),
            (MachineState::PuttingBack, MachineEvent::Appended(answer)) => self.put_back(answer),
            (MachineState::ReadingPutBack(uid), MachineEvent::Read(reading)) => {
                self.put_back_read(uid, reading)
            }
            (MachineState::Dropping(conclusion), MachineEvent::Done) => self.end(conclusion),
            (MachineState::Ending(conclusion), MachineEvent::Done) => {
                MachineCommand::Give(conclusion)
            }
            (MachineState::Resting(again), MachineEvent::Done) => self.again(again),
            // The event does not fit the last command, which is a bug. Nothing more is changed, and the journal keeps
            // the entry for another session.
            (_, event) => MachineCommand::Give(Conclusion::Unknown(format!(
                "embody received a result that does not belong to the current step (a defect of embody; please report it): {event:?}"
            ))),
        }
    }

    fn to(&mut self, at: MachineState, command: MachineCommand) -> MachineCommand {
        self.at = at;
        command
    }

    /// Checks both messages. `is_again` is true if a message was missing at the check before.
    fn look(&mut self, is_again: bool) -> MachineCommand {
        self.look_at(MachineState::Looking(is_again))
    }

    fn look_at(&mut self, at: MachineState) -> MachineCommand {
        let copy = self.copy;
        self.to(at, MachineCommand::Look { copy })
    }

    fn search(&mut self, body: AppendContent, purpose: SearchPurpose) -> MachineCommand {
        self.to(
            MachineState::Searching(purpose),
            MachineCommand::Search(body),
        )
    }

    /// Removes the entry of the replacement from the journal, and then ends the replacement with the conclusion. If the
    /// message may exist twice, the journal keeps this report.
    fn end(&mut self, conclusion: Conclusion) -> MachineCommand {
        let command = match &conclusion {
            Conclusion::Settled(ReplaceResult::Both(_, why) | ReplaceResult::Doubled(_, why)) => {
                MachineCommand::Name(why.clone())
            }
            _ => MachineCommand::End,
        };
        self.to(MachineState::Ending(conclusion), command)
    }

    fn left(&mut self, reason: Reason, why: impl Into<String>) -> MachineCommand {
        self.end(Conclusion::Settled(ReplaceResult::Left(reason, why.into())))
    }

    /// Ends the replacement after the old message was removed by the server or by another program. The new message is
    /// kept, but the message may exist twice.
    fn doubled(&mut self, why: impl Into<String>) -> MachineCommand {
        let fate = ReplaceResult::Doubled(self.copy, why.into());
        self.end(Conclusion::Settled(fate))
    }

    /// Ends the replacement and keeps both messages, because embody cannot determine which message is safe to delete.
    /// The user must decide.
    fn both(&mut self, reason: Reason, why: impl Into<String>) -> MachineCommand {
        self.end(Conclusion::Settled(ReplaceResult::Both(reason, why.into())))
    }

    /// Repeats a step after a pause, because its result is unknown. Gives up after [`DOUBTS`] repetitions.
    fn doubt(&mut self, why: String, again: RetryState) -> MachineCommand {
        self.doubts += 1;
        if self.doubts > DOUBTS {
            return MachineCommand::Give(Conclusion::Unknown(why));
        }
        let pause = BACK_OFF << (2 * (self.doubts - 1));
        self.to(MachineState::Resting(again), MachineCommand::Rest(pause))
    }

    fn again(&mut self, again: RetryState) -> MachineCommand {
        match again {
            RetryState::Look => self.look(false),
            RetryState::Search(purpose) => {
                let body = match purpose {
                    SearchPurpose::PutBack(_) => AppendContent::Original,
                    _ => AppendContent::New,
                };
                self.search(body, purpose)
            }
            RetryState::Identify => self.identify(),
            RetryState::Label => self.label(),
            RetryState::FindTwins => self.find_twins(),
            RetryState::ReadEarlier(uid) => {
                self.to(MachineState::ReadingEarlier(uid), MachineCommand::Read(uid))
            }
            RetryState::ReadReplaced(uid) => self.to(
                MachineState::ReadingReplaced(uid),
                MachineCommand::Read(uid),
            ),
            RetryState::ReadPutBack(uid) => {
                self.to(MachineState::ReadingPutBack(uid), MachineCommand::Read(uid))
            }
            RetryState::LookResumed => self.look_at(MachineState::LookingResumed(false)),
        }
    }

    /// Checks both messages again after a pause, which starts another round. After [`ROUNDS`] rounds, gives up the
    /// replacement and removes the new message.
    fn round(&mut self) -> MachineCommand {
        self.rounds += 1;
        if self.rounds >= ROUNDS {
            let (reason, why) = if self.is_kept {
                (Reason::ServerRefused, KEPT)
            } else {
                (Reason::ChangedMeanwhile, RESTLESS)
            };
            self.goal = Goal::TakeBack(Some((reason, why.to_owned())));
            return self.look(false);
        }
        // No pause while the old message has embody's `\Deleted`, because another program may expunge it. The exception
        // is a server that confirmed the removal but still lists the message, as Dovecot does for a moment while the
        // folder changes: it needs time.
        if self.is_ours && !self.is_kept {
            return self.look(false);
        }
        let pause = PAUSE << (self.rounds - 1);
        self.to(
            MachineState::Resting(RetryState::Look),
            MachineCommand::Rest(pause),
        )
    }

    /// Removes the new message because the server refused a step.
    fn refused(&mut self, refusal: &CommandRefusal) -> MachineCommand {
        let why = refusal.said();
        self.goal = Goal::TakeBack(Some((Reason::ServerRefused, why)));
        self.look(false)
    }

    /// Returns whether a test switched off the rule.
    #[cfg(test)]
    fn is_off(&self, rule: Rule) -> bool {
        self.terms.without == Some(rule)
    }

    #[cfg(not(test))]
    #[allow(clippy::unused_self)]
    fn is_off(&self, _rule: Rule) -> bool {
        false
    }
}

fn why_altered(why: &str) -> Option<(Reason, String)> {
    Some((Reason::AlteredByServer, why.to_owned()))
}

fn altered(why: &str) -> Goal {
    Goal::TakeBack(why_altered(why))
}

pub(super) fn is(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

pub(super) fn has(flags: &[String], name: &str) -> bool {
    flags.iter().any(|flag| is(flag, name))
}

/// Returns the flags that are not in `others`, ignoring case.
pub(super) fn without(flags: &[String], others: &[String]) -> Vec<String> {
    let left = flags.iter().filter(|flag| !has(others, flag));
    left.cloned().collect()
}

fn is_same(flags: &[String], others: &[String]) -> bool {
    without(flags, others).is_empty() && without(others, flags).is_empty()
}
