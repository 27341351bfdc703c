//! Writes mboxes: a file, a stream, or several mboxes in a directory.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::super::appear::NamedResult;
use super::super::directory;
use super::super::form::MessageForm;
use super::super::prepared::{PreparedMail, PreparedMessage, seconds};
use super::super::writer::{
    MailboxFiles, MailboxWriter, NewResult, NumberedMessage, ResultMailbox,
};
use super::super::written_format::WrittenFormat;
use crate::error::Error;
use crate::from_field::{SpellingPlace, spelled};
use crate::mailbox::MboxVariant;
use crate::mailbox::compressed::Method;
use crate::mailbox::failure::cannot_write;
use crate::mailbox::flag_losses::FlagLosses;
use crate::mailbox::forms::flags::MessageFlags;
use crate::mailbox::forms::keywords::unwritable;
use crate::mailbox::forms::rewrite::for_mbox;
use crate::mailbox::forms::separator::from_line;
use crate::mailbox::place::journal::JournalRecord;
use crate::mailbox::place::output_stream::OutputStream;
use crate::mailbox::place::replace::{AtomicWriter, device, sync_folder};
use crate::mailbox::place::tree::new_file;
use crate::mailbox::temporary::folder_of;
use crate::platform::{self, Owner};
use crate::span::Newline;

/// Maximum number of mboxes that are open at a time.
const MOST_OPEN: usize = 32;

pub(super) struct MboxFormat;

impl WrittenFormat for MboxFormat {
    fn form(&self) -> &'static dyn MessageForm {
        &MboxFormat
    }

    fn files(&self) -> Box<dyn MailboxFiles> {
        Box::new(MboxFiles::default())
    }

    fn start(&self, new: &NewResult<'_>) -> Result<Box<dyn MailboxWriter>, Error> {
        if new.is_by_label {
            directory::start(new, self.files())
        } else {
            start(new)
        }
    }
}

impl MessageForm for MboxFormat {
    fn bytes<'m>(
        &self,
        letter: &PreparedMail<'m>,
        flags: &MessageFlags,
        variant: MboxVariant,
    ) -> Cow<'m, [u8]> {
        let spelled = spelled_for_mbox(letter);
        separated(&flags.put_into(&spelled), letter, variant).into()
    }

    fn lost(&self, flags: &MessageFlags, _content: &[u8]) -> Vec<String> {
        flags.unwritable().map(unwritable).collect()
    }

    fn has_separators(&self) -> bool {
        true
    }
}

/// Returns the message with its From field rewritten if programs would read this field as a separator.
pub(super) fn spelled_for_mbox<'m>(letter: &PreparedMail<'m>) -> Cow<'m, [u8]> {
    spelled(letter.content, SpellingPlace::UnquotedWithoutBlank)
}

/// Returns the message as an mbox contains it: after a separator, and quoted.
pub(super) fn separated(
    content: &[u8],
    letter: &PreparedMail<'_>,
    variant: MboxVariant,
) -> Vec<u8> {
    let newline = Newline::of_first_line(content).bytes();
    let line = match letter.separator {
        Some(line) => Cow::Borrowed(line),
        None => {
            let sender = letter.envelope.sender.as_bytes();
            let line = from_line(sender, seconds(letter.envelope.date));
            Cow::Owned(line.into_bytes())
        }
    };
    [&line, newline, &for_mbox(content, variant), newline].concat()
}

/// Starts an mbox at a new path. If the path is that of a device or a pipe, the mbox is written to it.
fn start(new: &NewResult<'_>) -> Result<Box<dyn MailboxWriter>, Error> {
    let target = new.target;
    if let Some(device) = device(target, new.journal)? {
        let stream = OutputStream::of_device(target, device);
        return Ok(Box::new(MboxStream(stream)));
    }
    let method = Method::of_result(target, None);
    Ok(Box::new(MboxFile {
        file: AtomicWriter::start(folder_of(target), target, method)?,
        owner: new.owner,
    }))
}

/// A new file with one mbox, which may be compressed.
struct MboxFile {
    file: AtomicWriter,
    owner: Option<Owner>,
}

impl MailboxWriter for MboxFile {
    fn write(
        &mut self,
        NumberedMessage { message, .. }: &NumberedMessage<'_>,
        _mailboxes: &[usize],
        _losses: &mut FlagLosses,
    ) -> Result<(), Error> {
        self.file.write(&message.bytes)
    }

    fn rename(&mut self, target: &Path) {
        target.clone_into(&mut self.file.target);
    }

    fn finish(
        self: Box<Self>,
        record: Option<&JournalRecord<'_>>,
        note: &mut dyn FnMut(&[NamedResult]),
    ) -> Result<(), Error> {
        let finished = self.file.finished_privately()?;
        let target = finished.target.clone();
        let owned = platform::own(finished.temporary.as_file(), self.owner);
        owned.map_err(cannot_write(&target))?;
        finished.sync()?;
        note(&[NamedResult::new(finished.temporary.path(), &target)]);
        finished.appear_as(record, true)?;
        sync_folder(folder_of(&target))
    }
}

/// An mbox that is written to standard output, a device or a pipe.
pub(crate) struct MboxStream(pub(crate) OutputStream);

impl MailboxWriter for MboxStream {
    fn write(
        &mut self,
        NumberedMessage { message, .. }: &NumberedMessage<'_>,
        _mailboxes: &[usize],
        _losses: &mut FlagLosses,
    ) -> Result<(), Error> {
        self.0.write(&message.bytes)
    }

    fn finish(
        self: Box<Self>,
        _record: Option<&JournalRecord<'_>>,
        _note: &mut dyn FnMut(&[NamedResult]),
    ) -> Result<(), Error> {
        self.0.finish()
    }
}

/// The mboxes in a directory.
#[derive(Default)]
pub(super) struct MboxFiles {
    /// Open mboxes, each with the number of its mailbox, least recently used first. If [`MOST_OPEN`] are open, the first one is
    /// closed before another one is opened.
    open: Vec<(usize, BufWriter<File>)>,
}

impl MailboxFiles for MboxFiles {
    fn suffix(&self) -> &'static str {
        ".mbox"
    }

    fn make(&self, path: &Path, owner: Option<Owner>) -> io::Result<()> {
        new_file(path).and_then(|file| platform::own(&file, owner))
    }

    fn name(
        &mut self,
        _message: &NumberedMessage<'_>,
        _mailbox: usize,
        _losses: &mut FlagLosses,
    ) -> String {
        String::new()
    }

    fn put(
        &mut self,
        message: &PreparedMessage<'_>,
        _name: &str,
        mailbox: ResultMailbox<'_>,
    ) -> io::Result<()> {
        let is_this = |(number, _): &(usize, _)| *number == mailbox.number;
        let mut mbox = match self.open.iter().position(is_this) {
            Some(at) => self.open.remove(at),
            None => {
                if self.open.len() >= MOST_OPEN {
                    self.open.remove(0).1.flush()?;
                }
                let file = File::options().append(true).open(mailbox.path)?;
                (mailbox.number, BufWriter::with_capacity(64 << 10, file))
            }
        };
        let written = mbox.1.write_all(&message.bytes);
        self.open.push(mbox);
        written
    }

    fn finish(&mut self, _mailboxes: &[PathBuf], _owner: Option<Owner>) -> io::Result<()> {
        let mut open = self.open.drain(..);
        open.try_for_each(|(_, mut mbox)| mbox.flush())
    }
}
