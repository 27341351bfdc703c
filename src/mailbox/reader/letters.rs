//! The traits of readers, and the facts that readers return.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use crate::detail::Detail;
use crate::edit::Edits;
use crate::error::Error;
use crate::mailbox::event::{MailboxEvent, MailboxFact};
use crate::mailbox::forms::carriage;
use crate::mailbox::forms::rewrite::{self, Rewritten};
use crate::mailbox::input::window::MessageText;
use crate::mailbox::place::delivery::StoredState;
use crate::mailbox::{Lengths, Message, Quoting, Summary};
use crate::pool::PoolLimits;

/// A message that was read.
pub(crate) struct Letter<'l> {
    pub(crate) message: Message<'l>,
    /// Data that the mailbox stores outside of the message. Only readers for a mailbox of another format return it.
    pub(crate) stored: StoredState,
    pub(crate) place: LetterPlace<'l>,
}

/// Where a mailbox stores a message.
pub(crate) enum LetterPlace<'l> {
    /// A Maildir, an MH folder or a folder of Outlook.
    Folder,
    /// A file that contains only this message.
    File,
    /// A file with many messages.
    Mbox(MboxPlace<'l>),
}

/// How a file with many messages, such as an mbox, stores a message.
pub(crate) struct MboxPlace<'l> {
    /// The line before the message, with its line ending.
    pub(crate) separator: &'l [u8],
    /// Quoting that is removed when the message is converted to another format. Always `None` in MMDF. In an mbox without
    /// quoting this is [`Quoting::O`], unless a Content-Length field determines the end of the message (mboxcl2).
    pub(crate) quoting: Quoting,
    /// Folders of the message in the archive that contains the mailbox. `None` if it is not in an archive.
    pub(crate) member: Option<Arc<[String]>>,
    pub(crate) entry: MboxEntryText<'l>,
}

/// A message with its separator, as the mailbox contains it.
pub(crate) struct MboxEntryText<'l> {
    pub(crate) text: &'l MessageText<'l>,
    /// The message with its original line endings.
    pub(crate) raw: &'l [u8],
    /// How the mailbox quotes lines.
    pub(crate) quoting: Quoting,
}

impl MboxEntryText<'_> {
    /// Applies the edits to the message. Returns the new entry of the mailbox, or `None` if it did not change.
    ///
    /// # Errors
    /// Returns an error if the change would remove a separator line.
    pub(crate) fn rewritten(&self, edits: &Edits, lengths: Lengths) -> Rewritten {
        let MessageText { bytes, frame, .. } = self.text;
        if self.text.has_cr {
            carriage::rewritten(self.raw, bytes, frame, edits, self.quoting, lengths)
        } else {
            rewrite::rewritten(bytes, frame, edits, self.quoting, lengths)
        }
    }
}

/// Function that gets a message.
pub(crate) type SeeLetter<'s> = &'s mut dyn FnMut(Letter<'_>) -> Result<(), Error>;

/// Function that returns the indices of the messages that contain words of references. Its arguments are the bytes of
/// consecutive messages, and the ends of the messages in them.
pub(crate) type SearchTouched<'s> = &'s dyn Fn(&[u8], &[usize]) -> Vec<usize>;

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

    /// Returns the memory that the messages need until [`discard`](Self::discard), in bytes.
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

    /// Returns whether the messages are in memory, so that they can be opened several times without reading them again.
    fn are_kept(&self) -> bool {
        false
    }

    /// Returns whether the messages belong to a Eudora mailbox, in which several messages may refer to one attachment file.
    fn are_of_eudora(&self) -> bool {
        false
    }

    /// Returns the indices of the messages that need work. Readers whose messages are not in memory together return all
    /// messages.
    fn touched(&self, _search: SearchTouched<'_>) -> Vec<usize> {
        (0..self.count()).collect()
    }

    /// Frees the memory of messages that will be opened again. Returns the memory that is still needed, in bytes. Returns `None`
    /// if the bytes could not be read again.
    fn let_go(&mut self) -> Option<usize> {
        None
    }

    /// Reads the bytes again after [`let_go`](Self::let_go).
    ///
    /// # Errors
    /// Returns [`Error::Unreadable`] if the bytes cannot be read, or have changed.
    fn read_again(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Frees the memory of messages that are not opened again. Returns the memory that is still needed, in bytes.
    fn discard(&mut self) -> usize;

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

impl LetterFacts {
    /// Returns the facts about a message that cannot be written.
    pub(super) fn lost(path: &Path, why: Detail) -> Self {
        let lost = MailboxFact::Lost(path.to_owned(), why);
        Self {
            counts: Summary::of(|sum| sum.damaged = 1),
            events: vec![MailboxEvent::Fact(lost)],
        }
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.counts.add(&more.counts);
        self.events.extend(more.events);
    }

    /// Adds the counts of the result to those of the mailbox. Readers count the bytes of a result as if no message changed, so
    /// these counts are removed.
    pub(crate) fn with_result(mut self, result: &Summary) -> Self {
        let add_to = |counts: &mut Summary| {
            counts.bytes_out = 0;
            counts.add(result);
        };
        add_to(&mut self.counts);
        for event in &mut self.events {
            if let MailboxEvent::Done(counts) = event {
                add_to(counts);
            }
        }
        self
    }
}
