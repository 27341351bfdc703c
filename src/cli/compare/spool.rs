//! The temporary file: a record of each message of OLD without an identical message in NEW, and the content of messages that
//! cannot be read again.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::reading::LostMessage;
use crate::engine::same::{Digest, MailCopy};
use crate::error::Error;
use crate::mailbox::{Flags, Keywords, MessageFlags};

/// A message of OLD without an identical message in NEW, as it is stored in the temporary file.
#[derive(Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) identity: Digest,
    pub(super) named: LostMessage,
    pub(super) stored: StoredMessage,
    pub(super) flags: Option<(u8, Vec<String>)>,
    /// The description with which copies of the mail are recognised, if the command accepts them.
    pub(super) copy: Option<MailCopy>,
}

impl Record {
    pub(super) fn flags(&self) -> Option<MessageFlags> {
        let (flags, keywords) = self.flags.as_ref()?;
        let keywords = Keywords::of_names(keywords.iter().map(String::as_str));
        Some(MessageFlags::new(Flags::of_byte(*flags), keywords))
    }
}

/// The content of a message.
#[derive(Serialize, Deserialize)]
pub(super) enum StoredMessage {
    File { path: PathBuf, at: u64, length: u64 },
    Spooled { at: u64, length: u64 },
}

/// The temporary file.
pub(super) struct Spool {
    writer: BufWriter<File>,
    pub(super) end: u64,
}

impl Spool {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            writer: BufWriter::new(tempfile::tempfile()?),
            end: 0,
        })
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let at = self.end;
        self.writer.write_all(bytes)?;
        self.end += bytes.len() as u64;
        Ok(at)
    }

    pub(super) fn read(&mut self, at: u64, length: u64) -> io::Result<Vec<u8>> {
        self.writer.flush()?;
        read_at(self.writer.get_mut(), at, length)
    }
}

pub(super) fn read_at(file: &mut File, at: u64, length: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(super) fn temporary(error: io::Error) -> Error {
    Error::cannot_write("a temporary file")(error)
}
