//! Copies the messages of all sources into a temporary file (the spool), so that each source is read only once. The
//! content of a message that is identical to an earlier one is not written again, as long as the digest of the earlier
//! one is in memory.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io;

use super::record::SpoolEntry;
use super::words::MailWords;
use crate::spool::{Spool, SpoolWriter};

/// Maximum number of digests in memory. After that, identical messages are stored twice in the spool, but are still
/// merged.
const MOST_KNOWN: usize = 400_000;

/// Length of the fixed start of an entry: the position and the length of its content. [`MailFacts`] follow, and then
/// the content, unless it is that of an earlier entry.
const HEAD: usize = 16;

pub(super) struct MessageSpool {
    writer: SpoolWriter,
    known: HashMap<[u8; 16], (u64, u64)>,
}

/// Metadata of a message in its mailbox, without the content.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct MailFacts<'b> {
    pub(super) sender: Cow<'b, str>,
    /// Time of arrival of the message, in seconds since 1970.
    pub(super) arrived: Option<u64>,
    pub(super) separator: Option<Cow<'b, [u8]>>,
    pub(super) words: MailWords,
}

impl<'b> MailFacts<'b> {
    /// Encodes the metadata into `bytes`. Keywords are JSON, which costs little: most messages have none.
    pub(super) fn encode_into(&self, bytes: &mut Vec<u8>) {
        let arrived = self.arrived.map(u64::to_be_bytes);
        let words = if self.words.is_empty() {
            None
        } else {
            serde_json::to_vec(&self.words).ok()
        };
        let fields = [
            Some(self.sender.as_bytes()),
            arrived.as_ref().map(<[u8; 8]>::as_slice),
            self.separator.as_deref(),
            words.as_deref(),
        ];
        for field in fields {
            let length = field.map_or(ABSENT, |field| field.len() as u32);
            bytes.extend(length.to_be_bytes());
            bytes.extend_from_slice(field.unwrap_or_default());
        }
    }

    fn decode(mut bytes: &'b [u8]) -> Option<Self> {
        let mut next = || {
            let (length, rest) = bytes.split_first_chunk()?;
            let length = u32::from_be_bytes(*length);
            if length == ABSENT {
                bytes = rest;
                return Some(None);
            }
            let (field, rest) = rest.split_at_checked(length as usize)?;
            bytes = rest;
            Some(Some(field))
        };
        let [sender, arrived, separator, words] = [next()?, next()?, next()?, next()?];
        let words = words.map(serde_json::from_slice).transpose().ok()?;
        Some(Self {
            sender: std::str::from_utf8(sender?).ok()?.into(),
            arrived: arrived
                .map(|bytes| Some(u64::from_be_bytes(bytes.try_into().ok()?)))
                .unwrap_or_default(),
            separator: separator.map(Cow::Borrowed),
            words: words.unwrap_or_default(),
        })
    }
}

/// Length that marks a field of [`MailFacts`] as absent.
const ABSENT: u32 = u32::MAX;

impl MessageSpool {
    pub(super) fn new(file: File) -> Self {
        Self::of(SpoolWriter::new(file))
    }

    /// Continues a spool of this length. The digests of its messages are no longer in memory, so later identical
    /// messages are stored again.
    pub(super) fn continued(file: File, end: u64) -> io::Result<Self> {
        Ok(Self::of(SpoolWriter::continued(file, end)?))
    }

    fn of(writer: SpoolWriter) -> Self {
        Self {
            writer,
            known: HashMap::new(),
        }
    }

    /// Writes all messages to the file, and returns its length.
    pub(super) fn save(&mut self) -> io::Result<u64> {
        self.writer.save()
    }

    /// Appends a message with its encoded metadata, and returns its entry. `identity` is the digest of its content.
    pub(super) fn push(
        &mut self,
        identity: [u8; 16],
        about: &[u8],
        content: &[u8],
    ) -> io::Result<SpoolEntry> {
        let place = self.writer.end();
        let own = (place + (HEAD + about.len()) as u64, content.len() as u64);
        let known = self.known.get(&identity).copied();
        let (at, length) = known.unwrap_or(own);
        self.writer.push(&at.to_be_bytes())?;
        self.writer.push(&length.to_be_bytes())?;
        self.writer.push(about)?;
        if known.is_none() {
            self.writer.push(content)?;
            if self.known.len() < MOST_KNOWN {
                self.known.insert(identity, own);
            }
        }
        Ok(SpoolEntry {
            place,
            about: about.len() as u32,
            length: own.1,
        })
    }

