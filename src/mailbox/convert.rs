//! Reads files with one message, and changes them in place.
//!
//! A mailbox is always either complete or unchanged: output appears under its final name when it is complete, and
//! `place::replace` replaces files in place in one step. If a run ends with an error or is stopped, the mailboxes of a
//! directory that were already converted are kept.

use std::fs::{self, File};
use std::ops::Range;
use std::sync::{Arc, MutexGuard};

use crate::detail::{Detail, Setting};
use crate::error::{Error, unpoisoned};
use crate::mailbox::Summary;
use crate::mailbox::appended::appended_to_file;
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::compressed::{CompressionDamage, LEFT_AS_UTF16};
use crate::mailbox::event::{MailboxEvent, MailboxFact};
use crate::mailbox::failure::unreadable;
use crate::mailbox::forms::{emlx, emlx_files, rewrite};
use crate::mailbox::identity::FileIdentity;
use crate::mailbox::input::source::InputSource;
use crate::mailbox::kind::StartKind;
use crate::mailbox::not_mail::NotMail;
use crate::mailbox::place::replace::{self, AtomicWriter};
use crate::mailbox::read::cut::{SINGLE, asked_for, cannot_cut};
use crate::mailbox::read::messages::TransformResult;
use crate::mailbox::read::opened::SourceMessage;
use crate::mailbox::read::sink::Output;
use crate::platform::NewFile;

/// Maximum size of a compressed message, in bytes, that is decompressed in parallel with other messages. Larger messages
/// are decompressed one at a time to limit memory.
const MOST_IN_PARALLEL: usize = 8 << 20;

/// Place of the message in the content of a file.
#[derive(Clone)]
pub(crate) struct MessageExtent {
    pub(crate) range: Range<usize>,
    /// Whether the file also contains other data, such as the property list of Apple Mail.
    pub(crate) is_wrapped: bool,
}

