//! State machine for the replacement of one message. Its core is a pure function: a state and an event produce the next state
//! and one command. The new message is appended to the folder, and the old message is deleted afterwards.
//!
//! [`super::replace`] executes the commands on a server and returns their results as events. The tests in `model.rs` execute
//! them in a simulated folder, with every fault and every action of a second client at every step. Both use this function, so
//! the tests check the code that runs in production.
//!
//! The rules, in descending order of priority:
//!
//! 1. If a command is refused or a response is incomplete, the state of the message is *unknown*, not *absent*. The command is
//!    repeated. If the state stays unknown, the machine gives up ([`Conclusion::Unknown`]), and the journal keeps the entry for
//!    the next session.
//! 2. A message is absent only if two FETCH commands with a NOOP between them end with OK and do not list it.
//! 3. A message is deleted only if its content was read in this session and its SHA-256 is that of this run or of the journal.
//! 4. The old message is deleted only while the new message exists, is complete, and does not have `\Deleted`. The new message
//!    is deleted only while the old message exists without a `\Deleted` that embody set, or after another program removed the
//!    old message in this session.
//! 5. If a resumed replacement finds any other state, both messages are kept and reported.

use super::journal::{Replacement, ReplacementStep};
use super::session::{FlagChange, InternalDate};
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

/// Outcome for a message that was to be replaced.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Fate {
    /// The message was replaced. The number is the UID of the new message. The remark describes anything unusual that was
    /// necessary.
    Replaced(u32, Option<&'static str>),
    /// The message is unchanged.
    Left(Reason, String),
    /// The old message is unchanged or was removed by another program, and the folder contains a message that may be its new
    /// version. The user must decide which message to keep.
    Both(Reason, String),
}

/// Features that the server supports and the options allow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Terms {
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
#[cfg(test)]
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
}

/// Content to append or to search for: the new or the old message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Body {
    New,
    Original,
}

/// Response NO or BAD to a command.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Refusal {
    pub(super) command: &'static str,
    /// Response code in upper case.
    pub(super) code: Option<String>,
    pub(super) text: String,
}

/// Result of a FETCH of the metadata of a message.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Sight {
    Present(Seen),
    /// The FETCH ended with OK and did not list the message.
    Absent,
    /// The FETCH was refused, or the response contained no flags.
    Unknown(String),
}

/// Metadata of an existing message.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Seen {
    pub(super) flags: Vec<String>,
    /// INTERNALDATE of the message. `None` if the response did not contain it.
    pub(super) date: Option<InternalDate>,
    pub(super) modseq: Option<u64>,
}

/// Result of reading a whole message.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Reading {
    /// SHA-256 of the content, in hexadecimal digits.
    Digest(String),
    /// The command ended with OK, but the server returned no content.
    Nothing,
    Unknown(String),
}

/// Message number and labels of a message at Gmail.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Labelled {
    pub(super) message_id: u64,
    pub(super) labels: Vec<String>,
}

/// Next step to execute.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Command {
    /// Write the journal entry of the replacement and sync it to disk.
    Note,
    /// Append a message with the flags and the date in the journal entry.
    Append(Body),
    /// Replace the old message by the new message with REPLACE.
    Replace,
    /// Write the old message to a file next to the journal and sync it to disk.
    Keep,
    /// Remove the file with the old message.
    Drop,
    /// Find the messages with this content. Only messages from the UID `least` in the journal entry count, because
    /// messages with smaller UIDs existed before the replacement.
    Search(Body),
    /// Read the whole message with this UID.
    Read(u32),
    /// Fetch the metadata of the old and the new message. If `is_fresh` is true, send NOOP first, so that the server reports
    /// recent changes.
    Look { copy: u32, is_fresh: bool },
    /// Change the flags of the message with this UID.
    Store(u32, FlagChange, Vec<String>),
    /// Mark the old message as `\Deleted`, unless it changed since this modification sequence.
    Mark(Option<u64>),
    /// Read the flags and labels of the old message, and immediately expunge it or move it to the trash.
    Remove,
    /// Remove the new message with this UID: expunge it, or move it to the trash at Gmail, where expunging only removes a
    /// label.
    TakeAway(u32),
    /// Fetch the message number and the labels of the old message and of the new message with this UID, at Gmail.
    Labels(u32),
    /// Change the labels of the new message with this UID.
    StoreLabels(u32, FlagChange, Vec<String>),
    /// Wait for this number of milliseconds.
    Rest(u64),
    /// Remove the entry of the replacement from the journal.
    End,
    /// End with this result.
    Give(Conclusion),
}

/// Result of the last command, from which the machine determines its next state and the next command.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Event {
    /// Start of the machine, before the first command.
    Begin,
    /// Completion of a command without a result: [`Command::Note`], [`Command::Keep`], [`Command::Drop`],
    /// [`Command::Rest`] or [`Command::End`].
    Done,
    /// Result of [`Command::Store`], [`Command::StoreLabels`] or [`Command::TakeAway`].
    Answered(Result<(), Refusal>),
    /// Result of [`Command::Append`] or [`Command::Replace`]: UIDVALIDITY and UID of the new message, if the server reports
    /// them.
    Appended(Result<Option<(u32, u32)>, Refusal>),
    /// Result of [`Command::Search`]. The error is the reason why the result is unknown.
    Found(Result<Vec<u32>, String>),
    Read(Reading),
    /// Result of [`Command::Look`]: metadata of the old message and of the new message.
    Seen(Sight, Sight),
    /// Result of [`Command::Mark`].
    Marked {
        /// `Ok(true)` if the server did not set `\Deleted` because the old message had changed. `Err` if the server
        /// refused the command for another reason.
        answer: Result<bool, Refusal>,
        /// Flags of the old message in the responses. `None` if the responses do not contain them.
        flags: Option<Vec<String>>,
    },
    /// Result of [`Command::Remove`].
    Removed {
        answer: Result<(), Refusal>,
        /// Flags and labels of the old message immediately before the removal.
        flags: Option<Vec<String>>,
        labels: Option<Vec<String>>,
        /// Whether the server reported that a message was removed. This shows that the old message was still there when
        /// the command was executed.
        is_told: bool,
    },
    /// Result of [`Command::Labels`] for the old and the new message. `None` if the server did not return them.
    Labels(Option<Labelled>, Option<Labelled>),
}

