//! Reads the single message of an open source.

use std::path::Path;
use std::sync::Arc;

use super::context::ReadContext;
use super::letters::{Letter, LetterFacts, Letters, SeeLetter};
use crate::error::Error;
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::convert::MessageExtent;
use crate::mailbox::event::EventLog;
use crate::mailbox::forms::emlx_files;
use crate::mailbox::input::source::InputSource;
use crate::mailbox::kind::StartKind;
use crate::mailbox::read::opened::SourceMessage;
use crate::mailbox::{Message, Quoting, Summary};

/// The message of an open source, and the facts about it.
pub(super) struct SingleLetter {
    context: Arc<ReadContext>,
    /// The content of the source, and the place of the message. `None` if the message cannot be read.
    message: Option<(Vec<u8>, MessageExtent)>,
    facts: LetterFacts,
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
        let job = context.job(&log);
        let mut message = None;
        let counts = read_single(&job, source, kind, &mut |content, extent| {
            message = Some((content, extent));
            Ok(())
        })?;
        let events = log.into_events();
        Ok(Self {
            context: Arc::clone(context),
            message,
            facts: LetterFacts { counts, events },
        })
    }
}

impl Letters for SingleLetter {
    fn count(&self) -> usize {
        usize::from(self.message.is_some())
    }

    fn weight(&self) -> usize {
        let content = self.message.as_ref().map(|(content, _)| content.len());
        content.unwrap_or(0).max(1)
    }

    fn open(&self, _index: usize, see: SeeLetter<'_>) -> Result<LetterFacts, Error> {
        if let Some((content, extent)) = &self.message {
            see_message(&self.context.path, content, extent, see)?;
        }
        Ok(LetterFacts::default())
    }

    fn let_go(&mut self) -> usize {
        self.message = None;
        size_of::<Self>()
    }

    fn facts_after(&mut self) -> LetterFacts {
        std::mem::take(&mut self.facts)
    }
}

/// Reads the single message of an open source, and passes the content of the source and the place of the message in it to
/// `take`. A message that cannot be read is only reported. Returns the counts of the source.
///
/// # Errors
/// Returns the error of `take`, or an error if the source cannot be read.
pub(super) fn read_single<S: Send>(
    job: &MailboxJob<'_, S>,
    source: &mut InputSource,
    kind: StartKind,
    take: &mut dyn FnMut(Vec<u8>, MessageExtent) -> Result<(), Error>,
) -> Result<Summary, Error> {
    let read = match job.source_message(source, kind, true)? {
        SourceMessage::Whole(read) => read,
        SourceMessage::Unread(summary) => return Ok(summary),
        SourceMessage::Empty => return Ok(job.without_message()),
        SourceMessage::TooLarge(start) => {
            return job.oversized_source(source, start, &mut |_| Ok(()));
        }
    };
    let (mut summary, extent) = job.counted_message(&read.content)?;
    if read.kept.is_some() {
        summary.bytes_in = read.octets;
    } else {
        job.report_appended_to_file(&read.content, &mut summary);
    }
    if let Some(extent) = extent {
        take(read.content, extent)?;
    }
    job.report_missing(read.missing, &mut summary);
    Ok(summary)
}

/// Passes the message in the content of a file to `see`.
///
/// # Errors
/// Returns the error of `see`.
pub(super) fn see_message(
    path: &Path,
    content: &[u8],
    extent: &MessageExtent,
    see: SeeLetter<'_>,
) -> Result<(), Error> {
    see(Letter::of(Message {
        number: 1,
        source: path,
        content: content.get(extent.range.clone()).unwrap_or_default(),
        at: None,
        quoting: Quoting::None,
        beside: emlx_files::beside(path).filter(|_| extent.is_wrapped),
    }))
}
