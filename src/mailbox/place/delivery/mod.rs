//! Creates new mailboxes for a conversion to another format (`--output-format`), or one mailbox for each label
//! (`--by-label`).
//!
//! Each format is a file with its [`WrittenFormat`](written_format::WrittenFormat), and a row of the table in `formats`. Its
//! [`MessageForm`](form::MessageForm) converts messages, in several threads. Its [`MailboxWriter`](writer::MailboxWriter) writes
//! them, in one thread. `directory` writes the formats with a file for each message, and a mailbox for each label. `labels`
//! determines the mailboxes of a message.
//!
//! A directory is filled under a temporary name that mail programs ignore, synced, and then renamed. So mail programs
//! see only a complete mailbox, and a run that ends earlier leaves no part of it. For this reason, the messages of a
//! new Maildir are written directly to `cur` and `new` without its `tmp`.
//!
//! New files are private (modes 0600 and 0700), because the source may have access lists that a new directory cannot
//! get. If root runs the program, the files belong to the owner of the source.
//!
//! Names contain neither the current time nor random numbers, so that the same source always gives the same result. A
//! message in a Maildir is named by its date, which is also the time of its file, by its number in the run, and by its
//! size, as in Dovecot.

mod appear;
mod directory;
mod form;
mod formats;
mod handler;
mod labels;
mod nowhere;
mod prepared;
mod writer;
mod written_format;

use std::fs::{File, Metadata};
use std::path::Path;
use std::sync::Arc;

use self::formats::{MboxStream, written_format};
use self::labels::LabelMailboxes;
use self::nowhere::NowhereWriter;
use self::writer::{MailboxWriter, NewResult, NumberedMessage};
use crate::error::Error;
use crate::mailbox::flag_losses::FlagLosses;
use crate::mailbox::place::journal::{JournalRecord, ResultJournal};
use crate::mailbox::place::output_stream::OutputStream;
use crate::mailbox::{Format, MboxVariant, Options, Summary};
use crate::platform;
pub(crate) use appear::NamedResult;
pub(crate) use form::ResultForm;
pub(crate) use formats::NO_LETTER;
pub(crate) use handler::{Batch, Handler};
#[cfg(feature = "cli")]
pub(crate) use prepared::PreparedMessages;
pub(crate) use prepared::{PreparedMail, PreparedMessage, StoredState};

/// Place of a new mailbox.
pub(crate) enum ResultPlace<'p> {
    /// The run writes nothing.
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    Nowhere,
    Path(&'p Path),
    /// An open file to which an mbox is written.
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    Open(File),
}

/// Delivers the messages of a conversion to a new mailbox, or to a [`Handler`].
pub(crate) struct Delivery {
    form: ResultForm,
    receiver: MailReceiver,
    /// The mailboxes of labels. `None` if the result is not sorted by labels.
    labels: Option<LabelMailboxes>,
    skips_deleted: bool,
    /// Number of the mailbox for mail that is not assigned by labels.
    current: usize,
    /// Number of messages that were written.
    delivered: u64,
    losses: FlagLosses,
}

enum MailReceiver {
    Writer(Box<dyn MailboxWriter>),
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    Handler(Arc<dyn Handler>),
}

impl Delivery {
    /// Creates a delivery that passes each message to `handler` and writes no files. `form` is the format that the
    /// program writes, which affects the flags and the separators of messages.
    #[cfg(feature = "cli")]
    pub(crate) fn to_handler(form: Format, handler: Arc<dyn Handler>) -> Self {
        let form = ResultForm {
            format: written_format(form).form(),
            is_by_label: false,
            variant: MboxVariant::default(),
        };
        Self::new(form, MailReceiver::Handler(handler))
    }

    fn new(form: ResultForm, receiver: MailReceiver) -> Self {
        Self {
            form,
            receiver,
            labels: None,
            skips_deleted: false,
            current: 0,
            delivered: 0,
            losses: FlagLosses::default(),
        }
    }

    /// Starts a delivery to a new mailbox. If root runs the program, the mailbox belongs to the owner of `like`. With a
    /// `journal`, the place may exist if an interrupted run can have created it.
    pub(crate) fn start(
        form: Format,
        options: &Options,
        place: ResultPlace<'_>,
        like: Option<&Metadata>,
        journal: Option<&ResultJournal>,
    ) -> Result<Self, Error> {
        let format = written_format(form);
        let is_by_label = options.by_label.is_some();
        let writer = match place {
            ResultPlace::Path(target) if options.writes => format.start(&NewResult {
                target,
                is_by_label,
                owner: platform::owner_of_results(like),
                journal,
            })?,
            ResultPlace::Open(file) if options.writes => {
                Box::new(MboxStream(OutputStream::of_open(file)))
            }
            _ => Box::new(NowhereWriter(format.files())),
        };
        let message_form = ResultForm {
            format: format.form(),
            is_by_label,
            variant: options.mbox_variant.unwrap_or_default(),
        };
        Ok(Self {
            labels: options.by_label.map(LabelMailboxes::new),
            skips_deleted: options.skip_deleted,
            ..Self::new(message_form, MailReceiver::Writer(writer))
        })
    }

