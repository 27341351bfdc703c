//! The traits of readers, and the facts that readers return.

use std::convert::Infallible;

use crate::error::Error;
use crate::mailbox::event::MailboxEvent;
use crate::mailbox::place::delivery::StoredState;
use crate::mailbox::{Message, Summary};
use crate::pool::PoolLimits;

/// A message that was read.
pub(crate) struct Letter<'l> {
    pub(crate) message: Message<'l>,
    /// Data that the mailbox stores outside of the message. Only readers for a mailbox of another format return it.
    pub(crate) stored: StoredState,
}

impl<'l> Letter<'l> {
    /// Returns a message without the data that its mailbox stores outside of it.
    pub(crate) fn of(message: Message<'l>) -> Self {
        Self {
            message,
            stored: StoredState::default(),
        }
    }
}

/// Function that gets a message.
pub(crate) type SeeLetter<'s> = &'s mut dyn FnMut(Letter<'_>) -> Result<(), Error>;

/// An event of a run that only reads, so that messages have no results.
pub(crate) type ReadEvent = MailboxEvent<Infallible>;

/// Reads one mailbox, or several files with one message each. One thread at a time calls the methods.
pub(crate) trait MailboxReader: Send {
    /// Returns the facts about the mailbox that are known before its first message.
    fn begin(&mut self) -> LetterFacts {
        LetterFacts::default()
    }

    /// Returns the next messages. Returns `None` after the last one.
    ///
    /// # Errors
    /// Returns an error if the rest of the mailbox cannot be read.
    fn next(&mut self) -> Result<Option<Box<dyn Letters>>, Error>;

    /// Returns the events after the last message. `summary` contains the counts of all facts so far, and gets those of the
    /// mailbox itself.
    ///
    /// # Errors
    /// Returns an error if the mailbox changed while it was read.
    fn end(&mut self, summary: &mut Summary) -> Result<Vec<ReadEvent>, Error>;

    /// Returns the limits of a pool that reads this mailbox. `limits` are those of a mailbox with many messages in one file.
    fn limits(&self, limits: PoolLimits) -> PoolLimits {
        limits
    }
}

/// Consecutive messages of a mailbox. Several threads open them at the same time.
pub(crate) trait Letters: Send + Sync {
    fn count(&self) -> usize;

    /// Returns the memory that the messages need until [`let_go`](Self::let_go), in bytes.
    fn weight(&self) -> usize;

    /// Returns the facts that precede the messages. It is called once, before or after the messages were opened.
    fn facts_before(&mut self) -> LetterFacts {
        LetterFacts::default()
    }

    /// Reads the message at `index`, and passes it to `see` unless it cannot be read. Returns the facts about the message.
    ///
    /// # Errors
    /// Returns the error of `see`, or an error that ends the mailbox.
    fn open(&self, index: usize, see: SeeLetter<'_>) -> Result<LetterFacts, Error>;

    /// Returns the content of a message that is in memory until [`let_go`](Self::let_go). Returns `None` if the content is in
    /// memory only while the message is open.
    fn content(&self, _index: usize) -> Option<&[u8]> {
        None
    }

    /// Frees the memory of the messages, after all of them were opened. Returns the memory that is still needed, in bytes.
    fn let_go(&mut self) -> usize;

    /// Returns the facts that follow the messages. It is called once, after the messages were opened.
    fn facts_after(&mut self) -> LetterFacts {
        LetterFacts::default()
    }
}

/// Counts and events of a mailbox or of its messages.
#[derive(Default)]
pub(crate) struct LetterFacts {
    pub(crate) counts: Summary,
    pub(crate) events: Vec<ReadEvent>,
}
