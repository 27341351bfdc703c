//! The events of a run. Each message that is converted in parallel has its own event log. The logs are passed to the
//! [`Observer`] of the run in the order of the messages.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Mutex;

use crate::detail::Detail;
use crate::error::unpoisoned;
use crate::mailbox::{Summary, Transform};

/// Receives the events of a run: its progress and its results. The method is called in the order of the mailbox, by one
/// thread at a time. `S` is the type of the result that the [`Transform`] returns for a message.
///
/// A closure that takes a [`MailboxEvent`] is an observer, and `()` is an observer that ignores all events.
pub trait Observer<S = ()>: Sync {
    /// Receives the next event. New versions of embody may add events, so an observer must ignore events that it does
    /// not know.
    fn event(&self, event: MailboxEvent<S>);
}

impl<S> Observer<S> for () {
    fn event(&self, _event: MailboxEvent<S>) {}
}

impl<S, F: Fn(MailboxEvent<S>) + Sync> Observer<S> for F {
    fn event(&self, event: MailboxEvent<S>) {
        self(event);
    }
}

/// An event of a run, for its [`Observer`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum MailboxEvent<S = ()> {
    /// The next mailbox begins: an mbox file, a Maildir or a single message. Contains its path. Message numbers start
    /// again at 1.
    Begin(PathBuf),
    /// A message was processed. Contains the result of the [`Transform`], and whether the message was left unchanged
    /// because the change would remove a line that some programs read as a separator. These programs would then merge
    /// two messages.
    Message(S, bool),
    /// More bytes and messages are finished. Contains both numbers. The bytes are counted as they are on the disk, so
    /// they are compressed bytes for an archive or a compressed mbox.
    Advance(u64, u64),
    /// The run has found more to read than it knew at the start. Contains the number of additional bytes.
    Expects(u64),
    /// The mailbox that began last is finished. Contains its counts. This event does not occur after an error or a
    /// request to stop, unless a part of the mailbox was already written, as in a Maildir.
    Done(Box<Summary>),
    /// A remark about a file or a message.
    Fact(MailboxFact),
}

/// A remark about a file or a message, for the user and the report.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum MailboxFact {
    /// A file in a directory contains no mail. Contains its path and a description of the file.
    Skipped(PathBuf, &'static str),
    /// A file was skipped whose mail does not belong to the mailbox: its mail is deleted, was not delivered, or is a copy of
    /// other mail. Contains its path and a description of the file.
    SetAside(PathBuf, &'static str),
    /// Further members of an archive were skipped. They are only counted, because there may be thousands. Contains the
    /// path of the archive, a description of the members, and their number.
    SkippedOthers(PathBuf, &'static str, u64),
    /// A file or directory was skipped although it may look like mail, for example an attachment store or a cache of
    /// embody, an empty message, or Outlook items that are not mail. Contains its path and a description.
    PassedOver(PathBuf, String),
    /// A decision about a file or directory that the user should know, although the run continues. Contains its path and
    /// the decision.
    Noted(PathBuf, String),
    /// A file or directory is damaged, expands beyond the limit or cannot be read. Messages before the damage were
    /// processed. The file is not changed, and the run continues with the other mailboxes. Contains the path and the
    /// reason.
    Damaged(PathBuf, Detail),
    /// A single message cannot be read, so the result does not contain it. Contains the path of its mailbox and the
    /// reason. The mailbox counts as damaged.
    Lost(PathBuf, Detail),
    /// The result cannot store a flag or keyword. Contains a text that names the flag and says why it is lost, and the
    /// number of messages that had the flag.
    LostFlags(String, u64),
    /// The flags in a file of another program, such as an index, are not used. The file is counted as part of a mailbox.
    /// Contains its path, and a text that names the flags and says why they are not used.
    UnusedFlags(PathBuf, &'static str),
    /// Another program has held the lock of a mailbox for a long time, and the run waits for it. Contains the paths of
    /// the mailbox and of the lock file.
    Waiting(PathBuf, PathBuf),
}

impl<S> From<MailboxFact> for MailboxEvent<S> {
    fn from(fact: MailboxFact) -> Self {
        Self::Fact(fact)
    }
}

impl<S> MailboxEvent<S> {
    /// Returns the event that `path` is damaged or cannot be read.
    pub(crate) fn damaged(path: impl Into<PathBuf>, why: impl Into<Detail>) -> Self {
        Self::Fact(MailboxFact::Damaged(path.into(), why.into()))
    }

    /// Returns the event that `path` was skipped although it may look like mail.
    pub(crate) fn passed_over(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self::Fact(MailboxFact::PassedOver(path.into(), what.into()))
    }

    /// Returns the event that a mailbox with these counts is finished.
    pub(crate) fn done(summary: &Summary) -> Self {
        Self::Done(Box::new(*summary))
    }

    /// Returns the memory that the event needs, in bytes: its own size, and that of the result for a message.
    pub(crate) fn weight(&self, transform: Option<&dyn Transform<S>>) -> usize {
        let of_message = match (self, transform) {
            (Self::Message(said, _), Some(transform)) => transform.weight(said),
            _ => 0,
        };
        size_of_val(self) + of_message
    }
}

impl MailboxEvent<Infallible> {
    /// Converts an event of a run that only reads messages, and so has no results, to the event type of any other run.
    pub(crate) fn of_run<D>(self) -> MailboxEvent<D> {
        match self {
            Self::Begin(path) => MailboxEvent::Begin(path),
            Self::Message(never, _) => match never {},
            Self::Advance(bytes, messages) => MailboxEvent::Advance(bytes, messages),
            Self::Expects(bytes) => MailboxEvent::Expects(bytes),
            Self::Done(summary) => MailboxEvent::Done(summary),
            Self::Fact(fact) => MailboxEvent::Fact(fact),
        }
    }
}

/// An observer that keeps all events.
pub(crate) struct EventLog<S>(Mutex<Vec<MailboxEvent<S>>>);

impl<S> EventLog<S> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    pub(crate) fn into_events(self) -> Vec<MailboxEvent<S>> {
        unpoisoned(self.0.into_inner())
    }
}

impl<S: Send> Observer<S> for EventLog<S> {
    fn event(&self, event: MailboxEvent<S>) {
        unpoisoned(self.0.lock()).push(event);
    }
}
