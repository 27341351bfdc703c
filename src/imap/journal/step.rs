//! A replacement, and the steps that the journal records.

use serde::{Deserialize, Serialize};

/// The latest step of a replacement that the journal has recorded. After a crash, it determines how the next run finishes
/// or undoes the replacement.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::imap) enum ReplacementStep {
    /// The new message may already be in the folder, under an unknown UID.
    Begun,
    /// The new message was appended and has this UID.
    Appended(u32),
    /// The new message with this UID was compared and is correct. The old message may already be marked as `\Deleted` by
    /// embody. If it is gone, another program removed or moved it, because embody has not sent a command that removes it.
    Deleting(u32),
    /// The new message with this UID was compared and is correct. The command that removes the old message may have been
    /// sent.
    Removing(u32),
    /// The replacement is being undone: the new message with this UID and SHA-256 may already be marked as `\Deleted`,
    /// or gone.
    TakingBack(u32, String),
    /// The command REPLACE may have removed the old message from the server. Its content is in a file:
    /// [`ReplaceJournal::kept`](super::ReplaceJournal::kept).
    Replacing,
    /// REPLACE removed the old message, but did not store the new one correctly. The old message may have been appended
    /// again.
    PuttingBack,
}

impl ReplacementStep {
    /// Returns the UID of the new message, if it is known.
    pub(in crate::imap) fn copy(&self) -> Option<u32> {
        match self {
            Self::Appended(uid)
            | Self::Deleting(uid)
            | Self::Removing(uid)
            | Self::TakingBack(uid, _) => Some(*uid),
            Self::Begun | Self::Replacing | Self::PuttingBack => None,
        }
    }
}

/// A message and the new message that replaces it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(in crate::imap) struct Replacement {
    /// Name of the folder, in the spelling of the server.
    pub(in crate::imap) folder: String,
    pub(in crate::imap) uidvalidity: u32,
    pub(in crate::imap) uid: u32,
    /// Smallest UID that the new message can have. A message with a smaller UID existed before, so it is never
    /// taken for the new message.
    pub(in crate::imap) least: u32,
    /// SHA-256 of the new content, and its size in bytes.
    pub(in crate::imap) sha256: String,
    pub(in crate::imap) size: u64,
    /// SHA-256 of the old content. `None` in a journal of version 0.3.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::imap) original: Option<String>,
    /// Size of the old content in bytes. 0 in a journal of version 0.3.0.
    #[serde(default)]
    pub(in crate::imap) original_size: u64,
    /// Flags of the new message, which were copied from the old message at the last comparison.
    pub(in crate::imap) flags: Vec<String>,
    /// Gmail labels of the new message, which were copied from the old message at the last comparison.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::imap) labels: Vec<String>,
    /// INTERNALDATE as the server wrote it, and in seconds since 1970.
    pub(in crate::imap) date: (String, i64),
    pub(in crate::imap) step: ReplacementStep,
}
