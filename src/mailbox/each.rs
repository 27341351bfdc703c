//! Converts the mailboxes of a source in order. Messages in files of their own are converted in parallel, so that a
//! message that waits for a server does not delay the others. Results, events and errors are reported in the order of
//! the files.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, unpoisoned};
use crate::mailbox::Summary;
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::event::{EventLog, MailboxEvent};
use crate::mailbox::failure::unread;
use crate::mailbox::finds::SourceFind;
use crate::mailbox::forms::kind::StartKind;
use crate::pool::{self, PoolLimits};

/// Minimum memory that a file is counted with, in bytes. It limits how many small files are in memory at a time.
const UNDER_WAY: usize = 256 << 10;

/// Minimum memory budget for messages that are converted in parallel, in bytes.
const LEAST_BUDGET: usize = 4 << 20;

/// Assumed compression ratio of mail, to estimate its decompressed length.
const EXPANSION: usize = 4;

/// Returns the limits of a pool that converts files with one message each. Until a file is written, its weight in the
/// pool is [`weight_of_file`].
pub(crate) fn limits_for_files(limits: PoolLimits) -> PoolLimits {
    let budget = limits.workers.saturating_mul(4 * UNDER_WAY);
    PoolLimits {
        budget: budget.max(LEAST_BUDGET),
        ..limits
    }
}

pub(crate) fn weight_of_file(length: u64, is_compressed: bool) -> usize {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let expansion = if is_compressed { EXPANSION } else { 1 };
    length.saturating_mul(expansion).max(UNDER_WAY)
}

/// Result of one file. It is kept until all files before it are finished.
struct FileResult<S> {
    events: Vec<MailboxEvent<S>>,
    done: Result<Summary, Error>,
}

