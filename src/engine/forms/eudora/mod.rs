//! Eudora mailboxes: messages that Eudora took apart become MIME again.
//!
//! `notes` reads the texts and notes of a message, `flattened` decides whether Eudora took it apart, `unflatten` obtains the
//! files, and `compose` writes the parts. The driver knows which file belongs to which note, because a file belongs to the
//! first note of the mailbox that names it.

#[cfg(all(feature = "file", feature = "mailbox"))]
mod compose;
#[cfg(all(feature = "file", feature = "mailbox"))]
mod flattened;
pub(crate) mod notes;
#[cfg(all(feature = "file", feature = "mailbox"))]
mod unflatten;

#[cfg(all(feature = "file", feature = "mailbox"))]
pub(crate) use self::flattened::Flattened;
