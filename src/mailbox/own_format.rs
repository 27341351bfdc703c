//! Converts a mailbox file to a result of its own format: a new file, an open file, or nothing. Mailboxes of another format are
//! passed to `deliver`.
//!
//! If a run fails, an open output file keeps the bytes that were written. Only the error shows that they are incomplete.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::detail::{Detail, Setting};
use crate::error::Error;
use crate::mailbox::Summary;
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::compressed::{LEFT_AS_UTF16, Method};
use crate::mailbox::copy::MboxCopy;
use crate::mailbox::event::MailboxEvent;
use crate::mailbox::failure::{cannot_read, in_full, unreadable};
use crate::mailbox::forms::imap_backup::LengthChange;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::{self, emlx, emlx_files, imap_backup};
use crate::mailbox::identity::FileIdentity;
use crate::mailbox::input::source::InputSource;
use crate::mailbox::place::journal::{JournalRecord, ResultPart};
use crate::mailbox::place::output_stream::{OPEN_OUTPUT, OutputStream};
use crate::mailbox::place::replace::{self, AtomicWriter};
use crate::mailbox::read::opened::{SourceEnd, WINDOW};
use crate::mailbox::read::single_message::{SingleMessage, SourceMessage};
use crate::mailbox::read::sink::{Output, Sink};
use crate::mailbox::reader::{MboxPart, ReadContext};
use crate::mailbox::temporary::folder_of;
use crate::platform::NewFile;

