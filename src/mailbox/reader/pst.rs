//! Reads the messages of a folder in an Outlook mailbox, in the order of the file.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::context::ReadContext;
use super::letters::{
    Letter, LetterFacts, LetterPlace, Letters, MailboxReader, ReadEvent, SeeLetter,
};
use crate::engine::outlook::pst::ItemKind;
use crate::error::Error;
use crate::mailbox::event::{EventLog, MailboxEvent, MailboxFact};
use crate::mailbox::place::delivery::StoredState;
use crate::mailbox::pst_file::{OpenPst, PstFolder};
use crate::mailbox::read::pst::{PstLetter, called};
use crate::mailbox::{Message, Quoting, Summary};

pub(super) struct PstReader {
    context: Arc<ReadContext>,
    opened: Arc<OpenPst>,
    rest: VecDeque<u32>,
    /// Number of the last message.
    number: u64,
    /// Number of items that are not mail, by kind.
    others: BTreeMap<&'static str, u64>,
}

struct PstLetters {
    context: Arc<ReadContext>,
    number: u64,
    content: Vec<u8>,
    letter: PstLetter,
}

impl PstReader {
    pub(super) fn new(context: &Arc<ReadContext>, folder: &PstFolder) -> Self {
        Self {
            context: Arc::clone(context),
            opened: Arc::clone(&folder.opened),
            rest: folder.items().iter().copied().collect(),
            number: 0,
            others: BTreeMap::new(),
        }
    }
}

impl MailboxReader for PstReader {
    fn begin(&mut self) -> LetterFacts {
        LetterFacts {
            counts: Summary::of(|sum| sum.mailboxes = 1),
            events: Vec::new(),
        }
    }

    /// Reads the next item. The size limit of the mailbox depends on the items before, so an item is read here, and not by the
    /// threads that open it.
    fn next(&mut self) -> Result<Option<Box<dyn Letters>>, Error> {
        while let Some(item) = self.rest.pop_front() {
            self.context.stop.check()?;
            if let ItemKind::Other(name) = self.opened.mailbox.kind(item) {
                *self.others.entry(name).or_default() += 1;
                continue;
            }
            self.number += 1;
            let log = EventLog::new();
            let job = self.context.job(&log);
            let (letter, content) = job.read_item(&self.opened, item, self.number);
            return Ok(Some(Box::new(PstLetters {
                context: Arc::clone(&self.context),
                number: self.number,
                content,
                letter,
            })));
        }
        Ok(None)
    }

    fn end(&mut self, summary: &mut Summary) -> Result<Vec<ReadEvent>, Error> {
        let log = EventLog::new();
        let job = self.context.job(&log);
        job.observer.event(MailboxEvent::done(summary));
        job.report_others(std::mem::take(&mut self.others), summary);
        Ok(log.into_events())
    }
}

impl Letters for PstLetters {
    fn count(&self) -> usize {
        usize::from(matches!(self.letter, PstLetter::Mail { .. }))
    }

    fn weight(&self) -> usize {
        self.content.len().max(1)
    }

    fn facts_before(&mut self) -> LetterFacts {
        let mut facts = LetterFacts::default();
        let path = || self.context.path.clone();
        match &self.letter {
            PstLetter::Mail {
                subject, missing, ..
            } => {
                facts.counts.damaged = u64::from(!missing.is_empty());
                let called = called(self.number, subject.as_deref());
                facts.events.extend(missing.iter().map(|what| {
                    let what = format!("{called}: {what}");
                    MailboxEvent::Fact(MailboxFact::Damaged(path(), what.into()))
                }));
            }
            PstLetter::Lost(why) => {
                facts.counts.damaged = 1;
                let lost = MailboxFact::Lost(path(), why.clone());
                facts.events.push(MailboxEvent::Fact(lost));
            }
        }
        facts
    }

    fn open(&self, _index: usize, see: SeeLetter<'_>) -> Result<LetterFacts, Error> {
        let stored = match &self.letter {
            PstLetter::Mail {
                flags, received, ..
            } => StoredState::new(Some((*flags).into()), *received),
            PstLetter::Lost(_) => StoredState::default(),
        };
        see(Letter {
            message: Message {
                number: self.number,
                source: &self.context.path,
                content: &self.content,
                at: None,
                quoting: Quoting::None,
                beside: None,
            },
            stored,
            place: LetterPlace::Folder,
        })?;
        let octets = self.content.len() as u64;
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
        self.content = Vec::new();
        size_of::<Self>()
    }
}
