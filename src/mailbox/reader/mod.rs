//! Reading mail: the messages of a source, in order, without a change and without a result.
//!
//! A [`MailboxReader`](letters::MailboxReader) reads one mailbox. There is one reader for each kind of mailbox. One
//! thread calls it, so everything that depends on the order of the messages is done there, such as the numbers of
//! messages and the size limit of an Outlook mailbox. The [`Letters`](letters::Letters) that it returns can be opened
//! by any thread. [`read_source`] reads all mailboxes of a source with the worker pool, and [`Messages`] reads them one
//! after the other.
//!
//! A conversion to another format and `merge` read all mailboxes through these readers (`deliver`). A copy of an mbox in its own
//! format and a change of an mbox in place read its messages through [`MboxPart`] (`copy`).
//!
//! Readers write nothing, lock nothing and make no network requests. A reader returns facts as values. The caller decides about
//! their consequences.

mod context;
mod errors;
mod files;
mod folder;
mod letters;
#[cfg(feature = "cli")]
mod map;
mod mbox;
mod messages;
mod open;
mod opened;
#[cfg(feature = "outlook")]
mod pst;
mod sequence;
mod single;

pub(crate) use context::ReadContext;
#[cfg(feature = "cli")]
pub(crate) use errors::FactErrors;
pub(crate) use files::FilesReader;
pub(crate) use letters::{
    Letter, LetterFacts, LetterPlace, Letters, MailboxReader, MboxPlace, SeeLetter,
};
#[cfg(feature = "cli")]
pub(crate) use map::{LetterWork, read_source};
pub(crate) use mbox::{MboxLetters, MboxPart, quoting_of};
pub use messages::{Messages, OwnedMessage};
pub(crate) use open::open_reader;
pub(crate) use opened::OpenReader;

#[cfg(test)]
mod tests;
