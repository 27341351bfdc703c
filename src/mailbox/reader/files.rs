//! Reads files that contain one message each. Several of them are read at the same time.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use super::context::ReadContext;
use super::letters::{LetterFacts, Letters, MailboxReader, ReadEvent, SeeLetter};
use super::single::{read_single, see_message};
use crate::error::Error;
use crate::mailbox::Summary;
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::each::{limits_for_files, weight_of_file};
use crate::mailbox::event::{EventLog, MailboxEvent};
use crate::mailbox::finds::SourceFind;
use crate::mailbox::forms::carriage;
use crate::mailbox::input::content::CompressedContent;
use crate::mailbox::input::source::InputSource;
use crate::mailbox::kind::StartKind;
use crate::pool::PoolLimits;

/// Reads files with one message each, in their order. Each file is a mailbox of its own.
pub(super) struct FilesReader {
    context: ReadContext,
    rest: VecDeque<SourceFind>,
}

struct FileLetter {
    context: Arc<ReadContext>,
    kind: StartKind,
    weight: usize,
}

impl FilesReader {
    pub(super) fn new(context: &ReadContext, files: VecDeque<SourceFind>) -> Self {
        Self {
            context: context.clone(),
            rest: files,
        }
    }
}

impl MailboxReader for FilesReader {
    fn next(&mut self) -> Result<Option<Box<dyn Letters>>, Error> {
        self.context.stop.check()?;
        let Some(found) = self.rest.pop_front() else {
            return Ok(None);
        };
        Ok(Some(Box::new(FileLetter {
            context: Arc::new(self.context.of_found(&found)),
            kind: found.kind,
            weight: weight_of_file(found.length, found.method.is_some()),
        })))
    }

    fn end(&mut self, _summary: &mut Summary) -> Result<Vec<ReadEvent>, Error> {
        Ok(Vec::new())
    }

    fn limits(&self, limits: PoolLimits) -> PoolLimits {
        limits_for_files(PoolLimits {
            workers: limits.workers.min(self.rest.len()),
            ..limits
        })
    }
}

impl Letters for FileLetter {
    fn count(&self) -> usize {
        1
    }

    fn weight(&self) -> usize {
        self.weight
    }

    fn facts_before(&mut self) -> LetterFacts {
        LetterFacts {
            counts: Summary::default(),
            events: vec![MailboxEvent::Begin(self.context.path.clone())],
        }
    }

    fn open(&self, _index: usize, see: SeeLetter<'_>) -> Result<LetterFacts, Error> {
        let log = EventLog::new();
        let job = self.context.job(&log);
        let done = match self.kind {
            StartKind::Msg => read_outlook_file(&job, see),
            _ => read_mail_file(&job, see),
        };
        let counts = job.judged(self.kind, done)?;
        Ok(LetterFacts {
            counts,
            events: log.into_events(),
        })
    }

    fn let_go(&mut self) -> usize {
        size_of::<Self>() + size_of::<ReadContext>() + self.context.path.as_os_str().len()
    }
}

/// Reads a file whose content, perhaps after decompression, is a mail.
fn read_mail_file(job: &MailboxJob<'_, Infallible>, see: SeeLetter<'_>) -> Result<Summary, Error> {
    let file = job.message_file()?;
    let summary = match file.content {
        CompressedContent::Whole(content) if content.is_empty() => {
            let summary = job.without_message();
            job.observer.done(&Summary::of(|sum| sum.mailboxes = 1));
            return Ok(summary);
        }
        CompressedContent::Whole(content) => {
            let content = carriage::with_line_feeds_alone(content);
            let (mut summary, extent) = job.counted_message(&content)?;
            if let Some(extent) = extent {
                see_message(job.path, &content, &extent, see)?;
            }
            job.report_appended_to_file(&content, &mut summary);
            summary
        }
        CompressedContent::TooLarge => job.oversized(file.before.length)?,
        CompressedContent::Damaged(damage) => job.all_damaged(&damage),
    };
    job.observer.done(&summary);
    Ok(summary)
}

/// Reads a message of Outlook, which becomes a mail.
fn read_outlook_file(
    job: &MailboxJob<'_, Infallible>,
    see: SeeLetter<'_>,
) -> Result<Summary, Error> {
    let (file, before) = job.open()?;
    let mut source = match job.method {
        Some(_) => InputSource::named(file, job.path, job.options, job.stop)?,
        None => InputSource::file(&Arc::new(file)),
    };
    let mut summary = read_single(job, &mut source, StartKind::Msg, &mut |content, extent| {
        see_message(job.path, &content, &extent, see)
    })?;
    job.end_of_open(&source, &before, &mut summary)?;
    Ok(summary)
}