impl<S: Send> MailboxJob<'_, S> {
    /// Calls `convert` for each mailbox and returns the sum of the counts. If a file in a source directory cannot be
    /// read, it is reported as damaged, and the other mailboxes are still converted.
    pub(crate) fn each<'f>(
        &self,
        founds: impl IntoIterator<Item = &'f SourceFind>,
        mut convert: impl FnMut(&MailboxJob<'_, S>, StartKind) -> Result<Summary, Error>,
    ) -> Result<Summary, Error> {
        let mut sum = Summary::default();
        for found in founds {
            self.stop.check()?;
            sum.add(&self.one(found, &mut convert)?);
        }
        Ok(sum)
    }

    /// Like [`each`](Self::each), but converts messages in parallel.
    pub(crate) fn each_in_parallel(
        &self,
        founds: &[&SourceFind],
        convert: impl Fn(&MailboxJob<'_, S>, StartKind) -> Result<Summary, Error> + Sync,
    ) -> Result<Summary, Error> {
        let mut sum = Summary::default();
        for founds in founds.chunk_by(|one, other| one.is_message() == other.is_message()) {
            let done = if self.is_parallel(founds) {
                self.messages(
                    (founds, |found| found),
                    |_| Ok(()),
                    |job, found| convert(job, found.kind),
                )
            } else {
                self.each(founds.iter().copied(), &convert)
            };
            sum.add(&done?);
        }
        Ok(sum)
    }

    /// Returns whether the files are converted in parallel: only if each of them contains a single message.
    fn is_parallel(&self, founds: &[&SourceFind]) -> bool {
        founds.len() > 1
            && self.has_several_workers()
            && founds.iter().all(|found| found.is_message())
    }

    pub(crate) fn has_several_workers(&self) -> bool {
        self.options.read.pool_limits().workers > 1
    }

    fn one(
        &self,
        found: &SourceFind,
        convert: impl FnOnce(&MailboxJob<'_, S>, StartKind) -> Result<Summary, Error>,
    ) -> Result<Summary, Error> {
        self.observer
            .event(MailboxEvent::Begin(found.path.to_owned()));
        let is_within = !found.relative.as_os_str().is_empty();
        let job = MailboxJob {
            path: &found.path,
            method: found.method,
            is_within,
            pst: found.pst.as_ref(),
            ..*self
        };
        job.judged(found.kind, convert(&job, found.kind))
    }

    /// Turns the result of a mailbox into its counts. An error that concerns only this mailbox is reported and does not
    /// end the run.
    pub(crate) fn judged(
        &self,
        kind: StartKind,
        done: Result<Summary, Error>,
    ) -> Result<Summary, Error> {
        // The files of a Maildir or MH folder are counted one by one when they are read. An Outlook mailbox is counted
        // once for all of its folders: if it is compressed, when its copy is opened. So only the other mailboxes are
        // counted here.
        let is_file = !kind.is_folder() && self.pst.is_none();
        let mut summary = Summary::default();
        match done {
            Err(Error::Unreadable { source, .. }) if self.is_within && !kind.is_folder() => {
                let why = format!("{}; the file was not changed", unread(&source));
                self.observer.event(MailboxEvent::damaged(self.path, why));
                summary.damaged = 1;
                summary.files.not_read = u64::from(is_file);
            }
            // The search accepted the file as a mailbox, but its full content is not a mailbox. An example is a zip
            // archive that was compressed again.
            Err(Error::NotAMailbox { why, .. }) if self.is_within => {
                self.observer.event(MailboxEvent::damaged(self.path, why));
                summary.damaged = 1;
                summary.files.not_read = u64::from(is_file);
            }
            done => {
                summary = done?;
                if is_file && !kind.has_folders() {
                    summary.files.count_read(summary.damaged == 0);
                }
            }
        }
        Ok(summary)
    }

    /// Converts files with one message each, in parallel.
    ///
    /// * `prepare` is called for each file in order, before the file is read;
    /// * `convert` converts a file.
    ///
    /// An error ends the run when all files before it are finished, as if the files were converted one after the other.
    /// Files after it may have been written by then. They are kept, so their events are still reported.
    pub(crate) fn messages<T: Sync>(
        &self,
        (files, found): (&[T], impl Fn(&T) -> &SourceFind + Sync),
        mut prepare: impl FnMut(&T) -> Result<(), Error> + Send,
        convert: impl Fn(&MailboxJob<'_, S>, &T) -> Result<Summary, Error> + Sync,
    ) -> Result<Summary, Error> {
        let mut sum = Summary::default();
        let results: Mutex<BTreeMap<usize, FileResult<S>>> = Mutex::default();
        let large = Mutex::new(());
        let has_failed = AtomicBool::new(false);
        let mut numbered = files.iter().enumerate();
        let outcome = pool::run(
            limits_for_files(self.options.read.pool_limits()),
            self.stop,
            || {
                if has_failed.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                let Some((number, file)) = numbered.next() else {
                    return Ok(None);
                };
                prepare(file)?;
                let SourceFind { length, method, .. } = found(file);
                let weight = weight_of_file(*length, method.is_some());
                Ok(Some(((number, file), weight)))
            },
            |_| vec![0],
            |(number, file), _| {
                let log = EventLog::new();
                let job = MailboxJob {
                    observer: &log,
                    large: Some(&large),
                    ..*self
                };
                let done = job.one(found(file), |job, _| convert(job, file));
                if done.is_err() {
                    has_failed.store(true, Ordering::Relaxed);
                }
                let result = FileResult {
                    events: log.into_events(),
                    done,
                };
                unpoisoned(results.lock()).insert(*number, result);
                Ok(())
            },
            // Once the message is written, the pool only needs to count the memory of its events.
            |(number, _), _| {
                let results = unpoisoned(results.lock());
                let result = results.get(number)?;
                let weights = result.events.iter().map(|it| it.weight(self.transform));
                Some(size_of_val(result) + weights.sum::<usize>())
            },
            |(number, _), _| {
                let result = unpoisoned(results.lock()).remove(&number);
                if let Some(result) = result {
                    sum.add(&self.tell(result)?);
                }
                Ok(())
            },
        );
        if outcome.is_err() && self.options.writes {
            for result in unpoisoned(results.into_inner()).into_values() {
                if result.done.is_ok() {
                    self.tell(result)?;
                }
            }
        }
        outcome.map(|()| sum)
    }

    /// Reports the events of a file, and returns its counts.
    fn tell(&self, result: FileResult<S>) -> Result<Summary, Error> {
        for event in result.events {
            self.observer.event(event);
        }
        result.done
    }
}
