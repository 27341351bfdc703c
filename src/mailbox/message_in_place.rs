//! Changes files with one message in place.
//!
//! A mailbox is always either complete or unchanged: output appears under its final name when it is complete, and
//! `place::replace` replaces files in place in one step. If a run ends with an error or is stopped, the mailboxes of a
//! directory that were already converted are kept.

use crate::detail::{Detail, Setting};
use crate::error::Error;
use crate::mailbox::Summary;
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::compressed::LEFT_AS_UTF16;
use crate::mailbox::event::MailboxEvent;
use crate::mailbox::failure::unreadable;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::{emlx, emlx_files, rewrite};
use crate::mailbox::place::replace::{self, AtomicWriter};
use crate::mailbox::read::messages::TransformResult;
use crate::mailbox::read::single_message::{MessageExtent, SourceMessage};
use crate::mailbox::read::sink::Output;
use crate::platform::NewFile;

impl<S: Send> MailboxJob<'_, S> {
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
        let (mut source, before, _) = self.open_source(StartKind::Eml)?;
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

    /// Transforms the message in the content of a file. Returns the counts of the file, and the new content of the file with the
    /// result of the transform.
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
}
