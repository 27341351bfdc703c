//! Messages before and after they get the form of a new mailbox.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};

#[cfg(feature = "cli")]
use crate::error::Error;
use crate::mailbox::Envelope;
use crate::mailbox::forms::flags::{Flags, MessageFlags};
use crate::mailbox::forms::keywords::Keywords;
use crate::mailbox::forms::proton::ProtonState;

pub(crate) struct PreparedMail<'m> {
    /// Content of the message, without quoting.
    pub(crate) content: &'m [u8],
    /// Flags and keywords that the source mailbox stores outside of the content. If `None`, the header fields contain
    /// them.
    pub(crate) flags: Option<MessageFlags>,
    /// Keywords in addition to those of the flags.
    pub(crate) keywords: Keywords,
    pub(crate) envelope: Envelope,
    /// The `From ` line of the message, without its line ending, if an mbox gets this line unchanged. `None` if the
    /// message has no such line, or if some programs do not understand its date. An mbox then gets a new line.
    pub(crate) separator: Option<&'m [u8]>,
    /// Folders of the message in the archive that contains its mailbox. `None` if it is not in an archive.
    #[cfg_attr(not(all(unix, feature = "serve")), allow(dead_code))]
    pub(crate) member: Option<Arc<[String]>>,
}

/// Data of a message that its mailbox stores outside of the content.
#[derive(Clone, Default)]
pub(crate) struct StoredState {
    pub(crate) flags: Option<MessageFlags>,
    /// Time of arrival, or the modification time of the file.
    pub(crate) date: Option<SystemTime>,
    /// State of a message that Proton exported.
    pub(crate) proton: Option<ProtonState>,
}

impl StoredState {
    pub(crate) fn new(flags: Option<MessageFlags>, date: Option<SystemTime>) -> Self {
        Self {
            flags,
            date,
            proton: None,
        }
    }
}

/// A message in the form in which a new mailbox contains it.
pub(crate) struct PreparedMessage<'m> {
    /// Content of the file, or the separator and the quoted content in an mbox.
    pub(super) bytes: Cow<'m, [u8]>,
    pub(super) system: Flags,
    pub(super) keywords: Keywords,
    /// Flags and keywords that the mailbox cannot store, each with the reason.
    pub(super) lost: Vec<String>,
    pub(super) date: Option<SystemTime>,
    pub(super) labels: Vec<String>,
}

/// Messages that one thread has prepared and another one writes. Their bytes are in one buffer: if the writing thread freed
/// a buffer for each message, it would wait for the allocator of the other threads.
#[cfg(feature = "cli")]
#[derive(Default)]
pub(crate) struct PreparedMessages {
    bytes: Vec<u8>,
    /// For each message the position of its end in `bytes`, and the message without its bytes.
    messages: Vec<(usize, PreparedMessage<'static>)>,
}

#[cfg(feature = "cli")]
impl PreparedMessages {
    pub(crate) fn add(&mut self, message: PreparedMessage<'_>) {
        self.bytes.extend_from_slice(&message.bytes);
        let without_bytes = PreparedMessage {
            bytes: Cow::Borrowed(&[]),
            system: message.system,
            keywords: message.keywords,
            lost: message.lost,
            date: message.date,
            labels: message.labels,
        };
        self.messages.push((self.bytes.len(), without_bytes));
    }

    /// Calls `write` for each message, in the order in which they were added, until it returns an error.
    pub(crate) fn try_for_each(
        self,
        mut write: impl FnMut(&PreparedMessage<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut start = 0;
        for (end, message) in self.messages {
            let bytes = Cow::Borrowed(&self.bytes[start..end]);
            write(&PreparedMessage { bytes, ..message })?;
            start = end;
        }
        Ok(())
    }
}

/// Returns a hash of the content, the sender and the date of a mail, which is equal for repeated mails. Half of a
/// SHA-256 is enough: creating two different mails with the same hash is still infeasible.
pub(super) fn identity(letter: &PreparedMail<'_>, seconds: i64) -> [u8; 16] {
    let sender = letter.envelope.sender.as_bytes();
    let mut hash = Sha256::new();
    hash.update(seconds.to_le_bytes());
    hash.update((sender.len() as u64).to_le_bytes());
    hash.update(sender);
    hash.update(letter.content);
    let whole: [u8; 32] = hash.finalize().into();
    whole.first_chunk().copied().unwrap_or_default()
}

/// Returns the date in seconds since 1970. Returns 0 for an unknown date, or one before 1970.
pub(super) fn seconds(date: Option<SystemTime>) -> i64 {
    let since = date.and_then(|date| date.duration_since(UNIX_EPOCH).ok());
    i64::try_from(since.unwrap_or(Duration::ZERO).as_secs()).unwrap_or(i64::MAX)
}
