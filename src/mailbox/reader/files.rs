//! Reads files that contain one message each. Several of them are read at the same time.

use std::borrow::Borrow;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use super::context::ReadContext;
use super::letters::{LetterFacts, Letters, MailboxReader, ReadEvent, SeeLetter};
use super::single::read_single;
use crate::error::Error;
use crate::mailbox::Summary;
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::each::{limits_for_files, weight_of_file};
use crate::mailbox::event::{EventLog, MailboxEvent};
use crate::mailbox::finds::SourceFind;
use crate::mailbox::forms::kind::StartKind;
use crate::pool::PoolLimits;

/// Reads files with one message each, in their order. Each file is a mailbox of its own. `F` is a [`SourceFind`], or a
/// reference to one: a source can have so many files that a copy of their list would need much memory.
pub(crate) struct FilesReader<F> {
    context: ReadContext,
    rest: VecDeque<F>,
}

struct FileLetter {
    context: Arc<ReadContext>,
    kind: StartKind,
    weight: usize,
}

impl<F: Borrow<SourceFind>> FilesReader<F> {
    pub(crate) fn new(context: &ReadContext, files: VecDeque<F>) -> Self {
        Self {
            context: context.clone(),
            rest: files,
        }
    }
}

impl<F: Borrow<SourceFind> + Send> MailboxReader for FilesReader<F> {
    fn next(&mut self) -> Result<Option<Box<dyn Letters>>, Error> {
        self.context.stop.check()?;
        let Some(file) = self.rest.pop_front() else {
            return Ok(None);
        };
        let found = file.borrow();
        Ok(Some(Box::new(FileLetter {
            context: Arc::new(self.context.of_found(found)),
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
        let counts = job.judged(self.kind, self.read(&job, see))?;
        Ok(LetterFacts {
            counts,
            events: log.into_events(),
        })
    }

    fn discard(&mut self) -> usize {
        size_of::<Self>() + size_of::<ReadContext>() + self.context.path.as_os_str().len()
    }
}

impl FileLetter {
    fn read(&self, job: &MailboxJob<'_, Infallible>, see: SeeLetter<'_>) -> Result<Summary, Error> {
        let (mut source, before, kind) = job.open_source(self.kind)?;
        let of = (&mut source, kind);
        let mut summary = read_single(job, &self.context, of, &mut |mail| {
            see(mail.letter(job.path))
        })?;
        job.end_of_open(&source, Some(&before), &mut summary)?;
        Ok(summary)
    }
}
