//! Record of a candidate (a message of OLD without an identical message in NEW) in the temporary file.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::reading::LostMessage;
use crate::engine::same::{Digest, MailCopy};
use crate::mailbox::{Flags, Keywords, MessageFlags};

/// A message of OLD without an identical message in NEW.
#[derive(Serialize, Deserialize)]
pub(super) struct CandidateRecord {
    pub(super) identity: Digest,
    pub(super) named: LostMessage,
    pub(super) stored: StoredMessage,
    pub(super) flags: Option<(u8, Vec<String>)>,
    /// Description by which copies of the mail are recognised. `None` if the command does not accept copies.
    pub(super) copy: Option<MailCopy>,
}

impl CandidateRecord {
    pub(super) fn flags(&self) -> Option<MessageFlags> {
        let (flags, keywords) = self.flags.as_ref()?;
        let keywords = Keywords::of_names(keywords.iter().map(String::as_str));
        Some(MessageFlags::new(Flags::of_byte(*flags), keywords))
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

/// Returns `length` bytes of a file, or fewer if the file has become shorter.
pub(super) fn read_at(path: &Path, at: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}
