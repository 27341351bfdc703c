//! Record of a message in a temporary file: a candidate (a message of OLD without an identical message in NEW), or a message
//! of NEW that is compared later.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::reading::{LostMessage, MessageResult};
use crate::engine::same::{Digest, MailCopy, identity, plain};
use crate::error::{Error, unpoisoned};
use crate::mailbox::{Flags, Keywords, MessageFlags, SeenFlags};
use crate::spool::{Spool, SpoolWriter};

/// A message of OLD without an identical message in NEW, or a message of NEW that is compared later.
#[derive(Serialize, Deserialize)]
pub(super) struct CandidateRecord {
    pub(super) identity: Digest,
    pub(super) named: LostMessage,
    pub(super) stored: StoredMessage,
    /// Flags that the mailbox stores, and flags in the header.
    flags: [Option<(u8, Vec<String>)>; 2],
    /// Description by which copies of the mail are recognised. `None` if the command does not accept copies.
    pub(super) copy: Option<MailCopy>,
}

impl CandidateRecord {
    pub(super) fn of(
        message: &MessageResult<'_>,
        stored: StoredMessage,
        copy: Option<MailCopy>,
    ) -> Self {
        Self {
            identity: message.seen.identity,
            named: message.named.clone(),
            stored,
            flags: [
                message.seen.flags.stored.as_ref(),
                Some(&message.seen.flags.fields).filter(|fields| !fields.is_empty()),
            ]
            .map(|flags| {
                let flags = flags?;
                let keywords = flags.keywords.names().map(str::to_owned);
                Some((flags.system.to_byte(), keywords.collect()))
            }),
            copy,
        }
    }

    /// Reads the content of the message again. `file` is the temporary file with the record. Returns `None` if the message
    /// was moved or changed since.
    pub(super) fn content(&self, file: &Spool) -> io::Result<Option<Vec<u8>>> {
        let content = match &self.stored {
            StoredMessage::Spooled { at, length } => {
                return file.read(*at, *length).map(Some);
            }
            StoredMessage::File { path, at, length } => match read_at(path, *at, *length) {
                Ok(content) => content,
                Err(_) => return Ok(None),
            },
        };
        let is_same = self.identity == identity(&plain(&content));
        Ok(is_same.then_some(content))
    }

    pub(super) fn flags(&self) -> SeenFlags {
        let [stored, fields] = self.flags.each_ref().map(|flags| {
            let (flags, keywords) = flags.as_ref()?;
            let keywords = Keywords::of_names(keywords.iter().map(String::as_str));
            Some(MessageFlags::new(Flags::of_byte(*flags), keywords))
        });
        SeenFlags {
            stored,
            fields: fields.unwrap_or_default(),
        }
    }
}

/// Place where the content of a candidate can be read.
#[derive(Serialize, Deserialize)]
pub(super) enum StoredMessage {
    /// In the mailbox itself.
    File { path: PathBuf, at: u64, length: u64 },
    /// The temporary file.
    Spooled { at: u64, length: u64 },
}

/// Returns the place of a message. Content that cannot be read again is copied to the temporary file.
pub(super) fn stored(
    message: &MessageResult<'_>,
    file: &Mutex<SpoolWriter>,
) -> io::Result<StoredMessage> {
    let length = message.content.len() as u64;
    Ok(match message.at {
        Some(at) => StoredMessage::File {
            path: PathBuf::from(&message.named.source),
            at,
            length,
        },
        None => StoredMessage::Spooled {
            at: unpoisoned(file.lock()).push(message.content)?,
            length,
        },
    })
}

/// Returns `length` bytes of a file, or fewer if the file has become shorter.
fn read_at(path: &Path, at: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Key for changes and key for copies. The second is `None` if copies are not accepted or if both keys are equal. Keys
/// are half digests: a collision only causes a needless comparison.
pub(super) type MessageKeys = [Option<u64>; 2];

pub(super) fn temporary(error: io::Error) -> Error {
    Error::cannot_write("a temporary file")(error)
}
