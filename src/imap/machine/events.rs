//! Commands of the machine, and the events with their results.

use crate::engine::report::Reason;
use crate::imap::session::{FlagChange, InternalDate};

/// Content to append or to search for: the new or the old message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::imap) enum AppendContent {
    New,
    Original,
}

/// Response NO or BAD to a command.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::imap) struct CommandRefusal {
    pub(in crate::imap) command: &'static str,
    /// Response code in upper case.
    pub(in crate::imap) code: Option<String>,
    pub(in crate::imap) text: String,
}

impl CommandRefusal {
    pub(in crate::imap) fn said(&self) -> String {
        format!("the server refused {}: {}", self.command, self.text)
    }
}

/// Result of a FETCH of the metadata of a message.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::imap) enum Sight {
    Present(MessageMetadata),
    /// The FETCH ended with OK and did not list the message.
    Absent,
    /// The FETCH was refused, or the response contained no flags.
    Unknown(String),
}

/// Metadata of an existing message. It shows whether the UID still denotes the message that was read.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::imap) struct MessageMetadata {
    pub(in crate::imap) flags: Vec<String>,
    /// INTERNALDATE of the message. `None` if the response did not contain it.
    pub(in crate::imap) date: Option<InternalDate>,
    /// RFC822.SIZE of the message in bytes. `None` if the response did not contain it.
    pub(in crate::imap) size: Option<u64>,
    pub(in crate::imap) modseq: Option<u64>,
    pub(in crate::imap) start: MessageStart,
}

/// Comparison of the first bytes of a message with the first bytes that were read under the same UID earlier in this
/// session.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::imap) enum MessageStart {
    Same,
    Different,
    /// No first bytes to compare with: the message was not read in this session.
    NotCompared,
}

/// Result of reading a whole message.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::imap) enum MessageAnswer {
    Content {
        /// SHA-256 of the content, in hexadecimal digits.
        digest: String,
        /// Whether the Message-ID is that of the message that embody appended, possibly altered by the server.
        /// Otherwise the message may belong to another program.
        is_kin: bool,
    },
    /// The command ended with OK, but the server returned no content.
    Nothing,
    Unknown(String),
}

/// Message number and labels of a message at Gmail.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::imap) struct LabelReport {
    pub(in crate::imap) message_id: u64,
    pub(in crate::imap) labels: Vec<String>,
}

/// Next step to execute.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::imap) enum MachineCommand {
    /// Write the journal entry of the replacement and sync it to disk.
    Note,
    /// Append a message with the flags and the date in the journal entry.
    Append(AppendContent),
    /// Replace the old message by the new message with REPLACE.
    Replace,
    /// Write the old message to a file next to the journal and sync it to disk.
    Keep,
    /// Remove the file with the old message.
    Drop,
    /// Find the messages with this content. Only messages from the UID `least` in the journal entry count, because
    /// messages with smaller UIDs existed before the replacement.
    Search(AppendContent),
    /// Find other messages in the folder that have the same content as the new message with the UID `copy`. If `with_kin`
    /// is true, also find new messages with the same Message-ID.
    FindTwins { copy: u32, with_kin: bool },
    /// Read the whole message with this UID.
    Read(u32),
    /// Fetch the metadata of the old and the new message, after a NOOP, so that the server reports recent changes. The
    /// first bytes of the messages are compared in the same round trip.
    Look { copy: u32 },
    /// Check that the store contains all detached attachments to which the new message with this UID refers, but the
    /// old message does not.
    CheckObjects { copy: u32 },
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
    /// Record in the journal that the replacement ended, but that the message may exist twice, for this reason. The
    /// record is kept until a run has named the message and has ended with exit status 1.
    Name(String),
    /// End with this result.
    Give(Conclusion),
}

