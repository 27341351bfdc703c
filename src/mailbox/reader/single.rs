//! Reads the single message of an open source.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use super::context::ReadContext;
use super::letters::{Letter, LetterFacts, LetterPlace, Letters, SeeLetter};
use crate::error::Error;
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::event::EventLog;
use crate::mailbox::event::MailboxFact;
use crate::mailbox::failure::too_large;
use crate::mailbox::folder_flags::FolderFlags;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::{emlx, emlx_files};
use crate::mailbox::input::source::InputSource;
use crate::mailbox::place::delivery::StoredState;
use crate::mailbox::read::single_message::{MessageExtent, SingleMessage, SourceMessage};
use crate::mailbox::{Message, Quoting, Summary};

/// The message of an open source, and the facts about it.
pub(super) struct SingleLetter {
    context: Arc<ReadContext>,
    /// `None` if the message cannot be read.
    mail: Option<SingleMail>,
    facts: LetterFacts,
}

/// The content of a source with one message.
pub(super) struct SingleMail {
    content: Vec<u8>,
    /// Place of the message in the content.
    extent: MessageExtent,
    stored: StoredState,
}

impl SingleLetter {
    /// Reads the message.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read.
    pub(super) fn of_source(
        context: &Arc<ReadContext>,
        source: &mut InputSource,
        kind: StartKind,
    ) -> Result<Self, Error> {
        let log = EventLog::new();
        let mut mail = None;
        let counts = read_single(&context.job(&log), context, (source, kind), &mut |read| {
            mail = Some(read);
            Ok(())
        })?;
        let events = log.into_events();
        Ok(Self {
            context: Arc::clone(context),
            mail,
            facts: LetterFacts { counts, events },
        })
    }
}

impl Letters for SingleLetter {
    fn count(&self) -> usize {
        usize::from(self.mail.is_some())
    }

    fn weight(&self) -> usize {
        let length = self.mail.as_ref().map(|mail| mail.content.len());
        length.unwrap_or(0).max(1)
    }

    fn open(&self, _index: usize, see: SeeLetter<'_>) -> Result<LetterFacts, Error> {
        if let Some(mail) = &self.mail {
            see(mail.letter(&self.context.path))?;
        }
        Ok(LetterFacts::default())
    }

    fn are_kept(&self) -> bool {
        true
    }

    fn discard(&mut self) -> usize {
        self.mail = None;
        size_of::<Self>()
    }

    fn facts_after(&mut self) -> LetterFacts {
        std::mem::take(&mut self.facts)
    }
}

impl SingleMail {
    pub(super) fn letter<'l>(&'l self, path: &'l Path) -> Letter<'l> {
        let MessageExtent { range, is_wrapped } = &self.extent;
        Letter {
            message: Message {
                number: 1,
                source: path,
                content: self.content.get(range.clone()).unwrap_or_default(),
                at: None,
                quoting: Quoting::None,
                beside: emlx_files::beside(path).filter(|_| *is_wrapped),
            },
            stored: self.stored.clone(),
            place: LetterPlace::File,
        }
    }
}

/// Reads the single message of an open source, and passes it to `take`. A message that cannot be read is only reported.
/// Returns the counts of the source.
///
/// # Errors
/// Returns the error of `take`, or an error if the source cannot be read.
pub(super) fn read_single(
    job: &MailboxJob<'_, Infallible>,
    context: &ReadContext,
    (source, kind): (&mut InputSource, StartKind),
    take: &mut dyn FnMut(SingleMail) -> Result<(), Error>,
) -> Result<Summary, Error> {
    let is_for_other_format = context.is_for_other_format;
    let SingleMessage {
        content,
        octets,
        kept,
        missing,
        _alone,
    } = match job.source_message(source, kind, true)? {
        SourceMessage::Whole(read) => read,
        SourceMessage::Unread(summary) => return Ok(summary),
        SourceMessage::Empty => return Ok(job.without_message()),
        SourceMessage::TooLarge(_) if is_for_other_format => {
            let why = too_large(None, &job.options.read);
            job.observer
                .event(MailboxFact::Lost(job.path.to_owned(), why).into());
            return Ok(Summary::of(|sum| (sum.mailboxes, sum.damaged) = (1, 1)));
        }
        SourceMessage::TooLarge(start) => {
            return job.oversized_source(source, start, &mut |_| Ok(()));
        }
    };
    let (mut summary, extent) = job.counted_message(&content)?;
    if kept.is_some() {
        summary.bytes_in = octets;
    } else {
        job.report_appended_to_file(&content, &mut summary);
    }
    // Without an extent, it is unknown which bytes are the message, so no message is written.
    if let Some(extent) = extent {
        let stored = if is_for_other_format {
            let (noted, received) = kept.unwrap_or_else(|| emlx::noted(&content));
            let is_plain_file = kind == StartKind::Eml && source.original().is_some();
            let flags = noted.or_else(|| {
                let (flags, lost) = Some(job.path)
                    .filter(|_| is_plain_file)
                    .and_then(|path| FolderFlags::of_alone(path, &content))?;
                for what in lost {
                    job.observer.event(MailboxFact::LostFlags(what, 1).into());
                }
                flags
            });
            let proton = job.proton_state(kind, source.original().is_some());
            let received = received.or(proton.as_ref().and_then(|it| it.received));
            let of_file = || source.original()?.metadata().ok()?.modified().ok();
            StoredState {
                flags,
                date: received.or_else(of_file),
                proton,
            }
        } else {
            StoredState::default()
        };
        take(SingleMail {
            content,
            extent,
            stored,
        })?;
    }
    job.report_missing(missing, &mut summary);
    Ok(summary)
}
