//! An iterator over the messages of mailboxes of all formats, for programs that only read mail.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::context::ReadContext;
use super::errors::FactErrors;
use super::letters::{LetterFacts, Letters, MailboxReader};
use super::open::open_reader;
use super::sequence::{SourceSequence, SourceStep};
use crate::error::Error;
use crate::mailbox::event::EventLog;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::{Message, Options, Quoting, ReadOptions, Stop, Summary};

/// An iterator over the messages of an mbox, a Maildir, an MH folder, a single message, an archive or a directory of
/// these, compressed or not, in order. It never writes, locks or makes network requests. Archives and compressed mail
/// need the feature `archives`, and are errors without it.
///
/// If a mailbox is damaged or unreadable, an item is an error, and the next mailbox follows. Messages that are
/// larger than [`ReadOptions::max_message`] are left out, and an error is returned after the other messages of the mailbox.
/// Files without mail are skipped. Messages are read on demand. Only archives and compressed mail are read ahead, by a
/// thread that ends when the iterator is dropped.
///
/// ```
/// use embody::mailbox::{Messages, ReadOptions};
///
/// let mbox = std::env::temp_dir().join(format!("embody-messages-{}.mbox", std::process::id()));
/// std::fs::write(&mbox, "From a@example.org Sat Jan  3 01:05:34 1996\nSubject: one\n\nhello\n")?;
/// for message in Messages::new(&mbox, ReadOptions::default()) {
///     let message = message?;
///     assert_eq!((message.number, &*message.content), (1, &b"Subject: one\n\nhello\n"[..]));
/// }
/// # std::fs::remove_file(mbox)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Messages {
    state: IteratorState,
    /// Items that were read and not returned yet.
    ready: VecDeque<Result<OwnedMessage, Error>>,
    errors: FactErrors,
    stop: Stop,
}

enum IteratorState {
    /// Nothing was read.
    Start(PathBuf, Arc<Options>),
    /// Between two mailboxes.
    Between(SourceSequence),
    Mailbox(SourceSequence, Box<OpenMailbox>),
    End,
}

/// A mailbox that is being read.
struct OpenMailbox {
    /// The mailbox, if it is not one of several files that are read together.
    about: Option<(Arc<ReadContext>, StartKind)>,
    reader: Box<dyn MailboxReader>,
    summary: Summary,
    /// Messages of the mailbox, and the index of the next one.
    letters: Option<(Box<dyn Letters>, usize)>,
}

/// A [`Message`] that owns its content, so that it can be kept after the mailbox was read.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct OwnedMessage {
    /// Position in the mailbox, from 1. The messages of a Maildir are in the order of their file names, `cur` first.
    pub number: u64,
    /// The file that contains the message.
    pub source: PathBuf,
    /// Header and body as they are in the file. A `>` that the mailbox added before `From ` is still in it.
    /// [`Quoting::unquote`] removes it.
    pub content: Vec<u8>,
    /// How the mailbox quotes `From ` lines.
    pub quoting: Quoting,
    /// Position of the first byte of the content in the file. `None` if the message is in a file of its own, in a
    /// compressed file or in an archive.
    pub at: Option<u64>,
}

impl Messages {
    /// Returns the messages of `source`. If the source does not exist, the first item is the error.
    pub fn new(source: impl Into<PathBuf>, options: ReadOptions) -> Self {
        Self {
            state: IteratorState::Start(source.into(), Arc::new(Options::for_reading(options))),
            ready: VecDeque::new(),
            errors: FactErrors::default(),
            stop: Stop::default(),
        }
    }

    /// Does the next step of reading, which may add items.
    fn step(&mut self) -> Result<(), Error> {
        match std::mem::replace(&mut self.state, IteratorState::End) {
            IteratorState::Start(source, options) => {
                let (sequence, facts) = SourceSequence::begin(&source, &options, &self.stop)?;
                self.add(facts);
                self.state = IteratorState::Between(sequence);
            }
            IteratorState::Between(mut sequence) => {
                let Some(step) = sequence.next()? else {
                    return Ok(());
                };
                self.state = match self.begin(step)? {
                    Some(opened) => IteratorState::Mailbox(sequence, Box::new(opened)),
                    None => IteratorState::Between(sequence),
                };
            }
            IteratorState::Mailbox(sequence, mut opened) => {
                let done = self.read(&mut opened);
                self.state = if matches!(done, Ok(false)) {
                    IteratorState::Mailbox(sequence, opened)
                } else {
                    let done = done.map(|_| opened.summary);
                    self.judge(opened.about.as_ref(), done)?;
                    IteratorState::Between(sequence)
                };
            }
            IteratorState::End => {}
        }
        Ok(())
    }

