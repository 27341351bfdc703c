//! Reads the messages of a Maildir or an MH folder, in the order of their file names. For a mailbox of another format, messages
//! are returned in the order of their arrival, but they are always numbered in the order of their file names.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::context::ReadContext;
use super::letters::{
    Letter, LetterFacts, LetterPlace, Letters, MailboxReader, ReadEvent, SeeLetter,
};
use crate::detail::Detail;
use crate::error::{Error, unpoisoned};
use crate::mailbox::each::{limits_for_files, weight_of_file};
use crate::mailbox::event::{EventLog, MailboxEvent, MailboxFact};
use crate::mailbox::failure::{LEFT_OUT, too_large};
use crate::mailbox::flag_losses::FlagLosses;
use crate::mailbox::folder_flags::FolderFlags;
use crate::mailbox::forms::carriage;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::place::delivery::StoredState;
use crate::mailbox::place::folder::{MessageFolder, length_of_listed};
use crate::mailbox::place::listing::ListedMessages;
use crate::mailbox::read::folder_message::{FolderMessage, read_folder_message};
use crate::mailbox::{Message, Quoting, Summary};
use crate::platform::OsStrExt as _;
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
    /// Flags of the messages. `None` if the messages are not read for a mailbox of another format.
    flags: Option<FolderFlags>,
    losses: Mutex<FlagLosses>,
}

struct FolderLetter {
    shared: Arc<SharedFolder>,
    number: u64,
    /// Path of the message when the folder was listed, relative to the folder.
    listed: PathBuf,
    weight: usize,
    /// Flags that are lost.
    lost: Mutex<Vec<String>>,
}

impl FolderReader {
    pub(super) fn new(context: &Arc<ReadContext>, kind: StartKind) -> Self {
        let place = MessageFolder::of(&context.path, kind, context.options.read.format);
        let (messages, others) = place.messages();
        let mut rest: Vec<_> = (1..).zip(messages.names().iter().cloned()).collect();
        let is_for_other_format = context.is_for_other_format;
        if is_for_other_format && !place.is_mh {
            rest.sort_by_cached_key(|(_, name)| arrival(name));
        }
        Self {
            shared: Arc::new(SharedFolder {
                context: Arc::clone(context),
                flags: is_for_other_format.then(|| FolderFlags::of(&place)),
                place,
                messages,
                losses: Mutex::default(),
            }),
            rest: rest.into(),
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
            let length = length_of_listed(&self.shared.place.folder, &listed);
            let letter: Box<dyn Letters> = Box::new(FolderLetter {
                shared: Arc::clone(&self.shared),
                number,
                listed,
                weight: weight_of_file(length, false),
                lost: Mutex::default(),
            });
            letter
        }))
    }

    fn end(&mut self, summary: &mut Summary) -> Result<Vec<ReadEvent>, Error> {
        let SharedFolder {
            context,
            messages,
            losses,
            ..
        } = &*self.shared;
        let log = EventLog::new();
        let job = context.job(&log);
        std::mem::take(&mut *unpoisoned(losses.lock())).report(job.observer);
        let missed = job.name_missed(messages)?;
        summary.damaged += missed;
        summary.files.not_read += missed;
        job.observer.event(MailboxEvent::done(summary));
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
            messages,
            flags,
            ..
        } = &*self.shared;
        let read = read_folder_message(messages, &self.listed, &context.options, &context.large);
        match flags {
            Some(flags) => self.open_with_flags(flags, read, see),
            None => self.open_alone(read, see),
        }
    }

    fn discard(&mut self) -> usize {
        size_of::<Self>() + self.listed.as_os_str().len()
    }

    fn facts_after(&mut self) -> LetterFacts {
        let mut losses = unpoisoned(self.shared.losses.lock());
        for what in std::mem::take(&mut *unpoisoned(self.lost.lock())) {
            losses.count(what);
        }
        LetterFacts::default()
    }
}

