//! Mailboxes as a source of parts that are missing in other mails (`--copies`).
//!
//! ```text
//! mailboxes -> each mail and each of its parts as a record of digests    index
//!           -> records, sorted; each content at most a few times         table
//! Need::Copy -> the mails with the same Message-ID, or with the digest   search
//!            -> each is read again from its mailbox, and proved          mails
//!            -> the content of one part                                  part
//! ```
//!
//! A part comes from another copy of the same mail, as [`same`](crate::engine::same) defines it, or from any mail if
//! the reference has a digest of its content. A Message-ID proves nothing. If two copies have different contents for a
//! part, neither is used.
//!
//! Memory does not grow with the mailboxes: records are in temporary files, and contents stay where they are. Only mails of
//! compressed mailboxes, archives and Outlook files are kept in a temporary file, because they cannot be read again in
//! reasonable time.

mod index;
mod mails;
mod part;
mod record;
mod search;
mod table;

pub(crate) use self::index::{CopyIndex, IndexBuilder};
pub(crate) use self::search::CopySearch;
