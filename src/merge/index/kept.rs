//! The kept mails, in the order of the result.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::super::record::{Details, KEPT_LENGTH, KeptRecord};
use super::super::spool::CompleteSpool;
use super::super::words::MailWords;
use super::tally::Tally;
use super::{LONGEST_BATCH, cannot_write};
use crate::error::Error;
use crate::mailbox::{Flags, MessageFlags};
use crate::spool::{SortedRecords, Spool};

/// Maximum number of mails in one batch of the result.
const MOST_IN_BATCH: usize = 1000;

/// Keywords and folders of all copies of a kept mail, stored in a temporary file to save memory.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct KeptNote {
    pub(super) words: Option<MailWords>,
    pub(super) folders: Vec<u32>,
}

/// The kept mails. Order and contents are separate values, so that several threads can read contents while one takes
/// the next batch.
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
    /// A [`KeptNote`] of each mail with [`Details::Note`].
    pub(super) notes: Spool,
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
            Details::Note(place) => self.notes.value(place)?,
        };
        let keywords = about.words.keywords();
        let flags = MessageFlags::new(record.flags, keywords);
        let (flags, content) = match note.words {
            Some(words) => {
                let of_words = MessageFlags::new(Flags::default(), words.keywords());
                let all = flags.with(&of_words).with(&words.further());
                (all, words.put_into(content))
            }
            None => (flags, content.into()),
        };
        let arrived = about.arrived.map(Duration::from_secs);
        Ok(KeptMail {
            content,
            flags,
            sender: about.sender.into_owned(),
            arrived: arrived.and_then(|since| UNIX_EPOCH.checked_add(since)),
            separator: about.separator,
            folders: note.folders,
        })
    }
}
