//! The messages of an mbox, an MMDF mailbox or a mailbox of Eudora.

use std::sync::Arc;

use super::context::ReadContext;
use super::letters::{Letter, LetterFacts, Letters, SeeLetter};
use crate::error::Error;
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::event::{EventLog, MailboxEvent, MailboxFact};
use crate::mailbox::failure::{in_full, unreadable};
use crate::mailbox::find;
use crate::mailbox::forms::mbox::MboxReadState;
use crate::mailbox::forms::{Division, eudora, rewrite};
use crate::mailbox::input::accounts::Accounts;
use crate::mailbox::input::source::InputSource;
use crate::mailbox::input::window::{WindowChunk, Windows};
use crate::mailbox::read::cut;
use crate::mailbox::{Message, Program, Quoting, Summary};

/// A source that is divided into messages: an mbox, or one of the mboxes in an archive.
pub(super) struct MboxPart {
    context: Arc<ReadContext>,
    is_eudora: bool,
    quoting: Quoting,
    /// Number of messages in the parts before this one.
    before: u64,
    /// Number of messages of this part that were read.
    read: u64,
    windows: Windows,
    accounts: Accounts,
}

struct MboxLetters {
    context: Arc<ReadContext>,
    is_eudora: bool,
    quoting: Quoting,
    before: u64,
    chunk: WindowChunk,
}

impl MboxPart {
    /// Begins with the first part of a source.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read, or if the options select a part of it that does not exist.
    pub(super) fn first(
        context: &Arc<ReadContext>,
        is_eudora: bool,
        mut source: InputSource,
    ) -> Result<Self, Error> {
        let quoting = quoting_of(context, is_eudora, &mut source)?;
        Self::of((context, is_eudora, quoting), 0, source)
    }

    fn of(
        (context, is_eudora, quoting): (&Arc<ReadContext>, bool, Quoting),
        before: u64,
        source: InputSource,
    ) -> Result<Self, Error> {
        let path = context.path.as_path();
        let state = MboxReadState::default();
        let mut windows = cut::windows(source, state, &context.options, path)?;
        if is_eudora {
            let start = windows.source.start(find::LOOKED_AT as usize);
            let has_cr = eudora::ends_lines_with_cr(&start.map_err(in_full(path))?);
            windows.division = Division::Eudora { has_cr };
        }
        Ok(Self {
            context: Arc::clone(context),
            is_eudora,
            quoting,
            before,
            read: 0,
            accounts: Accounts::of(&windows),
            windows,
        })
    }

    /// Returns the next messages. Returns `None` at the end of the part.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read, or if a byte of it would belong to no message.
    pub(super) fn next(&mut self) -> Result<Option<Box<dyn Letters>>, Error> {
        let path = self.context.path.as_path();
        let Some(chunk) = self.windows.next_chunk().map_err(in_full(path))? else {
            self.accounts.end(&self.windows).map_err(unreadable(path))?;
            return Ok(None);
        };
        self.accounts.chunk(&chunk).map_err(unreadable(path))?;
        self.read += chunk.messages();
        Ok(Some(Box::new(MboxLetters {
            context: Arc::clone(&self.context),
            is_eudora: self.is_eudora,
            quoting: self.quoting,
            before: self.before,
            chunk,
        })))
    }

    /// Begins with the next part of the source. Returns the source if this part was the last one.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read.
    pub(super) fn following(self) -> Result<Result<Self, InputSource>, Error> {
        let mut source = self.windows.source;
        // The offsets of a range count all bytes of the source. After damage, some bytes are missing, so reading ends there.
        if self.context.options.range.is_some() || !source.go_on() {
            return Ok(Err(source));
        }
        let before = self.before + self.read;
        let quoting = match before {
            0 => quoting_of(&self.context, self.is_eudora, &mut source)?,
            _ => self.quoting,
        };
        Self::of((&self.context, self.is_eudora, quoting), before, source).map(Ok)
    }
}

fn quoting_of(
    context: &ReadContext,
    is_eudora: bool,
    source: &mut InputSource,
) -> Result<Quoting, Error> {
    let log = EventLog::new();
    let job = context.job(&log);
    MailboxJob { is_eudora, ..job }.quoting(source)
}

impl Letters for MboxLetters {
    fn count(&self) -> usize {
        self.chunk.frames.len()
    }

    fn weight(&self) -> usize {
        self.chunk.weight()
    }

    fn open(&self, index: usize, see: SeeLetter<'_>) -> Result<LetterFacts, Error> {
        let path = self.context.path.as_path();
        let text = self.chunk.text(index).map_err(unreadable(path))?;
        let (from_line, content, _) = text.parts();
        see(Letter::of(Message {
            number: self.before + self.chunk.first_number + index as u64,
            source: path,
            content,
            at: self.chunk.place_of(content),
            quoting: rewrite::declared_quoting(from_line, self.quoting),
            beside: self.is_eudora.then_some(Program::Eudora),
        }))?;
        let Some(place) = self.chunk.appended_to(index) else {
            return Ok(LetterFacts::default());
        };
        let number = self.before + self.chunk.first_number + index as u64;
        let why = place
            .data
            .detail(&format!("message {number}"), place.offset);
        let damaged = MailboxFact::Damaged(self.context.path.clone(), why);
        Ok(LetterFacts {
            counts: Summary::of(|sum| sum.damaged = 1),
            events: vec![MailboxEvent::Fact(damaged)],
        })
    }

    fn let_go(&mut self) -> usize {
        self.chunk.discard()
    }

    fn facts_after(&mut self) -> LetterFacts {
        let (messages, octets) = (self.chunk.messages(), self.chunk.length as u64);
        let counts = Summary {
            oversized: self.chunk.oversized,
            messages,
            bytes_in: octets,
            bytes_out: octets,
            ..Summary::default()
        };
        let read = self.chunk.packed.unwrap_or(octets);
        LetterFacts {
            counts,
            events: vec![MailboxEvent::Advance(read, messages)],
        }
    }
}
