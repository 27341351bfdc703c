//! Converts messages that are not in a file, such as messages from a server: the caller passes them in one by one and
//! receives the results.

use std::path::PathBuf;

use crate::error::Error;
use crate::mailbox::event::MailboxEvent;
use crate::mailbox::letter_work::{EditedForm, WorkedLetter};
use crate::mailbox::place::delivery::StoredState;
use crate::mailbox::read::messages::MessageTransform;
use crate::mailbox::reader::{Letter, LetterFacts, LetterPlace, Letters, SeeLetter};
use crate::mailbox::{Message, Observer, Options, Quoting, Stop, Summary, Transform};

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
        let run = MessageTransform {
            transform: Some(self.transform),
            observer: self.observer,
            stop: self.stop,
        };
        let mut summary = Summary::default();
        run.transform_letters(
            self.options.read.pool_limits(),
            || Ok(next()?.map(|message| Box::new(ExternalLetter(message)))),
            EditedForm::Plain,
            |ExternalLetter(message): &ExternalLetter<T>, done, summary| {
                for (_, worked) in done {
                    let WorkedLetter { done, facts, .. } = worked?;
                    let new = done.as_ref().and_then(|done| done.new.as_deref());
                    put(message, new)?;
                    let result = Summary {
                        changed: u64::from(new.is_some()),
                        bytes_out: new.unwrap_or(&message.content).len() as u64,
                        ..Summary::default()
                    };
                    if let Some(done) = done {
                        done.tell(self.observer);
                    }
                    run.tell_facts(facts, &result, summary);
                }
                Ok(())
            },
            &mut summary,
        )?;
        Ok(summary)
    }
}

/// A message that the caller passed in, as a reader returns it. It cannot be read again.
struct ExternalLetter<T>(ExternalMessage<T>);

impl<T: Send + Sync> Letters for ExternalLetter<T> {
    fn count(&self) -> usize {
        1
    }

    fn weight(&self) -> usize {
        self.0.content.len().max(1)
    }

    fn open(&self, _index: usize, see: SeeLetter<'_>) -> Result<LetterFacts, Error> {
        let message = Message {
            number: self.0.number,
            source: &self.0.source,
            content: &self.0.content,
            at: None,
            quoting: Quoting::None,
            beside: None,
        };
        see(Letter {
            message,
            stored: StoredState::default(),
            place: LetterPlace::Folder,
        })?;
        let octets = self.0.content.len() as u64;
        Ok(LetterFacts {
            counts: Summary {
                messages: 1,
                bytes_in: octets,
                bytes_out: octets,
                ..Summary::default()
            },
            events: vec![MailboxEvent::Advance(octets, 1)],
        })
    }

    fn are_kept(&self) -> bool {
        true
    }

    fn discard(&mut self) -> usize {
        self.0.content = Vec::new();
        size_of::<Self>()
    }
}