impl<S: Send> MailboxJob<'_, S> {
    pub(crate) fn file_to(&self, kind: StartKind, output: Output<'_>) -> Result<Summary, Error> {
        if let Output::Delivery(delivery) = output {
            return self.deliver(kind, Some(delivery));
        }
        if self.pst.is_some() {
            return self.deliver(kind, None);
        }
        let (mut source, before, kind) = self.open_source(kind)?;
        if kind.has_folders() {
            return self.spool(&mut source);
        }
        self.open_to(source, Some(&before), kind, output)
    }

    /// Converts an open source. `read` is the identity of the source file before it was read, if the source has a name:
    /// it shows whether the file has changed since.
    pub(crate) fn open_to(
        &self,
        mut source: InputSource,
        read: Option<&FileIdentity>,
        kind: StartKind,
        output: Output<'_>,
    ) -> Result<Summary, Error> {
        let name = self.path;
        if let Output::Delivery(delivery) = output {
            return self.deliver_source(source, kind, delivery);
        }
        if source.is_utf16() && !matches!(output, Output::Nowhere) {
            return self.copy_utf16(source, read, kind, output);
        }
        let (target, whole) = match output {
            Output::Path(path) => (Some(path), None),
            Output::InFolder(path) => (Some(path), emlx_files::whole_name(path)),
            _ => (None, None),
        };
        let source_file = source.original().cloned();
        let original = source_file.as_deref();
        let mut sink = self.sink_for(output, original)?;
        let mut summary = Summary::default();
        let index = self.index_of(kind, source.as_file());
        let mut changes = Vec::new();
        if kind.is_sequence() {
            let is_eudora = kind == StartKind::Eudora && source.as_file().is_some();
            let mut copy = MboxCopy {
                changes: index.is_some().then_some(&mut changes),
                ..MboxCopy::to(&mut sink)
            };
            let context = Arc::new(ReadContext::of_job(self));
            let mut part = MboxPart::first(&context, is_eudora, source, None)?;
            source = loop {
                let copied = self.copy_part(part, &mut copy, &mut summary)?;
                part = match copied.following()? {
                    Ok(next) => next,
                    Err(source) => break source,
                };
            };
        } else {
            summary = self.message_to(&mut source, kind, (target, whole), &mut sink)?;
        }
        let end = self.end_of_source(&source, &mut summary);
        let SourceEnd {
            has_inner,
            lacks_mail,
            damage,
            ..
        } = end;
        if let Some(read) = read {
            read.check(name)?;
        }
        let is_result = summary.messages > 0 || damage.is_none() && !has_inner && !lacks_mail;
        if let (Some(_), Some(target), true) = (&index, target, is_result) {
            // The index appears before the mbox: a run that is stopped in between writes both again.
            self.copy_index(target, &changes)?;
        }
        if is_result {
            // The mboxes of an archive are only a part of its results, so the record does not say that the whole source
            // was converted.
            let part = if has_inner && self.nest(&mut sink)? {
                ResultPart::Nested
            } else {
                ResultPart::Whole
            };
            let record = self.record(name, read, part).map(|record| JournalRecord {
                is_damaged: damage.is_some() || lacks_mail || summary.damaged > 0,
                ..record
            });
            if !record.as_ref().is_some_and(JournalRecord::is_made) {
                sink.appear(original, kind, record.as_ref())?;
            }
        }
        self.report_source(end, &mut summary);
        Ok(summary)
    }

    /// Writes the index of imap-backup for the copy of an mbox, so that the copy keeps the flags.
    fn copy_index(&self, target: &Path, changes: &[LengthChange]) -> Result<(), Error> {
        let is_copy = self.options.writes && self.options.read.range.is_none();
        let copy = imap_backup::index_of_copy(self.path, target, changes);
        let Some((path, copy, content)) = copy.filter(|_| is_copy) else {
            return Ok(());
        };
        let file = File::open(&path).map_err(cannot_read(&path))?;
        let beside = AtomicWriter::of(&content, folder_of(&copy), &copy, None)?;
        let read = FileIdentity::of(&file.metadata().map_err(cannot_read(&path))?);
        let record = self.record(&path, Some(&read), ResultPart::Whole);
        beside
            .finished(&file, NewFile::Copy)?
            .appear_as(record.as_ref(), false)
    }

    fn sink_for<'o>(&self, output: Output<'o>, original: Option<&File>) -> Result<Sink<'o>, Error> {
        Ok(match output {
            _ if !self.options.writes => Sink::Nowhere,
            Output::Nowhere | Output::Delivery(_) => Sink::Nowhere,
            Output::Path(path) | Output::InFolder(path) => {
                Sink::to(path, Method::of_result(path, self.method), self.journal)?
            }
            Output::Open(file) => {
                let unwritable = Error::cannot_write(OPEN_OUTPUT);
                let written = file.metadata().map_err(unwritable)?;
                let metadata = original
                    .map(File::metadata)
                    .transpose()
                    .map_err(unreadable(self.path))?;
                if written.is_file() && metadata.is_some_and(|it| replace::is_same(&it, &written)) {
                    // The output would be read again as input, so the file would grow without end.
                    let what = "standard output is the same file as the source; name a new file";
                    let named = format!("{}: {what}", self.path.display());
                    return Err(Error::Usage(named.into()));
                }
                Sink::Directly(OutputStream::of_open(file))
            }
        })
    }

    /// Copies a file in UTF-16 byte by byte, because embody does not write this encoding. The messages in the file are
    /// read all the same: if one of them would change, or cannot be decoded, the file is reported.
    fn copy_utf16(
        &self,
        source: InputSource,
        read: Option<&FileIdentity>,
        kind: StartKind,
        output: Output<'_>,
    ) -> Result<Summary, Error> {
        let name = self.path;
        let Some(file) = source.original().cloned() else {
            let what = "a stream in UTF-16 cannot be copied";
            return Err(unreadable(name)(io::Error::other(what)));
        };
        let unheard = MailboxJob {
            observer: &(),
            ..*self
        };
        let seen = unheard.open_to(source, None, kind, Output::Nowhere)?;
        let mut sink = self.sink_for(output, Some(&file))?;
        let mut source = InputSource::file(&file);
        let mut piece = vec![0; WINDOW];
        let mut length = 0;
        loop {
            self.stop.check()?;
            match source.fill(&mut piece).map_err(in_full(name))? {
                0 => break,
                filled => {
                    sink.keep(&piece[..filled])?;
                    length += filled as u64;
                }
            }
        }
        if let Some(read) = read {
            read.check(name)?;
        }
        let damaged = u64::from(seen.damaged + seen.changed > 0);
        let complete = self.record(name, read, ResultPart::Whole);
        let record = complete.map(|record| JournalRecord {
            is_damaged: damaged > 0,
            ..record
        });
        if !record.as_ref().is_some_and(JournalRecord::is_made) {
            sink.appear(Some(&file), kind, record.as_ref())?;
        }
        let summary = Summary {
            damaged,
            mailboxes: 1,
            messages: seen.messages,
            bytes_in: length,
            bytes_out: length,
            ..Summary::default()
        };
        if seen.damaged > 0 {
            let what = "the file is in UTF-16 and cannot be decoded exactly; the file was copied without a change";
            self.observer.event(MailboxEvent::damaged(name, what));
        } else if seen.changed > 0 {
            let what = Detail::from(LEFT_AS_UTF16).naming(Setting::OutputFormat);
            self.observer.event(MailboxEvent::damaged(name, what));
        }
        self.observer
            .event(MailboxEvent::Advance(length, seen.messages));
        self.observer.event(MailboxEvent::done(&summary));
        Ok(summary)
    }

    /// Converts a single message. `target` is the name of the result. Apple Mail stores a message without its
    /// attachments as `N.partial.emlx`. If such a message becomes complete, the result gets the name `whole` instead.
    fn message_to(
        &self,
        source: &mut InputSource,
        kind: StartKind,
        (target, whole): (Option<&Path>, Option<PathBuf>),
        sink: &mut Sink<'_>,
    ) -> Result<Summary, Error> {
        let is_read_alone = matches!(sink, Sink::Nowhere);
        let SingleMessage {
            content,
            octets,
            kept,
            missing,
            _alone,
        } = match self.source_message(source, kind, is_read_alone)? {
            SourceMessage::Whole(read) => read,
            SourceMessage::Unread(summary) => return Ok(summary),
            SourceMessage::Empty => {
                // The empty file is still copied.
                sink.put(b"")?;
                return Ok(self.without_message());
            }
            SourceMessage::TooLarge(start) => {
                return self.oversized_source(source, start, &mut |bytes| sink.keep(bytes));
            }
        };
        let (mut summary, done) = self.message_of(&content)?;
        let is_of_outlook = kept.is_some();
        if is_of_outlook {
            summary.bytes_in = octets;
        }
        let new = done.as_ref().and_then(|done| done.new.as_deref());
        let result = forms::as_named(new.unwrap_or(&content), target);
        sink.put(result)?;
        let is_whole = |new| emlx::is_partial(&content) && !emlx::is_partial(new);
        if let (Sink::Beside(beside), Some(whole)) = (sink, whole)
            && new.is_some_and(is_whole)
        {
            beside.target = whole;
        }
        if let Some(done) = done {
            done.tell(self.observer);
        }
        if !is_of_outlook {
            self.report_appended_to_file(&content, &mut summary);
        }
        self.report_missing(missing, &mut summary);
        Ok(summary)
    }
}
