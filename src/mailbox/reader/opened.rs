//! Reads an open source: an mbox, a Eudora mailbox, the mboxes of an archive, or a single message.

use std::sync::Arc;

use super::context::ReadContext;
use super::letters::{LetterFacts, Letters, MailboxReader, ReadEvent};
use super::mbox::MboxPart;
use super::single::SingleLetter;
use crate::error::Error;
use crate::mailbox::Summary;
use crate::mailbox::event::EventLog;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::identity::FileIdentity;
use crate::mailbox::input::source::InputSource;
use crate::pool::PoolLimits;

/// Reads an open source whose kind is known.
pub(crate) struct OpenReader {
    context: Arc<ReadContext>,
    /// Identity of the file before it was opened. `None` for a stream, and for an mbox to which mail may be appended
    /// during the run.
    before: Option<FileIdentity>,
    /// Facts to report before the first message.
    facts: LetterFacts,
    state: OpenState,
}

enum OpenState {
    /// The source is a single message that is still unread.
    Single(Box<InputSource>, StartKind),
    Mbox(Box<MboxPart>),
    /// All messages were read. The number of mailboxes that is still to be added to [`Summary::mailboxes`].
    End(Box<InputSource>, u64),
    /// After an error.
    Failed,
}

impl OpenReader {
    /// Begins to read. If `before` is `None`, the file may change during the run.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read.
    pub(crate) fn new(
        context: &Arc<ReadContext>,
        source: InputSource,
        before: Option<FileIdentity>,
        kind: StartKind,
    ) -> Result<Self, Error> {
        let log = EventLog::new();
        let is_file = source.as_file().is_some();
        // An index that does not match its mailbox is also reported if its flags are not used.
        let index = (before.is_some() || context.is_for_other_format)
            .then(|| context.job(&log).index_of(kind, source.as_file()))
            .flatten()
            .filter(|_| context.is_for_other_format);
        let state = match kind {
            _ if kind.is_sequence() => {
                let is_eudora = kind == StartKind::Eudora && is_file;
                OpenState::Mbox(Box::new(MboxPart::first(
                    context, is_eudora, source, index,
                )?))
            }
            _ => OpenState::Single(Box::new(source), kind),
        };
        let events = log.into_events();
        Ok(Self {
            context: Arc::clone(context),
            before,
            facts: LetterFacts {
                counts: Summary::default(),
                events,
            },
            state,
        })
    }
}

impl MailboxReader for OpenReader {
    fn begin(&mut self) -> LetterFacts {
        std::mem::take(&mut self.facts)
    }

    fn next(&mut self) -> Result<Option<Box<dyn Letters>>, Error> {
        loop {
            match std::mem::replace(&mut self.state, OpenState::Failed) {
                OpenState::Single(mut source, kind) => {
                    let letter = SingleLetter::of_source(&self.context, &mut source, kind)?;
                    self.state = OpenState::End(source, 0);
                    return Ok(Some(Box::new(letter)));
                }
                OpenState::Mbox(mut part) => {
                    if let Some(letters) = part.next()? {
                        self.state = OpenState::Mbox(part);
                        return Ok(Some(letters as Box<dyn Letters>));
                    }
                    self.state = match part.following()? {
                        Ok(next) => OpenState::Mbox(Box::new(next)),
                        Err(source) => OpenState::End(Box::new(source), 1),
                    };
                }
                end @ (OpenState::End(..) | OpenState::Failed) => {
                    self.state = end;
                    return Ok(None);
                }
            }
        }
    }

    fn end(&mut self, summary: &mut Summary) -> Result<Vec<ReadEvent>, Error> {
        let OpenState::End(source, mailboxes) =
            std::mem::replace(&mut self.state, OpenState::Failed)
        else {
            return Ok(Vec::new());
        };
        summary.mailboxes += mailboxes;
        let log = EventLog::new();
        let job = self.context.job(&log);
        job.end_of_open(&source, self.before.as_ref(), summary)?;
        Ok(log.into_events())
    }

    fn limits(&self, limits: PoolLimits) -> PoolLimits {
        match self.state {
            OpenState::Single(..) => PoolLimits {
                workers: 1,
                ..limits
            },
            _ => limits,
        }
    }
}
