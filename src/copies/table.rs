//! The sorted records of the index, in which records are found by their keys. A small table is in memory, a large one in a
//! temporary file.

use std::io;

use super::record::{CopyKey, CopyRecord, KEY, LENGTH};
use crate::engine::same::MOST_COMPARED;
use crate::spool::{Sorter, Spool, SpoolWriter};

/// Maximum number of records in memory, which need 24 MiB. Larger tables are written to a temporary file.
const MOST_IN_MEMORY: usize = (24 << 20) / LENGTH;

/// Maximum number of records for one part that occurs in different mails. More than one is kept: if a mailbox changes during
/// the run, the part can still be read from another one.
const MOST_WITH_PART: usize = 4;

/// Maximum number of records of different mails with one Message-ID. It is one more than can be compared, so that the search
/// detects that there are too many.
const MOST_OF_MAIL: usize = MOST_COMPARED + 1;

pub(super) struct MailboxTable {
    records: Vec<[u8; LENGTH]>,
    /// Temporary file with the records, and their number, if there are too many for memory.
    file: Option<(Spool, u64)>,
}

impl MailboxTable {
    /// Sorts the records. Of the records of identical mails, which have the same key and identity, only the first one is kept.
    pub(super) fn of(sorter: Sorter<LENGTH>) -> io::Result<Self> {
        Self::with_memory(sorter, MOST_IN_MEMORY)
    }

    fn with_memory(sorter: Sorter<LENGTH>, most_in_memory: usize) -> io::Result<Self> {
        let mut sorted = sorter.sorted()?;
        let mut records: Vec<[u8; LENGTH]> = Vec::new();
        let mut writer: Option<SpoolWriter> = None;
        // The record that was kept last, and how many records with its key were kept.
        let mut last: Option<(CopyRecord, usize)> = None;
        while let Some(bytes) = sorted.next()? {
            let record = CopyRecord::decode(&bytes);
            let of_key = match &last {
                Some((before, count)) if before.key == record.key => {
                    let most = match record.key {
                        CopyKey::Mail(_) => MOST_OF_MAIL,
                        CopyKey::Sha256(_) | CopyKey::Md5(_) => MOST_WITH_PART,
                    };
                    if before.identity == record.identity || *count >= most {
                        continue;
                    }
                    count + 1
                }
                _ => 1,
            };
            last = Some((record, of_key));
            if records.len() >= most_in_memory {
                let mut file = match writer.take() {
                    Some(file) => file,
                    None => SpoolWriter::temporary()?,
                };
                file.push(records.as_flattened())?;
                records.clear();
                writer = Some(file);
            }
            records.push(bytes);
        }
        let Some(mut file) = writer else {
            records.shrink_to_fit();
            return Ok(Self {
                records,
                file: None,
            });
        };
        file.push(records.as_flattened())?;
        let count = file.end() / LENGTH as u64;
        Ok(Self {
            records: Vec::new(),
            file: Some((file.finish()?, count)),
        })
    }

    fn len(&self) -> u64 {
        match &self.file {
            Some((_, count)) => *count,
            None => self.records.len() as u64,
        }
    }

    fn get(&self, at: u64) -> io::Result<[u8; LENGTH]> {
        if let Some((file, _)) = &self.file {
            let mut bytes = [0; LENGTH];
            file.read_into(&mut bytes, at * LENGTH as u64)?;
            return Ok(bytes);
        }
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let record = self.records.get(at).copied();
        record.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Returns all records with this key.
    pub(super) fn find(&self, key: CopyKey) -> io::Result<Vec<CopyRecord>> {
        let wanted = key.encode();
        let key_at = |at: u64| -> io::Result<[u8; KEY]> {
            let record = self.get(at)?;
            Ok(*record.first_chunk().unwrap_or(&[0; KEY]))
        };
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if key_at(middle)? < wanted {
                low = middle + 1
            } else {
                high = middle
            }
        }
        let mut found = Vec::new();
        while low < self.len() && key_at(low)? == wanted {
            found.push(CopyRecord::decode(&self.get(low)?));
            low += 1;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{MailPlace, MailStorage};
    use super::*;

    fn record(key: CopyKey, identity: u8, number: u64) -> CopyRecord {
        CopyRecord {
            key,
            identity: [identity; 16],
            place: MailPlace {
                name: 0,
                number,
                at: 0,
                length: 0,
                file: MailStorage::Spool,
            },
            part: 0,
        }
    }

    #[test]
    fn identical_mails_are_one_and_the_first_is_found_in_memory_and_in_a_file() {
        for most in [2, 1000] {
            let mut sorter = Sorter::new(tempfile::tempfile().unwrap());
            for number in (1..=40_u64).rev() {
                let key = CopyKey::Mail([(number % 4) as u8; 16]);
                let same = record(key, (number % 8) as u8, number);
                sorter.push(same.encode()).unwrap();
            }
            let table = MailboxTable::with_memory(sorter, most).unwrap();
            assert_eq!(table.file.is_some(), most == 2);
            let found = table.find(CopyKey::Mail([1; 16])).unwrap();
            let numbers: Vec<u64> = found.iter().map(|it| it.place.number).collect();
            assert_eq!(numbers, [1, 5], "{most}");
            for other in [
                CopyKey::Sha256([1; 16]),
                CopyKey::Mail([4; 16]),
                CopyKey::Md5([0; 16]),
            ] {
                assert!(table.find(other).unwrap().is_empty(), "{most}");
            }
        }
    }

    #[test]
    fn million_mails_of_one_message_id_are_a_bounded_number_of_records() {
        let mut sorter = Sorter::new(tempfile::tempfile().unwrap());
        for number in 0..1_000_u64 {
            for key in [CopyKey::Mail([7; 16]), CopyKey::Sha256([7; 16])] {
                let mut record = record(key, 0, number);
                record.identity[..8].copy_from_slice(&number.to_be_bytes());
                sorter.push(record.encode()).unwrap();
            }
        }
        let table = MailboxTable::of(sorter).unwrap();
        assert_eq!(
            table.find(CopyKey::Mail([7; 16])).unwrap().len(),
            MOST_OF_MAIL
        );
        let with_part = table.find(CopyKey::Sha256([7; 16])).unwrap();
        assert_eq!(with_part.len(), MOST_WITH_PART);
    }
}
