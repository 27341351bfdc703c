//! Reads the messages of all sources, decides which mails are kept, and returns these mails in order.

mod arrivals;
mod decision;
mod kept;
mod numbers;
mod tally;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::record::{self, MessageRecord, SpoolEntry};
use super::spool::MessageSpool;
use crate::error::Error;
use crate::spool::Sorter;

pub(crate) use self::arrivals::ArrivalBatch;
pub(crate) use self::kept::KeptSelection;
pub(crate) use self::numbers::Numbers;
pub(crate) use self::tally::{MOST_SOURCES, Tally};

/// Total length of the mails in one batch, in bytes. A thread compares one batch at a time, or reads it for the result. A
/// batch ends with the mail, or the group of mails, that reaches this length, so it can be longer.
const LONGEST_BATCH: usize = 256 << 10;

/// The order of the mails in the result.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub(crate) enum Order {
    /// By the Date field; mails without a date come last.
    #[default]
    Date,
    /// In the order in which they were first read.
    First,
}

/// Lengths of the files of an index, and its counts.
#[derive(Clone, Default, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Position {
    pub(super) spool: u64,
    /// Position in the file, in bytes, and number of records of each sorted run.
    pub(super) runs: Vec<(u64, u64)>,
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

/// Collects the messages of all sources in temporary files.
pub(crate) struct MergeIndex {
    directory: PathBuf,
    spool: MessageSpool,
    sorter: Sorter<{ record::LENGTH }>,
    tally: Tally,
}

impl MergeIndex {
    /// Creates unnamed temporary files in `directory`. They need about as much space as all different messages
    /// together.
    pub(crate) fn new(directory: &Path) -> Result<Self, Error> {
        Ok(Self {
            directory: directory.to_owned(),
            spool: MessageSpool::new(temporary(directory)?),
            sorter: Sorter::new(temporary(directory)?),
            tally: Tally::default(),
        })
    }

    /// Continues with files that contain the messages up to this position.
    pub(super) fn continued(
        directory: &Path,
        (spool, records): (File, File),
        position: &Position,
    ) -> Result<Self, Error> {
        let spool = MessageSpool::continued(spool, position.spool);
        Ok(Self {
            directory: directory.to_owned(),
            spool: spool.map_err(cannot_write(directory))?,
            sorter: Sorter::continued(records, position.runs.clone()),
            tally: Tally {
                messages: position.messages,
                bytes: position.bytes,
                ..Tally::default()
            },
        })
    }

    /// Writes everything to the files, and returns their lengths.
    pub(super) fn save(&mut self) -> Result<Position, Error> {
        let failed = cannot_write(&self.directory);
        Ok(Position {
            spool: self.spool.save().map_err(&failed)?,
            runs: self.sorter.save().map_err(&failed)?.to_vec(),
            messages: self.tally.messages,
            bytes: self.tally.bytes,
        })
    }

    /// Length of all messages so far, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.tally.bytes
    }

    /// Adds messages of a folder. `source` and `folder` are the numbers of the source and the folder.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn add(
        &mut self,
        (source, folder): (u32, u32),
        arrivals: &ArrivalBatch,
    ) -> Result<(), Error> {
        let failed = cannot_write(&self.directory);
        let mut rest = arrivals.bytes.as_slice();
        for record in &arrivals.records {
            let SpoolEntry { about, length, .. } = record.entry;
            let (about, behind) = rest.split_at(about as usize);
            let (content, behind) = behind.split_at(length as usize);
            rest = behind;
            let entry = self.spool.push(record.identity, about, content);
            let record = MessageRecord {
                number: self.tally.messages,
                entry: entry.map_err(&failed)?,
                source,
                folder,
                ..*record
            };
            self.tally.messages += 1;
            self.tally.bytes += length;
            self.sorter.push(record.encode()).map_err(&failed)?;
        }
        Ok(())
    }
}

fn temporary(directory: &Path) -> Result<File, Error> {
    tempfile::tempfile_in(directory).map_err(cannot_write(directory))
}

fn cannot_write(directory: &Path) -> impl Fn(io::Error) -> Error + use<> {
    let what = format!("a temporary file in {}", directory.display());
    move |error| Error::cannot_write(&what)(error)
}
