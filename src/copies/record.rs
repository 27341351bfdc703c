//! The record of a mail or of one of its parts in the index. A record has a fixed length of less than 100 bytes, so that
//! millions of records can be sorted.

use crate::mailbox::Quoting;
use crate::spool::{RecordReader, RecordWriter};

/// Bytes of a record.
pub(super) const LENGTH: usize = 70;

const _: () = assert!(LENGTH <= 100);

/// Length of a key in bytes: one byte for its kind, and a digest of 16 bytes.
pub(super) const KEY: usize = 17;

/// An entry of the index: one key of a mail, and where the mail is. Records are sorted by their bytes: by key, then by
/// the identity of the mail, then in reading order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct CopyRecord {
    pub(super) key: CopyKey,
    /// Digest of the mail in its plain form, which is equal for identical copies.
    pub(super) identity: [u8; 16],
    pub(super) place: MailPlace,
    /// Number of the part whose digest is the key, in the order of the mail. 0 if the key is that of a whole mail.
    pub(super) part: u32,
}

/// A digest by which a mail can be found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum CopyKey {
    /// Digest that all copies of a mail share ([`copy_key`](crate::engine::same::copy_key)), even if some of them lack
    /// parts.
    Mail([u8; 16]),
    /// First half of the SHA-256 of a part.
    Sha256([u8; 16]),
    /// The MD5 of a part.
    Md5([u8; 16]),
}

impl CopyKey {
    pub(super) fn encode(self) -> [u8; KEY] {
        let (kind, digest) = match self {
            Self::Mail(digest) => (0, digest),
            Self::Sha256(digest) => (1, digest),
            Self::Md5(digest) => (2, digest),
        };
        let mut bytes = [kind; KEY];
        if let Some(place) = bytes.last_chunk_mut() {
            *place = digest;
        }
        bytes
    }

    fn decode([kind, digest @ ..]: [u8; KEY]) -> Self {
        match kind {
            0 => Self::Mail(digest),
            1 => Self::Sha256(digest),
            _ => Self::Md5(digest),
        }
    }
}

/// Where a mail can be read again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct MailPlace {
    /// Position of the mailbox's name in the temporary file of names.
    pub(super) name: u64,
    /// Number of the mail in its mailbox, counted from 1, for reports.
    pub(super) number: u64,
    /// Position of the first byte of the mail in its file.
    pub(super) at: u64,
    /// Length of the mail in this file, in bytes.
    pub(super) length: u64,
    pub(super) file: MailStorage,
}

/// The file from which the bytes of a mail are read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum MailStorage {
    /// The mailbox in which the mail was found. The value is the kind of quoting (`>From `) that must be removed from the
    /// mail when it is read again.
    Mailbox(Quoting),
    /// The temporary file for mails that cannot be read again from their mailbox, for example because the mailbox is
    /// compressed. The mails in the temporary file have no quoting.
    Spool,
}

impl MailStorage {
    fn encode(self) -> u8 {
        match self {
            Self::Mailbox(Quoting::None) => 0,
            Self::Mailbox(Quoting::O) => 1,
            Self::Mailbox(Quoting::Rd) => 2,
            Self::Spool => 3,
        }
    }

    fn decode(byte: u8) -> Self {
        match byte {
            0 => Self::Mailbox(Quoting::None),
            1 => Self::Mailbox(Quoting::O),
            2 => Self::Mailbox(Quoting::Rd),
            _ => Self::Spool,
        }
    }
}

impl CopyRecord {
    pub(super) fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        let mut writer = RecordWriter::new(&mut bytes);
        writer.put(self.key.encode());
        writer.put(self.identity);
        let place = &self.place;
        for number in [place.name, place.number, place.at, place.length] {
            writer.put_u64(number);
        }
        writer.put([place.file.encode()]);
        writer.put_u32(self.part);
        bytes
    }

    pub(super) fn decode(bytes: &[u8; LENGTH]) -> Self {
        let mut reader = RecordReader::new(bytes);
        Self {
            key: CopyKey::decode(reader.take()),
            identity: reader.take(),
            place: MailPlace {
                name: reader.take_u64(),
                number: reader.take_u64(),
                at: reader.take_u64(),
                length: reader.take_u64(),
                file: MailStorage::decode(reader.take_u8()),
            },
            part: reader.take_u32(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_is_read_as_it_was_written() {
        let keys = [
            CopyKey::Mail([1; 16]),
            CopyKey::Sha256([2; 16]),
            CopyKey::Md5([3; 16]),
        ];
        let files = [
            MailStorage::Mailbox(Quoting::None),
            MailStorage::Mailbox(Quoting::O),
            MailStorage::Mailbox(Quoting::Rd),
            MailStorage::Spool,
        ];
        for key in keys {
            for file in files {
                let record = CopyRecord {
                    key,
                    identity: [4; 16],
                    place: MailPlace {
                        name: 5,
                        number: 6,
                        at: u64::MAX,
                        length: 8,
                        file,
                    },
                    part: 9,
                };
                assert_eq!(CopyRecord::decode(&record.encode()), record);
                assert!(record.encode().starts_with(&key.encode()));
            }
        }
    }
}