/// Final result of a replacement.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Conclusion {
    /// The outcome of the replacement is certain, and its journal entry was removed.
    Settled(Fate),
    /// The journal entry of an earlier session was removed, and there is nothing to report. If the old message still
    /// exists, it is unchanged and can be replaced again.
    Nothing,
    /// It is unknown whether the message was replaced. The journal keeps the entry, so that another session can find
    /// out.
    Unknown(String),
    /// The server does not delete the new message. The journal keeps the entry, and the run ends, because every further message
    /// would also stay in the folder twice.
    Stuck(String),
}

/// Goal that the next steps of a replacement work towards: finish it, undo it, or keep both messages.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Goal {
    Finish,
    /// Remove the new message, for this reason. The reason is `None` if an earlier session began the replacement;
    /// the message can then be replaced again.
    TakeBack(Option<(Reason, String)>),
    /// Keep both messages, for this reason.
    LeaveBoth(String),
}

/// Reason for a search.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Purpose {
    /// APPEND returned no UID of the new message, or was refused. A server may have stored the message despite the refusal.
    AfterAppend(Option<Refusal>),
    /// An earlier session may have appended the new message.
    Resumed,
    AfterReplace,
    /// An earlier session may have sent REPLACE. The value is true if the old message still exists.
    ReplaceResumed(bool),
    PutBack(Option<Refusal>),
}

/// State of the machine: the command whose result is expected.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum At {
    Start,
    NotingBegun,
    Appending,
    Searching(Purpose),
    NotingCopy,
    Identifying,
    Reading(u32),
    Looking(bool),
    Unmarking,
    NotingFlags,
    Carrying,
    Labelling,
    NotingLabels,
    Storing,
    NotingDeleting,
    Marking,
    Removing,
    LookingAfter(bool),
    CarryingLast,
    CheckingLast,
    LabellingLast,
    CheckingLabels,
    NotingTakeBack,
    MarkingCopy,
    UnmarkingCopy,
    TakingAway,
    LookingBefore(bool, Refusal),
    Keeping(Refusal),
    NotingReplace(Refusal),
    Replacing,
    LookingAgain(bool, Refusal),
    ReadingReplaced(u32),
    LookingResumed(bool),
    NotingPutBack,
    PuttingBack,
    ReadingPutBack(u32),
    Dropping(Conclusion),
    Ending(Conclusion),
    Resting(Again),
    Over,
}

/// Step to which the machine returns after a pause, usually to repeat a check or a command.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Again {
    Look,
    Search(Purpose),
    Identify,
    Label,
    ReadReplaced(u32),
    ReadPutBack(u32),
    LookResumed,
}

/// State of one replacement.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Machine {
    terms: Terms,
    /// Journal entry of the replacement, as it is on disk or as the next [`Command::Note`] writes it.
    entry: Replacement,
    at: At,
    goal: Goal,
    /// Whether an earlier session began the replacement. Its messages are then read and compared again before one is
    /// deleted.
    is_resumed: bool,
    /// UID of the new message. 0 as long as the UID is unknown.
    copy: u32,
    /// Digest of the new message, if it was read in this session.
    copy_digest: Option<String>,
    /// Whether the old message was read in this session and has the expected content, so that it may be deleted.
    is_original: bool,
    /// Whether the old message may have a `\Deleted` that embody set. Only then embody removes the flag from the old
    /// message.
    is_ours: bool,
    /// Whether the old message was still in the folder, as far as known, when embody marked or removed it. If the
    /// message is missing later, its removal may have been caused by embody.
    was_there: bool,
    /// Whether the server answered OK to the removal of the old message. If it did and the message still exists later,
    /// the server did not refuse the removal: it needs more time, or keeps the message.
    is_kept: bool,
    /// Modification sequence of the old message at the last check. With it, the server marks the old message as deleted
    /// only if the message has not changed since.
    modseq: Option<u64>,
    /// Flag changes to the new message that are not made yet.
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
    refusal: Option<Refusal>,
    rounds: u32,
    doubts: u32,
    removals: u32,
}