    fn writer(&mut self) -> Option<&mut dyn MailboxWriter> {
        match &mut self.receiver {
            MailReceiver::Writer(writer) => Some(&mut **writer),
            MailReceiver::Handler(_) => None,
        }
    }

    /// Changes the path at which the finished mailbox appears. The new path must be on the same file system, in a
    /// directory that exists.
    pub(crate) fn rename(&mut self, target: &Path) {
        if let Some(writer) = self.writer() {
            writer.rename(target);
        }
    }

    /// Prepares the delivery for `merge`. It delivers no mail twice, so no digests need to be kept. The labels of a
    /// mail are the source folders that contained it, so the mail is delivered to all of them.
    #[cfg(feature = "cli")]
    pub(crate) fn of_distinct_mails(mut self) -> Self {
        if let Some(labels) = &mut self.labels {
            labels.is_distinct = true;
        }
        self
    }

    /// Selects the Thunderbird folder for the mail that follows, unless its labels determine the folder.
    pub(crate) fn enter(&mut self, levels: &[String]) -> Result<(), Error> {
        if self.labels.is_none()
            && let Some(writer) = self.writer()
        {
            self.current = writer.enter(levels)?;
        }
        Ok(())
    }

    /// Counts a folder as lost if the result is a single mailbox. A handler and a mailbox for each label keep folders
    /// apart.
    pub(crate) fn lose_folder(&mut self, folder: &str) {
        if self.labels.is_none() && self.handler().is_none() {
            let what = format!("folder {folder}, because the result is one mailbox");
            self.losses.count(what);
        }
    }

    /// Writes a message to the mailboxes of its labels, or to the current mailbox if mail is not sorted by labels. Adds
    /// the written bytes to `summary` once for each of these mailboxes.
    pub(crate) fn deliver(
        &mut self,
        letter: PreparedMail<'_>,
        summary: &mut Summary,
    ) -> Result<(), Error> {
        if self.skips_deleted && self.form.flags(&letter).system.is_deleted() {
            summary.deleted += 1;
            return Ok(());
        }
        if let Some(labels) = &mut self.labels
            && labels.is_repeated(&letter)
        {
            summary.repeated += 1;
            return Ok(());
        }
        let message = self.form.prepared(letter);
        self.write(&message, summary)
    }

    /// Returns the form of the messages in the mailbox.
    pub(crate) fn message_form(&self) -> ResultForm {
        self.form
    }

    /// Returns the handler that receives the messages, or `None` if they are written to a mailbox.
    pub(crate) fn handler(&self) -> Option<&Arc<dyn Handler>> {
        match &self.receiver {
            MailReceiver::Handler(handler) => Some(handler),
            MailReceiver::Writer(_) => None,
        }
    }

    /// Writes a message of the [`message_form`](Self::message_form) of this delivery as [`deliver`](Self::deliver) does,
    /// but does not find repeated mails.
    pub(crate) fn write(
        &mut self,
        message: &PreparedMessage<'_>,
        summary: &mut Summary,
    ) -> Result<(), Error> {
        let MailReceiver::Writer(writer) = &mut self.receiver else {
            return Ok(());
        };
        self.delivered += 1;
        let mailboxes = match &mut self.labels {
            None => vec![self.current],
            Some(labels) => labels.numbers(&message.labels, summary, &mut |label| {
                writer.add_label(label)
            })?,
        };
        let numbered = NumberedMessage {
            message,
            number: self.delivered,
        };
        writer.write(&numbered, &mailboxes, &mut self.losses)?;
        for lost in &message.lost {
            self.losses.count(lost.clone());
        }
        summary.bytes_out += message.bytes.len() as u64 * mailboxes.len() as u64;
        Ok(())
    }

    /// Returns the flags and keywords that the mailbox cannot store.
    pub(crate) fn take_losses(&mut self) -> FlagLosses {
        std::mem::take(&mut self.losses)
    }

    /// Completes the mailbox, records it in the journal and gives it its final name. If the source was damaged and no
    /// message was read, no mailbox is created.
    pub(crate) fn finish_unless_damaged(
        self,
        summary: &Summary,
        record: Option<JournalRecord<'_>>,
    ) -> Result<(), Error> {
        self.finish(summary, record, &mut |_| {})
    }

    /// Does the same as [`finish_unless_damaged`](Self::finish_unless_damaged), without a journal. Calls `note` when the mailbox
    /// is complete, immediately before it gets its final name.
    pub(crate) fn finish_noting(
        self,
        summary: &Summary,
        note: &mut dyn FnMut(&[NamedResult]),
    ) -> Result<(), Error> {
        self.finish(summary, None, note)
    }

    fn finish(
        self,
        summary: &Summary,
        record: Option<JournalRecord<'_>>,
        note: &mut dyn FnMut(&[NamedResult]),
    ) -> Result<(), Error> {
        let MailReceiver::Writer(writer) = self.receiver else {
            return Ok(());
        };
        let is_damaged = summary.damaged > 0;
        if summary.messages == 0 && is_damaged {
            return Ok(());
        }
        let complete = record.map(|record| JournalRecord {
            is_damaged,
            ..record
        });
        writer.finish(complete.as_ref(), note)
    }
}
