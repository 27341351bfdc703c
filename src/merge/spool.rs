//! Copies the messages of all sources into a temporary file (the spool), so that each source is read only once. The
//! content of a message that is identical to an earlier one is not written again, as long as the digest of the earlier
//! one is in memory.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write as _};

use serde::{Deserialize, Serialize};

use super::words::Words;
use crate::platform::FileExt as _;

/// Maximum number of digests in memory. After that, identical messages are stored twice in the spool, but are still
/// merged.
const MOST_KNOWN: usize = 400_000;

/// Number of bytes before each entry. They contain the length of [`About`] as JSON, and the position and length of the
/// content.
const HEAD: usize = 20;

pub(super) struct Spool {
    writer: BufWriter<File>,
    end: u64,
    known: HashMap<[u8; 16], (u64, u64)>,
}

/// Metadata of a message in its mailbox, without the content.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct About {
    pub(super) sender: String,
    /// Time of arrival of the message, in seconds since 1970.
    pub(super) arrived: Option<u64>,
    pub(super) separator: Option<Vec<u8>>,
    pub(super) words: Words,
}

impl Spool {
    pub(super) fn new(file: File) -> Self {
        Self {
            writer: BufWriter::with_capacity(1 << 20, file),
            end: 0,
            known: HashMap::new(),
        }
    }

    /// Continues a file of this length. The digests of its messages are not known any more, so identical messages that
    /// follow are stored again.
    pub(super) fn continued(mut file: File, end: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(end))?;
        Ok(Self {
            end,
            ..Self::new(file)
        })
    }

    /// Writes all messages to the file, and returns its length.
    pub(super) fn save(&mut self) -> io::Result<u64> {
        self.writer.flush()?;
        Ok(self.end)
    }

    /// Appends a message, and returns the position of its entry. `identity` is the digest of its content.
    pub(super) fn push(
        &mut self,
        identity: [u8; 16],
        about: &About,
        content: &[u8],
    ) -> io::Result<u64> {
        let place = self.end;
        let about = serde_json::to_vec(about)?;
        let own = (place + (HEAD + about.len()) as u64, content.len() as u64);
        let known = self.known.get(&identity).copied();
        let (at, length) = known.unwrap_or(own);
        self.writer.write_all(&(about.len() as u32).to_be_bytes())?;
        self.writer.write_all(&at.to_be_bytes())?;
        self.writer.write_all(&length.to_be_bytes())?;
        self.writer.write_all(&about)?;
        self.end = own.0;
        if known.is_none() {
            self.writer.write_all(content)?;
            self.end += own.1;
            if self.known.len() < MOST_KNOWN {
                self.known.insert(identity, own);
            }
        }
        Ok(place)
    }

    pub(super) fn finish(self) -> io::Result<Spooled> {
        let file = self
            .writer
            .into_inner()
            .map_err(|error| error.into_error())?;
        Ok(Spooled(file))
    }
}

/// A complete spool, which can be read.
pub(super) struct Spooled(File);

impl Spooled {
    fn head(&self, place: u64) -> io::Result<(About, u64, u64)> {
        let mut head = [0; HEAD];
        self.0.read_exact_at(&mut head, place)?;
        let [a, b, c, d, rest @ ..] = head;
        let mut about = vec![0; u32::from_be_bytes([a, b, c, d]) as usize];
        self.0.read_exact_at(&mut about, place + HEAD as u64)?;
        let [at, length] = [rest.get(..8), rest.get(8..)].map(|bytes| {
            let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
            u64::from_be_bytes(bytes.unwrap_or_default())
        });
        Ok((serde_json::from_slice(&about)?, at, length))
    }

    pub(super) fn about(&self, place: u64) -> io::Result<About> {
        Ok(self.head(place)?.0)
    }

    pub(super) fn read(&self, place: u64) -> io::Result<(About, Vec<u8>)> {
        let (about, at, length) = self.head(place)?;
        let length = usize::try_from(length).map_err(io::Error::other)?;
        let mut content = vec![0; length];
        self.0.read_exact_at(&mut content, at)?;
        Ok((about, content))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identical_content_is_written_once_and_read_for_each_message() {
        let mut spool = Spool::new(tempfile::tempfile().unwrap());
        let of = |sender: &str| About {
            sender: sender.to_owned(),
            ..About::default()
        };
        let content = vec![b'x'; 1000];
        let one = spool.push([1; 16], &of("a"), &content).unwrap();
        let end = spool.end;
        let two = spool.push([1; 16], &of("b"), b"not written").unwrap();
        assert!(spool.end - end < 200);
        let three = spool.push([2; 16], &of("c"), b"").unwrap();
        let spooled = spool.finish().unwrap();
        for (place, sender, expected) in [
            (one, "a", &content[..]),
            (two, "b", &content),
            (three, "c", b""),
        ] {
            assert_eq!(
                spooled.read(place).unwrap(),
                (of(sender), expected.to_vec())
            );
        }
    }
}
