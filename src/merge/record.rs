//! The record of a message in the sorted index on disk. A record is small (86 bytes), because there is one for each
//! message of all sources.

use crate::mailbox::Flags;
use crate::spool::{RecordReader, RecordWriter};

/// Length of a record, in bytes.
pub(super) const LENGTH: usize = 86;

const _: () = assert!(LENGTH <= 100);

/// The entry of a message in the temporary file of all messages (`spool`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct SpoolEntry {
    /// Position of the entry, in bytes.
    pub(super) place: u64,
    /// Length of the metadata ([`MailFacts`](super::spool::MailFacts)) in bytes. With both lengths known, metadata and
    /// content are read at once.
    pub(super) about: u32,
    /// Length of the message, in bytes.
    pub(super) length: u64,
}

impl SpoolEntry {
    fn put_into(self, writer: &mut RecordWriter<'_>) {
        writer.put_u64(self.place);
        writer.put_u32(self.about);
        writer.put_u64(self.length);
    }

    fn take_from(reader: &mut RecordReader<'_>) -> Self {
        Self {
            place: reader.take_u64(),
            about: reader.take_u32(),
            length: reader.take_u64(),
        }
    }
}

/// A message of a source. Records are sorted by `key`, then by `identity`, then by `number`, so copies of a mail follow
/// each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MessageRecord {
    /// Digest of the Message-ID, which is the same for all copies of a mail. A mail without a Message-ID has the digest
    /// of other fields and of its text.
    pub(super) key: [u8; 16],
    /// Digest of the content, which is the same for identical copies.
    pub(super) identity: [u8; 16],
    /// Number of the message in the order of reading, over all sources.
    pub(super) number: u64,
    pub(super) entry: SpoolEntry,
    /// Date of the message, in seconds since 1970. `i64::MAX` if the message has no date.
    pub(super) date: i64,
    /// Numbers of the source and the folder.
    pub(super) source: u32,
    pub(super) folder: u32,
    pub(super) flags: Flags,
    /// Whether the message has keywords or labels.
    pub(super) has_words: bool,
}

impl MessageRecord {
    pub(super) fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        let mut writer = RecordWriter::new(&mut bytes);
        writer.put(self.key);
        writer.put(self.identity);
        writer.put_u64(self.number);
        self.entry.put_into(&mut writer);
        writer.put(self.date.to_be_bytes());
        writer.put_u32(self.source);
        writer.put_u32(self.folder);
        writer.put([self.flags.to_byte(), u8::from(self.has_words)]);
        bytes
    }

    pub(super) fn decode(bytes: &[u8; LENGTH]) -> Self {
        let mut reader = RecordReader::new(bytes);
        Self {
            key: reader.take(),
            identity: reader.take(),
            number: reader.take_u64(),
            entry: SpoolEntry::take_from(&mut reader),
            date: i64::from_be_bytes(reader.take()),
            source: reader.take_u32(),
            folder: reader.take_u32(),
            flags: Flags::of_byte(reader.take_u8()),
            has_words: reader.take() == [1],
        }
    }
}

/// Length of a [`KeptRecord`], in bytes.
pub(super) const KEPT_LENGTH: usize = 49;

/// A mail that is kept. Records are sorted by `order`, then by `number`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct KeptRecord {
    /// Place in the order of the result.
    pub(super) order: u64,
    /// Number of the mail in the order of reading, over all sources.
    pub(super) number: u64,
    pub(super) entry: SpoolEntry,
    /// Flags of all copies.
    pub(super) flags: Flags,
    pub(super) details: Details,
}

/// The folders and keywords of all copies of a mail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Details {
    /// The only folder with copies of the mail. Used if no copy has keywords that the kept copy lacks. This is the
    /// common case, which needs no entry in a temporary file.
    Folder(u32),
    /// Position of the folders and keywords in a temporary file, in bytes.
    Note(u64),
}

impl KeptRecord {
    pub(super) fn encode(&self) -> [u8; KEPT_LENGTH] {
        let mut bytes = [0; KEPT_LENGTH];
        let mut writer = RecordWriter::new(&mut bytes);
        writer.put_u64(self.order);
        writer.put_u64(self.number);
        self.entry.put_into(&mut writer);
        let (has_note, details) = match self.details {
            Details::Folder(folder) => (0, u64::from(folder)),
            Details::Note(place) => (1, place),
        };
        writer.put([self.flags.to_byte(), has_note]);
        writer.put_u64(details);
        bytes
    }

    pub(super) fn decode(bytes: &[u8; KEPT_LENGTH]) -> Self {
        let mut reader = RecordReader::new(bytes);
        let (order, number) = (reader.take_u64(), reader.take_u64());
        let entry = SpoolEntry::take_from(&mut reader);
        let [flags, has_note] = reader.take();
        let details = reader.take_u64();
        Self {
            order,
            number,
            entry,
            flags: Flags::of_byte(flags),
            details: match has_note {
                0 => Details::Folder(details as u32),
                _ => Details::Note(details),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_is_read_as_it_was_written() {
        let record = MessageRecord {
            key: [1; 16],
            identity: [2; 16],
            number: 3,
            entry: SpoolEntry {
                place: u64::MAX,
                about: 4,
                length: 5,
            },
            date: -6,
            source: 7,
            folder: 8,
            flags: Flags::of_byte(9),
            has_words: true,
        };
        assert_eq!(MessageRecord::decode(&record.encode()), record);
        let later = MessageRecord {
            number: 4,
            ..record
        };
        assert!(record.encode() < later.encode());
    }

    #[test]
    fn record_of_a_kept_mail_is_read_as_it_was_written() {
        for details in [Details::Folder(u32::MAX), Details::Note(u64::MAX)] {
            let record = KeptRecord {
                order: 1,
                number: 2,
                entry: SpoolEntry {
                    place: u64::MAX,
                    about: 4,
                    length: 5,
                },
                flags: Flags::of_byte(9),
                details,
            };
            assert_eq!(KeptRecord::decode(&record.encode()), record);
            let later = KeptRecord {
                number: 3,
                ..record
            };
            assert!(record.encode() < later.encode());
            let last = KeptRecord {
                order: 2,
                number: 0,
                ..record
            };
            assert!(later.encode() < last.encode());
        }
    }
}
