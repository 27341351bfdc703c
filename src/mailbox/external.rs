//! Converts messages that are not in a file, such as messages from a server: the caller passes them in one by one and
//! receives the results.

use std::path::PathBuf;

use crate::error::Error;
use crate::mailbox::event::MailboxEvent;
use crate::mailbox::forms::rewrite;
use crate::mailbox::read::messages::MessageTransform;
use crate::mailbox::{Observer, Options, Stop, Summary, Transform};
use crate::pool;

/// A message that the caller passes in.
#[derive(Clone, Debug)]
pub struct ExternalMessage<T> {
    /// Data of the caller about the message, which is returned unchanged with the result.
    pub about: T,
    /// Position of the message in its mailbox, from 1.
    pub number: u64,
    /// Name of the mailbox, which reports and errors show in place of a path.
    pub source: PathBuf,
    /// Header and body.
    pub content: Vec<u8>,
}

/// A run over messages that the caller passes in, as [`Conversion`](crate::mailbox::Conversion) is a run over a mailbox.
pub struct ExternalMessages<'c, S> {
    /// Limits on threads and memory. The other options apply to mailboxes only.
    pub options: &'c Options,
    /// Change to each message.
    pub transform: &'c dyn Transform<S>,
    /// Receiver of the events of the run.
    pub observer: &'c dyn Observer<S>,
    /// Request to end the run early.
    pub stop: &'c Stop,
}

impl<S: Send> ExternalMessages<'_, S> {
    /// Transforms all messages that `next` returns, several at a time. `put` receives each message in the original order,
    /// with the new content if it changed. Returns the number of messages and their bytes before and after.
    ///
    /// # Errors
    /// Returns the errors of `next`, `put` and the transform, or [`Error::Interrupted`].
    pub fn run<T: Send + Sync>(
        &self,
        mut next: impl FnMut() -> Result<Option<ExternalMessage<T>>, Error> + Send,
        mut put: impl FnMut(&ExternalMessage<T>, Option<&[u8]>) -> Result<(), Error> + Send,
    ) -> Result<Summary, Error> {
        let mut summary = Summary::default();
        let transform = MessageTransform {
            transform: Some(self.transform),
            stop: self.stop,
        };
        pool::run(
            self.options.read.pool_limits(),
            self.stop,
            || {
                let message = next()?;
                Ok(message.map(|message| {
                    let weight = message.content.len().max(1);
                    (message, weight)
                }))
            },
            |_| vec![0],
            |message, _| {
                let from = (message.number, message.source.as_path());
                transform.single(from, &message.content, None, rewrite::spliced)
            },
            // While one message is slow, the pool frees the memory of later messages that can be read again. Messages from a
            // server cannot be read again, so this function returns `None`.
            |_, _| None,
            |message: ExternalMessage<T>, done| {
                let done = done.into_iter().find_map(|(_, done)| done);
                let new = done.as_ref().and_then(|done| done.new.as_deref());
                let octets = message.content.len() as u64;
                summary.messages += 1;
                summary.changed += u64::from(new.is_some());
                summary.bytes_in += octets;
                put(&message, new)?;
                summary.bytes_out += new.unwrap_or(&message.content).len() as u64;
                if let Some(done) = done {
                    done.tell(self.observer);
                }
                self.observer.event(MailboxEvent::Advance(octets, 1));
                Ok(())
            },
        )?;
        Ok(summary)
    }
}