impl<S: Send> MailboxJob<'_, S> {
    pub(crate) fn open(&self) -> Result<(File, FileIdentity), Error> {
        let file = File::open(self.path).map_err(unreadable(self.path))?;
        let before = file.metadata().map_err(unreadable(self.path))?;
        Ok((file, FileIdentity::of(&before)))
    }

    /// Reports a file in UTF-16 that should be changed in place. A run that writes nothing reads such a file.
    pub(crate) fn leave_utf16(&self) -> Option<Summary> {
        let writes = self.options.writes;
        self.method.filter(|method| writes && method.is_utf16())?;
        let what = Detail::from(LEFT_AS_UTF16).naming(Setting::OutputFormat);
        self.observer.event(MailboxEvent::damaged(self.path, what));
        let summary = Summary::of(|sum| (sum.mailboxes, sum.damaged) = (1, 1));
        self.observer.event(MailboxEvent::done(&summary));
        Some(summary)
    }

    pub(crate) fn message_in_place(&self) -> Result<Summary, Error> {
        if let Some(left) = self.leave_utf16() {
            return Ok(left);
        }
        // A run that writes nothing compares the mail with one that was written in another format.
        if !self.options.writes {
            return self.file_to(StartKind::Eml, Output::Nowhere);
        }
        let (file, before) = self.open()?;
        let mut source = match self.method {
            Some(_) => InputSource::named(file, self.path, &self.options.read, self.stop)?,
            None => InputSource::file(&Arc::new(file)),
        };
        let read = self.source_message(&mut source, StartKind::Eml, false)?;
        let (summary, done) = match (source.damage(), read) {
            (Some(damage), _) => (self.all_damaged(damage), None),
            (None, SourceMessage::Whole(read)) => {
                let (mut summary, done) = self.message_of(&read.content)?;
                self.report_appended_to_file(&read.content, &mut summary);
                (summary, done)
            }
            (None, SourceMessage::Empty) => {
                let summary = self.without_message();
                self.observer
                    .event(MailboxEvent::done(&Summary::of(|sum| sum.mailboxes = 1)));
                return Ok(summary);
            }
            (None, SourceMessage::TooLarge(_)) => (self.oversized(before.length)?, None),
            (None, SourceMessage::Unread(summary)) => (summary, None),
        };
        let new = done.as_ref().and_then(|done| done.new.as_ref());
        if let (Some(new), Some(file)) = (new, source.original()) {
            let target = self.path.canonicalize().map_err(unreadable(self.path))?;
            let backup = self.options.backup.as_deref();
            replace::check_replaceable(&target, backup)?;
            let mut beside = AtomicWriter::replacing(&target, self.method)?;
            beside.write(new)?;
            self.stop.check()?;
            let finished = beside.finished(file, NewFile::Replacement)?;
            finished.replace(&before, backup)?;
        }
        if let Some(done) = done {
            done.tell(self.observer);
        }
        self.observer.event(MailboxEvent::done(&summary));
        Ok(summary)
    }

    /// Returns the maximum size of a message that is read in parallel with others, in bytes. Compressed mail has a lower limit,
    /// because its length is unknown before it is decompressed.
    pub(crate) fn most_in_parallel(&self, is_compressed: bool) -> usize {
        let most = self.options.read.max_message;
        match self.large {
            Some(_) if is_compressed => most.min(MOST_IN_PARALLEL),
            _ => most,
        }
    }

    /// Waits until no other large message is in memory.
    pub(crate) fn alone(&self) -> Option<MutexGuard<'_, ()>> {
        self.large.map(|large| unpoisoned(large.lock()))
    }

    /// Reports an empty file with the name of a message.
    pub(crate) fn without_message(&self) -> Summary {
        let what = NotMail::NO_MESSAGE.name();
        self.observer
            .event(MailboxEvent::passed_over(self.path, what));
        self.observer
            .event(MailboxFact::Skipped(self.path.to_owned(), what).into());
        Summary::of(|sum| (sum.mailboxes, sum.skipped_files) = (1, 1))
    }

    pub(crate) fn check_uncut(&self) -> Result<(), Error> {
        let metadata = fs::metadata(self.path).ok();
        match asked_for(&self.options.read, self.path, metadata.as_ref())? {
            Some(_) => Err(cannot_cut(self.path, SINGLE)),
            None => Ok(()),
        }
    }

    pub(crate) fn oversized(&self, octets: u64) -> Result<Summary, Error> {
        Ok(Summary {
            oversized: 1,
            ..self.one_message(octets)?
        })
    }

    fn one_message(&self, octets: u64) -> Result<Summary, Error> {
        self.check_uncut()?;
        self.observer.event(MailboxEvent::Advance(octets, 1));
        Ok(Summary {
            mailboxes: 1,
            messages: 1,
            bytes_in: octets,
            bytes_out: octets,
            ..Summary::default()
        })
    }

    /// Finds the message in the content of a file, and counts it. Reports a file in which no message is found, and returns
    /// no place for it.
    pub(crate) fn counted_message(
        &self,
        content: &[u8],
    ) -> Result<(Summary, Option<MessageExtent>), Error> {
        let mut summary = self.one_message(content.len() as u64)?;
        let place = match emlx::message(content) {
            None => Some(MessageExtent {
                range: 0..content.len(),
                is_wrapped: false,
            }),
            Some(Ok(range)) => Some(MessageExtent {
                range,
                is_wrapped: true,
            }),
            Some(Err(why)) => {
                summary.damaged = 1;
                let why = format!("{why}; the file was not changed");
                self.observer.event(MailboxEvent::damaged(self.path, why));
                None
            }
        };
        Ok((summary, place))
    }

    pub(crate) fn message_of(
        &self,
        content: &[u8],
    ) -> Result<(Summary, Option<TransformResult<S>>), Error> {
        let (mut summary, place) = self.counted_message(content)?;
        let Some(MessageExtent { range, is_wrapped }) = place else {
            return Ok((summary, None));
        };
        let message = content.get(range.clone()).unwrap_or_default();
        let beside = emlx_files::beside(self.path).filter(|_| is_wrapped);
        let mut done = self.single((1, self.path), message, beside, rewrite::spliced_in_file)?;
        if let Some(new) = done.as_mut().and_then(|done| done.new.as_mut()) {
            if is_wrapped {
                *new = emlx::with_message(content, range, new);
            }
            summary.changed = 1;
            summary.bytes_out = new.len() as u64;
        }
        Ok((summary, done))
    }

    pub(crate) fn damaged(&self, damage: &CompressionDamage, summary: &mut Summary) {
        summary.damaged += 1;
        let read = match summary.messages {
            0 => "no message was read".to_owned(),
            1 => "1 message was read".to_owned(),
            messages => format!("{messages} messages were read"),
        };
        let left = damage.left(summary.messages);
        let why = damage.detail().then(format!("; {read}{left}"));
        self.observer.event(MailboxEvent::damaged(self.path, why));
    }

    /// Reports data of another format in a file with one message.
    pub(crate) fn report_appended_to_file(&self, content: &[u8], summary: &mut Summary) {
        if let Some(why) = appended_to_file(content, self.method.is_none()) {
            self.observer.event(MailboxEvent::damaged(self.path, why));
            summary.damaged += 1;
        }
    }
}
