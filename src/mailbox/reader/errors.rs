//! Converts events about damage to the errors that an iterator over messages returns.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::mailbox::event::{MailboxEvent, MailboxFact};
use crate::mailbox::failure::unreadable;

/// Converts events to errors. It remembers the current mailbox, because some events do not contain its path.
#[derive(Default, Debug)]
pub(crate) struct FactErrors {
    /// Path of the mailbox that is being read.
    mailbox: PathBuf,
}

impl FactErrors {
    pub(super) fn begin(&mut self, mailbox: &Path) {
        mailbox.clone_into(&mut self.mailbox);
    }

    /// Returns the error for an event about damage, and `None` for any other event. All events of a source must be
    /// passed in order.
    pub(crate) fn of<S>(&mut self, event: &MailboxEvent<S>) -> Option<Error> {
        let (path, why) = match event {
            MailboxEvent::Begin(path) => {
                self.begin(path);
                return None;
            }
            MailboxEvent::Fact(MailboxFact::Damaged(path, why) | MailboxFact::Lost(path, why)) => {
                (path, why.to_string())
            }
            MailboxEvent::Done(summary) if summary.oversized > 0 => {
                let why = format!("{} messages are too large", summary.oversized);
                (&self.mailbox, why)
            }
            _ => return None,
        };
        Some(unreadable(path)(io::Error::other(why)))
    }
}
