//! Converts each item in an Outlook file to a message, with its state in the mailbox.

use super::compose;
use super::header::seconds;
pub use super::header::subject;
use super::properties::{Item, id};

/// A message that was made from an item.
#[derive(Debug)]
pub struct Mail {
    /// Header and body, with LF line endings.
    pub content: Vec<u8>,
    /// A sentence for each piece of content of the item that the message lacks.
    pub missing: Vec<String>,
    pub state: ItemState,
    pub subject: Option<String>,
}

/// The state of a message in Outlook: flags and a date, which are not part of the message itself.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ItemState {
    pub is_read: bool,
    pub is_draft: bool,
    pub is_replied: bool,
    pub is_forwarded: bool,
    pub is_flagged: bool,
    /// Time at which the message was received or sent, in seconds since 1970.
    pub received: Option<i64>,
}

/// Converts an item to a message.
pub fn mail(item: &Item<'_>) -> Mail {
    let (mut content, missing) = compose::message(item);
    if !content.ends_with(b"\n") {
        content.push(b'\n');
    }
    Mail {
        content,
        missing,
        state: state_of(item),
        subject: item.text(id::SUBJECT).map(|text| subject(&text).to_owned()),
    }
}

fn state_of(item: &Item<'_>) -> ItemState {
    const READ: i64 = 1;
    const UNSENT: i64 = 8;
    let integer = |id| item.properties.integer(id);
    let flags = integer(id::FLAGS).unwrap_or(READ);
    // The user's last action on the message, as a number: reply (102), reply to all (103) or forward (104).
    let action = integer(id::LAST_ACTION);
    let time = |id| item.properties.time(id).and_then(seconds);
    ItemState {
        is_read: flags & READ != 0,
        is_draft: flags & UNSENT != 0,
        is_replied: matches!(action, Some(102 | 103)),
        is_forwarded: action == Some(104),
        is_flagged: integer(id::FLAG_STATUS) == Some(2),
        received: time(id::DELIVERY_TIME).or_else(|| time(id::SUBMIT_TIME)),
    }
}
