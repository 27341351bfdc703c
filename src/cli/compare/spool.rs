//! The temporary file with the messages of OLD for which NEW has no identical message, and the search in it.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};

use serde::{Deserialize, Serialize};

use super::reading::Described;
use crate::engine::same::{
    Altered, Changes, Description, Digest, MOST_COMPARED, MailCopy, changes, covers,
};
use crate::error::Error;

/// A message of OLD without an identical message in NEW, as it is stored in the temporary file.
#[derive(Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) source: String,
    pub(super) index: u64,
    pub(super) called: String,
    pub(super) description: Description,
    pub(super) copy: Option<MailCopy>,
}

/// A message of OLD without an identical message in NEW: its position in the temporary file, and whether NEW contains a
/// version of it.
pub(super) struct Entry {
    pub(super) key: Digest,
    pub(super) at: u64,
    pub(super) is_found: bool,
    /// Reason why a message of NEW is not a version of this message, although both have the same key. If NEW has several
    /// such messages, the reason is about the last one. `None` if NEW has no message with this key.
    pub(super) altered: Option<Altered>,
}

/// Writer of [`Record`]s to a temporary file.
pub(super) struct Spool {
    writer: BufWriter<File>,
    end: u64,
}

impl Spool {
    pub(super) fn new() -> Result<Self, Error> {
        let file = tempfile::tempfile().map_err(temporary)?;
        Ok(Self {
            writer: BufWriter::new(file),
            end: 0,
        })
    }

    /// Appends a record, and returns its position in the file.
    pub(super) fn push(&mut self, record: &Record) -> io::Result<u64> {
        let bytes = serde_json::to_vec(record)?;
        let at = self.end;
        self.writer.write_all(&(bytes.len() as u64).to_be_bytes())?;
        self.writer.write_all(&bytes)?;
        self.end += 8 + bytes.len() as u64;
        Ok(at)
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    pub(super) fn record(&mut self, at: u64) -> io::Result<Record> {
        let file = self.writer.get_mut();
        file.seek(SeekFrom::Start(at))?;
        let mut length = [0; 8];
        file.read_exact(&mut length)?;
        let mut bytes = Vec::new();
        file.take(u64::from_be_bytes(length))
            .read_to_end(&mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// Finds the messages of OLD that `new` replaces: the message from which embody made it, and all messages of which
    /// it is a copy. `entries` are sorted by key.
    pub(super) fn place(
        &mut self,
        entries: &mut [Entry],
        new: &Described,
    ) -> io::Result<Vec<Changes>> {
        let key = new.key();
        let start = entries.partition_point(|entry| entry.key < key);
        let rest = entries.get_mut(start..).unwrap_or_default();
        let count = rest.partition_point(|entry| entry.key == key);
        let candidates = rest.get_mut(..count).unwrap_or_default();
        let mut found = Vec::new();
        // At most [`MOST_COMPARED`] messages are compared. Otherwise the time would grow with the square of their
        // number if a million messages have the same Message-ID.
        for entry in candidates
            .iter_mut()
            .filter(|entry| !entry.is_found)
            .take(MOST_COMPARED)
        {
            let record = self.record(entry.at)?;
            let is_copy = match (&new.copy, &record.copy) {
                (Some((_, new)), Some(old)) => covers(new, old).is_ok(),
                _ => false,
            };
            if is_copy {
                entry.is_found = true;
                found.push(Changes {
                    merged: 1,
                    ..Changes::default()
                });
                continue;
            }
            match changes(&record.description, &new.description) {
                // With `--merged`, a version of the message from which an attachment was detached is not accepted.
                // `merge` drops a copy only if the copy that it keeps is at least as complete, so this result has lost
                // content.
                Ok(_) if new.copy.is_some() => {}
                Ok(changes) => {
                    entry.is_found = true;
                    found.push(changes);
                    return Ok(found);
                }
                Err(altered) => entry.altered = Some(altered),
            }
        }
        Ok(found)
    }
}

pub(super) fn temporary(error: io::Error) -> Error {
    Error::cannot_write("a temporary file")(error)
}
