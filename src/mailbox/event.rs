//! The events of a run as values. Each message that is converted in parallel has its own event log. The logs are passed
//! to the [`Observer`] of the run in the order of the messages.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::detail::Detail;
use crate::error::unpoisoned;
use crate::mailbox::{Observer, Summary, Transform};

/// A recorded call to an [`Observer`].
pub(crate) enum MailboxEvent<S> {
    Begin(PathBuf),
    /// Result of a message, and whether the message was left unchanged because the change would remove a separator
    /// line.
    Message(S, bool),
    Advance(u64, u64),
    Expects(u64),
    Done(Box<Summary>),
    Fact(MailboxFact),
}

/// A remark about a file or a message, for the user and the report.
pub(crate) enum MailboxFact {
    Skipped(PathBuf, &'static str),
    SkippedOthers(PathBuf, &'static str, u64),
    PassedOver(PathBuf, String),
    Noted(PathBuf, String),
    Damaged(PathBuf, Detail),
    Lost(PathBuf, Detail),
    LostFlags(String, u64),
    UnusedFlags(PathBuf, &'static str),
    /// The run waits for another program. Paths of the mailbox and of the lock of the other program.
    Waiting(PathBuf, PathBuf),
}

impl<S> MailboxEvent<S> {
    pub(crate) fn tell(self, observer: &dyn Observer<S>) {
        match self {
            Self::Begin(path) => observer.begin(&path),
            Self::Message(said, is_refused) => observer.message(said, is_refused),
            Self::Advance(bytes, messages) => observer.advance(bytes, messages),
            Self::Expects(bytes) => observer.expects(bytes),
            Self::Done(summary) => observer.done(&summary),
            Self::Fact(fact) => fact.tell(observer),
        }
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

impl MailboxFact {
    fn tell<S>(self, observer: &dyn Observer<S>) {
        match self {
            Self::Skipped(path, what) => observer.skipped(&path, what),
            Self::SkippedOthers(path, what, count) => observer.skipped_others(&path, what, count),
            Self::PassedOver(path, what) => observer.passed_over(&path, &what),
            Self::Noted(path, what) => observer.noted(&path, &what),
            Self::Damaged(path, why) => observer.damaged(&path, &why),
            Self::Lost(path, why) => observer.lost(&path, &why),
            Self::LostFlags(what, count) => observer.lost_flags(&what, count),
            Self::UnusedFlags(path, what) => observer.unused_flags(&path, what),
            Self::Waiting(mailbox, lock) => observer.waiting(&mailbox, &lock),
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

    fn add(&self, event: MailboxEvent<S>) {
        unpoisoned(self.0.lock()).push(event);
    }
}

impl<S: Send> Observer<S> for EventLog<S> {
    fn begin(&self, mailbox: &Path) {
        self.add(MailboxEvent::Begin(mailbox.to_owned()));
    }

    fn message(&self, said: S, is_refused: bool) {
        self.add(MailboxEvent::Message(said, is_refused));
    }

    fn advance(&self, bytes: u64, messages: u64) {
        self.add(MailboxEvent::Advance(bytes, messages));
    }

    fn expects(&self, bytes: u64) {
        self.add(MailboxEvent::Expects(bytes));
    }

    fn done(&self, summary: &Summary) {
        self.add(MailboxEvent::Done(Box::new(*summary)));
    }

    fn skipped(&self, path: &Path, what: &'static str) {
        self.add(MailboxEvent::Fact(MailboxFact::Skipped(
            path.to_owned(),
            what,
        )));
    }

    fn skipped_others(&self, archive: &Path, what: &'static str, count: u64) {
        let fact = MailboxFact::SkippedOthers(archive.to_owned(), what, count);
        self.add(MailboxEvent::Fact(fact));
    }

    fn passed_over(&self, path: &Path, what: &str) {
        let fact = MailboxFact::PassedOver(path.to_owned(), what.to_owned());
        self.add(MailboxEvent::Fact(fact));
    }

    fn noted(&self, path: &Path, what: &str) {
        let fact = MailboxFact::Noted(path.to_owned(), what.to_owned());
        self.add(MailboxEvent::Fact(fact));
    }

    fn damaged(&self, path: &Path, why: &Detail) {
        let fact = MailboxFact::Damaged(path.to_owned(), why.clone());
        self.add(MailboxEvent::Fact(fact));
    }

    fn lost(&self, path: &Path, why: &Detail) {
        let fact = MailboxFact::Lost(path.to_owned(), why.clone());
        self.add(MailboxEvent::Fact(fact));
    }

    fn lost_flags(&self, what: &str, count: u64) {
        let fact = MailboxFact::LostFlags(what.to_owned(), count);
        self.add(MailboxEvent::Fact(fact));
    }

    fn unused_flags(&self, path: &Path, what: &'static str) {
        let fact = MailboxFact::UnusedFlags(path.to_owned(), what);
        self.add(MailboxEvent::Fact(fact));
    }

    fn waiting(&self, mailbox: &Path, lock: &Path) {
        let fact = MailboxFact::Waiting(mailbox.to_owned(), lock.to_owned());
        self.add(MailboxEvent::Fact(fact));
    }
}
