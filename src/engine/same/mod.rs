//! Decides whether two messages are the same mail: identical, changed only as embody changes mail, or altered otherwise.
//!
//! A message is first brought into a [plain form](plain), in which the traces of mailbox formats are gone. Two messages
//! with one plain form are identical. Otherwise a [`Description`] of each is made, and [`changes`] compares the
//! descriptions part by part. Descriptions are small, so a program that compares mailboxes of any size keeps
//! them in a file and not the messages.
//!
//! The module is pure: it reads no files and makes no network requests.

mod body;
mod copy;
mod cover;
mod description;
mod fields;
mod fields_of_part;
mod filling;
mod item;
mod lines;
mod list;
mod note;
mod note_fields;
mod plain;
mod plain_text;
mod relation;
mod spelling;
#[cfg(test)]
mod tests;
mod texts;
mod transport;

pub(crate) use self::copy::{MailCopy, copy_key, copy_key_with};
pub(crate) use self::cover::{Difference, MOST_COMPARED, covers};
pub(crate) use self::description::Description;
pub(crate) use self::filling::{Described, fillings};
pub(crate) use self::item::Place;
pub(crate) use self::lines::unquoted_text;
pub(crate) use self::plain::{Digest, identity, plain};
pub(crate) use self::relation::{Altered, Changes, changes};
