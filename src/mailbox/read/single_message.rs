//! Reads the message of a source that contains only one, such as an `.eml` or `.msg` file. The reader of such sources, their
//! copy and their change in place read the message here.

use std::fs;
use std::io::{self, Read as _};
use std::ops::Range;
use std::sync::MutexGuard;
use std::time::SystemTime;

use crate::engine::declared_charsets::in_declared_charsets;
use crate::error::{Error, unpoisoned};
use crate::mailbox::Summary;
use crate::mailbox::appended::appended_to_file;
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::compressed::not_encoded;
use crate::mailbox::event::{MailboxEvent, MailboxFact};
use crate::mailbox::failure::{in_full, unreadable};
use crate::mailbox::forms::flags::MessageFlags;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::proton::ProtonState;
use crate::mailbox::forms::recorded::refused_session;
use crate::mailbox::forms::{carriage, emlx, outlook};
use crate::mailbox::input::source::InputSource;
use crate::mailbox::not_mail::NotMail;
use crate::mailbox::read::cut::{SINGLE, asked_for, cannot_cut};
use crate::mailbox::read::opened::WINDOW;

/// Maximum size of a compressed message, in bytes, that is decompressed in parallel with other messages. Larger messages
/// are decompressed one at a time to limit memory.
const MOST_IN_PARALLEL: usize = 8 << 20;

/// The single message of an open source.
pub(crate) enum SourceMessage<'l> {
    Whole(SingleMessage<'l>),
    /// The counts of a source whose message cannot be read.
    Unread(Summary),
    Empty,
    /// Start of a message that is too large.
    TooLarge(Vec<u8>),
}

/// A message that was read.
pub(crate) struct SingleMessage<'l> {
    pub(crate) content: Vec<u8>,
    /// Length of the message in its own format, in bytes.
    pub(crate) octets: u64,
    /// Flags and date of a message of Outlook.
    pub(crate) kept: Option<(Option<MessageFlags>, Option<SystemTime>)>,
    /// Parts of an Outlook message that could not be read.
    pub(crate) missing: Vec<String>,
    /// Lock that is held while a large compressed message is in memory.
    pub(crate) _alone: Option<MutexGuard<'l, ()>>,
}

/// Place of the message in the content of a file.
#[derive(Clone)]
pub(crate) struct MessageExtent {
    pub(crate) range: Range<usize>,
    /// Whether the file also contains other data, such as the property list of Apple Mail.
    pub(crate) is_wrapped: bool,
}

impl<S: Send> MailboxJob<'_, S> {
    /// Reads the single message of an open source. Outlook's files become mail. If `has_line_feeds` is true, lines that end
    /// with CR alone end with LF instead.
    pub(crate) fn source_message(
        &self,
        source: &mut InputSource,
        kind: StartKind,
        has_line_feeds: bool,
    ) -> Result<SourceMessage<'_>, Error> {
        let most = self.options.read.max_message;
        let metadata = source.as_file().and_then(|file| file.metadata().ok());
        let octets = metadata.map_or(0, |metadata| metadata.len());
        let length = usize::try_from(octets).unwrap_or(0);
        let mut content = Vec::with_capacity(length.min(most).saturating_add(1));
        let mut alone = None;
        for most in [self.most_in_parallel(source.packed().is_some()), most] {
            let within = most.saturating_add(1).saturating_sub(content.len()) as u64;
            let read = source.take(within).read_to_end(&mut content);
            read.map_err(in_full(self.path))?;
            if content.len() <= most || most == self.options.read.max_message {
                break;
            }
            alone = self.alone();
        }
        if content.len() > most {
            return Ok(SourceMessage::TooLarge(content));
        }
        if source.damage().is_some_and(|damage| !damage.whole) {
            let summary = Summary::of(|sum| sum.mailboxes = 1);
            return Ok(SourceMessage::Unread(summary));
        }
        if content.is_empty() {
            return Ok(SourceMessage::Empty);
        }
        let mail = match kind {
            StartKind::Msg => {
                let mail = outlook::message(&content).map_err(io::Error::other);
                Some(mail.map_err(unreadable(self.path))?)
            }
            _ => None,
        };
        // The start of a file shows this only if its first message is short.
        if let Some(session) = refused_session(&content) {
            return Err(session.error(self.path));
        }
        let octets = content.len() as u64;
        if source.is_utf16() {
            match in_declared_charsets(&content) {
                Ok(Some(encoded)) => content = encoded,
                Ok(None) => {}
                Err(why) => {
                    let why = not_encoded(why);
                    self.observer.event(MailboxEvent::damaged(self.path, why));
                    let summary = Summary::of(|sum| (sum.mailboxes, sum.damaged) = (1, 1));
                    return Ok(SourceMessage::Unread(summary));
                }
            }
        }
        if has_line_feeds {
            content = carriage::with_line_feeds_alone(content);
        }
        let (mut kept, mut missing) = (None, Vec::new());
        if let Some(mail) = mail {
            (content, missing) = (mail.content, mail.missing);
            kept = Some((Some(mail.flags.into()), mail.received));
        }
        Ok(SourceMessage::Whole(SingleMessage {
            content,
            octets,
            kept,
            missing,
            _alone: alone,
        }))
    }

    /// Reads the rest of a message that is too large, and passes all of its bytes to `keep`. `content` is its start.
    pub(crate) fn oversized_source(
        &self,
        source: &mut InputSource,
        mut content: Vec<u8>,
        keep: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<Summary, Error> {
        self.check_uncut()?;
        let mut length = 0;
        while !content.is_empty() {
            self.stop.check()?;
            length += content.len() as u64;
            keep(&content)?;
            content.clear();
            let read = source.take(WINDOW as u64).read_to_end(&mut content);
            read.map_err(in_full(self.path))?;
        }
        let mut summary = self.oversized(length)?;
        if source.damage().is_some_and(|damage| !damage.whole) {
            (summary.messages, summary.oversized) = (0, 0);
        }
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
            // It is unknown which bytes are the message.
            Some(Err(why)) => {
                (summary.messages, summary.damaged) = (0, 1);
                let why = format!("{why}; the file was not changed");
                self.observer.event(MailboxEvent::damaged(self.path, why));
                None
            }
        };
        Ok((summary, place))
    }

    /// Reports data of another format in a file with one message.
    pub(crate) fn report_appended_to_file(&self, content: &[u8], summary: &mut Summary) {
        if let Some(why) = appended_to_file(content, self.method.is_none()) {
            self.observer.event(MailboxEvent::damaged(self.path, why));
            summary.damaged += 1;
        }
    }

    /// Reports the parts of an Outlook message that could not be read.
    pub(crate) fn report_missing(&self, missing: Vec<String>, summary: &mut Summary) {
        summary.damaged += u64::from(!missing.is_empty());
        for what in missing {
            self.observer.event(MailboxEvent::damaged(self.path, what));
        }
    }

    /// Returns the state of a message that Proton exported. A file with the state that cannot be read is reported.
    pub(crate) fn proton_state(&self, kind: StartKind, is_file: bool) -> Option<ProtonState> {
        if kind != StartKind::Eml || !is_file {
            return None;
        }
        ProtonState::beside(self.path).unwrap_or_else(|path| {
            let what = "flags and labels, because the file of Proton with the state of the message cannot be read";
            self.observer.event(MailboxFact::UnusedFlags(path.to_owned(), what).into());
            None
        })
    }
}
