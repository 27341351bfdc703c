//! Builds the index of the mailboxes of `--copies`. Each mailbox is read once, and each mail and part becomes a record.

use std::fs;
use std::io;
use std::path::Path;

use super::mails::{Mails, MailsWriter};
use super::part::digests;
use super::record::{CopyKey, CopyRecord, LENGTH, MailPlace, MailStorage};
use super::table::MailboxTable;
use crate::detail::Detail;
use crate::engine::policy::Policy;
use crate::engine::same::{copy_key, identity, plain};
use crate::error::Error;
use crate::mailbox::{
    self, LetterWork, MailboxEvent, MailboxFact, Message, Quoting, ReadOptions, Stop, read_source,
};
use crate::mime::ScanLimits;
use crate::spool::Sorter;

/// Index of the mails and parts in the mailboxes of `--copies`, by which a part that another mail lacks is found.
pub(crate) struct CopyIndex {
    table: MailboxTable,
    pub(super) mails: Mails,
}

impl CopyIndex {
    pub(super) fn find(&self, key: CopyKey) -> io::Result<Vec<CopyRecord>> {
        self.table.find(key)
    }
}

/// An index under construction: mailboxes are added first, and then the records are sorted.
pub(crate) struct IndexBuilder<'b> {
    limits: ScanLimits,
    writer: IndexWriter,
    /// Callback for damage: gets the path of a file that cannot be read completely, and the reason.
    damaged: &'b (dyn Fn(&Path, &Detail) + Sync),
    /// Callback for the progress display. Its arguments are the bytes and messages that were read since the last call,
    /// and the bytes by which the expected total grows.
    advanced: &'b (dyn Fn(u64, u64, u64) + Sync),
}

struct IndexWriter {
    mails: MailsWriter,
    sorter: Sorter<LENGTH>,
}

/// Records of one mail, collected in a worker thread until they are written to the temporary files.
pub(crate) struct IndexInput {
    path: std::path::PathBuf,
    number: u64,
    identity: [u8; 16],
    /// Keys of the mail: digests of the mail and of its parts, each with the number of the part.
    keys: Vec<(CopyKey, u32)>,
    /// Position of the mail in its file, and its length, both in bytes.
    place: (u64, u64),
    bytes: MailBytes,
}

enum MailBytes {
    /// The mail can be read again from its mailbox. The boolean is true if it is the only mail in its file.
    Mailbox(Quoting, bool),
    Here(Vec<u8>),
}

impl<'b> IndexBuilder<'b> {
    /// Creates an empty index with its temporary files.
    ///
    /// # Errors
    /// [`Error::Write`] if the temporary files cannot be created.
    pub(crate) fn new(
        policy: &Policy,
        damaged: &'b (dyn Fn(&Path, &Detail) + Sync),
        advanced: &'b (dyn Fn(u64, u64, u64) + Sync),
    ) -> Result<Self, Error> {
        let writer = || {
            io::Result::Ok(IndexWriter {
                mails: MailsWriter::new()?,
                sorter: Sorter::new(tempfile::tempfile()?),
            })
        };
        Ok(Self {
            limits: policy.limits.scan(),
            writer: writer().map_err(cannot_write())?,
            damaged,
            advanced,
        })
    }

    /// Reads all mails of a mailbox of any format, and adds them to the index. Returns false if some of its mails could not be
    /// read.
    ///
    /// # Errors
    /// [`Error::NotAMailbox`], [`Error::Read`] or [`Error::Unreadable`] if nothing in the mailbox can be read. [`Error::Write`]
    /// if a temporary file cannot be written. [`Error::Interrupted`] if the user stopped the run.
    pub(crate) fn add(
        &mut self,
        mailbox: &Path,
        options: &ReadOptions,
        stop: &Stop,
    ) -> Result<bool, Error> {
        let Self {
            limits,
            writer,
            damaged,
            advanced,
        } = self;
        let work = LetterWork {
            work: &|message| Ok(IndexInput::of(message, limits)),
            weight: &IndexInput::weight,
        };
        let done = read_source(mailbox, (options, stop), &work, &mut |event| {
            match event {
                MailboxEvent::Message(mail, _) => writer.add(mail).map_err(cannot_write())?,
                MailboxEvent::Advance(bytes, messages) => advanced(bytes, messages, 0),
                MailboxEvent::Expects(bytes) => advanced(0, 0, bytes),
                MailboxEvent::Fact(
                    MailboxFact::Damaged(path, why) | MailboxFact::Lost(path, why),
                ) => damaged(&path, &why),
                _ => {}
            }
            Ok(())
        })?;
        if done.oversized > 0 {
            let why = format!(
                "{} messages are too large, and were not read",
                done.oversized
            );
            damaged(mailbox, &why.into());
        }
        Ok(done.damaged == 0 && done.oversized == 0)
    }

