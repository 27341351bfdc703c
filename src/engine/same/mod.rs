//! Decides whether two messages are the same mail: identical, or copies of one mail that took different routes.
//!
//! A message is first brought into a [plain form](plain), in which the traces of mailbox formats are gone. Two messages
//! with one plain form are identical. A [`MailCopy`] describes the content of a message, and [`covers`] compares two
//! descriptions. Descriptions are small, so a program that compares mailboxes of any size keeps them in a file and not the
//! messages. Whether embody changed one message into another one is decided in [`prove`](super::prove).
//!
//! The module is pure: it reads no files and makes no network requests.

mod body;
mod copy;
mod cover;
mod fields;
mod fields_of_part;
mod filling;
mod item;
mod list;
mod note;
mod note_fields;
mod plain;
mod plain_text;
mod spelling;
#[cfg(test)]
mod tests;
mod transport;

pub(crate) use self::copy::{MailCopy, change_key, copy_key, copy_key_with};
pub(crate) use self::cover::{CoverDifference, MOST_COMPARED, covers};
pub(crate) use self::filling::{ContentFacts, NoteDescription, fillings};
pub(crate) use self::item::CutPlace;
pub(crate) use self::plain::{Digest, identity, plain};