/// Result of the last command, from which the machine determines its next state and the next command.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::imap) enum MachineEvent {
    /// Start of the machine, before the first command.
    Begin,
    /// Completion of a command without a result: [`MachineCommand::Note`], [`MachineCommand::Keep`], [`MachineCommand::Drop`],
    /// [`MachineCommand::Rest`] or [`MachineCommand::End`].
    Done,
    /// Result of [`MachineCommand::Store`] or [`MachineCommand::StoreLabels`].
    Answered(Result<(), CommandRefusal>),
    /// Result of [`MachineCommand::Append`] or [`MachineCommand::Replace`]: UIDVALIDITY and UID of the new message, if
    /// the server reports them.
    Appended(Result<Option<(u32, u32)>, CommandRefusal>),
    /// Result of [`MachineCommand::Search`] or [`MachineCommand::FindTwins`]. The error is the reason why the result is
    /// unknown.
    Found(Result<FoundCopies, String>),
    Read(MessageAnswer),
    /// Result of [`MachineCommand::Look`]: metadata of the old message and of the new message.
    Seen(Sight, Sight),
    /// Result of [`MachineCommand::CheckObjects`]. The error says which attachments are missing, and what to do.
    Checked(Result<(), String>),
    /// Result of [`MachineCommand::Mark`].
    Marked {
        /// `Ok(true)` if the server did not set `\Deleted` because the old message had changed. `Err` if the server
        /// refused the command for another reason.
        answer: Result<bool, CommandRefusal>,
        /// Flags of the old message in the responses. `None` if the responses do not contain them.
        flags: Option<Vec<String>>,
    },
    /// Result of [`MachineCommand::Remove`].
    Removed {
        answer: Result<(), CommandRefusal>,
        /// Flags and labels of the old message immediately before the removal.
        flags: Option<Vec<String>>,
        labels: Option<Vec<String>>,
        /// Whether the server reported the removal in response to [`MachineCommand::Remove`]. This proves that the old
        /// message still existed when the command was executed.
        is_told: bool,
        /// Whether the server confirmed with COPYUID that this command moved the old message.
        is_proven: bool,
    },
    /// Result of [`MachineCommand::TakeAway`].
    TakenAway {
        answer: Result<(), CommandRefusal>,
        /// Whether the response reported that the server removed the new message. Otherwise another program may have moved
        /// the message before.
        is_told: bool,
    },
    /// Result of [`MachineCommand::Labels`] for the old and the new message. `None` if the server did not return them.
    Labels(Option<LabelReport>, Option<LabelReport>),
}

/// Messages that a search found.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(in crate::imap) struct FoundCopies {
    /// UIDs of the messages whose content is the one that was searched for.
    pub(in crate::imap) same: Vec<u32>,
    /// UIDs of the messages that have other content, but the same Message-ID, and that did not exist before the
    /// replacement. Such a message can be the new message after the server altered it, or the new message of another run.
    pub(in crate::imap) kin: Vec<u32>,
}

/// Outcome for a message that was to be replaced.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ReplaceResult {
    /// The message was replaced. The number is the UID of the new message. The remark describes anything unusual that was
    /// necessary.
    Replaced(u32, Option<&'static str>),
    /// The message was replaced by the message with this UID, but it may now exist twice, for this reason. The user must
    /// decide which message to keep.
    Doubled(u32, String),
    /// The message is unchanged.
    Left(Reason, String),
    /// The old message is unchanged or was removed by another program, and this folder or another one may contain its new
    /// version. The user must decide which message to keep.
    Both(Reason, String),
}

impl ReplaceResult {
    /// Whether the folder may contain the message twice, so that the user must be told and the exit status is 1.
    pub(in crate::imap) fn may_be_doubled(&self) -> bool {
        matches!(self, Self::Both(..) | Self::Doubled(..))
    }
}

/// Final result of a replacement.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::imap) enum Conclusion {
    /// The outcome of the replacement is certain, and its journal entry was removed.
    Settled(ReplaceResult),
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
