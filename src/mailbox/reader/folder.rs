//! Reads the messages of a Maildir or an MH folder, in the order of their names.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use super::context::ReadContext;
use super::letters::{LetterFacts, Letters, MailboxReader, ReadEvent, SeeLetter};
use crate::detail::Detail;
use crate::error::Error;
use crate::mailbox::each::{limits_for_files, weight_of_file};
use crate::mailbox::event::{EventLog, MailboxEvent, MailboxFact};
use crate::mailbox::kind::StartKind;
use crate::mailbox::maildir::{FolderMessage, read_folder_message};
use crate::mailbox::place::folder::MessageFolder;
use crate::mailbox::place::listing::ListedMessages;
use crate::mailbox::{Message, Quoting, Summary};
use crate::pool::PoolLimits;

pub(super) struct FolderReader {
    shared: Arc<SharedFolder>,
    rest: VecDeque<(u64, PathBuf)>,
    /// Paths that are named like messages and are not files.
    others: Vec<(PathBuf, Detail)>,
}

struct SharedFolder {
    context: Arc<ReadContext>,
    place: MessageFolder,
    messages: ListedMessages,
}

struct FolderLetter {
    shared: Arc<SharedFolder>,
    number: u64,
    /// Path of the message when the folder was listed, relative to the folder.
    listed: PathBuf,
    weight: usize,
}

impl FolderReader {
    pub(super) fn new(context: &Arc<ReadContext>, kind: StartKind) -> Self {
        let place = MessageFolder::of(&context.path, kind, context.options.format);
        let (messages, others) = place.messages();
        let rest = (1..).zip(messages.names().iter().cloned()).collect();
        Self {
            shared: Arc::new(SharedFolder {
                context: Arc::clone(context),
                place,
                messages,
            }),
            rest,
            others,
        }
    }
}

impl MailboxReader for FolderReader {
    fn begin(&mut self) -> LetterFacts {
        let others = std::mem::take(&mut self.others);
        let mut counts = Summary::of(|sum| {
            (sum.mailboxes, sum.damaged) = (1, others.len() as u64);
        });
        counts.files.not_read = counts.damaged;
        let damaged = |(path, why)| MailboxEvent::Fact(MailboxFact::Damaged(path, why));
        let events = others.into_iter().map(damaged).collect();
        LetterFacts { counts, events }
    }

    fn next(&mut self) -> Result<Option<Box<dyn Letters>>, Error> {
        Ok(self.rest.pop_front().map(|(number, listed)| {
            // A message that was renamed since is found again when it is opened.
            let found = fs::metadata(self.shared.place.folder.join(&listed));
            let length = found.map_or(0, |found| found.len());
            let letter: Box<dyn Letters> = Box::new(FolderLetter {
                shared: Arc::clone(&self.shared),
                number,
                listed,
                weight: weight_of_file(length, false),
            });
            letter
        }))
    }

    fn end(&mut self, summary: &mut Summary) -> Result<Vec<ReadEvent>, Error> {
        let SharedFolder {
            context, messages, ..
        } = &*self.shared;
        let log = EventLog::new();
        let job = context.job(&log);
        let missed = job.name_missed(messages)?;
        summary.damaged += missed;
        summary.files.not_read += missed;
        job.observer.done(summary);
        Ok(log.into_events())
    }

    fn limits(&self, limits: PoolLimits) -> PoolLimits {
        limits_for_files(limits)
    }
}

impl Letters for FolderLetter {
    fn count(&self) -> usize {
        1
    }

    fn weight(&self) -> usize {
        self.weight
    }

    fn open(&self, _index: usize, see: SeeLetter<'_>) -> Result<LetterFacts, Error> {
        let SharedFolder {
            context,
            place,
            messages,
        } = &*self.shared;
        let mut counts = Summary::default();
        let read = read_folder_message(messages, &self.listed, &context.options, &context.large);
        let damage = match read {
            Err(why) => Some(why),
            Ok(message) => {
                let FolderMessage {
                    name,
                    before,
                    content,
                    ..
                } = &message;
                let octets = match content {
                    Ok(content) => content.len() as u64,
                    Err(_) => before.length,
                };
                (counts.messages, counts.bytes_in, counts.bytes_out) = (1, octets, octets);
                match content {
                    Ok(content) => {
                        see(&Message {
                            number: self.number,
                            source: &place.folder.join(name),
                            content,
                            at: None,
                            quoting: Quoting::None,
                            beside: None,
                        })?;
                        None
                    }
                    Err(Some(why)) => Some(why.clone().then("; the message was not changed")),
                    Err(None) => {
                        counts.oversized = 1;
                        None
                    }
                }
            }
        };
        counts.damaged = u64::from(damage.is_some());
        counts.files.count_read(damage.is_none());
        let mut events = vec![MailboxEvent::Advance(counts.bytes_in, counts.messages)];
        if let Some(why) = damage {
            let path = place.folder.join(&self.listed);
            events.push(MailboxEvent::Fact(MailboxFact::Damaged(path, why)));
        }
        Ok(LetterFacts { counts, events })
    }
    fn let_go(&mut self) -> usize {
        size_of::<Self>() + self.listed.as_os_str().len()
    }
}
