//! The record of a message in the sorted index on disk. A record is small (82 bytes), because there is one for each
//! message of all sources.

use crate::engine::same::Digest;
use crate::mailbox::Flags;

/// Length of a record, in bytes.
pub(super) const LENGTH: usize = 82;

const _: () = assert!(LENGTH <= 100);

/// A message of a source. Records are sorted by `key`, then by `identity`, then by `number`, so copies of a mail follow
/// each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Record {
    /// Digest of the Message-ID, which is the same for all copies of a mail. A mail without a Message-ID has the digest
    /// of other fields and of its text.
    pub(super) key: [u8; 16],
    /// Digest of the content, which is the same for identical copies.
    pub(super) identity: [u8; 16],
    /// Number of the message in the order of reading, over all sources.
    pub(super) number: u64,
    /// Position of the message in the temporary file of all messages (`spool`), in bytes.
    pub(super) place: u64,
    /// Length of the message, in bytes.
    pub(super) length: u64,
    /// Date of the message, in seconds since 1970. `i64::MAX` if the message has no date.
    pub(super) date: i64,
    /// Numbers of the source and the folder.
    pub(super) source: u32,
    pub(super) folder: u32,
    pub(super) flags: Flags,
    /// Whether the message has keywords or labels.
    pub(super) has_words: bool,
}

impl Record {
    pub(super) fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        let mut rest = bytes.as_mut_slice();
        let mut put = |field: &[u8]| {
            if let Some((place, behind)) =
                std::mem::take(&mut rest).split_at_mut_checked(field.len())
            {
                place.copy_from_slice(field);
                rest = behind;
            }
        };
        put(&self.key);
        put(&self.identity);
        for number in [self.number, self.place, self.length] {
            put(&number.to_be_bytes());
        }
        put(&self.date.to_be_bytes());
        put(&self.source.to_be_bytes());
        put(&self.folder.to_be_bytes());
        put(&[self.flags.to_byte(), u8::from(self.has_words)]);
        bytes
    }

    pub(super) fn decode(bytes: &[u8; LENGTH]) -> Self {
        let mut reader = Reader(bytes);
        Self {
            key: reader.take(),
            identity: reader.take(),
            number: u64::from_be_bytes(reader.take()),
            place: u64::from_be_bytes(reader.take()),
            length: u64::from_be_bytes(reader.take()),
            date: i64::from_be_bytes(reader.take()),
            source: u32::from_be_bytes(reader.take()),
            folder: u32::from_be_bytes(reader.take()),
            flags: Flags::of_byte(reader.take::<1>()[0]),
            has_words: reader.take() == [1],
        }
    }

    pub(super) fn key_of(plain: &[u8]) -> [u8; 16] {
        crate::engine::same::copy_key(plain).to_bytes()
    }

    pub(super) fn identity_of(plain: &[u8]) -> [u8; 16] {
        Digest::of(plain).to_bytes()
    }
}

struct Reader<'r>(&'r [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk().unwrap_or((&[0; N], &[]));
        self.0 = rest;
        *field
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_is_read_as_it_was_written() {
        let record = Record {
            key: [1; 16],
            identity: [2; 16],
            number: 3,
            place: u64::MAX,
            length: 5,
            date: -6,
            source: 7,
            folder: 8,
            flags: Flags::of_byte(9),
            has_words: true,
        };
        assert_eq!(Record::decode(&record.encode()), record);
        let later = Record {
            number: 4,
            ..record
        };
        assert!(record.encode() < later.encode());
    }
}