impl Machine {
    /// Starts the replacement of a message that was read in this session.
    pub(super) fn new(terms: Terms, entry: Replacement) -> Self {
        Self {
            terms,
            entry,
            at: At::Start,
            goal: Goal::Finish,
            is_resumed: false,
            copy: 0,
            copy_digest: None,
            is_original: true,
            is_ours: false,
            was_there: false,
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
    pub(super) fn resumed(terms: Terms, entry: Replacement, doubt: Option<String>) -> Self {
        let is_deleting = matches!(entry.step, ReplacementStep::Deleting(_));
        let goal = match (doubt, &entry.step) {
            (Some(why), _) => Goal::LeaveBoth(why),
            (None, ReplacementStep::TakingBack(..)) => Goal::TakeBack(None),
            _ => Goal::Finish,
        };
        Self {
            goal,
            is_resumed: true,
            is_original: false,
            // With a trash folder, embody moves the old message and does not mark it, so a `\Deleted` comes from
            // another program.
            is_ours: is_deleting && !terms.has_trash,
            was_there: is_deleting,
            remark: Some(FINISHED),
            ..Self::new(terms, entry)
        }
    }

    /// Returns the journal entry of the replacement, which [`Command::Note`] must write to the journal.
    pub(super) fn entry(&self) -> &Replacement {
        &self.entry
    }

    /// Returns the next state and the command to execute.
    pub(super) fn next(mut self, event: Event) -> (Self, Command) {
        let at = std::mem::replace(&mut self.at, At::Over);
        let command = self.step(at, event);
        (self, command)
    }

    fn step(&mut self, at: At, event: Event) -> Command {
        match (at, event) {
            (At::Start, Event::Begin) => self.start(),
            (At::NotingBegun, Event::Done) => self.to(At::Appending, Command::Append(Body::New)),
            (At::Appending, Event::Appended(answer)) => self.appended(answer),
            (At::Searching(purpose), Event::Found(found)) => self.found(purpose, found),
            (At::NotingCopy, Event::Done) => self.identify(),
            (At::Identifying, Event::Labels(old, copy)) => self.identified(old, copy),
            (At::Reading(uid), Event::Read(reading)) => self.was_read(uid, reading),
            (At::Looking(is_fresh), Event::Seen(old, copy)) => self.seen(old, copy, is_fresh),
            (At::Unmarking | At::UnmarkingCopy, Event::Answered(answer)) => match answer {
                Ok(()) => self.look(false),
                Err(refusal) => self.doubt(refusal.said(), Again::Look),
            },
            (At::NotingFlags, Event::Done) => self.carry(),
            (At::Carrying, Event::Answered(answer)) => match answer {
                Ok(()) => self.carry(),
                Err(refusal) => self.refused(&refusal),
            },
            (At::Labelling, Event::Labels(old, copy)) => self.labelled(old, copy),
            (At::NotingLabels, Event::Done) => self.store_labels(At::Storing),
            (At::Storing, Event::Answered(answer)) => match answer {
                Ok(()) => self.label(),
                Err(refusal) => self.refused(&refusal),
            },
            (At::NotingDeleting, Event::Done) => self.delete(),
            (At::Marking, Event::Marked { answer, flags }) => self.marked(answer, flags),
            (
                At::Removing,
                Event::Removed {
                    answer,
                    flags,
                    labels,
                    is_told,
                },
            ) => self.removed(answer, flags, labels, is_told),
            (At::LookingAfter(is_fresh), Event::Seen(old, copy)) => {
                self.seen_after(old, copy, is_fresh)
            }
            (At::CarryingLast, Event::Answered(answer)) => {
                if answer.is_err() {
                    self.remark = Some(NOT_CARRIED);
                }
                self.carry_last()
            }
            (At::CheckingLast, Event::Seen(_, copy)) => self.checked_last(&copy),
            (At::LabellingLast, Event::Answered(answer)) => {
                if answer.is_err() {
                    self.remark = Some(NOT_CARRIED);
                }
                self.label_last()
            }
            (At::CheckingLabels, Event::Labels(_, copy)) => self.checked_labels(copy),
            (At::NotingTakeBack, Event::Done) => self.mark_copy(),
            (At::MarkingCopy, Event::Answered(answer)) => match answer {
                Ok(()) => self.to(At::TakingAway, Command::TakeAway(self.copy)),
                Err(refusal) => self.not_taken(refusal),
            },
            (At::TakingAway, Event::Answered(answer)) => match answer {
                Ok(()) => self.look(false),
                Err(refusal) => self.not_taken(refusal),
            },
            (At::LookingBefore(is_fresh, why), Event::Seen(old, _)) => {
                self.seen_before(old, is_fresh, why)
            }
            (At::Keeping(why), Event::Done) => self.to(At::NotingReplace(why), Command::Note),
            (At::NotingReplace(_), Event::Done) => self.to(At::Replacing, Command::Replace),
            (At::Replacing, Event::Appended(answer)) => self.replaced(answer),
            (At::LookingAgain(is_fresh, why), Event::Seen(old, _)) => {
                self.seen_again(old, is_fresh, why)
            }
            (At::ReadingReplaced(uid), Event::Read(reading)) => self.replaced_read(uid, reading),
            (At::LookingResumed(is_fresh), Event::Seen(old, _)) => self.seen_resumed(old, is_fresh),
            (At::NotingPutBack, Event::Done) => {
                self.to(At::PuttingBack, Command::Append(Body::Original))
            }
            (At::PuttingBack, Event::Appended(answer)) => self.put_back(answer),
            (At::ReadingPutBack(uid), Event::Read(reading)) => self.put_back_read(uid, reading),
            (At::Dropping(conclusion), Event::Done) => self.end(conclusion),
            (At::Ending(conclusion), Event::Done) => Command::Give(conclusion),
            (At::Resting(again), Event::Done) => self.again(again),
            // The event cannot be the result of the last command, so this is a bug. Nothing more is changed, and the
            // journal keeps the entry for another session.
            (_, event) => Command::Give(Conclusion::Unknown(format!(
                "embody received a result that does not belong to the current step (a defect of embody; please report it): {event:?}"
            ))),
        }
    }

    fn to(&mut self, at: At, command: Command) -> Command {
        self.at = at;
        command
    }

    fn look(&mut self, is_fresh: bool) -> Command {
        let copy = self.copy;
        self.to(At::Looking(is_fresh), Command::Look { copy, is_fresh })
    }

    fn look_at(&mut self, at: At, is_fresh: bool) -> Command {
        let copy = self.copy;
        self.to(at, Command::Look { copy, is_fresh })
    }

    fn search(&mut self, body: Body, purpose: Purpose) -> Command {
        self.to(At::Searching(purpose), Command::Search(body))
    }

    /// Removes the entry of the replacement from the journal, and then ends the replacement with the conclusion.
    fn end(&mut self, conclusion: Conclusion) -> Command {
        self.to(At::Ending(conclusion), Command::End)
    }

    fn left(&mut self, reason: Reason, why: impl Into<String>) -> Command {
        self.end(Conclusion::Settled(Fate::Left(reason, why.into())))
    }

    /// Ends the replacement and keeps both messages, because embody cannot determine which message is safe to delete.
    /// The user must decide.
    fn both(&mut self, reason: Reason, why: impl Into<String>) -> Command {
        self.end(Conclusion::Settled(Fate::Both(reason, why.into())))
    }

    /// Repeats a step after a pause, because the server did not return its result. Gives up after [`DOUBTS`] repetitions.
    fn doubt(&mut self, why: String, again: Again) -> Command {
        self.doubts += 1;
        if self.doubts > DOUBTS {
            return Command::Give(Conclusion::Unknown(why));
        }
        let pause = BACK_OFF << (2 * (self.doubts - 1));
        self.to(At::Resting(again), Command::Rest(pause))
    }

    fn again(&mut self, again: Again) -> Command {
        match again {
            Again::Look => self.look(true),
            Again::Search(purpose) => {
                let body = match purpose {
                    Purpose::PutBack(_) => Body::Original,
                    _ => Body::New,
                };
                self.search(body, purpose)
            }
            Again::Identify => self.identify(),
            Again::Label => self.label(),
            Again::ReadReplaced(uid) => self.to(At::ReadingReplaced(uid), Command::Read(uid)),
            Again::ReadPutBack(uid) => self.to(At::ReadingPutBack(uid), Command::Read(uid)),
            Again::LookResumed => self.look_at(At::LookingResumed(true), true),
        }
    }

    /// Checks both messages again after a pause, which starts another round. After [`ROUNDS`] rounds, gives up the
    /// replacement and removes the new message.
    fn round(&mut self) -> Command {
        self.rounds += 1;
        if self.rounds >= ROUNDS {
            let (reason, why) = if self.is_kept {
                (Reason::ServerRefused, KEPT)
            } else {
                (Reason::ChangedMeanwhile, RESTLESS)
            };
            self.goal = Goal::TakeBack(Some((reason, why.to_owned())));
            return self.look(true);
        }
        // While the old message has the `\Deleted` that embody set, another program may expunge it, so there is no pause. The
        // exception is a server that confirmed the removal and still lists the message: it needs time. Dovecot does this for a
        // moment while the folder changes.
        if self.is_ours && !self.is_kept {
            return self.look(true);
        }
        let pause = PAUSE << (self.rounds - 1);
        self.to(At::Resting(Again::Look), Command::Rest(pause))
    }

    /// Removes the new message because the server refused a step.
    fn refused(&mut self, refusal: &Refusal) -> Command {
        let why = refusal.said();
        self.goal = Goal::TakeBack(Some((Reason::ServerRefused, why)));
        self.look(true)
    }

    fn start(&mut self) -> Command {
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

    fn appended(&mut self, answer: Result<Option<(u32, u32)>, Refusal>) -> Command {
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

    fn has_copy(&mut self, uid: u32) -> Command {
        self.copy = uid;
        self.entry.step = ReplacementStep::Appended(uid);
        self.to(At::NotingCopy, Command::Note)
    }

    fn found(&mut self, purpose: Purpose, found: Result<Vec<u32>, String>) -> Command {
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
    fn identify(&mut self) -> Command {
        match self.terms.is_gmail && !self.is_resumed {
            true => self.to(At::Identifying, Command::Labels(self.copy)),
            false if self.copy_digest.is_some() => self.look(false),
            false => self.read(self.copy),
        }
    }

    fn identified(&mut self, old: Option<Labelled>, copy: Option<Labelled>) -> Command {
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

    fn read(&mut self, uid: u32) -> Command {
        self.to(At::Reading(uid), Command::Read(uid))
    }

    fn was_read(&mut self, uid: u32, reading: Reading) -> Command {
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
    fn look_after_nothing(&mut self) -> Command {
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

    fn seen(&mut self, old: Sight, copy: Sight, is_fresh: bool) -> Command {
        let (old, copy) = match (self.known(old), self.known(copy)) {
            (Ok(old), Ok(copy)) => (old, copy),
            (Err(why), _) | (_, Err(why)) => return self.doubt(why, Again::Look),
        };
        // Some servers briefly hide a message while neighbouring messages are being expunged, so a missing message is checked
        // again.
        if (old.is_none() || copy.is_none()) && !is_fresh {
            return self.look(true);
        }
        match self.goal.clone() {
            Goal::Finish => self.finish(old, copy),
            Goal::TakeBack(why) => self.take_back(why, old, copy),
            Goal::LeaveBoth(why) => self.leave_both(why, old.as_ref()),
        }
    }

    fn known(&self, sight: Sight) -> Result<Option<Seen>, String> {
        match sight {
            Sight::Present(seen) => Ok(Some(seen)),
            Sight::Absent => Ok(None),
            Sight::Unknown(_) if self.is_without_unknown() => Ok(None),
            Sight::Unknown(why) => Err(why),
        }
    }

    /// Removes the `\Deleted` that embody set from the old message.
    fn unmark(&mut self) -> Command {
        self.rounds += 1;
        if self.rounds > ROUNDS * 2 {
            return Command::Give(Conclusion::Unknown(STAYS_MARKED.to_owned()));
        }
        self.to(
            At::Unmarking,
            Command::Store(self.entry.uid, FlagChange::Remove, vec![DELETED.to_owned()]),
        )
    }

    fn finish(&mut self, old: Option<Seen>, copy: Option<Seen>) -> Command {
        let Some(old) = old else {
            return self.finish_without_original(copy);
        };
        if has(&old.flags, DELETED) {
            if self.is_ours {
                // embody set this `\Deleted` in an earlier attempt. It is removed before both messages are compared
                // again, so that no other program expunges the old message before the comparison.
                return self.unmark();
            }
            if self.is_resumed {
                // An earlier session was interrupted, and the user may have seen both messages since then. Marking the
                // old one may have been a deliberate choice, so the new one is kept.
                return self.left(Reason::ChangedMeanwhile, MARKED_STAYS);
            }
            let why = (Reason::ChangedMeanwhile, MARKED.to_owned());
            return self.turn_back(Some(why), Some(old), copy);
        }
        // The old message does not have the `\Deleted` that embody set. Any `\Deleted` from now on was set by another
        // program.
        (self.is_ours, self.was_there) = (false, false);
        let Some(copy) = copy else {
            let why = match (self.is_resumed, self.copy_digest.is_some()) {
                (true, _) => None,
                (_, true) => Some((Reason::ChangedMeanwhile, COPY_WENT.to_owned())),
                (_, false) => Some((Reason::AlteredByServer, NOT_STORED.to_owned())),
            };
            return self.turn_back(why, Some(old), None);
        };
        if has(&copy.flags, DELETED) && !self.is_without_marked_copy() {
            let why = (Reason::ChangedMeanwhile, COPY_MARKED.to_owned());
            return self.turn_back(Some(why), Some(old), Some(copy));
        }
        match &self.copy_digest {
            None if !(self.is_resumed && self.is_without_digest()) => return self.read(self.copy),
            Some(digest) if *digest != self.entry.sha256 => {
                return if self.is_resumed {
                    self.both(Reason::AmbiguousCopy, NOT_OURS)
                } else {
                    self.turn_back(why_altered(OTHER_BYTES), Some(old), Some(copy))
                };
            }
            _ => {}
        }
        if !self.is_original && !self.is_without_digest() {
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
        match &copy.date {
            None if self.doubts >= DOUBTS => {
                return self.turn_back(why_altered(NO_DATE), Some(old), Some(copy));
            }
            None => return self.doubt(NO_DATE.to_owned(), Again::Look),
            Some(date) if !self.is_date(date) => {
                return self.turn_back(why_altered(OTHER_DATE), Some(old), Some(copy));
            }
            Some(_) => {}
        }
        self.bring_flags(&old, &copy)
    }

    fn is_date(&self, date: &InternalDate) -> bool {
        self.entry.internal_date().is_same(date)
    }

    /// Sets the flags of the old message on the new message, and removes those that the old message has lost. Other flags that
    /// another program set on the new message are kept.
    fn bring_flags(&mut self, old: &Seen, copy: &Seen) -> Command {
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
            return if self.terms.is_gmail {
                self.label()
            } else {
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
        // Records the flags before they are set. If the old message loses one of them later, it can be removed from the new
        // message too, because embody set it.
        self.entry.flags.extend(missing);
        self.to(At::NotingFlags, Command::Note)
    }

    fn carry(&mut self) -> Command {
        match self.changes.pop() {
            Some((change, flags)) => {
                self.to(At::Carrying, Command::Store(self.copy, change, flags))
            }
            None => self.look(false),
        }
    }

    fn label(&mut self) -> Command {
        self.to(At::Labelling, Command::Labels(self.copy))
    }

    fn labelled(&mut self, old: Option<Labelled>, copy: Option<Labelled>) -> Command {
        let (Some(old), Some(copy)) = (old, copy) else {
            if self.is_without_unknown() {
                return self.note_deleting();
            }
            return self.doubt(NO_LABELS.to_owned(), Again::Label);
        };
        let missing = without(&old.labels, &copy.labels);
        let lost = without(&self.entry.labels, &old.labels);
        let taken: Vec<String> = lost
            .into_iter()
            .filter(|it| has(&copy.labels, it))
            .collect();
        if missing.is_empty() && taken.is_empty() {
            self.entry.labels = old.labels;
            return self.note_deleting();
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
        self.to(At::NotingLabels, Command::Note)
    }

    fn store_labels(&mut self, at: At) -> Command {
        match self.changes.pop() {
            Some((change, labels)) => self.to(at, Command::StoreLabels(self.copy, change, labels)),
            None => self.label(),
        }
    }

    fn note_deleting(&mut self) -> Command {
        self.entry.step = ReplacementStep::Deleting(self.copy);
        self.to(At::NotingDeleting, Command::Note)
    }

    fn delete(&mut self) -> Command {
        if self.terms.has_trash {
            self.to(At::Removing, Command::Remove)
        } else {
            let since = self.modseq;
            self.to(At::Marking, Command::Mark(since))
        }
    }

    fn marked(&mut self, answer: Result<bool, Refusal>, flags: Option<Vec<String>>) -> Command {
        match answer {
            Ok(true) => self.round(),
            Ok(false) => {
                self.is_ours = true;
                self.was_there = flags.is_some();
                self.last = flags.or(self.last.take());
                self.to(At::Removing, Command::Remove)
            }
            Err(refusal) => {
                // The server may have set `\Deleted` on the old message despite the refusal. If the old message is gone
                // later, this flag may be the cause, so the new message must be kept.
                self.is_ours = true;
                self.was_there = true;
                self.refused(&refusal)
            }
        }
    }

    fn removed(
        &mut self,
        answer: Result<(), Refusal>,
        flags: Option<Vec<String>>,
        labels: Option<Vec<String>>,
        is_told: bool,
    ) -> Command {
        self.was_there |= flags.is_some() || is_told;
        let flags_are_unknown = flags.is_none();
        if let Some(mut flags) = flags {
            // The old message has `\Deleted` because embody removes it. This flag must not be copied to the new
            // message.
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
        // If the server refused the removal, the old message may still be gone. So NOOP is sent before the next check,
        // because it makes the server report removed messages.
        let is_fresh = self.refusal.is_some() || !self.was_there;
        self.look_at(At::LookingAfter(is_fresh), is_fresh)
    }

    fn seen_after(&mut self, old: Sight, copy: Sight, is_fresh: bool) -> Command {
        let old = match self.known(old) {
            Ok(old) => old,
            Err(why) => return self.doubt(why, Again::Look),
        };
        match (old, self.refusal.take()) {
            (None, _) if self.was_there => {
                let copy = match self.known(copy) {
                    Ok(Some(copy)) => copy,
                    // The new message is missing, so both messages are checked again after a NOOP.
                    _ if !is_fresh => return self.look_at(At::LookingAfter(true), true),
                    Ok(None) => return self.left(Reason::ChangedMeanwhile, BOTH_WENT),
                    Err(why) => return self.doubt(why, Again::Look),
                };
                self.finished_with(&copy)
            }
            // The old message was already gone when embody tried to mark or move it, so another program removed it.
            (None, _) => {
                (self.is_ours, self.was_there) = (false, false);
                let copy = match self.known(copy) {
                    Ok(copy) => copy,
                    Err(why) => return self.doubt(why, Again::Look),
                };
                if copy.is_none() && !is_fresh {
                    return self.look_at(At::LookingAfter(true), true);
                }
                self.finish(None, copy)
            }
            (Some(_), Some(refusal)) => self.refused(&refusal),
            (Some(_), None) => self.round(),
        }
    }

    /// Decides whether to keep the new message, after the old message is gone.
    fn finish_without_original(&mut self, copy: Option<Seen>) -> Command {
        let is_by_us = self.was_there;
        let Some(copy) = copy else {
            return match (is_by_us, self.is_resumed) {
                (true, _) => self.left(Reason::ChangedMeanwhile, BOTH_WENT),
                (_, true) => self.end(Conclusion::Nothing),
                (_, false) => self.left(Reason::ChangedMeanwhile, MOVED),
            };
        };
        if is_by_us {
            if self.copy_digest.is_none() && !self.is_without_digest() {
                return self.read(self.copy);
            }
            let is_whole = self.copy_digest.as_ref() == Some(&self.entry.sha256);
            if !is_whole && !self.is_without_digest() {
                return self.both(Reason::AmbiguousCopy, NOT_OURS_ALONE);
            }
            return self.finished_with(&copy);
        }
        if self.is_resumed {
            // An earlier session was interrupted, and the user may have seen both messages since then. Removing the old
            // one may have been a deliberate choice, so the new one is kept.
            return self.left(Reason::ChangedMeanwhile, REMOVED);
        }
        let why = Some((Reason::ChangedMeanwhile, MOVED.to_owned()));
        self.turn_back(why, None, Some(copy))
    }

    /// Sets the last flags of the old message on the new message, after the old message is gone.
    fn finished_with(&mut self, copy: &Seen) -> Command {
        if has(&copy.flags, DELETED) && !self.is_resumed {
            // At the last check before the old message was removed, the new message did not have `\Deleted`. Another
            // program set the flag while two equal messages existed. Now the new message is the only one, so the flag
            // is removed.
            self.changes = vec![(FlagChange::Remove, vec![DELETED.to_owned()])];
            self.remark = Some(MARK_REMOVED);
        } else {
            self.changes = Vec::new();
        }
        if let Some(last) = self.last.take() {
            let missing = without(&last, &copy.flags);
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

    fn carry_last(&mut self) -> Command {
        match self.changes.pop() {
            Some((change, flags)) => {
                self.to(At::CarryingLast, Command::Store(self.copy, change, flags))
            }
            None if self.given.is_empty() && self.taken.is_empty() => self.finished(),
            None => self.look_at(At::CheckingLast, false),
        }
    }

    fn checked_last(&mut self, copy: &Sight) -> Command {
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

    fn finished(&mut self) -> Command {
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
        if self.is_last_unknown {
            self.remark = Some(LAST_UNKNOWN);
        }
        let fate = Fate::Replaced(self.copy, self.remark);
        self.end(Conclusion::Settled(fate))
    }

    fn label_last(&mut self) -> Command {
        match self.changes.pop() {
            Some((change, labels)) => self.to(
                At::LabellingLast,
                Command::StoreLabels(self.copy, change, labels),
            ),
            None => self.to(At::CheckingLabels, Command::Labels(self.copy)),
        }
    }

    fn checked_labels(&mut self, copy: Option<Labelled>) -> Command {
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

    /// Gives up the replacement: from now on, the goal is to remove the new message.
    fn turn_back(
        &mut self,
        why: Option<(Reason, String)>,
        old: Option<Seen>,
        copy: Option<Seen>,
    ) -> Command {
        self.goal = Goal::TakeBack(why.clone());
        self.take_back(why, old, copy)
    }

    fn take_back(
        &mut self,
        why: Option<(Reason, String)>,
        old: Option<Seen>,
        copy: Option<Seen>,
    ) -> Command {
        match &old {
            // The old message was removed because of the `\Deleted` that embody set, so the new message is the only message and
            // is kept.
            None if self.was_there => {
                self.goal = Goal::Finish;
                return self.finish_without_original(copy);
            }
            Some(old) if self.is_ours && has(&old.flags, DELETED) => return self.unmark(),
            _ if self.is_resumed && old.as_ref().is_none_or(|old| has(&old.flags, DELETED)) => {
                // An earlier session was interrupted, and the user may have seen both messages since then. Removing or
                // marking the old one may have been a deliberate choice, so the new one is kept.
                let is_marked = copy.as_ref().is_some_and(|copy| has(&copy.flags, DELETED));
                let is_by_us = matches!(self.entry.step, ReplacementStep::TakingBack(..));
                if is_marked && is_by_us {
                    return self.unmark_copy();
                }
                return match (copy, old) {
                    (Some(_), None) => self.left(Reason::ChangedMeanwhile, REMOVED),
                    (Some(_), Some(_)) => self.left(Reason::ChangedMeanwhile, MARKED_STAYS),
                    (None, _) => self.end(Conclusion::Nothing),
                };
            }
            Some(_) => (self.is_ours, self.was_there) = (false, false),
            None => {}
        }
        let Some(copy) = copy else {
            return self.end(match why {
                Some((reason, why)) => Conclusion::Settled(Fate::Left(reason, why)),
                None => Conclusion::Nothing,
            });
        };
        let Some(digest) = self.copy_digest.clone() else {
            return self.read(self.copy);
        };
        if self.is_resumed && !self.is_vouched(&digest) {
            return self.both(Reason::AmbiguousCopy, NOT_OURS);
        }
        if self.removals >= REMOVALS {
            let text = self.refusal.as_ref().map_or(KEEPS_COPY, |it| &it.text);
            let why = why.map_or(TAKEN_BACK.to_owned(), |(_, why)| why);
            let what = format!(
                "{why}; the message now exists twice, because the server did not delete the new copy (UID {}): {text}",
                self.copy
            );
            return Command::Give(Conclusion::Stuck(what));
        }
        self.removals += 1;
        let step = ReplacementStep::TakingBack(self.copy, digest);
        if self.entry.step != step {
            self.entry.step = step;
            return self.to(At::NotingTakeBack, Command::Note);
        }
        // If the new message already has `\Deleted`, it is expunged at once. Otherwise the flag is set first.
        if has(&copy.flags, DELETED) {
            self.to(At::TakingAway, Command::TakeAway(self.copy))
        } else {
            self.mark_copy()
        }
    }

    /// Returns whether the journal contains this digest for the new message. Only then may a resumed replacement delete the
    /// message.
    fn is_vouched(&self, digest: &str) -> bool {
        let noted = match &self.entry.step {
            ReplacementStep::TakingBack(_, noted) => Some(noted.as_str()),
            _ => None,
        };
        digest == self.entry.sha256 || noted == Some(digest)
    }

    fn mark_copy(&mut self) -> Command {
        // At Gmail, expunging only removes a label. The new message is moved to the trash instead, and needs no
        // `\Deleted` for that.
        if self.terms.is_gmail {
            return self.to(At::TakingAway, Command::TakeAway(self.copy));
        }
        let flags = vec![DELETED.to_owned()];
        let command = Command::Store(self.copy, FlagChange::Add, flags);
        self.to(At::MarkingCopy, command)
    }

    fn unmark_copy(&mut self) -> Command {
        self.rounds += 1;
        if self.rounds > ROUNDS * 2 {
            return Command::Give(Conclusion::Unknown(STAYS_MARKED.to_owned()));
        }
        let flags = vec![DELETED.to_owned()];
        let command = Command::Store(self.copy, FlagChange::Remove, flags);
        self.to(At::UnmarkingCopy, command)
    }

    /// Waits and checks again after the server refused to delete the new message.
    fn not_taken(&mut self, refusal: Refusal) -> Command {
        self.refusal = Some(refusal);
        let pause = BACK_OFF << (2 * self.removals.saturating_sub(1));
        self.to(At::Resting(Again::Look), Command::Rest(pause))
    }

    /// Keeps both messages, but first removes the `\Deleted` that embody set from the old message.
    fn leave_both(&mut self, why: String, old: Option<&Seen>) -> Command {
        match old {
            Some(old) if self.is_ours && has(&old.flags, DELETED) => self.unmark(),
            _ => self.both(Reason::AmbiguousCopy, why),
        }
    }

    // The following functions replace a message with the command REPLACE (RFC 8508), for which the quota needs no room
    // for both messages.

    fn seen_before(&mut self, old: Sight, is_fresh: bool, why: Refusal) -> Command {
        match self.known(old) {
            Ok(Some(old)) if !has(&old.flags, DELETED) => {
                self.entry.flags = old.flags;
                self.entry.step = ReplacementStep::Replacing;
                self.to(At::Keeping(why), Command::Keep)
            }
            Ok(None) if !is_fresh => self.look_at(At::LookingBefore(true, why), true),
            Ok(_) => self.left(Reason::ChangedMeanwhile, MOVED),
            Err(_) => self.left(Reason::QuotaFull, why.text),
        }
    }

    fn replaced(&mut self, answer: Result<Option<(u32, u32)>, Refusal>) -> Command {
        match answer {
            Ok(Some((uidvalidity, uid)))
                if uidvalidity == self.entry.uidvalidity && uid >= self.entry.least =>
            {
                self.to(At::ReadingReplaced(uid), Command::Read(uid))
            }
            Ok(_) => self.search(Body::New, Purpose::AfterReplace),
            Err(refusal) => self.look_at(At::LookingAgain(true, refusal), true),
        }
    }

    /// Handles a refused REPLACE. The old message still exists, unless the server executed the command despite the refusal.
    fn seen_again(&mut self, old: Sight, is_fresh: bool, why: Refusal) -> Command {
        match self.known(old) {
            Ok(Some(_)) => {
                let fate = Fate::Left(Reason::QuotaFull, why.text);
                self.drop_and_end(Conclusion::Settled(fate))
            }
            Ok(None) if is_fresh => self.search(Body::New, Purpose::AfterReplace),
            _ => self.doubt(why.said(), Again::LookResumed),
        }
    }

    fn replaced_read(&mut self, uid: u32, reading: Reading) -> Command {
        match reading {
            Reading::Digest(digest) if digest == self.entry.sha256 => {
                let fate = Fate::Replaced(uid, Some(BY_REPLACE));
                self.drop_and_end(Conclusion::Settled(fate))
            }
            Reading::Digest(_) => self.begin_put_back(),
            Reading::Nothing => self.doubt(UNREADABLE.to_owned(), Again::ReadReplaced(uid)),
            Reading::Unknown(why) => self.doubt(why, Again::ReadReplaced(uid)),
        }
    }

    fn seen_resumed(&mut self, old: Sight, is_fresh: bool) -> Command {
        let old = match self.known(old) {
            Ok(old) => old,
            Err(why) => return self.doubt(why, Again::LookResumed),
        };
        if let Goal::LeaveBoth(why) = &self.goal {
            let why = format!("{why}; {KEPT_FILE}");
            return self.both(Reason::AmbiguousCopy, why);
        }
        match (old, &self.entry.step) {
            (None, _) if !is_fresh => self.look_at(At::LookingResumed(true), true),
            (Some(_), ReplacementStep::PuttingBack) => self.drop_and_end(Conclusion::Nothing),
            (None, ReplacementStep::PuttingBack) => {
                self.search(Body::Original, Purpose::PutBack(None))
            }
            (Some(_), _) => self.search(Body::New, Purpose::ReplaceResumed(true)),
            (None, _) => self.search(Body::New, Purpose::ReplaceResumed(false)),
        }
    }

    fn begin_put_back(&mut self) -> Command {
        self.entry.step = ReplacementStep::PuttingBack;
        self.to(At::NotingPutBack, Command::Note)
    }

    fn put_back(&mut self, answer: Result<Option<(u32, u32)>, Refusal>) -> Command {
        match answer {
            Ok(Some((uidvalidity, uid)))
                if uidvalidity == self.entry.uidvalidity && uid >= self.entry.least =>
            {
                self.to(At::ReadingPutBack(uid), Command::Read(uid))
            }
            Ok(_) => {
                let refusal = Refusal {
                    command: "APPEND",
                    code: None,
                    text: NOT_SAID.to_owned(),
                };
                self.search(Body::Original, Purpose::PutBack(Some(refusal)))
            }
            Err(refusal) => self.search(Body::Original, Purpose::PutBack(Some(refusal))),
        }
    }

    fn put_back_read(&mut self, uid: u32, reading: Reading) -> Command {
        match reading {
            Reading::Digest(digest) if Some(&digest) == self.entry.original.as_ref() => {
                self.is_put_back()
            }
            // The server altered the old message when it was appended again. Another attempt would append one more
            // message, so the machine stops here and keeps the file with the old message.
            Reading::Digest(_) => self.both(Reason::AlteredByServer, NOT_PUT_BACK),
            Reading::Nothing => self.doubt(UNREADABLE.to_owned(), Again::ReadPutBack(uid)),
            Reading::Unknown(why) => self.doubt(why, Again::ReadPutBack(uid)),
        }
    }

    fn is_put_back(&mut self) -> Command {
        let fate = Fate::Both(Reason::AlteredByServer, PUT_BACK.to_owned());
        self.drop_and_end(Conclusion::Settled(fate))
    }

    /// Removes the file with the old message, if it exists, and then ends the replacement with the conclusion.
    fn drop_and_end(&mut self, conclusion: Conclusion) -> Command {
        match self.entry.step {
            ReplacementStep::Replacing | ReplacementStep::PuttingBack => {
                self.to(At::Dropping(conclusion), Command::Drop)
            }
            // The file with the old message is written before the journal records the step `Replacing`. So it may exist
            // even if the journal still contains the step `Begun`.
            ReplacementStep::Begun if self.is_resumed => {
                self.to(At::Dropping(conclusion), Command::Drop)
            }
            _ => self.end(conclusion),
        }
    }

    #[cfg(test)]
    fn is_without_unknown(&self) -> bool {
        self.terms.without == Some(Rule::Unknown)
    }

    #[cfg(test)]
    fn is_without_marked_copy(&self) -> bool {
        self.terms.without == Some(Rule::MarkedCopy)
    }

    #[cfg(test)]
    fn is_without_digest(&self) -> bool {
        self.terms.without == Some(Rule::Digest)
    }

    #[cfg(not(test))]
    #[allow(clippy::unused_self)]
    fn is_without_unknown(&self) -> bool {
        false
    }

    #[cfg(not(test))]
    #[allow(clippy::unused_self)]
    fn is_without_marked_copy(&self) -> bool {
        false
    }

    #[cfg(not(test))]
    #[allow(clippy::unused_self)]
    fn is_without_digest(&self) -> bool {
        false
    }
}

impl Refusal {
    pub(super) fn said(&self) -> String {
        format!("the server refused {}: {}", self.command, self.text)
    }
}

fn why_altered(why: &str) -> Option<(Reason, String)> {
    Some((Reason::AlteredByServer, why.to_owned()))
}

fn altered(why: &str) -> Goal {
    Goal::TakeBack(why_altered(why))
}

const FINISHED: &str =
    "an earlier run began to replace the message, and this run completed the replacement";
const CARRIED: &str =
    "the flags of the message changed during the run, and were copied to the new message";
const NOT_CARRIED: &str = "the flags or labels of the old message changed at the last moment, and the server does not store all of them on the new message";
const LAST_UNKNOWN: &str = "the server did not send the flags at the last moment, so the new message has the flags that embody read earlier";
const MARK_REMOVED: &str = "another program marked the new message as deleted while the old message was removed; embody removed this mark";
const BY_REPLACE: &str = "the message was replaced in one step (REPLACE), because the quota has no room for the old and the new message";

const MOVED: &str = "another program moved or deleted the message during the run";
const MARKED: &str = "another program marked the message as deleted during the run";
const MARKED_STAYS: &str = "another program marked the message as deleted after the new message was written; the new message is kept";
const REMOVED: &str = "another program removed the message after the new message was written; the new message is kept";
const BOTH_WENT: &str = "another program removed both the old and the new message during the run";
const COPY_WENT: &str = "another program removed the new message while embody compared it";
const COPY_MARKED: &str =
    "the new message was already marked as deleted, so it was removed and the old message is kept";
const RENUMBERED: &str =
    "the folder was deleted and created again during the run; the new message is in the new folder";
const RESTLESS: &str = "another program keeps changing the flags of the message";
const KEPT: &str =
    "the server reported that the message was removed, but the message is still there";
const TAKEN_BACK: &str = "an earlier run was stopped while the run removed the new message";

const OTHER_BYTES: &str = "the server altered the new message while storing it";
const NOT_STORED: &str =
    "the server reported that the new message was stored, but the folder does not contain it";
const OTHER_DATE: &str = "the server stored the new message with a different date";
const NO_DATE: &str = "the server does not send the date of the new message";
const EARLIER: &str = "the server reported an older message as the new message";
const SAME: &str = "the server treated the new message as a duplicate of an existing message";
const LABELS: &str = "the server does not store the labels on the new message";

const SEVERAL: &str = "an earlier run wrote a new message, and several messages may be that message; all of them are kept";
const NOT_SAID: &str = "the server does not report which message is the new message";
const NOT_OURS: &str =
    "the UID of the new message belongs to a different message; nothing was deleted";
const NOT_OURS_ALONE: &str =
    "the UID of the new message belongs to a different message, and the original is missing";
const NOT_THE_ORIGINAL: &str = "the UID of the original belongs to a different message; nothing was deleted, and the new message is kept";

const UNREADABLE: &str = "the server lists the message but does not send its content";
const NO_LABELS: &str = "the server does not send the labels of the old and the new message";
const STAYS_MARKED: &str = "the server does not remove the flag \\Deleted from a message";
const KEEPS_COPY: &str = "the server answered OK, but the new message is still in the folder";

const KEPT_FILE: &str = "the original is in a file next to the journal";
const NOT_PUT_BACK: &str = "the server altered the message during REPLACE, and then did not store the original again; the original is in a file next to the journal";
const PUT_BACK: &str = "the server altered the message while storing it; the unchanged message was stored again, and the altered message was kept, too";

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