    pub(super) fn finish(self) -> io::Result<CompleteSpool> {
        Ok(CompleteSpool(self.writer.finish()?))
    }
}

/// A complete spool, which can be read.
pub(super) struct CompleteSpool(Spool);

impl CompleteSpool {
    /// Reads the keywords of a message.
    pub(super) fn words(&self, entry: SpoolEntry) -> io::Result<MailWords> {
        let bytes = self
            .0
            .read(entry.place, HEAD as u64 + u64::from(entry.about))?;
        Ok(parts(&bytes, entry)?.0.words)
    }

    /// Reads the content of a message.
    pub(super) fn content(&self, entry: SpoolEntry) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let length = self.read(entry, &mut bytes)?.1.len();
        bytes.drain(..bytes.len() - length);
        Ok(bytes)
    }

    /// Reads the metadata and the content of a message into `bytes`, and replaces what was there.
    pub(super) fn read<'b>(
        &self,
        entry: SpoolEntry,
        bytes: &'b mut Vec<u8>,
    ) -> io::Result<(MailFacts<'b>, &'b [u8])> {
        // Content usually follows its metadata, so both are read at once. If the content belongs to an earlier entry,
        // the bytes read too far are ignored, and may be missing at the end of the file.
        let before = HEAD + entry.about as usize;
        let length = usize::try_from(entry.length).map_err(io::Error::other)?;
        bytes.resize(before + length, 0);
        let filled = self.0.read_most(bytes, entry.place)?;
        bytes.truncate(filled);
        let (_, at, length) = parts(bytes, entry)?;
        let length = usize::try_from(length).map_err(io::Error::other)?;
        if at != entry.place + before as u64 || bytes.len() != before + length {
            bytes.resize(before + length, 0);
            self.0.read_into(&mut bytes[before..], at)?;
        }
        let (about, ..) = parts(bytes, entry)?;
        Ok((about, &bytes[before..]))
    }
}

/// Returns the metadata of an entry, and the position and length of its content.
fn parts(bytes: &[u8], entry: SpoolEntry) -> io::Result<(MailFacts<'_>, u64, u64)> {
    let parts = || {
        let (at, rest) = bytes.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let about = MailFacts::decode(rest.get(..entry.about as usize)?)?;
        Some((about, u64::from_be_bytes(*at), u64::from_be_bytes(*length)))
    };
    parts().ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(about: &MailFacts<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        about.encode_into(&mut bytes);
        bytes
    }

    #[test]
    fn identical_content_is_written_once_and_read_for_each_message() {
        let mut spool = MessageSpool::new(tempfile::tempfile().unwrap());
        fn of(sender: &str) -> MailFacts<'_> {
            MailFacts {
                sender: sender.into(),
                ..MailFacts::default()
            }
        }
        let content = vec![b'x'; 1000];
        let mut push =
            |id, sender, content: &[u8]| spool.push([id; 16], &encoded(&of(sender)), content);
        let one = push(1, "a", &content).unwrap();
        let two = push(1, "b", b"not written").unwrap();
        let three = push(2, "c", b"").unwrap();
        // Same id as the first entry, so the content must not be written again. Otherwise the file would grow by 1000
        // bytes.
        let four = push(1, "d", &content).unwrap();
        assert!(four.place - two.place < 200);
        let spooled = spool.finish().unwrap();
        let mut bytes = Vec::new();
        for (entry, sender, expected) in [
            (one, "a", &content[..]),
            (two, "b", &content),
            (three, "c", b""),
            (four, "d", &content),
        ] {
            // The buffer still contains the previous message. `read` must replace this message.
            let read = spooled.read(entry, &mut bytes).unwrap();
            assert_eq!(read, (of(sender), expected));
            assert_eq!(spooled.content(entry).unwrap(), expected);
            assert_eq!(spooled.words(entry).unwrap(), MailWords::default());
        }
    }

    #[test]
    fn metadata_with_and_without_each_field_is_read_as_it_was_written() {
        let full = MailFacts {
            sender: "a@b.example".into(),
            arrived: Some(u64::MAX),
            separator: Some(b"From \xff".into()),
            words: MailWords::of(b"X-Keywords: one\n\n"),
        };
        let empty_separator = MailFacts {
            separator: Some(Cow::default()),
            ..MailFacts::default()
        };
        for about in [full, empty_separator, MailFacts::default()] {
            let bytes = encoded(&about);
            assert_eq!(MailFacts::decode(&bytes), Some(about));
            assert_eq!(MailFacts::decode(&bytes[..bytes.len() - 1]), None);
        }
    }
}
