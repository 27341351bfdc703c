//! Reads the mailboxes of a source in order.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use super::context::ReadContext;
use super::files::FilesReader;
use super::letters::LetterFacts;
use crate::error::Error;
use crate::mailbox::begin::begun;
use crate::mailbox::event::EventLog;
use crate::mailbox::finds::SourceFind;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::result_folders::source_folders;
use crate::mailbox::source::Source;
use crate::mailbox::{Options, Stop};

/// Mailboxes of a source that are still unread.
pub(super) struct SourceSequence {
    context: ReadContext,
    rest: VecDeque<SourceFind>,
}

/// Next item to process when a source is read.
pub(super) enum SourceStep {
    /// Facts about files that are not read, to be reported.
    Facts(LetterFacts),
    /// Consecutive files with one message each. They can be read in parallel.
    Files(FilesReader<SourceFind>),
    Mailbox(Arc<ReadContext>, StartKind),
}

impl SourceSequence {
    /// Searches a source. Returns its mailboxes as a sequence, and the facts about its other files.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read, or contains no mail.
    pub(super) fn begin(
        path: &Path,
        options: &Arc<Options>,
        stop: &Stop,
    ) -> Result<(Self, LetterFacts), Error> {
        let finds = Source::new(path, &options.read, true, stop).begin()?;
        let log = EventLog::new();
        let counts = begun(&finds, &log);
        let events = log.into_events();
        let sequence = Self {
            context: ReadContext::of_source(path.to_owned(), options, stop),
            rest: Arc::unwrap_or_clone(finds).mailboxes.into(),
        };
        Ok((sequence, LetterFacts { counts, events }))
    }

    /// Returns the next step, or `None` after the last one.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`] after a request to stop.
    pub(super) fn next(&mut self) -> Result<Option<SourceStep>, Error> {
        self.context.stop.check()?;
        let Some(first) = self.rest.front() else {
            return Ok(self.inner().map(SourceStep::Facts));
        };
        if first.is_message() {
            let end = self.rest.iter().position(|found| !found.is_message());
            let after = self.rest.split_off(end.unwrap_or(self.rest.len()));
            let files = std::mem::replace(&mut self.rest, after);
            let reader = FilesReader::new(&self.context, files);
            return Ok(Some(SourceStep::Files(reader)));
        }
        Ok(self.rest.pop_front().map(|found| {
            let context = Arc::new(self.context.of_found(&found));
            SourceStep::Mailbox(context, found.kind)
        }))
    }

    /// Appends the folders of the Outlook mailboxes that were found in archives. Returns the facts about unreadable
    /// folders, or `None` if no such mailbox was found.
    fn inner(&mut self) -> Option<LetterFacts> {
        let spooled = self.context.inner.as_ref()?.take();
        if spooled.is_empty() {
            return None;
        }
        let log = EventLog::new();
        let finds = self.context.job(&log).folders_in(spooled);
        let counts = begun(&finds, &log);
        let folders = source_folders(&finds, &self.context.options);
        let founds = folders.iter().flat_map(|folder| folder.founds.iter());
        self.rest.extend(founds.map(|&found| found.clone()));
        let events = log.into_events();
        Some(LetterFacts { counts, events })
    }
}
