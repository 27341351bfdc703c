//! Converted mail, and the errors of all readers.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::engine::outlook::source::{ItemFlags, OutlookMessage};

/// A mail that was made from an item of Outlook.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ConvertedMail {
    /// The message as in RFC 5322. All lines end with LF, also the last one.
    ///
    /// The header is the one with which the mail was delivered, if the item contains it. Otherwise From, To, Cc, Bcc, Date,
    /// Message-ID and Subject are made from properties, as far as the item has them. An address of Exchange that is no
    /// internet address becomes `IMCEAEX-...@exchange.invalid`.
    pub content: Vec<u8>,
    /// Name of the folder that contains the item, after the names of the folders above it. The names are untrusted, and can
    /// contain any characters. The list is empty for [`Msg`](super::Msg) and [`Tnef`](super::Tnef).
    pub folder: Vec<String>,
    /// Flags of the item.
    pub flags: ItemFlags,
    /// Time of delivery, otherwise of submission. `None` if both are unknown.
    pub received: Option<SystemTime>,
    /// Time of submission by the sender.
    pub sent: Option<SystemTime>,
    /// Subject, without the characters by which Outlook marks a prefix such as `Re: `.
    pub subject: Option<String>,
    /// One sentence for each piece of content that the mail lacks, because mail has no place for it, or because the
    /// file only contains a link to it.
    pub missing: Vec<String>,
    /// A sentence for each fault of the file that affects this item. The mail contains everything else.
    pub damage: Vec<String>,
}

impl ConvertedMail {
    pub(super) fn of(mail: OutlookMessage, damage: Vec<String>, folder: Vec<String>) -> Self {
        Self {
            content: mail.content,
            folder,
            flags: mail.flags,
            received: mail.received.and_then(time),
            sent: mail.sent.and_then(time),
            subject: mail.subject,
            missing: mail.missing,
            damage,
        }
    }

    /// Returns whether the mail contains everything in the item, and the file is intact.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.damage.is_empty()
    }
}

/// Converts seconds since 1970.
fn time(seconds: i64) -> Option<SystemTime> {
    let since = Duration::from_secs(u64::try_from(seconds).ok()?);
    UNIX_EPOCH.checked_add(since)
}

/// Reason why an Outlook file cannot be read.
///
/// Messages are in lower case, have no full stop, and end with advice where there is some.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutlookError {
    /// The operating system could not open or read the file.
    #[error("the file cannot be read: {0}")]
    Read(#[source] io::Error),
    /// The file is not of the format that was requested.
    #[error("{0}")]
    OtherFormat(String),
    /// The file is a mailbox of a version that is not read. Version 36 is that of `.ost` files of Outlook 2013 and later,
    /// whose layout \[MS-PST\] does not describe.
    #[error(
        "the file has the version {0} (Outlook 2013 or later), which embody does not read; export the mailbox to a .pst file in Outlook, and convert that file"
    )]
    Version(u16),
    /// The file is too damaged, or ends too early.
    #[error("{0}")]
    Damaged(String),
}