impl FolderLetter {
    /// Reads the message for a mailbox of another format.
    fn open_with_flags(
        &self,
        flags: &FolderFlags,
        read: Result<FolderMessage<'_>, Detail>,
        see: SeeLetter<'_>,
    ) -> Result<LetterFacts, Error> {
        let SharedFolder { context, place, .. } = &*self.shared;
        let (name, why) = match read {
            Err(why) => (self.listed.clone(), why.then(LEFT_OUT)),
            Ok(FolderMessage {
                name,
                modified,
                content: Ok(content),
                appended,
                ..
            }) => {
                let (flags, lost) = flags.of_message(&name, &content);
                *unpoisoned(self.lost.lock()) = lost;
                let content = carriage::with_line_feeds_alone(content);
                see(Letter {
                    message: self.message(&place.folder.join(&name), &content),
                    stored: StoredState::new(flags, modified),
                    place: LetterPlace::Folder,
                })?;
                let octets = content.len() as u64;
                let mut counts = Summary {
                    messages: 1,
                    bytes_in: octets,
                    bytes_out: octets,
                    ..Summary::default()
                };
                counts.damaged = u64::from(appended.is_some());
                counts.files.count_read(appended.is_none());
                let mut events = vec![MailboxEvent::Advance(octets, 1)];
                if let Some(why) = appended {
                    let damaged = MailboxFact::Damaged(place.folder.join(&name), why);
                    events.push(MailboxEvent::Fact(damaged));
                }
                return Ok(LetterFacts { counts, events });
            }
            Ok(FolderMessage { name, content, .. }) => match content.err().flatten() {
                Some(why) => (name, why.then(LEFT_OUT)),
                None => (name, too_large(None, &context.options.read)),
            },
        };
        let mut counts = Summary::of(|sum| sum.damaged = 1);
        counts.files.count_read(false);
        let lost = MailboxFact::Lost(place.folder.join(name), why);
        Ok(LetterFacts {
            counts,
            events: vec![MailboxEvent::Fact(lost)],
        })
    }

    fn message<'m>(&self, source: &'m Path, content: &'m [u8]) -> Message<'m> {
        Message {
            number: self.number,
            source,
            content,
            at: None,
            quoting: Quoting::None,
            beside: None,
        }
    }

    /// Reads the message without its flags.
    fn open_alone(
        &self,
        read: Result<FolderMessage<'_>, Detail>,
        see: SeeLetter<'_>,
    ) -> Result<LetterFacts, Error> {
        let place = &self.shared.place;
        let mut counts = Summary::default();
        let damage = match read {
            Err(why) => Some(why),
            Ok(message) => {
                let FolderMessage {
                    name,
                    before,
                    content,
                    appended,
                    ..
                } = &message;
                let octets = match content {
                    Ok(content) => content.len() as u64,
                    Err(_) => before.length,
                };
                (counts.messages, counts.bytes_in, counts.bytes_out) = (1, octets, octets);
                match content {
                    Ok(content) => {
                        let source = place.folder.join(name);
                        see(Letter {
                            message: self.message(&source, content),
                            stored: StoredState::default(),
                            place: LetterPlace::Folder,
                        })?;
                        appended.clone()
                    }
                    Err(Some(why)) => {
                        counts.messages = 0;
                        Some(why.clone().then("; the message was not changed"))
                    }
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
}

/// Returns the delivery time at the start of a Maildir file name, followed by the complete name, as a sort key.
fn arrival(name: &Path) -> (u64, Vec<u8>) {
    let name = name.file_name().unwrap_or_default().as_bytes();
    let end = name.iter().position(|octet| !octet.is_ascii_digit());
    let (digits, _) = name.split_at(end.unwrap_or(name.len()));
    let digits = std::str::from_utf8(digits).ok();
    let number = digits.and_then(|digits| digits.parse().ok());
    (number.unwrap_or(u64::MAX), name.to_owned())
}
