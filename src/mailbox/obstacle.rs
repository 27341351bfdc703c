//! Mailboxes that cannot be changed in place. Each is reported and stays unchanged, and the run continues with the others.

use std::error::Error as _;
use std::io;
use std::io::ErrorKind::{
    FileTooLarge, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
};
use std::path::Path;

use crate::detail::Detail;
use crate::error::Error;
use crate::mailbox::Summary;
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::event::MailboxEvent;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::place::folder::MessageFolder;

/// Returns why the mailbox or message at `path` cannot be changed in place: it cannot be locked, read or replaced. `left` is
/// a sentence that says what stays unchanged. Returns `None` for an error that ends the run, because the next mailbox would
/// meet it too, such as a full disk.
pub(crate) fn obstacle(error: &Error, path: &Path, left: &str) -> Option<Detail> {
    let source = match error {
        Error::Write { source, .. }
        | Error::Read { source, .. }
        | Error::Unreadable { source, .. } => Some(source),
        Error::Locked { .. } | Error::Changed { .. } => None,
        _ => return None,
    };
    let kind = source.map(io::Error::kind);
    if matches!(kind, Some(StorageFull | QuotaExceeded | FileTooLarge)) {
        return None;
    }
    let text = match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    let named = format!("{}: ", path.display());
    let why = text.strip_prefix(&named).unwrap_or(&text);
    // The texts of other errors say what becomes of the file.
    let is_refused = matches!(kind, Some(PermissionDenied | ReadOnlyFilesystem));
    let end = if is_refused || matches!(error, Error::Locked { .. }) {
        left
    } else {
        ""
    };
    Some(format!("{why}{end}").into())
}

impl<S: Send> MailboxJob<'_, S> {
    /// Turns the result of a mailbox into its counts. If the mailbox is one of a directory and cannot be changed in place, it
    /// is reported, and the run does not end.
    pub(crate) fn unless_left(
        &self,
        kind: StartKind,
        done: Result<Summary, Error>,
    ) -> Result<Summary, Error> {
        let is_folder = kind.is_folder();
        let left = if is_folder {
            "; no message of this mailbox was changed"
        } else {
            "; the file was not changed"
        };
        match done {
            // `judged` reports a file that cannot be read, in every run.
            Err(Error::Unreadable { .. }) if !is_folder => done,
            Err(error) if self.is_within && self.options.writes => {
                match obstacle(&error, self.path, left) {
                    Some(why) => Ok(self.left(kind, why)),
                    None => Err(error),
                }
            }
            done => done,
        }
    }

    /// Reports a mailbox that stays unchanged, and returns its counts.
    fn left(&self, kind: StartKind, why: Detail) -> Summary {
        self.observer.event(MailboxEvent::damaged(self.path, why));
        // No event says that the mailbox is finished, so the results of its messages are not counted.
        let mut summary = Summary::of(|sum| sum.damaged = 1);
        if kind.is_folder() {
            let place = MessageFolder::of(self.path, kind, self.options.read.format);
            let (messages, others) = place.messages();
            summary.files.not_read = (messages.names().len() + others.len()) as u64;
        }
        summary
    }
}