    /// Begins with a mailbox. Returns `None` if there is nothing to read.
    fn begin(&mut self, step: SourceStep) -> Result<Option<OpenMailbox>, Error> {
        let (about, reader) = match step {
            SourceStep::Facts(facts) => {
                self.add(facts);
                return Ok(None);
            }
            SourceStep::Files(reader) => (None, Ok(Box::new(reader) as Box<dyn MailboxReader>)),
            SourceStep::Mailbox(context, kind) => {
                self.errors.begin(&context.path);
                let reader = open_reader(&context, kind);
                (Some((context, kind)), reader)
            }
        };
        match reader {
            Ok(mut reader) => {
                let mut summary = Summary::default();
                self.add_to(reader.begin(), &mut summary);
                Ok(Some(OpenMailbox {
                    about,
                    reader,
                    summary,
                    letters: None,
                }))
            }
            Err(error) => {
                self.judge(about.as_ref(), Err(error))?;
                Ok(None)
            }
        }
    }

    /// Reads the next message of a mailbox. Returns whether the mailbox has ended.
    fn read(&mut self, opened: &mut OpenMailbox) -> Result<bool, Error> {
        let OpenMailbox {
            reader, summary, ..
        } = opened;
        if let Some((letters, index)) = &mut opened.letters {
            if *index == letters.count() {
                let facts = letters.facts_after();
                opened.letters = None;
                self.add_to(facts, summary);
                return Ok(false);
            }
            let ready = &mut self.ready;
            let facts = letters.open(*index, &mut |letter| {
                ready.push_back(Ok(OwnedMessage::of(&letter.message)));
                Ok(())
            })?;
            *index += 1;
            self.add_to(facts, summary);
            return Ok(false);
        }
        if let Some(mut letters) = reader.next()? {
            self.add_to(letters.facts_before(), summary);
            opened.letters = Some((letters, 0));
            return Ok(false);
        }
        let events = reader.end(summary)?;
        self.add(LetterFacts {
            events,
            ..LetterFacts::default()
        });
        Ok(true)
    }

    /// Adds an item for an error that ends only the mailbox `about`.
    ///
    /// # Errors
    /// Returns an error that ends the iterator.
    fn judge(
        &mut self,
        about: Option<&(Arc<ReadContext>, StartKind)>,
        done: Result<Summary, Error>,
    ) -> Result<(), Error> {
        let Some((context, kind)) = about else {
            return done.map(|_| ());
        };
        let log = EventLog::new();
        let counts = context.job(&log).judged(*kind, done)?;
        let events = log.into_events();
        self.add(LetterFacts { counts, events });
        Ok(())
    }

    fn add_to(&mut self, facts: LetterFacts, summary: &mut Summary) {
        summary.add(&facts.counts);
        self.add(facts);
    }

    /// Adds an item for each fact that is an error.
    fn add(&mut self, facts: LetterFacts) {
        let errors = facts
            .events
            .iter()
            .filter_map(|event| self.errors.of(event));
        self.ready.extend(errors.map(Err));
    }
}

impl OwnedMessage {
    fn of(message: &Message<'_>) -> Self {
        Self {
            number: message.number,
            source: message.source.to_owned(),
            content: message.content.to_owned(),
            quoting: message.quoting,
            at: message.at,
        }
    }
}

impl Iterator for Messages {
    type Item = Result<OwnedMessage, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && !matches!(self.state, IteratorState::End) {
            if let Err(error) = self.step() {
                self.state = IteratorState::End;
                self.ready.push_back(Err(error));
            }
        }
        self.ready.pop_front()
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        self.stop.request();
    }
}

impl fmt::Debug for Messages {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = formatter.debug_struct("Messages");
        fields
            .field("ready", &self.ready.len())
            .finish_non_exhaustive()
    }
}
