//! A mailbox that is read, with its options.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::mailbox::archive::InnerMailboxes;
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::compressed::Method;
use crate::mailbox::event::EventLog;
use crate::mailbox::finds::SourceFind;
use crate::mailbox::pst_file::PstFolder;
use crate::mailbox::{Options, Stop};

#[derive(Clone)]
pub(crate) struct ReadContext {
    pub(super) path: PathBuf,
    pub(super) options: Arc<Options>,
    pub(super) method: Option<Method>,
    /// Whether the mailbox was found by searching a directory. False if the mailbox is the source itself.
    is_within: bool,
    pub(super) pst: Option<PstFolder>,
    /// Outlook mailboxes that were found inside an archive or a compressed file. They are read after the other mailboxes.
    /// `None` if the run does not read such mailboxes.
    pub(super) inner: Option<Arc<InnerMailboxes>>,
    /// Lock for the memory of a large compressed message: only one thread at a time holds such a message in memory.
    pub(super) large: Arc<Mutex<()>>,
    /// Whether the messages are written to a mailbox of another format. Readers then return the flags and dates of the
    /// messages, and report messages that cannot be read as lost. The mailbox must not change while it is read.
    pub(super) is_for_other_format: bool,
    pub(super) stop: Stop,
}

impl ReadContext {
    pub(super) fn of_source(path: PathBuf, options: &Arc<Options>, stop: &Stop) -> Self {
        Self {
            path,
            options: Arc::clone(options),
            method: None,
            is_within: false,
            pst: None,
            inner: Some(Arc::default()),
            large: Arc::default(),
            is_for_other_format: false,
            stop: stop.clone(),
        }
    }

    /// Describes the mailbox of a job, whose messages are written to a mailbox of another format.
    pub(crate) fn for_other_format<S>(job: &MailboxJob<'_, S>) -> Self {
        Self {
            is_for_other_format: true,
            ..Self::of_job(job)
        }
    }

    /// Describes the mailbox of a job.
    pub(crate) fn of_job<S>(job: &MailboxJob<'_, S>) -> Self {
        Self {
            inner: job.inner.cloned(),
            method: job.method,
            is_within: job.is_within,
            pst: job.pst.cloned(),
            ..Self::of_source(
                job.path.to_owned(),
                &Arc::new(job.options.clone()),
                job.stop,
            )
        }
    }

    pub(super) fn of_found(&self, found: &SourceFind) -> Self {
        Self {
            path: found.path.clone(),
            method: found.method,
            is_within: !found.relative.as_os_str().is_empty(),
            pst: found.pst.clone(),
            ..self.clone()
        }
    }

    /// Returns a job over this mailbox that writes its events to `log`.
    pub(super) fn job<'a>(&'a self, log: &'a EventLog<Infallible>) -> MailboxJob<'a, Infallible> {
        MailboxJob {
            method: self.method,
            is_within: self.is_within,
            pst: self.pst.as_ref(),
            inner: self.inner.as_ref(),
            large: Some(&self.large),
            ..MailboxJob::reading(&self.path, &self.options, log, &self.stop)
        }
    }
}
