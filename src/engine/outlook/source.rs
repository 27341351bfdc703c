//! Converts the items of an Outlook file to messages, with their flags (such as read or flagged).

use super::compose;
use super::header::seconds;
pub use super::header::subject;
use super::properties::{OutlookItem, id};

/// A message that was made from an item.
#[derive(Debug)]
pub struct OutlookMessage {
    /// Header and body, with LF line endings.
    pub content: Vec<u8>,
    /// One sentence for each piece of content that was lost in the conversion.
    pub missing: Vec<String>,
    pub flags: ItemFlags,
    /// Time at which the message was received or, if that is unknown, sent, in seconds since 1970.
    pub received: Option<i64>,
    /// Time at which the message was sent, in seconds since 1970.
    pub sent: Option<i64>,
    pub subject: Option<String>,
}

/// Flags of a message in Outlook, which are not part of the message itself ([MS-OXCMSG] 2.2.1.6, [MS-OXOFLAG] 2.2.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct ItemFlags {
    /// Whether the user has read the message. True if the item has no flags.
    pub is_read: bool,
    /// Whether the message was never sent.
    pub is_draft: bool,
    /// Whether a reply was the last action on the message.
    pub is_replied: bool,
    /// Whether forwarding was the last action on the message.
    pub is_forwarded: bool,
    /// Whether the user has flagged the message for follow-up.
    pub is_flagged: bool,
}

/// Converts an item to a message.
pub fn mail(item: &OutlookItem<'_>) -> OutlookMessage {
    let (mut content, missing) = compose::message(item);
    let time = |id| item.properties.time(id).and_then(seconds);
    if !content.ends_with(b"\n") {
        content.push(b'\n');
    }
    OutlookMessage {
        content,
        missing,
        flags: flags_of(item),
        received: time(id::DELIVERY_TIME).or_else(|| time(id::SUBMIT_TIME)),
        sent: time(id::SUBMIT_TIME),
        subject: item.text(id::SUBJECT).map(|text| subject(&text).to_owned()),
    }
}

fn flags_of(item: &OutlookItem<'_>) -> ItemFlags {
    const READ: i64 = 1;
    const UNSENT: i64 = 8;
    let integer = |id| item.properties.integer(id);
    let flags = integer(id::FLAGS).unwrap_or(READ);
    // The user's last action on the message, as a number: reply (102), reply to all (103) or forward (104).
    let action = integer(id::LAST_ACTION);
    ItemFlags {
        is_read: flags & READ != 0,
        is_draft: flags & UNSENT != 0,
        is_replied: matches!(action, Some(102 | 103)),
        is_forwarded: action == Some(104),
        is_flagged: integer(id::FLAG_STATUS) == Some(2),
    }
}
