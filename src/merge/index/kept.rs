//! The kept mails, in the order of the result.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::super::record::{Details, KEPT_LENGTH, KeptRecord};
use super::super::sorted::SortedRecords;
use super::super::spool::CompleteSpool;
use super::super::words::MailWords;
use super::tally::Tally;
use super::{LONGEST_BATCH, cannot_write};
use crate::error::Error;
use crate::mailbox::MessageFlags;
use crate::platform::FileExt as _;

/// Maximum number of mails in one batch of the result.
const MOST_IN_BATCH: usize = 1000;

/// The keywords and folders of all copies of a kept mail. It is stored in a temporary file to save memory.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct KeptNote {
    pub(super) words: Option<MailWords>,
    pub(super) folders: Vec<u32>,
}

pub(super) struct NoteWriter {
    pub(super) file: BufWriter<File>,
    pub(super) end: u64,
}

impl NoteWriter {
    pub(super) fn push(&mut self, note: &KeptNote) -> io::Result<u64> {
        let bytes = serde_json::to_vec(note)?;
        let place = self.end;
        self.file.write_all(&(bytes.len() as u32).to_be_bytes())?;
        self.file.write_all(&bytes)?;
        self.end += 4 + bytes.len() as u64;
        Ok(place)
    }

    pub(super) fn finish(self) -> io::Result<KeptNotes> {
        let file = self.file.into_inner().map_err(|error| error.into_error())?;
        Ok(KeptNotes(file))
    }
}

pub(super) struct KeptNotes(File);

impl KeptNotes {
    fn read(&self, place: u64) -> io::Result<KeptNote> {
        let mut length = [0; 4];
        self.0.read_exact_at(&mut length, place)?;
        let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact_at(&mut bytes, place + 4)?;
        Ok(serde_json::from_slice(&bytes)?)
    }
}

/// The kept mails. The order and the contents are separate, so that several threads can read contents while one of them
/// gets the next batch.
pub(crate) struct KeptSelection {
    pub(crate) order: KeptOrder,
    pub(crate) mails: KeptMails,
    pub(crate) tally: Tally,
}

/// The kept mails in the order of the result, without their contents.
pub(crate) struct KeptOrder {
    pub(super) sorted: SortedRecords<KEPT_LENGTH>,
    pub(super) directory: PathBuf,
}

/// Consecutive mails of the result, without their contents.
pub(crate) struct KeptBatch(Vec<KeptRecord>);

impl KeptOrder {
    /// Returns the next mails, and the length of their contents in bytes. Returns `None` after the last one.
    ///
    /// # Errors
    /// [`Error::Write`], if a temporary file cannot be read.
    pub(crate) fn next_batch(&mut self) -> Result<Option<(KeptBatch, usize)>, Error> {
        let (mut records, mut length) = (Vec::new(), 0_usize);
        while records.len() < MOST_IN_BATCH && length < LONGEST_BATCH {
            let next = self.sorted.next();
            let Some(bytes) = next.map_err(cannot_write(&self.directory))? else {
                break;
            };
            let record = KeptRecord::decode(&bytes);
            let own = usize::try_from(record.entry.length).unwrap_or(usize::MAX);
            length = length.saturating_add(own);
            records.push(record);
        }
        Ok((!records.is_empty()).then_some((KeptBatch(records), length)))
    }
}

/// The contents of the kept mails.
pub(crate) struct KeptMails {
    pub(super) spooled: CompleteSpool,
    pub(super) notes: KeptNotes,
    pub(super) directory: PathBuf,
}

/// A kept mail, with the flags, keywords and labels of all its copies.
pub(crate) struct KeptMail<'b> {
    pub(crate) content: Cow<'b, [u8]>,
    pub(crate) flags: MessageFlags,
    pub(crate) sender: String,
    pub(crate) arrived: Option<SystemTime>,
    pub(crate) separator: Option<Cow<'b, [u8]>>,
    /// Numbers of the folders that contain a copy of the mail.
    pub(crate) folders: Vec<u32>,
}

impl KeptMails {
    /// Reads the mails of a batch, and calls `take` for each of them, in their order.
    ///
    /// # Errors
    /// [`Error::Write`], if a temporary file cannot be read.
    pub(crate) fn read(
        &self,
        batch: &KeptBatch,
        mut take: impl FnMut(KeptMail<'_>),
    ) -> Result<(), Error> {
        let mut bytes = Vec::new();
        for record in &batch.0 {
            let mail = self.read_one(record, &mut bytes);
            take(mail.map_err(cannot_write(&self.directory))?);
        }
        Ok(())
    }

    fn read_one<'b>(
        &self,
        record: &KeptRecord,
        bytes: &'b mut Vec<u8>,
    ) -> io::Result<KeptMail<'b>> {
        let (about, content) = self.spooled.read(record.entry, bytes)?;
        let note = match record.details {
            Details::Folder(folder) => KeptNote {
                words: None,
                folders: vec![folder],
            },
            Details::Note(place) => self.notes.read(place)?,
        };
        let keywords = about.words.keywords();
        let (keywords, content) = match note.words {
            Some(words) => (keywords.with(&words.keywords()), words.put_into(content)),
            None => (keywords, content.into()),
        };
        let arrived = about.arrived.map(Duration::from_secs);
        Ok(KeptMail {
            content,
            flags: MessageFlags::new(record.flags, keywords),
            sender: about.sender.into_owned(),
            arrived: arrived.and_then(|since| UNIX_EPOCH.checked_add(since)),
            separator: about.separator,
            folders: note.folders,
        })
    }
}