    /// Sorts the records and returns the complete index.
    ///
    /// # Errors
    /// [`Error::Write`] if the temporary files cannot be written.
    pub(crate) fn finish(self) -> Result<CopyIndex, Error> {
        let IndexWriter { mails, sorter } = self.writer;
        let finish = || {
            io::Result::Ok(CopyIndex {
                table: MailboxTable::of(sorter)?,
                mails: mails.finish()?,
            })
        };
        finish().map_err(cannot_write())
    }
}

fn cannot_write() -> impl Fn(io::Error) -> Error {
    let folder = std::env::temp_dir();
    Error::cannot_write(format!("a temporary file in {}", folder.display()))
}

impl IndexWriter {
    fn add(&mut self, mail: IndexInput) -> io::Result<()> {
        let (at, length) = mail.place;
        let has_several = matches!(mail.bytes, MailBytes::Mailbox(_, false));
        let name = self.mails.name(&mail.path, has_several)?;
        let (at, file) = match &mail.bytes {
            MailBytes::Mailbox(quoting, _) => (at, MailStorage::Mailbox(*quoting)),
            MailBytes::Here(bytes) => (self.mails.spool(bytes)?, MailStorage::Spool),
        };
        for (key, part) in mail.keys {
            let record = CopyRecord {
                key,
                part,
                identity: mail.identity,
                place: MailPlace {
                    name,
                    number: mail.number,
                    at,
                    length,
                    file,
                },
            };
            self.sorter.push(record.encode())?;
        }
        Ok(())
    }
}

impl IndexInput {
    fn of(message: &Message<'_>, limits: &ScanLimits) -> Self {
        let (mail, _) = mailbox::plain(message.content, message.quoting);
        let plain = plain(&mail);
        let mut keys = vec![(CopyKey::Mail(copy_key(&plain).to_bytes()), 0)];
        for (part, digests) in digests(&mail, limits) {
            keys.push((CopyKey::Sha256(digests.short()), part));
            keys.push((CopyKey::Md5(digests.md5), part));
        }
        let length = message.content.len() as u64;
        let (at, bytes) = match message.at {
            Some(at) => (at, MailBytes::Mailbox(message.quoting, false)),
            // A message as long as its file is the whole file, so it can be read from there again. Otherwise the file
            // is compressed or has other content, and the message is copied to a temporary file.
            None if is_file_of(message.source, length) => {
                (0, MailBytes::Mailbox(Quoting::None, true))
            }
            None => (0, MailBytes::Here(mail.into_owned())),
        };
        let length = match &bytes {
            MailBytes::Mailbox(..) => length,
            MailBytes::Here(mail) => mail.len() as u64,
        };
        Self {
            path: message.source.to_owned(),
            number: message.number,
            identity: identity(&plain).to_bytes(),
            keys,
            place: (at, length),
            bytes,
        }
    }

    /// Returns the memory that the data need until they are written, in bytes.
    fn weight(&self) -> usize {
        let bytes = match &self.bytes {
            MailBytes::Mailbox(..) => 0,
            MailBytes::Here(mail) => mail.len(),
        };
        size_of_val(self) + bytes + size_of_val(self.keys.as_slice()) + self.path.as_os_str().len()
    }
}

fn is_file_of(path: &Path, length: u64) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == length)
}
