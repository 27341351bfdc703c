//! The errors that an iterator over messages returns in place of facts.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::mailbox::event::{MailboxEvent, MailboxFact};
use crate::mailbox::failure::unreadable;

/// Turns facts about damage into errors.
#[derive(Default, Debug)]
pub(crate) struct FactErrors {
    /// The mailbox that began last.
    mailbox: PathBuf,
}

impl FactErrors {
    pub(super) fn begin(&mut self, mailbox: &Path) {
        mailbox.clone_into(&mut self.mailbox);
    }

    /// Returns the error that an event means. Returns `None` for an event that is no error. Expects all events of a source in
    /// their order.
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
